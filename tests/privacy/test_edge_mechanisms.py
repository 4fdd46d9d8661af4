"""EdgeRand and LapGraph: the law of what leaves, against dense reference versions, and every bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, ks_2samp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms import edge_mechanisms
from fedgraph.privacy.mechanisms.edge_mechanisms import (
    EdgeCells,
    EdgeRand,
    EdgeTriangle,
    LapGraph,
    _bernoulli_positions,
    _edge_cell_of,
)


def some_edges(n: int, m: int, seed: int) -> np.ndarray:
    return edge_mechanisms.of_cells(
        edge_mechanisms.distinct_cells(edge_mechanisms.num_cells(n), m, np.random.default_rng(seed))
    )


@pytest.mark.parametrize("n", [2, 3, 50])
def test_cells_and_pairs_are_the_same(n: int) -> None:
    cells = np.arange(edge_mechanisms.num_cells(n))
    pairs = edge_mechanisms.of_cells(cells)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert pairs.max() == n - 1
    assert np.array_equal(_edge_cell_of(pairs), cells)


def test_cells_of_huge_graphs_are_exact() -> None:
    n = 40_000
    cells = np.unique(
        np.concatenate(
            [np.random.default_rng(0).integers(edge_mechanisms.num_cells(n), size=100_000), [edge_mechanisms.num_cells(n) - 1]]
        )
    )
    assert np.array_equal(_edge_cell_of(edge_mechanisms.of_cells(cells)), cells)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_every_cell_is_flipped_with_the_same_probability(epsilon: float) -> None:
    n, runs, rng = 12, 4000, np.random.default_rng(0)
    truth = some_edges(n, 20, 1)
    flips = np.zeros(edge_mechanisms.num_cells(n))
    for _ in range(runs):
        out = EdgeRand(epsilon, n, 10**6).apply(truth, rng)
        flips[np.setxor1d(_edge_cell_of(truth), _edge_cell_of(out), assume_unique=True)] += 1
    p = 1 / (math.exp(epsilon) + 1)
    assert binomtest(int(flips.sum()), runs * flips.size, p).pvalue > 1e-4
    assert binomtest(int(flips.sum()), runs * flips.size, p * 2 / 3).pvalue < 1e-6
    assert chisquare(flips).pvalue > 1e-4


def test_gaps_make_independent_coins() -> None:
    rng = np.random.default_rng(3)
    pairs = np.array([[0 in (s := set(_bernoulli_positions(5, 0.5, rng).tolist())), 4 in s] for _ in range(4000)])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.06
    assert abs(pairs.mean() - 0.5) < 0.03
    many = _bernoulli_positions(30_000_000, 0.1, rng)
    assert (np.diff(many) > 0).all()
    assert abs(many.size / 3e6 - 1) < 0.003


def test_the_order_of_rows_tells_nothing() -> None:
    truth = some_edges(200, 500, 0)
    for mechanism in (EdgeRand(3.0, 200, 10**6), LapGraph(3.0, 200, 10**6)):
        out = _edge_cell_of(mechanism.apply(truth, np.random.default_rng(0)))
        assert (np.diff(out) > 0).all()


def lapgraph_densely(truth: np.ndarray, n: int, epsilon: float, share: float, rng: np.random.Generator) -> tuple[int, int]:
    cells = np.zeros(edge_mechanisms.num_cells(n))
    cells[_edge_cell_of(truth)] = 1
    count = int(min(max(round(len(truth) + rng.laplace(scale=1 / (share * epsilon))), 0), cells.size))
    noisy = cells + rng.laplace(scale=1 / ((1 - share) * epsilon), size=cells.size)
    kept = np.argsort(-noisy)[:count]
    return count, int(cells[kept].sum())


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_lapgraph_is_its_dense_version_in_law(epsilon: float) -> None:
    n, share, rng = 40, 0.2, np.random.default_rng(0)
    truth = some_edges(n, 60, 1)
    inside = set(_edge_cell_of(truth).tolist())
    ours, dense = [], []
    for _ in range(600):
        out = _edge_cell_of(LapGraph(epsilon, n, 10**6, share).apply(truth, rng))
        ours.append((out.size, len(inside & set(out.tolist()))))
        dense.append(lapgraph_densely(truth, n, epsilon, share, rng))
    for column in (0, 1):
        assert ks_2samp([o[column] for o in ours], [d[column] for d in dense]).pvalue > 1e-3


@pytest.mark.parametrize(("limit", "count"), [(10, 10), (10, 0), (1000, 700), (10**12, 1000)])
def test_distinct_numbers_are_distinct(limit: int, count: int) -> None:
    taken = np.array([3, 5]) if limit > 10 else None
    found = edge_mechanisms.distinct_cells(limit, count, np.random.default_rng(0), taken)
    assert found.size == np.unique(found).size == count
    assert (found < limit).all()
    assert taken is None or not np.isin(taken, found).any()


def test_empty_and_tiny_graphs() -> None:
    none = np.zeros((0, 2), dtype=np.int32)
    for n in (0, 1):
        assert EdgeRand(1.0, n, 100).apply(none, np.random.default_rng(0)).shape == (0, 2)
        assert LapGraph(1.0, n, 100).apply(none, np.random.default_rng(0)).shape == (0, 2)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilons(epsilon: float) -> None:
    with pytest.raises(PrivacyError):
        EdgeRand(epsilon, 10, 100)
    with pytest.raises(PrivacyError):
        LapGraph(epsilon, 10, 100)


def test_bad_edges_never_pass() -> None:
    bound = EdgeTriangle(5)
    bound.enforce(np.array([[0, 1], [1, 4]]))
    for bad, words in (
        ([[1, 1]], "no self-loops"),
        ([[2, 1]], "u < v"),
        ([[0, 5]], "< 5"),
        ([[-1, 2]], "0 ≤ u"),
        ([[0, 1], [0, 1]], "twice"),
        ([[0.0, 1.0]], "integers"),
        ([0, 1], "integers"),
    ):
        with pytest.raises(UnboundedValueError, match=words):
            bound.enforce(np.array(bad))
    with pytest.raises(PrivacyError, match="share"):
        LapGraph(1.0, 10, 100, share=1.0)
    with pytest.raises(PrivacyError, match="above its limit"):
        LapGraph(1.0, 100, 3).apply(some_edges(100, 2000, 0), np.random.default_rng(0))
    with pytest.raises(PrivacyError, match="are free"):
        edge_mechanisms.distinct_cells(3, 4, np.random.default_rng(0))


def test_cells_dealt_by_smaller_id_are_the_upper_triangle_each_once() -> None:
    n, rng = 30, np.random.default_rng(0)
    owner = rng.integers(4, size=n)
    dealt = [EdgeCells(n, tuple(np.flatnonzero(owner == client).tolist())) for client in range(4)]
    pairs = np.concatenate([c.edges(np.arange(c.count)) for c in dealt])
    assert np.array_equal(np.sort(_edge_cell_of(pairs)), np.arange(edge_mechanisms.num_cells(n)))
    for cells in dealt:
        assert np.array_equal(cells.of(cells.edges(np.arange(cells.count))), np.arange(cells.count))
    assert EdgeCells(n, ()).count == 0
    assert EdgeCells(n).count == edge_mechanisms.num_cells(n)
    for bad in ((3, 3), (5, 2), (-1,), (n,)):
        with pytest.raises(PrivacyError, match="strictly increasing"):
            EdgeCells(n, bad)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_client_flips_its_own_cells_only_and_all_alike(epsilon: float) -> None:
    n, runs, rng = 14, 4000, np.random.default_rng(2)
    own = EdgeCells(n, (1, 4, 9))
    truth = own.edges(np.array([0, 5, 11, 20]))
    flips = np.zeros(own.count)
    for _ in range(runs):
        out = EdgeRand(epsilon, n, 10**6, own.smaller).apply(truth, rng)
        assert np.isin(out[:, 0], own.smaller).all()
        flips[np.setxor1d(own.of(truth), own.of(out), assume_unique=True)] += 1
    p = 1 / (math.exp(epsilon) + 1)
    assert binomtest(int(flips.sum()), runs * flips.size, p).pvalue > 1e-4
    assert binomtest(int(flips.sum()), runs * flips.size, p * 2 / 3).pvalue < 1e-6
    assert chisquare(flips).pvalue > 1e-4
    kept = LapGraph(50.0, n, 10**6, 0.5, own.smaller).apply(truth, rng)
    assert np.array_equal(np.sort(own.of(kept)), np.sort(own.of(truth)))
