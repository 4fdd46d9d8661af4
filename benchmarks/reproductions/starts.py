"""Descents of Gromov-Wasserstein from several starts: does noise help them to leave saddle points?

Jin & Chen (Figure 5) plot the optimal value of the *noised* problem, which is another problem. Here every value is that of the
clear problem, and only the start differs; all descents are POT's conditional gradient. Strategies, with the descents they take:

    product    1   from p qᵀ, the published start
    nudged     2   on from the end of ``product``, moved 1 % towards a random vertex: what falls from there was a saddle point
    noise      2   from p qᵀ on spaces of noised embeddings, then on the clear spaces from the coupling found
    random     2   from two random vertices
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace

_OPTIONS = GromovOptions(solver="pot", max_iterations=1000)
_NUDGE = 0.01


@dataclass(frozen=True, eq=False)
class EndsOfStarts:
    """Where descents ended, in values of the clear problem.

    Attributes:
        product: float64 [pairs].
        nudged: float64 [pairs].
        random: float64 [2, pairs], one row for each vertex.
        noise: float64 [levels, pairs], the end of the second descent.
        noised: float64 [levels, pairs], the end of the first one: the value of the noised problem.
        steps: Mean iterations per pair of ``product``, ``nudged``, both ``random`` together, then of each level, both descents
            together.
    """

    product: np.ndarray
    nudged: np.ndarray
    random: np.ndarray
    noise: np.ndarray
    noised: np.ndarray
    steps: np.ndarray


def explore_starts(
    rows: Sequence[np.ndarray], which: np.ndarray, levels: Sequence[float], noise: np.random.Generator, rng: np.random.Generator
) -> EndsOfStarts:
    """All strategies on all pairs.

    Args:
        rows: Embeddings [n_i, h].
        which: int [pairs, 2], numbers into them.
        levels: Standard deviations of the noise.
        noise: Draws it, once per graph and level, as a client would send it.
        rng: Draws the random vertices.
    """
    clear = [metric_space.from_embedding(h) for h in rows]
    noised = [[metric_space.from_embedding(h + noise.normal(0.0, s, h.shape)) for h in rows] for s in levels]
    ends: list[list[float]] = []
    steps: list[list[int]] = []
    for i, j in which.tolist():
        first, second = clear[i], clear[j]
        value, _, used, plan = gromov.solve_by_pot(first, second, _OPTIONS)
        on = gromov.solve_by_pot(first, second, _OPTIONS, (1 - _NUDGE) * plan + _NUDGE * _random_vertex(first, second, rng))
        tries = [gromov.solve_by_pot(first, second, _OPTIONS, _random_vertex(first, second, rng)) for _ in range(2)]
        line = [value, on[0], *(t[0] for t in tries)]
        counts = [used, used + on[2], sum(t[2] for t in tries)]
        outside = []
        for spaces in noised:
            elsewhere = gromov.solve_by_pot(spaces[i], spaces[j], _OPTIONS)
            back = gromov.solve_by_pot(first, second, _OPTIONS, elsewhere[3])
            line.append(back[0])
            outside.append(elsewhere[0])
            counts.append(elsewhere[2] + back[2])
        ends.append([*line, *outside])
        steps.append(counts)
    table = np.array(ends).reshape(len(which), 4 + 2 * len(levels)).T
    middle = 4 + len(levels)
    return EndsOfStarts(table[0], table[1], table[2:4], table[4:middle], table[middle:], np.array(steps).mean(axis=0))


def _random_vertex(first: MetricSpace, second: MetricSpace, rng: np.random.Generator) -> np.ndarray:
    """A vertex of the couplings of the two weights: optimal for random costs. float64 [n, m]."""
    costs = rng.random((first.num_points, second.num_points))
    import ot  # not before it is used: every run lists all tasks

    return np.asarray(ot.emd(np.array(first.weights), np.array(second.weights), costs))
