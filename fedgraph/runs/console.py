"""What a person sees while a run goes on: one line with a bar, how long it will take, and the best row so far.

On a terminal the line stands still; ``fedgraph watch`` shows who is at work. Elsewhere (a file, a batch system) it is printed
after ten seconds, and then ever more seldom, so that a run of hours fills no page.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console as RichConsole
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fedgraph.cells import Cell, CellKind
from fedgraph.runs import live
from fedgraph.runtime import Runtime

_SECONDS_BETWEEN_LINES = 10.0  # at first
_SHARE_BETWEEN_LINES = 0.25  # of the time so far
_BAR = 24  # letters of the bar
_SECONDS_OF_REPORT = 3.0  # after the last cell, on two quiet cores (2026-11)
_COMPARED = {  # the first that a cell has says how good it is
    "average_precision_positive": "average precision", "accuracy": "accuracy", "ari": "ARI", "auc": "AUC", "auroc": "AUROC",
}  # fmt: skip
_RARE = {"auroc", "recall_at_alerts"}


class Console:
    """Progress on stderr, tables on stdout.

    Args:
        quiet: Whether nothing is shown.
        bar: Whether the line with the bar is shown even so.
    """

    def __init__(self, quiet: bool = False, bar: bool = False) -> None:
        # Names that users give may hold brackets and colons: no text here is Rich's markup.
        self._out = RichConsole(quiet=quiet, markup=False, emoji=False)
        if not self._out.is_terminal:
            self._out = RichConsole(width=180, quiet=quiet, markup=False, emoji=False)
        self._err = RichConsole(
            stderr=True, highlight=False, soft_wrap=True, quiet=quiet and not bar, markup=False, emoji=False
        )
        self._says = not quiet
        self._teller: live.LiveWriter | None = None
        self._view: Live | None = None  # on a terminal
        self._begun = time.monotonic()
        self._last = self._begun
        self._cells = (0, 0)
        self._pace = _Pace()
        self._best: dict[tuple[str, ...], tuple[float, str]] = {}  # task, data set, measure → its best private row
        self._latest = ""
        self._running: dict[Cell, float] = {}  # cell → when it began, longest first

    def say(self, text: str) -> None:
        """A line that is always shown, but by a quiet one."""
        if self._says:
            self._err.print(text)

    def plan(self, total: int, already: int, todo: Iterable[Cell] = (), workers: int = 1) -> None:
        """Say how many cells there are."""
        self._cells = (already, total)
        self._pace = _Pace(todo, workers=workers)
        self.say(
            f"{total} cell{'s' * (total != 1)} to run, one for each method, trust, ε and seed"
            + (f", {already} of them finished earlier" if already else "")
        )

    def follow(self, folder: Path, engine: Runtime) -> None:
        """Keep the state of the run in its folder, for whoever watches it; show it here, too, where this is a terminal."""
        self._teller = live.LiveWriter(folder, engine)
        if self._err.is_terminal and not self._err.quiet:
            self._view = Live(console=self._err, auto_refresh=False, transient=True)
            self._view.start()
        self._tell()

    def _tell(self) -> None:
        left, working = self._left(), [cell.words for cell in self._running]
        if self._teller is not None:
            self._teller.tell(*self._cells, working, left)
        if self._view is not None:
            self._view.update(Text(self._bar(self._err.width), no_wrap=True, overflow="ellipsis"), refresh=True)

    def _bar(self, width: int = 120) -> str:
        """The one line: how much is done, how long the rest takes, and the best so far."""
        done, total = self._cells
        filled = min(_BAR, round(_BAR * (done + self._pace.under_way()) / max(total, 1)))
        passed = format_span(time.monotonic() - self._begun)
        return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total} cells, {passed}{self._left()}"[:width]

    def close(self) -> None:
        """Take the view away; safe to call twice."""
        if self._view is not None:
            self._view.stop()
            self._view = None

    def begin(self, cell: Cell) -> None:
        """The cell is running."""
        self._running[cell] = time.monotonic()
        self._pace.begin(cell)
        self._line()

    def finish(self, cell: Cell) -> None:
        """It is done."""
        del self._running[cell]
        self._pace.finish(cell)
        self._cells = (self._cells[0] + 1, self._cells[1])
        self._tell()

    def note_score(self, cell: Cell, metrics: Mapping[str, float]) -> None:
        """What a finished cell reached; the best private one by the same measure, of the same task and data, is shown."""
        name = next((name for name in _COMPARED if name in metrics), "")
        rare = name == "accuracy" and metrics.keys() >= _RARE  # there accuracy says little, and the page leads with this
        name = "auroc" if rare else name
        if not name or not math.isfinite(cell.epsilon) or not math.isfinite(metrics[name]):
            return
        asked = (cell.task, cell.dataset, name)
        found = f", finds {100 * metrics['recall_at_alerts']:.0f} of 100 of the rare class" if rare else ""
        mine = metrics[name], f"{cell.words.rpartition(',')[0]}{found}"
        self._best[asked] = max(self._best.get(asked, (-math.inf, "")), mine)
        value, row = self._best[asked]
        self._latest = f", best so far of {cell.task}: {_COMPARED[name]} {value:.2f} ({row})"

    def _left(self) -> str:
        left = self._pace.left()
        words = "" if left is None else f", about {format_span(left + _SECONDS_OF_REPORT)} left"
        return words + self._latest

    def progress(self, stage: str, done: int, total: int) -> None:
        """done of total within the cell that is running."""
        cell = next(iter(self._running))
        self._pace.advance(cell, done / max(total, 1))
        self._tell()
        self._line()

    def wait(self) -> None:
        """Cells run side by side and none is done."""
        self._tell()
        self._line()

    def _line(self) -> None:
        now = time.monotonic()
        pause = max(_SECONDS_BETWEEN_LINES, _SHARE_BETWEEN_LINES * (now - self._begun))
        if self._view is None and now - self._last >= pause:
            self._last = now
            self._err.print(self._bar())

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], words_last: bool = False) -> None:
        """Print a table.

        Args:
            words_last: Only the last column, which holds words, goes on in a next line where the screen ends.
        """
        self.close()
        table = Table(title=title, title_justify="left", header_style="bold")
        for index, name in enumerate(header):
            words = words_last and index == len(header) - 1
            whole = words_last and not words
            width = max(map(len, (name, *(row[index] for row in rows)))) if whole else None
            left = index < 2 or words
            table.add_column(name, justify="left" if left else "right", no_wrap=whole or index == 0, min_width=width)
        for row in rows:
            table.add_row(*row)
        self._out.print(table)

    def print(self, text: str) -> None:
        """Plain text on stdout."""
        self._out.print(text, highlight=False)


def format_span(seconds: float) -> str:
    """In words: seconds, or minutes from 90 seconds on."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


