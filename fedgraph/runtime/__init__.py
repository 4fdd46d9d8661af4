"""Engines. ``start`` is the only way in; Ray is imported only when asked for."""

import os

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime.base import Runtime
from fedgraph.runtime.beside import Beside
from fedgraph.runtime.memory import keep_freed
from fedgraph.runtime.threads import use_one_thread

ENGINES = ("ray", "serial")


def beside(engine: str, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> Beside:
    """``start`` that has begun and is waited for later; for ``with``."""
    use_one_thread()
    return Beside(engine, lambda: _begun(engine, workers, gpus_per_worker, silence))


def _begun(engine: str, workers: int | None, gpus_per_worker: float | None, silence: float) -> Runtime:
    """An engine whose first curator comes up while the caller reads data and plans."""
    found = start(engine, workers, gpus_per_worker, silence)
    found.open("curator", most=1)
    return found


def start(engine: str, workers: int | None = None, gpus_per_worker: float | None = None, silence: float = 600.0) -> Runtime:
    """A running runtime: ``serial``, or ``ray`` with ``workers`` actors. This thread computes with one thread."""
    use_one_thread()
    keep_freed()
    if engine == "serial":
        from fedgraph.runtime.serial import SerialRuntime

        return SerialRuntime()
    if engine != "ray":
        raise RuntimeFailure(f"unknown runtime {engine!r}; allowed: {', '.join(ENGINES)}")
    if os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "5")  # read when Ray is imported: a few seconds, not minutes
    try:
        from fedgraph.runtime.ray import RayRuntime
    except ImportError as error:
        raise RuntimeFailure(f"Ray cannot be imported ({error}); install it, or use --runtime serial") from error
    return RayRuntime(workers, gpus_per_worker, silence)
