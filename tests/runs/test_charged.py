"""A run with a budget: charged before it releases, once, also when it is killed; refused with the row that would still fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fedgraph import run
from fedgraph.cells.store import CellStore
from fedgraph.privacy import budget_book
from fedgraph.privacy.units import Unit
from fedgraph.runs import experiment

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
    budget_book.create(tmp_path / "people.budget", Unit.NODE, 8.0, 1e-5, [str(k) for k in range(800)])
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


@pytest.mark.parametrize(
    ("place", "name", "after", "paid"),
    [
        pytest.param(budget_book, "charge", True, 2, id="between charge and note"),
        pytest.param(experiment.ChargedRun, "note", False, 1, id="after computing"),
        pytest.param(CellStore, "save", False, 2, id="between note and save"),
        pytest.param(CellStore, "save", True, 1, id="after the first cell"),
    ],
)
def test_killed_at_any_moment_it_has_never_paid_too_little(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, place: object, name: str, after: bool, paid: int
) -> None:
    honest = getattr(place, name)

    def dies(*given: object) -> None:
        if after:
            honest(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, name, dies)
        assert started(scenario, "cut") == 1
    assert len(charges(scenario)) == 1
    assert started(scenario, "cut", resume=True) == 0
    assert len(charges(scenario)) == paid
    assert (scenario.parent / "cut" / "results.csv").exists()


def test_what_is_gone_copied_or_edited_is_paid_again(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = scenario.parent
    assert started(scenario, "one") == 0
    notes = home / "one" / "cells" / "charged"
    kinds = [next(iter(json.loads(line))) for line in notes.read_text(encoding="utf-8").splitlines()]
    assert kinds == ["run", "saved", "saved"]
    next((home / "one" / "cells").glob("*.json.gz")).unlink()
    assert started(scenario, "one", resume=True) == 0
    shutil.copytree(home / "one", home / "copy")
    assert started(scenario, "copy", resume=True) == 0
    notes.write_text("{", encoding="utf-8")
    assert started(scenario, "one", resume=True) == 0
    assert charges(scenario)[:3] == ["run one, 2 cells", "run one, 1 cells", "run copy, 2 cells"], "a copy could release anew"
    assert len(charges(scenario)) == 4, "who is charged cannot be known, so everything is paid again"
    book = home / "people.budget"
    book.write_bytes(book.read_bytes().replace(b'"epsilon":8.0', b'"epsilon":9.0'))
    assert started(scenario, "two") == 1
    assert "people.budget:2: not as it was written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("seed=3", "budget needs seed: secret (found 3)"),
        ("tasks.0.methods=[{method: nonprivate, rounds: 2}]", "ε = ∞, seed 0 releases something without noise"),
        ("tasks.0.map=true", "a map reads private rows that nobody prices"),
        ("tasks.0.methods=[{method: gap_edge}] tasks.0.protocol=transductive", "is for one node"),
        ("budget=nowhere", "nowhere: No such file"),
    ],
)
def test_what_cannot_be_charged_is_one_line(scenario: Path, capsys: pytest.CaptureFixture[str], change: str, why: str) -> None:
    changes = [word for one in change.replace("] ", "]\n").splitlines() for word in ("--set", one)]
    assert started(scenario, "one", *changes) in (1, 2)
    assert why in capsys.readouterr().err.splitlines()[-1]
    assert charges(scenario) == []
