"""The bench: mechanisms, parts of the protocol and whole methods, sound ones beside broken twins, all judged alike.

    report = run_bench(list(all_bench_cases()))
    report.summary          '68 of 68 mutants caught, 0 of 40 sound mechanisms accused'

A ``BenchCase`` is something that claims (ε, δ), run many times on two neighbouring inputs. Its *mutants* make the same claim
for something else. Each file of ``_FAMILIES`` offers ``cases() -> Iterator[BenchCase]``.

    mechanisms    releases of one mechanism, compositions, the desk, secret batches, sums over neighbours
    streams       the noise of one client and round beside that of others, under a secret seed

``streams``, ``methods`` (whole methods) and the gradients of ``mechanisms`` break the shipped code itself, so the same break in
the code gets the sound row accused.

**Guarantee.** The probability that *any* sound case is accused is at most ``error_rate``, for any seed: each of M sound ones
gets ``error_rate``/M (Bonferroni), halved again where two methods look at it. A mutant is judged at the same level, so catching
it means the same as accusing. A mutant that is not caught means that the bench is blind there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fedgraph import seeds
from fedgraph.audit import lower_bound
from fedgraph.audit.lower_bound import ClosedFormAudit, LowerBoundScores
from fedgraph.privacy.accounting.accountant import Epsilon, price
from fedgraph.privacy.events import Event
from fedgraph.privacy.units import Relation

BenchSampler = Callable[[int, np.random.Generator], np.ndarray]
_RUNS = 40_000
_ERROR_RATE = 5e-4
_FAMILIES = ("mechanisms", "streams")


def bench_sampler(draw: Callable[..., np.ndarray]) -> Callable[..., BenchSampler]:
    """``draw(runs, rng, …)`` as a function of what follows: it returns the sampler that draws so."""
    return lambda *given, **named: lambda runs, rng: np.asarray(draw(runs, rng, *given, **named), dtype=float)


@dataclass(frozen=True)
class BenchClaim:
    """To be (epsilon, delta)-DP, as ``accountant`` says."""

    epsilon: float
    delta: float
    accountant: str

    @classmethod
    def of(cls, event: Event, delta: float) -> BenchClaim:
        """What fedgraph's own accountant charges for ``event``."""
        return cls.paid(price(event, delta), delta)

    @classmethod
    def paid(cls, paid: Epsilon, delta: float) -> BenchClaim:
        return cls(paid.epsilon, delta, paid.accountant)


@dataclass(frozen=True, eq=False)
class BenchCase:
    """Something that makes a claim, on its worst-case neighbouring inputs.

    Attributes:
        name: of the sound one.
        relation: unit and neighbouring relation, in the words of ``privacy.units``.
        claim: what it says of itself.
        present: (runs, generator) → float [runs], one score per independent run with the unit.
        absent: the same without it.
        closed_form: a bound from the law of the score, where that is known.
        measures: ``epsilon``: ε is bounded at the claimed δ. ``delta``: δ is bounded at the claimed ε. The test is the same;
            the number shown is the more telling one.
        runs: per world, counted; half as many again choose the event.
        mutant: what was broken; None for the sound one.
        counts: whether events are counted, too; not where runs are dear and few.
    """

    name: str
    relation: str
    claim: BenchClaim
    present: BenchSampler
    absent: BenchSampler
    closed_form: ClosedFormAudit | None = None
    measures: Literal["epsilon", "delta"] = "epsilon"
    runs: int = _RUNS
    mutant: str | None = None
    counts: bool = True


Worlds = tuple[BenchSampler, BenchSampler]  # with the unit, and without


def twins(
    name: str,
    relation: Relation | str,
    claim: BenchClaim,
    worlds: Worlds,
    broken: Mapping[str, Worlds | BenchSampler | BenchClaim],
    *how: Any,
    **more: Any,
) -> Iterator[BenchCase]:
    """The sound case, and a twin for each of ``broken``: other worlds, another one where the unit is, or another claim."""
    sound = BenchCase(name, getattr(relation, "value", relation), claim, *worlds, *how, **more)
    yield sound
    for mutant, other in broken.items():
        if isinstance(other, BenchClaim):
            yield replace(sound, mutant=mutant, claim=other)
        else:
            present, absent = other if isinstance(other, tuple) else (other, sound.absent)
            yield replace(sound, mutant=mutant, present=present, absent=absent)


