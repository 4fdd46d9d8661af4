"""A client, the server, a curator, a machine, the raylet or the driver dies: the same bits, or one line."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
import torch
from ray.cluster_utils import Cluster
from ray.util import list_named_actors
from ray.util.placement_group import placement_group_table

from fedgraph import runtime, seeds
from fedgraph.errors import RuntimeFailure
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime import ray as engines
from fedgraph.runtime.base import Runtime, RuntimeClients, RuntimeDealing, RuntimeFunction, RuntimeParties
from fedgraph.runtime.ray import places
from fedgraph.runtime.ray.actor import MOST_RETRIES
from fedgraph.runtime.ray.curator import Curator
from fedgraph.types import Graph
from tests import processes
from tests.public_facts import public_facts

pytestmark = [pytest.mark.ray("own"), pytest.mark.slow]
ROUNDS, FATAL = 12, 5
NAMES = {"server", "client-0", "client-1", "curator-0", "curator-1"}


@pytest.fixture(scope="class")
def engine() -> Iterator[Runtime]:
    with runtime.start("ray", workers=2) as found:
        yield found


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head with one CPU; tests add machines."""
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    monkeypatch.setenv("RAY_ADDRESS", found.address)
    yield found
    found.shutdown()


def until(holds: Callable[[], object], seconds: float = 600.0) -> bool:
    """Whether it came to hold."""
    end = time.monotonic() + seconds
    while not (there := bool(holds())) and time.monotonic() < end:
        time.sleep(0.2)
    return there


def once(marker: str, ending: str = "dead") -> bool:
    """True for whoever asks first."""
    try:
        Path(f"{marker}.{ending}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def dies_once(items: range, marker: str) -> None:
    if once(marker):
        os._exit(1)


def dies(items: range) -> None:
    os._exit(1)


def naps(items: range) -> None:
    time.sleep(1.0)


def whoami(items: range) -> int:
    return os.getpid()


def stands_still(items: range, marker: str) -> int:
    """Whoever is asked first stops its process, as one that hangs in compiled code."""
    if once(marker):
        os.kill(os.getpid(), signal.SIGSTOP)
    return os.getpid()


def asks(clients: RuntimeClients, function: RuntimeFunction, *args: object) -> list[Any]:
    return clients.ask(function, 2, *args)


class Mortal:
    """Clients of which, after round ``FATAL``, between its merge and the next broadcast, one or the server dies, once."""

    def __init__(self, clients: RuntimeClients, who: str, marker: str) -> None:
        self.clients, self.who, self.marker = clients, who, marker

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clients, name)

    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        self.clients.count(done, total, messages, up, down)
        if done == FATAL and self.who == "server" and once(self.marker):
            os._exit(1)
        if done == FATAL and self.who == "client":
            self.clients.ask(dies_once, 2, self.marker)


def led(clients: RuntimeClients, who: str, marker: str, function: RuntimeFunction, *args: object) -> Any:
    return function(Mortal(clients, who, marker), *args)


class Led:
    """An engine whose trainings are led among mortals."""

    def __init__(self, engine: RuntimeParties, who: str, marker: str) -> None:
        self.engine, self.who, self.marker = engine, who, marker

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def federate(self, function: RuntimeFunction, *args: object, **how: Any) -> Any:
        return self.engine.federate(led, self.who, self.marker, function, *args, **how)


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
            stream, prefixes = ("task", name, part), rounds.RoundPrefixes()
            out = rounds.run(Led(engine, who, marker), shared, plan, 0, stream, ("task", "common"), prefixes)
            found.append(out.state.model["parameters"])
            if who == "curator" and part == "one" and once(marker):
                os._exit(1)
    return found


def cells(engine: Runtime, graph: Graph, num_clients: int, who: str, marker: Path) -> list[np.ndarray]:
    """Four cells on their way, at two curators."""
    queues = [[(name, graph, num_clients, who, str(marker)) for name in names] for names in ("ab", "cd")]
    engine.open("server", "client")
    found = {task[0]: value for task, value in engine.as_done(cell, RuntimeDealing([], queues))}
    return [model for name in "abcd" for model in found[name]]


def dies_of(engine: Callable[[], RuntimeParties], task: int) -> int:
    """The others wait for the server when task 2 kills their curator."""
    if task == 2:
        time.sleep(0.5)
        os._exit(1)
    with engine() as federation:
        federation.federate(asks, naps, path=("naps", str(task)))
    return task


