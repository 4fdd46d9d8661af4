"""Blink and DPDGC: what an edge costs and moves, as published and proven; noise that is found out, and what attacks read."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.methods.base import Plan
from fedgraph.privacy import sensitivity
from fedgraph.privacy.sensitivity import EndsClippedSum, EndsSimplexRows
from fedgraph.privacy.units import Relation
from fedgraph.types import Graph
from fedgraph_zoo import degree_prior
from fedgraph_zoo.methods import blink, dpdgc
from tests.trainings import made, train

blinked = functools.partial(made, blink, delta=1e-5, epochs=40)
convolved = functools.partial(made, dpdgc, delta=1e-5)


def right(scores: np.ndarray, graph: Graph) -> float:
    return float((scores.argmax(axis=1) == graph.labels).mean())


@pytest.mark.parametrize(("method", "epsilon", "least"), [(blink, 12.0, 0.95), (dpdgc, np.inf, 0.9)], ids=["blink", "dpdgc"])
def test_an_attack_reads_what_is_released(method: Any, epsilon: float, least: float, library: Graph) -> None:
    """Answers and degrees at a large ε, rows without noise: they tell an edge from none. Without a release nothing does."""
    plan, partition, _ = made(method, library, epsilon, delta=1e-5)
    edges = np.argwhere(np.triu(library.adjacency.toarray(), 1))[::40]
    pairs = np.random.default_rng(0).integers(library.num_nodes, size=(60, 2))
    others = pairs[(pairs[:, 0] != pairs[:, 1]) & (library.adjacency[pairs[:, 0], pairs[:, 1]] == 0)][: len(edges)]
    known = library.adjacency.tolil()
    for one, two in edges:
        known[one, two] = known[two, one] = 0
    given, asked = dataclasses.replace(library, adjacency=sp.csr_array(known)), np.concatenate([edges, others])
    found = method.evidence(plan, train(plan, partition).state, given, asked)
    assert ((found > 0) == (np.arange(len(asked)) < len(edges))).mean() > least
    none, partition, _ = made(method, library, 1.0, delta=1e-5, **({"links": "none"} if method is blink else {"steps": 0}))
    assert none.provable().epsilon == 0
    state = train(none, partition).state
    assert method.evidence(none, state, library, asked) is None
    assert method.predict(none, state, library).shape == (library.num_nodes, 4)


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
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_an_edge_is_in_two_lists(library: Graph, reports: str, epsilon: float) -> None:
    """Published noise protects one list at ε, and so an edge at up to 2ε; provable noise an edge at ε."""
    plan, _, _ = blinked(library, epsilon, reports=reports)
    split = plan.made
    assert split.answers * split.answer + 2 * split.degree == pytest.approx(epsilon)
    assert 0.9 * epsilon < plan.provable().epsilon <= epsilon
    published, _, _ = blinked(library, epsilon, reading="published", reports=reports)
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
    plan, partition, _ = blinked(library, 2.0, reports=reports)
    whole, worst = partition.subgraphs[0], 0.0
    for one, two in np.argwhere(np.triu(whole.graph.adjacency.toarray(), 1))[::150]:
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
    plan, partition, _ = blinked(library, 3.0)
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
    scores = []
    for epsilon, settings in ((np.inf, {}), (1.0, {"links": "none"}), (0.2, {})):
        plan, partition, setting = blinked(library, epsilon, **settings)
        scores.append(blink.predict(plan, train(plan, partition).state, setting.asked))
    assert right(scores[0], library) > 0.8
    assert (scores[2].argmax(axis=1) == scores[1].argmax(axis=1)).mean() > 0.8


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_published_noise_counts_one_row_of_two(library: Graph, epsilon: float) -> None:
    """Half of what a sum moves by, and half of what the rows move by: μ is twice the published one."""
    plan, _, _ = convolved(library, epsilon)
    assert 0.99 * epsilon < plan.provable().epsilon <= epsilon
    published, _, _ = convolved(library, epsilon, reading="published")
    assert published.epsilon_published == pytest.approx(epsilon, rel=1e-3)
    assert published.provable().epsilon > 1.8 * epsilon
    stds = [[r.mechanism.std for r in p.schedule.releases] for p in (plan, published)]
    assert stds[0] == pytest.approx([2 * s for s in stds[1]])


def test_an_edge_turns_two_rows(library: Graph) -> None:
    rng, clip = np.random.default_rng(0), 0.7
    sums, rows = EndsClippedSum(clip, 9, "fedgraph.learning.per_sample.clipped_sum"), EndsSimplexRows(9)
    there, away = rng.dirichlet(np.full(4, 0.01), (2, 9))
    away[2:] = there[2:]
    moved = np.linalg.norm(rows.enforce(there) - rows.enforce(away))
    assert moved <= sensitivity.l2(rows, Relation.EDGE_UNDIRECTED) == 2.0
    assert np.linalg.norm(rows.enforce(np.eye(9)) - rows.enforce(np.eye(9)[[1, 0, *range(2, 9)]])) == pytest.approx(2.0)
    assert sensitivity.l2(sums, Relation.EDGE_UNDIRECTED) == pytest.approx(4 * clip)
    assert np.array_equal(rows.enforce(np.zeros((3, 4))), np.zeros((3, 4)))  # nodes of other clients stay zero
    for bound in (sums, rows):
        for relation in (Relation.NODE_ZERO_OUT, Relation.EDGE_DIRECTED):
            with pytest.raises(PrivacyError):
                sensitivity.l2(bound, relation)


@pytest.mark.parametrize("k", [2, 5])
def test_k_edges_of_one_node_are_protected_together(library: Graph, k: int) -> None:
    """They turn k + 1 rows, so the noise grows by (k + 1)/2 and its root, and one edge costs less."""
    one, _, _ = convolved(library, 2.0)
    several, partition, _ = convolved(library, 2.0, neighbours=k)
    ratios = [b.mechanism.std / a.mechanism.std for a, b in zip(one.schedule.releases, several.schedule.releases, strict=True)]
    assert ratios == pytest.approx([(k + 1) / 2, ((k + 1) / 2) ** 0.5])
    assert several.provable().epsilon < one.provable().epsilon <= 2.0
    (said,) = several.notes
    assert 1.99 < float(said.split("ε ≤ ")[1].split(";")[0]) <= 2.0
    clear, _, _ = convolved(library, np.inf)
    graph = partition.subgraphs[0].graph
    shape = dpdgc.start(clear, np.random.default_rng(1)).model["parameters"].shape
    model = {"parameters": (300 * np.random.default_rng(1).normal(size=shape)).astype(np.float32)}

    def met(adjacency: np.ndarray) -> np.ndarray:
        held = dataclasses.replace(partition.subgraphs[0], graph=dataclasses.replace(graph, adjacency=sp.csr_array(adjacency)))
        desk = SimpleNamespace(release=lambda path, value: value())
        return np.asarray(dpdgc.client(clear, dpdgc.prepare(clear, held), model, clear.params.steps, None, desk)["rows"])  # type: ignore[arg-type]

    largest, whole = 0.0, graph.adjacency.toarray()
    for node in np.flatnonzero(np.diff(graph.adjacency.indptr) >= k)[:8]:
        gone = whole.copy()
        others = np.flatnonzero(whole[node])[:k]
        gone[node, others] = gone[others, node] = 0
        largest = max(largest, float(np.linalg.norm(met(whole) - met(gone))))
    assert 0.6 * (2 * (k + 1)) ** 0.5 < largest <= (2 * (k + 1)) ** 0.5


def test_rows_without_noise_know_the_classes(library: Graph) -> None:
    plan, partition, _ = convolved(library, np.inf)
    released = train(plan, partition).state.memory.released
    assert released.sum(axis=1) == pytest.approx(np.ones(library.num_nodes))
    assert right(released, library) > 0.5


def test_an_edge_of_a_batch_is_no_single_row(library: Graph) -> None:
    plan, _, _ = convolved(library, 2.0, batch=20, steps=30)
    step, *others = plan.schedule.releases
    one_row = dataclasses.replace(step, event=dataclasses.replace(step.event, touched_rows=1))  # type: ignore[type-var]
    with pytest.raises(PrivacyError, match="release 'gradient' is priced as"):
        dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, releases=(one_row, *others)))
