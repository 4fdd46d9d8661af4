"""Rows that can be compared: cells of a run's table (``report.table``), their seeds together, by one metric.

    rows = compared.rows_of(table)

A row by two metrics (graphs that are clustered, and classified by the same distances) is there twice.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from fedgraph.privacy import Trust
from fedgraph.report import chance
from fedgraph.report.phrases import phrase_number

if TYPE_CHECKING:
    import pandas

LEAST_INDEX = 0.1  # an adjusted Rand index below it is called nothing: 0 is what chance gives
_FEWEST_TESTED, _FEWEST_OF_A_CLASS, _LARGEST_DELTA = 100, 20, 1e-3  # below, below, above: nothing can be concluded
_TESTED = {"graph_classification": "graph", "graph_clustering": "graph", "link_prediction": "edge"}
_RARE = ("auroc", "recall_at_alerts")  # where one of two classes is rare, accuracy says little: naming the other is always near
_USUAL = ("", "test-graph", "attributes")  # what is public where a scenario says nothing


@dataclass(frozen=True, eq=False)
class Row:
    """One configuration, its seeds together.

    Attributes:
        name: What a person types.
        label: What a sentence calls it.
        title: What its method calls itself.
        kind: Of its task.
        one: What one node is called.
        asked: Rows can be compared only where these are equal: data set, metric, protocol, split, what is public unless usual.
        trust: Whom its guarantee needs to be trusted.
        unit: Whom it protects; empty where it protects nobody.
        relation: Of the two inputs that are told apart; empty without a guarantee.
        epsilon: That was asked for; ∞: none.
        delta: Of every ε here; NaN without a guarantee.
        published: What the paper's formula says; NaN where it says nothing.
        provable: The largest ε over seeds of everything that is released.
        measured: What an attack proves at least; NaN where there was none.
        assumptions: What must hold, one phrase each.
        values: Seed → value of the metric.
        tested: How many different nodes, graphs or pairs were tested; 0: not counted.
        guess: What somebody reaches who learnt nothing.
        people: How many trained; 0 where nobody is counted.
        private: Whether anything computed from private data is released.
        raw: Whether it was asked for no privacy and gives none: a ceiling.
        status: ``ok``, or why it is no answer.
        means: Every metric, mean over seeds.
        facts: Of the first cell's task.
        right: Seed → which of the tested were answered rightly, packed.
    """

    name: str
    label: str
    title: str
    method: str
    task: str
    dataset: str
    kind: str
    one: str
    asked: tuple[str, ...]
    trust: Trust
    world: str
    unit: str
    relation: str
    epsilon: float
    delta: float
    calibrated_by: str
    published: float
    provable: float
    measured: float
    assumptions: tuple[str, ...]
    values: Mapping[int, float]
    tested: int
    guess: float
    people: int
    clients: int
    private: bool
    raw: bool
    status: str
    seconds: float
    means: Mapping[str, float] = field(repr=False)
    facts: Mapping[str, object] = field(repr=False)
    right: Mapping[int, str] = field(repr=False)

    @property
    def metric(self) -> str:
        """By which it is compared."""
        return self.asked[1]

    @property
    def mean(self) -> float:
        """Over seeds."""
        return statistics.fmean(self.values.values()) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """Sample standard deviation over seeds; 0 for one."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else 0.0

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Where one training of the row may lie: two standard errors by what was tested, around every seed's value.

        An ε is about one training, and one is deployed: a row that works on one seed of three reaches down to the other two.
        """
        spans = [interval(self.metric, value, self) for value in self.values.values()]
        return min(low for low, _ in spans), max(high for _, high in spans)

    @property
    def usable(self) -> bool:
        """Whether it may be an answer."""
        return math.isfinite(self.mean) and self.status == "ok"

    @property
    def slug(self) -> str:
        """Of its place in a page."""
        beside = "-accuracy" if self.metric == "accuracy" and self.kind == "graph_clustering" else ""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower()) + beside

    def keeps(self, epsilon: float) -> bool:
        """Whether everything that it releases is provably within ``epsilon``; ∞ is kept by no guarantee."""
        return math.isfinite(self.provable) and self.provable <= epsilon * (1 + 1e-9)


def rows_of(table: "pandas.DataFrame", refuted: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Every row that has a metric to compare it by, in the order of the table.

    Args:
        table: As ``report.table`` has it, without cells that failed.
        refuted: Row → why it is no answer, since an attack showed more than was proven.
    """
    if table.empty:
        return ()
    found, beside = [], []
    for _, cells in table[table["metric"].notna()].groupby(["row", "task", "dataset"], sort=False):
        row = _row(cells, refuted or {})
        found.append(row)
        if row.metric == "ari" and "accuracy" in row.means:
            values = {int(c.seed): float(c.accuracy) for c in cells.itertuples() if math.isfinite(c.accuracy)}
            asked = (row.asked[0], "accuracy", *row.asked[2:])
            guess = row.means.get("majority_share", 0.0)
            beside.append(replace(row, asked=asked, values=values, guess=guess, right={}))
    return _with_sizes((*found, *beside))


