"""APPR: the published loop, the minimiser's own conditions, a dense solve, and the corners."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.pagerank_oracle import optimality_gap, published_loop
from fedgraph.errors import DataError
from fedgraph.learning.propagation import walks


def random_graph(n: int, density: float, seed: int) -> sp.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return sp.csr_array((upper | upper.T).astype(float))


def dense(adjacency: sp.csr_array, sources: list[int], **settings_: float) -> np.ndarray:
    return walks.approximate_pagerank(adjacency, np.array(sources), **settings_).toarray()


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.25, 0.8, 1.0]), st.sampled_from([1e-2, 1e-3, 1e-5]))
@settings(max_examples=15, deadline=None)
def test_same_iterates_as_the_published_loop_and_optimal(seed: int, alpha: float, rho: float) -> None:
    adjacency = random_graph(40, 0.08, seed)
    rows = dense(adjacency, list(range(40)), alpha=alpha, rho=rho, gamma=1e-4)
    for source in range(40):
        assert rows[source] == pytest.approx(published_loop(adjacency, source, alpha, rho, 1e-4), abs=1e-13)
        if adjacency.indptr[source + 1] > adjacency.indptr[source]:
            assert optimality_gap(adjacency, rows[source], source, alpha, rho) <= 1e-4 * (1 + 1e-6)


def test_dense_solve_where_everything_is_active() -> None:
    """With ρ → 0 the minimiser is lazy personalised PageRank, here by a dense inverse."""
    adjacency = random_graph(30, 0.3, 5)
    degree = np.diff(adjacency.indptr).astype(float)
    assert degree.min() > 0
    alpha = 0.25
    lazy = 0.5 * (np.eye(30) + adjacency.toarray() / degree)  # column-stochastic: A D⁻¹
    exact = alpha * np.linalg.inv(np.eye(30) - (1 - alpha) * lazy)
    assert dense(adjacency, list(range(30)), alpha=alpha, rho=1e-9, gamma=1e-6) == pytest.approx(exact.T, abs=1e-6)


def test_dense_solve_on_the_support() -> None:
    """On its support S, p solves the linear system with gradient −ρα: an independent solve gives the same values."""
    adjacency, alpha, rho = random_graph(60, 0.06, 9), 0.25, 5e-3
    degree = np.diff(adjacency.indptr).astype(float)
    for source in np.flatnonzero(degree)[:20]:
        row = dense(adjacency, [source], alpha=alpha, rho=rho, gamma=1e-9)[0]
        on = np.flatnonzero(row)
        inside = adjacency.toarray()[np.ix_(on, on)]
        matrix = (1 + alpha) / 2 * np.eye(on.size) - (1 - alpha) / 2 * inside / degree[on]
        right = alpha * (on == source) - rho * alpha * degree[on]
        assert row[on] == pytest.approx(np.linalg.solve(matrix, right), abs=1e-8)
        assert on.size <= 1 / rho
        assert degree[on].sum() <= 1 / rho


def test_isolated_source_keeps_its_mass_and_huge_hubs_stay_out() -> None:
    star = sp.lil_array((60, 60))
    star[0, 1:50] = 1
    star[1:50, 0] = 1
    adjacency = sp.csr_array(star)
    rows = dense(adjacency, [55, 0, 1], rho=0.03)
    assert rows[0] == pytest.approx(np.eye(60)[55])
    assert not rows[1].any()  # degree 49 ≥ 1/0.03: never active
    assert rows[2, 0] == 0
    assert rows[2, 1] > 0


def test_rows_do_not_depend_on_the_batch_and_repeat() -> None:
    adjacency = random_graph(50, 0.1, 3)
    together = dense(adjacency, [7, 3, 7])
    assert (together[0] == together[2]).all()
    assert (together[1] == dense(adjacency, [3])[0]).all()


def test_no_sources_and_read_only_input() -> None:
    adjacency = random_graph(10, 0.3, 1)
    for part in (adjacency.data, adjacency.indices, adjacency.indptr):
        part.flags.writeable = False
    assert walks.approximate_pagerank(adjacency, np.zeros(0, np.int64)).shape == (0, 10)
    assert walks.approximate_pagerank(adjacency, np.array([1, 2])).shape == (2, 10)


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": 1.5}, {"rho": 0.0}, {"gamma": -1.0}])
def test_impossible_settings_raise(wrong: dict[str, float]) -> None:
    with pytest.raises(DataError, match="PageRank needs"):
        walks.approximate_pagerank(random_graph(5, 0.5, 0), np.array([0]), **wrong)


def test_weights_and_unknown_sources_raise() -> None:
    adjacency = random_graph(5, 0.9, 0)
    with pytest.raises(DataError, match="unit weights"):
        walks.approximate_pagerank(sp.csr_array(adjacency * 2.0), np.array([0]))
    with pytest.raises(DataError, match="sources must be rows"):
        walks.approximate_pagerank(adjacency, np.array([5]))
