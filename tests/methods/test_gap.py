"""GAP: the true change of every released quantity, the noise that is really there, and both levels end to end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph.errors import DataError
from fedgraph.federation import rounds
from fedgraph.learning import aggregate_hop, scale_to_unit_length
from fedgraph.methods import gap_edge, gap_node
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.types import Graph, Partition, graph_without_edges
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


def test_an_enforced_limit_is_refused_where_the_data_break_it(library: Graph) -> None:
    plan, partition = node_plan(library, 2.0, cap="limit", limit=1000)
    assert plan.guarantee.protection.degree_limit == 1000
    assert np.isfinite(train(plan, partition).state.model["classifier"]).all()
    plan, partition = node_plan(library, 2.0, cap="limit", limit=2)
    with pytest.raises(DataError, match="have more than the stated limit of 2; allowed"):
        gap_node.prepare(plan, partition.subgraphs[0])
    with pytest.raises(ValidationError, match="belong together"):
        gap_node.Params(cap="limit")


def test_new_nodes_are_read_by_the_same_classifier_on_their_public_graph(library: Graph) -> None:
    setting, partition, facts = deal(library, "inductive-edges", Viewer.CURATOR_TRUSTED)
    plan = gap_edge.plan(gap_edge.Params(**FAST, hops=2), facts, Budget(np.inf, 1e-5))
    assert Assumption.TEST_GRAPH_PUBLIC in plan.guarantee.protection.assumptions
    state = train(plan, partition).state
    scores = gap_edge.predict(plan, state, setting.asked)
    assert (scores.argmax(axis=1) == setting.truth).mean() > 0.6
    assert not np.allclose(scores, gap_edge.predict(plan, state, graph_without_edges(setting.asked)))
