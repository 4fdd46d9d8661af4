"""DP-SGD and DP-FedAvg as several libraries write them: one noised, clipped sum per step.

    poisson     every record (or client) by its own fresh secret coin of rate q; steps = epochs / q
    fixed       a batch of a fixed size, drawn afresh without replacement
    shuffled    the data are cut into batches once per epoch: a record is in one batch of each epoch, so that an epoch costs one
                unsampled Gaussian: μ = √epochs · Δ/std (no amplification; the cut may be known)

Zero-out Δ = clip, replace Δ = 2·clip; noise std = multiplier·clip on the sum. A person with k records: all k may vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Cost, Facts, Published, Reading, Row, Setting, Unknown, delta_said
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_values import Call
from fedgraph.privacy.accounting.accountant import Price

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
    option: float | None = None  # what the option ``noise`` holds, where it is not ``multiplier``
    people: float | None = None  # how many units there are in all
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
        return {
            t.noise: (t.multiplier if t.option is None else t.option) * factor,
            **{name: value * factor for name, value in t.settings_scale.items()},
        }

    amplified = "Amplification holds for viewers who do not learn who was sampled." if t.sampling != "shuffled" else ""
    order = (
        "Clip, sum, noise; steps compose adaptively; everything after a noised sum is post-processing.",
        *t.order,
        *delta_said(t.delta, t.people),
    )
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


def protections(document: Document, *names: str) -> tuple[list[Call], str]:
    """The calls of these names that are reached and taken, and, where there are none, why not."""
    found = document.made(*names)
    taken = [call for call in found if document.answers.taken(call)]
    if taken:
        return taken, ""
    if found:
        return [], f"{found[0].name} (line {found[0].line}) is only made where {' and '.join(found[0].conditions)} holds"
    if dead := document.dead(*names):
        return [], f"{dead.name} stands in {dead.function or 'a function'}() (line {dead.line}), which nothing calls"
    return [], f"nothing calls {names[0]}"


def times(document: Document, calls: Sequence[Call], what: str) -> int:
    """How often calls in a loop of unknown length are made; 1 outside of loops."""
    loops = {call.repeated: call for call in calls if call.repeated}
    out = 1
    for words, call in loops.items():
        question = f"How often is {call.name} made by {words}? Each one is {what} of its own."
        out *= max(1, int(document.answers.pick(Unknown(f"{what}s made at line {call.line}", question, (100.0, 10.0, 1.0)))))
    return out


def epochs(document: Document, stated: float | None = None) -> float | None:
    """Epochs that the program runs: what its option says, where a loop has that length or the file shows no loop."""
    options = document.program.options
    value = next((options[n] for n in ("epochs", "num_epochs", "n_epochs", "nb_epochs") if n in options), None)
    said = stated if stated is not None else document.answers.number(value, "epochs")
    lengths = {n for n in document.program.loops if n > 1}
    return said if said is None or not lengths or said in lengths else None


def several(made: Sequence[Reading], what: str) -> Reading:
    """Several trainings on the same data, whose models are all released: their ε at δ/n each add up."""
    if len(made) == 1:
        return made[0]
    parts = len(made)

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        all_rows = [reading.rows(facts, factor) for reading in made]
        out = []
        for group in zip(*all_rows, strict=False):
            why = f"{parts} {what}s on the same data, each at δ/{parts}, added; the first: {group[0].why}"
            out.append(replace(group[0], cost=_added([(r.cost, r.rounds) for r in group]), rounds=1, why=why))
        return tuple(out)

    unknowns = {u.name: u for reading in made for u in reading.unknowns}
    return replace(made[0], rows=rows, unknowns=tuple(unknowns.values()), settings=None,
                   no_fix=f"there are {parts} {what}s; give each its own noise", published=made[0].published)  # fmt: skip


def _added(group: Sequence[tuple[Cost, int]]) -> Cost:
    def cost(rounds: int, delta: float) -> Price:
        found = [each(times, delta / len(group)) for each, times in group]
        return replace(
            found[0],
            epsilon=sum(p.epsilon for p in found),
            delta=delta,
            theorem=f"basic composition of {len(group)} parts: {found[0].theorem}",
        )

    return cost
