"""``TABLE_COLUMNS``: what every table of a run can say of a row. A new column is one line of it.

results.csv, results.json, ``Run.table``, the terminal and the page's one table all read it. Example: a column with the
number of rounds, in every one of them, is

    TableColumn("rounds", "rounds", lambda n: n.head.facts.rounds, page=PageColumn(4, "Rounds of the federation."))
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fedgraph.cells import CellEntry, ClientResultCellFacts, ParticipationCellFacts
from fedgraph.privacy import Protection
from fedgraph.report import attack_bounds
from fedgraph.report.phrases import begin_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.report_rows import ReportRow, format_row_mean
from fedgraph.report.scores import SCORE_METRICS, SHORT_SCORE_METRICS, Score, format_score_mean

ColumnValue = str | float | None


@dataclass(frozen=True)
class ColumnNumber:
    """One number as a column reads it: of one cell, client and metric in results.csv; elsewhere of a row over its seeds.

    Attributes:
        row: The cell alone, or all seeds.
        metric: Its name; None for a cell that failed.
        provable: The ε of that client, or of the row.
        status: ``ok``, or why there is no number.
        participation: How the client took part; of results.csv only, as the next three.
        client: Its name, or ``all``.
        source: Where the data came from.
        score: The row as it is compared; None in results.csv.
    """

    row: ReportRow
    metric: str | None
    value: float | None
    provable: float | None
    status: str = "ok"
    participation: str | None = None
    client: str | None = None
    scenario: str = ""
    source: str = ""
    run: str = ""
    score: Score | None = None

    @property
    def head(self) -> CellEntry:
        """The row's first cell."""
        return self.row.head


@dataclass(frozen=True)
class ColumnCell:
    """A cell of the page's table.

    Attributes:
        sort: What the column is sorted by.
        tip: What this very number says.
    """

    text: str
    sort: float | str
    tip: str = ""


@dataclass(frozen=True)
class PageColumn:
    """How the page shows a column.

    Attributes:
        room: 1 always, 2 and 3 only on wider screens, 4 only when a row is opened.
        explain: What its numbers mean; ``{}`` stands for the metrics of the run.
        show: Makes the cell; None: the value as it is.
        numeric: Whether cells stand at the right.
    """

    room: int
    explain: str
    show: Callable[[Score], ColumnCell] | None = None
    numeric: bool = True


@dataclass(frozen=True)
class TableColumn:
    """One column of every table.

    Attributes:
        key: Its name in results.csv, results.json and ``Run.table``.
        title: At its head on the page and in the terminal.
        csv: Whether results.csv and results.json have it.
        table: Whether ``Run.table`` has it.
        page: How the page shows it; None: not at all.
    """

    key: str
    title: str
    value: Callable[[ColumnNumber], ColumnValue]
    csv: bool = True
    table: bool = True
    page: PageColumn | None = None


_PROVABLE = (
    "Nobody who sees everything that this row releases can tell two neighbouring inputs apart better than this ε allows. "
    "Proven, and rounded up."
)
_TRUST = "Whom the people in the data must trust with their data."
_ASKED = "The budget that the scenario asked for; what it is worth stands under “ε provable”."
_MEASURED = "An attack showed that ε is at least this, rounded down. It proves no safety."


def _held(number: ColumnNumber, of: Callable[[Protection], str]) -> str | None:
    return None if number.head.protection is None else of(number.head.protection)


def _trust(number: ColumnNumber) -> str:
    if number.score is not None:
        return number.score.trust.value
    return number.head.world.trust.value


def _chosen(number: ColumnNumber) -> str:
    words = Counter(choice.words for choice in number.row.choices)
    return "; ".join(said if len(words) == 1 else f"{said} ({count} seeds)" for said, count in words.most_common())


def _seconds(row: ReportRow) -> float:
    return sum(e.seconds for e in row.entries) / len(row.entries)


def _show_provable(s: Score) -> ColumnCell:
    per = f", δ = {s.delta:.3g}" if s.delta is not None else ""
    tip = f"ε ≤ {phrase_upper_bound(s.provable, 4)}{per}, {s.unit} level ({s.row.head.theorem})."
    if not s.private:
        tip = "Nothing private is released."
    elif math.isinf(s.provable):
        tip = "Nothing is guaranteed: something leaves in clear, or an assumption is broken by the data."
    return ColumnCell(phrase_upper_bound(s.provable), s.provable, tip)


def _show_measured(s: Score) -> ColumnCell:
    if s.measured is None:
        return ColumnCell("—", -1.0, "This row was not attacked.")
    words = attack_bounds.describe_attack_bound(s.row)
    said = f"{words[0].upper()}{words[1:]}; verdict: {s.verdict.value}."
    return ColumnCell(attack_bounds.format_attack_bound(s.row), s.measured, said)


