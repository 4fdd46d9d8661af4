"""The (fused) Gromov-Wasserstein discrepancy between many small spaces, square loss.

    GW(C, p; D, q)  = min_T Σ_ijkl |C_ik − D_jl|² T_ij T_kl                       over couplings T of (p, q)
    FGW_α           = min_T (1 − α) Σ_ij |x_i − y_j|² T_ij + α Σ_ijkl |C_ik − D_jl|² T_ij T_kl

Values are the *discrepancy* as POT's ``gromov_wasserstein2`` and ``fused_gromov_wasserstein2`` return it:
no root is taken. The problem is not convex; a number is a local minimum found by conditional gradient
from a stated start, and ``restarts`` and ``kicks`` look for a lower one.

POT solves two more problems (Peyré et al. 2016, section 2; Xu, Luo, Zha & Carin, Gromov-Wasserstein learning for graph matching
and node embedding, ICML 2019): with the Kullback-Leibler loss a·log(a/b) − a + b in place of (a − b)², which is not symmetric,
so a pair's value is the mean of both orders; and by the proximal point algorithm in place of conditional gradient.

Use from any outside map: cut ``all_pairs(num)`` into chunks, call ``solve_pairs`` on each, join with
``assemble_matrix``. A pair's result depends on its two spaces, the options and its two numbers, not on the chunk.

**The compiled descent.** For couplings T of (p, q) (T ≥ 0, T 1 = p, Tᵀ 1 = q) the objective is

    F(T) = (1 − α) ⟨M, T⟩ + α ( Σ_ik C²_ik p_i p_k + Σ_jl D²_jl q_j q_l − 2 ⟨C T D, T⟩ )

(Peyré, Cuturi & Solomon 2016, Proposition 1; Vayer et al. 2019, Eq. 3, for α < 1), with gradient
(1 − α) M − 4 α C T D up to terms that are constant on the polytope. A step solves the transport problem
for the gradient (exactly, by ``transport``), then goes to the exact minimum of the quadratic on the
segment (Vayer et al. 2019, Algorithm 2). The code holds W = −C T D, so that W is itself the cost for α = 1.

Three facts make it fast. Only W and two scalar products are kept up to date, T itself is not
needed. The new vertex V has at most n + m − 1 entries, so ⟨·, V⟩ and V D are sparse. And from T = p qᵀ
the first W is −(C p)(D q)ᵀ, for which the monotone coupling of the sorted C p and D q is optimal: the first
transport problem costs nothing, and every later one starts from the tree of the one before.

**Restarts** begin at random orders of points, named by a seed and a pair, the same on every path and machine. **Kicks**: random
pivots lead from where a descent ended to another vertex nearby, and it descends again, from the basis that it had: about a
fifth of a descent from a random vertex. This is iterated local search (Lourenço, Martin & Stützle, Handbook of Metaheuristics,
2003), the usual remedy for quadratic assignment, of which Gromov-Wasserstein is the relaxation.

References: Peyré, Cuturi & Solomon, Gromov-Wasserstein averaging of kernel and distance matrices, ICML
2016; Vayer, Chapel, Flamary, Tavenard & Courty, Optimal transport for structured data with application
on graphs, ICML 2019; Flamary et al., POT: Python Optimal Transport, JMLR 2021.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import threadpoolctl
from scipy.spatial.distance import cdist

from fedgraph import seeds
from fedgraph.comparison import metric_space
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.transport import PARENT, improve_tree, pivot_tree, plant_tree, round_weights, wander_tree
from fedgraph.compiled import compiled
from fedgraph.errors import DataError

_PROXIMAL_STEP = 0.3  # times the range of the first slope
_PROXIMAL_STEPS = 300  # at most
_INNER_STEPS = 20  # of Sinkhorn in each
_BLAS_FROM = 64
_LONGEST = 0.6  # most pivots of a kick, in numbers of rows
_PRODUCT, _RANDOM, _KICKED = 0, 1, 2


@dataclass(frozen=True)
class GromovOptions:
    """How a discrepancy is computed.

    Attributes:
        solver: Which one:

            * ``fast``: compiled, from p qᵀ;
            * ``pot``: POT's conditional gradient, the reference; one descent from p qᵀ, no restarts;
            * ``proximal``: POT's proximal point algorithm, once from p qᵀ;
            * ``batched``: POT's proximal gradient for many pairs at once, on torch's device (``batched``), once from p qᵀ.
        loss: ``square`` or, by POT alone, ``kl``.
        alpha: None for GW; in [0, 1] for FGW, 1 meaning structure alone.
        max_iterations: Of each descent, at least 1.
        tolerance: It stops when the objective moves by less, absolutely or relatively (POT's two tolerances).
        restarts: Further descents from random vertices; the lowest counts.
        kicks: Descents after those, each from the best end so far after a few random pivots; one costs about a
            fifth of a restart.
        seed: Root of the random vertices and pivots.

    Raises:
        ValueError: A field is out of its range, or fields do not go together.
    """

    solver: Literal["fast", "pot", "proximal", "batched"] = "fast"
    loss: Literal["square", "kl"] = "square"
    alpha: float | None = None
    max_iterations: int = 10_000
    tolerance: float = 1e-9
    restarts: int = 0
    kicks: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.solver not in ("fast", "pot", "proximal", "batched") or self.loss not in ("square", "kl"):
            raise ValueError(
                f"unknown solver {self.solver!r} or loss {self.loss!r}; allowed: fast, pot, proximal, batched; square, kl"
            )
        if self.loss == "kl" and self.solver not in ("pot", "proximal"):
            raise ValueError(
                f"loss 'kl' is solved by POT, pair by pair; allowed with it: solver 'pot' or 'proximal', found {self.solver!r}"
            )
        if self.alpha is not None and not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha must lie in [0, 1] (or be None for plain GW), found {self.alpha}")
        if self.max_iterations < 1 or min(self.restarts, self.kicks) < 0 or not self.tolerance >= 0.0:
            raise ValueError("max_iterations must be at least 1, restarts, kicks and tolerance not negative")
        if self.by_pot and (self.restarts or self.kicks):
            raise ValueError(f"solver {self.solver!r} is a plain reference: one descent from the product")

    @property
    def by_pot(self) -> bool:
        """Whether POT solves."""
        return self.solver != "fast"


@dataclass(frozen=True, eq=False)
class GromovResults:
    """What was found for k pairs."""

    value: np.ndarray  # float64 [k], discrepancies
    converged: np.ndarray  # bool [k]
    iterations: np.ndarray  # int64 [k], of the descent that won


def all_pairs(num: int) -> np.ndarray:
    """All pairs i < j of spaces, in row order: int64 [num (num − 1) / 2, 2].

    Args:
        num: How many spaces.
    """
    return np.stack(np.triu_indices(num, 1), axis=1).astype(np.int64)


def assemble_matrix(num: int, which: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The symmetric matrix of discrepancies, with a zero diagonal: float64 [num, num]; NaN for pairs that are not given.

    Args:
        num: How many spaces.
        which: int [k, 2], pairs.
        values: float [k].
    """
    distances = np.full((num, num), np.nan)
    np.fill_diagonal(distances, 0.0)
    distances[which[:, 0], which[:, 1]] = values
    distances[which[:, 1], which[:, 0]] = values
    return distances


def solve_pairs(spaces: Sequence[MetricSpace], which: np.ndarray, options: GromovOptions = GromovOptions()) -> GromovResults:
    """The discrepancy of every pair. (i, j) and (j, i) give the same number exactly; (i, i) is solved like any pair.

    Args:
        spaces: The spaces.
        which: int [k, 2], numbers into them.
        options: How.

    Raises:
        ValueError: A number names no space.
        DataError: The fused discrepancy is asked for and a space has no features.
    """
    return _solve(spaces, which, options, keep=False)[0]


@functools.cache
def _pools() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


@contextmanager
def on_one_thread() -> Iterator[None]:
    """The libraries of linear algebra compute on one thread: small matrices on many cost 2.7 × the CPU, and gain no time."""
    with _pools().limit(limits=1):
        yield


def solve_couplings(
    spaces: Sequence[MetricSpace], which: np.ndarray, options: GromovOptions = GromovOptions()
) -> tuple[GromovResults, list[np.ndarray]]:
    """As ``solve_pairs``, with the couplings.

    Args:
        spaces: The spaces.
        which: int [k, 2], numbers into them.
        options: How.

    Returns:
        (the results, one float64 [n_i, n_j] for each pair).
    """
    asked = np.asarray(which, dtype=np.int64).reshape(-1, 2)
    results, found = _solve(spaces, which, options, keep=True)
    return results, [plan if i <= j else plan.T for plan, (i, j) in zip(found, asked, strict=True)]


def _solve(
    spaces: Sequence[MetricSpace], which: np.ndarray, options: GromovOptions, keep: bool
) -> tuple[GromovResults, list[np.ndarray]]:
    """The results, and with ``keep`` the couplings of the pairs, smaller number first. Where the loss is not symmetric, a
    result is that of both orders, with the first one's coupling.
    """
    which = np.sort(np.asarray(which, dtype=np.int64).reshape(-1, 2), axis=1)
    if which.size and (which.min() < 0 or which.max() >= len(spaces)):
        raise ValueError(f"pairs name spaces {which.min()} … {which.max()}; allowed: 0 … {len(spaces) - 1}")
    with on_one_thread():
        if not options.by_pot:
            return _fast(spaces, which, options, keep)
        if options.solver == "batched":
            from fedgraph.comparison.batched import STEPS, solve_in_batches  # not before it is used: it imports torch

            values, converged, couplings = solve_in_batches(spaces, which, options.alpha)
            return GromovResults(values, converged, np.full(len(which), STEPS, np.int64)), couplings if keep else []
        solve = solve_by_pot if options.solver == "pot" else _proximal_gw
        results = GromovResults(np.zeros(len(which)), np.zeros(len(which), bool), np.zeros(len(which), np.int64))
        plans = []
        for k, (i, j) in enumerate(which):
            value, done, steps, plan = solve(spaces[i], spaces[j], options)
            if options.loss == "kl":
                other = solve(spaces[j], spaces[i], options)
                value, done, steps = (value + other[0]) / 2, done and other[1], steps + other[2]
            results.value[k], results.converged[k], results.iterations[k] = value, done, steps
            plans += [plan] if keep else []
    return results, plans


def solve_by_pot(
    first: MetricSpace, second: MetricSpace, options: GromovOptions, start: np.ndarray | None = None
) -> tuple[float, bool, int, np.ndarray]:
    """POT's conditional gradient from p qᵀ, or from ``start`` [n, m]: (value, converged, iterations, coupling [n, m])."""
    import ot  # not before it is used: every run lists all tasks

    stop = {"max_iter": options.max_iterations, "tol_rel": options.tolerance, "tol_abs": options.tolerance}
    c, d, p, q = (np.array(part) for part in (first.distances, second.distances, first.weights, second.weights))
    given = (c, d, p, q, f"{options.loss}_loss")
    how = {"symmetric": True, "log": True, "G0": start, **stop}
    if options.alpha is None:
        coupling, log = ot.gromov.gromov_wasserstein(*given, **how)
        value = log["gw_dist"]
    else:
        how["alpha"] = options.alpha
        coupling, log = ot.gromov.fused_gromov_wasserstein(_feature_costs(first, second), *given, **how)
        value = log["fgw_dist"]
    steps = len(log["loss"]) - 1
    return max(float(value), 0.0), steps < options.max_iterations, steps, coupling


def _feature_costs(first: MetricSpace, second: MetricSpace) -> np.ndarray:
    """Squared distances of the features, float64 [n, m]."""
    if first.features is None or second.features is None:
        raise DataError("the fused discrepancy (alpha given) needs spaces with features; one has none")
    return cdist(first.features, second.features, "sqeuclidean")


def _proximal_gw(first: MetricSpace, second: MetricSpace, options: GromovOptions) -> tuple[float, bool, int, np.ndarray]:
    """POT's proximal point algorithm from p qᵀ; as ``solve_by_pot``. Its last coupling, which meets the weights to about
    1 %, is put on the polytope (Altschuler, Weed & Rigollet 2017, Algorithm 2), and the value is that coupling's.
    """
    import ot  # not before it is used: every run lists all tasks

    c, d, p, q = (np.array(part) for part in (first.distances, second.distances, first.weights, second.weights))
    loss, share = f"{options.loss}_loss", 1.0 if options.alpha is None else options.alpha
    costs = np.zeros((p.size, q.size)) if options.alpha is None else _feature_costs(first, second)
    fixed = ot.gromov.init_matrix(c, d, p, q, loss)
    slope = share * ot.gromov.gwggrad(*fixed, np.outer(p, q)) + (1.0 - share) * costs
    step = max(_PROXIMAL_STEP * float(np.ptp(slope)), _PROXIMAL_STEP * 1e-9 * float(np.abs(slope).max()), 1e-300)
    steps = min(options.max_iterations, _PROXIMAL_STEPS)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):  # entries of a coupling may be 0, and their logarithm −∞
        warnings.filterwarnings("ignore", message="Sinkhorn did not converge")  # nor need it: a few inner steps are enough
        plan, log = ot.gromov.entropic_fused_gromov_wasserstein(
            costs, c, d, p, q, loss, step, symmetric=True, alpha=share, max_iter=steps, tol=1e-7, solver="PPA", log=True,
            numItermax=_INNER_STEPS,
        )  # fmt: skip
    if not np.isfinite(plan).all():
        raise DataError("POT's proximal point algorithm gave NaN for a pair of spaces; allowed here: solver 'pot'")
    plan = plan * np.minimum(1.0, p / np.maximum(plan.sum(axis=1), 1e-300))[:, None]
    plan = plan * np.minimum(1.0, q / np.maximum(plan.sum(axis=0), 1e-300))
    lost = p - plan.sum(axis=1)
    plan = plan + np.outer(lost, q - plan.sum(axis=0)) / max(float(lost.sum()), 1e-300)
    value = share * float(ot.gromov.gwloss(*fixed, plan)) + (1.0 - share) * float((costs * plan).sum())
    done = 10 * len(log["err"])  # POT looks at every tenth
    return max(value, 0.0), done < steps, min(done, steps), plan


