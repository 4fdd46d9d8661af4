"""What fails leaves everything else whole: cells, folders, files, and the numbers of a run that is resumed."""

from __future__ import annotations

import csv
import errno
import fcntl
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fedgraph import run
from fedgraph.runs import experiment
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import Cell

TINY = """\
name: tiny
seeds: 2
runtime: {engine: serial}
datasets:
  - name: embedded/library
tasks:
  - task: node_classification
    epsilons: [1, inf]
    trust: [curator]
    methods:
      - {method: features, steps: 3, projection: 16}
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line on stderr; a traceback is a failure."""
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err.splitlines()[-1]


def test_a_failing_cell_ends_no_other(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run.main([str(tiny), "--out", str(whole)]) == 0
    capsys.readouterr()
    real = node_classification.run

    def fails_once(params: Any, cell: Cell, context: Any) -> Any:
        if cell.epsilon == 1.0 and cell.seed == 1:
            raise ValueError("shapes\ndiffer")
        return real(params, cell, context)

    monkeypatch.setattr(node_classification, "run", fails_once)
    assert run.main([str(tiny), "--out", str(out)]) == 1
    said = one_line(capsys)
    assert "1 of 4 cells failed" in said
    assert "ValueError: shapes differ" in said
    failed = [row for row in rows(out) if row["status"] != "ok"]
    assert [(row["status"], row["epsilon"], row["seed"], row["value"]) for row in failed] == [
        ("failed: ValueError: shapes differ", "1.0", "1", "")
    ]
    assert [row for row in rows(out) if row["status"] == "ok"] == [
        row for row in rows(whole) if (row["epsilon"], row["seed"]) != ("1.0", "1")
    ]
    monkeypatch.undo()
    assert run.main([str(tiny), "--resume", str(out)]) == 0
    assert rows(out) == rows(whole)


def test_what_cannot_be_planned_is_refused_with_its_place(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.write_text(TINY.replace("features, steps: 3, projection: 16", "gcon"), encoding="utf-8")  # needs another protocol
    for how in (["--dry-run"], ["--out", str(tmp_path / "out")]):
        assert run.main([str(tiny), *how]) == 2
        assert one_line(capsys).startswith(f"{tiny}:11: ")
    assert not list((tmp_path / "out").glob("cells/*.json.gz")), "a cell ran although another could not"


def test_damaged_cells_are_computed_again(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One cell is edited, one cut, one empty, and of one the artefacts are cut: each is said."""
    out = tmp_path / "out"
    assert run.main([str(tiny), "--out", str(out), "--set", "tasks.0.map=true"]) == 0
    before = rows(out)
    artefacts = sorted((out / "cells").glob("*.npz"))[0]
    others = [file for file in sorted((out / "cells").glob("*.json.gz")) if file.name.partition(".")[0] != artefacts.stem]
    edited, cut, empty = others[:3]
    content = json.loads(gzip.decompress(edited.read_bytes())) | {"epsilon_provable": 0.1}
    edited.write_bytes(gzip.compress(json.dumps(content).encode()))
    cut.write_bytes(cut.read_bytes()[:200])
    empty.write_bytes(b"")
    artefacts.write_bytes(artefacts.read_bytes()[:-40])
    capsys.readouterr()
    assert run.main([str(tiny), "--resume", str(out), "--set", "tasks.0.map=true"]) == 0
    assert capsys.readouterr().err.count("damaged or was edited") == 4
    assert rows(out) == before


def test_one_folder_one_run(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run.main([str(tiny), "--out", str(out)]) == 0
    with (out / "cells" / "lock").open("a+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert run.main([str(tiny), "--resume", str(out)]) == 2
        assert "is at work in it" in one_line(capsys)
    assert run.main([str(tiny), "--resume", str(out)]) == 0


def test_out_that_is_a_file(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for option in ("--out", "--resume"):
        assert run.main([str(tiny), option, str(tmp_path / "file")]) == 2
        assert "a file; allowed: a folder" in one_line(capsys)
    assert run.main([str(tiny), "--out", str(tmp_path / "file" / "below")]) in (1, 2)
    one_line(capsys)


def test_a_place_that_cannot_be_written_starts_nothing(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    assert run.main([str(tiny), "--out", str(tmp_path / "out")]) == 1
    said = one_line(capsys)
    assert f"{tmp_path / 'out'}: {os.strerror(errno.EROFS)}; nothing was started" in said
    assert not (tmp_path / "out").exists()


def test_a_taken_folder_is_refused_before_data_are_read(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("data were read first")

    monkeypatch.setattr(experiment, "load_data", read)
    mark = tmp_path / "cells" / "scenario.sha256"
    mark.parent.mkdir()
    mark.write_text("of another run", encoding="utf-8")
    assert run.main([str(tiny), "--out", str(tmp_path)]) == 2
    assert "already there" in one_line(capsys)
    assert run.main([str(tiny), "--resume", str(tmp_path / "nothing")]) == 2
    assert "no run to resume" in one_line(capsys)
