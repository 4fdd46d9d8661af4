"""GAP: the true change of every released quantity, the noise that is really there, and both levels end to end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from pydantic import ValidationError

from fedgraph.errors import DataError, PrivacyError, ScenarioError
from fedgraph.federation import rounds
from fedgraph.learning.propagation.aggregation import aggregate_hop, scale_to_unit_length
from fedgraph.methods import gap_edge, gap_node
from fedgraph.methods.base import Budget, Plan, PlanInbox
from fedgraph.methods.base.node_caps import aggregate_capped_rows
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.units import Assumption, Relation, Viewer
from fedgraph.types import Graph, GraphProvenance, Partition, graph_without_edges, plain_graph
from tests.public_facts import public_facts
from tests.trainings import deal, train

FAST = {"epochs": 30, "folds": 2}


def edge_plan(graph: Graph, epsilon: float, viewer: Viewer = Viewer.CURATOR_TRUSTED, **params) -> tuple[Plan, Partition]:
    _, partition, facts = deal(graph, "transductive", viewer)
    return gap_edge.plan(gap_edge.Params(**FAST, **params), facts, Budget(epsilon, 1e-5)), partition


def test_rows_that_saw_their_labels_never_switch_neighbours_off(library: Graph) -> None:
    """In sample, a node's own row beats every neighbour on held-out labels too, and no hop would be chosen."""

    def trained(epsilon: float, **settings: object) -> tuple[Plan, rounds.RoundsOutcome]:
        _, partition, facts = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
        made = gap_edge.plan(gap_edge.Params(epochs=100, **settings), facts, Budget(epsilon, 1e-5))  # type: ignore[arg-type]
        return made, train(made, partition)

    for own in ({"folds": 1}, {"encoder": "hidden"}):
        _, found = trained(math.inf, **own)
        assert found.state.memory.classifier.depth == 2, "all hops"
    _, found = trained(math.inf, folds=2)
    assert found.state.memory.classifier.depth > 0


@pytest.mark.parametrize("degree", [1, 4, 9])
def test_a_node_changes_root_degree_in_the_rows_of_others(degree: int) -> None:
    """Star with D leaves, equal unit messages: exactly √D without the centre's own row, √(D + D²) with it."""
    adjacency = np.zeros((degree + 1, degree + 1), dtype=np.float32)
    adjacency[0, 1:] = adjacency[1:, 0] = 1
    rows = np.tile(np.eye(1, 3, dtype=np.float32), (degree + 1, 1))
    difference = aggregate_hop(sp.csr_array(adjacency), rows) - aggregate_hop(sp.csr_array(np.zeros_like(adjacency)), rows)
    others = np.linalg.norm(difference[1:])
    assert others == pytest.approx(neighbour_sums.sensitivity(Relation.NODE_ZERO_OUT, degree, rows_released=False), rel=1e-5)
    everything = neighbour_sums.sensitivity(Relation.NODE_ZERO_OUT, degree, rows_released=True)
    assert np.linalg.norm(difference) == pytest.approx(everything, rel=1e-5)


@pytest.mark.parametrize(("claimed", "truth"), [(1, 1.45), (4, 5.89), (8, 12.0)])
def test_published_edge_noise_is_provably_worth_less(claimed: float, truth: float, library: Graph) -> None:
    _, _, facts = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    plan = gap_edge.plan(gap_edge.Params(hops=2), facts, Budget(claimed, 1e-7, "published"))
    assert plan.epsilon_published == pytest.approx(claimed, rel=1e-6)
    assert plan.epsilon_published <= claimed
    assert plan.provable().epsilon == pytest.approx(truth, abs=0.05)
    directed = gap_edge.plan(gap_edge.Params(hops=2, relation="edge-directed"), facts, Budget(claimed, 1e-7, "published"))
    assert directed.provable().epsilon == pytest.approx(claimed, rel=1e-6)


def test_without_noise_the_hops_are_exact_and_only_released_values_are_used(library: Graph) -> None:
    plan, partition = edge_plan(library, np.inf, hops=2)
    state = train(plan, partition).state
    first = scale_to_unit_length(aggregate_hop(library.adjacency, gap_edge.start(plan, np.random.default_rng(0)).model["rows"]))
    assert np.array_equal(state.memory.sent[1], first)
    assert np.array_equal(state.memory.sent[2], scale_to_unit_length(aggregate_hop(library.adjacency, first)))
    scores = gap_edge.predict(plan, state, graph_without_edges(library))
    assert np.array_equal(scores, gap_edge.predict(plan, state, library)), "inference must not read private edges"
    assert (scores.argmax(axis=1) == library.labels).mean() > 0.8


