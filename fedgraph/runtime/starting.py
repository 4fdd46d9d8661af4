"""Starting an engine; Ray is imported only if it is asked for."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import process
from fedgraph.runtime.base import Runtime

_ENGINES = ("ray", "serial")


def start(engine: str, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> Runtime:
    """A running engine. BLAS and torch use one thread from here on.

    Args:
        engine: ``serial`` or ``ray``.
        workers: Number of places for actors of Ray; None: one for each CPU of the cluster.
        gpus_per_worker: GPUs of each place, or a share of one; None divides those of the cluster.
        silence: Seconds without a sign of life after which an actor counts as dead.

    Raises:
        RuntimeFailure: The engine is unknown, or Ray cannot be imported or started.
    """
    process.use_one_thread()
    process.keep_memory()
    if engine == "serial":
        from fedgraph.runtime.serial import SerialRuntime

        return SerialRuntime()
    if engine != "ray":
        raise RuntimeFailure(f"unknown runtime {engine!r}; allowed: {', '.join(_ENGINES)}")
    if os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "5")  # read when Ray is imported: a few seconds, not minutes
    try:
        from fedgraph.runtime.ray import RayRuntime
    except ImportError as error:
        raise RuntimeFailure(f"Ray cannot be imported ({error}); install it, or use --runtime serial") from error
    return RayRuntime(workers, gpus_per_worker, silence)


@dataclass(frozen=True, eq=False)
class RuntimeBeginning:
    """An engine that starts while its caller goes on."""

    ready: Callable[[], Runtime]  # waits for the engine, or raises the error of its start
    is_up: Callable[[], bool]  # whether ``ready`` would not wait


@contextmanager
def start_beside(
    engine: str, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0
) -> Iterator[RuntimeBeginning]:
    """Starts an engine and a first curator while the caller goes on; the engine closes at the end of the ``with``.

    A local Ray starts in a thread. An engine that joins a cluster (``RAY_ADDRESS``) starts in ``ready``, since messages of Ray
    about a cluster that does not answer are held back, and so would be those of the caller. The thread lives as long as the
    engine, because Linux ends the processes of Ray with the *thread* that started them.
    """

    def begin() -> Runtime:
        found = start(engine, workers, gpus_per_worker, silence)
        found.open("curator", most=1)
        return found

    process.use_one_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with ThreadPoolExecutor(1, "start of Ray") as thread, ExitStack() as stack:
        begun = thread.submit(begin) if engine == "ray" and not os.environ.get("RAY_ADDRESS") else None
        made: list[Runtime] = []

        def ready() -> Runtime:
            if not made:
                try:
                    made.append(begun.result() if begun is not None else begin())
                finally:
                    if begun is not None and threading.current_thread() is threading.main_thread():
                        for number, handler in handlers.items():  # Ray's C++ library puts its own in place
                            signal.signal(number, handler)
                stack.callback(made[0].close)
            return made[0]

        try:
            yield RuntimeBeginning(ready, lambda: begun is None or begun.done())
        finally:
            if begun is not None and not made:
                with suppress(Exception):
                    ready()
