"""SAGE: how many rows a node really touches, what a perturbed graph really is, and both levels end to end."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from pydantic import ValidationError

from fedgraph.errors import DataError, PrivacyError, ScenarioError
from fedgraph.learning import NetworkExamples, NetworkSpec, example_gradients, neighbour_limits, own_network, rooted
from fedgraph.learning.clipping import neighbour_rows, per_sample
from fedgraph.learning.layers import graphsage
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import FeatureMatrix
from fedgraph.methods import sage_edge, sage_node
from fedgraph.methods.base import Budget
from fedgraph.methods.sage_node.published import claimed_sage_subgraphs
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.mechanisms.edge_mechanisms import EdgeRand
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph
from tests.trainings import deal, train

torch = pytest.importorskip("torch")


def regular(n: int, degree: int, seed: int) -> sp.csr_array:
    """A ring in which everybody knows the ``degree`` nearest, its nodes shuffled."""
    order = np.random.default_rng(seed).permutation(n)
    dense = np.zeros((n, n), dtype=np.float32)
    for step in range(1, degree // 2 + 1):
        dense[order, np.roll(order, step)] = dense[np.roll(order, step), order] = 1
    return sp.csr_array(dense)


def zeroed(adjacency: sp.csr_array, features: sp.csr_array, labels: np.ndarray, node: int) -> tuple:
    keep = np.ones(len(labels))
    keep[node] = 0
    mask = sp.diags_array(keep)
    cut = sp.csr_array(mask @ adjacency @ mask).astype(np.float32)
    cut.eliminate_zeros()
    left = sp.csr_array(mask @ features).astype(np.float32)
    left.eliminate_zeros()
    return cut, left, np.where(keep > 0, labels, -1)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_node_changes_no_more_gradients_than_claimed(layers: int) -> None:
    """Removing a node: the number of changed rows, and the change of the clipped sum in units of C."""
    n, degree, clip, rng = 60, 4, 0.3, np.random.default_rng(0)
    adjacency = regular(n, degree, 1)
    features = sp.csr_array(rng.standard_normal((n, 6)).astype(np.float32) * 5)
    labels = rng.integers(3, size=n)
    k = 1 + rooted.reach(degree, layers)
    assert k <= claimed_sage_subgraphs(degree, layers), "what is published counts the way back as well"
    for node in range(0, n, 12):
        before = rows_of(adjacency, features, labels, layers, clip, seed=2)
        after = rows_of(*zeroed(adjacency, features, labels, node), layers, clip, seed=2)
        change = np.linalg.norm(before - after, axis=1)
        assert (change > 1e-6).sum() <= k
        assert np.linalg.norm((before - after).sum(axis=0)) <= (2 * k - 1) * clip * (1 + 1e-5)


def clipped_sum(vector: np.ndarray, rows: np.ndarray, labels: np.ndarray, clip: float, bound: float) -> np.ndarray:
    """A step under the log cap, as a client makes it."""
    limited, (_, inputs) = neighbour_rows.limit_weights(vector.astype(np.float64), rows.shape[1], bound), rows.shape
    return example_gradients.outer(limited, rows, labels, vector.size // (inputs + 1), clip).total()


def rows_of(adjacency, features, labels, layers: int, clip: float, seed: int) -> np.ndarray:
    """[n, parameters]: every root's clipped gradient, one at a time, of PyG's own layers on sampled subgraphs."""
    model, shape = ("SAGEConv", {}) if layers == 1 else ("GraphSAGE", {"hidden_channels": 5, "num_layers": 2})
    spec = NetworkSpec(f"torch_geometric.nn.{model}", json.dumps(shape), features.shape[1], 3)
    vector = np.random.default_rng(seed).standard_normal(own_network.num_parameters(spec)).astype(np.float32)
    rows, n = features.toarray(), len(labels)
    samples = rooted.subgraphs(adjacency, np.arange(n), np.arange(n), lambda root, node: node >= 0, n, layers, 0)
    out = np.zeros((n, vector.size))
    for root in np.flatnonzero(labels >= 0):
        one = NetworkExamples(rows, samples.of(np.array([root])), labels[[root]])
        out[root] = example_gradients.clipped_sum(spec, vector, one, clip, n)
    return out


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


def test_a_node_that_is_replaced_has_other_neighbours_and_pays_for_both(library: Graph) -> None:
    """Four neighbours in one world, four others in the other: nine rows change, and nine are priced."""
    n, limit = 12, 4
    rng, worlds = np.random.default_rng(0), []
    features, labels = sp.csr_array(rng.standard_normal((n, 6)).astype(np.float32)), rng.integers(3, size=n)
    for first in (1, 1 + limit):
        dense = np.zeros((n, n), dtype=np.float32)
        dense[0, first : first + limit] = dense[first : first + limit, 0] = 1
        worlds.append(rows_of(sp.csr_array(dense), features, labels, 1, 0.3, seed=2))
    changed = int((np.linalg.norm(worlds[0] - worlds[1], axis=1) > 1e-6).sum())
    _, _, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    params = sage_node.Params(cap="limit", limit=limit, relation="node-replace", sampling_rate=0.5, steps=3)
    (release,) = sage_node.plan(params, facts, Budget(2.0, 1e-3)).schedule.releases
    assert changed == 2 * limit + 1 == release.event.touched_rows


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("relation", ["node-zero-out", "node-replace"])
def test_without_a_promise_it_is_provable_for_every_graph(layers: int, relation: str, library: Graph) -> None:
    _, partition, facts = deal(library, "inductive", Viewer.SERVER)
    plan = sage_node.plan(sage_node.Params(layers=layers, steps=3, projection=8, relation=relation), facts, Budget(2.0, 1e-3))
    assert plan.guarantee.protection.promised_degree is None
    assert 1.9 < plan.provable().epsilon <= 2.0
    if layers == 2:
        assert {r.event.touched_rows for r in plan.schedule.releases} == {s.graph.num_nodes for s in partition.subgraphs}


@pytest.mark.parametrize("seed", range(4))
def test_a_step_changes_by_no_more_than_the_log_cap_is_priced_for(seed: int) -> None:
    """Hubs, cliques and random graphs; parameters far outside the ball; scales at which neighbours count."""
    rng, n, clip = np.random.default_rng(seed), 61, 0.5
    dense = regular(n, 4, seed).toarray() if seed < 2 else np.triu(rng.random((n, n)) < 0.2, 1).astype(np.float32)
    dense = np.maximum(dense, dense.T)
    dense[0, 1:] = dense[1:, 0] = 1
    dense[20:35, 20:35] = 1 - np.eye(15)
    features = sp.csr_array(rng.standard_normal((n, 6)).astype(np.float32) * 9)
    labels, cap = rng.integers(3, size=n), neighbour_sums.priced_log_cap(n)
    if seed % 2:  # everybody alike: what one node moves adds up
        features, labels = sp.csr_array(np.tile(features.toarray()[:1], (n, 1))), np.zeros(n, dtype=np.int64)
    vector = rng.standard_normal(39).astype(np.float32) * 30
    for scale in (0.5, 5.0, 40.0):
        allowed = neighbour_sums.gradient_sensitivity(cap, clip, 2.0, scale)
        for node in (0, 1, 25, 60):
            sums = [
                clipped_sum(vector, neighbour_rows.make(x, neighbour_limits.log_weights(a, cap.factors), scale), y, clip, 2.0)
                for a, x, y in ((sp.csr_array(dense), features, labels), zeroed(sp.csr_array(dense), features, labels, node))
            ]
            assert np.linalg.norm(sums[0] - sums[1]) <= allowed


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9])
def test_no_parameters_make_neighbours_count_for_more_than_is_priced(size: float) -> None:
    """All rows are alike, and parameters tell the neighbours' part with the hub from the one without: each row turns over."""
    n, clip, bound = 61, 0.5, 2.0
    dense, cap = regular(n, 4, 0).toarray(), neighbour_sums.priced_log_cap(n)
    dense[0, 1:] = dense[1:, 0] = 1
    features, labels = sp.csr_array(np.tile(np.eye(6, dtype=np.float32)[:1], (n, 1))), np.zeros(n, dtype=np.int64)
    there, gone = (sp.csr_array(dense), features, labels), zeroed(sp.csr_array(dense), features, labels, 0)
    for scale in (neighbour_sums.gradient_scale(cap, clip, bound), 5.0, 0.5):
        rows = [neighbour_rows.make(x, neighbour_limits.log_weights(a, cap.factors), scale) for a, x, _ in (there, gone)]
        assert all(np.linalg.norm(half, axis=1).max() <= 1 + 1e-12 for row in rows for half in np.hsplit(row, 2))
        middle = (rows[0][1, 6] + rows[1][1, 6]) / 2
        weights = np.zeros((13, 2))
        weights[6], weights[12] = (size, -size), (-size * middle, size * middle)
        with_it, without = (
            clipped_sum(np.concatenate([weights[:12].T.ravel(), weights[12]]), row, y, clip, bound)
            for row, y in zip(rows, (there[2], gone[2]), strict=True)
        )
        allowed = neighbour_sums.gradient_sensitivity(cap, clip, bound, scale)
        assert np.linalg.norm(with_it - without) <= allowed


