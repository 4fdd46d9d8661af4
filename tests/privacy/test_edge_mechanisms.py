"""EdgeRand and LapGraph: the law of what leaves, against dense reference versions, and every bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, ks_2samp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms.edge_mechanisms import (
    EdgeCells,
    EdgeRand,
    EdgeTriangle,
    LapGraph,
)


def some_edges(n: int, m: int, seed: int) -> np.ndarray:
    cells = EdgeCells(n)
    return cells.edges(np.sort(np.random.default_rng(seed).choice(cells.count, m, replace=False)))


@pytest.mark.parametrize("n", [2, 3, 50])
def test_cells_and_pairs_are_the_same(n: int) -> None:
    cells = np.arange(EdgeCells(n).count)
    pairs = EdgeCells(n).edges(cells)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert pairs.max() == n - 1
    assert np.array_equal(EdgeCells(n).of(pairs), cells)


@pytest.mark.parametrize("smaller", [None, (1, 4, 9)], ids=["one holder", "a client"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_every_own_cell_is_flipped_with_the_same_probability_and_no_other(
    epsilon: float, smaller: tuple[int, ...] | None
) -> None:
    n, runs, rng = 12, 2000, np.random.default_rng(0)
    own = EdgeCells(n, smaller)
    truth = own.edges(np.array([0, 5, 11, 16]))
    flips, together = np.zeros(own.count), 0
    for _ in range(runs):
        out = EdgeRand(epsilon, n, 10**6, smaller).apply(truth, rng)
        assert smaller is None or np.isin(out[:, 0], smaller).all()
        at = own.of(out)
        assert (np.diff(at) > 0).all(), "the order of rows tells nothing"
        flipped = np.setxor1d(own.of(truth), at, assume_unique=True)
        flips[flipped] += 1
        together += np.isin([3, 4], flipped).all()
    p = 1 / (math.exp(epsilon) + 1)
    assert binomtest(int(together), runs, p**2).pvalue > 1e-4, "cells know nothing of each other"
    assert binomtest(int(flips.sum()), runs * flips.size, p).pvalue > 1e-4
    assert binomtest(int(flips.sum()), runs * flips.size, p * 2 / 3).pvalue < 1e-6
    assert chisquare(flips).pvalue > 1e-4


def lapgraph_densely(truth: np.ndarray, n: int, epsilon: float, share: float, rng: np.random.Generator) -> tuple[int, int]:
    cells = np.zeros(EdgeCells(n).count)
    cells[EdgeCells(n).of(truth)] = 1
    count = int(min(max(round(len(truth) + rng.laplace(scale=1 / (share * epsilon))), 0), cells.size))
    noisy = cells + rng.laplace(scale=1 / ((1 - share) * epsilon), size=cells.size)
    kept = np.argsort(-noisy)[:count]
    return count, int(cells[kept].sum())


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_lapgraph_is_its_dense_version_in_law(epsilon: float) -> None:
    n, share, rng = 40, 0.2, np.random.default_rng(0)
    truth = some_edges(n, 60, 1)
    inside = set(EdgeCells(n).of(truth).tolist())
    ours, dense = [], []
    for _ in range(600):
        out = EdgeCells(n).of(LapGraph(epsilon, n, 10**6, share).apply(truth, rng))
        ours.append((out.size, len(inside & set(out.tolist()))))
        dense.append(lapgraph_densely(truth, n, epsilon, share, rng))
    for column in (0, 1):
        assert ks_2samp([o[column] for o in ours], [d[column] for d in dense]).pvalue > 1e-3


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


def test_cells_dealt_by_smaller_id_are_the_upper_triangle_each_once() -> None:
    n, rng = 30, np.random.default_rng(0)
    owner = rng.integers(4, size=n)
    dealt = [EdgeCells(n, tuple(np.flatnonzero(owner == client).tolist())) for client in range(4)]
    pairs = np.concatenate([c.edges(np.arange(c.count)) for c in dealt])
    assert np.array_equal(np.sort(EdgeCells(n).of(pairs)), np.arange(EdgeCells(n).count))
    for cells in dealt:
        assert np.array_equal(cells.of(cells.edges(np.arange(cells.count))), np.arange(cells.count))
    assert EdgeCells(n, ()).count == 0
    assert EdgeCells(n).count == n * (n - 1) // 2
    for bad in ((3, 3), (5, 2), (-1,), (n,)):
        with pytest.raises(PrivacyError, match="strictly increasing"):
            EdgeCells(n, bad)


def test_cells_of_huge_graphs_are_exact_and_in_order_and_graphs_without_cells_run() -> None:
    n = 40_000
    last = EdgeCells(n).count - 1
    cells = np.unique(np.append(np.random.default_rng(0).integers(last, size=100_000), last))
    assert np.array_equal(EdgeCells(n).of(EdgeCells(n).edges(cells)), cells)
    shown = EdgeCells(200).of(LapGraph(3.0, 200, 10**6).apply(some_edges(200, 500, 0), np.random.default_rng(0)))
    assert (np.diff(shown) > 0).all(), "the order of rows tells nothing"
    none = np.zeros((0, 2), dtype=np.int32)
    for nodes in (0, 1):
        for mechanism in (EdgeRand(1.0, nodes, 100), LapGraph(1.0, nodes, 100)):
            assert mechanism.apply(none, np.random.default_rng(0)).shape == (0, 2)
