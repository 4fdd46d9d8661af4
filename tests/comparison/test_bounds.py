"""Lower bounds: zero where spaces are alike, and skipping by them changes no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedgraph.comparison import cluster, gromov, gromov_bounds, metric_space
from fedgraph.comparison.metric_space import MetricSpace


def spaces(count: int, seed: int, largest: int = 12) -> list[MetricSpace]:
    """Of all sizes from one point on, with unequal weights."""
    rng = np.random.default_rng(seed)
    found = []
    for n in rng.integers(1, largest, count):
        made = metric_space.from_embedding(rng.random((n, 3)) * rng.uniform(0.2, 3.0), features=rng.random((n, 2)))
        found.append(MetricSpace(made.distances, rng.dirichlet(np.ones(n)), made.features))
    return found


def test_zero_for_a_permuted_copy_and_exact_for_one_point() -> None:
    one = spaces(1, 5)[0]
    order = np.random.default_rng(0).permutation(one.num_points)
    copy = MetricSpace(one.distances[np.ix_(order, order)], one.weights[order])
    assert gromov_bounds.first_bounds([one], [copy])[0, 0] == pytest.approx(0.0, abs=1e-12)
    point = MetricSpace(np.zeros((1, 1)), np.ones(1))
    exact = gromov.solve_pairs([one, point], np.array([[0, 1]])).value[0]
    assert gromov_bounds.first_bounds([one], [point])[0, 0] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("alpha", [None, 0.6])
def test_k_means_gives_the_same_clusters_and_solves_less(alpha: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    given = spaces(60, 7)
    options = gromov.GromovOptions(alpha=alpha)
    solved: list[int] = []
    real = gromov.solve_pairs
    monkeypatch.setattr(gromov, "solve_pairs", lambda s, which, o: solved.append(len(which)) or real(s, which, o))

    def clustered() -> tuple[Any, int]:
        solved.clear()
        return cluster.by_gromov(given, 5, np.random.default_rng(1), options, num_init=2, max_iterations=6), sum(solved)

    fast, few = clustered()
    monkeypatch.setattr(gromov_bounds, "first_bounds", lambda a, b: np.zeros((len(a), len(b))))
    plain, many = clustered()
    assert np.array_equal(fast.labels, plain.labels)
    assert fast.inertia == plain.inertia
    assert fast.iterations == plain.iterations
    assert all(np.array_equal(a.distances, b.distances) for a, b in zip(fast.centroids, plain.centroids, strict=True))
    assert few < 0.8 * many
