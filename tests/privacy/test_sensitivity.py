"""Bounds are enforced, and hostile neighbouring inputs stay within the stated sensitivity and reach it."""

import itertools
import math

import numpy as np
import pytest

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy import private_counts, sensitivity
from fedgraph.privacy.neighbour_sums import NeighbourCounts, NeighbourSums
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


NONE = [  # what one unit of the relation may change in several of its rows, or without a limit
    *((bound, relation) for bound in (Box(0.0, 1.0), Unbounded()) for relation in Relation),
    *((bound, EDGE) for bound in (L2Ball(0.7), ClippedSum(0.7, 4), Rows(0.7, 4), NonNegativeRows(0.7, 4), SimplexRows(4))),
    *((bound, relation) for bound in (EdgeRows(0.7, 4), EndsSimplexRows(4)) for relation in (NODE, Relation.NODE_REPLACE)),
]  # fmt: skip


def test_what_was_not_clipped_or_is_not_finite_is_refused_and_no_sensitivity_is_invented():
    for bound, bad in itertools.product(
        (L2Ball(1.0), ClippedSum(1.0, 3), Box(0.0, 1.0), Unbounded()), (math.nan, math.inf, -math.inf)
    ):
        with pytest.raises(UnboundedValueError):
            bound.enforce(np.array([0.1, bad]))
    for bound, value, says in (
        (NonNegativeRows(0.5, 3), np.ones((4, 2)), "at most 3 rows"),
        (ClippedSum(1.0, 3), np.array([3.1, 0.0]), "not clipped"),
        *((NeighbourSums(3), np.array([[1.0] * 9, [x] * 9], np.float32), "norm at most 3") for x in (1.01, math.nan, math.inf)),
    ):
        with pytest.raises(UnboundedValueError, match=says):
            bound.enforce(value)
    counts = (
        lambda: private_counts.ColumnCounts(3, 4, pooled=False).change(EDGE),
        lambda: private_counts.MeetingCounts(9, 3, by_class=True).change(EDGE),
        lambda: NeighbourCounts(9).sensitivity_l1(NODE),
    )
    wrong = (build for x in (0.0, -1.0, math.nan, math.inf) for build in (lambda x=x: L2Ball(x), lambda x=x: ClippedSum(x, 3)))
    for stated in (
        *counts,
        *wrong,
        *(lambda given=given: sensitivity.l2(*given) for given in NONE),
        lambda: Box(0.0, math.inf),
    ):
        with pytest.raises(PrivacyError):
            stated()


def test_rows_together_are_clipped_as_each_alone():
    """Those whose squares overflow, too."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-3, 4, (50, 1))
    rows[3], rows[4] = 1e200, 0.0
    bound = Rows(0.7, 50)
    alone = [bound.enforce(row[None]) for row in rows]
    assert bound.enforce(rows) == pytest.approx(np.sum(alone, axis=0), rel=1e-12)
    assert np.linalg.norm(alone[3]) == pytest.approx(0.7, rel=1e-9)
