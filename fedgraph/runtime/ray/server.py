"""The server actor: it leads trainings, and compares what was released."""

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
from fedgraph.runtime.ray import actor
from fedgraph.runtime.ray.actor import Actor, ActorAnswer, ActorPool, ActorTold, SharedWithActors
from fedgraph.runtime.ray.places import Places

_BYTES_INLINE = 2 * 1024**2  # of a model; a larger one goes to the object store once, and not to each client
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

    def add(self, path: RuntimeCountPath, **more: float) -> None:
        """Adds to the counts of the training ``path``; called at the server."""
        for name, value in more.items():
            if value > 0:
                self._counters[name].inc(value, _tags(path))

    def set_epsilon(self, path: RuntimeCountPath, epsilon: float) -> None:
        """Notes the ε of the finished cell ``path``; called at the driver."""
        self._epsilon.set(epsilon, _tags(path))


def _tags(path: RuntimeCountPath) -> dict[str, str]:
    """Task and cell as tags in ASCII, since Ray takes no other characters."""
    return {
        k: v.encode("ascii", "backslashreplace").decode() for k, v in zip(_TAGS, (path[0], "/".join(path[1:])), strict=True)
    }


class Pairs(Actor):
    """``server-pairs-k``: a process of the server that solves chunks of pairs."""


class Server(Actor):
    """``server``: leads the trainings, and compares, clusters and classifies what was released. It holds no subgraph.

    Several trainings run at a time, each in a thread of its own: while one waits for its clients, the server merges a round of
    another one, so clients are not idle. Merges are made one after another.

    =============  ================================================================================================
    ``train``      sends the model and merges what the clients release (FedAvg or the method's rule), round by round
    ``distances``  solves a chunk of pairs (Gromov-Wasserstein) in a process of its own, ``server-pairs-k``
    ``judge``      clusters and classifies by the distances
    =============  ================================================================================================

    Attributes:
        num_clients: Number of client actors.
        tally: Counts of the trainings.
        meters: The same for Ray's dashboard.
        computes: Lock of the training that computes.
    """

    def __init__(self, gpus: float, modules: Sequence[str], places: Places) -> None:
        super().__init__(gpus, modules)
        # by name, so that a restarted server finds them
        self._clients: list[ActorHandle] = [ray.get_actor(name) for name in places.names("client")]
        self._modules, self._places, self.num_clients = modules, places, len(self._clients)
        self._pairs: list[ActorHandle] = []
        self._at_clients, self._at_pairs = ActorPool("client", self._clients), ActorPool("server-pairs", self._pairs)
        self._starts = threading.Lock()
        self._idle: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(places.num):
            self._idle.put(slot)
        self.tally, self.meters = RuntimeCountTally(), ServerMeters()
        self.computes = threading.Lock()

    @ray.method(concurrency_group="trainings")
    def train(self, told: ActorTold, function: RuntimeFunction, path: RuntimeCountPath, *args: object) -> object:
        """``function(clients, *args)``: all rounds of one training (``federation.rounds``)."""
        self._hear(told)
        leads = _Leads(self, path)
        with self.tally.training(path), leads.computing():
            try:
                return function(leads, *args)
            finally:
                leads.end()

    def rounds(self, function: RuntimeFunction, blocks: Sequence[range], args: Sequence[object]) -> list[ActorAnswer]:
        """The answers of the client actors, each of its block."""

        def call(slot: int) -> Callable[[ActorHandle], ray.ObjectRef]:
            given = [a.of_client(slot) if isinstance(a, SharedWithActors) else a for a in args]
            return lambda client: client.round.remote(self._told, function, blocks[slot], *given)

        return self._at_clients.gather([call(slot) for slot in range(len(blocks))])

    def drop_at_clients(self, key: str) -> None:
        """Makes the clients forget a shared value."""
        for client in self._clients:
            client.drop.remote(key)

    @ray.method(concurrency_group="pairs")
    def distances(self, told: ActorTold, function: RuntimeFunction, task: object, *args: object) -> object:
        """``function(task, *args)`` in one of the processes for pairs; the first call starts them."""
        self._hear(told)
        slot = self._idle.get()
        try:
            with self._starts:
                if not self._pairs:
                    start = self._places.start
                    self._pairs += [start(Pairs, "server-pairs", k, self._modules) for k in range(self._places.num)]
            return self._at_pairs.gather([lambda pairs: pairs.compute.remote(self._told, function, task, *args)], slot)[0][0]
        finally:
            self._idle.put(slot)

    def judge(self, told: ActorTold, function: RuntimeFunction, *args: object) -> object:
        """``function(*args)`` in this process: clusters, classes, barycentres."""
        return self.compute(told, function, *args)[0]

    @ray.method(concurrency_group="life")
    def forget(self, key: str) -> None:
        """Forgets a shared value here, at the clients and at the processes for pairs."""
        self.drop_at_clients(key)
        for pairs in self._pairs:
            pairs.drop.remote(key)
        self._values.pop(key, None)

    @ray.method(concurrency_group="life", max_task_retries=0)
    def counts(self) -> tuple[dict[RuntimeCountPath, RuntimeCount], dict[str, RuntimeCount]]:
        """The counts of every training, and of every task."""
        return self.tally.counts(), self.tally.tasks()


class _Leads(RuntimeClients):
    """The clients of one training. The training computes only with the server's lock, which it releases while clients work."""

    def __init__(self, server: Server, path: RuntimeCountPath) -> None:
        self._server = server
        self._path = path
        self._since = 0.0
        self._shared: list[str] = []

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Holds the server's lock as long as the ``with``, except while clients work."""
        self._take()
        try:
            yield
        finally:
            self._give()

    def _take(self) -> None:
        self._server.computes.acquire()
        self._since = time.perf_counter()

    def _give(self) -> None:
        self._server.tally.add(self._path, server_busy=time.perf_counter() - self._since)
        self._server.computes.release()

    def share(self, key: str, value: object) -> SharedWithActors:
        name = f"{key} of {'/'.join(self._path)}, {id(self)}"
        self._shared.append(name)
        return SharedWithActors(name, (actor.put(value, key),))

    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        blocks = base.split_into_blocks(num_items, self._server.num_clients)
        given = [ray.put(a) if len(blocks) > 1 and _size(a) > _BYTES_INLINE else a for a in args]
        self._give()
        try:
            answers = self._server.rounds(function, blocks, given)
        finally:
            self._take()
        busy = sum(seconds for _, seconds in answers)
        self._server.tally.add(self._path, calls=len(blocks), clients_busy=busy)
        return [answer for answer, _ in answers]

    def seal(self, value: RuntimeValue) -> RuntimeValue:
        return value

    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        for told in (self._server.tally, self._server.meters):
            told.add(self._path, rounds=1, messages=messages, bytes_up=up, bytes_down=down)

    def end(self) -> None:
        """Makes the clients forget what was shared for this training."""
        for key in self._shared:
            self._server.drop_at_clients(key)


def _size(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(v.nbytes for v in value.values() if isinstance(v, np.ndarray))
    return 0
