"""What a person sees while a run goes on, and the tables at its end.

On a terminal: one bar for the whole run, with the time that is left, and one bar for each cell at work, in words. Elsewhere
(a file, a batch system): a plain line at most every ten seconds.
"""

import time
from collections.abc import Sequence

from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from fedgraph.cells.cell import Cell

SECONDS_BETWEEN_LINES = 10.0
SECONDS_OF_SILENCE = 10.0  # while cells run side by side and none is done


class Console:
    """Progress on stderr, tables on stdout. quiet: neither."""

    def __init__(self, quiet: bool = False) -> None:
        self._out = RichConsole(quiet=quiet)
        if not self._out.is_terminal:
            self._out = RichConsole(width=180, quiet=quiet)
        self._err = RichConsole(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self._bars: Progress | None = None  # on a terminal
        self._whole: TaskID | None = None
        self._bar_of: dict[Cell, TaskID] = {}
        self._begun = time.monotonic()
        self._last = 0.0
        self._cells = (0, 0)
        self._already = 0
        self._cell_clock = self._begun
        self._running: dict[Cell, float] = {}  # cell → when it began, longest first
        self._stage: tuple[str, int, int, float] | None = None  # name, total, done when it began, when

    def say(self, text: str) -> None:
        """A line that is always shown."""
        self._err.print(text)

    def plan(self, total: int, already: int) -> None:
        """total cells, of which ``already`` were found finished."""
        self._cells = (already, total)
        self._cell_clock = time.monotonic()
        self._already = already
        self.say(f"{total} cells to run" + (f", {already} of them finished earlier" if already else ""))
        if self._err.is_terminal and not self._err.quiet and total > already:
            columns = (BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn(compact=True), TextColumn("{task.description}"))
            self._bars = Progress(*columns, console=self._err, transient=True)
            self._whole = self._bars.add_task("whole run", total=total, completed=already)
            self._bars.start()

    def close(self) -> None:
        """Take the bars away; safe to call twice."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def begin(self, cell: Cell) -> None:
        """The cell is running."""
        self._running[cell] = time.monotonic()
        self._stage = None
        if self._bars is not None:
            self._bar_of[cell] = self._bars.add_task(cell.words, total=None)
        self._line(cell, "started")

    def finish(self, cell: Cell) -> None:
        """It is done."""
        del self._running[cell]
        self._cells = (self._cells[0] + 1, self._cells[1])
        if self._bars is not None and self._whole is not None:
            self._bars.remove_task(self._bar_of.pop(cell))
            self._bars.advance(self._whole)
            if self._cells[0] == self._cells[1]:
                self.close()

    def progress(self, stage: str, done: int, total: int) -> None:
        """done of total within the cell that is running; the first call of a stage starts its clock."""
        now = time.monotonic()
        if self._bars is not None:
            cell = next(iter(self._running))
            words = f"{cell.words}: {stage}"
            self._bars.update(self._bar_of[cell], total=total, completed=done, description=words)
        if self._stage is None or self._stage[:2] != (stage, total) or done < self._stage[2]:
            self._stage = (stage, total, done, now)
        _, _, before, began = self._stage
        text = f"{stage} {done}/{total}"
        if done > before:
            rate = (done - before) / max(now - began, 1e-9)
            text += f", {rate:.{0 if rate >= 10 else 2}f}/s, about {span((total - done) / rate)} left of them"
        self._line(next(iter(self._running)), text)

    def wait(self) -> None:
        """Cells run side by side and none is done: say so where nothing was said for a while."""
        if time.monotonic() - self._last < SECONDS_OF_SILENCE:
            return
        cell, began = next(iter(self._running.items()))
        others = f", {len(self._running) - 1} beside it" if len(self._running) > 1 else ""
        self._line(cell, f"running for {span(time.monotonic() - began)}{others}")

    def _line(self, cell: Cell, text: str) -> None:
        now = time.monotonic()
        if self._bars is not None or now - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = now
        done, total = self._cells
        half = (
            len(self._running) / 2 if len(self._running) > 1 else 0.0
        )  # cells that are running are counted as half done on average
        fresh = done - self._already
        left = f", about {span((now - self._cell_clock) / (fresh + half) * (total - done - half))} left" if fresh else ""
        self.say(f"[{span(now - self._begun)}] cell {done + 1}/{total}{left}: {cell.words}: {text}")

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], words_last: bool = False) -> None:
        """Print a table. words_last: only the last column, which holds words, goes on in a next line where the screen ends."""
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
        self._out.print(text, markup=False, highlight=False)


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
