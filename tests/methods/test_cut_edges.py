"""Edges between clients, protected at both ends: what one edge truly changes at either client, and what both together cost."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import plugins, privacy, seeds
from fedgraph.errors import DataError, PrivacyError, ScenarioError, UnboundedValueError
from fedgraph.learning.propagation import aggregation, walks
from fedgraph.learning.propagation.aggregation import aggregate_hop
from fedgraph.methods import gap_edge, gcon, sage_edge
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.partition import base, ego, uniform
from fedgraph.privacy import explain, ledger
from fedgraph.privacy.accounting import composition
from fedgraph.privacy.ledger import Ledger
from fedgraph.privacy.mechanisms.edge_mechanisms import EdgeTriangle
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph, Partition
from tests.trainings import deal, train


def dealt(graph: Graph, clients: int = 3) -> Partition:
    parts = uniform.split(graph, uniform.Params(clients=clients), seeds.seeded_generator(0, "deal"))
    return base.with_cut_edges(graph, parts)


def situation(graph: Graph, viewer: Viewer = Viewer.SERVER, clients: int = 3) -> tuple[Partition, PublicFacts]:
    return deal(graph, "transductive", viewer, clients, "protected")[1:]


def test_every_edge_is_inside_one_client_or_cut_at_exactly_two(library: Graph) -> None:
    partition = dealt(library)
    inner = sum(s.graph.num_edges for s in partition.subgraphs)
    ends = [tuple(sorted((int(s.nodes[u]), int(v)))) for s in partition.subgraphs for u, v in s.cut]  # type: ignore[union-attr]
    assert inner + partition.num_cut_edges == library.num_edges
    assert len(ends) == 2 * partition.num_cut_edges == 2 * len(set(ends))
    with pytest.raises(DataError, match="overlaps"):
        base.with_cut_edges(library, ego.split(library, ego.Params(clients=4), seeds.seeded_generator(0, "e")))


@pytest.mark.parametrize("viewer", [Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION])
@pytest.mark.parametrize("reading", ["provable", "published"])
def test_gap_two_ends_cost_what_an_inner_edge_costs(viewer: Viewer, reading: str, library: Graph) -> None:
    partition, facts = situation(library, viewer)
    plan = gap_edge.plan(gap_edge.Params(hops=2, epochs=5, folds=1), facts, Budget(2.0, 1e-5, reading))
    whole = gap_edge.plan(gap_edge.Params(hops=2), replace(facts, cut_edges="dropped"), Budget(2.0, 1e-5, reading))
    assert plan.schedule.releases[0].mechanism == whole.schedule.releases[0].mechanism
    assert plan.provable().epsilon == pytest.approx(whole.provable().epsilon, rel=1e-9)
    assert composition.compose_disjoint(plan.declared(), plan.guarantee.delta).epsilon < 0.8 * plan.provable().epsilon, (
        "one end is not an edge"
    )
    out = train(plan, partition)
    assert privacy.settle.of_releases(plan.guarantee, out.releases).epsilon == plan.provable().epsilon


def test_gap_without_noise_a_federation_sums_what_a_curator_sums(library: Graph) -> None:
    partition, facts = situation(library)
    plan = gap_edge.plan(gap_edge.Params(hops=2, epochs=5, folds=1), facts, Budget(math.inf, 1e-5))
    state = train(plan, partition).state
    rows = gap_edge.start(plan, np.random.default_rng(0)).model["rows"]
    for found in state.memory.sent[1:]:
        sums = aggregate_hop(library.adjacency, rows)
        rows = found
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        assert np.allclose(found, np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0), atol=1e-4)


def test_gcon_one_step_of_an_open_walk_is_the_whole_walks(library: Graph) -> None:
    x = np.random.default_rng(0).standard_normal((library.num_nodes, 3))
    whole = walks.rows_after(walks.capped_matrix(library.adjacency), x, [1], 0.4)
    for s in dealt(library).subgraphs:
        outside = aggregation.with_cut(sp.csr_array(s.graph.adjacency.shape), s.nodes, s.cut, library.num_nodes)
        walk, away = walks.open_matrices(s.graph.adjacency, outside)
        assert np.allclose(walks.rows_after(walk, x[s.nodes], [1], 0.4, away @ x), whole[s.nodes])


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_gcon_spends_half_an_end(epsilon: float, library: Graph) -> None:
    partition, facts = situation(library)
    plan = gcon.plan(gcon.Params(epochs=5, folds=1), facts, Budget(epsilon, 1e-5))
    out = train(plan, partition)
    settled = privacy.settle.of_releases(plan.guarantee, out.releases)
    spent, holders = settled.total.price, settled.total.holders
    assert spent.epsilon == plan.provable().epsilon == epsilon
    assert holders == (0, 0)
    assert composition.compose_disjoint(ledger.spent_by_client(out.releases), plan.guarantee.delta / 2).epsilon == epsilon / 2


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


@pytest.mark.parametrize("given", [{"adjacency": "edgerand"}, {"adjacency": "lapgraph", "network": "gcn"}])
def test_sage_costs_epsilon_once_and_keeps_edges_between_clients(given: dict[str, str], library: Graph) -> None:
    partition, facts = situation(library)
    plan = sage_edge.plan(sage_edge.Params(epochs=2, **given), facts, Budget(12.0, 1e-5))
    assert plan.provable().epsilon == 12.0
    assert not plan.guarantee.per_end
    received = []
    out = train(plan, partition)
    assert out.state.memory.scores.shape == (library.num_nodes, library.num_classes)
    for release in plan.schedule.releases:
        edges = sage_edge.prepare(plan, partition.subgraphs[release.client])  # type: ignore[index]
        noisy = release.mechanism.apply(release.bound.enforce(edges), np.random.default_rng(0))
        received += noisy.tolist()
    truth = sp.csr_array(library.adjacency)
    right = np.mean([truth[u, v] for u, v in received])
    assert right > 0.8
    assert len(received) == pytest.approx(library.num_edges, rel=0.2)


def context(graph: Graph) -> CellContext:
    return CellContext("t", graph.name, graph, root=5, seeds=1, runtime=SerialRuntime())


def test_the_task_shares_edges_only_where_it_is_asked_to(library: Graph) -> None:
    nothing = {"method": "gcon", "release": "nothing", "label": "nothing"}
    methods = [{"method": "gap_edge", "hops": 1}, {"method": "gcon"}, nothing, {"method": "sage_edge"}, {"method": "lpgnn"}]
    params = node_classification.Params(
        methods=methods, trust=["curator", "own-client"], epsilons=[2.0], delta=1e-5, protocol="transductive",
        partition={"partition": "uniform", "clients": 3}, cut_edges="protected",
    )  # fmt: skip
    where = context(library)
    for cell in node_classification.cells(params, where):
        out = node_classification.run(params, cell, where)
        assert out.epsilon_provable <= 2.0 * (1 + 1e-12)
        assert out.account is not None
        assert out.facts.cut_edges_shared == (cell.world.trust is Trust.OWN_CLIENT)
        shared = Assumption.CUT_EDGES_SHARED in out.account.protection.assumptions
        assert shared == (cell.world.trust is Trust.OWN_CLIENT and cell.method != "lpgnn")
        text = explain.in_words(Ledger([out.account], out.releases))
        assert ("one end of an edge" in text) == (shared and cell.method in ("gap_edge", "gcon") and bool(out.releases))
        assert f"Total: ε = {out.epsilon_provable:.6g}" in text


def test_a_method_that_protects_nodes_is_refused(library: Graph) -> None:
    params = node_classification.Params(
        methods=[{"method": "features"}], trust=["own-client"], epsilons=[1.0], cut_edges="protected",
        partition={"partition": "uniform", "clients": 3},
    )  # fmt: skip
    where = context(library)
    with pytest.raises(PrivacyError, match=r"one node is protected .* cut_edges: dropped"):
        node_classification.run(params, node_classification.cells(params, where)[0], where)
    _, facts = situation(library)
    with pytest.raises(ScenarioError, match="edge-undirected"):
        gap_edge.plan(gap_edge.Params(relation="edge-directed"), facts, Budget(1.0, 1e-5))


@pytest.mark.parametrize("name", ["gap_edge", "gcon", "sage_edge"])
@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        ("directed", "directed; .* symmetrise"),
        ("loop", "self-loops: remove"),
        ("twice", "appears twice; .* keep each edge once"),
    ],
)
def test_a_graph_that_is_not_simple_gets_one_clear_error(name: str, break_it: str, words: str, library: Graph) -> None:
    module = plugins.load("methods", name)
    partition, facts = situation(library)
    plan = module.plan(module.Params(), facts, Budget(1.0, 1e-5))
    subgraph = partition.subgraphs[0]
    dense = subgraph.graph.adjacency.toarray()
    u, v = np.argwhere(dense)[0]
    if break_it == "loop":
        dense[u, u] = 1
    else:
        dense[u, v] = 0 if break_it == "directed" else 2
        dense[v, u] = 1 if break_it == "directed" else 2
    subgraph = type(subgraph)(0, _with(subgraph.graph, sp.csr_array(dense)), subgraph.nodes, None, subgraph.cut)
    with pytest.raises(DataError, match=words):
        module.prepare(plan, subgraph)


def _with(graph: Graph, adjacency: sp.csr_array) -> Graph:
    import dataclasses

    return dataclasses.replace(graph, adjacency=adjacency)


def test_bad_edges_between_clients_get_one_clear_error() -> None:
    inner = sp.csr_array((2, 2))
    with pytest.raises(DataError, match="given twice"):
        aggregation.with_cut(inner, np.array([0, 1]), np.array([[0, 3], [0, 3]]), 5)
    with pytest.raises(DataError, match="given twice"):
        aggregation.with_cut(inner, np.array([0, 1]), np.repeat([[0, 3]], 257, axis=0), 5)
    with pytest.raises(DataError, match="own graph"):
        aggregation.with_cut(inner, np.array([0, 1]), np.array([[0, 1]]), 5)
