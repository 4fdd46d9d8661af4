"""What is printed beside results, and what is waited for; at the import, a warning of another distribution of our name."""

import contextlib
import fcntl
import io
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

_PATIENCE = 5.0  # seconds after which a lock that is waited for is named; then ever more seldom
_logger = logging.getLogger("fedgraph")


def replace_unprintable() -> None:
    """Makes the terminal print ``?`` in place of a character that its encoding lacks, and go on.

    An encoding without Greek letters (``PYTHONIOENCODING=ascii``) would otherwise end a run at its first ε. It changes standard
    output and standard error of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def lock(descriptor: int, place: str) -> None:
    """The lock of an open file, for this process alone; it waits its turn, and says after some seconds who has the lock.

    Raises:
        OSError: The file system knows no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with telling(place, lambda: _holder(descriptor)):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextlib.contextmanager
def telling(place: str, holder: Callable[[], str]) -> Iterator[None]:
    """While a lock is waited for inside, warnings say so, with what has it; nothing is given up."""
    done = threading.Event()

    def tell() -> None:
        pause = _PATIENCE
        while not done.wait(pause):
            _logger.warning("%s: locked by %s; waiting (Ctrl-C leaves, and nothing is lost)", place, holder())
            pause *= 2

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _holder(descriptor: int) -> str:
    """Who has the lock of a file, as Linux lists it."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/locks", encoding="ascii") as listed:
        number = str(os.fstat(descriptor).st_ino)
        for words in map(str.split, listed):
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == number:
                return f"process {words[4]}"
    return "another process"


def _warn_of_another_fedgraph(places: list[str]) -> None:
    """One warning where CMU's distribution ``fedgraph``, which imports under the same name, is installed, too.

    Not in ``fedgraph/__init__.py``, which is the other's where that was installed last. places: folders of the import path.
    """
    for place in places:
        try:
            found = next((n for n in os.listdir(place or ".") if re.fullmatch(r"fedgraph-[^-]+\.(dist|egg)-info", n)), None)
        except OSError:
            continue
        if found:
            warnings.warn(
                f"{os.path.join(place, found)}: the distribution 'fedgraph' (CMU's FedGraph) and 'fedgraph-privacy' have one "
                "import name, and the files of one may have replaced the other's; allowed: one of them in an environment "
                "(pip uninstall fedgraph fedgraph-privacy, then install one)",
                stacklevel=4,
            )
            return


_warn_of_another_fedgraph(sys.path)
