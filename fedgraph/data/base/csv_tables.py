"""The CSV files of a federation's clients and of collections of graphs: comma-separated, UTF-8, node ids are any text.

- features: ``id, value, value, …``; defines which nodes there are, and their order. A first line whose cells after the id
  are none of them numbers is a header.
- edges: ``id, id``; further columns (weights) are ignored. A first line that consists of column names such as
  ``source,target`` is a header, unless they are ids of nodes.
- labels: ``id, label``; the label is any text. Nodes without a line or with an empty label have none. Header as for edges.
- masks (optional): ``id, part`` with the parts train, validation and test: the split that ``split: public`` takes. Nodes
  without a line are in none. Header as for edges.

Empty lines are skipped. Every error is a ``DataError`` of lines ``file:line: found; allowed``: all faults of a file at once.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.data.base.files import DataFileFaults
from fedgraph.errors import DataError

CSV_SPLIT_PARTS = ("train", "validation", "test")  # of a masks file
_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # what a table may be split by that is no CSV
_LARGEST = float(np.finfo(np.float32).max)
_MOST_CHARACTERS = 60  # of a cell or a header, in a message

_SIDES = ("", "1", "2", "_1", "_2", "_id")
CSV_ID_COLUMNS = frozenset(
    name + side for name in ("id", "node", "person", "source", "target", "src", "dst") for side in _SIDES
) | {
    *("name", "nodeid", "from", "to", "u", "v", "a", "b", "head", "tail"),
    *("payer", "payee", "sender", "receiver", "account"),
}


@dataclass(frozen=True)
class CsvFeatures:
    """The texts of a features file. Where faults were found, ids, cells and lines are those of sound rows alone.

    Attributes:
        rows: node id → row, in the order of the file.
        names: of the columns after the id, empty without a header.
        cells: of each row its texts, without the id.
        lines: of each row its line in the file.
    """

    rows: dict[str, int]
    names: tuple[str, ...]
    ids: list[str]
    cells: list[list[str]]
    lines: list[int]


def read_csv_features(content: bytes, name: str, faults: DataFileFaults) -> CsvFeatures:
    """The texts of a features file, with or without a header.

    Args:
        faults: where rows of unlike length, nodes without an id and second rows of a node are noted.

    Raises:
        DataError: no node is there, or a column of the header has no name of its own.
    """
    given = read_csv_lines(content, name, least=1)
    names: tuple[str, ...] = ()
    if len(given[0][1]) > 1 and not any(np.isfinite(csv_number(cell)) for cell in given[0][1][1:]):
        names, given = tuple(given[0][1][1:]), given[1:]
    if not given:
        raise DataError(f"{name}: a header but no nodes; allowed: one line per node")
    _require_names(names, name)
    width = len(names) + 1 if names else len(given[0][1])
    rows: dict[str, int] = {}
    sound = []
    for number, cells in given:
        if len(cells) != width:
            faults.note(f"{name}:{number}", f"{len(cells)} columns; allowed: {width}, as in the first line")
        elif not cells[0]:
            faults.note(f"{name}:{number}", "a node without an id; allowed: any text")
        elif cells[0] in rows:
            faults.note(f"{name}:{number}", f"node {cells[0]!r} appears a second time; allowed: once")
        else:
            sound.append((number, cells))
        rows.setdefault(cells[0], len(rows))
    ids, texts = [cells[0] for _, cells in sound], [cells[1:] for _, cells in sound]
    return CsvFeatures(rows, names, ids, texts, [number for number, _ in sound])


def _require_names(names: Sequence[str], name: str) -> None:
    counts = Counter(names)
    if (twice := next((n for n in names if counts[n] > 1 or not n), None)) is not None:
        said = "named twice" if twice else "without a name"
        raise DataError(f"{name}:1: column {twice!r} is {said}; allowed: each name once")


def read_csv_edges(content: bytes, name: str, rows: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray, int]:
    """(both ends of each line, int64 [m] each; how many further columns the widest line has).

    A header alone is a graph without edges; an empty file is refused.
    """
    ends: list[tuple[int, int]] = []
    more, faults = 0, DataFileFaults()
    needed = "two node ids a line, or the header source,target alone for a graph without edges"
    for number, cells in skip_csv_header(read_csv_lines(content, name, least=2, needed=needed), rows, columns=2):
        for cell in cells[:2]:
            if cell not in rows:
                faults.note(f"{name}:{number}", unknown_csv_id(cell, rows, number))
        ends.append((rows.get(cells[0], 0), rows.get(cells[1], 0)))
        more = max(more, len(cells) - 2)
    faults.refuse()
    table = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1], more


def unknown_csv_id(node: str, rows: Mapping[str, int], number: int) -> str:
    """The sentence about an id that no node has, in line ``number``."""
    header = ", or a header whose columns of ids have a name such as id, node or person" if number == 1 else ""
    return f"unknown node {node[:_MOST_CHARACTERS]!r}; allowed: the {len(rows)} ids of the features file{header}"


def csv_label_columns(content: bytes, name: str, rows: Mapping[str, int]) -> tuple[str, ...]:
    """The names of the columns of labels; none without a header. Arguments as for ``read_csv_labels``."""
    _, head = read_csv_lines(content, name, least=2)[0]
    return tuple(head[1:]) if head[0].casefold() in CSV_ID_COLUMNS and head[0] not in rows else ()


def read_csv_labels(content: bytes, name: str, rows: Mapping[str, int], column: str = "") -> list[str | None]:
    """The label of each row as text; None for nodes without a line, or with an empty cell. column: by name; else the first."""
    given: dict[int, str] = {}
    named = csv_label_columns(content, name, rows)
    if column and column not in named:
        raise DataError(f"{name}: there is no column {column!r}; found: {', '.join(named) or 'no header'}")
    place, faults = 1 + (named.index(column) if column else 0), DataFileFaults()
    for number, cells in skip_csv_header(read_csv_lines(content, name, least=2), rows, columns=1):
        where = f"{name}:{number}"
        if cells[0] not in rows:
            faults.note(where, unknown_csv_id(cells[0], rows, number))
        elif rows[cells[0]] in given:
            faults.note(where, f"node {cells[0]!r} has a second label; allowed: one")
        elif len(cells) <= place:
            faults.note(where, f"{len(cells)} columns; allowed: {place + 1} or more, since {column!r} is asked for")
        else:
            given[rows[cells[0]]] = cells[place]
    faults.refuse()
    return [given.get(row) for row in range(len(rows))]


def read_csv_split(content: bytes, name: str, rows: Mapping[str, int]) -> dict[int, str]:
    """Row → the part of the split that a masks file puts it in."""
    found: dict[int, str] = {}
    faults = DataFileFaults()
    for number, cells in skip_csv_header(read_csv_lines(content, name, least=2), rows, columns=1):
        where, part = f"{name}:{number}", cells[1]
        if cells[0] not in rows:
            faults.note(where, unknown_csv_id(cells[0], rows, number))
        elif part not in CSV_SPLIT_PARTS:
            faults.note(where, f"part {part!r}; allowed: {', '.join(CSV_SPLIT_PARTS)}")
        elif found.setdefault(rows[cells[0]], part) != part:
            faults.note(where, f"node {cells[0]!r} is in {found[rows[cells[0]]]} and in {part}; allowed: one part")
    faults.refuse()
    return found


def read_headed_csv(
    content: bytes, name: str, needed: Sequence[str] = (), faults: DataFileFaults | None = None
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """(names of the columns, the lines after the header with their numbers), each line as wide as the header.

    ``DataError`` lists the lines of other widths, or says which needed columns the header lacks. With ``faults`` the former are
    noted there, and such lines are returned, too.
    """
    (_, head), *lines = read_csv_lines(content, name, least=1)
    head = [cell.casefold() if cell.casefold() in needed else cell for cell in head]
    lacking = [column for column in needed if column not in head]
    if lacking:
        listed = ", ".join(head)[:_MOST_CHARACTERS]
        raise DataError(f"{name}:1: no column {' and '.join(lacking)}; found: {listed}; a header is needed")
    _require_names(head, name)
    found = DataFileFaults() if faults is None else faults
    for number, cells in lines:
        if len(cells) != len(head):
            found.note(f"{name}:{number}", f"{len(cells)} columns; allowed: {len(head)}, as in the header")
    if faults is None:
        found.refuse()
    return head, lines


def decode_csv_text(content: bytes, name: str) -> str:
    """The text of a file; ``DataError`` names the first line that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"{name}:{line}: not UTF-8 text ({error.reason} at byte {error.start}); allowed: UTF-8 (in a spreadsheet: save as "
            "CSV UTF-8); a pickle is refused"
        ) from error


