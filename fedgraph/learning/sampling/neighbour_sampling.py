"""Bounded neighbourhoods chosen by public coins.

Every undirected edge has a priority: a hash of its two public node ids and a public number. A node keeps its
``degree`` edges of smallest priority, and an edge stays if both its ends keep it. Priorities never depend on
other edges, so removing a node can only hand each freed slot to the next edge in line; where no node has more
than ``degree`` neighbours nothing is cut and nothing can be refilled.

Sampling whose probabilities depend on the neighbours' degrees (as the code of Daigavane et al. 2021 draws them)
changes far more subgraphs when one node goes.
"""

import numpy as np
import scipy.sparse as sp

_ODD = np.uint64(0x9E3779B97F4A7C15)


def priorities(one: np.ndarray, two: np.ndarray, coin: int) -> np.ndarray:
    """uint64 [m], uniform-looking, symmetric in the two ids (splitmix64, Steele et al. 2014, applied twice)."""
    low, high = np.minimum(one, two).astype(np.uint64), np.maximum(one, two).astype(np.uint64)
    return _mix(_mix(low + np.uint64(coin) * _ODD) ^ (high * _ODD))


def _mix(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def bounded(adjacency: sp.csr_array, degree: int, ids: np.ndarray, coin: int = 0) -> sp.csr_array:
    """The graph with at most ``degree`` neighbours per node, symmetric, CSR [n, n] of float32 ones.

    adjacency: symmetric CSR without self-loops. ids: int64 [n], public node ids (they name the coins).
    """
    n = adjacency.shape[0]
    degrees = np.diff(adjacency.indptr)
    if degrees.max(initial=0) <= degree:
        return _ones(adjacency)
    owner = np.repeat(np.arange(n), degrees)
    order = np.lexsort((priorities(ids[owner], ids[adjacency.indices], coin), owner))
    rank = np.arange(order.size) - adjacency.indptr[owner]
    kept = order[rank < degree]
    chosen = sp.csr_array((np.ones(kept.size, np.float32), (owner[kept], adjacency.indices[kept])), shape=(n, n))
    both = sp.csr_array(chosen.multiply(chosen.T))
    both.sort_indices()
    return _ones(both)


def _ones(adjacency: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(adjacency.nnz, np.float32), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
