"""Rows: a configuration with the results of its seeds together, the name that a person types, and what it is compared by."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Generic, TypeVar

from fedgraph.audit import curve, one_run
from fedgraph.cells import (
    CanaryAttackCellFacts,
    Cell,
    GraphClassificationCellFacts,
    GraphClusteringCellFacts,
    NamedAttackCellFacts,
    NodeClassificationCellFacts,
    Result,
    SettingChoiceCellFacts,
)
from fedgraph.errors import DataError
from fedgraph.privacy import Protection, Trust
from fedgraph.report import chance
from fedgraph.report.phrases import (
    phrase_first,
    phrase_lower_bound,
    phrase_number,
    read_phrases,
)
from fedgraph.types import counted, in_words_of

LEAST_INDEX = 0.1  # an adjusted Rand index below it is called nothing: 0 is what chance gives
_FEWEST_TESTED, _FEWEST_OF_A_CLASS, LARGEST_DELTA = 100, 20, 1e-3  # below, below, above: nothing can be concluded
_TESTED = {"graph_classification": "graph", "graph_clustering": "graph", "link_prediction": "edge"}
_RARE = ("auroc", "recall_at_alerts")  # where one of two classes is rare, accuracy says little: naming the other is always near
METRICS = read_phrases()["metrics"]  # what rows are compared by; the first that a row has

_USUAL = ("test-graph", "attributes")  # what is public where a scenario says nothing: of an inductive, of a transductive task
_PLAIN = ("default", "baseline")  # labels that say nothing
_EPSILON = re.compile(r"(?:\b(?:epsilon|eps|e)|ε)\s*[=≤<:]*\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|∞|inf\b|none\b)")
_Attack = TypeVar("_Attack", CanaryAttackCellFacts, NamedAttackCellFacts)
_WORD = re.compile(r"e=[\w.+-]+|[^\W_]+(?:\.[^\W_]+)*")


@lru_cache(maxsize=4096)
def bound_of_guesses(
    counts: tuple[one_run.OneRunCount, ...], delta: float, by: str, alpha: float = one_run.ONE_RUN_ALPHA
) -> float:
    """``curve.best_bound``, computed once: every table asks for the same bounds."""
    return curve.best_bound(list(counts), delta, by, alpha)


def short_of(method: str, variant: str) -> str:
    """What a sentence calls a row: the label that its scenario gives it, or its method."""
    return method if variant in _PLAIN else variant


def name_rows(cells: Iterable[Cell]) -> dict[Cell, str]:
    """What a person types to name a row, such as ``label_hop, sums, ε=4``.

    No two rows have one name, whatever letters are capital and wherever spaces stand: method, task and data set follow
    where another row would be called the same.

    Args:
        cells: All cells among which the names are to be clear.

    Returns:
        ``Cell.row`` → its name, in order of first appearance.
    """
    names = {row: _name(row) for row in dict.fromkeys(cell.row for cell in cells)}
    reads: list[Callable[[Cell], str]] = [lambda row: row.method, lambda row: row.task, lambda row: row.dataset]
    while len(set(map(plain_name, names.values()))) < len(names):
        read = reads.pop(0) if reads else None
        groups: dict[tuple[str, ...], list[Cell]] = {}
        for row, name in names.items():
            groups.setdefault(plain_name(name), []).append(row)
        for same in groups.values():
            more = range(1, len(same) + 1) if read is None else [read(row) for row in same]
            if len(set(more)) > 1:
                names |= {row: f"{names[row]} · {told}" for row, told in zip(same, more, strict=True)}
    return names


def _name(row: Cell) -> str:
    reading = " as published" if row.calibrated_by == "published" else ""
    epsilon = "∞" if math.isinf(row.epsilon) else f"{row.epsilon:.12g}"
    return f"{short_of(row.method, row.variant)}, {row.world.words}, ε={epsilon}{reading}"


def plain_name(name: str) -> tuple[str, ...]:
    """The words of a name, without what people type in several ways: capitals, signs between words, and how ε is written."""

    def number(found: re.Match[str]) -> str:
        said = found[1]
        return f" e={math.inf if said in ('∞', 'inf', 'none') else float(said):.12g} "

    return tuple(_WORD.findall(_EPSILON.sub(number, name.casefold())))


def find_row_name(names: Mapping[str, str], asked: str, where: object) -> str:
    """The one row that is meant.

    Args:
        names: Of all rows, each with further words that may be said of it: its method, task and data set.
        asked: A name, or words of it (or parts of words) that only one row has. ``eps=4`` and ``e=4`` are ``ε=4``.
        where: What the error begins with.

    Raises:
        DataError: No row, or more than one, is so called; the line lists those that may be meant.
    """
    wanted, plain = plain_name(asked), {name: plain_name(name) for name in names}
    words = {name: own + plain_name(names[name]) for name, own in plain.items()}

    def holds(own: tuple[str, ...], word: str) -> bool:
        return word in own if word.startswith("e=") else any(word in one for one in own)

    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: plain[name] == wanted,
        lambda name: set(wanted) <= set(plain[name]),
        lambda name: set(wanted) <= set(words[name]),
        lambda name: all(holds(words[name], word) for word in wanted),
    )
    found: list[str] = []
    for fits in tests:
        found = found or [name for name in names if wanted and fits(name)]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} rows" if found else "no row"
    allowed = phrase_first([f'"{name}"' for name in found or names], 8, "; ")
    raise DataError(f"{where}: {many} with a name like {asked!r}; allowed: {allowed}")


@dataclass(frozen=True)
class Row:
    """A configuration, its seeds together: one line of every table."""

    results: tuple[Result, ...]  # its cells, one for each seed; at least one
    row: str  # what a person types to name it
    metric: str = ""  # by which it is compared; empty where it has no such number
    refuted: bool = False  # whether an attack contradicts ``provable``
    of_sizes: float = 0.0  # what rows of the same question reach that see public sizes alone

    # ---- what was asked ---------------------------------------------------------------------------------------------

    @property
    def head(self) -> Result:
        """The first cell: what names it and its protection hold for all of them."""
        return self.results[0]

    @property
    def anchor(self) -> str:
        """The words of ``row`` in a to z, digits, hyphens and underscores: its place in a page, and in names of files."""
        words = ("-".join(plain_name(self.row))).replace("e=", "eps-").replace(".", "_").replace("+", "")
        return "row-" + "".join(c if c.isascii() else f"u{ord(c):x}" for c in words)

    @property
    def slug(self) -> str:
        """Of its place in the table of all rows."""
        return self.anchor.replace("row-", "all-", 1)

    @property
    def task(self) -> str:
        return self.head.task

    @property
    def dataset(self) -> str:
        return self.head.dataset

    @property
    def method(self) -> str:
        return self.head.method

    @property
    def variant(self) -> str:
        return self.head.variant

    @property
    def kind(self) -> str:
        """Of its task."""
        return self.head.facts.kind

    @property
    def clustered(self) -> bool:
        """Whether whole graphs are clustered."""
        return isinstance(self.head.facts, GraphClusteringCellFacts)

    @property
    def one(self) -> str:
        """What one node is called."""
        return self.head.facts.one

    @property
    def target(self) -> float:
        """The ε that was asked for."""
        return self.head.epsilon

    @property
    def calibrated_by(self) -> str:
        """For which reading of ε the noise was chosen."""
        return self.head.calibrated_by

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """Rows can be compared only where this is equal: data set, metric, protocol, split, what is public unless usual."""
        facts = self.head.facts
        public = facts.public or _USUAL[0]
        return (self.dataset, self.metric, facts.protocol, facts.split, "" if public in _USUAL else public)

    @property
    def name(self) -> str:
        """Method and variant, as a table shows them; one of them where they are the same word."""
        if self.variant in _PLAIN or self.variant.lower() == self.method:
            return self.short
        return self.who

    @property
    def who(self) -> str:
        """Method and variant, both."""
        return f"{self.method} · {self.variant}"

    @property
    def short(self) -> str:
        """What a sentence calls it: the label that its scenario gives it, or its method."""
        return short_of(self.method, self.variant)

    # ---- what is protected ------------------------------------------------------------------------------------------

    @property
    def protection(self) -> Protection:
        """What its ε protects.

        Raises:
            ValueError: The row states no protection.
        """
        if self.head.protection is None:
            raise ValueError(f"{self.row} states no protection")
        return self.head.protection

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold, one phrase each."""
        held = self.head.protection
        return () if held is None else tuple(in_words_of(self.one, held.sentence(one)) for one in held.assumptions)

    @property
    def unit(self) -> str:
        """Whom the guarantee protects; empty without one."""
        return "" if self.head.protection is None else self.head.protection.unit.value

    @property
    def relation(self) -> str:
        """Of the two inputs that are told apart; empty without a guarantee."""
        return "" if self.head.protection is None else self.head.protection.relation.value

    @property
    def trust(self) -> Trust:
        """Whom its guarantee needs to be trusted; everybody, without a stated viewer."""
        held = self.head.protection
        return Trust.CURATOR if held is None else Trust.against(held.viewer)

    @property
    def delta(self) -> float:
        """The δ of every ε here; 0 where there is no protection."""
        return self.head.delta or 0.0

    @cached_property
    def provable(self) -> float:
        """The largest provable ε over seeds of everything that is released."""
        return max(e.epsilon_provable for e in self.results)

    def keeps(self, epsilon: float) -> bool:
        """Whether everything that it releases is provably within ``epsilon``; ∞ is kept by no guarantee."""
        return math.isfinite(self.provable) and self.provable <= epsilon * (1 + 1e-9)

    @property
    def published(self) -> float | None:
        """The largest published ε over seeds; None where the paper's formula says nothing."""
        return max((e.epsilon_published for e in self.results if e.epsilon_published is not None), default=None)

    @property
    def private(self) -> bool:
        """Whether anything computed from private data is released at all."""
        return bool(self.head.paths) or math.isinf(self.provable)

    @property
    def raw(self) -> bool:
        """Whether it was asked for no privacy and gives none: a ceiling."""
        return math.isinf(self.target) and math.isinf(self.provable)

    def path(self, name: str) -> float:
        """The largest provable ε of one path over seeds.

        Raises:
            ValueError: No seed has this path.
        """
        return max(e.paths[name] for e in self.results if name in e.paths)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all seeds: what a private choice finds (``events.OneOf``) may send one seed along other paths than the next."""
        return tuple(dict.fromkeys(name for e in self.results for name in e.paths))

    @property
    def choices(self) -> tuple[SettingChoiceCellFacts, ...]:
        """Of each seed, how its settings were chosen privately; empty where they were not."""
        facts = (e.facts for e in self.results)
        return tuple(f.choice for f in facts if isinstance(f, NodeClassificationCellFacts) and f.choice is not None)

    # ---- what was reached -------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """``ok``, or why it is no answer."""
        if self.refuted:
            return f"refuted: an attack shows ε ≥ {phrase_lower_bound(self.measured)}"
        whole = len(self.scores) == len(self.results)
        found = "ok" if whole else "no number: a value is missing or not finite"
        return next((e.status for e in self.results if e.status != "ok"), found)

    @property
    def usable(self) -> bool:
        """Whether it may be an answer: it has a number, and no attack has refuted its ε."""
        return math.isfinite(self.mean) and self.status == "ok"

    @property
    def seeds(self) -> int:
        """How many repetitions."""
        return len(self.results)

    @cached_property
    def scores(self) -> dict[int, float]:
        """Seed → ``metric``, where it is a number."""
        found = {e.seed: e.metrics.get(self.metric, math.nan) for e in self.results}
        return {seed: value for seed, value in found.items() if math.isfinite(value)}

    @cached_property
    def mean(self) -> float:
        """Of ``metric`` over seeds; NaN where a seed has no number."""
        return statistics.fmean(self.scores.values()) if len(self.scores) == len(self.results) else math.nan

    @cached_property
    def deviation(self) -> float | None:
        """Sample standard deviation of ``metric`` over seeds; None for one seed."""
        return statistics.stdev(self.scores.values()) if len(self.scores) > 1 else None

    def values(self, metric: str) -> list[float]:
        """Of each seed that has it."""
        return [e.metrics[metric] for e in self.results if metric in e.metrics]

    def mean_of(self, metric: str) -> float:
        """Over seeds; NaN where none has it."""
        found = self.values(metric)
        return statistics.fmean(found) if found else math.nan

    def deviation_of(self, metric: str) -> float:
        """Sample standard deviation over seeds; 0 for one."""
        found = self.values(metric)
        return statistics.stdev(found) if len(found) > 1 else 0.0

    @cached_property
    def tested(self) -> int:
        """How many different people, graphs or pairs its score rests on; 0: not counted. Folds are of different graphs."""
        facts, counts = self.head.facts, [e.facts.tested for e in self.results if e.facts.tested is not None]
        if isinstance(facts, GraphClassificationCellFacts) and counts:
            return min(sum(counts), facts.graphs)
        return (facts.clients or 0) if self.clustered else min(counts, default=0)

    @cached_property
    def guesses(self) -> dict[int, float]:
        """Seed → what somebody reaches there who learnt nothing."""
        return {e.seed: max(chance_of(self.metric, e.metrics), self.of_sizes) for e in self.results}

    @cached_property
    def guess(self) -> float:
        """The same over seeds."""
        return max(statistics.fmean(chance_of(self.metric, e.metrics) for e in self.results), self.of_sizes)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Where one training of the row may lie: two standard errors by what was tested, around every seed's value.

        An ε is about one training, and one is deployed: a row that works on one seed of three reaches down to the other two.
        """
        spans = [interval(value, self) for value in self.scores.values()] or [(math.nan, math.nan)]
        return min(low for low, _ in spans), max(high for _, high in spans)

    # ---- what attacks say -------------------------------------------------------------------------------------------

    @cached_property
    def canaries(self) -> AttackOnRow[CanaryAttackCellFacts] | None:
        """Guesses about canaries in the attacked seeds; None where there were none."""
        found = tuple(e.facts.attack for e in self.results if e.epsilon_measured is not None and e.facts.attack)
        return AttackOnRow(self, found) if found else None

    @cached_property
    def measured(self) -> float | None:
        """The ε that an attack on the attacked seeds together refutes; None where there was none."""
        return None if self.canaries is None else self.canaries.epsilon()

    @property
    def guaranteed(self) -> float:
        """The provable ε that ``measured`` must not exceed: of the attacked path, or of the whole row."""
        path = None if self.canaries is None else self.canaries.one.path
        return self.provable if path is None else self.path(path)

    @property
    def named(self) -> tuple[AttackOnRow[NamedAttackCellFacts], ...]:
        """Every attack by name."""
        found: dict[str, list[NamedAttackCellFacts]] = {}
        for one in (one for e in self.results if e.facts.named for one in e.facts.named.found):
            found.setdefault(one.attack, []).append(one)
        return tuple(AttackOnRow(self, tuple(every)) for every in found.values())

    def refuted_among(self, bounds: int) -> bool:
        """Whether what was measured contradicts ``guaranteed``, with the error divided among so many bounds of the report."""
        if self.canaries is None or (self.measured or 0.0) <= self.guaranteed:  # a smaller error refutes less
            return False
        return (self.canaries.epsilon(one_run.ONE_RUN_ALPHA / bounds) or 0.0) > self.guaranteed

    def __repr__(self) -> str:
        numbers = f"metric={self.metric!r}, mean={self.mean!r}, deviation={self.deviation!r}, seeds={self.seeds}"
        prices = f"provable={self.provable!r}, published={self.published!r}, measured={self.measured!r}"
        return f"{type(self).__name__}({self.row!r}, {numbers}, {prices}, trust={self.trust.value!r}, unit={self.unit!r})"


