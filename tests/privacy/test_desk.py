"""One door: undeclared, over count, NaN, another alternative; and no private data is touched before the check."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgraph import privacy
from fedgraph.errors import BudgetExceededError, PrivacyError, UnboundedValueError
from fedgraph.privacy import ledger
from fedgraph.privacy.desk import Desk, DeskWalk, PlannedRelease
from fedgraph.privacy.events import Gaussian, OneOf, PartOf, Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball

BOUND, NOISE = L2Ball(1.0), GaussianNoise(3.0)
PLAN = PlannedRelease("model", BOUND, NOISE, Gaussian(3.0), range(2), per_round=2)
ONCE = PlannedRelease("hops", BOUND, NOISE, Gaussian(3.0), range(1), per_round=2)


def desk(round_=0, plans=(PLAN,), client=4, **more):
    return Desk("cell", client, round_, list(plans), np.random.default_rng(0), **more)


def later(released=None, round_=3):
    return Desk("cell", 4, round_, [ONCE, PLAN], np.random.default_rng(9), lambda r: np.random.default_rng(r), released or {})


def never():
    raise AssertionError("private data was touched")


def test_a_release_is_bounded_noised_recorded_and_frozen():
    value = np.full(3, 100.0)
    out = desk().release("model", lambda: value)
    made = out.entry
    assert (made.event, made.cell, made.path, made.client, made.round) == (Gaussian(3.0), "cell", "model", 4, 0)
    assert np.abs(out.value).max() < 20  # clipped to norm 1 before noise of 3
    assert (value == 100.0).all()
    with pytest.raises(ValueError, match="read-only"):
        out.value[0] = 0.0


def test_what_was_not_planned_touches_no_data_and_a_failed_release_counts():
    """Raising after the data was read must not give the attempt back. Replayed is what one earlier round released, alone."""
    door = desk()
    for bad in (math.nan, math.inf):
        with pytest.raises(UnboundedValueError):
            door.release("model", np.array([0.0, bad]))
    for refused, says in (
        (lambda: door.release("model", never), "2 times a round"),
        (lambda: desk().release("other", never), "not planned"),
        (lambda: desk(round_=2).release("model", never), "round 2"),
        (lambda: later().replay("model", never), "one earlier round released"),
        (lambda: later(round_=0).replay("hops", never), "one earlier round released"),
        (lambda: later().replay("other", never), "not planned"),
        (lambda: desk(3, [ONCE]).replay("hops", never), "no earlier noise"),
        (lambda: desk(plans=[PLAN, PLAN]), "share a path"),
    ):
        with pytest.raises(PrivacyError, match=says):
            refused()


def through(way, value):
    """What ``value`` becomes on one of the ways out, under hardly any noise, and the ledger lines that it leaves."""
    quiet = PlannedRelease("p", BOUND, GaussianNoise(1e-6), Repeated(Gaussian(1.0), 3), range(1))
    door, seen = desk(0, [quiet]), []
    if way == "replay":
        door = Desk("cell", 0, 1, [quiet], np.random.default_rng(0), lambda round_: np.random.default_rng(round_))
        return [door.replay("p", value)], door.entries
    if way == "walk":
        step = lambda state, noised: seen.append(noised) or state + 1  # noqa: E731
        assert door.walk("p", DeskWalk(0, lambda state: value, step, lambda state: np.array([1.0 * state]))).value == [3.0]
        return seen, door.entries
    return [door.release("p", value).value], door.entries


@pytest.mark.parametrize("way", ["release", "walk", "replay"])
@given(length=st.floats(1e-3, 1e6), angle=st.floats(0, 6.3))
@settings(max_examples=20)
def test_every_way_out_holds_the_value_to_its_bound_and_writes_one_line(way, length, angle):
    left, entries = through(way, length * np.array([math.cos(angle), math.sin(angle)]))
    assert [np.linalg.norm(out) for out in left] == pytest.approx([min(1.0, length)] * len(left), abs=1e-4)
    assert len(entries) == (0 if way == "replay" else 1)


def test_a_sum_of_many_is_a_line_for_each_and_refuses_what_no_sum_can_be():
    sums = PlannedRelease("p", ClippedSum(1.0, 3, "kernel"), GaussianNoise(1e-6), Gaussian(1.0), range(2), per_round=2)
    door = desk(0, [sums], 2, together=(2, 3, 4, 7))
    assert door.release("p", np.array([3.0])).value == pytest.approx(3.0, abs=1e-4)
    assert [line.clients for line in door.entries] == [((2, 4), (7, 7))]
    with pytest.raises(UnboundedValueError):
        door.release("p", np.array([3.1]))


def test_a_replay_gives_the_released_values_again_and_records_nothing():
    door = desk(0, [ONCE, PLAN])
    made = [door.release("hops", np.full(2, 0.1 * n)).value.tolist() for n in (1, 2)]
    again = later(door.released)
    assert [again.replay("hops", np.full(2, 0.1 * n)).tolist() for n in (1, 2)] == made
    assert again.entries == []
    with pytest.raises(BudgetExceededError, match="2 times a round"):
        again.replay("hops", never)
    for other in (0.3, 0.2):  # another value, another order
        with pytest.raises(PrivacyError, match="is not what round 0 released"):
            later(door.released).replay("hops", np.full(2, other))
    assert later().replay("hops", np.full(2, 0.1)).tolist() == made[0], "a restarted worker remembers no digest"


def test_a_client_that_is_started_again_keeps_its_choice_wherever_its_number_stands():
    """Clients that chose alike stand in one line of the ledger as several ranges."""
    choice = OneOf((Gaussian(3.0), Gaussian(4.0)))
    plans = [
        PlannedRelease(path, BOUND, NOISE, PartOf(event, choice, place), range(2))
        for place, (path, event) in enumerate((("labels", Gaussian(3.0)), ("rows", Gaussian(4.0))))
    ]
    chosen = {client: "labels" if client in (0, 2, 5, 6, 9) else "rows" for client in range(11)}
    lines = ledger.merged([desk(0, plans, client).release(path, np.ones(2)).entry for client, path in chosen.items()])
    assert len(lines) == 2
    for client, path in chosen.items():
        again = desk(1, plans, client, released=privacy.desk.alternatives(lines, client))
        with pytest.raises(BudgetExceededError, match="another alternative"):
            again.release("rows" if path == "labels" else "labels", never)
        assert again.release(path, np.ones(2)).entry.client == client
    assert not privacy.desk.alternatives(lines, 11)
