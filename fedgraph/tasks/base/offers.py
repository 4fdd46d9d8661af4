"""What a task says of itself beside its functions, and how a task is found by its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from fedgraph import plugins
from fedgraph.cells.cell import Cell, Context, Outcome
from fedgraph.documents.settings import Settings, Spec
from fedgraph.methods.base import Plan
from fedgraph.privacy.settle import Guarantee
from fedgraph.tasks.base.row_keys import RowKeys
from fedgraph.tasks.base.training import Fitted
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.protocols import Setting

P = TypeVar("P")  # the task's settings
Nested: TypeAlias = tuple[tuple[str | int, ...], str, Spec]  # (place in the settings, room of plugins, its settings)


@dataclass(frozen=True)
class Models(Generic[P]):
    """How a task's rows become models that are used, and what a budget is charged for a cell.

    params: its settings. spends: plan and guarantee of a cell, promises looked up. give_setting: what it trains on. train: it.
    dealt: who holds what of it.
    """

    params: type[P]
    spends: Callable[[P, Cell, Context], tuple[Plan, Guarantee]]
    give_setting: Callable[[P, Cell, Context, Setting], None]
    train: Callable[[P, Cell, Context], Fitted]
    dealt: Callable[[P, Cell, Context], DealtWorld]


@dataclass(frozen=True, kw_only=True)
class TaskOffers(Generic[P]):
    """What a task says of itself: ``TASK: TaskOffers[Params] = TaskOffers(…)`` at the end of its module.

    needs_data: it runs on each data set; without, it runs once and reads none.
    row_keys: the keys of an entry of ``methods`` that are the task's and not the method's; None: it has no such entries.
    one_method: ``method: {…}`` is understood as a list of one.
    refuses: why the method of that name cannot serve here (kind, protocol, setting), one sentence for the scenario's line.
    alone: whether one worker can do the whole cell, so that cells may run side by side; None: never.
    models: how its rows are fitted and charged; None: they cannot be.
    """

    needs_data: bool = True
    row_keys: type[RowKeys] | None = None
    one_method: bool = False
    refuses: Callable[[P, str], str | None] | None = None
    alone: Callable[[P, Cell], bool] | None = None
    models: Models[P] | None = None


class Task(Protocol):
    """The module of a task; its functions are described in ``tasks.base``."""

    TASK: TaskOffers[Any]
    Params: type[Settings]

    def plugins_of(self, params: Any) -> Sequence[Nested]: ...
    def cells(self, params: Any, context: Context) -> Sequence[Cell]: ...
    def plan(self, params: Any, cell: Cell, context: Context) -> Plan | None: ...
    def run(self, params: Any, cell: Cell, context: Context) -> Outcome: ...


def no_plugins(params: object) -> list[Nested]:
    """``plugins_of`` of a task without nested plugins."""
    return []


def entries_of(methods: Sequence[Spec], row: type[RowKeys]) -> list[Nested]:
    """The entries of ``methods`` as nested plugins: without the keys that are the task's, but for the label."""
    given = [{k: v for k, v in m.items() if k not in row.model_fields or k == "label"} for m in methods]
    return [(("methods", index), "methods", m) for index, m in enumerate(given)]


def releases_nothing(params: object, cell: Cell, context: Context) -> None:
    """``plan`` of a task that releases nothing."""


def task(kind: str) -> Task:
    """The task called ``kind``; ``ScenarioError`` where there is none."""
    return cast(Task, plugins.load("tasks", kind))
