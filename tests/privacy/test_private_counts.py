"""Counts of columns, meetings of classes, records with owners, masked answers: what one person changes is what is stated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.learning import meetings
from fedgraph.privacy import private_counts as counts
from fedgraph.privacy.mechanisms.local_bits import MASKED_LABEL, MaskedResponse
from fedgraph.privacy.private_counts import COUNT_BINS, ColumnCounts, MeetingCounts, OwnedRows
from fedgraph.privacy.units import Relation

NODE = (Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("relation", NODE)
def test_one_person_changes_the_counts_of_columns_by_at_most_what_is_stated(relation, pooled):
    """Any rows, any brackets: noise and empty cells, absurd numbers, a bracket that nobody is in."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(300):
        n, d = int(rng.integers(1, 8)), 3
        rows = rng.choice([0.0, 1.0, 45.0, 2e4, -7.5, 1e300, np.nan], size=(n, d))
        brackets = np.sort(rng.choice([-40.0, -3.0, 0.0, 5.5, 6.0, 40.0], size=(1 if pooled else d, 2)), axis=1)
        brackets[:, 1] += 0.5
        other = rows.copy()
        other[0] = np.nan if relation is Relation.NODE_ZERO_OUT else rng.choice([0.0, 9.0, -1e9], size=d)
        bound = ColumnCounts(d, n, pooled)
        before, after = (bound.enforce(counts.positions(counts.number_line(r), brackets)) for r in (rows, other))
        worst = max(worst, float(np.linalg.norm(before - after)))
    stated = ColumnCounts(3, 8, pooled).change(relation)
    assert 0.99 * stated <= worst <= stated + 1e-9, "met, so the noise is neither too little nor wasted"


@pytest.mark.parametrize(("middle", "width"), [(45, 14), (-3000, 6000), (0.01, 0.003)])
@pytest.mark.parametrize(("std", "off"), [(0.0, 0.05), (20.0, 0.09)])
def test_ranks_of_any_scale_are_near_the_true_ones(middle, width, std, off):
    """Though one value in a hundred is absurd."""
    rng = np.random.default_rng(1)
    values = middle + width * rng.standard_normal(1500)
    values[rng.random(1500) < 0.01] = 1e10
    line, brackets = counts.number_line(values[:, None]), counts.widest_brackets(1)
    for _ in range(4):
        last, found = brackets, ColumnCounts(1, 1500, False).enforce(counts.positions(line, brackets))
        found = found + std * rng.standard_normal(found.shape)
        brackets = counts.narrowed_brackets(last, found, std)
    ranks = np.interp(line[:, 0], counts.bin_edges(last)[0], counts.shares_below(found)[0])
    assert np.abs(ranks - np.argsort(np.argsort(values)) / 1500).mean() < off
    assert (np.diff(ranks[np.argsort(values)]) >= 0).all()


@pytest.mark.parametrize("relation", [Relation.NODE_LINKS, Relation.ENTITY_LINKS])
@pytest.mark.parametrize(("people", "count", "most", "limit"), [(6, 15, 2, 1), (8, 40, 3, 4), (5, 60, 4, 7)])
def test_one_persons_records_move_no_column_by_more_than_the_limit(relation, people, count, most, limit):
    """Records of three numbers and between one and ``most`` different owners each."""
    rng, bound = np.random.default_rng(5), OwnedRows(limit, 3)
    for _ in range(2):
        owners = np.argsort(rng.random((count, people)), axis=1)[:, :most]
        owners[np.arange(most) > rng.integers(0, most, (count, 1))] = -1
        value = np.concatenate([rng.random((count, 3)), owners], axis=1)
        for person in range(people):
            moved = bound.enforce(value) - bound.enforce(value[~(owners == person).any(axis=1)])
            assert (moved >= -1e-3 * limit).all()
            assert (moved <= limit * (1 + 1e-3)).all()
            assert np.linalg.norm(moved) <= bound.sensitivity_l2(relation)


