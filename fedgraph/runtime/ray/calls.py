"""Calls that are repeated elsewhere when the worker that computes them dies.

The driver remembers of each call its function and arguments (futures of other calls among them). Where a worker or its machine
dies, the calls that were lost with it fail, and so do the calls that wait for their results: ``value`` then makes the lost
ones again, in order, and nothing else. A call at the server is forgotten as soon as its result is known to exist, since that
lies on the driver's own machine; so what is remembered is only what is on its way.

A call may be lost ``MOST_LOSSES`` times; then its work itself is what kills workers (memory, a crash in compiled code), and
that is said in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import (
    GetTimeoutError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime.ray.pool import Member, Pool, in_a_line

MOST_LOSSES = 4
MOST_IN_A_ROW = 8  # losses without one finished call between them
SECONDS_TO_FETCH = 120.0  # a result that exists
_LOST = (RayActorError, ObjectLostError, WorkerCrashedError, OutOfMemoryError, GetTimeoutError)


@dataclass(eq=False)
class Call:
    """slot: the place in the pool, None for the server. losses: how often it died with the worker that computed it."""

    slot: int | None
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    returns: int = 1
    losses: int = 0
    member: Member | None = None
    refs: list[ray.ObjectRef] = field(default_factory=list)

    @property
    def done(self) -> ray.ObjectRef:
        """Ready when the call has ended, in whatever way."""
        return self.refs[-1]


@dataclass(frozen=True, eq=False)
class Future:
    """One of the values that a call returns."""

    call: Call
    index: int


class Calls:
    """Makes calls at a pool, and makes them again."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._in_a_row = 0

    def made(self, call: Call) -> tuple[Future, ...]:
        """The futures of a call that is now on its way."""
        self._submit(call)
        return tuple(Future(call, index) for index in range(call.returns))

    def value(self, future: Future) -> Any:
        """Wait for it. Errors of the function come back as they were raised."""
        call = future.call
        while True:
            while not ray.wait([call.done], timeout=1.0, fetch_local=False)[0]:
                self.pool.look()
            try:
                found = ray.get(call.refs[future.index], timeout=SECONDS_TO_FETCH)
                ray.get(call.done)
            except RayError as error:
                self._mend(call, error)
                continue
            self._in_a_row = 0
            if call.slot is None:
                call.function, call.args = None, ()
            return found

    def as_done(
        self,
        take: Callable[[int], Any | None],
        call_of: Callable[[int, Any], Call],
        ahead: int,
        gone: Callable[[str], Any] | None = None,
    ) -> Iterator[tuple[Any, Any] | None]:
        """(task, value) as they get ready, of all tasks that ``take(slot)`` gives; None about once a second of waiting.

        ahead: tasks that a worker has at a time. gone: the value of a task that killed ``MOST_LOSSES`` workers; without it
        that is an error.
        """
        running: dict[ray.ObjectRef, tuple[Any, Call]] = {}
        again: list[tuple[Any, Call]] = []

        def hand_out(slot: int) -> None:
            task, call = again.pop(0) if again else (take(slot), None)
            if task is not None:
                call = call or call_of(slot, task)
                call.slot = slot
                self._submit(call)
                running[call.done] = (task, call)

        for slot in list(range(self.pool.num_workers)) * ahead:
            hand_out(slot)
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            if not ready:
                self.pool.look()
                yield None
            for done in ready:
                task, call = running.pop(done)
                slot = call.slot or 0
                try:
                    value = ray.get(call.refs[0], timeout=SECONDS_TO_FETCH)
                    ray.get(done)
                except RayError as error:
                    self._raise_own(error)
                    self._found_dead(call, error)
                    call.losses += 1
                    if call.losses < MOST_LOSSES:
                        again.append((task, call))
                        hand_out(slot)
                        continue
                    why = f"{call.losses} workers died of it, the last one: {in_a_line(error)}"
                    if gone is None:
                        raise RuntimeFailure(why) from None
                    value = gone(why)
                hand_out(slot)  # first, so that nobody waits while the caller looks at the value
                yield task, value

    def _submit(self, call: Call) -> None:
        call.member = self.pool.server() if call.slot is None else self.pool.worker(call.slot)
        args = [a.call.refs[a.index] if isinstance(a, Future) else a for a in call.args]
        actor = call.member.actor
        method = actor.serve if call.slot is None and self.pool.shared else actor.call
        call.refs = method.options(num_returns=call.returns + 1).remote(call.returns, call.function, *args)

    def _mend(self, call: Call, error: RayError) -> None:
        """Make a lost call again, and before it whatever it needs that was lost."""
        self._raise_own(error)
        self._in_a_row += 1
        if self._in_a_row > MOST_IN_A_ROW:
            raise RuntimeFailure(
                f"workers died {self._in_a_row} times and finished nothing between: {in_a_line(error)}"
            ) from None
        self._found_dead(call, error)
        self._redo(call)

    def _redo(self, call: Call) -> None:
        if call.function is None:
            raise RuntimeFailure("a result of the server was lost on the driver's own machine; --resume goes on")
        for argument in call.args:
            if isinstance(argument, Future) and self._is_lost(argument.call):
                self._redo(argument.call)
        self._submit(call)

    def _is_lost(self, call: Call) -> bool:
        """Whether its result is not, and will not be, where somebody can read it."""
        if call.slot is not None and call.member is not None and call.member.why:
            return True
        if not ray.wait([call.done], timeout=0, fetch_local=False)[0]:
            return False
        try:
            ray.get(call.done)
        except RayError as error:
            self._found_dead(call, error)
            return isinstance(error, _LOST)
        return False

    def _found_dead(self, call: Call, error: RayError) -> None:
        """Bury who died: the worker of the call where the error is its own, else whoever gives no sign of life."""
        if isinstance(error, RayActorError) and not isinstance(error, RayTaskError) and call.member is not None:
            self.pool.bury(call.member, in_a_line(error))
        self.pool.look(at_once=True)

    def _raise_own(self, error: RayError) -> None:
        """Raise what is no loss: the function's own error, or a full store."""
        if isinstance(error, (ObjectStoreFullError, OutOfDiskError)):
            raise RuntimeFailure(f"Ray's object store is full: {in_a_line(error)}") from None
        if isinstance(error, _LOST):
            return
        if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
            raise error.cause from None
        raise RuntimeFailure(f"{type(error).__name__}: {in_a_line(error)}") from None