@dataclass(frozen=True)
class BenchRow:
    """One judged case: its claim, the bound on what ``measures`` names, the largest ε that counting so many runs could show
    (``ceiling``), and which ``method`` gave the bound.
    """

    mechanism: str
    mutant: str | None
    relation: str
    epsilon: float
    delta: float
    accountant: str
    measures: str
    lower_bound: float
    ceiling: float
    method: str
    runs: int

    @property
    def accused(self) -> bool:
        """Whether the claim is shown to be false."""
        return self.lower_bound > (self.epsilon if self.measures == "epsilon" else self.delta)

    @property
    def as_it_should(self) -> bool:
        return self.accused == (self.mutant is not None)

    @property
    def verdict(self) -> str:
        if self.mutant is None:
            return "ACCUSED" if self.accused else "not accused"
        return "caught" if self.accused else "MISSED"

    def __str__(self) -> str:
        name = self.mechanism if self.mutant is None else f"  ✗ {self.mutant}"
        bound = f"{'ε' if self.measures == 'epsilon' else 'δ'} ≥ {self.lower_bound:.3g}"
        numbers = f"{self.epsilon:>9.3g} {self.delta:>9.3g} {bound:>12} {self.ceiling:>7.2f}"
        return f"{name:44} {self.relation:28} {numbers}  {self.method:30} {self.runs:>6,}  {self.verdict}"


_HEADING = (
    f"{'case':44} {'unit, relation':28} {'ε claimed':>9} {'δ claimed':>9} {'lower bound':>12} {'ceiling':>7}  "
    f"{'method':30} {'runs':>6}  verdict"
)


@dataclass(frozen=True)
class BenchReport:
    """All rows; lower bounds of sound cases hold together with this confidence."""

    confidence: float
    rows: tuple[BenchRow, ...]

    @property
    def ok(self) -> bool:
        """Every mutant caught, nothing sound accused."""
        return all(row.as_it_should for row in self.rows)

    @property
    def summary(self) -> str:
        mutants, sound = ([row.accused for row in self.rows if (row.mutant is None) is s] for s in (False, True))
        return f"{sum(mutants)} of {len(mutants)} mutants caught, {sum(sound)} of {len(sound)} sound mechanisms accused"


def all_bench_cases() -> Iterator[BenchCase]:
    """Every case of every file in ``_FAMILIES``."""
    for name in _FAMILIES:
        yield from importlib.import_module(f"tests.mutants.{name}").cases()


def run_bench(
    cases: Iterable[BenchCase],
    seed: int = 0,
    error_rate: float = _ERROR_RATE,
    tell: Callable[[str], None] = lambda row: None,
) -> BenchReport:
    """Judge ``cases``. error_rate: that any sound one is accused. tell: gets a heading, and each row as it is judged."""
    listed = list(cases)
    alpha = error_rate / max(1, sum(case.mutant is None for case in listed))
    tell(_HEADING)
    rows = []
    for case in listed:
        rows.append(judge_bench_case(case, seed, alpha))
        tell(str(rows[-1]))
    return BenchReport(1 - error_rate, tuple(rows))


def judge_bench_case(case: BenchCase, seed: int, alpha: float) -> BenchRow:
    """Run one case and bound what it measures; wrong with probability at most alpha."""
    counted_on = _runs(case, seed, "counted", case.runs)
    claim, closed = case.claim, case.closed_form if case.measures == "epsilon" else None
    each = alpha / 2 if case.counts and closed is not None else alpha
    bounds: dict[str, float] = {}
    if case.counts:
        chosen_on = _runs(case, seed, "chosen", case.runs // 2)
        if case.measures == "epsilon":
            bounds["Clopper-Pearson"] = lower_bound.of_epsilon(chosen_on, counted_on, claim.delta, each)
        else:
            bounds["Clopper-Pearson"] = lower_bound.of_delta(chosen_on, counted_on, claim.epsilon, each)
    if closed is not None:
        bounds[closed.name] = closed.bound(counted_on, claim.delta, each)
    method = max(bounds, key=lambda name: bounds[name])
    measured = (case.measures, bounds[method], lower_bound.ceiling(case.runs, claim.delta, each), method)
    told = (case.name, case.mutant, case.relation, claim.epsilon, claim.delta, claim.accountant)
    return BenchRow(*told, *measured, case.runs)


def _runs(case: BenchCase, seed: int, purpose: str, runs: int) -> LowerBoundScores:
    """Scores of fresh runs; the streams are named by the case, so no case depends on another."""
    path = ("audit", case.name, case.mutant or "sound", purpose)
    present = case.present(runs, seeds.seeded_generator(seed, *path, "present"))
    return LowerBoundScores(present, case.absent(runs, seeds.seeded_generator(seed, *path, "absent")))
