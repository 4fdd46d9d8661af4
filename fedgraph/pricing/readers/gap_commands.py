"""Command lines of the authors of GAP (Sajadmanesh et al., USENIX Security 2023), ProGAP (Sajadmanesh & Gatica-Perez, WSDM
2024) and DPDGC (Chien et al., NeurIPS 2023), who share their options.

An undirected edge changes two rows of a noised sum; a directed one changes one row, as published. Node level holds under a
promised degree, and while no node sees another node's aggregated row; where a node above the bound is removed, its neighbours'
free slots are filled again and more rows change, so that without the promise nothing is proven here.
"""

import math

from fedgraph.pricing import costs
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.options import Options
from fedgraph.pricing.readings import PRICE_TO_RECIPIENT, PublishedReading, Reading, ReadingRow, reading_in_clear, row_in_clear
from fedgraph.privacy.accounting import calibrate, gaussian
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, PoissonGaussian, Repeated

_LEVELS = {"edge": "gap-edp", "node": "gap-ndp", "none": "gap-inf"}  # of GAP in ProGAP's repository
_METHODS = ("gap-edp", "gap-ndp", "mlp-dp", "sage-edp", "sage-ndp", "gap-inf", "mlp", "sage-inf")
_PUBLIC = "features and labels, which edge level takes as public"
_UNDIRECTED, _DIRECTED = "edge-undirected", "edge-directed"


def read_gap_command(document: PricedDocument) -> Reading:
    """``python train.py gap-edp | gap-ndp | sage-edp | mlp-dp …``.

    gap-edp   aggregation noise with sensitivity 1 per hop, calibrated as exact Gaussians: Δ = √2, μ = √(2K)/σ.
    gap-ndp   sensitivity √D per hop (D = max_degree) and two DP-SGD stages (Poisson), one noise scale for all.
    mlp-dp    DP-SGD on features alone.
    sage-edp  randomised adjacency (asymmetric randomised response), pure ε per edge.        sage-ndp: not priced.
    """
    options, words = Options(document), (*document.bare_words, "", "")
    method = _LEVELS.get(words[1], words[0]) if words[0] == "gap" else words[0]
    if method not in _METHODS:
        raise options.error("method", f"no method of GAP is named; allowed: {', '.join(_METHODS)}")
    if method in ("gap-inf", "mlp", "sage-inf"):
        return _without_noise(method)
    if method == "sage-ndp":
        raise options.error("method", "not priced: sage-ndp; describe its training with the reader daigavane")
    claim = _claim(options, method)
    hops, degree = options.count("hops", options.count("k", 2)), options.count("max_degree", 100)
    epochs, encoder = options.count("epochs", 100, 0), options.count("encoder_epochs", 100, 0)
    options.finish()
    if math.isinf(claim.epsilon or 0.0):
        return _without_noise(method)
    if method == "sage-edp":
        spent, why = (claim.epsilon or 0.0) / document.louder, "one cell of the adjacency, then training"
        pair = "an undirected edge is two cells"
        two = ReadingRow("edge", _UNDIRECTED, PRICE_TO_RECIPIENT, costs.cost_of_pure(2 * spent), 1, 0.0, pair)
        one = ReadingRow("edge", _DIRECTED, PRICE_TO_RECIPIENT, costs.cost_of_pure(spent), 1, 0.0, why)
        return Reading((two, one), (claim,), ("features and labels",), settings={"epsilon": spent})
    if method == "gap-edp":
        return _edge_level(document, claim, hops)
    return _node_level(document, claim, hops if method == "gap-ndp" else 0, degree, (encoder, epochs) if hops else (epochs,))


