"""Gromov-Wasserstein problems by POT's batched proximal gradient (``ot.batch``), thousands at once, on a GPU if there is one.

Another algorithm than the compiled descent (Xu, Luo, Zha & Carin, ICML 2019): its values are, on the whole, higher. It is never
taken unless it is asked for by name, so that numbers do not depend on the machine. Values are those of couplings that meet the
weights exactly. Every pair takes the same number of steps, so that no pair depends on those beside it.

Spaces of nearly one size are solved together. The last point of a smaller one is split into copies with equal shares of its
weight: that is the same metric measure space, and every step treats copies alike. At a saddle, as between symmetric graphs,
rounding decides where a descent goes, on a GPU in another way than on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedgraph.comparison import metric_space
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.errors import DataError

_STEP = 0.3  # of the proximal gradient, times the range of the first slope
STEPS = 100
_INNER_STEPS = 20  # of Sinkhorn in each
_LAST = 10  # a pair has converged where its last steps move its value by less than ``_STILL``, relatively
_STILL = 1e-6
_MEMORY = 2**28  # bytes of the arrays of pairs that are solved at once


def solve_in_batches(
    spaces: Sequence[MetricSpace], which: np.ndarray, alpha: float | None
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """(values float64 [k], converged bool [k], couplings [n_i, n_j]) of the pairs ``which`` int64 [k, 2], square loss.

    Raises ``DataError`` where ``alpha`` is given and a space has no features.
    """
    if alpha is not None and any(spaces[i].features is None for i in np.unique(which)):
        raise DataError("the fused discrepancy (alpha given) needs spaces with features; one has none")
    kept = [_split(metric_space.points_of(space)) for space in spaces]  # POT takes logarithms of weights
    values, done, plans = np.zeros(len(which)), np.zeros(len(which), np.bool_), [np.zeros(0)] * len(which)
    sizes = np.array([[kept[i].size, kept[j].size] for i, j in which]).reshape(-1, 2)
    for n, m in np.unique(sizes, axis=0):
        alike = np.flatnonzero((sizes == (n, m)).all(axis=1))
        for some in np.array_split(alike, -(-len(alike) * 80 * (n * n + m * m + n * m) // _MEMORY)):
            first, second = ([(spaces[s], kept[s]) for s in which[some, side]] for side in (0, 1))
            values[some], done[some], found = _solve(first, second, alpha)
            for k, plan in zip(some, found, strict=True):
                i, j = which[k]
                plans[k] = np.zeros((spaces[i].num_points, spaces[j].num_points))
                np.add.at(plans[k], np.ix_(kept[i], kept[j]), plan)
    return values, done, plans


def _split(points: np.ndarray) -> np.ndarray:
    """``points`` int64 [n], the last one as often as a batch of nearly this size needs: at most a quarter more, or three."""
    n = len(points)
    room = max(4, 1 << max(n.bit_length() - 3, 0))
    return np.append(points, np.full(-n % room, points[-1]))


def _solve(
    first: list[tuple[MetricSpace, np.ndarray]], second: list[tuple[MetricSpace, np.ndarray]], alpha: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import ot.batch  # takes half a second

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def side(given: list[tuple[MetricSpace, np.ndarray]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = [np.zeros((own.size, 0)) if alpha is None or s.features is None else s.features[own] for s, own in given]
        shares = [s.weights[own] / np.bincount(own)[own] for s, own in given]
        parts = [s.distances[np.ix_(own, own)] for s, own in given], shares, rows
        return tuple(torch.tensor(np.stack(part), dtype=torch.float64, device=device) for part in parts)  # type: ignore[return-value]

    (c, p, x), (d, q, y) = side(first), side(second)
    share = 1.0 if alpha is None else alpha
    costs = torch.cdist(x, y).square()
    fixed = (c.square() @ p[:, :, None]) + (d.square() @ q[:, :, None]).mT  # Σ_k C_ik² p_k + Σ_l D_jl² q_l

    def slope(plan: torch.Tensor) -> torch.Tensor:
        return fixed - 2.0 * torch.bmm(torch.bmm(c, plan), d)

    def value(plan: torch.Tensor) -> torch.Tensor:
        return (plan * ((1.0 - share) * costs + share * slope(plan))).sum((1, 2))

    start = p[:, :, None] * q[:, None, :]
    first_slope = (1.0 - share) * costs + 2.0 * share * slope(start)
    spread = (first_slope.amax((1, 2)) - first_slope.amin((1, 2))).clamp(min=1e-300)
    scale = (1.0 / spread)[:, None, None]  # in these units one step fits every pair
    plan, seen = start, []
    for steps in (STEPS - _LAST, _LAST):
        plan = ot.batch.solve_gromov_batch(
            c * scale.sqrt(), d * scale.sqrt(), reg=_STEP, a=p, b=q, symmetric=True, M=costs * scale, alpha=share, T_init=plan,
            max_iter=steps, tol=0.0, max_iter_inner=_INNER_STEPS, tol_inner=0.0, grad="detach",
        ).plan  # fmt: skip
        seen.append(value(_on_the_polytope(plan, p, q)))
    still = (seen[0] - seen[1]).abs() <= _STILL * seen[1].abs() + 1e-12
    return seen[1].clamp(min=0.0).cpu().numpy(), still.cpu().numpy(), _on_the_polytope(plan, p, q).cpu().numpy()


def _on_the_polytope(plan: torch.Tensor, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """The nearby coupling that meets the weights (Altschuler, Weed & Rigollet 2017, Algorithm 2)."""
    plan = plan * (p / plan.sum(2).clamp(min=1e-300)).clamp(max=1.0)[:, :, None]
    plan = plan * (q / plan.sum(1).clamp(min=1e-300)).clamp(max=1.0)[:, None, :]
    lost, missed = p - plan.sum(2), q - plan.sum(1)
    return plan + lost[:, :, None] * missed[:, None, :] / lost.sum(1).clamp(min=1e-300)[:, None, None]
