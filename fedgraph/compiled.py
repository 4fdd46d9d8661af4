"""How inner loops are compiled: with numba, without the interpreter lock, and with a cache on disk."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import types


def _cache() -> str:
    """A folder of the user's cache for compiled code, made if needed; the empty string where it cannot be written.

    Not beside the package: files that an installer did not put there are left behind when the package is removed, and a folder
    ``site-packages/fedgraph`` with nothing but them would stand in for the package.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "fedgraph" / "numba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return ""
    return str(folder) if os.access(folder, os.W_OK | os.X_OK) else ""


# NUMBA_CACHE_DIR, where the user set it
if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = _cache()  # type: ignore[attr-defined]


def constant(dtype: Any, dimensions: int = 1) -> types.Array:
    """The type of a C-contiguous array that is only read (shared memory is mapped read-only)."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def compiled(signature: Any = None, reassociate: bool = True, nan: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` for one signature, at import, or (None) for whatever it is first called with.

    The code is kept in ``NUMBA_CACHE_DIR``, else in the user's cache (``~/.cache/fedgraph/numba``), else where numba itself
    finds a place; where there is none, every process compiles for itself. With ``reassociate`` sums may be reassociated,
    so that they use vector instructions; without it every machine gives the same bits. nan: whether NaN keeps
    its meaning; False for loops whose inputs were checked before.
    """
    freedom = {"reassoc", "contract", "nsz", *(() if nan else ("nnan",))} if reassociate else False
    options: dict[str, Any] = {"nogil": True, "fastmath": freedom, "error_model": "numpy"}

    def apply(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(signature, cache=True, **options)(function)
        except RuntimeError:  # numba found no folder it may write to
            return numba.njit(signature, **options)(function)

    return apply
