"""Figures are drawn on all cores: a copy of this process draws one, while this process draws the next."""

import contextlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

Made = TypeVar("Made")
_room = 0  # copies of this process that may be at work at once
_at_work: list["_Copy[object]"] = []


@contextlib.contextmanager
def on_all_cores() -> Iterator[None]:
    """Inside, copies of this process help. Only where nothing else is computed here: a copy has one thread."""
    global _room
    _room = (os.cpu_count() or 1) - 1 if sys.platform == "linux" else 0
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
    """A copy of this process that makes one thing. Where it fails, the thing is made here."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make, self._found, self._file = make, list[Made](), tempfile.TemporaryFile()  # noqa: SIM115 closed at its end
        self._process = os.fork()
        if not self._process:
            with contextlib.suppress(BaseException):
                pickle.dump(make(), self._file)
                self._file.flush()
                os._exit(0)
            os._exit(1)
        _at_work.append(cast(_Copy[object], self))

    def look(self) -> None:
        """Take what it made, if it has ended."""
        self._take(*os.waitpid(self._process, os.WNOHANG))

    def end(self) -> None:
        """Wait for it."""
        self._take(*os.waitpid(self._process, 0))

    def _take(self, process: int, status: int) -> None:
        if process:
            _at_work.remove(cast(_Copy[object], self))
            with self._file:
                if status == 0:
                    self._file.seek(0)
                    self._found.append(cast(Made, pickle.load(self._file)))

    def __call__(self) -> Made:
        if self in _at_work:
            self.end()
        if not self._found:
            self._found.append(self._make())
        return self._found[0]
