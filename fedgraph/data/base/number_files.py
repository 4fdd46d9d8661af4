"""Published text files: tables of numbers, and JSON; one clear error per fault."""

import json
import math
import warnings

import numpy as np

from fedgraph.data.base import csv_tables
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.errors import DataError

_LARGEST = 2**53  # whole numbers beyond it are not held exactly


def read(raw: RawFiles, name: str, columns: int | None = None, skip: int = 0, blanks: bool = False) -> np.ndarray:
    """float64 [rows, columns] from numbers that are split by commas; empty lines at the end are left out.

    columns: None takes those of the first line. skip: header lines. blanks: white space splits numbers, too.

    Raises ``DataError`` that lists all faults with file, line, what was found and what is allowed.
    """
    lines = raw.read(name).split(b"\n")[skip:]
    if blanks:
        lines = [b",".join(line.replace(b",", b" ").split()) for line in lines]
    while lines and not lines[-1].strip():
        lines.pop()
    wanted = columns or (lines[0].count(b",") + 1 if lines else 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy's way to say that some text is no number
        try:
            found = np.fromstring(b",".join(lines).decode("ascii"), dtype=np.float64, sep=",")
        except (UnicodeDecodeError, DeprecationWarning, ValueError):
            found = np.zeros(0)
    faults, file = DataFileFaults(), str(raw.folder / name)
    whole_table = found.size == wanted * len(lines) and all(line.count(b",") + 1 == wanted for line in lines)
    for number, line in enumerate([] if whole_table else lines, 1 + skip):
        shown = line[:60].decode("utf-8", "replace")
        cells = shown.split(",") if line.strip() else []
        if line.count(b",") + bool(cells) != wanted:
            faults.note(f"{file}:{number}", f"{len(cells)} cells in {shown!r}; allowed: {wanted} numbers")
        elif any(math.isnan(csv_tables.csv_number(cell.decode("utf-8", "replace"))) for cell in line.split(b",")):
            faults.note(f"{file}:{number}", f"found {shown!r}; allowed: {wanted} finite numbers")
    faults.refuse()
    if not whole_table:
        raise DataError(f"{file}: not a table of numbers; allowed: {wanted} numbers a line, with commas between")
    table = found.reshape(len(lines), wanted)
    for row in np.flatnonzero(~np.isfinite(table).all(axis=1)):
        faults.note(f"{file}:{row + 1 + skip}", "found NaN or infinity; allowed: finite numbers")
    faults.refuse()
    return table


def read_whole_numbers(
    raw: RawFiles,
    name: str,
    columns: int,
    below: int | None,
    *,
    skip: int = 0,
    blanks: bool = False,
    least: int | None = 0,
    what: str = "",
) -> np.ndarray:
    """int64 [rows, columns]: ``read``, then ``check_whole_numbers``."""
    return check_whole_numbers(read(raw, name, columns, skip, blanks), below, raw, name, skip, least, what)


def check_whole_numbers(
    table: np.ndarray, below: int | None, raw: RawFiles, name: str, skip: int = 0, least: int | None = 0, what: str = ""
) -> np.ndarray:
    """int64, the same numbers. what: they count.

    ``DataError`` lists those that are not whole, or outside ``least`` … ``below`` − 1 (None: no limit).
    """
    low, high = (-_LARGEST if least is None else least), (_LARGEST if below is None else below)
    limits = "" if least is None else f" ≥ {least}" if below is None else f" {least} … {below - 1}"
    faults = DataFileFaults()
    for place in np.argwhere((table % 1 != 0) | (table < low) | (table >= high)):
        found = f"found {table[tuple(place)]:.12g}; allowed: whole numbers{limits}{what and f', the {what}'}"
        faults.note(f"{raw.folder / name}:{place[0] + 1 + skip}", found)
    faults.refuse()
    return np.asarray(table, dtype=np.int64)


def read_json(raw: RawFiles, name: str) -> dict[str, object]:
    """A JSON file that holds one mapping."""
    try:
        found = json.loads(raw.read(name))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{raw.folder / name}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise DataError(f"{raw.folder / name}: holds a {type(found).__name__}; allowed: a mapping")
    return found
