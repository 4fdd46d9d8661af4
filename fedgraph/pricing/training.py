"""DP-SGD and DP-FedAvg as several libraries write them: one noised, clipped sum per step.

    poisson     every record (or client) by its own fresh secret coin of rate q; steps = epochs / q
    fixed       a batch of a fixed size, drawn afresh without replacement
    shuffled    the data are cut into batches once per epoch: a record is in one batch of each epoch, so that an epoch costs one
                unsampled Gaussian: μ = √epochs · Δ/std (no amplification; the cut may be known)

Zero-out Δ = clip, replace Δ = 2·clip; noise std = multiplier·clip on the sum. A person with k records: all k may vanish.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Cost, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.python_source import Call, Value

RATES, EPOCHS, STEPS, DELTAS = (
    (1.0, 0.1, 0.01, 0.001),
    (100.0, 30.0, 10.0, 1.0),
    (100000.0, 10000.0, 1000.0, 100.0),
    (1e-7, 1e-6, 1e-5, 1e-4),
)
SEVERAL = (2, 10)


@dataclass(frozen=True)
class Training:
    """What a configuration says; None where it does not. noise: the option that holds ``multiplier``. epochs or steps:
    either."""

    multiplier: float
    noise: str
    sampling: Literal["poisson", "fixed", "shuffled"] = "poisson"
    rate: float | None = None
    epochs: float | None = None
    steps: int | None = None
    delta: float | None = None
    unit: str = "example"
    viewer: str = RECIPIENT
    published: tuple[Published, ...] = ()
    unprotected: tuple[str, ...] = ()
    not_priced: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    settings_scale: dict[str, float] = field(default_factory=dict)
    microbatched: bool = False  # one clip bounds a mean over several records: what vanishes may turn it round, 2·clip
    ratio: float = 1.0  # how many clips one unit moves the sum by (under zero-out), more than one where a mean is weighted


def reading(t: Training) -> Reading:
    """Rows for zero-out and replace, and for a person with several records."""

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate = t.rate if t.rate is not None else facts.get("sampling rate", 1.0)
        delta, steps = t.delta if t.delta is not None else facts["delta"], _steps(t, facts, rate)
        multiplier = t.multiplier * factor / t.ratio
        how = {"poisson": f"Poisson-sampled at rate {rate:g}", "fixed": f"fixed-size batches of a share {rate:g}"}.get(
            t.sampling, "batches cut once per epoch, so that a step is an epoch: no amplification"
        )
        out = []
        for relation, replaced in (("zero-out", t.microbatched), ("replace", True)):
            why = f"noise std = {multiplier:g} times the clip, sensitivity {'2·' if replaced else ''}clip, {how}"
            out.append(Row(t.unit, relation, t.viewer, _cost(t, multiplier, rate, replaced), steps, delta, why))
        if t.unit == "example":
            for k in SEVERAL:
                why = f"a person with {k} records, which may all vanish"
                cost = _cost(t, multiplier, rate, t.microbatched, k)
                out.append(Row("user", "zero-out", t.viewer, cost, steps, delta, why))
        return tuple(out)

    def settings(factor: float) -> dict[str, Setting]:
        return {t.noise: t.multiplier * factor, **{name: value * factor for name, value in t.settings_scale.items()}}

    amplified = "Amplification holds for viewers who do not learn who was sampled." if t.sampling != "shuffled" else ""
    order = ("Clip, sum, noise; steps compose adaptively; everything after a noised sum is post-processing.", *t.order)
    unknowns = _unknowns(t)
    shown = (*order, amplified) if amplified else order
    settings_or_none = settings if t.multiplier > 0 else None
    none = "the noise is zero: set it first"
    more = ("early stopping, tuning and metrics on private data are not counted",)
    return Reading(rows, t.published, unknowns, (*t.unprotected, *more), t.not_priced, shown, settings_or_none, none)


def _steps(t: Training, facts: Facts, rate: float) -> int:
    epochs = t.epochs if t.epochs is not None else facts.get("epochs")
    if t.sampling == "shuffled":
        if epochs is None:
            epochs = (t.steps or 0) * rate
        return math.ceil(epochs * (1 - 1e-12))
    if t.steps is not None:
        return t.steps
    if epochs is not None:
        return math.ceil(epochs / rate * (1 - 1e-12)) if rate > 0 else 0
    return int(facts["steps"])


def _cost(t: Training, multiplier: float, rate: float, replaced: bool, records: int = 1) -> Cost:
    if t.sampling == "shuffled":
        return costs.gaussian(multiplier, replaced, records)
    if t.sampling == "fixed":
        return costs.gaussian(multiplier, replaced, records) if records > 1 else costs.fixed_size(multiplier, rate, replaced)
    return costs.poisson(multiplier, rate, replaced, records)


def _unknowns(t: Training) -> tuple[Unknown, ...]:
    out = []
    if t.delta is None:
        out.append(
            Unknown(
                "delta", "At which δ? The file does not say; take one well below one over the number of records.", DELTAS, 1e-7
            )
        )
    by_epochs = t.epochs is not None
    needs_rate = t.rate is None and not (t.sampling == "shuffled" and by_epochs)
    if needs_rate:
        # With epochs given, fewer steps at a higher rate: rate 1 is not the worst, so it stays open there.
        worst = None if by_epochs or t.steps is None else 1.0
        values = RATES[1:] if by_epochs else RATES
        out.append(
            Unknown(
                "sampling rate", "Which share of the records is in a batch (batch size / number of records)?", values, worst
            )
        )
    if t.epochs is None and t.steps is None:
        name, values = ("epochs", EPOCHS) if t.sampling == "shuffled" else ("steps", STEPS)
        out.append(Unknown(name, f"How many {name} does the training run?", values))
    return tuple(out)


def number(value: Value) -> float | None:
    """A finite number, or None for anything that syntax alone does not give."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) else None


def first(calls: tuple[Call, ...], *names: str) -> Call | None:
    """The first call of one of these names."""
    return next((call for call in calls if call.name in names), None)