def test_the_gradient_of_the_log_cap_rows_is_that_of_the_usual_kernel() -> None:
    rng, layout = np.random.default_rng(0), Layout((8, 3))
    inputs = rng.standard_normal((40, 8)).astype(np.float32).astype(np.float64) * 0.2
    labels, vector = rng.integers(-1, 3, size=40), rng.standard_normal(layout.num_parameters).astype(np.float32) * 0.1
    ours = clipped_sum(np.concatenate([vector[:24].reshape(8, 3).T.ravel(), vector[24:]]), inputs, labels, 0.3, 100.0)
    usual = per_sample.clipped_sum(layout, vector, FeatureMatrix(sp.csr_array(inputs)), torch.tensor(labels), 0.3)
    ours = np.concatenate([ours[:24].reshape(3, 8).T.ravel(), ours[24:]])
    assert np.allclose(ours, usual, rtol=2e-3, atol=2e-4)


def test_an_enforced_limit_cuts_nothing_and_refuses_what_is_above(library: Graph) -> None:
    _, partition, facts = deal(library, "inductive", Viewer.SERVER)
    plan = sage_node.plan(sage_node.Params(cap="limit", limit=60), facts, Budget(2.0, 1e-3))
    assert plan.guarantee.protection.degree_limit == 60
    assert {r.event.touched_rows for r in plan.schedule.releases} == {61}
    sage_node.prepare(plan, partition.subgraphs[0])
    plan = sage_node.plan(sage_node.Params(cap="limit", limit=1), facts, Budget(2.0, 1e-3))
    with pytest.raises(DataError, match="more than the stated limit of 1"):
        sage_node.prepare(plan, partition.subgraphs[0])


