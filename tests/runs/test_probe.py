"""The probe: one cell of each kind, dear cells stopped, and what was not tried named."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedgraph import runtime
from fedgraph.cells.cell import Cell
from fedgraph.errors import DataError
from fedgraph.privacy.trust import Trust
from fedgraph.runs import experiment, probe, schedule
from fedgraph.runs.console import Console
from fedgraph.scenario import read, shipped
from fedgraph.worlds.world import world_of_trust


def cells(method: str, trust: Trust, count: int) -> list[Cell]:
    return [Cell("t", "d", method, "default", world_of_trust(trust), 1.0, "provable", seed) for seed in range(count)]


def test_a_kind_that_was_not_tried_is_like_its_row_elsewhere() -> None:
    every = [*cells("a", Trust.CURATOR, 2), *cells("a", Trust.SUMS, 2), *cells("b", Trust.CURATOR, 1)]
    tried = {every[0].kind: probe._Tried(3.0), every[-1].kind: probe._Tried(1.0)}
    assert probe._seconds_of_cells(every, tried) == (2 * 3.0 + 2 * 3.0 + 1.0, 3.0)


def test_workers_share_but_the_longest_cell_stays_whole() -> None:
    assert probe._wall_seconds(100.0, 10.0, "serial", 4, cores=5) == 100.0 + probe._BEGIN["serial"]
    assert probe._wall_seconds(100.0, 10.0, "ray", 5, cores=5) == pytest.approx(
        100.0 * probe._HELD_UP / 5 + probe._BEGIN["ray"]
    )
    assert probe._wall_seconds(100.0, 90.0, "ray", 5, cores=5) == pytest.approx(90.0 + probe._BEGIN["ray"])


def test_a_start_that_was_slow_makes_a_run_slow() -> None:
    assert [probe._slowness(probe._LIBRARIES * k) for k in (0.5, 1.0, 1.6, 50.0)] == [1.0, 1.0, pytest.approx(1.6), 3.0]
    slow = probe._wall_seconds(100.0, 10.0, "serial", 1, cores=5, slow=1.5)
    assert slow == 100.0 + 1.5 * probe._BEGIN["serial"]


@pytest.mark.parametrize("others", [0, 1, 3, 8])
@pytest.mark.parametrize("engine", ["serial", "ray"])
def test_what_others_take_is_measured_by_one_process_and_slows_down_all(others: int, engine: str) -> None:
    """Two cores that are dealt equally among the processes that want them."""
    passed = 20.0
    worked = passed * min(1.0, 2 / (others + 1))
    seen = probe._other_processes(worked, passed, cores=2, load=others + 1.0)
    assert seen == pytest.approx(others)
    workers = 1 if engine == "serial" else 2
    work = probe._BEGIN[engine] + 100.0 / workers * (probe._HELD_UP if workers > 1 else 1.0)
    truth = work / min(1.0, 2 / (others + workers))
    assert probe._wall_seconds(100.0, 1.0, engine, None, 2, seen) == pytest.approx(truth)


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

    monkeypatch.setattr(schedule, "run_scheduled_cell", timed)
    ready = read.read_scenario_file(shipped.find_shipped("quickstart"), ["seeds=1"])
    graphs = [experiment.load_experiment_data(d, None, 0) for d in ready.scenario.datasets]
    with runtime.start("serial") as engine:
        stages = tuple(experiment.stage_experiment(ready, graphs, engine, Console(quiet=True)))[:1]
        tried = probe.probe_kinds(stages, 5.0, lambda: now["s"])
    first = next(iter(tried.values()))
    assert not first.whole
    assert begin + probe._EARLY * 10.0 <= first.seconds < begin + 10.0


def test_what_was_not_tried_is_named(tmp_path: Path) -> None:
    ready = read.read_scenario_file(shipped.find_shipped("quickstart"), ["tasks.0.epsilons=[8]"])
    said = probe.probe_scenario(ready, None, 1e-3).estimate
    assert "Not tried, and taken to be like the others: " in said


def test_a_cell_that_fails_in_the_probe_is_said_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: object, cell: Cell, context: object) -> object:
        raise DataError("nothing fits")

    monkeypatch.setattr(schedule, "run_scheduled_cell", broken)
    found = probe.probe_scenario(
        read.read_scenario_file(shipped.find_shipped("quickstart"), ["tasks.0.epsilons=[8]"]), None, 1e-3
    )
    assert found.failing
    assert all(said.endswith(": nothing fits") for said in found.failing)
