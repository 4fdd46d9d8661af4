"""Label hop: what a node that asks reads, what one node can change, the noise over it, and that edges of any sign help."""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph import privacy
from fedgraph.errors import BudgetExceededError, ScenarioError
from fedgraph.federation import Federation, client
from fedgraph.learning import MeetingAnswers, MeetingReading, meetings
from fedgraph.methods import features, label_hop
from fedgraph.methods.base import Budget, Plan, PlanInbox, State
from fedgraph.methods.label_hop import answering_at
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, graph_without_edges
from tests.public_facts import public_facts
from tests.trainings import made, train


def met(graph: Graph, like: float, seed: int = 0) -> Graph:
    """The same nodes with about twelve neighbours each, of their own class with probability ``like``."""
    rng, n = np.random.default_rng(seed), graph.num_nodes
    dense = np.zeros((n, n), dtype=np.float32)
    for u in range(n):
        same = rng.random(6) < like
        own, others = np.flatnonzero(graph.labels == graph.labels[u]), np.flatnonzero(graph.labels != graph.labels[u])
        for friend in [rng.choice(own if s else others) for s in same]:
            dense[u, friend] = dense[friend, u] = friend != u
    return dataclasses.replace(graph, adjacency=sp.csr_array(dense))


planned = functools.partial(made, label_hop, protocol="asking")


def accuracy(setting: Federation, scores: np.ndarray) -> float:
    counts = setting.truth >= 0
    return float((scores.argmax(axis=1) == setting.truth)[counts].mean())


@pytest.mark.parametrize(("like", "epsilon"), [(0.9, 8.0), (0.0, 20.0)])
def test_edges_help_whatever_their_sign(like: float, epsilon: float, library: Graph) -> None:
    plan, partition, setting = planned(met(library, like), epsilon)
    state = train(plan, partition).state
    found = accuracy(setting, label_hop.predict(plan, state, setting.asked))
    alone = accuracy(setting, label_hop.predict(plan, state, graph_without_edges(setting.asked)))
    assert found >= alone + 0.05
    assert found > 0.75


ROWS, BOTH, LABELS = 0, 1, 3  # numbers of ways: rows alone, the first of those that hear both, labels alone


