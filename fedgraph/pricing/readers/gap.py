"""GAP (Sajadmanesh et al., USENIX Security 2023): ``python train.py gap-edp | gap-ndp | sage-edp | sage-ndp | mlp-dp …``.

gap-edp   aggregation noise with sensitivity 1 per hop, calibrated as exact Gaussians. An undirected edge changes two rows of
          every hop: Δ = √2, μ = √(2K)/σ.
gap-ndp   sensitivity √D per hop (D = max_degree) and two DP-SGD stages (Poisson), one noise scale for all. Holds under a
          promised degree, and while no node sees another node's aggregated row; where a node above D is removed, its
          neighbours' free slots are filled again and more rows change, so that without the promise nothing is proven here.
mlp-dp    DP-SGD on features alone.
sage-edp  randomised adjacency (asymmetric randomised response), pure ε per edge.        sage-ndp: not priced.
"""

import math

from fedgraph.pricing import costs, shell_script
from fedgraph.pricing.base import RECIPIENT, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.accounting import calibrate, gaussian
from fedgraph.privacy.events import Composed, Event, Gaussian, PoissonGaussian, Repeated

LEVELS = {("gap", "edge"): "gap-edp", ("gap", "node"): "gap-ndp", ("gap", "none"): "gap-inf"}  # of ProGAP's repository
METHODS = ("gap-edp", "gap-ndp", "mlp-dp", "sage-edp", "sage-ndp", "gap-inf", "mlp", "sage-inf")
RATES = (0.3, 0.1, 0.03, 0.01)
PUBLIC = "features and labels, which edge level takes as public"


def _method(document: Document) -> str | None:
    words = shell_script.words(document)
    named = LEVELS.get((words[0], words[1])) if len(words) > 1 else None
    return named or next((word for word in words[:1] if word in METHODS), None)


def read(document: Document) -> Reading:
    options, method = Options(document, system="gap"), _method(document)
    if method is None:
        raise options.error("method", f"no method of GAP is named; allowed: {', '.join(METHODS)}")
    if method in ("gap-inf", "mlp", "sage-inf"):
        return without_noise(method)
    if method == "sage-ndp":
        raise options.error("method", "not priced: sage-ndp; describe its training with the reader daigavane")
    epsilon, delta = shell_script.budget(options)
    hops, degree = options.whole("hops", options.whole("k", 2, 1), 1) or 2, options.whole("max_degree", 100, 1) or 100
    options.without_price(["max_grad_norm", "batch_size", "b"])
    epochs, encoder = options.whole("epochs", 100, 0) or 0, options.whole("encoder_epochs", 100, 0) or 0
    options.finish()
    if math.isinf(epsilon):
        return without_noise(method)
    claim = Published(epsilon, delta, "total", f"--epsilon {epsilon:g} of {method}")
    if method == "sage-edp":
        spent, why = epsilon / document.louder, "one cell of the adjacency, then training"
        two = Row("edge", "edge-undirected", RECIPIENT, costs.pure(2 * spent), 1, 0.0, "an undirected edge is two cells")
        one = Row("edge", "edge-directed", RECIPIENT, costs.pure(spent), 1, 0.0, why)
        return Reading((two, one), (claim,), ("features and labels",), settings={"epsilon": spent})
    if method == "gap-edp":
        return edge_level(document, claim, hops)
    return node_level(document, claim, hops if method == "gap-ndp" else 0, degree, (encoder, epochs) if hops else (epochs,))


def edge_level(document: Document, claim: Published, hops: int) -> Reading:
    """Noised hops with sensitivity 1 for one directed edge."""
    epsilon, delta = claim.epsilon or 0.0, shell_script.ask_delta(document, claim.delta, "edges")
    sigma = calibrate.gaussian_multiplier(hops, epsilon, delta) * document.louder
    rows = []
    for relation, move in (("edge-undirected", math.sqrt(2)), ("edge-directed", 1.0)):
        why = f"{hops} hops with noise {sigma:.4g} times 1; such an edge moves the sums by Δ = {move:.4g}"
        rows.append(Row("edge", relation, RECIPIENT, costs.events(Gaussian(sigma / move)), hops, delta, why))
    more = (PUBLIC, "the best epoch, chosen on private validation data")
    order = "Rows are normalised, summed over neighbours, noised, hop by hop; hops compose; training is post-processing."
    # what GAP's own formula gives for this noise
    return Reading(
        tuple(rows), (claim,), more, order=(order,), settings={"epsilon": gaussian.epsilon(math.sqrt(hops) / sigma, delta)}
    )


def node_level(document: Document, claim: Published, hops: int, degree: int, stages: tuple[int, ...]) -> Reading:
    """DP-SGD stages and noised hops of sensitivity √D, one noise scale for all."""
    question = "Which share of the training nodes is a batch (batch_size / training nodes)?"
    rate = document.answers.ask("batch share", question, RATES)
    delta = shell_script.ask_delta(document, claim.delta, "training nodes")

    def event(sigma: float, hop: float, replaced: bool) -> Event:
        trained = tuple(Repeated(PoissonGaussian(sigma, rate, 1, replaced), math.ceil(epochs / rate)) for epochs in stages)
        return Composed((*trained, Repeated(Gaussian(sigma * math.sqrt(degree) / hop), hops)))

    root = math.sqrt(degree)
    sigma = document.louder * calibrate.noise_multiplier(lambda s: event(s, root, False), claim.epsilon or 0.0, delta)
    promised = f"Δ = √{degree} per hop, if no node has more than {degree}"
    cases = [
        ("zero-out, promised degree", root, False, promised),
        ("zero-out, rows released", math.sqrt(degree + degree**2), False, "a node's aggregated row is shown to others"),
        ("replace, promised degree", 2 * root, True, "2·Δ per hop, 2·clip per step"),
    ]
    rows = []
    for relation, hop, replaced, why in cases if hops else [cases[0], cases[2]]:
        said = f"noise scale {sigma:.4g}; {why if hops else 'DP-SGD'}"
        cost = costs.events(event(sigma, hop, replaced))
        rows.append(Row("node", relation if hops else relation.split(",")[0], RECIPIENT, cost, 1, delta, said))
    if hops:
        reason = "above the degree bound, free slots are filled again: no bound on the rows that change is proven here"
        rows.append(Row("node", "zero-out, any degree", RECIPIENT, costs.unprotected(reason), 1, delta, reason))
    more = "edges and degrees above the promise" if hops else "edges, which are not used"
    order = (
        "Poisson-sampled DP-SGD and noised hops compose; noise as calibrated here, which is at most that of their accountant."
    )
    no_fix = f"lower {claim.words.replace(f' {claim.epsilon:g}', '')} by hand: its price follows it"
    return Reading(tuple(rows), (claim,), (more,), order=(order,), no_fix=no_fix)


def without_noise(method: str) -> Reading:
    return costs.in_clear("node", RECIPIENT, f"{method} without a finite ε adds no noise", "use gap-edp or gap-ndp")