def read_progap_command(document: PricedDocument) -> Reading:
    """``python train.py progap edge | node …``: noise of sensitivity 1 (edge) or √D (node) at each of ``depth`` aggregations,
    and at node level one DP-SGD stage per step of depth (depth + 1 of them), one noise scale for all."""
    options, level = Options(document), (*document.bare_words, "none")[1]
    if level not in ("edge", "node", "none"):
        raise options.error("level", f"level: found {level!r}; allowed: edge, node, none")
    if level == "none":
        return _without_noise("progap none")
    claim = _claim(options, f"progap {level}")
    depth, degree = options.count("depth", options.count("k", 2)), options.count("max_degree", 100)
    epochs = options.count("epochs", 100, 0)
    options.finish()
    if math.isinf(claim.epsilon or 0.0):
        return _without_noise(f"progap {level}")
    if level == "edge":
        return _edge_level(document, claim, depth)
    return _node_level(document, claim, depth, degree, (epochs,) * (depth + 1))


def read_dpdgc_command(document: PricedDocument) -> Reading:
    """``python train.py dpdgc-edp | dpdgc-kndp | dpdgc-ndp …``.

    DP-SGD on rows of the adjacency (noise 2·clip·σ, batches without replacement, accounted as replace) and one release of A·W
    with noise σ times norm_scale (edge), norm_scale·√k (k neighbours), norm_scale·√(2D) (node, bounded degree). An undirected
    edge changes two rows of the sum (Δ = √2·norm_scale), and two clipped samples of DP-SGD may change.
    """
    options, method = Options(document), document.bare_words[0]
    if method == "dpdgc-inf":
        return _without_noise(method)
    claim, batch = _claim(options, method), options.count("batch_size", options.count("b", 256))
    encoder, epochs = options.count("encoder_epochs", 100, 0), options.count("epochs", 100, 0)
    neighbours, degree = options.count("nk", 1), options.count("max_degree", 100)
    options.finish()
    if math.isinf(claim.epsilon or 0.0):
        return _without_noise(method)
    stages = (encoder,) if method == "dpdgc-edp" else (encoder, epochs)
    nodes = int(document.ask("training nodes"))
    delta, size = _delta(document, claim, "edges or training nodes"), min(batch, nodes)

    def event(sigma: float, touched: int, spread: float) -> Event:  # spread: how far A·W moves, in units of its noise scale
        step = FixedSizeGaussian(2 * sigma, size, nodes, min(touched, nodes), replaced=True)  # std = 2·clip·σ
        return Composed((*(Repeated(step, math.ceil(e * nodes / size)) for e in stages), Gaussian(sigma / spread)))

    sigma = document.louder * calibrate.calibrate_noise(lambda s: event(s, 1, 1.0), claim.epsilon or 0.0, delta)
    edges, unit = method == "dpdgc-edp", "edge" if method == "dpdgc-edp" else "node"
    bound = f"k = {neighbours} neighbours" if method == "dpdgc-kndp" else f"promised degree {degree}"
    cases = [(f"replace, {bound}", 1, 1.0, "as published: the noise is scaled to it")]
    if edges:
        cases = [(_UNDIRECTED, 2, math.sqrt(2), "two rows of A change"), (_DIRECTED, 1, 1.0, "one row of A changes")]
    told = [(r, costs.cost_of_events(event(sigma, k, a)), f"noise scale {sigma:.4g}; {why}") for r, k, a, why in cases]
    rows = tuple(ReadingRow(unit, relation, PRICE_TO_RECIPIENT, cost, 1, delta, why) for relation, cost, why in told)
    settings = {"epsilon": lambda: price(event(sigma, 1, 1.0), delta).epsilon}
    open_ = _PUBLIC if edges else "edges beyond the bound"
    return Reading(rows, (claim,), (open_,), order=(document.words["order"],), settings=settings)


def _claim(options: Options, method: str) -> PublishedReading:
    """What ``--epsilon``/``-e`` and ``--delta``/``-d`` claim; δ None for auto."""
    if (epsilon := options.number("epsilon", options.number("e"), above=True)) is None:
        raise options.error("epsilon", "missing option 'epsilon'; it is needed to price this file")
    delta = None if "auto" in (options.raw("delta"), options.raw("d")) else options.delta("delta", options.delta("d"))
    return PublishedReading(epsilon, delta, "total", f"--epsilon {epsilon:g} of {method}")


