"""TensorFlow Federated and dp_accounting / tensorflow_privacy queries: Python files that build a DP aggregator.

    tff.learning.dp_aggregator(noise_multiplier, clients_per_round)                     adaptive clipping
    tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(noise_multiplier, clients_per_round, clip)
    tff.aggregators.DifferentiallyPrivateFactory.gaussian_adaptive(noise_multiplier, clients_per_round, …)
    GaussianSumQuery(l2_norm_clip, stddev)

Each client weighs the same. noise std = noise_multiplier·clip on the sum of clients. With adaptive clipping the multiplier
is the
*effective* one of update and clipped count together (Andrew et al. 2021): under add/remove its bits are centred, Δ = ½.
TFF samples a cohort: a fixed number of clients, by the program that drives it; the total number of clients is not in the file.
"""

from __future__ import annotations

from fedgraph.errors import PricingError
from fedgraph.pricing import training
from fedgraph.pricing.base import MODELS, Published, Reading, Unknown
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_values import Call, plain

SYSTEM = "TensorFlow Federated / DP queries"
VERSION = "tff 0.60–0.87, dp_accounting 0.4–0.6"
SOURCE = (
    "google-parfait/tensorflow-federated aggregators/differential_privacy.py (0.87.0, and its reference) "
    "and tensorflow/privacy at 03035d5 "
    "(2026-04-06) privacy/dp_query/gaussian_query.py, as documented; read 2026-11-21"
)
SAID = "TFF's reference says that a multiplier of 1.0 or higher may be needed, and to compute (ε, δ) by the papers it names."
AGGREGATORS = ("dp_aggregator", "gaussian_fixed", "gaussian_adaptive", "model_update_aggregator")


def recognises(document: Document) -> bool:
    if document.kind != "python":
        return False
    from_tff = any("tensorflow_federated" in name for name in document.imports)
    return from_tff or any(call.name in ("GaussianSumQuery", "gaussian_fixed", "gaussian_adaptive") for call in document.calls)


def read(document: Document) -> Reading:
    """The one aggregator or query."""
    found, why = training.protections(document, *AGGREGATORS[:3], "GaussianSumQuery")
    if not found:
        return in_clear("client", MODELS, f"{why}: the mean of updates is in clear", "give the process a DP aggregator")
    if len(found) != 1:
        raise PricingError(f"{document.path}: {len(found)} DP aggregators or Gaussian queries; one is priced per file")
    call = found[0]
    if call.name == "GaussianSumQuery":
        clip, std = document.number(call, "l2_norm_clip", 0), document.number(call, "stddev", 1)
        if clip is None or std is None or clip <= 0 or std < 0:
            raise document.error("GaussianSumQuery needs l2_norm_clip > 0 and stddev ≥ 0 as numbers", line=call.line)
        return training.reading(
            training.Training(
                std / clip, "stddev", "fixed", unit="client", viewer=MODELS, published=_none(call.name), option=std
            )
        )
    multiplier = document.number(call, "noise_multiplier", 0)
    cohort = document.number(call, "clients_per_round", 1)
    if multiplier is None or multiplier < 0 or cohort is None or cohort < 1:
        raise document.error(f"{call.name} needs noise_multiplier ≥ 0 and clients_per_round ≥ 1 as numbers", line=call.line)
    steps = _rounds(document)
    ratio, order = 1.0, [f"A cohort of {cohort:g} clients per round, each of the same weight."]
    if call.name != "gaussian_fixed":
        # A zeroed client's bit may go from "clipped" to "not clipped": Δ = 1 where add/remove has ½ after centring.
        spread = document.number(call, "clipped_count_stddev") or 0.05 * cohort
        if multiplier >= 2 * spread:
            raise document.error(
                f"noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * spread:g}: TFF refuses it", line=call.line
            )
        ratio = (1 + 0.75 * (multiplier / spread) ** 2) ** 0.5
        order.append("Adaptive clipping: the count of clipped updates is released with noise too, its bit counted with Δ = 1.")
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "fixed",
            steps=steps,
            unit="client",
            viewer=MODELS,
            published=_none(call.name),
            order=tuple(order),
            ratio=ratio,
            unprotected=("the server, which receives updates in clear unless it aggregates securely", *_zeroing(call)),
        )
    )


def _rounds(document: Document) -> int | None:
    """num_rounds or total_rounds of what is called; several different numbers are a question."""
    said = [(c, n) for c in document.calls for n in ("num_rounds", "total_rounds") if n in c.keywords and c.reached]
    said = said or [(c, n) for c in document.calls for n in ("num_rounds", "total_rounds") if n in c.keywords]
    found = {int(value) for c, n in said if (value := document.number(c, n, asked="steps"))}
    if len(found) > 1:
        question = f"How many rounds are run? The file says {' and '.join(f'{n:,}' for n in sorted(found))}."
        return int(document.answers.pick(Unknown("steps", question, tuple(float(n) for n in sorted(found, reverse=True)))))
    return found.pop() if found else None


def _zeroing(call: Call) -> tuple[str, ...]:
    if call.name != "dp_aggregator" or plain(call.get("zeroing", 2)) is False:
        return ()
    return ("zeroing (on by default) adapts a threshold to clients' norms; what that reveals is not priced",)


def _none(name: str) -> tuple[Published, ...]:
    return (Published(None, None, "none", f"{name}; the file states no ε"),)
