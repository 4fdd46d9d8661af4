"""Matching numbers between classes: how often they meet along edges, with every node counted once (``privacy.meetings``)."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from fedgraph.learning.sampling.neighbour_sampling import priorities

COIN = 1  # names the public coins that keep an edge


def matching_numbers(
    adjacency: sp.csr_array, labels: np.ndarray, num_classes: int, ids: np.ndarray, share: float
) -> np.ndarray:
    """ν_ab for a ≤ b, row by row of the upper triangle, float64 [c(c + 1)/2].

    adjacency: symmetric [n, n]. labels: int64 [n]; a node labelled −1 meets nobody. ids: int64 [n], public; they name the
    coins: an edge is kept where a hash of its two ids is below ``share``, whatever the other edges are. Hopcroft & Karp (1973).
    """
    one, two = adjacency.nonzero()
    chosen = priorities(ids[one], ids[two], COIN) < np.uint64(min(share, 1 - 2**-53) * 2.0**64)
    one, two = one[chosen], two[chosen]
    found = []
    for a in range(num_classes):
        for b in range(a, num_classes):
            between = (labels[one] == a) & (labels[two] == b)
            rows, left = np.unique(one[between], return_inverse=True)
            columns, right = np.unique(two[between], return_inverse=True)
            graph = sp.csr_array((np.ones(left.size, np.int8), (left, right)), shape=(rows.size, columns.size))
            found.append(int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum()) if left.size else 0)
    return np.array(found, dtype=np.float64)
