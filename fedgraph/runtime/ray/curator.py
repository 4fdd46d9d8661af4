"""The curator actor, and what it has in common with the driver: both let rounds run at client actors and the server."""

import itertools
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.actor import ActorHandle, ActorMethod
from ray.exceptions import ObjectStoreFullError, OutOfDiskError

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import base
from fedgraph.runtime.base import OnRuntimeRound, RuntimeFunction, RuntimeKind, RuntimeParties, require_same_shared_value
from fedgraph.runtime.counts import RuntimeCountPath
from fedgraph.runtime.ray.actors import Actor, ActorStart, SharedWithActors
from fedgraph.runtime.ray.places import Places
from fedgraph.runtime.ray.seats import AskedOfSeat, Seat, Seats

_made = itertools.count()  # makes the keys of every value its own


@dataclass(eq=False)
class _Handle:
    """A value that is put into the object store when somebody else first needs it.

    Attributes:
        name: The key under which it was shared.
        value: The value.
        key: Under which actors keep it.
        sent: What stands for it in a message, once it was needed.
        dealt: Its pieces, one for each client actor, once it was dealt.
    """

    name: Hashable
    value: object
    key: str = field(default_factory=lambda: f"{os.getpid()}.{next(_made)}")
    sent: SharedWithActors | None = None
    dealt: SharedWithActors | None = None

    def shared(self) -> SharedWithActors:
        """What stands for it in a message."""
        if self.sent is None:
            self.sent = SharedWithActors(self.key, (self.put(self.value),))
        return self.sent

    def put(self, part: object) -> ray.ObjectRef:
        """The value, or a part of it, in the store. ``RuntimeFailure`` where it does not fit."""
        try:
            return ray.put(part)
        except (ObjectStoreFullError, OutOfDiskError) as error:
            raise RuntimeFailure(f"{self.name} does not fit into Ray's object store: {' '.join(str(error).split())}") from error


def make_call(method: Callable[[ActorHandle], ActorMethod], *args: object) -> Callable[[Seat], ray.ObjectRef]:
    """A call, to be made at any actor of a kind; what stands for a shared value travels in its place."""
    given = [a.shared() if isinstance(a, _Handle) else a for a in args]

    def submit(seat: Seat) -> ray.ObjectRef:
        ref: ray.ObjectRef = method(seat.actor).remote(*given)
        return ref

    return submit


class CuratorConductor(RuntimeParties):
    """Shares, deals, and asks the server, which sits in the only place of ``server``.

    Args:
        num_workers: How many places there are.
        server: The place of the server.
        waiting: Entered while the server computes.
    """

    def __init__(
        self, num_workers: int, server: Seats, waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self.num_workers = num_workers
        self._server, self._waiting = server, waiting
        self._shared: dict[Hashable, _Handle] = {}

    def share(self, key: Hashable, value: object) -> _Handle:
        if key not in self._shared:
            self._shared[key] = _Handle(key, value)
        require_same_shared_value(key, self._shared[key].value, value)
        return self._shared[key]

    def deal(self, handle: _Handle, piece: RuntimeFunction, num_items: int) -> SharedWithActors:
        if handle.dealt is None:
            parts = tuple(
                handle.put(piece(handle.value, items)) for items in base.split_into_blocks(num_items, self.num_workers)
            )
            handle.dealt = SharedWithActors(f"{handle.key}.dealt", parts, dealt=True)
        return handle.dealt

    def forget(self, handle: _Handle) -> None:
        if self._shared.pop(handle.name, None) is not None:
            for server, shared in itertools.product(self._server.known(), filter(None, (handle.sent, handle.dealt))):
                server.forget.remote(shared.key)

    def _prepare(self, *kinds: RuntimeKind) -> None:
        """Before the server is asked for what these kinds of actors do; the driver has seen to it."""

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
        self._prepare("server")
        return self._answer(self._asked(lambda server: server.judge, function, *args))

    def map(self, function: RuntimeFunction, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        self._prepare("server")
        asked = (self._asked(lambda server: server.distances, function, task, *args) for task in tasks)
        running = list(itertools.islice(asked, 2 * self.num_workers))
        while running:
            value = self._answer(running[0])
            running = [*running[1:], *itertools.islice(asked, 1)]
            yield value

    def _asked(self, method: Callable[[ActorHandle], ActorMethod], *args: object) -> AskedOfSeat:
        return self._server.ask(0, make_call(method, *args))

    def _answer(self, asked: AskedOfSeat) -> Any:
        with self._waiting():
            return self._server.values([asked])[0]

    def close(self) -> None:
        for handle in list(self._shared.values()):
            self.forget(handle)


class Curator(Actor):
    """``curator-k``: holds whole graphs, and computes one cell at a time.

    In a cell with a trusted curator it *is* that curator: it trains on the whole graph in this process, and no message leaves
    it. In a cell that is a federation it stands for the experimenter: it deals the subgraphs out, waits for the server's
    model, and measures it on the test nodes; all rounds run at ``client-k`` and ``server``. While it waits for one cell it
    computes another one, of at most ``RUNTIME_LANES`` that are on their way.
    """

    def __init__(self, gpus: float, start: ActorStart, places: Places) -> None:
        super().__init__(gpus, start)
        self._places = places
        self._computes = threading.Lock()

    @ray.method(concurrency_group="cells")
    def cell(self, function: RuntimeFunction, *task: object) -> Any:
        """``function(engine, *task)``: a whole cell; ``engine()`` makes a runtime at the federation's clients and server."""
        with self._computes:
            return self.compute(function, self._federation, *task)[0]

    def _federation(self) -> CuratorConductor:
        return CuratorConductor(self._places.num, Seats(self._places.names("server")), self._waiting)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """While a cell waits for the server, another one computes."""
        self._computes.release()
        try:
            yield
        finally:
            self._computes.acquire()
