"""Layers made of sparse products against the same layers of torch_geometric, which are the oracle: values and gradients."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from fedgraph.learning.baselines import along_edges, fitting
from fedgraph.learning.baselines.networks import NetworkShape, _torch_geometric
from fedgraph.types import Graph


def edges_of(seed: int, num_nodes: int = 30, num_edges: int = 80) -> torch.Tensor:
    """Directed on purpose, so that a transpose that is forgotten shows; one self-loop; nodes 27 to 29 have no edge."""
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, num_nodes - 3, size=(num_edges, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return torch.tensor(np.concatenate([pairs, [[4, 4]]]).T.copy())


@pytest.mark.parametrize("model", ["GCN", "GraphSAGE", "GAT"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_layer_of_products_is_the_layer(model: str, seed: int) -> None:
    torch.manual_seed(seed)
    arguments = {"heads": 4, "v2": False} if model == "GAT" else {}
    plain = getattr(_torch_geometric(), model)(7, 8, 2, 3, **arguments)
    fast = along_edges.sum_along_edges(copy.deepcopy(plain))
    edges, ours, theirs = edges_of(seed), torch.randn(30, 7), None
    ours.requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    found, wanted = fast(ours, edges), plain(theirs, edges)
    assert torch.allclose(found, wanted, atol=1e-5)
    found.square().sum().backward()
    wanted.square().sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-4, rtol=1e-4)
    for p, q in zip(fast.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad, atol=1e-4, rtol=1e-4)


def test_dropout_of_attention_keeps_the_mean() -> None:
    """A share is removed with the given chance and the others are scaled, so the sum over neighbours is right on average."""
    torch.manual_seed(0)
    layer = along_edges._EdgeAttention(_torch_geometric().GATConv(5, 4, heads=2, dropout=0.5))
    edges, x = edges_of(3), torch.randn(30, 5)
    wanted = layer.eval()(x, edges)
    layer.train()
    found = torch.stack([layer(x, edges) for _ in range(3000)])
    error = found.std(dim=0) / 3000**0.5
    assert (found.std(dim=0) > 0).any()
    assert ((found.mean(dim=0) - wanted).abs() < 5 * error + 1e-5).all()


def test_the_matrix_of_other_edges_is_another(library: Graph) -> None:
    shape = NetworkShape("gcn", library.num_features, library.num_classes, 8)
    network = fitting.build_network_for_fitting(shape, 0).eval()
    whole, none = fitting.prepare_fitting_inputs(library), torch.zeros((2, 0), dtype=torch.int64)
    with torch.no_grad():
        first = network(whole.x, whole.edges)
        assert not torch.allclose(first, network(whole.x, none))
        assert torch.equal(first, network(whole.x, whole.edges))
