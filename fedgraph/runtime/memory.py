"""Freed memory stays with the process inside a cell, and goes back to the system after it.

glibc gives blocks above 32 MB back at once, and the next product asks for them again: on 28 campuses a third of the processor
time of a GAP cell went into pages that were given back and cleared again. But the next cell asks for other sizes, and free
blocks between used ones only add up: ``benchmarks/campuses.yaml`` took 9.4 GB where nothing was given back.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator

LARGEST, KEPT = (1 << 31) - 1, 1 << 30  # bytes: a block that still comes from the heap; free bytes at its end that are kept
LITTLE = 1 << 28  # free bytes that are not worth looking for their pages
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of mallopt(3)
_VARIABLES = {"MALLOC_MMAP_THRESHOLD_": LARGEST, "MALLOC_TRIM_THRESHOLD_": KEPT, "MALLOC_ARENA_MAX": 1}


class _State(ctypes.Structure):
    """What mallinfo2(3) returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    ]


def keep_freed() -> None:
    """For this process, from now on; nothing happens where the C library is not glibc, or where its variables say otherwise."""
    if any(name in os.environ for name in _VARIABLES):
        return
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, LARGEST)
        mallopt(_TRIM_THRESHOLD, KEPT)


def give_back() -> None:
    """What is free now goes back to the system, where it is much; nothing happens without glibc 2.33 or later."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        state = library.mallinfo2
        state.restype = _State
        if state().fordblks > LITTLE:
            library.malloc_trim(ctypes.c_size_t(0))


@contextlib.contextmanager
def kept_by_children() -> Iterator[None]:
    """For the processes that are started inside the ``with``; one heap for all threads, since further ones have small parts."""
    if any(name in os.environ for name in _VARIABLES):
        yield
        return
    os.environ.update({name: str(value) for name, value in _VARIABLES.items()})
    try:
        yield
    finally:
        for name in _VARIABLES:
            os.environ.pop(name, None)
