"""Actors, machines and drivers die at any moment; results stay the same bit for bit, and nothing waits for ever."""

from __future__ import annotations

import csv
import json
import os
import random
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
import torch

from fedgraph import runtime, seeds
from fedgraph.errors import RuntimeFailure
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime import process
from fedgraph.runtime import ray as engines
from fedgraph.runtime.base import Runtime, RuntimeClients, RuntimeDealing, RuntimeParties
from fedgraph.runtime.ray.actor import MOST_RETRIES
from fedgraph.runtime.ray.curator import Curator
from fedgraph.types import Graph
from tests import processes
from tests.public_facts import public_facts

pytestmark = pytest.mark.ray("own")

SCENARIO = """\
name: mortal
seeds: 3
runtime: {engine: ray, workers: 2}
datasets:
  - name: embedded/library
tasks:
  - task: node_classification
    epsilons: [1, 2, 4, 8, inf]
    trust: [curator, own-client]
    partition: {partition: uniform, clients: 3}
    methods:
      - {method: features, steps: 60, projection: 16}
"""


def trained(engine: Runtime, graph: Graph, steps: int) -> tuple[dict[str, np.ndarray], tuple[Any, ...]]:
    """(model, ledger lines) of a federation of six clients."""
    partition = uniform.split(graph, uniform.Params(clients=6), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, Viewer.SERVER, None, None)
    plan = features.plan(features.Params(steps=steps), facts, Budget(1.0, 1e-3))
    shared = engine.share(f"p{steps}", partition)
    out = rounds.run(engine, shared, plan, 0, ("cell", steps), ("common",), rounds.RoundPrefixes())
    engine.forget(shared)
    return {k: np.asarray(v) for k, v in out.state.model.items()}, out.releases


def actors() -> list[int]:
    """Processes of actors that this process (or its raylet) has started."""
    found = []
    for pid, _ in processes.family(os.getpid()):
        try:
            if re.match(rb"ray::(Client|Server|Curator)\b", Path(f"/proc/{pid}/cmdline").read_bytes()):
                found.append(pid)
        except OSError:
            continue
    return found


class Killer(threading.Thread):
    """Kills ``times`` of what ``find`` finds, one after another, at random moments."""

    def __init__(self, find: Callable[[], list[int]], times: int, seed: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.find, self.times, self.rng, self.pause = find, times, random.Random(seed), pause
        self.killed, self.over = 0, threading.Event()

    def run(self) -> None:
        while self.killed < self.times and not self.over.wait(self.rng.uniform(0, self.pause)):
            if found := sorted(self.find()):
                try:
                    os.kill(self.rng.choice(found), signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    continue


def same(one: tuple[dict[str, np.ndarray], Any], other: tuple[dict[str, np.ndarray], Any]) -> bool:
    return all(np.array_equal(one[0][k], other[0][k]) for k in other[0]) and one[1] == other[1]


def chaos(library: Graph, kills: int, seed: int) -> None:
    """Actors die while a federation trains over and over: every result is the serial engine's."""
    with runtime.start("serial") as engine:
        truth = trained(engine, library, 40)
    with runtime.start("ray", workers=2) as engine:
        assert same(trained(engine, library, 40), truth)
        killer = Killer(actors, kills, seed, pause=4.0)
        killer.start()
        runs = 0
        while killer.is_alive() or not runs:
            assert same(trained(engine, library, 40), truth)
            assert list(engine.map(slowly, list(range(6)), 3)) == [3, 4, 5, 6, 7, 8]
            runs += 1
        assert killer.killed == kills
        assert engine.describe()["workers_lost"] >= 1


def slowly(task: int, offset: int) -> int:
    time.sleep(0.05)
    return task + offset


def dies(items: range) -> None:
    os._exit(1)


def asks(clients: RuntimeClients, function: Callable[..., Any]) -> list[Any]:
    return clients.ask(function, 2)


def dies_of(engine: Callable[[], RuntimeParties], task: int) -> int:
    """The others wait for the server when task 2 kills their curator."""
    if task == 2:
        time.sleep(0.5)
        os._exit(1)
    with engine() as federation:
        federation.federate(asks, naps, path=("naps", str(task)))
    return task


def naps(items: range) -> None:
    time.sleep(1.0)


@pytest.mark.slow
def test_actors_die_and_nothing_differs(library: Graph) -> None:
    chaos(library, kills=3, seed=0)


@pytest.mark.slow
def test_work_that_kills_its_worker_ends_in_one_line() -> None:
    """And takes no other cell of that curator with it."""
    with runtime.start("ray", workers=2) as engine:
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Crashes, Raises])
def test_a_kind_of_actors_that_never_starts_ends_the_run_in_one_line(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "Curator", kind)
    monkeypatch.setattr(engines, "SECONDS_TO_START", 20.0 if kind is Crashes else 600.0)
    with (
        runtime.start("ray", workers=2) as engine,
        pytest.raises(RuntimeFailure, match=r"no curator is left: .* kept: --resume goes on") as said,
    ):
        list(engine.as_done(dies_of, RuntimeDealing([[(1,)]])))
    assert "\n" not in str(said.value)


