"""Number tables, plain arrays and sparse archives as large published data sets keep them; one clear error per fault."""

import gzip
import io
import json
import math
import warnings
import zlib
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import npz, published, tables
from fedgraph.data.base.files import Faults, RawFiles
from fedgraph.data.base.structure import feature_matrix
from fedgraph.errors import DataError
from fedgraph.types import Graph
from fedgraph.types import Masks as Masks

LARGEST = 2**53  # whole numbers beyond it are not held exactly
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


def numbers(raw: RawFiles, name: str, columns: int | None = None, skip: int = 0, blanks: bool = False) -> np.ndarray:
    """float64 [rows, columns] from numbers that are split by commas; empty lines at the end are left out.

    columns: None takes those of the first line. skip: header lines. blanks: white space splits numbers, too.

    Raises ``DataError`` that lists all faults with file, line, what was found and what is allowed.
    """
    lines = text(raw, name).split(b"\n")[skip:]
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
    faults, file = Faults(), str(raw.folder / name)
    whole_table = found.size == wanted * len(lines) and all(line.count(b",") + 1 == wanted for line in lines)
    for number, line in enumerate([] if whole_table else lines, 1 + skip):
        shown = line[:60].decode("utf-8", "replace")
        cells = shown.split(",") if line.strip() else []
        if line.count(b",") + bool(cells) != wanted:
            faults.note(f"{file}:{number}", f"{len(cells)} cells in {shown!r}; allowed: {wanted} numbers")
        elif any(math.isnan(tables.number_in(cell.decode("utf-8", "replace"))) for cell in line.split(b",")):
            faults.note(f"{file}:{number}", f"found {shown!r}; allowed: {wanted} finite numbers")
    faults.refuse()
    if not whole_table:
        raise DataError(f"{file}: not a table of numbers; allowed: {wanted} numbers a line, with commas between")
    table = found.reshape(len(lines), wanted)
    for line in np.flatnonzero(~np.isfinite(table).all(axis=1)):
        faults.note(f"{file}:{line + 1 + skip}", "found NaN or infinity; allowed: finite numbers")
    faults.refuse()
    return table


def whole(
    table: np.ndarray, below: int | None, raw: RawFiles, name: str, skip: int = 0, least: int | None = 0, what: str = ""
) -> np.ndarray:
    """int64, the same numbers. what: they count.

    ``DataError`` lists those that are not whole, or outside ``least`` … ``below`` − 1 (None: no limit).
    """
    low, high = (-LARGEST if least is None else least), (LARGEST if below is None else below)
    limits = "" if least is None else f" ≥ {least}" if below is None else f" {least} … {below - 1}"
    faults = Faults()
    for place in np.argwhere((table % 1 != 0) | (table < low) | (table >= high)):
        found = f"found {table[tuple(place)]:.12g}; allowed: whole numbers{limits}{what and f', the {what}'}"
        faults.note(f"{raw.folder / name}:{place[0] + 1 + skip}", found)
    faults.refuse()
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


def read_gnn_benchmark(data: published.Published, raw: RawFiles) -> Graph:
    """CitationFull, Coauthor and Amazon, each in one ``.npz``; attributes are binarised.

    Raises ``DataError`` when its counts are not the published ones.

    The checksum is recorded, not demanded: copies in circulation hold equal arrays in different bytes (compressed or not,
    with or without the text fields).
    """
    (file,) = data.files
    adjacency, attributes, labels = npz.read(raw.read(file), str(raw.folder / file))
    arcs = sp.coo_array(adjacency)
    features = feature_matrix(attributes, binarise=True)
    return published.graph(data, raw, (arcs.row, arcs.col), features, labels, features_from_edges=False)
