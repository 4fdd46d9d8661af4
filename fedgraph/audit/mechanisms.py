"""The audit of the mechanisms: every one run many times, every mutant beside it.

    report = run(seed=0)
    report.summary          '31 of 31 mutants caught, 0 of 22 sound mechanisms accused'

**Guarantee.** The probability that *any* sound mechanism is accused is at most ``ERROR_RATE``, for any
seed: each of the M sound ones gets ``ERROR_RATE``/M (Bonferroni), halved again where two methods look at
it. A mutant is judged at the same level, so catching it means the same as accusing.

A mutant that is not caught means that the audit is blind there, and the command fails.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fedgraph import seeds
from fedgraph.audit import families
from fedgraph.audit.cases import Case
from fedgraph.audit.lower_bound import Worlds, ceiling, delta_by_event, epsilon_by_event
from fedgraph.errors import ScenarioError

ERROR_RATE = 5e-4


@dataclass(frozen=True)
class Row:
    """One audited mechanism. lower_bound: on what ``measures`` names; ceiling: the largest ε that counting
    this many runs could show; method: which of the methods gave the bound."""

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

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; an infinite bound becomes the string ``"inf"``."""
        row = asdict(self) | {"accused": self.accused, "verdict": self.verdict}
        return {key: "inf" if isinstance(value, float) and math.isinf(value) else value for key, value in row.items()}


@dataclass(frozen=True)
class Report:
    """All rows of one audit, in the order of the families."""

    seed: int
    confidence: float
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Every mutant caught, no sound mechanism accused."""
        return all(row.as_it_should for row in self.rows)

    @property
    def summary(self) -> str:
        mutants = [row for row in self.rows if row.mutant is not None]
        sound = [row for row in self.rows if row.mutant is None]
        caught, accused = sum(row.accused for row in mutants), sum(row.accused for row in sound)
        return f"{caught} of {len(mutants)} mutants caught, {accused} of {len(sound)} sound mechanisms accused"

    def to_dict(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "confidence": self.confidence,
            "ok": self.ok,
            "summary": self.summary,
            "rows": [row.to_dict() for row in self.rows],
        }


def all_cases() -> Iterator[Case]:
    """Every case of every file in ``families``, in alphabetical order of the files."""
    for found in sorted(pkgutil.iter_modules(families.__path__), key=lambda module: module.name):
        yield from importlib.import_module(f"{families.__name__}.{found.name}").cases()


def run(seed: int = 0, only: str | None = None, cases: Iterable[Case] | None = None) -> Report:
    """Audit ``cases`` (all of them, if none are given), or those of the mechanism named ``only``.

    ``only`` does not change a row: error rates and random streams are those of the full audit.
    Raises ``ScenarioError`` (one line) when there is no mechanism of that name.
    """
    listed = list(all_cases() if cases is None else cases)
    alpha = ERROR_RATE / max(1, sum(case.mutant is None for case in listed))
    chosen = [case for case in listed if only in (None, case.name)]
    if not chosen:
        names = ", ".join(dict.fromkeys(case.name for case in listed))
        raise ScenarioError(f"--only {only}: no mechanism of that name; allowed: {names}")
    return Report(seed, 1 - ERROR_RATE, tuple(audit(case, seed, alpha) for case in chosen))


def audit(case: Case, seed: int, alpha: float) -> Row:
    """Run one case and bound what it measures; wrong with probability at most alpha."""
    counted_on = _runs(case, seed, "counted", case.runs)
    chosen_on = _runs(case, seed, "chosen", case.runs // 2)
    claim, closed = case.claim, case.closed_form
    each = alpha / 2 if closed is not None and case.measures == "epsilon" else alpha
    if case.measures == "delta":
        bounds = {"Clopper-Pearson": delta_by_event(chosen_on, counted_on, claim.epsilon, each)}
    else:
        bounds = {"Clopper-Pearson": epsilon_by_event(chosen_on, counted_on, claim.delta, each)}
        if closed is not None:
            bounds[closed.name] = closed.bound(counted_on, claim.delta, each)
    method = max(bounds, key=lambda name: bounds[name])
    return Row(
        mechanism=case.name,
        mutant=case.mutant,
        relation=case.relation,
        epsilon=claim.epsilon,
        delta=claim.delta,
        accountant=claim.accountant,
        measures=case.measures,
        lower_bound=bounds[method],
        ceiling=ceiling(case.runs, claim.delta, each),
        method=method,
        runs=case.runs,
    )


def _runs(case: Case, seed: int, purpose: str, runs: int) -> Worlds:
    """Scores of fresh runs; the streams are named by the case, so no case depends on another."""
    path = ("audit", case.name, case.mutant or "sound", purpose)
    present = case.present(runs, seeds.generator(seed, *path, "present"))
    return Worlds(present, case.absent(runs, seeds.generator(seed, *path, "absent")))
