"""Which solver, how carefully: POT agrees with the compiled default, and what several starts gain is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.reproductions.tasks import graph_metrics
from fedgraph import runtime
from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.tasks import graph_classification, graph_clustering
from fedgraph.tasks.base import CellContext, graphs


def spaces(count: int = 8, fused: bool = False) -> list[MetricSpace]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        rows = rng.random((int(rng.integers(3, 8)), 3))
        found.append(metric_space.from_embedding(rows, features=rows if fused else None))
    return found


@pytest.mark.parametrize("alpha", [None, 0.5])
def test_pot_on_the_pool_agrees_with_the_compiled_default(alpha: float | None) -> None:
    """Pair by pair, as a task solves them. Both descend from p qᵀ; tied optimal vertices may lead them to different minima."""
    made = spaces(fused=alpha is not None)
    context = CellContext("t", "d", None, 0, 1, runtime.start("serial"))
    found = {s: graphs.solve_all(made, graphs.SolverSettings(solver=s).options(alpha), context)[0] for s in ("fast", "pot")}
    upper = np.triu_indices(len(made), 1)
    gaps = np.abs(found["fast"] - found["pot"])[upper]
    assert np.mean(gaps < 1e-6) > 0.9
    assert gaps.max() < 0.02
    assert not np.array_equal(found["fast"], found["pot"]), "the same solver ran twice"


def test_careful_is_never_worse_and_the_variation_says_by_how_much() -> None:
    made, which = spaces(12), gromov.all_pairs(12)
    one, best = (gromov.solve_pairs(made, which, graphs.SolverSettings(quality=q).options()).value for q in ("fast", "careful"))
    assert (best <= one + 1e-12).all()
    assert (best < one - 1e-6).any(), "several starts should find a lower minimum somewhere"
    found = graph_clustering._minima_variation(made, graphs.SolverSettings().options(), np.random.default_rng(0))
    assert found.pairs == len(which)
    assert found.lower == pytest.approx(np.mean((one - best) / one > 1e-6))
    assert found.drop == pytest.approx(np.mean((one - best) / one))
    assert not found.careful


def test_careful_is_the_default_where_it_fits_into_the_time() -> None:
    few, many = [18] * 188, [39] * 1113  # about MUTAG and PROTEINS
    assert graphs._work([2, 3, 5]) == 2 * 3 * 5 / 2 + 2 * 5 * 7 / 2 + 3 * 5 * 8 / 2
    assert graphs._work(few) < graphs._CAREFUL_WORK < graphs._work(many)
    careful, fast = (
        graphs.SolverSettings(quality="careful").options(),
        graphs.SolverSettings(quality="fast").options(),
    )
    assert careful != fast
    assert graphs.SolverSettings().options(None, few) == careful
    assert graphs.SolverSettings().options(None, many) == fast
    assert graphs.SolverSettings(quality="fast").options(None, few) == fast
    assert graphs.SolverSettings(restarts=3).options(None, few).restarts == 3
    assert graphs.SolverSettings(solver="pot").options(None, few).solver == "pot"


@pytest.mark.parametrize("bad", [{"solver": "pot", "quality": "careful"}, {"solver": "pot", "restarts": 2}, {"solver": "cuda"}])
@pytest.mark.parametrize("task", [graph_clustering, graph_classification])
def test_what_pot_cannot_do_is_refused(task: Any, bad: dict[str, Any]) -> None:
    given = {"epsilons": [1.0], "methods": [{"method": "local_dp"}]}
    with pytest.raises(ValidationError):
        task.Params(**given, **bad)


def test_every_task_with_discrepancies_has_the_keys() -> None:
    for task in (graph_clustering, graph_classification, graph_metrics):
        assert {"solver", "quality", "restarts"} <= set(task.Params.model_fields)