@dataclass(frozen=True, eq=False)
class AttackOnRow(Generic[_Attack]):
    """One attack on a row, its seeds together."""

    row: Row
    every: tuple[_Attack, ...]  # what was found with each attacked seed; at least one

    @property
    def one(self) -> _Attack:
        """Of the first seed: what describes the attack holds for all."""
        return self.every[0]

    @cached_property
    def counts(self) -> tuple[one_run.OneRunCount, ...]:
        """Guesses of all seeds together, since their coins are independent; one entry for each number of guesses."""
        found = [v.counts for v in self.every if v.counts]
        return tuple(one_run.OneRunCount(*map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True))

    def epsilon(self, alpha: float = one_run.ONE_RUN_ALPHA, estimator: str = "") -> float | None:
        """The ε that the guesses refute at the row's δ; None where no theorem gives one.

        Args:
            alpha: The probability with which it may be wrong.
            estimator: Which bound of ``audit.curve`` reads them, in the place of the attack's own.
        """
        return bound_of_guesses(self.counts, self.row.delta, estimator or self.one.estimator, alpha) if self.counts else None

    @property
    def ceiling(self) -> float:
        """What ``epsilon`` would be with every guess right."""
        right = tuple(one_run.OneRunCount(c.coins, c.guesses, c.guesses) for c in self.counts)
        return bound_of_guesses(right, self.row.delta, self.one.estimator)


