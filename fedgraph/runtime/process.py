"""What holds for every process of a run: one thread, freed memory that is kept inside a cell, and equal versions everywhere.

Parallelism comes from actors, so sums do not depend on the machine's cores.

A process keeps freed memory inside a cell, and gives it back to the system after the cell. glibc gives blocks above 32 MB back
at once, and the next product asks for them again: on 28 campuses this took a third of the processor time of a GAP cell. Without
giving back after a cell ``benchmarks/campuses.yaml`` took 9.4 GB, since the next cell asks for blocks of other sizes.
"""

import contextlib
import ctypes
import functools
import hashlib
import importlib.metadata
import math
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import threadpoolctl

from fedgraph import plugins
from fedgraph.errors import RuntimeFailure

_LARGEST, _KEPT = (1 << 31) - 1, 1 << 30  # bytes: largest block of the heap; free bytes at the heap's end that are kept
_LITTLE = 1 << 28  # free bytes up to which nothing is given back
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of mallopt(3)
_VARIABLES = {"MALLOC_MMAP_THRESHOLD_": _LARGEST, "MALLOC_TRIM_THRESHOLD_": _KEPT, "MALLOC_ARENA_MAX": 1}
_COMPUTING = ("torch", "numpy", "scipy", "POT", "numba")  # another version of these may give other numbers


def num_cpus() -> int:
    """Number of CPUs that this process may use, by its affinity mask and by its container's quota (cgroup v2 or v1)."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):
            quota, period = " ".join(Path("/sys/fs/cgroup", name).read_text(encoding="utf-8") for name in files).split()
            if quota != "max" and float(quota) > 0:
                count = min(count, max(1, math.ceil(float(quota) / float(period))))
    return count


def use_one_thread() -> None:
    """Limits torch and BLAS to one thread. A torch that is imported later reads the variable ``OMP_NUM_THREADS``."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)


class _State(ctypes.Structure):
    """The result of mallinfo2(3)."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def keep_memory() -> None:
    """Makes this process keep freed memory; does nothing without glibc, or if the user has set its variables."""
    if not any(name in os.environ for name in _VARIABLES):
        with contextlib.suppress(AttributeError, OSError, TypeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_MMAP_THRESHOLD, _LARGEST)
            mallopt(_TRIM_THRESHOLD, _KEPT)


def give_back_process_memory() -> None:
    """Gives free memory back to the system if it is much; does nothing without glibc 2.33 or later."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        state = library.mallinfo2
        state.restype = _State
        if state().fordblks > _LITTLE:
            library.malloc_trim(ctypes.c_size_t(0))


@contextlib.contextmanager
def keep_child_memory() -> Iterator[None]:
    """Makes processes that start inside the ``with`` keep freed memory, in one heap for all threads."""
    own = {} if any(name in os.environ for name in _VARIABLES) else {name: str(value) for name, value in _VARIABLES.items()}
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            os.environ.pop(name, None)


@dataclass(frozen=True)
class ProcessVersions:
    """The versions that one process computes with."""

    python: str
    # (name, version) of each package whose version may change numbers, and of packages that offer plugins
    packages: tuple[tuple[str, str], ...]
    source: str  # a digest of all of fedgraph's ``.py`` files


@functools.cache  # modules that were imported do not change
def own_versions() -> ProcessVersions:
    """The versions of this process."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    packages = (*((name, _version(name)) for name in _COMPUTING), *plugins.distributions())
    return ProcessVersions(platform.python_version(), packages, digest.hexdigest()[:16])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name).partition("+")[0]  # +cpu and +cu126 are builds of one version
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def require_equal_versions(here: ProcessVersions, others: Sequence[tuple[str, ProcessVersions]]) -> None:
    """``RuntimeFailure`` if a machine's versions differ from ``here``; it names the first such machine, and each difference.

    others: (name of a machine, its versions).
    """
    for where, there in others:
        named = (("python", here.python), *here.packages, ("fedgraph's source", here.source))
        found = {"python": there.python, **dict(there.packages), "fedgraph's source": there.source}
        if words := "; ".join(
            f"{name}: driver {a}, worker {b}" for name, a in named if a != (b := found.get(name, "not installed"))
        ):
            raise RuntimeFailure(f"the worker on {where} is not what the driver is ({words}); install the same there")
