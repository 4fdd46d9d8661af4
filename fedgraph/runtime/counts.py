"""What a federation costs: rounds, messages, bytes and calls, and how long clients and server were at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

RuntimeCountPath: TypeAlias = tuple[str, ...]


@dataclass
class RuntimeCount:
    """What one training cost, or the sum of many."""

    trainings: int = 0
    rounds: int = 0  # that were merged
    messages: int = 0  # from clients to the server
    bytes_up: int = 0  # of arrays from all clients
    bytes_down: int = 0  # of arrays to all clients
    calls: int = 0  # of client actors, by the server
    seconds: float = 0.0  # wall time of each training; trainings side by side count each
    clients_busy: float = 0.0  # seconds that client actors computed, added up
    server_busy: float = 0.0  # seconds that the server computed

    def add(self, more: Mapping[str, float]) -> None:
        """Adds numbers by the names of the fields."""
        for name, value in more.items():
            vars(self)[name] += value


class RuntimeCountTally:
    """Counts of trainings, which several threads may lead at a time."""

    def __init__(self) -> None:
        self._counts: dict[RuntimeCountPath, RuntimeCount] = {}
        # task → (running trainings, time of the last change, seconds before it in which one ran)
        self._spans: dict[str, tuple[int, float, float]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def training(self, path: RuntimeCountPath) -> Iterator[None]:
        """Counts one training of ``path``, which lasts as long as the ``with``."""
        began = time.perf_counter()
        self._step(path[0], 1, began)
        try:
            yield
        finally:
            now = time.perf_counter()
            self._step(path[0], -1, now)
            self.add(path, trainings=1, seconds=now - began)

    def _step(self, task: str, by: int, now: float) -> None:
        with self._lock:
            running, since, before = self._spans.get(task, (0, now, 0.0))
            self._spans[task] = (running + by, now, before + (now - since if running else 0.0))

    def add(self, path: RuntimeCountPath, **more: float) -> None:
        """Adds to the count of ``path``, by the names of ``RuntimeCount``."""
        with self._lock:
            if path not in self._counts:
                self._counts[path] = RuntimeCount()
            self._counts[path].add(more)

    def counts(self) -> dict[RuntimeCountPath, RuntimeCount]:
        """The count of every training."""
        with self._lock:
            return {path: replace(count) for path, count in self._counts.items()}

    def tasks(self) -> dict[str, RuntimeCount]:
        """The count of every task; ``seconds`` is wall time in which at least one of its trainings ran."""
        found: dict[str, RuntimeCount] = {}
        with self._lock:
            for path, count in self._counts.items():
                found.setdefault(path[0], RuntimeCount()).add(vars(count))
            for task, count in found.items():
                count.seconds = self._spans[task][2]
        return found