def group_rows(results: Iterable[Result], names: Mapping[Cell, str] | None = None) -> list[Row]:
    """Cells as rows, in order of first appearance.

    Args:
        results: Of one run, or of several; cells that failed are in no row.
        names: ``Cell.row`` → its name; None: as these cells alone are told apart.
    """
    groups: dict[Cell, list[Result]] = {}
    for result in results:
        if not result.failed:
            groups.setdefault(result.row, []).append(result)
    named = name_rows(groups) if names is None else names
    return [Row(tuple(group), named[key]) for key, group in groups.items()]


def of_run(row: Row, run: str) -> Row:
    """The row with its run in its name: several runs have one like it."""
    return Row(tuple(replace(e, variant=f"{e.variant} @ {run}") for e in row.results), f"{row.row} @ {run}")


def num_attack_bounds(rows: Sequence[Row]) -> int:
    """How many lower bounds on ε the rows show that are held against a provable one: of canaries, and of attacks by name."""
    held = sum(bool(told.counts) and told.one.comparable for row in rows for told in row.named)
    return sum(row.measured is not None for row in rows) + held


def compare_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows that have a metric to compare them by, in their order. Others (distances) are left out.

    Args:
        rows: All rows of one task on one data set are compared by the same metric, the first of ``METRICS`` that each has; of
            graphs that are clustered by how well their classes are found.
    """
    bounds = max(num_attack_bounds(rows), 1)
    found = zip(rows, metrics_of(rows), strict=True)
    return tuple(replace(row, metric=metric, refuted=row.refuted_among(bounds)) for row, metric in found if metric is not None)


def metrics_of(rows: Sequence[Row]) -> list[str | None]:
    """By which metric ``compare_rows`` compares each row; None where it has none."""
    own = [{name for e in row.results for name in e.metrics} & METRICS.keys() for row in rows]
    beside: dict[tuple[str, str], list[set[str]]] = {}
    for row, has in zip(rows, own, strict=True):
        beside.setdefault((row.task, row.dataset), []).extend([has] if has else [])

    def first(row: Row, has: set[str]) -> str | None:
        shared = set[str].intersection(*beside[row.task, row.dataset]) if has else has
        found = next((name for name in METRICS if name in (shared or has)), None)
        return "ari" if row.clustered and "ari" in has else found

    return [first(row, has) for row, has in zip(rows, own, strict=True)]


def answering(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows as questions ask of them: what is rare is compared by its AUROC, and clustered graphs by their classes, too."""
    found, beside = [], []
    for row in compare_rows(rows):
        rare = row.metric == "accuracy" and all(name in e.metrics for e in row.results for name in _RARE)
        found.append(replace(row, metric="auroc") if rare else row)
        beside += [replace(row, metric="accuracy")] if row.metric == "ari" and row.values("accuracy") else []
    sizes: dict[tuple[str, ...], float] = {}  # of whole graphs, guessing is what the rows reach that see public sizes alone
    for row in (every := (*found, *beside)):
        if row.kind.startswith("graph") and row.metric == "accuracy" and not row.private and math.isfinite(row.mean):
            sizes[row.asked] = max(row.mean, sizes.get(row.asked, 0.0))
    return tuple(replace(row, of_sizes=sizes.get(row.asked, 0.0)) if row.asked in sizes else row for row in every)


