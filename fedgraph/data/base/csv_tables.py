"""CSV files: comma-separated, UTF-8, as published data sets and tables of pairs have them (people's own: ``data.own``).

Empty lines are skipped. Every error is a ``DataError`` of lines ``file:line: found; allowed``: all faults of a file at once.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def _require_names(names: Sequence[str], name: str) -> None:
    counts = Counter(names)
    if (twice := next((n for n in names if counts[n] > 1 or not n), None)) is not None:
        said = "named twice" if twice else "without a name"
        raise DataError(f"{name}:1: column {twice!r} is {said}; allowed: each name once")


def read_headed_csv(content: bytes, name: str, needed: Sequence[str] = ()) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """(names of the columns, the lines after the header with their numbers), each line as wide as the header.

    ``DataError`` lists the lines of other widths, or says which needed columns the header lacks.
    """
    (_, head), *lines = read_csv_lines(content, name, least=1)
    head = [cell.casefold() if cell.casefold() in needed else cell for cell in head]
    lacking = [column for column in needed if column not in head]
    if lacking:
        listed = ", ".join(head)[:_MOST_CHARACTERS]
        raise DataError(f"{name}:1: no column {' and '.join(lacking)}; found: {listed}; a header is needed")
    _require_names(head, name)
    faults = DataFileFaults()
    for number, cells in lines:
        if len(cells) != len(head):
            faults.note(f"{name}:{number}", f"{len(cells)} columns; allowed: {len(head)}, as in the header")
    faults.refuse()
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
