"""The actors of a run: started where there is room, watched while they work, replaced when they die.

The places are fixed when a run starts; who stands in a place may change. An actor counts as dead when Ray says so (its process
or its machine is gone) or when it gives no sign of life for ``silence`` seconds. Its place is then filled again, under the same
name, as soon as some machine has room; until then others of its kind do its work (``seats``). Nothing waits without a limit.
"""

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
from fedgraph.runtime.ray.seats import GO_ON, in_a_line
from fedgraph.runtime.ray.server import Server

SECONDS_TO_PLACE = 15.0  # until it is said that others use what was asked for
SECONDS_TO_START = 360.0  # of a process that imports torch, on a busy machine
SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_TO_ANSWER = 0.5  # of an actor that is asked for a sign of life at once
MOST_FAILED_STARTS = 3  # in a row, of one place
Place: TypeAlias = tuple[str, int | None]  # the kind of actor, and its slot
ACTORS: dict[str, type] = {"curator": Curator, "client": Client, "server": Server}


@dataclass(eq=False)
class Member:
    """An actor as the driver sees it.

    Args:
        sign: of life, on its way: first ``about``, later ``pulse``.
        since: when it was asked for.
        about: what it said first; None until it did.
        why: it is dead, and this is why.
    """

    actor: ray.actor.ActorHandle
    sign: ray.ObjectRef
    since: float
    about: About | None = None
    why: str = ""


class Pool:
    """num places, with a curator and a client each, and a server beside the driver, once ``open`` asks for them.

    silence: seconds without a sign of life that count as death.
    """

    def __init__(self, num: int, gpus: float, silence: float) -> None:
        self.num, self.gpus, self.silence = num, gpus, silence
        self.lost = 0
        self._told: list[tuple[object, ...]] = []  # (function, its arguments …)
        self._hearing: list[ray.ObjectRef] = []
        self._modules = tuple(sorted(name for name in sys.modules if name.startswith(("fedgraph.methods.", "fedgraph.tasks."))))
        self._made = versions.own()
        self._looked = time.monotonic()
        self._looks = threading.RLock()
        self.raylet = cluster.Raylet()
        self.places = Places(num, gpus, _placed(num, gpus), _prefix(), ray.get_runtime_context().get_node_id())
        self._failed: dict[Place, int] = {}  # starts in a row
        self._members: dict[Place, Member] = {}

    def open(self, *kinds: str, most: int | None = None) -> None:
        """So many actors of each kind (None: one in each place) begin to start, where they have not."""
        with self._looks:
            for place in [(k, slot) for k in kinds for slot in ([None] if k == "server" else range(most or self.num))]:
                if place not in self._members:
                    self._failed[place] = 0
                    self._members[place] = self._start(*place)

    def wait(self, kind: str) -> None:
        """Until all of a kind are there, and everybody has heard what was told; ``RuntimeFailure`` where one does not start.

        A call may come from another actor than the driver, and Ray keeps the order of calls for one caller only.
        """
        until = time.monotonic() + SECONDS_TO_START
        while late := [place for place, m in self._members.items() if place[0] == kind and m.about is None]:
            ray.wait([self._members[late[0]].sign], timeout=1.0)
            self.look(at_once=True)
            member = self._members[late[0]]
            if member.about is None and (self._failed[late[0]] >= MOST_FAILED_STARTS or time.monotonic() > until):
                raise RuntimeFailure(
                    f"{self.places.name(*late[0])} does not start ({member.why or 'no sign of life'}); there is "
                    f"{placement.in_words(cluster.nodes())}, free now: {cluster.free()}"
                )
        if self._hearing:
            ray.wait(self._hearing, num_returns=len(self._hearing), timeout=SECONDS_TO_START)
            self._hearing.clear()

    def tell(self, *what: object) -> None:
        """``Runtime.tell``. Ray puts arguments of less than 100 kB into the call itself."""
        self._told.append(what)
        self._hearing += [m.actor.hear.remote(*what) for m in self._members.values() if not m.why]

    def look(self, at_once: bool = False) -> None:
        """Ask everybody for a sign of life, find the dead, and fill their places. at_once: and wait for the answers.

        Raises: ``RuntimeFailure`` where nobody of a kind can be started, or the raylet of this machine is dead.
        """
        with self._looks:
            self.raylet.require()
            now = time.monotonic()
            if now - self._looked < SECONDS_BETWEEN_LOOKS and not at_once:
                return
            self._looked = now
            for place, member in self._members.items():
                self._listen(place, member, now)
            if awaited := [m.sign for m in self._members.values() if at_once and m.about is not None and not m.why]:
                ray.wait(awaited, num_returns=len(awaited), timeout=SECONDS_TO_ANSWER)
            for place, member in self._members.items():
                self._listen(place, member, now)
                if member.why and self._failed[place] < MOST_FAILED_STARTS:
                    self._members[place] = self._start(*place)
            for kind in {kind for kind, _ in self._members}:
                own = [(place, m.why) for place, m in self._members.items() if place[0] == kind]
                if all(why and self._failed[place] >= MOST_FAILED_STARTS for place, why in own):
                    raise RuntimeFailure(f"no {kind} is left: {own[0][1]}; {GO_ON}")

    def _listen(self, place: Place, member: Member, now: float) -> None:
        """``RuntimeFailure`` where ``member`` would not compute what the driver does."""
        if member.why:
            return
        if not ray.wait([member.sign], timeout=0)[0]:
            if now - member.since > (SECONDS_TO_START if member.about is None else self.silence):
                self.bury(place, member, f"no sign of life for {now - member.since:.0f} s")
            return
        try:
            said = ray.get(member.sign)
        except RayError as error:
            self.bury(place, member, in_a_line(error))
            return
        if isinstance(said, About):
            versions.require_equal(self._made, [(said.host, said.made)])
            if self.places.gpus_of(place[0]) and said.device == "cpu":
                torch = dict(said.made.packages)["torch"]
                raise RuntimeFailure(
                    f"the worker on {said.host} was given {self.gpus:g} GPU, and torch {torch} there cannot use it; "
                    "install a CUDA build of torch there, or write runtime.gpus_per_worker: 0"
                )
            member.about, self._failed[place] = said, 0
        member.sign, member.since = member.actor.pulse.remote(), now

    def bury(self, place: Place, member: Member, why: str) -> None:
        """What was given to ``member`` is lost; whatever it still does is not looked at."""
        member.why = why or "it died"
        self.lost += member.about is not None
        self._failed[place] += member.about is None
        ray.kill(member.actor, no_restart=True)

    def close(self) -> None:
        """End every actor and give the room back."""
        for member in self._members.values():
            ray.kill(member.actor, no_restart=True)
        remove_placement_group(self.places.room)

    def _start(self, kind: str, slot: int | None) -> Member:
        more = () if kind == "client" else (self.places,)
        modules = tuple(m for m in self._modules if kind == "curator" or m.startswith("fedgraph.methods."))
        actor = self.places.start(ACTORS[kind], kind, slot, (modules, len(self._told)), *more)
        for what in self._told:
            actor.hear.remote(*what)
        return Member(actor, actor.about.remote(), time.monotonic())

    def living(self) -> dict[str, About]:
        """What each actor that is alive has said of itself, by its name."""
        self.look(at_once=True)
        return {self.places.name(*p): m.about for p, m in self._members.items() if m.about is not None and not m.why}


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