def chance_of(metric: str | None, metrics: Mapping[str, float]) -> float:
    """What somebody reaches who learnt nothing."""
    majority = metrics.get("majority_share", 0.0)
    if metric == "average_precision_positive":
        return 1 - majority if majority else 0.0
    return {"auc": 0.5, "auroc": 0.5, "ari": 0.0}.get(metric or "", majority)


def interval(value: float, row: Row) -> tuple[float, float]:
    """(low, high) of one seed's value, by what was tested; the value itself where that was not counted."""
    if row.metric == "accuracy" and row.tested:
        return chance.wilson_chance_interval(value, row.tested)
    if row.metric == "average_precision_positive" and row.tested and row.guess:
        return chance.precision_interval(value, row.tested * row.guess)
    positives, negatives = float(row.tested), float(vars(row.head.facts).get("negatives") or 0)
    if row.metric == "auroc":
        majority = row.mean_of("majority_share") if row.values("majority_share") else 0.5
        positives = max(1.0, row.tested * (1 - majority))
        negatives = max(1.0, row.tested - positives)
    if row.metric in ("auc", "auroc") and row.tested and negatives:
        half = chance.CHANCE_STANDARD_ERRORS * chance.area_error(value, positives, negatives)
        return max(0.0, value - half), min(1.0, value + half)
    return value, value


