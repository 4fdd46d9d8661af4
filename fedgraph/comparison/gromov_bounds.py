"""Lower bounds on the Gromov-Wasserstein discrepancy, cheap enough to skip pairs that cannot matter.

    first:   GW(C, p; D, q) ≥ min_T Σ_ij (s_i − t_j)² T_ij,    s_i = (Σ_k C²_ik p_k)^½,   t_j = (Σ_l D²_jl q_l)^½
    second:  GW(C, p; D, q) ≥ min_π Σ (C_ik − D_jl)² π_(ik)(jl)  over couplings π of p ⊗ p and q ⊗ q

For every coupling T, Σ_kl (C_ik − D_jl)² T_kl ≥ (s_i − t_j)² is the triangle inequality of L²(T), and T ⊗ T is one of the π.
Both minima are transport problems on a line, solved by sorting (Mémoli 2011, section 6, FLB and SLB, squared and for p = 2).
They are below the global minimum, hence below whatever a descent returns. With features FGW_α ≥ α · bound, as the other term is
at least zero; more, it is at least (1 − α) |Σ_i p_i x_i − Σ_j q_j y_j|² (Jensen).

``solve_within`` finds the nearest spaces without solving the pairs that cannot be among them: a pair whose lower
bound is above the k-th lowest value found so far is farther than k others and stays unsolved. What is solved are the values of
the full matrix, so every vote of the k nearest, ties included, is the one of the full matrix."""

from collections.abc import Callable, Sequence

import numpy as np

from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.compiled import compiled

_Histogram = tuple[np.ndarray, np.ndarray]


def first_bounds(first: Sequence[MetricSpace], second: Sequence[MetricSpace]) -> np.ndarray:
    """float64 [len(first), len(second)], each at most the discrepancy of its pair, up to rounding (about 1e-15 relatively)."""
    return _bounds(first, second, _eccentricities)


def _second_gromov_bounds(first: Sequence[MetricSpace], second: Sequence[MetricSpace]) -> np.ndarray:
    """As ``first_bounds``, from all distances of a space: mostly higher, and dearer where they are all distinct."""
    return _bounds(first, second, _distances)


def _best_gromov_bounds(first: Sequence[MetricSpace], second: Sequence[MetricSpace], alpha: float | None = None) -> np.ndarray:
    """The best of this file for GW (``alpha`` None) or FGW with features: float64 [len(first), len(second)]."""
    found = np.maximum(first_bounds(first, second), _second_gromov_bounds(first, second))
    if alpha is None:
        return found
    means, others = (np.stack([space.weights @ space.features for space in spaces]) for spaces in (first, second))
    return alpha * found + (1.0 - alpha) * np.square(means[:, None, :] - others[None, :, :]).sum(axis=2)


def _distances(space: MetricSpace) -> _Histogram:
    """Its distances, ascending and each once, with the weight p_i p_k of the pairs that have it."""
    value, index = np.unique(space.distances, return_inverse=True)
    return value, np.bincount(index.ravel(), np.outer(space.weights, space.weights).ravel())


def _eccentricities(space: MetricSpace) -> _Histogram:
    """Its points' eccentricities, ascending, with their weights."""
    spread = np.sqrt(np.square(space.distances) @ space.weights)
    order = np.argsort(spread, kind="stable")
    return spread[order], space.weights[order]


def _bounds(
    first: Sequence[MetricSpace], second: Sequence[MetricSpace], on_line: Callable[[MetricSpace], _Histogram]
) -> np.ndarray:
    found, given = np.empty((len(first), len(second))), []
    for spaces in (first, second):  # where each space ends, the values of all spaces one after another, their weights
        values, weights = zip(*map(on_line, spaces), strict=True)
        given += [np.cumsum([v.size for v in values]), np.concatenate(values), np.concatenate(weights)]
    _on_lines(*given, found)
    return found


@compiled(nan=False)
def _on_lines(ends, values, weights, other_ends, other_values, other_weights, found):  # type: ignore[no-untyped-def]
    """The squared Wasserstein distance between histograms on a line: the monotone coupling, all pairs."""
    for a in range(ends.size):
        for b in range(other_ends.size):
            i = ends[a - 1] if a > 0 else 0
            j = other_ends[b - 1] if b > 0 else 0
            left, wanted, total = weights[i], other_weights[j], 0.0
            while True:
                amount = min(left, wanted)
                gap = values[i] - other_values[j]
                total += amount * gap * gap
                left -= amount
                wanted -= amount
                if left <= 0.0:
                    i += 1
                    if i == ends[a]:
                        break
                    left = weights[i]
                if wanted <= 0.0:
                    j += 1
                    if j == other_ends[b]:
                        break
                    wanted = other_weights[j]
            found[a, b] = total


def solve_within(
    spaces: Sequence[MetricSpace],
    rows: np.ndarray,
    columns: np.ndarray,
    k: int,
    alpha: float | None,
    solve: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, int]:
    """Discrepancies to the k nearest of each row, without solving the pairs that cannot be among them.

    They are asked for in rounds: first the k of the lowest bounds, then of those still within reach 1, 2, 4 … times k.

    Args:
        spaces: All spaces.
        rows: int64, numbers of spaces.
        columns: int64, numbers of spaces.
        k: How many neighbours; lowered to the number of columns.
        alpha: As in ``GromovOptions``.
        solve: Gives the values of pairs int64 [q, 2], at least one.

    Returns:
        (float64 [len(rows), len(columns)], infinite where a pair was not solved; how many pairs were solved).
    """
    table = np.full((len(rows), len(columns)), np.inf)
    if not table.size:
        return table, 0
    k = min(k, len(columns))
    bounds = _best_gromov_bounds([spaces[i] for i in rows], [spaces[j] for j in columns], alpha)
    bounds = bounds * (1.0 - 1e-9) - 1e-12  # room for rounding
    order = np.argsort(bounds, axis=1, kind="stable")
    asked, wanted, portion = np.zeros(table.shape, np.bool_), np.zeros(table.shape, np.bool_), k
    np.put_along_axis(wanted, order[:, :k], True, axis=1)
    while wanted.any():
        first, second = np.nonzero(wanted)
        table[first, second] = solve(np.stack([rows[first], columns[second]], axis=1))
        asked |= wanted
        reach = np.partition(table, k - 1, axis=1)[:, k - 1]
        possible = np.take_along_axis((bounds <= reach[:, None]) & ~asked, order, axis=1)
        wanted[:] = False
        np.put_along_axis(wanted, order, possible & (np.cumsum(possible, axis=1) <= portion), axis=1)
        portion *= 2
    return table, int(asked.sum())
