"""Clusters that are not there, resources that nobody has, and what is left when a driver is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import ray
from ray.exceptions import ObjectStoreFullError, OutOfDiskError, RayError

from fedgraph import runtime
from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import process
from fedgraph.runtime import ray as engines
from fedgraph.runtime.base import RuntimeClients
from fedgraph.runtime.ray import actor, cluster, places
from fedgraph.runtime.ray.places import PlaceNode


@pytest.mark.parametrize("listens", [False, True])
def test_an_address_where_no_ray_answers(listens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there; or somebody accepts and never says a word, so that the greeting is not answered."""
    honest = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: honest(address, timeout=timeout / 10))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not listens:
            server.close()
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        with pytest.raises(RuntimeFailure, match=rf"RAY_ADDRESS=127\.0\.0\.1:{port}: no Ray cluster answers there"):
            cluster.connect(None)


@pytest.mark.parametrize("error", [Exception("the node timed out\nduring startup"), ConnectionError("no answer")])
def test_a_ray_that_does_not_start_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ray raises a bare exception where it is late. What its library writes is dropped, what a run says is shown."""

    def fails(**_: object) -> None:
        print("55 cells to run", file=sys.stderr)
        os.write(2, b"network_util.cc: Failed to determine local IP")
        raise error

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", fails)
    with open(2, "w", 1, encoding="utf-8", closefd=False) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(sys, "__stderr__", terminal)
        with pytest.raises(RuntimeFailure, match=r"\Aa local Ray cannot be used .*; or use --runtime serial\Z"):
            cluster.connect(2)
        assert sys.stderr is terminal
    assert capfd.readouterr().err == "55 cells to run\n"


class _Importing(str):
    """The name of a module. While it is looked at, another thread imports a module, as a run does beside the start of Ray."""

    def startswith(self, *args: object) -> bool:
        sys.modules[f"late_{len(sys.modules)}"] = sys
        return False


def test_modules_are_imported_while_ray_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(workers: int | None) -> None:
        raise RuntimeFailure("far enough")

    monkeypatch.setattr(sys, "modules", {**sys.modules, _Importing("one"): sys})
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster, "connect", stops)
    with pytest.raises(RuntimeFailure, match="far enough"):
        engines.RayRuntime()


@pytest.mark.parametrize(
    ("nodes", "workers", "gpus", "expected"),
    [
        ([(4, 0)], None, None, (4, 0.0)),
        ([(4, 0), (2, 0)], None, None, (6, 0.0)),
        ([(4, 2)], 4, None, (4, 0.5)),  # two on each GPU: with the server among them the last one would find no whole piece
        ([(4, 2)], 2, None, (2, 1.0)),
        ([(8, 4)], 2, None, (2, 2.0)),
        ([(4, 2)], 3, None, (3, 0.5)),
        ([(4, 0), (4, 1)], None, None, (4, 0.25)),  # a head without a GPU holds no worker
        ([(32, 1)], None, None, (4, 0.25)),
        ([(1, 1), (1, 1)], 2, None, (2, 1.0)),
        ([(4, 1)], None, 0.0, (4, 0.0)),
    ],
)
def test_workers_and_their_share_of_gpus(
    nodes: list[tuple[int, int]], workers: int | None, gpus: float | None, expected: tuple[int, float]
) -> None:
    there = [PlaceNode(f"m{i}", cpus, found) for i, (cpus, found) in enumerate(nodes)]
    assert places.choose(there, workers, gpus) == expected


@pytest.mark.parametrize(
    ("nodes", "workers", "gpus", "words"),
    [
        ([(8, 0)], 500, None, "runtime.workers is 500; allowed here: at most 8, one for each CPU; there is 1 machine: m0"),
        ([(8, 0)], 2, 1.0, "2 workers with 1 CPU and 1 GPU each were asked for, and 0 of them fit"),
        ([(8, 0), (1, 8)], 4, 0.5, "4 workers with 1 CPU and 0.5 GPU each were asked for, and 1 of them fit"),
        ([(4, 2)], 4, 0.6, "2 of them fit; there is 1 machine: m0 (4 CPU, 2 GPU)"),
        ([(8, 4)], 2, 1.5, "runtime.gpus_per_worker is 1.5; allowed: a share of one GPU, or whole GPUs"),
    ],
)
def test_more_than_there_is(nodes: list[tuple[int, int]], workers: int, gpus: float | None, words: str) -> None:
    with pytest.raises(RuntimeFailure) as error:
        places.choose([PlaceNode(f"m{i}", cpus, found) for i, (cpus, found) in enumerate(nodes)], workers, gpus)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_another_version_is_named() -> None:
    here = process.ProcessVersions("3.11.7", (("torch", "2.13.0"), ("numpy", "2.1")), "abc")
    there = process.ProcessVersions("3.12.1", (("torch", "2.12.0"), ("numpy", "2.1")), "abc")
    process.require_equal_versions(here, [("one", here)])
    with pytest.raises(RuntimeFailure, match=r"on two is not .* \(python: driver 3.11.7, worker 3.12.1; torch: driver 2"):
        process.require_equal_versions(here, [("one", here), ("two", there)])


def test_shares_of_a_gpu_add_up_to_its_place() -> None:
    """The server stands in the first place; Ray counts four digits, and what is over them never fits."""
    for gpus in (0.0, 0.05, 1 / 7, 0.25, 1 / 3, 0.5, 1.0, 2.0, 4.0):
        found = places.Places(3, gpus, None, "", "node")  # type: ignore[arg-type]
        for slot in range(3):
            kinds = ["client", "curator", "server-pairs", *(["server"] if slot == 0 else [])]
            shares = [found.gpus_of(kind, slot) for kind in kinds]
            assert sum(shares) <= gpus + 1e-9
            assert sum(shares) > 0.98 * gpus - 1e-9
            assert all(share <= 1 or share == int(share) for share in shares)
            assert all(share > 0 for share in shares) == (gpus > 0)


def test_machines_that_start_when_they_are_asked_for() -> None:
    resources = {"CPU": 16.0, "gpus_to_start": 2.0, "cpus_per_gpu_to_start": 4.0}
    assert places.to_start(resources, None) == places.to_start(resources, 0.0) == places.to_start({"CPU": 4.0}, 1.0) == []
    assert len(places.to_start(resources | {"GPU": 1.0}, 1.0)) == 1, "one of the two is there"
    there = [PlaceNode("head", 0, 0), PlaceNode("cpus", 8, 0), *places.to_start(resources, 0.25)]
    assert places.choose(there, None, 0.25) == (8, 0.25)
    assert places.choose(there, 2, 1.0) == (2, 1.0)
    with pytest.raises(RuntimeFailure, match="2 of them fit; there is 4 machines: head"):
        places.choose(there, 3, 1.0)


def test_as_many_places_as_cpus_that_this_process_may_use() -> None:
    """``taskset -c 0`` is what a container with one CPU is."""
    code = "from fedgraph.runtime import process; print(process.num_cpus())"
    one = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {code}"
    found = [subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True).stdout for c in (one, code)]
    assert found[0] == "1\n"
    assert 1 <= int(found[1]) <= len(os.sched_getaffinity(0))


@pytest.mark.ray("own")
@pytest.mark.slow
def test_one_cpu_starts_one_worker() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nfrom fedgraph import runtime\n"
        "with runtime.start('ray') as engine: print(engine.describe()['workers'])"
    )
    own = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own)
    assert found.stdout == "1\n"


def ones(items: range, count: int) -> np.ndarray:
    return np.ones(count)


def large(clients: RuntimeClients, values: object) -> list[float]:
    made = [clients.ask(ones, 2, 8_000_000) for _ in range(3)]  # 384 MB in all
    assert [answer.sum() for answers in made for answer in answers] == [8e6] * 6
    return clients.ask(total, 2, values)


def total(items: range, values: np.ndarray) -> float:
    return float(values.sum())


@pytest.mark.ray("own")
@pytest.mark.slow
def test_values_larger_than_the_object_store_go_to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(cluster, "_LOCAL_STORE_BYTES", 80 * 1024**2)
    with runtime.start("ray", workers=2) as engine:
        shared = engine.share("large", np.ones(15_000_000))  # 120 MB
        assert engine.federate(large, shared, path=("large",)) == [15e6, 15e6]


@pytest.mark.parametrize("error", [ObjectStoreFullError, OutOfDiskError])
def test_no_room_for_a_value_is_one_line(error: type[RayError]) -> None:
    """What Ray raises where its store is full and the disk, too; it is no death of an actor."""
    said = actor.as_own(error("no space\nleft"), "client")
    assert isinstance(said, RuntimeFailure)
    assert str(said).startswith("Ray's object store is full: ")
    assert "\n" not in str(said)
