"""Which neighbours a node keeps, and how much each of them weighs.

**Public coins** (``at_most``). Every undirected edge has a priority: a hash of its two public node ids and a public
number. A node keeps its ``degree`` edges of smallest priority, and an edge stays if both its ends keep it. Priorities never
depend on other edges, so removing a node can only hand each freed slot to the next edge in line; where no node has more than
``degree`` neighbours nothing is cut and nothing can be refilled.

**Weights that fall** with the larger degree of an edge's two ends (``log_weights``): W_uv = h(max(d_u, d_v)). The
table h is given (``privacy.neighbour_sums`` states one and proves what one node can change under it). Reading degrees only, a
weight costs O(1); nothing is sampled, so nothing can be refilled when a node goes.

**The matrix Π** that aggregates logits from chosen neighbours (``matrix_of``): column limits, fallbacks, rows
without a choice. All of it reads released indices and values, public ids and public coins, so it is post-processing.
A *choice* is [S, K] indices with [S, K] weights, one row per source; −1 marks an entry that was cut.
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError

_ODD = 0x9E3779B97F4A7C15


def draw_neighbour_limit_coins(one: np.ndarray, two: np.ndarray, coin: int) -> np.ndarray:
    """uint64 [m], uniform-looking, symmetric in the two ids (splitmix64, Steele et al. 2014, applied twice)."""
    low, high = np.minimum(one, two).astype(np.uint64), np.maximum(one, two).astype(np.uint64)
    return _mix(_mix(low + np.uint64(coin * _ODD % 2**64)) ^ (high * np.uint64(_ODD)))


def _mix(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def at_most(adjacency: sp.csr_array, degree: int, ids: np.ndarray, coin: int = 0) -> sp.csr_array:
    """The graph with at most ``degree`` neighbours per node.
    adjacency: CSR [n, n], symmetric, without self-loops. degree: the most neighbours that a node keeps. ids: int64 [n], public
    node ids, which name the coins. coin: a public number that names these coins. Returns symmetric CSR [n, n] of float32 ones.
    """
    n = adjacency.shape[0]
    degrees = np.diff(adjacency.indptr)
    if degrees.max(initial=0) <= degree:
        return _ones(adjacency)
    owner = np.repeat(np.arange(n), degrees)
    order = np.lexsort((draw_neighbour_limit_coins(ids[owner], ids[adjacency.indices], coin), owner))
    rank = np.arange(order.size) - adjacency.indptr[owner]
    kept = order[rank < degree]
    chosen = sp.csr_array((np.ones(kept.size, np.float32), (owner[kept], adjacency.indices[kept])), shape=(n, n))
    both = sp.csr_array(chosen.multiply(chosen.T))
    both.sort_indices()
    return _ones(both)


def _ones(adjacency: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(adjacency.nnz, np.float32), adjacency.indices, adjacency.indptr), shape=adjacency.shape)


def log_weights(adjacency: sp.csr_array, factors: np.ndarray) -> sp.csr_array:
    """The weights W of all edges, which fall with the larger degree of their two ends.
    adjacency: CSR [n, n], simple and symmetric, sorted or not. factors: float64 [n], h(0) … h(n − 1). Returns CSR [n, n] of
    float64 with the pattern of ``adjacency``. Raises ``DataError``: a node has more neighbours than ``factors`` knows.
    """
    degrees = np.diff(adjacency.indptr)
    if degrees.max(initial=0) >= factors.size:
        raise DataError(f"a node has {degrees.max()} neighbours in a graph said to have {factors.size} nodes")
    owner = np.repeat(degrees, degrees)
    data = factors[np.maximum(owner, degrees[adjacency.indices])]
    return sp.csr_array((data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)


def require(adjacency: sp.csr_array, limit: int, ids: np.ndarray) -> None:
    """Refuse a graph in which a node has more neighbours than the platform says that it allows.

    Such input breaks the platform's own schema: it is refused, never cut in silence. A refusal is outside of the guarantee,
    whose neighbours are pairs of graphs that both keep the limit.
    adjacency: CSR [n, n]. limit: the most neighbours. ids: int64 [n], public names of the nodes. Raises ``DataError``: a node
    has more.
    """
    degrees = np.diff(adjacency.indptr)
    beyond = np.flatnonzero(degrees > limit)
    if beyond.size:
        raise DataError(
            f"node {ids[beyond[0]]} has {degrees[beyond[0]]} neighbours, and {beyond.size} nodes have more than the stated "
            f"limit of {limit}; allowed: a limit that the data keep ({degrees.max()} or more), or another cap, which needs none"
        )


def choose_largest(values: np.ndarray, k: int) -> np.ndarray:
    """The places of the k largest entries of each row, largest first; equal ones go by their place.
    values: float [rows, columns]. k: 1 … columns. Returns int64 [rows, k].
    """
    count = values.shape[1]
    if k == count or values.shape[0] == 0:
        return np.argsort(-values, axis=1, kind="stable")[:, :k].astype(np.int64)
    edge = -np.partition(-values, k - 1, axis=1)[:, k - 1 : k]
    out = np.empty((values.shape[0], k), np.int64)
    for row, line in enumerate(values):
        candidates = np.flatnonzero(line >= edge[row])
        out[row] = candidates[np.argsort(-line[candidates], kind="stable")[:k]]
    return out


def limit_mentions(sources: np.ndarray, chosen: np.ndarray, most: int, priority: np.ndarray) -> np.ndarray:
    """Choices in which a node is named by few rows.

    It is a function of Π and coins alone, so which entries survive tells nothing that Π does not.
    sources: int [S], the node of each row. chosen: int [S, K], best first. most: how many *other* rows may name a node. A row
    may always name its own node. priority: public coins [S]. First choices go before second ones, and among equals the smaller
    coin wins. Returns ``chosen`` with −1 where a node was named too often.
    """
    kept = chosen.copy()
    rows, ranks = np.nonzero((chosen >= 0) & (chosen != sources[:, None]))
    columns = chosen[rows, ranks]
    order = np.lexsort((priority[rows], ranks, columns))
    sorted_columns = columns[order]
    first = np.searchsorted(sorted_columns, sorted_columns, side="left")
    beyond = order[np.arange(order.size) - first >= most]
    kept[rows[beyond], ranks[beyond]] = -1
    return kept


def matrix_of(
    num_nodes: int,
    sources: np.ndarray,
    chosen: np.ndarray,
    weights: np.ndarray,
    tail: np.ndarray,
    tau: float,
    columns: Literal["clip", "normalise", "none"],
) -> sp.csr_array:
    """The matrix Π of chosen rows: CSR [n, n]; rows of neither a source nor the tail are empty.

    A source whose choices were all cut, or weigh nothing, falls back on its own node.

    Args:
        num_nodes: n.
        sources: int [S], the nodes that chose.
        chosen: int [S, K], the nodes that they chose; −1 for an entry that was cut.
        weights: float [S, K].
        tail: int [t], nodes with a one-hot row.
        tau: The limit of a column's L1 norm.
        columns: What is done with columns of the chosen rows:

            * ``clip``: their entries off the diagonal are scaled to L1 norm at most tau (DPAR, Algorithm 2, line 3);
            * ``normalise``: all of a column is scaled to exactly tau, as the released code does;
            * ``none``: nothing.
    """
    rows, ranks = np.nonzero(chosen >= 0)
    entries = (weights[rows, ranks], (sources[rows], chosen[rows, ranks]))
    pi = sp.csr_array(sp.coo_array(entries, shape=(num_nodes, num_nodes)))
    pi = _scale_columns(pi, tau, columns)
    pi.eliminate_zeros()
    empty = sources[np.diff(pi.indptr)[sources] == 0]
    alone = np.concatenate([tail, empty])
    return sp.csr_array(pi + sp.csr_array((np.ones(alone.size), (alone, alone)), shape=pi.shape))


def _scale_columns(pi: sp.csr_array, tau: float, columns: Literal["clip", "normalise", "none"]) -> sp.csr_array:
    """Columns of ``pi`` with their L1 norm limited; see ``matrix_of``."""
    if columns == "none":
        return pi
    coo = pi.tocoo()
    row, column = coo.coords
    counted = (row != column) | (columns == "normalise")
    mass = np.bincount(column, np.abs(coo.data) * counted, minlength=pi.shape[1])
    scale = np.where(mass > 0, tau / np.maximum(mass, 1e-300), 1.0)
    scale = np.where(counted, np.minimum(scale, 1.0 if columns == "clip" else np.inf)[column], 1.0)
    return sp.csr_array(sp.coo_array((coo.data * scale, (row, column)), shape=pi.shape))
