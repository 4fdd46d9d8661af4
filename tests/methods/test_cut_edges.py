"""Edges between clients, known at both ends: who refuses them, what both ends cost, and what one edge truly changes."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fedgraph
from fedgraph import plugins, privacy
from fedgraph.errors import PrivacyError, ScenarioError, UnboundedValueError
from fedgraph.learning import aggregate_hop, aggregation, links, walks
from fedgraph.methods import gap_edge, link_hops, sage_edge
from fedgraph.methods.base import Budget, Plan, PlanStreams, PublicCutEdgeFacts, PublicFacts, method_kinds
from fedgraph.privacy import Assumption, Gaussian, GaussianNoise, Trust, Viewer, settle
from fedgraph.privacy.mechanisms.edge_mechanisms import EdgeTriangle
from fedgraph.types import Graph, Partition, partition_of_one
from tests.methods.test_situations import Watched
from tests.trainings import deal, train

VIEWERS = [Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION]
NAMES = [name for name in plugins.names("methods") if method_kinds.load(name).OFFERS.kind != "embedder"]
PLACES: tuple[Any, ...] = ("inductive", "transductive", "links", "inductive-edges", "asking")
SHARE = {"gap_edge", "gcon", "link_clear", "link_hops", "lpgnn", "progap_edge", "sage_edge"}


def situation(
    graph: Graph, viewer: Viewer = Viewer.SERVER, cut_edges: PublicCutEdgeFacts = "protected"
) -> tuple[Partition, PublicFacts]:
    return deal(graph, "transductive", viewer, 3, cut_edges)[1:]


def made(name: str, facts: PublicFacts, epsilon: float, **more: object) -> Plan:
    method = method_kinds.load(name)
    given = next(s.settings for place in PLACES for s in method.OFFERS.situations if s.given == place)
    plan: Plan = method.plan(method.Params(**given, **more), facts, Budget(epsilon, 1e-5))
    return plan


@pytest.mark.parametrize(  # who refuses them does so whoever looks
    ("name", "viewer"), [(name, viewer) for name in NAMES for viewer in (VIEWERS if name in SHARE else VIEWERS[:1])]
)
def test_a_method_refuses_such_edges_or_spends_on_both_ends_what_an_inner_edge_costs(
    name: str, viewer: Viewer, library: Graph
) -> None:
    offers = method_kinds.load(name).OFFERS
    if viewer not in {t.viewer for s in offers.situations for t in s.trusted} and not offers.trusts_nobody:
        return
    given = next(place for place in PLACES if offers.serves(place)).replace("links", "transductive")
    _, partition, facts = deal(library, given, viewer, 3, "protected")
    whole = deal(library, given, viewer, 3, "dropped")[2]
    try:
        plan, dropped = made(name, facts, 2.0), made(name, whole, 2.0)
    except (ScenarioError, PrivacyError) as refused:
        if name in SHARE or "cut_edges: dropped" not in str(refused):
            raise
        return
    assert plan.provable().epsilon == pytest.approx(dropped.provable().epsilon, rel=1e-9)
    protection = plan.guarantee.protection
    assert (Assumption.CUT_EDGES_SHARED in protection.assumptions) == protection.relation.links_alone
    if math.isfinite(plan.provable().epsilon) and protection.relation.links_alone:
        alone = dataclasses.replace(plan.guarantee, per_end=False, holdings=None, sampled_once=None)
        one = settle.of_events(alone, plan.declared()).price.epsilon
        assert (one < 0.8 * plan.provable().epsilon) == plan.guarantee.per_end, "one end is not an edge"
        out = train(plan, partition)
        assert privacy.settle.of_releases(plan.guarantee, out.releases).epsilon == plan.provable().epsilon


def bounded(plan: Plan, graph: Graph) -> Iterator[list[np.ndarray]]:
    """What each client's bound lets through, release by release."""
    partition, _ = situation(graph, plan.facts.viewer)
    method = method_kinds.load(plan.method)
    model = method.start(plan, np.random.default_rng(0)).model
    works = [method.prepare(plan, subgraph) for subgraph in partition.subgraphs]
    for release in plan.schedule.releases:
        found = []
        for work in works:
            streams = PlanStreams(0, ("c", "client", 0, "round", release.rounds[0]))
            desk = Watched(plan, release.rounds[0], streams, None)
            method.client(plan, work, model, release.rounds[0], streams, desk)
            found += [value.astype(float) for value in desk.seen[release.path]]
        yield found


