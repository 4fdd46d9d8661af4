"""DPDGC (Chien et al., NeurIPS 2023): ``python train.py dpdgc-edp | dpdgc-kndp | dpdgc-ndp …``; its other methods are GAP's.

DP-SGD on rows of the adjacency (noise 2·clip·σ, batches without replacement, accounted as replace) and one release of A·W with
noise σ times norm_scale (edge), norm_scale·√k (k neighbours), norm_scale·√(2D) (node, bounded degree).

edge: an undirected edge changes two rows of A, so that two rows of the sum change (Δ = √2·norm_scale) and two clipped
samples of
DP-SGD may; a directed edge changes one of each, as published.
"""

from __future__ import annotations

import math

from fedgraph.pricing import costs, shell_script
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.readers import gap
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, Repeated

SYSTEM = "DPDGC"
VERSION = "thupchnsky/dp-gnn, October 2023"
SOURCE = "thupchnsky/dp-gnn at 572a028 (2023-10-14): core/methods/node/dpdgc/dpdgc_{inf,edp,kndp,ndp}.py; read 2026-11-21"
SAID = (
    "The authors define privacy of graph learning with predictions included (“GDP”), count one directed edge, k "
    "neighbours or a "
    "bounded-degree node, use replacement for DP-SGD, and report ε = 16 for node level."
)
METHODS = ("dpdgc-edp", "dpdgc-kndp", "dpdgc-ndp", "dpdgc-inf")
BATCH, ROWS = 256, (1000.0, 3000.0, 10000.0, 100000.0)


def recognises(document: Document) -> bool:
    return shell_script.is_script(document) and bool(set(shell_script.words(document)[:1]) & set(METHODS))


def read(document: Document) -> Reading:
    options, method = Options(document, document.data), shell_script.words(document)[0]
    options.without_price(shell_script.NO_PRICE)
    if method == "dpdgc-inf":
        return gap._without(method)
    epsilon, delta = shell_script.budget(options)
    batch = options.whole("batch_size", options.whole("b", BATCH, 1), 1) or BATCH
    encoder, epochs = options.whole("encoder_epochs", 100, 0) or 0, options.whole("epochs", 100, 0) or 0
    neighbours, degree = options.whole("nk", 1, 1) or 1, options.whole("max_degree", 100, 1) or 100
    options.without_price(["max_grad_norm"])
    options.finish((*shell_script.NO_PRICE, "epsilon", "delta", "batch_size", "encoder_epochs", "epochs", "nk", "max_degree"))
    if math.isinf(epsilon):
        return gap._without(method)
    stages = (encoder,) if method == "dpdgc-edp" else (encoder, epochs)

    def event(sigma: float, nodes: int, touched: int, spread: float) -> Event:
        # std = 2·clip·σ: multiplier 2σ relative to the clip; spread: how far A·W moves, in units of its own noise scale
        size = min(batch, nodes)
        trained = tuple(
            Repeated(
                FixedSizeGaussian(2 * sigma, size, nodes, min(touched, nodes), replaced=True), math.ceil(epochs * nodes / size)
            )
            for epochs in stages
        )
        return Composed((*trained, Gaussian(sigma / spread)))

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        nodes, at = int(facts["training nodes"]), delta if delta is not None else facts["delta"]
        sigma = factor * calibrate.noise_multiplier(lambda s: event(s, nodes, 1, 1.0), epsilon, at)
        said = f"noise scale {sigma:.4g}"
        if method == "dpdgc-edp":
            cases = [
                ("edge-undirected", 2, math.sqrt(2), "two rows of A change"),
                ("edge-directed", 1, 1.0, "one row of A changes"),
            ]
            unit = "edge"
        else:
            bound = f"k = {neighbours} neighbours" if method == "dpdgc-kndp" else f"promised degree {degree}"
            cases, unit = [(f"replace, {bound}", 1, 1.0, "as published: the noise is scaled to it")], "node"
        return tuple(
            Row(unit, relation, RECIPIENT, costs.events(event(sigma, nodes, touched, spread)), 1, at, f"{said}; {why}")
            for relation, touched, spread, why in cases
        )

    def settings(factor: float) -> dict[str, Setting]:
        return {"noise multiplied by": factor}

    size = Unknown("training nodes", "How many training nodes are there?", ROWS)
    asked = (size,) if delta is not None else (size, shell_script.delta_question("edges or training nodes"))
    unprotected = (
        ("edges beyond the bound",) if method != "dpdgc-edp" else ("features and labels, which edge level takes as public",)
    )
    order = (
        (
            "DP-SGD (without replacement) and the noised product compose; noise as calibrated here by fixed-size batches, "
            "revealed."
        ),
    )
    return Reading(rows, (Published(epsilon, delta, "total", ("--epsilon "
f"{epsilon:g} of {method}")),), asked, unprotected, order=order,
                   settings=settings)  # fmt: skip
