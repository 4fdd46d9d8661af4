"""Progress: bars on a terminal, plain lines elsewhere, nothing where quiet is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedgraph.cells.cell import Cell
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.runs.console import Console

CELL = Cell("price", "planetoid/citeseer", "features", "logistic", world_of_trust(Trust.SUMS), 4.0, "provable", 0)


def test_what_is_left_goes_at_the_pace_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten cells, two of which are there already: one and a half say nothing yet; three and a half take 70, the last 40."""
    now = [100.0]
    monkeypatch.setattr("fedgraph.runs.console.time.monotonic", lambda: now[0])
    console = Console(quiet=True)
    console.plan(10, 2)
    assert "left" not in console._bar(200)
    console.begin(CELL)
    now[0] = 130.0
    console.finish(CELL)
    console.begin(replace(CELL, seed=1))
    console.progress("rounds", 1, 2)
    assert "3/10 cells, 30 s" in console._bar(200)
    assert "left" not in console._bar(200), "the first one loads what the others share"
    for seed in (1, 2):
        console.finish(replace(CELL, seed=seed))
        console.begin(replace(CELL, seed=seed + 1))
    now[0] = 170.0
    console.progress("rounds", 1, 2)
    assert "5/10 cells, 70 s, about 83 s left" in console._bar(200), "3 s more than between 90 and 72"


@pytest.mark.parametrize(("done", "told"), [(1, False), (2, True)])
def test_of_one_long_cell_a_third_says_how_long_the_rest_takes(done: int, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("fedgraph.runs.console.time.monotonic", lambda: now[0])
    console = Console(quiet=True)
    console.plan(1, 0)
    console.begin(CELL)
    now[0] = 140.0
    console.progress("rounds", done, 5)
    assert ("40 s, about 63 s left" in console._bar(200)) == told


def test_names_with_brackets_and_colons_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console, name = Console(), "[red]age, [/]city, :bank:"
    console.say(name)
    console.print(name)
    console.table(f"{name}!", [f"{name}?"], [[name]])
    out = capsys.readouterr()
    assert out.err == f"{name}\n"
    assert out.out.count(name) == 4
