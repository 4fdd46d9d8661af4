"""The Ray engine: a fixed pool of actors that hold virtual clients, and one server actor.

A client is data, not a process: thousands of ego-networks share the pool. Arrays live in the object
store once and are mapped read-only. Actors restart when killed and their calls are retried; every random
stream is named by client and round, so a retried call draws the same noise and gives the same bytes.

With ``RAY_ADDRESS`` set (``ray job submit`` does) the running cluster is used; otherwise a local one is
started. Where the cluster has GPUs each worker is given an equal fraction of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ray
import torch
from ray.exceptions import RayTaskError

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import watchdog
from fedgraph.runtime.base import Queues, Runtime, blocks, require_same
from fedgraph.runtime.threads import use_one_thread

_SECONDS_BETWEEN_SIGNS = 1.0  # of life, while every worker computes
_PATIENCE = 5.0  # seconds for a cluster to answer
_WORKERS_PER_CPU, _LEAST_ROOM = 4, 8  # of a local pool
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
        self._watchdog = watchdog.start() if self._started and not os.environ.get("RAY_ADDRESS") else None
        if self._started:
            _start(workers, gpus_per_worker)
        resources = ray.cluster_resources()
        self.num_workers = workers or max(1, int(resources.get("CPU", 1)))
        gpus = resources.get("GPU", 0.0)
        share = gpus / (self.num_workers + 1) if gpus_per_worker is None else gpus_per_worker
        try:
            _require_room(self.num_workers, gpus_per_worker or 0.0, int(resources.get("CPU", 0)), gpus)
        except RuntimeFailure:
            if self._started:
                ray.shutdown()
            raise
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
            if self._started:
                ray.shutdown()  # ends the actors, too, and without a complaint about what they were doing
            else:
                for actor in [*self._pool, self._server]:
                    ray.kill(actor, no_restart=True)
        self._pool = []
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.close()  # it looks once more, and ends
            self._watchdog = None


def _start(workers: int | None, gpus_per_worker: float | None) -> None:
    """Join the cluster in ``RAY_ADDRESS``, or start a local one without dashboard or worker chatter."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get("RAY_ADDRESS", "")
    cpus = os.cpu_count() or 1
    if not address:
        _require_room(
            workers or 1, gpus_per_worker or 0.0, max(_LEAST_ROOM, _WORKERS_PER_CPU * cpus), torch.cuda.device_count()
        )
    if address:
        _require_answer(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _init(address, max(workers or 0, cpus))
    except (ConnectionError, TimeoutError, ValueError, RuntimeError) as error:
        where = f"RAY_ADDRESS={address}" if address else "a local Ray"
        raise RuntimeFailure(
            f"{where} cannot be used ({' '.join(str(error).split())[:300]}); or use --runtime serial"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray puts its own in place, which dump the stack of a C++ library
                signal.signal(number, handler)


def _require_room(workers: int, gpus_per_worker: float, cpus: int, gpus: float) -> None:
    """``RuntimeFailure`` where actors would wait for ever for what the cluster does not have."""
    if workers > cpus:
        raise RuntimeFailure(
            f"runtime.workers is {workers}; allowed here: at most {cpus}, one for each CPU that there is room on"
        )
    wanted = gpus_per_worker * (workers + 1)
    if wanted > gpus:
        raise RuntimeFailure(
            f"runtime.gpus_per_worker is {gpus_per_worker:g}: {workers} workers and the server need {wanted:g} GPUs, "
            f"found {gpus:g}; allowed: at most {gpus / (workers + 1):.3g}, or null to divide what there is"
        )


def _require_answer(address: str) -> None:
    """``RuntimeFailure`` where nobody, or no Ray, answers at ``host:port``: Ray itself would ask again for minutes.

    Every server of Ray speaks gRPC, so it answers an HTTP/2 greeting with a frame of settings (RFC 9113, section 3.4).
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return  # auto, local
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0")
            if connection.recv(9)[3:4] != b"\x04":
                raise ConnectionError("whoever answers there is no Ray")
    except (OSError, OverflowError) as error:
        raise RuntimeFailure(
            f"RAY_ADDRESS={address}: no Ray cluster answers there ({error}); start it, or unset RAY_ADDRESS for a local one"
        ) from error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What Ray's C++ library writes about a cluster that does not answer goes nowhere: the error that follows says it all."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _init(address: str, cpus: int) -> None:
    if address:
        with _silence():
            ray.init(log_to_driver=False, logging_level="ERROR")
        return
    ray.init(
        address="local",  # of our own, also where another Ray runs on this machine
        num_cpus=cpus,
        object_store_memory=_LOCAL_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        configure_logging=True,
    )
