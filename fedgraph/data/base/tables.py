"""The CSV files of ``own/csv``: comma-separated, UTF-8, node ids are any text.

- features: ``id, number, number, …``; defines which nodes there are, and their order. A first line whose cells after the id
  are none of them numbers is a header.
- edges: ``id, id``; further columns (weights) are ignored. A first line that consists of column names such as
  ``source,target`` is a header, unless they are ids of nodes.
- labels: ``id, label``; the label is any text. Nodes without a line are unlabelled. Header as for edges.
- masks (optional): ``id, part`` with the parts train, validation and test: the split that ``split: public`` takes. Nodes
  without a line are in none. Header as for edges.

Empty lines are skipped. Every error is a ``DataError`` of the form ``file:line: found; allowed``.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping

import numpy as np

from fedgraph.errors import DataError

PARTS = ("train", "validation", "test")  # of a masks file

_SIDES = ("", "1", "2", "_1", "_2", "_id")
COLUMN_NAMES = frozenset(name + side for name in ("id", "node", "source", "target", "src", "dst") for side in _SIDES) | {
    *("name", "nodeid", "from", "to", "u", "v", "a", "b", "head", "tail")
}
_LARGEST = float(np.finfo(np.float32).max)


def features(content: bytes, name: str) -> tuple[dict[str, int], np.ndarray]:
    """Node id → row, and float32 [n, d]."""
    rows: dict[str, int] = {}
    values: list[np.ndarray] = []
    lines = list(_lines(content, name, least=1))
    if len(lines[0][1]) > 1 and not any(_is_number(cell) for cell in lines[0][1][1:]):
        lines = lines[1:]
    if not lines:
        raise DataError(f"{name}: a header but no nodes; allowed: one line per node")
    width = len(lines[0][1])
    for number, cells in lines:
        if len(cells) != width:
            raise DataError(f"{name}:{number}: {len(cells)} columns; allowed: {width}, as in the first line of data")
        if cells[0] in rows:
            raise DataError(f"{name}:{number}: node {cells[0]!r} appears a second time; allowed: once")
        rows[cells[0]] = len(rows)
        values.append(_finite(cells, name, number))
    return rows, np.stack(values)


def edges(content: bytes, name: str, rows: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of each line, int64 [m]. A header alone is a graph without edges; an empty file is refused."""
    ends: list[tuple[int, int]] = []
    needed = "two node ids a line, or the header source,target alone for a graph without edges"
    for number, cells in _skip_header(_lines(content, name, least=2, needed=needed), rows, columns=2):
        for cell in cells[:2]:
            if cell not in rows:
                raise DataError(f"{name}:{number}: unknown node {cell!r}; allowed: the {len(rows)} ids of the features file")
        ends.append((rows[cells[0]], rows[cells[1]]))
    table = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def labels(content: bytes, name: str, rows: Mapping[str, int]) -> tuple[np.ndarray, list[str]]:
    """int64 [n] with -1 for nodes without a line, and the class names (sorted; by value when all are integers)."""
    given: dict[int, str] = {}
    for number, cells in _skip_header(_lines(content, name, least=2), rows, columns=1):
        if cells[0] not in rows:
            raise DataError(f"{name}:{number}: unknown node {cells[0]!r}; allowed: the {len(rows)} ids of the features file")
        if rows[cells[0]] in given:
            raise DataError(f"{name}:{number}: node {cells[0]!r} has a second label; allowed: one")
        if not cells[1]:
            raise DataError(f"{name}:{number}: empty label; allowed: any text, or no line at all for an unlabelled node")
        given[rows[cells[0]]] = cells[1]
    classes = sorted(set(given.values()), key=_by_value)
    position = {label: i for i, label in enumerate(classes)}
    result = np.full(len(rows), -1, dtype=np.int64)
    for row, label in given.items():
        result[row] = position[label]
    return result, classes


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


def _finite(cells: list[str], name: str, number: int) -> np.ndarray:
    """The cells after the id, float32; ``DataError`` naming the first that is no finite number."""
    values = []
    for column, cell in enumerate(cells[1:], start=2):
        value = float(cell) if _is_number(cell) else math.nan
        if not abs(value) <= _LARGEST:
            found = repr(cell) if cell else "an empty cell"
            raise DataError(f"{name}:{number}: column {column} of node {cells[0]!r} is {found}; allowed: finite numbers")
        values.append(value)
    return np.array(values, dtype=np.float32)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_0 as 10; nobody else does


def _by_value(label: str) -> tuple[int, int, str]:
    """Integers first and by value, then text."""
    return (0, int(label), "") if re.fullmatch(r"-?[0-9]{1,18}", label) else (1, 0, label)
