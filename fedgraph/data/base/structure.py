"""Raw edge lists and sparse arrays → the parts of a :class:`Graph`, and the published counts they must have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.types import Graph, Provenance


class Cleaned(NamedTuple):
    """adjacency: CSR [n, n], symmetric, ones, empty diagonal. loops: arcs dropped because they start where they end.

    repeated: arcs dropped because the same arc came before. one_way: undirected edges of which only one arc was given.
    """

    adjacency: sp.csr_array
    loops: int
    repeated: int
    one_way: int


def undirected(sources: np.ndarray, targets: np.ndarray, num_nodes: int) -> Cleaned:
    """Symmetrise arcs, drop self-loops, coalesce duplicates. sources, targets: integers [m] in 0 … num_nodes − 1."""
    sources, targets = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
    proper = sources != targets
    arcs = np.unique(sources[proper] * num_nodes + targets[proper])
    rows, columns = np.divmod(arcs, num_nodes)
    edges = np.unique(np.minimum(rows, columns) * num_nodes + np.maximum(rows, columns))
    return Cleaned(
        adjacency=from_edges(edges, num_nodes),
        loops=int((~proper).sum()),
        repeated=int(proper.sum() - arcs.size),
        one_way=int(2 * edges.size - arcs.size),
    )


def from_edges(edges: np.ndarray, num_nodes: int) -> sp.csr_array:
    """Symmetric CSR of ones. edges: distinct int64 [m], each ``smaller · num_nodes + larger`` of its two ends."""
    low, high = np.divmod(edges, num_nodes)
    index = np.int32 if num_nodes < 2**31 and 2 * edges.size < 2**31 else np.int64
    rows = np.concatenate([low, high]).astype(index)
    columns = np.concatenate([high, low]).astype(index)
    adjacency = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(num_nodes, num_nodes))
    adjacency.sort_indices()
    return adjacency


def diagonal_blocks(adjacency: sp.csr_array, sizes: np.ndarray) -> list[sp.csr_array]:
    """Blocks [k, k] of the given sizes k along the diagonal; outside of them there is no edge."""
    ends = np.cumsum(sizes)
    blocks = []
    for start, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
        rows = slice(adjacency.indptr[start], adjacency.indptr[end])
        own = (
            adjacency.data[rows],
            (adjacency.indices[rows] - start).astype(np.int32),
            (adjacency.indptr[start : end + 1] - adjacency.indptr[start]).astype(np.int32),
        )
        blocks.append(sp.csr_array(own, shape=(end - start, end - start)))
    return blocks


def feature_matrix(matrix: object, binarise: bool = False) -> sp.csr_array:
    """CSR float32 without stored zeros; with ``binarise`` every positive entry becomes 1 and the others 0, as PyG does.

    (PyG sets ``x > 0`` to 1 and leaves negative entries; the published files hold none.)
    """
    features = sp.csr_array(matrix, dtype=np.float32)
    if binarise:
        features.data = (features.data > 0).astype(np.float32)
    features.sum_duplicates()
    features.eliminate_zeros()
    features.sort_indices()
    return features


@dataclass(frozen=True)
class Counts:
    """Published counts of a node-level data set; edges are undirected and distinct, without self-loops."""

    nodes: int
    edges: int
    features: int
    classes: int

    def check(self, graph: Graph, lost: float = 0.0) -> Graph:
        """``graph`` itself; ``DataError`` when it is not the published one. lost: share of the edges that may be missing."""
        found = Counts(graph.num_nodes, graph.num_edges, graph.num_features, np.unique(graph.labels[graph.labels >= 0]).size)
        if replace(found, edges=self.edges) != self or not self.edges * (1 - lost) <= found.edges <= self.edges:
            raise DataError(f"{graph.name!r} is not the published data set: found {found}, expected {self}")
        return graph


@dataclass(frozen=True, eq=False)
class Part:
    """One owner's graph of n nodes before columns and classes are numbered.

    adjacency: CSR [n, n], symmetric, ones. rows, columns: int64 [k], the set features as (row, position in ``column_names``).
    values: float32 [k]; None: all 1. labels: text [n], empty where unknown. classes: names that are classes even where nobody
    has them.
    """

    name: str
    adjacency: sp.csr_array
    rows: np.ndarray
    columns: np.ndarray
    column_names: tuple[str, ...]
    labels: np.ndarray
    classes: tuple[str, ...] = ()
    values: np.ndarray | None = None


def join_owners(name: str, parts: Sequence[Part], provenance: Provenance, labelled: bool = True) -> Graph:
    """One graph: columns are the sorted names of all parts, classes the sorted labels (numbers in numerical order).

    Raises ``DataError`` for no part, no feature at all, or no label where there should be some (``labelled``).
    """
    if not parts:
        raise DataError(f"{name}: a federation needs at least one client")
    named = sorted({c for p in parts for c in p.column_names})
    if not named:
        raise DataError(f"{name}: no node has a feature; allowed: at least one")
    given = class_names(parts)
    if labelled and not given:
        raise DataError(f"{name}: no node has a label; allowed: at least one labelled node")
    column = {c: i for i, c in enumerate(named)}
    position = np.concatenate([np.array([column[c] for c in p.column_names], np.int64)[p.columns] for p in parts])
    number = {label: i for i, label in enumerate(given)}
    sizes = [p.adjacency.shape[0] for p in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.concatenate([p.rows + start for p, start in zip(parts, starts, strict=False)])
    values = np.concatenate([np.ones(p.rows.size, np.float32) if p.values is None else p.values for p in parts])
    return Graph(
        name=name,
        adjacency=_diagonal([p.adjacency for p in parts]),
        features=feature_matrix(sp.coo_array((values, (rows, position)), shape=(int(starts[-1]), len(named)))),
        labels=np.concatenate([_numbers(p.labels, number) for p in parts]),
        num_classes=len(given),
        provenance=provenance,
        owner=np.repeat(np.arange(len(parts)), sizes),
        owner_names=tuple(p.name for p in parts),
        columns_from_rows=True,
        features_from_edges=False,
        nodes_from_edges=False,
    )


def class_names(parts: Sequence[Part]) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    return sorted(
        {c for p in parts for c in p.classes} | {str(v) for p in parts for v in np.unique(p.labels) if v}, key=_natural
    )


def union_of_graphs(name: str, graphs: Sequence[Graph], owners: Sequence[str]) -> Graph:
    """Graphs with the same columns and classes as one graph of several owners."""
    first = graphs[0]
    if any(g.num_features != first.num_features or g.num_classes != first.num_classes for g in graphs):
        raise DataError(f"{name}: the clients' graphs do not have the same columns and classes")
    return replace(
        first,
        name=name,
        adjacency=_diagonal([g.adjacency for g in graphs]),
        features=sp.csr_array(sp.vstack([g.features for g in graphs], format="csr")),
        labels=np.concatenate([g.labels for g in graphs]),
        owner=np.repeat(np.arange(len(graphs)), [g.num_nodes for g in graphs]),
        owner_names=tuple(owners),
    )


def _numbers(labels: np.ndarray, number: dict[str, int]) -> np.ndarray:
    """int64 [n] from text, -1 where empty."""
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


def edge_owners(ends: np.ndarray, owners: np.ndarray, num_nodes: int) -> tuple[sp.csr_array, ...]:
    """``Graph.edge_owners`` of records: the owners of each pair's records, each once.

    Args:
        ends: int64 [r, 2], the two nodes of each record, in any order; pairs may repeat.
        owners: int64 [r] ≥ 0.
        num_nodes: n.
    """
    found = np.unique(np.column_stack([np.sort(ends, axis=1), owners]), axis=0)
    _, first, which = np.unique(found[:, :2], axis=0, return_index=True, return_inverse=True)
    place = np.arange(len(found)) - first[which.ravel()]  # the how-manieth owner of its pair
    layers = []
    for layer in range(int(place.max(initial=-1)) + 1):
        one, two, owner = found[place == layer].T
        at = (np.concatenate([one, two]), np.concatenate([two, one]))
        layers.append(sp.csr_array((np.concatenate([owner, owner]) + 1, at), shape=(num_nodes, num_nodes)))
    return tuple(layers)
