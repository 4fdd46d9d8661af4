"""A process that outlives a killed driver by seconds, to end what Ray started for it.

A driver that gets SIGKILL cannot say goodbye. Its raylet dies with it, but Ray's agents notice only in their own time. The
watchdog holds the read end of a pipe whose write end only the driver has: the end of the file means that the driver is gone.
Until then it notes the driver's descendants; afterwards it kills those that are still there. A driver that ends its runtime
itself dismisses the watchdog, which then touches nothing; and what the driver had begun before the watchdog is never touched:
the driver may be somebody's notebook, with other work in other processes. It imports nothing of ours.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_TO_END_ALONE = 3.0
_MOST_PASSES = 10
_GOODBYE = b"."
_MARK = "FEDGRAPH_DRIVER"  # in the environment of whatever a driver begins, also of what its parents left alone


def start() -> subprocess.Popen[bytes] | None:
    """A watchdog for this process; None on a system without ``/proc``. End it with ``dismiss``."""
    if not os.path.isdir("/proc/self"):
        return None
    others = [f"{pid}:{when}" for pid, when in family(os.getpid())]
    os.environ[_MARK] = f"{os.getpid()}.{time.monotonic_ns()}"
    command = [sys.executable, "-S", "-E", os.path.abspath(__file__), str(os.getpid()), *others]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def dismiss(dog: subprocess.Popen[bytes], ended: bool = True) -> None:
    """The watchdog ends: where the driver has ``ended`` its runtime itself it kills nothing."""
    os.environ.pop(_MARK, None)
    if dog.stdin is not None:
        with contextlib.suppress(OSError):  # it may be gone already
            dog.stdin.write(_GOODBYE if ended else b"")
            dog.stdin.close()
    dog.wait()


def _parent_and_begin(pid: int) -> tuple[int, int] | None:
    """(its parent, when it began in ticks since boot); None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19])


def _began(pid: int) -> int | None:
    """When the process began, in ticks since boot; None where there is none."""
    found = _parent_and_begin(pid)
    return None if found is None else found[1]


def is_running(pid: int) -> bool:
    """Whether the process is there and has not ended, also where its parent has not asked how."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def find_process(program: str, argument: str) -> int | None:
    """The process whose program ends so and that has this argument; None where there is none, or no ``/proc``."""
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
            words = file.read().split("\0")
            if words[0].endswith(program) and argument in words:
                return int(name)
    return None


def family(*ancestors: int) -> set[tuple[int, int]]:
    """(process, when it began) of every living descendant, but for this process."""
    living = ((int(name), _parent_and_begin(int(name))) for name in os.listdir("/proc") if name.isdigit())
    known = {pid: found for pid, found in living if found is not None}
    found, new = set[int](), set(ancestors)
    while new := {pid for pid, (parent, _) in known.items() if parent in new} - found - set(ancestors):
        found |= new
    return {(pid, known[pid][1]) for pid in found if pid != os.getpid()}


def _marked() -> set[tuple[int, int]]:
    """(process, when it began) of whatever the driver, or what it began, has begun since it is watched; not this process."""
    found, mark = set(), f"{_MARK}={os.environ.get(_MARK)}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark in file.read().split(b"\0") and (when := _began(int(name))) is not None:
                found.add((int(name), when))
    return {(pid, when) for pid, when in found if pid != os.getpid()}


def _alive(those: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(pid, when) for pid, when in those if _began(pid) == when}


def _kill(those: set[tuple[int, int]]) -> None:
    for pid, _ in those:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def watched_ray_processes(driver: int, where: str) -> set[tuple[int, int]]:
    """(process, when it began) of what Ray runs below ``driver``: what names Ray's folder ``where``, and what that started."""
    servers = []
    for pid, _ in family(driver):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if where.encode() in file.read():
                servers.append(pid)
    return {(pid, when) for pid, when in family(driver) if pid in servers} | family(*servers)


def end_watched_processes(those: set[tuple[int, int]]) -> None:
    """Wait ``_SECONDS_TO_END_ALONE`` for these processes to go, then kill the others."""
    until = time.monotonic() + _SECONDS_TO_END_ALONE
    while _alive(those) and time.monotonic() < until:
        time.sleep(0.05)
    _kill(_alive(those))


def _watch_pipe(driver: int, others: set[tuple[int, int]]) -> None:
    """Until the pipe ends: look. Then end what is left, unless the driver said goodbye, and but for ``others`` and theirs."""
    seen: set[tuple[int, int]] = set()
    ready = False
    while not ready:
        others |= family(*(pid for pid, _ in _alive(others)))
        seen |= family(driver) - others
        ready = bool(select.select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)[0])
    if os.read(sys.stdin.fileno(), 1) == _GOODBYE:
        return
    seen |= (family(*(pid for pid, _ in _alive(seen))) | _marked()) - others  # also what was begun since the last look
    time.sleep(_SECONDS_TO_END_ALONE)
    for _ in range(_MOST_PASSES):  # what is killed may have begun something in its last moment
        left = _alive(seen)
        seen |= family(*(pid for pid, _ in left))
        _kill(left)
        if not left:
            break
        time.sleep(0.2)


if __name__ == "__main__":
    _watch_pipe(int(sys.argv[1]), {(int(pid), int(when)) for pid, _, when in (other.partition(":") for other in sys.argv[2:])})
