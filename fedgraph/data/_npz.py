"""The gnn-benchmark ``.npz`` layout: a sparse adjacency, sparse attributes and labels, read without unpickling anything.

Keys ``adj_data, adj_indices, adj_indptr, adj_shape``, the same with ``attr_``, and ``labels``; PPNP writes
``adj_matrix.data`` and so on. Members that hold pickled objects (``class_names`` in some files) are never touched: numpy
reads a member only when it is asked for, and refuses pickles (``allow_pickle=False``).

Layout: Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018 (github.com/shchur/gnn-benchmark).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.types import Masks

_PARTS = ("data", "indices", "indptr", "shape")
_PREFIXES = {"adjacency": ("adj_", "adj_matrix."), "attributes": ("attr_", "attr_matrix.")}


class SparseGraph(NamedTuple):
    """What the file says, untreated. adjacency: CSR [n, n], may be directed. attributes: CSR [n, d]. labels: [n], any type."""

    adjacency: sp.csr_array
    attributes: sp.csr_array
    labels: np.ndarray


def read(content: bytes, name: str) -> SparseGraph:
    """Interpret the bytes of one file called ``name`` (used in messages). Raises ``DataError`` for anything unexpected."""
    try:
        archive = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{name}: not an .npz archive ({error}); a pickle is refused") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise DataError(f"{name}: holds one bare array; allowed: an .npz archive with adj_*, attr_* and labels")
    with archive:
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
    return SparseGraph(adjacency, attributes, labels)


def _sparse(archive: Mapping[str, np.ndarray], prefixes: tuple[str, ...], name: str, part: str) -> sp.csr_array:
    """One CSR matrix under the first of ``prefixes`` that the file has."""
    prefix = next((p for p in prefixes if f"{p}data" in archive), None)
    if prefix is None:
        wanted = " or ".join(f"{p}{{{','.join(_PARTS)}}}" for p in prefixes)
        raise DataError(f"{name}: no {part}; expected the members {wanted}, found {', '.join(archive) or 'none'}")
    data, indices, indptr, shape = (_member(archive, f"{prefix}{p}", name) for p in _PARTS)
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(s) for s in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{name}: {prefix}* is not a sparse matrix in CSR form ({error})") from error
    return matrix


def _member(archive: Mapping[str, np.ndarray], key: str, name: str) -> np.ndarray:
    """One array, never a pickled one."""
    if key not in archive:
        raise DataError(f"{name}: no member {key!r}; found {', '.join(archive) or 'none'}")
    try:
        return archive[key]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{name}: member {key!r} is refused ({error}); store it as a plain array, never a pickle") from error


MASKS = ("train_mask", "val_mask", "test_mask")


def masks(content: bytes, name: str, num_nodes: int) -> tuple[Masks, ...]:
    """The splits of a file with the members ``train_mask``, ``val_mask`` and ``test_mask``: 0/1, [n], or [n, k] for k splits.

    No such member: none. Raises ``DataError`` for anything else.
    """
    try:
        archive = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{name}: not an .npz archive ({error}); a pickle is refused") from error
    with archive:
        given = [key for key in MASKS if key in archive]
        if not given:
            return ()
        if lacking := [key for key in ("train_mask", "test_mask") if key not in given]:
            raise DataError(f"{name}: holds {', '.join(given)} and no {lacking[0]}; a split needs train_mask and test_mask")
        parts = [_member(archive, key, name) if key in given else None for key in MASKS]
    shape = np.shape(parts[0])
    for key, part in zip(MASKS, parts, strict=True):
        if part is None:
            continue
        if part.shape != shape or part.ndim not in (1, 2) or part.shape[0] != num_nodes or not np.isin(part, (0, 1)).all():
            raise DataError(
                f"{name}: {key} of shape {part.shape}; allowed: 0 or 1 for each of {num_nodes} nodes, all masks alike"
            )
    columns = [np.zeros(shape, bool) if part is None else part.astype(bool) for part in parts]
    columns = [column.reshape(num_nodes, -1) for column in columns]
    found = tuple(Masks(*(np.flatnonzero(column[:, k]) for column in columns)) for k in range(columns[0].shape[1]))
    for split in found:
        split.check(num_nodes, name)
    return found
