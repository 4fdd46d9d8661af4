"""The places of actors: who sits in each, what they hold, and calls that are made again where somebody died.

Places are fixed when a run starts; who sits in one may change. Whoever fills the places of a kind (``start``) also watches
them: an actor counts as dead when Ray says so (its process or its machine is gone), or when it gives no sign of life for
``silence`` seconds, and its place is filled again, under the same name, as soon as some machine has room. Everybody else finds
an actor by its name. A call that is lost is made again, at the actor that has the name now, and until that one is ready at any
other of the same kind. Every random stream is named by client and round, so a repeated call draws the same noise and gives the
same bytes.

Of a call that gave no value Ray says either that it is lost, or an error of what was called, which is raised as it is. A call
may be lost ``_MOST_LOSSES`` times; then its work itself is what kills processes (memory, a crash in compiled code), and that is
said in one line. Nothing waits without a limit.
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
from fedgraph.runtime.ray import doors
from fedgraph.runtime.ray.actors import ActorAbout, KeptByActor, SharedWithActors
from fedgraph.runtime.ray.doors import DoorCallers

_LOST = (RayActorError, ObjectLostError, WorkerCrashedError, OutOfMemoryError, GetTimeoutError)


class DeadlySeatCall(RuntimeFailure):
    """A call that kills whoever computes it."""


def _raise_own(error: RayError) -> None:
    """Raise what is no loss: the function's own error, or a full store."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        raise error.cause from None
    if isinstance(error, (ObjectStoreFullError, OutOfDiskError)):
        raise RuntimeFailure(f"Ray's object store is full: {_in_a_line(error)}") from None
    if isinstance(error, RayTaskError) or not isinstance(error, _LOST):
        raise RuntimeFailure(f"{type(error).__name__}: {_in_a_line(error)}") from None


def _in_a_line(error: BaseException) -> str:
    """The last words of what Ray says, without its pages of advice."""
    text = str(error)
    for mark in ("Worker exit detail:", "Error:"):
        if mark in text:
            text = text[text.rindex(mark) + (len(mark) if mark.endswith("detail:") else 0) :]
    return " ".join(text.split())[:300]


_MOST_LOSSES = 4
_MOST_FAILED_STARTS = 3  # in a row, of one place
SECONDS_TO_FILL_SEAT = 360.0  # of a process that imports torch, on a busy machine
_SECONDS_TO_FIND = 400.0  # an actor in a place: its machine may have died, and its process imports torch
_SECONDS_TO_MEET = 60.0  # the actor that first has a place
_SECONDS_BETWEEN_LOOKS = 0.05
SEATS_GO_ON = "finished cells are kept: --resume goes on"


@dataclass(eq=False)
class Seat:
    """One actor in its place, as this process sees it.

    Attributes:
        actor: Ray's handle.
        sign: Of life, on its way (``Actor.pulse``).
        since: When it was asked for.
        alone: Until then nobody else does its work; later others do while it is not ready.
        about: What it said of itself once it was ready; None until then.
        held: The keys of what it holds.
        why: It is dead, and this is why; empty: it lives as far as is known.
        near: Asks it without Ray; None from another machine, or where it has no door.
    """

    actor: ActorHandle
    sign: ray.ObjectRef
    since: float
    alone: float = 0.0
    about: ActorAbout | None = None
    held: set[str] = field(default_factory=set)
    why: str = ""
    near: DoorCallers | None = None


@dataclass(eq=False)
class AskedOfSeat:
    """A call on its way.

    Attributes:
        slot: The place whose work it is.
        submit: Makes the call at a seat.
        seat: Where it was made last.
        ref: To its value.
        losses: How often it was lost.
    """

    slot: int
    submit: Callable[[Seat], ray.ObjectRef]
    seat: Seat
    ref: ray.ObjectRef
    losses: int = 0


