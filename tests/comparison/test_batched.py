"""``solver: batched``: POT's proximal gradient on torch's device, held against the compiled descent, on the CPU here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace

BATCHED = GromovOptions(solver="batched")


def spaces_of(sizes: Any, seed: int = 0) -> list[MetricSpace]:
    rng = np.random.default_rng(seed)
    upper = [np.triu(rng.random((n, n)) < 0.4, 1).astype(float) for n in sizes]
    return [metric_space.from_topology(u + u.T, features=rng.normal(size=(len(u), 2))) for u in upper]


@pytest.mark.parametrize("alpha", [None, 0.5])
def test_a_value_is_that_of_its_coupling_and_near_the_compiled_one(alpha: float | None) -> None:
    """POT, started at the coupling, begins at the value; another algorithm ends elsewhere, within a quarter on average."""
    spaces = spaces_of([5, 6, 7, 5, 6, 8])
    which = gromov.all_pairs(6)
    found, plans = gromov.solve_couplings(spaces, which, GromovOptions(solver="batched", alpha=alpha))
    for (i, j), plan, value in zip(which, plans, found.value, strict=True):
        assert all(np.allclose(plan.sum(axis=1 - k), spaces[s].weights, atol=1e-12) for k, s in enumerate((i, j)))
        there = gromov.solve_by_pot(spaces[i], spaces[j], GromovOptions(solver="pot", alpha=alpha, max_iterations=1), plan)[0]
        assert there <= value + 1e-9, "POT's first step goes down from here"
        assert there >= 0.5 * value - 1e-9
    ours = gromov.solve_pairs(spaces, which, GromovOptions(alpha=alpha, restarts=20)).value
    assert (found.value >= ours - 1e-9).mean() > 0.9, "the best of 21 descents is hardly ever above"
    assert found.value.mean() <= 1.25 * ours.mean()


def test_equal_spaces_single_points_points_without_weight_and_no_pair() -> None:
    ring, base = spaces_of([7, 5], seed=2)
    padded = MetricSpace(np.pad(base.distances, (0, 2)), np.append(base.weights, [0.0, 0.0]))
    spaces = [ring, MetricSpace(base.distances, base.weights), padded, MetricSpace(np.zeros((1, 1)), np.ones(1))]
    found = gromov.solve_pairs(spaces, np.array([[0, 1], [0, 2], [0, 3], [3, 3]]), BATCHED).value
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert found[2] == pytest.approx(gromov.solve_pairs(spaces, np.array([[0, 3]])).value[0])
    assert found[3] == 0
    assert gromov.solve_pairs(spaces, np.zeros((0, 2), int), BATCHED).value.size == 0


def generic(sizes: Any) -> list[MetricSpace]:
    """Spaces without symmetry: at a saddle rounding decides where a descent goes."""
    rng = np.random.default_rng(0)
    upper, weights = [np.triu(rng.random((n, n)), 1) for n in sizes], [rng.random(n) + 0.2 for n in sizes]
    return [MetricSpace(u + u.T, w / w.sum()) for u, w in zip(upper, weights, strict=True)]


def test_a_point_may_be_split() -> None:
    """One point as three, each with a third of its weight, is the same space; so spaces of other sizes share a batch."""
    for one, other in zip(generic([4, 5, 9]), generic([7, 6, 4]), strict=True):
        twice = np.append(np.arange(one.num_points), [one.num_points - 1] * 2)
        split = MetricSpace(one.distances[np.ix_(twice, twice)], one.weights[twice] / np.bincount(twice)[twice])
        apart, plans = gromov.solve_couplings([one, split, other], np.array([[0, 2], [1, 2]]), BATCHED)
        assert apart.value[0] == pytest.approx(apart.value[1], rel=1e-9)
        joined = np.vstack([plans[1][: one.num_points - 1], plans[1][one.num_points - 1 :].sum(axis=0)])
        assert np.allclose(joined, plans[0], atol=1e-9)


@pytest.mark.gpu
def test_a_gpu_gives_what_the_cpu_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces, which = generic(range(2, 30)), gromov.all_pairs(28)
    there = gromov.solve_pairs(spaces, which, BATCHED).value
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    here = gromov.solve_pairs(spaces, which, BATCHED).value
    assert np.isclose(there, here, rtol=1e-6, atol=1e-9).mean() > 0.95
