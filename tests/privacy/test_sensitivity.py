"""Bounds are enforced, and neighbouring inputs stay within the stated sensitivity and reach it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy import sensitivity
from fedgraph.privacy.sensitivity import (
    Box,
    ClippedSum,
    EdgeRows,
    EndsSimplexRows,
    L2Ball,
    NonNegativeRows,
    Rows,
    SensitivityBound,
    SimplexRows,
    Unbounded,
)
from fedgraph.privacy.units import Relation

vectors = arrays(np.float64, 4, elements=st.floats(-1e6, 1e6))
RELATIONS = [Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE, Relation.GRAPH_REPLACE]


@pytest.mark.parametrize("length", [0.5, 1.0, 1.2, 1.9, 2.1, 1e9])
def test_a_ball_keeps_what_is_inside_and_brings_the_rest_to_its_edge(length):
    value = length * np.array([0.6, -0.8])
    assert np.linalg.norm(L2Ball(1.0).enforce(value)) == pytest.approx(min(1.0, length), rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_sums_of_clipped_rows(relation):
    rng = np.random.default_rng(0)
    clip, bound = 0.7, ClippedSum(0.7, 5)
    worst = 0.0
    for _ in range(300):
        rows = rng.normal(size=(5, 3))
        rows *= clip / np.linalg.norm(rows, axis=1, keepdims=True)
        changed = rows.copy()
        changed[2] = -rows[2] if relation.replaces else 0.0
        worst = max(worst, float(np.linalg.norm(bound.enforce(rows.sum(0)) - bound.enforce(changed.sum(0)))))
    assert worst <= sensitivity.l2(bound, relation) * (1 + 1e-9)
    assert worst == pytest.approx(sensitivity.l2(bound, relation))


NODE, EDGE = Relation.NODE_ZERO_OUT, Relation.EDGE_UNDIRECTED
CHANGED = [  # bound, relation, rows of four that one unit may turn into others
    (L2Ball(0.7), NODE, 4), (L2Ball(0.7), Relation.NODE_REPLACE, 4), (Rows(0.7, 4), NODE, 1),
    (Rows(0.7, 4), Relation.NODE_REPLACE, 1), (EdgeRows(0.7, 4), EDGE, 1), (NonNegativeRows(0.7, 4), NODE, 4),
    (SimplexRows(4), NODE, 4), (EndsSimplexRows(4), EDGE, 2),
]  # fmt: skip


@pytest.mark.parametrize(("bound", "relation", "rows"), CHANGED, ids=str)
def test_hostile_values_stay_within_what_is_stated_and_reach_it(bound, relation, rows):
    """Whatever a learner hands over: far too long, negative, zero, tiny, or one class alone."""
    rng, worst = np.random.default_rng(0), 0.0
    vanishes = isinstance(bound, (L2Ball, Rows)) and not relation.replaces
    for _ in range(400):
        one, other = (rng.choice([0.0, 1e-9, 1.0, -1.0, 1e6, -1e6], (4, 3)) for _ in range(2))
        if rng.random() < 0.5:
            one, other = np.eye(3)[[0, 0, 0, 0]] * 1e6, np.eye(3)[[1, 1, 1, 1]] * 1e6
            other = -one if relation.replaces and not isinstance(bound, NonNegativeRows) else other
        other[rows:] = one[rows:]
        other[:rows] *= not vanishes
        worst = max(worst, float(np.linalg.norm(bound.enforce(one) - bound.enforce(other))))
    stated = sensitivity.l2(bound, relation)
    assert stated * 0.99 < worst <= stated * (1 + 1e-9)


def test_every_bound_with_a_sensitivity_meets_hostile_values_here():
    """Of the others, sums of clipped rows only check what the learner clips, and two have no sensitivity."""
    kinds = [kind for kind in vars(sensitivity).values() if isinstance(kind, type) and issubclass(kind, SensitivityBound)]
    others = {kind for kind in kinds if issubclass(kind, ClippedSum)} | {SensitivityBound, Box, Unbounded}
    assert {type(bound) for bound, _, _ in CHANGED} == set(kinds) - others


@settings(max_examples=40)
@given(value=vectors)
def test_box(value):
    out = Box(-1.0, 2.0).enforce(value)
    assert (out >= -1).all()
    assert (out <= 2).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("bound", [L2Ball(1.0), ClippedSum(1.0, 3), Box(0.0, 1.0), Unbounded()], ids=lambda b: type(b).__name__)
def test_non_finite_values_never_pass(bound, bad):
    with pytest.raises(UnboundedValueError):
        bound.enforce(np.array([0.1, bad]))


def test_a_sum_that_was_not_clipped_is_refused():
    with pytest.raises(UnboundedValueError, match="at most 3 rows"):
        NonNegativeRows(0.5, 3).enforce(np.ones((4, 2)))
    with pytest.raises(UnboundedValueError, match="not clipped"):
        ClippedSum(1.0, 3).enforce(np.array([3.1, 0.0]))


@pytest.mark.parametrize("number", [0.0, -1.0, math.nan, math.inf])
def test_bad_bounds(number):
    for build in (L2Ball, lambda x: ClippedSum(x, 3), lambda x: Box(0.0, x if x != math.inf else math.inf)):
        with pytest.raises(PrivacyError):
            build(number)


def test_no_sensitivity_is_invented():
    for bound in (Box(0.0, 1.0), Unbounded()):
        with pytest.raises(PrivacyError):
            sensitivity.l2(bound, Relation.NODE_REPLACE)


def test_rows_are_clipped_by_the_desk_itself():
    """Whatever the learner hands over, one row more or less moves the sum by at most the clip, and by no less where it can."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 7)) * 10.0 ** rng.integers(-8, 9, size=(200, 1))
    rows[3], rows[4] = 0.0, 1e300
    bound = Rows(0.7, 200)
    whole, largest = bound.enforce(rows), 0.0
    for row in range(200):
        moved = float(np.linalg.norm(whole - bound.enforce(np.delete(rows, row, axis=0))))
        assert moved <= 0.7
        largest = max(largest, moved)
    assert largest > 0.7 * (1 - 1e-9)
    assert sensitivity.l2(bound, Relation.NODE_ZERO_OUT) == 0.7
    assert sensitivity.l2(bound, Relation.NODE_REPLACE) == 1.4
    with pytest.raises(UnboundedValueError, match="at most 200 rows"):
        bound.enforce(np.ones((201, 2)))
    with pytest.raises(UnboundedValueError):
        bound.enforce(np.array([[np.nan, 1.0]]))


def test_a_row_for_each_edge_moves_a_sum_by_its_clip_and_is_no_row_of_a_node():
    bound = EdgeRows(1.5, 100)
    rows = np.random.default_rng(0).normal(size=(40, 3)) * 10
    moved = np.linalg.norm(bound.enforce(rows) - bound.enforce(rows[1:]))
    assert 1.5 * 2 / 3 < moved <= sensitivity.l2(bound, Relation.EDGE_UNDIRECTED) == 1.5
    for relation in RELATIONS:
        with pytest.raises(PrivacyError, match="one unit may change several rows"):
            sensitivity.l2(bound, relation)
    with pytest.raises(PrivacyError, match="one unit may change several rows"):
        sensitivity.l2(Rows(1.5, 100), Relation.EDGE_UNDIRECTED)
