"""What holds for every process of a run: one thread, freed memory that stays, and versions that are equal everywhere.

Parallelism comes from actors, so sums do not depend on the machine's cores.

Freed memory stays with the process inside a cell, and goes back to the system after it. glibc gives blocks above 32 MB back at
once, and the next product asks for them again: on 28 campuses a third of the processor time of a GAP cell went into pages that
were given back and cleared again. But the next cell asks for other sizes, and free blocks between used ones only add up:
``benchmarks/campuses.yaml`` took 9.4 GB where nothing was given back.
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

_LARGEST, _KEPT = (1 << 31) - 1, 1 << 30  # bytes: a block that still comes from the heap; free bytes at its end that are kept
_LITTLE = 1 << 28  # free bytes that are not worth looking for their pages
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of mallopt(3)
_VARIABLES = {"MALLOC_MMAP_THRESHOLD_": _LARGEST, "MALLOC_TRIM_THRESHOLD_": _KEPT, "MALLOC_ARENA_MAX": 1}
_COMPUTING = ("torch", "numpy", "scipy", "POT", "numba")  # another version of these may give other numbers


def num_cpus() -> int:
    """CPUs that this process may use: of its affinity mask, and as many as its container's quota pays for (cgroup v2, v1)."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):
            quota, period = " ".join(Path("/sys/fs/cgroup", name).read_text(encoding="utf-8") for name in files).split()
            if quota != "max" and float(quota) > 0:
                count = min(count, max(1, math.ceil(float(quota) / float(period))))
    return count


def use_one_thread() -> None:
    """Limit torch and the BLAS of this process to one thread. A torch that is imported later reads the variable itself."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)


class _State(ctypes.Structure):
    """What mallinfo2(3) returns."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def keep_memory() -> None:
    """For this process, from now on; nothing happens where the C library is not glibc, or where its variables say otherwise."""
    if not any(name in os.environ for name in _VARIABLES):
        with contextlib.suppress(AttributeError, OSError, TypeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_MMAP_THRESHOLD, _LARGEST)
            mallopt(_TRIM_THRESHOLD, _KEPT)


def give_back_process_memory() -> None:
    """What is free now goes back to the system, where it is much; nothing happens without glibc 2.33 or later."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        state = library.mallinfo2
        state.restype = _State
        if state().fordblks > _LITTLE:
            library.malloc_trim(ctypes.c_size_t(0))


@contextlib.contextmanager
def keep_child_memory() -> Iterator[None]:
    """For the processes that are started inside the ``with``; one heap for all threads, since further ones have small parts."""
    own = {} if any(name in os.environ for name in _VARIABLES) else {name: str(value) for name, value in _VARIABLES.items()}
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            os.environ.pop(name, None)


@dataclass(frozen=True)
class ProcessVersions:
    """What one process computes with."""

    python: str  # its version
    # (name, version) of each package whose version may change numbers; those that offer plugins among them
    packages: tuple[tuple[str, str], ...]
    source: str  # a digest over all of fedgraph's ``.py`` files


@functools.cache  # what it has imported stays as it is
def own_versions() -> ProcessVersions:
    """Of this process."""
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
    """``RuntimeFailure`` that names the first machine whose versions differ, and every difference."""
    for where, there in others:
        named = (("python", here.python), *here.packages, ("fedgraph's source", here.source))
        found = {"python": there.python, **dict(there.packages), "fedgraph's source": there.source}
        if words := "; ".join(
            f"{name}: driver {a}, worker {b}" for name, a in named if a != (b := found.get(name, "not installed"))
        ):
            raise RuntimeFailure(f"the worker on {where} is not what the driver is ({words}); install the same there")
