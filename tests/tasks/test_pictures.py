"""The map of what a model makes of the training nodes: shapes, the silhouette's meaning, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedgraph.tasks.node_classification import pictures


def test_classes_that_are_apart_have_a_high_silhouette_and_mixed_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    apart = np.eye(3)[labels] + 0.01 * rng.standard_normal((60, 3))
    arrays, silhouette = pictures.of_nodes(apart, labels, np.random.default_rng(1))
    assert arrays["map"].shape == (60, 2)
    assert silhouette > 0.9
    _, mixed = pictures.of_nodes(rng.standard_normal((60, 3)), labels, np.random.default_rng(1))
    assert abs(mixed) < 0.2


def test_nodes_without_a_label_are_left_out_and_large_graphs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_MOST_NODES", 30)
    labels = np.where(np.arange(80) < 40, -1, np.arange(80) % 2)
    arrays, _ = pictures.of_nodes(np.random.default_rng(0).random((80, 4)), labels, np.random.default_rng(1))
    assert arrays["classes"].size == 30
    assert set(arrays["classes"].tolist()) == {0, 1}


def test_one_class_alone_has_no_silhouette() -> None:
    _, silhouette = pictures.of_nodes(
        np.random.default_rng(0).random((10, 2)), np.zeros(10, np.int64), np.random.default_rng(1)
    )
    assert math.isnan(silhouette)