def test_published_calibration_meets_the_papers_formula(library: Graph) -> None:
    _, _, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    plan = sage_node.plan(sage_node.Params(sampling_rate=0.2, steps=20), facts, Budget(4.0, 1e-3, "published"))
    assert 0.99 * 4.0 < plan.epsilon_published <= 4.0
    event = plan.schedule.releases[0].event
    assert (event.sampling_rate, event.touched_rows) == (0.2, 11)


def test_without_noise_the_server_trains_on_the_true_graph(library: Graph) -> None:
    setting, partition, facts = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    plan = sage_edge.plan(sage_edge.Params(epochs=40), facts, Budget(np.inf, 1e-5))
    state = train(plan, partition).state
    how = graphsage.PublicTrainingSteps(40, 0.01, 5e-4)
    own = graphsage.train_graphsage_scores(
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


def test_bad_settings_are_refused_with_what_to_write(library: Graph) -> None:
    _, _, inductive = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    _, _, transductive = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    _, _, secure = deal(library, "transductive", Viewer.SERVER_SECURE_AGGREGATION)
    with pytest.raises(ScenarioError, match="protocol: transductive"):
        sage_edge.plan(sage_edge.Params(), inductive, Budget(1, 1e-5))
    _, _, edges_only = deal(library, "inductive-edges", Viewer.CURATOR_TRUSTED)
    with pytest.raises(ScenarioError, match="protocol: transductive"):
        sage_edge.plan(sage_edge.Params(), edges_only, Budget(1, 1e-5))
    with pytest.raises(ScenarioError, match="protocol: inductive"):
        sage_node.plan(sage_node.Params(), transductive, Budget(1, 1e-5))
    with pytest.raises(ScenarioError, match="secure aggregation cannot add up"):
        sage_edge.plan(sage_edge.Params(), secure, Budget(1, 1e-5))
    with pytest.raises(ValidationError, match="edge-undirected"):
        sage_edge.Params(relation="node-replace")
    small = sage_edge.Params(adjacency="edgerand", memory_gb=1e-5)
    with pytest.raises(PrivacyError, match=r"flips about 1.21e\+04 cells .* lapgraph"):
        sage_edge.plan(small, transductive, Budget(1, 1e-5))
    with pytest.raises(PrivacyError, match=r"29\.6 GB .*use adjacency: lapgraph"):
        EdgeRand(0.01, 34493, 20_000_000)
