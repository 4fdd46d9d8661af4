"""PrivGnn: what one node moves an answer by, whose coin decides, the noise that is there, and the student."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy.stats import kstest

from fedgraph.methods.base import Plan, PlanStreams
from fedgraph.privacy.desk import Desk
from fedgraph.types import Graph, Partition
from fedgraph_zoo.methods import privgnn
from tests.graphs import zeroed
from tests.trainings import made, train

planned = functools.partial(made, privgnn, protocol="inductive", queries=5, teacher_epochs=10, student_epochs=30)


def answer(plan: Plan, partition: Partition, graph: Graph, secret: int, noise: int = 0) -> np.ndarray:
    """One released answer of the first round. secret: names the coins."""
    model = privgnn.start(plan, np.random.default_rng(0)).model
    subgraph = dataclasses.replace(partition.subgraphs[0], graph=graph)
    desk = Desk("c", 0, 0, plan.schedule.releases, np.random.default_rng(noise))
    streams = PlanStreams(secret, ("c", "client", 0, "round", 0))
    return privgnn.client(plan, privgnn.prepare(plan, subgraph), model, 0, streams, desk)["answer"].value


def test_a_node_that_is_not_drawn_moves_nothing_and_one_that_is_moves_less_than_is_priced(library: Graph) -> None:
    """By the node's own coin: what is left after zero-out is what would have been without it."""
    plan, partition, _ = planned(library, np.inf, sampling_rate=0.5)
    graph, largest, still = partition.subgraphs[0].graph, 0.0, 0
    for secret in range(3):
        coins = PlanStreams(secret, ("c", "client", 0, "round", 0)).generator("batch").random(graph.num_nodes) < 0.5
        whole = answer(plan, partition, graph, secret)
        for node in range(0, 60, 12):
            moved = float(np.linalg.norm(whole - answer(plan, partition, zeroed(graph, node), secret)))
            largest = max(largest, moved)
            still += not coins[node]
            assert coins[node] or moved < 1e-6  # sums of neighbours in another order
    assert still > 3
    assert 0 < largest <= math.sqrt(2)


def test_two_posteriors_may_be_the_square_root_of_two_apart(library: Graph) -> None:
    """A teacher on one node says that node's label, and all else where it is gone: the published Δ = 1 does not cover it."""
    plan, partition, _ = planned(library, np.inf, sampling_rate=1.0, neighbours=1, teacher_epochs=200)
    graph = partition.subgraphs[0].graph
    model = privgnn.start(plan, np.random.default_rng(0)).model
    like = (privgnn.prepare(plan, partition.subgraphs[0]).rows @ plan.made.rows[model["queries"][0]].T).toarray().ravel()
    first, second = np.argsort(-like, kind="stable")[:2]
    labels = graph.labels.copy()
    labels[first], labels[second] = 0, 1
    world = dataclasses.replace(graph, labels=labels)
    moved = np.linalg.norm(answer(plan, partition, world, 0) - answer(plan, partition, zeroed(world, int(first)), 0))
    assert 1.1 < moved <= math.sqrt(2)
    release = planned(library, 2.0)[0].schedule.releases[0]
    assert release.mechanism.std / release.event.noise_multiplier == pytest.approx(math.sqrt(2))  # type: ignore[attr-defined]


def test_the_noise_is_the_planned_one(library: Graph) -> None:
    """Of 120 answers of one teacher."""
    plan, partition, _ = planned(library, 2.0, teacher_epochs=1)
    clear, _, _ = planned(library, np.inf, teacher_epochs=1)
    graph = partition.subgraphs[0].graph
    exact = answer(clear, partition, graph, 0)
    assert np.array_equal(answer(clear, partition, graph, 0, 1), exact), "the same coins give the same teacher"
    draws = np.array([answer(plan, partition, graph, 0, noise) - exact for noise in range(120)])
    noise = draws.ravel() / plan.schedule.releases[0].mechanism.std  # type: ignore[attr-defined]
    assert kstest(noise, "norm").pvalue > 1e-3
    assert kstest(noise * 3 / 2, "norm").pvalue < 1e-3, "two thirds of the noise must be told apart"


def test_the_published_price_counts_half_of_what_a_posterior_moves(library: Graph) -> None:
    claimed = 8.0
    plan, _, _ = planned(library, claimed, reading="published")
    assert plan.epsilon_published == pytest.approx(claimed, rel=1e-3)
    assert plan.provable().epsilon > claimed
    proven, _, _ = planned(library, claimed)
    assert proven.provable().epsilon <= claimed
    assert proven.epsilon_published < claimed * 1.2


def test_without_noise_the_student_learns_from_answers_alone(library: Graph) -> None:
    plan, partition, setting = planned(library, np.inf, queries=40, sampling_rate=0.5, teacher_epochs=30, student_epochs=100)
    state = train(plan, partition).state
    scores = privgnn.predict(plan, state, setting.asked)
    assert (scores.argmax(axis=1) == setting.truth)[setting.truth >= 0].mean() > 0.6
    blind = dataclasses.replace(plan.made.public, labels=np.full(plan.made.public.num_nodes, -1))
    unlabelled = dataclasses.replace(plan, made=dataclasses.replace(plan.made, public=blind))
    assert np.array_equal(scores, privgnn.predict(unlabelled, state, setting.asked)), "public labels are not read"
