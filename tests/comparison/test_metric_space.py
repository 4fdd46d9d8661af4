"""From rows and edges to distances: documented values in the corners."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from fedgraph.comparison import metric_space
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.errors import DataError

PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=float)  # 0 – 1 – 2, and 3 alone


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_metrics_agree_with_scipy_and_read_only_input_is_untouched(metric):
    rows = np.random.default_rng(0).normal(size=(7, 4))
    rows.setflags(write=False)
    assert np.allclose(metric_space.from_embedding(rows, metric).distances, cdist(rows, rows, metric), atol=1e-12)


@pytest.mark.parametrize(
    ("metric", "rows"),
    [("cosine", [[0, 0], [0, 0], [1, 2]]), ("correlation", [[0.1, 0.1, 0.1], [7, 7, 7], [1, 2, 4]])],
)
def test_rows_without_direction_have_a_documented_distance(metric, rows):
    found = metric_space.from_embedding(np.array(rows, float), metric).distances
    assert found.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


def test_edges_count_both_ways_and_disconnected_graphs_have_a_finite_documented_distance():
    directed = sp.csr_array(np.triu(PATH))
    for part in (directed.data, directed.indices, directed.indptr):
        part.setflags(write=False)
    for given in (PATH, directed):
        assert metric_space.from_topology(given).distances[0].tolist() == [0, 1, 2, 3]
    assert metric_space.from_topology(np.zeros((2, 2))).distances.tolist() == [[0, 1], [1, 0]]


def test_degree_weights():
    assert metric_space.from_topology(PATH, weights="degree").weights.tolist() == [0.25, 0.5, 0.25, 0.0]
    assert metric_space.from_topology(np.zeros((2, 2)), weights="degree").weights.tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match="degrees"):
        metric_space.from_embedding(np.eye(3), weights="degree")


@pytest.mark.parametrize(
    ("distances", "weights", "message"),
    [
        (np.zeros((2, 2)), [0.5, 0.6], "sum to 1"),
        (np.zeros((2, 2)), [1.5, -0.5], "non-negative"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), [0.5, 0.5], "symmetric"),
        (np.zeros((2, 3)), [0.5, 0.5], "same points"),
        (np.zeros((0, 0)), [], "at least one point"),
    ],
)
def test_contradictions_are_refused(distances, weights, message):
    with pytest.raises(DataError, match=message):
        MetricSpace(distances, np.array(weights))
