"""An engine that starts while its caller reads data: the processes of Ray take seconds to come up, on other cores.

Only an engine on this machine starts in a thread of its own. One that joins a cluster (``RAY_ADDRESS``) starts when it is asked
for: what Ray prints meanwhile about a cluster that does not answer has to be held back, and that holds for the whole process.

The thread lives as long as the engine: for Linux the parent of Ray's processes is the *thread* that began them, and they end
with it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import TracebackType

from fedgraph.runtime.base import Runtime


class Beside:
    """``ready()`` waits for the engine and gives it, or raises what kept it from starting; the end of the block closes it."""

    def __init__(self, engine: str, start: Callable[[], Runtime]) -> None:
        self._start = start
        self._engine: Runtime | None = None
        self._error: BaseException | None = None
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._thread: threading.Thread | None = None
        self._begun, self._over = threading.Event(), threading.Event()
        if engine == "ray" and not os.environ.get("RAY_ADDRESS"):
            self._thread = threading.Thread(target=self._held, name="start of Ray", daemon=True)
            self._thread.start()

    def _held(self) -> None:
        self._begin()
        self._begun.set()
        self._over.wait()

    def _begin(self) -> None:
        try:
            self._engine = self._start()
        except BaseException as error:
            self._error = error

    def ready(self) -> Runtime:
        """The engine; waits for it."""
        if self._thread is not None:
            self._wait()
        elif self._engine is None and self._error is None:
            self._begin()
        if self._error is not None:
            raise self._error
        assert self._engine is not None
        return self._engine

    def _wait(self) -> None:
        self._begun.wait()
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._handlers.items():  # Ray's C++ library puts its own in place
                signal.signal(number, handler)

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread is not None:
            self._wait()
        if self._engine is not None:
            self._engine.close()
        self._over.set()
