"""Whole graphs dealt to clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.partition import dirichlet, uniform
from fedgraph.types import GraphCollection


@pytest.fixture(scope="module")
def collection() -> GraphCollection:
    loaded = data.load("synthetic/molecules", parameters={"graphs": 200})
    assert isinstance(loaded, GraphCollection)
    return loaded


@pytest.mark.parametrize("module", [uniform, dirichlet])
def test_every_graph_goes_to_one_client(module: object, collection: GraphCollection) -> None:
    shares = module.deal(collection, module.Params(), np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(shares.members)), np.arange(200))
    assert all(m.size for m in shares.members)
    other = replace(collection, labels=np.random.default_rng(0).permutation(collection.labels))
    for graphs, reads in ((collection, False), (other, shares.from_labels)):
        again = module.deal(graphs, module.Params(), np.random.default_rng(0))
        assert reads == any(not np.array_equal(a, b) for a, b in zip(shares.members, again.members, strict=True))


def skew(collection: GraphCollection, concentration: float) -> float:
    params = dirichlet.Params(clients=5, concentration=concentration)
    shares = dirichlet.deal(collection, params, np.random.default_rng(1))
    return float(np.mean([abs(collection.labels[m].mean() - 0.5) for m in shares.members]))


def test_a_small_concentration_skews_the_labels(collection: GraphCollection) -> None:
    assert skew(collection, 1000.0) < 0.1 < 0.2 < skew(collection, 0.1)


def test_every_client_has_a_graph(collection: GraphCollection) -> None:
    shares = dirichlet.deal(collection, dirichlet.Params(clients=100, concentration=0.01), np.random.default_rng(0))
    assert min(m.size for m in shares.members) == 1
    for module in (dirichlet, uniform):
        with pytest.raises(DataError, match="201 clients but only 200 graphs"):
            module.deal(collection, module.Params(clients=201), np.random.default_rng(0))