class _Packed(NamedTuple):
    """S spaces with N points and Q = Σ n² distances in all; points of weight zero are left out."""

    names: np.ndarray  # int64 [S], each space's number in the caller's list
    point_at: np.ndarray  # int64 [S + 1], where each space's points start
    matrix_at: np.ndarray  # int64 [S + 1], where each space's distances start
    distances: np.ndarray  # float64 [Q]
    weights: np.ndarray  # float64 [N]
    products: np.ndarray  # float64 [N], C p: each point's mean distance
    whole: np.ndarray  # float64 [N], weights as whole numbers (``round_weights``)
    even: np.ndarray  # bool [S], whether weights are all equal
    order: np.ndarray  # int64 [N], points by ascending mean distance, ties by mean squared distance
    own: np.ndarray  # float64 [S], Σ_ik C²_ik p_i p_k
    widest: np.ndarray  # float64 [S], the largest |C_ik|
    features: np.ndarray  # float64 [N, f], f = 0 where there are none


def _pack(spaces: Sequence[MetricSpace], names: np.ndarray, fused: bool) -> _Packed:
    """Copies (never views) of what the solver needs. Raises ``DataError`` when features are needed but missing."""
    parts = [_part(space, fused) for space in spaces]
    distances, weights, products, whole, order, own, features = zip(*parts, strict=True)
    sizes = np.array([w.size for w in weights], dtype=np.int64)
    widths = {f.shape[1] for f in features}
    if len(widths) > 1:
        raise DataError(f"spaces to be compared have features of different widths: {sorted(widths)}")
    return _Packed(
        names=np.array(names, dtype=np.int64),
        point_at=np.concatenate([[0], np.cumsum(sizes)]),
        matrix_at=np.concatenate([[0], np.cumsum(sizes * sizes)]),
        distances=np.concatenate(distances),
        weights=np.concatenate(weights),
        products=np.concatenate(products),
        whole=np.concatenate(whole),
        even=np.array([(w == w[0]).all() for w in weights]),
        order=np.concatenate(order),
        own=np.array(own),
        widest=np.array([np.abs(d).max() for d in distances]),
        features=np.concatenate(features),
    )


