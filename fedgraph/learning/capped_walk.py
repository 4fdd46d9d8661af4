"""GCON's propagation: a random walk whose steps to a neighbour are capped, with restart.

    Ã_uv = min(1/(k_u + 1), p) for neighbours, Ã_uu = 1 − Σ_v Ã_uv;      p ≤ ½      (rows sum to 1)
    Z_0 = X,   Z_{t+1} = (1−α) Ã Z_t + αX                                           (APPR; t → ∞: PPR)

Rows of Z_m have norm at most 1 if those of X have. One undirected edge changes Z_m by at most
Ψ(Z_m) = 4p(1−α)/α · [1 − (1−α)^m] in Σ_v ‖ΔZ_v‖₂. Proof: with w_v = max((k_v + 1)p, 1) the column sums satisfy wᵀÃ = wᵀ
and w ≥ 1, so 1ᵀÃᵗ ≤ wᵀ; an edge changes rows u and v of Ã by at most 2p/w in L1; and
ΔZ_m = Σ_{t<m} (1−α)^{t+1} Ã′ᵗ (ΔÃ) Z_{m−1−t}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError

_RESOLUTION = 1e-12  # what is left of the infinite walk after its last step


def capped_walk(adjacency: sp.csr_array, cap: float = 0.5) -> sp.csr_array:
    """Ã, CSR float64 [n, n]. adjacency: symmetric, entries 1, empty diagonal; anything else → ``DataError``."""
    matrix = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if matrix.diagonal().any():
        raise DataError("a node is its own neighbour; GCON's sensitivity is for graphs without self-loops: remove them")
    if matrix.nnz and not (matrix.data == 1).all():
        raise DataError("an edge has a weight or appears twice; GCON's sensitivity is for simple graphs: keep each edge once")
    if (matrix != matrix.T).nnz:
        raise DataError("the graph is directed; GCON's sensitivity is for undirected edges: symmetrise it")
    degree = np.diff(matrix.indptr)
    step = np.minimum(1.0 / (degree + 1.0), cap)
    return sp.csr_array(sp.diags_array(step) @ matrix + sp.diags_array(1.0 - degree * step))


def num_steps(steps: float, restart: float) -> int:
    """m as a whole number; ∞ stops where (1−α)^m < 1e-12, whose sensitivity is below that of the infinite walk."""
    if not math.isinf(steps):
        return int(steps)
    return 0 if restart == 1 else math.ceil(math.log(_RESOLUTION) / math.log1p(-restart))


def walked(walk: sp.csr_array, rows: np.ndarray, steps: Sequence[float], restart: float) -> np.ndarray:
    """(1/s)[Z_{m₁} ⊕ … ⊕ Z_{m_s}], float64 [n, s·h]. walk: Ã [n, n]. rows: X [n, h]."""
    start = np.asarray(rows, dtype=np.float64)
    wanted = [num_steps(m, restart) for m in steps]
    found = {0: start}
    z = start
    for t in range(1, max(wanted) + 1):
        z = (1 - restart) * (walk @ z) + restart * start
        if t in wanted:
            found[t] = z
    return np.concatenate([found[m] for m in wanted], axis=1) / len(wanted)
