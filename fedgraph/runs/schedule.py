"""Who computes which cell: curators side by side, and for a federation its clients and its server.

Under Ray every cell is dealt to a ``Curator``. What happens there follows from whom the cell trusts:

* a cell that a task calls *alone* (``tasks.base``): all its work belongs to one trusted party. The curator is that party and
  does the whole of it as the serial engine does: no message leaves it.
* every other cell is a federation. The curator deals the subgraphs out and measures the result; the rounds run at the
  ``Client`` actors and the ``Server`` actor. Meanwhile the curator computes another cell, alone or of another federation:
  rounds of several cells are on their way at once (``runtime.base.RUNTIME_LANES``).
* with ``spread: cells`` every cell is done as if it were alone: clients and server are simulated inside one curator.

The numbers are the same bit for bit. Cells of one stage and seed share splits and plans, so they are dealt together
(``runtime.ray.curator``), and a curator forgets them when it goes on. Federations on data that are not light follow at
the end, one at a time, so that their parts are in memory once.

While a Ray on this machine starts, the driver is a curator, too: it computes cells that are alone, on light data, one after
another; the last of them goes on beside the others.
"""

import functools
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fedgraph import plugins
from fedgraph.cells import Cell, CellContext, CellPairKeeper, Result
from fedgraph.errors import FedgraphError
from fedgraph.learning import public_cache
from fedgraph.privacy import accountant
from fedgraph.runs.console import Console
from fedgraph.runtime import RUNTIME_LANES, Runtime, RuntimeDealing, RuntimeParties, SerialRuntime, process
from fedgraph.scenario import ScenarioTask
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphCollection

_Spread = Literal["cells", "clients"]


@dataclass(frozen=True, eq=False)
class ScheduledStage:
    """One task on one data set."""

    task: ScenarioTask  # Its settings
    context: CellContext  # What its cells may use
    cells: tuple[Cell, ...]  # In the order of the scenario


@dataclass(frozen=True, eq=False)
class _Order:
    """What a curator needs to know of a cell, but for the data."""

    group: Hashable  # Names what the curator keeps from one cell to the next
    task: ScenarioTask  # The settings of the task
    root: int  # The root seed
    seeds: int  # How many repetitions there are
    cell: Cell  # Which cell
    whole: bool = True  # Whether nothing of it is computed elsewhere
    pairs: CellPairKeeper | None = None  # Where solved pairs are kept; None keeps none


@dataclass(eq=False)
class _Contexts:
    """At a curator: one context for each lane, on small data, or one alone; made again wherever it is missing."""

    # (group, context) that no cell uses now, the oldest first
    idle: list[tuple[Hashable, CellContext]] = field(default_factory=list)
    at_work: int = 0  # how many cells use one

    def take(self, federation: Callable[[], RuntimeParties], order: _Order, data: Graph | GraphCollection) -> CellContext:
        """The context for a cell of this group alone, until it is given back."""
        self.at_work += 1
        for index, (group, context) in enumerate(self.idle):
            if group == order.group:
                del self.idle[index]
                return context
        room = RUNTIME_LANES - self.at_work if _bytes(data) * RUNTIME_LANES <= _LIGHT else 0
        while len(self.idle) > max(room, 0):
            self.idle.pop(0)[1].runtime.close()
        runtime: RuntimeParties = SerialRuntime() if order.whole else federation()
        pairs = order.pairs if order.pairs is not None and order.pairs.reachable() else None
        return CellContext(order.cell.task, order.cell.dataset, data, order.root, order.seeds, runtime, pairs=pairs)

    def give_back(self, group: Hashable, context: CellContext) -> None:
        self.at_work -= 1
        self.idle.append((group, context))

    def clear(self) -> None:
        self.idle.clear()


_kept = _Contexts()
_MOST_CHARACTERS = 500  # of the sentence of a failed cell
_LIGHT = 2.0e8  # bytes of a graph of which several federations may be dealt out at once
_SECONDS_BETWEEN_LOOKS = 0.02
_orders = itertools.count()  # makes the groups of every call their own


@functools.cache  # once in a process for each run
def share_prices(folder: str | None) -> None:
    """In the driver, once all is planned: keeps the prices that planning found. At a curator: takes them over, and need not
    search for the same noise again. They follow from public facts, as plans do. folder: ``public_cache.folder()``.
    """
    accountant.prices.update(public_cache.make("prices", lambda: dict(accountant.prices)))