def _part(space: MetricSpace, fused: bool) -> tuple[Any, ...]:
    distances, weights, features = space.distances, space.weights, space.features
    if fused and features is None:
        raise DataError("the fused discrepancy (alpha given) needs spaces with features; this one has none")
    kept = metric_space.points_of(space)
    if kept.size < weights.size:
        distances = distances[np.ix_(kept, kept)]
        weights = weights[kept] / weights[kept].sum()
        features = features[kept] if features is not None else None
    squares = distances * distances
    products = distances @ weights
    second = squares @ weights
    scale = max(float(np.abs(products).max(initial=0.0)), 1e-300)
    order = np.lexsort((second, np.round(products / scale, 10)))
    rows = np.ascontiguousarray(features) if fused and features is not None else np.zeros((weights.size, 0))
    return distances.ravel(), weights, products, round_weights(weights), order, float(weights @ second), rows


def _fast(
    spaces: Sequence[MetricSpace], which: np.ndarray, options: GromovOptions, keep: bool
) -> tuple[GromovResults, list[np.ndarray]]:
    names, local = np.unique(which, return_inverse=True)
    local = local.reshape(-1, 2)
    count = which.shape[0]
    values, steps, done = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    kept_at, kept = np.zeros(1, np.int64), np.zeros(0)
    if count:
        packed = _pack([spaces[i] for i in names], names, fused=options.alpha is not None)
        sizes = np.diff(packed.point_at)
        if keep:
            kept_at = np.concatenate([[0], np.cumsum(sizes[local].prod(axis=1))])
            kept = np.zeros(kept_at[-1])
        alpha = 1.0 if options.alpha is None else float(options.alpha)
        limits = (options.max_iterations, options.tolerance, options.tolerance)
        seed = np.uint64(seeds.seeded_integer(options.seed, "gromov", "restart"))
        how = (alpha, options.restarts, options.kicks, seed, limits)
        _solve_by_descent(tuple(packed), local, *how, kept_at, kept, values, steps, done)
    plans = []
    for k, (i, j) in enumerate(which if keep else ()):  # points of weight zero have empty rows and columns
        rows, columns = metric_space.points_of(spaces[i]), metric_space.points_of(spaces[j])
        flat, turned = kept[kept_at[k] : kept_at[k + 1]], rows.size > columns.size
        plan = np.zeros((spaces[i].num_points, spaces[j].num_points))
        plan[np.ix_(rows, columns)] = flat.reshape(columns.size, -1).T if turned else flat.reshape(rows.size, -1)
        plans.append(plan)
    return GromovResults(values, done, steps), plans


