"""Arrays as numpy and scipy save them, in one ``.npy`` or ``.npz`` file; one clear error per fault.

The gnn-benchmark ``.npz`` (Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018) has the keys ``adj_data,
adj_indices, adj_indptr, adj_shape``, the same with ``attr_``, and ``labels``; PPNP writes ``adj_matrix.data`` and so on.
Members that hold pickled objects (``class_names`` in some files) are never touched: numpy reads a member only when
asked, and refuses pickles.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import published
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph

# What numpy and zipfile raise for files that are cut off, damaged, encrypted, or claim more than they hold.
NPZ_ERRORS = (
    ValueError, OSError, EOFError, KeyError, TypeError, RuntimeError, NotImplementedError, MemoryError, OverflowError,
    SyntaxError, struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
_MOST_FEATURES = 1_000_000  # a model has weights for each column, whether a node has a value there or not
_MOST_BYTES = 8 * 1024**3  # of all members, unpacked
_PARTS = ("data", "indices", "indptr", "shape")
_PREFIXES = {"adjacency": ("adj_", "adj_matrix."), "attributes": ("attr_", "attr_matrix.")}


class _NpzGraph(NamedTuple):
    """What a file says, untreated."""

    adjacency: sp.csr_array  # CSR [n, n], may be directed and weighted
    attributes: sp.csr_array  # CSR [n, d]
    labels: np.ndarray  # [n], any type


def read_npz(content: bytes, name: str) -> _NpzGraph:
    """Interpret the bytes of one file called ``name`` (used in messages). Raises ``DataError`` for anything unexpected."""
    with _opened(content, name) as archive:
        adjacency, attributes = (_sparse(archive, _PREFIXES[part], name, part) for part in ("adjacency", "attributes"))
        labels = _member(archive, "labels", name)
    rows, columns = adjacency.shape
    if rows != columns:
        raise DataError(f"{name}: adjacency is {rows} × {columns}; allowed: square")
    if attributes.shape[0] != rows or labels.shape != (rows,):
        raise DataError(
            f"{name}: {rows} nodes in the adjacency, {attributes.shape[0]} rows of attributes, labels of shape {labels.shape}; "
            "allowed: the same number of each"
        )
    require_width(attributes.shape[1], name)  # before anybody names the columns
    return _NpzGraph(adjacency, attributes, labels)


def read_gnn_benchmark(data: published.PublishedData, raw: RawFiles) -> Graph:
    """CitationFull, Coauthor and Amazon, each in one ``.npz``; attributes are binarised.

    Raises ``DataError`` when its counts are not the published ones.

    The checksum is recorded, not demanded: copies in circulation hold equal arrays in different bytes (compressed or not,
    with or without the text fields).
    """
    (file,) = data.files
    adjacency, attributes, labels = read_npz(raw.read(file), str(raw.folder / file))
    arcs = sp.coo_array(adjacency)
    features = feature_matrix(attributes, binarise=True)
    return published.graph_of(data, raw, (arcs.row, arcs.col), features, labels, features_from_edges=False)


def read_members(content: bytes, name: str, wanted: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those of the members ``wanted`` that the file has; ``DataError`` as for ``read``."""
    with _opened(content, name) as archive:
        return {key: _member(archive, key, name) for key in wanted if key in archive}


def require_width(columns: int, where: str) -> None:
    """``DataError`` for more feature columns than a model can have."""
    if columns > _MOST_FEATURES:
        raise DataError(f"{where}: {columns:,} feature columns; allowed: at most {_MOST_FEATURES:,}")


def _opened(content: bytes, name: str) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(io.BytesIO(content), allow_pickle=False)
    except NPZ_ERRORS as error:
        why = "its bytes are no zip" if "pickle" in str(error) else error  # numpy would advise to open it as a pickle
        raise DataError(f"{name}: not an .npz archive ({why}); a pickle is refused") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise DataError(f"{name}: holds one bare array; allowed: an .npz archive with adj_*, attr_* and labels")
    members_of_zip = archive.zip.infolist() if archive.zip else []
    unpacked = sum(int(member.file_size) for member in members_of_zip)
    if unpacked > _MOST_BYTES:
        raise DataError(f"{name}: {unpacked:,} bytes when unpacked; allowed: at most {_MOST_BYTES:,}")
    return archive


def _sparse(archive: Mapping[str, np.ndarray], prefixes: tuple[str, ...], name: str, part: str) -> sp.csr_array:
    prefix = next((p for p in prefixes if f"{p}data" in archive), None)
    if prefix is None:
        wanted = " or ".join(f"{p}{{{','.join(_PARTS)}}}" for p in prefixes)
        raise DataError(f"{name}: no {part}; expected the members {wanted}, found {', '.join(archive) or 'none'}")
    data, indices, indptr, shape = (_member(archive, f"{prefix}{p}", name) for p in _PARTS)
    for key, array in (("indices", indices), ("indptr", indptr), ("shape", shape)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            kind = f"{array.ndim} dimension(s) of type {array.dtype}"
            raise DataError(f"{name}: {prefix}{key} has {kind}; allowed: one dimension of whole numbers (type int32 or int64)")
    if shape.size != 2 or shape.min() < 0:
        raise DataError(f"{name}: {prefix}shape is {shape[:4].tolist()}; allowed: two numbers, rows and columns")
    if data.dtype.kind not in "fiub":
        raise DataError(f"{name}: {prefix}data is of type {data.dtype}; allowed: numbers")
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(s) for s in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise DataError(f"{name}: {prefix}* is not a sparse matrix in CSR form ({error})") from error
    return matrix


def _member(archive: Mapping[str, np.ndarray], key: str, name: str) -> np.ndarray:
    """One array, never a pickled one."""
    if key not in archive:
        raise DataError(f"{name}: no member {key!r}; found {', '.join(archive) or 'none'}")
    try:
        found = archive[key]
    except NPZ_ERRORS as error:
        raise DataError(f"{name}: member {key!r} is refused ({error}); store it as a plain array, never a pickle") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{name}: member {key!r} is no array; allowed: arrays as numpy stores them")
    return found
