"""ProGAP (Sajadmanesh & Gatica-Perez, WSDM 2024): ``python train.py progap edge | node …``.

edge    noise with sensitivity 1 at each of ``depth`` aggregations, exact Gaussians: an undirected edge changes two rows, Δ =
√2.
node    sensitivity √D per aggregation and one DP-SGD stage per step of depth (depth + 1 of them), one noise scale for all;
holds
        under a promised degree, as GAP's.
"""

from __future__ import annotations

import math

from fedgraph.pricing import shell_script
from fedgraph.pricing.base import Published, Reading
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.readers import gap

SYSTEM = "ProGAP"
VERSION = "sisaman/ProGAP, December 2024"
SOURCE = "sisaman/ProGAP at 3ccad59 (2024-12-17): core/methods/progap/{base,edge,node}.py, core/nn/nap.py; read 2026-11-21"
SAID = "The authors state edge level, and node level for graphs of bounded degree, as in GAP; their search is not counted."


def recognises(document: Document) -> bool:
    return shell_script.is_script(document) and shell_script.words(document)[:1] == ["progap"]


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    words = shell_script.words(document)
    level = words[1] if len(words) > 1 else "none"
    if level not in ("edge", "node", "none"):
        raise options.error("level", f"level: found {level!r}; allowed: edge, node, none")
    options.without_price(shell_script.NO_PRICE)
    if level == "none":
        return gap._without("progap none")
    epsilon, delta = shell_script.budget(options)
    depth, degree = options.whole("depth", options.whole("k", 2, 1), 1) or 2, options.whole("max_degree", 100, 1) or 100
    options.without_price(["max_grad_norm", "batch_size"])
    epochs = options.whole("epochs", 100, 0) or 0
    options.finish((*shell_script.NO_PRICE, "epsilon", "delta", "depth", "max_degree", "epochs", "batch_size", "max_grad_norm"))
    if math.isinf(epsilon):
        return gap._without(f"progap {level}")
    published = (Published(epsilon, delta, "total", f"--epsilon {epsilon:g} of progap {level}"),)
    if level == "edge":
        return gap._edges(epsilon, delta, depth, published)
    return gap._nodes("progap node", epsilon, delta, depth, degree, (epochs,) * (depth + 1), published)
