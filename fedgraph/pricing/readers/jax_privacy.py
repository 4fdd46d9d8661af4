"""JAX Privacy: a Python file that builds an execution plan, ``BandMFConfig`` (num_bands = 1 is DP-SGD), with its own numbers.

noise std = noise_multiplier · query sensitivity · the strategy's column norm; Poisson sampling at rate
expected_participations·num_bands/iterations over 1/num_bands of the data at a time. For b bands the run is, per unit,
iterations/b Poisson-sampled Gaussians of it (Choquette-Choo et al. 2023, arXiv 2306.08153); b = 1: every step.

truncated_batch_size B: a Poisson batch with more than B records is cut to B of them at random. Given the other records that
were drawn, T, a record is in with probability q·min(1, B/(|T|+1)) ≤ q; where it is, the others are a random subset with one
record fewer. That is the coupling of a fixed-size draw (``_costs``), for every T, and its curve only falls as q does: the price
at q bounds it.
"""

from __future__ import annotations

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, training
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_source import Call

SYSTEM = "JAX Privacy"
VERSION = "jax-privacy 2.0–2.3"
SOURCE = "google-deepmind/jax_privacy at 8967688 (2026-08-20, 2.3.0.dev0): jax_privacy/execution_plan.py; read 2026-11-21"
SAID = (
    "Its authors say that a plan's dp_event precisely describes the mechanism and that plans of their configuration "
    "classes were "
    "verified by them; truncated Poisson sampling is accounted for separately."
)
KNOWN = {
    "iterations",
    "expected_participations",
    "strategy",
    "num_bands",
    "noise_multiplier",
    "l2_clip_norm",
    "rescale_to_unit_norm",
    "normalize_by",
    "truncated_batch_size",
    "num_examples",
    "column_normalize",
}


def recognises(document: Document) -> bool:
    return document.kind == "python" and any(name.split(".")[0] == "jax_privacy" for name in document.imports)


def read(document: Document) -> Reading:
    """The plan, with its noise multiplier or with ``calibrate(epsilon, delta)``."""
    plans = [c for c in document.calls if c.name == "BandMFConfig" or c.dotted.endswith("BandMFConfig.default")]
    if len(plans) != 1:
        raise PricingError(f"{document.path}: {len(plans)} BandMFConfig plans; one is priced per file")
    call = plans[0]
    for name in call.keywords:
        if name not in KNOWN:
            raise document.error(f"BandMFConfig: unknown option {name!r}; allowed: {', '.join(sorted(KNOWN))}", line=call.line)
    iterations, expected = _need(document, call, "iterations"), _need(document, call, "expected_participations")
    strategy = call.get("strategy")
    bands = float(len(strategy)) if isinstance(strategy, list) else training.number(call.get("num_bands")) or 1.0
    calibrated = training.first(document.calls, "calibrate")
    epsilon = training.number(calibrated.get("epsilon", 0)) if calibrated else None
    delta = training.number(calibrated.get("delta", 1)) if calibrated else None
    multiplier = training.number(call.get("noise_multiplier"))
    truncated = call.get("truncated_batch_size") is not None
    if truncated and (bands > 1 or multiplier is None):
        message = "not priced: truncated_batch_size with several bands, or without noise_multiplier; write the one it found"
        raise document.error(message, line=call.line)
    if multiplier is None:
        return _calibrated(document, call, epsilon, delta)
    rate = expected * bands / iterations
    if not 0 < rate <= 1 or bands < 1 or multiplier < 0:
        raise document.error(f"expected_participations·num_bands/iterations = {rate:g} is no rate in (0, 1]", line=call.line)
    note: tuple[str, ...] = (
        (f"{bands:g} bands: per unit {math.ceil(iterations / bands)} Poisson-sampled Gaussians of this multiplier.",)
        if bands > 1
        else ()
    )
    if truncated:
        note += (
            "Truncated batches: given who else was drawn, a record stays with probability at most the rate, and then takes the "
            "place of one other record: priced as a fixed-size draw at that rate (arXiv 2508.15089 may prove less).",
        )
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "fixed" if truncated else "poisson",
            rate=rate,
            steps=math.ceil(iterations / bands),
            delta=delta,
            published=(Published(None, None, "none", "a plan with its noise multiplier; ε comes from its dp_event"),),
            order=note,
        )
    )


def _need(document: Document, call: Call, name: str) -> float:
    found = training.number(call.get(name))
    if found is None or found <= 0:
        raise document.error(f"BandMFConfig needs {name} as a number > 0", line=call.line)
    return found


def _calibrated(document: Document, call: Call, epsilon: float | None, delta: float | None) -> Reading:
    if epsilon is None or delta is None or epsilon <= 0 or not 0 < delta < 1:
        raise document.error(
            "BandMFConfig needs noise_multiplier, or calibrate(epsilon=…, delta=…), as numbers", line=call.line
        )
    words = "noise found by JAX Privacy's accountant (loss distributions) for this ε, which holds for its Poisson sampling"

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("example", "zero-out", RECIPIENT, costs.approximate(epsilon / factor, delta), 1, delta, words),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"epsilon": epsilon / factor}

    published = (Published(epsilon, delta, "total", "BandMFConfig.calibrate"),)
    return Reading(rows, published, order=("Poisson-sampled steps compose adaptively.",), settings=settings)
