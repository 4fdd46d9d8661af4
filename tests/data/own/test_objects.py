"""Graphs in memory: whatever an object holds and no method reads is named; missing labels stay missing."""

from __future__ import annotations

import logging

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.errors import DataError


def network() -> nx.DiGraph:
    graph = nx.DiGraph()
    for node, label in (("a", "red"), ("b", None), ("c", "blue"), ("d", "red")):
        graph.add_node(node, x=[1.0, 2.0], y=label, age=30)
    del graph.nodes["d"]["y"]
    graph.add_edge("a", "b", weight=2.0, time=7)
    return graph


def test_unlabelled_people_of_a_networkx_graph_are_not_trained_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fedgraph"):
        graph = read(network()).graph
    assert graph.labels.tolist() == [1, -1, 0, -1]
    assert graph.num_classes == 2
    for what in ("column 'time' of the graph", "column 'weight' of the graph", "the direction of ties"):
        assert what in graph.provenance.detail
        assert what in caplog.text


def test_what_a_pyg_object_holds_beside_is_named() -> None:
    torch = pytest.importorskip("torch")
    pyg = pytest.importorskip("torch_geometric.data")
    data = pyg.Data(x=torch.ones(4, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, -1, 1]))
    data.edge_attr, data.time, data.train_mask = torch.ones(2, 1), torch.arange(2), torch.ones(4, dtype=torch.bool)
    detail = read(data).graph.provenance.detail
    for what in ("edge_attr", "time", "masks (a split needs train_mask and test_mask)", "1 of 4 people have no label"):
        assert what in detail
    data.y = torch.zeros(4, 3)
    with pytest.raises(DataError, match="one label per node"):
        read(data)
    data.y = torch.linspace(0, 1, 4).reshape(4, 1)
    assert read(data).graph.num_classes == 4, "few fractions may be classes"


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "age": [30, None, 50],
            "member": [True, False, True],
            "label": pd.array([1, None, 0], dtype="Int64"),
        }
    )
    return nodes, pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "since": [1, 2]})


def test_two_pandas_tables_are_a_graph() -> None:
    graph = read(tables(), columns={"bounds": {"age": [0, 100]}, "empty": "missing"}).graph
    assert graph.labels.tolist() == [1, -1, 0]
    assert graph.features.toarray() == pytest.approx(np.array([[-0.4, 0, 1], [0, 1, 0], [0, 0, 1]]), abs=1e-6)
    assert graph.num_edges == 2
    assert "column 'since' of the table of edges" in graph.provenance.detail


def test_bounds_and_drop_hold_for_arrays_too() -> None:
    table = np.array([[20.0, 1.0], [120.0, 0.0], [70.0, 1.0]])
    given = (np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), table, [0, 1, 0])
    graph = read(given, columns={"bounds": {"column 0": [20, 120]}, "drop": ["column 1"]}).graph
    assert graph.features.toarray().ravel().tolist() == [-1, 1, 0]
    assert graph.columns.bounded.tolist() == [0]
