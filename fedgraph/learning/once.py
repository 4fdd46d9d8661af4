"""What follows from public data alone is computed once on a machine: one process keeps it in a folder, and the others read it.

A run has several processes, and each would train the same public encoder and find the same public directions. ``sharing``
makes the folder and removes it at the end; without one every process computes for itself. Only arrays that depend on public
data may be kept here: they are written to the disk.
"""

import contextlib
import hashlib
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import scipy.sparse as sp

Made = TypeVar("Made")
_MOST = 1 << 26  # bytes of what is kept: more takes long to write, and rarely fits into other processes
_folder: Path | None = None


def share_in(folder: str | None) -> None:
    """Keep in this folder and look there, from now on; on a machine that has no such folder, and for None, nowhere."""
    global _folder
    _folder = Path(folder) if folder is not None and Path(folder).is_dir() else None


def shared_in() -> str | None:
    """The folder, for ``share_in`` in another process."""
    return None if _folder is None else str(_folder)


@contextlib.contextmanager
def sharing() -> Iterator[None]:
    """A folder for the processes of one run; none where none can be made."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            share_in(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedgraph-", ignore_cleanup_errors=True)))
        try:
            yield
        finally:
            share_in(None)


def digest(*parts: object) -> str:
    """Names what is computed: equal for equal arrays (sparse ones too) and for others that are written alike."""
    found = hashlib.sha256()
    for part in parts:
        arrays = (part.indptr, part.indices, part.data) if isinstance(part, sp.csr_array) else (part,)
        for array in arrays:
            if isinstance(array, np.ndarray):
                found.update(f"{array.shape}{array.dtype.str}".encode())
                found.update(np.ascontiguousarray(array).data)
            else:
                found.update(repr(array).encode())
    return found.hexdigest()


def made_once(key: str, make: Callable[[], Made]) -> Made:
    """``make()``, or what another process made under this key; while one makes it, others wait.

    Args:
        key: names what is made, from public data (``digest``).
        make: of arrays alone, in tuples or records that can be pickled.
    """
    if _folder is None:
        return make()
    file = _folder / key
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # not on Windows

            fcntl.flock(stack.enter_context(open(f"{file}.lock", "w")), fcntl.LOCK_EX)
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            return cast(Made, pickle.loads(file.read_bytes()))
        found = make()
        text = pickle.dumps(found, protocol=5)
        if len(text) <= _MOST:
            with contextlib.suppress(OSError):  # a disk that is full: every process computes for itself
                file.write_bytes(text)
        return found
