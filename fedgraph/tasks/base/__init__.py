"""The contract of a task: what is run, cell by cell, and what a cell leaves behind.

A task module defines

    Params                                    pydantic model, frozen, unknown keys forbidden
    plugins_of(params)                        (location, package, settings) of every nested plugin, for validation
    cells(params, context) → list[Cell]       all that will be run, in order
    plan(params, cell, context) → Plan        its noise and releases, from public facts (None: nothing is released)
    run(params, cell, context) → Result       the numbers, the releases and the artefacts
    TASK: TaskOffers[Params]                  what else the task can do, and which keys its rows have

A *cell* is one method in one setting at one budget with one seed. It is computed whole or not at all, so a killed run resumes
at the first cell that is missing.

``grid`` has the keys of the entries of ``methods``, and the grid of cells of nodes and links.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from fedgraph import plugins
from fedgraph.cells import Cell as Cell
from fedgraph.cells import CellContext as CellContext
from fedgraph.cells import Result as Result
from fedgraph.documents import Settings, SettingsSpec
from fedgraph.federation import Federation
from fedgraph.methods import Plan
from fedgraph.privacy import Guarantee
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.tasks.base.grid import TaskRowKeys
from fedgraph.types import Graph, Partition

P = TypeVar("P")  # the task's settings
NestedTaskPlugin: TypeAlias = tuple[tuple[str | int, ...], str, SettingsSpec]  # (place, room of plugins, its settings)


@dataclass(frozen=True)
class TaskModels(Generic[P]):
    """How a row is fitted as a model for use, and what a budget is charged for it."""

    params: type[P]  # the model of the task's settings
    # from the settings, a graph and a graph of public people (or None) to the setting in which all train
    everybody: Callable[[P, Graph, Graph | None], Federation]
    # from a cell to its plan and its guarantee, with every promise looked up in the data
    spends: Callable[[P, Cell, CellContext], tuple[Plan, Guarantee]]
    # lets a cell train on a given federation instead of a split of its own
    give_setting: Callable[[P, Cell, CellContext, Federation], None]
    train: Callable[[P, Cell, CellContext], TrainedCell]  # trains a cell and prices it; nothing is tested


@dataclass(frozen=True, kw_only=True)
class TaskOffers(Generic[P]):
    """What a task can do: ``TASK: TaskOffers[Params] = TaskOffers(…)`` at the end of its module."""

    row_keys: type[TaskRowKeys] | None = None  # the model of its rows' keys; None: the task has no ``methods``
    one_method: bool = False  # whether ``method: {…}`` is read as a list of one method
    # from the settings and the name of a method to the reason why it cannot serve here (kind, protocol, trust), as one
    # sentence; None: it can
    refuses: Callable[[P, str], str | None] | None = None
    alone: Callable[[P, Cell], bool] | None = None  # whether one worker can compute the whole cell; None: never
    models: TaskModels[P] | None = None  # how its rows are fitted and charged; None: they cannot be
    # who holds what in a cell, for rows that are deployed (``export``); None: they cannot be
    clients: Callable[[P, Cell, CellContext], Partition] | None = None


class Task(Protocol):
    """The module of a task; its functions are described in ``tasks.base``."""

    TASK: TaskOffers[Any]
    Params: type[Settings]

    def plugins_of(self, params: Any) -> Sequence[NestedTaskPlugin]: ...
    def cells(self, params: Any, context: CellContext) -> Sequence[Cell]: ...
    def plan(self, params: Any, cell: Cell, context: CellContext) -> Plan | None: ...
    def run(self, params: Any, cell: Cell, context: CellContext) -> Result: ...


def nest_methods(methods: Sequence[SettingsSpec], row: type[TaskRowKeys]) -> list[NestedTaskPlugin]:
    """The entries of ``methods`` as nested plugins: without the row's keys except the label."""
    given = [{k: v for k, v in m.items() if k not in row.model_fields or k == "label"} for m in methods]
    return [(("methods", index), "methods", m) for index, m in enumerate(given)]


def nest_attacks(named: Sequence[SettingsSpec]) -> list[NestedTaskPlugin]:
    """The entries of ``attack.named`` as nested plugins, without their labels."""
    given = [{k: v for k, v in attack.items() if k != "label"} for attack in named]
    return [(("attack", "named", index), "attacks", attack) for index, attack in enumerate(given)]


def load(kind: str) -> Task:
    """The task of a file or folder in ``fedgraph/tasks``; ``ScenarioError`` if there is none."""
    return cast(Task, plugins.load("tasks", kind))
