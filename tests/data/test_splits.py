"""Splits: sizes, disjointness, and every edge accounted for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.data.base import splits
from fedgraph.errors import DataError
from fedgraph.types import Graph


def test_random_split_covers_every_node_once() -> None:
    train, test = splits.random_split(101, 0.8, np.random.default_rng(0))
    assert (train.size, test.size) == (81, 20)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(101))
    assert train.dtype == test.dtype == np.int64


@pytest.mark.parametrize("fraction", [1e-9, 1 - 1e-9])
def test_both_sides_get_at_least_one_node(fraction: float) -> None:
    train, test = splits.random_split(2, fraction, np.random.default_rng(0))
    assert (train.size, test.size) == (1, 1)


@pytest.mark.parametrize(("nodes", "fraction"), [(1, 0.5), (10, 0.0), (10, 1.0), (10, float("nan"))])
def test_impossible_splits_are_refused(nodes: int, fraction: float) -> None:
    with pytest.raises(DataError, match="allowed"):
        splits.random_split(nodes, fraction, np.random.default_rng(0))


def test_part_split_takes_whole_parts(library: Graph) -> None:
    train, test = splits.by_parts(library, np.random.default_rng(3))
    sizes = library.num_nodes / splits._NUM_PARTS
    assert abs(test.size - sizes) < splits._NUM_PARTS
    assert abs(train.size - 7 * sizes) < 2 * splits._NUM_PARTS
    assert not np.intersect1d(train, test).size
    again = splits.by_parts(library, np.random.default_rng(3))
    assert np.array_equal(test, again[1])


def test_balanced_parts_find_planted_communities_and_their_size() -> None:
    rng = np.random.default_rng(0)
    member = np.repeat(np.arange(4), 30)[rng.permutation(120)]
    dense = np.triu(rng.random((120, 120)) < np.where(member[:, None] == member, 0.4, 0.005), 1)
    parts = splits._balanced_parts(sp.csr_array((dense | dense.T).astype(float)), 4, rng)
    assert sorted(p.size for p in parts) == [30, 30, 30, 30]
    assert all(np.bincount(member[p]).max() >= 27 for p in parts)


def test_balanced_parts_cover_graphs_without_edges_and_with_many_components() -> None:
    for adjacency in (sp.csr_array((20, 20)), sp.csr_array(sp.block_diag([np.ones((2, 2)) - np.eye(2)] * 10))):
        parts = splits._balanced_parts(adjacency, 9, np.random.default_rng(0))
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(20))
        assert all(1 <= p.size <= 4 for p in parts)


def test_a_graph_smaller_than_the_parts_is_refused(library: Graph) -> None:
    with pytest.raises(DataError, match="cannot cut 8"):
        splits.by_parts(library.induced(np.arange(8)), np.random.default_rng(0))
