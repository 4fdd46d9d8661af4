"""GCON's propagation: a random walk whose steps to a neighbour are capped, with restart.

    Ã_uv = min(1/(k_u + 1), p) for neighbours, Ã_uu = 1 − Σ_v Ã_uv;      p ≤ ½      (rows sum to 1)
    Z_0 = X,   Z_{t+1} = (1−α) Ã Z_t + αX                                           (APPR; t → ∞: PPR)

Rows of Z_m have norm at most 1 if those of X have. One undirected edge changes Z_m by at most
Ψ(Z_m) = 4p(1−α)/α · [1 − (1−α)^m] in Σ_v ‖ΔZ_v‖₂. Proof: with w_v = max((k_v + 1)p, 1) the column sums satisfy wᵀÃ = wᵀ
and w ≥ 1, so 1ᵀÃᵗ ≤ wᵀ; an edge changes rows u and v of Ã by at most 2p/w in L1; and
ΔZ_m = Σ_{t<m} (1−α)^{t+1} Ã′ᵗ (ΔÃ) Z_{m−1−t}.

Open walk: a client that knows edges to nodes of others walks over its own nodes only, Z_{t+1} = (1−α)(QZ_t + RX) + αX, where
Q and R are its rows of Ã and the others' rows stay X, which is public. An edge to a node held elsewhere changes *one* row of
[Q R], so Z_m by at most Ψ(Z_m)/2; the proof is the same with wᵀQ ≤ wᵀ, w counting all edges of a node.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.propagation.aggregation import require_simple

_RESOLUTION = 1e-12  # what is left of the infinite walk after its last step


def capped_walk(adjacency: sp.csr_array, cap: float = 0.5) -> sp.csr_array:
    """Ã, CSR float64 [n, n]. adjacency: symmetric, entries 1, empty diagonal; anything else → ``DataError``."""
    require_simple(adjacency)
    matrix = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    degree = np.diff(matrix.indptr)
    step = np.minimum(1.0 / (degree + 1.0), cap)
    return sp.csr_array(sp.diags_array(step) @ matrix + sp.diags_array(1.0 - degree * step))


def open_walk(adjacency: sp.csr_array, away: sp.csr_array, cap: float = 0.5) -> tuple[sp.csr_array, sp.csr_array]:
    """(Q [n, n], R [n, m]): the rows of Ã for the n nodes of one client, Q to its own nodes, R to m nodes that are not.

    adjacency: as in ``capped_walk``. away: CSR [n, m], 1 for an edge to a node held elsewhere. A node's degree counts both.
    """
    require_simple(adjacency)
    inner, outer = (sp.csr_array(part, dtype=np.float64) for part in (adjacency, away))
    degree = np.diff(inner.indptr) + np.diff(outer.indptr)
    step = np.minimum(1.0 / (degree + 1.0), cap)
    stay = sp.diags_array(1.0 - degree * step)
    return sp.csr_array(sp.diags_array(step) @ inner + stay), sp.csr_array(sp.diags_array(step) @ outer)


def num_steps(steps: float, restart: float) -> int:
    """m as a whole number; ∞ stops where (1−α)^m < 1e-12, whose sensitivity is below that of the infinite walk."""
    if not math.isinf(steps):
        return int(steps)
    return 0 if restart == 1 else math.ceil(math.log(_RESOLUTION) / math.log1p(-restart))


def walked(
    walk: sp.csr_array, rows: np.ndarray, steps: Sequence[float], restart: float, inflow: np.ndarray | float = 0.0
) -> np.ndarray:
    """(1/s)[Z_{m₁} ⊕ … ⊕ Z_{m_s}], float64 [n, s·h]. walk: Ã [n, n]. rows: X [n, h]. inflow: R·X of an open walk, [n, h]."""
    start = np.asarray(rows, dtype=np.float64)
    wanted = [num_steps(m, restart) for m in steps]
    found = {0: start}
    z = start
    for t in range(1, max(wanted) + 1):
        z = (1 - restart) * (walk @ z + inflow) + restart * start
        if t in wanted:
            found[t] = z
    return np.concatenate([found[m] for m in wanted], axis=1) / len(wanted)
