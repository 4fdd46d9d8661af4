"""Matching numbers between classes: how often they meet along edges, with every node counted once (``private_counts``)."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from fedgraph.learning.sampling.neighbour_sampling import priorities

KEPT, SIDE = 1, 0  # name the public coins that keep an edge, and that put a node on a side


class MeetingRules(Protocol):
    """What ``private_counts.MeetingCounts`` says of the numbers: how many classes, and which edges are kept for which."""

    @property
    def num_classes(self) -> int: ...
    @property
    def rates(self) -> tuple[float, ...]: ...
    @property
    def class_rates(self) -> tuple[float, ...]: ...


def matching_numbers(adjacency: sp.csr_array, labels: np.ndarray, ids: np.ndarray, counted: MeetingRules) -> np.ndarray:
    """Nodes per class, matching numbers of like and of unlike ends at each rate, and of pairs of classes; float64 [length].

    adjacency: symmetric [n, n]. labels: int64 [n]; a node with a negative label is not counted and meets nobody. ids: int64
    [n], public; they name the coins: an edge is kept where a hash of its two ids is below the rate, whatever others are.
    """
    sides = priorities(ids, ids, SIDE) >> np.uint64(63)
    one, two = adjacency.nonzero()
    between = (sides[one] == 0) & (sides[two] == 1) & (labels[one] >= 0) & (labels[two] >= 0)
    one, two = one[between], two[between]
    coins = priorities(ids[one], ids[two], KEPT)
    found = list(np.bincount(labels[labels >= 0], minlength=counted.num_classes))
    for rate, kinds in [(rate, _alike) for rate in counted.rates] + [(rate, _by_class) for rate in counted.class_rates]:
        kept = coins <= np.uint64(rate * (2**64 - 2**12))
        each = kinds(labels[one[kept]], labels[two[kept]], counted.num_classes)
        found += [_matched(one[kept][kind], two[kept][kind]) for kind in each]
    return np.array(found, dtype=np.float64)


def _alike(one: np.ndarray, two: np.ndarray, num_classes: int) -> Iterator[np.ndarray]:
    """bool [edges]: within one class; between two."""
    yield from (one == two, one != two)


def _by_class(one: np.ndarray, two: np.ndarray, num_classes: int) -> Iterator[np.ndarray]:
    """bool [edges]: between classes a and b, for a ≤ b, row by row of the upper triangle."""
    low, high = np.minimum(one, two), np.maximum(one, two)
    for a in range(num_classes):
        for b in range(a, num_classes):
            yield (low == a) & (high == b)


def _matched(one: np.ndarray, two: np.ndarray) -> int:
    """The largest number of the edges one – two, between two sides, of which no two share an end (Hopcroft & Karp 1973)."""
    if not one.size:
        return 0
    rows, left = np.unique(one, return_inverse=True)
    columns, right = np.unique(two, return_inverse=True)
    graph = sp.csr_array((np.ones(left.size, np.int8), (left, right)), shape=(rows.size, columns.size))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
