"""The same people give the same rows from Python and from the command line: one draft decides for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import fedgraph
from fedgraph.commands import main
from fedgraph.runs import experiment
from fedgraph.scenario import read

MOVED = {"datasets", "label"}  # a draft names its data set by file, ``compare`` by name


@pytest.fixture(scope="module")
def people() -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """120 people with two columns and a job, tied to people of the same job more often."""
    rng = np.random.default_rng(0)
    job = rng.integers(0, 2, 120)
    x = rng.normal(size=(120, 2)) + job[:, None]
    nodes = pandas.DataFrame({"id": range(120), "a": x[:, 0].round(3), "b": x[:, 1].round(3)})
    ends = np.argwhere(np.triu(rng.random((120, 120)) < np.where(job[:, None] == job, 0.05, 0.01), 1))
    return nodes.assign(label=np.where(job, "x", "y")), pandas.DataFrame(ends, columns=["source", "target"])


@pytest.fixture
def handed(people: tuple[pandas.DataFrame, pandas.DataFrame], tmp_path: Path) -> Path:
    """The same people as files, whose owner drafts a scenario."""
    (nodes, edges), folder = people, tmp_path / "people"
    folder.mkdir()
    nodes.drop(columns="label").to_csv(folder / "features.csv", index=False)
    nodes[["id", "label"]].to_csv(folder / "labels.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)
    return folder


def tasks_of(mapping: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in task.items() if key not in MOVED} for task in mapping["tasks"]]


def test_python_and_command_line_compare_the_same_rows(
    people: Any, handed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "draft.yaml"
    assert main(["new", "--graph", str(handed), "--yes", "--no-probe", "--out", str(out)]) == 0
    asked: list[read.ReadyScenario] = []

    def begun(ready: read.ReadyScenario, *_: object, **__: object) -> None:
        asked.append(ready)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", begun)
    with pytest.raises(KeyboardInterrupt):
        fedgraph.compare(people)
    (ready,) = asked
    assert tasks_of(ready.resolved) == tasks_of(read.from_file(out).resolved)
    assert {task["protocol"] for task in ready.resolved["tasks"]} == {"asking"}  # type: ignore[attr-defined]


def test_rows_and_numbers_are_equal(people: Any, handed: Path, tmp_path: Path) -> None:
    """With the draft's secret seed replaced, and its rows shrunk as ``--quick`` would. One ε or trust needs no list."""
    out, methods = tmp_path / "draft.yaml", [{"method": "features", "label": "Features", "steps": 2, "projection": 8}]
    words = ["new", "--graph", str(handed), "--yes", "--no-probe", "--out", str(out)]
    assert main([*words, "--trust", "sums", "--epsilons", "8", "--clients", "3", "--name", "people"]) == 0
    changes = {"seed": 0, "seeds": 1, "tasks.0.methods": methods}
    one = fedgraph.run(out, quiet=True, runtime="serial", changes=changes, out=tmp_path / "r").table()
    other = fedgraph.compare(people, methods, np.float64(8), "sums", clients=3, name="people").table()
    same = ["task", "method", "variant", "trust", "epsilon", "epsilon_provable", "value"]
    assert one[same].to_dict("records") == other[same].to_dict("records")
