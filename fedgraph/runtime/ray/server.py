"""The server actor.

Ray actors represent clients that hold subgraphs. They compute DP-APPR and node-DP GNNs or multi-bit-encoded LDP embeddings; a
server actor aggregates by FedAvg and computes Gromov-Wasserstein distances with POT for clustering and classification.
"""

import functools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import ray
from ray.actor import ActorHandle
from ray.util.metrics import Counter, Gauge

from fedgraph.runtime import base
from fedgraph.runtime.base import RuntimeClients, RuntimeFunction, RuntimeValue
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountPath, RuntimeCountTally
from fedgraph.runtime.ray.actors import Actor, ActorStart, SharedWithActors
from fedgraph.runtime.ray.doors import TimedDoorAnswer
from fedgraph.runtime.ray.places import Places
from fedgraph.runtime.ray.seats import AskedOfSeat, Seat, Seats

_SECONDS_TO_HEAR = 60.0
_BYTES_INLINE = 2 * 1024**2  # of a model: a larger one goes to the object store once, and not to each client by itself
_TAGS = ("task", "cell")
_COUNTED = {
    "rounds": "Rounds that the server merged",
    "messages": "Messages of clients to the server",
    "bytes_up": "Bytes of arrays from clients to the server",
    "bytes_down": "Bytes of arrays from the server to clients",
}


class ServerMeters:
    """Counters for Ray's dashboard and for Prometheus: rounds, messages and bytes of trainings, ε of finished cells."""

    def __init__(self) -> None:
        self._counters = {name: Counter(f"fedgraph_{name}", said, _TAGS) for name, said in _COUNTED.items()}
        self._epsilon = Gauge("fedgraph_epsilon", "Provable epsilon of a finished cell, where it has one", _TAGS)

    def add(self, path: RuntimeCountPath, count: RuntimeCount) -> None:
        """One more part of what the training ``path`` cost, as the server knows it."""
        for name, counter in self._counters.items():
            if (value := vars(count)[name]) > 0:
                counter.inc(value, _tags(path))

    def set_epsilon(self, path: RuntimeCountPath, epsilon: float) -> None:
        """The cell ``path`` is finished, as the driver knows it."""
        self._epsilon.set(epsilon, _tags(path))


def _tags(path: RuntimeCountPath) -> dict[str, str]:
    """Ray takes ASCII alone; labels may be anything."""
    return {
        k: v.encode("ascii", "backslashreplace").decode() for k, v in zip(_TAGS, (path[0], "/".join(path[1:])), strict=True)
    }


class Server(Actor):
    """``server``: leads the trainings, and compares, clusters and classifies what was released. It holds no subgraph.

    Several trainings go on at a time, each in a thread of its own: while one waits for its clients, another one's round is
    merged, so the clients are not idle. Merges themselves are made one after another.

    =============  ================================================================================================
    ``train``      begins, sends the model, merges what the clients release (FedAvg), round by round
    ``distances``  solves a chunk of pairs by Gromov-Wasserstein in one of its own processes, ``server-pairs-k``
    ``judge``      clusters and classifies by the distances
    =============  ================================================================================================
    """

    def __init__(self, gpus: float, start: ActorStart, places: Places) -> None:
        super().__init__(gpus, start)

        def start_pairs(slot: int) -> ActorHandle:
            return places.start(Server, "server-pairs", slot, start, list(self._heard))

        self._clients, self._pairs = Seats(places.names("client")), Seats(places.names("server-pairs"), start_pairs)
        self._idle: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(places.num):
            self._idle.put(slot)
        self._tally, self._meters = RuntimeCountTally(), ServerMeters()
        self._computes = threading.Lock()

    @ray.method(concurrency_group="life")
    def hear(self, function: RuntimeFunction, *args: object) -> None:
        """As every actor; its own processes for pairs hear it, too, before this call ends."""
        function(*args)
        self._heard.append((function, *args))
        if heard := [actor.hear.remote(function, *args) for actor in self._pairs.known()]:
            ray.wait(heard, num_returns=len(heard), timeout=_SECONDS_TO_HEAR)

    @ray.method(concurrency_group="trainings")
    def train(self, function: RuntimeFunction, path: RuntimeCountPath, *args: object) -> Any:
        """``function(clients, *args)``: all rounds of one training (``federation.rounds._advance_rounds``)."""
        leads = _Leads(self._clients, self._tally, path, self._computes, self._meters)
        with self._tally.training(path), leads.computing():
            self._alone()
            try:
                return function(leads, *args)
            finally:
                leads.end()

    @ray.method(concurrency_group="pairs")
    def distances(self, function: RuntimeFunction, task: object, *args: object) -> Any:
        """``function(task, *args)`` in one of the server's own processes."""
        slot = self._idle.get()

        def submit(seat: Seat) -> ray.ObjectRef:
            ref: ray.ObjectRef = seat.actor.compute.remote(function, task, *[self._pairs.hand(seat, slot, a) for a in args])
            return ref

        try:
            return self._pairs.values([self._pairs.ask(slot, submit)])[0][0]
        finally:
            self._idle.put(slot)

    def judge(self, function: RuntimeFunction, *args: object) -> Any:
        """``function(*args)`` in this process: clusters, classes, barycentres."""
        return self.compute(function, *args)[0]

    @ray.method(concurrency_group="life")
    def forget(self, key: str) -> None:
        """A value that was dealt to the clients or the processes for pairs is no more needed."""
        self._clients.forget(key)
        self._pairs.forget(key)
        self._held.pop(key, None)

    @ray.method(concurrency_group="life")
    def counts(self) -> tuple[dict[RuntimeCountPath, RuntimeCount], dict[str, RuntimeCount]]:
        """What every training cost, and every task."""
        return self._tally.counts(), self._tally.tasks()


