"""The one table of a run: every row with what it achieved, what it guarantees and what an attack found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.report import answer, attacks
from fedgraph.report.report_rows import mean_spread, rounded, rounded_up
from fedgraph.report.scores import METRICS, SHORT, Score


@dataclass(frozen=True)
class Column:
    """explain: what its numbers mean. room: 1 always shown, 2 and 3 only on wider screens, 4 only when a row is opened."""

    key: str
    title: str
    explain: str
    room: int
    numeric: bool = True


@dataclass(frozen=True)
class TableCell:
    """sort: what the column is sorted by. tip: what this very number says."""

    text: str
    sort: float | str
    tip: str = ""


@dataclass(frozen=True)
class TableLine:
    """One row of the table."""

    anchor: str
    unit: str
    trust: str
    method: str
    dataset: str
    provable: float
    cells: tuple[TableCell, ...]


PROVABLE = (
    "Nobody who sees everything that this row releases can tell two neighbouring inputs apart better than this ε allows. "
    "Proven, and rounded up."
)


def columns(scores: Sequence[Score]) -> tuple[Column, ...]:
    """The columns that say something in this run."""
    several = len({s.dataset for s in scores}) > 1
    metric = " / ".join(dict.fromkeys(SHORT[s.metric] for s in scores))
    kinds = " or ".join(dict.fromkeys(METRICS[s.metric] for s in scores)).capitalize()
    task_room = 3 if len({s.task for s in scores}) > 1 else 4
    found = (
        Column("method", "method", "Method and variant; its paper is under Methods.", 1, False),
        Column("unit", "unit", "What one person's data is: an edge, a node with its edges, or a whole graph.", 2, False),
        Column("trust", "trust", "Whom the people in the data must trust with their data.", 1, False),
        Column("target", "ε asked", "The budget that the scenario asked for; what it is worth stands under “ε provable”.", 2),
        Column("provable", "ε provable", PROVABLE, 1),
        Column("measured", "ε measured", "An attack showed that ε is at least this, rounded down. It proves no safety.", 2),
        Column("published", "ε published", "What the paper's own formula says of the same noise.", 3),
        Column("score", metric, f"{kinds}. Mean over seeds; ± one standard deviation from two seeds on.", 1),
        Column("task", "task", "The label of the task in the scenario.", task_room, False),
        Column("calibrated", "noise chosen for", "Which reading of ε the noise was chosen for: proof or paper.", 4, False),
        Column("delta", "δ", "The probability with which the bound ε may fail.", 4),
        Column("clients", "clients", "Number of clients that hold the data.", 4),
        Column("seeds", "seeds", "Independent repetitions. The ε is of one of them.", 4),
        Column("others", "other metrics", "Everything else that was measured.", 4, False),
        Column("seconds", "seconds", "Wall time of one cell, mean over seeds.", 4),
    )
    return (Column("dataset", "data", "Data set.", 2, False), *found) if several else found


def lines(scores: Sequence[Score]) -> tuple[TableLine, ...]:
    """One per score, in their order."""
    keys = [c.key for c in columns(scores)]
    found = []
    for s in scores:
        cells = _cells(s)
        line = tuple(cells[key] for key in keys)
        found.append(TableLine(s.anchor, s.unit, s.trust.value, s.method, s.dataset, s.provable, line))
    return tuple(found)


def _cells(s: Score) -> dict[str, TableCell]:
    row, facts = s.row, s.row["facts"]
    seconds = sum(float(e["seconds"]) for e in row.entries) / s.seeds
    clients = facts.get("clients")
    return {
        "dataset": TableCell(s.dataset, s.dataset),
        "method": TableCell(s.name, s.name),
        "unit": TableCell(s.unit, s.unit),
        "trust": TableCell(s.trust.value, float(s.trust.rank), s.trust.words),
        "target": TableCell("none" if math.isinf(s.target) else rounded(s.target), s.target),
        "provable": TableCell(rounded_up(s.provable), s.provable, _provable(s)),
        "measured": TableCell(attacks.printed_bound(row), -1.0 if s.measured is None else s.measured, _measured(s)),
        "published": TableCell(rounded(s.published, 2), -1.0 if s.published is None else s.published),
        "score": TableCell(*_score(s)),
        "task": TableCell(s.task, s.task),
        "calibrated": TableCell(s.calibrated_by, s.calibrated_by),
        "delta": TableCell("—" if s.delta is None else f"{s.delta:.3g}", s.delta or 0.0),
        "clients": TableCell("—" if clients is None else f"{clients:,}", float(clients or 0)),
        "seeds": TableCell(str(s.seeds), float(s.seeds)),
        "others": TableCell(_others(s) or "—", ""),
        "seconds": TableCell(f"{seconds:.1f}", seconds),
    }


def _provable(s: Score) -> str:
    if not s.private:
        return "Nothing private is released."
    if math.isinf(s.provable):
        return "Nothing is guaranteed: something leaves in clear, or an assumption is broken by the data."
    per = f", δ = {s.delta:.3g}" if s.delta is not None else ""
    return f"ε ≤ {rounded_up(s.provable, 4)}{per}, {s.unit} level ({s.row['theorem']})."


def _measured(s: Score) -> str:
    if s.measured is None:
        return "This row was not attacked."
    words = attacks.describe_bound(s.row)
    return f"{words[0].upper()}{words[1:]}; verdict: {s.verdict.value}."


def _score(s: Score) -> tuple[str, float, str]:
    if s.status != "ok":
        return (s.status.split(":")[0], -math.inf, f"{s.status}. It is compared with nothing.")
    values = ", ".join(f"{v:.3f}" for v in s.row.values(s.metric))
    kind = METRICS[s.metric]
    return (answer.format_mean(s, 3), s.mean, f"{kind[0].upper()}{kind[1:]}; one value per seed: {values}.")


def _others(s: Score) -> str:
    names = list(dict.fromkeys(m for e in s.row.entries for m in e["metrics"] if m != s.metric))
    return "; ".join(f"{name.replace('_', ' ')} {mean_spread(s.row, name)}" for name in names)
