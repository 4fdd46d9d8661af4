"""How long a run still takes, on a clock that the test turns."""

from __future__ import annotations

import pytest

from fedgraph.cells.cell import Cell
from fedgraph.privacy.trust import Trust
from fedgraph.runs.console import Console, _Pace
from fedgraph.worlds.world import world_of_trust


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


def test_a_kind_that_nobody_saw_is_like_its_row_elsewhere() -> None:
    clock, other = Clock(), cell("dear", 0, Trust.SUMS)
    pace = _Pace([cell("dear", 0), cell("quick", 0), other], clock)
    done(pace, clock, cell("dear", 0), 60.0)
    done(pace, clock, cell("quick", 0), 1.0)
    assert pace.left() == pytest.approx(60.0)


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


def test_the_dear_first_row_says_nothing_of_rows_that_nobody_saw() -> None:
    """The ceiling comes first; the others are as the cheaper of the rows that are known."""
    clock = Clock()
    cells = [cell("ceiling", 0), *(cell(name, s) for name in ("a", "b") for s in range(10))]
    pace = _Pace(cells, clock)
    done(pace, clock, cells[0], 60.0)
    assert pace.left() is None, "21 minutes would be wrong"
    done(pace, clock, cells[1], 1.0)
    assert pace.left() == pytest.approx(9 * 1.0 + 10 * 1.0)


def test_the_start_of_a_worker_is_no_part_of_its_other_cells() -> None:
    """A ceiling in the driver; then two workers start with their first cells, and compute one a second."""
    clock = Clock()
    cells = [cell("ceiling", 0), *(cell("a", s) for s in range(20))]
    pace = _Pace(cells, clock, workers=2)
    pace.begin(cells[0])
    pace.workers_begin()
    for one in cells[1:3]:
        pace.begin(one)
    clock.now = 8.0
    pace.finish(cells[0])
    pace.finish(cells[1])
    assert pace.left() == pytest.approx(18 * 8 / 3 + 8 / 3), "nothing better is known; three ran until now"
    pace.begin(cells[3])
    clock.now = 9.0
    pace.finish(cells[3])
    pace.begin(cells[4])
    assert pace.left() == pytest.approx((1 + 1 + 16 * 1) / 2)


def test_the_driver_alone_does_not_compute_what_its_workers_will() -> None:
    clock, cells = Clock(), [cell("a", s) for s in range(11)]
    pace = _Pace(cells, clock, workers=2)
    done(pace, clock, cells[0], 4.0)
    pace.begin(cells[1])
    assert pace.left() == pytest.approx((4 + 9 * 4) / 2)


def test_between_two_cells_no_worker_is_lost() -> None:
    clock, cells = Clock(), [cell("a", s) for s in range(12)]
    pace = _Pace(cells, clock)
    for one in cells[:2]:
        pace.begin(one)
    clock.now = 5.0
    pace.finish(cells[0])
    assert pace.left() == pytest.approx((5 + 10 * 5) / 2)


def test_the_best_private_cell_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    cells = [cell("a", 0), cell("b", 0), cell("c", 0)]
    console.plan(3, 0, cells)
    for one, found in zip(cells, ({"auc": 0.9}, {"accuracy": 0.8}, {"accuracy": 0.7}), strict=True):
        console.begin(one)
        console.finish(one)
        console.note_score(one, found)
    console._last = -100.0
    console.begin(cell("d", 0))
    assert "accuracy 0.80 (b, curator, ε = 1.0)" in capsys.readouterr().err
