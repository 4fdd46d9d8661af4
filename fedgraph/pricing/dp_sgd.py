"""DP-SGD and DP-FedAvg as several libraries write them: one noised, clipped sum per step.

    poisson     every record (or client) by its own fresh secret coin of rate q; steps = epochs / q
    fixed       a batch of a fixed size, drawn afresh without replacement
    shuffled    the data are cut into batches once per epoch: a record is in one batch of each epoch, so that an epoch costs one
                unsampled Gaussian: μ = √epochs · Δ/std (no amplification; the cut may be known)

Zero-out Δ = clip, replace Δ = 2·clip; noise std = multiplier·clip on the sum. A person with k records: all k may vanish.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fedgraph.pricing import costs
from fedgraph.pricing import python_values as py
from fedgraph.pricing.costs import CostOfRounds
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.open_facts import OPEN_FACT_QUESTIONS, OPEN_FACT_RATES
from fedgraph.pricing.python_state import LoopPass
from fedgraph.pricing.python_values import CallValue, Value, python_plain, value_candidates, value_holds
from fedgraph.pricing.readings import PRICE_TO_RECIPIENT, PublishedReading, Reading, ReadingRow, reading_in_clear
from fedgraph.privacy.accounting.accountant import AccountantEpsilon

_AGAIN = py.UnresolvedValue("as often as what is looped over holds the data")
SEVERAL = (2, 10)
HOW = {"poisson": "Poisson-sampled at rate {:g}", "fixed": "fixed-size batches of a share {:g}"}
CUT = "batches cut once per epoch, so that a step is an epoch: no amplification"


@dataclass(frozen=True)
class DpSgdTraining:
    """What a configuration says of DP-SGD or DP-FedAvg. None stands for what it does not say."""

    multiplier: float  # noise standard deviation over clip, on the sum; 0 or more
    noise: str = "noise_multiplier"  # the option that holds the noise
    sampling: Literal["poisson", "fixed", "shuffled"] = "poisson"  # how batches are drawn, as the module says
    rate: float | None = None  # the share of the records in a batch, in (0, 1]
    epochs: float | None = None  # passes over the data
    steps: int | None = None  # noised sums in all
    delta: float | None = None  # the δ of the total, in (0, 1)
    unit: str = "example"  # whose data a row is: ``example`` or ``client``
    viewer: str = PRICE_TO_RECIPIENT  # from whom it is hidden
    published: tuple[PublishedReading, ...] = ()  # what the file claims
    unprotected: tuple[str, ...] = ()  # what is not covered, beside what every training leaves open
    order: tuple[str, ...] = ()  # sentences of the quote
    microbatched: bool = False  # one clip bounds a mean over several records: what vanishes may turn it round, 2·clip
    option: float | None = None  # the value of the option ``noise``, where it is not ``multiplier``
    people: float | None = None  # how many units there are in all
    ratio: float = 1.0  # how many clips one unit moves the sum by under zero-out; above 1 where a mean is weighted


def read_dp_sgd(document: PricedDocument, t: DpSgdTraining) -> Reading:
    """Rows for zero-out and replace, and for a person with several records."""
    delta = document.ask("delta", t.delta)
    rate, steps = _passes(document, t)
    multiplier = t.multiplier * document.louder / t.ratio
    how, rows = HOW.get(t.sampling, CUT).format(rate), []

    def row(unit: str, relation: str, replaced: bool, why: str, records: int = 1) -> None:
        if t.sampling == "shuffled" or (t.sampling == "fixed" and records > 1):
            cost = costs.cost_of_gaussian(multiplier, replaced, records)
        elif t.sampling == "fixed":
            cost = costs.cost_of_fixed_size(multiplier, rate, replaced)
        else:
            cost = costs.cost_of_poisson(multiplier, rate, replaced, records)
        rows.append(ReadingRow(unit, relation, t.viewer, cost, steps, delta, why))

    for relation, replaced in (("zero-out", t.microbatched), ("replace", True)):
        why = f"noise std = {multiplier:g} times the clip, sensitivity {'2·' if replaced else ''}clip, {how}"
        row(t.unit, relation, replaced, why)
    for k in SEVERAL if t.unit == "example" else ():
        row("user", "zero-out", t.microbatched, f"a person with {k} records, which may all vanish", k)
    amplified = ("Amplification holds for viewers who do not learn who was sampled.",) if t.sampling != "shuffled" else ()
    first = "Clip, sum, noise; steps compose adaptively; everything after a noised sum is post-processing."
    settings = {t.noise: (t.multiplier if t.option is None else t.option) * document.louder} if t.multiplier > 0 else None
    open_, no_fix = "early stopping, tuning and metrics on private data are not counted", "the noise is zero: set it first"
    order = (first, *t.order, *amplified)
    return Reading(tuple(rows), t.published, (*t.unprotected, open_), (), order, settings, no_fix, people=t.people)


def training_in_clear(reason: str, no_fix: str) -> Reading:
    """Nothing protects the examples that are trained on."""
    return reading_in_clear("example", PRICE_TO_RECIPIENT, reason, no_fix)


def dp_sgd_counted_clips(document: PricedDocument, call: CallValue, multiplier: float, spread: float, option: str) -> float:
    """How many clips one unit moves a sum by that is released with a noisy count of the contributions that were clipped.

    Args:
        document: The file.
        call: What clips adaptively.
        multiplier: The noise multiplier of sum and count together; 0 or more.
        spread: The standard deviation of the noise on the count; above 0.
        option: The option that holds ``spread``.

    Returns:
        √(1 + ¾·(multiplier/spread)²): the bit of a unit moves the count by 1, where the multiplier takes ½ for granted.

    Raises:
        PricingError: The multiplier is at least 2·spread, which the system refuses.
    """
    if multiplier >= 2 * spread:
        who = "Opacus" if document.system == "opacus" else "TFF"
        raise document.error_at(call, f"noise_multiplier {multiplier:.4g} ≥ 2·{option} {2 * spread:g}: {who} refuses it")
    return math.sqrt(1 + 0.75 * (multiplier / spread) ** 2)


def read_calibrated_dp_sgd(document: PricedDocument, claim: PublishedReading, words: str, option: str) -> Reading:
    """Noise that the system's own accountant finds for the claimed (ε, δ), sampled by coins. option: what holds ε. words: why
    the claim holds."""
    spent, delta = (claim.epsilon or 0.0) / document.louder, claim.delta or 0.0
    row = ReadingRow("example", "zero-out", PRICE_TO_RECIPIENT, costs.cost_of_approximate(spent, delta), 1, delta, words)
    return Reading((row,), (claim,), order=("Poisson-sampled steps compose adaptively.",), settings={option: spent})


def _passes(document: PricedDocument, t: DpSgdTraining) -> tuple[float, int]:
    """(share of the records in a batch, steps; of shuffled batches the epochs). What is missing is asked."""
    by_epochs, shuffled = t.epochs is not None, t.sampling == "shuffled"
    rate = t.rate if t.rate is not None else 1.0
    if t.rate is None and not (shuffled and by_epochs):
        # With epochs given, fewer steps at a higher rate: rate 1 is not the worst, so it stays open there.
        worst, question = None if by_epochs or t.steps is None else 1.0, OPEN_FACT_QUESTIONS["sampling rate"].ask
        rate = document.answers.ask("sampling rate", question, OPEN_FACT_RATES[1 if by_epochs else 0 :], worst)
    if t.epochs is None and t.steps is None:
        passes = document.ask("epochs" if shuffled else "steps")
    elif t.steps is not None and not (shuffled and by_epochs):
        if not shuffled:
            return rate, t.steps
        passes = t.steps * rate
    else:
        passes = (t.epochs or 0.0) / (1.0 if shuffled else rate) if rate > 0 else 0.0
    return rate, math.ceil(passes * (1 - 1e-12))


def count_dp_sgd_trainings(document: PricedDocument, calls: Sequence[CallValue], what: str) -> int:
    """How often calls in a loop of unknown length are made; 1 outside of loops."""
    out = 1
    for words, call in {call.repeated: call for call in calls if call.repeated}.items():
        question = f"How often is {call.name} made by {words}? Each one is {what} of its own."
        out *= max(1, int(document.answers.ask(f"{what}s made at line {call.line}", question, (100.0, 10.0, 1.0))))
    return out


def find_dp_sgd_loops(document: PricedDocument, loaders: Sequence[Value], optimizers: Sequence[Value]) -> list[LoopPass]:
    """The loops that go over one of ``loaders`` and train; not those in which only optimizers of other models step."""

    def other(owner: Value) -> bool:
        return isinstance(owner, CallValue) and not any(value_holds(owner, each) for each in optimizers)

    def stepped(each: LoopPass) -> LoopPass:
        often = each.steps_of(
            lambda owner: any(o is mine for o in value_candidates(python_plain(owner)) for mine in optimizers)
        )
        times = each.times if often == 1 else py.lift_over_values("the steps of its loops", operator.mul, each.times, often)
        return replace(each, times=times)

    every = document.program.iterated
    found = [p for p in every if any(value_holds(p.over, each) for each in loaders)]
    found = [p if _goes_once(p.over, loaders) else replace(p, times=_AGAIN) for p in found]
    found = [p for p in found if p.steps] or found
    if not found:  # over something made of a loader, perhaps: how often it has each record is not known
        mine = [p for p in every if any(value_holds(s.owner, each) for each in optimizers for s in p.steps)]
        called = [p.over.name if isinstance(p.over, CallValue) else "" for p in mine]
        found = [replace(p, times=_AGAIN) for p, name in zip(mine, called, strict=True) if name != "range"]
    return [stepped(p) for p in found if p.reached and not (p.steps and all(other(s.owner) for s in p.steps))]


def _goes_once(over: Value, loaders: Sequence[Value]) -> bool:
    """Whether a loop over this goes over the loader once, as far as is known."""
    inner = python_plain(over)
    if not isinstance(inner, CallValue) or any(inner is each for each in loaders):
        return True
    held = [v for v in (*inner.args, *inner.keywords.values()) if any(value_holds(v, each) for each in loaders)]
    return inner.name not in ("chain", "cycle", "repeat", "sum") and all(_goes_once(v, loaders) for v in held)


def dp_sgd_epochs(document: PricedDocument, stated: float | None = None, seen: Sequence[LoopPass] = ()) -> float | None:
    """Epochs that the program runs: how often it trains in the loops ``seen``; without one, what its option says, if a loop has
    that length or the file shows none."""
    answers, options = document.answers, document.program.options
    if seen:
        every = py.lift_over_values("the epochs of its loops", lambda *n: sum(n), *(p.times for p in seen))
        return answers.number(every, "epochs")
    value = next((options[n] for n in ("epochs", "num_epochs", "n_epochs", "nb_epochs") if n in options), None)
    said = stated if stated is not None else answers.number(value, "epochs")
    lengths = {n for length in document.program.looped if isinstance(n := python_plain(length), int) and n > 1}
    return said if said is None or not lengths or said in lengths else None


def add_dp_sgd_trainings(made: Sequence[Reading], what: str) -> Reading:
    """Several trainings on the same data, whose models are all released: their ε at δ/n each add up."""
    if len(made) == 1:
        return made[0]
    parts, rows = len(made), []
    for group in zip(*(reading.rows for reading in made), strict=False):
        fixed = any(math.isinf(r.cost(r.rounds, r.delta / parts).epsilon) for r in group)  # (ε, δ) alone, at no smaller δ
        at = "its δ" if fixed else f"δ/{parts}"
        why = f"{parts} {what}s on the same data, each at {at}, added; the first: {group[0].why}"
        delta = min(group[0].delta * parts, 1.0) if fixed else group[0].delta
        rows.append(replace(group[0], cost=_added([(r.cost, r.rounds) for r in group]), rounds=1, why=why, delta=delta))
    return replace(made[0], rows=tuple(rows), settings=None, no_fix=f"there are {parts} {what}s; give each its own noise")


def _added(group: Sequence[tuple[CostOfRounds, int]]) -> CostOfRounds:
    def cost(rounds: int, delta: float) -> AccountantEpsilon:
        found = [each(times, delta / len(group)) for each, times in group]
        words = f"basic composition of {len(group)} parts: {found[0].theorem}"
        return replace(found[0], epsilon=sum(p.epsilon for p in found), delta=delta, theorem=words)

    return cost
