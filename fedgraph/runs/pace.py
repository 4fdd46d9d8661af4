"""How long a run still takes: cells of one kind are alike, and a kind that nobody has seen yet is like its row elsewhere.

A cell's first round has its start in it, so only what follows says how long a round takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fedgraph.cells.cell import Cell, Kind


class Pace:
    """cells: that are to be run. clock: seconds."""

    def __init__(self, cells: Iterable[Cell] = (), clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._waiting = dict.fromkeys(cells)
        self._running: dict[Cell, _Reports] = {}
        self._took: dict[Kind, list[float]] = {}

    def begin(self, cell: Cell) -> None:
        """The cell runs now."""
        self._waiting.pop(cell, None)
        self._running[cell] = _Reports(self._clock())

    def advance(self, cell: Cell, share: float) -> None:
        """So much of the cell is done, 0 … 1."""
        if cell in self._running:
            self._running[cell].add(self._clock(), share)

    def finish(self, cell: Cell) -> None:
        """The cell is done."""
        self._took.setdefault(cell.kind, []).append(self._clock() - self._running.pop(cell).began)

    def left(self) -> float | None:
        """Seconds; None while nothing is known of any cell."""
        now = self._clock()
        running = {cell: (now - reports.began, reports.rest(now)) for cell, reports in self._running.items()}
        guesses = [passed + rest for passed, rest in running.values() if rest is not None]
        if not self._took and not guesses:
            return None
        means = {kind: statistics.fmean(took) for kind, took in self._took.items()}
        rests = [self._rest(cell, *state, means, guesses) for cell, state in running.items()]
        waiting = sum(self._whole(cell, means, guesses) for cell in self._waiting)
        return max((sum(rests) + waiting) / max(1, len(running)), max(rests, default=0.0))

    @staticmethod
    def _whole(cell: Cell, means: dict[Kind, float], guesses: list[float]) -> float:
        if cell.kind in means:
            return means[cell.kind]
        alike = [mean for kind, mean in means.items() if kind[:4] == cell.kind[:4]]
        return statistics.fmean(alike or list(means.values()) or guesses)

    def _rest(self, cell: Cell, passed: float, rest: float | None, means: dict[Kind, float], guesses: list[float]) -> float:
        """Its rounds say it best; else the others of its kind; a cell that is longer than those is half done."""
        if rest is not None:
            return rest
        rest = self._whole(cell, means, guesses) - passed
        return rest if rest > 0 else passed


@dataclass
class _Reports:
    """What a running cell said. began: when, in seconds. first: time and share of its first report. share: of its last."""

    began: float
    first: tuple[float, float] | None = None
    share: float = 0.0

    def add(self, now: float, share: float) -> None:
        if self.first is None or share < self.share:
            self.first = now, share
        self.share = share

    def rest(self, now: float) -> float | None:
        """Seconds, at the pace since the first report; None before a second one."""
        if self.first is None or self.share <= self.first[1]:
            return None
        return (now - self.first[0]) * (1 - self.share) / (self.share - self.first[1])
