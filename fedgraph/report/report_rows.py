"""From finished cells to rows, averaged over seeds; and how numbers of a row are printed.

The long texts of a report, which stand in ``templates/phrases.yaml`` by part and name.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib import resources

import yaml

from fedgraph.audit import curve, one_run
from fedgraph.cells.entry import Entry, RowKey
from fedgraph.cells.facts import CanaryAttack, Choice, NodeClassificationFacts
from fedgraph.privacy.units import Protection


@lru_cache(maxsize=4096)
def lower_bound(counts: tuple[one_run.Count, ...], delta: float, by: str = "counting", alpha: float = one_run.ALPHA) -> float:
    """``curve.estimated_bound``, computed once: every table asks for the same bounds."""
    return curve.estimated_bound(list(counts), delta, by, alpha)


@dataclass(frozen=True)
class Row:
    """One line of every table: a configuration, averaged over seeds. entries: its cells, one per seed."""

    entries: tuple[Entry, ...]

    @property
    def head(self) -> Entry:
        """The first cell: what names it and its protection hold for all of them."""
        return self.entries[0]

    @property
    def name(self) -> str:
        """Method and variant."""
        return f"{self.head.method} · {self.head.variant}"

    def of_run(self, run: str) -> Row:
        """The row with its run in its name: several runs have one like it."""
        return Row(tuple(replace(e, variant=f"{e.variant} @ {run}") for e in self.entries))

    @property
    def protection(self) -> Protection:
        """What its ε protects. ``ValueError`` for a row that states no protection."""
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
    def choices(self) -> tuple[Choice, ...]:
        """Of each seed, how its settings were chosen privately; empty where they were not."""
        facts = (e.facts for e in self.entries)
        return tuple(f.choice for f in facts if isinstance(f, NodeClassificationFacts) and f.choice is not None)

    @cached_property
    def attacked(self) -> list[one_run.Count]:
        """Guesses about canaries, of the attacked seeds together (independent coins); one entry per number of guesses."""
        found = [e.facts.attack.counts for e in self.entries if e.epsilon_measured is not None and e.facts.attack]
        return [one_run.Count(*map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True)]

    @property
    def attack(self) -> CanaryAttack:
        """What was guessed; of a row with ``attacked`` guesses only (``ValueError`` otherwise)."""
        found = next((e.facts.attack for e in self.entries if e.facts.attack is not None), None)
        if found is None:
            raise ValueError(f"no cell of {self.head.row_key} was attacked")
        return found

    def bound(self, counts: Sequence[one_run.Count], alpha: float = one_run.ALPHA) -> float:
        """The ε that such guesses refute at the row's δ, wrong with probability at most ``alpha``."""
        return lower_bound(tuple(counts), float(self.head.delta or 0.0), self.attack.estimator, alpha)

    @cached_property
    def measured(self) -> float | None:
        """The ε that an attack on the attacked seeds together refutes; None where there was none."""
        return self.bound(self.attacked) if self.attacked else None

    @cached_property
    def ceiling(self) -> float:
        """What ``measured`` would be with every guess right."""
        return self.bound([one_run.Count(c.coins, c.guesses, c.guesses) for c in self.attacked])

    @property
    def guaranteed(self) -> float:
        """The provable ε that ``measured`` must not exceed: of the attacked path, or of the whole row."""
        return self.provable if self.attack.path is None else self.path(self.attack.path)

    def path(self, name: str) -> float:
        """The largest provable ε of one path over seeds."""
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


def group_rows(entries: Sequence[Entry]) -> list[Row]:
    """Rows in order of first appearance."""
    groups: dict[RowKey, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.row_key, []).append(entry)
    return [Row(tuple(group)) for group in groups.values()]


def rounded(value: float | None, digits: int = 3) -> str:
    """For tables: ``—`` for none, ``∞``, at most ``digits`` significant digits beyond the point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if math.isinf(value):
        return "∞"
    return f"{value:.{digits}g}" if value and abs(value) < 0.01 else f"{value:.{digits}f}".rstrip("0").rstrip(".")


def rounded_up(value: float | None, digits: int = 2) -> str:
    """As ``number``, rounded up: a printed upper bound is never below the computed one."""
    if value is None or not math.isfinite(value) or value == 0:
        return rounded(value, digits)
    scale = 10.0 ** (digits if value >= 0.01 else digits - 1 - math.floor(math.log10(value)))
    return rounded(math.ceil(value * scale * (1 - 1e-9)) / scale, digits)


def say_count(count: int, what: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{count} {what}{'s' if count > 1 else ''}"


def averaged_over(count: int, what: str = "seed", error: str = "deviation") -> str:
    """How ``count`` repetitions are summed up, in words: ± only where there are two or more.

    >>> averaged(1), averaged(3, "fold")
    ('one seed', 'mean ± standard deviation over 3 folds')
    """
    return f"one {what}" if count == 1 else f"mean ± standard {error} over {count} {what}s"


def mean_spread(row: Row, metric: str) -> str:
    """``mean ± standard deviation`` over seeds."""
    found = row.values(metric)
    spread = f" ± {row.deviation(metric):.3f}" if len(found) > 1 else ""
    return f"{row.mean(metric):.3f}{spread}" if found else "—"


def read_asset(name: str) -> str:
    """The text of a file that comes with the report."""
    return resources.files("fedgraph.report").joinpath(name).read_text(encoding="utf-8")


@cache
def read_phrases() -> Mapping[str, Mapping[str, str]]:
    """Part → name → text."""
    return dict(yaml.safe_load(read_asset("templates/phrases.yaml")))


def phrase(part: str, name: str, /, **values: object) -> str:
    """One text. values: of the names in braces that stand in it."""
    return read_phrases()[part][name].format(**values)