@compiled(nan=False)
def _scramble(state):  # type: ignore[no-untyped-def]
    """One splitmix64 output (Steele, Lea & Flood 2014) of a uint64 state."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(nan=False)
def _shuffled(order, state):  # type: ignore[no-untyped-def]
    """A random permutation of 0 … size − 1 into ``order``; returns the state that follows."""
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        state = _scramble(state)
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return state


@compiled(nan=False)
def _draw_restart_orders(seed, attempt, first, second, rows, columns):  # type: ignore[no-untyped-def]
    """The random north-west corner of a pair: permutations into ``rows`` and ``columns``, named by (seed, attempt, names)."""
    state = _scramble(np.uint64(seed) ^ _scramble(np.uint64(attempt)))
    state = _scramble(state ^ np.uint64(min(first, second)))
    state = _scramble(state ^ np.uint64(max(first, second)))
    state = _shuffled(rows, state)
    _shuffled(columns, state)


@compiled(nan=False)
def _seed_kicks(seed, first, second):  # type: ignore[no-untyped-def]
    """The random state of a pair's kicks, named by (seed, both names in either order)."""
    state = _scramble(np.uint64(seed) ^ _scramble(np.uint64(min(first, second))))
    return _scramble(state ^ np.uint64(max(first, second)))


@compiled(nan=False)
def _kick(tree, flow, dual, n, state):  # type: ignore[no-untyped-def]
    """1 … ``_LONGEST`` · n random edges enter the tree, whatever they cost; returns the state that follows.

    The duals are wrong afterwards: ``improve_tree`` sets them anew. Depths, which a pivot needs, are right.
    """
    m = flow.size - n
    state = _scramble(state)
    many = 1 + np.int64(state % np.uint64(max(1, int(_LONGEST * n))))
    for _ in range(many):
        state = _scramble(state)
        row = np.int64(state % np.uint64(n))
        state = _scramble(state)
        column = np.int64(state % np.uint64(m))
        if tree[PARENT, row] != n + column and tree[PARENT, n + column] != row:
            pivot_tree(tree, flow, dual, row, n + column, n, 0.0)
    return state