def some_graph(rng, n, kind):
    dense = np.triu(rng.random((n, n)) < rng.choice([0.1, 0.3, 0.7]), 1)
    if kind == "hub":
        dense[0, 1:] = True
    if kind == "stars":
        dense[:] = False
        dense[0, 1 : n // 2], dense[1, n // 2 :] = True, True
    return (dense | dense.T).astype(np.float32)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("relation", NODE)
def test_one_node_changes_the_meetings_by_at_most_what_is_stated(relation, by_class):
    rng, worst, classes = np.random.default_rng(0), 0.0, 3
    for trial in range(60):
        n = int(rng.integers(6, 30))
        graph = some_graph(rng, n, ["plain", "hub", "stars"][trial % 3])
        labels, ids = rng.integers(-1, classes, size=n), rng.permutation(1000)[:n]
        node = int(rng.integers(n)) if trial % 2 else 0
        other, changed = graph.copy(), labels.copy()
        other[node] = other[:, node] = 0
        changed[node] = -1
        if relation is Relation.NODE_REPLACE:
            other[node] = other[:, node] = (rng.random(n) < 0.6) & (np.arange(n) != node)
            changed[node] = rng.integers(classes)
        counted = MeetingCounts(n, classes, by_class)
        before, after = (meetings.count(sp.csr_array(g), y, ids, counted) for g, y in ((graph, labels), (other, changed)))
        assert np.abs(before - after).max() <= 1
        worst = max(worst, float(np.linalg.norm(before - after)))
    assert 0.6 * counted.change(relation) <= worst <= counted.change(relation) + 1e-9, "nearly met, so no noise is wasted"


def test_an_edge_is_kept_whatever_the_others_are():
    rng, counted = np.random.default_rng(1), MeetingCounts(2, 2, by_class=False)
    pairs, one = rng.permutation(5000)[: 2 * 600].reshape(-1, 2), sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
    found = np.array([meetings.count(one, np.array([0, 1]), pair, counted)[2:].reshape(-1, 2)[:, 1] for pair in pairs])
    for number, rate in enumerate(counted.rates):
        assert binomtest(int(found[:, number].sum()), len(pairs), rate / 2).pvalue > 1e-4


def test_meetings_are_read_as_edges_and_noise_is_not():
    """2,000 nodes with 12 neighbours each, of which half are of the own class in place of a quarter."""
    rng, n, classes = np.random.default_rng(0), 2000, 4
    labels, one = rng.integers(classes, size=n), np.repeat(np.arange(n), 6)
    own = [np.flatnonzero(labels == k) for k in range(classes)]
    like = np.array([rng.choice(own[labels[u]]) for u in one])
    two = np.where(rng.random(one.size) < 1 / 3, like, rng.integers(n, size=one.size))
    chose = sp.csr_array((np.ones(one.size, np.float32), (one, two)), shape=(n, n))
    graph = sp.csr_array(((chose + chose.T) > 0).astype(np.float32))
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
        for absurd in (-50.0, 9e3):  # noise may make counts negative, or larger than the classes
            assert np.isfinite(meetings.read(np.full(counted.length, absurd), 5.0, counted, n).affinity).all()


MEET, OWNED, COLUMNS = MeetingCounts(10, 2, by_class=False), OwnedRows(2, 1), ColumnCounts(3, 8, pooled=False)
REFUSED = [
    *((MEET, np.eye(1, MEET.length)[0] * value) for value in (np.nan, -1, 0.5, 11)), (MEET, np.zeros(MEET.length + 1)),
    (COLUMNS, np.zeros((2, 2), int)), (COLUMNS, np.zeros((9, 3), int)), (COLUMNS, np.full((2, 3), COUNT_BINS + 2)),
    (COLUMNS, np.full((2, 3), -2)), (COLUMNS, np.zeros((2, 3))),
    (OWNED, np.array([[np.nan, 0, 1]])), (OWNED, np.array([[1.0, -1, -1]])), (OWNED, np.array([[1.0, 3, 3]])),
    (OWNED, np.ones((2, 1))),
]  # fmt: skip


def test_what_cannot_be_counted_is_refused():
    for bound, value in REFUSED:
        with pytest.raises(UnboundedValueError):
            bound.enforce(value)
    MEET.enforce(np.zeros(MEET.length))
    assert OWNED.enforce(np.zeros((0, 3))).tolist() == [0.0]
    assert OWNED.enforce(np.array([[7.0, 0, 1]])).tolist() == [1.0], "clamped"
    for relation in (Relation.EDGE_UNDIRECTED, Relation.NODE_ZERO_OUT, Relation.GRAPH_REPLACE):
        with pytest.raises(PrivacyError, match="needs the relation node-links or entity-links"):
            OWNED.sensitivity_l2(relation)
    with pytest.raises(PrivacyError, match="≥ 1"):
        OwnedRows(0, 1)


def probabilities(response, label):
    """Of each set of values that may be named, by the formula."""
    c, k, (a, b) = response.num_values, response.size, response.odds
    sets = list(itertools.combinations(range(c), k))
    return {named: (1 if label == MASKED_LABEL else a if label in named else b) / len(sets) for named in sets}


def test_no_answer_is_likelier_by_more_than_e_to_the_epsilon():
    def loss(response):
        labels = [MASKED_LABEL, 0, 1] if response.replaces else [MASKED_LABEL, 0]
        worlds = [np.array(list(probabilities(response, label).values())) for label in labels]
        return max(float(np.log(a / b).max()) for a, b in itertools.product(worlds, repeat=2))

    for epsilon, classes, replaces in itertools.product((0.05, 0.7, 1.6, 2.5, 6.0), (2, 6, 11), (False, True)):
        response = MaskedResponse(epsilon, classes, replaces)
        for label in (MASKED_LABEL, 0):
            assert sum(probabilities(response, label).values()) == pytest.approx(1)
        assert epsilon * (1 - 1e-6) <= loss(response) <= epsilon, "nothing is given away"
        assert loss(MaskedResponse(epsilon * 1.5, classes, replaces)) > epsilon, "the noise of a larger ε passes nowhere"
        assert response.keep > response.spill


@pytest.mark.parametrize(("epsilon", "size"), [(0.7, 2), (2.5, 1)])
def test_answers_are_drawn_as_stated_and_those_of_two_thirds_of_the_noise_are_told_apart(epsilon, size):
    response, n = MaskedResponse(epsilon, 6, replaces=False), 40_000
    assert response.size == size
    for label in (MASKED_LABEL, 3):
        answers = response.apply(np.full(n, label), np.random.default_rng(label + 5))
        assert (answers.sum(axis=1) == size).all()
        for named, p in probabilities(response, label).items():
            assert binomtest(int(answers[:, named].all(axis=1).sum()), n, p).pvalue > 1e-5
    surer = MaskedResponse(epsilon * 1.5, 6, replaces=False).apply(np.full(n, 3), np.random.default_rng(0))
    assert binomtest(int(answers[:, 0].sum()), n, response.spill).pvalue > 1e-4
    assert binomtest(int(surer[:, 0].sum()), n, response.spill).pvalue < 1e-6