def stands_still(items: range, marker: str) -> int:
    """Whoever is asked first stops its process, as one that hangs in compiled code."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return os.getpid()


@pytest.mark.slow
def test_an_actor_that_stands_still_is_started_again(tmp_path: Path) -> None:
    with runtime.start("ray", workers=2, silence=10.0) as engine:
        assert len(set(engine.federate(asks, whoami, path=("who",)))) == 2
        engine.describe()
        found = engine.federate(asks_stop, str(tmp_path / "marker"), path=("stops",))
        assert len(found) == 2
        until = time.monotonic() + 60  # another one may have done its work before it was killed
        while not engine.describe()["workers_lost"] and time.monotonic() < until:
            time.sleep(0.5)
        assert engine.describe()["workers_lost"] == 1


def asks_stop(clients: RuntimeClients, marker: str) -> list[Any]:
    return clients.ask(stands_still, 2, marker)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without a CPU to spare for more than one worker; tests add machines with resources of their own."""
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    before = os.environ.get("RAY_ADDRESS")
    os.environ["RAY_ADDRESS"] = found.address
    yield found
    os.environ.pop("RAY_ADDRESS")
    if before is not None:
        os.environ["RAY_ADDRESS"] = before
    found.shutdown()


@pytest.mark.slow
def test_a_machine_dies_and_another_one_joins(cluster: Any, library: Graph) -> None:
    with runtime.start("serial") as engine:
        truth = trained(engine, library, 40)
    second = cluster.add_node(num_cpus=1)
    try:
        with runtime.start("ray", workers=2) as engine:
            assert same(trained(engine, library, 40), truth)
            assert engine.describe()["nodes"] == 2
            death = threading.Timer(0.3, lambda: cluster.remove_node(second, allow_graceful=False))
            death.start()
            for _ in range(3):
                assert same(trained(engine, library, 40), truth)
            death.join()
            assert same(trained(engine, library, 40), truth)
            until = time.monotonic() + 60
            while not engine.describe()["workers_lost"] and time.monotonic() < until:
                time.sleep(0.2)
            assert engine.describe()["workers_lost"] >= 1
            assert engine.describe()["nodes"] == 1, "a dead machine is counted"
            second = cluster.add_node(num_cpus=1)
            until = time.monotonic() + 60
            while len(set(engine.federate(asks, whoami, path=("who",)))) < 2 and time.monotonic() < until:
                time.sleep(0.5)
            assert len(set(engine.federate(asks, whoami, path=("who",)))) == 2, "the pool has grown again"
            assert same(trained(engine, library, 40), truth)
    finally:
        cluster.remove_node(second)


def whoami(items: range) -> int:
    return os.getpid()


