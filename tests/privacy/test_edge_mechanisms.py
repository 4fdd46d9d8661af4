"""EdgeRand and LapGraph: the law of what leaves, against dense reference versions, and every bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, ks_2samp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms.edge_mechanisms import EdgeCells, EdgeRand, EdgeTriangle, LapGraph


def some_edges(n, m, seed):
    cells = EdgeCells(n)
    return cells.edges(np.sort(np.random.default_rng(seed).choice(cells.count, m, replace=False)))


def test_cells_are_the_upper_triangle_each_once_also_where_they_are_dealt_and_many():
    for n in (2, 3, 50):
        cells = np.arange(EdgeCells(n).count)
        pairs = EdgeCells(n).edges(cells)
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert pairs.max() == n - 1
        assert np.array_equal(EdgeCells(n).of(pairs), cells)
    owner = np.random.default_rng(0).integers(4, size=30)
    dealt = [EdgeCells(30, tuple(np.flatnonzero(owner == client).tolist())) for client in range(4)]
    pairs = np.concatenate([c.edges(np.arange(c.count)) for c in dealt])
    assert np.array_equal(np.sort(EdgeCells(30).of(pairs)), np.arange(30 * 29 // 2))
    for cells in dealt:
        assert np.array_equal(cells.of(cells.edges(np.arange(cells.count))), np.arange(cells.count))
    assert EdgeCells(30, ()).count == 0
    last = EdgeCells(40_000).count - 1
    cells = np.unique(np.append(np.random.default_rng(0).integers(last, size=100_000), last))
    assert np.array_equal(EdgeCells(40_000).of(EdgeCells(40_000).edges(cells)), cells)


@pytest.mark.parametrize("smaller", [None, (1, 4, 9)], ids=["one holder", "a client"])
@pytest.mark.parametrize("epsilon", [0.2, 4.0])
def test_every_own_cell_is_flipped_with_the_same_probability_and_no_other(epsilon, smaller):
    n, runs, rng = 12, 1500, np.random.default_rng(0)
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


@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_lapgraph_is_its_dense_version_in_law(epsilon):
    n, share, rng, count = 40, 0.2, np.random.default_rng(0), EdgeCells(40).count
    truth = some_edges(n, 60, 1)
    inside, ours, dense = np.isin(np.arange(count), EdgeCells(n).of(truth)), [], []
    for _ in range(600):
        out = EdgeCells(n).of(LapGraph(epsilon, n, 10**6, share).apply(truth, rng))
        assert (np.diff(out) > 0).all(), "the order of rows tells nothing"
        ours.append((out.size, int(inside[out].sum())))
        size = int(min(max(round(len(truth) + rng.laplace(scale=1 / (share * epsilon))), 0), count))
        kept = np.argsort(-(inside + rng.laplace(scale=1 / ((1 - share) * epsilon), size=count)))[:size]
        dense.append((size, int(inside[kept].sum())))
    for column in (0, 1):
        assert ks_2samp([o[column] for o in ours], [d[column] for d in dense]).pvalue > 1e-3


def test_bad_inputs_never_pass_and_graphs_without_cells_run():
    for build, epsilon in itertools.product((EdgeRand, LapGraph), (0.0, -1.0, math.nan, math.inf)):
        with pytest.raises(PrivacyError):
            build(epsilon, 10, 100)
    bound = EdgeTriangle(5)
    bound.enforce(np.array([[0, 1], [1, 4]]))
    for bad, words in (
        ([[1, 1]], "no self-loops"), ([[2, 1]], "u < v"), ([[0, 5]], "< 5"), ([[-1, 2]], "0 ≤ u"), ([[0, 1], [0, 1]], "twice"),
        ([[0.0, 1.0]], "integers"), ([0, 1], "integers"),
    ):  # fmt: skip
        with pytest.raises(UnboundedValueError, match=words):
            bound.enforce(np.array(bad))
    for bad in ((3, 3), (5, 2), (-1,), (30,)):
        with pytest.raises(PrivacyError, match="strictly increasing"):
            EdgeCells(30, bad)
    with pytest.raises(PrivacyError, match="share"):
        LapGraph(1.0, 10, 100, share=1.0)
    with pytest.raises(PrivacyError, match="above its limit"):
        LapGraph(1.0, 100, 3).apply(some_edges(100, 2000, 0), np.random.default_rng(0))
    none = np.zeros((0, 2), dtype=np.int32)
    for build, nodes in itertools.product((EdgeRand, LapGraph), (0, 1)):
        assert build(1.0, nodes, 100).apply(none, np.random.default_rng(0)).shape == (0, 2)
