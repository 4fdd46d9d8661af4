"""Random walks over a graph: spreading scores, GCON's capped walk, and approximate personalised PageRank.

**The capped walk** (GCON's propagation) takes no long step to any neighbour, and restarts:

    Ã_uv = min(1/(k_u + 1), p) for neighbours, Ã_uu = 1 − Σ_v Ã_uv;      p ≤ ½      (rows sum to 1)
    Z_0 = X,   Z_{t+1} = (1−α) Ã Z_t + αX                                           (APPR; t → ∞: PPR)

Rows of Z_m have norm at most 1 if those of X have. One undirected edge changes Z_m by at most
Ψ(Z_m) = 4p(1−α)/α · [1 − (1−α)^m] in Σ_v ‖ΔZ_v‖₂ (proof: ``docs/proofs.md``).

*Open walk*: a client that knows edges to nodes of others walks over its own nodes only, Z_{t+1} = (1−α)(QZ_t + RX) + αX, where
Q and R are its rows of Ã and the others' rows stay X, which is public. An edge to a node held elsewhere changes *one* row of
[Q R], so Z_m by at most Ψ(Z_m)/2.

**APPR** is exact on its support, at a cost that ignores the rest of the graph. The vector of source s solves an
L1-regularised problem (Fountoulakis, Roosta-Khorasani, Shun, Cheng & Mahoney, Mathematical Programming 174, 2019, Equation
8): with Q = D^(−1/2)(D − (1−α)/2·(D + A))D^(−1/2),

    min over q of  ½ qᵀQq − α e_sᵀD^(−1/2)q + ρα‖D^(1/2)q‖₁,      p = D^(1/2)q.

by ISTA (Algorithm 3 there) until ‖D^(−1/2)∇f(q)‖_∞ ≤ (1 + γ)ρα; the active set is kept as a queue of at most 1/ρ edges.

**Edge cases.** An isolated source keeps all its mass: p = e_s (the walk never leaves). A source with
d_s ≥ 1/ρ never becomes active: its row is empty. Input is a symmetric adjacency with unit weights and an
empty diagonal, which is what ``types.Graph`` holds: directions, weights, parallel edges and loops of a
file are gone by then.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fedgraph.compiled import compiled, compiled_constant
from fedgraph.compiled import compiled_types as nt
from fedgraph.errors import DataError
from fedgraph.learning import aggregation


def random_matrix(adjacency: sp.csr_array) -> sp.csr_array:
    """D⁻¹A; the row of an isolated node is zero."""
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    scale = np.divide(1.0, degree, out=np.zeros_like(degree, dtype=np.float64), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ adjacency)


def personalised_pagerank(adjacency: sp.csr_array, scores: np.ndarray, alpha: float, steps: int) -> np.ndarray:
    """Q ← (1 − α) D⁻¹A Q + αH, ``steps`` times from Q = H (DPAR, WWW 2024, Equation 4).
    adjacency: a, CSR [n, n]. scores: H, [n, c]. alpha: α. Returns [n, c]. An isolated node keeps the direction of its own
    score.
    """
    walk = random_matrix(adjacency)
    out = scores
    for _ in range(steps):
        out = (1 - alpha) * (walk @ out) + alpha * scores
    return out


def symmetric_matrix(adjacency: sp.csr_array) -> sp.csr_array:
    """D̃^(−1/2) (A + I) D̃^(−1/2), float32 (Kipf & Welling 2017, Equation 2)."""
    with_loops = adjacency + sp.eye_array(adjacency.shape[0], format="csr")
    scale = sp.diags_array(1.0 / np.sqrt(np.asarray(with_loops.sum(axis=1)).ravel()))
    return sp.csr_array(scale @ with_loops @ scale).astype(np.float32)


_RESOLUTION = 1e-12  # what is left of the infinite walk after its last step


def capped_matrix(adjacency: sp.csr_array, cap: float = 0.5) -> sp.csr_array:
    """Ã, float64 CSR [n, n].
    adjacency: CSR [n, n], symmetric, entries 1, empty diagonal. cap: p, at most ½. Raises ``DataError``: the adjacency is
    another kind of matrix.
    """
    return open_matrices(adjacency, sp.csr_array((adjacency.shape[0], 0)), cap)[0]


def open_matrices(adjacency: sp.csr_array, away: sp.csr_array, cap: float = 0.5) -> tuple[sp.csr_array, sp.csr_array]:
    """The rows of Ã for the nodes of one client. A node's degree counts edges of both kinds.
    adjacency: CSR [n, n], as in ``capped_matrix``. away: CSR [n, m], 1 for an edge to a node held elsewhere. cap: p, at most ½.
    Returns (Q [n, n], to its own nodes; R [n, m], to others), float64 CSR. Raises ``DataError``: the adjacency is another kind
    of matrix.
    """
    aggregation.require_simple(adjacency)
    inner, outer = (sp.csr_array(part, dtype=np.float64) for part in (adjacency, away))
    degree = np.diff(inner.indptr) + np.diff(outer.indptr)
    step = np.minimum(1.0 / (degree + 1.0), cap)
    stay = sp.diags_array(1.0 - degree * step)
    return sp.csr_array(sp.diags_array(step) @ inner + stay), sp.csr_array(sp.diags_array(step) @ outer)


def _num_steps(steps: float, restart: float) -> int:
    """m as a whole number; ∞ stops where (1−α)^m < 1e-12, whose sensitivity is below that of the infinite walk."""
    if not math.isinf(steps):
        return int(steps)
    return 0 if restart == 1 else math.ceil(math.log(_RESOLUTION) / math.log1p(-restart))


def rows_after(
    walk: sp.csr_array, rows: np.ndarray, steps: Sequence[float], restart: float, inflow: np.ndarray | float = 0.0
) -> np.ndarray:
    """(1/s)[Z_{m₁} ⊕ … ⊕ Z_{m_s}]: float64 [n, s·h].
    walk: Ã, or Q of an open walk, CSR [n, n]. rows: X, [n, h]. steps: m₁ … m_s; ∞ is allowed. restart: α. inflow: R·X of an
    open walk, [n, h].
    """
    start = np.asarray(rows, dtype=np.float64)
    wanted = [_num_steps(m, restart) for m in steps]
    found = {0: start}
    z = start
    for t in range(1, max(wanted) + 1):
        z = (1 - restart) * (walk @ z + inflow) + restart * start
        if t in wanted:
            found[t] = z
    return np.concatenate([found[m] for m in wanted], axis=1) / len(wanted)


def approximate_pagerank(
    adjacency: sp.csr_array, sources: np.ndarray, alpha: float = 0.25, rho: float = 1e-4, gamma: float = 1e-4
) -> sp.csr_array:
    """Rows of approximate personalised PageRank: float64 CSR [m, n], entries ≥ 0, column indices sorted.
    adjacency: CSR [n, n], symmetric, unit weights. sources: int [m], rows of the graph. alpha: teleport probability in (0, 1].
    rho: sparsity, above 0: mass per unit of degree below which a node stays out. gamma: relative slack of the optimality
    condition, above 0. Raises ``DataError``: a parameter or a source is out of its range, or the adjacency is not square with
    unit weights.
    """
    if not 0 < alpha <= 1 or not rho > 0 or not gamma > 0:
        raise DataError(f"PageRank needs 0 < alpha ≤ 1, rho > 0 and gamma > 0, found {alpha}, {rho}, {gamma}")
    if adjacency.shape[0] != adjacency.shape[1] or (adjacency.data != 1).any():
        raise DataError("PageRank needs a square adjacency with unit weights (types.Graph.adjacency)")
    if len(sources) and not 0 <= np.min(sources) <= np.max(sources) < adjacency.shape[0]:
        raise DataError(
            f"PageRank sources must be rows 0 … {adjacency.shape[0] - 1}, found {np.min(sources)} … {np.max(sources)}"
        )
    indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
    found = _all_sources(indptr, indices, np.ascontiguousarray(sources, np.int64), alpha, rho, gamma)
    rows = sp.csr_array((found[2], found[1], found[0]), shape=(len(sources), adjacency.shape[0]))
    rows.sort_indices()
    return rows


_INTS, _FLOATS = nt.Array(nt.int64, 1, "C"), nt.Array(nt.float64, 1, "C")
_INPUT = compiled_constant(nt.int64)
_SETTINGS = (nt.float64, nt.float64, nt.float64)


@compiled(nt.int64(_INPUT, _INPUT, nt.int64, *_SETTINGS, _FLOATS, _FLOATS, _FLOATS, _INTS, _INTS, _INTS))
def _one_source(indptr, indices, source, alpha, rho, gamma, p, r, step, queue, touched, mark):  # type: ignore[no-untyped-def]
    """Solve for one source; returns how many nodes are active (``queue``). Scratch arrays are left clean but p.
    p, r, step: float64 [n], zero on entry. mark: int64 [n], 0 untouched, 1 touched, 2 active.
    """
    threshold = rho * alpha
    degree = indptr[source + 1] - indptr[source]
    if degree == 0:
        p[source] = 1.0
        queue[0] = source
        return 1
    r[source] = alpha
    touched[0] = source
    mark[source] = 1
    num_touched, num_active = 1, 0
    if alpha >= threshold * degree:
        queue[0] = source
        mark[source] = 2
        num_active = 1
    while True:
        worst = 0.0
        for at in range(num_active):
            i = queue[at]
            d = indptr[i + 1] - indptr[i]
            step[at] = r[i] - threshold * d
            worst = max(worst, r[i] / d)
        if worst <= (1 + gamma) * threshold:
            break
        before = num_active
        for at in range(before):
            i = queue[at]
            change = step[at]
            p[i] += change
            r[i] -= (1 + alpha) / 2 * change
            share = (1 - alpha) / 2 * change / (indptr[i + 1] - indptr[i])
            for edge in range(indptr[i], indptr[i + 1]):
                j = indices[edge]
                r[j] += share
                if mark[j] == 0:
                    mark[j] = 1
                    touched[num_touched] = j
                    num_touched += 1
                if mark[j] == 1 and r[j] >= threshold * (indptr[j + 1] - indptr[j]):
                    mark[j] = 2
                    queue[num_active] = j
                    num_active += 1
    for at in range(num_touched):
        r[touched[at]] = 0.0
        mark[touched[at]] = 0
    return num_active


@compiled(nt.Tuple((_INTS, _INTS, _FLOATS))(_INPUT, _INPUT, _INPUT, *_SETTINGS))
def _all_sources(indptr, indices, sources, alpha, rho, gamma):  # type: ignore[no-untyped-def]
    """CSR parts (indptr, indices, data) of the rows of all sources, sharing one set of scratch arrays."""
    n = indptr.size - 1
    p, r, step = np.zeros(n), np.zeros(n), np.zeros(n)
    queue, touched, mark = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    starts = np.zeros(sources.size + 1, np.int64)
    columns, values = np.empty(1024, np.int64), np.empty(1024)
    for row in range(sources.size):
        active = _one_source(indptr, indices, sources[row], alpha, rho, gamma, p, r, step, queue, touched, mark)
        begin = starts[row]
        if begin + active > columns.size:
            room = 2 * (begin + active)
            wider, longer = np.empty(room, np.int64), np.empty(room)
            for at in range(begin):
                wider[at], longer[at] = columns[at], values[at]
            columns, values = wider, longer
        for at in range(active):
            columns[begin + at] = queue[at]
            values[begin + at] = p[queue[at]]
            p[queue[at]] = 0.0
        starts[row + 1] = begin + active
    return starts, columns[: starts[-1]].copy(), values[: starts[-1]].copy()
