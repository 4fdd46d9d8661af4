"""Cells are computed side by side, each whole by one worker, or one after another, each on the whole pool.

A worker that has a whole cell does it as the serial engine does, so the numbers are the same bit for bit, no message travels
between machines, and the driver gets each outcome as soon as it is there. Cells of one stage and seed share splits and plans,
so they are dealt together (``runtime.base.Queues``), and a worker forgets them when it goes on. What is done so:

* cells that a task calls *alone* (``tasks.base``): all their work belongs to one client, the rest of the pool would only watch;
* with ``spread: cells`` every cell, and with ``auto`` every cell of a graph so small that each worker can hold all of its
  clients, where there are enough cells to keep all workers busy.

All others follow, one at a time: their clients are dealt to the workers. Only they can go on in the middle of a cell.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedgraph.cells.cell import Cell, Context, Outcome
from fedgraph.errors import FedgraphError
from fedgraph.runs.console import Console
from fedgraph.runtime import memory
from fedgraph.runtime.base import Runtime
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.scenario.read import TaskSettings
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphCollection

Spread = Literal["auto", "cells", "clients"]


@dataclass(frozen=True, eq=False)
class Stage:
    """One task on one data set, with its cells."""

    task: TaskSettings
    context: Context
    cells: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Done:
    """A computed cell. outcome: what it found, or one sentence that says why it failed. seconds: wall time of it alone."""

    cell: Cell
    outcome: Outcome | str
    seconds: float


@dataclass(frozen=True, eq=False)
class Order:
    """What a worker needs to know of a cell, but for the data. group: names what it keeps from one cell to the next."""

    group: Hashable
    task: TaskSettings
    root: int
    seeds: int
    cell: Cell


MOST_CHARACTERS = 500  # of the sentence of a failed cell
CELLS_PER_WORKER = 4  # as many cells keep every worker busy nearly to the end
LIGHT = 2.0e8  # bytes of a graph that every worker may hold with all of its clients
_orders = itertools.count()  # makes the groups of every call their own
_kept: dict[Hashable, Context] = {}  # at a worker: the latest group's context; made again wherever it is missing


def computed(
    todo: Sequence[tuple[Stage, Cell]], engine: Runtime, console: Console, spread: Spread = "clients"
) -> Iterator[Done]:
    """Every cell of ``todo``, as soon as it is done. spread: what the workers share, see ``scenario.RuntimeSettings``."""
    memory.give_back()  # reading and planning took more than what is left of them
    whole = beside(todo, engine, spread)
    yield from _side_by_side(list(itertools.compress(todo, whole)), engine, console)
    for stage, cell in itertools.compress(todo, [not w for w in whole]):
        console.begin(cell)
        yield Done(cell, *_attempted(stage.task, cell, stage.context))
        console.finish(cell)


def beside(todo: Sequence[tuple[Stage, Cell]], engine: Runtime, spread: Spread) -> list[bool]:
    """Of each cell, whether one worker does the whole of it."""
    if engine.num_workers < 2:
        return [False] * len(todo)
    enough = len(todo) >= CELLS_PER_WORKER * engine.num_workers
    return [
        is_alone(stage, cell) or spread == "cells" or (spread == "auto" and enough and is_light(stage)) for stage, cell in todo
    ]


def is_alone(stage: Stage, cell: Cell) -> bool:
    """Whether the task says that one worker can do the whole cell; a task that says nothing needs the pool."""
    alone = tasks.task(stage.task.kind).TASK.alone
    return alone is not None and alone(stage.task.params, cell)


def is_light(stage: Stage) -> bool:
    """Whether every worker can hold the graph and all of its clients. A collection of graphs is never light."""
    data = stage.context.data
    if not isinstance(data, Graph):
        return False
    return sum(held.data.nbytes + held.indices.nbytes for held in (data.features, data.adjacency)) <= LIGHT


def _side_by_side(todo: Sequence[tuple[Stage, Cell]], engine: Runtime, console: Console) -> Iterator[Done]:
    queues: dict[Hashable, list[tuple[Order, Any]]] = {}
    run = next(_orders)
    for stage, cell in todo:
        context = stage.context
        group = (run, context.label, context.dataset, cell.seed)
        data = engine.share(("data", context.dataset), context.data)
        order = Order(group, stage.task, context.root, context.seeds, cell)
        queues.setdefault(group, []).append((order, data))
    for (order, _), (outcome, seconds) in engine.as_done(
        compute, list(queues.values()), lambda task: console.begin(task[0].cell), console.wait, lambda why: (why, 0.0)
    ):
        yield Done(order.cell, outcome, seconds)
        console.finish(order.cell)
    if queues:
        for done in engine.on_workers(forget, engine.num_workers):
            engine.get(done)


def forget(items: Sequence[int]) -> None:
    """At a worker: what whole cells left behind, before the clients of other cells need the room."""
    _kept.clear()
    memory.give_back()


def compute(order: Order, data: Graph | GraphCollection | None) -> tuple[Outcome | str, float]:
    """(outcome or why it failed, seconds) of one cell, all of it in this process."""
    cell = order.cell
    if order.group not in _kept:
        _kept.clear()
        _kept[order.group] = Context(cell.task, cell.dataset, data, order.root, order.seeds, SerialRuntime())
    return _attempted(order.task, cell, _kept[order.group])


def _attempted(task: TaskSettings, cell: Cell, context: Context) -> tuple[Outcome | str, float]:
    """A cell that fails must not end the others: its error becomes a sentence. A machine that fails (``OSError``) ends all."""
    began = time.perf_counter()
    found: Outcome | str
    try:
        found = timed(task, cell, context)[0]
        wrong = [name for name, value in found.metrics.items() if math.isnan(value)]
        if wrong and found.account is not None:
            found = f"{', '.join(wrong)} cannot be computed (not a number)"
    except OSError:
        raise
    except Exception as error:
        found = sentence(error)
    memory.give_back()
    return found, time.perf_counter() - began


def sentence(error: Exception) -> str:
    """One line that says what went wrong, also for an error that nobody foresaw."""
    text = str(error) if isinstance(error, FedgraphError) else f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        text = f"not enough memory ({str(error) or 'no size told'})"
    return " ".join(text.split())[:MOST_CHARACTERS]


def timed(task: TaskSettings, cell: Cell, context: Context) -> tuple[Outcome, float]:
    """(outcome, wall seconds) of one cell, run in this process."""
    began = time.perf_counter()
    outcome = tasks.task(task.kind).run(task.params, cell, context)
    return outcome, time.perf_counter() - began
