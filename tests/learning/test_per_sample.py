"""Norm-only clipping is exactly per-row clipping, and moves by at most its stated sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning.clipping import per_sample
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import FeatureMatrix

LAYOUTS = [Layout((12, 4)), Layout((12, 6, 4)), Layout((12, 7, 5, 4)), Layout((12, 6, 4), bias_scale=0.3)]


def rows(n: int, seed: int, scale: float = 1.0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((n, 12)) * (rng.random((n, 12)) < 0.5) * scale).astype(np.float32))


def by_autograd(layout: Layout, vector: np.ndarray, x: sp.csr_array, labels: np.ndarray, clip: float) -> np.ndarray:
    """The plain definition: one backward pass per row, clip, add."""
    total = np.zeros(layout.num_parameters)
    dense = torch.tensor(x.toarray())
    for i, label in enumerate(labels):
        if label < 0:
            continue
        theta = torch.tensor(vector, requires_grad=True)
        hidden = dense[i : i + 1]
        for level, (weight, bias) in enumerate(layout.layers(theta)):
            hidden = (torch.relu(hidden) if level else hidden) @ weight + bias
        torch.nn.functional.cross_entropy(hidden, torch.tensor([label])).backward()
        assert theta.grad is not None
        g = theta.grad.numpy().astype(np.float64)
        total += g * min(1.0, clip / max(np.linalg.norm(g), 1e-30))
    return total


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: "-".join(map(str, (*x.widths, x.bias_scale))))
@pytest.mark.parametrize("clip", [0.05, 0.7, 100.0])
def test_equals_per_row_autograd(layout: Layout, clip: float) -> None:
    x, rng = rows(15, 0), np.random.default_rng(1)
    labels = rng.integers(-1, 4, 15)
    vector = rng.standard_normal(layout.num_parameters).astype(np.float32)
    found = per_sample.clipped_sum(layout, vector, FeatureMatrix(x), torch.tensor(labels), clip)
    assert np.allclose(found, by_autograd(layout, vector, x, labels, clip), atol=2e-5)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: "-".join(map(str, (*x.widths, x.bias_scale))))
def test_neighbouring_inputs_stay_within_the_sensitivity(layout: Layout) -> None:
    """Zero-out: one row vanishes, at most C apart, and C is reached. Replace: at most 2C."""
    clip, rng = 0.3, np.random.default_rng(2)
    labels = rng.integers(0, 4, 10)
    largest_zero, largest_replace = 0.0, 0.0
    for trial in range(30):
        x = rows(10, trial, scale=5.0)
        vector = rng.standard_normal(layout.num_parameters).astype(np.float32) * 2
        full = per_sample.clipped_sum(layout, vector, FeatureMatrix(x), torch.tensor(labels), clip)
        masked = labels.copy()
        masked[0] = -1
        gone = sp.csr_array(sp.vstack([sp.csr_array((1, 12), dtype=np.float32), x[1:]]))
        without = per_sample.clipped_sum(layout, vector, FeatureMatrix(gone), torch.tensor(masked), clip)
        other = sp.csr_array(sp.vstack([rows(1, 1000 + trial, scale=5.0), x[1:]]))
        swapped = labels.copy()
        swapped[0] = (labels[0] + 1) % 4
        replaced = per_sample.clipped_sum(layout, vector, FeatureMatrix(other), torch.tensor(swapped), clip)
        largest_zero = max(largest_zero, float(np.linalg.norm(full - without)))
        largest_replace = max(largest_replace, float(np.linalg.norm(full - replaced)))
    assert 0.95 * clip <= largest_zero <= clip
    assert largest_replace <= 2 * clip


def test_hopeless_rows_count_as_zero() -> None:
    layout = Layout((12, 4))
    x = sp.csr_array(np.full((2, 12), 1e30, dtype=np.float32))
    found = per_sample.clipped_sum(
        layout, np.zeros(layout.num_parameters, np.float32), FeatureMatrix(x), torch.tensor([0, 1]), 1.0
    )
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= 2.0


def test_infinite_hidden_units_count_as_zero() -> None:
    layout = Layout((12, 3, 4))
    vector = np.full(layout.num_parameters, 1e30, dtype=np.float32)
    x = sp.csr_array(np.full((2, 12), 1e20, dtype=np.float32))
    assert np.isfinite(per_sample.clipped_sum(layout, vector, FeatureMatrix(x), torch.tensor([0, 1]), 1.0)).all()


def test_unlabelled_rows_contribute_nothing() -> None:
    layout = Layout((12, 4))
    found = per_sample.clipped_sum(layout, np.zeros(52, np.float32), FeatureMatrix(rows(3, 0)), torch.tensor([-1, -1, -1]), 1.0)
    assert not found.any()


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: "-".join(map(str, (*x.widths, x.bias_scale))))
def test_products_are_of_each_rows_clipped_gradient_with_what_is_left_of_a_message(layout: Layout) -> None:
    """One row at a time through the sum itself, and the plain inner product."""
    x, rng = rows(6, 1, scale=3.0), np.random.default_rng(0)
    vector = rng.standard_normal(layout.num_parameters).astype(np.float32)
    message = rng.standard_normal(layout.num_parameters).astype(np.float32)
    labels, weights = np.array([0, 1, -1, 3, 2, 0]), np.array([1.0, 0.5, 1.0, 0.0, 0.5, 1.0])
    alone = []
    for i in range(6):
        only = torch.tensor(np.where(np.arange(6) == i, labels, -1))
        alone.append(per_sample.clipped_sum(layout, vector, FeatureMatrix(x), only, 0.5).astype(np.float64))
    left = message - sum(w * g for w, g in zip(weights, alone, strict=True))
    clipped = per_sample.gradients(layout, vector, FeatureMatrix(x), torch.tensor(labels)).clipped(0.5)
    found = clipped.left_over_products(message, weights)
    np.testing.assert_allclose(found, [g @ left for g in alone], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: "-".join(map(str, (*x.widths, x.bias_scale))))
def test_products_of_rows_with_one_another_are_of_their_clipped_gradients(layout: Layout) -> None:
    """One row at a time through the sum itself, and the plain inner products."""
    x, rng = FeatureMatrix(rows(6, 1, scale=3.0)), np.random.default_rng(0)
    vector, labels = rng.standard_normal(layout.num_parameters).astype(np.float32), np.array([0, 1, -1, 3, 2, 0])
    of = np.array([1, 2, 5])
    alone = []
    for i in of:
        only = torch.tensor(np.where(np.arange(6) == i, labels, -1))
        alone.append(per_sample.clipped_sum(layout, vector, x, only, 0.5).astype(np.float64))
    clipped = per_sample.gradients(layout, vector, x, torch.tensor(labels)).clipped(0.5)
    found = clipped.products([per_sample.overlaps(x, of)], of)
    np.testing.assert_allclose(found, np.stack(alone) @ np.stack(alone).T, rtol=1e-4, atol=1e-6)
