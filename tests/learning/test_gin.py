"""The graph isomorphism network: its gradient, pooling, and independence from how graphs are joined."""

import importlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning import shared_gnn, unit_matrix_rows
from fedgraph.types import Graph, GraphProvenance, plain_graph

HERE = GraphProvenance("own", "test")


def graph(n: int, seed: int, labels: np.ndarray | None = None) -> Graph:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.4, 1).astype(float)
    features = sp.csr_array(rng.random((n, 4)).astype(np.float32))
    found = rng.integers(3, size=n) if labels is None else labels
    return plain_graph("g", sp.csr_array(upper + upper.T), features, found.astype(np.int64), 3, HERE)


@pytest.mark.parametrize("source", ["softmax", "hidden"])
@pytest.mark.parametrize("model", ["gcn", "gin"])
def test_a_graph_embeds_alike_alone_and_in_a_union(
    model: shared_gnn.SharedGnnModel, source: shared_gnn.SharedGnnSource
) -> None:
    one, two = graph(4, 1), graph(6, 2)
    edges, rows = sp.block_diag([one.adjacency, two.adjacency]), sp.vstack([one.features, two.features])
    labels = np.concatenate([one.labels, two.labels])
    union = plain_graph("u", sp.csr_array(edges), sp.csr_array(rows), labels, 3, HERE)
    net = shared_gnn.make(model, 4, 5, 3, 3)
    vector = torch.tensor(net.layout.start(np.random.default_rng(0)))
    together = shared_gnn.embed(net, vector, shared_gnn.prepare(net, union, (4, 6)), source)
    alone = [shared_gnn.embed(net, vector, shared_gnn.prepare(net, g, None), source) for g in (one, two)]
    assert np.allclose(together, np.concatenate(alone), atol=1e-6)
    assert together.min() >= 0
    assert together.max() <= 1
    assert together.shape[1] == shared_gnn.embedding_width(net, source)


def test_gin_follows_its_equation() -> None:
    """One layer against the equation in numpy, A + I dense."""
    net = shared_gnn.make("gin", 4, 5, 1, 3)
    g = graph(7, 3)
    vector = torch.tensor(net.layout.start(np.random.default_rng(0))) + 0.05
    hidden = shared_gnn.embed(net, vector, shared_gnn.prepare(net, g, None), "hidden")
    (w, b), (w2, b2) = [(p.numpy(), q.numpy()) for p, q in net.layout.layers(vector)[:2]]
    x = g.features.toarray() / np.linalg.norm(g.features.toarray(), axis=1, keepdims=True)
    rows = np.maximum(np.maximum((g.adjacency.toarray() + np.eye(7)) @ x @ w + b, 0) @ w2 + b2, 0)
    rows /= np.sqrt((rows**2).mean(axis=1, keepdims=True) + 1e-6)
    assert np.allclose(hidden, rows / (1 + rows), atol=1e-5)


def test_the_gcn_reaches_one_hop_further_than_its_messages() -> None:
    """A lost edge changes its ends' degrees, and so the rows of their neighbours: three hops for two layers."""
    path = sp.csr_array(sp.diags_array([np.ones(5), np.ones(5)], offsets=[-1, 1], shape=(6, 6)))
    cut = path.tolil()
    cut[0, 1] = cut[1, 0] = 0
    features = sp.csr_array(np.random.default_rng(0).random((6, 4)).astype(np.float32))
    for model, changed in (("gcn", {0, 1, 2, 3}), ("gin", {0, 1, 2})):
        net = shared_gnn.make(model, 4, 5, 2, 3)  # type: ignore[arg-type]
        vector = torch.tensor(net.layout.start(np.random.default_rng(0))) + 0.1
        rows = []
        for adjacency in (path, sp.csr_array(cut)):
            adjacency.eliminate_zeros()
            g = plain_graph("p", adjacency, features, np.zeros(6, np.int64), 3, HERE)
            rows.append(shared_gnn.embed(net, vector, shared_gnn.prepare(net, g, None), "softmax"))
        different = set(np.flatnonzero(np.abs(rows[0] - rows[1]).max(axis=1) > 1e-7).tolist())
        assert different == changed


class Theirs(torch.nn.Module):
    """GIN of PyG's layers with our parameters: batch norm inside its perceptrons and after them."""

    def __init__(self, net: shared_gnn.SharedGnn, vector: torch.Tensor) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pyg = importlib.import_module("torch_geometric.nn")
        layout = net.layout
        assert isinstance(layout, shared_gnn.GinLayout)
        d, hidden = layout.widths[:2]
        widths = [d, *[hidden] * net.hops]
        perceptrons = [pyg.MLP([w, hidden, hidden], norm="batch_norm") for w in widths[:-1]]
        self.convs = torch.nn.ModuleList(pyg.GINConv(p) for p in perceptrons)
        self.outer = torch.nn.ModuleList(torch.nn.BatchNorm1d(hidden) for _ in perceptrons)
        self.all_norms = [n for p, o in zip(perceptrons, self.outer, strict=True) for n in (p.norms[0].module, o)]
        linear, norms = layout.layers(vector), layout.statistics(vector)
        with torch.no_grad():
            for k, perceptron in enumerate(perceptrons):
                for lin, (w, b) in zip(perceptron.lins, linear[2 * k : 2 * k + 2], strict=True):
                    lin.weight.copy_(w.T)
                    lin.bias.copy_(b)
            for norm, parts in zip(self.all_norms, norms, strict=True):
                for tensor, part in zip((norm.weight, norm.bias, norm.running_mean, norm.running_var), parts, strict=True):
                    tensor.copy_(part)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.outer, strict=True):
            x = torch.relu(norm(conv(x, edges)))
        return x


@pytest.mark.parametrize("training", [True, False])
def test_gin_with_batch_norm_is_pygs(training: bool) -> None:
    """The same rows, and the same running statistics after a training step."""
    g = graph(12, 1, np.zeros(12, np.int64))
    net = shared_gnn.make("gin", g.num_features, 6, 3, 2, norm="batch")
    assert isinstance(net.layout, shared_gnn.GinLayout)
    rng = np.random.default_rng(0)
    vector = torch.tensor(net.layout.start(rng)) + 0.1 * torch.tensor(rng.random(net.layout.num_parameters, np.float32))
    theirs = Theirs(net, vector).train(training)
    coo = g.adjacency.tocoo()
    edges = torch.tensor(np.stack(coo.coords).astype(np.int64))
    wanted = theirs(torch.tensor(unit_matrix_rows(g.features).toarray()), edges)
    given = shared_gnn.prepare(net, g, None)
    own, where = shared_gnn.select_inputs(net, given)
    assert isinstance(own.layout, shared_gnn.GinLayout)
    if not training:
        shown = shared_gnn.embed(own, vector[where], given, "hidden")
        assert np.allclose(shown, (wanted / (1 + wanted)).detach().numpy(), atol=1e-4)
        return
    seen: list[torch.Tensor] = []
    shared_gnn.gradient(own, vector[where], given, seen)
    after = net.layout.statistics(shared_gnn.moved_statistics(net, vector, seen))
    for part, norm in zip(after, theirs.all_norms, strict=True):
        assert torch.allclose(part[2], norm.running_mean, atol=1e-4)
        assert torch.allclose(part[3], norm.running_var, atol=1e-4)
