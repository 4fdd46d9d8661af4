"""The same people give the same rows from Python and from the command line: one draft decides for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedgraph
from fedgraph.commands import main
from fedgraph.scenario import read
from fedgraph.types import Graph

MOVED = {"datasets", "label"}  # a draft names its data set by file, ``compare`` by name


@pytest.fixture
def handed(library: Graph, tmp_path: Path) -> Path:
    """The graph as a file whose owner drafts a scenario."""
    arcs = library.adjacency.tocoo()
    path = tmp_path / "people.npz"
    np.savez(
        path,
        edges=np.stack(arcs.coords).astype(np.int64),
        features=library.features.toarray(),
        labels=library.labels,
    )
    return path


def tasks_of(mapping: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in task.items() if key not in MOVED} for task in mapping["tasks"]]


def test_python_and_command_line_compare_the_same_rows(
    library: Graph, handed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "draft.yaml"
    assert main(["new", "--graph", str(handed), "--yes", "--no-probe", "--out", str(out)]) == 0
    asked: list[read.ReadyScenario] = []

    def started(ready: read.ReadyScenario, *_: object) -> None:
        asked.append(ready)

    monkeypatch.setattr("fedgraph.library._started", started)
    fedgraph.compare(library)
    (ready,) = asked
    assert tasks_of(ready.resolved) == tasks_of(read.from_file(out).resolved)
    assert {task["protocol"] for task in ready.resolved["tasks"]} == {"asking"}  # type: ignore[attr-defined]


def test_rows_and_numbers_are_equal(library: Graph, handed: Path, tmp_path: Path) -> None:
    """With the draft's secret seed replaced, and its rows shrunk as ``--quick`` would."""
    out, methods = tmp_path / "draft.yaml", [{"method": "features", "label": "Features", "steps": 2, "projection": 8}]
    words = ["new", "--graph", str(handed), "--yes", "--no-probe", "--out", str(out)]
    assert main([*words, "--trust", "curator", "sums", "--epsilons", "8", "--clients", "3", "--name", "people"]) == 0
    changes = {"seed": 0, "seeds": 1, "tasks.0.methods": methods}
    one = fedgraph.run(out, quiet=True, runtime="serial", changes=changes, out=tmp_path / "r").table()
    other = fedgraph.compare(library, methods, [8], ["curator", "sums"], clients=3, name="people").table()
    same = ["task", "method", "variant", "trust", "epsilon", "epsilon_provable", "mean"]
    assert one[same].to_dict("records") == other[same].to_dict("records")


def test_named_methods_are_asked_one_question() -> None:
    """``asking`` if all that protect nodes serve it, else ``inductive`` for all of them: rows that can be compared."""
    from fedgraph import library

    def protocols(*names: str) -> list[str]:
        return [str(t["protocol"]) for t in library._by_unit([{"method": n} for n in names], {}, "auto", {})]

    assert protocols("features", "nonprivate") == ["asking"]
    assert protocols("features", "gap_node", "nonprivate") == ["inductive"]
    assert protocols("features", "gap_edge") == ["asking", "transductive"]
