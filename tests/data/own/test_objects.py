"""Graphs in memory: whatever an object holds and no method reads is named; missing labels stay missing."""

from __future__ import annotations

import logging

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from tests.data.own.clubs import graph_of


def test_unlabelled_people_of_a_networkx_graph_are_not_trained_on(caplog: pytest.LogCaptureFixture) -> None:
    network = nx.DiGraph()
    for node, label in (("a", {"y": "red"}), ("b", {"y": None}), ("c", {"y": "blue"}), ("d", {})):
        network.add_node(node, x=[1.0, 2.0], age=30, **label)
    network.add_edge("a", "b", weight=2.0, time=7)
    with caplog.at_level(logging.WARNING, "fedgraph"):
        graph = graph_of(read(network))
    assert (graph.labels.tolist(), graph.num_classes) == ([1, -1, 0, -1], 2)
    for what in ("column 'time' of the graph", "column 'weight' of the graph", "the direction of ties"):
        assert what in graph.provenance.detail
        assert what in caplog.text


def test_what_a_pyg_object_holds_beside_is_named() -> None:
    data = Data(x=torch.ones(4, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, -1, 1]))
    data.edge_attr, data.time, data.train_mask = torch.ones(2, 1), torch.arange(2), torch.ones(4, dtype=torch.bool)
    detail = graph_of(read(data)).provenance.detail
    for what in ("edge_attr", "time", "masks (a split needs train_mask and test_mask)", "1 of 4 people have no label"):
        assert what in detail
    data.y = torch.zeros(4, 3)
    with pytest.raises(DataError, match="one label per node"):
        read(data)
    data.y = torch.linspace(0, 1, 4).reshape(4, 1)
    assert graph_of(read(data)).num_classes == 4, "few fractions may be classes"


def test_two_pandas_tables_are_a_graph_and_bounds_and_drop_hold_for_arrays_too() -> None:
    label = pd.array([1, None, 0], dtype="Int64")
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "age": [30, None, 50], "member": [True, False, True], "label": label})
    ties = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "since": [1, 2]})
    graph = graph_of(read((nodes, ties), columns={"bounds": {"age": [0, 100]}, "empty": "missing"}))
    assert (graph.labels.tolist(), graph.num_edges) == ([1, -1, 0], 2)
    assert graph.features.toarray() == pytest.approx(np.array([[-0.4, 0, 1], [0, 1, 0], [0, 0, 1]]), abs=1e-6)
    assert "column 'since' of the table of edges" in graph.provenance.detail
    given = (np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), np.array([[20.0, 1.0], [120.0, 0.0], [70.0, 1.0]]), [0, 1, 0])
    graph = graph_of(read(given, columns={"bounds": {"column 0": [20, 120]}, "drop": ["column 1"]}))
    assert graph.features.toarray().ravel().tolist() == [-1, 1, 0]
    assert graph.columns is not None
    assert graph.columns.bounded.tolist() == [0]
