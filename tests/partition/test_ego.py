"""Ego-networks: who is within reach, where the centre is, and the sizes that the literature reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.partition import ego
from fedgraph.types import Graph, GraphMasks


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
