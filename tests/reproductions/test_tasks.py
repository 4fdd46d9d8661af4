"""Two figures: ways to compare small graphs, and starts of the descent; their scenarios run as others do, known there alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import reproductions
from benchmarks.reproductions.__main__ import main
from benchmarks.reproductions.sections import graph_metrics as section
from benchmarks.reproductions.tasks import graph_metrics, graph_starts
from fedgraph import data, plugins, runtime, tasks
from fedgraph.cells.store import CellStore
from fedgraph.errors import DataError
from fedgraph.report import sections
from fedgraph.report.sections.base import SectionRecords
from fedgraph.tasks.base import CellContext, Result
from fedgraph.types import Graph

METRICS = {"graphs": 12, "compared": 8, "shown": 3, "edits": 2, "max_nodes": 5, "training": {"epochs": 5}}
STARTS = {"graphs": 8, "pairs": 20, "noise": [0.05, 1.0], "max_nodes": 12, "training": {"epochs": 5}}


def run(task: Any, graph: Any, given: Any, folder: Path, seeds: int = 1) -> tuple[list[Result], SectionRecords]:
    """What every cell gave, and what the section of the page reads of it."""
    where = CellContext("t", "d", graph, 0, seeds, runtime.start("serial"))
    store, cells = CellStore(folder), task.cells(given, where)
    outcomes = [task.run(given, cell, where) for cell in cells]
    for outcome in outcomes:
        store.save(outcome)
    found = tuple(store.load(cell) for cell in cells)
    kind = task.__name__.rpartition(".")[2]
    return outcomes, SectionRecords(kind, "t", "d", given.model_dump(), found)


def test_topology_cannot_tell_isomorphic_graphs_apart(library: Graph, tmp_path: Path) -> None:
    outcomes, records = run(graph_metrics, library, graph_metrics.Params(**METRICS), tmp_path)
    matrices = {out.method: out.artefacts["distances"] for out in outcomes}
    assert list(matrices) == ["graph size", "GED", "GW(A)", "FGW(A, X)", "GW(H)"]
    alike = (matrices["GED"] == 0) & ~np.eye(8, dtype=bool)
    assert alike.any(), "eight ego-networks of three to five nodes: two are isomorphic"
    assert matrices["GW(A)"][alike].max() < 1e-9
    assert matrices["FGW(A, X)"][alike].min() > 1e-6
    assert matrices["GW(H)"][alike].max() > 1e-9
    for matrix in matrices.values():
        assert np.array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
    assert not matrices["graph size"][alike].any(), "isomorphic graphs are of one size"
    made = section.build(records)
    assert [row[0] for row in made.tables[0].rows] == list(matrices)
    assert f"{int(alike.sum()) // 2} of 28 pairs are isomorphic" in " ".join(made.sentences)


def test_every_row_sees_the_same_edits(library: Graph, tmp_path: Path) -> None:
    """α = 1 is structure alone: the fused row must then repeat the topology row, edit by edit."""
    outcomes, _ = run(graph_metrics, library, graph_metrics.Params(**METRICS, alpha=1.0), tmp_path)
    found = {out.method: out.artefacts for out in outcomes}
    for name, moved in found["GW(A)"].items():
        assert np.allclose(found["FGW(A, X)"][name], moved, atol=1e-9)


def test_no_edit_distance_for_large_graphs(tmp_path: Path) -> None:
    mutag, given = data.load("tu/mutag", stand_in=True), graph_metrics.Params(**{**METRICS, "max_nodes": 28, "min_nodes": 8})
    outcomes, records = run(graph_metrics, mutag, given, tmp_path)
    assert [out.method for out in outcomes] == ["graph size", "GW(A)", "FGW(A, X)", "GW(H)"]
    made = section.build(records)
    assert "exponential time" in " ".join(made.sentences)
    assert [t.title for t in made.tables] == ["Pairs of graphs", "One edge or node"]
    assert len(made.figures) == 3


def test_gains_and_budgets_of_starts(library: Graph, tmp_path: Path) -> None:
    outcomes, _ = run(graph_starts, library, graph_starts.Params(**STARTS), tmp_path, seeds=2)
    by = {(out.variant, out.seed): out for out in outcomes}
    for seed in (0, 1):
        product = by["product", seed].metrics
        assert product["gain"] == product["lower"] == product["higher"] == 0.0
        for name, descents in (("nudged", 2), ("two random", 2), ("product, one random", 2), ("noise 0.05", 2),
                               ("product, two random", 3), ("product, noise 0.05", 3)):  # fmt: skip
            assert by[name, seed].facts.descents == descents
            found = by[name, seed].metrics
            assert found["gain"] == pytest.approx(1 - found["objective"] / product["objective"])
            if name.startswith("product,"):
                assert found["gain"] >= found["higher"] == 0.0
                assert found["iterations"] > product["iterations"]
        assert by["product, two random", seed].metrics["gain"] >= by["product, one random", seed].metrics["gain"]
        assert by["noise 1", seed].metrics["noised_objective"] > product["objective"]
    assert by["product", 0].metrics["objective"] != by["product", 1].metrics["objective"], "a repetition draws its own sample"
    assert all(o.account is None and not o.releases for o in outcomes), "raw data: no price is claimed"


def test_starts_take_collections_and_say_when_graphs_are_missing() -> None:
    where = CellContext("t", "tu/mutag", data.load("tu/mutag", stand_in=True), 0, 1, runtime.start("serial"))
    given = graph_starts.Params(**{**STARTS, "max_nodes": 60, "pairs": 5})
    assert np.isfinite(graph_starts.run(given, graph_starts.cells(given, where)[0], where).metrics["objective"])
    few = graph_starts.Params(**{**STARTS, "min_nodes": 500, "max_nodes": 600})
    again = CellContext("t", "tu/mutag", where.data, 0, 1, where.runtime)
    with pytest.raises(DataError, match="8 graphs of 500 to 600 nodes were asked for"):
        graph_starts.run(few, graph_starts.cells(few, again)[0], again)


@pytest.fixture
def _known_here_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is registered, and read, is forgotten behind the test."""
    for package in (tasks, sections):
        monkeypatch.setattr(
            package, "__path__", [p for p in package.__path__ if not Path(p).is_relative_to(reproductions.HERE)]
        )
    plugins.forget()
    yield
    monkeypatch.undo()
    plugins.forget()


@pytest.mark.usefixtures("_known_here_alone")
@pytest.mark.parametrize("name", sorted(path.stem for path in reproductions.HERE.glob("ldp_gw_*.yaml")))
def test_every_scenario_is_planned(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick", "--dry-run"]) == 0
    assert "nothing is released" in capsys.readouterr().out


@pytest.mark.usefixtures("_known_here_alone")
def test_the_package_alone_knows_none_of_these_tasks_and_a_wrong_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert not {"graph_metrics", "graph_starts", "claims"} & set(plugins.names("tasks"))
    assert main(["ldp_gw_metrisc"]) == 2
    assert "ldp_gw_metrics, ldp_gw_starts" in capsys.readouterr().err
