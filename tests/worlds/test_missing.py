"""Generated neighbours: made from public features alone, and one edge changes one row at either of its ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.errors import ScenarioError
from fedgraph.learning.layers.torch_matrices import unit_matrix_rows
from fedgraph.learning.propagation.aggregation import aggregate_hop, aggregation_with_stand_ins
from fedgraph.partition import base, uniform
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification, participation
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph, Partition
from fedgraph.worlds import missing_neighbours

CLIENTS = {"partition": "uniform", "clients": 3}
METHOD = {"method": "gap_edge", "epochs": 5, "folds": 1, "depth": "all"}


def dealt(graph: Graph) -> Partition:
    found = base.partition_with_cut_edges(
        graph, uniform.split(graph, uniform.Params(clients=3), seeds.seeded_generator(0, "deal"))
    )
    return missing_neighbours.generate_missing_neighbours(found, graph.features)


def sums(graph: Graph, partition: Partition) -> list[np.ndarray]:
    rows = unit_matrix_rows(graph.features).toarray()[:, :16]
    parts = []
    for share in partition.subgraphs:
        assert share.cut is not None
        parts.append(
            aggregate_hop(aggregation_with_stand_ins(share.graph.adjacency, share.nodes, share.cut, graph.num_nodes), rows)
        )
    return parts


def without_edge(graph: Graph, one: int, two: int) -> Graph:
    kept = graph.adjacency.tolil()
    kept[one, two] = kept[two, one] = 0
    adjacency = sp.csr_array(kept)
    adjacency.eliminate_zeros()
    return replace(graph, adjacency=adjacency)


def test_every_lost_edge_has_one_stand_in_of_the_same_client(library: Graph) -> None:
    known = base.partition_with_cut_edges(
        library, uniform.split(library, uniform.Params(clients=3), seeds.seeded_generator(0, "deal"))
    )
    for before, after in zip(known.subgraphs, dealt(library).subgraphs, strict=True):
        assert before.cut is not None
        assert after.cut is not None
        assert sorted(before.cut[:, 0]) == sorted(after.cut[:, 0])
        assert np.isin(after.cut[:, 1], after.nodes).all()
        assert (after.nodes[after.cut[:, 0]] != after.cut[:, 1]).all(), "nobody stands in for its own neighbour"


def test_one_edge_changes_one_row_at_either_end_by_at_most_one(library: Graph) -> None:
    """Every edge in turn taken away: the distance of all sums is what the price of two ends says."""
    before = sums(library, dealt(library))
    worst = 0.0
    upper = sp.triu(library.adjacency, k=1, format="coo")
    owner = np.zeros(library.num_nodes, dtype=int)
    for share in dealt(library).subgraphs:
        owner[share.nodes] = share.client
    for one, two in list(zip(upper.row, upper.col, strict=True))[::48]:
        other = without_edge(library, int(one), int(two))
        changed = [np.linalg.norm(a.astype(float) - b, axis=1) for a, b in zip(before, sums(other, dealt(other)), strict=True)]
        rows = np.concatenate([c[c > 0] for c in changed])
        assert rows.size <= 2
        assert rows.max(initial=0.0) <= 1.0
        if owner[one] != owner[two]:
            assert all((c > 0).sum() <= 1 for c in changed), "one row at either client"
            worst = max(worst, float(rows.max(initial=0.0)))
    assert worst > 0.5, "or nothing was tested"


def test_stand_ins_do_not_depend_on_edges(library: Graph) -> None:
    rows = unit_matrix_rows(library.features)
    assert (missing_neighbours._similar_rows(rows, np.arange(5)) != np.arange(5)[:, None]).all()
    dense = (rows @ rows.T).toarray()
    np.fill_diagonal(dense, -1)
    assert dense[0].argmax() == missing_neighbours._similar_rows(rows, np.arange(1))[0, 0]


@pytest.mark.parametrize("task", [node_classification, participation])
def test_it_is_priced_at_both_ends_and_within_the_budget(task: Any, library: Graph) -> None:
    given = {"methods": [METHOD], "trust": ["sums"], "epsilons": [2.0], "protocol": "transductive", "partition": CLIENTS}
    own = {"participations": ["federated"]} if task is participation else {}
    where = CellContext("t", library.name, library, root=5, seeds=1, runtime=SerialRuntime())
    accuracies = {}
    for cut in ("dropped", "protected", "generated"):
        params = task.Params(**given, **own, cut_edges=cut)
        (cell,) = task.cells(params, where)
        found = task.run(params, cell, where)
        assert 1.9 < found.epsilon_provable <= 2.0
        assert found.facts.cut_edges_shared == (cut != "dropped")
        accuracies[cut] = found.metrics["accuracy"]
    assert len(set(accuracies.values())) > 1


def test_private_rows_are_refused_and_so_are_methods_without_it(library: Graph) -> None:
    where = CellContext("t", library.name, library, root=5, seeds=1, runtime=SerialRuntime())
    for method, protocol, words in (
        ({"method": "features"}, "inductive", "must be public"),
        ({"method": "gcon"}, "transductive", "offered by gap_edge"),
    ):
        params = node_classification.Params(
            methods=[method], trust=["own-client"], epsilons=[1.0], protocol=protocol, partition=CLIENTS, cut_edges="generated"
        )
        with pytest.raises(ScenarioError, match=words):
            node_classification.plan(params, node_classification.cells(params, where)[0], where)
