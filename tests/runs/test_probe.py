"""The trial: the cheapest cell of each method, dear cells stopped, and what was not tried said."""

from __future__ import annotations

import pytest

from fedgraph import runtime
from fedgraph.cells.cell import Cell
from fedgraph.errors import DataError
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.runs import experiment, probe, schedule
from fedgraph.runs.console import Console
from fedgraph.scenario import read, shipped


def cells(method: str, trust: Trust, count: int) -> list[Cell]:
    return [Cell("t", "d", method, "default", world_of_trust(trust), 1.0, "provable", seed) for seed in range(count)]


@pytest.mark.parametrize(("begin", "counted"), [(0.0, 0), (30.0, 0), (0.0, 4)])
def test_a_dear_cell_is_stopped_and_its_rounds_say_how_long_it_is(
    begin: float, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of ten rounds of a second each. What it needs before the first is no part of the others.

    counted: quick rounds of their own before these, in which ranges of columns are estimated.
    """
    now = {"s": 0.0}

    def timed(task: object, cell: Cell, context: object) -> object:
        now["s"] += begin
        for done in range(counted):
            context.progress("rounds", done + 1, counted)  # type: ignore[attr-defined]
        for done in range(1, 11):
            now["s"] += 1.0
            context.progress("rounds", done, 10)  # type: ignore[attr-defined]
        raise AssertionError("it should have been stopped")

    monkeypatch.setattr(schedule, "run_cell", timed)
    ready = read.from_file(shipped.find("quickstart"), ["seeds=1"])
    graphs = [experiment.load_data(d, None, 0) for d in ready.scenario.datasets]
    with runtime.start("serial") as engine:
        stages = tuple(experiment.stages_of(ready, graphs, engine, Console(quiet=True)))[:1]
        tried = probe.probe_kinds(stages, 5.0, lambda: now["s"])
    first = next(iter(tried.values()))
    assert not first.whole
    assert first.seconds == pytest.approx(begin + 10.0, abs=1.0)


def test_one_cell_of_each_method_is_tried_the_curators_first(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[Cell] = []
    monkeypatch.setattr(schedule, "run_cell", lambda task, cell, context: run.append(cell))
    ready = read.from_file(shipped.find("quickstart"), ["tasks.0.trust=[sums, curator]"])
    said = probe.probe_scenario(ready, None, 100.0).estimate
    methods = list(dict.fromkeys(cell.kind[:4] for cell in run))
    first, then = run[: len(methods)], run[len(methods) :]
    assert [cell.kind[:4] for cell in first] == methods
    assert len(methods) > 5
    assert next(cell for cell in run if cell.method == "features").world.trust is Trust.CURATOR
    assert then, "what is left of the time goes to cells at several clients"
    assert all(cell.world.trust is Trust.SUMS for cell in then)
    assert len(said.splitlines()) == 1 + len(methods)
    assert "not tried" not in said


def test_the_range_is_by_the_cheapest_cells_and_by_those_at_several_clients() -> None:
    every = [*cells("a", Trust.CURATOR, 2), *cells("a", Trust.SUMS, 2), *cells("b", Trust.SUMS, 1)]
    tried = {every[0].kind: probe._Tried(3.0), every[-1].kind: probe._Tried(1.0)}
    assert probe._range_of_cells(every, tried, {every[2].kind: probe._Tried(12.0)}) == (13.0, 2 * 3.0 + 2 * 12.0 + 1.0)
    assert probe._range_of_cells(every, tried, {}) == (13.0, 2 * 3.0 + 2 * 9.0 + 1.0), "three times what was tried"


def test_a_cell_that_fails_in_the_probe_is_said_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: object, cell: Cell, context: object) -> object:
        raise DataError("nothing fits")

    monkeypatch.setattr(schedule, "run_cell", broken)
    found = probe.probe_scenario(read.from_file(shipped.find("quickstart"), ["tasks.0.epsilons=[8]"]), None, 1e-3)
    assert found.failing
    assert all(said.endswith(": nothing fits") for said in found.failing)
