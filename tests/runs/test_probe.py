"""The trial: the cheapest cell of each method, dear cells stopped, and what was not tried said."""

from __future__ import annotations

import pytest

from fedgraph import runtime
from fedgraph.cells.cell import Cell, CellContext
from fedgraph.privacy.trust import Trust
from fedgraph.runs import experiment, probe, schedule
from fedgraph.runs.console import Console
from fedgraph.scenario import read, shipped


@pytest.mark.parametrize(("begin", "counted"), [(30.0, 0), (0.0, 4)])
def test_a_dear_cell_is_stopped_and_its_rounds_say_how_long_it_is(
    begin: float, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of ten rounds of a second each. begin: what it needs before. counted: quick rounds that count columns before."""
    now = {"s": 0.0}

    def timed(task: object, cell: Cell, context: CellContext) -> object:
        now["s"] += begin
        for done in range(counted):
            context.progress("rounds", done + 1, counted)
        for done in range(1, 11):
            now["s"] += 1.0
            context.progress("rounds", done, 10)
        raise AssertionError("it should have been stopped")

    monkeypatch.setattr(schedule, "run_cell", timed)
    ready = read.from_file(shipped.find("quickstart"), ["seeds=1"])
    graphs = [experiment.load_data(d, None, 0) for d in ready.scenario.datasets]
    with runtime.start("serial") as engine:
        stages = tuple(experiment.stages_of(ready, graphs, engine, Console(quiet=True)))[:1]
        first = next(iter(probe.probe_kinds(stages, 5.0, lambda: now["s"]).values()))
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
    assert {cell.world.trust for cell in then} == {Trust.SUMS}, "what is left of the time goes to cells at several clients"
    assert len(said.splitlines()) == 1 + len(methods)
    assert "not tried" not in said