@compiled(nan=False)
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@compiled(nan=False)
def _times_vertex(c, d, tree, flow, scale, half, out):  # type: ignore[no-untyped-def]
    """out = C V D for the vertex V that the tree carries (entries flow · scale)."""
    n, m = out.shape
    half[:] = 0.0
    for v in range(n + m):
        amount = flow[v] * scale
        if tree[PARENT, v] < 0 or amount == 0.0:
            continue
        i = v if v < n else tree[PARENT, v]
        j = tree[PARENT, v] - n if v < n else v - n
        for k in range(m):
            half[i, k] += amount * d[j, k]
    if n >= _BLAS_FROM:
        np.dot(c, half, out)
        return
    whole = n - n % 4
    out[:] = 0.0
    for i in range(n):
        for r in range(0, whole, 4):
            c0 = c[i, r]
            c1 = c[i, r + 1]
            c2 = c[i, r + 2]
            c3 = c[i, r + 3]
            for k in range(m):
                out[i, k] += c0 * half[r, k] + c1 * half[r + 1, k] + c2 * half[r + 2, k] + c3 * half[r + 3, k]
        for r in range(whole, n):
            c0 = c[i, r]
            for k in range(m):
                out[i, k] += c0 * half[r, k]


@compiled(nan=False)
def _on_vertex(matrix, tree, flow, scale):  # type: ignore[no-untyped-def]
    """⟨matrix, V⟩ for the vertex V that the tree carries."""
    n = matrix.shape[0]
    total = 0.0
    for v in range(tree.shape[1]):
        parent = tree[PARENT, v]
        if parent >= 0:
            total += flow[v] * (matrix[v, parent - n] if v < n else matrix[parent, v - n])
    return total * scale


