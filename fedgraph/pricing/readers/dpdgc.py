"""DPDGC (Chien et al., NeurIPS 2023): ``python train.py dpdgc-edp | dpdgc-kndp | dpdgc-ndp …``; its other methods are GAP's.

DP-SGD on rows of the adjacency (noise 2·clip·σ, batches without replacement, accounted as replace) and one release of A·W with
noise σ times norm_scale (edge), norm_scale·√k (k neighbours), norm_scale·√(2D) (node, bounded degree).

edge: an undirected edge changes two rows of A, so that two rows of the sum change (Δ = √2·norm_scale) and two clipped samples
of DP-SGD may; a directed edge changes one of each, as published.
"""

import math

from fedgraph.pricing import costs, shell_script
from fedgraph.pricing.base import RECIPIENT, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.readers import gap
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, Repeated

METHODS = ("dpdgc-edp", "dpdgc-kndp", "dpdgc-ndp", "dpdgc-inf")
BATCH, ROWS = 256, (1000.0, 3000.0, 10000.0, 100000.0)


def read(document: Document) -> Reading:
    options, method = Options(document, system="dpdgc"), shell_script.words(document)[0]
    if method == "dpdgc-inf":
        return gap.without_noise(method)
    epsilon, said = shell_script.budget(options)
    batch = options.whole("batch_size", options.whole("b", BATCH, 1), 1) or BATCH
    encoder, epochs = options.whole("encoder_epochs", 100, 0) or 0, options.whole("epochs", 100, 0) or 0
    neighbours, degree = options.whole("nk", 1, 1) or 1, options.whole("max_degree", 100, 1) or 100
    options.without_price(["max_grad_norm"])
    options.finish()
    if math.isinf(epsilon):
        return gap.without_noise(method)
    stages = (encoder,) if method == "dpdgc-edp" else (encoder, epochs)
    nodes = int(document.answers.ask("training nodes", "How many training nodes are there?", ROWS))
    delta, size = shell_script.ask_delta(document, said, "edges or training nodes"), min(batch, nodes)

    def event(sigma: float, touched: int, spread: float) -> Event:
        # std = 2·clip·σ: multiplier 2σ relative to the clip; spread: how far A·W moves, in units of its own noise scale
        step = FixedSizeGaussian(2 * sigma, size, nodes, min(touched, nodes), replaced=True)
        return Composed((*(Repeated(step, math.ceil(e * nodes / size)) for e in stages), Gaussian(sigma / spread)))

    sigma = document.louder * calibrate.noise_multiplier(lambda s: event(s, 1, 1.0), epsilon, delta)
    edges, unit = method == "dpdgc-edp", "edge" if method == "dpdgc-edp" else "node"
    bound = f"k = {neighbours} neighbours" if method == "dpdgc-kndp" else f"promised degree {degree}"
    cases = [(f"replace, {bound}", 1, 1.0, "as published: the noise is scaled to it")]
    if edges:
        two = ("edge-undirected", 2, math.sqrt(2), "two rows of A change")
        cases = [two, ("edge-directed", 1, 1.0, "one row of A changes")]
    rows = tuple(
        Row(unit, relation, RECIPIENT, costs.events(event(sigma, touched, spread)), 1, delta, f"noise scale {sigma:.4g}; {why}")
        for relation, touched, spread, why in cases
    )
    order = (
        "DP-SGD (without replacement) and the noised product compose; noise as calibrated here by fixed-size batches, revealed."
    )
    claim = Published(epsilon, said, "total", f"--epsilon {epsilon:g} of {method}")
    open_ = (gap.PUBLIC if edges else "edges beyond the bound",)
    settings = {"epsilon": lambda: price(event(sigma, 1, 1.0), delta).epsilon}
    return Reading(rows, (claim,), open_, order=(order,), settings=settings)
