"""A client's own weights: they begin as the shared ones, learn what these do not know, and stop where that no longer helps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.learning import own_models
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import DenseMatrix, FeatureMatrix


def accuracy(layout: Layout, vector: np.ndarray, x: DenseMatrix, labels: np.ndarray) -> float:
    return float((layouts.logits(layout, vector, x).argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("layout", [Layout((4, 3), bias_scale=0.1), Layout((4, 8, 3))])
def test_own_weights_learn_what_the_shared_ones_do_not_know(layout: Layout) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 4)).astype(np.float32)
    labels = rows[:, :3].argmax(axis=1).astype(np.int64)
    shared, x = layout.start(np.random.default_rng(1)), DenseMatrix(rows)
    own = own_models.tune(layout, shared, x, labels, rng)
    assert accuracy(layout, own, x, labels) > max(0.85, accuracy(layout, shared, x, labels) + 0.2)


def test_noise_for_labels_leaves_the_shared_weights() -> None:
    """Twenty steps that fit noise make held-out rows worse, so none is taken."""
    rng = np.random.default_rng(0)
    layout, rows = Layout((60, 3)), rng.standard_normal((90, 60)).astype(np.float32)
    shared = np.zeros(layout.num_parameters, np.float32)
    own = own_models.tune(layout, shared, DenseMatrix(rows), rng.integers(0, 3, 90), rng)
    assert np.array_equal(own, shared)


@pytest.mark.parametrize("labels", [[-1, -1, -1], [0, -1, -1], [0, 1, -1]])
def test_too_few_labels_leave_the_shared_weights(labels: list[int]) -> None:
    layout = Layout((2, 2))
    shared = np.arange(layout.num_parameters, dtype=np.float32)
    x = FeatureMatrix(sp.csr_array(np.eye(3)[:, :2]))
    own = own_models.tune(layout, shared, x, np.array(labels), np.random.default_rng(0))
    assert np.array_equal(own, shared)


def test_weights_of_words_that_nobody_has_stay_as_shared() -> None:
    """The pull is toward the shared weights, not toward zero."""
    rng = np.random.default_rng(0)
    rows = np.zeros((200, 4), np.float32)
    rows[:, :3] = rng.standard_normal((200, 3))
    layout = Layout((4, 3))
    shared = rng.standard_normal(layout.num_parameters).astype(np.float32)
    own = own_models.tune(layout, shared, DenseMatrix(rows), rows[:, :3].argmax(axis=1), rng)
    assert not np.array_equal(own, shared)
    before, after = shared[:12].reshape(4, 3), own[:12].reshape(4, 3)
    assert np.array_equal(before[3], after[3])
    assert not np.allclose(before[:3], after[:3])