def error_of_difference(one: Row, other: Row) -> float:
    """Standard error of the difference of two rows' means: from what was tested, and over seeds; the larger of the two."""
    both = sorted(one.scores.keys() & other.scores.keys())
    rights = [{e.seed: e.facts.right for e in row.results} for row in (one, other)]
    paired = [chance.paired_chance_variance(rights[0].get(s, ""), rights[1].get(s, ""), one.tested) for s in both]
    known = [v for v in paired if v is not None]
    alike = bool(known) and len(known) == len(both) == len(one.scores) == len(other.scores)
    if alike and one.metric == "accuracy":
        sampled = statistics.fmean(known)
    else:
        spans = [interval(row.mean, row) for row in (one, other)]
        sampled = sum(((high - low) / 2 / chance.CHANCE_STANDARD_ERRORS) ** 2 for low, high in spans)
    if alike and len(both) > 1:
        seeds = statistics.variance(one.scores[s] - other.scores[s] for s in both) / len(both)
    else:
        seeds = sum((row.deviation or 0.0) ** 2 / max(1, len(row.scores)) for row in (one, other))
    return math.sqrt(max(sampled, seeds))


def is_worse(row: Row, than: Row) -> bool:
    """By more than two standard errors of the difference."""
    return than.mean - row.mean > chance.CHANCE_STANDARD_ERRORS * error_of_difference(than, row)


