"""What a person sees while a run goes on: one line with a bar, how long it will take, and the best row so far.

On a terminal the line stands still; ``fedgraph watch`` shows who is at work. Elsewhere (a file, a batch system) it is printed
after ten seconds, and then ever more seldom, so that a run of hours fills no page.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console as RichConsole
from rich.console import JustifyMethod
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fedgraph.cells import Cell
from fedgraph.runs import live
from fedgraph.runtime import Runtime

_SECONDS_BETWEEN_LINES = 10.0  # at first
_SHARE_BETWEEN_LINES = 0.25  # of the time so far
_BAR = 24  # letters of the bar
_FEWEST_CELLS = 3  # or this share of fewer, from which on it is said how long the rest takes
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
        self._begun = self._planned = self._last = time.monotonic()
        self._cells = (0, 0)
        self._fresh = 0  # cells that this process finished
        self._first = math.inf  # when the first of them was done
        self._best: dict[tuple[str, ...], tuple[float, str]] = {}  # task, data set, measure → its best private row
        self._latest = ""
        self._running: dict[Cell, float] = {}  # cell → how much of it is done, 0 … 1; the first has run longest

    def say(self, text: str) -> None:
        """A line that is always shown, but by a quiet one."""
        if self._says:
            self._err.print(text)

    def plan(self, total: int, already: int) -> None:
        """Say how many cells there are."""
        self._cells = (already, total)
        self._planned = time.monotonic()
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
        filled = min(_BAR, round(_BAR * (done + sum(self._running.values())) / max(total, 1)))
        passed = format_span(time.monotonic() - self._begun)
        return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total} cells, {passed}{self._left()}"[:width]

    def close(self) -> None:
        """Take the view away; safe to call twice."""
        if self._view is not None:
            self._view.stop()
            self._view = None

    def begin(self, cell: Cell) -> None:
        """The cell is running."""
        self._running[cell] = 0.0
        self._line()

    def finish(self, cell: Cell) -> None:
        """It is done."""
        del self._running[cell]
        self._fresh += 1
        self._first = min(self._first, time.monotonic())
        self._cells = (self._cells[0] + 1, self._cells[1])
        self._tell()

    def note_score(self, cell: Cell, metrics: Mapping[str, float]) -> None:
        """What a finished cell reached; the best private one by the same measure, of the same task and data, is shown."""
        name = next((name for name in _COMPARED if name in metrics), "")
        rare = name == "accuracy" and metrics.keys() >= _RARE  # there accuracy says little, and the page leads with this
        name = "auroc" if rare else name
        if name and math.isfinite(cell.epsilon) and math.isfinite(metrics[name]):
            found = f", finds {100 * metrics['recall_at_alerts']:.0f} of 100 of the rare class" if rare else ""
            mine, asked = (metrics[name], f"{cell.words.rpartition(',')[0]}{found}"), (cell.task, cell.dataset, name)
            value, row = self._best[asked] = max(self._best.get(asked, mine), mine)
            self._latest = f", best so far of {cell.task}: {_COMPARED[name]} {value:.2f} ({row})"

    def _left(self) -> str:
        """At the pace so far: a cell is taken to last as long as the next.

        A first cell loads and compiles what the others share, and so tells too much; later ones alone tell too little, since
        cheap methods come first: what is said lies between, and nothing is said by a beginning.
        """
        running = sum(self._running.values())
        known, rest = self._fresh + running, self._cells[1] - self._cells[0] - running
        if not known or known < min(_FEWEST_CELLS, (known + rest) / _FEWEST_CELLS):
            return self._latest
        now = time.monotonic()
        left = (now - self._planned) * rest / known
        later = (now - self._first) * rest / (known - 1) if known > 1 and self._first < now else left
        left = math.sqrt(left * later) + _SECONDS_OF_REPORT
        return f", about {format_span(left)} left{self._latest}"

    def progress(self, stage: str, done: int, total: int) -> None:
        """done of total within the cell that is running."""
        self._running[next(iter(self._running))] = done / max(total, 1)
        self.wait()

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
            justify: JustifyMethod = "left" if index < 2 or words else "right"
            table.add_column(name, justify=justify, no_wrap=whole or index == 0, min_width=width)
        for row in rows:
            table.add_row(*row)
        self._out.print(table)

    def print(self, text: str) -> None:
        """Plain text on stdout."""
        self._out.print(text, highlight=False)


def format_span(seconds: float) -> str:
    """In words: seconds, or minutes from 90 seconds on."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
