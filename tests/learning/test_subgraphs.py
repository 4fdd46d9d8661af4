"""Two-layer GraphSAGE: its gradient against finite differences, its clipped sum against one root at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning.clipping import subgraphs
from fedgraph.learning.layers import graphsage, layouts
from fedgraph.learning.layers.torch_matrices import FeatureMatrix

WIDTHS = graphsage.GraphsageWidths(7, 5, 3)


def problem(seed: int) -> tuple[sp.csr_array, sp.csr_array, torch.Tensor, np.ndarray]:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((20, 20)) < 0.15, k=1).astype(np.float32)
    features = sp.csr_array(rng.standard_normal((20, 7)).astype(np.float32))
    labels = torch.tensor(rng.integers(-1, 3, size=20))
    return sp.csr_array(upper + upper.T), features, labels, rng.standard_normal(WIDTHS.start(rng).size).astype(np.float32)


def autograd_loss(vector: torch.Tensor, adjacency: sp.csr_array, features: sp.csr_array, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy per node, written with dense matrices."""
    mean = torch.tensor(adjacency.toarray())
    mean = mean / mean.sum(1, keepdim=True).clamp(min=1)
    x = torch.tensor(features.toarray())
    u0, v0, b0, u1, v1, b1 = WIDTHS.views(vector)
    hidden = torch.relu(x @ u0 + mean @ x @ v0 + b0)
    return torch.nn.functional.cross_entropy(hidden @ u1 + mean @ hidden @ v1 + b1, labels.clamp(min=0), reduction="none")


@pytest.mark.parametrize("seed", range(3))
def test_the_whole_graph_gradient(seed: int) -> None:
    adjacency, features, labels, start = problem(seed)
    vector = torch.tensor(start, requires_grad=True)
    known = labels >= 0
    autograd_loss(vector, adjacency, features, labels)[known].mean().backward()
    found = graphsage._graphsage_gradient(
        WIDTHS, layouts.to_device(start), FeatureMatrix(features), graphsage.GraphsageMean(adjacency), labels
    )
    assert torch.allclose(found, vector.grad, atol=1e-5)


@pytest.mark.parametrize("clip", [1e-3, 0.5, 2.0, 1e6])
@pytest.mark.parametrize("seed", range(2))
def test_the_clipped_sum_is_one_root_at_a_time(seed: int, clip: float) -> None:
    adjacency, features, labels, start = problem(seed)
    total = torch.zeros(start.size)
    for root in range(20):
        if labels[root] >= 0:
            vector = torch.tensor(start, requires_grad=True)
            autograd_loss(vector, adjacency, features, labels)[root].backward()
            total += vector.grad * min(1.0, clip / float(vector.grad.norm()))
    found = subgraphs.clipped_sum(WIDTHS, start, subgraphs.prepare_roots(features, adjacency), labels, clip)
    assert np.allclose(found, total.numpy(), atol=1e-4 * max(1.0, min(clip, 20)))


def test_a_root_with_a_gradient_that_is_not_finite_counts_as_zero() -> None:
    adjacency, features, labels, start = problem(0)
    loud = features.tolil()
    loud[4, 0] = 3e38
    found = subgraphs.clipped_sum(WIDTHS, start * 1e3, subgraphs.prepare_roots(sp.csr_array(loud), adjacency), labels, 1.0)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= 20
