"""A client's own weights and its own head: they begin as the shared model, learn what it does not know, and then stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.learning import own_models
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import DenseMatrix, FeatureMatrix
from fedgraph.types import Graph


def accuracy(layout: Layout, vector: np.ndarray, x: DenseMatrix, labels: np.ndarray) -> float:
    return float((layouts.logits(layout, vector, x).argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("layout", [Layout((5, 3), bias_scale=0.1), Layout((5, 8, 3))])
def test_own_weights_learn_what_the_shared_ones_do_not_know(layout: Layout) -> None:
    """The pull is toward the shared weights, not toward zero: those of a word that nobody has stay."""
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.standard_normal((300, 4)), np.zeros((300, 1))]).astype(np.float32)
    labels = rows[:, :3].argmax(axis=1).astype(np.int64)
    shared, x = layout.start(np.random.default_rng(1)), DenseMatrix(rows)
    own = own_models.tune(layout, shared, x, labels, rng)
    assert accuracy(layout, own, x, labels) > max(0.85, accuracy(layout, shared, x, labels) + 0.2)
    width = layout.widths[1]
    assert np.array_equal(own[4 * width : 5 * width], shared[4 * width : 5 * width])
    assert not np.allclose(own[: 3 * width], shared[: 3 * width])


def test_noise_for_labels_and_too_few_labels_leave_the_shared_weights() -> None:
    """Twenty steps that fit noise make held-out rows worse, so none is taken."""
    rng = np.random.default_rng(0)
    layout, rows = Layout((60, 3)), rng.standard_normal((90, 60)).astype(np.float32)
    shared = np.zeros(layout.num_parameters, np.float32)
    assert np.array_equal(own_models.tune(layout, shared, DenseMatrix(rows), rng.integers(0, 3, 90), rng), shared)
    layout, x = Layout((2, 2)), FeatureMatrix(sp.csr_array(np.eye(3)[:, :2]))
    shared = np.arange(layout.num_parameters, dtype=np.float32)
    for labels in ([-1, -1, -1], [0, -1, -1], [0, 1, -1]):
        assert np.array_equal(own_models.tune(layout, shared, x, np.array(labels), rng), shared)


def uniform(graph: Graph) -> np.ndarray:
    return np.full((graph.num_nodes, graph.num_classes), 1 / graph.num_classes)


def test_a_head_learns_where_the_shared_model_knows_nothing_and_keeps_one_that_knows_everything(library: Graph) -> None:
    rng = np.random.default_rng(0)
    rows, train = own_models.prepare(library, uniform(library)), rng.random(library.num_nodes) < 0.7
    head = own_models.fit_head(rows, np.where(train, library.labels, -1), rng)
    right = head.scores(rows).argmax(axis=1) == library.labels
    assert head.steps > 0
    assert right[~train].mean() > 0.45, "the majority class alone is right for about a quarter"
    labels = rng.integers(0, library.num_classes, library.num_nodes)
    chances = np.full((library.num_nodes, library.num_classes), 1e-9)
    chances[np.arange(labels.size), labels] = 1.0
    rows = own_models.prepare(library, chances)
    assert (own_models.fit_head(rows, labels, rng).scores(rows).argmax(axis=1) == labels).all()


def test_without_labels_or_neighbours_a_head_is_the_shared_model(library: Graph) -> None:
    alone = replace(library, adjacency=library.adjacency * 0, labels=np.full(library.num_nodes, -1))
    alone.adjacency.eliminate_zeros()
    rows = own_models.prepare(alone, uniform(alone))
    assert (rows.around == 0).all()
    head = own_models.fit_head(rows, alone.labels, np.random.default_rng(0))
    assert head.steps == 0
    np.testing.assert_allclose(head.scores(rows), np.log(uniform(alone)))