@compiled(nan=False)
def _mix_vertex(coupling, tree, flow, scale, step):  # type: ignore[no-untyped-def]
    """T ← (1 − step) T + step V, in place."""
    n = coupling.shape[0]
    for i in range(n):
        for j in range(coupling.shape[1]):
            coupling[i, j] = (1.0 - step) * coupling[i, j] if step < 1.0 else 0.0
    for v in range(tree.shape[1]):
        parent = tree[PARENT, v]
        if parent >= 0:
            if v < n:
                coupling[v, parent - n] += step * scale * flow[v]
            else:
                coupling[parent, v - n] += step * scale * flow[v]


@compiled(nan=False)
def _first_plan(c, d, p, q, cp, dq, linear, fused, start, scale, tree, flow, half, w, keep, kept):  # type: ignore[no-untyped-def]
    """Fill W (and ``kept``) for the first plan: p qᵀ or the tree's vertex; returns (its quadratic part, its linear part)."""
    n = w.shape[0]
    linear_t = 0.0
    if start == _PRODUCT:
        for i in range(n):
            for j in range(dq.size):
                w[i, j] = -cp[i] * dq[j]
        quadratic_t = -_dot(p, cp) * _dot(q, dq)
        for i in range(n if fused else 0):
            linear_t += p[i] * _dot(linear[i], q)
        for i in range(n if keep else 0):
            for j in range(q.size):
                kept[i, j] = p[i] * q[j]
    else:
        _times_vertex(c, d, tree, flow, -scale, half, w)
        quadratic_t = _on_vertex(w, tree, flow, scale)
        if fused:
            linear_t = _on_vertex(linear, tree, flow, scale)
        if keep:
            _mix_vertex(kept, tree, flow, scale, 1.0)
    return quadratic_t, linear_t