def _show_score(s: Score) -> ColumnCell:
    if s.status != "ok":
        return ColumnCell(s.status.split(":")[0], -math.inf, f"{s.status}. It is compared with nothing.")
    values, kind = ", ".join(f"{v:.3f}" for v in s.row.values(s.metric)), SCORE_METRICS[s.metric]
    return ColumnCell(format_score_mean(s, 3), s.mean, f"{kind[0].upper()}{kind[1:]}; one value per seed: {values}.")


def _show_others(s: Score) -> ColumnCell:
    names = dict.fromkeys(m for e in s.row.entries for m in e.metrics if m != s.metric)
    return ColumnCell("; ".join(f"{n.replace('_', ' ')} {format_row_mean(s.row, n)}" for n in names) or "—", "")


def _of_score(read: Callable[[Score], ColumnValue]) -> Callable[[ColumnNumber], ColumnValue]:
    """A value of rows over seeds only; None in results.csv."""
    return lambda number: None if number.score is None else read(number.score)


TABLE_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("run", "run", lambda n: n.run, csv=False),
    TableColumn("scenario", "scenario", lambda n: n.scenario, table=False),
    TableColumn("dataset", "data", lambda n: n.head.dataset, page=PageColumn(2, "Data set.", numeric=False),
    ),
    TableColumn("source", "source of the data", lambda n: n.source, table=False),
    TableColumn("task", "task", lambda n: n.head.task, page=PageColumn(4, "The label of the task in the scenario.", numeric=False)),  # noqa: E501
    TableColumn("name", "method", _of_score(lambda s: s.name), csv=False, page=PageColumn(1, "Method and variant; its paper is under Methods.", numeric=False)),  # noqa: E501
    TableColumn("method", "method", lambda n: n.head.method),
    TableColumn("variant", "variant", lambda n: n.head.variant),
    TableColumn("trust", "trust", _trust, page=PageColumn(1, _TRUST, lambda s: ColumnCell(s.trust.value, float(s.trust.rank), s.trust.words), numeric=False)),  # noqa: E501
    TableColumn("world", "trained together", lambda n: n.head.world.kind.value),
    TableColumn("viewer", "viewer", lambda n: _held(n, lambda p: p.viewer.value)),
    TableColumn("unit", "unit", lambda n: _held(n, lambda p: p.unit.value), page=PageColumn(2, "What is private: one edge, one node with its edges, or one whole graph.", lambda s: ColumnCell(s.unit_name, s.unit_name), numeric=False)),  # noqa: E501
    TableColumn("relation", "neighbouring relation", lambda n: _held(n, lambda p: p.relation.value)),
    TableColumn("assumptions", "assumptions", lambda n: _held(n, lambda p: " ".join(a.value for a in p.assumptions)) or ""),
    TableColumn("calibrated_by", "noise chosen for", lambda n: n.head.noise_for, page=PageColumn(4, "Which reading of ε the noise was chosen for: proof or paper.", numeric=False)),  # noqa: E501
    TableColumn("chosen", "chosen settings", _chosen, page=PageColumn(4, "Settings that were chosen privately; what choosing cost is in ε provable.", numeric=False)),  # noqa: E501
    TableColumn("epsilon_trial", "ε of one trial", lambda n: max((round(c.epsilon, 4) for c in n.row.choices), default=None), page=PageColumn(4, "Where settings were chosen privately: what one training alone costs.")),  # noqa: E501
    TableColumn("epsilon", "ε asked", lambda n: n.head.epsilon, page=PageColumn(2, _ASKED, lambda s: ColumnCell("none" if math.isinf(s.target) else phrase_number(s.target), s.target))),  # noqa: E501
    TableColumn("delta", "δ", lambda n: n.head.delta, page=PageColumn(4, "The probability with which the bound ε may fail.", lambda s: ColumnCell("—" if s.delta is None else f"{s.delta:.3g}", s.delta or 0.0))),  # noqa: E501
    TableColumn("epsilon_published", "ε published", lambda n: n.row.published, page=PageColumn(3, "What the paper's own formula says of the same noise.", lambda s: ColumnCell(phrase_number(s.published, 2), -1.0 if s.published is None else s.published))),  # noqa: E501
    TableColumn("epsilon_provable", "ε provable", lambda n: n.provable, page=PageColumn(1, _PROVABLE, _show_provable),
    ),
    TableColumn("epsilon_measured", "ε measured", lambda n: n.head.epsilon_measured if len(n.row.entries) == 1 else n.row.measured, page=PageColumn(2, _MEASURED, _show_measured)),  # of several cells the bound on all their guesses together  # noqa: E501
    TableColumn("paths", "ε of each path", lambda n: " ".join(f"{path}={price:.6g}" for path, price in n.head.paths.items())),
    TableColumn("clients", "clients", lambda n: n.head.facts.clients, page=PageColumn(4, "Number of clients that hold the data.", lambda s: ColumnCell("—" if s.row.head.facts.clients is None else f"{s.row.head.facts.clients:,}", float(s.row.head.facts.clients or 0)))),  # noqa: E501
    TableColumn("cut_edges", "edges between clients", lambda n: n.head.facts.cut_edges),
    TableColumn("public", "public", lambda n: n.head.facts.public),
    TableColumn("seed", "seed", lambda n: n.head.seed, table=False),
    TableColumn("participation", "participation", lambda n: n.participation, table=False),
    TableColumn("client", "client", lambda n: n.client, table=False),
    TableColumn("metric", "metric", lambda n: n.metric),
    TableColumn("value", "value", lambda n: n.value, table=False),
    TableColumn("mean", "score", _of_score(lambda s: s.mean), csv=False, page=PageColumn(1, "{}. Mean over seeds; ± one standard deviation from two seeds on.", _show_score)),  # noqa: E501
    TableColumn("deviation", "standard deviation", _of_score(lambda s: s.deviation), csv=False),
    TableColumn("seeds", "seeds", lambda n: len(n.row.entries), csv=False, page=PageColumn(4, "Independent repetitions. The ε is of one of them.")),  # noqa: E501
    TableColumn("others", "other metrics", _of_score(lambda s: _show_others(s).text), csv=False, table=False, page=PageColumn(4, "Everything else that was measured.", _show_others, numeric=False)),  # noqa: E501
    TableColumn("seconds", "seconds", lambda n: round(_seconds(n.row), 3), page=PageColumn(4, "Seconds from begin to end of one cell, mean over seeds; others may run at the same time.", lambda s: ColumnCell(f"{_seconds(s.row):.1f}", _seconds(s.row)))),  # noqa: E501
    TableColumn("status", "status", lambda n: n.status),
    TableColumn("anchor", "name for “fedgraph sheet”", _of_score(lambda s: s.anchor), csv=False),
)  # fmt: skip


