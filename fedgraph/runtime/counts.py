"""What a federation costs: rounds, messages, bytes and calls, and how long clients and server were at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

RuntimeCountPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
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

    def __add__(self, other: RuntimeCount) -> RuntimeCount:
        mine, theirs = vars(self), vars(other)
        return RuntimeCount(**{f.name: mine[f.name] + theirs[f.name] for f in fields(RuntimeCount)})


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
            self.add(path, RuntimeCount(trainings=1, seconds=now - began))

    def _step(self, task: str, by: int, now: float) -> None:
        with self._lock:
            running, since, before = self._spans.get(task, (0, now, 0.0))
            self._spans[task] = (running + by, now, before + (now - since if running else 0.0))

    def add(self, path: RuntimeCountPath, count: RuntimeCount) -> None:
        """One more part of what ``path`` cost."""
        with self._lock:
            self._counts[path] = self._counts.get(path, RuntimeCount()) + count

    def counts(self) -> dict[RuntimeCountPath, RuntimeCount]:
        """Of every training."""
        with self._lock:
            return dict(self._counts)

    def tasks(self) -> dict[str, RuntimeCount]:
        """Of every task; ``seconds`` is wall time in which at least one of its trainings went on."""
        found: dict[str, RuntimeCount] = {}
        with self._lock:
            for path, count in self._counts.items():
                found[path[0]] = found.get(path[0], RuntimeCount()) + count
            return {task: replace(count, seconds=self._spans[task][2]) for task, count in found.items()}
