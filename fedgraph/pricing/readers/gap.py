"""GAP (Sajadmanesh et al., USENIX Security 2023): ``python train.py gap-edp | gap-ndp | sage-edp | sage-ndp | mlp-dp …``.

gap-edp   aggregation noise with sensitivity 1 per hop, calibrated as exact Gaussians. An undirected edge changes two rows of
every
          hop: Δ = √2, μ = √(2K)/σ.
gap-ndp   sensitivity √D per hop (D = max_degree) and two DP-SGD stages (Poisson), one noise scale for all. Holds under a
promised
          degree, and while no node sees another node's aggregated row; where a node above D is removed, its neighbours' free
          slots are filled again and more rows change, so that without the promise nothing is proven here.
mlp-dp    DP-SGD on features alone.
sage-edp  randomised adjacency (asymmetric randomised response), pure ε per edge.        sage-ndp: not priced.
"""

from __future__ import annotations

import math

from fedgraph.pricing import costs, shell_script
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Composed, Event, Gaussian, PoissonGaussian, Repeated

SYSTEM = "GAP"
VERSION = "sisaman/GAP, July 2023"
SOURCE = (
    "sisaman/GAP at 926e375 (2023-07-03): core/methods/node/gap/gap_{edp,ndp}.py, core/privacy/algorithms; read 2026-11-21. "
    "The node level is disputed: Xiang, Wang & Wang, IEEE S&P 2024, arXiv 2311.06888"
)
SAID = (
    "The authors prove edge level for sensitivity 1 (one directed edge) and node level for graphs of bounded degree; "
    "they say that "
    "hyper-parameter search is not counted."
)
LEVELS = {
    ("gap", "edge"): "gap-edp",
    ("gap", "node"): "gap-ndp",
    ("gap", "none"): "gap-inf",
}  # as ProGAP's repository writes it
METHODS = ("gap-edp", "gap-ndp", "mlp-dp", "sage-edp", "sage-ndp", "gap-inf", "mlp", "sage-inf")


def recognises(document: Document) -> bool:
    return shell_script.is_script(document) and _method(document) is not None


def _method(document: Document) -> str | None:
    words = shell_script.words(document)
    named = LEVELS.get((words[0], words[1])) if len(words) > 1 else None
    return named or next((word for word in words[:1] if word in METHODS), None)


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    method = _method(document)
    if method is None:
        raise options.error("method", f"no method of GAP is named; allowed: {', '.join(METHODS)}")
    options.without_price(shell_script.NO_PRICE)
    if method in ("gap-inf", "mlp", "sage-inf"):
        return _without(method)
    if method == "sage-ndp":
        raise options.error("method", "not priced: sage-ndp; describe its training with the reader daigavane")
    epsilon, delta = shell_script.budget(options)
    hops, degree = options.whole("hops", options.whole("k", 2, 1), 1) or 2, options.whole("max_degree", 100, 1) or 100
    options.without_price(["max_grad_norm", "batch_size", "b"])
    epochs, encoder = options.whole("epochs", 100, 0) or 0, options.whole("encoder_epochs", 100, 0) or 0
    options.finish((*shell_script.NO_PRICE, "epsilon", "delta", "hops", "max_degree", "epochs", "batch_size"))
    if math.isinf(epsilon):
        return _without(method)
    published = (Published(epsilon, delta, "total", f"--epsilon {epsilon:g} of {method}"),)
    if method == "sage-edp":
        return _adjacency(epsilon, published)
    if method == "gap-edp":
        return _edges(epsilon, delta, hops, published)
    stages = (encoder, epochs) if method == "gap-ndp" else (epochs,)
    return _nodes(method, epsilon, delta, hops if method == "gap-ndp" else 0, degree, stages, published)


def _edges(epsilon: float, delta: float | None, hops: int, published: tuple[Published, ...]) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        at = delta if delta is not None else facts["delta"]
        sigma = calibrate.gaussian_multiplier(hops, epsilon, at) * factor
        out = []
        for relation, move in (("edge-undirected", math.sqrt(2)), ("edge-directed", 1.0)):
            why = f"{hops} hops with noise {sigma:.4g} times 1; such an edge moves the sums by Δ = {move:.4g}"
            out.append(Row("edge", relation, RECIPIENT, costs.events(Gaussian(sigma / move)), hops, at, why))
        return tuple(out)

    return Reading(
        rows,
        published,
        () if delta is not None else (shell_script.delta_question("edges"),),
        ("features and labels, which edge level takes as public", "the best epoch, chosen on private validation data"),
        order=("Rows are normalised, summed over neighbours, noised, hop by hop; hops compose; training is post-processing.",),
        settings=lambda factor: _lower_epsilon(epsilon, delta or 1e-7, hops, factor),
    )


