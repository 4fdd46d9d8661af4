"""Labels that agree along edges and among look-alikes: a mean-field pass over a public graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

ROWS = 2048  # rows whose similarities are held at a time


def mean_field(scores: np.ndarray, terms: list[tuple[float, sp.csr_array]], rounds: int) -> np.ndarray:
    """Q ← softmax(H + Σ_terms coupling · A Q), ``rounds`` times from Q = softmax(H): [n, c] probabilities.

    scores H [n, c] (logits), terms (coupling, A [n, n]). The mean-field update of a Potts model in which each
    edge adds ``coupling`` to the log-probability of equal labels (Wainwright & Jordan 2008, §5). Unlike an average
    over neighbours, a node that is sure of itself stays so, and more neighbours say more. A node without
    neighbours keeps softmax(H).
    """
    spread = softmax(scores, axis=1)
    for _ in range(rounds):
        logits = scores
        for coupling, neighbours in terms:
            logits = logits + coupling * (neighbours @ spread)
        spread = softmax(logits, axis=1)
    return spread


def doubt(scores: np.ndarray) -> float:
    """What the logits [n, c] leave open: 1 − the mean probability of the likeliest class, in [0, 1 − 1/c]."""
    return float(1.0 - softmax(scores, axis=1).max(axis=1).mean())


def look_alikes(rows: np.ndarray, count: int) -> sp.csr_array:
    """Row-stochastic [n, n]: each row's ``count`` nearest others by inner product (fewer where there are none).

    rows: float32 [n, k], of unit norm or zero. A zero row has no look-alikes and is nobody's.
    """
    n = rows.shape[0]
    count = min(count, n - 1)
    if count < 1:
        return sp.csr_array((n, n), dtype=np.float32)
    nearest, likeness = np.empty((n, count), dtype=np.int64), np.empty((n, count), dtype=np.float32)
    for first in range(0, n, ROWS):
        block = rows[first : first + ROWS] @ rows.T
        block[np.arange(len(block)), first + np.arange(len(block))] = -np.inf
        nearest[first : first + ROWS] = np.argpartition(-block, count - 1, axis=1)[:, :count]
        likeness[first : first + ROWS] = np.take_along_axis(block, nearest[first : first + ROWS], axis=1)
    keep = likeness > 0
    weights = keep / np.maximum(keep.sum(axis=1, keepdims=True), 1)
    found = sp.csr_array((weights.ravel(), nearest.ravel(), np.arange(n + 1) * count), shape=(n, n), dtype=np.float32)
    found.eliminate_zeros()
    return found
