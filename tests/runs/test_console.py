"""Progress: bars on a terminal, plain lines elsewhere, nothing where quiet is asked."""

from __future__ import annotations

import pytest
from rich.console import Console as RichConsole

from fedgraph.runs.console import Console, in_words

KEY = "price/planetoid/citeseer/features/logistic/secure/eps=4.0/provable/0"


def test_a_cell_is_said_in_words() -> None:
    assert in_words(KEY) == "features · logistic, secure, ε = 4.0, seed 0"
    assert in_words("a/b/dpar/default/central/eps=inf/none/2") == "dpar, central, ε = ∞, seed 2"
    assert in_words("odd") == "odd"


def test_a_terminal_gets_bars_that_go_away(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    console._err = RichConsole(force_terminal=True, stderr=True, width=100)
    console.plan(2, 0)
    assert console._bars is not None
    console.begin(KEY)
    console.progress("rounds", 3, 10)
    assert [task.completed for task in console._bars.tasks] == [0, 3]
    console.finish(KEY)
    assert console._bars is not None
    console.begin(KEY)
    console.finish(KEY)
    assert console._bars is None, "the last cell takes the bars away"
    console.close()


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    console.plan(1, 0)
    console.begin(KEY)
    console.finish(KEY)
    console.table("t", ["a"], [["1"]])
    console.print("x")
    out = capsys.readouterr()
    assert out.out + out.err == ""
