"""Generated graphs: the published sizes, the promised difficulty, the same bytes for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.errors import ScenarioError
from fedgraph.types import Graph, GraphCollection
from tests.data.test_published import COLLECTIONS, GRAPHS

LARGE = ("coauthor", "amazon", "planetoid/pubmed", "geom_gcn/squirrel")
CASES = [pytest.param(name, marks=[pytest.mark.slow] if name.startswith(LARGE) else []) for name in GRAPHS]


def stand_in(name: str, seed: int = 0) -> Graph | GraphCollection:
    return data.load(name, when_unavailable="synthetic", seed=seed, download=False)


@pytest.mark.parametrize("name", CASES)
def test_stand_in_has_the_published_statistics(name: str) -> None:
    graph = stand_in(name)
    assert isinstance(graph, Graph)
    nodes, edges, features, classes, homophily, words = GRAPHS[name]
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (nodes, edges, features, classes)
    ends = sp.triu(graph.adjacency, k=1, format="coo")
    assert np.mean(graph.labels[ends.row] == graph.labels[ends.col]) == pytest.approx(homophily, abs=1e-3)
    assert graph.features.nnz / nodes == pytest.approx(words, rel=0.12)
    assert graph.adjacency.diagonal().sum() == (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.provenance.source == "synthetic"
    assert "SYNTHETIC" in graph.provenance.detail
    if name == "planetoid/cora":  # so that ``split: public`` can be planned, and run, without the files
        (split,) = graph.masks
        split.check(graph.num_nodes, graph.name)
        assert (np.bincount(graph.labels[split.train]) == 20).all()
        assert (split.validation.size, split.test.size) == (500, 1000)


def test_the_seed_and_nothing_else_decides() -> None:
    def of(graph: Graph) -> tuple[bytes, ...]:
        return graph.adjacency.indices.tobytes(), graph.features.indices.tobytes(), graph.labels.tobytes()

    first, again, other = (stand_in("planetoid/citeseer", seed) for seed in (3, 3, 4))
    assert of(first) == of(again) != of(other)
    one, two = stand_in("tu/mutag", 3), stand_in("tu/mutag", 3)
    assert [of(graph) for graph in one.graphs] == [of(graph) for graph in two.graphs]


@pytest.mark.parametrize("name", COLLECTIONS)
def test_collections_have_the_published_sizes(name: str) -> None:
    _, nodes, edges, _, sizes = COLLECTIONS[name]
    collection = stand_in(name)
    assert isinstance(collection, GraphCollection)
    assert np.bincount(collection.labels).tolist() == sizes
    assert np.mean([g.num_nodes for g in collection.graphs]) == pytest.approx(nodes, rel=0.08)
    assert np.mean([g.num_edges for g in collection.graphs]) == pytest.approx(edges, rel=0.12)
    assert collection.provenance.source == "synthetic"


def test_parameters_of_the_block_model_are_obeyed() -> None:
    wanted = {"nodes": 101, "edges": 300, "classes": 3, "features": 50, "words": 5, "homophily": 0.5}
    graph = data.load("synthetic/block_model", parameters=wanted)
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (101, 300, 50, 3)
    assert sorted(np.bincount(graph.labels).tolist()) == [33, 34, 34]


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"node": 5}, "unknown parameter 'node'; did you mean 'nodes'?"),
        ({"homophily": 2}, "parameter 'homophily' is 2"),
        ({"nodes": 3, "classes": 9, "edges": 0}, "9 classes but only 3 nodes"),
        ({"nodes": 10, "edges": 40}, "at most half of all pairs"),
    ],
)
def test_impossible_parameters_are_named(parameters: dict[str, object], text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        data.load("synthetic/block_model", parameters=parameters)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
