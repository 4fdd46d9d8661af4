"""How this folder compiles its inner loops: numba, without the interpreter lock, remembered on disk."""

from __future__ import annotations

from collections.abc import Callable

import numba


def compiled(function: Callable) -> Callable:
    """``numba.njit`` that frees the interpreter lock and keeps its machine code between processes.

    The code is kept beside the package, or in the user's numba cache where that is read-only; where
    neither can be written, every process compiles for itself (a few seconds at the first call).
    Sums may be reassociated, so that they use vector instructions; inputs are checked for NaN before.
    """
    options = {"nogil": True, "fastmath": {"reassoc", "contract", "nnan", "nsz"}, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder it may write to
        return numba.njit(**options)(function)
