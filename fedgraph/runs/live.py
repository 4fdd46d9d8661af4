"""What a run says of itself in ``live.json`` of its folder while it goes on, and what ``fedgraph watch`` shows of it."""

import contextlib
import functools
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter
from rich.console import Group
from rich.table import Table

from fedgraph.cells import Environment, portable, result, store
from fedgraph.errors import DataError
from fedgraph.runtime import Runtime, RuntimeCount

LIVE_FILE = "live.json"
LIVE_SECONDS = 2.0
_MOST_AT_WORK = 6
_TITLES = ("task", "cells", "rounds", "calls", "messages", "a second", "MB up", "MB down", "most ε", "ε = ∞")


@dataclass(frozen=True)
class LiveState:
    """A run, as it says itself or as its files say."""

    status: str  # ``running``, ``interrupted`` or ``finished``
    seconds: float  # since it began, or that it took; 0 where that is not known
    done: int  # cells that are finished
    total: int  # cells in all; 0 where that is not known
    working: tuple[str, ...] = ()  # cells at work, in words
    left: str = ""  # what is left, and the best so far, in words
    runtime: Mapping[str, object] = field(default_factory=dict)  # as its engine describes itself


_Record = TypeVar("_Record", LiveState, Environment)


class LiveWriter:
    """Writes ``live.json`` while cells are computed."""

    def __init__(self, folder: Path, engine: Runtime) -> None:
        self._file, self._engine = folder / LIVE_FILE, engine
        self._began = time.time()
        self._at = 0.0

    def tell(self, done: int, total: int, working: Sequence[str], left: str) -> bool:
        """Whether it was time to write. A disk that is full is said by whoever writes results."""
        now = time.time()
        if now - self._at < LIVE_SECONDS:
            return False
        self._at = now
        state = LiveState("running", now - self._began, done, total, tuple(working), left, self._engine.describe())
        with contextlib.suppress(OSError):
            store.write_atomically(self._file, json.dumps(portable(asdict(state))).encode())
        return True


def read(folder: Path) -> LiveState:
    """The state of the run in a folder.

    Raises:
        DataError: No run was begun there, or a file is damaged.
    """
    if not (folder / "cells" / store.STORE_MARK).is_file():
        raise DataError(f"{folder}: no run was begun here; allowed: the folder of a run (--out), running or ended")
    running = store.is_locked(folder)
    live = _read(folder / LIVE_FILE, LiveState)
    made = _read(folder / "environment.json", Environment)
    if live is not None and running:
        return live
    done = len(list((folder / "cells").glob(f"*{store.STORED_CELL_ENDING}")))
    if live is not None:
        return replace(live, status="interrupted", done=done, working=(), left="")
    if made is None or running or done < made.cells:
        return LiveState("running" if running else "interrupted", 0.0, done, 0 if made is None else made.cells)
    return LiveState("finished", made.made.seconds or 0.0, done, done, runtime=made.runtime)


def view(state: LiveState, folder: Path) -> Group:
    """What ``fedgraph watch`` shows: actors, cells at work, and a line for each task.

    Args:
        state: Of the run.
        folder: Of the run; the largest finite ε of a task, and how many cells have ∞, are read from its cells.
    """
    spent: dict[str, list[float]] = {}
    for task, epsilon in map(_price, (folder / "cells").glob(f"*{store.STORED_CELL_ENDING}")):
        spent.setdefault(task, []).append(epsilon)
    total = f" of {state.total}" if state.total else ""
    actors, counts = state.runtime.get("actors"), _counts(state.runtime)
    named = [f"{name} ({where})" for name, where in actors.items()] if isinstance(actors, Mapping) else []
    head = [f"{folder}: {state.status}, {state.seconds:.0f} s, {state.done}{total} cells done{state.left}"]
    head += ["--resume goes on with it"] if state.status == "interrupted" else []
    head += [
        f"actors: {', '.join(named) or 'all in one process'}",
        *(f"at work: {one}" for one in state.working[:_MOST_AT_WORK]),
    ]
    rows = []
    for task in dict.fromkeys((*spent, *counts)):
        c, found = counts.get(task, RuntimeCount()), spent.get(task, [])
        rate = c.messages / c.seconds if c.seconds else 0.0
        sums = [f"{many:,}" for many in (len(found), c.rounds, c.calls, c.messages)]
        sums += [f"{rate:,.0f}", f"{c.bytes_up / 1e6:,.1f}", f"{c.bytes_down / 1e6:,.1f}"]
        rows.append((task, *sums, f"{max(filter(math.isfinite, found), default=0.0):.3g}", str(sum(map(math.isinf, found)))))
    return Group(*head, _table(rows))


def _table(rows: Sequence[Sequence[str]]) -> Table:
    """Where a screen is narrow the names of tasks are broken, and titles between their words; no number is cut."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(_TITLES[0], overflow="fold")
    for title, cells in zip(_TITLES[1:], list(zip(*rows, strict=True))[1:] or [()] * len(_TITLES[1:]), strict=True):
        table.add_column(title, justify="right", min_width=max(map(len, (*title.split(), *cells))))
    for row in rows:
        table.add_row(*row)
    return table


@functools.cache
def _price(file: Path) -> tuple[str, float]:
    """(task, provable ε) of a finished cell; its file never changes."""
    stored = result.read_file(file)
    return str(stored["task"]), float(str(stored["epsilon_provable"]))


def _counts(runtime: Mapping[str, object]) -> dict[str, RuntimeCount]:
    return TypeAdapter(dict[str, RuntimeCount]).validate_python(runtime.get("federation") or {})


def _read(file: Path, record: type[_Record]) -> _Record | None:
    """None where there is no such file."""
    try:
        return TypeAdapter(record).validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(f"{file}: damaged ({' '.join(str(error).split())[:200]})") from error
