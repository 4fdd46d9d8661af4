"""Pairs of nodes: listed, drawn, told apart by what is known of both ends, and measured against held-out edges.

A pair is an int64 row (u, v) with u < v. An undirected edge is one pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.learning.aggregation import scale_to_unit_length
from fedgraph.types import Subgraph

_HITS = (20, 50, 100)  # K of Hits@K (Hu et al. 2020, Open Graph Benchmark)
_RANKED = 1000  # the first so many negatives rank a positive for MRR, as in ogbl-citation2


def list_all(adjacency: sp.csr_array) -> np.ndarray:
    """Every undirected edge once: int64 [m, 2], u < v in each row, in ascending order.
    adjacency: CSR [n, n], symmetric; its values are not read.
    """
    upper = sp.triu(adjacency, 1).tocoo()
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def list_known(subgraph: Subgraph) -> tuple[np.ndarray, np.ndarray]:
    """The edges that a client knows, by global ids.
    Returns (int64 [m, 2], the edges among its own nodes; int64 [k, 2], those that lead to nodes of others, smaller id first).
    """
    own, nodes = list_all(subgraph.graph.adjacency), subgraph.nodes
    cut = np.zeros((0, 2), dtype=np.int64) if subgraph.cut is None else subgraph.cut
    away = np.sort(np.column_stack([nodes[cut[:, 0]], cut[:, 1]]), axis=1).astype(np.int64)
    return nodes[own] if len(own) else own, away


def adjacency_of(pairs: np.ndarray, num_nodes: int) -> sp.csr_array:
    """The symmetric matrix of pairs: CSR [n, n] of float32 ones. pairs: int64 [m, 2]; a pair may be there more than once."""
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    found = sp.csr_array((np.ones(len(ends), dtype=np.float32), (ends[:, 0], ends[:, 1])), shape=(num_nodes, num_nodes))
    found.sum_duplicates()
    found.data[:] = 1.0
    return found


def require_unlinked_pair(num_nodes: int, without: sp.csr_array | None = None) -> None:
    """Refuse a graph without a pair that could be drawn as a non-edge.
    without: CSR [n, n], the edges that may not be drawn; None: none. Raises ``DataError``: every two nodes are joined, or there
    are no two.
    """
    taken = 0 if without is None else int(without.nnz) // 2
    if taken >= num_nodes * (num_nodes - 1) // 2:
        raise DataError(f"there is no pair without an edge among {num_nodes} nodes with {taken} edges; allowed: one or more")


def draw_pairs(num_nodes: int, count: int, rng: np.random.Generator, without: sp.csr_array | None = None) -> np.ndarray:
    """Pairs of different nodes, drawn uniformly with replacement: int64 [count, 2], u < v in each row.
    count: how many; 0 is allowed. without: CSR [n, n], symmetric, edges that are never drawn; None: every pair may be. Raises
    ``DataError``: there is no such pair.
    """
    if count:
        require_unlinked_pair(num_nodes, without)
    drawn = np.zeros((0, 2), dtype=np.int64)
    while len(drawn) < count:
        more = np.sort(rng.integers(num_nodes, size=(2 * count + 16, 2)), axis=1)
        more = more[more[:, 0] < more[:, 1]]
        if without is not None and len(more):
            more = more[np.asarray(without[more[:, 0], more[:, 1]]).ravel() == 0]
        drawn = np.concatenate([drawn, more])
    return drawn[:count]


def measure_scores(positives: np.ndarray, negatives: np.ndarray) -> dict[str, float]:
    """How well scores tell held-out edges (float [p], p ≥ 1) from pairs without an edge (float [q], q ≥ 1).

    ``auc``; ``hits_at_K``, the share of positives above the K-th best negative, for each K of 20, 50, 100 that q allows (Hu et
    al. 2020, Open Graph Benchmark); ``mrr``, the mean of 1 / rank among the first ``_RANKED`` negatives, in which equal scores
    share their ranks.
    """
    from sklearn.metrics import roc_auc_score  # not before it is used: every run lists all tasks

    truth = np.concatenate([np.ones(positives.size), np.zeros(negatives.size)])
    found = {"auc": float(roc_auc_score(truth, np.concatenate([positives, negatives])))}
    best = np.sort(negatives)[::-1]
    found |= {f"hits_at_{k}": float((positives > best[k - 1]).mean()) for k in _HITS if k <= negatives.size}
    some = np.sort(negatives[:_RANKED])
    above = some.size - np.searchsorted(some, positives, side="right")
    equal = np.searchsorted(some, positives, side="right") - np.searchsorted(some, positives, side="left")
    return found | {"mrr": float((1.0 / (1.0 + above + equal / 2)).mean())}


def rank_scores(positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Of each positive the share of negatives below it, float64 [p]; equal ones count by half. Their mean is the AUC."""
    ranked = np.sort(negatives)
    sides = np.searchsorted(ranked, positives, side="left") + np.searchsorted(ranked, positives, side="right")
    return np.asarray(sides / (2 * ranked.size))