@pytest.mark.parametrize("encoder", ["classes", "hidden", "none"])
def test_every_encoder_runs_on_both_levels(encoder: str, library: Graph) -> None:
    plan, partition = edge_plan(library, 4.0, hops=1, encoder=encoder, depth="all")
    assert np.isfinite(gap_edge.predict(plan, train(plan, partition).state, library)).all()
    setting, partition, facts = deal(library, "inductive", Viewer.SERVER)
    plan = gap_node.plan(gap_node.Params(encoder=encoder, steps=3, projection=16), facts, Budget(4.0, 1e-3))
    assert np.isfinite(gap_node.predict(plan, train(plan, partition).state, setting.asked)).all()
    assert len([r for r in plan.schedule.releases if r.path == "encoder"]) == (encoder != "none")


def node_plan(graph: Graph, epsilon: float, reading: str = "provable", **params) -> tuple[Plan, Partition]:
    _, partition, facts = deal(graph, "inductive", Viewer.SERVER)
    return gap_node.plan(gap_node.Params(**{"steps": 4, **params}), facts, Budget(epsilon, 1e-3, reading)), partition


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("relation", ["node-zero-out", "node-replace"])
@pytest.mark.parametrize("reading", ["published", "provable"])
def test_node_level_prices(rate: float, relation: str, reading: str, library: Graph) -> None:
    plan, _ = node_plan(library, 2.0, reading, sampling_rate=rate, relation=relation)
    if reading == "provable":
        assert 0.9 * 2.0 < plan.provable().epsilon <= 2.0
    else:
        assert 0.9 * 2.0 < plan.epsilon_published <= 2.0
        assert (plan.provable().epsilon > 2.0) == (relation == "node-replace"), "the formula is for zero-out"
    assert plan.guarantee.protection.promised_degree == (10 if reading == "published" else None)


def test_stages_share_a_multiplier_as_released_and_a_deviation_on_the_slides(library: Graph) -> None:
    for formula, ratio in (("code", 1.0), ("slides", 10**0.5 / 0.5)):
        plan, _ = node_plan(library, 2.0, "published", formula=formula, hops=1)
        multiplier = {r.path: r.event.noise_multiplier for r in plan.schedule.releases}
        assert multiplier["encoder"] == multiplier["classifier"] == pytest.approx(ratio * multiplier["aggregate"])
        hop = next(r.mechanism.std for r in plan.schedule.releases if r.path == "aggregate")
        assert hop == pytest.approx(10**0.5 * multiplier["aggregate"])  # √D


def test_a_hop_is_priced_for_each_clients_own_size(library: Graph) -> None:
    """Noise / multiplier is what one node changes in a graph of that many nodes; a public number."""
    plan, partition = node_plan(library, 2.0, hops=1)
    hops = [r for r in plan.schedule.releases if r.path == "aggregate"]
    assert [r.client for r in hops] == [0, 1, 2]
    for release, s in zip(hops, partition.subgraphs, strict=True):
        delta = release.mechanism.std / release.event.noise_multiplier
        assert delta == pytest.approx(neighbour_sums.priced_log_cap(s.graph.num_nodes).sensitivity_l2())


def test_an_enforced_limit_is_refused_where_the_data_break_it(library: Graph) -> None:
    plan, partition = node_plan(library, 2.0, cap="limit", limit=1000)
    assert plan.guarantee.protection.degree_limit == 1000
    assert np.isfinite(train(plan, partition).state.model["classifier"]).all()
    plan, partition = node_plan(library, 2.0, cap="limit", limit=2)
    with pytest.raises(DataError, match="have more than the stated limit of 2; allowed"):
        gap_node.prepare(plan, partition.subgraphs[0])
    with pytest.raises(ValidationError, match="belong together"):
        gap_node.Params(cap="limit")


@pytest.mark.parametrize("cap", ["log", "promised"])
def test_what_one_node_changes_in_a_hop_as_it_is_run(cap: str) -> None:
    """A hub of 2,000, all others of degree 11. Log cap: the noise's Δ covers it. Cut to a promised 10: not covered."""
    adjacency = hub_on_a_ring(2001, 10)
    n, z = adjacency.shape[0], adjacency.shape[0] - 1
    facts = public_facts(n, 4, 2, (n,), Viewer.CURATOR_TRUSTED, public_graph=public_of_two())
    plan = gap_node.plan(gap_node.Params(cap=cap, encoder="none", hops=1, projection=0), facts, Budget(1.0, 1e-5))
    (release,) = [r for r in plan.schedule.releases if r.path == "aggregate"]
    delta = release.mechanism.std / release.event.noise_multiplier
    rows = np.zeros((n, 1), dtype=np.float32) + 1
    kept = np.ones(n)
    kept[z] = 0
    gone = sp.csr_array(sp.diags_array(kept) @ adjacency @ sp.diags_array(kept)).astype(np.float32)
    gone.eliminate_zeros()
    one, two = (aggregate_capped_rows(plan.made.caps.weights(a, np.arange(n), 0), rows) for a in (adjacency, gone))
    change = np.abs(one - two)[:z].astype(np.float64)
    worst = np.linalg.norm(change if cap == "log" else row_changes(plan, adjacency, gone)[:z])
    assert (worst <= delta) == (cap == "log")
    assert plan.provable().epsilon <= 1.0, "which cap: promised says of data that keep its promise"


