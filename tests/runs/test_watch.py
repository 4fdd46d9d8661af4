"""A run that goes on, was broken off or has ended can be read at any time; resumed, it is as if nothing had happened."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from fedgraph.cells.store import CellStore
from fedgraph.commands.base import main as fedgraph
from fedgraph.runs import live

SCENARIO = """\
name: watched
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    label: nodes
    epsilons: [1, 8]
    trust: [curator, own-client]
    partition: {partition: uniform, clients: 3}
    methods: [{method: features, steps: 2, projection: 8}]
"""


def test_a_run_is_read_while_it_goes_on_after_a_kill_without_a_page_and_at_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, out, said = tmp_path / "watched.yaml", tmp_path / "<out> & more", list[str]()
    scenario.write_text(SCENARIO, encoding="utf-8")
    assert fedgraph(["watch", str(out)]) == 2
    assert "no run was begun here" in capsys.readouterr().err
    monkeypatch.setattr(live, "LIVE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "180")
    save, page = CellStore.save, out / "report.html"

    def told(command: str, *words: str) -> str:
        capsys.readouterr()
        assert fedgraph([command, str(out), *words]) == 0
        return capsys.readouterr().out

    def looks(self: CellStore, *args: Any) -> None:
        said.append(told("watch", "--once"))
        text = page.read_text(encoding="utf-8")
        assert "UNFINISHED RUN" in text, "after SIGKILL nobody writes any more; whoever opens the page must not find nothing"
        assert f"“fedgraph show {html.escape(str(out))}”" in text
        assert f"“--resume {html.escape(str(out))}”" in text
        save(self, *args)
        if len(said) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(CellStore, "save", looks)
    assert fedgraph(["run", str(scenario), "--out", str(out)]) == 1
    assert re.search(r"running, \d+ s, 2 of 4 cells done", said[2])
    assert "at work: features" in said[2]
    assert re.search(r"interrupted, \d+ s, 3 of 4 cells done\n--resume goes on with it", told("watch", "--once"))
    (out / live.LIVE_FILE).unlink()
    assert "interrupted, 0 s, 3 of 4 cells done" in told("watch").replace("\n", " "), "as where nothing was noted"
    page.unlink()
    assert told("show").startswith("UNFINISHED RUN: 3 of 4 cells are done")
    monkeypatch.setattr(CellStore, "save", save)

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fedgraph.report.write_report", interrupted)
        assert fedgraph(["run", str(scenario), "--resume", str(out)]) == 1
    (*_, last) = capsys.readouterr().err.splitlines()
    assert last.startswith("interrupted; 4 of 4 cells are done")
    assert last.endswith(f"the same command with --resume {out} (without --out) goes on")
    assert told("show").startswith("UNFINISHED RUN: all 4 cells are done, but no report was written.")
    assert fedgraph(["run", str(scenario), "--resume", str(out)]) == 0
    ended = told("watch", "--once")
    assert re.search(r"finished, \d+ s, 4 of 4 cells done", ended)
    row = next(line for line in ended.splitlines() if line.strip().startswith("nodes")).split()
    assert row[:2] == ["nodes", "4"]
    assert row[-2:] == ["8", "0"], "the largest ε, and no row without a guarantee"
    assert not (out / live.LIVE_FILE).exists()
    assert "UNFINISHED" not in page.read_text(encoding="utf-8")
