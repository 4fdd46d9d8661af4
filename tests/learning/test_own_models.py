"""A client's own weights and its own head: they begin as the shared model, learn what it does not know, and then stop."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.learning import DenseMatrix, Layout, layouts, own_models
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
