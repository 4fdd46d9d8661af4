"""Every shipped scenario parses, comments its keys, and dry-runs on a small graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.scenario import read

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_the_promised_ones_are_there() -> None:
    assert {"citeseer.yaml", "quickstart.yaml"} <= {f.name for f in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
def test_parses(path: Path, quick: bool) -> None:
    ready = read.read_scenario_file(path, quick=quick)
    assert ready.scenario.name == path.stem
    assert ready.scenario.title


def test_scenarios_of_benchmarks_parse() -> None:
    for path in sorted((FOLDER.parent / "benchmarks").glob("*.yaml")):
        if path.name == "tables.yaml":  # documented numbers (``python -m benchmarks.tables``)
            continue
        assert read.read_scenario_file(path).scenario.name == path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_key_is_commented(path: Path) -> None:
    """A scalar key at first sight carries a comment saying what it is (unit, default)."""
    bare, seen = [], set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        body = line.split("#")[0].strip().removeprefix("- ")
        key = body.split(":")[0]
        if ":" not in body or key.startswith(("title", "tasks.", "datasets.")) or "#" in line or key in seen:
            seen.add(key)
            continue
        if body.endswith(":"):
            continue
        bare.append(f"{path.name}:{number}: {body}")
    assert not bare


LONG = {"dpar_figures"}  # hundreds of plans


@pytest.mark.parametrize("path", [pytest.param(f, marks=[pytest.mark.slow] * (f.stem in LONG), id=f.stem) for f in FILES])
def test_dry_runs_on_a_small_graph(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    collections = [d["name"] for d in data["datasets"] if d["name"].startswith("tu/")]
    apart = collections and all("datasets" in task for task in data["tasks"])  # every task says which of them are its own
    small = ["embedded/library", "tu/mutag"] if apart else ["tu/mutag"] if collections else ["embedded/library"]
    data["datasets"] = [{"name": name} for name in small]
    for task in data["tasks"]:
        only = task.pop("datasets", [])
        if apart:
            task["datasets"] = [small[name in collections] for name in only[:1]]
        for key in [k for k in task if k.endswith("_of")]:
            del task[key]
        if isinstance(task.get("public"), dict) and "dataset" in task["public"]:
            task["public"] = {"share": 0.1}  # no other data set has the columns of the small graph
        if isinstance(task.get("delta"), dict):  # one for each data set of the read, which are not here
            task["delta"] = next(iter(task["delta"].values()))
        if task.get("partition", {}).get("partition") == "natural":  # the small graph has no owners
            task["partition"] = {"partition": "uniform", "clients": 4}
        for row in task.get("methods", []):  # nor edges with owners
            row.update({"unit": "node"} if row.get("unit") == "entity" else {})
        if task.get("partition", {}).get("centres") == "training":  # nor a published split
            task["partition"] = {"partition": "ego", "clients": 20}
        if "partition" in task and task["partition"].get("clients", 0) > 20:
            task["partition"]["clients"] = 20
    quick = {k: v for k, v in data.get("quick", {}).items() if "partition.clients" not in k and "datasets" not in k}
    data["quick"] = {**quick, "seeds": 1}
    copy = tmp_path / path.name
    copy.write_text(yaml.safe_dump(data), encoding="utf-8")
    experiment.dry_run_experiment(read.read_scenario_file(copy, quick=True), Console())
    assert "ε provable" in capsys.readouterr().out
