"""``fedgraph watch`` on a run that goes on, was interrupted, and has ended."""

import re
from pathlib import Path

import pytest

from fedgraph import run
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


def test_a_run_is_watched_while_it_goes_on_after_a_kill_and_at_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, out = tmp_path / "watched.yaml", tmp_path / "out"
    scenario.write_text(SCENARIO, encoding="utf-8")
    assert fedgraph(["watch", str(out)]) == 2
    assert "no run was begun here" in capsys.readouterr().err
    monkeypatch.setattr(live, "LIVE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "180")
    said: list[str] = []

    def watched() -> str:
        capsys.readouterr()
        assert fedgraph(["watch", str(out), "--once"]) == 0
        return capsys.readouterr().out

    save = CellStore.save

    def looks(self: CellStore, *args: object) -> None:
        said.append(watched())
        save(self, *args)  # type: ignore[arg-type]
        if len(said) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(CellStore, "save", looks)
    assert run.main([str(scenario), "--out", str(out)]) == 1
    assert re.search(r"out: running, \d+ s, 2 of 4 cells done", said[2])
    assert "at work: features" in said[2]
    assert re.search(r"interrupted, \d+ s, 3 of 4 cells done\n--resume goes on with it", watched())
    monkeypatch.setattr(CellStore, "save", save)
    assert run.main([str(scenario), "--resume", str(out)]) == 0
    ended = watched()
    assert re.search(r"finished, \d+ s, 4 of 4 cells done", ended)
    row = next(line for line in ended.splitlines() if line.strip().startswith("nodes")).split()
    assert row[:2] == ["nodes", "4"]
    assert row[-2:] == ["8", "0"], "the largest ε, and no row without a guarantee"
    assert int(row[2]) > 0, "rounds since --resume"
    assert not (out / live.LIVE_FILE).exists()
