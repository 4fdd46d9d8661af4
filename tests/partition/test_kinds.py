"""What one partition promises beyond all: ego-networks, communities, labels that are skewed, whole graphs."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.partition import dirichlet, ego, louvain, uniform
from fedgraph.types import Graph, GraphCollection, GraphMasks


def test_ego_networks_hold_exactly_what_is_within_reach(library: Graph) -> None:
    dense = library.adjacency.toarray() > 0
    within = np.eye(library.num_nodes, dtype=bool)
    for hops in range(3):
        partition = ego.split(library, ego.Params(clients=20, hops=hops), np.random.default_rng(hops))
        for share in partition.subgraphs:
            center = share.nodes[share.center]
            assert np.array_equal(share.nodes, np.flatnonzero(within[center]))
        assert len({int(s.nodes[s.center]) for s in partition.subgraphs}) == 20
        within = within | (within.astype(int) @ dense.astype(int) > 0)


def test_small_ego_networks_and_small_components_can_be_left_out() -> None:
    graph = data.load("synthetic/block_model", parameters={"nodes": 200, "edges": 170})
    largest = set(graph.largest_component().tolist())
    assert len(largest) < 141
    inside = ego.split(graph, ego.Params(clients=30, largest_component=True), np.random.default_rng(0))
    assert all(int(s.nodes[s.center]) in largest for s in inside.subgraphs)
    big = ego.split(graph, ego.Params(clients=10, min_nodes=4), np.random.default_rng(0))
    assert all(s.nodes.size >= 4 for s in big.subgraphs)
    with pytest.raises(DataError, match="at least 50 node"):
        ego.split(graph, ego.Params(clients=10, min_nodes=50), np.random.default_rng(0))


def test_all_training_nodes_are_centres(library: Graph) -> None:
    given = ego.Params(centres="training", clients=3, hops=1)
    with pytest.raises(DataError, match="came without a split"):
        ego.split(replace(library, masks=()), given, np.random.default_rng(0))
    training = np.array([2, 5, 11])
    split = replace(library, masks=(GraphMasks(training, np.array([0]), np.array([1])),))
    partition = ego.split(split, given.model_copy(update={"clients": 1}), np.random.default_rng(0))
    assert [int(s.nodes[s.center]) for s in partition.subgraphs] == training.tolist()


@pytest.mark.dataset
@pytest.mark.parametrize(
    ("name", "given", "count", "sizes"),
    [
        ("citeseer", {"clients": 2120, "largest_component": True}, 2120, [(4.47, 5.00), (21.74, 39.67)]),
        ("pubmed", {"centres": "training"}, 60, [(5.95, 6.65), (53.83, 103.85)]),
    ],
)
def test_sizes_of_table_4_of_ldp_gw(
    name: str, given: dict[str, object], count: int, sizes: list[tuple[float, float]], data_root: Path
) -> None:
    """Means of nodes and edges for one hop and two. Jin & Chen's Table 4 has 4.61 / 5.15 and 25.13 / 44.26 for a sample of 500
    of CiteSeer's centres, and for PubMed's 60 training nodes 5.95 / 6.65 and 53.83 / 103.95.
    """
    graph = data.load(f"planetoid/{name}", root=data_root, download=False)
    for hops, (nodes, edges) in enumerate(sizes, 1):
        partition = ego.split(graph, ego.Params(hops=hops, **given), np.random.default_rng(0))
        assert len(partition.subgraphs) == count
        assert np.mean([s.nodes.size for s in partition.subgraphs]) == pytest.approx(nodes, abs=0.01)
        assert np.mean([s.graph.num_edges for s in partition.subgraphs]) == pytest.approx(edges, abs=0.01)


@pytest.mark.parametrize("clients", [3, 24])
def test_communities_are_dealt_whole_and_halved_where_they_are_too_few(clients: int, library: Graph) -> None:
    """Twelve cliques of five."""
    cliques = sp.csr_array(sp.kron(sp.eye(12), np.ones((5, 5)) - np.eye(5)))
    graph = replace(library.induced(np.arange(60)), adjacency=cliques)
    shares = louvain.split(graph, louvain.Params(clients=clients), np.random.default_rng(0)).subgraphs
    sizes = sorted(share.nodes.size for share in shares)
    assert sizes == ([20] * 3 if clients == 3 else [2] * 12 + [3] * 12)
    whole = all(set(np.bincount(share.nodes // 5, minlength=12)) == {0, 5} for share in shares)
    assert whole == (clients == 3)


@pytest.mark.parametrize("algorithm", ["louvain", "leiden"])
def test_communities_cut_fewer_edges_than_chance_and_touch_nobody_elses_randomness(algorithm: str, library: Graph) -> None:
    random.seed(1)
    near = louvain.split(library, louvain.Params(clients=5, algorithm=algorithm), np.random.default_rng(0))
    assert random.random() == random.Random(1).random()
    chance = uniform.split(library, uniform.Params(clients=5), np.random.default_rng(0))
    assert near.num_cut_edges < 0.7 * chance.num_cut_edges
    again = louvain.split(library, louvain.Params(clients=5, algorithm=algorithm), np.random.default_rng(0))
    assert all(np.array_equal(a.nodes, b.nodes) for a, b in zip(near.subgraphs, again.subgraphs, strict=True))


@pytest.mark.dataset
def test_ten_clients_of_citeseer_are_balanced(data_root: Path) -> None:
    graph = data.load("planetoid/citeseer", root=data_root, download=False)
    partition = louvain.split(graph, louvain.Params(clients=10), np.random.default_rng(0))
    sizes = [share.nodes.size for share in partition.subgraphs]
    assert max(sizes) - min(sizes) <= 5
    assert partition.num_cut_edges < 0.1 * graph.num_edges


@pytest.fixture(scope="module")
def collection() -> GraphCollection:
    loaded = data.load("synthetic/molecules", parameters={"graphs": 200})
    assert isinstance(loaded, GraphCollection)
    return loaded


@pytest.mark.parametrize("module", [uniform, dirichlet])
def test_every_graph_goes_to_one_client(module: Any, collection: GraphCollection) -> None:
    shares = module.deal(collection, module.Params(), np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(shares.members)), np.arange(200))
    other = replace(collection, labels=np.random.default_rng(0).permutation(collection.labels))
    for graphs, reads in ((collection, False), (other, shares.from_labels)):
        again = module.deal(graphs, module.Params(), np.random.default_rng(0))
        assert reads == any(not np.array_equal(a, b) for a, b in zip(shares.members, again.members, strict=True))
    with pytest.raises(DataError, match="201 clients but only 200 graphs"):
        module.deal(collection, module.Params(clients=201), np.random.default_rng(0))


def test_a_small_concentration_skews_the_labels_and_leaves_every_client_a_graph(collection: GraphCollection) -> None:
    skews = []
    for concentration in (1000.0, 0.1):
        params = dirichlet.Params(clients=5, concentration=concentration)
        shares = dirichlet.deal(collection, params, np.random.default_rng(1))
        skews.append(float(np.mean([abs(collection.labels[m].mean() - 0.5) for m in shares.members])))
    assert skews[0] < 0.1 < 0.2 < skews[1]
    shares = dirichlet.deal(collection, dirichlet.Params(clients=100, concentration=0.01), np.random.default_rng(0))
    assert min(m.size for m in shares.members) == 1
