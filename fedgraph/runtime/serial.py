"""Everything runs in this process, one call after another. Every other runtime has to give the results of this one.

It is also strict: whatever crosses a boundary is pickled, and arrays arrive read-only, so a method that
would fail under Ray fails here too.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedgraph.runtime.base import Runtime, require_same


@dataclass(frozen=True, eq=False)
class _Held:
    value: Any


def frozen_copy(value: Any) -> Any:
    """``value`` as another process would receive it: pickled, its arrays read-only."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[memoryview(b.raw()).toreadonly() for b in buffers])


class SerialRuntime(Runtime):
    """Futures are values that are already there."""

    name = "serial"
    num_workers = 1

    def __init__(self) -> None:
        self._shared: dict[Hashable, _Held] = {}
        self._originals: dict[Hashable, Any] = {}

    def share(self, key: Hashable, value: Any) -> _Held:
        if key not in self._shared:
            self._shared[key], self._originals[key] = _Held(frozen_copy(value)), value
        require_same(key, self._originals[key], value)
        return self._shared[key]

    def forget(self, handle: _Held) -> None:
        for key in [k for k, v in self._shared.items() if v is handle]:
            del self._shared[key], self._originals[key]

    def tell(self, function: Callable[..., object], *args: object) -> None:
        function(*args)

    def on_workers(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[_Held]:
        return [_Held(frozen_copy(function(range(num_items), *_values(args))))]

    def map(self, function: Callable[..., Any], tasks: Sequence[Any], *args: Any) -> Iterator[Any]:
        for task in tasks:
            yield frozen_copy(function(task, *_values(args)))

    def as_done(
        self,
        function: Callable[..., Any],
        queues: Sequence[Sequence[tuple[Any, ...]]],
        started: Callable[[tuple[Any, ...]], None],
        waiting: Callable[[], None],
        gone: Callable[[str], Any] | None = None,
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        for task in itertools.chain.from_iterable(queues):
            started(task)
            yield task, frozen_copy(function(*_values(task)))

    def on_server(self, function: Callable[..., Any], *args: Any, returns: int = 1) -> Any:
        result = frozen_copy(function(*_values(args)))
        return _Held(result) if returns == 1 else tuple(_Held(part) for part in result)

    def get(self, future: _Held) -> Any:
        return future.value

    def describe(self) -> dict[str, Any]:
        return {"runtime": "serial", "workers": 1, "gpus_per_worker": 0, "numpy": np.__version__}

    def close(self) -> None:
        self._shared.clear()


def _values(args: Sequence[Any]) -> list[Any]:
    return [a.value if isinstance(a, _Held) else a for a in args]