class Seats:
    """The places of one kind of actors.

    Args:
        names: Of the actors, place by place.
        start: Fills a place that nobody else fills; None: others fill them, and an actor is found by its name.
        idle: Told about once a second while a call is waited for; None waits in one go.
        silence: Seconds without a sign of life that count as death; None: nobody is asked again for one.
        welcome: Raises where an actor is not what it should be.

    Attributes:
        lost: How many actors that were ready have died.
    """

    def __init__(
        self,
        names: Sequence[str],
        start: Callable[[int], ActorHandle] | None = None,
        idle: Callable[[], None] | None = None,
        silence: float | None = None,
        welcome: Callable[[ActorAbout], None] = lambda about: None,
    ) -> None:
        self.names, self.lost = tuple(names), 0
        self._start = start
        self._idle = idle
        self._silence = silence
        self._welcome = welcome
        self._seats: list[Seat | None] = [None] * len(names)
        self._failed = [0] * len(names)  # starts in a row
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self.names)

    def ask(self, slot: int, submit: Callable[[Seat], ray.ObjectRef]) -> AskedOfSeat:
        """Begin a call at whoever does the work of this place."""
        seat = self.worker(slot)
        return AskedOfSeat(slot, submit, seat, submit(seat))

    def values(self, asked: Sequence[AskedOfSeat]) -> list[Any]:
        """What the calls return, in order. Errors of the function come back as they were raised."""
        if self._idle is None:
            try:
                return list(ray.get([a.ref for a in asked]))
            except RayError:  # of any of them: look at each
                pass
        return [self._value(a) for a in asked]

    def _value(self, asked: AskedOfSeat) -> Any:
        while True:
            while self._idle is not None and not ray.wait([asked.ref], timeout=1.0, fetch_local=False)[0]:
                self._idle()
            try:
                return ray.get(asked.ref)
            except RayError as error:
                self.lose(asked, error)
                self.ask_again(asked)

    def lose(self, asked: AskedOfSeat, error: RayError) -> None:
        """A call is lost. Raises: the function's own error, or ``DeadlySeatCall`` after ``_MOST_LOSSES``."""
        _raise_own(error)
        if self._idle is not None:
            self._idle()
        asked.losses += 1
        self._bury(asked.seat, _in_a_line(error))
        if asked.losses >= _MOST_LOSSES:
            kind = self.names[asked.slot].rpartition("/")[2].partition("-")[0]
            raise DeadlySeatCall(f"{asked.losses} {kind} actors died of it, the last one: {_in_a_line(error)}") from None

    def ask_again(self, asked: AskedOfSeat) -> None:
        """Make a lost call again."""
        asked.seat = self.worker(asked.slot)
        asked.ref = asked.submit(asked.seat)

    def known(self) -> list[ActorHandle]:
        """The actors that are not known to be dead."""
        with self._lock:
            return [seat.actor for seat in self._seats if seat is not None and not seat.why]

    def living(self) -> dict[str, ActorAbout]:
        """What each actor that is alive has said of itself, by its name."""
        seats = [(name, self.look(slot)) for slot, name in enumerate(self.names) if self._seats[slot] is not None]
        return {name: seat.about for name, seat in seats if seat is not None and seat.about is not None}

    def holds(self, seat: Seat, slot: int, value: object) -> bool:
        """Whether ``hand`` has nothing to send."""
        return not isinstance(value, SharedWithActors) or value.key_at(slot) in seat.held

    def hand(self, seat: Seat, slot: int, value: object) -> object:
        """What stands for ``value`` in a message to ``seat``, which receives it first where it does not hold it."""
        if not isinstance(value, SharedWithActors):
            return value
        key = value.key_at(slot)
        with self._lock:
            if key not in seat.held:
                seat.actor.hold.remote(key, value.refs[slot if value.dealt else 0])
                seat.held.add(key)
        return KeptByActor(key)

    def forget(self, key: str) -> None:
        """Every actor drops the value, and its pieces."""
        with self._lock:
            for seat in filter(None, self._seats):
                if keys := [held for held in seat.held if held == key or held.rpartition("@")[0] == key]:
                    seat.held.difference_update(keys)
                    seat.actor.drop.remote(keys)

    def fill(self, most: int | None = None) -> None:
        """The first ``most`` places (None: all) are filled, where nobody has been there yet."""
        with self._lock:
            for slot in range(len(self))[:most]:
                if self._seats[slot] is None:
                    self._fill(slot)

    def is_ready(self, slot: int) -> bool:
        """Whether the actor of this place has started and heard all that it was to hear."""
        seat = self.look(slot)
        return seat is not None and seat.about is not None

    def watch(self, seconds: float = 0.0) -> None:
        """Look at every place that was filled, and fill those of the dead. seconds: to wait for signs of life.

        Raises: ``RuntimeFailure`` where nobody of this kind can be started.
        """
        with self._lock:
            slots = [slot for slot, seat in enumerate(self._seats) if seat is not None]
            for slot in slots:
                self.look(slot)
            if signs := [seat.sign for seat in self._seats if seconds and seat is not None and seat.about and not seat.why]:
                ray.wait(signs, num_returns=len(signs), timeout=seconds)
            for slot in slots if seconds else ():
                self.look(slot)
            filled = [(seat, failed) for seat, failed in zip(self._seats, self._failed, strict=True) if seat is not None]
            if filled and all(seat.why and failed >= _MOST_FAILED_STARTS for seat, failed in filled):
                kind = self.names[0].rpartition("/")[2].partition("-")[0]
                raise RuntimeFailure(f"no {kind} is left: {filled[0][0].why}; {SEATS_GO_ON}")

    def look(self, slot: int) -> Seat | None:
        """Who sits in a place now; None where nobody does."""
        with self._lock:
            seat = self._seats[slot]
            if seat is not None and not seat.why and (seat.about is None or self._silence is not None):
                self._listen(slot, seat)
            if seat is None or seat.why:
                self._fill(slot)
                seat = self._seats[slot]
            return None if seat is None or seat.why else seat

    def _fill(self, slot: int) -> None:
        """Somebody is started for a place, or found there."""
        before = self._seats[slot]
        if self._failed[slot] >= _MOST_FAILED_STARTS:
            return
        self._failed[slot] += self._start is not None  # until it is ready
        try:
            actor = ray.get_actor(self.names[slot]) if self._start is None else self._start(slot)
        except ValueError:  # nobody has the name, or the dead one has it still
            return
        if before is None or actor._actor_id != before.actor._actor_id:
            now = time.monotonic()
            alone = now + _SECONDS_TO_MEET if before is None else 0.0
            self._seats[slot] = Seat(actor, actor.pulse.remote(), now, alone)

    def _listen(self, slot: int, seat: Seat) -> None:
        now = time.monotonic()
        if ray.wait([seat.sign], timeout=0)[0]:
            try:
                said = ray.get(seat.sign)
            except RayError as error:
                self._bury(seat, _in_a_line(error))
                return
            if said is not None and seat.about is None:
                self._welcome(said)
                seat.about, seat.near, self._failed[slot] = said, doors.find_callers(said.door, said.node), 0
            seat.sign, seat.since = seat.actor.pulse.remote(), now
        elif self._silence is not None and now - seat.since > (self._silence if seat.about else SECONDS_TO_FILL_SEAT):
            self._bury(seat, f"no sign of life for {now - seat.since:.0f} s")

    def _bury(self, seat: Seat, why: str) -> None:
        """What was given to it is lost; whatever it still does is not looked at."""
        with self._lock:
            if not seat.why:
                seat.why = why or "it died"
                self.lost += seat.about is not None
                if self._start is not None:
                    ray.kill(seat.actor, no_restart=True)

    def worker(self, slot: int) -> Seat:
        """Who does the work of a place now, waited for: its own actor, or while it has none another one of the same kind.

        Raises: ``RuntimeFailure`` where nobody comes in ``_SECONDS_TO_FIND``.
        """
        until = time.monotonic() + _SECONDS_TO_FIND
        while True:
            with self._lock:
                own = self.look(slot)
                if own is not None and own.about is not None:
                    return own
                if own is None or time.monotonic() > own.alone:
                    for other in filter(None, self._seats):
                        if other is not own and other.about is not None and not other.why:
                            return other
            if time.monotonic() > until:
                raise RuntimeFailure(f"{self.names[slot]} does not answer ({self._why(slot)}); {SEATS_GO_ON}")
            (self._idle or self.watch)()
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _why(self, slot: int) -> str:
        seat = self._seats[slot]
        return "nobody has its place" if seat is None else seat.why or "no sign of life"
