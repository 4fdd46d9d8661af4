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

An entry of ``methods`` holds the settings of a method, and keys of its row: label, budgets and others. Each task describes
these keys by one model, derived from ``TaskRowKeys``. The reader checks them, the schema lists them, and the method never sees
them. In ``{method: gcon, label: GCON, epsilons: [1]}`` the row's keys are ``label`` and ``epsilons``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, Field, ValidationError, field_validator

from fedgraph import plugins
from fedgraph.cells import Cell as Cell
from fedgraph.cells import CellContext as CellContext
from fedgraph.cells import Result as Result
from fedgraph.cells import require_distinct_cells as require_distinct_cells
from fedgraph.documents import Settings, SettingsSpec
from fedgraph.federation import Federation
from fedgraph.methods import Plan
from fedgraph.privacy import Guarantee
from fedgraph.types import Graph, Partition

if TYPE_CHECKING:
    from fedgraph.tasks.base.cell_training import TrainedCell

_MOST_CHOICES = 200


class TaskRowKeys(Settings):
    """The keys that every task understands."""

    label: str | None = Field(None, description="name of the row in tables")


class TaskRowSelect(Settings):
    """Settings of a method that are chosen privately. In each trial every combination of ``over`` is as likely as any other."""

    over: dict[str, list[bool | int | float | str]] = Field(min_length=1, description="setting of the method: values")
    among: float = Field(20, ge=1, le=1000, description="the mean number of trials")
    by: Literal["accuracy"] = Field("accuracy", description="what the noisy score counts: right answers")

    @field_validator("over")
    @classmethod
    def _some(cls, over: dict[str, list[bool | int | float | str]]) -> dict[str, list[bool | int | float | str]]:
        """At most ``_MOST_CHOICES`` combinations, each planned and priced before anything is trained."""
        combinations = math.prod(map(len, over.values()))
        if not 1 <= combinations <= _MOST_CHOICES:
            raise ValueError(f"over has {combinations} combinations; allowed: 1 to {_MOST_CHOICES}")
        return over

    @property
    def choices(self) -> list[SettingsSpec]:
        """Every combination."""
        return [dict(zip(self.over, values, strict=True)) for values in itertools.product(*self.over.values())]


def distinct_values(what: str) -> AfterValidator:
    """A validator for a list of a scenario: ``ValueError`` if two entries are equal. what: what an entry is, for the error."""

    def checked(values: list[Any]) -> list[Any]:
        require_distinct_cells(what, values)
        return values

    return AfterValidator(checked)


def check_row_keys(row: type[TaskRowKeys]) -> Callable[[SettingsSpec], SettingsSpec]:
    """A validator that returns an entry of ``methods`` as it is; ``ValueError`` if one of its row's keys is wrong."""

    def checked(entry: SettingsSpec) -> SettingsSpec:
        given = {k: v for k, v in entry.items() if k in row.model_fields and k != "label"}  # the reader checks every label
        try:
            row.model_validate(given)
        except ValidationError as error:
            problem = error.errors()[0]
            message = problem["msg"].removeprefix("Value error, ")
            raise ValueError(f"{problem['loc'][0]} of this row is {problem['input']!r}; {message}") from None
        if none := [k for k, v in given.items() if v is None]:
            raise ValueError(f"{none[0]} of this row has no value; write one, or leave the key away")
        return entry

    return checked


def without_row_keys(entry: SettingsSpec, row: type[TaskRowKeys]) -> SettingsSpec:
    """The settings of an entry's method: the entry without ``method`` and without the row's keys."""
    return {k: v for k, v in entry.items() if k != "method" and k not in row.model_fields}


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


def no_plugins(params: object) -> list[NestedTaskPlugin]:
    """``plugins_of`` of a task without nested plugins."""
    return []


def nest_methods(methods: Sequence[SettingsSpec], row: type[TaskRowKeys]) -> list[NestedTaskPlugin]:
    """The entries of ``methods`` as nested plugins: without the row's keys except the label."""
    given = [{k: v for k, v in m.items() if k not in row.model_fields or k == "label"} for m in methods]
    return [(("methods", index), "methods", m) for index, m in enumerate(given)]


def nest_attacks(named: Sequence[SettingsSpec]) -> list[NestedTaskPlugin]:
    """Attacks by name as nested plugins, for the reader of scenarios.

    Args:
        named: The entries of ``attack.named``; their labels are left out.
    """
    given = [{k: v for k, v in attack.items() if k != "label"} for attack in named]
    return [(("attack", "named", index), "attacks", attack) for index, attack in enumerate(given)]


def no_plan(params: object, cell: Cell, context: CellContext) -> None:
    """``plan`` of a task that releases nothing."""


def load(kind: str) -> Task:
    """A task by its name.

    Args:
        kind: The name of its file or folder in ``fedgraph/tasks``.

    Raises:
        ScenarioError: There is no such task.
    """
    return cast(Task, plugins.load("tasks", kind))
