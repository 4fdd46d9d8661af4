"""Progress: bars on a terminal, plain lines elsewhere, nothing where quiet is asked."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console as RichConsole

from fedgraph import runtime
from fedgraph.cells import store
from fedgraph.cells.cell import Cell
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.runs import live
from fedgraph.runs.console import Console

CELL = Cell("price", "planetoid/citeseer", "features", "logistic", world_of_trust(Trust.SUMS), 4.0, "provable", 0)


def test_a_cell_is_said_in_words() -> None:
    assert CELL.words == "features · logistic, sums, ε = 4.0, seed 0"
    free = replace(CELL, method="dpar", variant="default", world=world_of_trust(Trust.CURATOR), epsilon=math.inf, seed=2)
    assert free.words == "dpar, curator, ε = ∞, seed 2"


def test_a_terminal_gets_one_line_with_a_bar_and_it_goes_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store.claim_folder(tmp_path, "", "", resume=False)
    console, screen = Console(), io.StringIO()
    console._err = RichConsole(force_terminal=True, file=screen, width=100)
    monkeypatch.setattr(live, "LIVE_SECONDS", 0.0)
    with runtime.start("serial") as engine, store.lock_folder(tmp_path):
        console.plan(2, 0)
        console.follow(tmp_path, engine)
        console.begin(CELL)
        console.wait()
        state = live.read(tmp_path)
        assert (state.status, state.done, state.total, state.working) == ("running", 0, 2, (CELL.words,))
        console.finish(CELL)
        console.note_score(CELL, {"accuracy": 0.68})
        assert live.read(tmp_path).done == 1
        assert console._view is not None
        console.close()
        assert console._view is None
    assert live.read(tmp_path).status == "interrupted"
    assert "░░░░░ 0/2 cells" in screen.getvalue()
    assert "█" * 12 + "░" * 12 + " 1/2 cells" in screen.getvalue()
    assert "best so far of price: accuracy 0.68 (features · logistic, sums, ε = 4.0)" in console._bar(200)


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


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    console.plan(1, 0)
    console.begin(CELL)
    console.finish(CELL)
    console.table("t", ["a"], [["1"]])
    console.print("x")
    out = capsys.readouterr()
    assert out.out + out.err == ""


def test_the_best_of_a_rare_class_is_told_by_what_the_page_leads_with() -> None:
    console = Console(quiet=True)
    for auroc, recall in ((0.61, 0.1), (0.89, 0.45), (0.7, 0.3)):
        console.note_score(CELL, {"accuracy": 0.93, "auroc": auroc, "recall_at_alerts": recall})
    assert "best so far of price: AUROC 0.89 (" in console._bar(200)
    assert "finds 45 of 100 of the rare class)" in console._bar(200)
