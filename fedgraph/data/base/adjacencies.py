"""Raw edge lists and sparse arrays → the parts of a :class:`Graph`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class _CleanedAdjacency(NamedTuple):
    """Arcs that became an undirected graph, and what was dropped on the way."""

    adjacency: sp.csr_array  # CSR [n, n], symmetric, ones, empty diagonal
    loops: int  # arcs dropped because they start where they end
    repeated: int  # arcs dropped because the same arc came before
    one_way: int  # undirected edges of which only one arc was given


def undirected_adjacency(sources: np.ndarray, targets: np.ndarray, num_nodes: int) -> _CleanedAdjacency:
    """Symmetrise arcs, drop self-loops, coalesce duplicates. sources, targets: integers [m] in 0 … num_nodes − 1."""
    sources, targets = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
    proper = sources != targets
    arcs = _distinct(sources[proper] * num_nodes + targets[proper])
    rows, columns = np.divmod(arcs, num_nodes)
    edges = _distinct(np.minimum(rows, columns) * num_nodes + np.maximum(rows, columns))
    loops, repeated, one_way = (~proper).sum(), proper.sum() - arcs.size, 2 * edges.size - arcs.size
    return _CleanedAdjacency(adjacency_of_edges(edges, num_nodes), int(loops), int(repeated), int(one_way))


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """As np.unique, which hashes whole numbers since NumPy 2.3: of millions that takes 25 times as long."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([np.ones(min(1, ordered.size), dtype=bool), ordered[1:] != ordered[:-1]])]


def describe_adjacency_cleaning(given: Sequence[_CleanedAdjacency]) -> list[str]:
    """What was done to edges, counted over all of them, as one part of a sentence; none where nothing was."""
    counted = (
        (sum(c.one_way for c in given), "edges listed in one direction, read in both"),
        (sum(c.repeated for c in given), "repeated edges coalesced"),
        (sum(c.loops for c in given), "self-loops dropped"),
    )
    changed = ", ".join(f"{count} {what}" for count, what in counted if count)
    return [changed] if changed else []


def adjacency_of_edges(edges: np.ndarray, num_nodes: int) -> sp.csr_array:
    """Symmetric CSR of ones. edges: distinct int64 [m], each ``smaller · num_nodes + larger`` of its two ends."""
    low, high = np.divmod(edges, num_nodes)
    index = np.int32 if num_nodes < 2**31 and 2 * edges.size < 2**31 else np.int64
    rows = np.concatenate([low, high]).astype(index)
    columns = np.concatenate([high, low]).astype(index)
    adjacency = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(num_nodes, num_nodes))
    adjacency.sort_indices()
    return adjacency


def adjacency_blocks(adjacency: sp.csr_array, sizes: np.ndarray) -> list[sp.csr_array]:
    """Blocks [k, k] of the given sizes k along the diagonal; outside of them there is no edge."""
    ends = np.cumsum(sizes)
    return [sp.csr_array(adjacency[end - size : end, end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def feature_matrix(matrix: object, binarise: bool = False) -> sp.csr_array:
    """CSR float32 without stored zeros; with ``binarise`` every positive entry becomes 1 and the others 0, as PyG does.

    (PyG sets ``x > 0`` to 1 and leaves negative entries; the published files hold none.)
    """
    features = sp.csr_array(matrix, dtype=np.float32)
    features.sum_duplicates()
    if binarise:
        features.data = (features.data > 0).astype(np.float32)
    features.eliminate_zeros()
    features.sort_indices()
    return features


def adjacency_of_owners(ends: np.ndarray, owners: np.ndarray, num_nodes: int) -> tuple[sp.csr_array, ...]:
    """``Graph.edge_owners`` of records: the owners of each pair's records, each once.

    Args:
        ends: int64 [r, 2], the two nodes of each record, in any order; pairs may repeat.
        owners: int64 [r] ≥ 0.
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
