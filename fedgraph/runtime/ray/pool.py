"""The actors of a run: started where there is room, watched while they work, replaced when they die.

The places are fixed when a run starts; who stands in a place may change. An actor counts as dead when Ray says so (its process
or its machine is gone) or when it gives no sign of life for ``silence`` seconds. Its place is then filled again, under the same
name, as soon as some machine has room; until then the others of its kind do its work. Nothing waits without a limit.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from typing import TypeAlias

import ray
from ray.exceptions import RayError
from ray.util import list_named_actors
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import placement, versions
from fedgraph.runtime.ray import cluster
from fedgraph.runtime.ray.client import Client
from fedgraph.runtime.ray.curator import Curator
from fedgraph.runtime.ray.holder import About
from fedgraph.runtime.ray.places import Places
from fedgraph.runtime.ray.seats import in_a_line
from fedgraph.runtime.ray.server import Server

SECONDS_TO_PLACE = 15.0  # until it is said that others use what was asked for
SECONDS_TO_START = 360.0  # of a process that imports torch, on a busy machine
SECONDS_BETWEEN_LOOKS = 5.0
MOST_FAILED_STARTS = 3  # in a row, of one place
Place: TypeAlias = tuple[str, int | None]  # the kind of actor, and its slot
ACTORS: dict[str, type] = {"curator": Curator, "client": Client, "server": Server}


@dataclass(eq=False)
class Member:
    """An actor as the driver sees it.

    Args:
        kind: of ``ACTORS``.
        slot: its place; None for the server.
        first: its first sign of life, on its way.
        about: what it said then; None until it did.
        why: it is dead, and this is why.
    """

    kind: str
    slot: int | None
    actor: ray.actor.ActorHandle
    first: ray.ObjectRef
    about: About | None = None
    pulse: ray.ObjectRef | None = None
    asked: float = 0.0
    why: str = ""


class Pool:
    """num places, with a curator and a client each, and a server beside the driver, once ``open`` asks for them.

    silence: seconds without a sign of life that count as death.
    """

    def __init__(self, num: int, gpus: float, silence: float) -> None:
        self.num, self.gpus, self.silence = num, gpus, silence
        self.lost = 0
        self._begun = False
        self._told: list[tuple[object, ...]] = []  # (function, its arguments …)
        self._modules = tuple(sorted(name for name in sys.modules if name.startswith(("fedgraph.methods.", "fedgraph.tasks."))))
        self._made = versions.own()
        self._looked = time.monotonic()
        self._looks = threading.RLock()
        room = _placed(num, gpus)
        self.places = Places(num, gpus, room, _prefix(), ray.get_runtime_context().get_node_id())
        self._failed: dict[Place, int] = {}  # starts in a row
        self._members: dict[Place, Member] = {}

    def open(self, *kinds: str) -> None:
        """The actors of these kinds begin to start, where they have not."""
        for kind in kinds:
            places: list[Place] = [(kind, None)] if kind == "server" else [(kind, slot) for slot in range(self.num)]
            for place in [p for p in places if p not in self._members]:
                self._failed[place] = 0
                self._members[place] = self._start(*place)

    def tell(self, *what: object) -> None:
        """``Runtime.tell``. Ray puts arguments of less than 100 kB into the call itself.

        A curator that heard says ``about`` again. Clients and the server are waited for: their next call may come from each
        other, and Ray keeps the order of calls for one caller only.
        """
        self._told.append(what)
        awaited: list[ray.ObjectRef] = []
        for member in self.everybody():
            heard: ray.ObjectRef = member.actor.hear.remote(*what)
            awaited += [heard] if member.kind != "curator" else []
            member.first, member.about = member.actor.about.remote(), None
        if awaited:
            ray.wait(awaited, num_returns=len(awaited), timeout=SECONDS_TO_START)

    def curator(self, slot: int) -> Member:
        """Who does the work of a place now: its own curator, or another one until it has one again."""
        self._all_there()
        until = time.monotonic() + SECONDS_TO_START
        while True:
            self._refill("curator", slot)
            every = [self._members["curator", place] for place in range(self.num)]
            ready = [m for m in every if self._is_ready(m)]
            if ready:
                return every[slot] if every[slot] in ready else ready[slot % len(ready)]
            waiting = [m.first for m in every if not m.why]
            may = [place for place in range(self.num) if self._failed["curator", place] < MOST_FAILED_STARTS]
            if not waiting and may:  # the last one was found dead just now
                self._refill("curator", may[0])
                continue
            if time.monotonic() > until or not waiting:
                why = next((m.why for m in every if m.why), "none of them answers")
                raise RuntimeFailure(f"no worker is left: {why}; finished cells are kept: --resume goes on")
            ray.wait(waiting, timeout=1.0)

    def _all_there(self) -> None:
        """At the beginning every curator is waited for; ``RuntimeFailure`` where one does not start, or differs."""
        until = time.monotonic() + SECONDS_TO_START
        for slot in [] if self._begun else range(self.num):
            place = ("curator", slot)
            while not self._is_ready(self._members[place]):
                why = self._members[place].why
                if self._failed[place] >= MOST_FAILED_STARTS or time.monotonic() > until:
                    raise RuntimeFailure(
                        f"worker {slot + 1} of {self.num} does not start ({why or 'no sign of life'}); there is "
                        f"{placement.in_words(cluster.nodes())}, free now: {cluster.free()}"
                    )
                self._refill(*place)
                ray.wait([self._members[place].first], timeout=1.0)
        self._begun = True

    def look(self, at_once: bool = False) -> None:
        """Ask everybody for a sign of life, find the dead, and fill their places."""
        with self._looks:
            now = time.monotonic()
            if now - self._looked < SECONDS_BETWEEN_LOOKS and not at_once:
                return
            self._looked = now
            asked = [m for m in self.everybody() if self._is_ready(m)]
            for member in asked:
                if member.pulse is None:
                    member.pulse, member.asked = member.actor.pulse.remote(), now
            ray.wait([m.pulse for m in asked], num_returns=len(asked), timeout=0.5) if asked else None
            for member in asked:
                if ray.wait([member.pulse], timeout=0)[0]:
                    self._heard(member)
                elif now - member.asked > self.silence:
                    self.bury(member, f"no sign of life for {now - member.asked:.0f} s")
            for place in self._members:
                self._refill(*place)

    def _heard(self, member: Member) -> None:
        try:
            ray.get(member.pulse)
            member.pulse = None
        except RayError as error:
            self.bury(member, in_a_line(error))

    def bury(self, member: Member, why: str) -> None:
        """What was given to ``member`` is lost; whatever it still does is not looked at."""
        if not member.why:
            member.why = why or "it died"
            if member.about is not None:
                self.lost += 1
            else:
                self._failed[member.kind, member.slot] += 1
            ray.kill(member.actor, no_restart=True)

    def everybody(self) -> list[Member]:
        """Those that can be told something."""
        return [m for m in self._members.values() if not m.why]

    def close(self) -> None:
        """End every actor and give the room back."""
        for member in self.everybody():
            ray.kill(member.actor, no_restart=True)
        remove_placement_group(self.places.room)

    def _refill(self, kind: str, slot: int | None) -> None:
        if self._members[kind, slot].why and self._failed[kind, slot] < MOST_FAILED_STARTS:
            self._members[kind, slot] = self._start(kind, slot)

    def _start(self, kind: str, slot: int | None) -> Member:
        more = () if kind == "client" else (self.places,)
        actor = self.places.start(ACTORS[kind], kind, slot, (self._modules, len(self._told)), *more)
        for what in self._told:
            actor.hear.remote(*what)
        return Member(kind, slot, actor, actor.about.remote())

    def _is_ready(self, member: Member) -> bool:
        """Whether it has said hello; ``RuntimeFailure`` where it would not compute what the driver does."""
        if member.about is None and not member.why and ray.wait([member.first], timeout=0)[0]:
            try:
                about: About = ray.get(member.first)
            except RayError as error:
                self.bury(member, in_a_line(error))
                return False
            versions.require_equal(self._made, [(about.host, about.made)])
            if self.places.gpus_of(member.kind) and about.device == "cpu":
                raise RuntimeFailure(
                    f"the worker on {about.host} was given {self.gpus:g} GPU, and torch {about.torch} there cannot use it; "
                    "install a CUDA build of torch there, or write runtime.gpus_per_worker: 0"
                )
            member.about = about
            self._failed[member.kind, member.slot] = 0
        return member.about is not None and not member.why

    def devices(self) -> dict[str, str]:
        """``host: device`` of every living actor that answered, by its name."""
        return {
            self.places.name(kind, slot): f"{m.about.host}: {m.about.device}"
            for (kind, slot), m in self._members.items()
            if self._is_ready(m) and m.about is not None
        }


def _prefix() -> str:
    """Nothing; but where another run of this driver has actors, ``run-2/`` and so on."""
    taken = list_named_actors()
    number = 1
    while any(name.startswith(f"run-{number}/") or (number == 1 and "/" not in name) for name in taken):
        number += 1
    return "" if number == 1 else f"run-{number}/"


def _placed(num_workers: int, gpus: float) -> PlacementGroup:
    """Room for every worker. ``RuntimeFailure`` where others use it: it says what is there, what is free, what was asked."""
    bundle = {"CPU": 1.0} | ({"GPU": gpus} if gpus else {})
    group = placement_group([bundle] * num_workers, strategy="PACK")
    if not group.wait(SECONDS_TO_PLACE):
        remove_placement_group(group)
        each = "1 CPU" + (f" and {gpus:g} GPU" if gpus else "")
        raise RuntimeFailure(
            f"{num_workers} workers with {each} each find no room: there is {placement.in_words(cluster.nodes())}, and others "
            f"use it, free now: {cluster.free()}; wait for them, or ask for fewer workers (runtime.workers)"
        )
    return group
