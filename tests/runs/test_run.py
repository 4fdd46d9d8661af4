"""The command line as a user meets it: exit status, outputs, resume after a kill, Ctrl-C."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedgraph import run
from fedgraph.commands.base import main as fedgraph
from fedgraph.privacy.ledger import Ledger
from fedgraph.report import table
from fedgraph.runs import experiment

TINY = """\
name: tiny
title: A tiny run
seed: 3
seeds: 2
runtime: {engine: serial}
datasets:
  - name: embedded/library
tasks:
  - task: node_classification
    epsilons: [1, inf]
    trust: [curator, own-client]
    partition: {partition: uniform, clients: 3}
    methods:
      - {method: features, steps: 5, projection: 16}
  - task: graph_clustering
    epsilons: [4]
    seeds: 1
    num_init: 1
    max_iterations: 3
    partition: {partition: ego, clients: 8}
    method: {method: local_dp, rounds: 2}
"""


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


def numbers(folder: Path) -> list[dict[str, str]]:
    """The results without the seconds."""
    with (folder / "results.csv").open(encoding="utf-8") as file:
        return [
            {k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(line for line in file if line[0] != "#")
        ]


def test_a_run_leaves_every_output(scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run.main([str(scenario_file), "--out", str(out)]) == 0
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
    said = capsys.readouterr()
    assert len((said.out + said.err).splitlines()) <= 40
    assert fedgraph(["explain", str(out)]) == 0
    assert " · curator · eps=1.0 · " in capsys.readouterr().out


def test_resume_after_a_kill_gives_the_same_result(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run.main([str(scenario_file), "--out", str(whole)]) == 0

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


def test_resume_refuses_another_scenario(scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = [str(scenario_file), "--set", "seeds=1", "--set", "tasks.0.epsilons=[1]"]
    assert run.main([*arguments, "--out", str(out)]) == 0
    assert run.main([str(scenario_file), "--resume", str(out)]) == 2
    assert "another scenario" in capsys.readouterr().err
    assert run.main([*arguments, "--out", str(out)]) == 2
    assert "already there" in capsys.readouterr().err
    assert run.main([*arguments, "--resume", str(tmp_path / "nowhere")]) == 2


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


@pytest.mark.ray("own")
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_interrupted_under_ray(scenario_file: Path, tmp_path: Path, how: signal.Signals) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run.main([str(scenario_file), "--out", str(whole), "--set", "seeds=6"]) == 0
    command = [sys.executable, "-m", "fedgraph.run", str(scenario_file), "--runtime", "ray", "--set", "seeds=6"]
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background job would ignore Ctrl-C
    with subprocess.Popen(
        [*command, "--out", str(out)], stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heard
    ) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(list((out / "cells").glob("*.json.gz")) if out.exists() else []) < 2:
            time.sleep(0.05)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
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
    """No process of the session is left within 30 s."""
    for _ in range(300):
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
