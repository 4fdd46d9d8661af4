"""Pairs of nodes: drawn, split by public coins, and measured against held-out edges.

A pair is an int64 row (u, v) with u < v. An undirected edge is one pair.
"""

import numpy as np
import scipy.sparse as sp

HITS = (20, 50, 100)  # K of Hits@K (Hu et al. 2020, Open Graph Benchmark)
RANKED = 1000  # the first so many negatives rank a positive for MRR, as in ogbl-citation2


def edges_of(adjacency: sp.csr_array) -> np.ndarray:
    """int64 [m, 2], every undirected edge of a symmetric CSR matrix once, in the order of its rows."""
    upper = sp.triu(adjacency, 1).tocoo()
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def adjacency_of(pairs: np.ndarray, num_nodes: int) -> sp.csr_array:
    """The symmetric 0/1 CSR matrix of ``pairs`` [m, 2]."""
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    found = sp.csr_array((np.ones(len(ends), dtype=np.float32), (ends[:, 0], ends[:, 1])), shape=(num_nodes, num_nodes))
    found.sum_duplicates()
    found.data[:] = 1.0
    return found


def random_pairs(num_nodes: int, count: int, rng: np.random.Generator, without: sp.csr_array | None = None) -> np.ndarray:
    """int64 [count, 2], drawn uniformly from all pairs of different nodes (with replacement); never an edge of ``without``."""
    drawn = np.zeros((0, 2), dtype=np.int64)
    while len(drawn) < count:
        more = np.sort(rng.integers(num_nodes, size=(2 * count + 16, 2)), axis=1)
        more = more[more[:, 0] < more[:, 1]]
        if without is not None and len(more):
            more = more[np.asarray(without[more[:, 0], more[:, 1]]).ravel() == 0]
        drawn = np.concatenate([drawn, more])
    return drawn[:count]


def coins(pairs: np.ndarray, key: int) -> np.ndarray:
    """float64 [m] in [0, 1): a public coin for each pair, which depends on its two ids and on ``key`` alone.

    Whether an edge exists changes nobody's coin, so a split by coins costs no privacy (SplitMix64 of both ids).
    """
    low, high = pairs.min(axis=1).astype(np.uint64), pairs.max(axis=1).astype(np.uint64)
    state = _mix(_mix(low + np.uint64(key % 2**63)) ^ (high * np.uint64(0x9E3779B97F4A7C15)))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ (value >> np.uint64(31)))


def measure(positives: np.ndarray, negatives: np.ndarray) -> dict[str, float]:
    """How well scores tell held-out edges from pairs without an edge.

    Args:
        positives: float [p], scores of held-out edges, p ≥ 1.
        negatives: float [q], scores of pairs that are no edges, q ≥ 1.

    Returns:
        auc; hits_at_K (the share of positives above the K-th best negative, for each K that q allows); mrr (mean of 1 / rank
        among the first 1000 negatives; equal scores share their ranks).
    """
    from sklearn.metrics import roc_auc_score  # not before it is used: every run lists all tasks

    truth = np.concatenate([np.ones(positives.size), np.zeros(negatives.size)])
    found = {"auc": float(roc_auc_score(truth, np.concatenate([positives, negatives])))}
    best = np.sort(negatives)[::-1]
    found |= {f"hits_at_{k}": float((positives > best[k - 1]).mean()) for k in HITS if k <= negatives.size}
    some = np.sort(negatives[:RANKED])
    above = some.size - np.searchsorted(some, positives, side="right")
    equal = np.searchsorted(some, positives, side="right") - np.searchsorted(some, positives, side="left")
    return found | {"mrr": float((1.0 / (1.0 + above + equal / 2)).mean())}