@pytest.mark.slow
def test_what_cannot_be_placed_is_one_line(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for workers, gpus, words in (
        (3, None, r"runtime.workers is 3; allowed here: at most 1, one for each CPU; there is 1 machine: .*1 CPU"),
        (1, 1.0, r"1 workers with 1 CPU and 1 GPU each were asked for, and 0 of them fit; there is 1 machine: .*"),
    ):
        began = time.monotonic()
        with pytest.raises(RuntimeFailure, match=words):
            runtime.start("ray", workers=workers, gpus_per_worker=gpus)
        assert time.monotonic() - began < 20
    other = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(RuntimeFailure, match=r"find no room: there is 1 machine.*others use it, free now: 0 CPU"):
            runtime.start("ray", workers=1)
        assert time.monotonic() - began < 30
    finally:
        other.kill()
        other.wait()
    here = process.own_versions()
    monkeypatch.setattr(process, "own_versions", lambda: process.ProcessVersions(here.python, here.packages, "another"))
    until = time.monotonic() + 60  # soon after the other driver's death its place is free, and Ray has ended its processes
    said = what_a_start_says()
    while "is not what the driver is" not in said and time.monotonic() < until:
        said = what_a_start_says()
    assert re.search(r"is not what the driver is \(fedgraph's source: driver another, worker \w{16}\)", said)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there the actors would start")
def test_a_run_that_asks_for_gpus_waits_for_their_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head says that one can start. This one has a GPU for Ray alone, so a line says that torch cannot use it."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "resources": {"gpus_to_start": 1, "cpus_per_gpu_to_start": 1}}
    made = Cluster(initialize_head=True, head_node_args=head)
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    try:
        with runtime.start("ray") as engine:
            assert engine.describe()["gpus_per_worker"] == 0.0, "nobody has asked for one"
        with ThreadPoolExecutor(1) as beside:
            begun = beside.submit(runtime.start, "ray", 1, 1.0)
            time.sleep(20.0)  # longer than others get to make room
            assert not begun.done()
            made.add_node(num_cpus=1, num_gpus=1)
            with (
                begun.result(timeout=120) as engine,
                pytest.raises(RuntimeFailure, match=r"was given 1 GPU, and torch .* there cannot use it"),
            ):
                engine.federate(asks, whoami, path=("who",))
        with pytest.raises(RuntimeFailure, match=r"2 workers with 1 CPU and 1 GPU each were asked for, and 1 of them fit"):
            runtime.start("ray", workers=2, gpus_per_worker=1.0)
    finally:
        made.shutdown()


def what_a_start_says() -> str:
    try:
        with runtime.start("ray", workers=1) as engine:
            return str(engine.federate(asks, whoami, path=("who",)))
    except RuntimeFailure as error:
        return str(error)


@pytest.mark.slow
def test_beside_a_cluster_a_run_without_address_starts_its_own(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS")
    with runtime.start("ray", workers=2) as engine:
        assert engine.federate(asks, len, path=("len",)) == [1, 1]
        assert engine.describe()["nodes"] == 1


HOLDS = """
import time
from fedgraph import runtime
with runtime.start("ray", workers=1) as engine:
    print("held", flush=True)
    time.sleep(600)
"""


def started(folder: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    scenario = folder / "mortal.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    command = [sys.executable, "-m", "fedgraph.run", str(scenario), *more]
    command += [] if "--resume" in more else ["--out", str(out)]
    own = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}  # not a cluster of other tests here
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=own)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def ray_computes(folder: Path) -> bool:
    """Whether Ray is there, and a cell is finished; the driver itself computes some while Ray starts."""
    about = folder / "environment.json"
    there = about.exists() and "workers" in json.loads(about.read_text(encoding="utf-8"))["runtime"]
    return there and bool(list(folder.glob("cells/*.json.gz")))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_driver_that_is_ended_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """Ray ends its own processes; what the driver had finished is kept; the rest gives what a run in peace gives."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert started(tmp_path, whole, "--runtime", "serial").wait(timeout=300) == 0
    driver = started(tmp_path, out)
    until = time.monotonic() + 240
    while not ray_computes(out) and time.monotonic() < until and driver.poll() is None:
        time.sleep(0.1)
    time.sleep(random.Random(int(number)).uniform(0, 2))
    family = processes.family(driver.pid)
    assert any(b"raylet" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid, _ in family)
    driver.send_signal(number)
    began = time.monotonic()
    _, err = driver.communicate(timeout=180)  # its page of what is done is written first
    while any(processes.began(pid) == when for pid, when in family) and time.monotonic() - began < 180:
        time.sleep(0.2)
    assert not [pid for pid, when in family if processes.began(pid) == when]
    if number == signal.SIGTERM:
        assert driver.returncode == 1
        assert re.match(r"terminated; \d+ of 30 cells are done.*; the same command with --resume", err.splitlines()[-1])
        assert "Traceback" not in err
    assert started(tmp_path, out, "--resume", str(out), "--runtime", "serial").wait(timeout=300) == 0
    assert rows(out) == rows(whole)
