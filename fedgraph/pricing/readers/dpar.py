"""DPAR (Zhang et al., WWW 2024), as its paper's settings in YAML or JSON: ``{system: dpar, epsilon, delta, …}``.

    epsilon, delta            the claimed total            sampled        q', the share of nodes sampled once (0.09)
    sources, top              M vectors, top K (70, 2)     steps, batch, rows     T, B, N' of its DP-SGD (800, 60, 210)

Published: q'·(ε_pr + ε_sgd), each half. Noise is found as the authors do (``privacy.claims.dpar``). Proven: the same noise with
amplification ln(1 + q'(e^ε − 1)), vectors that differ by √2·C1, batches that are fixed (cached) as in the code, and a node that
enters B' rows, which the file does not say. The lower bound: own row alone, fixed batches, a viewer of every step.
"""

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.claims import dpar
from fedgraph.privacy.events import Composed, Gaussian, Repeated, SampledOnce


def read(document: Document) -> Reading:
    options, louder = Options(document), document.louder
    options.without_price(["system", "top"])
    options.choice("mechanism", ("gm",), "gm")
    epsilon, delta = options.need("epsilon", above=True), options.delta("delta", dpar.DELTA) or dpar.DELTA
    sampled = options.number("sampled", dpar.SAMPLED, above=True) or dpar.SAMPLED
    defaults = (("sources", dpar.SOURCES), ("steps", dpar.STEPS), ("batch", dpar.BATCH), ("rows", dpar.ROWS))
    sources, steps, batch, length = (options.whole(name, default, 1) or 1 for name, default in defaults)
    options.finish()
    if sampled > 1 or batch > length:
        raise options.error("sampled", f"sampled = {sampled:g} and batch / rows = {batch}/{length}: both are shares ≤ 1")
    half, half_delta = epsilon / sampled / 2, delta / sampled / 2
    sigma = dpar.sgd_multiplier(half, batch / length, steps, half_delta) * louder
    vectors = dpar.gm_multiplier(half, half_delta, sources) * louder
    visits = math.ceil(steps / math.ceil(length / batch))
    question = "In how many rows of the cut matrix does a node stand (B')?"
    entered = document.answers.ask("rows that a node enters", question, (8.0, 4.0, 2.0, 1.0))
    shown = Repeated(Gaussian(vectors / math.sqrt(2)), sources)
    everything = SampledOnce(Composed((Repeated(Gaussian(sigma / (2 * entered)), visits), shown)), sampled)
    own = SampledOnce(Composed((Repeated(Gaussian(sigma), visits),)), sampled)
    why = f"as coded: {visits} visits of a fixed batch, B' = {entered:g}, Δ = 2·B'·clip; {sources} vectors with √2·C1; sampled "
    why += "once"
    lower = f"own row alone over {visits} visits of a fixed batch, worst data, every step seen: no proof can show less"
    rows = (
        Row("node", "replace", RECIPIENT, costs.events(everything), 1, delta, why),
        Row("node", "zero-out", RECIPIENT, costs.events(own), 1, delta, lower, "lower bound"),
    )
    order = "One secret sample of the nodes, then noised vectors, then DP-SGD; amplification once, on all of it."
    claim = Published(epsilon, delta, "total", f"q'·(ε_pr + ε_sgd) with q' = {sampled:g}")
    more = ("the sample, against anyone who knows who was sampled",)
    none = "DPAR has no option for its noise, which follows from epsilon: lower epsilon and price again"
    return Reading(rows, (claim,), more, order=(order,), no_fix=none)
