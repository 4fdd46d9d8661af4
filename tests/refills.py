"""What a cut to a promised degree really changes, refills included: a measurement on private data, never a guarantee."""

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import neighbour_limits


def refill_sensitivity(adjacency: sp.csr_array, degree: int, ids: np.ndarray, node: int, coin: int = 0) -> tuple[float, int]:
    """(Δ, extra): what removing ``node`` really changes in the bounded sums of unit vectors, refills included.

    Δ = √Σ_rows (neighbours lost + neighbours gained)², over all rows but the node's own. extra: rows that changed
    although they had no edge to ``node``. A diagnostic on private data: never part of a guarantee.
    """
    without = adjacency.tolil()
    without[node, :] = 0
    without[:, [node]] = 0
    after = sp.csr_array(without.tocsr())
    after.eliminate_zeros()
    before = neighbour_limits.at_most(adjacency, degree, ids, coin)
    difference = sp.csr_array(before - neighbour_limits.at_most(after, degree, ids, coin))
    changed = np.asarray(abs(difference).sum(axis=1)).ravel()
    changed[node] = 0.0
    neighbours = adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]]
    extra = np.setdiff1d(np.flatnonzero(changed), neighbours)
    return float(np.sqrt(np.square(changed).sum())), int(extra.size)