def column_numbers_of_cells(scenario: str, source: str, entries: Iterable[CellEntry]) -> list[ColumnNumber]:
    """One per cell and metric; where clients were counted one by one, per client, too.

    Such numbers say in ``provable`` what the dearest unit of that client pays, and ``client`` is ``all`` for everybody.
    """
    found = []
    for e in entries:
        whole = ClientResultCellFacts("all", "all", 0, 0, e.metrics, e.epsilon_provable, "")
        instead = (
            isinstance(e.facts, ParticipationCellFacts) and e.facts.results
        )  # what a cell says there is of everybody's record
        for c in e.facts.results if instead else (whole, *e.facts.results):
            one = ColumnNumber(ReportRow((e,)), None, None, c.epsilon, e.status, c.participation, c.client, scenario, source)
            found += [replace(one, metric=metric, value=value) for metric, value in c.metrics.items()]
    return found


def column_number_of_score(score: Score, run: str = "") -> ColumnNumber:
    """A row over its seeds, by the metric that it is compared by.

    Args:
        run: Which of several runs; empty for one.
    """
    return ColumnNumber(score.row, score.metric, score.mean, score.provable, score.status, run=run, score=score)


def fill_column_cell(column: TableColumn, score: Score) -> ColumnCell:
    """What the page's table shows in a column.

    Args:
        column: One that the page does not have shows its value as it is.
    """
    if column.page is not None and column.page.show is not None:
        return column.page.show(score)
    value = column.value(column_number_of_score(score))
    return ColumnCell("—" if value is None else str(value), "" if value is None else value)


def list_page_columns(scores: Sequence[Score]) -> tuple[tuple[TableColumn, PageColumn], ...]:
    """The columns that say something in this run, each with how the page shows it."""
    kinds = begin_phrase(" or ".join(dict.fromkeys(SCORE_METRICS[s.metric] for s in scores)))
    found = []
    for column in TABLE_COLUMNS:
        page = column.page
        if page is None or (column.key == "dataset" and len({s.dataset for s in scores}) < 2):
            continue
        if column.key == "task" and len({s.task for s in scores}) > 1:
            page = replace(page, room=3)
        if column.key == "mean":
            column = replace(column, title=" / ".join(dict.fromkeys(SHORT_SCORE_METRICS[s.metric] for s in scores)))
        found.append((column, replace(page, explain=page.explain.format(kinds))))
    return tuple(found)


def fill_page_columns(scores: Sequence[Score]) -> tuple[tuple[Score, tuple[ColumnCell, ...]], ...]:
    """One per score, in their order, with its cells."""
    columns = [column for column, _ in list_page_columns(scores)]
    return tuple((s, tuple(fill_column_cell(c, s) for c in columns)) for s in scores)
