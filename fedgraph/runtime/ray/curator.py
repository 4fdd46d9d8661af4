"""The curator actor, the queues of its tasks, and what it shares with the driver: both let rounds run at the server."""

import functools
import itertools
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.actor import ActorHandle, ActorMethod
from ray.exceptions import RayError

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import base
from fedgraph.runtime.base import (
    OnRuntimeRound,
    RuntimeFunction,
    RuntimeKind,
    RuntimeParties,
    RuntimeTask,
    require_same_shared_value,
)
from fedgraph.runtime.counts import RuntimeCountPath
from fedgraph.runtime.ray import actor
from fedgraph.runtime.ray.actor import Actor, ActorTold, SharedWithActors

_made = itertools.count()  # makes the keys of every value its own


@dataclass(eq=False)
class _Handle:
    """A shared value; it is put into the object store when it is first sent."""

    name: Hashable  # key under which it was shared
    value: object
    key: str = field(default_factory=lambda: f"{os.getpid()}.{next(_made)}")  # key under which actors keep it
    sent: SharedWithActors | None = None  # its reference, once it was sent
    dealt: SharedWithActors | None = None  # references to its pieces, one for each client actor, once it was dealt

    def shared(self) -> SharedWithActors:
        """The reference that stands for it in a message."""
        if self.sent is None:
            self.sent = SharedWithActors(self.key, (actor.put(self.value, self.name),))
        return self.sent


def as_sent(args: Sequence[object]) -> list[object]:
    """The arguments of a call, with references instead of shared values."""
    return [a.shared() if isinstance(a, _Handle) else a for a in args]


class CuratorConductor(RuntimeParties):
    """Shares, deals, and asks the server.

    Args:
        num_workers: Number of places.
        server: The server; None: there is none yet.
        told: All calls of ``Runtime.tell`` so far.
        waiting: Entered while the server computes.
    """

    def __init__(
        self,
        num_workers: int,
        server: ActorHandle | None,
        told: ActorTold = (),
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.num_workers = num_workers
        self._server, self._told, self._waiting = server, told, waiting
        self._shared: dict[Hashable, _Handle] = {}

    def share(self, key: Hashable, value: object) -> _Handle:
        if key not in self._shared:
            self._shared[key] = _Handle(key, value)
        require_same_shared_value(key, self._shared[key].value, value)
        return self._shared[key]

    def deal(self, handle: _Handle, piece: RuntimeFunction, num_items: int) -> SharedWithActors:
        if handle.dealt is None:
            blocks = base.split_into_blocks(num_items, self.num_workers)
            parts = tuple(actor.put(piece(handle.value, items), handle.name) for items in blocks)
            handle.dealt = SharedWithActors(f"{handle.key}.dealt", parts, dealt=True)
        return handle.dealt

    def forget(self, handle: _Handle) -> None:
        if self._shared.pop(handle.name, None) is not None and self._server is not None:
            for shared in filter(None, (handle.sent, handle.dealt)):
                self._server.forget.remote(shared.key)

    def _prepare(self, *kinds: RuntimeKind) -> None:
        """Starts actors of these kinds; does nothing at a curator, since the driver has started them."""

    def federate(
        self,
        function: RuntimeFunction,
        *args: object,
        path: RuntimeCountPath,
        on_round: OnRuntimeRound = lambda done, total: None,
    ) -> Any:
        self._prepare("server", "client")
        return self._answer(self._asked(lambda server: server.train, function, path, *args))

    def on_server(self, function: RuntimeFunction, *args: object) -> Any:
        self._prepare("server", "client")
        return self._answer(self._asked(lambda server: server.judge, function, *args))

    def map(self, function: RuntimeFunction, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        self._prepare("server", "client")
        asked = (self._asked(lambda server: server.distances, function, task, *args) for task in tasks)
        running = list(itertools.islice(asked, 2 * self.num_workers))
        while running:
            value = self._answer(running[0])
            running = [*running[1:], *itertools.islice(asked, 1)]
            yield value

    def _asked(self, method: Callable[[ActorHandle], ActorMethod], *args: object) -> ray.ObjectRef:
        if self._server is None:
            raise RuntimeFailure("no server was opened for this task; open('server', 'client') first")
        ref: ray.ObjectRef = method(self._server).remote(self._told, *as_sent(args))
        return ref

    def _answer(self, asked: ray.ObjectRef) -> object:
        with self._waiting():
            try:
                return ray.get(asked)
            except RayError as error:
                raise actor.as_own(error, "server") from None

    def close(self) -> None:
        for handle in list(self._shared.values()):
            self.forget(handle)


class Curator(Actor):
    """``curator-k``: holds whole graphs, and computes one cell at a time.

    In a cell with a trusted curator it *is* that curator: it trains on the whole graph in this process, and no message leaves
    it. In a cell of a federation it is the experimenter: it deals the subgraphs, waits for the server's model, and measures it
    on the test nodes; all rounds run at ``client-k`` and ``server``. While one cell waits it computes another one; it has at
    most ``RUNTIME_LANES`` cells.
    """

    def __init__(self, gpus: float, modules: Sequence[str], num_places: int) -> None:
        super().__init__(gpus, modules)
        self._num_places = num_places
        self._computes = threading.Lock()

    @ray.method(concurrency_group="cells", max_task_retries=0)
    def cell(self, told: ActorTold, server: ActorHandle | None, function: RuntimeFunction, *task: object) -> object:
        """``function(engine, *task)``: a whole cell; ``engine()`` makes a runtime at the federation's clients and server.

        Ray does not repeat this call. The driver does, at a curator without other tasks, since a cell may be what kills.
        """
        with self._computes:
            engine = functools.partial(CuratorConductor, self._num_places, server, told, self._waiting)
            return self.compute(told, function, engine, *task)[0]

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Lets another cell compute while this one waits for the server."""
        self._computes.release()
        try:
            yield
        finally:
            self._computes.acquire()


class CuratorQueues:
    """Deals queues of tasks to curators.

    A free curator takes the next task of a queue that it began, else of a queue that nobody began, else the later half of the
    longest queue. So the tasks of a queue mostly meet the same curator, and nobody is idle while a task waits. No curator has
    two tasks of one queue at a time: it would compute twice what they share.
    """

    def __init__(self, queues: Sequence[Sequence[RuntimeTask]]) -> None:
        self._queues = [(number, list(queue)) for number, queue in enumerate(queues)]
        self._own: dict[int, int] = {}  # place in ``_queues`` → the curator that began it

    def next(self, curator: int, busy: Sequence[int] = ()) -> tuple[int, RuntimeTask] | None:
        """(number of the queue, next task) of ``curator``; None if there is none for it.

        Args:
            curator: Number of the curator.
            busy: Numbers of the queues of which it has a task.
        """
        free = [at for at, (number, tasks) in enumerate(self._queues) if tasks and number not in busy]
        own = [at for at in free if self._own.get(at) == curator] or [at for at in free if at not in self._own]
        if not own and free:
            number, tasks = self._queues[max(free, key=lambda at: len(self._queues[at][1]))]
            half = len(tasks) // 2
            own = [len(self._queues)]
            self._queues.append((number, tasks[half:]))
            del tasks[half:]
        if not own:
            return None
        self._own[own[0]] = curator
        number, tasks = self._queues[own[0]]
        return number, tasks.pop(0)

    def __bool__(self) -> bool:
        """Whether some task is left."""
        return any(tasks for _, tasks in self._queues)
