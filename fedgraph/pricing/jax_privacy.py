"""JAX Privacy: a Python file that builds an execution plan, ``BandMFConfig`` (num_bands = 1 is DP-SGD), with its own numbers.

noise std = noise_multiplier · query sensitivity · the strategy's column norm; Poisson sampling at rate
expected_participations·num_bands/iterations over 1/num_bands of the data at a time. For b bands the run is, per unit,
iterations/b
Poisson-sampled Gaussians of that multiplier (Choquette-Choo et al. 2023, arXiv 2306.08153, Theorem 4); b = 1: every step.
"""

from __future__ import annotations

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import _costs, _training
from fedgraph.pricing._files import Document
from fedgraph.pricing._python import Call
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting

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
    if call.get("truncated_batch_size") is not None:
        raise document.error("not priced: truncated_batch_size (truncated Poisson sampling)", line=call.line)
    iterations, expected = _need(document, call, "iterations"), _need(document, call, "expected_participations")
    strategy = call.get("strategy")
    bands = float(len(strategy)) if isinstance(strategy, list) else _training.number(call.get("num_bands")) or 1.0
    calibrated = _training.first(document.calls, "calibrate")
    epsilon = _training.number(calibrated.get("epsilon", 0)) if calibrated else None
    delta = _training.number(calibrated.get("delta", 1)) if calibrated else None
    multiplier = _training.number(call.get("noise_multiplier"))
    if multiplier is None:
        return _calibrated(document, call, epsilon, delta)
    rate = expected * bands / iterations
    if not 0 < rate <= 1 or bands < 1 or multiplier < 0:
        raise document.error(f"expected_participations·num_bands/iterations = {rate:g} is no rate in (0, 1]", line=call.line)
    note = (
        (f"{bands:g} bands: per unit {math.ceil(iterations / bands)} Poisson-sampled Gaussians of this multiplier.",)
        if bands > 1
        else ()
    )
    return _training.reading(
        _training.Training(
            multiplier,
            "noise_multiplier",
            "poisson",
            rate=rate,
            steps=math.ceil(iterations / bands),
            delta=delta,
            published=(Published(None, None, "none", "a plan with its noise multiplier; ε comes from its dp_event"),),
            order=note,
        )
    )


def _need(document: Document, call: Call, name: str) -> float:
    found = _training.number(call.get(name))
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
        return (Row("example", "zero-out", RECIPIENT, _costs.approximate(epsilon / factor, delta), 1, delta, words),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"epsilon": epsilon / factor}

    published = (Published(epsilon, delta, "total", "BandMFConfig.calibrate"),)
    return Reading(rows, published, order=("Poisson-sampled steps compose adaptively.",), settings=settings)
