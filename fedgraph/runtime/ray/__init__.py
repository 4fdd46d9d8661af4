"""The Ray engine: client actors, a server actor and curators, as many as there are places, and the driver that watches them.

A client is data, not a process: thousands of ego-networks share a few ``Client`` actors. Arrays live in the object store once
and are mapped read-only. Ray restarts nothing and retries nothing: whoever made a call makes it again where a process or a
machine died (``seats``). Every random stream is named by client and round, so a call that is made again draws the
same noise and gives the same bytes.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is started. Where the
cluster has GPUs each place is given an equal share of one (``placement``); the server itself works on a CPU.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import ray
from ray.exceptions import RayError

from fedgraph.runtime import placement, watchdog
from fedgraph.runtime.base import Done, Function, Kind, OnRound, Queues, Runtime, Task
from fedgraph.runtime.counts import Count, Path
from fedgraph.runtime.ray import cluster
from fedgraph.runtime.ray.conductor import Conductor, call_of
from fedgraph.runtime.ray.meters import Spent
from fedgraph.runtime.ray.pool import Pool
from fedgraph.runtime.ray.seats import Asked, Deadly, Seats

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
        try:
            if self._started:
                cluster.connect(workers)
            num, gpus = placement.chosen(cluster.nodes(), workers, gpus_per_worker)
            self._pool = Pool(num, gpus, silence)
        except BaseException:
            self.close()
            raise
        super().__init__(self._pool.places, self._pool.look)
        self._spent = Spent()
        self._curators = Seats([self._pool.places.name("curator", slot) for slot in range(num)], self._pool.look)

    @property
    def pool(self) -> Pool:
        """``RuntimeError`` once it is closed."""
        if self._pool is None:
            raise RuntimeError("this engine is closed")
        return self._pool

    def open(self, *kinds: Kind, most: int | None = None) -> None:
        self.pool.open(*kinds, most=most)

    def tell(self, function: Callable[..., object], *args: object) -> None:
        self.pool.tell(function, *args)

    def federate(self, function: Function, *args: object, path: Path, on_round: OnRound = lambda done, total: None) -> Any:
        self._ready("server", "client")
        return super().federate(function, *args, path=path, on_round=on_round)

    def on_server(self, function: Function, *args: object) -> Any:
        self._ready("server")
        return super().on_server(function, *args)

    def map(self, function: Function, tasks: Sequence[object], *args: object) -> Iterator[Any]:
        self._ready("server")
        return super().map(function, tasks, *args)

    def _ready(self, *kinds: Kind, most: int | None = None) -> None:
        self.open(*kinds, most=most)
        self.pool.look()
        self.pool.wait(kinds[0])

    def as_done(
        self,
        function: Function,
        queues: Sequence[Sequence[Task]],
        started: Callable[[Task], None],
        waiting: Callable[[], None],
        gone: Callable[[str], object] | None = None,
        most: int | None = None,
    ) -> Iterator[Done]:
        most = min(most or self.num_workers, self.num_workers, sum(map(len, queues)))
        if not most:
            return
        self._ready("curator", most=most)
        dealt, running = Queues(queues), dict[ray.ObjectRef, tuple[Task, Asked]]()

        def hand_out(slot: int) -> None:
            task = dealt.next(slot)
            if task is not None:
                started(task)
                asked = self._curators.ask(slot, call_of(lambda curator: curator.cell, function, *task))
                running[asked.ref] = task, asked

        for slot in range(most):
            hand_out(slot)
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            self.pool.look()
            if not ready:
                waiting()
            for ref in ready:
                task, asked = running.pop(ref)
                try:
                    value = ray.get(ref)
                except RayError as error:
                    try:
                        self._curators.again(asked, error)
                        running[asked.ref] = task, asked
                        continue
                    except Deadly as dead:
                        if gone is None:
                            raise
                        value = gone(str(dead))
                hand_out(asked.slot)  # first, so that nobody waits while the caller looks at the value
                yield task, value

    def spent(self, path: Path, epsilon: float) -> None:
        self._spent.set(path, epsilon)

    def counted(self) -> dict[Path, Count]:
        return self._counts()[0]

    def _counts(self) -> tuple[dict[Path, Count], dict[str, Count]]:
        """Of every training and of every task, as the server that lives now has led them."""
        server = self.pool.places.name("server", None)
        if server not in self.pool.living():
            return {}, {}
        try:
            asked: ray.ObjectRef = ray.get_actor(server).counts.remote()
            found: tuple[dict[Path, Count], dict[str, Count]] = ray.get(asked, timeout=SECONDS_TO_COUNT)
        except (RayError, ValueError):  # it has just died
            return {}, {}
        return found

    def describe(self) -> dict[str, object]:
        living = self.pool.living()
        return {
            "runtime": "ray",
            "ray": ray.__version__,
            "workers": self.num_workers,
            "workers_lost": self.pool.lost,
            "gpus_per_worker": self.pool.gpus,
            "actors": {name: f"{about.host}: {about.device}" for name, about in living.items()},
            "nodes": len({about.node for about in living.values()} | {self.pool.places.node}),
            "federation": {task: asdict(count) for task, count in self._counts()[1].items()},
        }

    def close(self) -> None:
        orderly = self._pool is None or self._pool.raylet.lives
        if ray.is_initialized():
            if self._pool is not None and not self._started:
                self._pool.close()
            if self._started:
                own = watchdog.rays_own(os.getpid(), os.path.dirname(ray.__file__)) if self._watchdog is not None else set()
                ray.shutdown()  # ends the actors, too, and without a complaint about what they were doing
                watchdog.end(own)  # on a busy machine Ray's agents may outlive it
        self._pool = None
        if self._watchdog is not None:
            watchdog.dismiss(self._watchdog, ended=orderly)
            self._watchdog = None
