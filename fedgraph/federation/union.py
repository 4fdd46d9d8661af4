"""Many clients' subgraphs as one: a disjoint union, for the methods that compute the clients of a block together."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.types import Subgraph


def union(subgraphs: Sequence[Subgraph]) -> tuple[Subgraph, np.ndarray]:
    """(the disjoint union, starts): rows ``starts[i]`` … ``starts[i + 1] − 1`` (int64 [k + 1]) are those of ``subgraphs[i]``.

    A node that two clients hold is there twice, without an edge between the two. ``client`` is the first one's number;
    there is no centre.
    """
    first = subgraphs[0]
    if len(subgraphs) == 1:
        return first, np.array([0, first.graph.num_nodes], dtype=np.int64)
    graphs = [s.graph for s in subgraphs]
    starts = np.concatenate([[0], np.cumsum([g.labels.size for g in graphs])]).astype(np.int64)
    validation = None
    if any(g.validation is not None for g in graphs):
        parts = [np.full_like(g.labels, -1) if g.validation is None else g.validation for g in graphs]
        validation = np.concatenate(parts)
    cuts = [_moved(s.cut, at) for s, at in zip(subgraphs, starts, strict=False) if s.cut is not None]
    graph = replace(
        first.graph,
        adjacency=_stacked([g.adjacency for g in graphs], starts[:-1], int(starts[-1])),
        features=_stacked([g.features for g in graphs], np.zeros(len(graphs), np.int64), first.graph.num_features),
        labels=np.concatenate([g.labels for g in graphs]),
        owner=None,
        masks=(),
        validation=validation,
    )
    nodes = np.concatenate([s.nodes for s in subgraphs])
    return Subgraph(first.client, graph, nodes, None, np.concatenate(cuts) if cuts else None), starts


def _moved(cut: np.ndarray, by: int) -> np.ndarray:
    return cut + np.array([by, 0])


def _stacked(matrices: Sequence[sp.csr_array], shifts: np.ndarray, columns: int) -> sp.csr_array:
    """Rows of all, one matrix under the other, the columns of each moved by its shift."""
    counts = np.array([m.indptr[-1] for m in matrices], dtype=np.int64)
    rows = np.concatenate([np.diff(m.indptr) for m in matrices])
    indptr = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
    indices = np.concatenate([m.indices[: m.indptr[-1]] for m in matrices]).astype(np.int64) + np.repeat(shifts, counts)
    data = np.concatenate([m.data[: m.indptr[-1]] for m in matrices])
    width = np.int32 if max(columns, indptr[-1]) < 2**31 else np.int64
    return sp.csr_array((data, indices.astype(width), indptr.astype(width)), shape=(rows.size, columns))
