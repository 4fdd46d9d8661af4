"""Edge weights that fall with the larger degree of an edge's two ends: W_uv = h(max(d_u, d_v)).

The table h is given (``privacy.neighbour_sums`` states one and proves what one node can change under it). Reading degrees only,
a weight costs O(1); nothing is sampled, so nothing can be refilled when a node goes.
"""

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError


def weighted(adjacency: sp.csr_array, factors: np.ndarray) -> sp.csr_array:
    """W as CSR [n, n] of float64, the pattern of ``adjacency`` (simple, symmetric, sorted or not).

    factors: float64 [n], h(0) … h(n − 1). ``DataError`` where a node has more neighbours than ``factors`` knows.
    """
    degrees = np.diff(adjacency.indptr)
    if degrees.max(initial=0) >= factors.size:
        raise DataError(f"a node has {degrees.max()} neighbours in a graph said to have {factors.size} nodes")
    owner = np.repeat(degrees, degrees)
    data = factors[np.maximum(owner, degrees[adjacency.indices])]
    return sp.csr_array((data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)


def require_limit(adjacency: sp.csr_array, limit: int, ids: np.ndarray) -> None:
    """``DataError`` where a node has more neighbours than the platform says that it allows.

    ids: int64 [n], public names. Such input breaks the platform's own schema: it is refused, never cut in silence, and a
    refusal is outside of the guarantee, whose neighbours are pairs of graphs that both keep the limit.
    """
    degrees = np.diff(adjacency.indptr)
    beyond = np.flatnonzero(degrees > limit)
    if beyond.size:
        raise DataError(
            f"node {ids[beyond[0]]} has {degrees[beyond[0]]} neighbours, and {beyond.size} nodes have more than the stated "
            f"limit of {limit}; allowed: a limit that the data keep ({degrees.max()} or more), or cap: log, which needs none"
        )
