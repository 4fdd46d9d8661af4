"""From finished cells to rows, averaged over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from fedgraph.audit import curve, one_run
from fedgraph.cells import CanaryAttackCellFacts, CellEntry, EntryRowKey, NodeClassificationCellFacts, SettingChoiceCellFacts
from fedgraph.privacy import Protection


@lru_cache(maxsize=4096)
def bound_report_row(
    counts: tuple[one_run.OneRunCount, ...], delta: float, by: str = "counting", alpha: float = one_run.ONE_RUN_ALPHA
) -> float:
    """``curve.best_bound``, computed once: every table asks for the same bounds."""
    return curve.best_bound(list(counts), delta, by, alpha)


@dataclass(frozen=True)
class ReportRow:
    """One line of every table: a configuration, averaged over seeds.

    Attributes:
        entries: Its cells, one for each seed; at least one.
    """

    entries: tuple[CellEntry, ...]

    @property
    def head(self) -> CellEntry:
        """The first cell: what names it and its protection hold for all of them."""
        return self.entries[0]

    @property
    def name(self) -> str:
        """Method and variant."""
        return f"{self.head.method} · {self.head.variant}"

    def of_run(self, run: str) -> ReportRow:
        """The row with its run in its name: several runs have one like it."""
        return ReportRow(tuple(replace(e, variant=f"{e.variant} @ {run}") for e in self.entries))

    @property
    def protection(self) -> Protection:
        """What its ε protects.

        Raises:
            ValueError: The row states no protection.
        """
        if self.head.protection is None:
            raise ValueError(f"{self.head.row_key} states no protection")
        return self.head.protection

    @property
    def provable(self) -> float:
        """The largest provable ε over seeds."""
        return max(e.epsilon_provable for e in self.entries)

    @property
    def published(self) -> float | None:
        """The largest published ε over seeds."""
        return max((e.epsilon_published for e in self.entries if e.epsilon_published is not None), default=None)

    @property
    def choices(self) -> tuple[SettingChoiceCellFacts, ...]:
        """Of each seed, how its settings were chosen privately; empty where they were not."""
        facts = (e.facts for e in self.entries)
        return tuple(f.choice for f in facts if isinstance(f, NodeClassificationCellFacts) and f.choice is not None)

    @cached_property
    def attacked(self) -> list[one_run.OneRunCount]:
        """Guesses about canaries, of the attacked seeds together (independent coins); one entry per number of guesses."""
        found = [e.facts.attack.counts for e in self.entries if e.epsilon_measured is not None and e.facts.attack]
        return [one_run.OneRunCount(*map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True)]

    @property
    def attack(self) -> CanaryAttackCellFacts:
        """What was guessed.

        Raises:
            ValueError: No cell of the row was attacked.
        """
        found = next((e.facts.attack for e in self.entries if e.facts.attack is not None), None)
        if found is None:
            raise ValueError(f"no cell of {self.head.row_key} was attacked")
        return found

    def bound(self, counts: Sequence[one_run.OneRunCount], alpha: float = one_run.ONE_RUN_ALPHA) -> float:
        """The ε that guesses refute at the row's δ.

        Args:
            counts: One for each number of guesses.
            alpha: The probability with which it may be wrong.

        Raises:
            ValueError: No cell of the row was attacked.
        """
        return bound_report_row(tuple(counts), float(self.head.delta or 0.0), self.attack.estimator, alpha)

    @cached_property
    def measured(self) -> float | None:
        """The ε that an attack on the attacked seeds together refutes; None where there was none."""
        return self.bound(self.attacked) if self.attacked else None

    @cached_property
    def ceiling(self) -> float:
        """What ``measured`` would be with every guess right."""
        return self.bound([one_run.OneRunCount(c.coins, c.guesses, c.guesses) for c in self.attacked])

    @property
    def guaranteed(self) -> float:
        """The provable ε that ``measured`` must not exceed: of the attacked path, or of the whole row."""
        return self.provable if self.attack.path is None else self.path(self.attack.path)

    def path(self, name: str) -> float:
        """The largest provable ε of one path over seeds.

        Raises:
            ValueError: No seed has this path.
        """
        return max(e.paths[name] for e in self.entries if name in e.paths)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all seeds: what a private choice finds (``events.OneOf``) may send one seed along other paths than the next."""
        return tuple(dict.fromkeys(name for e in self.entries for name in e.paths))

    def values(self, metric: str) -> list[float]:
        """Of each seed that has it."""
        return [e.metrics[metric] for e in self.entries if metric in e.metrics]

    def mean(self, metric: str) -> float:
        """Over seeds; NaN where none has it."""
        found = self.values(metric)
        return statistics.fmean(found) if found else math.nan

    @property
    def majority(self) -> float:
        """How often naming the largest class always would be right; 0 where that was not measured."""
        return self.mean("majority_share") if self.values("majority_share") else 0.0

    def deviation(self, metric: str) -> float:
        """Sample standard deviation over seeds; 0 for one."""
        found = self.values(metric)
        return statistics.stdev(found) if len(found) > 1 else 0.0


def group_report_rows(entries: Sequence[CellEntry]) -> list[ReportRow]:
    """Cells as rows, in order of first appearance."""
    groups: dict[EntryRowKey, list[CellEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.row_key, []).append(entry)
    return [ReportRow(tuple(group)) for group in groups.values()]


def format_row_mean(row: ReportRow, metric: str) -> str:
    """``mean ± standard deviation`` over seeds."""
    found = row.values(metric)
    spread = f" ± {row.deviation(metric):.3f}" if len(found) > 1 else ""
    return f"{row.mean(metric):.3f}{spread}" if found else "—"
