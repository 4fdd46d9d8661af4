"""Graphs refuse to be inconsistent."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.types import Graph, Partition, Subgraph


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.zeros(3, dtype=np.int64)}, "do not describe the same nodes"),
        ({"features": sp.csr_array((3, 240), dtype=np.float32)}, "do not describe the same nodes"),
        ({"num_classes": 2}, "allowed: 0 … 1, or -1"),
    ],
)
def test_contradictions(library: Graph, change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        dataclasses.replace(library, **change)  # type: ignore[arg-type]


def test_induced_keeps_edges_among_the_chosen(library: Graph) -> None:
    nodes = np.array([5, 3, 200, 17])
    small = library.induced(nodes)
    expected = library.adjacency.toarray()[np.ix_(nodes, nodes)]
    assert np.array_equal(small.adjacency.toarray(), expected)
    assert np.array_equal(small.labels, library.labels[nodes])
    assert small.num_edges == expected.sum() / 2


def test_holdings_count_every_client(library: Graph) -> None:
    held = [np.array([0, 1]), np.array([1, 2, 5])]
    parts = tuple(Subgraph(i, library.induced(nodes), nodes) for i, nodes in enumerate(held))
    holdings = Partition(
        parts, disjoint=False, num_cut_edges=0, description="test", from_edges=False, from_labels=False
    ).holdings(300)
    assert holdings.sum(axis=0)[:6].tolist() == [1, 2, 1, 0, 0, 1]
