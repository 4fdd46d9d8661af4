"""Products that autograd follows, against dense ones; spreading over a graph, against its equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning.layers import gcn, layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.products import multiply
from fedgraph.learning.layers.torch_matrices import FeatureMatrix, to_torch_matrix
from fedgraph.learning.propagation import walks
from fedgraph.types import Graph


def test_a_product_and_its_gradient_are_those_of_the_dense_matrix(library: Graph) -> None:
    features = FeatureMatrix(library.features)
    dense = torch.tensor(library.features.toarray().astype(np.float32))
    ours = torch.randn(dense.shape[1], 3, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    found, wanted = multiply(features.forward, features.transposed, ours), dense @ theirs
    assert torch.allclose(found, wanted, atol=1e-5)
    found.square().sum().backward()
    wanted.square().sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-4)


@pytest.mark.parametrize("weights", [True, False])
def test_the_gradient_by_hand_is_autograds(weights: bool, library: Graph) -> None:
    """On a graph with weights, and on one of which only the indices are kept; masked nodes count nowhere."""
    small = library.induced(np.arange(40))
    matrix = walks.symmetric_matrix(small.adjacency)
    hat, dense = to_torch_matrix(matrix) if weights else gcn.Hat(small.adjacency), torch.tensor(matrix.toarray())
    x, labels = FeatureMatrix(small.features), torch.tensor(np.where(np.arange(40) < 9, -1, small.labels))
    layout = Layout((small.num_features, 6, small.num_classes))
    vector = torch.tensor(layout.start(np.random.default_rng(0)) + 0.01)

    def loss(leaf: torch.Tensor) -> torch.Tensor:
        (w0, b0), (w1, b1) = layout.layers(leaf)
        rows = torch.tensor(small.features.toarray(), dtype=torch.float32)
        return layouts.cross_entropy(dense @ (torch.relu(dense @ (rows @ w0) + b0) @ w1) + b1, labels)

    assert torch.allclose(gcn.gradient(layout, vector, x, hat, labels), layouts.gradient(loss, vector), atol=1e-6)
    assert not gcn.gradient(layout, vector, x, hat, torch.full((40,), -1)).any()


def test_pagerank_is_the_dense_solve_and_isolated_nodes_keep_their_direction(library: Graph) -> None:
    """Many steps end at α(I − (1 − α) D⁻¹A)⁻¹ H; no step is H itself."""
    adjacency = sp.csr_array(sp.block_diag([library.adjacency, sp.csr_array((1, 1))]))
    n, scores = library.num_nodes + 1, np.random.default_rng(0).random((library.num_nodes + 1, 4))
    dense = adjacency.toarray()
    walk = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    exact = 0.25 * np.linalg.solve(np.eye(n) - 0.75 * walk, scores)
    assert np.allclose(walks.personalised_pagerank(adjacency, scores, 0.25, 120), exact, atol=1e-12)
    assert np.allclose(walks.personalised_pagerank(adjacency, scores, 0.25, 1), 0.75 * walk @ scores + 0.25 * scores)
    assert np.array_equal(walks.personalised_pagerank(adjacency, scores, 0.25, 0), scores)
    assert np.allclose(walks.personalised_pagerank(adjacency, scores, 0.25, 3)[-1], 0.25 * scores[-1])


def test_the_symmetric_matrix_has_a_loop_at_every_node(library: Graph) -> None:
    """Kipf & Welling 2017, Equation 2, dense."""
    loops = library.adjacency.toarray() + np.eye(library.num_nodes)
    scale = 1 / np.sqrt(loops.sum(axis=1))
    assert np.allclose(walks.symmetric_matrix(library.adjacency).toarray(), scale[:, None] * loops * scale, atol=1e-6)