def _with_sizes(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Of whole graphs that are classified, guessing is what the rows reach that see public sizes alone."""
    sizes: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row.kind.startswith("graph") and row.metric == "accuracy" and not row.private and math.isfinite(row.mean):
            sizes[row.asked] = max(row.mean, sizes.get(row.asked, row.guess))
    return tuple(replace(row, guess=max(row.guess, sizes.get(row.asked, 0.0))) for row in rows)


def _row(cells: "pandas.DataFrame", refuted: Mapping[str, str]) -> Row:
    head, columns = cells.iloc[0], cells.columns
    rare = head["metric"] == "accuracy" and all(m in columns and cells[m].notna().all() for m in _RARE)
    metric, given = ("auroc", cells["auroc"]) if rare else (head["metric"], cells["value"])
    known = [(int(seed), float(value)) for seed, value in zip(cells["seed"], given, strict=True)]
    values = {seed: value for seed, value in known if math.isfinite(value)}
    facts = [json.loads(text) for text in cells["facts"]]
    public = "" if head["public"] in _USUAL or head["public"] is None else str(head["public"])
    status = next((s for s in cells["status"] if s != "ok"), "ok")
    status = refuted.get(head["row"], status)
    if status == "ok" and len(values) < len(cells):
        status = "no number: a value is missing or not finite"
    first = columns.get_loc("chance") + 1
    metrics = [c for c in columns[first : columns.get_loc("clients")] if cells[c].notna().any()]
    tested, clients = cells["tested"].min(), head["clients"]
    return Row(
        name=head["row"], label=head["name"], title=head["title"], method=head["method"], task=head["task"],
        dataset=head["dataset"], kind=facts[0].get("kind", ""), one=head["one"],
        asked=(head["dataset"], metric, head["protocol"] or "", head["split"] or "", public),
        trust=Trust(head["trust"]) if head["trust"] in {t.value for t in Trust} else Trust.CURATOR, world=head["world"],
        unit=head["unit"] or "", relation=head["relation"] or "", epsilon=float(head["epsilon"]), delta=float(head["delta"]),
        calibrated_by=head["calibrated_by"], published=float(cells["epsilon_published"].max()),
        provable=float(cells["epsilon_provable"].max()), measured=float(cells["epsilon_measured"].max()),
        assumptions=tuple(head["assumptions"]), values=values, tested=int(tested) if tested == tested else 0,
        guess=0.5 if rare else float(cells["chance"].mean()), people=int(head["train_nodes"] or 0),
        clients=int(clients) if clients == clients else 0, private=bool(head["private"]), raw=bool(head["raw"]), status=status,
        seconds=float(cells["seconds"].mean()), means={c: float(cells[c].mean()) for c in metrics}, facts=facts[0],
        right={seed: one.get("right", "") for (seed, _), one in zip(known, facts, strict=True)},
    )  # fmt: skip


def interval(metric: str, value: float, row: Row) -> tuple[float, float]:
    """(low, high) of one seed's value, by what was tested; the value itself where that was not counted."""
    if metric == "accuracy" and row.tested:
        return chance.wilson_chance_interval(value, row.tested)
    if metric == "average_precision_positive" and row.tested and row.guess:
        return chance.precision_interval(value, row.tested * row.guess)
    positives, negatives = float(row.tested), float(str(row.facts.get("negatives") or 0))
    if metric == "auroc":
        positives = max(1.0, row.tested * (1 - row.means.get("majority_share", 0.5)))
        negatives = max(1.0, row.tested - positives)
    if metric in ("auc", "auroc") and row.tested and negatives:
        half = chance.CHANCE_STANDARD_ERRORS * chance.area_error(value, positives, negatives)
        return max(0.0, value - half), min(1.0, value + half)
    return value, value


def describe_tested(row: Row) -> str:
    """``1,000 nodes``; of whole graphs ``1,000 graphs``."""
    what = _TESTED.get(row.kind, row.one)
    return f"{row.tested:,} {what}{'' if row.tested == 1 else 's'}"


def error_of_difference(one: Row, other: Row) -> float:
    """Standard error of the difference of two rows' means: from what was tested, and over seeds; the larger of the two."""
    both = sorted(one.values.keys() & other.values.keys())
    paired = [chance.paired_chance_variance(one.right.get(s, ""), other.right.get(s, ""), one.tested) for s in both]
    known = [v for v in paired if v is not None]
    alike = bool(known) and len(known) == len(both) == len(one.values) == len(other.values)
    if alike and one.metric == "accuracy":
        sampled = statistics.fmean(known)
    else:
        spans = [(row, *interval(row.metric, row.mean, row)) for row in (one, other)]
        sampled = sum(((high - low) / 2 / chance.CHANCE_STANDARD_ERRORS) ** 2 for _, low, high in spans)
    if alike and len(both) > 1:
        seeds = statistics.variance(one.values[s] - other.values[s] for s in both) / len(both)
    else:
        seeds = sum(row.deviation**2 / max(1, len(row.values)) for row in (one, other))
    return math.sqrt(max(sampled, seeds))


def is_worse(row: Row, than: Row) -> bool:
    """By more than two standard errors of the difference."""
    return than.mean - row.mean > chance.CHANCE_STANDARD_ERRORS * error_of_difference(than, row)


def beats_guessing(row: Row) -> bool:
    """Whether one training of the row is above ``Row.guess`` on every seed, by more than two standard errors."""
    low = row.interval[0]
    return low >= LEAST_INDEX if row.metric == "ari" else low > row.guess


def find_doubt(rows: Sequence[Row]) -> str:
    """Why nothing can be concluded from rows of one data set; empty where something can."""
    counted = [row for row in rows if row.tested]
    fewest = min(counted, key=lambda row: row.tested, default=None)
    least = min((int(str(n)) for row in rows if (n := row.facts.get("least_class")) is not None), default=None)
    kept = [(row.delta, row) for row in rows if row.delta > 0 and row.private and math.isfinite(row.provable)]
    delta, worst = max(kept, key=lambda one: one[0], default=(0.0, None))
    why = []
    if fewest is not None and fewest.tested < _FEWEST_TESTED:
        was = "was" if fewest.tested == 1 else "were"
        why.append(f"only {describe_tested(fewest)} {was} tested, at least {_FEWEST_TESTED} are needed")
    if least is not None and least < _FEWEST_OF_A_CLASS:
        what = _TESTED.get(rows[0].kind, rows[0].one)
        why.append(
            f"the smallest class has {least} {what}{'' if least == 1 else 's'}, at least {_FEWEST_OF_A_CLASS} are needed"
        )
    if worst is not None and delta > _LARGEST_DELTA * (1 + 1e-9):
        one = worst.one if worst.unit == "node" else worst.unit
        why.append(
            f"δ = {phrase_number(delta)} is above {_LARGEST_DELTA:g}: the guarantee may fail for one {one} in {1 / delta:.0f}"
        )
    return "; ".join(why)
