"""The statements of all rows, so that what several rows share is said once: rows of one method and variant are one family."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.report import statement
from fedgraph.report.report_rows import Row
from fedgraph.report.scores import row_anchor
from fedgraph.report.statement import Statement


@dataclass(frozen=True)
class RowStatement:
    """One row. anchor: the name of its place in the page. words: what it says alone; the rest stands in its family."""

    anchor: str
    at: str
    words: Statement


@dataclass(frozen=True)
class StatementFamily:
    """title: method and variant. sentences, conditions, notes: what holds for each of ``said``."""

    title: str
    task: str
    dataset: str
    said: tuple[RowStatement, ...]
    sentences: tuple[str, ...]
    conditions: tuple[str, ...]
    notes: tuple[str, ...]


def group_statements(rows: Sequence[Row]) -> tuple[StatementFamily, ...]:
    """Every row that states a protection, in order of first appearance."""
    groups: dict[tuple[str, str, str], list[tuple[Row, Statement]]] = {}
    for row in rows:
        if row.head.protection is not None:
            said = statement.describe_row(row)
            groups.setdefault((str(row.head.task), str(row.head.dataset), said.who), []).append((row, said))
    return tuple(_family(*key, members) for key, members in groups.items())


def _family(task: str, dataset: str, who: str, members: Sequence[tuple[Row, Statement]]) -> StatementFamily:
    every = [said for _, said in members]
    sentences = _shared([said.sentences for said in every])
    conditions = _shared([said.conditions for said in every])
    notes = _shared([said.notes for said in every])
    own = tuple(
        RowStatement(
            row_anchor(row),
            said.at,
            Statement(
                said.who,
                said.at,
                tuple(s for s in said.sentences if s not in sentences),
                tuple(s for s in said.conditions if s not in conditions),
                tuple(s for s in said.notes if s not in notes),
            ),
        )
        for row, said in members
    )
    return StatementFamily(who, task, dataset, own, sentences, conditions, notes)


def _shared(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What stands in each of them, in the order of the first; nothing where there is only one row to share it."""
    if len(lists) < 2:
        return ()
    return tuple(s for s in lists[0] if all(s in other for other in lists[1:]))
