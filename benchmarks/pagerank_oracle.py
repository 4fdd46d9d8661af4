"""What the compiled PageRank is held against: the published loop, and how far a row is from the minimiser."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def published_loop(
    adjacency: sp.csr_array, source: int, alpha: float = 0.25, rho: float = 1e-4, gamma: float = 1e-4
) -> np.ndarray:
    """Algorithm 3 of Fountoulakis et al. (2019) for one source, line by line on full vectors; float64 [n].

    The oracle of ``approximate_pagerank`` (same iterates up to rounding). Degrees must be positive, but for
    the source's own, whose vector is then e_s.
    """
    degree = np.diff(adjacency.indptr).astype(np.float64)
    n = degree.size
    if degree[source] == 0:
        return np.eye(1, n, source).ravel()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    q = np.zeros(n)
    gradient = np.zeros(n)
    gradient[source] = -alpha / root[source]
    while np.max(np.abs(gradient / root)) > (1 + gamma) * rho * alpha:
        chosen = (q - gradient >= rho * alpha * root) & (degree > 0)
        step = np.where(chosen, -(gradient + rho * alpha * root), 0.0)
        if not step.any():
            break
        q = q + step
        gradient = gradient + (1 + alpha) / 2 * step - (1 - alpha) / 2 * (adjacency @ (step / root)) / root
    return root * q


def optimality_gap(adjacency: sp.csr_array, row: np.ndarray, source: int, alpha: float, rho: float) -> float:
    """How far ``row`` (p, dense [n], of a non-isolated source) is from the minimiser's conditions, relative to ρα.

    With g = D^(−1/2)∇f(q): g_i = −ρα where p_i > 0 and −ρα ≤ g_i ≤ 0 elsewhere (Equation 9 there). Returns
    the largest violation over all nodes divided by ρα; the exact minimiser has 0, ISTA at most γ.
    """
    degree = np.diff(adjacency.indptr).astype(np.float64)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    spread = row * inverse
    g = ((1 + alpha) / 2 * row - (1 - alpha) / 2 * (adjacency @ spread)) * inverse
    g[source] -= alpha * inverse[source]
    on = row > 0
    off_support = np.maximum(np.maximum(g, -g - rho * alpha), 0.0)
    return float(np.max(np.where(on, np.abs(g + rho * alpha), off_support)) / (rho * alpha))
