"""How long a run still takes, on a clock that the test turns."""

from __future__ import annotations

import pytest

from fedgraph.cells.cell import Cell
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.runs.console import _Pace


def cell(method: str, seed: int, trust: Trust = Trust.CURATOR) -> Cell:
    return Cell("t", "d", method, "default", world_of_trust(trust), 1.0, "provable", seed)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def done(pace: _Pace, clock: Clock, one: Cell, seconds: float) -> None:
    pace.begin(one)
    clock.now += seconds
    pace.finish(one)


def test_quick_cells_say_nothing_of_dear_ones() -> None:
    """Two dear cells and eight quick ones; of each kind one is done."""
    clock, dear, quick = Clock(), [cell("dear", s) for s in range(2)], [cell("quick", s) for s in range(8)]
    pace = _Pace([*dear, *quick], clock)
    assert pace.left() is None
    done(pace, clock, dear[0], 60.0)
    done(pace, clock, quick[0], 1.0)
    assert pace.left() == pytest.approx(60.0 + 7.0)


def test_rounds_say_how_far_a_cell_is() -> None:
    clock, only = Clock(), cell("dear", 0)
    pace = _Pace([only], clock)
    pace.begin(only)
    clock.now = 60.0
    pace.advance(only, 0.125)
    assert pace.left() is None, "the first round has the start in it"
    clock.now = 70.0
    pace.advance(only, 0.375)
    assert pace.left() == pytest.approx(25.0)


def test_cells_side_by_side_share_the_rest_but_the_longest_stays_whole() -> None:
    clock = Clock()
    cells = [cell("a", s) for s in range(6)]
    pace = _Pace(cells, clock)
    done(pace, clock, cells[0], 10.0)
    pace.begin(cells[1])
    pace.begin(cells[2])
    assert pace.left() == pytest.approx((10 + 10 + 3 * 10) / 2)