def read_csv_lines(content: bytes, name: str, least: int, needed: str = "at least one line") -> list[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, with their numbers; spaces around cells are cut off.

    The reader is Python's ``csv``, because it says in which line of the file it is: an error can name it.

    Args:
        least: how many cells a line needs.
        needed: what the message about an empty file asks for.

    Raises:
        DataError: the file is empty or not split by commas, or lines have too few cells; all of these are listed.
    """
    reader = csv.reader(io.StringIO(decode_csv_text(content, name), newline=""), strict=True)
    found: list[tuple[int, list[str]]] = []
    faults = DataFileFaults()
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if not any(stripped):
                continue
            if not found and len(stripped) == 1 and (other := next((o for o in _OTHERS if o in stripped[0]), None)):
                where, what = f"{name}:{reader.line_num}", _OTHERS[other]
                raise DataError(f"{where}: split by {what}; allowed: commas (save it again, split by commas)")
            if len(stripped) < least:
                faults.note(f"{name}:{reader.line_num}", f"{len(stripped)} column; allowed: {least} or more, split by commas")
            found.append((reader.line_num, stripped))
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: {error}; allowed: comma-separated text") from error
    faults.refuse()
    if not found:
        raise DataError(f"{name}: empty; allowed: {needed}")
    return found


def skip_csv_header(
    lines: Iterable[tuple[int, list[str]]], rows: Mapping[str, int], columns: int
) -> Iterator[tuple[int, list[str]]]:
    """The lines without a first one that is a header: its first cells are names of columns and not nodes.

    Args:
        rows: node id → row.
        columns: how many cells are looked at.
    """
    for position, (number, cells) in enumerate(lines):
        if position == 0 and all(c.casefold() in CSV_ID_COLUMNS and c not in rows for c in cells[:columns]):
            continue
        yield number, cells


def csv_number(cell: str) -> float:
    """The finite number in a cell, NaN where there is none, or one that float32 cannot hold."""
    if "_" in cell:  # Python reads 1_0 as 10; nobody else does
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) and abs(value) <= _LARGEST else math.nan
