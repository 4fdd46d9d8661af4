"""What fails leaves everything else whole: cells, folders, files, and the numbers of a run that is resumed."""

from __future__ import annotations

import csv
import errno
import fcntl
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedgraph import run
from fedgraph.cells import store
from fedgraph.cells.result import Result
from fedgraph.errors import ScenarioError
from fedgraph.privacy.trust import Trust
from fedgraph.runs import experiment
from fedgraph.scenario import read as scenario
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import Cell, measures
from fedgraph.worlds.world import world_of_trust

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


def test_a_learner_that_diverged_has_no_accuracy(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = ["--set", "tasks.0.methods=[{method: nonprivate, model: logistic, learning_rate: 1e12, rounds: 3}]"]
    changes += ["--set", "tasks.0.epsilons=[inf]", "--seeds", "1"]
    status = run.main([str(tiny), "--out", str(tmp_path / "out"), *changes])
    found = rows(tmp_path / "out")
    assert (status == 1) == any(row["status"] != "ok" for row in found)
    truth = np.array([0, 1, 1])
    for wrong in (np.nan, np.inf):
        with pytest.raises(Exception, match="diverged"):
            measures.of_scores(np.array([[0.1, 0.9], [wrong, 0.0], [0.5, 0.5]]), truth)


def test_a_run_in_which_everything_failed_says_so(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(params: Any, cell: Cell, context: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(node_classification, "run", fails)
    assert run.main([str(tiny), "--out", str(tmp_path / "out")]) == 1
    assert f"4 of 4 cells failed; the report is in {tmp_path / 'out'}; --resume" in one_line(capsys)
    assert {row["status"] for row in rows(tmp_path / "out")} == {"failed: not enough memory (no size told)"}


def test_a_small_test_set_is_said() -> None:
    assert "9 test nodes only: chance alone moves it by up to ± 0.33" in measures.warn_of_few(np.array([0] * 9 + [-1] * 500))[0]
    assert "9 test graphs only" in measures.warn_of_few(np.zeros(9), "graph")[0]
    assert measures.warn_of_few(np.zeros(100)) == ()


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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_is_full_at_any_moment(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    """The n-th write fails, for every n: one line, nothing half-written, and --resume gives the same numbers."""
    whole = tmp_path / "whole"
    assert run.main([str(tiny), "--out", str(whole), "--seeds", "1"]) == 0
    real, count = os.fsync, [0]
    writes = len([f for f in whole.rglob("*") if f.is_file() and f.name != "lock"]) + 1
    for broken in {0, 1, 2, 3, writes // 2, writes - 1} if code == errno.ENOSPC else {2}:
        out = tmp_path / f"out{broken}"
        count[0] = 0

        def full(file: int, at: int = broken) -> None:
            count[0] += 1
            if count[0] > at:
                raise OSError(code, os.strerror(code))
            real(file)

        monkeypatch.setattr("fedgraph.cells.store.os.fsync", full)
        assert run.main([str(tiny), "--out", str(out), "--seeds", "1"]) == 1
        line = one_line(capsys)
        assert os.strerror(code) in line
        assert f"fedgraph: {out}" in line
        monkeypatch.setattr("fedgraph.cells.store.os.fsync", real)
        assert not list(out.rglob("*.partial"))
        for file in out.rglob("*.json"):
            json.loads(file.read_text(encoding="utf-8"))
        option = "--resume" if (out / "cells" / "scenario.sha256").exists() else "--out"
        assert run.main([str(tiny), option, str(out), "--seeds", "1"]) == 0
        assert rows(out) == rows(whole)
        capsys.readouterr()


def test_a_damaged_table_of_pairs_is_solved_again(tmp_path: Path) -> None:
    pairs = store.CellPairStore(tmp_path)
    pairs.add("x", {"a": np.arange(3)})
    pairs.add("x", {"a": np.arange(4)})
    (tmp_path / "pairs" / "x.0.npz").write_bytes(b"PK\x03\x04damaged")
    assert [part["a"].size for part in pairs.load("x")] == [4]


def test_what_a_seed_cannot_spread(tiny: Path, tmp_path: Path) -> None:
    """± only where there are two seeds."""
    assert run.main([str(tiny), "--out", str(tmp_path / "one"), "--seeds", "1"]) == 0
    ready = scenario.from_file(tiny, seeds=1)
    kept = store.CellStore(tmp_path / "one")
    assert len(list(kept.folder.glob("*.json.gz"))) == 2
    assert ready.scenario.seeds == 1
    page = (tmp_path / "one" / "report.html").read_text(encoding="utf-8")
    said = re.sub(r'data-tip="[^"]*"', "", page).replace("chance alone moves it by up to ±", "")
    assert "±" not in said, "a spread of one seed"


def test_a_place_is_that_of_the_method(tiny: Path) -> None:
    ready = scenario.from_file(tiny)
    assert ready.place(ready.tasks[0], 0) == f"{tiny}:11"
    assert ready.place(ready.tasks[0], None) == f"{tiny}:7"
    with pytest.raises(ScenarioError, match=rf"^{tiny}:11: "):
        list(_planned(ready))


def _planned(ready: scenario.ReadyScenario) -> Any:
    class Stage:
        task = ready.tasks[0]
        context = None

    cell = Cell("t", "embedded/library", "features", "default", world_of_trust(Trust.CURATOR), 1.0, "provable", 0, entry=0)
    yield experiment.plan_cell(ready, Stage(), cell)  # type: ignore[arg-type]


@pytest.mark.parametrize("junk", ["[1]", "null", "[" * 100_000, '"text"'], ids=["list", "null", "deep", "text"])
def test_a_cell_that_is_other_json_is_computed_again(tmp_path: Path, junk: str) -> None:
    cell = Cell("t", "d", "m", "v", world_of_trust(Trust.CURATOR), 1.0, "provable", 0)
    kept = store.CellStore(tmp_path)
    kept.save(Result.of(cell, failed="why", seconds=0.0))
    next(kept.folder.glob("*.failed")).with_suffix(".json.gz").write_bytes(gzip.compress(junk.encode()))
    assert not kept.has(cell)
    assert "damaged or was edited" in kept.damaged[0]


def test_a_mark_that_is_no_text_belongs_to_no_scenario(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "out" / "cells" / "scenario.sha256"
    mark.parent.mkdir(parents=True)
    mark.write_bytes(b"\xff\xfe")
    assert run.main([str(tiny), "--resume", str(tmp_path / "out")]) == 2
    assert "made with another scenario" in one_line(capsys)


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


def test_folders_that_cannot_be_printed(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--out", "--resume", "--data-root"):
        assert run.main([str(tiny), option, "a\0b"]) == 2
        assert one_line(capsys).startswith(option)