def beats_guessing(row: Row) -> bool:
    """Whether one training of the row is above that seed's own guess on every seed, by more than two standard errors."""
    if row.metric == "ari":
        return row.interval[0] >= LEAST_INDEX
    return bool(row.scores) and all(interval(value, row)[0] > row.guesses[seed] for seed, value in row.scores.items())


def find_doubt(rows: Sequence[Row]) -> str:
    """Why nothing can be concluded from rows of one data set; empty where something can."""
    fewest = min((row for row in rows if row.tested), key=lambda row: row.tested, default=None)
    least = min((n for row in rows if (n := row.head.facts.least_class) is not None), default=None)
    kept = [row for row in rows if row.delta > 0 and row.private and math.isfinite(row.provable)]
    worst = max(kept, key=lambda row: row.delta, default=None)
    why = []
    if fewest is not None and fewest.tested < _FEWEST_TESTED:
        was, what = "was" if fewest.tested == 1 else "were", in_words_of(fewest.one, _TESTED.get(fewest.kind, "node"))
        why.append(f"only {counted(fewest.tested, what)} {was} tested, at least {_FEWEST_TESTED} are needed")
    if least is not None and least < _FEWEST_OF_A_CLASS:
        what = in_words_of(rows[0].one, _TESTED.get(rows[0].kind, "node"))
        why.append(f"the smallest class has {counted(least, what)}, at least {_FEWEST_OF_A_CLASS} are needed")
    if worst is not None and worst.delta > LARGEST_DELTA * (1 + 1e-9):
        allowed = f"the guarantee may fail for one {in_words_of(worst.one, worst.unit)} in {1 / worst.delta:.0f}"
        why.append(f"δ = {phrase_number(worst.delta)} is above {LARGEST_DELTA:g}: {allowed}")
    return "; ".join(why)


def best_without_privacy(rows: Iterable[Row]) -> Row | None:
    """The best row that was asked for no privacy."""
    return max((s for s in rows if s.raw and math.isfinite(s.mean)), key=lambda s: s.mean, default=None)


def format_row_mean(row: Row, metric: str) -> str:
    """``mean ± standard deviation`` over seeds; ± with a fourth digit where it would be 0.000, as if nothing varied."""
    found, deviation = row.values(metric), row.deviation_of(metric)
    digits = 4 if 0 < deviation < 0.0005 else 3
    spread = f" ± {deviation:.{digits}f}" if len(found) > 1 else ""
    return f"{round(row.mean_of(metric), digits) + 0.0:.{digits}f}{spread}" if found else "—"