class TestOfOneRay:
    """They share an engine, which lives until the last of them."""

    @pytest.mark.parametrize(
        ("who", "num_clients"), [("client", 6), ("server", 6), ("curator", 6), ("client", 1), ("client", 40)]
    )
    def test_the_cells_of_the_dead_give_the_same_bits(
        self, who: str, num_clients: int, engine: Runtime, library: Graph, tmp_path: Path
    ) -> None:
        """Also with fewer clients than actors, and with more."""
        marker = tmp_path / "marker"
        with runtime.start("serial") as serial:
            truth = cells(serial, library, num_clients, "nobody", marker)
        lost: Any = engine.describe()["workers_lost"]
        found = cells(engine, library, num_clients, who, marker)
        assert marker.with_suffix(".dead").exists(), "nobody died"
        assert all(np.array_equal(a, b) for a, b in zip(found, truth, strict=True))
        assert until(lambda: set(engine.describe()["actors"]) >= NAMES), "a place stays empty"  # type: ignore[call-overload]
        assert engine.describe()["workers_lost"] == lost + 1
        assert set(list_named_actors()) >= NAMES

    def test_work_that_kills_its_worker_ends_in_one_line_and_takes_no_other_cell_with_it(self, engine: Runtime) -> None:
        engine.open("server", "client")
        queues = [[(task,)] for task in (1, 2, 3, 4)]
        found = dict(engine.as_done(dies_of, RuntimeDealing([], queues, gone=lambda why: why)))
        assert [found[(task,)] for task in (1, 3, 4)] == [1, 3, 4]
        assert f"{MOST_RETRIES + 1} curator actors died of it" in found[(2,)]
        with pytest.raises(RuntimeFailure, match=f"{MOST_RETRIES + 1} client actors died of it"):
            engine.federate(asks, dies, path=("dies",))


class Crashes(Curator):
    """Its process ends before its first sign of life."""

    def __init__(self, *args: object) -> None:
        os._exit(1)


class Raises(Curator):
    """Ray does not start it again."""

    def __init__(self, *args: object) -> None:
        raise ValueError("no curator")


@pytest.mark.parametrize("kind", [Crashes, Raises])
def test_a_kind_of_actors_that_never_starts_ends_the_run_in_one_line(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "Curator", kind)
    monkeypatch.setattr(engines, "SECONDS_TO_START", 20.0 if kind is Crashes else 600.0)
    with (
        runtime.start("ray", workers=2) as engine,
        pytest.raises(RuntimeFailure, match=r"\Ano curator is left: .* kept: --resume goes on\Z"),
    ):
        list(engine.as_done(dies_of, RuntimeDealing([[(1,)]])))


def test_an_actor_that_stands_still_is_started_again(tmp_path: Path) -> None:
    with runtime.start("ray", workers=2, silence=10.0) as engine:
        assert len(set(engine.federate(asks, whoami, path=("who",)))) == 2
        engine.describe()
        assert len(engine.federate(asks, stands_still, str(tmp_path / "marker"), path=("stops",))) == 2
        assert until(lambda: engine.describe()["workers_lost"] == 1)  # another one may have done its work before


def test_a_machine_dies_and_another_one_joins(cluster: Cluster, library: Graph, tmp_path: Path) -> None:
    with runtime.start("serial") as engine:
        truth = cells(engine, library, 6, "nobody", tmp_path)
    second = cluster.add_node(num_cpus=1)

    def same(engine: Runtime) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(cells(engine, library, 6, "nobody", tmp_path), truth, strict=True))

    with runtime.start("ray", workers=2) as engine:
        assert same(engine)
        assert engine.describe()["nodes"] == 2
        death = threading.Timer(0.3, lambda: cluster.remove_node(second, allow_graceful=False))
        death.start()
        assert same(engine)
        death.join()
        assert same(engine)
        assert until(lambda: engine.describe()["workers_lost"])
        assert engine.describe()["nodes"] == 1, "a dead machine is counted"
        cluster.add_node(num_cpus=1)
        assert until(lambda: len(set(engine.federate(asks, whoami, path=("who",)))) == 2), "the pool has grown again"
        assert same(engine)


HOLDS = """
import time
from fedgraph import runtime
with runtime.start("ray", workers=1) as engine:
    print("held", flush=True)
    time.sleep(600)
"""


