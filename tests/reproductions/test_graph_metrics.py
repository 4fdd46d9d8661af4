"""Ways to compare small graphs: who is alike under which, what one edit does, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.reproductions.sections import graph_metrics as section
from benchmarks.reproductions.tasks import graph_metrics as task
from fedgraph import data, runtime
from fedgraph.cells.store import CellStore
from fedgraph.report.sections.base import SectionRecords
from fedgraph.tasks.base import CellContext, Result
from fedgraph.types import Graph


def params(**changes: Any) -> task.Params:
    given: dict[str, Any] = {"graphs": 12, "compared": 8, "shown": 3, "edits": 2, "max_nodes": 5, "training": {"epochs": 5}}
    return task.Params(**(given | changes))


def run(graph: Any, given: task.Params, folder: Path, seeds: int = 1) -> tuple[dict[str, Result], SectionRecords]:
    where = CellContext("t", "d", graph, 0, seeds, runtime.start("serial"))
    store, cells = CellStore(folder), task.cells(given, where)
    outcomes = {}
    for cell in cells:
        outcome = task.run(given, cell, where)
        store.save(outcome)
        if cell.seed == 0:
            outcomes[cell.method] = outcome
    found = [store.load(cell) for cell in cells]
    return outcomes, SectionRecords("graph_metrics", "t", "d", given.model_dump(), tuple(found))


@pytest.fixture(scope="module")
def plain(library: Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Result], SectionRecords]:
    """What the settings above give."""
    return run(library, params(), tmp_path_factory.mktemp("plain"))


def test_topology_cannot_tell_isomorphic_graphs_apart(plain: tuple[dict[str, Result], SectionRecords]) -> None:
    found, records = plain
    assert list(found) == ["graph size", "GED", "GW(A)", "FGW(A, X)", "GW(H)"]
    matrices = {name: out.artefacts["distances"] for name, out in found.items()}
    off = ~np.eye(8, dtype=bool)
    alike = (matrices["GED"] == 0) & off
    assert alike.any(), "eight ego-networks of three to five nodes: two are isomorphic"
    assert matrices["GW(A)"][alike].max() < 1e-9
    assert matrices["FGW(A, X)"][alike].min() > 1e-6
    assert matrices["GW(H)"][alike].max() > 1e-9
    for matrix in matrices.values():
        assert np.array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
    assert not matrices["graph size"][alike].any(), "isomorphic graphs are of one size"
    made = section.build(records)
    assert [row[0] for row in made.tables[0].rows] == list(found)
    words = " ".join(made.sentences)
    assert f"{int(alike.sum()) // 2} of 28 pairs are isomorphic" in words


def test_every_row_sees_the_same_edits(library: Graph, tmp_path: Path) -> None:
    """α = 1 is structure alone: the fused row must then repeat the topology row, edit by edit."""
    found, _ = run(library, params(alpha=1.0), tmp_path)
    for name, moved in found["GW(A)"].artefacts.items():
        assert np.allclose(found["FGW(A, X)"].artefacts[name], moved, atol=1e-9)


def test_no_edit_distance_for_large_graphs(tmp_path: Path) -> None:
    mutag = data.load("tu/mutag", stand_in=True)
    found, records = run(mutag, params(max_nodes=28, min_nodes=8), tmp_path, seeds=2)
    assert list(found) == ["graph size", "GW(A)", "FGW(A, X)", "GW(H)"]
    made = section.build(records)
    assert "exponential time" in " ".join(made.sentences)
    assert [t.title for t in made.tables] == ["Pairs of graphs", "One edge or node"]
    assert len(made.figures) == 3
