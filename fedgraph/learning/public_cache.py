"""What follows from public data alone is computed once on a machine: one process keeps it in a folder, and the others read it.

A run has several processes, and each would train the same public encoder and find the same public directions.
``opened`` makes the folder and removes it at the end, and also those of runs that were killed; without one every
process computes for itself. Only arrays that depend on public data may be kept here: they are written to the disk.
"""

import contextlib
import hashlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import scipy.sparse as sp

_Made = TypeVar("_Made")
_MOST = 1 << 26  # bytes of what is kept: more takes long to write, and rarely fits into other processes
_folder: Path | None = None
_PREFIX, _OWNER = "fedgraph-once-", "owner"  # of folders, and the file in them that a living run has locked
_CHECKSUM_BYTES = hashlib.sha256().digest_size


def set_folder(folder: str | None) -> None:
    """Keep what is made in this folder and look there, from now on.
    folder: on a machine that has no such folder, and for None, nothing is shared.
    """
    global _folder
    _folder = Path(folder) if folder is not None and os.path.isdir(folder) else None


def folder() -> str | None:
    """The folder, for ``set_folder`` in another process; None where nothing is shared."""
    return None if _folder is None else str(_folder)


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Inside the ``with`` the processes of one run share a new folder; nothing is shared where none can be made.

    At its beginning it removes folders that killed runs left behind, and its own at the end.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):  # of this user, and its owner's lock is free
                with contextlib.suppress(OSError), contextlib.ExitStack() as lock:
                    own = left.lstat().st_uid == os.getuid() and (left / _OWNER).is_file()
                    if own and _locked(lock, left / _OWNER, wait=False):
                        shutil.rmtree(left)
            made = stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True))
            set_folder(made)
            _locked(stack, Path(made) / _OWNER)
        try:
            yield
        finally:
            set_folder(None)


def _locked(stack: contextlib.ExitStack, file: Path, wait: bool = True) -> bool:
    """Whether ``file`` is locked until ``stack`` ends: not where no file can be made, and not on a system without locks."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # not on Windows

        held = stack.enter_context(file.open("w"))
        fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def key_of(*parts: object) -> str:
    """Names what is computed: equal for equal arrays (sparse ones too, of one shape) and for others that are written alike."""
    found = hashlib.sha256()
    for part in parts:
        arrays = (part.shape, part.indptr, part.indices, part.data) if isinstance(part, sp.csr_array) else (part,)
        for array in arrays:
            if isinstance(array, np.ndarray):
                found.update(f"{array.shape}{array.dtype.str}".encode())
                found.update(np.ascontiguousarray(array).data)
            else:
                found.update(f"{array!r};".encode())
    return found.hexdigest()


def make(key: str, make: Callable[[], _Made]) -> _Made:
    """``make()``, or what another process made under this key; while one makes it, others wait.
    key: names what is made, from public data (``key_of``). make: of arrays alone, in tuples or records that can be pickled.
    """
    if _folder is None:
        return make()
    file = _folder / key
    with contextlib.ExitStack() as stack:
        _locked(stack, Path(f"{file}.lock"))
        with contextlib.suppress(OSError):
            checksum, text = (kept := file.read_bytes())[:_CHECKSUM_BYTES], kept[_CHECKSUM_BYTES:]
            if checksum == hashlib.sha256(text).digest():  # whole, and as it was written
                return cast(_Made, pickle.loads(text))
        found = make()
        text = pickle.dumps(found, protocol=5)
        if len(text) <= _MOST:
            with contextlib.suppress(OSError):  # a disk that is full: every process computes for itself
                file.write_bytes(hashlib.sha256(text).digest() + text)
        return found
