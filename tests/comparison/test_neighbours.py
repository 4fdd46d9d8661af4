"""Lower bounds skip pairs: nearest neighbours and clusters are those of the full matrix, ties included, from fewer pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedgraph import runtime
from fedgraph.comparison import classify, cluster, gromov, gromov_bounds, metric_space
from fedgraph.comparison.classify import ClassifySplit
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solver_facts import GromovPairFacts, SolverFacts
from fedgraph.tasks.base import CellContext, graphs

SPLIT = ClassifySplit(np.arange(12, 48), np.arange(48, 60), np.arange(12))


def given(kind: str, seed: int = 4) -> list[MetricSpace]:
    """Graphs full of ties (some are copies), or embeddings of several sizes with features, unequal weights or not."""
    rng = np.random.default_rng(seed)
    made = []
    for n in rng.integers(1, 12, size=60):
        if kind == "graphs":
            upper = np.triu(rng.random((n, n)) < 0.4, 1).astype(float)
            made.append(metric_space.from_topology(upper + upper.T, features=np.eye(3)[rng.integers(0, 3, n)]))
        else:
            made.append(metric_space.from_embedding(rng.random((n, 3)) * rng.uniform(0.2, 3.0), features=rng.random((n, 2))))
        if kind == "weighted":
            made[-1] = MetricSpace(made[-1].distances, rng.dirichlet(np.ones(n)), made[-1].features)
    return made


def test_a_bound_is_zero_for_a_permuted_copy_and_exact_for_one_point() -> None:
    one = max(given("weighted", 5), key=lambda space: space.num_points)
    order = np.random.default_rng(0).permutation(one.num_points)
    copy = MetricSpace(one.distances[np.ix_(order, order)], one.weights[order])
    point = MetricSpace(np.zeros((1, 1)), np.ones(1))
    exact = gromov.solve_pairs([one, point], np.array([[0, 1]])).value[0]
    assert gromov_bounds.first_bounds([one], [copy, point])[0] == pytest.approx([0.0, exact], abs=1e-12)


@pytest.mark.parametrize("alpha", [None, 0.6])
def test_k_means_gives_the_same_clusters_and_solves_less(alpha: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    spaces, options, solved, real = given("weighted", 7), GromovOptions(alpha=alpha), list[int](), gromov.solve_pairs
    monkeypatch.setattr(gromov, "solve_pairs", lambda s, which, o: solved.append(len(which)) or real(s, which, o))

    def clustered() -> tuple[Any, int]:
        solved.clear()
        return cluster.by_gromov(spaces, 5, np.random.default_rng(1), options, num_init=2, max_iterations=6), sum(solved)

    fast, few = clustered()
    monkeypatch.setattr(gromov_bounds, "first_bounds", lambda a, b: np.zeros((len(a), len(b))))
    plain, many = clustered()
    assert np.array_equal(fast.labels, plain.labels)
    assert (fast.inertia, fast.iterations) == (plain.inertia, plain.iterations)
    assert all(np.array_equal(a.distances, b.distances) for a, b in zip(fast.centroids, plain.centroids, strict=True))
    assert few < 0.8 * many


@pytest.mark.parametrize("kind", ["graphs", "embeddings"])
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_votes_are_those_of_the_full_matrix(kind: str, alpha: float | None) -> None:
    spaces, options = given(kind), GromovOptions(alpha=alpha)
    full = gromov.assemble_matrix(60, gromov.all_pairs(60), gromov.solve_pairs(spaces, gromov.all_pairs(60), options).value)
    context = CellContext("t", "none", None, 0, 1, runtime.start("serial"))
    found, facts = graphs.solve_asked(spaces, options, context, SPLIT, 7)
    known = np.arange(12, 60)
    asked = facts.asked[0]
    assert facts == SolverFacts(GromovPairFacts(file=None, pairs=asked, converged=asked), asked=(asked, 12 * known.size))
    ours, theirs = found[np.ix_(SPLIT.test, known)], full[np.ix_(SPLIT.test, known)]
    assert np.array_equal(ours[np.isfinite(ours)], theirs[np.isfinite(ours)])
    assert np.isfinite(ours).sum() == asked < 0.7 * ours.size, "few are solved"
    nearest = [np.argsort(table, axis=1, kind="stable")[:, :7] for table in (ours, theirs)]
    assert np.array_equal(*nearest)
    labels = np.random.default_rng(0).integers(0, 2, 60)
    for k in (1, 3, 7):
        votes = [classify.by_nearest(table, labels, (SPLIT,), k).accuracies for table in (found, full)]
        assert np.array_equal(*votes)


def test_fewer_columns_than_neighbours_and_none() -> None:
    spaces = given("graphs")

    def solve(which: np.ndarray) -> np.ndarray:
        return gromov.solve_pairs(spaces, which).value

    table, asked = gromov_bounds.solve_within(spaces, np.arange(3), np.arange(3, 7), 20, None, solve)
    assert np.isfinite(table).all()
    assert asked == 12
    assert gromov_bounds.solve_within(spaces, np.arange(0), np.arange(3, 7), 2, None, solve)[1] == 0
