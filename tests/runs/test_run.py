"""The command line as a user meets it: exit status, outputs, resume after a kill, Ctrl-C; what fails leaves all else whole."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fedgraph import run
from fedgraph.commands.base import main as fedgraph
from fedgraph.privacy.ledger import Ledger
from fedgraph.report import table
from fedgraph.runs import experiment
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import Cell
from tests import scenarios
from tests.results import numbers

TASK = "    trust: [curator, own-client]\n    partition: {partition: uniform, clients: 3}\n"
KEYS = {"title": "A tiny run", "seed": "3", "seeds": "2", "runtime": "{engine: serial}"}
TINY = (
    scenarios.small("{method: features, steps: 5, projection: 16}", TASK, **KEYS)
    + """\
  - task: graph_clustering
    epsilons: [4]
    seeds: 1
    num_init: 1
    max_iterations: 3
    partition: {partition: ego, clients: 8}
    method: {method: local_dp, rounds: 2}
"""
)


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Finished:
    """A run of a scenario, which tests read. Whoever writes into the folder takes a copy."""

    scenario: Path
    out: Path
    said: str

    @classmethod
    def of(cls, text: str, home: Path) -> Finished:
        scenario, said = home / "tiny.yaml", io.StringIO()
        scenario.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            assert run.main([str(scenario), "--out", str(home / "out")]) == 0
        return cls(scenario, home / "out", said.getvalue())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return Finished.of(TINY, tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return Finished.of(SMALL, tmp_path_factory.mktemp("small"))


def test_a_run_leaves_every_output(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    out = finished.out
    for name in ("results.csv", "results.parquet", "ledger.jsonl", "scenario.yaml", "environment.json", "report.html"):
        assert (out / name).stat().st_size > 100, name
    rows = numbers(out)
    assert set(table.COLUMNS) - {"seconds", "facts", "ledger", "record"} < set(rows[0])
    assert {r["trust"] for r in rows} == {"curator", "own-client"}
    assert len([r for r in rows if r["metric"] == "accuracy"]) == 2 * 2 * 2
    assert {r["epsilon_provable"] for r in rows if r["epsilon"] == "inf" and r["method"] == "features"} == {"inf"}
    assert all(r["epsilon_measured"] == "" for r in rows)
    environment = json.loads((out / "environment.json").read_text(encoding="utf-8"))
    assert environment["seed"] == 3
    assert environment["data"][0]["source"] == "embedded"
    ledger = Ledger.read(out / "ledger.jsonl")
    assert len(ledger) == 2 * 2 * 5 * (1 + 3) + 8 * (1 + 2 + 1)
    page = (out / "report.html").read_text(encoding="utf-8")
    shown = page[: page.index('id="specs"')]  # what follows is Vega's
    assert not re.findall(r'<(?:link|img|script|iframe)[^>]*?(?:src|href)="(?!data:)[^"]*', shown), "who reads it asks nobody"
    assert "default-src 'none'" in page, "and a browser must keep it to that"
    assert 0 < len(finished.said.splitlines()) <= 40
    assert fedgraph(["explain", str(out)]) == 0
    assert " · curator · eps=1.0 · " in capsys.readouterr().out


def test_resume_after_ctrl_c_gives_the_same_result(finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario_file, whole, cut = finished.scenario, finished.out, tmp_path / "cut"
    real, count = experiment.store.CellStore.save, []

    def dies_after_three(self: object, *args: object) -> None:
        if len(count) == 3:
            raise KeyboardInterrupt
        count.append(1)
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment.store.CellStore, "save", dies_after_three)
    assert run.main([str(scenario_file), "--out", str(cut)]) == 1
    monkeypatch.undo()
    assert "UNFINISHED RUN" in (cut / "report.html").read_text(encoding="utf-8")
    (cut / "cells" / "half.json.partial").write_text("{", encoding="utf-8")  # a cell that was being written
    assert run.main([str(scenario_file), "--resume", str(cut)]) == 0
    assert numbers(cut) == numbers(whole)
    assert (cut / "ledger.jsonl").read_bytes() == (whole / "ledger.jsonl").read_bytes()


def test_resume_refuses_another_scenario(finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, out = str(finished.scenario), str(finished.out)
    assert run.main([scenario, "--set", "seeds=1", "--resume", out]) == 2
    assert "another scenario" in capsys.readouterr().err
    assert run.main([scenario, "--out", out]) == 2
    assert "already there" in capsys.readouterr().err
    assert run.main([scenario, "--resume", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("graph_classification\n    methods: [{method: local_dp}]", "needs a collection"),
        ("graph_clustering\n    method: {method: local_dp}\n    partition: {partition: ego, clients: 4000}", "fewer clients"),
    ],
)
def test_what_the_data_cannot_serve_names_the_line_of_its_task(
    task: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "misfit.yaml"
    path.write_text(TINY[: TINY.index("  - task")] + f"  - task: {task}\n    epsilons: [1]\n", encoding="utf-8")
    assert run.main([str(path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"{path}:9: " in error
    assert said in error
    assert not (tmp_path / "out").exists(), "the next try may have the same --out"


def test_synthetic_data_is_announced_first_everywhere(
    scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("fedgraph.data.base.files.download", lambda *args: "no network")
    empty, out = tmp_path / "empty", tmp_path / "out"
    empty.mkdir()
    text = TINY.replace("- name: embedded/library", "- {name: planetoid/cora, when_unavailable: synthetic}")
    scenario_file.write_text(text, encoding="utf-8")
    changes = ["--set", "seeds=1", "--set", "tasks.0.epsilons=[1]"]
    assert run.main([str(scenario_file), "--out", str(out), "--data-root", str(empty), *changes]) == 0
    assert {row["source"] for row in numbers(out)} == {"synthetic"}
    for name in ("ledger.jsonl", "scenario.yaml", "report.html"):
        first = (out / name).read_text(encoding="utf-8").splitlines()[0]
        assert "SYNTHETIC" in first, f"{name}: {first}"
    assert next(iter(json.loads((out / "environment.json").read_text(encoding="utf-8")).items()))[0] == "notice"
    assert capsys.readouterr().out.startswith("SYNTHETIC DATA")
    assert len(Ledger.read(out / "ledger.jsonl")) > 0


def test_dry_run_reads_no_data(scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario_file.write_text(TINY.replace("embedded/library", "planetoid/citeseer"), encoding="utf-8")
    assert run.main([str(scenario_file), "--dry-run", "--data-root", str(tmp_path / "not-there")]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())  # a narrow terminal breaks the cells of the table
    assert "Gaussian noise" in shown
    assert "multi-bit encoder" in shown
    assert not (tmp_path / "runs").exists()


WAITS = """
import signal, sys
from fedgraph import run
from fedgraph.cells.store import CellStore
honest, saved = CellStore.save, []
def save(*given):
    saved.append(honest(*given))
    if len(saved) == 2:
        signal.pause()
