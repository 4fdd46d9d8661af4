"""Approximate personalised PageRank (APPR): exact on its support, at a cost that ignores the rest of the graph.

The vector of source s solves an L1-regularised problem (Fountoulakis, Roosta-Khorasani, Shun, Cheng &
Mahoney, Mathematical Programming 174, 2019, Equation 8): with Q = D^(−1/2)(D − (1−α)/2·(D + A))D^(−1/2),

    min over q of  ½ qᵀQq − α e_sᵀD^(−1/2)q + ρα‖D^(1/2)q‖₁,      p = D^(1/2)q.

ISTA (Algorithm 3 there) takes unit proximal steps from q = 0 until ‖D^(−1/2)∇f(q)‖_∞ ≤ (1 + γ)ρα. In the
variables p and r = −D^(1/2)∇f(q) one step is, for every node i of the active set S = {r_i ≥ ρα d_i},

    Δ_i = r_i − ρα d_i,   p_i += Δ_i,   r_i −= (1+α)/2·Δ_i,   r_j += (1−α)/2·Δ_i/d_i  for each neighbour j.

Iterates never decrease and S only grows (their Lemma 4), so S is kept as a queue and a step costs the
edges of S: at most 1/ρ of them (their Theorem 2), however large the graph is.

**Edge cases.** An isolated source keeps all its mass: p = e_s (the walk never leaves). A source with
d_s ≥ 1/ρ never becomes active: its row is empty. Input is a symmetric adjacency with unit weights and an
empty diagonal, which is what ``types.Graph`` holds: directions, weights, parallel edges and loops of a
file are gone by then.
"""

import numpy as np
import scipy.sparse as sp

from fedgraph.compiled import compiled, constant
from fedgraph.compiled import types as nt
from fedgraph.errors import DataError


def approximate_pagerank(
    adjacency: sp.csr_array, sources: np.ndarray, alpha: float = 0.25, rho: float = 1e-4, gamma: float = 1e-4
) -> sp.csr_array:
    """APPR rows of ``sources``, CSR float64 [len(sources), n], entries ≥ 0, column indices sorted.

    adjacency: CSR [n, n], symmetric, unit weights. sources: int [m], rows of the graph. alpha: teleport
    probability in (0, 1]. rho: sparsity, > 0 (mass per unit of degree below which a node stays out).
    gamma: relative slack of the optimality condition, > 0. Raises ``DataError`` for anything else.
    """
    _check(adjacency, sources, alpha, rho, gamma)
    indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
    found = _all_sources(indptr, indices, np.ascontiguousarray(sources, np.int64), alpha, rho, gamma)
    rows = sp.csr_array((found[2], found[1], found[0]), shape=(len(sources), adjacency.shape[0]))
    rows.sort_indices()
    return rows


def _check(adjacency: sp.csr_array, sources: np.ndarray, alpha: float, rho: float, gamma: float) -> None:
    if not 0 < alpha <= 1 or not rho > 0 or not gamma > 0:
        raise DataError(f"PageRank needs 0 < alpha ≤ 1, rho > 0 and gamma > 0, found {alpha}, {rho}, {gamma}")
    if adjacency.shape[0] != adjacency.shape[1] or (adjacency.data != 1).any():
        raise DataError("PageRank needs a square adjacency with unit weights (types.Graph.adjacency)")
    if len(sources) and not 0 <= np.min(sources) <= np.max(sources) < adjacency.shape[0]:
        raise DataError(
            f"PageRank sources must be rows 0 … {adjacency.shape[0] - 1}, found {np.min(sources)} … {np.max(sources)}"
        )


_INTS, _FLOATS = nt.Array(nt.int64, 1, "C"), nt.Array(nt.float64, 1, "C")
_INPUT = constant(nt.int64)
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
            wider[:begin], longer[:begin] = columns[:begin], values[:begin]
            columns, values = wider, longer
        for at in range(active):
            columns[begin + at] = queue[at]
            values[begin + at] = p[queue[at]]
            p[queue[at]] = 0.0
        starts[row + 1] = begin + active
    return starts, columns[: starts[-1]].copy(), values[: starts[-1]].copy()
