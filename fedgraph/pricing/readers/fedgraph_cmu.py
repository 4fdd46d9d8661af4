"""FedGraph (CMU): its configuration dictionary as YAML or JSON, with ``use_dp``.

Before training, clients' sums of neighbours' features are clipped to dp_clip_norm, added, and noised **by the server**:
Gaussian std = √(2 ln(1.25/δ))·dp_sensitivity/ε, Laplace scale dp_sensitivity/ε, or "local", which flips signs. Model updates of
every round are sent as they are. Its accountant adds up ε and δ of the one noisy sum.
"""

from fedgraph.pricing import costs
from fedgraph.pricing.base import SERVER, WORLD, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options

OPEN = {  # mechanism → why nothing is proven of it, and how the sum is sent
    "off": ("use_dp is off", "use_dp is off: features' sums are in clear"),
    "local": ("signs flip, sizes stay in clear", "signs are flipped; the sizes of the values stay in clear"),
    "laplace": ("clipped in L2, noised for L1", "clipped in L2, but Laplace noise needs a bound in L1"),
}


def read(document: Document) -> Reading:
    options = Options(document)
    used, mechanism = options.flag("use_dp"), options.choice("dp_mechanism", ("gaussian", "laplace", "local"), "gaussian")
    epsilon, delta = options.number("dp_epsilon", 1.0, above=True) or 1.0, options.delta("dp_delta", 1e-5) or 0.0
    sensitivity, clip = options.number("dp_sensitivity", 1.0) or 0.0, options.number("dp_clip_norm", 1.0, above=True) or 1.0
    rounds, clear = options.whole("global_rounds", 100, 0) or 0, "model updates of every round are sent in clear"
    if mechanism == "gaussian" and not 0 < delta < 1:
        raise options.error("dp_delta", f"dp_delta: found {delta}; allowed: in (0, 1)")
    if (reason := OPEN.get(mechanism if used else "off")) is not None:
        cost, why = costs.unprotected(reason[0]), reason[1]
    else:
        std = costs.classic_std(sensitivity, epsilon, delta) * document.louder
        cost, why = costs.gaussian(std / clip), f"one noised sum: std {std:.4g}, a client moves it by dp_clip_norm = {clip:g}"
    rows = (
        Row("client", "zero-out", SERVER, costs.unprotected(clear), max(rounds, 1), 0.0, clear),
        Row("client", "zero-out", f"{WORLD}, of the feature sum alone", cost, 1, delta, why),
    )
    words = f"dp_epsilon with dp_sensitivity {sensitivity:g}, by {mechanism}"
    unprotected = (
        "the model path: gradients or weights of all rounds",
        "client sums, which the server receives before it adds noise",
    )
    order = "A client's whole sum is clipped, added, noised once; training follows without noise."
    none = "noise on the feature sum does not protect the model updates; no option of this system does"
    claim = Published(epsilon if used else None, delta, "total", words)
    return Reading(rows, (claim,), unprotected, tuple(options.rest), (order,), no_fix=none)
