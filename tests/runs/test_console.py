"""Progress: bars on a terminal, plain lines elsewhere, nothing where quiet is asked."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from rich.console import Console as RichConsole

from fedgraph.cells.cell import Cell
from fedgraph.privacy.trust import Trust
from fedgraph.runs.console import Console
from fedgraph.worlds.world import trusting

CELL = Cell("price", "planetoid/citeseer", "features", "logistic", trusting(Trust.SUMS), 4.0, "provable", 0)


def test_a_cell_is_said_in_words() -> None:
    assert CELL.words == "features · logistic, sums, ε = 4.0, seed 0"
    free = replace(CELL, method="dpar", variant="default", world=trusting(Trust.CURATOR), epsilon=math.inf, seed=2)
    assert free.words == "dpar, curator, ε = ∞, seed 2"


def test_a_terminal_gets_bars_that_go_away(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    console._err = RichConsole(force_terminal=True, stderr=True, width=100)
    console.plan(2, 0)
    assert console._bars is not None
    console.begin(CELL)
    console.progress("rounds", 3, 10)
    assert [task.completed for task in console._bars.tasks] == [0, 3]
    console.finish(CELL)
    assert console._bars is not None
    console.begin(CELL)
    console.finish(CELL)
    assert console._bars is None, "the last cell takes the bars away"
    console.close()


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    console.plan(1, 0)
    console.begin(CELL)
    console.finish(CELL)
    console.table("t", ["a"], [["1"]])
    console.print("x")
    out = capsys.readouterr()
    assert out.out + out.err == ""
