"""The CSV files of ``own/csv``: comma-separated, UTF-8, node ids are any text.

- features: ``id, value, value, …``; defines which nodes there are, and their order. A first line whose cells after the id
  are none of them numbers is a header.
- edges: ``id, id``; further columns (weights) are ignored. A first line that consists of column names such as
  ``source,target`` is a header, unless they are ids of nodes.
- labels: ``id, label``; the label is any text. Nodes without a line or with an empty label have none. Header as for edges.
- masks (optional): ``id, part`` with the parts train, validation and test: the split that ``split: public`` takes. Nodes
  without a line are in none. Header as for edges.

Empty lines are skipped. Every error is a ``DataError`` of the form ``file:line: found; allowed``.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.errors import DataError

PARTS = ("train", "validation", "test")  # of a masks file

_SIDES = ("", "1", "2", "_1", "_2", "_id")
COLUMN_NAMES = frozenset(name + side for name in ("id", "node", "source", "target", "src", "dst") for side in _SIDES) | {
    *("name", "nodeid", "from", "to", "u", "v", "a", "b", "head", "tail")
}


@dataclass(frozen=True)
class FeatureTable:
    """rows: node id → row, in the order of the file. names: of the columns after the id, empty without a header.

    cells: the texts of each row. lines: the line of each row in the file.
    """

    rows: dict[str, int]
    names: tuple[str, ...]
    cells: list[list[str]]
    lines: list[int]


def feature_table(content: bytes, name: str) -> FeatureTable:
    """The texts of a features file. ``DataError`` for rows of unlike length, a second row of a node, or no node at all."""
    given = list(_lines(content, name, least=1))
    names: tuple[str, ...] = ()
    if len(given[0][1]) > 1 and not any(_is_number(cell) for cell in given[0][1][1:]):
        names, given = tuple(given[0][1][1:]), given[1:]
    if not given:
        raise DataError(f"{name}: a header but no nodes; allowed: one line per node")
    if names and (twice := next((n for n in names if names.count(n) > 1 or not n), None)) is not None:
        raise DataError(
            f"{name}:1: column {twice!r} is {'named twice' if twice else 'without a name'}; allowed: each name once"
        )
    width = len(names) + 1 if names else len(given[0][1])
    rows: dict[str, int] = {}
    for number, cells in given:
        if len(cells) != width:
            raise DataError(f"{name}:{number}: {len(cells)} columns; allowed: {width}, as in the first line")
        if cells[0] in rows:
            raise DataError(f"{name}:{number}: node {cells[0]!r} appears a second time; allowed: once")
        rows[cells[0]] = len(rows)
    return FeatureTable(rows, names, [cells[1:] for _, cells in given], [number for number, _ in given])


def without_column(table: FeatureTable, column: str, name: str) -> tuple[FeatureTable, list[str | None]]:
    """(the table without a column, that column's texts); ``DataError`` where there is none."""
    if column not in table.names:
        raise DataError(f"{name}: there is no column {column!r}; found: {', '.join(table.names) or 'no header'}")
    place = table.names.index(column)
    rest = [cells[:place] + cells[place + 1 :] for cells in table.cells]
    words: list[str | None] = [cells[place] for cells in table.cells]
    return replace(table, names=table.names[:place] + table.names[place + 1 :], cells=rest), words


def edges(content: bytes, name: str, rows: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray, int]:
    """(both ends of each line, int64 [m] each; how many further columns the widest line has).

    A header alone is a graph without edges; an empty file is refused.
    """
    ends: list[tuple[int, int]] = []
    more = 0
    needed = "two node ids a line, or the header source,target alone for a graph without edges"
    for number, cells in _skip_header(_lines(content, name, least=2, needed=needed), rows, columns=2):
        for cell in cells[:2]:
            if cell not in rows:
                raise DataError(f"{name}:{number}: unknown node {cell!r}; allowed: the {len(rows)} ids of the features file")
        ends.append((rows[cells[0]], rows[cells[1]]))
        more = max(more, len(cells) - 2)
    table = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1], more


def label_columns(content: bytes, name: str, rows: Mapping[str, int]) -> tuple[str, ...]:
    """The names of the columns of labels; none without a header."""
    _, head = next(_lines(content, name, least=2))
    return tuple(head[1:]) if head[0].casefold() in COLUMN_NAMES and head[0] not in rows else ()


def label_words(content: bytes, name: str, rows: Mapping[str, int], column: str = "") -> list[str | None]:
    """The label of each row as text; None for nodes without a line, or with an empty cell. column: by name; else the first."""
    given: dict[int, str] = {}
    named = label_columns(content, name, rows)
    if column and column not in named:
        raise DataError(f"{name}: there is no column {column!r}; found: {', '.join(named) or 'no header'}")
    place = 1 + (named.index(column) if column else 0)
    for number, cells in _skip_header(_lines(content, name, least=2), rows, columns=1):
        if cells[0] not in rows:
            raise DataError(f"{name}:{number}: unknown node {cells[0]!r}; allowed: the {len(rows)} ids of the features file")
        if rows[cells[0]] in given:
            raise DataError(f"{name}:{number}: node {cells[0]!r} has a second label; allowed: one")
        if len(cells) <= place:
            raise DataError(
                f"{name}:{number}: {len(cells)} columns; allowed: {place + 1} or more, since {column!r} is asked for"
            )
        given[rows[cells[0]]] = cells[place]
    return [given.get(row) for row in range(len(rows))]


def parts(content: bytes, name: str, rows: Mapping[str, int]) -> dict[int, str]:
    """Row → the part of the split that a masks file puts it in."""
    found: dict[int, str] = {}
    for number, cells in _skip_header(_lines(content, name, least=2), rows, columns=1):
        if cells[0] not in rows:
            raise DataError(f"{name}:{number}: unknown node {cells[0]!r}; allowed: the {len(rows)} ids of the features file")
        row, part = rows[cells[0]], cells[1]
        if part not in PARTS:
            raise DataError(f"{name}:{number}: part {part!r}; allowed: {', '.join(PARTS)}")
        if found.get(row, part) != part:
            raise DataError(f"{name}:{number}: node {cells[0]!r} is in {found[row]} and in {part}; allowed: one part")
        found[row] = part
    return found


def _lines(content: bytes, name: str, least: int, needed: str = "at least one line") -> Iterator[tuple[int, list[str]]]:
    """(line number, stripped cells) of each line that is not empty, with ``least`` cells or more. needed: for an empty file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 text ({error.reason} at byte {error.start}); a pickle is refused") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    empty = True
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if not any(stripped):
                continue
            empty = False
            if len(stripped) < least:
                raise DataError(f"{name}:{reader.line_num}: {len(stripped)} column; allowed: {least} or more, split by commas")
            yield reader.line_num, stripped
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: {error}; allowed: comma-separated text") from error
    if empty:
        raise DataError(f"{name}: empty; allowed: {needed}")


def _skip_header(
    lines: Iterator[tuple[int, list[str]]], rows: Mapping[str, int], columns: int
) -> Iterator[tuple[int, list[str]]]:
    """Leave out a first line whose first ``columns`` cells are column names and not nodes."""
    for position, (number, cells) in enumerate(lines):
        if position == 0 and all(c.casefold() in COLUMN_NAMES and c not in rows for c in cells[:columns]):
            continue
        yield number, cells


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_0 as 10; nobody else does
