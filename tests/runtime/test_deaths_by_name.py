"""A client, the server and a curator die at chosen moments while cells are interleaved; POT raises; the raylet dies."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ot
import pytest
from ray.util import list_named_actors

from fedgraph import run, runtime, seeds
from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import Runtime, RuntimeClients, RuntimeDealing, RuntimeFunction, RuntimeParties
from fedgraph.types import Graph
from tests import processes
from tests.public_facts import public_facts

pytestmark = [pytest.mark.ray("own"), pytest.mark.slow]
ROUNDS, FATAL = 12, 5

SCENARIO = """\
name: mortal
seeds: 4
runtime: {engine: ray, workers: 2}
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    epsilons: [1, 2, 4, 8, inf]
    trust: [curator, own-client]
    partition: {partition: uniform, clients: 3}
    methods: [{method: features, steps: 200, projection: 16}]
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Runtime]:
    with runtime.start("ray", workers=2) as found:
        yield found


def once(marker: str, ending: str) -> bool:
    """True for whoever asks first."""
    try:
        Path(f"{marker}.{ending}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def dies_once(items: range, marker: str) -> None:
    if once(marker, "dead"):
        os._exit(1)


class Mortal(RuntimeClients):
    """After round ``FATAL``, between its merge and the next broadcast, a client or the server dies, once."""

    def __init__(self, clients: RuntimeClients, who: str, marker: str) -> None:
        self.clients, self.who, self.marker = clients, who, marker

    def share(self, key: str, value: object) -> Any:
        return self.clients.share(key, value)

    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        return self.clients.ask(function, num_items, *args)

    def seal(self, value: Any) -> Any:
        return self.clients.seal(value)

    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        self.clients.count(done, total, messages, up, down)
        if done == FATAL and self.who == "server" and once(self.marker, "dead"):
            os._exit(1)
        if done == FATAL and self.who == "client":
            self.clients.ask(dies_once, 2, self.marker)


def led(clients: RuntimeClients, who: str, marker: str, function: RuntimeFunction, *args: object) -> Any:
    return function(Mortal(clients, who, marker), *args)


class Led:
    """An engine whose trainings are led among mortals."""

    def __init__(self, engine: RuntimeParties, who: str, marker: str) -> None:
        self.engine, self.who, self.marker = engine, who, marker

    def deal(self, handle: Any, piece: RuntimeFunction, num_items: int) -> Any:
        return self.engine.deal(handle, piece, num_items)

    def federate(
        self, function: RuntimeFunction, *args: object, path: tuple[str, ...], on_round: Callable[[int, int], None]
    ) -> Any:
        return self.engine.federate(led, self.who, self.marker, function, *args, path=path, on_round=on_round)


def cell(
    make: Callable[[], RuntimeParties], name: str, graph: Graph, num_clients: int, who: str, marker: str
) -> list[np.ndarray]:
    """Two trainings at a curator, which dies between them where it is to."""
    partition = uniform.split(graph, uniform.Params(clients=num_clients), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, Viewer.SERVER)
    plan = features.plan(features.Params(steps=ROUNDS), facts, Budget(1.0, 1e-3))
    found = []
    with make() as engine:
        shared = engine.share("partition", partition)
        for part in ("one", "two"):
            out = rounds.run(
                Led(engine, who, marker), shared, plan, 0, ("task", name, part), ("task", "common"), rounds.RoundPrefixes()
            )
            found.append(out.state.model["parameters"])
            if who == "curator" and part == "one" and once(marker, "dead"):
                os._exit(1)
    return found


def cells(engine: Runtime, graph: Graph, num_clients: int, who: str, marker: Path) -> dict[str, list[np.ndarray]]:
    """Four cells on their way, at two curators."""
    queues = [[(name, graph, num_clients, who, str(marker)) for name in names] for names in ("ab", "cd")]
    engine.open("server", "client")
    return {task[0]: value for task, value in engine.as_done(cell, RuntimeDealing([], queues))}


@pytest.mark.parametrize(("who", "num_clients"), [("client", 6), ("server", 6), ("curator", 6), ("client", 1), ("client", 40)])
def test_the_cells_of_the_dead_give_the_same_bits(
    who: str, num_clients: int, engine: Runtime, library: Graph, tmp_path: Path
) -> None:
    """Also with fewer clients than actors, and with more."""
    marker = tmp_path / "marker"
    with runtime.start("serial") as serial:
        truth = cells(serial, library, num_clients, "nobody", marker)
    lost = engine.describe()["workers_lost"]
    assert isinstance(lost, int)
    found = cells(engine, library, num_clients, who, marker)
    assert marker.with_suffix(".dead").exists(), "nobody died"
    assert found.keys() == truth.keys()
    assert all(np.array_equal(a, b) for name in truth for a, b in zip(found[name], truth[name], strict=True))
    until = time.monotonic() + 60
    names = {"server", "client-0", "client-1", "curator-0", "curator-1"}
    while not names <= set(engine.describe()["actors"]) and time.monotonic() < until:  # type: ignore[call-overload]
        time.sleep(0.2)
    said = engine.describe()
    assert said["workers_lost"] == lost + 1
    assert names <= set(said["actors"]), "a place stays empty"  # type: ignore[call-overload]
    assert names <= set(list_named_actors())


def breaks(how: str) -> None:
    """POT raises from now on, in this process; or computes as before."""
    real = getattr(ot.gromov, "kept", ot.gromov.gromov_wasserstein)

    def raises(*args: object, **more: object) -> None:
        raise ValueError("POT:\nno solution")

    ot.gromov.kept = real
    ot.gromov.gromov_wasserstein = raises if how == "broken" else real


def solved(task: int, spaces: list[MetricSpace]) -> float:
    return float(gromov.solve_pairs(spaces, np.array([[0, 1]]), gromov.GromovOptions(solver="pot")).value[0])


def test_a_pot_that_raises_is_an_error_of_its_own_kind_and_the_next_pairs_are_solved(engine: Runtime) -> None:
    rng = np.random.default_rng(0)
    spaces = [metric_space.from_embedding(rng.random((n, 2))) for n in (4, 5)]
    expected = solved(0, spaces)
    engine.tell(breaks, "broken")
    with pytest.raises(ValueError, match="no solution"):
        list(engine.map(solved, [0, 1, 2], spaces))
    engine.tell(breaks, "whole")
    assert list(engine.map(solved, [0, 1, 2], spaces)) == [expected] * 3


def test_a_run_in_which_pot_raises_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "pot.yaml"
    scenario.write_text(
        "name: pot\nruntime: {engine: serial}\ndatasets: [{name: embedded/library}]\ntasks:\n  - task: graph_clustering\n"
        "    epsilons: [4]\n    num_init: 1\n    solver: pot\n    partition: {partition: ego, clients: 6}\n"
        "    method: {method: local_dp, training: none}\n"
    )
    monkeypatch.setattr(ot.gromov, "gromov_wasserstein", None)
    assert run.main([str(scenario), "--out", str(tmp_path / "out")]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.match(r"fedgraph: 2 of 4 cells failed, .*--resume tries again\. .*TypeError: 'NoneType'", last)
    monkeypatch.undo()
    assert run.main([str(scenario), "--resume", str(tmp_path / "out")]) == 0


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def num_finished(folder: Path) -> int:
    """Cells that are finished; none while Ray starts, when the driver itself computes some."""
    about = folder / "environment.json"
    there = about.exists() and "workers" in json.loads(about.read_text(encoding="utf-8"))["runtime"]
    return len(list(folder.glob("cells/*.json.gz"))) if there else 0


def test_a_machine_without_its_raylet_is_one_line_and_the_run_is_resumed(tmp_path: Path) -> None:
    scenario, out, whole = tmp_path / "mortal.yaml", tmp_path / "out", tmp_path / "whole"
    scenario.write_text(SCENARIO, encoding="utf-8")
    own = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    command = [sys.executable, "-m", "fedgraph.run", str(scenario)]
    asked = {"text": True, "env": own}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **asked}
    subprocess.run([*command, "--out", str(whole), "--runtime", "serial"], check=True, **quiet)
    driver = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, **asked)
    until = time.monotonic() + 240
    while num_finished(out) < 3 and time.monotonic() < until and driver.poll() is None:
        time.sleep(0.1)
    family = processes.family(driver.pid)
    for pid, _ in family:
        if Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].endswith(b"/raylet"):
            os.kill(pid, signal.SIGKILL)
    _, err = driver.communicate(timeout=60)  # to the standard output Ray writes a page of its own
    assert driver.returncode == 1
    assert err.splitlines()[-1] == "fedgraph: Ray's raylet on this machine has died; finished cells are kept: --resume goes on"
    assert "core_worker" not in err
    assert "Traceback" not in err
    until = time.monotonic() + 180  # Ray ends its agents itself
    while (left := [pid for pid, when in family if processes.began(pid) == when]) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left, "a process outlived its driver"
    resumed = [*command, "--resume", str(out), "--runtime", "serial"]
    subprocess.run(resumed, check=True, **quiet)
    assert rows(out) == rows(whole)
