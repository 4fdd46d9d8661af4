"""How inner loops are compiled: with numba, without the interpreter lock, and with a cache on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types


def constant(dtype: Any, dimensions: int = 1) -> types.Array:
    """The type of a C-contiguous array that is only read (shared memory is mapped read-only)."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def compiled(signature: Any = None, reassociate: bool = True, nan: bool = True) -> Callable[[Callable], Callable]:
    """``numba.njit`` for one signature, at import, or (None) for whatever it is first called with.

    The code is kept beside the package, or in the user's numba cache where that is read-only; where
    neither can be written, every process compiles for itself. With ``reassociate`` sums may be reassociated,
    so that they use vector instructions; without it every machine gives the same bits. nan: whether NaN keeps
    its meaning; False for loops whose inputs were checked before.
    """
    freedom = {"reassoc", "contract", "nsz", *(() if nan else ("nnan",))} if reassociate else False
    options: dict[str, Any] = {"nogil": True, "fastmath": freedom, "error_model": "numpy"}

    def apply(function: Callable) -> Callable:
        try:
            return numba.njit(signature, cache=True, **options)(function)
        except RuntimeError:  # numba found no folder it may write to
            return numba.njit(signature, **options)(function)

    return apply
