"""The pool of actors: started where there is room, watched while they work, replaced when they die.

The places of the pool are fixed when a run starts; who stands in a place may change. A worker counts as dead when Ray says so
(its process or its machine is gone) or when it gives no sign of life for ``silence`` seconds. Its place is then filled again
as soon as some machine has room, and until then the other workers do its work. Nothing waits without a limit.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import memory, placement, versions
from fedgraph.runtime.ray import cluster
from fedgraph.runtime.threads import use_one_thread

SECONDS_TO_PLACE = 15.0  # until it is said that others use what was asked for
SECONDS_TO_START = 180.0  # of a process that imports torch, on a busy machine
SECONDS_BETWEEN_LOOKS = 5.0
MOST_FAILED_STARTS = 3  # in a row, of one place


@dataclass(frozen=True)
class About:
    """What a worker says of itself when it has started. device: ``cpu``, or the name of its first GPU."""

    host: str
    device: str
    torch: str
    made: versions.Made


@dataclass(frozen=True, eq=False)
class Shared:
    """A value in the object store that workers keep once they have seen it."""

    key: Hashable
    refs: tuple[ray.ObjectRef, ...]  # inside a tuple, so that Ray passes the reference and not the value


class Worker:
    """One actor of the pool, and the server: calls functions one after another, keeps shared values, answers beside it."""

    def __init__(self, gpus: float, modules: tuple[str, ...]) -> None:
        """modules: what the driver has loaded of fedgraph, imported while the driver reads data and plans."""
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides a GPU only from those who asked for one
        memory.keep_freed()
        self._kept: dict[Hashable, Any] = {}
        self._thread = threading.local()
        for name in modules:
            with contextlib.suppress(Exception):  # another version on this machine: ``about`` says so in words
                importlib.import_module(name)

    def call(self, returns: int, function: Any, *args: Any) -> tuple[Any, ...]:
        """(what ``function`` returns …, None): the last one is small, and says that the others are there."""
        if not hasattr(self._thread, "alone"):
            use_one_thread()  # the limit holds for the thread that sets it
            self._thread.alone = True
        found = function(*[self._resolve(a) for a in args])
        return (*found, None) if returns > 1 else (found, None)

    @ray.method(concurrency_group="server")
    def serve(self, returns: int, function: Any, *args: Any) -> tuple[Any, ...]:
        """``call`` for the server where it shares this process: no task of a client waits behind it."""
        return self.call(returns, function, *args)

    def forget(self, key: Hashable) -> None:
        self._kept.pop(key, None)
        memory.give_back()

    @ray.method(concurrency_group="life")
    def hear(self, function: Callable[..., object], *args: object) -> None:
        """What the driver tells every process; before ``about``, for which the driver waits."""
        function(*args)

    @ray.method(concurrency_group="life")
    def about(self) -> About:
        """Where this process runs and with what; the first sign of life."""
        import torch

        cuda = torch.cuda.is_available()
        return About(socket.gethostname(), torch.cuda.get_device_name(0) if cuda else "cpu", torch.__version__, versions.own())

    @ray.method(concurrency_group="life")
    def pulse(self) -> None:
        """A sign of life, also while ``call`` computes."""

    def _resolve(self, value: Any) -> Any:
        if not isinstance(value, Shared):
            return value
        if value.key not in self._kept:
            self._kept[value.key] = ray.get(value.refs[0])
        return self._kept[value.key]


@dataclass(eq=False)
class Member:
    """An actor as the driver sees it. slot: its place, None for the server. about: what it said, None until then. why: it is
    dead, and this is why.
    """

    slot: int | None
    actor: Any
    first: ray.ObjectRef
    about: About | None = None
    pulse: ray.ObjectRef | None = None
    asked: float = 0.0
    why: str = ""


class Pool:
    """num_workers places and a server beside the driver. silence: seconds without a sign of life that count as death.

    Where the driver's machine is the only one, the server shares the process of the first place, in a thread of its own; else
    it has a process on the driver's machine, so that what it made dies only with the driver.
    """

    def __init__(self, num_workers: int, gpus: float, silence: float) -> None:
        self.num_workers, self.gpus, self.silence = num_workers, gpus, silence
        self.lost = 0
        self._begun = False
        self._told: list[tuple[object, ...]] = []  # (function, its arguments …)
        self._modules = tuple(sorted(name for name in sys.modules if name.startswith(("fedgraph.methods.", "fedgraph.tasks."))))
        self._made = versions.own()
        self._failed = [0] * num_workers  # starts in a row
        self._looked = time.monotonic()
        remote: Any = ray.remote  # its types know no concurrency groups
        self._actor = remote(concurrency_groups={"life": 1, "server": 1}, max_restarts=0, max_task_retries=0)(Worker)
        self._room = _placed(num_workers, gpus)
        self._members = [self._start(slot) for slot in range(num_workers)]
        self.shared = len(cluster.nodes()) == 1 and not os.environ.get("RAY_ADDRESS")
        self._server = self._members[0] if self.shared else self._start(None)

    def worker(self, slot: int) -> Member:
        """Who does the work of a place now: its own worker, or another one until it has one again."""
        self._all_there()
        until = time.monotonic() + SECONDS_TO_START
        while True:
            if self._members[slot].why and self._failed[slot] < MOST_FAILED_STARTS:
                self._members[slot] = self._start(slot)
            ready = [m for m in self._members if self._is_ready(m)]
            if ready:
                return self._members[slot] if self._members[slot] in ready else ready[slot % len(ready)]
            waiting = [m.first for m in self._members if not m.why]
            may = [place for place in range(self.num_workers) if self._failed[place] < MOST_FAILED_STARTS]
            if not waiting and may:  # the last one was found dead just now
                self._members[may[0]] = self._start(may[0])
                continue
            if time.monotonic() > until or not waiting:
                why = next((m.why for m in self._members if m.why), "none of them answers")
                raise RuntimeFailure(f"no worker is left: {why}; finished cells are kept: --resume goes on")
            ray.wait(waiting, timeout=1.0)

    def server(self) -> Member:
        """The server; started again where it died."""
        if self.shared:
            return self.worker(0)
        if self._server.why:
            self._server = self._start(None)
        until = time.monotonic() + SECONDS_TO_START
        while not self._is_ready(self._server):
            if self._server.why or time.monotonic() > until:
                raise RuntimeFailure(f"the server's process does not start: {self._server.why or 'no answer'}")
            ray.wait([self._server.first], timeout=1.0)
        return self._server

    def tell(self, *what: object) -> None:
        """``Runtime.tell``. Ray puts arguments of less than 100 kB into the call itself; whoever heard says ``about`` again."""
        self._told.append(what)
        for member in self.everybody():
            member.actor.hear.remote(*what)
            member.first, member.about = member.actor.about.remote(), None

    def _all_there(self) -> None:
        """At the beginning everybody is waited for. ``RuntimeFailure`` where one does not start, or differs from the driver."""
        until = time.monotonic() + SECONDS_TO_START
        for slot in [] if self._begun else range(self.num_workers):
            while not self._is_ready(self._members[slot]):
                why = self._members[slot].why
                if self._failed[slot] >= MOST_FAILED_STARTS or time.monotonic() > until:
                    raise RuntimeFailure(
                        f"worker {slot + 1} of {self.num_workers} does not start ({why or 'no sign of life'}); there is "
                        f"{placement.in_words(cluster.nodes())}, free now: {cluster.free()}"
                    )
                if why:
                    self._members[slot] = self._start(slot)
                ray.wait([self._members[slot].first], timeout=1.0)
        self._begun = True

    def look(self, at_once: bool = False) -> None:
        """Ask everybody for a sign of life, and find the dead."""
        now = time.monotonic()
        if now - self._looked < SECONDS_BETWEEN_LOOKS and not at_once:
            return
        self._looked = now
        asked = [m for m in self.everybody() if m.about is not None]
        for member in asked:
            if member.pulse is None:
                member.pulse, member.asked = member.actor.pulse.remote(), now
        ray.wait([m.pulse for m in asked], num_returns=len(asked), timeout=0.5) if asked else None
        for member in asked:
            if ray.wait([member.pulse], timeout=0)[0]:
                self._heard(member)
            elif now - member.asked > self.silence:
                self.bury(member, f"no sign of life for {now - member.asked:.0f} s")

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
            elif member.slot is not None:
                self._failed[member.slot] += 1
            ray.kill(member.actor, no_restart=True)

    def everybody(self) -> list[Member]:
        """Those that can be told something."""
        return [m for m in (*self._members, *([] if self.shared else [self._server])) if not m.why]

    def close(self) -> None:
        """End every actor and give the room back."""
        for member in self.everybody():
            ray.kill(member.actor, no_restart=True)
        remove_placement_group(self._room)

    def _start(self, slot: int | None) -> Member:
        if slot is None:
            own = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            actor = self._actor.options(num_cpus=0, scheduling_strategy=own).remote(0.0, self._modules)
        else:
            strategy = PlacementGroupSchedulingStrategy(self._room, slot)
            actor = self._actor.options(num_cpus=1, num_gpus=self.gpus, scheduling_strategy=strategy).remote(
                self.gpus, self._modules
            )
        for what in self._told:
            actor.hear.remote(*what)
        return Member(slot, actor, actor.about.remote())

    def _is_ready(self, member: Member) -> bool:
        """Whether it has said hello; ``RuntimeFailure`` where it would not compute what the driver does."""
        if member.about is None and not member.why and ray.wait([member.first], timeout=0)[0]:
            try:
                about: About = ray.get(member.first)
            except RayError as error:
                self.bury(member, in_a_line(error))
                return False
            versions.require_equal(self._made, [(about.host, about.made)])
            if member.slot is not None and self.gpus and about.device == "cpu":
                raise RuntimeFailure(
                    f"the worker on {about.host} was given {self.gpus:g} GPU, and torch {about.torch} there cannot use it; "
                    "install a CUDA build of torch there, or write runtime.gpus_per_worker: 0"
                )
            member.about = about
            if member.slot is not None:
                self._failed[member.slot] = 0
        return member.about is not None and not member.why

    def devices(self) -> list[str]:
        """``host: device`` of every worker that ever answered, place by place."""
        return [f"{m.about.host}: {m.about.device}" for m in self._members if m.about is not None]


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


def in_a_line(error: BaseException) -> str:
    """The last words of what Ray says, without its pages of advice."""
    text = str(error)
    for mark in ("Worker exit detail:", "Error:"):
        if mark in text:
            text = text[text.rindex(mark) + (len(mark) if mark.endswith("detail:") else 0) :]
    return " ".join(text.split())[:300]
