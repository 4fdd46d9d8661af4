"""How long a run still takes: cells of one kind are alike, and a kind that nobody has seen yet is like its row elsewhere."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable

from fedgraph.cells.cell import Cell, Kind


class Pace:
    """cells: that are to be run. clock: seconds."""

    def __init__(self, cells: Iterable[Cell] = (), clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._waiting = dict.fromkeys(cells)
        self._running: dict[Cell, tuple[float, float]] = {}  # when it began, and the share of its rounds that is done
        self._took: dict[Kind, list[float]] = {}

    def begin(self, cell: Cell) -> None:
        """The cell runs now."""
        self._waiting.pop(cell, None)
        self._running[cell] = (self._clock(), 0.0)

    def advance(self, cell: Cell, share: float) -> None:
        """So much of the cell is done, 0 … 1."""
        if cell in self._running:
            self._running[cell] = (self._running[cell][0], share)

    def finish(self, cell: Cell) -> None:
        """The cell is done."""
        began, _ = self._running.pop(cell)
        self._took.setdefault(cell.kind, []).append(self._clock() - began)

    def left(self) -> float | None:
        """Seconds; None while nothing is known of any cell."""
        now = self._clock()
        running = {cell: (now - began, share) for cell, (began, share) in self._running.items()}
        guesses = [passed / share for passed, share in running.values() if share > 0]
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

    def _rest(self, cell: Cell, passed: float, share: float, means: dict[Kind, float], guesses: list[float]) -> float:
        """Its rounds say it best; else the others of its kind; a cell that is longer than those is half done."""
        if share > 0:
            return passed * (1 - share) / share
        rest = self._whole(cell, means, guesses) - passed
        return rest if rest > 0 else passed
