"""The Ray engine: client actors, a server actor and curators, as many as there are places, and the driver that watches them.

A client is data, not a process: thousands of ego-networks share a few ``Client`` actors. Arrays live in the object store
once and are mapped read-only. Ray restarts nothing and retries nothing: whoever made a call makes it again where a process or a
machine died (``seats``). Every random stream is named by client and round, so a call that is made again draws the
same noise and gives the same bytes.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is started. Where the
cluster has GPUs each place is given an equal share of one (``places``); the server itself works on a CPU.
"""

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.placement_group import remove_placement_group

from fedgraph import plugins
from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import process, watchdog
from fedgraph.runtime.base import Runtime, RuntimeDealing, RuntimeDone, RuntimeFunction, RuntimeKind, RuntimeTask
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountPath
from fedgraph.runtime.ray import cluster, places
from fedgraph.runtime.ray.actors import ActorAbout, Client
from fedgraph.runtime.ray.curator import Curator, CuratorConductor, make_call
from fedgraph.runtime.ray.lanes import Lanes
from fedgraph.runtime.ray.seats import SECONDS_TO_FILL_SEAT, Seat, Seats
from fedgraph.runtime.ray.server import Server, ServerMeters

_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_TO_COUNT = 10.0
_SECONDS_TO_ANSWER = 0.5  # of actors that are asked for a sign of life at once
_METHODS = ("fedgraph.methods.", *(f"{package}." for package in plugins.packages()))  # modules that a client may need
_ACTORS: dict[str, type] = {"curator": Curator, "client": Client, "server": Server}


