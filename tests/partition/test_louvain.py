"""Clients of communities: these stay together, clients stay balanced, igraph's generator is given back."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.partition import louvain, uniform
from fedgraph.types import Graph


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
