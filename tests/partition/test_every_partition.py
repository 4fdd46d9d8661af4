"""What holds for every partition there is, found by file name."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data, plugins
from fedgraph.errors import DataError, ScenarioError
from fedgraph.partition import base
from fedgraph.types import Graph, Partition

NAMES = plugins.names("partition")
CLIENTS = 7


def split(name: str, graph: Graph, seed: int = 0, **parameters: object) -> Partition:
    module = plugins.load("partition", name)
    if asks_how_many(name):
        parameters.setdefault("clients", CLIENTS)
    if name == "natural":  # its clients come with the data
        clients = int(str(parameters.pop("clients", CLIENTS)))
        graph = replace(graph, owner=np.arange(graph.num_nodes) * clients // graph.num_nodes)
    found = module.PARTITION.split(graph, module.Params(**parameters), np.random.default_rng(seed))
    assert isinstance(found, Partition)
    return found


def asks_how_many(name: str) -> bool:
    return "clients" in plugins.load("partition", name).Params.model_fields


def keys(graph: Graph, nodes: np.ndarray, total: int) -> set[int]:
    edges = sp.triu(graph.adjacency, k=1, format="coo")
    one, two = nodes[edges.row], nodes[edges.col]
    return set((np.minimum(one, two) * total + np.maximum(one, two)).tolist())


@pytest.mark.parametrize("name", NAMES)
def test_every_client_holds_the_subgraph_of_its_nodes_and_every_edge_is_held_or_counted_as_cut(
    name: str, library: Graph
) -> None:
    """A cut edge is told at both its ends, and counted once."""
    partition = split(name, library)
    for number, share in enumerate(partition.subgraphs):
        assert share.client == number
        assert share.nodes.size > 0
        assert share.nodes.dtype == np.int64
        assert np.array_equal(share.nodes, np.unique(share.nodes))
        assert (share.graph.adjacency != library.adjacency[share.nodes][:, share.nodes]).nnz == 0
        assert (share.graph.features != library.features[share.nodes]).nnz == 0
        assert np.array_equal(share.graph.labels, library.labels[share.nodes])
    if asks_how_many(name) or name == "natural":
        assert partition.num_clients == CLIENTS
    holders = np.asarray(partition.holdings(library.num_nodes).sum(axis=0)).ravel()
    assert (holders == 1).all() or not partition.disjoint
    held = set().union(*(keys(s.graph, s.nodes, library.num_nodes) for s in partition.subgraphs))
    assert partition.num_cut_edges == library.num_edges - len(held)
    if not partition.disjoint:
        with pytest.raises(DataError, match="overlaps"):
            base.with_cut_edges(library, partition)
        return
    told = base.with_cut_edges(library, partition)
    found = [(int(s.nodes[row]), int(other)) for s in told.subgraphs if s.cut is not None for row, other in s.cut]
    assert len(found) == len(set(found)) == 2 * told.num_cut_edges == 2 * partition.num_cut_edges
    assert set(found) == {(b, a) for a, b in found}
    assert all(library.adjacency[one, other] for one, other in found)


@pytest.mark.parametrize("name", NAMES)
def test_a_partition_says_what_it_read(name: str, library: Graph) -> None:
    """With other edges (or labels) everybody holds the same nodes, unless the partition says that it read them."""
    found = split(name, library, seed=4)
    assert same_clients(found, split(name, library, seed=4)), "the generator decides"
    order = np.random.default_rng(1).permutation(library.num_nodes)
    other_edges = replace(library, adjacency=library.adjacency[order][:, order])
    other_labels = replace(library, labels=library.labels[order])
    assert found.from_edges or same_clients(found, split(name, other_edges, seed=4))
    assert found.from_labels or same_clients(found, split(name, other_labels, seed=4))


def same_clients(one: Partition, other: Partition) -> bool:
    return all(np.array_equal(a.nodes, b.nodes) for a, b in zip(one.subgraphs, other.subgraphs, strict=True))


@pytest.mark.parametrize("groups", [([0, 1, 2], [2, 3, 4, 5]), ([0, 1, 2], [3, 4])])
def test_a_node_held_twice_or_by_nobody_is_refused(groups: tuple[list[int], ...], library: Graph) -> None:
    graph = library.induced(np.arange(6))
    with pytest.raises(DataError, match=r"node [25] is given to [20] clients; .* hold each node once"):
        base.disjoint(graph, [np.array(g) for g in groups], "wrong", from_edges=False, from_labels=False)


def test_an_offer_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = plugins.load("partition", "uniform")
    monkeypatch.setattr(module, "PARTITION", module.split)
    with pytest.raises(ScenarioError, match=r"partition 'uniform': PARTITION is no base\.PartitionOffers"):
        base.chosen({"partition": "uniform"})


@pytest.mark.parametrize("name", [n for n in NAMES if asks_how_many(n)])
def test_more_clients_than_nodes_is_an_error_with_both_numbers(name: str) -> None:
    graph = data.load("synthetic/block_model", parameters={"nodes": 5, "edges": 4, "classes": 2})
    with pytest.raises(DataError, match="6") as caught:
        split(name, graph, clients=6)
    assert "5" in str(caught.value)


@pytest.mark.parametrize(("nodes", "edges", "clients"), [(1, 0, 1), (9, 0, 1), (5, 4, 5)])
def test_the_smallest_graphs(nodes: int, edges: int, clients: int) -> None:
    """One node, no edge, and as many clients as nodes."""
    graph = data.load("synthetic/block_model", parameters={"nodes": nodes, "edges": edges, "classes": min(2, nodes)})
    for name in NAMES:
        found = split(name, graph, **({"clients": clients} if asks_how_many(name) or name == "natural" else {}))
        assert all(s.nodes.size for s in found.subgraphs), name
        assert found.num_clients == clients, name
        assert edges or found.num_cut_edges == 0, name