@pytest.mark.parametrize("viewer", VIEWERS)
@pytest.mark.parametrize("name", ["gap_edge", "link_hops", "progap_edge"])
def test_an_edge_at_two_clients_moves_what_is_seen_by_at_most_what_is_priced(name: str, viewer: Viewer, library: Graph) -> None:
    """μ² over all that is seen, for edges inside a client and between two, against two ends' events."""
    partition, facts = situation(library, viewer)
    plan, secure = made(name, facts, 2.0), viewer is Viewer.SERVER_SECURE_AGGREGATION
    owner = np.empty(library.num_nodes, dtype=int)
    for subgraph in partition.subgraphs:
        owner[subgraph.nodes] = subgraph.client
    edges, whole, largest = links.list_all(library.adjacency), list(bounded(plan, library)), {False: 0.0, True: 0.0}
    away = owner[edges[:, 0]] != owner[edges[:, 1]]
    for apart in (False, True):
        for edge in np.flatnonzero(away == apart)[:3]:
            adjacency = links.adjacency_of(np.delete(edges, edge, axis=0), library.num_nodes)
            less = bounded(plan, dataclasses.replace(library, adjacency=adjacency))
            for release, one, two in zip(plan.schedule.releases, whole, less, strict=True):
                assert isinstance(release.mechanism, GaussianNoise)
                assert isinstance(release.event, Gaussian)
                moves = [a - b for a, b in zip(one, two, strict=True)]
                std = release.mechanism.std * (math.sqrt(plan.facts.cohort - 1) if secure else 1.0)
                seen = np.linalg.norm(sum(moves)) if secure else math.hypot(*map(np.linalg.norm, moves))
                priced = math.sqrt(2) / release.event.noise_multiplier  # two ends
                assert seen / std <= priced * (1 + 1e-6)
                largest[apart] = max(largest[apart], float(seen / std / priced))
    assert min(largest.values()) > 2 / 3, "a price for far less would not be seen"


def test_without_noise_a_federation_learns_what_a_curator_learns(library: Graph) -> None:
    partition, facts = situation(library)
    plan = made("gap_edge", facts, math.inf)
    state = train(plan, partition).state
    rows = gap_edge.start(plan, np.random.default_rng(0)).model["rows"]
    for found in state.memory.sent[1:]:
        sums = aggregate_hop(library.adjacency, rows)
        rows = found
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        assert np.allclose(found, np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0), atol=1e-4)
    everybody = (np.arange(library.num_nodes),)
    alone = dataclasses.replace(
        facts, viewer=Viewer.CURATOR_TRUSTED, clients=(library.num_nodes,), cut_edges="dropped", members=everybody
    )
    shared, curated = made("link_hops", facts, math.inf), made("link_hops", alone, math.inf)
    pairs, whole = links.list_all(library.adjacency)[:200], partition_of_one(library, "one")
    told, known = (link_hops.scores(p, train(p, held).state, pairs) for p, held in ((shared, partition), (curated, whole)))
    assert np.allclose(told, known, atol=1e-3)


def test_the_walk_goes_on_over_an_edge_to_another_client(library: Graph) -> None:
    partition, _ = situation(library)
    x = np.random.default_rng(0).standard_normal((library.num_nodes, 3))
    whole = walks.rows_after(walks.capped_matrix(library.adjacency), x, [1], 0.4)
    for s in partition.subgraphs:
        outside = aggregation.with_cut(sp.csr_array(s.graph.adjacency.shape), s.nodes, s.cut, library.num_nodes)
        walk, away = walks.open_matrices(s.graph.adjacency, outside)
        assert np.allclose(walks.rows_after(walk, x[s.nodes], [1], 0.4, away @ x), whole[s.nodes])


def test_sage_each_edge_is_reported_by_exactly_one_client(library: Graph) -> None:
    partition, facts = situation(library)
    plan = sage_edge.plan(sage_edge.Params(epochs=2), facts, Budget(math.inf, 1e-5))
    reported = np.concatenate([sage_edge.prepare(plan, s) for s in partition.subgraphs])
    upper = sp.triu(library.adjacency, k=1, format="coo")
    assert {tuple(e) for e in reported.tolist()} == set(zip(*(c.tolist() for c in upper.coords), strict=True))
    assert len(reported) == library.num_edges
    with pytest.raises(UnboundedValueError, match="another client"):
        plan.schedule.releases[0].bound.enforce(sage_edge.prepare(plan, partition.subgraphs[1]))
    assert isinstance(plan.schedule.releases[0].bound, EdgeTriangle)


def test_the_task_gives_edges_between_clients_to_both_where_it_is_asked_to(tmp_path: Path) -> None:
    task = {
        "task": "link_prediction", "trust": ["curator", "own-client"], "epsilons": [4], "delta": 1e-5,
        "methods": [{"method": "link_hops", "width": 16}, {"method": "link_clear"}],
        "partition": {"partition": "uniform", "clients": 3},
    }  # fmt: skip
    tasks = [{**task, "label": word, "cut_edges": word} for word in ("dropped", "protected")]
    asked = {"name": "cut", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}], "tasks": tasks}
    found = {}
    for row in fedgraph.run(asked, out=tmp_path / "run", quiet=True).rows:
        shared = row.head.task == "protected" and row.head.world.trust is not Trust.CURATOR
        assert row.head.facts.cut_edges_shared == shared
        assert (Assumption.CUT_EDGES_SHARED in row.held.assumptions) == shared
        assert row.epsilon_provable <= 4 * (1 + 1e-9) or row.head.method == "link_clear"
        found[row.head.task, row.head.method, row.head.world.trust] = row.auc
    both = found["protected", "link_clear", Trust.OWN_CLIENT]
    assert both == found["protected", "link_clear", Trust.CURATOR]
    assert both > found["dropped", "link_clear", Trust.OWN_CLIENT]
