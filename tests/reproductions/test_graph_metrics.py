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
    return outcomes, SectionRecords(
        "t", "graph_metrics", "t", "d", given.model_dump(), tuple(found), tuple(dict(f.artefacts) for f in found)
    )


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
    made = section.build(records, None)
    assert [row[0] for row in made.tables[0].rows] == list(found)
    words = " ".join(made.sentences)
    assert f"{int(alike.sum()) // 2} of 28 pairs are isomorphic" in words


def test_one_edit_moves_topology_and_embeddings(plain: tuple[dict[str, Result], SectionRecords]) -> None:
    found, _ = plain
    for name in ("GW(A)", "GW(H)"):
        out = found[name]
        for edit in ("edge_removed", "node_removed"):
            moved = out.artefacts[edit]
            assert moved.size == 24
            assert moved.min() >= 0
            assert moved.max() > 0
            assert out.metrics[f"{edit}_median"] == np.median(moved)
            assert out.metrics[f"{edit}_largest"] == moved.max() >= out.metrics[f"{edit}_high"]
    assert found["GED"].account is None
    assert "edge_removed" not in found["GED"].artefacts


def test_every_row_sees_the_same_edits(library: Graph, tmp_path: Path) -> None:
    """α = 1 is structure alone: the fused row must then repeat the topology row, edit by edit."""
    found, _ = run(library, params(alpha=1.0), tmp_path)
    for name, moved in found["GW(A)"].artefacts.items():
        assert np.allclose(found["FGW(A, X)"].artefacts[name], moved, atol=1e-9)


def test_no_edit_distance_for_large_graphs(tmp_path: Path) -> None:
    mutag = data.load("tu/mutag", stand_in=True)
    found, records = run(mutag, params(max_nodes=28, min_nodes=8), tmp_path, seeds=2)
    assert list(found) == ["graph size", "GW(A)", "FGW(A, X)", "GW(H)"]
    made = section.build(records, None)
    assert "exponential time" in " ".join(made.sentences)
    assert [t.title for t in made.tables] == ["Pairs of graphs", "One edge or node"]
    assert len(made.figures) == 3


def test_sampling_respects_sizes_and_repeats(library: Graph) -> None:
    given = params()
    where = [CellContext("t", "d", library, 0, 1, runtime.start("serial")) for _ in range(2)]
    one, two = (task._sampled(given, task.cells(given, w)[0], w) for w in where)
    assert all(3 <= g.num_nodes <= 5 for g in one[0].graphs)
    assert np.array_equal(one[1].parameters, two[1].parameters)
    assert all((a.adjacency != b.adjacency).nnz == 0 for a, b in zip(one[0].graphs, two[0].graphs, strict=True))


def test_weights_and_metric_are_settings(
    library: Graph, plain: tuple[dict[str, Result], SectionRecords], tmp_path: Path
) -> None:
    """Weights by degree move every row but GED; the metric moves embeddings alone."""
    found = {0: {m: o.artefacts["distances"] for m, o in plain[0].items()}}
    for number, changes in enumerate(({"weights": "degree"}, {"metric": "correlation"}), 1):
        found[number] = {
            m: o.artefacts["distances"] for m, o in run(library, params(**changes), tmp_path / str(number))[0].items()
        }
    for method, first in found[0].items():
        assert np.array_equal(found[1][method], first) == (method in ("GED", "graph size"))
        assert np.array_equal(found[2][method], first) == (method != "GW(H)")


def test_no_more_graphs_are_drawn_than_compared(library: Graph, tmp_path: Path) -> None:
    found, records = run(library, params(compared=2, shown=3), tmp_path)
    assert len(found["GW(A)"].artefacts["distances"]) == 2
    assert section.build(records, None).figures
