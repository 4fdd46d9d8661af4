"""FedGraph (CMU): its configuration dictionary as YAML or JSON, with ``use_dp``.

Before training, clients' sums of neighbours' features are clipped to dp_clip_norm, added, and noised **by the server**:
Gaussian std
= √(2 ln(1.25/δ))·dp_sensitivity/ε, Laplace scale dp_sensitivity/ε, or "local", which flips signs. Model updates of every
round are
sent as they are. Its accountant adds up ε and δ of the one noisy sum.
"""

from __future__ import annotations

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import SERVER, WORLD, Cost, Facts, Published, Reading, Row, Setting
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options

SYSTEM = "FedGraph (CMU)"
VERSION = "fedgraph 0.2.x, July 2026"
SOURCE = (
    "FedGraph/fedgraph at b7b073e (2026-07-16): fedgraph/differential_privacy/{dp_mechanisms,server_dp}.py; read 2026-11-21"
)
SAID = "Its comments call the sign flip a simple demonstration; ε, δ and sensitivity are options that the user sets."
KEYS = ("use_dp", "dp_epsilon", "dp_delta", "dp_mechanism", "dp_sensitivity", "dp_clip_norm")


def recognises(document: Document) -> bool:
    return document.kind in ("yaml", "json", "namespace") and ("use_dp" in document.data or "fedgraph_task" in document.data)


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    used, mechanism = options.flag("use_dp"), options.choice("dp_mechanism", ("gaussian", "laplace", "local"), "gaussian")
    epsilon, delta = options.number("dp_epsilon", 1.0, above=True) or 1.0, options.delta("dp_delta", 1e-5) or 0.0
    sensitivity, clip = options.number("dp_sensitivity", 1.0) or 0.0, options.number("dp_clip_norm", 1.0, above=True) or 1.0
    rounds = options.whole("global_rounds", 100, 0) or 0
    rest = tuple(options.rest)
    clear = "model updates of every round are sent in clear"
    if mechanism == "gaussian" and not 0 < delta < 1:
        raise options.error("dp_delta", f"dp_delta: found {delta}; allowed: in (0, 1)")

    def first(factor: float) -> tuple[Cost, str]:
        if not used:
            return costs.unprotected("use_dp is off"), "use_dp is off: features' sums are in clear"
        if mechanism == "local":
            return costs.unprotected(
                "signs flip, sizes stay in clear"
            ), "signs are flipped; the sizes of the values stay in clear"
        if mechanism == "laplace":
            return costs.unprotected("clipped in L2, noised for L1"), "clipped in L2, but Laplace noise needs a bound in L1"
        std = costs.classic_std(sensitivity, epsilon, delta) * factor
        return costs.gaussian(std / clip), f"one noised sum: std {std:.4g}, a client moves it by dp_clip_norm = {clip:g}"

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        cost, why = first(factor)
        return (
            Row("client", "zero-out", SERVER, costs.unprotected(clear), max(rounds, 1), 0.0, clear),
            Row("client", "zero-out", f"{WORLD}, of the feature sum alone", cost, 1, delta, why),
        )

    def settings(factor: float) -> dict[str, Setting]:
        return {"dp_epsilon": epsilon / factor}

    claim = (
        Published(epsilon if used else None, delta, "total", f"dp_epsilon with dp_sensitivity {sensitivity:g}, by {mechanism}"),
    )
    unprotected = (
        "the model path: gradients or weights of all rounds",
        "client sums, which the server receives before it adds noise",
    )
    order = ("A client's whole sum is clipped, added, noised once; training follows without noise.",)
    none = "noise on the feature sum does not protect the model updates; no option of this system does"
    return Reading(rows, claim, (), unprotected, rest, order, None if math.isfinite(epsilon) else settings, none)
