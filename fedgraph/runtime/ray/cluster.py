"""Joining the cluster that ``RAY_ADDRESS`` names, or starting a local one; each failure is an error of one line."""

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

_DASHBOARD = "FEDGRAPH_DASHBOARD"  # if it is set, a local Ray starts its dashboard, and its address is printed
_PATIENCE = 5.0  # seconds for a cluster to answer
_WORKERS_PER_CPU, _LEAST_ROOM = 4, 8  # a local Ray may have 4 workers for each CPU, and always 8
_LONGEST_FOLDER = 40  # bytes: a socket's path has 107 at most, and Ray adds "/ray/session_…/sockets/plasma_store", up to 67
_SHORT_FOLDER = "/tmp/ray"  # Ray's folder of sockets if TMPDIR is not set
_INLINE_BYTES = 2 * 1024**2  # of a message that travels inside its call; a larger one goes through the store, which takes 10 ms
_LOCAL_STORE_BYTES = 768 * 1024**2


def connect(workers: int | None) -> None:
    """Joins the cluster in ``RAY_ADDRESS``, or starts a local one with a CPU for each of ``workers``.

    ``RuntimeFailure`` if this fails, if the dashboard is asked for and not installed, or if a local Ray has too many workers.
    """
    if os.environ.get(_DASHBOARD) and not os.environ.get("RAY_ADDRESS") and importlib.util.find_spec("aiohttp_cors") is None:
        raise RuntimeFailure("--watch starts Ray's dashboard, which is not installed; install fedgraph-privacy[cluster]")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # of calls that nobody waits for after another one failed
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
    except Exception as error:  # Ray raises a bare one if the machine is too busy to start it in time
        where = f"RAY_ADDRESS={address}" if address else "a local Ray"
        token = "; if it asks for a token, set RAY_AUTH_MODE=token" if address and not os.environ.get("RAY_AUTH_MODE") else ""
        raise RuntimeFailure(
            f"{where} cannot be used ({' '.join(str(error).split())[:300]}){token}; or use --runtime serial"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray installs its own, which dump the stack of a C++ library
                signal.signal(number, handler)


def list_nodes() -> tuple[list[PlaceNode], Mapping[str, float]]:
    """(the living machines, the driver's first; the sum of their resources), both of one look at the cluster."""
    own, has, found = ray.get_runtime_context().get_node_id(), Counter[str](), []
    for node in (n for n in ray.nodes() if n["Alive"]):
        has.update(node["Resources"])
        place = PlaceNode(node["NodeManagerHostname"], node["Resources"].get("CPU", 0.0), node["Resources"].get("GPU", 0.0))
        found.append((node["NodeID"] != own, place))
    return [node for _, node in sorted(found, key=lambda pair: (pair[0], pair[1].name))], has


class ClusterRaylet:
    """The raylet of this machine. If it dies, Ray ends the driver with a dump some seconds later."""

    def __init__(self) -> None:
        own = ray.get_runtime_context().get_node_id()
        name = next(n["RayletSocketName"] for n in ray.nodes() if n["NodeID"] == own)
        found = (entry for entry in Path("/proc").glob("[0-9]*") if _is_raylet(entry, name))
        self._process = next(found, None)  # None: this machine does not show its processes

    def require(self) -> None:
        """``RuntimeFailure`` if it is dead, also as a zombie."""
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
    """``RuntimeFailure`` if no Ray answers at ``host:port``: Ray itself would ask again for minutes.

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
    """A short folder for a local Ray's sockets if ``TMPDIR`` names a long one; None: Ray takes its usual one.

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
    """Discards what Ray's C++ library writes to stderr while it starts; an error says what failed. What Python prints is shown,
    since a run may go on in another thread.
    """
    kept, nowhere, before = os.dup(2), os.open(os.devnull, os.O_WRONLY), sys.stderr
    if before is sys.__stderr__ and isinstance(before, io.TextIOWrapper):  # any other one does not write to 2
        before.flush()
        # This copy stays open: another thread may be writing to it when the start ends.
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
            address="local",  # a new one, even if another Ray runs on this machine
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
