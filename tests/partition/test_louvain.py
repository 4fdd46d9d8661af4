"""Louvain clients: communities stay together, clients stay balanced, igraph's generator is given back."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from fedgraph import data
from fedgraph.partition import louvain, uniform
from fedgraph.types import Graph


def test_more_communities_than_clients_are_merged_whole(library: Graph) -> None:
    found = louvain._communities(library, np.random.default_rng(0))
    assert len(found) > 3
    partition = louvain.split(library, louvain.Params(clients=3), np.random.default_rng(0))
    for community in found:
        assert sum(np.isin(community, share.nodes).any() for share in partition.subgraphs) == 1
    sizes = [share.nodes.size for share in partition.subgraphs]
    assert max(sizes) - min(sizes) <= max(c.size for c in found)


def test_fewer_communities_than_clients_splits_the_largest(library: Graph) -> None:
    found = louvain._communities(library, np.random.default_rng(0))
    clients = 4 * len(found)
    partition = louvain.split(library, louvain.Params(clients=clients), np.random.default_rng(0))
    assert partition.num_clients == clients
    sizes = [share.nodes.size for share in partition.subgraphs]
    assert max(sizes) <= library.num_nodes / len(found)


def test_communities_cut_fewer_edges_than_chance(library: Graph) -> None:
    near = louvain.split(library, louvain.Params(clients=5), np.random.default_rng(0))
    chance = uniform.split(library, uniform.Params(clients=5), np.random.default_rng(0))
    assert near.num_cut_edges < 0.7 * chance.num_cut_edges


def test_nobody_elses_randomness_is_touched(library: Graph) -> None:
    random.seed(1)
    expected = random.Random(1).random()
    louvain.split(library, louvain.Params(), np.random.default_rng(0))
    assert random.random() == expected


def test_leiden_cuts_fewer_edges_than_chance_too_and_covers_every_node(library: Graph) -> None:
    near = louvain.split(library, louvain.Params(clients=5, algorithm="leiden"), np.random.default_rng(0))
    chance = uniform.split(library, uniform.Params(clients=5), np.random.default_rng(0))
    assert near.num_cut_edges < 0.7 * chance.num_cut_edges
    assert sorted(np.concatenate([share.nodes for share in near.subgraphs])) == list(range(library.num_nodes))
    again = louvain.split(library, louvain.Params(clients=5, algorithm="leiden"), np.random.default_rng(0))
    assert all((a.nodes == b.nodes).all() for a, b in zip(near.subgraphs, again.subgraphs, strict=True))


@pytest.mark.dataset
def test_ten_clients_of_citeseer_are_balanced(data_root: Path) -> None:
    graph = data.load("planetoid/citeseer", root=data_root, download=False)
    partition = louvain.split(graph, louvain.Params(clients=10), np.random.default_rng(0))
    sizes = [share.nodes.size for share in partition.subgraphs]
    assert max(sizes) - min(sizes) <= 5
    assert partition.num_cut_edges < 0.1 * graph.num_edges
