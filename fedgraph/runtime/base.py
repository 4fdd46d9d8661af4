"""The contract of a runtime: the same calls run in one process or on a Ray cluster, and give the same numbers bit for bit.

A runtime gets functions and data and knows no method. Three kinds of parties work in it, each an actor of its own under Ray:

* **clients** hold pieces of what was dealt (``deal``) and answer the server (``RuntimeClients.ask``); an item 0 … n−1 always
  meets the same client actor, so what that one prepared for it is still there,
* the **server** leads trainings (``federate``), compares what was released (``map``) and judges it (``on_server``),
* **curators** compute whole cells (``as_done``). A cell that is a federation gets a runtime there, and its rounds run at
  clients and server; the curator then only deals the data out and measures the result.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountPath

RuntimeKind: TypeAlias = Literal["curator", "client", "server"]
RuntimeFunction: TypeAlias = Callable[..., Any]
RuntimeTask: TypeAlias = tuple[Any, ...]
RuntimeValue = TypeVar("RuntimeValue")
RuntimeDone: TypeAlias = tuple[RuntimeTask, Any]
OnRuntimeRound: TypeAlias = Callable[[int, int], None]
RUNTIME_LANES = 3  # tasks on their way at one curator, of which one at a time computes there


class RuntimeClients(ABC):
    """What the server may ask for while it leads one training."""

    @abstractmethod
    def share(self, key: str, value: object) -> Any:
        """A handle to ``value`` for ``ask``: each client actor receives it once, until the training ends."""

    @abstractmethod
    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        """What each client actor answers, in order: ``function(items, *args)``, items being its block of 0 … n−1."""

    @abstractmethod
    def seal(self, value: RuntimeValue) -> RuntimeValue:
        """``value`` as the next round may see it: where the engine is strict, with arrays that nobody can write to."""

    @abstractmethod
    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        """Told after each round: rounds done, of ``total``; messages to the server; bytes from and to all clients."""


class RuntimeParties(ABC):
    """What a cell may use: clients and a server, wherever they are."""

    num_workers: int  # How many places there are

    @abstractmethod
    def share(self, key: Hashable, value: object) -> Any:
        """A handle to a value that others need. ``RuntimeFailure`` where the key already means another object."""

    @abstractmethod
    def deal(self, handle: Any, piece: RuntimeFunction, num_items: int) -> Any:
        """A handle to what is shared, by which each client actor holds ``piece(value, items)`` of its own block of items."""

    @abstractmethod
    def forget(self, handle: Any) -> None:
        """Drop a shared value, and what was dealt of it."""

    @abstractmethod
    def federate(
        self,
        function: RuntimeFunction,
        *args: object,
        path: RuntimeCountPath,
        on_round: OnRuntimeRound = lambda done, total: None,
    ) -> Any:
        """What ``function(clients, *args)`` gives at the server: one training, led by it.

        Args:
            function: ``clients`` are its ``RuntimeClients``.
            args: Handles stand for what was shared or dealt.
            path: Names the training; its first part is the task under which its rounds are counted.
            on_round: Told (done, total) where the engine computes in this process.
        """

    @abstractmethod
    def on_server(self, function: RuntimeFunction, *args: object) -> Any:
        """``function(*args)``, computed by the server."""

    @abstractmethod
    def map(self, function: RuntimeFunction, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        """``function(task, *args)`` for every task, in order, in the server's own processes."""

    @abstractmethod
    def close(self) -> None:
        """Stop every actor, or forget what this part of an engine shared; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Runtime(RuntimeParties):
    """What the driver uses: an engine; ``serial`` is the truth, ``ray`` its equal."""

    name: str  # ``serial`` or ``ray``

    @abstractmethod
    def tell(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)`` once in every process, before the next call there; also in a process that starts later.

        The arguments travel inside the call, from memory to memory: never through the store, which may spill to disk. A secret
        key may be among them.
        """

    @abstractmethod
    def as_done(self, function: RuntimeFunction, dealing: "RuntimeDealing") -> Iterator[RuntimeDone]:
        """(task, value) of every task, whichever is done first; raises the first error of a task.

        A curator that is free takes the next one: ``function(engine, *task)``; ``engine()`` makes a runtime for its place.
        """

    @abstractmethod
    def open(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        """Actors of these kinds begin to start, where they are not there yet. most: of each; None: one in each place."""

    def spent(self, path: RuntimeCountPath, epsilon: float) -> None:
        """Told the provable ε of each finished cell, for whoever watches the engine's own counters."""

    def counted(self) -> dict[RuntimeCountPath, RuntimeCount]:
        """What each training cost, by its path, as far as this engine has led it."""
        return {}

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """What ran where, for ``environment.json``."""


@dataclass(frozen=True, eq=False)
class RuntimeDealing:
    """Tasks for curators."""

    # tasks that a curator computes itself, one at a time. What belongs together stays at one curator where it can.
    queues: Sequence[Sequence[RuntimeTask]]
    # queues of tasks of which the curator mostly waits for clients and server: ``RUNTIME_LANES`` at a time
    led: Sequence[Sequence[RuntimeTask]] = ()
    started: Callable[[RuntimeTask], None] = lambda task: None  # is told a task when it is handed out
    waiting: Callable[[], None] = lambda: None  # is called about once a second while nothing is done
    # gives the value of a task of which curator after curator died, from the reason; None: that is an error, too
    gone: Callable[[str], object] | None = None
    most: int | None = None  # so many tasks at a time, at most. None: as many as curators have lanes.


def require_same_shared_value(key: Hashable, known: object, value: object) -> None:
    """``RuntimeFailure`` where ``key`` was shared for another object: workers would compute on the wrong one."""
    if known is not value:
        raise RuntimeFailure(f"the key {key!r} was shared for another object already; give each object its own key")


def split_into_blocks(num_items: int, num_workers: int) -> list[range]:
    """0 … num_items−1 in at most ``num_workers`` contiguous ranges of nearly equal length."""
    count = max(1, min(num_workers, num_items))
    edges = [num_items * i // count for i in range(count + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges)]
