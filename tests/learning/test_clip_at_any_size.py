"""One row among a million changes a clipped sum by at most the clip: rounding is part of the bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.errors import DataError
from fedgraph.learning.clipping import aggregated_rows, per_sample
from fedgraph.learning.clipping.per_sample import PER_SAMPLE_SPREAD
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import FeatureMatrix
from fedgraph.learning.own_networks import example_gradients, rooted
from fedgraph.learning.own_networks.example_gradients import NetworkExamples
from fedgraph.learning.own_networks.own_network import NetworkSpec

CLIP = 0.7
Sum = Callable[[np.ndarray], np.ndarray]


def alike(n: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows that all point almost the same way, so that their sum is as long as a sum can be: where rounding is worst."""
    rng = np.random.default_rng(n)
    features = sp.csr_array(np.column_stack([np.ones(n), rng.uniform(0.6, 0.7, n)]).astype(np.float32))
    return features, np.zeros(n, dtype=np.int64)


def of_rows(n: int) -> tuple[Sum, np.ndarray]:
    features, labels = alike(n)
    layout, x = Layout((2, 3)), FeatureMatrix(features)
    vector = np.zeros(layout.num_parameters, np.float32)
    return lambda kept: per_sample.clipped_sum(layout, vector, x, torch.tensor(kept), CLIP), labels


def of_examples(n: int) -> tuple[Sum, np.ndarray]:
    features, labels = alike(n)
    spec = NetworkSpec("torch.nn.Linear", '{"in_features": "$inputs", "out_features": "$classes"}', 2, 3)
    rows, vector = features.toarray(), np.zeros(9)

    def total(kept: np.ndarray) -> np.ndarray:
        roots = np.flatnonzero(kept >= 0)
        given = NetworkExamples(rows, rooted.alone(roots), kept[roots])
        return example_gradients.clipped_sum(spec, vector, given, CLIP, n)

    return total, labels


def of_aggregated(n: int) -> tuple[Sum, np.ndarray]:
    features, labels = alike(n)
    rows = sp.csr_array(
        (np.full(2 * n, 0.5), np.sort(np.column_stack([np.arange(n), np.arange(n) ^ 1])).ravel(), 2 * np.arange(n + 1))
    )
    layout = Layout((2, 3, 3))
    vector = np.linspace(0.1, 0.6, layout.num_parameters).astype(np.float32)
    made = aggregated_rows.prepare(features, rows, labels)
    return lambda kept: aggregated_rows.clipped_sum(layout, vector, made, np.flatnonzero(kept >= 0), CLIP), labels


@pytest.mark.parametrize("kernel", [of_rows, of_examples, of_aggregated], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [2_000, 4_098, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_one_row_of_very_many(kernel: Callable[[int], tuple[Sum, np.ndarray]], n: int) -> None:
    total, labels = kernel(n)
    whole = total(labels).astype(np.float64)
    assert np.linalg.norm(whole) > 0.8 * CLIP * n, "rows that cancel would hide what rounding does"
    for gone in (0, n // 2, n - 1):
        kept = labels.copy()
        kept[gone] = -1
        change = np.linalg.norm(whole - total(kept))
        assert 0.8 * CLIP < change <= CLIP


def test_what_rounding_costs_is_little_and_what_it_cannot_bound_is_refused() -> None:
    assert per_sample.room_for(2_396)[0] is np.float32
    assert per_sample.room_for(4_097)[0] is np.float64
    for n in (1, 100, 4_096, 4_097, 100_000, 1_000_000):
        assert 0.9990 < per_sample.room_for(n)[1] < 1
        assert 0.94 < per_sample.room_for(n, PER_SAMPLE_SPREAD)[1] <= per_sample.room_for(n)[1]
    with pytest.raises(DataError, match="100000000 rows"):
        per_sample.room_for(10**8)
