"""The price of trust has the right sign: trusting a curator ≥ secure aggregation > trusting nobody, at ε = 1."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.errors import DataError, ScenarioError
from fedgraph.privacy.units import Assumption
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import graph_clustering, node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph


def context(graph: Graph, seeds: int) -> CellContext:
    return CellContext("t", graph.name, graph, root=5, seeds=seeds, runtime=SerialRuntime())


def accuracies(graph: Graph, trust: str, seeds: int) -> np.ndarray:
    params = node_classification.Params(
        methods=[{"method": "features"}], trust=[trust], epsilons=[1.0], partition={"partition": "uniform", "clients": 10}
    )
    where = context(graph, seeds)
    cells = node_classification.cells(params, where)
    return np.array([node_classification.run(params, c, where).metrics["accuracy"] for c in cells])


def test_ordering_at_epsilon_one(library: Graph) -> None:
    central, secure, local = (accuracies(library, s, 5) for s in ("curator", "sums", "own-client"))
    noise = np.hypot(central.std(), secure.std()) / np.sqrt(5)
    assert central.mean() >= secure.mean() - 2 * noise
    assert secure.mean() > local.mean() + 0.05
    assert local.mean() > 0.1


def test_cells_are_complete_and_distinct(library: Graph) -> None:
    params = node_classification.Params(
        methods=[{"method": "features"}, {"method": "nonprivate"}],
        trust=["curator", "own-client"],
        epsilons=[1, np.inf],
        calibrated_by=["published", "provable"],
    )
    cells = node_classification.cells(params, context(library, 3))
    assert len({c.key for c in cells}) == len(cells) == 3 * 2 * (2 + 1 + 1)


def test_published_calibration_is_cheaper_in_noise_never_in_truth(library: Graph) -> None:
    params = node_classification.Params(
        methods=[{"method": "features"}], trust=["curator"], epsilons=[2.0], calibrated_by=["published", "provable"]
    )
    where = context(library, 1)
    published, provable = (node_classification.run(params, c, where) for c in node_classification.cells(params, where))
    assert published.epsilon_published == pytest.approx(2.0)
    assert published.epsilon_provable < 2.0, "the moments formula is an upper bound, so the exact price is lower"
    assert provable.epsilon_provable <= 2.0


def test_overlapping_partition_is_refused(library: Graph) -> None:
    params = node_classification.Params(
        methods=[{"method": "features"}], trust=["own-client"], epsilons=[1.0], partition={"partition": "ego", "clients": 5}
    )
    where = context(library, 1)
    with pytest.raises(ScenarioError, match="disjoint"):
        node_classification.run(params, node_classification.cells(params, where)[0], where)


def test_more_clients_than_nodes(library: Graph) -> None:
    small = library.induced(np.arange(20))
    params = node_classification.Params(
        methods=[{"method": "features"}],
        trust=["own-client"],
        epsilons=[1.0],
        partition={"partition": "uniform", "clients": 50},
    )
    where = context(small, 1)
    with pytest.raises((DataError, ScenarioError), match="50"):
        node_classification.run(params, node_classification.cells(params, where)[0], where)


def awkward(library: Graph) -> Graph:
    """Isolated nodes, a class absent at most clients, unlabelled nodes."""
    import dataclasses

    graph = library.induced(np.arange(0, 300, 3))
    labels = graph.labels.copy()
    labels[::4] = -1
    return dataclasses.replace(graph, labels=labels)


def test_isolated_unlabelled_and_absent_classes_run(library: Graph) -> None:
    graph = awkward(library)
    assert (graph.degrees == 0).any()
    params = node_classification.Params(
        methods=[{"method": "features"}, {"method": "nonprivate", "model": "gcn", "rounds": 2}],
        trust=["own-client"],
        epsilons=[1.0],
        partition={"partition": "uniform", "clients": 40},
    )
    where = context(graph, 1)
    for cell in node_classification.cells(params, where):
        assert 0 <= node_classification.run(params, cell, where).metrics["accuracy"] <= 1


def test_clients_without_any_label_run(library: Graph) -> None:
    import dataclasses

    labels = library.labels.copy()
    labels[:200] = -1
    params = node_classification.Params(
        methods=[{"method": "nonprivate", "model": "gcn", "rounds": 2}, {"method": "features"}],
        trust=["sums"],
        epsilons=[1.0],
    )
    where = context(dataclasses.replace(library, labels=labels), 1)
    for cell in node_classification.cells(params, where):
        node_classification.run(params, cell, where)


def test_one_node_graphs_cluster(library: Graph) -> None:
    import dataclasses

    import scipy.sparse as sp

    bare = dataclasses.replace(library, adjacency=sp.csr_array((300, 300)))
    params = graph_clustering.Params(
        epsilons=[2.0], partition={"partition": "ego", "clients": 8}, method={"method": "local_dp", "rounds": 2}, num_init=1
    )
    where = context(bare, 1)
    for cell in graph_clustering.cells(params, where):
        out = graph_clustering.run(params, cell, where)
        assert -1 <= out.metrics["ari"] <= 1


@pytest.mark.parametrize(("split", "stated"), [("random", False), ("parts", True)])
def test_a_split_made_from_edges_is_an_assumption(library: Graph, split: str, stated: bool) -> None:
    params = node_classification.Params(methods=[{"method": "features"}], trust=["curator"], epsilons=[1], split=split)
    where = context(library, 1)
    (cell,) = node_classification.cells(params, where)
    assumed = node_classification.plan(params, cell, where).guarantee.protection.assumptions
    assert (Assumption.SPLIT_FROM_EDGES in assumed) == stated