@compiled(nan=False)
def _descend(  # type: ignore[no-untyped-def]
    c, d, p, q, cp, dq, supply, demand, row_order, column_order, linear, alpha, constant, start, limits, space, keep, kept
):
    """One descent; returns (F, iterations, converged).

    c [n, n], d [m, m], weights p, q, products cp = C p, dq = D q, integer supply and demand (one total),
    the orders that plant the first tree, linear = M [n, m] (read only if alpha < 1), constant = the two
    fixed sums of F. start: _PRODUCT (p qᵀ), _KICKED (the tree's vertex) or the planted one. limits = (max iterations, relative
    tolerance, absolute tolerance, tolerance of a reduced cost): it stops when a step gains less than a
    tolerance, or when T is the only vertex that is optimal for its own gradient. space: the work arrays (cost, W,
    W of V, half product, tree, flow, dual). With keep, ``kept`` [n, m] receives T.
    """
    cost, w, w_vertex, half, tree, flow, dual = space
    n, m = w.shape
    fused = alpha < 1.0
    scale = 1.0 / supply.sum()
    if start != _KICKED:
        plant_tree(supply, demand, row_order, column_order, tree, flow)
    quadratic_t, linear_t = _first_plan(c, d, p, q, cp, dq, linear, fused, start, scale, tree, flow, half, w, keep, kept)
    value = (1.0 - alpha) * linear_t + alpha * (constant + 2.0 * quadratic_t)
    at_vertex = start != _PRODUCT
    for iteration in range(1, limits[0] + 1):
        if fused:
            for i in range(n):
                for j in range(m):
                    cost[i, j] = (1.0 - alpha) * linear[i, j] + 4.0 * alpha * w[i, j]
        pivots = improve_tree(cost if fused else w, tree, flow, dual, limits[3])
        if pivots == 0 and at_vertex and wander_tree(cost if fused else w, tree, flow, dual, limits[3]) == 0:
            return max(value, 0.0), iteration, True
        linear_v = _on_vertex(linear, tree, flow, scale) if fused else 0.0
        cross = _on_vertex(w, tree, flow, scale)
        slope = (1.0 - alpha) * (linear_v - linear_t) + 4.0 * alpha * (cross - quadratic_t)
        _times_vertex(c, d, tree, flow, -scale, half, w_vertex)
        quadratic_v = _on_vertex(w_vertex, tree, flow, scale)
        bend = 2.0 * alpha * (quadratic_v - 2.0 * cross + quadratic_t)
        if bend > 0.0:  # noqa: SIM108 -- one branch per shape of the parabola
            step = min(1.0, max(0.0, -slope / (2.0 * bend)))
        else:
            step = 1.0 if bend + slope < 0.0 else 0.0
        at_vertex = step == 1.0
        if keep:
            _mix_vertex(kept, tree, flow, scale, step)
        if at_vertex:
            w, w_vertex = w_vertex, w
            quadratic_t = quadratic_v
            linear_t = linear_v
        else:
            for i in range(n):
                for j in range(m):
                    w[i, j] += step * (w_vertex[i, j] - w[i, j])
            stay = 1.0 - step
            quadratic_t = stay * stay * quadratic_t + 2.0 * step * stay * cross + step * step * quadratic_v
            linear_t = stay * linear_t + step * linear_v
        before = value
        value = (1.0 - alpha) * linear_t + alpha * (constant + 2.0 * quadratic_t)
        change = abs(before - value)
        if change <= limits[2] or change <= limits[1] * abs(value):
            return max(value, 0.0), iteration, pivots >= 0
    return max(value, 0.0), limits[0], False


@compiled(nan=False)
def _put(target, values):  # type: ignore[no-untyped-def]
    """target[:] = values, of one dimension: numba takes seconds to compile that line, for the message of its error."""
    for i in range(values.size):
        target[i] = values[i]


@compiled(nan=False)
def _put_rows(target, values):  # type: ignore[no-untyped-def]
    """target[:] = values, of two dimensions."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            target[i, j] = values[i, j]


@compiled(nan=False)
def _weigh(packed, a, b, supply, demand, alpha, linear):  # type: ignore[no-untyped-def]
    """Fill supply [n], demand [m] and, where alpha < 1, linear [n, m] of spaces a and b; returns the largest of linear."""
    point_at, whole, even, features = packed[1], packed[6], packed[7], packed[11]
    n, m = supply.size, demand.size
    a0, b0 = point_at[a], point_at[b]
    if even[a] and even[b]:
        supply[:] = m
        demand[:] = n
    else:
        _put(supply, whole[a0 : a0 + n])
        _put(demand, whole[b0 : b0 + m])
    largest = 0.0
    for i in range(n if alpha < 1.0 else 0):
        for j in range(m):
            total = 0.0
            for f in range(features.shape[1]):
                gap = features[a0 + i, f] - features[b0 + j, f]
                total += gap * gap
            linear[i, j] = total
            largest = max(largest, total)
    return largest


@compiled(nan=False)
def _cut(memory, n, m):  # type: ignore[no-untyped-def]
    """Views of ``memory`` for n and m points: supply, demand, orders of rows and of columns, linear, ``_descend``'s space."""
    buffers, trees, lines, orders, _, _ = memory
    cost = buffers[0, : n * m].reshape((n, m))
    w = buffers[1, : n * m].reshape((n, m))
    w_vertex = buffers[2, : n * m].reshape((n, m))
    half = buffers[3, : n * m].reshape((n, m))
    linear = buffers[4, : n * m].reshape((n, m))
    tree = trees[: 6 * (n + m)].reshape((6, n + m))
    space = (cost, w, w_vertex, half, tree, lines[2, : n + m], lines[3, : n + m])
    return lines[0, :n], lines[1, :m], orders[0, :n], orders[1, :m], linear, space


