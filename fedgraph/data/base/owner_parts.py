"""Parts of a federation, one for each owner, become one graph whose nodes know their owner."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphProvenance, plain_graph


@dataclass(frozen=True, eq=False)
class OwnerPart:
    """One owner's graph of n nodes before columns and classes are numbered."""

    name: str
    adjacency: sp.csr_array
    rows: np.ndarray  # int64 [k], the node of each feature that is set
    columns: np.ndarray  # int64 [k], its position in ``column_names``
    column_names: tuple[str, ...]  # what this owner calls its columns; equal names of several owners are one column
    labels: np.ndarray  # text [n], empty where unknown
    classes: tuple[str, ...] = ()  # names that are classes even where nobody has them


def join_owner_parts(name: str, parts: Sequence[OwnerPart], provenance: GraphProvenance) -> Graph:
    """One graph: columns are the sorted names of all parts, classes the sorted labels (numbers in numerical order).

    Raises ``DataError`` for no part, no feature at all, or no label.
    """
    if not parts:
        raise DataError(f"{name}: a federation needs at least one client")
    named = sorted({c for p in parts for c in p.column_names})
    if not named:
        raise DataError(f"{name}: no node has a feature; allowed: at least one")
    used = {str(label) for part in parts for label in (*np.unique(part.labels), *part.classes) if label}
    given = sorted(used, key=_natural)  # numbers by value, then texts
    if not given:
        raise DataError(f"{name}: no node has a label; allowed: at least one labelled node")
    column = {c: i for i, c in enumerate(named)}
    position = np.concatenate([np.array([column[c] for c in p.column_names], np.int64)[p.columns] for p in parts])
    number = {label: i for i, label in enumerate(given)}
    sizes = [p.adjacency.shape[0] for p in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.concatenate([p.rows + start for p, start in zip(parts, starts, strict=False)])
    features = feature_matrix(
        sp.coo_array((np.ones(rows.size, np.float32), (rows, position)), shape=(int(starts[-1]), len(named)))
    )
    labels = np.concatenate([_numbers(p.labels, number) for p in parts])
    graph = plain_graph(name, _diagonal([p.adjacency for p in parts]), features, labels, len(given), provenance)
    owner, owners = np.repeat(np.arange(len(parts)), sizes), tuple(p.name for p in parts)
    called = replace(graph.names, columns=tuple(named), classes=tuple(given))
    return replace(graph, owner=owner, owner_names=owners, columns_from_rows=True, names=called)


def join_owner_graphs(name: str, graphs: Sequence[Graph], owners: Sequence[str]) -> Graph:
    """Graphs with the same columns and classes as one graph of several owners."""
    first = graphs[0]
    if any(g.num_features != first.num_features or g.num_classes != first.num_classes for g in graphs):
        raise DataError(f"{name}: the clients' graphs do not have the same columns and classes")
    features = sp.csr_array(sp.vstack([g.features for g in graphs], format="csr"))
    adjacency, labels = _diagonal([g.adjacency for g in graphs]), np.concatenate([g.labels for g in graphs])
    owner = np.repeat(np.arange(len(graphs)), [g.num_nodes for g in graphs])
    graph = replace(first, adjacency=adjacency, features=features, labels=labels, owner=owner)
    return replace(graph, name=name, owner_names=tuple(owners))


def _numbers(labels: np.ndarray, number: dict[str, int]) -> np.ndarray:
    values, position = np.unique(labels, return_inverse=True)
    return np.array([number.get(str(v), -1) for v in values], dtype=np.int64)[position]


def _natural(label: str) -> tuple[int, float, str]:
    """Numbers by value, then text; ``nan`` and ``inf`` are text, since nothing is in order beside them."""
    try:
        value = float(label)
    except ValueError:
        value = math.nan
    return (0, value, label) if math.isfinite(value) else (1, 0.0, label)


def _diagonal(blocks: Sequence[sp.csr_array]) -> sp.csr_array:
    """Block-diagonal CSR without the copies of ``scipy.sparse.block_diag``: 33 million edges must fit."""
    sizes = np.array([b.shape[0] for b in blocks], dtype=np.int64)
    entries = np.array([b.nnz for b in blocks], dtype=np.int64)
    n, nnz = int(sizes.sum()), int(entries.sum())
    index = np.int32 if max(n, nnz) < 2**31 else np.int64
    indices, indptr = np.empty(nnz, index), np.zeros(n + 1, index)
    row = entry = 0
    for block in blocks:
        block.sort_indices()
        indices[entry : entry + block.nnz] = block.indices
        np.add(indices[entry : entry + block.nnz], row, out=indices[entry : entry + block.nnz])
        indptr[row + 1 : row + block.shape[0] + 1] = block.indptr[1:]
        rows_of_block = indptr[row + 1 : row + block.shape[0] + 1]
        np.add(rows_of_block, entry, out=rows_of_block)
        row, entry = row + block.shape[0], entry + block.nnz
    return sp.csr_array((np.ones(nnz), indices, indptr), shape=(n, n))
