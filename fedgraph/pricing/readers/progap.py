"""ProGAP (Sajadmanesh & Gatica-Perez, WSDM 2024): ``python train.py progap edge | node …``.

edge    noise with sensitivity 1 at each of ``depth`` aggregations, exact Gaussians: an undirected edge changes two rows, √2.
node    sensitivity √D per aggregation and one DP-SGD stage per step of depth (depth + 1 of them), one noise scale for all;
        holds under a promised degree, as GAP's.
"""

import math

from fedgraph.pricing import shell_script
from fedgraph.pricing.base import Published, Reading
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.readers import gap


def read(document: Document) -> Reading:
    options, level = Options(document, system="progap"), (*shell_script.words(document), "none")[1]
    if level not in ("edge", "node", "none"):
        raise options.error("level", f"level: found {level!r}; allowed: edge, node, none")
    if level == "none":
        return gap.without_noise("progap none")
    epsilon, delta = shell_script.budget(options)
    depth, degree = options.whole("depth", options.whole("k", 2, 1), 1) or 2, options.whole("max_degree", 100, 1) or 100
    options.without_price(["max_grad_norm", "batch_size"])
    epochs = options.whole("epochs", 100, 0) or 0
    options.finish()
    if math.isinf(epsilon):
        return gap.without_noise(f"progap {level}")
    claim = Published(epsilon, delta, "total", f"--epsilon {epsilon:g} of progap {level}")
    if level == "edge":
        return gap.edge_level(document, claim, depth)
    return gap.node_level(document, claim, depth, degree, (epochs,) * (depth + 1))
