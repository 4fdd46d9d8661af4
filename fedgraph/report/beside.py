"""Figures are drawn on all cores: a copy of this process draws one, while this process draws the next."""

import contextlib
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

Made = TypeVar("Made")
MOST_COPIES = 7  # at once: each may need 100 MB
SECONDS_TO_DRAW = 60.0  # a copy that takes longer may wait for a lock that no thread of it holds
SECONDS_BETWEEN_LOOKS = 0.005
_room = 0  # copies of this process that may be at work at once
_at_work: list["_Copy[object]"] = []


@contextlib.contextmanager
def on_all_cores() -> Iterator[None]:
    """Inside, copies of this process help. Only where nothing else is computed here: a copy has one thread."""
    global _room
    _room = min(len(os.sched_getaffinity(0)) - 1, MOST_COPIES) if sys.platform == "linux" else 0
    try:
        yield
    finally:
        _room = 0
        while _at_work:
            _at_work[0].end()


def made_beside(make: Callable[[], Made]) -> Callable[[], Made]:
    """Gives what ``make()`` returns: made in a copy of this process where one is free, or else here and now."""
    for copy in list(_at_work):
        copy.look()
    if len(_at_work) < _room:
        with contextlib.suppress(OSError):  # no room for another process or file
            return _Copy(make)
    made = make()
    return lambda: made


class _Copy(Generic[Made]):
    """A copy of this process that makes one thing. Where it fails, or never ends, the thing is made here."""

    def __init__(self, make: Callable[[], Made]) -> None:
        global _room
        self._make, self._found, self._began = make, list[Made](), time.monotonic()
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(tempfile.TemporaryFile())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: see SECONDS_TO_DRAW
                self._process = os.fork()
            stack.pop_all()  # closed by ``look``
        if not self._process:
            with contextlib.suppress(BaseException):
                _room = 0
                pickle.dump(make(), self._file)
                self._file.flush()
                os._exit(0)
            os._exit(1)
        _at_work.append(cast(_Copy[object], self))

    def look(self) -> None:
        """Take what it made, if it has ended."""
        try:
            process, status = os.waitpid(self._process, os.WNOHANG)
        except ChildProcessError:  # it has ended, and nobody knows how: whoever began this process ignores SIGCHLD
            process, status = self._process, 0
        if process:
            _at_work.remove(cast(_Copy[object], self))
            with self._file, contextlib.suppress(EOFError, pickle.UnpicklingError):
                if status == 0:
                    self._file.seek(0)
                    self._found.append(cast(Made, pickle.load(self._file)))

    def end(self) -> None:
        """Wait for it; not for ever."""
        while self in _at_work:
            self.look()
            if self in _at_work and time.monotonic() - self._began > SECONDS_TO_DRAW:
                os.kill(self._process, signal.SIGKILL)
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def __call__(self) -> Made:
        self.end()
        if not self._found:
            self._found.append(self._make())
        return self._found[0]