def compute_cells(
    todo: Sequence[tuple[ScheduledStage, Cell]],
    ready: Callable[[], Runtime],
    console: Console,
    spread: _Spread = "clients",
    is_up: Callable[[], bool] = lambda: True,
) -> Iterator[Result]:
    """The result of every cell of ``todo``, as soon as it is done.

    Args:
        ready: waits for the engine and returns it.
        spread: see ``scenario.read.ScenarioRuntime``.
        is_up: whether the engine has started. Until then the driver computes cells that need no other process, on light data,
            in a thread of its own; the last of them may go on beside the engine.
    """
    process.give_back_process_memory()  # reading and planning took more than what is left of them
    taken: set[Cell] = set()
    early = _in_driver(
        [one for one in todo if _is_scheduled_alone(*one) and _bytes(one[0].context.data) <= _LIGHT], is_up, console, taken
    )
    while not is_up():
        if (done := next(early, None)) is not None:
            yield done
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    engine = ready()
    todo = [one for one in todo if one[1] not in taken]
    if engine.name == "serial":
        for stage, cell in todo:
            console.begin(cell)
            yield _attempted(stage.task, cell, stage.context)
            console.finish(cell)
        return
    alone = [spread == "cells" or _is_scheduled_alone(stage, cell) for stage, cell in todo]
    if not all(alone):
        engine.open("server", "client")
    orders = [(stage, cell, whole) for (stage, cell), whole in zip(todo, alone, strict=True)]
    orders.sort(key=lambda order: not order[2])  # the server and the clients start meanwhile
    at_once = [None if whole else _most_at_once(stage, engine.num_workers) for stage, _, whole in orders]
    for most in dict.fromkeys((None, engine.num_workers, 1)):
        part = [order for order, own in zip(orders, at_once, strict=True) if own == most]
        for done in _dealt(part, engine, console, most):
            yield done
            yield from filter(None, (next(early, None),))
    for last in early:
        if last is not None:
            yield last
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _in_driver(
    cells: Sequence[tuple[ScheduledStage, Cell]], is_up: Callable[[], bool], console: Console, taken: set[Cell]
) -> Iterator[Result | None]:
    """``cells`` one after another in a thread, until ``is_up``; None while one is at work. taken: receives those begun."""
    run = next(_orders)
    for stage, cell in itertools.takewhile(lambda one: not is_up(), cells):
        taken.add(cell)
        console.begin(cell)
        context = stage.context
        group = (run, context.label, context.dataset, cell.seed)
        order = _Order(group, stage.task, context.root, context.seeds, cell, True, context.pairs)
        found: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        name = "curator in the driver"
        threading.Thread(target=_computed_into, args=(found, order, context.data), name=name, daemon=True).start()
        while found.empty():
            yield None
        value = found.get()
        if isinstance(value, BaseException):
            raise value
        yield value
        console.finish(cell)
    _kept.clear()


def _computed_into(found: queue.SimpleQueue[Any], order: _Order, data: Graph | GraphCollection) -> None:
    process.use_one_thread()
    try:
        found.put(_compute(SerialRuntime, order, data))
    except BaseException as error:  # of the machine: it ends the run
        found.put(error)


def describe_rounds(engine: str, spread: _Spread) -> str:
    """In words, for ``environment.json`` and the page."""
    if engine == "serial":
        return "clients, server and curator are simulated in one process"
    if spread == "cells":
        return "clients and server of a federation are simulated inside one worker"
    return "rounds run at client actors and a server actor"


def _is_scheduled_alone(stage: ScheduledStage, cell: Cell) -> bool:
    """Whether the task says that one party does the whole cell; a cell of a task that says nothing is a federation."""
    alone = tasks.load(stage.task.kind).TASK.alone
    return alone is not None and alone(stage.task.params, cell)


def _bytes(data: Graph | GraphCollection) -> float:
    """Of a graph; up to ``_LIGHT`` several parties can hold it and all of its clients at once. A collection is never light."""
    if not isinstance(data, Graph):
        return math.inf
    return float(sum(held.data.nbytes + held.indices.nbytes for held in (data.features, data.adjacency)))


def _most_at_once(stage: ScheduledStage, curators: int) -> int | None:
    """How many federations on its data may be on their way. None: as many as the curators have lanes."""
    held = _bytes(stage.context.data)
    return None if held * RUNTIME_LANES <= _LIGHT else curators if held <= _LIGHT else 1


def _dealt(
    todo: Sequence[tuple[ScheduledStage, Cell, bool]], engine: Runtime, console: Console, most: int | None
) -> Iterator[Result]:
    own: dict[Hashable, list[tuple[_Order, Any]]] = {}
    led: dict[Hashable, list[tuple[_Order, Any]]] = {}
    run = next(_orders)
    for stage, cell, whole in todo:
        context = stage.context
        group = (run, context.label, context.dataset, cell.seed, whole)
        data = engine.share(("data", context.dataset), context.data)
        order = _Order(group, stage.task, context.root, context.seeds, cell, whole, context.pairs)
        (own if whole else led).setdefault(group, []).append((order, data))
    begin, lost = (lambda task: console.begin(task[0].cell)), str
    dealing = RuntimeDealing(list(own.values()), list(led.values()), begin, console.wait, lost, most)
    for (order, _), found in engine.as_done(_compute, dealing):
        yield found if isinstance(found, Result) else Result.of(order.cell, failed=found, seconds=0.0)
        console.finish(order.cell)


def _compute(federation: Callable[[], RuntimeParties], order: _Order, data: Graph | GraphCollection) -> Result:
    """At a curator: one cell. federation: makes a runtime at clients and server."""
    share_prices(public_cache.folder())
    context = _kept.take(federation, order, data)
    found = _attempted(order.task, order.cell, context)
    _kept.give_back(order.group, context)
    return found


def _attempted(task: ScenarioTask, cell: Cell, context: CellContext) -> Result:
    """A cell that fails must not end the others: its error becomes a sentence. A machine that fails (``OSError``) ends all."""
    began = time.perf_counter()
    try:
        found = run_cell(task, cell, context)
        wrong = [name for name, value in found.metrics.items() if math.isnan(value)]
        if wrong and found.protection is not None:
            found = Result.of(cell, failed=f"{', '.join(wrong)} cannot be computed (not a number)")
    except OSError:
        raise
    except Exception as error:
        found = Result.of(cell, failed=describe_error(error))
    process.give_back_process_memory()
    return found if found.seconds is not None else replace(found, seconds=time.perf_counter() - began)


def describe_error(error: Exception) -> str:
    """One line that says what went wrong, also for an error that nobody foresaw."""
    text = str(error) if isinstance(error, FedgraphError) else f"{type(error).__name__}: {error}{plugins.place_of(error)}"
    if isinstance(error, MemoryError):
        text = f"not enough memory ({str(error) or 'no size told'})"
    return " ".join(text.split())[:_MOST_CHARACTERS]


def run_cell(task: ScenarioTask, cell: Cell, context: CellContext) -> Result:
    """What the task finds of one cell, in this process."""
    return tasks.load(task.kind).run(task.params, cell, context)
