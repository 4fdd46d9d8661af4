"""Calls through a socket between a server and a client actor of one machine: what arrives, and what is asked again."""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedgraph import runtime, seeds
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import Runtime, RuntimeClients
from fedgraph.runtime.ray import doors
from fedgraph.runtime.ray.doors import ActorDoor, DoorAddress, DoorCallers
from fedgraph.types import Graph
from tests.public_facts import public_facts


def doubled(values: dict[str, np.ndarray], by: int) -> tuple[dict[str, np.ndarray], bool]:
    return {name: by * value for name, value in values.items()}, any(v.flags.writeable for v in values.values())


@pytest.fixture
def callers(tmp_path: Path) -> DoorCallers:
    door = ActorDoor(doubled, str(tmp_path))
    assert door.address is not None
    return DoorCallers(door.address)


def test_arrays_travel_bit_for_bit_and_nobody_can_write_to_them(callers: DoorCallers) -> None:
    values = {"a": np.arange(50_000.0), "none": np.empty((0, 3)), "turned": np.asfortranarray(np.ones((40, 30)))}
    for by in (2, 3):  # the second call uses the same connection
        call = callers.begin(values, by)
        assert call is not None
        found, writeable = callers.end(call)
        assert not writeable
        assert all(
            np.array_equal(found[name], by * value) and not found[name].flags.writeable for name, value in values.items()
        )


def test_what_raises_is_to_be_asked_again_and_the_next_call_is_answered(callers: DoorCallers) -> None:
    failed = callers.begin(3)
    assert failed is not None
    assert callers.end(failed) is None
    good = callers.begin({}, 1)
    assert good is not None
    assert callers.end(good) == ({}, False)


def test_calls_on_their_way_at_the_same_time_each_get_their_answer(callers: DoorCallers) -> None:
    calls = [callers.begin({"x": np.full(30_000, 1.0)}, by) for by in range(4)]
    assert [callers.end(call)[0]["x"][0] for call in calls if call is not None] == [0.0, 1.0, 2.0, 3.0]


def test_nobody_without_the_key_is_answered_and_a_closed_door_is_asked_otherwise(tmp_path: Path) -> None:
    door = ActorDoor(doubled, str(tmp_path))
    assert door.address is not None
    assert DoorCallers(replace(door.address, key=b"another")).begin({}, 1) is None
    assert DoorCallers(replace(door.address, path=str(tmp_path / "nowhere"))).begin({}, 1) is None
    whole = DoorCallers(door.address).begin({}, 1)
    assert whole is not None, "a stranger has closed the door for everybody"


def test_a_folder_that_takes_no_socket_leaves_ordinary_calls(tmp_path: Path) -> None:
    long = tmp_path / ("long" * 40)  # a path of a socket has 107 bytes at most
    long.mkdir()
    for folder in (long, tmp_path / "missing"):
        assert ActorDoor(doubled, str(folder)).address is None
    assert doors.find_callers(None, "here") is None


def test_who_connects_and_says_nothing_holds_up_nobody(tmp_path: Path) -> None:
    door = ActorDoor(doubled, str(tmp_path))
    assert door.address is not None
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(door.address.path)
        found: list[object] = []
        caller = threading.Thread(target=lambda: found.append(ended(DoorCallers(door.address), {}, 1)), daemon=True)  # type: ignore[arg-type]
        caller.start()
        caller.join(8)
        assert found == [({}, False)]


def test_the_key_is_in_no_text() -> None:
    assert "secret" not in repr(DoorAddress("/path", b"secret"))


def ended(callers: DoorCallers, *asked: object) -> Any:
    call = callers.begin(*asked)
    assert call is not None
    return callers.end(call)


class Unreadable:
    """Can be sent, and not be read."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return int, ("no number",)


class Unsendable:
    """Cannot be sent."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        raise TypeError("stays here")


def test_what_cannot_be_sent_or_read_is_to_be_asked_again(tmp_path: Path) -> None:
    door = ActorDoor(lambda kind: (kind(), False), str(tmp_path))
    assert door.address is not None
    callers = DoorCallers(door.address)
    assert callers.begin(Unsendable()) is None
    for kind in (Unreadable, Unsendable):
        assert ended(callers, kind) is None
    assert ended(callers, Unreadable()) is None, "the door cannot read what is asked"
    assert ended(callers, list) == ([], False)


