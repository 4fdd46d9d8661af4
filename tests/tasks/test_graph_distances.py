"""Rows of graph classification that read no model: shortest paths; on real MUTAG the size of a graph alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from fedgraph import data
from fedgraph.comparison import classify
from fedgraph.tasks.base import graphs
from fedgraph.types import Graph, GraphCollection, GraphProvenance


def test_shortest_path_kernel_takes_isolated_nodes() -> None:
    """PROTEINS has them. A path and one with a lone node beside it are alike; a graph without edges is like no other."""
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], float)
    lone = np.zeros((4, 4))
    lone[1:, 1:] = path
    adjacencies = [path, lone, np.zeros((2, 2)), np.ones((3, 3)) - np.eye(3)]
    four = tuple(
        Graph(
            "g",
            sp.csr_array(a),
            sp.csr_array((len(a), 1), dtype=np.float32),
            np.full(len(a), -1),
            1,
            GraphProvenance("own", ""),
            features_from_edges=False,
            columns_from_rows=False,
            nodes_from_edges=False,
        )
        for a in adjacencies
    )
    found = graphs._shortest_path_distances(GraphCollection("c", four, np.zeros(4, np.int64), 1, GraphProvenance("own", "")))
    assert found[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert found[0, 2] == found[2, 3] == 2.0
    assert 0 < found[0, 3] < 2.0
    assert np.array_equal(found, found.T)


@pytest.mark.quality("tasks", "comparison", "data")
@pytest.mark.dataset
def test_mutag_size_alone(data_root: Path) -> None:
    """An SVM that sees the number of nodes only: 85.1 % (10-fold, C = 10), above every private row of the paper's GCN."""
    found = data.load("tu/mutag", root=data_root)
    assert isinstance(found, GraphCollection)
    distances = graphs._size_distances(np.array([g.num_nodes for g in found.graphs]))
    parts = StratifiedKFold(10, shuffle=True, random_state=0).split(np.zeros(found.labels.size), found.labels)
    splits = tuple(classify.ClassifySplit(train, np.zeros(0, np.int64), test) for train, test in parts)
    accuracy = classify.by_svm(distances, found.labels, splits, np.random.default_rng(0), costs=(10.0,), gammas=(0.25,)).mean
    assert accuracy == pytest.approx(0.851, abs=0.02)
    assert accuracy > 0.7957
