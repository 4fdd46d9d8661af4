"""Products, and networks on whole graphs, against autograd on dense ones; spreading over a graph, against its equations."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning import (
    FeatureMatrix,
    Layout,
    PublicTrainingSteps,
    descend_by_adam,
    unit_matrix_rows,
    walks,
    whole_graph,
)
from fedgraph.learning.tensors import multiply
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


@pytest.mark.parametrize("network", ["weighted gcn", "gcn", "graphsage"])
def test_training_by_hand_is_training_by_autograd(network: str, library: Graph) -> None:
    """On a graph with weights, and on one of which only the indices are kept; masked nodes count nowhere."""
    small = library.induced(np.arange(40))
    small = replace(small, labels=np.where(np.arange(40) < 9, -1, small.labels))
    rows, labels = torch.tensor(unit_matrix_rows(small.features).toarray()), torch.tensor(small.labels)
    d, c, degrees = small.num_features, small.num_classes, small.adjacency.sum(axis=1)
    share = small.adjacency.toarray() / np.maximum(degrees[:, None], 1)
    hat, mean = torch.tensor(walks.symmetric_matrix(small.adjacency).toarray()), torch.tensor(share.astype(np.float32))
    shapes = [(d, 6), (d, 6), (6,), (6, c), (6, c), (c,)] if network == "graphsage" else [(d, 6), (6,), (6, c), (c,)]

    def scores(vector: torch.Tensor) -> torch.Tensor:
        parts = torch.split(vector, [int(np.prod(shape)) for shape in shapes])
        layers = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
        if network == "graphsage":
            u, v, b, u2, v2, b2 = layers
            units = torch.relu(rows @ u + mean @ rows @ v + b)
            return units @ u2 + mean @ units @ v2 + b2
        w, b, w2, b2 = layers
        return hat @ torch.relu(hat @ rows @ w + b) @ w2 + b2

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(lambda v: torch.nn.functional.cross_entropy(scores(v), labels, ignore_index=-1))(vector)

    drawn = np.random.default_rng(0)
    first = [drawn.uniform(-1, 1, s) * np.sqrt(6 / sum(s)) if len(s) > 1 else 0 * drawn.uniform(-1, 1, s) for s in shapes]
    if network != "graphsage":  # whose biases draw numbers that are not used
        first = [Layout((d, 6, c)).start(np.random.default_rng(0))]
    start = torch.tensor(np.concatenate([part.ravel() for part in first]), dtype=torch.float32)
    train = whole_graph.train_graphsage if network == "graphsage" else whole_graph.train_gcn
    adjacency = small.adjacency.astype(np.float32 if network == "weighted gcn" else np.int8)
    for epochs in (0, 3):
        found = train(small, adjacency, 6, PublicTrainingSteps(epochs, 0.01, 5e-4), np.random.default_rng(0))
        wanted = scores(descend_by_adam(start, gradient, epochs, 0.01, 5e-4))
        assert np.allclose(found, wanted.numpy(), atol=1e-5)
    unknown = replace(small, labels=np.full(40, -1))
    still = train(unknown, adjacency, 6, PublicTrainingSteps(2, 0.01, 0.0), np.random.default_rng(0))
    assert np.allclose(still, scores(start).numpy(), atol=1e-5)


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