def _lower_epsilon(epsilon: float, delta: float, hops: int, factor: float) -> dict[str, Setting]:
    """The ``--epsilon`` whose noise is ``factor`` times as large: what GAP's own formula gives for it."""
    from fedgraph.privacy.accounting import gaussian

    sigma = calibrate.gaussian_multiplier(hops, epsilon, delta) * factor
    return {"epsilon": gaussian.epsilon(math.sqrt(hops) / sigma, delta)}


def _nodes(
    method: str,
    epsilon: float,
    delta: float | None,
    hops: int,
    degree: int,
    stages: tuple[int, ...],
    published: tuple[Published, ...],
) -> Reading:
    def event(sigma: float, rate: float, hop: float, replaced: bool) -> Event:
        trained = tuple(Repeated(PoissonGaussian(sigma, rate, 1, replaced), math.ceil(epochs / rate)) for epochs in stages)
        return Composed((*trained, Repeated(Gaussian(sigma * math.sqrt(degree) / hop), hops)))

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate, at = facts["batch share"], delta if delta is not None else facts["delta"]
        sigma = factor * calibrate.noise_multiplier(lambda s: event(s, rate, math.sqrt(degree), False), epsilon, at)
        cases = [
            ("zero-out, promised degree", math.sqrt(degree), False, f"Δ = √{degree} per hop, if no node has more than {degree}")
        ]
        if hops:
            cases.append(
                ("zero-out, rows released", math.sqrt(degree + degree**2), False, "a node's aggregated row is shown to others")
            )
        cases.append(("replace, promised degree", 2 * math.sqrt(degree), True, "2·Δ per hop, 2·clip per step"))
        out = []
        for relation, hop, replaced, why in cases:
            relation = relation if hops else relation.split(",")[0]
            made = event(sigma, rate, hop, replaced)
            out.append(
                Row(
                    "node",
                    relation,
                    RECIPIENT,
                    costs.events(made),
                    1,
                    at,
                    f"noise scale {sigma:.4g}; {why if hops else 'DP-SGD'}",
                )
            )
        if hops:
            reason = "above the degree bound, free slots are filled again: no bound on the rows that change is proven here"
            out.append(Row("node", "zero-out, any degree", RECIPIENT, costs.unprotected(reason), 1, at, reason))
        return tuple(out)

    share = Unknown(
        "batch share", "Which share of the training nodes is a batch (batch_size / training nodes)?", shell_script.RATES
    )
    asked = (share,) if delta is not None else (share, shell_script.delta_question("training nodes"))
    more = ("edges and degrees above the promise",) if hops else ("edges, which are not used",)
    order = (
        "Poisson-sampled DP-SGD and noised hops compose; noise as calibrated here, which is at most that of their accountant.",
    )
    return Reading(
        rows, published, asked, more, order=order, no_fix=f"lower --epsilon of {method} by hand: its price follows it"
    )


def _adjacency(epsilon: float, published: tuple[Published, ...]) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        one = Row(
            "edge",
            "edge-directed",
            RECIPIENT,
            costs.pure(epsilon / factor),
            1,
            0.0,
            "one cell of the adjacency, then training",
        )
        two = Row(
            "edge", "edge-undirected", RECIPIENT, costs.pure(2 * epsilon / factor), 1, 0.0, "an undirected edge is two cells"
        )
        return (two, one)

    return Reading(rows, published, (), ("features and labels",), settings=lambda factor: {"epsilon": epsilon / factor})


def _without(method: str) -> Reading:
    reason = f"{method} without a finite ε adds no noise"

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("node", "zero-out", RECIPIENT, costs.unprotected(reason), 1, 0.0, reason),)

    return Reading(
        rows, (Published(None, None, "none", "no ε is claimed"),), (), ("everything",), no_fix="use gap-edp or gap-ndp"
    )
