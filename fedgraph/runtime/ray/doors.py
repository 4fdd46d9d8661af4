"""Calls from the server to a client actor of the same machine, through a socket between their processes.

An ordinary call of Ray passes several threads and copies on both sides: some three milliseconds of processor time for each
client actor and round, whatever it carries. A round of a small federation computes less than that. So a client actor also
listens at a socket of its own (``ActorDoor``), and a server on its machine asks there. A socket knows nothing of actors that
die or of values on their way: whatever goes wrong there is asked again by an ordinary call, which says what it was.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from pickle import PickleBuffer
from typing import TypeAlias, cast

import ray
from ray import cloudpickle

TimedDoorAnswer: TypeAlias = tuple[object, float]  # what was computed, and its seconds
_MOST_WAITING = 16  # who ask for a connection at once


@dataclass(frozen=True)
class DoorAddress:
    """Where a client actor listens.

    Attributes:
        path: Of the socket.
        key: Whoever connects must know it; it travels by Ray alone.
    """

    path: str
    key: bytes = field(repr=False)


class ActorDoor:
    """Listens in threads of its own, and answers with ``compute``.

    Args:
        compute: Called with what was asked, one call at a time. Where it raises, the answer is None.
        folder: For the socket.

    Attributes:
        address: None where no socket can be made.
    """

    def __init__(self, compute: Callable[..., TimedDoorAnswer], folder: str) -> None:
        self._compute, self._lock = compute, threading.Lock()
        self.address: DoorAddress | None = None
        path, key = f"{folder}/door-{os.getpid()}", os.urandom(16)
        try:
            self._listener = Listener(path, "AF_UNIX", _MOST_WAITING)
            os.chmod(path, 0o600)
        except OSError:  # the path is too long, or there are no such sockets
            return
        self.address = DoorAddress(path, key)
        threading.Thread(target=self._welcome, args=(key,), daemon=True).start()

    def once(self, *asked: object) -> TimedDoorAnswer:
        """What ``compute`` gives, once nobody else computes."""
        with self._lock:
            return self._compute(*asked)

    def _welcome(self, key: bytes) -> None:
        while True:
            with contextlib.suppress(Exception):  # somebody who has gone again
                threading.Thread(target=self._serve, args=(self._listener.accept(), key), daemon=True).start()

    def _serve(self, connection: Connection, key: bytes) -> None:
        """Asks for the key here and not where others wait, so that whoever says nothing holds up nobody else."""
        with connection, contextlib.suppress(Exception):  # a stranger; or whoever asked has gone, or reads that nothing comes
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
            while True:
                asked, answer = cast(tuple[object, ...], _receive(connection)), None
                with contextlib.suppress(Exception):  # the ordinary call that follows raises it again
                    answer = self.once(*asked)
                _send(connection, answer)


class DoorCallers:
    """Connections to one door, as many as calls are on their way."""

    def __init__(self, address: DoorAddress) -> None:
        self._address, self._lock = address, threading.Lock()
        self._free: list[Connection] = []  # on which nobody waits for an answer

    def begin(self, *asked: object) -> Connection | None:
        """A call on its way; None where nobody listens, or where it cannot be sent."""
        try:
            with self._lock:
                connection = self._free.pop() if self._free else None
            connection = connection or Client(self._address.path, "AF_UNIX", self._address.key)
            _send(connection, asked)
        except Exception:  # the ordinary call that follows says what it was
            return None
        return connection

    def end(self, connection: Connection) -> TimedDoorAnswer | None:
        """What was answered; None where it must be asked again."""
        try:
            answer = _receive(connection)
        except Exception:  # the actor has died, or what it says cannot be read
            connection.close()
            return None
        with self._lock:
            self._free.append(connection)
        return cast(TimedDoorAnswer | None, answer)


def find_callers(door: DoorAddress | None, node: str) -> DoorCallers | None:
    """Of the door of an actor on this machine of Ray's; None where it is on another ``node``, or has none."""
    return DoorCallers(door) if door is not None and node == ray.get_runtime_context().get_node_id() else None


def _send(connection: Connection, value: object) -> None:
    """``value``, its arrays without a copy."""
    arrays: list[PickleBuffer] = []
    head = cloudpickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    connection.send_bytes(len(arrays).to_bytes(4, "little") + head)
    for array in arrays:
        connection.send_bytes(array.raw())


def _receive(connection: Connection) -> object:
    """What ``_send`` sent; nobody can write to its arrays."""
    head = connection.recv_bytes()
    arrays = [connection.recv_bytes() for _ in range(int.from_bytes(head[:4], "little"))]
    found: object = cloudpickle.loads(memoryview(head)[4:], buffers=arrays)
    return found
