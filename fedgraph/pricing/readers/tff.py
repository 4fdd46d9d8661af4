"""TensorFlow Federated and dp_accounting / tensorflow_privacy queries: Python files that build a DP aggregator.

    tff.learning.dp_aggregator(noise_multiplier, clients_per_round)                     adaptive clipping
    tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(noise_multiplier, clients_per_round, clip)
    tff.aggregators.DifferentiallyPrivateFactory.gaussian_adaptive(noise_multiplier, clients_per_round, …)
    GaussianSumQuery(l2_norm_clip, stddev)

Each client weighs the same. noise std = noise_multiplier·clip on the sum of clients. With adaptive clipping the multiplier
is the *effective* one of update and clipped count together (Andrew et al. 2021): under add/remove its bits are centred, Δ = ½.
TFF samples a cohort: a fixed number of clients, by the program that drives it; the total number of clients is not in the file.
"""

import math
import re

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, training
from fedgraph.pricing.base import MODELS, Reading, no_claim
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_joins import holds, plain
from fedgraph.pricing.training import Training

AGGREGATORS = ("dp_aggregator", "gaussian_fixed", "gaussian_adaptive", "GaussianSumQuery")


def read(document: Document) -> Reading:
    """The one aggregator or query."""
    found, why = document.used(*AGGREGATORS)
    if not found:
        return costs.in_clear("client", MODELS, f"{why}: the mean of updates is in clear", "give the process a DP aggregator")
    if len(found) != 1:
        raise PricingError(f"{document.path}: {len(found)} DP aggregators or Gaussian queries; one is priced per file")
    [call] = found
    built = [c for c in document.calls if c.reached and re.search("fed_(avg|sgd|prox|recon)", c.name)]
    given = [c.get(name) for c in built for name in ("model_aggregator", "model_update_aggregation_factory")]
    if built and not any(holds(value, call) or "**" in c.keywords for value in given for c in built):
        reason = f"{call.name} (line {call.line}) is made, and no process gets it: the mean of updates is in clear"
        return costs.in_clear("client", MODELS, reason, "give it to the process as model_aggregator")
    claim = no_claim(f"{call.name}; the file states no ε")
    if call.name == "GaussianSumQuery":
        clip, std = document.need(call, "l2_norm_clip", above=0.0), document.need(call, "stddev", least=0.0)
        query = Training(std / clip, "stddev", "fixed", unit="client", viewer=MODELS, published=claim, option=std)
        return training.reading(document, query)
    multiplier = document.need(call, "noise_multiplier", least=0.0)
    cohort, ratio, order = document.need(call, "clients_per_round", least=1.0), 1.0, tuple[str, ...]()
    if call.name != "gaussian_fixed":
        # A zeroed client's bit may go from "clipped" to "not clipped": Δ = 1 where add/remove has ½ after centring.
        spread = document.number(call, "clipped_count_stddev") or 0.05 * cohort
        if multiplier >= 2 * spread:
            message = f"noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * spread:g}: TFF refuses it"
            raise document.error(message, line=call.line)
        ratio = math.sqrt(1 + 0.75 * (multiplier / spread) ** 2)
        order = ("Adaptive clipping: the count of clipped updates is released with noise too, its bit counted with Δ = 1.",)
    zeroing = call.name == "dp_aggregator" and plain(call.get("zeroing")) is not False
    told = ("zeroing (on by default) adapts a threshold to clients' norms; what that reveals is not priced",) if zeroing else ()
    return training.reading(document, Training(
        multiplier, sampling="fixed", steps=_rounds(document), unit="client", viewer=MODELS, published=claim, ratio=ratio,
        order=(f"A cohort of {cohort:g} clients per round, each of the same weight.", *order),
        unprotected=("the server, which receives updates in clear unless it aggregates securely", *told),
    ))  # fmt: skip


def _rounds(document: Document) -> int | None:
    """num_rounds or total_rounds of what is called; several different numbers are a question."""
    said = [(c, n) for c in document.calls for n in ("num_rounds", "total_rounds") if n in c.keywords]
    said = [(c, n) for c, n in said if c.reached] or said
    found = sorted({int(value) for c, n in said if (value := document.number(c, n, "steps"))}, reverse=True)
    if len(found) > 1:
        question = f"How many rounds are run? The file says {' and '.join(f'{n:,}' for n in found[::-1])}."
        return int(document.answers.ask("steps", question, tuple(map(float, found))))
    return found[0] if found else None
