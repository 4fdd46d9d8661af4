"""DPAR (Zhang et al., WWW 2024), as its paper's settings in YAML or JSON: ``{system: dpar, epsilon, delta, …}``.

    epsilon, delta            the claimed total            sampled        q', the share of nodes sampled once (0.09)
    sources, top              M vectors, top K (70, 2)     steps, batch, rows     T, B, N' of its DP-SGD (800, 60, 210)

Published: q'·(ε_pr + ε_sgd), each half. Noise is found as the authors do (``privacy.claims.dpar``). Proven: the same noise with
amplification ln(1 + q'(e^ε − 1)), vectors that differ by √2·C1, batches that are fixed (cached) as in the code, and a node that
enters B' rows, which the file does not say. The lower bound: own row alone, fixed batches, a viewer of every step.
"""

from __future__ import annotations

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.claims import dpar
from fedgraph.privacy.events import Composed, Event, Gaussian, Repeated, SampledOnce

SYSTEM = "DPAR"
VERSION = "the WWW 2024 paper and its settings for Cora-ML"
SOURCE = (
    "Zhang et al., WWW 2024 (arXiv 2210.04442), Theorems 1-3 and its Cora-ML settings; derivation in "
    "fedgraph/privacy/claims/dpar.py"
)
SAID = (
    "The authors prove node level for gradients linear in the propagation matrix and Poisson-sampled batches, amplified by q'."
)
KEYS = ("system", "epsilon", "delta", "sampled", "sources", "top", "steps", "batch", "rows", "mechanism")


def recognises(document: Document) -> bool:
    return document.kind in ("yaml", "json", "namespace") and document.data.get("system") == "dpar"


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    options.without_price(["system", "top"])
    options.choice("mechanism", ("gm",), "gm")
    epsilon, delta = options.need("epsilon", above=True), options.delta("delta", dpar.DELTA) or dpar.DELTA
    sampled, sources = (
        options.number("sampled", dpar.SAMPLED, above=True) or dpar.SAMPLED,
        options.whole("sources", dpar.SOURCES, 1) or 1,
    )
    steps, batch, rows_ = (
        options.whole(n, v, 1) or 1 for n, v in (("steps", dpar.STEPS), ("batch", dpar.BATCH), ("rows", dpar.ROWS))
    )
    options.finish(KEYS)
    if sampled > 1 or batch > rows_:
        raise options.error("sampled", f"sampled = {sampled:g} and batch / rows = {batch}/{rows_}: both are shares ≤ 1")
    half, half_delta = epsilon / sampled / 2, delta / sampled / 2
    sigma = dpar.sgd_multiplier(half, batch / rows_, steps, half_delta)
    vectors = dpar.gm_multiplier(half, half_delta, sources)
    visits = math.ceil(steps / math.ceil(rows_ / batch))

    def made(factor: float, entered: float, whole: bool) -> Event:
        trained = Repeated(Gaussian(sigma * factor / (2 * entered if whole else 1)), visits)
        shown = (Repeated(Gaussian(vectors * factor / math.sqrt(2)), sources),) if whole else ()
        return SampledOnce(Composed((trained, *shown)), sampled)

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        entered = facts["rows that a node enters"]
        why = (
            f"as coded: {visits} visits of a fixed batch, B' = {entered:g}, Δ = 2·B'·clip; {sources} vectors with √2·C1; "
            "sampled once"
        )
        lower = f"own row alone over {visits} visits of a fixed batch, worst data, every step seen: no proof can show less"
        return (
            Row("node", "replace", RECIPIENT, costs.events(made(factor, entered, True)), 1, delta, why),
            Row("node", "zero-out", RECIPIENT, costs.events(made(factor, 1, False)), 1, delta, lower, "lower bound"),
        )

    asked = (
        Unknown("rows that a node enters", "In how many rows of the cut matrix does a node stand (B')?", (8.0, 4.0, 2.0, 1.0)),
    )
    order = ("One secret sample of the nodes, then noised vectors, then DP-SGD; amplification once, on all of it.",)
    claim = (Published(epsilon, delta, "total", f"q'·(ε_pr + ε_sgd) with q' = {sampled:g}"),)
    return Reading(
        rows,
        claim,
        asked,
        ("the sample, against anyone who knows who was sampled",),
        order=order,
        no_fix="DPAR has no option for its noise, which follows from epsilon: lower epsilon and price again",
    )
