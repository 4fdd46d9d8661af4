"""A network of one's own: in how many examples a node is, what that costs, and that two thirds of the noise are found out."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.attacks.base import coin_game
from fedgraph.audit import lower_bound
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning import rooted
from fedgraph.methods import own_model, sage_node
from fedgraph.methods.base import examples, noisy_hops
from fedgraph.privacy import MentionedGaussian, PoissonGaussian, Repeated, Unit, Viewer
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.types import Graph, graph_without_edges
from tests.mutants import bench
from tests.mutants import methods as mutants
from tests.trainings import made, train

planned = functools.partial(made, own_model, protocol="inductive")
DELTA = 1e-5


def around(adjacency: np.ndarray, hops: int) -> list[tuple[Any, Any]]:
    """Nodes and edges of each node's example: every root is drawn and every node read."""
    n = len(adjacency)
    found = rooted.subgraphs(sp.csr_array(adjacency), np.arange(n), np.arange(n), lambda r, v: v >= 0, 10**6, hops, 0)
    return [
        (frozenset(nodes[nodes >= 0].tolist()), frozenset((nodes[a], nodes[b]) for a, b in arcs.T if nodes[a] >= 0))
        for nodes, arcs in zip(found.nodes, found.arcs, strict=True)
    ]


@pytest.mark.parametrize("replaced", [False, True], ids=["zeroed", "replaced"])
@pytest.mark.parametrize(("cap", "degree"), [("all", 10), ("limit", 4), ("promised", 4)])
@pytest.mark.parametrize("hops", [1, 2])
def test_a_node_is_in_no_more_examples_than_are_priced(replaced: bool, cap: str, degree: int, hops: int) -> None:
    """Where all are drawn and read, which no step does: the most that could be. A hub where nothing bounds degrees."""
    n, rng = 60, np.random.default_rng(0)
    one = np.triu(rng.random((n, n)) < 0.1, 1).astype(float) if cap == "all" else np.zeros((n, n))
    if cap == "all":
        one[0, 1:] = 1
    else:  # a tree in which nobody has more than four neighbours
        one[(np.arange(1, n) - 1) // 3, np.arange(1, n)] = 1
    one = np.maximum(one, one.T)
    other = one.copy()
    other[0], other[:, 0] = 0, 0
    if replaced:  # elsewhere than under "all" it keeps the limit, too, among others
        now = np.flatnonzero(one[0] == 0)[1:] if cap == "all" else np.arange(n - degree, n)
        other[0, now] = other[now, 0] = 1
    rule = examples.rule(cap, degree, 1e9, hops, 0.5, replaced, n)
    assert rule.rate == 1
    assert 1 < sum(a != b for a, b in zip(around(one, hops), around(other, hops), strict=True)) <= rule.most


def test_without_mentions_a_node_is_in_its_own_example_alone_and_pays_what_a_row_pays() -> None:
    for replaced in (False, True):
        rule = examples.rule("all", 10, 0.0, 2, 0.2, replaced, 500)
        assert rule.most == 1
        assert rule.events(2.0) == (PoissonGaussian(2.0, 0.2, 1, replaced),)


@pytest.mark.parametrize(("degree", "hops", "rate"), [(2, 1, 0.2), (5, 2, 0.02), (128, 1, 0.005), (20, 2, 0.02)])
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
    assert [type(event) for event in rule.events(20.0)] == [MentionedGaussian, PoissonGaussian]
    sigma, way = examples.noise_multiplier(rule, 30, 2.0, DELTA)
    costs = [price(Repeated(event, 30), DELTA).epsilon for event in rule.events(sigma)]
    assert costs[way] == min(costs) <= 2.0


@pytest.mark.slow
def test_two_thirds_of_the_noise_are_told_and_all_of_it_is_not() -> None:
    """Judged by what the method itself shows to an attack, over runs (``tests.mutants.methods``)."""
    roots = {"method": "own_model", "steps": 2, "projection": 0, "sampling_rate": 1.0, "clip": 0.5}
    whole = mutants._Whole(roots, Viewer.SERVER, 2)
    sound = bench.judge_bench_case(mutants._case_of(whole, 200), 0, 0.001)
    broken = bench.judge_bench_case(mutants._case_of(dataclasses.replace(whole, broken="noise × ⅔"), 200), 0, 0.001)
    assert not sound.accused
    assert broken.accused


def test_edges_show_what_is_priced_and_with_two_thirds_of_the_noise_more(
    library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By 4,500 coins and the ratios that no test beats. The bound of a sound plan is above its ε with a chance of 1e-9."""
    plan, partition, setting = made(own_model, library, 4.0, unit="edge", steps=1, projection=0)

    def shown() -> float:
        scores: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for run in range(30):
            rng = np.random.default_rng(run)
            found = coin_game.draw_canary_edges(setting.held, partition, plan.params.protects, 150, rng)
            state = train(plan, coin_game.plant(partition, found), cell=str(run)).state
            ratios = noisy_hops.evidence(plan, state, setting.held, found.pairs)
            for side, there in zip(scores, (found.coins, ~found.coins), strict=True):
                side.append(ratios[there])
        worlds = lower_bound.LowerBoundScores(*map(np.concatenate, scores))
        return lower_bound.gaussian().bound(worlds, plan.guarantee.delta, 1e-9)

    assert shown() <= 4
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std * 2 / 3), v, rng))
    assert shown() > 4


def test_a_network_is_refused_before_any_noise_is_chosen(library: Graph) -> None:
    with pytest.raises(ScenarioError, match=r"layer norms\.0 \(BatchNorm\).*use torch\.nn\.LayerNorm"):
        planned(library, 4.0, model="torch_geometric.nn.MLP", arguments={"hidden_channels": 8, "num_layers": 2})


def test_edges_come_in_at_the_public_graph(library: Graph) -> None:
    """Trained without edges, used with them."""
    shared = {"projection": 32, "steps": 60, "sampling_rate": 0.5, "learning_rate": 0.05}
    plan, partition, setting = planned(library, np.inf, model="torch_geometric.nn.SGConv", arguments={"K": 2}, **shared)
    state = train(plan, partition).state
    asked = setting.asked
    scores = [own_model.predict(plan, state, g) for g in (asked, graph_without_edges(asked))]
    right, lonely = ((found.argmax(1) == asked.labels).mean() for found in scores)
    assert right >= lonely > 0.3
    assert not np.allclose(*scores)
    assert plan.guarantee.protection.unit is Unit.NODE
    found = own_model.module_of(plan, state)
    assert sum(p.numel() for p in found.parameters()) == state.model["parameters"].size


def test_a_promise_that_the_plan_does_not_use_is_not_stated(library: Graph) -> None:
    alone, reading = (planned(library, 4.0, cap="promised", degree=3, mentions=m, projection=8)[0] for m in (0.0, 5.0))
    assert alone.guarantee.protection.promised_degree is None
    assert reading.guarantee.protection.promised_degree == 3
    std, dearer = (p.schedule.releases[0].mechanism.std for p in (alone, reading))  # type: ignore[attr-defined]
    assert dearer > 2 * std
    less = dataclasses.replace(alone.schedule.releases[0], event=PoissonGaussian(std * 2, 0.2, 1, False))
    with pytest.raises(PrivacyError, match="which is more noise than it gets"):
        dataclasses.replace(alone, schedule=dataclasses.replace(alone.schedule, releases=(less,)))
