"""A network of one's own: in how many examples a node is, what that costs, and that two thirds of the noise are found out."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning import rooted
from fedgraph.methods import own_model, sage_node
from fedgraph.methods.base import Budget, PlanStreams, examples
from fedgraph.privacy import MentionedGaussian, PoissonGaussian, Repeated, Unit, Viewer
from fedgraph.privacy.accounting.accountant import price
from fedgraph.types import Graph
from tests.graphs import zeroed
from tests.mutants import bench
from tests.mutants import methods as mutants
from tests.trainings import deal, train

DELTA = 1e-5
GCN = {"model": "torch_geometric.nn.GCN", "arguments": {"hidden_channels": 8, "num_layers": 2}}


@pytest.mark.parametrize("replaced", [False, True], ids=["zeroed", "replaced"])
@pytest.mark.parametrize(("cap", "degree"), [("all", 10), ("limit", 4), ("promised", 4)])
@pytest.mark.parametrize("hops", [1, 2])
def test_a_node_is_in_no_more_examples_than_are_priced(replaced: bool, cap: str, degree: int, hops: int) -> None:
    """Every root drawn and every node read, which no step does: the most that could be. A hub where nothing bounds degrees."""
    n, rng = 60, np.random.default_rng(0)
    dense = np.zeros((n, n))
    if cap == "all":
        dense = np.triu(rng.random((n, n)) < 0.1, 1).astype(float)
        dense[0] = 1
        dense[0, 0] = 0
    else:  # a tree in which nobody has more than four neighbours
        for child in range(1, n):
            dense[(child - 1) // 3, child] = 1
    one = sp.csr_array(np.maximum(dense, dense.T))
    other = one.toarray()
    if replaced and cap == "all":  # elsewhere a replaced node keeps the limit, too, among others
        other[0], other[:, 0] = 1 - other[0], 1 - other[:, 0]
        other[0, 0] = 0
    else:
        other[0], other[:, 0] = 0, 0
        if replaced:
            other[0, -degree:] = other[-degree:, 0] = 1
    rule = examples.rule(cap, degree, 1e9, hops, 0.5, replaced, n)
    assert rule.rate == 1

    def subgraphs(adjacency: Any) -> list[tuple[Any, Any]]:
        found = rooted.subgraphs(sp.csr_array(adjacency), np.arange(n), np.arange(n), lambda r, v: v >= 0, 10**6, hops, 0)
        return [
            (frozenset(nodes[nodes >= 0].tolist()), frozenset((nodes[a], nodes[b]) for a, b in arcs.T if nodes[a] >= 0))
            for nodes, arcs in zip(found.nodes, found.arcs, strict=True)
        ]

    changed = sum(a != b for a, b in zip(subgraphs(one), subgraphs(other), strict=True))
    assert 1 < changed <= rule.most


def test_without_mentions_a_node_is_in_its_own_example_alone_and_pays_what_a_row_pays() -> None:
    for replaced in (False, True):
        rule = examples.rule("all", 10, 0.0, 2, 0.2, replaced, 500)
        assert rule.most == 1
        assert rule.events(2.0) == (PoissonGaussian(2.0, 0.2, 1, replaced),)


@pytest.mark.parametrize(("degree", "hops"), [(2, 1), (2, 2), (5, 1), (5, 2), (128, 1), (20, 2)])
@pytest.mark.parametrize("rate", [0.005, 0.02, 0.2])
def test_no_price_is_looser_than_that_of_daigavane(degree: int, hops: int, rate: float) -> None:
    """The same subgraphs in the same expected batches: Rényi, without replacement, as published (Daigavane et al. 2021)."""
    n, steps, epsilon = 2000, 50, 4.0
    rule = examples.rule("promised", degree, 1e9, hops, rate, False, n)
    sigma, way = examples.noise_multiplier(rule, steps, epsilon, DELTA)
    ours = price(Repeated(rule.events(sigma)[way], steps), DELTA).epsilon
    theirs = sage_node.claimed_epsilon(sigma, round(rate * n), n, sage_node.claimed_subgraphs(degree, hops), steps, DELTA)
    assert 0.95 * epsilon < ours <= epsilon
    assert ours <= theirs


@pytest.mark.parametrize(("degree", "rate"), [(2, 0.3), (10, 0.05)])
def test_the_cheaper_of_two_prices_that_hold_is_taken(degree: int, rate: float) -> None:
    rule = examples.rule("promised", degree, 1e9, 1, rate, False, 500)
    mentioned, touched = rule.events(20.0)
    assert isinstance(mentioned, MentionedGaussian)
    assert isinstance(touched, PoissonGaussian)
    sigma, way = examples.noise_multiplier(rule, 30, 2.0, DELTA)
    costs = [price(Repeated(event, 30), DELTA).epsilon for event in rule.events(sigma)]
    assert costs[way] == min(costs) <= 2.0


def steps(plan: Any, partition: Any, round_: int, key: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(who is drawn, what the desk is given) in a round."""
    subgraph = partition.subgraphs[0]
    streams = PlanStreams(seeds.SecretSeed(bytes([key]) * 32), ("c", "client", 0, "round", round_))
    given: list[np.ndarray] = []

    class Kept:
        def release(self, path: str, value: Any) -> Any:
            given.append(value().astype(np.float64))
            return given[-1]

    model = own_model.start(plan, np.random.default_rng(0)).model
    loud = {"parameters": model["parameters"] + 2 * np.random.default_rng(1).normal(size=model["parameters"].size)}
    own_model.client(plan, own_model.prepare(plan, subgraph), loud, round_, streams, Kept())  # type: ignore[arg-type]
    return streams.drawn("batch", subgraph.nodes, plan.params.sampling_rate), given[0]


