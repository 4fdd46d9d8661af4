"""Progress on stderr: how long the rest takes, and names as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedgraph.cells.cell import Cell
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.runs.console import Console

CELL = Cell("price", "planetoid/citeseer", "features", "logistic", world_of_trust(Trust.SUMS), 4.0, "provable", 0)


def test_what_is_left_goes_at_the_pace_so_far(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten cells, two of which are there already: one and a half say nothing yet; three and a half take 70, the last 40."""
    now = [100.0]
    monkeypatch.setattr("fedgraph.runs.console.time.monotonic", lambda: now[0])

    def line(console: Console, at: float, done: int, rounds: int) -> str:
        now[0] = at
        console.progress("rounds", done, rounds)
        return capsys.readouterr().err.splitlines()[-1]

    console, cells = Console(quiet=True, bar=True), [replace(CELL, seed=seed) for seed in range(4)]
    console.plan(10, 2)
    console.begin(cells[0])
    now[0] = 130.0
    console.finish(cells[0])
    console.begin(cells[1])
    assert line(console, 140.0, 1, 2).endswith("3/10 cells, 40 s"), "the first one loads what the others share"
    for last, new in ((1, 2), (2, 3)):
        console.finish(cells[last])
        console.begin(cells[new])
    assert line(console, 170.0, 1, 2).endswith("5/10 cells, 70 s, about 83 s left"), "3 s more than between 90 and 72"
    long = Console(quiet=True, bar=True)
    long.plan(1, 0)
    long.begin(CELL)
    assert line(long, 210.0, 1, 5).endswith("40 s")
    assert line(long, 230.0, 2, 4).endswith("60 s, about 63 s left"), "of one long cell a third tells"


def test_names_with_brackets_and_colons_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console, name = Console(), "[red]age, [/]city, :bank:"
    console.say(name)
    console.print(name)
    console.table(f"{name}!", [f"{name}?"], [[name]])
    out = capsys.readouterr()
    assert out.err == f"{name}\n"
    assert out.out.count(name) == 4
