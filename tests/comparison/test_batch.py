"""The batched path: exact transport, the compiled path's descents, and convergence kept per pair; on the CPU here."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
import torch

from fedgraph import runtime
from fedgraph.comparison import batch_descent, batch_transport
from fedgraph.comparison.gromov import GromovOptions, list_gromov_pairs, solve_gromov_couplings, solve_gromov_pairs
from fedgraph.comparison.metric_space import MetricSpace, pack_metric_spaces, space_from_embedding, space_from_topology
from fedgraph.comparison.transport import round_for_transport
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.base.graphs import graph_pairs


def generic(rng: np.random.Generator, sizes: Any, uniform: bool) -> list[MetricSpace]:
    """Distinct real distances: no two vertices are ever equally good."""
    made = [space_from_embedding(rng.normal(size=(n, 3)), features=rng.normal(size=(n, 2))) for n in sizes]
    return made if uniform else [MetricSpace(s.distances, rng.dirichlet(np.ones(s.num_points)), s.features) for s in made]


def graphs(rng: np.random.Generator, sizes: Any) -> list[MetricSpace]:
    upper = [np.triu(rng.random((n, n)) < 0.2, 1).astype(float) for n in sizes]
    return [space_from_topology(u + u.T) for u in upper]


def both(spaces: list[MetricSpace], which: np.ndarray, **options: Any) -> tuple[Any, Any]:
    return solve_gromov_pairs(spaces, which, GromovOptions(**options)), solve_gromov_pairs(
        spaces, which, GromovOptions("batched", **options)
    )


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("even", [True, False])
def test_transport_is_exact_at_every_vertex_it_visits(tied: bool, even: bool) -> None:
    rng = np.random.default_rng(3)
    sizes = np.sort(rng.integers(1, 14, size=(60, 2)), axis=1)
    most = sizes.max(axis=0)
    supply, demand = np.zeros((60, most[0]), np.int64), np.zeros((60, most[1]), np.int64)
    cost, orders = np.full((60, *most), np.inf), [np.tile(np.arange(n), (60, 1)) for n in most]
    expected = np.zeros(60)
    for k, (n, m) in enumerate(sizes):
        p, q = (np.full(s, 1 / s) if even else rng.dirichlet(np.ones(s)) for s in (n, m))
        supply[k, :n], demand[k, :m] = (m, n) if even else (round_for_transport(p), round_for_transport(q))
        cost[k, :n, :m] = rng.integers(0, 3, size=(n, m)) if tied else rng.normal(size=(n, m))
        orders[0][k, :n], orders[1][k, :m] = rng.permutation(n), rng.permutation(m)
        expected[k] = ot.emd2(p, q, np.ascontiguousarray(cost[k, :n, :m]))
    given = [torch.tensor(x) for x in (supply, demand, *orders, sizes)]
    basis, prices, tolerance = (
        batch_transport.corner_batch_transport(*given),
        torch.tensor(cost),
        torch.full((60,), 1e-13, dtype=torch.float64),
    )

    def reached() -> np.ndarray:
        plan = batch_transport.batch_transport_coupling(basis, *most).numpy()
        assert plan.min() >= 0
        assert np.array_equal(plan.sum(axis=2), supply)
        assert np.array_equal(plan.sum(axis=1), demand)
        return (np.where(plan > 0, cost, 0) * plan).sum(axis=(1, 2)) / supply.sum(axis=1)

    assert (reached() > expected + 1e-3).mean() > 0.4, "the corner is not the answer yet"
    assert batch_transport.improve_batch_transport(basis, prices, tolerance)[1].all()
    assert np.allclose(reached(), expected, rtol=0, atol=1e-12)
    assert basis.inverse.abs().max() == 1
    wandered = batch_transport.wander_batch_transport(basis, prices, tolerance).float().mean()
    assert wandered > 0.5 if tied else wandered == 0
    assert np.allclose(reached(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [None, 0.0, 0.4])
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize(("start", "restarts"), [("product", 0), ("sorted", 0), ("random", 2)])
def test_same_descents_as_the_compiled_path(alpha: float | None, uniform: bool, start: str, restarts: int) -> None:
    rng = np.random.default_rng(5)
    spaces = generic(rng, rng.integers(1, 16, size=24), uniform)
    ours, batch = both(spaces, np.arange(24).reshape(12, 2), alpha=alpha, start=start, restarts=restarts)
    assert np.allclose(batch.value, ours.value, rtol=1e-7, atol=1e-9)
    same = (batch.iterations == ours.iterations).mean()
    assert same == 1 if not restarts else same > 0.7, "of two equally good descents rounding may prefer either"
    assert batch.converged.all()


def test_same_steps_where_the_minimum_of_a_segment_is_inside_it() -> None:
    """Between Euclidean distances every step ends at a vertex; between any symmetric matrices it may stop half way."""
    rng = np.random.default_rng(15)
    squares = [rng.normal(size=(n, n)) for n in rng.integers(2, 12, size=60)]
    spaces = [MetricSpace(s + s.T, np.full(len(s), 1 / len(s))) for s in squares]
    ours, batch = both(spaces, np.arange(60).reshape(30, 2), max_iterations=20)
    assert np.allclose(batch.value, ours.value, rtol=1e-7, atol=1e-9)
    assert np.array_equal(batch.iterations, ours.iterations)
    assert np.array_equal(batch.converged, ours.converged)
    assert 0.2 < ours.converged.mean() < 1


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [None, 0.3, 0.8])
@pytest.mark.parametrize("uniform", [True, False])
def test_agrees_with_pot_on_thousands(alpha: float | None, uniform: bool) -> None:
    rng = np.random.default_rng(11)
    spaces = generic(rng, rng.integers(3, 16, size=2000), uniform)
    which = np.arange(2000).reshape(1000, 2)
    ours, batch = both(spaces, which, alpha=alpha)
    theirs = solve_gromov_pairs(spaces, which, GromovOptions("pot", alpha=alpha)).value
    assert np.isclose(batch.value, ours.value, rtol=1e-7, atol=1e-9).mean() > 0.995
    assert np.isclose(batch.value, theirs, rtol=1e-7, atol=1e-9).mean() > 0.97
    assert abs(np.median(batch.value - theirs)) < 1e-9


def test_no_worse_on_graphs_full_of_ties() -> None:
    rng = np.random.default_rng(2)
    spaces = graphs(rng, rng.integers(3, 20, size=20))
    ours, batch = both(spaces, list_gromov_pairs(20))
    theirs = solve_gromov_pairs(spaces, list_gromov_pairs(20), GromovOptions("pot")).value
    assert np.median(batch.value) < 1.03 * min(np.median(theirs), np.median(ours.value))
    assert batch.value.mean() < 1.03 * min(theirs.mean(), ours.value.mean())


def test_neither_the_batch_nor_the_order_matters_without_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    spaces = generic(rng, rng.integers(1, 20, size=10), uniform=True)
    packed, limits = pack_metric_spaces(spaces, np.arange(10), fused=False), (10_000, 1e-9, 1e-9)
    which = list_gromov_pairs(10)
    whole = batch_descent.solve_by_batch_descent(packed, which, 1.0, 0, 0, np.uint64(0), limits)
    monkeypatch.setattr(batch_descent, "_MEMORY", 1)
    alone = batch_descent.solve_by_batch_descent(packed, which[::-1, ::-1], 1.0, 0, 0, np.uint64(0), limits)
    assert np.allclose(whole[0], alone[0][::-1], rtol=1e-9, atol=1e-12)
    assert np.array_equal(whole[1], alone[1][::-1])
    order = batch_descent.order_for_batch_descent(np.array([s.num_points for s in spaces])[which])
    assert np.array_equal(np.sort(order), np.arange(len(which)))


def test_points_without_weight_single_points_and_a_space_with_itself() -> None:
    rng = np.random.default_rng(9)
    base, other, ring = *generic(rng, (5, 8), uniform=False), graphs(rng, [9])[0]
    padded = MetricSpace(np.pad(base.distances, (0, 2)), np.append(base.weights, [0.0, 0.0]))
    spaces = [padded, MetricSpace(other.distances, other.weights), MetricSpace(np.zeros((1, 1)), np.ones(1)), ring]
    ours, batch = both(spaces, np.array([[0, 1], [0, 2], [2, 2], [1, 1]]))
    assert np.allclose(batch.value, ours.value, rtol=1e-9, atol=1e-12)
    assert both(spaces, np.array([[3, 3]]), restarts=20)[1].value == pytest.approx(0, abs=1e-9)
    assert both(spaces, np.zeros((0, 2), int))[1].value.size == 0


def test_each_pair_says_whether_it_converged() -> None:
    rng = np.random.default_rng(14)
    spaces = generic(rng, (1, 12, 14), uniform=True)
    ours, batch = both(spaces, list_gromov_pairs(3), max_iterations=2)
    assert np.array_equal(batch.converged, ours.converged)
    assert 0 < batch.converged.sum() < 3
    assert np.array_equal(batch.iterations, ours.iterations)


def test_couplings_come_from_the_compiled_path_and_so_do_thousands_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    spaces = generic(rng, (6, 9), uniform=True)
    which = list_gromov_pairs(2)
    assert np.array_equal(
        solve_gromov_couplings(spaces, which, GromovOptions("batched"))[1][0], solve_gromov_couplings(spaces, which)[1][0]
    )
    monkeypatch.setattr(batch_transport, "BATCH_TRANSPORT_FINE", 12)
    with pytest.raises(ValueError, match="fewer than 6 points"):
        solve_gromov_pairs(spaces, which, GromovOptions("batched"))
    monkeypatch.setattr("fedgraph.comparison.gromov._LARGEST_BATCHED", 5)
    assert np.array_equal(
        solve_gromov_pairs(spaces, which, GromovOptions("batched")).value, solve_gromov_pairs(spaces, which).value
    )


def test_all_pairs_takes_the_batched_path_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    spaces = generic(rng, rng.integers(2, 9, size=12), uniform=True)
    context = CellContext("t", "none", None, 0, 1, runtime.start("serial"))  # type: ignore[arg-type]
    plain, _ = graph_pairs.solve_all_graph_pairs(spaces, GromovOptions(), context)
    calls: list[int] = []
    real = batch_descent.solve_by_batch_descent
    monkeypatch.setattr(graph_pairs, "_on_gpu", lambda items: True)
    monkeypatch.setattr(graph_pairs, "_PAIRS_PER_BATCH", 20)
    monkeypatch.setattr(
        batch_descent,
        "solve_by_batch_descent",
        lambda packed, which, *how: calls.append(len(which)) or real(packed, which, *how),
    )
    batch, _ = graph_pairs.solve_all_graph_pairs(spaces, GromovOptions(), context)
    assert calls == [20, 20, 20, 6]
    assert np.allclose(batch, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.gpu
def test_a_gpu_gives_what_the_cpu_gives() -> None:
    rng = np.random.default_rng(8)
    spaces = generic(rng, rng.integers(2, 40, size=60), uniform=True)
    packed, limits = pack_metric_spaces(spaces, np.arange(60), fused=False), (10_000, 1e-9, 1e-9)
    found = [
        batch_descent.solve_by_batch_descent(
            packed, list_gromov_pairs(60), 1.0, 0, 0, np.uint64(0), limits, torch.device(device)
        )[0]
        for device in ("cpu", "cuda")
    ]
    assert np.isclose(*found, rtol=1e-7, atol=1e-9).mean() > 0.99
