"""APPR: the published loop, the minimiser's own conditions, a dense solve, and the corners."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.pagerank_oracle import optimality_gap, published_loop
from fedgraph.errors import DataError
from fedgraph.learning import walks


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


def test_weights_and_unknown_sources_raise() -> None:
    adjacency = random_graph(5, 0.9, 0)
    with pytest.raises(DataError, match="unit weights"):
        walks.approximate_pagerank(sp.csr_array(adjacency * 2.0), np.array([0]))
    with pytest.raises(DataError, match="sources must be rows"):
        walks.approximate_pagerank(adjacency, np.array([5]))
