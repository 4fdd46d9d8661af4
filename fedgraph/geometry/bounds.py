"""Lower bounds on the Gromov-Wasserstein discrepancy, cheap enough to skip pairs that cannot matter.

    GW(C, p; D, q) ≥ min_T Σ_ij (s_i − t_j)² T_ij,    s_i = (Σ_k C²_ik p_k)^½,   t_j = (Σ_l D²_jl q_l)^½

For every coupling T, Σ_kl (C_ik − D_jl)² T_kl ≥ (s_i − t_j)² is the triangle inequality of L²(T); the minimum over T is a
transport problem on a line, solved by sorting (Mémoli 2011, section 6, the first lower bound FLB, squared and for p = 2). It is
below the global minimum, hence below whatever a descent returns. With features, FGW_α ≥ α · bound, as the other term is ≥ 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedgraph.geometry.compiled import compiled
from fedgraph.geometry.metric_space import MetricSpace


def first_lower_bounds(first: Sequence[MetricSpace], second: Sequence[MetricSpace]) -> np.ndarray:
    """float64 [len(first), len(second)], each at most the discrepancy of its pair, up to rounding (about 1e-15 relatively)."""
    ends, values, weights = _lines(first)
    other_ends, other_values, other_weights = _lines(second)
    found = np.empty((len(first), len(second)))
    _on_lines(ends, values, weights, other_ends, other_values, other_weights, found)
    return found


def _lines(spaces: Sequence[MetricSpace]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per space its points' eccentricities, ascending, with their weights: (where each space ends, [N], [N])."""
    values, weights = [], []
    for space in spaces:
        spread = np.sqrt(np.square(space.distances) @ space.weights)
        order = np.argsort(spread, kind="stable")
        values.append(spread[order])
        weights.append(space.weights[order])
    return np.cumsum([v.size for v in values]), np.concatenate(values), np.concatenate(weights)


@compiled
def _on_lines(ends, values, weights, other_ends, other_values, other_weights, found):
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
