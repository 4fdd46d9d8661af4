"""Which neighbours a node keeps, how much each of them weighs, and rows that read weighed neighbours.

**Public coins** (``at_most``). Every undirected edge has a priority: a hash of its two public node ids and a public
number. A node keeps its ``degree`` edges of smallest priority, and an edge stays if both its ends keep it. Priorities never
depend on other edges, so removing a node can only hand each freed slot to the next edge in line; where no node has more than
``degree`` neighbours nothing is cut and nothing can be refilled.

**Weights that fall** with the larger degree of an edge's two ends (``log_weights``): W_uv = h(max(d_u, d_v)). The
table h is given (``privacy.neighbour_sums`` states one and proves what one node can change under it). Reading degrees only, a
weight costs O(1); nothing is sampled, so nothing can be refilled when a node goes.

**Rows with neighbours** (``rows``) are read by a logistic regression in double precision. What a node changes in a sum of its
clipped gradients is proven in ``privacy.neighbour_sums`` from two facts that are made true here: the neighbours' part of a row
has norm at most 1, and the weights that read it have Frobenius norm at most ``bound`` (``limit_weights``).
"""

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError

_ODD = 0x9E3779B97F4A7C15


def coins_of(one: np.ndarray, two: np.ndarray, coin: int) -> np.ndarray:
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
    order = np.lexsort((coins_of(ids[owner], ids[adjacency.indices], coin), owner))
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


def rows(features: sp.csr_array, weights: sp.csr_array, scale: float) -> np.ndarray:
    """[x_u; P(Σ_v W_uv x_v / c)], where P projects on the unit ball: float64 [n, 2d], both halves of norm at most 1.
    features: CSR [n, d]; a row longer than 1 is scaled down to norm 1. weights: W, CSR [n, n]. scale: c, above 0.
    """
    own = np.asarray(features.astype(np.float64).todense())
    own /= np.maximum(1.0, np.linalg.norm(own, axis=1, keepdims=True))
    around = np.asarray(weights.astype(np.float64) @ own) / scale
    around /= np.maximum(1.0, np.linalg.norm(around, axis=1, keepdims=True))
    return np.hstack([own, around])


def limit_weights(vector: np.ndarray, inputs: int, bound: float) -> np.ndarray:
    """``vector`` with the weights of the neighbours' part (the last half of each row of W) projected on ‖·‖_F ≤ bound.
    vector: (W [c, 2d], bias [c]) of a ``torch.nn.Linear``, flat; it is copied. inputs: 2d. bound: at least 0.
    """
    classes = vector.size // (inputs + 1)
    found = np.array(vector)
    part = found[: inputs * classes].reshape(classes, inputs)[:, inputs // 2 :]
    part *= min(1.0, bound / max(float(np.linalg.norm(part.astype(np.float64))), 1e-30))
    return found