@pytest.mark.parametrize("way", [ROWS, BOTH, LABELS])
def test_what_was_released_is_priced_as_was_planned_whatever_was_chosen(
    way: int, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, partition, _ = planned(met(library, 0.9), 4.0)
    monkeypatch.setattr(label_hop, "promises", lambda ways, *_: np.eye(len(ways))[way])
    outcome = train(plan, partition)
    assert outcome.state.memory.way == way
    of_way = {ROWS: {"model_0"}, BOTH: {"labels_1", "model_1", "margins_1"}, LABELS: {"labels_3"}}[way]
    assert {line.path for line in outcome.releases} == {"meetings", "pilot", "judged", *of_way}
    paid = privacy.settle.of_releases(plan.guarantee, outcome.releases)
    assert paid.epsilon == pytest.approx(plan.provable().epsilon, rel=1e-9)
    assert paid.epsilon <= 4.0


@pytest.mark.parametrize("restarted", [True, False])
def test_a_client_refuses_another_way_after_its_worker_was_started_again(
    restarted: bool, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it released stands in the ledger, which comes back to it with the job."""
    plan, partition, _ = planned(library, 2.0, steps=5)
    honest, says, asked = label_hop.server, plan.made.says, client.run_blocks

    def by_a_new_worker(*given: Any) -> Any:
        client.forget(given[0], given[2])
        return asked(*given)

    def fickle(plan: Plan, state: State, inbox: PlanInbox) -> State:
        after = honest(plan, state, inbox)
        way = BOTH if inbox.round < says + 2 else ROWS
        memory = dataclasses.replace(after.memory, way=way)
        return dataclasses.replace(after, model={**after.model, "way": np.array([way])}, memory=memory)

    monkeypatch.setattr(label_hop, "server", fickle)
    if restarted:
        monkeypatch.setattr(client, "run_blocks", by_a_new_worker)
    with pytest.raises(BudgetExceededError, match=rf"round {says + 3}: .* another alternative"):
        train(plan, partition)


@pytest.mark.parametrize(("viewer", "epsilon"), [(Viewer.SERVER, 8.0), (Viewer.SERVER_SECURE_AGGREGATION, math.inf)])
def test_clients_answer_for_their_own_nodes(viewer: Viewer, epsilon: float, library: Graph) -> None:
    plan, partition, setting = planned(met(library, 0.9), epsilon, viewer, label_epsilon=2.5)
    state = train(plan, partition).state
    answers, known = state.memory.answers, np.setdiff1d(np.arange(library.num_nodes), setting.asking)
    assert not answers[setting.asking].any()
    assert (answers[known].sum(axis=1) == 1).all()
    right = answers[known, setting.held.labels[known]].mean()
    assert right == 1 if math.isinf(epsilon) else 0.8 < right < 1
    alone = label_hop.predict(plan, state, graph_without_edges(setting.asked))
    assert accuracy(setting, label_hop.predict(plan, state, setting.asked)) >= accuracy(setting, alone) - 0.05


def test_where_the_edges_tell_nothing_rows_keep_nearly_all_of_the_budget() -> None:
    """30 classes of 33 nodes lost 19 points to the learner of rows at ε = 4 while labels were answered whatever edges say."""
    facts = public_facts(1000, 40, 30, (1000,), Viewer.CURATOR_TRUSTED, public_name="nothing", asking=np.arange(50))
    for epsilon in (0.5, 4.0):
        budget = Budget(epsilon, 1e-3)
        plan, alone = label_hop.plan(label_hop.Params(), facts, budget), features.plan(features.Params(), facts, budget)
        whole = alone.schedule.releases[0].event.noise_multiplier / math.sqrt(alone.schedule.rounds)  # type: ignore[attr-defined]
        assert whole < plan.made.parts.ways[0].training.whole < 1.15 * whole


def test_votes_by_hand() -> None:
    shares, keep = np.array([0.5, 0.5]), 0.8
    reading = MeetingReading(shares, np.array([[1.5, 0.5], [0.5, 1.5]]), 2.0)
    by = MeetingAnswers(1, (keep * 2, (1 - keep) * 2), 2 * keep - 1)
    star = sp.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.float32))
    named = np.array([[0, 0], [1, 0], [1, 0]])
    said = np.log((0.2 + 0.6 * np.array([0.75, 0.25])) / 0.5)  # P(answer 0 | class of who asks) over P(answer 0)
    assert np.allclose(meetings.vote(star, named, reading, by, 0.0)[0], 2 * said)
    assert np.allclose(meetings.vote(star, named, reading, by, 0.5)[0], 2 * said / (1 + 0.5 * 0.36)), (
        "two neighbours have half in common"
    )
    assert np.allclose(meetings.vote(star, named, reading, by, 0.0)[1], 0), "a node that answers nothing says nothing"
    nothing = MeetingReading(shares, np.ones((2, 2)), 2.0)
    assert np.allclose(meetings.vote(star, np.array([[0, 0], [1, 0], [0, 1]]), nothing, by, 0.0), 0)
    heard = np.array([0.0, 1.0, 2.0])
    assert not meetings.information_of(nothing, by, 0.0, heard).any()
    alone, together = meetings.information_of(reading, by, 0.0, heard), meetings.information_of(reading, by, 0.1, heard)
    assert together[0] == 0 < together[1] == alone[1] < together[2] < alone[2] == 2 * alone[1]


def test_the_rival_without_rows_gives_all_to_labels_and_takes_the_majority(library: Graph) -> None:
    plan, partition, setting = planned(met(library, 0.9), 8.0, rows=False)
    assert plan.schedule.paths == ("labels",)
    assert plan.provable().epsilon == 8.0
    state = train(plan, partition).state
    found = label_hop.predict(plan, state, setting.asked)
    named = setting.asked.adjacency @ state.memory.answers
    heard = np.sort(named, axis=1)[:, -1] > np.sort(named, axis=1)[:, -2]
    assert (found.argmax(axis=1) == named.argmax(axis=1))[heard].all()
    assert accuracy(setting, found) > 0.8
    silent = dataclasses.replace(plan.facts, asks=False)
    with pytest.raises(ScenarioError, match="protocol: asking"):
        label_hop.plan(label_hop.Params(rows=False), silent, Budget(8.0, 1e-3))


PEOPLE = (4, 0.03, (0.4, 0.65, 0.8), (1.1, 2.6, 12.0, math.inf))
CAMPUS = (6, 0.075, (0.45, 0.72, 0.83), (1.13, 3.5, 14.3, math.inf))


@pytest.mark.parametrize(
    ("world", "apart", "degree", "seen", "promising"),
    [
        (PEOPLE, 0.0, 10.0, (0.85, 0.03, 60.0, 3.3 / 2000, 100), {ROWS}),
        (PEOPLE, 0.6, 20.0, (0.26, 0.03, 60.0, 3.3 / 2000, 100), {LABELS, 2}),
        (PEOPLE, 0.02, 3.0, (0.3, 0.03, 60.0, 3.3 / 2000, 100), {ROWS}),
        (PEOPLE, 0.6, 20.0, (0.7, 0.03, 60.0, 3.3 / 2000, 100), {1, 2}),
        # In the columns of all campuses: what a short training gets right is not held to be spoilt by those that nobody has.
        (CAMPUS, 0.3, 48.2, (0.36, 0.05, 100.0, 0.00156, 5639), {2, LABELS}),
    ],
)
def test_the_way_follows_what_rows_and_ties_tell(
    world: tuple[Any, ...], apart: float, degree: float, seen: tuple[Any, ...], promising: set[int]
) -> None:
    classes, noise, parts, noises = world
    reading = MeetingReading(np.full(classes, 1 / classes), np.ones((classes, classes)), degree, apart, noise).supposing(apart)
    answers = [None, *(answering_at(part, classes, replaces=False) for part in parts)]
    ways = [label_hop.Spending(by, v) for by, v in zip(answers, noises, strict=True)]
    assert int(label_hop.promises(ways, reading, 0.1, label_hop.Seen(*seen)).argmax()) in promising


@pytest.mark.parametrize("like", [0.9, 0.0])
def test_where_ties_are_all_that_is_known_labels_get_nearly_all(like: float, library: Graph) -> None:
    """And neighbours that were surely measured to be unlike speak against a class."""
    bare = dataclasses.replace(met(library, like), features=sp.csr_array(np.ones((library.num_nodes, 1), np.float32)))
    assert 0.9 < planned(bare, 1.0)[0].made.parts.ways[0].labels < 1
    plan, partition, setting = planned(bare, math.inf)
    assert plan.schedule.paths == ("labels", "meetings")
    state = train(plan, partition).state
    named = (1 if like else -1) * (setting.asked.adjacency @ state.memory.answers)
    assert np.allclose(label_hop.predict(plan, state, setting.asked), softmax(named, axis=1))
    strangers = label_hop.predict(plan, state, setting.asked.induced(np.arange(5)))
    shares = np.bincount(setting.held.labels[setting.held.labels >= 0], minlength=setting.held.num_classes)
    assert np.allclose(strangers, strangers[0]), "people without a tie to those that answered: one guess for all"
    assert np.abs(strangers[0] - shares / shares.sum()).max() < 0.06, "the shares, drawn to equal ones where they may be chance"
