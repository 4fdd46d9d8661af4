"""Where descents end: every value is that of the clear problem, and none of the bookkeeping favours a strategy."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.reproductions import starts
from fedgraph.comparison import gromov, metric_space


def rows(seed: int, count: int = 8) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.random((int(n), 3)) for n in rng.integers(2, 9, count)]


def explored(given: list[np.ndarray], levels: list[float], which: np.ndarray | None = None) -> starts.EndsOfStarts:
    which = gromov.all_pairs(len(given)) if which is None else which
    return starts.explore_starts(given, which, levels, np.random.default_rng(1), np.random.default_rng(2))


def test_the_published_start_is_the_reference() -> None:
    given = rows(0)
    spaces = [metric_space.from_embedding(h) for h in given]
    reference = gromov.solve_pairs(spaces, gromov.all_pairs(8), starts._OPTIONS).value
    assert np.allclose(explored(given, [0.1]).product, reference, atol=1e-12)


def test_no_strategy_returns_the_value_of_another_problem() -> None:
    """Huge noise: the noised problem's value explodes, that of the clear problem stays within its range."""
    given = rows(1)
    ends = explored(given, [100.0])
    spaces = [metric_space.from_embedding(h) for h in given]
    own = np.array([np.sqrt(np.mean(space.distances**2)) for space in spaces])
    lowest = np.array([(own[i] - own[j]) ** 2 for i, j in gromov.all_pairs(8)])  # F ≥ (√Σ C²pp − √Σ D²qq)², by Cauchy-Schwarz
    assert ends.noised.min() > 100 * ends.product.max()
    for found in (ends.product, ends.nudged, ends.random, ends.noise):
        assert (found > lowest - 1e-9).all()
        assert found.max() < 2.0, "distances in a unit cube"
        assert np.abs(found - ends.product).max() < 0.5


def test_vanishing_noise_is_no_noise() -> None:
    given = rows(2)
    ends = explored(given, [1e-9])
    assert np.mean(np.isclose(ends.noised[0], ends.product, atol=1e-6)) > 0.9, "ties may be broken otherwise"
    assert np.mean(np.isclose(ends.noise[0], ends.product, atol=1e-6)) > 0.9


def test_a_nudge_leaves_a_saddle_point_and_not_a_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A descent that stops at p qᵀ of two segments is at a saddle point; the real one is at the minimum already."""
    given = [np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])]
    real, flat = gromov.solve_by_pot, np.full((2, 2), 0.25)

    def stuck(first, second, options, start=None):  # type: ignore[no-untyped-def]
        return (0.5, True, 1, flat) if start is None else real(first, second, options, start)

    assert explored(given, [0.1]).nudged == pytest.approx(explored(given, [0.1]).product, abs=1e-9)
    monkeypatch.setattr(gromov, "solve_by_pot", stuck)
    ends = explored(given, [0.1])
    assert ends.product[0] == 0.5
    assert ends.nudged[0] == pytest.approx(0.0, abs=1e-9)


def test_random_vertices_are_couplings() -> None:
    first, second = (
        metric_space.from_embedding(np.random.default_rng(0).random((3, 2))),
        metric_space.from_embedding(np.zeros((5, 2))),
    )
    plan = starts._random_vertex(first, second, np.random.default_rng(3))
    assert np.allclose(plan.sum(axis=1), first.weights)
    assert np.allclose(plan.sum(axis=0), second.weights)
    assert np.count_nonzero(plan) <= 3 + 5 - 1
