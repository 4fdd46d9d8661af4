"""How inner loops are compiled: with numba, without the interpreter lock, and with a cache on disk.

A loop is compiled, or read from the cache, when it is first called; only then numba is imported. So a process that computes
nothing, such as a driver, starts without it.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

_PATIENCE = 60.0  # seconds for what another process compiles, which takes a few: one that was stopped would hold up every run


def _cache() -> str:
    """A folder of the user's cache for compiled code, made if needed; the empty string where it cannot be written.

    It is not beside the package: files that an installer did not put there are left behind when the package is removed. A
    folder ``site-packages/fedgraph`` with nothing but them would stand in for the package.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "fedgraph" / "numba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return ""
    return str(folder) if os.access(folder, os.W_OK | os.X_OK) else ""


def _numba() -> ModuleType:
    """numba, which keeps code in ``NUMBA_CACHE_DIR`` where the user set it, else in ``_cache``."""
    import numba

    if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        numba.config.CACHE_DIR = _cache()  # type: ignore[attr-defined]
    return numba


@contextlib.contextmanager
def one_process_at_a_time(name: str, patience: float = _PATIENCE) -> Iterator[None]:
    """While one process compiles, others wait for what it keeps: actors that begin together would each do the same work.

    They wait for ``patience`` seconds at most, then compile for themselves.
    """
    folder = _numba().config.CACHE_DIR
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # not on Windows

            if folder:
                lock = stack.enter_context(open(Path(folder) / f"{name}.lock", "w"))
                end = time.monotonic() + patience
                while time.monotonic() < end:
                    with contextlib.suppress(BlockingIOError):
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    time.sleep(0.05)
        yield


class _Type:
    """A type of numba's that is made when it is needed: ``compiled_types.int64[::1]``."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __call__(self, *args: object) -> "_Type":
        return _Type(lambda: self.make()(*map(_made, args)))

    def __getitem__(self, dimensions: slice) -> "_Type":
        return _Type(lambda: self.make()[dimensions])


def _made(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_made, value))
    return value.make() if isinstance(value, _Type) else value


class _Types:
    def __getattr__(self, name: str) -> _Type:
        return _Type(lambda: vars(_numba().types)[name])


compiled_types = _Types()  # stands for ``numba.types``


def compiled_constant(dtype: _Type) -> _Type:
    """The type of a C-contiguous vector of ``dtype`` (from ``compiled_types``) that is only read: shared memory is mapped
    read-only, and numba refuses it otherwise.
    """
    return _Type(lambda: _numba().types.Array(dtype.make(), 1, "C", readonly=True))


class _Loop:
    """A function that is compiled when it is first called."""

    def __init__(self, function: FunctionType, signature: _Type | None, options: dict[str, object]) -> None:
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self._function, self._signature, self._options = function, signature, options

    @cached_property
    def compiled(self) -> Callable[..., object]:
        """What numba makes of it. The loops that it calls stand compiled in its module from then on, where numba sees them."""
        known = self._function.__globals__
        for name in self._function.__code__.co_names:
            if isinstance(inner := known.get(name), _Loop) and inner is not self:
                known[name] = inner.compiled
        signature = None if self._signature is None else self._signature.make()
        with one_process_at_a_time(f"{self.__module__}.{self.__name__}"):
            try:
                made = _numba().njit(signature, cache=True, **self._options)(self._function)
            except RuntimeError:  # numba found no folder it may write to
                made = _numba().njit(signature, **self._options)(self._function)
        return cast(Callable[..., object], made)

    def __call__(self, *args: object) -> Any:
        return self.compiled(*args)


def compiled(
    signature: _Type | None = None, reassociate: bool = True, nan: bool = True
) -> Callable[[Callable[..., Any]], _Loop]:
    """Compile a function with ``numba.njit`` when it is first called.

    A loop that copies entry by entry compiles seconds faster than ``a[:] = b``, whose error of shapes numba compiles, too.
    The code is kept in ``NUMBA_CACHE_DIR``, else in the user's cache (``~/.cache/fedgraph/numba``), else where numba itself
    finds a place. Where there is none, every process compiles for itself.

    Args:
        signature: The one signature that is compiled. None: whatever the function is first called with.
        reassociate: Sums may be reassociated, so that they use vector instructions. Without it every machine gives the same
            bits.
        nan: Whether NaN keeps its meaning. False is for loops whose inputs were checked before.
    """
    freedom = {"reassoc", "contract", "nsz", *(() if nan else ("nnan",))} if reassociate else False
    options: dict[str, object] = {"nogil": True, "fastmath": freedom, "error_model": "numpy"}
    return lambda function: _Loop(cast(FunctionType, function), signature, options)
