"""The contract of a runtime: the same calls run in one process or on a Ray cluster, and give the same numbers bit for bit.

A runtime gets functions and data and knows no method. It offers

* ``share``: put a value in the store once; every worker maps it read-only,
* ``tell``: what every process has to know and no store may hold, e.g. the key of the noise,
* ``on_workers``: deal the items 0 … n−1 to the pool in fixed contiguous blocks (an item always meets the
  same worker, so what that worker prepared for it is still there),
* ``map``: deal independent tasks to whoever is free, results in order,
* ``as_done``: the same for tasks that come in queues (what belongs together stays at one worker where it can), each result
  as soon as it is there,
* ``on_server``: one call on the server actor.

Calls return futures; futures and shared values may be passed to later calls, so that results travel from
actor to actor without passing the driver.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import TracebackType
from typing import Any

from fedgraph.errors import RuntimeFailure


class Runtime(ABC):
    """Abstract; ``serial`` is the truth, ``ray`` the engine."""

    name: str
    num_workers: int

    @abstractmethod
    def share(self, key: Hashable, value: Any) -> Any:
        """A handle to ``value``; a key that already means another object is a ``RuntimeFailure``."""

    @abstractmethod
    def forget(self, handle: Any) -> None:
        """Drop a shared value from the store."""

    @abstractmethod
    def tell(self, function: Callable[..., object], *args: object) -> None:
        """``function(*args)`` once in every process, before the next call there; also in a process that starts later.

        The arguments travel inside the call, from memory to memory: never through the store, which may spill to disk.
        """

    @abstractmethod
    def on_workers(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[Any]:
        """One future per block: ``function(items, *args)``."""

    @abstractmethod
    def map(self, function: Callable[..., Any], tasks: Sequence[Any], *args: Any) -> Iterator[Any]:
        """``function(task, *args)`` for every task, as values, in order."""

    @abstractmethod
    def as_done(
        self,
        function: Callable[..., Any],
        queues: Sequence[Sequence[tuple[Any, ...]]],
        started: Callable[[tuple[Any, ...]], None],
        waiting: Callable[[], None],
        gone: Callable[[str], Any] | None = None,
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """(task, ``function(*task)``) for every task of ``queues``, whichever is done first; ``Queues`` deals them.

        Each worker has one task at a time. started is told a task when it is handed out; waiting is called about once a
        second while nothing is done. The first error ends the iteration. gone: gives the value of a task of which worker after
        worker died, from the reason; without it that is an error, too.
        """

    @abstractmethod
    def on_server(self, function: Callable[..., Any], *args: Any, returns: int = 1) -> Any:
        """A future of ``function(*args)`` (a tuple of ``returns`` futures when it returns that many values)."""

    @abstractmethod
    def get(self, future: Any) -> Any:
        """Wait for the value."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What ran where, for ``environment.json``."""

    @abstractmethod
    def close(self) -> None:
        """Stop every actor; safe to call twice."""

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Queues:
    """Deals tasks that come in queues: a free worker takes the next of its own queue, else a queue that nobody has begun,
    else the later half of the longest one. So neighbours mostly meet the same worker, and nobody is idle while a task waits.
    """

    def __init__(self, queues: Sequence[Sequence[Any]]) -> None:
        self._untouched = [list(q) for q in queues if q]
        self._own: dict[int, list[Any]] = {}

    def next(self, worker: int) -> Any | None:
        """The task that ``worker`` shall do now; None when all are dealt."""
        own = self._own.setdefault(worker, [])
        if not own and self._untouched:
            own[:] = self._untouched.pop(0)
        elif not own:
            longest = max(self._own.values(), key=len)
            half = len(longest) // 2
            own[:], longest[half:] = longest[half:], []
        return own.pop(0) if own else None


def require_same(key: Hashable, known: Any, value: Any) -> None:
    """``RuntimeFailure`` where ``key`` was shared for another object: workers would compute on the wrong one."""
    if known is not value:
        raise RuntimeFailure(f"the key {key!r} was shared for another object already; give each object its own key")


def blocks(num_items: int, num_workers: int) -> list[range]:
    """0 … num_items−1 in at most ``num_workers`` contiguous ranges of nearly equal length."""
    count = max(1, min(num_workers, num_items))
    edges = [num_items * i // count for i in range(count + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges)]
