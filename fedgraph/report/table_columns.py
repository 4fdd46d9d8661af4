"""The columns of the page's one table: what each says of a row, how, and on which screens."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fedgraph.report import attack_bounds
from fedgraph.report.phrases import begin_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.rows import METRICS, SHORT_METRICS, Row, format_row, format_row_mean


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
    """A column of the page's table.

    Attributes:
        title: At its head.
        room: 1 always, 2 and 3 only on wider screens, 4 only when a row is opened.
        explain: What its numbers mean; ``{}`` stands for the metrics of the run.
        show: Makes the cell.
        numeric: Whether cells stand at the right.
    """

    key: str
    title: str
    room: int
    explain: str
    show: Callable[[Row], ColumnCell]
    numeric: bool = True


_PROVABLE = (
    "Nobody who sees everything that this row releases can tell two neighbouring inputs apart better than this ε allows. "
    "Proven, and rounded up."
)
_TRUST = "Whom the people in the data must trust with their data."
_ASKED = "The budget that the scenario asked for; what it is worth stands under “ε provable”."
_MEASURED = "An attack showed that ε is at least this, rounded down. It proves no safety."


def _plain(read: Callable[[Row], str | float | None]) -> Callable[[Row], ColumnCell]:
    def show(row: Row) -> ColumnCell:
        value = read(row)
        return ColumnCell("—" if value is None else str(value), "" if value is None else value)

    return show


def _chosen(row: Row) -> str:
    words = Counter(choice.words for choice in row.choices)
    return "; ".join(said if len(words) == 1 else f"{said} ({count} seeds)" for said, count in words.most_common())


def _seconds(row: Row) -> float:
    return sum(e.seconds or 0.0 for e in row.results) / len(row.results)


def _show_provable(s: Row) -> ColumnCell:
    per = f", δ = {s.delta:.3g}" if s.delta is not None else ""
    tip = f"ε ≤ {phrase_upper_bound(s.provable, 4)}{per}, {s.unit} level ({s.head.theorem})."
    if not s.private:
        tip = "Nothing private is released."
    elif math.isinf(s.provable):
        tip = "Nothing is guaranteed: something leaves in clear, or an assumption is broken by the data."
    return ColumnCell(phrase_upper_bound(s.provable), s.provable, tip)


def _show_measured(s: Row) -> ColumnCell:
    if s.measured is None:
        return ColumnCell("—", -1.0, "This row was not attacked.")
    words = attack_bounds.describe_attack_bound(s)
    said = f"{words[0].upper()}{words[1:]}; verdict: {s.verdict.value}."
    return ColumnCell(attack_bounds.format_attack_bound(s), s.measured, said)


def _show_score(s: Row) -> ColumnCell:
    if s.status != "ok":
        return ColumnCell(s.status.split(":")[0], -math.inf, f"{s.status}. It is compared with nothing.")
    values, kind = ", ".join(f"{v:.3f}" for v in s.values(s.metric)), METRICS[s.metric]
    return ColumnCell(format_row(s, 3), s.mean, f"{kind[0].upper()}{kind[1:]}; one value per seed: {values}.")


def _show_others(s: Row) -> ColumnCell:
    names = dict.fromkeys(m for e in s.results for m in e.metrics if m != s.metric)
    return ColumnCell("; ".join(f"{n.replace('_', ' ')} {format_row_mean(s, n)}" for n in names) or "—", "")


PAGE_COLUMNS: tuple[PageColumn, ...] = (
    PageColumn("dataset", "data", 2, "Data set.", _plain(lambda r: r.dataset), False),
    PageColumn("task", "task", 4, "The label of the task in the scenario.", _plain(lambda r: r.task), False),
    PageColumn("name", "method", 1, "Method and variant; its paper is under Methods.", _plain(lambda r: r.name), False),
    PageColumn("trust", "trust", 1, _TRUST, lambda s: ColumnCell(s.trust.value, float(s.trust.rank), s.trust.words), False),
    PageColumn("unit", "unit", 2, "What is private: one edge, one node with its edges, or one whole graph.", lambda s: ColumnCell(s.unit_name, s.unit_name), False),  # noqa: E501
    PageColumn("calibrated_by", "noise chosen for", 4, "Which reading of ε the noise was chosen for: proof or paper.", _plain(lambda r: r.head.noise_for), False),  # noqa: E501
    PageColumn("chosen", "chosen settings", 4, "Settings that were chosen privately; what choosing cost is in ε provable.", _plain(_chosen), False),  # noqa: E501
    PageColumn("epsilon_trial", "ε of one trial", 4, "Where settings were chosen privately: what one training alone costs.", _plain(lambda r: max((round(c.epsilon, 4) for c in r.choices), default=None))),  # noqa: E501
    PageColumn("epsilon", "ε asked", 2, _ASKED, lambda s: ColumnCell("none" if math.isinf(s.target) else phrase_number(s.target), s.target)),  # noqa: E501
    PageColumn("delta", "δ", 4, "The probability with which the bound ε may fail.", lambda s: ColumnCell("—" if s.delta is None else f"{s.delta:.3g}", s.delta or 0.0)),  # noqa: E501
    PageColumn("epsilon_published", "ε published", 3, "What the paper's own formula says of the same noise.", lambda s: ColumnCell(phrase_number(s.published, 2), -1.0 if s.published is None else s.published)),  # noqa: E501
    PageColumn("epsilon_provable", "ε provable", 1, _PROVABLE, _show_provable),
    PageColumn("epsilon_measured", "ε measured", 2, _MEASURED, _show_measured),
    PageColumn("clients", "clients", 4, "Number of clients that hold the data.", lambda s: ColumnCell("—" if s.head.facts.clients is None else f"{s.head.facts.clients:,}", float(s.head.facts.clients or 0))),  # noqa: E501
    PageColumn("mean", "score", 1, "{}. Mean over seeds; ± one standard deviation from two seeds on.", _show_score),
    PageColumn("seeds", "seeds", 4, "Independent repetitions. The ε is of one of them.", _plain(lambda r: r.seeds)),
    PageColumn("others", "other metrics", 4, "Everything else that was measured.", _show_others, False),
    PageColumn("seconds", "seconds", 4, "Seconds from begin to end of one cell, mean over seeds; others may run at the same time.", lambda s: ColumnCell(f"{_seconds(s):.1f}", _seconds(s))),  # noqa: E501
    PageColumn("row", "name for “fedgraph sheet”", 4, "What names this row in a command.", _plain(lambda r: r.row), False),
)  # fmt: skip


def list_page_columns(scores: Sequence[Row]) -> tuple[PageColumn, ...]:
    """The columns that say something in this run."""
    kinds = begin_phrase(" or ".join(dict.fromkeys(METRICS[s.metric] for s in scores)))
    found = []
    for column in PAGE_COLUMNS:
        if column.key == "dataset" and len({s.dataset for s in scores}) < 2:
            continue
        if column.key == "task" and len({s.task for s in scores}) > 1:
            column = replace(column, room=3)
        if column.key == "mean":
            column = replace(column, title=" / ".join(dict.fromkeys(SHORT_METRICS[s.metric] for s in scores)))
        found.append(replace(column, explain=column.explain.format(kinds)))
    return tuple(found)


def fill_page_columns(scores: Sequence[Row]) -> tuple[tuple[Row, tuple[ColumnCell, ...]], ...]:
    """One per row, in their order, with its cells."""
    columns = list_page_columns(scores)
    return tuple((s, tuple(column.show(s) for column in columns)) for s in scores)
