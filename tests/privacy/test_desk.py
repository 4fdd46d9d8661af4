"""One door: undeclared, over count, wrong mechanism, NaN; and no private data is touched before the check."""

import math

import numpy as np
import pytest

from fedgraph.errors import BudgetExceededError, PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk, PlannedRelease, declared
from fedgraph.privacy.events import Gaussian, Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball

BOUND, NOISE = L2Ball(1.0), GaussianNoise(3.0)
PLAN = PlannedRelease("model", BOUND, NOISE, Gaussian(3.0), range(2), per_round=2)


def desk(round_=0, client=4):
    return Desk("cell", client, round_, [PLAN], np.random.default_rng(0))


def never():
    raise AssertionError("private data was touched")


def test_a_release_is_bounded_noised_recorded_and_frozen():
    value = np.full(3, 100.0)
    out = desk().release("model", lambda: value, BOUND, NOISE)
    assert out.entry.event == Gaussian(3.0)
    assert (out.entry.cell, out.entry.path, out.entry.client, out.entry.round) == ("cell", "model", 4, 0)
    assert np.abs(out.value).max() < 20  # clipped to norm 1 before noise of 3
    assert (value == 100.0).all()
    with pytest.raises(ValueError, match="read-only"):
        out.value[0] = 0.0


def test_undeclared_path():
    with pytest.raises(BudgetExceededError, match="not planned"):
        desk().release("other", never, BOUND, NOISE)


def test_over_the_count():
    door = desk()
    for _ in range(2):
        door.release("model", np.ones(2), BOUND, NOISE)
    with pytest.raises(BudgetExceededError, match="2 times a round"):
        door.release("model", never, BOUND, NOISE)


def test_a_round_that_was_not_planned():
    with pytest.raises(BudgetExceededError, match="round 2"):
        desk(round_=2).release("model", never, BOUND, NOISE)


@pytest.mark.parametrize(("bound", "noise"), [(BOUND, GaussianNoise(2.0)), (L2Ball(2.0), NOISE)])
def test_another_bound_or_mechanism(bound, noise):
    with pytest.raises(PrivacyError, match="planned as"):
        desk().release("model", never, bound, noise)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_never_leaves(bad):
    with pytest.raises(UnboundedValueError):
        desk().release("model", np.array([0.0, bad]), BOUND, NOISE)


def test_a_failed_release_is_still_counted():
    """Raising after the data was read must not give the attempt back."""
    door = desk()
    for _ in range(2):
        with pytest.raises(UnboundedValueError):
            door.release("model", np.array([math.nan]), BOUND, NOISE)
    with pytest.raises(BudgetExceededError):
        door.release("model", never, BOUND, NOISE)


def test_declared_is_what_the_rounds_spend():
    spent = []
    for round_ in range(2):
        door = desk(round_)
        spent += [door.release("model", np.ones(1), BOUND, NOISE).entry.event for _ in range(2)]
    assert price(declared([PLAN], 4), 1e-5) == price(Repeated(Gaussian(3.0), len(spent)), 1e-5)


def test_two_plans_on_one_path():
    with pytest.raises(PrivacyError, match="share a path"):
        Desk("cell", 0, 0, [PLAN, PLAN], np.random.default_rng(0))
