"""Clients, server and curator in this process, one call after another. Every other runtime must give the same results.

It is also strict: shared values, arguments of trainings and rounds, and all results are pickled, and their arrays arrive
read-only. So a method that would fail under Ray fails here, too.
"""

import itertools
import pickle
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fedgraph.runtime import base
from fedgraph.runtime.base import (
    OnRuntimeRound,
    Runtime,
    RuntimeClients,
    RuntimeDealing,
    RuntimeDone,
    RuntimeFunction,
    RuntimeKind,
    RuntimeValue,
    require_same_shared_value,
)
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountPath, RuntimeCountTally


@dataclass(frozen=True, eq=False)
class _Held:
    key: Hashable
    value: Any


def _frozen_copy(value: RuntimeValue) -> RuntimeValue:
    """``value`` as another process would receive it: a copy by pickle, with read-only arrays."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    copy: RuntimeValue = pickle.loads(data, buffers=[memoryview(b.raw()).toreadonly() for b in buffers])
    return copy


class SerialClients(RuntimeClients):
    """All clients of one training, in the server's process.

    Args:
        tally: Counts what the training costs.
        path: Names the training.
        on_round: Called with (done, total) after each round.
        actors: Number of actors that clients are dealt to, as under another runtime.
    """

    def __init__(self, tally: RuntimeCountTally, path: RuntimeCountPath, on_round: OnRuntimeRound, actors: int = 1) -> None:
        self._tally = tally
        self._path = path
        self._on_round = on_round
        self._actors = actors

    def share(self, key: str, value: object) -> _Held:
        return _Held(key, _frozen_copy(value))

    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        given = [a.value if isinstance(a, _Held) else _frozen_copy(a) for a in args]
        began = time.perf_counter()
        answers = [function(items, *given) for items in base.split_into_blocks(num_items, self._actors)]
        busy = time.perf_counter() - began
        self._tally.add(self._path, calls=len(answers), clients_busy=busy, server_busy=-busy)
        return [_frozen_copy(answer) for answer in answers]

    def seal(self, value: RuntimeValue) -> RuntimeValue:
        return _frozen_copy(value)

    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        self._tally.add(self._path, rounds=1, messages=messages, bytes_up=up, bytes_down=down)
        self._on_round(done, total)


class SerialRuntime(Runtime):
    """The whole federation in one process."""

    name = "serial"
    num_workers = 1

    def __init__(self) -> None:
        self._shared: dict[Hashable, _Held] = {}
        self._originals: dict[Hashable, object] = {}
        self._dealt: dict[Hashable, _Held] = {}
        self._tally = RuntimeCountTally()

    def share(self, key: Hashable, value: object) -> _Held:
        if key not in self._shared:
            self._shared[key], self._originals[key] = _Held(key, _frozen_copy(value)), value
        require_same_shared_value(key, self._originals[key], value)
        return self._shared[key]

    def clients(self, path: RuntimeCountPath, on_round: OnRuntimeRound) -> SerialClients:
        """The clients of one training."""
        return SerialClients(self._tally, path, on_round)

    def deal(self, handle: _Held, piece: RuntimeFunction, num_items: int) -> _Held:
        if handle.key not in self._dealt:
            self._dealt[handle.key] = _Held(handle.key, piece(handle.value, range(num_items)))
        return self._dealt[handle.key]

    def forget(self, handle: _Held) -> None:
        for kept in (self._shared, self._originals, self._dealt):
            kept.pop(handle.key, None)

    def federate(
        self,
        function: RuntimeFunction,
        *args: object,
        path: RuntimeCountPath,
        on_round: OnRuntimeRound = lambda done, total: None,
    ) -> Any:
        clients = self.clients(path, on_round)
        given = [a if isinstance(a, _Held) else _frozen_copy(a) for a in args]
        began = time.perf_counter()
        with self._tally.training(path):
            found = function(clients, *given)
        self._tally.add(path, server_busy=time.perf_counter() - began)  # ``ask`` subtracts the time of clients
        return _frozen_copy(found)

    def on_server(self, function: RuntimeFunction, *args: object) -> Any:
        return _frozen_copy(function(*_values(args)))

    def map(self, function: RuntimeFunction, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        for task in tasks:
            yield _frozen_copy(function(task, *_values(args)))

    def as_done(self, function: RuntimeFunction, dealing: RuntimeDealing) -> Iterator[RuntimeDone]:
        for task in itertools.chain(*dealing.queues, *dealing.led):
            dealing.started(task)
            yield task, _frozen_copy(function(SerialRuntime, *_values(task)))

    def tell(self, function: Callable[..., object], *args: object) -> None:
        function(*args)

    def open(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        """Does nothing: all parties are this process."""

    def counted(self) -> dict[RuntimeCountPath, RuntimeCount]:
        return self._tally.counts()

    def describe(self) -> dict[str, object]:
        federation = {task: asdict(count) for task, count in self._tally.tasks().items()}
        about = {"runtime": "serial", "workers": 1, "gpus_per_worker": 0, "numpy": np.__version__}
        return about | {"federation": federation}

    def close(self) -> None:
        for kept in (self._shared, self._originals, self._dealt):
            kept.clear()


def _values(args: Sequence[object]) -> list[object]:
    return [a.value if isinstance(a, _Held) else a for a in args]
