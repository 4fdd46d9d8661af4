"""The Ray engine: a pool of actors that hold virtual clients, and a server on the driver's machine.

A client is data, not a process: thousands of ego-networks share the pool. Arrays live in the object store once and are mapped
read-only. Ray restarts nothing and retries nothing: the driver keeps of every call what it was made from, until its result is
known, and makes it again where a process or a machine died (``calls``). Every random stream is named by client and round, so
a call that is made again draws the same noise and gives the same bytes.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is started. Where the
cluster has GPUs each worker is given an equal share of one (``placement``); the server works on a CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import ObjectStoreFullError, OutOfDiskError

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import placement, watchdog
from fedgraph.runtime.base import Queues, Runtime, blocks, require_same
from fedgraph.runtime.ray import cluster
from fedgraph.runtime.ray.calls import Call, Calls, Future
from fedgraph.runtime.ray.pool import Pool, Shared


class RayRuntime(Runtime):
    """workers: pool size (None: one per CPU of the cluster). gpus_per_worker: None divides what there is.

    silence: seconds without a sign of life after which a worker counts as dead.
    """

    name = "ray"

    def __init__(self, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> None:
        self._started = not ray.is_initialized()
        self._watchdog = watchdog.start() if self._started and not os.environ.get("RAY_ADDRESS") else None
        self._shared: dict[Hashable, Shared] = {}
        self._originals: dict[Hashable, Any] = {}
        self._pool: Pool | None = None
        try:
            if self._started:
                cluster.connect(workers)
            self.num_workers, gpus = placement.chosen(cluster.nodes(), workers, gpus_per_worker)
            self._pool = Pool(self.num_workers, gpus, silence)
        except BaseException:
            self.close()
            raise
        self._calls = Calls(self._pool)

    def share(self, key: Hashable, value: Any) -> Shared:
        if key not in self._shared:
            try:
                self._shared[key], self._originals[key] = Shared(key, (ray.put(value),)), value
            except (ObjectStoreFullError, OutOfDiskError) as error:
                raise RuntimeFailure(f"{key} does not fit into Ray's object store: {' '.join(str(error).split())}") from error
        require_same(key, self._originals[key], value)
        return self._shared[key]

    def forget(self, handle: Shared) -> None:
        if self._shared.pop(handle.key, None) is not None:
            del self._originals[handle.key]
            for member in self._calls.pool.everybody():
                member.actor.forget.remote(handle.key)

    def tell(self, function: Callable[..., object], *args: object) -> None:
        self._calls.pool.tell(function, *args)

    def on_workers(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[Any]:
        dealt = enumerate(blocks(num_items, self.num_workers))
        return [self._calls.made(Call(slot, function, (items, *args)))[0] for slot, items in dealt]

    def map(self, function: Callable[..., Any], tasks: Sequence[Any], *args: Any) -> Iterator[Any]:
        done: dict[int, Any] = {}
        left = list(reversed(range(len(tasks))))
        emit = 0
        calls = self._calls.as_done(
            lambda slot: left.pop() if left else None,
            lambda slot, index: Call(slot, function, (tasks[index], *args)),
            ahead=2,
        )
        for found in calls:
            if found is not None:
                done[found[0]] = found[1]
            while emit in done:
                yield done.pop(emit)
                emit += 1

    def as_done(
        self,
        function: Callable[..., Any],
        queues: Sequence[Sequence[tuple[Any, ...]]],
        started: Callable[[tuple[Any, ...]], None],
        waiting: Callable[[], None],
        gone: Callable[[str], Any] | None = None,
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        dealt = Queues(queues)

        def take(slot: int) -> tuple[Any, ...] | None:
            task = dealt.next(slot)
            if task is not None:
                started(task)
            return task

        for found in self._calls.as_done(take, lambda slot, task: Call(slot, function, task), ahead=1, gone=gone):
            if found is None:
                waiting()
            else:
                yield found

    def on_server(self, function: Callable[..., Any], *args: Any, returns: int = 1) -> Any:
        futures = self._calls.made(Call(None, function, args, returns))
        return futures[0] if returns == 1 else futures

    def get(self, future: Future) -> Any:
        return self._calls.value(future)

    def describe(self) -> dict[str, Any]:
        pool = self._calls.pool
        return {
            "runtime": "ray",
            "ray": ray.__version__,
            "workers": self.num_workers,
            "workers_lost": pool.lost,
            "gpus_per_worker": pool.gpus,
            "devices": pool.devices(),
            "nodes": len(cluster.nodes()),
        }

    def close(self) -> None:
        self._shared.clear()
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
