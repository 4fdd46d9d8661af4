"""The Ray engine: client actors and curators, one of each in every place, a server actor, and the driver that watches them.

Arrays are in the object store once and are mapped read-only. Ray places the actors (a placement group), restarts dead ones
under the same name and repeats their calls (``actor``). The driver asks them for signs of life, and ends the run if all actors
of a kind stay dead.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is started. If the cluster
has GPUs, each place gets an equal share of them (``places``).
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, RayActorError, RayError
from ray.util.placement_group import remove_placement_group

from fedgraph import plugins
from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import process
from fedgraph.runtime.base import (
    RUNTIME_LANES,
    Runtime,
    RuntimeDealing,
    RuntimeDone,
    RuntimeFunction,
    RuntimeKind,
    RuntimeTask,
)
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountPath
from fedgraph.runtime.ray import actor, cluster, places
from fedgraph.runtime.ray.actor import MOST_RETRIES, RUN_GOES_ON, SECONDS_TO_START, ActorAbout
from fedgraph.runtime.ray.client import Client
from fedgraph.runtime.ray.curator import Curator, CuratorConductor, CuratorQueues, as_sent
from fedgraph.runtime.ray.server import Server, ServerMeters

_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_TO_COUNT = 10.0
_SECONDS_TO_ANSWER = 0.5  # of actors that are asked for a sign of life at once
_METHODS = ("fedgraph.methods.", *(f"{package}." for package in plugins.packages()))  # modules that a client may need
_KINDS: tuple[RuntimeKind, ...] = ("curator", "client", "server")


@dataclass(eq=False)
class _Watched:
    """An actor as the driver sees it. Times are of ``time.monotonic``."""

    actor: ActorHandle  # Ray's handle; a restart does not change it
    sign: ray.ObjectRef  # the next sign of life
    asked: float  # when it was asked for
    seen: float  # when the last sign came, or the actor was begun
    about: ActorAbout | None = None  # the last sign of life; None while the actor is not there
    why: str = "no sign of life"  # Ray's words when the actor was last lost
    over: bool = False  # whether Ray will not restart it


@dataclass(eq=False)
class _Given:
    """A task that was given to a curator."""

    task: RuntimeTask
    led: bool  # whether the curator mostly waits for the server
    queue: int  # number of its queue
    curator: int = 0  # number of the curator
    losses: int = 0  # number of curators that died with it


class RayRuntime(CuratorConductor, Runtime):
    """The Ray engine in the driver. The arguments are those of ``runtime.start``.

    ``RuntimeFailure`` if Ray does not start, or if the places do not fit.
    """

    name = "ray"

    def __init__(self, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> None:
        self._owns_ray = not ray.is_initialized()
        self._raylet: cluster.ClusterRaylet | None = None
        self._actors: dict[RuntimeKind, list[_Watched]] = {kind: [] for kind in _KINDS}
        self._lost, self._silence, self._looked = 0, silence, time.monotonic()
        self._versions = process.own_versions()
        self._modules = tuple(sorted(name for name in list(sys.modules) if name.startswith((*_METHODS, "fedgraph.tasks."))))
        try:
            if self._owns_ray:
                cluster.connect(workers)
            there, has = cluster.list_nodes()
            there += places.to_start(has, gpus_per_worker)
            self._raylet = cluster.ClusterRaylet()
            self._places = places.reserve(*places.choose(there, workers, gpus_per_worker), there)
        except BaseException:
            self.close()
            raise
        super().__init__(self._places.num, None)
        self._meters = ServerMeters()

    def open(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        for kind in ("client", "curator", "server"):  # the server is given its clients
            if kind in kinds or (kind == "client" and "server" in kinds):
                many = 1 if kind == "server" else min(self._places.num, most or self._places.num)
                for slot in range(len(self._actors[kind]), many):
                    self._begin(kind, slot)

    def _begin(self, kind: RuntimeKind, slot: int) -> None:
        methods = tuple(m for m in self._modules if m.startswith(_METHODS))
        if kind == "client":
            made = self._places.start(Client, kind, slot, methods)
        elif kind == "curator":
            made = self._places.start(Curator, kind, slot, self._modules, self._places.num)
        else:
            made = self._server = self._places.start(Server, kind, slot, methods, self._places)
        now = time.monotonic()
        self._actors[kind].append(_Watched(made, made.about.remote(), now, now))

    def look(self, at_once: bool = False) -> None:
        """Asks all actors for a sign of life. at_once: also waits for the answers.

        ``RuntimeFailure`` if all actors of a kind stay dead, or the raylet of this machine is dead.
        """
        if self._raylet is not None:
            self._raylet.require()
        due = at_once or time.monotonic() - self._looked > _SECONDS_BETWEEN_LOOKS
        self._looked = time.monotonic() if due else self._looked
        watched = [(kind, one) for kind in _KINDS for one in self._actors[kind] if due or one.about is None]
        for kind, one in watched:
            self._listen(kind, one)
        if at_once and (signs := [one.sign for _, one in watched if one.about is not None]):
            ray.wait(signs, num_returns=len(signs), timeout=_SECONDS_TO_ANSWER)
            for kind, one in watched:
                self._listen(kind, one)
        for kind in _KINDS:
            all_of = self._actors[kind]
            late = [one.over or (one.about is None and time.monotonic() - one.seen > SECONDS_TO_START) for one in all_of]
            if all_of and all(late):
                raise RuntimeFailure(f"no {kind} is left: {all_of[0].why}; {RUN_GOES_ON}")

    def _listen(self, kind: RuntimeKind, one: _Watched) -> None:
        now = time.monotonic()
        if one.over:
            return
        if ray.wait([one.sign], timeout=0)[0]:
            try:
                about: ActorAbout = ray.get(one.sign)
            except RayError as error:
                self._note_loss(one, error)
                return
            self._lost += one.about is not None and one.about.pid != about.pid
            if one.about is None or one.about.pid != about.pid:
                self._welcome(kind, self._actors[kind].index(one), about)
            one.about, one.seen = about, now
        elif one.about is not None and now - one.asked > self._silence:
            ray.kill(one.actor, no_restart=False)
            self._note_loss(one, RayError(f"no sign of life for {now - one.asked:.0f} s"))
            return
        else:
            return
        one.sign, one.asked = one.actor.about.remote(), now

    def _note_loss(self, one: _Watched, error: RayError) -> None:
        """Notes that an actor died; it gets no task until Ray has restarted it."""
        self._lost += one.about is not None
        one.about, one.why, one.over = None, actor.in_a_line(error) or "it died", isinstance(error, ActorDiedError)
        one.sign, one.asked = one.actor.about.remote(), time.monotonic()

    def _welcome(self, kind: RuntimeKind, slot: int, about: ActorAbout) -> None:
        """``RuntimeFailure`` if an actor has other versions than the driver, or cannot use its GPU."""
        process.require_equal_versions(self._versions, [(about.host, about.versions)])
        if self._places.gpus and self._places.gpus_of(kind, slot) and about.device == "cpu":
            raise RuntimeFailure(
                f"the worker on {about.host} was given {self._places.gpus:g} GPU, and torch "
                f"{dict(about.versions.packages)['torch']} there cannot use it; install a CUDA build of torch there, or write "
                "runtime.gpus_per_worker: 0"
            )

    def tell(self, function: Callable[..., object], *args: object) -> None:
        self._told = (*self._told, (function, *args))  # part of each call: Ray stores no argument of less than 2 MB

    def _prepare(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        self.open(*kinds, most=most)
        self.look()

    def _answer(self, asked: ray.ObjectRef) -> object:
        while not ray.wait([asked], timeout=1.0, fetch_local=False)[0]:
            self.look()
        return super()._answer(asked)

    def as_done(self, function: RuntimeFunction, dealing: RuntimeDealing) -> Iterator[RuntimeDone]:
        own, led = CuratorQueues(dealing.queues), CuratorQueues(dealing.led)
        each = 1 if dealing.most else RUNTIME_LANES
        many = min(self.num_workers, dealing.most or self.num_workers, sum(map(len, (*dealing.queues, *dealing.led))))
        running: dict[ray.ObjectRef, _Given] = {}
        lost: list[_Given] = []
        if dealing.led:
            self.open("client", "server")
        self._prepare("curator", most=many)

        def give(one: _Given, curator: int) -> None:
            one.curator = curator
            cell: Any = self._actors["curator"][curator].actor.cell
            running[cell.remote(self._told, self._server, function, *as_sent(one.task))] = one

        def fill() -> None:
            """Gives each living curator the tasks that it may have."""
            for curator in [k for k, one in enumerate(self._actors["curator"][:many]) if one.about is not None]:
                while one := self._next(curator, [g for g in running.values() if g.curator == curator], own, led, each, lost):
                    if not one.losses:
                        dealing.started(one.task)
                    give(one, curator)

        while running or lost or own or led:
            fill()
            waits = lost or own or led
            ready, _ = ray.wait(list(running), timeout=0.2 if waits else 1.0) if running else ([], [])
            if not running:
                time.sleep(0.05)
            self.look()
            done = [one for ref in ready if (one := self._ended(ref, running.pop(ref), lost, dealing)) is not None]
            if running and not done:
                dealing.waiting()
            fill()  # before the caller handles the values
            yield from done

    def _next(
        self, curator: int, has: list[_Given], own: CuratorQueues, led: CuratorQueues, most: int, lost: list[_Given]
    ) -> _Given | None:
        """The next task of a curator; None for none. It has one task that it computes itself, and others that mostly wait.

        A task may be what killed its curator. So it is given again only to a curator without other tasks, which gets no other.
        """
        if any(one.losses for one in has) or len(has) >= most or (lost and has):
            return None
        if lost:
            return lost.pop(0)
        for queues, is_led in ((own, False), (led, True)):
            if is_led or all(one.led for one in has):
                found = queues.next(curator, [one.queue for one in has if one.led == is_led])
                if found is not None:
                    return _Given(found[1], is_led, found[0])
        return None

    def _ended(self, ref: ray.ObjectRef, one: _Given, lost: list[_Given], dealing: RuntimeDealing) -> RuntimeDone | None:
        """The task with its value; None if its curator died and the task is given again."""
        try:
            return one.task, ray.get(ref)
        except RayError as error:
            if not isinstance(error, RayActorError):
                raise actor.as_own(error, "curator") from None
            self.look()
            if self._actors["curator"][one.curator].about is not None:
                self._note_loss(self._actors["curator"][one.curator], error)
            one.losses += 1
            if one.losses <= MOST_RETRIES:
                lost.append(one)
                return None
            deadly = actor.as_own(error, "curator")
            if dealing.gone is None:
                raise deadly from None
            return one.task, dealing.gone(str(deadly))

    def spent(self, path: RuntimeCountPath, epsilon: float) -> None:
        self._meters.set_epsilon(path, epsilon)

    def counted(self) -> dict[RuntimeCountPath, RuntimeCount]:
        return self._counts()[0]

    def _counts(self) -> tuple[dict[RuntimeCountPath, RuntimeCount], dict[str, RuntimeCount]]:
        """The counts of every training and of every task that the present server has led."""
        try:
            for server in [one.actor for one in self._actors["server"] if one.about is not None]:
                counts: Any = ray.get(server.counts.remote(), timeout=_SECONDS_TO_COUNT)
                return counts
        except RayError:  # it has just died
            pass
        return {}, {}

    def describe(self) -> dict[str, object]:
        self.look(at_once=True)
        names = {kind: self._places.names(kind) for kind in _KINDS}
        living = {
            names[kind][slot]: one.about
            for kind in _KINDS
            for slot, one in enumerate(self._actors[kind])
            if one.about is not None
        }
        return {
            "runtime": "ray",
            "ray": ray.__version__,
            "workers": self.num_workers,
            "workers_lost": self._lost,
            "gpus_per_worker": self._places.gpus,
            "actors": {name: f"{about.host}: {about.device}" for name, about in living.items()},
            "nodes": len({about.node for about in living.values()} | {self._places.node}),
            "federation": {task: asdict(count) for task, count in self._counts()[1].items()},
        }

    def close(self) -> None:
        if ray.is_initialized() and self._owns_ray:
            ray.shutdown()  # also ends the actors, without errors of their calls
        elif ray.is_initialized() and any(self._actors.values()):
            for one in [one for kind in _KINDS for one in self._actors[kind]]:
                ray.kill(one.actor, no_restart=True)
            remove_placement_group(self._places.room)
        self._actors = {kind: [] for kind in _KINDS}
