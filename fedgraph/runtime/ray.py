"""The Ray engine: a fixed pool of actors that hold virtual clients, and one server actor.

A client is data, not a process: thousands of ego-networks share the pool. Arrays live in the object
store once and are mapped read-only. Actors restart when killed and their calls are retried; every random
stream is named by client and round, so a retried call draws the same noise and gives the same bytes.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is
started. Where the cluster has GPUs each worker is given an equal fraction of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayTaskError

from fedgraph.runtime.base import Queues, Runtime, blocks, require_same
from fedgraph.runtime.threads import use_one_thread

_SECONDS_BETWEEN_SIGNS = 1.0  # of life, while every worker computes
_LOCAL_STORE_BYTES = 768 * 1024**2


@dataclass(frozen=True, eq=False)
class _Shared:
    """A value in the object store that workers keep once they have seen it."""

    key: str
    refs: tuple[ray.ObjectRef, ...]  # inside a tuple, so that Ray passes the reference and not the value


class _Worker:
    """One actor of the pool, and the server: calls functions, keeps shared values."""

    def __init__(self) -> None:
        use_one_thread()
        self._kept: dict[str, Any] = {}

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*[self._resolve(a) for a in args])

    def forget(self, key: str) -> None:
        self._kept.pop(key, None)

    def _resolve(self, value: Any) -> Any:
        if not isinstance(value, _Shared):
            return value
        if value.key not in self._kept:
            self._kept[value.key] = ray.get(value.refs[0])
        return self._kept[value.key]


class RayRuntime(Runtime):
    """workers: pool size (None: one per CPU of the cluster). gpus_per_worker: None divides what there is."""

    name = "ray"

    def __init__(self, workers: int | None = None, gpus_per_worker: float | None = None) -> None:
        self._started = not ray.is_initialized()
        if self._started:
            _start(workers)
        resources = ray.cluster_resources()
        self.num_workers = workers or max(1, int(resources.get("CPU", 1)))
        gpus = resources.get("GPU", 0.0)
        share = gpus / (self.num_workers + 1) if gpus_per_worker is None else gpus_per_worker
        self._gpus = float(int(share)) if share >= 1 else round(share - 5e-4, 3) if share > 1e-3 else 0.0
        actor = ray.remote(_Worker)
        options: dict[str, Any] = {"num_gpus": self._gpus, "max_restarts": -1, "max_task_retries": -1}
        self._pool = [actor.options(num_cpus=1, **options).remote() for _ in range(self.num_workers)]
        self._server = actor.options(num_cpus=0, **options).remote()
        self._shared: dict[str, _Shared] = {}
        self._originals: dict[str, Any] = {}

    def share(self, key: str, value: Any) -> _Shared:
        if key not in self._shared:
            self._shared[key], self._originals[key] = _Shared(key, (ray.put(value),)), value
        require_same(key, self._originals[key], value)
        return self._shared[key]

    def forget(self, handle: _Shared) -> None:
        if self._shared.pop(handle.key, None) is not None:
            del self._originals[handle.key]
            for worker in [*self._pool, self._server]:
                worker.forget.remote(handle.key)

    def on_workers(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[Any]:
        dealt = zip(self._pool, blocks(num_items, self.num_workers), strict=False)
        return [worker.call.remote(function, items, *args) for worker, items in dealt]

    def map(self, function: Callable[..., Any], tasks: Sequence[Any], *args: Any) -> Iterator[Any]:
        queue = iter(enumerate(tasks))
        running: dict[ray.ObjectRef, tuple[int, int]] = {}
        done: dict[int, Any] = {}
        emit = 0

        def submit(worker: int) -> None:
            for index, task in queue:
                running[self._pool[worker].call.remote(function, task, *args)] = (index, worker)
                return

        for worker in list(range(self.num_workers)) * 2:
            submit(worker)
        while running:
            ready, _ = ray.wait(list(running), num_returns=1)
            index, worker = running.pop(ready[0])
            done[index] = self.get(ready[0])
            submit(worker)
            while emit in done:
                yield done.pop(emit)
                emit += 1

    def as_done(
        self,
        function: Callable[..., Any],
        queues: Sequence[Sequence[tuple[Any, ...]]],
        started: Callable[[tuple[Any, ...]], None],
        waiting: Callable[[], None],
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        dealt = Queues(queues)
        running: dict[ray.ObjectRef, tuple[tuple[Any, ...], int]] = {}

        def hand_out(worker: int) -> None:
            if (task := dealt.next(worker)) is not None:
                running[self._pool[worker].call.remote(function, *task)] = (task, worker)
                started(task)

        for worker in range(self.num_workers):
            hand_out(worker)
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=_SECONDS_BETWEEN_SIGNS)
            for future in ready:
                task, worker = running.pop(future)
                value = self.get(future)
                hand_out(worker)  # first, so that nobody waits while the caller looks at the value
                yield task, value
            if not ready:
                waiting()

    def on_server(self, function: Callable[..., Any], *args: Any, returns: int = 1) -> Any:
        out = self._server.call.options(num_returns=returns).remote(function, *args)
        return out if returns == 1 else tuple(out)

    def get(self, future: Any) -> Any:
        try:
            return ray.get(future)
        except RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from None
            raise

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "ray",
            "ray": ray.__version__,
            "workers": self.num_workers,
            "gpus_per_worker": self._gpus,
            "nodes": len(ray.nodes()),
        }

    def close(self) -> None:
        self._shared.clear()
        if ray.is_initialized():
            for actor in [*self._pool, self._server]:
                ray.kill(actor, no_restart=True)
            if self._started:
                ray.shutdown()
        self._pool = []


def _start(workers: int | None) -> None:
    """Join the cluster in ``RAY_ADDRESS``, or start a local one without dashboard or worker chatter."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level="ERROR")
        return
    ray.init(
        num_cpus=max(workers or 0, os.cpu_count() or 1),
        object_store_memory=_LOCAL_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        configure_logging=True,
    )
