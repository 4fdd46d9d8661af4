"""A row that chooses its settings privately inside a run: its price, what it says, a run that goes on, and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fedgraph import run
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import NodeClassificationCellFacts
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Selected
from fedgraph.privacy.ledger import Ledger
from fedgraph.privacy.units import Assumption
from fedgraph.report.saved_run import load_saved_run

ROW = "{method: features, select: {over: {steps: [2, 6], clip: [0.25, 0.5]}, among: 3}}"
TEXT = """name: small
seed: secret
seeds: 2
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - {task: node_classification, label: t, epsilons: [4], trust: [curator], delta: 1e-4, methods: [ROW]}
"""


def written(folder: Path, text: str = TEXT, row: str = ROW) -> Path:
    (folder / "s.yaml").write_text(text.replace("ROW", row), encoding="utf-8")
    return folder / "s.yaml"


def entries(out: Path) -> list[Result]:
    (row,) = load_saved_run(out).rows
    return sorted(row.cells, key=lambda e: e.seed)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("chosen")
    assert run.main([str(written(home)), "--out", str(home / "out")]) == 0
    return home / "out"


def test_a_chosen_row_costs_what_its_ledger_says_and_the_search_is_counted(done: Path) -> None:
    for entry in entries(done):
        ledger = Ledger.of_lines(entry.ledger)
        ((line,), (account,)) = (tuple(ledger), ledger.accounts)
        assert isinstance(line.event, Selected)
        assert (line.count, len(line.event.candidates)) == (1, 3), "trainings of two lengths, a score; one line stands for all"
        assert entry.epsilon_provable == pytest.approx(price(line.event, 1e-4).epsilon)
        assert 3.5 < entry.epsilon_provable <= 4
        assert Assumption.UNTUNED not in account.protection.assumptions
        assert Assumption.TRIALS_SECRET in account.protection.assumptions
        assert isinstance(entry.facts, NodeClassificationCellFacts)
        choice = entry.facts.choice
        assert choice is not None
        assert price(line.event.candidates[-1], 1e-4).epsilon <= choice.epsilon + 1e-6
        assert choice.epsilon < entry.epsilon_provable
        assert set(choice.settings) == {"steps", "clip"}
        assert entry.facts.train_nodes == 240 - 48, "who judges does not train"
        assert (entry.seconds, entry.epsilon_published) == (0.0, None), "how long it took is a secret"


def test_no_file_tells_how_long_a_choice_took(done: Path) -> None:
    """The number of trials is secret, and so is what goes along with it: dates of the end, durations, times of files."""
    environment = json.loads((done / "environment.json").read_text(encoding="utf-8"))
    assert environment["made"]["seconds"] is None
    assert not environment["made"]["finished"]
    counts = environment["runtime"]["federation"].values()
    assert not any(count[name] for count in counts for name in ("seconds", "server_busy"))
    files = [done, *done.rglob("*")]
    assert len(files) > 8
    assert len({file.stat().st_mtime for file in files}) == 1, "all files are as old as the beginning"
    year = re.compile(rb"20\d\d-[01]\d-[0-3]\d[ T][0-2]\d:")
    library = re.compile(rb'Date\("20\d\d-0[17]-01T00:00[^"]*"\)')  # constants of the script that draws
    assert not [file for file in files if file.is_file() and year.search(library.sub(b"", file.read_bytes()))]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{method: features, trust: [sums], select: {over: {steps: [2]}}}", "a server sees every trial"),
        ("{method: features, select: {over: {steps: [2, 0]}}}", "steps"),
        ("{method: nonprivate, select: {over: {rounds: [2]}}}", "select needs a private method"),
        ("{method: features, epsilons: [.inf], select: {over: {steps: [2]}}}", "finite ε"),
        ("{method: features, epsilons: [1.0e-4], select: {over: {steps: [2]}, among: 900}}", "does not pay for a choice"),
    ],
)
def test_what_has_no_price_is_refused_in_one_line(
    row: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = written(tmp_path, TEXT.replace("[curator]", "[curator, sums]") if "sums" in row else TEXT, row)
    assert run.main([str(scenario), "--out", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert why in line
    assert "s.yaml:" in line
    assert not list((tmp_path / "out").glob("cells/*.json.gz"))
