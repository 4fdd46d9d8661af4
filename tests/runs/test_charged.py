"""A run with a budget: charged before it releases, once, also when it is killed; refused with the row that would still fit."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedgraph import run
from fedgraph.privacy import budget_book
from fedgraph.privacy.units import Unit
from fedgraph.runs import experiment

PEOPLE = [str(k) for k in range(800)]
TEXT = """name: small
seed: secret
seeds: 2
budget: people.budget
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - {task: node_classification, label: t, epsilons: [1], trust: [curator], delta: 1e-5, methods: [{method: features, steps: 4}]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    budget_book.create(tmp_path / "people.budget", Unit.NODE, 8.0, 1e-5, PEOPLE)
    (tmp_path / "s.yaml").write_text(TEXT, encoding="utf-8")
    return tmp_path / "s.yaml"


def charges(scenario: Path) -> list[str]:
    return [charge.what for charge in budget_book.read(scenario.parent / "people.budget").charges]


def started(scenario: Path, out: str, *more: str, resume: bool = False) -> int:
    return run.main([str(scenario), "--resume" if resume else "--out", str(scenario.parent / out), *more])


def test_a_run_is_charged_for_all_of_its_cells_before_the_first(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert started(scenario, "one") == 0
    assert charges(scenario) == ["run one, 2 cells"]
    book = budget_book.read(scenario.parent / "people.budget")
    assert 1 < book.groups()[0].epsilon < 2, "two seeds are composed, and not added"
    assert started(scenario, "one", resume=True) == 0, "what is finished is not paid again"
    assert len(charges(scenario)) == 1
    assert started(scenario, "two") == 0
    assert started(scenario, "three", "--set", "tasks.0.epsilons=[4, 6]") == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "of 8 (δ = 1e-05); what is left is one release of ε = " in error
    assert error.endswith("This would still fit: features, curator, ε = 4.0, seed 0")
    assert not (scenario.parent / "three").exists(), "a refused run leaves nothing"
    assert len(charges(scenario)) == 2


@pytest.mark.parametrize(("moment", "paid"), [("charged", 2), ("computed", 1), ("noted", 2), ("artefacts", 2)])
def test_killed_at_any_moment_it_has_never_paid_too_little(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, moment: str, paid: int
) -> None:
    """Once between charge and note, after computing, between note and save, and while the second cell is saved."""

    def dies(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "charged":
            honest = budget_book.charge
            patch.setattr(budget_book, "charge", lambda *given: dies(honest(*given)))
        elif moment == "computed":
            patch.setattr(experiment.ChargedRun, "note", dies)
        elif moment == "noted":
            patch.setattr(experiment.store.CellStore, "save", dies)
        else:
            patch.setattr("fedgraph.cells.store.gzip.compress", dies)
        assert started(scenario, "cut") == 1
    assert len(charges(scenario)) == 1
    assert started(scenario, "cut", resume=True) == 0
    assert len(charges(scenario)) == paid
    assert (scenario.parent / "cut" / "results.csv").exists()


DIES = """
import os, signal, sys
from fedgraph import run
from fedgraph.cells.store import CellStore
honest = CellStore.save
def save(*given):
    honest(*given)
    os.kill(os.getpid(), signal.SIGKILL)
CellStore.save = save
run.main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_process_that_was_killed_is_resumed_and_has_paid_once(scenario: Path) -> None:
    """By SIGKILL when its first cell is there, after which nothing of it runs any more."""
    out = scenario.parent / "cut"
    done = subprocess.run([sys.executable, "-c", DIES, str(scenario), "--out", str(out)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list((out / "cells").glob("*.json.gz"))) == 1
    assert started(scenario, "cut", resume=True) == 0
    assert charges(scenario) == ["run cut, 2 cells"]
    assert (out / "results.csv").exists()


def test_a_cell_that_was_released_and_is_gone_is_paid_again(scenario: Path) -> None:
    assert started(scenario, "one") == 0
    first, *_ = sorted((scenario.parent / "one" / "cells").glob("*.json.gz"))
    first.unlink()
    assert started(scenario, "one", resume=True) == 0
    assert charges(scenario) == ["run one, 2 cells", "run one, 1 cells"]
    shutil.copytree(scenario.parent / "one", scenario.parent / "copy")
    assert started(scenario, "copy", resume=True) == 0
    assert charges(scenario)[-1] == "run copy, 2 cells", "a copy could release every cell once more"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (["--set", "seed=3"], "budget needs seed: secret (found 3)"),
        (
            ["--set", "tasks.0.methods=[{method: nonprivate, rounds: 2}]"],
            "ε = ∞, seed 0 releases something without noise",
        ),
        (["--set", "tasks.0.map=true"], "a map reads private rows that nobody prices"),
        (["--set", "tasks.0.methods=[{method: gap_edge}]", "--set", "tasks.0.protocol=transductive"], "is for one node"),
        (["--set", "budget=nowhere"], "nowhere: No such file"),
    ],
)
def test_what_cannot_be_charged_is_one_line(
    scenario: Path, capsys: pytest.CaptureFixture[str], change: list[str], why: str
) -> None:
    assert started(scenario, "one", *change) in (1, 2)
    assert why in capsys.readouterr().err.splitlines()[-1]
    assert charges(scenario) == []


def test_an_edited_budget_or_note_is_found(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert started(scenario, "one") == 0
    notes = scenario.parent / "one" / "cells" / "charged"
    assert [next(iter(json.loads(line))) for line in notes.read_text(encoding="utf-8").splitlines()] == [
        "run",
        "saved",
        "saved",
    ]
    notes.write_text("{", encoding="utf-8")
    assert started(scenario, "one", resume=True) == 0
    assert len(charges(scenario)) == 2, "who is charged cannot be known, so everything is paid again"
    book = scenario.parent / "people.budget"
    book.write_bytes(book.read_bytes().replace(b'"epsilon":8.0', b'"epsilon":9.0'))
    assert started(scenario, "two") == 1
    assert "people.budget:2: not as it was written" in capsys.readouterr().err
