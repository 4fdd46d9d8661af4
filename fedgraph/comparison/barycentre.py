"""Gromov-Wasserstein barycentres by block coordinate descent over the compiled solver.

    minimise over C  Σ_s λ_s GW(C, p; C_s, p_s)

With the couplings T_s fixed, the best structure is C = (Σ_s λ_s T_s C_s T_sᵀ) / (p pᵀ), and with features
x = (Σ_s λ_s T_s x_s) / p (Peyré, Cuturi & Solomon 2016, Proposition 3; Vayer et al. 2019, section 4).
Each half step can only lower the objective when the couplings are improved from where they were; a fresh
descent from p qᵀ may land higher, so a round that raises the objective is not taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.comparison import gromov
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace

_TOLERANCE = 1e-6  # of the objective, relative


@dataclass(frozen=True, eq=False)
class Barycentre:
    """A barycentre and how it was found."""

    space: MetricSpace  # The barycentre; all its points weigh the same
    objective: float  # Σ_s λ_s GW at the couplings last solved


def find(
    spaces: Sequence[MetricSpace],
    num_points: int,
    options: GromovOptions = GromovOptions(),  # noqa: B008
    start: MetricSpace | None = None,
    max_rounds: int = 20,
) -> Barycentre:
    """The barycentre of spaces, all of which count the same (λ_s = 1/S).

    spaces: At least one. num_points: Of the barycentre, at least one; they weigh the same. options: How discrepancies are
    computed. start: Where C begins; by default the space closest in size, carried onto ``num_points`` points by the monotone
    coupling. max_rounds: How many rounds at most; it stops earlier when the objective falls by less than ``_TOLERANCE``.
    ``ValueError``: There is no space, or no point.
    """
    if not spaces or num_points < 1:
        raise ValueError(f"a barycentre needs spaces and at least one point, found {len(spaces)} and {num_points}")
    which = np.stack([np.zeros(len(spaces), np.int64), np.arange(1, len(spaces) + 1)], axis=1)

    def assess(current: MetricSpace) -> tuple[Barycentre, list[np.ndarray]]:
        results, plans = gromov.solve_couplings([current, *spaces], which, options)
        return Barycentre(current, float(results.value.mean())), plans

    best, plans = assess(start if start is not None else _first(spaces, num_points))
    for _ in range(max_rounds - 1):
        following, plans = assess(_update_barycentre(best.space.weights, spaces, plans))
        if following.objective >= best.objective:
            break
        settled = best.objective - following.objective <= _TOLERANCE * best.objective
        best = following
        if settled:
            break
    return best


def _update_barycentre(weights: np.ndarray, spaces: Sequence[MetricSpace], plans: Sequence[np.ndarray]) -> MetricSpace:
    """The closed-form half step for couplings ``plans`` [n, n_s] from the barycentre to each space."""
    share = 1.0 / len(spaces)
    structure = np.zeros((weights.size, weights.size))
    for space, plan in zip(spaces, plans, strict=True):
        structure += share * (plan @ space.distances @ plan.T)
    structure /= np.outer(weights, weights)
    features = None
    if all(space.features is not None for space in spaces):
        carried = sum(share * (plan @ space.features) for space, plan in zip(spaces, plans, strict=True))
        features = carried / weights[:, None]
    return MetricSpace(0.5 * (structure + structure.T), weights, features)


def _first(spaces: Sequence[MetricSpace], num_points: int) -> MetricSpace:
    sizes = np.array([space.num_points for space in spaces])
    nearest = spaces[int(np.argmin(np.abs(sizes - num_points)))]
    weights = np.full(num_points, 1.0 / num_points)
    # The coupling [n, m] that spreads the space's points, by ascending mean distance, over the weights in order.
    order = np.argsort(nearest.distances @ nearest.weights, kind="stable")
    ends = np.minimum(np.cumsum(weights), 1.0)[:, None], np.minimum(np.cumsum(nearest.weights[order]), 1.0)[None, :]
    starts = ends[0] - weights[:, None], ends[1] - nearest.weights[order][None, :]
    plan = np.zeros((weights.size, nearest.num_points))
    plan[:, order] = np.clip(np.minimum(*ends) - np.maximum(*starts), 0.0, None)
    return _update_barycentre(weights, [nearest], [plan])
