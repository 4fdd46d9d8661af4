"""Number tables, plain arrays and sparse archives as large published data sets keep them; one clear error per fault."""

import gzip
import io
import json
import warnings
import zlib
from dataclasses import replace

import numpy as np

from fedgraph.data.base import npz
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph
from fedgraph.types import Masks as Masks

_DAMAGED = (ValueError, OSError, EOFError, KeyError, TypeError, OverflowError, MemoryError, SyntaxError, zlib.error)


def text(raw: RawFiles, name: str) -> bytes:
    """The bytes of a text file, unpacked where its name ends in ``.gz``."""
    content = raw.read(name)
    if not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except _DAMAGED as error:
        raise DataError(f"{raw.folder / name}: not a whole gzip file ({error})") from error


def numbers(raw: RawFiles, name: str, columns: int | None = None, skip: int = 0) -> np.ndarray:
    """float64 [rows, columns] from comma-separated numbers. columns: None takes those of the first line. skip: header lines.

    Raises ``DataError`` naming file, line, what was found and what is allowed.
    """
    lines = text(raw, name).split(b"\n")[skip:]
    while lines and not lines[-1].strip():
        lines.pop()
    wanted = columns or (lines[0].count(b",") + 1 if lines else 1)
    joined = b",".join(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy's way to say that some text is no number
        try:
            found = np.fromstring(joined.decode("ascii"), dtype=np.float64, sep=",")
        except (UnicodeDecodeError, DeprecationWarning, ValueError):
            found = np.zeros(0)
    if found.size != wanted * len(lines) or any(line.count(b",") + 1 != wanted for line in lines):
        raise _first_wrong(raw, name, lines, wanted, skip)
    table = found.reshape(len(lines), wanted)
    if not np.isfinite(table).all():
        line = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0]) + 1 + skip
        raise DataError(f"{raw.folder / name}:{line}: found NaN or infinity; allowed: finite numbers")
    return table


def _first_wrong(raw: RawFiles, name: str, lines: list[bytes], wanted: int, skip: int) -> DataError:
    for number, line in enumerate(lines, 1 + skip):
        cells = line.split(b",")
        shown = line[:60].decode("utf-8", "replace")
        if len(cells) != wanted:
            return DataError(f"{raw.folder / name}:{number}: {len(cells)} cells in {shown!r}; allowed: {wanted} numbers")
        for cell in cells:
            try:
                float(cell)
            except ValueError:
                return DataError(f"{raw.folder / name}:{number}: found {shown!r}; allowed: {wanted} numbers")
    return DataError(f"{raw.folder / name}: not a table of numbers; allowed: {wanted} numbers a line, with commas between")


def whole(table: np.ndarray, below: int, raw: RawFiles, name: str, skip: int = 0, least: int = 0) -> np.ndarray:
    """int64, the same numbers; ``DataError`` for one that is not whole, or outside ``least`` … ``below`` − 1."""
    wrong = (table % 1 != 0) | (table < least) | (table >= below)
    if wrong.any():
        place = np.argwhere(wrong)[0]
        value = table[tuple(place)]
        line = int(place[0]) + 1 + skip
        raise DataError(f"{raw.folder / name}:{line}: found {value:g}; allowed: whole numbers {least} … {below - 1}")
    return np.asarray(table, dtype=np.int64)


def array(raw: RawFiles, name: str) -> np.ndarray:
    """A plain ``.npy`` file of numbers; a pickle is refused."""
    try:
        found = np.load(io.BytesIO(raw.read(name)), allow_pickle=False)
    except _DAMAGED as error:
        raise DataError(f"{raw.folder / name}: not a plain array ({error}); a pickle is refused") from error
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiub":
        raise DataError(
            f"{raw.folder / name}: holds {getattr(found, 'dtype', type(found).__name__)}; allowed: one array of numbers"
        )
    return found


def mapping(raw: RawFiles, name: str) -> dict[str, object]:
    """A JSON file that holds one mapping."""
    try:
        found = json.loads(raw.read(name))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{raw.folder / name}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise DataError(f"{raw.folder / name}: holds a {type(found).__name__}; allowed: a mapping")
    return found


def ends(raw: RawFiles, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """(sources, targets, nodes) of a sparse matrix that scipy saved (``data, indices, indptr, shape``, or ``row, col``)."""
    file = str(raw.folder / name)
    parts = npz.members(raw.read(name), file, ("indices", "indptr", "row", "col", "shape"))
    shape = parts.get("shape", np.zeros(0))
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape[0] != shape[1] or shape[0] < 1:
        raise DataError(f"{file}: shape is {shape.tolist()}; allowed: [n, n] with at least one node")
    n = int(shape[0])
    if {"row", "col"} <= set(parts):
        sources, targets = parts["row"], parts["col"]
    elif {"indices", "indptr"} <= set(parts):
        targets, indptr = parts["indices"], parts["indptr"]
        steps = np.diff(indptr) if indptr.dtype.kind in "iu" and indptr.ndim == 1 else np.array([-1])
        if indptr.shape != (n + 1,) or (steps < 0).any() or indptr[0] != 0 or indptr[-1] != targets.size:
            raise DataError(f"{file}: indptr does not fit {n} rows and {targets.size} entries; allowed: a CSR matrix")
        sources = np.repeat(np.arange(n), steps)
    else:
        raise DataError(
            f"{file}: holds {', '.join(parts) or 'none'} of a sparse matrix; allowed: indices and indptr, or row and col"
        )
    for which in (sources, targets):
        if which.dtype.kind not in "iu" or which.ndim != 1 or sources.shape != targets.shape:
            raise DataError(f"{file}: an edge is two whole numbers, found {which.dtype} of shape {which.shape}")
        if which.size and (which.min() < 0 or which.max() >= n):
            raise DataError(
                f"{file}: an edge names node {which.max() if which.max() >= n else which.min()}; allowed: 0 … {n - 1}"
            )
    return sources, targets, n


def of_classes(graph: Graph, least: int) -> Graph:
    """The subgraph on the classes of at least ``least`` nodes, numbered again in their order; nodes left alone are dropped."""
    sizes = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.num_classes)
    kept = np.flatnonzero(sizes >= least)
    if not kept.size:
        raise DataError(f"{graph.name}: no class has {least} nodes; the largest has {sizes.max(initial=0)}")
    number = np.full(graph.num_classes + 1, -1)
    number[kept] = np.arange(kept.size)
    small = graph.induced(np.flatnonzero(number[graph.labels] >= 0))
    small = small.induced(np.flatnonzero(small.degrees > 0))
    return replace(small, labels=number[small.labels], num_classes=int(kept.size))


def masks(train: np.ndarray, validation: np.ndarray, test: np.ndarray) -> tuple[Masks, ...]:
    """One published split from ids in any order."""
    return (Masks(*(np.unique(part).astype(np.int64) for part in (train, validation, test))),)
