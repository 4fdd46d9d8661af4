"""Meetings of classes and masked answers: what one node changes, compared with what is stated, and the noise that covers it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.learning.sampling.meetings import matching_numbers
from fedgraph.privacy import meetings
from fedgraph.privacy.mechanisms.masked_response import ABSENT, MASKED, NOBODY, MaskedResponse
from fedgraph.privacy.meetings import MeetingCounts
from fedgraph.privacy.units import Relation


def some_graph(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    dense = np.triu(rng.random((n, n)) < rng.choice([0.1, 0.3, 0.7]), 1)
    if kind == "hub":
        dense[0, 1:] = True
    if kind == "stars":
        dense[:] = False
        dense[0, 1 : n // 2], dense[1, n // 2 :] = True, True
    return (dense | dense.T).astype(np.float32)


@pytest.mark.parametrize("relation", [Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE])
def test_one_node_changes_the_meetings_by_at_most_what_is_stated(relation: Relation) -> None:
    rng, worst, classes = np.random.default_rng(0), 0.0, 3
    for trial in range(150):
        n = int(rng.integers(4, 16))
        graph = some_graph(rng, n, ["plain", "hub", "stars"][trial % 3])
        labels, ids = rng.integers(-1, classes, size=n), np.arange(n)
        share = float(rng.choice([1.0, 0.5]))
        node = int(rng.integers(n)) if trial % 2 else 0
        other, changed = graph.copy(), labels.copy()
        other[node], other[:, node] = 0, 0
        changed[node] = -1
        if relation is Relation.NODE_REPLACE:
            row = (rng.random(n) < 0.6).astype(np.float32)
            row[node] = 0
            other[node], other[:, node] = row, row
            changed[node] = rng.integers(classes)
        before = matching_numbers(sp.csr_array(graph), labels, classes, ids, share)
        after = matching_numbers(sp.csr_array(other), changed, classes, ids, share)
        worst = max(worst, float(np.linalg.norm(before - after)))
    stated = meetings.sensitivity(relation, classes)
    assert worst <= stated + 1e-9
    assert worst >= 0.7 * stated, "the bound is nearly met, so the noise is not wasted"


def test_a_hub_on_every_node_changes_no_more_than_any_other() -> None:
    """Plain counts of edges would change by n − 1."""
    n, classes = 60, 2
    graph = np.zeros((n, n), dtype=np.float32)
    graph[0, 1:], graph[1:, 0] = 1, 1
    labels = np.arange(n) % classes
    with_hub = matching_numbers(sp.csr_array(graph), labels, classes, np.arange(n), 1.0)
    without = matching_numbers(sp.csr_array((n, n), dtype=np.float32), labels, classes, np.arange(n), 1.0)
    assert np.abs(with_hub - without).tolist() == [2, 1, 0]
    assert np.linalg.norm(with_hub - without) == pytest.approx(math.sqrt(classes + 3))


def test_matching_numbers_by_hand() -> None:
    path = sp.csr_array(np.diag(np.ones(3, np.float32), 1) + np.diag(np.ones(3, np.float32), -1))  # 0 – 1 – 2 – 3
    assert matching_numbers(path, np.array([0, 1, 0, 1]), 2, np.arange(4), 1.0).tolist() == [0, 2, 0]
    assert matching_numbers(path, np.array([0, 0, 0, -1]), 2, np.arange(4), 1.0).tolist() == [2, 0, 0]
    assert matching_numbers(path, np.full(4, -1), 2, np.arange(4), 1.0).tolist() == [0, 0, 0]


def test_an_edge_is_kept_whatever_the_others_are() -> None:
    rng = np.random.default_rng(1)
    labels, ids = np.array([0, 1]), rng.permutation(500)[:2]
    pairs = rng.permutation(5000)[: 2 * 300].reshape(-1, 2)
    one = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
    kept = [matching_numbers(one, labels, 2, pair, 0.125)[1] for pair in pairs]
    assert binomtest(int(sum(kept)), len(kept), 0.125).pvalue > 1e-4
    assert (
        matching_numbers(one, labels, 2, ids, 0.125).tolist()
        == matching_numbers(one, labels[::-1], 2, ids[::-1], 0.125).tolist()
    )


@pytest.mark.parametrize("value", [[0] * 5, [1, 0, np.nan], [-1, 0, 0], [0.5, 0, 0], [11, 0, 0]])
def test_what_cannot_be_a_matching_number_is_refused(value: list[float]) -> None:
    with pytest.raises(UnboundedValueError):
        MeetingCounts(10, 2).enforce(np.array(value, dtype=np.float64))


def test_meetings_are_of_nodes() -> None:
    with pytest.raises(PrivacyError):
        meetings.sensitivity(Relation.EDGE_UNDIRECTED, 3)
    with pytest.raises(PrivacyError):
        MeetingCounts(10, 1)


def probabilities(response: MaskedResponse, label: int) -> np.ndarray:
    """Of each answer 1 … c, by the formula."""
    c = response.num_values
    if label == MASKED:
        return np.full(c, 1 / c)
    found = np.full(c, (1 - response.keep) / (c - 1))
    found[label] = response.keep
    return found


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 1.6, 2.5, 6.0])
@pytest.mark.parametrize("classes", [2, 6, 15])
@pytest.mark.parametrize("replaces", [False, True])
def test_no_answer_is_likelier_by_more_than_e_to_the_epsilon(epsilon: float, classes: int, replaces: bool) -> None:
    response = MaskedResponse(epsilon, classes, replaces)
    worlds = [probabilities(response, k) for k in ([MASKED, 0, 1] if replaces else [MASKED, 0])]
    losses = [float(np.log(a / b).max()) for a in worlds for b in worlds]
    assert max(losses) <= epsilon
    assert max(losses) >= epsilon * (1 - 1e-6), "nothing is given away"
    two_thirds = MaskedResponse(epsilon * 1.5, classes, replaces)  # the noise of a larger ε passes for this one nowhere
    worlds = [probabilities(two_thirds, k) for k in ([MASKED, 0, 1] if replaces else [MASKED, 0])]
    assert max(float(np.log(a / b).max()) for a in worlds for b in worlds) > epsilon
    assert response.keep < two_thirds.keep


def test_answers_are_drawn_as_stated_and_those_of_two_thirds_of_the_noise_are_told_apart() -> None:
    response, n = MaskedResponse(1.2, 5, replaces=False), 40_000
    for label in (MASKED, 3):
        answers = response.apply(np.full(n, label), np.random.default_rng(label + 5))
        for value, p in enumerate(probabilities(response, label)):
            assert binomtest(int((answers == value + 1).sum()), n, float(p)).pvalue > 1e-4
    surer = MaskedResponse(1.2 * 1.5, 5, replaces=False).apply(np.full(n, 3), np.random.default_rng(0))
    assert binomtest(int((surer == 4).sum()), n, response.keep).pvalue < 1e-6


def test_nobody_answers_nothing_and_strange_labels_are_refused() -> None:
    response, rng = MaskedResponse(1.0, 3, replaces=False), np.random.default_rng(0)
    assert response.apply(np.full(50, ABSENT), rng).tolist() == [NOBODY] * 50
    assert (response.apply(np.array([MASKED, 0, 1, 2] * 20), rng) > NOBODY).all()
    for bad in (np.array([3]), np.array([-3]), np.array([0.5]), np.array([np.nan])):
        with pytest.raises(UnboundedValueError):
            response.apply(bad, rng)
    with pytest.raises(PrivacyError):
        MaskedResponse(0.0, 3, replaces=False)
    with pytest.raises(PrivacyError):
        MaskedResponse(1.0, 1, replaces=False)