def _delta(document: PricedDocument, claim: PublishedReading, what: str) -> float:
    """δ = "auto" is one over the next power of ten above a count."""
    return document.ask("delta", claim.delta, what=what)


def _edge_level(document: PricedDocument, claim: PublishedReading, hops: int) -> Reading:
    """Noised hops with sensitivity 1 for one directed edge. epsilon: what GAP's own formula gives for this noise."""
    delta = _delta(document, claim, "edges")
    sigma = calibrate.calibrate_gaussian(hops, claim.epsilon or 0.0, delta) * document.louder
    rows = []
    for relation, move in ((_UNDIRECTED, math.sqrt(2)), (_DIRECTED, 1.0)):
        why = f"{hops} hops with noise {sigma:.4g} times 1; such an edge moves the sums by Δ = {move:.4g}"
        cost = costs.cost_of_events(Gaussian(sigma / move))
        rows.append(ReadingRow("edge", relation, PRICE_TO_RECIPIENT, cost, hops, delta, why))
    more = (_PUBLIC, "the best epoch, chosen on private validation data")
    settings = {"epsilon": gaussian.epsilon(math.sqrt(hops) / sigma, delta)}
    return Reading(tuple(rows), (claim,), more, order=(document.words["edge order"],), settings=settings)


def _node_level(document: PricedDocument, claim: PublishedReading, hops: int, degree: int, stages: tuple[int, ...]) -> Reading:
    """DP-SGD stages and noised hops of sensitivity √D, one noise scale for all."""
    rate, delta = document.ask("batch share"), _delta(document, claim, "training nodes")

    def event(sigma: float, hop: float, replaced: bool) -> Event:
        trained = tuple(Repeated(PoissonGaussian(sigma, rate, 1, replaced), math.ceil(epochs / rate)) for epochs in stages)
        return Composed((*trained, Repeated(Gaussian(sigma * math.sqrt(degree) / hop), hops)))

    root = math.sqrt(degree)
    sigma = document.louder * calibrate.calibrate_noise(lambda s: event(s, root, False), claim.epsilon or 0.0, delta)
    promised = f"Δ = √{degree} per hop, if no node has more than {degree}"
    cases = [
        ("zero-out, promised degree", root, False, promised),
        ("zero-out, rows released", math.sqrt(degree + degree**2), False, "a node's aggregated row is shown to others"),
        ("replace, promised degree", 2 * root, True, "2·Δ per hop, 2·clip per step"),
    ]
    rows = []
    for relation, hop, replaced, why in cases if hops else [cases[0], cases[2]]:
        said, cost = f"noise scale {sigma:.4g}; {why if hops else 'DP-SGD'}", costs.cost_of_events(event(sigma, hop, replaced))
        rows.append(ReadingRow("node", relation if hops else relation.split(",")[0], PRICE_TO_RECIPIENT, cost, 1, delta, said))
    if hops:
        reason = "above the degree bound, free slots are filled again: no bound on the rows that change is proven here"
        rows.append(row_in_clear("node", "zero-out, any degree", PRICE_TO_RECIPIENT, reason, 1, delta))
    more = "edges and degrees above the promise" if hops else "edges, which are not used"
    no_fix = f"lower {claim.words.replace(f' {claim.epsilon:g}', '')} by hand: its price follows it"
    return Reading(tuple(rows), (claim,), (more,), order=(document.words["node order"],), no_fix=no_fix)


def _without_noise(method: str) -> Reading:
    return reading_in_clear("node", PRICE_TO_RECIPIENT, f"{method} without a finite ε adds no noise", "use gap-edp or gap-ndp")
