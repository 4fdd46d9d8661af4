"""SAGE: how many rows a node really touches, what a perturbed graph really is, and both levels end to end."""

import numpy as np
import pytest

from fedgraph.learning import (
    NetworkExamples,
    NetworkSpec,
    PublicTrainingSteps,
    example_gradients,
    own_network,
    rooted,
    whole_graph,
)
from fedgraph.methods import sage_edge, sage_node
from fedgraph.types import Graph
from tests.trainings import made, train

torch = pytest.importorskip("torch")


def test_one_layer_of_sage_is_a_linear_layer_of_joined_rows_and_two_read_what_the_whole_graph_says(library: Graph) -> None:
    """The fast way of one layer beside its plain version, PyG on sampled subgraphs; roots of two layers miss nobody."""
    settings = {"cap": "promised", "degree": 3, "projection": 8}
    (one, partition, _), (two, _, _) = (
        made(sage_node, library, np.inf, protocol="inductive", layers=k, **settings) for k in (1, 2)
    )
    (held,), one, two = partition.subgraphs, one.made, two.made
    joined, _ = one.read(held.graph, held.nodes)
    rows, adjacency = two.read(held.graph, held.nodes)
    assert np.diff(adjacency.indptr).max() == 3
    n, labels, rng = len(rows), held.graph.labels, np.random.default_rng(0)
    found = rooted.subgraphs(adjacency, np.arange(n), np.arange(n), lambda root, node: node >= 0, n, 2, 0)
    vector = rng.standard_normal(one.network.classes * (joined.shape[1] + 1))
    around, own = vector[: -one.network.classes].reshape(one.network.classes, 2, -1).transpose(1, 0, 2)[::-1]
    bias = vector[-one.network.classes :]
    plain = NetworkSpec("torch_geometric.nn.SAGEConv", "{}", rows.shape[1], one.network.classes)
    order = np.concatenate([around.ravel(), bias, own.ravel()])  # lin_l reads the mean, lin_r the row itself
    near = rooted.subgraphs(adjacency, np.arange(n), np.arange(n), lambda root, node: node >= 0, n, 1, 0)
    slow = example_gradients.vmapped(plain, order, NetworkExamples(rows, near, labels)).numpy()
    fast = example_gradients.outer(vector, joined, labels, one.network.classes, 1e9)
    half = slice(rows.shape[1]), slice(rows.shape[1], None)
    each = fast.errors[:, :, None] * fast.inputs[:, None, :]
    parts = [each[:, :, half[1]].reshape(n, -1), fast.errors, each[:, :, half[0]].reshape(n, -1)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), slow, atol=1e-6)
    weights = rng.standard_normal(own_network.num_parameters(two.network))
    module, parameters = own_network.filled(two.network, weights, torch.float64)
    x, arcs, _ = NetworkExamples(rows, found, labels).at(slice(None), torch.float64)
    with torch.no_grad():
        roots = torch.stack([torch.func.functional_call(module, parameters, (a, b))[0] for a, b in zip(x, arcs, strict=True)])
    np.testing.assert_allclose(roots.numpy(), own_network.scores(two.network, weights, rows, adjacency), atol=1e-4)


def test_without_noise_the_server_trains_on_the_true_graph(library: Graph) -> None:
    plan, partition, setting = made(sage_edge, library, np.inf, epochs=40)
    memory, how = train(plan, partition).state.memory, PublicTrainingSteps(40, 0.01, 5e-4)
    given, rng = setting.public_attributes, np.random.default_rng(memory.seed)
    own = whole_graph.train_graphsage(given, library.adjacency, 32, how, rng)
    assert np.allclose(memory.scores, own, atol=1e-4)
    assert (own.argmax(axis=1) == setting.truth)[setting.truth >= 0].mean() > 0.75


def test_dpgcn_without_noise_is_a_gcn_on_the_true_graph(library: Graph) -> None:
    plan, partition, setting = made(sage_edge, library, np.inf, network="gcn", epochs=40)
    scores = train(plan, partition).state.memory.scores
    assert (scores.argmax(axis=1) == setting.truth)[setting.truth >= 0].mean() > 0.75
    noisy = made(sage_edge, library, 1.0, network="gcn", epochs=40)[0]
    assert not np.allclose(train(noisy, partition).state.memory.scores, scores)
    assert noisy.provable().epsilon == 1.0
