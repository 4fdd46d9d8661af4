"""Cells side by side give what cells one after another give, and nothing finished is lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from fedgraph import run
from fedgraph.cells.store import CellStore
from fedgraph.errors import DataError
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.report.saved_run import load_saved_run
from fedgraph.runs import schedule
from fedgraph.runs.console import Console
from fedgraph.runtime import starting
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.scenario import read
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import Cell, CellContext
from fedgraph.types import Graph
from tests.results import numbers

MIXED = """\
name: mixed
seed: 3
runtime: {engine: ray, workers: 2}
datasets:
  - name: embedded/library
tasks:
  - task: node_classification
    epsilons: [1, inf]
    trust: [own-client, curator]
    partition: {partition: uniform, clients: 3}
    methods:
      - {method: features, steps: 3, projection: 16}
      - {method: sage_node, layers: 1, steps: 2}
      - {method: features, label: chosen, trust: [curator], epsilons: [4], select: {over: {steps: [2, 6]}, among: 3}}
"""


def facts(folder: Path) -> dict[tuple[str, ...], object]:
    """What was found beside the numbers by the rows that choose their settings: which settings, and what was tried."""
    chosen = [entry for row in load_saved_run(folder).rows for entry in row.cells if entry.variant == "chosen"]
    assert chosen
    return {(entry.method, str(entry.seed)): (entry.facts, entry.ledger) for entry in chosen}


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param("clients", marks=pytest.mark.ray),
        pytest.param("cells", marks=[pytest.mark.slow, pytest.mark.ray("own")]),
    ],
)
def test_side_by_side_equals_one_after_another(
    spread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Also when the run is cut while cells are side by side, and continued; also of a row that chooses its settings.

    Runs are cut under Ray (of their own) where cells are spread, and before the shared Ray takes over where clients are.
    """
    mixed, cut, whole = tmp_path / "mixed.yaml", tmp_path / "cut", tmp_path / "whole"
    mixed.write_text(MIXED.replace("workers: 2", f"workers: 2, spread: {spread}"), encoding="utf-8")
    assert run.main([str(mixed), "--runtime", "serial", "--out", str(whole)]) == 0
    computed, save, saved = node_classification.run, CellStore.save, []
    if spread == "clients":
        engine, start = request.getfixturevalue("ray_engine"), starting.start
        monkeypatch.setattr(starting, "start", lambda name, *more: engine if name == "ray" else start(name, *more))
        monkeypatch.setattr(engine, "close", lambda: None)

    def only_alone(params: Any, cell: Cell, context: CellContext) -> object:
        assert cell.world.trust.whole, "the driver is no client and no server"
        assert threading.current_thread() is not threading.main_thread()
        return computed(params, cell, context)

    def dies_after_three(self: CellStore, *args: Any) -> None:
        if len(saved) == 3:
            raise KeyboardInterrupt
        saved.append(args)
        save(self, *args)

    monkeypatch.setattr(CellStore, "save", dies_after_three)
    if spread == "cells":
        monkeypatch.setattr(node_classification, "run", only_alone)
    assert run.main([str(mixed), *(["--runtime", "serial"] if spread == "clients" else []), "--out", str(cut)]) == 1
    assert len(saved) == 3
    monkeypatch.setattr(node_classification, "run", only_alone)
    monkeypatch.setattr(CellStore, "save", save)
    assert run.main([str(mixed), "--resume", str(cut)]) == 0
    assert numbers(cut) == numbers(whole)
    assert facts(cut) == facts(whole)
    assert len([row for row in numbers(whole) if row["metric"] == "accuracy"]) == 2 * 2 * 2 + 1
    assert (cut / "ledger.jsonl").read_bytes() == (whole / "ledger.jsonl").read_bytes()
    made = json.loads((cut / "environment.json").read_text(encoding="utf-8"))["runtime"]
    assert spread == "cells" or {"server", "client-0", "client-1"} <= set(made["actors"])
    assert ("node_classification" in made["federation"]) is (spread == "clients")


class Later(SerialRuntime):
    name = "later"


def cells_of(graph: Graph, trusts: dict[float, Trust]) -> list[tuple[schedule.ScheduledStage, Cell]]:
    """A cell for each ε."""
    params = node_classification.Params(methods=[{"method": "features"}], trust=["curator"], epsilons=[1.0])
    context = CellContext("t", "d", graph, 3, 2, runtime=None)  # type: ignore[arg-type]
    stage = schedule.ScheduledStage(read.ScenarioTask("t", "node_classification", params), context, ())
    return [(stage, Cell("t", "d", "m", "v", world_of_trust(trust), e, "provable", 0)) for e, trust in trusts.items()]


def test_the_driver_is_a_curator_while_ray_starts(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that it has begun goes on beside the others, and no cell is computed twice."""
    here, others = threading.Event(), threading.Event()
    by_whom: dict[float, bool] = {}

    def fails(params: object, cell: Cell, context: CellContext) -> object:
        in_thread = threading.current_thread() is not threading.main_thread()
        by_whom[cell.epsilon] = in_thread
        if in_thread:
            here.set()
            assert others.wait(30), "the others wait for the driver's own cell"
        raise DataError(f"cell {cell.epsilon:g}")

    monkeypatch.setattr(node_classification, "run", fails)
    trusts = {1.0: Trust.OWN_CLIENT, 2.0: Trust.CURATOR, 3.0: Trust.CURATOR}
    found = []
    for done in schedule.compute_cells(cells_of(library, trusts), Later, Console(quiet=True), is_up=here.is_set):
        found.append((done.epsilon, done.failed))
        if len(found) == 2:
            others.set()
    assert sorted(found) == [(e, f"cell {e:g}") for e in trusts]
    assert found[-1][0] == 2.0
    assert by_whom == {1.0: False, 2.0: True, 3.0: False}


def test_what_the_driver_finishes_while_ray_starts_is_given_at_once(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    up, computed = threading.Event(), list[float]()

    def fails(params: object, cell: Cell, context: CellContext) -> object:
        computed.append(cell.epsilon)
        raise DataError("no matter")

    monkeypatch.setattr(node_classification, "run", fails)
    given, found = cells_of(library, {1.0: Trust.CURATOR, 2.0: Trust.OWN_CLIENT}), []
    for done in schedule.compute_cells(given, Later, Console(quiet=True), is_up=up.is_set):
        found.append(done.epsilon)
        up.set()
    assert found == computed == [1.0, 2.0]
