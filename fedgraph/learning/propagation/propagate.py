"""Spreading scores over a graph."""

import numpy as np
import scipy.sparse as sp


def row_stochastic(adjacency: sp.csr_array) -> sp.csr_array:
    """D⁻¹A; the row of an isolated node is zero."""
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    scale = np.divide(1.0, degree, out=np.zeros_like(degree, dtype=np.float64), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ adjacency)


def personalised_pagerank(adjacency: sp.csr_array, scores: np.ndarray, alpha: float, steps: int) -> np.ndarray:
    """Q ← (1 − α) D⁻¹A Q + αH, ``steps`` times from Q = H (DPAR, WWW 2024, Equation 4).

    adjacency [n, n], scores H [n, c] → [n, c]. An isolated node keeps the direction of its own score.
    """
    walk = row_stochastic(adjacency)
    out = scores
    for _ in range(steps):
        out = (1 - alpha) * (walk @ out) + alpha * scores
    return out


def symmetric_with_loops(adjacency: sp.csr_array) -> sp.csr_array:
    """D̃^(−1/2) (A + I) D̃^(−1/2), float32 (Kipf & Welling 2017, Equation 2)."""
    with_loops = adjacency + sp.eye_array(adjacency.shape[0], format="csr")
    scale = sp.diags_array(1.0 / np.sqrt(np.asarray(with_loops.sum(axis=1)).ravel()))
    return sp.csr_array(scale @ with_loops @ scale).astype(np.float32)