@compiled(nan=False)
def _solve_pair(packed, a, b, alpha, tries, seed, limits, memory, keep, room):  # type: ignore[no-untyped-def]
    """The best of the ``tries`` (restarts, kicks) of spaces a and b, a the smaller: (F, iterations, converged).

    memory: ``_solve_by_descent``'s arrays. With keep, ``room`` [n, m] receives the coupling.
    """
    names, point_at, matrix_at, distances, weights, products, _, _, order, own, widest, _ = packed
    a0 = point_at[a]
    b0 = point_at[b]
    n = point_at[a + 1] - a0
    m = point_at[b + 1] - b0
    c = distances[matrix_at[a] : matrix_at[a + 1]].reshape((n, n))
    d = distances[matrix_at[b] : matrix_at[b + 1]].reshape((m, m))
    supply, demand, row_order, column_order, linear, space = _cut(memory, n, m)
    tree, flow, dual = space[4], space[5], space[6]
    best_tree, best_flow = memory[4], memory[5]
    largest = _weigh(packed, a, b, supply, demand, alpha, linear)
    stop = (limits[0], limits[1], limits[2], 1e-14 * (largest + widest[a] * widest[b]))
    p, q = weights[a0 : a0 + n], weights[b0 : b0 + m]
    cp, dq = products[a0 : a0 + n], products[b0 : b0 + m]
    restarts, kicks = tries
    best = (np.inf, 0, False)
    state = _seed_kicks(seed, names[a], names[b])
    for attempt in range(1 + restarts + kicks):
        mode = _PRODUCT if attempt == 0 else _RANDOM if attempt <= restarts else _KICKED
        if mode == _KICKED:
            _put_rows(tree, best_tree[:, : n + m])
            _put(flow, best_flow[: n + m])
            state = _kick(tree, flow, dual, n, state)
        elif mode == _RANDOM:
            _draw_restart_orders(seed, attempt, names[a], names[b], row_order, column_order)
        else:
            _put(row_order, order[a0 : a0 + n])
            _put(column_order, order[b0 : b0 + m])
        trial = np.empty((n, m)) if keep and attempt > 0 else room
        found = _descend(
            c, d, p, q, cp, dq, supply, demand, row_order, column_order, linear, alpha, own[a] + own[b], mode, stop, space,
            keep, trial,
        )  # fmt: skip
        if kicks > 0 and found[0] <= best[0] + 1e-12 * (own[a] + own[b]):
            _put_rows(best_tree[:, : n + m], tree)
            _put(best_flow[: n + m], flow)
        if found[0] < best[0]:
            best = found
            if keep and attempt > 0:
                _put_rows(room, trial)
    return best


@compiled(nan=False)
def _solve_by_descent(packed, pairs, alpha, restarts, kicks, seed, limits, kept_at, kept, values, iterations, converged):  # type: ignore[no-untyped-def]
    """Every pair (a, b) of ``pairs`` [k, 2] in turn, into values, iterations and converged [k].

    packed: the fields of ``_Packed``. The best of 1 + restarts descents counts: the first from
    p qᵀ, the others from a random north-west corner named by (seed, name of a, name of b, attempt). Then the best one is
    kicked ``kicks`` times (``_kick``), and where a descent ends no higher the next kick begins.
    With ``kept_at`` [k + 1], kept[kept_at[i] : kept_at[i + 1]] receives the coupling of pair i, the
    smaller space's points as rows (the first one's, if equal).
    """
    sizes = packed[1][1:] - packed[1][:-1]
    most = 1
    for size in sizes:
        most = max(most, size)
    memory = (
        np.empty((5, most * most)),
        np.empty(12 * most, np.int64),
        np.empty((4, 2 * most)),
        np.empty((2, most), np.int64),
        np.empty((6, 2 * most), np.int64),
        np.empty(2 * most),
    )
    keep, nowhere = kept_at.size > 1, np.empty((0, 0))
    for k in range(pairs.shape[0]):
        a = pairs[k, 0]
        b = pairs[k, 1]
        if sizes[a] > sizes[b]:
            a, b = b, a
        room = kept[kept_at[k] : kept_at[k + 1]].reshape((sizes[a], sizes[b])) if keep else nowhere
        values[k], iterations[k], converged[k] = _solve_pair(
            packed, a, b, alpha, (restarts, kicks), seed, limits, memory, keep, room
        )
