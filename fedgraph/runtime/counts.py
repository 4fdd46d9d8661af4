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
    """What one training cost, or many added up."""

    trainings: int = 0  # How many
    rounds: int = 0  # That were merged
    messages: int = 0  # Of clients to the server
    bytes_up: int = 0  # Of arrays, from all clients
    bytes_down: int = 0  # Of arrays, to all clients
    calls: int = 0  # Of client actors by the server
    seconds: float = 0.0  # Of wall time from the first call to the last; of trainings side by side each counts
    clients_busy: float = 0.0  # Seconds that client actors computed, added up
    server_busy: float = 0.0  # Seconds that the server computed

    def add(self, more: Mapping[str, float]) -> None:
        """More of what the names say."""
        for name, value in more.items():
            vars(self)[name] += value


class RuntimeCountTally:
    """Counts of trainings that several threads lead at a time."""

    def __init__(self) -> None:
        self._counts: dict[RuntimeCountPath, RuntimeCount] = {}
        self._spans: dict[str, tuple[int, float, float]] = {}  # of a task: how many run, since when, seconds before that
        self._lock = threading.Lock()

    @contextmanager
    def training(self, path: RuntimeCountPath) -> Iterator[None]:
        """While one training of ``path`` goes on."""
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
        """One more part of what ``path`` cost, by the names of ``RuntimeCount``."""
        with self._lock:
            if path not in self._counts:
                self._counts[path] = RuntimeCount()
            self._counts[path].add(more)

    def counts(self) -> dict[RuntimeCountPath, RuntimeCount]:
        """Of every training."""
        with self._lock:
            return {path: replace(count) for path, count in self._counts.items()}

    def tasks(self) -> dict[str, RuntimeCount]:
        """Of every task; ``seconds`` is wall time in which at least one of its trainings went on."""
        found: dict[str, RuntimeCount] = {}
        with self._lock:
            for path, count in self._counts.items():
                found.setdefault(path[0], RuntimeCount()).add(vars(count))
            for task, count in found.items():
                count.seconds = self._spans[task][2]
        return found
