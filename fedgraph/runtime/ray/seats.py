"""Calls of actors that may die: whoever asks finds the next one in the same place, and asks again.

The driver watches all actors and fills the place of a dead one (``pool``), under the same name. Here, at whoever calls, a lost
call is made again: at the actor that has the name now, and until that one is ready at any other of the same kind. Every
random stream is named by client and round, so a repeated call draws the same noise and gives the same bytes.

A call may be lost ``MOST_LOSSES`` times; then its work itself is what kills processes (memory, a crash in compiled code), and
that is said in one line. Nothing waits without a limit.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.actor import ActorHandle
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
from fedgraph.runtime.ray.holder import Kept, Shared

MOST_LOSSES = 4
SECONDS_TO_FIND = 400.0  # an actor in a place: its machine may have died, and its process imports torch
SECONDS_TO_MEET = 60.0  # the actor that first has a place
SECONDS_BETWEEN_LOOKS = 0.05
GO_ON = "finished cells are kept: --resume goes on"
_LOST = (RayActorError, ObjectLostError, WorkerCrashedError, OutOfMemoryError, GetTimeoutError)


class Deadly(RuntimeFailure):
    """A call that kills whoever computes it."""


def raise_own(error: RayError) -> None:
    """Raise what is no loss: the function's own error, or a full store."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        raise error.cause from None
    if isinstance(error, (ObjectStoreFullError, OutOfDiskError)):
        raise RuntimeFailure(f"Ray's object store is full: {in_a_line(error)}") from None
    if isinstance(error, RayTaskError) or not isinstance(error, _LOST):
        raise RuntimeFailure(f"{type(error).__name__}: {in_a_line(error)}") from None


def in_a_line(error: BaseException) -> str:
    """The last words of what Ray says, without its pages of advice."""
    text = str(error)
    for mark in ("Worker exit detail:", "Error:"):
        if mark in text:
            text = text[text.rindex(mark) + (len(mark) if mark.endswith("detail:") else 0) :]
    return " ".join(text.split())[:300]


@dataclass(eq=False)
class Seat:
    """One actor as a caller sees it.

    Args:
        first: its first sign of life, on its way.
        alone: until then nobody else does its work; later others do while it is not ready.
        told: the keys of what it holds.
    """

    actor: ActorHandle
    first: ray.ObjectRef
    alone: float = 0.0
    told: set[str] = field(default_factory=set)
    ready: bool = False
    why: str = ""  # it is dead, and this is why


@dataclass(eq=False)
class Asked:
    """A call on its way."""

    slot: int
    submit: Callable[[Seat], ray.ObjectRef]
    seat: Seat
    ref: ray.ObjectRef
    losses: int = 0


class Seats:
    """The places of one kind of actors.

    Args:
        names: of the actors, place by place.
        idle: told about once a second while a call is waited for; None waits in one go.
        start: fills a place that nobody else fills.
    """

    def __init__(
        self, names: Sequence[str], idle: Callable[[], None] | None = None, start: Callable[[int], ActorHandle] | None = None
    ) -> None:
        self._names, self._idle, self._start = tuple(names), idle, start
        self._seats: list[Seat | None] = [None] * len(names)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._names)

    def ask(self, slot: int, submit: Callable[[Seat], ray.ObjectRef]) -> Asked:
        """Begin a call at whoever does the work of this place."""
        seat = self._at(slot)
        return Asked(slot, submit, seat, submit(seat))

    def values(self, asked: Sequence[Asked]) -> list[Any]:
        """What the calls return, in order. Errors of the function come back as they were raised."""
        if self._idle is None:
            try:
                return list(ray.get([a.ref for a in asked]))
            except RayError:  # of any of them: look at each
                pass
        return [self._value(a) for a in asked]

    def tell(self, call: Callable[[ActorHandle], object]) -> None:
        """Begin a call of every actor that is known, and wait for none."""
        with self._lock:
            for seat in filter(None, self._seats):
                call(seat.actor)

    def known(self) -> list[ActorHandle]:
        """The actors that were asked before and are not known to be dead."""
        with self._lock:
            return [seat.actor for seat in self._seats if seat is not None and not seat.why]

    def hand(self, seat: Seat, slot: int, value: object) -> object:
        """What stands for ``value`` in a message to ``seat``, which receives it first where it does not hold it."""
        if not isinstance(value, Shared):
            return value
        key = f"{value.key}@{slot}" if value.dealt else value.key
        with self._lock:
            if key not in seat.told:
                seat.actor.hold.remote(key, value.refs[slot if value.dealt else 0])
                seat.told.add(key)
        return Kept(key)

    def forget(self, key: str) -> None:
        """Every actor drops the value, and its pieces."""
        with self._lock:
            for seat in filter(None, self._seats):
                keys = [told for told in seat.told if told == key or told.rpartition("@")[0] == key]
                if keys:
                    seat.told.difference_update(keys)
                    seat.actor.drop.remote(keys)

    def _value(self, asked: Asked) -> Any:
        while True:
            while self._idle is not None and not ray.wait([asked.ref], timeout=1.0, fetch_local=False)[0]:
                self._idle()
            try:
                return ray.get(asked.ref)
            except RayError as error:
                self.again(asked, error)

    def again(self, asked: Asked, error: RayError) -> None:
        """Make a lost call again. Raises: the function's own error, or ``Deadly`` after ``MOST_LOSSES``."""
        raise_own(error)
        if self._idle is not None:
            self._idle()
        asked.losses += 1
        asked.seat.why = asked.seat.why or in_a_line(error)
        if asked.losses >= MOST_LOSSES:
            kind = self._names[asked.slot].rpartition("/")[2].partition("-")[0]
            raise Deadly(f"{asked.losses} {kind} actors died of it, the last one: {in_a_line(error)}") from None
        asked.seat = self._at(asked.slot)
        asked.ref = asked.submit(asked.seat)

    def _at(self, slot: int) -> Seat:
        """Who does the work of a place now: its own actor, or while it has none another one of the same kind."""
        until = time.monotonic() + SECONDS_TO_FIND
        while True:
            with self._lock:
                own = self._own(slot)
                if own is not None and own.ready:
                    return own
                if own is None or time.monotonic() > own.alone:
                    for other in self._seats:
                        if other is not None and other is not own and other.ready and not other.why:
                            return other
            if time.monotonic() > until:
                why = own.why if own is not None else "nobody has its place"
                raise RuntimeFailure(f"{self._names[slot]} does not answer ({why}); {GO_ON}")
            if self._idle is not None:
                self._idle()
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _own(self, slot: int) -> Seat | None:
        seat = self._seats[slot]
        if seat is None or seat.why:
            found = self._found(slot)
            if found is None or (seat is not None and found._actor_id == seat.actor._actor_id):
                return seat if seat is not None and not seat.why else None
            alone = time.monotonic() + SECONDS_TO_MEET if seat is None else 0.0
            seat = self._seats[slot] = Seat(found, found.pulse.remote(), alone)
        if not seat.ready and ray.wait([seat.first], timeout=0)[0]:
            try:
                seat.ready = ray.get(seat.first)
                if not seat.ready:  # it has not heard all that it was to hear
                    seat.first = seat.actor.pulse.remote()
            except RayError as error:
                seat.why = in_a_line(error)
                return None
        return seat

    def _found(self, slot: int) -> ActorHandle | None:
        try:
            return ray.get_actor(self._names[slot])
        except ValueError:
            return None if self._start is None else self._start(slot)
