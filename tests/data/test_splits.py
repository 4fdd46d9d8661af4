"""Splits: sizes, disjointness, and every edge accounted for."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_part_split_takes_whole_parts(library: Graph) -> None:
    train, test = splits.by_parts(library, np.random.default_rng(3))
    sizes = library.num_nodes / 9
    assert abs(test.size - sizes) < 9
    assert abs(train.size - 7 * sizes) < 2 * 9
    assert not np.intersect1d(train, test).size
    again = splits.by_parts(library, np.random.default_rng(3))
    assert np.array_equal(test, again[1])


def test_a_graph_smaller_than_the_parts_is_refused(library: Graph) -> None:
    with pytest.raises(DataError, match="cannot cut 8"):
        splits.by_parts(library.induced(np.arange(8)), np.random.default_rng(0))
