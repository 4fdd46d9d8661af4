"""Blink: the posterior by hand, what an edge costs, noise that is found out, and a guess that beats no edges."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph
from fedgraph_zoo import degree_prior
from fedgraph_zoo.methods import blink
from tests.trainings import placed, train

SITUATION = blink.OFFERS.situations[0]


def planned(graph: Graph, epsilon: float, reading: str = "provable", **settings: object):  # type: ignore[no-untyped-def]
    partition, facts, asked = placed(SITUATION, Trust.CURATOR, graph)
    return blink.plan(blink.Params(epochs=40, **settings), facts, Budget(epsilon, 1e-5, reading)), partition, asked  # type: ignore[arg-type]


@pytest.mark.parametrize("answers", [1, 2])
def test_the_posterior_is_bayes_rule(answers: int) -> None:
    n, strength, rng = 12, 1.3, np.random.default_rng(3)
    degrees = rng.integers(1, 6, n).astype(float)
    upper = np.triu(rng.integers(0, answers + 1, (n, n)), k=1)
    yeses = upper + upper.T
    found = degree_prior.links_by_degree_prior(degrees, sp.csr_array(yeses), answers, strength, "hybrid").toarray()
    nothing = sp.csr_array((n, n), dtype=yeses.dtype)
    prior = degree_prior.links_by_degree_prior(degrees, nothing, answers, 0.0, "soft").toarray()
    true = np.exp(strength) / (1 + np.exp(strength))
    there = true**yeses * (1 - true) ** (answers - yeses)
    away = (1 - true) ** yeses * true ** (answers - yeses)
    posterior = prior * there / (prior * there + (1 - prior) * away)
    np.fill_diagonal(posterior, 0)
    kept = found > 0
    assert found[kept] == pytest.approx(posterior[kept], rel=1e-5)
    assert kept.sum() == 2 * int(np.triu(posterior, 1).sum())
    assert posterior[kept].min() >= posterior[~kept & ~np.eye(n, dtype=bool)].max() - 1e-9
    hard = degree_prior.links_by_degree_prior(degrees, sp.csr_array(yeses), answers, strength, "hard").toarray()
    assert np.array_equal(hard > 0, posterior > 0.5)
    soft = degree_prior.links_by_degree_prior(degrees, sp.csr_array(yeses), answers, strength, "soft").toarray()
    assert soft == pytest.approx(posterior, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("reports", ["both", "one"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_an_edge_is_in_two_lists(library: Graph, reports: str, epsilon: float) -> None:
    """Published noise protects one list at ε, and so an edge at up to 2ε; provable noise an edge at ε."""
    plan, _, _ = planned(library, epsilon, reports=reports)
    split = plan.made
    assert split.answers * split.answer + 2 * split.degree == pytest.approx(epsilon)
    assert 0.9 * epsilon < plan.provable().epsilon <= epsilon
    published, _, _ = planned(library, epsilon, "published", reports=reports)
    split = published.made
    assert split.answer + split.degree == pytest.approx(epsilon) == pytest.approx(published.epsilon_published)
    assert 1.4 * epsilon * (1 if reports == "both" else 0.7) < published.provable().epsilon <= 2 * epsilon


class Tapped:
    """A desk that keeps what meets the noise."""

    def __init__(self, plan: Plan) -> None:
        self.bounds = {release.path: release.bound for release in plan.schedule.releases}
        self.met: list[tuple[str, np.ndarray]] = []

    def release(self, path: str, value: np.ndarray) -> np.ndarray:
        self.met.append((path, self.bounds[path].enforce(value)))
        return value


@pytest.mark.parametrize("reports", ["both", "one"])
def test_what_meets_the_noise_is_what_is_priced(library: Graph, reports: str) -> None:
    """Over neighbouring graphs: every cell that changes costs ε_a, every unit of a degree ε_d; together the stated ε."""
    plan, partition, _ = planned(library, 2.0, reports=reports)
    whole, worst = partition.subgraphs[0], 0.0
    for one, two in np.argwhere(np.triu(whole.graph.adjacency.toarray(), 1))[::60]:
        adjacency = whole.graph.adjacency.toarray()
        adjacency[one, two] = adjacency[two, one] = 0
        gone = dataclasses.replace(whole, graph=dataclasses.replace(whole.graph, adjacency=sp.csr_array(adjacency)))
        desks = [Tapped(plan), Tapped(plan)]
        for desk, held in zip(desks, (whole, gone), strict=True):
            blink.client(plan, blink.prepare(plan, held), {}, 0, None, desk)  # type: ignore[arg-type]
        loss = 0.0
        for (path, here), (_, there) in zip(desks[0].met, desks[1].met, strict=True):
            if path == "degrees":
                loss += plan.made.degree * np.abs(here - there).sum()
            else:
                loss += plan.made.answer * len({*map(tuple, here)} ^ {*map(tuple, there)})
        worst = max(worst, loss)
    assert worst == pytest.approx(plan.provable().epsilon, rel=1e-9) == pytest.approx(2.0)


def test_answers_are_flipped_as_often_as_they_are_priced(library: Graph) -> None:
    """Of pairs without an edge a share of 1/(e^ε + 1) is answered yes, by each end apart; degrees have Laplace noise."""
    plan, partition, _ = planned(library, 3.0)
    memory = train(plan, partition).state.memory
    split, n = plan.made, library.num_nodes
    free = np.triu(library.adjacency.toarray() == 0, 1)
    yes = np.triu(memory.yeses.toarray(), 1)[free]
    flip = 1 / (np.exp(split.answer) + 1)
    assert yes.mean() / 2 == pytest.approx(flip, abs=5 * np.sqrt(flip / (2 * yes.size)))
    assert (yes == 2).mean() == pytest.approx(flip**2, abs=5 * np.sqrt(flip**2 / yes.size))
    beyond = np.abs(memory.degrees - library.degrees[partition.subgraphs[0].nodes.argsort()])
    assert beyond.mean() == pytest.approx(1 / split.degree, rel=5 / np.sqrt(n))


def test_without_noise_it_is_a_gcn_on_the_graph_and_much_noise_is_no_graph(library: Graph) -> None:
    plan, partition, asked = planned(library, np.inf)
    scores = blink.predict(plan, train(plan, partition).state, asked)
    assert (scores.argmax(axis=1) == library.labels).mean() > 0.8
    none, partition, asked = planned(library, 1.0, links="none")
    assert none.provable().epsilon == 0
    without = blink.predict(none, train(none, partition).state, asked)
    plan, partition, asked = planned(library, 0.2)
    little = blink.predict(plan, train(plan, partition).state, asked)
    assert (little.argmax(axis=1) == without.argmax(axis=1)).mean() > 0.8


def test_the_attack_reads_answers_and_degrees(library: Graph) -> None:
    """At a large ε nearly every pair is told; without a release nothing is."""
    plan, partition, _ = planned(library, 12.0)
    state = train(plan, partition).state
    edges = np.argwhere(np.triu(library.adjacency.toarray(), 1))[:15]
    rng = np.random.default_rng(0)
    pairs = rng.integers(library.num_nodes, size=(40, 2))
    others = pairs[(pairs[:, 0] != pairs[:, 1]) & (library.adjacency[pairs[:, 0], pairs[:, 1]] == 0)][:15]
    asked = np.concatenate([edges, others])
    known = library.adjacency.tolil()
    for one, two in edges:
        known[one, two] = known[two, one] = 0
    found = blink.evidence(plan, state, dataclasses.replace(library, adjacency=sp.csr_array(known)), asked)
    assert found is not None
    assert ((found > 0) == (np.arange(len(asked)) < len(edges))).mean() > 0.95
    none, partition, _ = planned(library, 1.0, links="none")
    assert blink.evidence(none, train(none, partition).state, library, asked) is None
