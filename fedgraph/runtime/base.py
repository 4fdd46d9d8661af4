"""The contract of a runtime: the same calls run in one process or on a Ray cluster, and give the same numbers bit for bit.

A runtime gets functions and data and knows no method. Three kinds of parties work in it, each an actor of its own under Ray:

* **clients** hold pieces of what was dealt (``deal``) and answer the server (``RuntimeClients.ask``); each item 0 … n−1 stays
  at one client actor, so what was prepared for it is still there,
* the **server** leads trainings (``federate``), compares what was released (``map``) and judges it (``on_server``),
* **curators** compute whole cells (``as_done``). The rounds of a cell with several clients run at clients and server; its
  curator deals the data and measures the result.
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
RUNTIME_LANES = 3  # tasks that one curator has at a time; one of them computes there, the others wait for the server


class RuntimeClients(ABC):
    """The clients of one training, as the server that leads it may use them."""

    @abstractmethod
    def share(self, key: str, value: object) -> Any:
        """A handle to ``value`` for ``ask``. Each client actor receives it once and keeps it until the training ends."""

    @abstractmethod
    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        """The answers of all client actors, in order: ``function(items, *args)``, items being its block of 0 … n−1."""

    @abstractmethod
    def seal(self, value: RuntimeValue) -> RuntimeValue:
        """``value`` as the next round receives it; a strict engine makes its arrays read-only."""

    @abstractmethod
    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None:
        """Called after each round: rounds done, of ``total``; messages to the server; bytes from and to all clients."""


class RuntimeParties(ABC):
    """What a cell may use: clients and a server, wherever they are."""

    num_workers: int  # number of places

    @abstractmethod
    def share(self, key: Hashable, value: object) -> Any:
        """A handle to a value that other parties need. ``RuntimeFailure`` if the key already names another object."""

    @abstractmethod
    def deal(self, handle: Any, piece: RuntimeFunction, num_items: int) -> Any:
        """A handle to the shared value in pieces: each client actor holds ``piece(value, items)`` of its block of items."""

    @abstractmethod
    def forget(self, handle: Any) -> None:
        """Drops a shared value and its pieces."""

    @abstractmethod
    def federate(
        self,
        function: RuntimeFunction,
        *args: object,
        path: RuntimeCountPath,
        on_round: OnRuntimeRound = lambda done, total: None,
    ) -> Any:
        """``function(clients, *args)``, computed by the server: one training.

        Args:
            function: Its ``clients`` are the ``RuntimeClients`` of the training.
            args: Arguments; a handle stands for the shared or dealt value.
            path: Names the training; its first part is the task under which its rounds are counted.
            on_round: Called with (done, total) if the engine computes in this process.
        """

    @abstractmethod
    def on_server(self, function: RuntimeFunction, *args: object) -> Any:
        """``function(*args)``, computed by the server."""

    @abstractmethod
    def map(self, function: RuntimeFunction, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        """``function(task, *args)`` for every task, in order, in the server's own processes."""

    @abstractmethod
    def close(self) -> None:
        """Stops every actor, or forgets what a cell's runtime shared; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Runtime(RuntimeParties):
    """An engine, as the driver uses it: ``serial`` is the reference, ``ray`` gives the same numbers."""

    name: str  # ``serial`` or ``ray``

    @abstractmethod
    def tell(self, function: Callable[..., object], *args: object) -> None:
        """Calls ``function(*args)`` once in every process, before the next call there; also in a process that starts later.

        The arguments travel inside the call, from memory to memory, and never through the store, which may spill to disk: a
        secret key may be among them.
        """

    @abstractmethod
    def as_done(self, function: RuntimeFunction, dealing: "RuntimeDealing") -> Iterator[RuntimeDone]:
        """(task, value) of every task, as they finish; raises the first error of a task.

        A free curator takes the next task and calls ``function(engine, *task)``; ``engine()`` makes a runtime at its place.
        """

    @abstractmethod
    def open(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        """Begins to start the actors of these kinds that are missing. most: of each kind; None: one in each place."""

    def spent(self, path: RuntimeCountPath, epsilon: float) -> None:
        """Called with the provable ε of each finished cell, for the engine's own counters."""

    def counted(self) -> dict[RuntimeCountPath, RuntimeCount]:
        """The counts of each training that this engine has led, by its path."""
        return {}

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """What ran where, for ``environment.json``."""


@dataclass(frozen=True, eq=False)
class RuntimeDealing:
    """Tasks for curators."""

    # tasks that a curator computes itself, one at a time; a queue stays at one curator if possible
    queues: Sequence[Sequence[RuntimeTask]]
    # queues of tasks in which the curator mostly waits for clients and server: ``RUNTIME_LANES`` at a time
    led: Sequence[Sequence[RuntimeTask]] = ()
    started: Callable[[RuntimeTask], None] = lambda task: None  # called with a task when it is handed out
    waiting: Callable[[], None] = lambda: None  # called about once a second while no task finishes
    # from the reason to the value of a task that killed one curator after another; None: this is an error
    gone: Callable[[str], object] | None = None
    most: int | None = None  # tasks at a time, at most; None: as many as curators have lanes


def require_same_shared_value(key: Hashable, known: object, value: object) -> None:
    """``RuntimeFailure`` if ``key`` was shared for another object: workers would compute on the wrong one."""
    if known is not value:
        raise RuntimeFailure(f"the key {key!r} was shared for another object already; give each object its own key")


def split_into_blocks(num_items: int, num_workers: int) -> list[range]:
    """0 … num_items−1 in at most ``num_workers`` contiguous ranges of nearly equal length."""
    count = max(1, min(num_workers, num_items))
    edges = [num_items * i // count for i in range(count + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges)]