class RayRuntime(CuratorConductor, Runtime):
    """The driver's.

    Args:
        workers: Places; None: one per CPU of the cluster.
        gpus_per_worker: Of each place; None divides what there is.
        silence: Seconds without a sign of life after which an actor counts as dead.

    Raises:
        RuntimeFailure: Ray does not start, or the places do not fit.
    """

    name = "ray"

    def __init__(self, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> None:
        self._owns_ray = not ray.is_initialized()
        self._watchdog = watchdog.start() if self._owns_ray and not os.environ.get("RAY_ADDRESS") else None
        self._raylet: cluster.ClusterRaylet | None = None
        self._seats: dict[str, Seats] = {}
        self._told: list[tuple[Any, ...]] = []  # (function, its arguments …)
        self._hearing: list[ray.ObjectRef] = []
        self._looked = time.monotonic()
        self._versions = process.own_versions()
        self._modules = tuple(sorted(name for name in sys.modules if name.startswith((*_METHODS, "fedgraph.tasks."))))
        try:
            if self._owns_ray:
                cluster.connect(workers)
            there = cluster.list_nodes()
            self._raylet = cluster.ClusterRaylet()
            self._places = places.reserve(*places.choose(there, workers, gpus_per_worker), there)
        except BaseException:
            self.close()
            raise
        for kind in _ACTORS:
            start, welcome = functools.partial(self._start, kind), functools.partial(self._welcome, kind)
            self._seats[kind] = Seats(self._places.names(kind), start, self.look, silence, welcome)
        super().__init__(self._places.num, self._seats["server"])
        self._meters = ServerMeters()

    def _start(self, kind: str, slot: int) -> ActorHandle:
        modules = tuple(m for m in self._modules if kind == "curator" or m.startswith(_METHODS))
        return self._places.start(_ACTORS[kind], kind, slot, (modules, 0), self._told)

    def _welcome(self, kind: str, about: ActorAbout) -> None:
        """``RuntimeFailure`` where an actor would not compute what the driver does."""
        process.require_equal_versions(self._versions, [(about.host, about.versions)])
        if self._places.gpus_of(kind) and about.device == "cpu":
            raise RuntimeFailure(
                f"the worker on {about.host} was given {self._places.gpus:g} GPU, and torch "
                f"{dict(about.versions.packages)['torch']} there cannot use it; install a CUDA build of torch there, or write "
                "runtime.gpus_per_worker: 0"
            )

    def look(self, at_once: bool = False) -> None:
        """Ask everybody for a sign of life, find the dead, and fill their places. at_once: and wait for the answers.

        Raises: ``RuntimeFailure`` where nobody of a kind can be started, or the raylet of this machine is dead.
        """
        if self._raylet is not None:
            self._raylet.require()
        if at_once or time.monotonic() - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = time.monotonic()
            for seats in self._seats.values():
                seats.watch(_SECONDS_TO_ANSWER if at_once else 0.0)

    def open(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        for kind in kinds:
            self._seats[kind].fill(most)

    def tell(self, function: Callable[..., object], *args: object) -> None:
        self._told.append((function, *args))  # Ray puts arguments of less than 100 kB into the call itself
        actors = [actor for seats in self._seats.values() for actor in seats.known()]
        self._hearing += [actor.hear.remote(function, *args) for actor in actors]

    def _prepare(self, *kinds: RuntimeKind, most: int | None = None) -> None:
        """A call may come from another actor than the driver, and Ray keeps the order of calls for one caller only."""
        self.open(*kinds, most=most)
        self.look()
        if self._hearing:
            ray.wait(self._hearing, num_returns=len(self._hearing), timeout=SECONDS_TO_FILL_SEAT)
            self._hearing.clear()

    def as_done(self, function: RuntimeFunction, dealing: RuntimeDealing) -> Iterator[RuntimeDone]:
        def call(task: RuntimeTask) -> Callable[[Seat], ray.ObjectRef]:
            return make_call(lambda curator: curator.cell, function, *task)

        lanes = Lanes(self._seats["curator"], self.num_workers, dealing, call)
        self._prepare("curator", most=lanes.places)
        while lanes:
            lanes.fill()
            done = lanes.wait()
            self.look()
            if not done:
                dealing.waiting()
            lanes.fill()  # first, so that nobody waits while the caller looks at the values
            yield from done

    def spent(self, path: RuntimeCountPath, epsilon: float) -> None:
        self._meters.set_epsilon(path, epsilon)

    def counted(self) -> dict[RuntimeCountPath, RuntimeCount]:
        return self._counts()[0]

    def _counts(self) -> tuple[dict[RuntimeCountPath, RuntimeCount], dict[str, RuntimeCount]]:
        """Of every training and of every task, as the server that lives now has led them."""
        for server in self._seats["server"].known() if self._seats["server"].living() else ():
            asked: ray.ObjectRef = server.counts.remote()
            try:
                found: tuple[dict[RuntimeCountPath, RuntimeCount], dict[str, RuntimeCount]] = ray.get(
                    asked, timeout=_SECONDS_TO_COUNT
                )
                return found
            except RayError:  # it has just died
                continue
        return {}, {}

    def describe(self) -> dict[str, object]:
        self.look(at_once=True)
        living = {name: about for seats in self._seats.values() for name, about in seats.living().items()}
        return {
            "runtime": "ray",
            "ray": ray.__version__,
            "workers": self.num_workers,
            "workers_lost": sum(seats.lost for seats in self._seats.values()),
            "gpus_per_worker": self._places.gpus,
            "actors": {name: f"{about.host}: {about.device}" for name, about in living.items()},
            "nodes": len({about.node for about in living.values()} | {self._places.node}),
            "federation": {task: asdict(count) for task, count in self._counts()[1].items()},
        }

    def close(self) -> None:
        orderly = self._raylet is None or self._raylet.lives
        if ray.is_initialized() and self._owns_ray:
            own = (
                watchdog.watched_ray_processes(os.getpid(), os.path.dirname(ray.__file__))
                if self._watchdog is not None
                else set()
            )
            ray.shutdown()  # ends the actors, too, and without a complaint about what they were doing
            watchdog.end_watched_processes(own)  # on a busy machine Ray's agents may outlive it
        elif ray.is_initialized() and self._seats:
            for actor in [actor for seats in self._seats.values() for actor in seats.known()]:
                ray.kill(actor, no_restart=True)
            remove_placement_group(self._places.room)
        self._seats = {}
        if self._watchdog is not None:
            watchdog.dismiss(self._watchdog, ended=orderly)
            self._watchdog = None
