"""The command line as a user meets it: exit status, outputs, what resumes; what fails leaves all else whole."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fedgraph import run
from fedgraph.commands.base import main as fedgraph
from fedgraph.privacy.ledger import Ledger
from fedgraph.report import table
from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import Cell
from tests import scenarios
from tests.results import numbers

TASK = "    trust: [curator, own-client]\n    partition: {partition: uniform, clients: 3}\n"
TINY = (
    scenarios.small("{method: features, steps: 5, projection: 16}", TASK, seed="3", seeds="2", runtime="{engine: serial}")
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
SMALL = scenarios.small("{method: features, steps: 3, projection: 16}", seeds="2", runtime="{engine: serial}")
Captured = pytest.CaptureFixture[str]


class Finished(NamedTuple):
    """A run of a scenario, which tests read. Whoever writes into the folder takes a copy."""

    scenario: Path
    out: Path
    said: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    home, said = tmp_path_factory.mktemp("tiny"), io.StringIO()
    (home / "tiny.yaml").write_text(TINY, encoding="utf-8")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        assert run.main([str(home / "tiny.yaml"), "--out", str(home / "out")]) == 0
    return Finished(home / "tiny.yaml", home / "out", said.getvalue())


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def one_line(capsys: Captured) -> str:
    """The last line on stderr; a traceback is a failure."""
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err.splitlines()[-1]


def test_a_run_leaves_every_output(finished: Finished, capsys: Captured) -> None:
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
    assert (environment["seed"], environment["data"][0]["source"]) == (3, "embedded")
    assert len(Ledger.read(out / "ledger.jsonl")) == 2 * 2 * 5 * (1 + 3) + 8 * (1 + 2 + 1)
    page = (out / "report.html").read_text(encoding="utf-8")
    shown = page[: page.index('id="specs"')]  # what follows is Vega's
    assert not re.findall(r'<(?:link|img|script|iframe)[^>]*?(?:src|href)="(?!data:)[^"]*', shown), "who reads it asks nobody"
    assert "default-src 'none'" in page, "and a browser must keep it to that"
    assert 0 < len(finished.said.splitlines()) <= 40
    assert fedgraph(["explain", str(out)]) == 0
    assert " · curator · eps=1.0 · " in capsys.readouterr().out


def test_what_is_damaged_or_half_written_is_computed_again(finished: Finished, tmp_path: Path, capsys: Captured) -> None:
    """One cell is edited, one cut, one empty, and of one the artefacts are cut: each is said, and the rows are as before."""
    out = shutil.copytree(finished.out, tmp_path / "out")
    artefacts = sorted((out / "cells").glob("*.npz"))[0]
    others = [file for file in sorted((out / "cells").glob("*.json.gz")) if file.name.partition(".")[0] != artefacts.stem]
    edited, cut, empty, gone = others[:4]
    content = json.loads(gzip.decompress(edited.read_bytes())) | {"epsilon_provable": 0.1}
    edited.write_bytes(gzip.compress(json.dumps(content).encode()))
    cut.write_bytes(cut.read_bytes()[:200])
    empty.write_bytes(b"")
    gone.rename(gone.with_name("half.json.partial"))
    artefacts.write_bytes(artefacts.read_bytes()[:-40])
    assert run.main([str(finished.scenario), "--resume", str(out)]) == 0
    assert capsys.readouterr().err.count("damaged or was edited") == 4
    assert numbers(out) == numbers(finished.out)
    assert (out / "ledger.jsonl").read_bytes() == (finished.out / "ledger.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("graph_classification\n    methods: [{method: local_dp}]", "needs a collection"),
        ("graph_clustering\n    method: {method: local_dp}\n    partition: {partition: ego, clients: 4000}", "fewer clients"),
    ],
)
def test_what_the_data_cannot_serve_names_the_line_of_its_task(task: str, said: str, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "misfit.yaml"
    path.write_text(TINY[: TINY.index("  - task")] + f"  - task: {task}\n    epsilons: [1]\n", encoding="utf-8")
    assert run.main([str(path), "--out", str(tmp_path / "out")]) == 2
    error = one_line(capsys)
    assert f"{path}:8: " in error
    assert said in error
    assert not (tmp_path / "out").exists(), "the next try may have the same --out"


def test_synthetic_data_is_announced_first_everywhere(
    tiny: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("fedgraph.data.base.files.download", lambda *args: "no network")
    empty, out = tmp_path / "empty", tmp_path / "out"
    empty.mkdir()
    tiny.write_text(SMALL.replace("- name: embedded/library", "- {name: planetoid/cora, when_unavailable: synthetic}"))
    changes = ["--set", "seeds=1", "--set", "tasks.0.epsilons=[1]"]
    assert run.main([str(tiny), "--out", str(out), "--data-root", str(empty), *changes]) == 0
    assert {row["source"] for row in numbers(out)} == {"synthetic"}
    for name in ("ledger.jsonl", "scenario.yaml", "report.html"):
        assert "SYNTHETIC" in (out / name).read_text(encoding="utf-8").splitlines()[0], name
    assert next(iter(json.loads((out / "environment.json").read_text(encoding="utf-8")))) == "notice"
    assert capsys.readouterr().out.startswith("SYNTHETIC DATA")
    assert len(Ledger.read(out / "ledger.jsonl")) > 0


def test_dry_run_reads_no_data(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY.replace("embedded/library", "planetoid/citeseer"), encoding="utf-8")
    assert run.main(["tiny.yaml", "--dry-run", "--data-root", "not-there"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())  # a narrow terminal breaks the cells of the table
    assert "Gaussian noise" in shown
    assert "multi-bit encoder" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


def test_names_with_brackets_and_colons_are_shown_as_they_are(capsys: Captured) -> None:
    console, name = Console(), "[red]age, [/]city, :bank:"
    console.say(name)
    console.print(name)
    console.table(f"{name}!", [f"{name}?"], [[name]])
    out = capsys.readouterr()
    assert out.err == f"{name}\n"
    assert out.out.count(name) == 4


def test_a_failing_cell_ends_no_other(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    out, whole, real = tmp_path / "out", tmp_path / "whole", node_classification.run
    assert run.main([str(tiny), "--out", str(whole)]) == 0

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
    assert [[row[name] for name in ("status", "epsilon", "seed", "value")] for row in failed] == [
        ["failed: ValueError: shapes differ", "1.0", "1", ""]
    ]
    sound = [row for row in numbers(whole) if (row["epsilon"], row["seed"]) != ("1.0", "1")]
    assert [row for row in numbers(out) if row["status"] == "ok"] == sound
    monkeypatch.undo()
    assert run.main([str(tiny), "--resume", str(out)]) == 0
    assert numbers(out) == numbers(whole)


def test_resume_refuses_other_public_people(tiny: Path, tmp_path: Path, capsys: Captured) -> None:
    out, mask = tmp_path / "out", tmp_path / "public.txt"
    tiny.write_text(SMALL.replace("    methods:", f"    public: {{mask: {mask}}}\n    methods:"), encoding="utf-8")
    for ids, status in (("0\n1\n2\n", 0), ("0\n1\n3\n", 2)):
        mask.write_text(ids, encoding="utf-8")
        assert run.main([str(tiny), "--resume" if status else "--out", str(out)]) == status
    assert "or on other data" in one_line(capsys)


def test_one_folder_one_run(finished: Finished, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another scenario, a folder that is taken or has no run, and one in which a run is at work; before any data are read."""
    scenario, out = str(finished.scenario), shutil.copytree(finished.out, tmp_path / "out")

    def refused(*words: str) -> str:
        assert run.main([scenario, *words]) == 2
        return one_line(capsys)

    assert "another scenario" in refused("--set", "seeds=1", "--resume", str(out))
    with (out / "cells" / "lock").open("a+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "is at work in it" in refused("--resume", str(out))
    with monkeypatch.context() as patch:
        patch.setattr(experiment, "load_data", lambda *_: pytest.fail("data were read first"))
        assert "already there" in refused("--out", str(out))
        assert "no run to resume" in refused("--resume", str(tmp_path / "nowhere"))
    assert run.main([scenario, "--resume", str(out)]) == 0
