"""Meetings of classes and masked answers: what one node changes, compared with what is stated, and the noise that covers it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest

from fedgraph.errors import UnboundedValueError
from fedgraph.learning import meetings
from fedgraph.privacy.mechanisms.local_bits import MASKED_LABEL, MaskedResponse
from fedgraph.privacy.private_counts import MeetingCounts
from fedgraph.privacy.units import Relation


def some_graph(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    dense = np.triu(rng.random((n, n)) < rng.choice([0.1, 0.3, 0.7]), 1)
    if kind == "hub":
        dense[0, 1:] = True
    if kind == "stars":
        dense[:] = False
        dense[0, 1 : n // 2], dense[1, n // 2 :] = True, True
    return (dense | dense.T).astype(np.float32)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("relation", [Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE])
def test_one_node_changes_the_meetings_by_at_most_what_is_stated(relation: Relation, by_class: bool) -> None:
    rng, worst, classes = np.random.default_rng(0), 0.0, 3
    for trial in range(60):
        n = int(rng.integers(6, 30))
        graph = some_graph(rng, n, ["plain", "hub", "stars"][trial % 3])
        labels, ids = rng.integers(-1, classes, size=n), rng.permutation(1000)[:n]
        node = int(rng.integers(n)) if trial % 2 else 0
        other, changed = graph.copy(), labels.copy()
        other[node], other[:, node] = 0, 0
        changed[node] = -1
        if relation is Relation.NODE_REPLACE:
            row = (rng.random(n) < 0.6).astype(np.float32)
            row[node] = 0
            other[node], other[:, node] = row, row
            changed[node] = rng.integers(classes)
        counted = MeetingCounts(n, classes, by_class)
        before = meetings.count(sp.csr_array(graph), labels, ids, counted)
        after = meetings.count(sp.csr_array(other), changed, ids, counted)
        assert np.abs(before - after).max() <= 1
        worst = max(worst, float(np.linalg.norm(before - after)))
    stated = counted.change(relation)
    assert worst <= stated + 1e-9
    assert worst >= 0.6 * stated, "the bound is nearly met, so the noise is not wasted"


def test_an_edge_is_kept_whatever_the_others_are() -> None:
    rng = np.random.default_rng(1)
    labels, counted = np.array([0, 1]), MeetingCounts(2, 2, by_class=False)
    pairs = rng.permutation(5000)[: 2 * 600].reshape(-1, 2)
    one = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
    found = np.array([meetings.count(one, labels, pair, counted)[2:].reshape(-1, 2)[:, 1] for pair in pairs])
    for number, rate in enumerate(counted.rates):
        assert binomtest(int(found[:, number].sum()), len(pairs), rate / 2).pvalue > 1e-4


def friends(n: int, classes: int, chosen: int, alike: float) -> tuple[sp.csr_array, np.ndarray]:
    """(graph, labels): everybody chose so many friends, of the own class with this probability, else of any."""
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=n)
    one = np.repeat(np.arange(n), chosen)
    own = [np.flatnonzero(labels == k) for k in range(classes)]
    like = np.array([rng.choice(own[labels[u]]) for u in one])
    two = np.where(rng.random(one.size) < alike, like, rng.integers(n, size=one.size))
    graph = sp.csr_array((np.ones(one.size, np.float32), (one, two)), shape=(n, n))
    return sp.csr_array(((graph + graph.T) > 0).astype(np.float32)), labels


def test_numbers_are_read_as_edges_and_noise_is_not() -> None:
    """A graph of 2,000 nodes with 12 neighbours each, of which half are of the own class in place of a quarter."""
    rng, n, classes = np.random.default_rng(0), 2000, 4
    graph, labels = friends(n, classes, 6, 1 / 3)
    for by_class in (False, True):
        counted = MeetingCounts(n, classes, by_class)
        exact = meetings.count(graph, labels, np.arange(n), counted)
        for std in (0.01, 10.0):
            found = meetings.read(exact + std * rng.standard_normal(exact.size), std, counted, n)
            assert 8 < found.degree < 14
            assert np.diag(found.affinity) == pytest.approx(np.full(classes, 2.0), rel=0.25)
            assert found.affinity[0, 1] == pytest.approx(2 / 3, rel=0.25)
        lost = meetings.read(exact + 1e5 * rng.standard_normal(exact.size), 1e5, counted, n)
        assert lost.error == pytest.approx(0.3 * (1 - lost.shares @ lost.shares)), "where noise covers everything"
        assert lost.apart == pytest.approx(0.25 * (1 - lost.shares @ lost.shares)), "what is likely is believed"
        assert np.isfinite(meetings.read(np.full(counted.length, -50.0), 5.0, counted, n).affinity).all(), (
            "noise may make counts negative"
        )
        assert np.isfinite(meetings.read(np.full(counted.length, 9e3), 5.0, counted, n).affinity).all(), (
            "or larger than the classes"
        )


@pytest.mark.parametrize("value", [np.nan, -1, 0.5, 11])
def test_what_cannot_be_a_matching_number_is_refused(value: float) -> None:
    counted = MeetingCounts(10, 2, by_class=False)
    counted.enforce(np.zeros(counted.length))
    for wrong in (np.eye(1, counted.length)[0] * value, np.zeros(counted.length + 1)):
        with pytest.raises(UnboundedValueError):
            counted.enforce(wrong)


def probabilities(response: MaskedResponse, label: int) -> dict[tuple[int, ...], float]:
    """Of each set of values that may be named, by the formula."""
    c, k, (a, b) = response.num_values, response.size, response.odds
    sets = list(itertools.combinations(range(c), k))
    return {named: (1 if label == MASKED_LABEL else a if label in named else b) / len(sets) for named in sets}


def losses(response: MaskedResponse) -> list[float]:
    worlds = [
        list(probabilities(response, k).values()) for k in ([MASKED_LABEL, 0, 1] if response.replaces else [MASKED_LABEL, 0])
    ]
    return [float(np.log(np.array(a) / b).max()) for a in worlds for b in worlds]


def test_no_answer_is_likelier_by_more_than_e_to_the_epsilon() -> None:
    for epsilon, classes, replaces in itertools.product((0.05, 0.7, 1.6, 2.5, 6.0), (2, 6, 11), (False, True)):
        response = MaskedResponse(epsilon, classes, replaces)
        for label in (MASKED_LABEL, 0):
            assert sum(probabilities(response, label).values()) == pytest.approx(1)
        assert epsilon * (1 - 1e-6) <= max(losses(response)) <= epsilon, "nothing is given away"
        assert max(losses(MaskedResponse(epsilon * 1.5, classes, replaces))) > epsilon, "the noise of a larger ε passes nowhere"
        assert response.keep > response.spill


@pytest.mark.parametrize(("epsilon", "size"), [(0.7, 2), (1.0, 2), (2.5, 1)])
def test_answers_are_drawn_as_stated_and_those_of_two_thirds_of_the_noise_are_told_apart(epsilon: float, size: int) -> None:
    response, n = MaskedResponse(epsilon, 6, replaces=False), 40_000
    assert response.size == size
    for label in (MASKED_LABEL, 3):
        answers = response.apply(np.full(n, label), np.random.default_rng(label + 5))
        assert (answers.sum(axis=1) == size).all()
        for named, p in probabilities(response, label).items():
            assert binomtest(int(answers[:, named].all(axis=1).sum()), n, p).pvalue > 1e-5
        if label >= 0:
            assert binomtest(int(answers[:, 0].sum()), n, response.spill).pvalue > 1e-4
    surer = MaskedResponse(epsilon * 1.5, 6, replaces=False).apply(np.full(n, 3), np.random.default_rng(0))
    assert binomtest(int(surer[:, 0].sum()), n, response.spill).pvalue < 1e-6
