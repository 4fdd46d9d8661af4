"""The hand-written gradient is autograd's, on whole and on compact graphs alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning.layers import gcn, layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.propagation import walks
from fedgraph.types import Graph


def whole_inputs(graph: Graph) -> gcn.GcnInputs:
    return gcn._sparse_inputs(graph, graph.adjacency.astype(np.float32))


@pytest.mark.parametrize("inputs_of", [whole_inputs, gcn.compact_gcn_inputs])
def test_gradient_is_autograds(inputs_of: object, library: Graph) -> None:
    small = library.induced(np.arange(25))
    inputs = inputs_of(small)  # type: ignore[operator]
    width = library.num_features if inputs.columns is None else inputs.columns.size
    layout = Layout((width, 6, 4))
    vector = torch.tensor(layout.start(np.random.default_rng(0)) + 0.01, requires_grad=True)
    dense = small.features.toarray() if inputs.columns is None else small.features.toarray()[:, inputs.columns]
    norms = np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    x = torch.tensor((dense / norms).astype(np.float32))
    hat = inputs.hat.to_dense()
    (w0, b0), (w1, b1) = layout.layers(vector)
    z = hat @ (torch.relu(hat @ (x @ w0) + b0) @ w1) + b1
    torch.nn.functional.cross_entropy(z, inputs.labels).backward()
    found = gcn.gcn_gradient(layout, vector.detach(), inputs)
    assert torch.allclose(found, vector.grad, atol=1e-6)


def test_a_graph_without_labels_has_no_gradient(library: Graph) -> None:
    import dataclasses

    blind = dataclasses.replace(library.induced(np.arange(5)), labels=np.full(5, -1))
    layout = Layout((library.num_features, 3, 4))
    assert not gcn.gcn_gradient(layout, layouts.to_device(layout.start(np.random.default_rng(0))), whole_inputs(blind)).any()


def test_compact_and_whole_agree(library: Graph) -> None:
    small = library.induced(np.arange(12))
    full = Layout((library.num_features, 5, 4))
    vector = full.start(np.random.default_rng(3))
    inputs = gcn.compact_gcn_inputs(small)
    assert inputs.columns is not None
    layout, where = layouts.select_columns(full, inputs.columns)
    a = gcn.gcn_scores(full, layouts.to_device(vector), whole_inputs(small))
    b = gcn.gcn_scores(layout, layouts.to_device(vector[where]), inputs)
    assert torch.allclose(a, b, atol=1e-5)


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