def test_a_node_moves_a_step_by_its_own_example_or_by_those_that_read_it(library: Graph) -> None:
    """Over rounds and nodes: by at most one clip where it was drawn, else by two for each that reads it; and some do."""
    _, partition, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    params = own_model.Params(**GCN, mentions=100.0, hops=2, sampling_rate=0.5, projection=8, steps=6, clip=0.1)
    plan = own_model.plan(params, facts, Budget(4.0, 1e-3))
    (rule,) = plan.made.rules
    assert 0 < rule.rate < 1
    read, n = [], facts.num_nodes
    for node, round_ in itertools.product((int(library.induced(np.arange(n)).degrees.argmax()), 3, 11), range(6)):
        drawn, before = steps(plan, partition, round_)
        _, after = steps(plan, partition.with_graphs(lambda held, node=node: zeroed(held.graph, node)), round_)
        moved = np.linalg.norm(before - after)
        if drawn[node]:
            assert moved <= params.clip * (1 + 1e-6)
        else:
            read.append(moved / (2 * params.clip))
    assert max(read) > 0, "somebody is read"
    assert max(read) <= (n - 1) * rule.rate  # far below: readers are drawn and near


def test_coins_of_pairs_have_the_rate_that_is_priced(library: Graph) -> None:
    _, partition, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    plan = own_model.plan(own_model.Params(**GCN, mentions=60.0, projection=8), facts, Budget(4.0, 1e-3))
    ids, (rule,) = partition.subgraphs[0].nodes, plan.made.rules
    pairs = np.stack([np.repeat(ids[:60], 60), np.tile(ids[60:120], 60)], axis=1)
    streams = PlanStreams(seeds.SecretSeed(bytes(32)), ("c", "client", 0, "round", 0))
    share = streams.drawn("mentions", pairs, rule.rate).mean()
    assert abs(share - rule.rate) < 4 * np.sqrt(rule.rate * (1 - rule.rate) / len(pairs))


_ROOTS = {"method": "own_model", "steps": 2, "projection": 0, "sampling_rate": 1.0, "clip": 0.5}
_HOPS = {"method": "own_model", "unit": "edge", "hops": 2, "steps": 2, "projection": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "viewer", "clients"), [(_ROOTS, Viewer.SERVER, 2), (_HOPS, Viewer.CURATOR_TRUSTED, 1)])
def test_two_thirds_of_the_noise_are_told_and_all_of_it_is_not(case: dict[str, object], viewer: Viewer, clients: int) -> None:
    """Judged by what the method itself shows to an attack, over runs (``tests.mutants.methods``)."""
    whole = mutants._Whole(case, viewer, clients)
    sound = bench.judge_bench_case(mutants._case_of(whole, 200), 0, 0.001)
    broken = bench.judge_bench_case(mutants._case_of(dataclasses.replace(whole, broken="noise × ⅔"), 200), 0, 0.001)
    assert not sound.accused
    assert broken.accused


def test_a_network_is_refused_before_any_noise_is_chosen(library: Graph) -> None:
    _, _, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    params = own_model.Params(model="torch_geometric.nn.MLP", arguments={"hidden_channels": 8, "num_layers": 2})
    with pytest.raises(ScenarioError, match=r"layer norms\.0 \(BatchNorm\).*use torch\.nn\.LayerNorm"):
        own_model.plan(params, facts, Budget(4.0, 1e-3))


def test_edges_come_in_at_the_public_graph(library: Graph) -> None:
    """Trained without edges, used with them."""
    setting, partition, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    shared = {"projection": 32, "steps": 60, "sampling_rate": 0.5, "learning_rate": 0.05}
    plan = own_model.plan(own_model.Params(model="torch_geometric.nn.SGConv", arguments={"K": 2}, **shared), facts,
                          Budget(np.inf, 1e-3))  # fmt: skip
    state = train(plan, partition).state
    asked = setting.asked
    alone = dataclasses.replace(asked, adjacency=sp.csr_array(asked.adjacency.shape, dtype=np.float32))
    scores = [own_model.predict(plan, state, g) for g in (asked, alone)]
    right, lonely = ((found.argmax(1) == asked.labels).mean() for found in scores)
    assert right >= lonely > 0.3
    assert not np.allclose(*scores)
    assert plan.guarantee.protection.unit is Unit.NODE
    found = own_model.module_of(plan, state)
    assert sum(p.numel() for p in found.parameters()) == state.model["parameters"].size


def test_a_promise_that_the_plan_does_not_use_is_not_stated(library: Graph) -> None:
    _, _, facts = deal(library, "inductive", Viewer.CURATOR_TRUSTED)
    alone, reading = (
        own_model.plan(own_model.Params(cap="promised", degree=3, mentions=m, projection=8), facts, Budget(4.0, 1e-3))
        for m in (0.0, 5.0)
    )
    assert alone.guarantee.protection.promised_degree is None
    assert reading.guarantee.protection.promised_degree == 3
    std, dearer = (p.schedule.releases[0].mechanism.std for p in (alone, reading))  # type: ignore[attr-defined]
    assert dearer > 2 * std
    less = dataclasses.replace(alone.schedule.releases[0], event=PoissonGaussian(std * 2, 0.2, 1, False))
    with pytest.raises(PrivacyError, match="which is more noise than it gets"):
        dataclasses.replace(alone, schedule=dataclasses.replace(alone.schedule, releases=(less,)))