@pytest.mark.parametrize("cut", [0, 3, 11, 4000])
def test_an_answer_that_is_cut_is_to_be_asked_again(tmp_path: Path, cut: int) -> None:
    """Somebody with the key computes, sends the first bytes of an answer, and is gone."""
    path, whole = str(tmp_path / "cut"), bytes(5000)
    with Listener(path, "AF_UNIX", 1, authkey=b"key") as listener:

        def answers() -> None:
            with listener.accept() as connection:
                doors._receive(connection)
                os.write(connection.fileno(), (struct.pack("!i", len(whole)) + whole)[:cut])

        thread = threading.Thread(target=answers, daemon=True)
        thread.start()
        assert ended(DoorCallers(DoorAddress(path, b"key")), 1) is None
        thread.join(20)


def test_many_threads_are_answered_each_by_its_own_and_one_computes_at_a_time(tmp_path: Path) -> None:
    inside, most, computed = [0], [0], [0]

    def counted(value: int) -> tuple[object, bool]:
        inside[0] += 1
        most[0], computed[0] = max(most[0], inside[0]), computed[0] + 1
        found = np.full(2000, value)
        inside[0] -= 1
        return found, False

    door = ActorDoor(counted, str(tmp_path))
    assert door.address is not None
    servers = DoorCallers(door.address), DoorCallers(door.address)
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda value: ended(servers[value % 2], value)[0], range(480)))
    assert [set(one.tolist()) for one in found] == [{value} for value in range(480)]
    assert (most[0], computed[0]) == (1, 480), "what is answered is computed once"


def test_a_connection_to_who_has_died_is_no_answer_and_no_wait(tmp_path: Path) -> None:
    path = str(tmp_path / "dies")
    with Listener(path, "AF_UNIX", 1, authkey=b"key") as listener:
        callers = DoorCallers(DoorAddress(path, b"key"))

        def answers() -> None:
            with listener.accept() as connection:
                doors._receive(connection)
                doors._send(connection, (1, 0.5))

        thread = threading.Thread(target=answers, daemon=True)
        thread.start()
        assert ended(callers, 1) == (1, 0.5)
        thread.join(20)
    kept = callers.begin(2)  # on the connection that is kept; it may be written to before the end is seen
    assert kept is None or callers.end(kept) is None
    with pytest.raises(OSError, match="No such file"):
        Client(path, "AF_UNIX", b"key")


def marked(items: range, folder: str, dies: bool) -> int:
    """The first of all calls computes, and its answer is lost: in a process that lives, or with it."""
    first = not os.listdir(folder)
    Path(folder, f"{os.getpid()}-{len(os.listdir(folder))}").touch()
    send = doors._send

    def lost(connection: object, value: object) -> None:
        doors._send = send
        if dies:
            os._exit(1)
        raise OSError("the connection is gone")

    if first:
        doors._send = lost  # type: ignore[assignment]
    return 42


def asks_one(clients: RuntimeClients, *call: Any) -> list[Any]:
    return clients.ask(call[0], 1, *call[1:])


@pytest.mark.ray
@pytest.mark.parametrize("dies", [False, True])
def test_an_actor_whose_answer_is_lost_is_asked_again_once(ray_engine: Runtime, tmp_path: Path, dies: bool) -> None:
    assert ray_engine.federate(asks_one, marked, str(tmp_path), dies, path=("task", "lost")) == [42]
    processes = [name.split("-")[0] for name in os.listdir(tmp_path)]
    assert (len(processes), len(set(processes))) == (2, 2 if dies else 1)


_SEND = doors._send


def lose(every: int) -> None:
    """In this process every so many messages are lost, after what they answer was computed; 0: none any more."""
    count = iter(range(1, 10**9))

    def sometimes(connection: Any, value: object) -> None:
        if next(count) % every == 0:
            raise OSError("the connection is gone")
        _SEND(connection, value)

    doors._send = sometimes if every else _SEND


@pytest.fixture
def losing(ray_engine: Runtime) -> Iterator[Runtime]:
    ray_engine.tell(lose, 3)
    yield ray_engine
    ray_engine.tell(lose, 0)


@pytest.mark.ray
def test_lost_messages_change_no_number_and_no_line_of_the_ledger(losing: Runtime, library: Graph) -> None:
    def trained(engine: Runtime) -> rounds.RoundsOutcome:
        partition = uniform.split(library, uniform.Params(clients=4), seeds.seeded_generator(0, "deal"))
        sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
        facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER, None, None)
        plan, shared = features.plan(features.Params(steps=12), facts, Budget(1.0, 1e-3)), engine.share("lost", partition)
        out = rounds.run(engine, shared, plan, 0, ("cell", "lost"), ("common",), rounds.RoundPrefixes())
        engine.forget(shared)
        return out

    with runtime.start("serial") as serial:
        truth = trained(serial)
    found = trained(losing)
    assert found.releases == truth.releases
    assert all(np.array_equal(found.state.model[name], value) for name, value in truth.state.model.items())
