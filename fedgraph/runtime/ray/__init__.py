"""The Ray engine: client actors, a server actor and curators, as many as there are places, and the driver that watches them.

A client is data, not a process: thousands of ego-networks share a few ``Client`` actors. Arrays live in the object store once
and are mapped read-only. Ray restarts nothing and retries nothing: whoever made a call makes it again where a process or a
machine died (``seats``, ``calls``). Every random stream is named by client and round, so a call that is made again draws the
same noise and gives the same bytes.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is started. Where the
cluster has GPUs each place is given an equal share of one (``placement``); the server itself works on a CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import ray
from ray.exceptions import RayError

from fedgraph.runtime import placement, watchdog
from fedgraph.runtime.base import Done, Function, Kind, OnRound, Queues, Runtime, Task
from fedgraph.runtime.counts import Count, Path
from fedgraph.runtime.ray import calls, cluster
from fedgraph.runtime.ray.conductor import Conductor
from fedgraph.runtime.ray.pool import Pool

SECONDS_TO_COUNT = 10.0


class RayRuntime(Conductor, Runtime):
    """The driver's.

    Args:
        workers: places (None: one per CPU of the cluster).
        gpus_per_worker: of each place; None divides what there is.
        silence: seconds without a sign of life after which an actor counts as dead.
    """

    name = "ray"

    def __init__(self, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> None:
        self._started = not ray.is_initialized()
        self._watchdog = watchdog.start() if self._started and not os.environ.get("RAY_ADDRESS") else None
        self._pool: Pool | None = None
        self._open = False
        try:
            if self._started:
                cluster.connect(workers)
            num, gpus = placement.chosen(cluster.nodes(), workers, gpus_per_worker)
            self._pool = Pool(num, gpus, silence)
        except BaseException:
            self.close()
            raise
        super().__init__(self._pool.places, self._pool.look)

    @property
    def pool(self) -> Pool:
        """``RuntimeError`` once it is closed."""
        if self._pool is None:
            raise RuntimeError("this engine is closed")
        return self._pool

    def open(self, *kinds: Kind) -> None:
        self.pool.open(*kinds)
        self._open = self._open or "server" in kinds

    def tell(self, function: Callable[..., object], *args: object) -> None:
        self.pool.tell(function, *args)

    def federate(self, function: Function, *args: object, path: Path, on_round: OnRound = lambda done, total: None) -> Any:
        self.open("server", "client")
        return super().federate(function, *args, path=path, on_round=on_round)

    def on_server(self, function: Function, *args: object) -> Any:
        self.open("server")
        return super().on_server(function, *args)

    def map(self, function: Function, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        self.open("server")
        return super().map(function, tasks, *args)

    def as_done(
        self,
        function: Function,
        queues: Sequence[Sequence[Task]],
        started: Callable[[Task], None],
        waiting: Callable[[], None],
        gone: Callable[[str], object] | None = None,
        most: int | None = None,
    ) -> Iterator[Done]:
        self.open("curator")
        dealt = Queues(queues)

        def take(slot: int) -> Task | None:
            task: Task | None = dealt.next(slot)
            if task is not None:
                started(task)
            return task

        for found in calls.as_done(self.pool, function, take, gone, most or self.num_workers):
            if found is None:
                waiting()
            else:
                yield found

    def counted(self) -> dict[Path, Count]:
        return self._counts()[0]

    def _counts(self) -> tuple[dict[Path, Count], dict[str, Count]]:
        """Of every training and of every task, as the server that lives now has led them."""
        actors = self._server.known() if self._open else []
        if self._open and not actors:
            try:
                actors = [ray.get_actor(self.pool.places.name("server", None))]
            except ValueError:
                return {}, {}
        try:
            found: list[tuple[dict[Path, Count], dict[str, Count]]] = ray.get(
                [actor.counts.remote() for actor in actors], timeout=SECONDS_TO_COUNT
            )
        except RayError:
            return {}, {}
        return found[0] if found else ({}, {})

    def describe(self) -> dict[str, object]:
        return {
            "runtime": "ray",
            "ray": ray.__version__,
            "workers": self.num_workers,
            "workers_lost": self.pool.lost,
            "gpus_per_worker": self.pool.gpus,
            "actors": self.pool.devices(),
            "nodes": len(cluster.nodes()),
            "federation": {task: asdict(count) for task, count in self._counts()[1].items()},
        }

    def close(self) -> None:
        if ray.is_initialized():
            if self._pool is not None and not self._started:
                self._pool.close()
            if self._started:
                own = watchdog.rays_own(os.getpid(), os.path.dirname(ray.__file__)) if self._watchdog is not None else set()
                ray.shutdown()  # ends the actors, too, and without a complaint about what they were doing
                watchdog.end(own)  # on a busy machine Ray's agents may outlive it
        self._pool = None
        if self._watchdog is not None:
            watchdog.dismiss(self._watchdog)
            self._watchdog = None
