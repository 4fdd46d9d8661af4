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
from typing import Literal

import numpy as np
import threadpoolctl
from scipy.spatial.distance import cdist

from fedgraph import seeds
from fedgraph.comparison import metric_space
from fedgraph.comparison.descent import solve_by_descent
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.errors import DataError

_PROXIMAL_STEP = 0.3  # times the range of the first slope
_PROXIMAL_STEPS = 300  # at most
_INNER_STEPS = 20  # of Sinkhorn in each


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
        kicks: Descents after those, each from the best end so far after a few random pivots (``descent``); one costs about a
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


def _fast(
    spaces: Sequence[MetricSpace], which: np.ndarray, options: GromovOptions, keep: bool
) -> tuple[GromovResults, list[np.ndarray]]:
    names, local = np.unique(which, return_inverse=True)
    local = local.reshape(-1, 2)
    count = which.shape[0]
    values, steps, done = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    kept_at, kept = np.zeros(1, np.int64), np.zeros(0)
    if count:
        packed = metric_space.pack([spaces[i] for i in names], names, fused=options.alpha is not None)
        sizes = np.diff(packed.point_at)
        if keep:
            kept_at = np.concatenate([[0], np.cumsum(sizes[local].prod(axis=1))])
            kept = np.zeros(kept_at[-1])
        alpha = 1.0 if options.alpha is None else float(options.alpha)
        limits = (options.max_iterations, options.tolerance, options.tolerance)
        seed = np.uint64(seeds.seeded_integer(options.seed, "gromov", "restart"))
        how = (alpha, options.restarts, options.kicks, seed, limits)
        solve_by_descent(tuple(packed), local, *how, kept_at, kept, values, steps, done)
    plans = []
    for k, (i, j) in enumerate(which if keep else ()):  # points of weight zero have empty rows and columns
        rows, columns = metric_space.points_of(spaces[i]), metric_space.points_of(spaces[j])
        flat, turned = kept[kept_at[k] : kept_at[k + 1]], rows.size > columns.size
        plan = np.zeros((spaces[i].num_points, spaces[j].num_points))
        plan[np.ix_(rows, columns)] = flat.reshape(columns.size, -1).T if turned else flat.reshape(rows.size, -1)
        plans.append(plan)
    return GromovResults(values, done, steps), plans