_RIDGE = 1e-2  # added to the diagonal of a correlation matrix before it is inverted
LINK_ROW_LENGTH = 2.0  # rows of what is known of a pair are scaled down to this length


def public_rows(features: sp.csr_array, width: int, seed: int) -> np.ndarray:
    """Directions of public features, by a truncated singular value decomposition where there are more than ``width`` features.
    features: CSR [n, d], public. width: how many columns at most. Returns float32 [n, ≤ width], rows of length one or zero; no
    column where there are no features.
    """
    if not features.shape[1] or not features.nnz:
        return np.zeros((features.shape[0], 0), dtype=np.float32)
    if features.shape[1] <= width:
        return scale_to_unit_length(np.asarray(features.toarray(), dtype=np.float32))
    from sklearn.decomposition import TruncatedSVD  # not before it is used: every run lists all methods

    svd = TruncatedSVD(width, random_state=seed % 2**32)
    return scale_to_unit_length(svd.fit_transform(sp.csr_matrix(features)).astype(np.float32))


@dataclass(frozen=True, eq=False)
class LinkScale:
    """Where similarities of random pairs lie; these are public given released rows."""

    centre: np.ndarray  # float64 [d], their mean
    spread: np.ndarray  # float64 [d], their standard deviation, 1 where it is 0

    @staticmethod
    def of_random(known: np.ndarray) -> LinkScale:
        """The scale of the similarities ``known``, float64 [q, d], of random pairs."""
        spread = known.std(axis=0)
        return LinkScale(known.mean(axis=0), np.where(spread > 1e-9, spread, 1.0))

    def apply(self, known: np.ndarray) -> np.ndarray:
        """Similarities [m, d], standardised, tails drawn in (arsinh), and at most ``LINK_ROW_LENGTH`` long."""
        rows = np.arcsinh((known - self.centre) / self.spread) / np.sqrt(max(1, known.shape[1]))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows * np.minimum(1.0, LINK_ROW_LENGTH / np.maximum(lengths, 1e-12)))


def fit_direction(known: np.ndarray, sums: np.ndarray, std: float = 0.0) -> np.ndarray:
    """Fisher's direction between edges and random pairs: float64 [d].
    known: float64 [q, d], scaled similarities of random pairs (``LinkScale``). sums: [1 + d], noisy: how many edges there are,
    and the sum of their scaled rows. std: of the noise in each sum; a difference is drawn towards zero by its share of noise
    (James & Stein 1961).
    """
    own = LinkScale.of_random(known)
    rows = (known - own.centre) / own.spread
    away = (sums[1:] / max(float(sums[0]), 1.0) - own.centre) / own.spread
    if std:
        noise = np.square(std / max(float(sums[0]), 1.0) / own.spread)
        away = away * np.maximum(0.0, 1.0 - noise / np.maximum(np.square(away), 1e-300))
    alike = rows.T @ rows / max(1, len(rows)) + _RIDGE * np.eye(known.shape[1])
    return np.asarray(np.linalg.solve(alike, away) / own.spread)
