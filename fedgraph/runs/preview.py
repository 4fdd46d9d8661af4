"""The dry run: what a scenario will release and at which ε, from public facts alone; at most one screen for each task.

A row is one method in one world, with all its budgets. Of a task on several data sets the first is a table; of each other
one line says how many cells it has and which rows are priced otherwise. Plans are made in turn over the tasks, the first seed's
only, until ``_SECONDS`` of work are done; a budget that was not reached is marked ``?`` and priced when the scenario runs.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fedgraph.cells import Cell
from fedgraph.federation import World
from fedgraph.methods import Plan
from fedgraph.report import phrases
from fedgraph.runs.console import Console
from fedgraph.runs.schedule import ScheduledStage

_SECONDS = 5.0  # of processor time for plans, over all tasks
_LINES = 30  # of one task's table
_HEADER = ("row", "trust", "target ε", "ε provable", "δ", "unit", "clients", "rounds", "releases of one client")


@dataclass(eq=False)
class _Row:
    """One method in one world."""

    cells: list[Cell]  # Of the first seed
    plans: dict[Cell, Plan] = field(default_factory=dict)  # Those that were made
    provable: dict[Cell, float] = field(default_factory=dict)  # Their ε
    unreleased: bool = False  # Whether the method has nothing to plan

    def line(self) -> tuple[str, ...]:
        """As the table shows it."""
        made = next(iter(self.plans.values()), None)
        cell = self.cells[0]
        same = cell.variant in ("default", "baseline", cell.method)
        name = cell.method if same else f"{cell.method} · {cell.variant}"
        if "published" in {c.calibrated_by for c in self.cells}:
            name += " (as published)"
        targets = ", ".join(phrases.rounded(c.epsilon) for c in self.cells)
        if self.unreleased or made is None:
            why = "nothing is released" if self.unreleased else "?"
            return (name, cell.world.words, targets, why, "", "", "", "", "")
        provable = ", ".join(phrases.upper(self.provable[c], 2) if c in self.provable else "?" for c in self.cells)
        promised = made.guarantee.protection.promised_degree
        if promised is not None:  # no data are read yet: the run checks the promise, and prints ∞ where they break it
            provable += f" if no degree is above {promised}, else ∞"
        unit = made.guarantee.protection.unit.value
        facts = (str(made.facts.num_clients), str(made.schedule.rounds), "; ".join(_releases(made)))
        return (name, cell.world.words, targets, provable, f"{made.guarantee.delta:.2g}", unit, *facts)


_Planner = Callable[[ScheduledStage, Cell], Plan | None]


def show(stages: Sequence[ScheduledStage], seeds: int, plan: _Planner, console: Console) -> None:
    """One table for each task and data set. plan: of one cell; None where nothing is released."""
    tables = [_rows(stage) for stage in stages]
    _plan_in_turn(stages, tables, plan)
    shown: dict[str, list[tuple[str, ...]]] = {}  # of each task, the table of its first data set
    for stage, rows in zip(stages, tables, strict=True):
        title = f"{stage.task.label} on {stage.context.dataset}: {len(stage.cells)} cells, {seeds} seed(s)"
        lines = [row.line() for row in rows]
        first = shown.setdefault(stage.task.label, lines)
        if first is not lines and [line[:3] for line in first] == [line[:3] for line in lines]:
            console.print(f"{title}; the same rows{_otherwise(first, lines)}")
            continue
        if len(lines) > _LINES:
            lines = [*lines[:_LINES], (f"… and {len(rows) - _LINES} rows more", *[""] * (len(_HEADER) - 1))]
        console.table(title, _HEADER, lines, words_last=True)
    if any("?" in line[3] for lines in shown.values() for line in lines):
        console.print(f"?: not planned in the {_SECONDS:g} s of work that a dry run may take; priced when the scenario runs.")


def _otherwise(first: Sequence[tuple[str, ...]], lines: Sequence[tuple[str, ...]]) -> str:
    """Which rows have another provable ε on another data set, as far as both are planned."""
    found = [f"{b[0]}, {b[1]}: {b[3]}" for a, b in zip(first, lines, strict=True) if a[3] != b[3] and "?" not in a[3] + b[3]]
    return f", of which another ε is provable for {phrases.first(found, 2, '; ')}" if found else ""


def _rows(stage: ScheduledStage) -> list[_Row]:
    found: dict[tuple[str, str, World, bool], _Row] = {}
    for cell in stage.cells:
        if cell.seed == 0:
            key = (cell.method, cell.variant, cell.world, cell.calibrated_by == "published")
            found.setdefault(key, _Row([])).cells.append(cell)
    return list(found.values())


def _plan_in_turn(stages: Sequence[ScheduledStage], tables: Sequence[Sequence[_Row]], plan: _Planner) -> None:
    """First one budget of every shown row, task by task in turn, then the next, until the work is done or too much."""
    until = time.process_time() + _SECONDS
    turns = [
        (turn, place, stage, row, cell)
        for stage, rows in zip(stages, tables, strict=True)
        for place, row in enumerate(rows[:_LINES])
        for turn, cell in enumerate(row.cells)
    ]
    for *_, stage, row, cell in sorted(turns, key=lambda one: one[:2]):
        made = None if row.unreleased else plan(stage, cell)
        row.unreleased = made is None
        if made is not None:
            row.plans[cell], row.provable[cell] = made, made.provable().epsilon
        if time.process_time() > until:
            return


def _releases(made: Plan) -> list[str]:
    """``model 60 × Gaussian noise`` for each path of the first client that sends anything."""
    sending = [r.client for r in made.schedule.releases if r.client is not None]  # client 0 may never send anything
    first = min(sending, default=0)
    words: dict[str, str] = {}
    counts = Counter[str]()
    for release in made.schedule.releases:
        if release.client in (None, first):
            words.setdefault(release.path, re.split(r" of |,|;|:| over | for ", release.mechanism.words)[0])
            counts[release.path] += release.count
    return [f"{path} {counts[path]} × {said}" for path, said in words.items()]