class _Pace:
    """How long the cells that are left will take: each as long as those of its kind, or as the middle one of the kinds known.

    Args:
        cells: that are to be run.
        clock: seconds.
        workers: that will run cells side by side.
    """

    def __init__(self, cells: Iterable[Cell] = (), clock: Callable[[], float] | None = None, workers: int = 1) -> None:
        self._clock = clock or time.monotonic
        self._waiting = dict.fromkeys(cells)
        self._running: dict[Cell, ConsoleReports] = {}
        self._took: dict[CellKind, list[float]] = {}
        self._lanes = workers

    def begin(self, cell: Cell) -> None:
        """The cell runs now."""
        self._waiting.pop(cell, None)
        self._running[cell] = ConsoleReports(self._clock())
        self._lanes = max(self._lanes, len(self._running))

    def advance(self, cell: Cell, share: float) -> None:
        """So much of the cell is done, 0 … 1."""
        if cell in self._running:
            self._running[cell].add(self._clock(), share)

    def under_way(self) -> float:
        """How much of the running cells is done: 1 for each that is whole."""
        return sum(reports.share for reports in self._running.values())

    def finish(self, cell: Cell) -> None:
        """The cell is done."""
        self._took.setdefault(cell.kind, []).append(self._clock() - self._running.pop(cell).began)

    def left(self) -> float | None:
        """Seconds until the last cell is done; None while nothing is known."""
        now = self._clock()
        means = {kind: statistics.fmean(took) for kind, took in self._took.items()}
        for cell, reports in self._running.items():
            if (rest := reports.rest(now)) is not None:
                means.setdefault(cell.kind, now - reports.began + rest)
        if not means:
            return None
        usual, rests = statistics.median_low(means.values()), []
        for cell, reports in self._running.items():
            rest, passed = reports.rest(now), now - reports.began
            whole = means.get(cell.kind, usual)
            rests.append(rest if rest is not None else whole - passed if passed < whole else passed)
        waiting = sum(means.get(cell.kind, usual) for cell in self._waiting)
        return max((sum(rests) + waiting) / self._lanes, max(rests, default=0.0))


@dataclass
class ConsoleReports:
    """What a running cell said."""

    began: float  # when, in seconds
    first: tuple[float, float] | None = None  # time and share of its first report; None before it
    share: float = 0.0  # of its last report, 0 … 1

    def add(self, now: float, share: float) -> None:
        if self.first is None or share < self.share:
            self.first = now, share
        self.share = share

    def rest(self, now: float) -> float | None:
        """Seconds, at the pace since the first report; None before a second one."""
        if self.first is None or self.share <= self.first[1]:
            return None
        return (now - self.first[0]) * (1 - self.share) / (self.share - self.first[1])
