"""Nearest neighbours without the full matrix: the same votes, ties included, from fewer pairs."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph import runtime
from fedgraph.comparison import classify, gromov, gromov_bounds, metric_space
from fedgraph.comparison.classify import ClassifySplit
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solver_facts import GromovPairFacts, SolverFacts
from fedgraph.tasks.base import CellContext, graphs

SPLIT = ClassifySplit(np.arange(12, 48), np.arange(48, 60), np.arange(12))


def given(kind: str) -> list[MetricSpace]:
    """Graphs full of ties (some are copies), or embeddings of several sizes, with features."""
    rng = np.random.default_rng(4)
    made = []
    for n in rng.integers(1, 12, size=60):
        if kind == "graphs":
            upper = np.triu(rng.random((n, n)) < 0.4, 1).astype(float)
            made.append(metric_space.from_topology(upper + upper.T, features=np.eye(3)[rng.integers(0, 3, n)]))
        else:
            made.append(metric_space.from_embedding(rng.random((n, 3)) * rng.uniform(0.2, 3.0), features=rng.random((n, 2))))
    return made


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
    order = np.argsort(theirs, axis=1, kind="stable")[:, :7]
    assert np.array_equal(np.argsort(ours, axis=1, kind="stable")[:, :7], order)
    labels = np.random.default_rng(0).integers(0, 2, 60)
    for k in (1, 3, 7):
        assert np.array_equal(
            classify.by_nearest(found, labels, (SPLIT,), k).accuracies,
            classify.by_nearest(full, labels, (SPLIT,), k).accuracies,
        )


def test_fewer_columns_than_neighbours_and_none() -> None:
    spaces = given("graphs")

    def solve(which: np.ndarray) -> np.ndarray:
        return gromov.solve_pairs(spaces, which).value

    table, asked = gromov_bounds.solve_within(spaces, np.arange(3), np.arange(3, 7), 20, None, solve)
    assert np.isfinite(table).all()
    assert asked == 12
    assert gromov_bounds.solve_within(spaces, np.arange(0), np.arange(3, 7), 2, None, solve)[1] == 0
