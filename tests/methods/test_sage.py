"""SAGE: how many rows a node really touches, what a perturbed graph really is, and both levels end to end."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.errors import DataError
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
from fedgraph.methods.base import Budget
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph
from tests.trainings import deal, train

torch = pytest.importorskip("torch")


def test_one_layer_of_sage_is_a_linear_layer_of_joined_rows_and_two_read_what_the_whole_graph_says(library: Graph) -> None:
    """The fast way of one layer beside its plain version, PyG on sampled subgraphs; roots of two layers miss nobody."""
    _, partition, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    (held,) = partition.subgraphs
    one, two = (
        sage_node.plan(
            sage_node.Params(cap="promised", degree=3, layers=layers, projection=8), facts, Budget(np.inf, 1e-3)
        ).made
        for layers in (1, 2)
    )
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


def test_an_enforced_limit_cuts_nothing_and_refuses_what_is_above(library: Graph) -> None:
    _, partition, facts = deal(library, "inductive", Viewer.SERVER)
    plan = sage_node.plan(sage_node.Params(cap="limit", limit=60), facts, Budget(2.0, 1e-3))
    assert plan.guarantee.protection.degree_limit == 60
    assert {r.event.touched_rows for r in plan.schedule.releases} == {61}
    sage_node.prepare(plan, partition.subgraphs[0])
    plan = sage_node.plan(sage_node.Params(cap="limit", limit=1), facts, Budget(2.0, 1e-3))
    with pytest.raises(DataError, match="more than the stated limit of 1"):
        sage_node.prepare(plan, partition.subgraphs[0])


def test_without_noise_the_server_trains_on_the_true_graph(library: Graph) -> None:
    setting, partition, facts = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    plan = sage_edge.plan(sage_edge.Params(epochs=40), facts, Budget(np.inf, 1e-5))
    state = train(plan, partition).state
    how = PublicTrainingSteps(40, 0.01, 5e-4)
    own = whole_graph.train_graphsage(
        setting.public_attributes, library.adjacency, 32, how, np.random.default_rng(state.memory.seed)
    )
    assert np.allclose(state.memory.scores, own, atol=1e-4)
    right = own.argmax(axis=1) == setting.truth
    assert right[setting.truth >= 0].mean() > 0.75


def test_dpgcn_without_noise_is_a_gcn_on_the_true_graph(library: Graph) -> None:
    setting, partition, facts = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    plan = sage_edge.plan(sage_edge.Params(network="gcn", epochs=40), facts, Budget(np.inf, 1e-5))
    scores = train(plan, partition).state.memory.scores
    assert (scores.argmax(axis=1) == setting.truth)[setting.truth >= 0].mean() > 0.75
    noisy = sage_edge.plan(sage_edge.Params(network="gcn", epochs=40), facts, Budget(1.0, 1e-5))
    assert not np.allclose(train(noisy, partition).state.memory.scores, scores)
    assert noisy.provable().epsilon == 1.0