CellStore.save = save
sys.exit(run.main(sys.argv[1:]))
"""


@pytest.mark.ray("own")
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_interrupted_under_ray(scenario_file: Path, tmp_path: Path, how: signal.Signals) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run.main([str(scenario_file), "--out", str(whole), "--set", "seeds=6"]) == 0
    command = [sys.executable, "-c", WAITS, str(scenario_file), "--runtime", "ray", "--set", "seeds=6"]
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background job would ignore Ctrl-C
    with subprocess.Popen(
        [*command, "--out", str(out)], stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heard
    ) as process:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and len(list((out / "cells").glob("*.json.gz")) if out.exists() else []) < 2:
            time.sleep(0.05)
        process.send_signal(how)
        _, err = process.communicate(timeout=600)
    if how is signal.SIGINT:
        assert process.returncode == 1
        assert "interrupted" in err
        assert "Traceback" not in err
        assert wait_until_gone(process.pid), "actors outlived the driver"
    else:  # nobody is left to say goodbye: Ray's own processes notice in their own time
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert run.main([str(scenario_file), "--resume", str(out), "--set", "seeds=6"]) == 0
    assert numbers(out) == numbers(whole)


def wait_until_gone(session: int) -> bool:
    """No process of the session is left within ten minutes."""
    for _ in range(6000):
        alive = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
                except OSError:
                    continue
                if int(stat[3]) == session and stat[0] != "Z" and int(entry.name) != os.getpid():
                    alive.append(entry.name)
        if not alive:
            return True
        time.sleep(0.1)
    return False


# ---------------------------------------------------------------------------------------------------------------- what fails

SMALL = scenarios.small("{method: features, steps: 3, projection: 16}", seeds="2", runtime="{engine: serial}")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line on stderr; a traceback is a failure."""
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err.splitlines()[-1]


def test_a_failing_cell_ends_no_other(
    small: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny, whole, out = small.scenario, small.out, tmp_path / "out"
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
    failed = [row for row in numbers(out) if row["status"] != "ok"]
    assert [(row["status"], row["epsilon"], row["seed"], row["value"]) for row in failed] == [
        ("failed: ValueError: shapes differ", "1.0", "1", "")
    ]
    assert [row for row in numbers(out) if row["status"] == "ok"] == [
        row for row in numbers(whole) if (row["epsilon"], row["seed"]) != ("1.0", "1")
    ]
    monkeypatch.undo()
    assert run.main([str(tiny), "--resume", str(out)]) == 0
    assert numbers(out) == numbers(whole)


def test_damaged_cells_are_computed_again(finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One cell is edited, one cut, one empty, and of one the artefacts are cut: each is said."""
    out = tmp_path / "out"
    shutil.copytree(finished.out, out)
    artefacts = sorted((out / "cells").glob("*.npz"))[0]
    others = [file for file in sorted((out / "cells").glob("*.json.gz")) if file.name.partition(".")[0] != artefacts.stem]
    edited, cut, empty = others[:3]
    content = json.loads(gzip.decompress(edited.read_bytes())) | {"epsilon_provable": 0.1}
    edited.write_bytes(gzip.compress(json.dumps(content).encode()))
    cut.write_bytes(cut.read_bytes()[:200])
    empty.write_bytes(b"")
    artefacts.write_bytes(artefacts.read_bytes()[:-40])
    capsys.readouterr()
    assert run.main([str(finished.scenario), "--resume", str(out)]) == 0
    assert capsys.readouterr().err.count("damaged or was edited") == 4
    assert numbers(out) == numbers(finished.out)


def test_resume_refuses_other_public_people(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, mask = tmp_path / "out", tmp_path / "public.txt"
    tiny.write_text(SMALL.replace("    methods:", f"    public: {{mask: {mask}}}\n    methods:"), encoding="utf-8")
    mask.write_text("0\n1\n2\n", encoding="utf-8")
    assert run.main([str(tiny), "--out", str(out)]) == 0
    assert run.main([str(tiny), "--resume", str(out)]) == 0
    mask.write_text("0\n1\n3\n", encoding="utf-8")
    assert run.main([str(tiny), "--resume", str(out)]) == 2
    assert "or on other data" in one_line(capsys)


def test_one_folder_one_run(small: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny, out = small.scenario, shutil.copytree(small.out, tmp_path / "out")
    with (out / "cells" / "lock").open("a+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert run.main([str(tiny), "--resume", str(out)]) == 2
        assert "is at work in it" in one_line(capsys)
    assert run.main([str(tiny), "--resume", str(out)]) == 0


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