class _Leads(RuntimeClients):
    """One training at the server. It computes only while it has ``lock``, and gives it away while it waits for clients."""

    def __init__(
        self, seats: Seats, tally: RuntimeCountTally, path: RuntimeCountPath, lock: threading.Lock, meters: ServerMeters
    ) -> None:
        self._seats = seats
        self._tally = tally
        self._path = path
        self._lock = lock
        self._meters = meters
        self._since = 0.0
        self._shared: list[str] = []

    @contextmanager
    def computing(self) -> Iterator[None]:
        """From here on this training computes."""
        self._take()
        try:
            yield
        finally:
            self._give()

    def _take(self) -> None:
        self._lock.acquire()
        self._since = time.perf_counter()

    def _give(self) -> None:
        self._tally.add(self._path, RuntimeCount(server_busy=time.perf_counter() - self._since))
        self._lock.release()

    def share(self, key: str, value: object) -> SharedWithActors:
        name = f"{key} of {'/'.join(self._path)}, {id(self)}"
        self._shared.append(name)
        return SharedWithActors(name, (ray.put(value),))

    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        dealt = base.split_into_blocks(num_items, len(self._seats))
        given = [ray.put(a) if len(dealt) > 1 and _size(a) > _BYTES_INLINE else a for a in args]

        self._give()
        try:
            near = [self._directly(slot, function, items, given) for slot, items in enumerate(dealt)]
            asked = {slot: self._asked(slot, function, dealt[slot], given) for slot, call in enumerate(near) if call is None}
            found = {slot: call() for slot, call in enumerate(near) if call is not None}
            lost = [slot for slot, answer in found.items() if answer is None]
            asked |= {slot: self._asked(slot, function, dealt[slot], given) for slot in lost}
            answers = {slot: answer for slot, answer in found.items() if answer is not None}
            answers |= dict(zip(asked, self._seats.values(list(asked.values())), strict=True))
        finally:
            self._take()
        self._tally.add(
            self._path, RuntimeCount(calls=len(dealt), clients_busy=sum(seconds for _, seconds in answers.values()))
        )
        return [answers[slot][0] for slot in range(len(dealt))]

    def _asked(self, slot: int, function: RuntimeFunction, items: range, given: Sequence[object]) -> AskedOfSeat:
        def submit(seat: Seat) -> ray.ObjectRef:
            ref: ray.ObjectRef = seat.actor.round.remote(function, items, *[self._seats.hand(seat, slot, a) for a in given])
            return ref

        return self._seats.ask(slot, submit)

    def _directly(
        self, slot: int, function: RuntimeFunction, items: range, given: Sequence[object]
    ) -> Callable[[], TimedDoorAnswer | None] | None:
        """Gives what the client actor answers at its door; None where it has none here, or does not hold all that it needs."""
        seat = self._seats.worker(slot)
        if seat.near is None or any(isinstance(a, ray.ObjectRef) or not self._seats.holds(seat, slot, a) for a in given):
            return None
        call = seat.near.begin(function, items, *[self._seats.hand(seat, slot, a) for a in given])
        return None if call is None else functools.partial(seat.near.end, call)

    def seal(self, value: RuntimeValue) -> RuntimeValue:
        return value

    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        count = RuntimeCount(rounds=1, messages=messages, bytes_up=up, bytes_down=down)
        self._tally.add(self._path, count)
        self._meters.add(self._path, count)

    def end(self) -> None:
        """What was shared for this training alone is dropped."""
        for key in self._shared:
            self._seats.forget(key)


def _size(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(v.nbytes for v in value.values() if isinstance(v, np.ndarray))
    return 0