def test_beside_another_run_there_is_no_room_or_a_ray_of_its_own(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RuntimeFailure, match=r"find no room: there is 1 machine.*others use it, free now: 0 CPU"):
            runtime.start("ray", workers=1)
        monkeypatch.delenv("RAY_ADDRESS")
        with runtime.start("ray", workers=2) as engine:
            assert engine.federate(asks, len, path=("len",)) == [1, 1]
            assert engine.describe()["nodes"] == 1
    finally:
        other.kill()
        other.wait()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there the actors would start")
def test_a_run_that_asks_for_gpus_waits_for_their_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head says that one can start. This one has a GPU for Ray alone, so a line says that torch cannot use it.

    However long Ray takes: the machine is added when the run has asked for room, and has waited longer than others may.
    """

    def asked() -> bool:
        return ray.is_initialized() and any(room["state"] == "PENDING" for room in placement_group_table().values())

    head = {"num_cpus": 1, "include_dashboard": False, "resources": {"gpus_to_start": 1, "cpus_per_gpu_to_start": 1}}
    made = Cluster(initialize_head=True, head_node_args=head)
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    try:
        with runtime.start("ray") as engine:
            assert engine.describe()["gpus_per_worker"] == 0.0, "nobody has asked for one"
        with ThreadPoolExecutor(1) as beside:
            monkeypatch.setattr(places, "SECONDS_TO_PLACE", 1.0)
            begun = beside.submit(runtime.start, "ray", 1, 1.0)
            assert until(lambda: begun.done() or asked())
            time.sleep(3.0)
            assert not begun.done(), begun.exception()
            made.add_node(num_cpus=1, num_gpus=1, wait=False)
            with (
                begun.result(timeout=600) as engine,
                pytest.raises(RuntimeFailure, match=r"was given 1 GPU, and torch .* there cannot use it"),
            ):
                engine.federate(asks, whoami, path=("who",))
        with pytest.raises(RuntimeFailure, match=r"2 workers with 1 CPU and 1 GPU each were asked for, and 1 of them fit"):
            runtime.start("ray", workers=2, gpus_per_worker=1.0)
    finally:
        made.shutdown()


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
SAID = {
    ("driver", signal.SIGTERM): r"terminated; \d+ of 40 cells are done.*; the same command with --resume",
    ("raylet", signal.SIGKILL): "fedgraph: Ray's raylet on this machine has died; finished cells are kept: --resume goes on$",
}


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def ray_computes(folder: Path) -> bool:
    """Whether Ray is there, and three cells are finished; the driver itself computes some while Ray starts."""
    about = folder / "environment.json"
    there = about.exists() and "workers" in json.loads(about.read_text(encoding="utf-8"))["runtime"]
    return there and len(list(folder.glob("cells/*.json.gz"))) >= 3


@pytest.mark.parametrize(
    ("who", "number"), [("driver", signal.SIGKILL), ("driver", signal.SIGTERM), ("raylet", signal.SIGKILL)]
)
def test_a_run_that_is_ended_leaves_no_process_and_is_resumed(tmp_path: Path, who: str, number: signal.Signals) -> None:
    scenario, out, whole = tmp_path / "mortal.yaml", tmp_path / "out", tmp_path / "whole"
    scenario.write_text(SCENARIO, encoding="utf-8")
    own = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}  # not a cluster of other tests here
    command = [sys.executable, "-m", "fedgraph.run", str(scenario)]
    subprocess.run([*command, "--out", str(whole), "--runtime", "serial"], check=True, capture_output=True, env=own)
    driver = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own)
    assert until(lambda: ray_computes(out) or driver.poll() is not None)
    family = processes.family(driver.pid)
    raylets = [pid for pid, _ in family if b"/raylet\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert raylets
    for pid in raylets if who == "raylet" else [driver.pid]:
        os.kill(pid, number)
    _, err = driver.communicate(timeout=600)
    if (who, number) in SAID:
        assert driver.returncode == 1
        assert re.match(SAID[who, number], err.splitlines()[-1])
        assert "Traceback" not in err
        assert "core_worker" not in err
    assert until(lambda: not [pid for pid, when in family if processes.began(pid) == when]), "a process outlived its driver"
    subprocess.run([*command, "--resume", str(out), "--runtime", "serial"], check=True, capture_output=True, env=own)
    assert rows(out) == rows(whole)
