"""Joining the cluster that ``RAY_ADDRESS`` names, or starting one on this machine; every trouble is one line."""

import contextlib
import importlib.util
import io
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import ray

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import process
from fedgraph.runtime.ray.actor import RUN_GOES_ON
from fedgraph.runtime.ray.places import PlaceNode

_DASHBOARD = "FEDGRAPH_DASHBOARD"  # set: a local Ray starts its dashboard, and this is said
_PATIENCE = 5.0  # seconds for a cluster to answer
_WORKERS_PER_CPU, _LEAST_ROOM = 4, 8  # of a local pool
_LONGEST_FOLDER = 40  # bytes: a socket's path has 107 at most, and Ray adds "/ray/session_…/sockets/plasma_store", up to 67
_SHORT_FOLDER = "/tmp/ray"  # where Ray keeps sockets if TMPDIR says nothing
_INLINE_BYTES = 2 * 1024**2  # of a message that travels by itself; larger ones go through the object store, which takes 10 ms
_LOCAL_STORE_BYTES = 768 * 1024**2


def connect(workers: int | None) -> None:
    """Join the cluster in ``RAY_ADDRESS``, or start a local one."""
    if os.environ.get(_DASHBOARD) and not os.environ.get("RAY_ADDRESS") and importlib.util.find_spec("aiohttp_cors") is None:
        raise RuntimeFailure("--watch starts Ray's dashboard, which is not installed; install fedgraph-privacy[cluster]")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # of calls that nobody waits for, since another one has failed
    os.environ.setdefault("RAY_max_direct_call_object_size", str(_INLINE_BYTES))  # read by every process that starts here
    address = os.environ.get("RAY_ADDRESS", "")
    cpus = process.num_cpus()
    if address:
        _require_answer(address)
    elif (workers or 1) > (most := max(_LEAST_ROOM, _WORKERS_PER_CPU * cpus)):
        raise RuntimeFailure(f"runtime.workers is {workers}; allowed here: at most {most}, since this machine has {cpus} CPUs")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _init(address, max(workers or 0, cpus))
    except RuntimeFailure:
        raise
    except Exception as error:  # where a machine is too busy to start Ray in time, Ray raises a bare one
        where = f"RAY_ADDRESS={address}" if address else "a local Ray"
        token = "; if it asks for a token, set RAY_AUTH_MODE=token" if address and not os.environ.get("RAY_AUTH_MODE") else ""
        raise RuntimeFailure(
            f"{where} cannot be used ({' '.join(str(error).split())[:300]}){token}; or use --runtime serial"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray puts its own in place, which dump the stack of a C++ library
                signal.signal(number, handler)


def list_nodes() -> tuple[list[PlaceNode], Mapping[str, float]]:
    """(the machines that are alive, the driver's first; all that they have): one look, since another may see more of them."""
    own, has, found = ray.get_runtime_context().get_node_id(), Counter[str](), []
    for node in (n for n in ray.nodes() if n["Alive"]):
        has.update(node["Resources"])
        place = PlaceNode(node["NodeManagerHostname"], node["Resources"].get("CPU", 0.0), node["Resources"].get("GPU", 0.0))
        found.append((node["NodeID"] != own, place))
    return [node for _, node in sorted(found, key=lambda pair: (pair[0], pair[1].name))], has


class ClusterRaylet:
    """The raylet of this machine. Where it dies, Ray ends the driver with a dump some seconds later."""

    def __init__(self) -> None:
        own = ray.get_runtime_context().get_node_id()
        name = next(n["RayletSocketName"] for n in ray.nodes() if n["NodeID"] == own)
        found = (entry for entry in Path("/proc").glob("[0-9]*") if _is_raylet(entry, name))
        self._process = next(found, None)  # None: this machine does not show its processes

    def require(self) -> None:
        """``RuntimeFailure`` where it is dead, also where its parent has not asked how it ended."""
        if self._process is not None and _state(self._process) in ("", "Z", "X"):
            raise RuntimeFailure(f"Ray's raylet on this machine has died; {RUN_GOES_ON}")


def _is_raylet(entry: Path, name: str) -> bool:
    with contextlib.suppress(OSError):
        words = (entry / "cmdline").read_bytes().split(b"\0")
        return words[0].endswith(b"/raylet") and f"--raylet_socket_name={name}".encode() in words
    return False


def _state(entry: Path) -> str:
    """The letter of proc(5); empty where the process is gone."""
    with contextlib.suppress(OSError):
        return (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    return ""


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


def folder_of_sockets() -> str | None:
    """A short folder for a local Ray's sockets where ``TMPDIR`` names a long one; None: Ray takes its usual one.

    Raises:
        RuntimeFailure: ``RAY_TMPDIR`` is long, or ``TMPDIR`` is and the short folder cannot be written.
    """
    name = "RAY_TMPDIR" if os.environ.get("RAY_TMPDIR") else "TMPDIR"
    given = os.environ.get(name) or ""
    length = len(os.fsencode(given))
    if length <= _LONGEST_FOLDER:
        return None
    if name == "TMPDIR":
        with contextlib.suppress(OSError):
            os.makedirs(_SHORT_FOLDER, exist_ok=True)
            if os.access(_SHORT_FOLDER, os.W_OK | os.X_OK):
                return _SHORT_FOLDER
    raise RuntimeFailure(
        f"{name} has {length} characters, and Ray's sockets need a folder of at most {_LONGEST_FOLDER}; "
        "set RAY_TMPDIR to a short folder, or use --runtime serial"
    )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What Ray's C++ library writes while it starts goes nowhere: of a machine without a network, or of a cluster that does not
    answer. Where it fails, the error that follows says it all. What Python prints is shown: a run goes on beside the start.
    """
    kept, nowhere, before = os.dup(2), os.open(os.devnull, os.O_WRONLY), sys.stderr
    if before is sys.__stderr__ and isinstance(before, io.TextIOWrapper):  # another one does not write to 2
        before.flush()
        # This copy stays open: another thread may be about to write to it when the start is over.
        sys.stderr = open(os.dup(2), "w", 1, before.encoding, before.errors, closefd=False)  # noqa: SIM115
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        sys.stderr = before
        os.close(kept)
        os.close(nowhere)


def _init(address: str, cpus: int) -> None:
    if address:
        with _silence():
            ray.init(log_to_driver=False, logging_level="ERROR")
        return
    dashboard, folder = bool(os.environ.get(_DASHBOARD)), folder_of_sockets()
    with _silence(), process.keep_child_memory():
        made = ray.init(
            address="local",  # of our own, also where another Ray runs on this machine
            num_cpus=cpus,
            object_store_memory=_LOCAL_STORE_BYTES,
            include_dashboard=dashboard,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=True,
            **({} if folder is None else {"_temp_dir": folder}),
        )
    if dashboard:
        print(f"Ray's dashboard: http://{made.dashboard_url}", file=sys.stderr)