def hub_on_a_ring(others: int, degree: int) -> sp.csr_array:
    """Each of ``others`` nodes knows the ``degree`` nearest on a ring, and one more node knows them all."""
    own = np.arange(others)
    pairs = [np.column_stack([own, (own + step) % others]) for step in range(1, degree // 2 + 1)]
    pairs.append(np.column_stack([own, np.full(others, others)]))
    ends = np.concatenate(pairs)
    ends = np.concatenate([ends, ends[:, ::-1]])
    return sp.csr_array((np.ones(len(ends), np.float32), (ends[:, 0], ends[:, 1])), shape=(others + 1, others + 1))


def row_changes(plan: Plan, one: sp.csr_array, two: sp.csr_array) -> np.ndarray:
    """How many unit vectors each row gains or loses: what rows that all point apart can move it by."""
    ids = np.arange(one.shape[0])
    weights = [plan.made.caps.weights(a, ids, 0) for a in (one, two)]
    return np.asarray(abs(weights[0] - weights[1]).sum(axis=1)).ravel()


def public_of_two() -> Graph:
    edge = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
    features = sp.csr_array(np.eye(2, 4, dtype=np.float32))
    return plain_graph("two", edge, features, np.array([0, 1]), 2, GraphProvenance("own", ""))


def test_new_nodes_are_read_by_the_same_classifier_on_their_public_graph(library: Graph) -> None:
    setting, partition, facts = deal(library, "inductive-edges", Viewer.CURATOR_TRUSTED)
    plan = gap_edge.plan(gap_edge.Params(**FAST, hops=2), facts, Budget(np.inf, 1e-5))
    assert Assumption.TEST_GRAPH_PUBLIC in plan.guarantee.protection.assumptions
    state = train(plan, partition).state
    scores = gap_edge.predict(plan, state, setting.asked)
    assert (scores.argmax(axis=1) == setting.truth).mean() > 0.6
    assert not np.allclose(scores, gap_edge.predict(plan, state, graph_without_edges(setting.asked)))


def test_bad_settings_are_refused_with_what_to_write(library: Graph) -> None:
    _, _, inductive = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    _, _, transductive = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    with pytest.raises(ScenarioError, match="protocol: transductive"):
        gap_edge.plan(gap_edge.Params(), inductive, Budget(1, 1e-5))
    with pytest.raises(ScenarioError, match="protocol: inductive"):
        gap_node.plan(gap_node.Params(), transductive, Budget(1, 1e-5))
    with pytest.raises(ValidationError, match="node-zero-out"):
        gap_node.Params(relation="edge-undirected")
    with pytest.raises(PrivacyError, match="promised maximum degree"):
        neighbour_sums.sensitivity(Relation.NODE_ZERO_OUT)
    with pytest.raises(PrivacyError, match="no sensitivity under graph-replace"):
        neighbour_sums.sensitivity(Relation.GRAPH_REPLACE)
    _, _, alone = deal(library, "transductive", Viewer.CURATOR_TRUSTED)
    with pytest.raises(PrivacyError, match="among more than 1 others"):
        gap_edge.plan(gap_edge.Params(), replace(alone, viewer=Viewer.SERVER_SECURE_AGGREGATION), Budget(1, 1e-5))


def test_a_step_is_on_the_mean_over_the_rows_that_are_drawn_on_average(library: Graph) -> None:
    plan, _ = node_plan(library, 2.0, sampling_rate=0.3)
    state, stage = gap_node.start(plan, np.random.default_rng(0)), plan.made.stage(0)
    before, ones = state.memory[stage], np.ones(plan.made.layouts[stage].num_parameters, np.float32)
    after = gap_node.server(plan, state, PlanInbox(0, {"gradient": ones}, {}, 1)).memory[stage]
    wanted = before.parameters - plan.params.learning_rate / (0.3 * plan.facts.num_nodes)
    assert np.allclose(after.parameters, wanted, atol=1e-6)
