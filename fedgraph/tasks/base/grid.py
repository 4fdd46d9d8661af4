"""Rows of a task: an entry of ``methods`` with its keys, and the grid of cells that such entries make.

An entry holds the settings of a method, and keys of its row: label, budgets and others. Each task describes these keys by one
model, derived from ``TaskRowKeys``. The reader checks them, the schema lists them, and the method never sees them. In
``{method: gcon, label: GCON, epsilons: [1]}`` the row's keys are ``label`` and ``epsilons``.

The tasks of nodes and links have one grid (``Grid``): methods × trust × budgets × seeds.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from fedgraph import documents, federation
from fedgraph.cells import Cell, CellContext, require_distinct_cells
from fedgraph.documents import Settings, SettingsSpec
from fedgraph.methods import method_kinds
from fedgraph.privacy import Trust

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


def check_keys(row: type[TaskRowKeys]) -> Callable[[SettingsSpec], SettingsSpec]:
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


def without_keys(entry: SettingsSpec, row: type[TaskRowKeys]) -> SettingsSpec:
    """The settings of an entry's method: the entry without ``method`` and without the row's keys."""
    return {k: v for k, v in entry.items() if k != "method" and k not in row.model_fields}


def _of_other_names(methods: list[SettingsSpec]) -> list[SettingsSpec]:
    require_distinct_cells("the row", [f"{spec.get('method')} · {label_of(spec)}" for spec in methods])
    return methods


def _positive(epsilon: float) -> float:
    if not epsilon > 0:
        raise ValueError(f"every ε must be > 0 (inf for no privacy), found {epsilon}: at ε = 0 nothing may be released")
    return epsilon


class RowKeys(TaskRowKeys):
    """The keys that an entry of ``methods`` may have beside the settings of its method."""

    trust: Annotated[list[Trust] | None, Field(min_length=1)] = Field(
        None, description="who is trusted in this row; default the task's"
    )
    epsilons: Annotated[list[Annotated[float, Field(gt=0)]] | None, Field(min_length=1), documents.InfiniteSetting] = Field(
        None, description="budgets of this row; default the task's"
    )
    seeds: int | None = Field(None, ge=1, description="how many of the scenario's seeds this row runs; default all")


_Entry = Annotated[SettingsSpec, AfterValidator(check_keys(RowKeys))]
Rows = AfterValidator(_of_other_names)
_Budgets = Annotated[list[Annotated[float, AfterValidator(_positive)]], distinct_values("ε"), documents.InfiniteSetting]


class Grid(Settings):
    """The settings of every task that has such a rows."""

    methods: Annotated[list[_Entry], Rows] = Field(
        min_length=1, description="method: file name in fedgraph/methods, then its settings"
    )
    trust: list[Trust] = Field(min_length=1, description="who is trusted")
    partition: SettingsSpec = Field(
        default_factory=lambda: {"partition": "louvain", "clients": 10}, description="how federated clients share the nodes"
    )
    epsilons: _Budgets = Field(min_length=1, description="privacy budgets ε; inf for none")
    cut_edges: Literal["dropped", "protected"] = Field(
        "dropped", description="edges between clients: dropped; or, where one edge is private, used and protected at both ends"
    )
    owners: bool = Field(
        False,
        description="is joining worth it, for whom? each owner of the data has every choice, and gets a page",
    )
    called: tuple[str, str] = Field(("person", "people"), description="what the pages for owners call a node, and several")

    @property
    def run_trust(self) -> set[Trust]:
        """The levels of trust under which a row can run."""
        return {*self.trust, Trust.NOBODY}

    @model_validator(mode="after")
    def _runs_every_trust_of_a_row(self) -> Self:
        """``ValueError`` for a row with a level of trust that the task does not have: no cell would run it."""
        for spec in self.methods:
            if beyond := [Trust(one).value for one in spec.get("trust", ()) if Trust(one) not in self.run_trust]:
                row, allowed = f"row {spec['method']} · {label_of(spec)}", ", ".join(one.value for one in self.trust)
                raise ValueError(
                    f"{row} is to trust {', '.join(beyond)}, where this task does not run (trust: [{allowed}]); "
                    f"allowed: {allowed}, or the task's trust with {beyond[0]} in it"
                )
        return self

    @property
    def readings(self) -> Sequence[str]:
        """The readings of ε that noise is calibrated for."""
        return ["provable"]


def list_cells(params: Grid, context: CellContext) -> list[Cell]:
    """Every cell, seed by seed. A method that adds no noise runs once for each trust, at ε = ∞."""
    found: list[Cell] = []
    for seed in range(context.seeds):
        for trust in dict.fromkeys((*params.trust, Trust.NOBODY)):
            for entry, spec in enumerate(params.methods):
                if trust not in trust_of(spec, params.trust) or seed >= int(spec.get("seeds", context.seeds)):
                    continue
                found += cells_of(params, federation.world_of_trust(trust), entry, seed, context)
    return found


def cells_of(params: Grid, world: federation.World, entry: int, seed: int, context: CellContext) -> list[Cell]:
    """The cells of one row in one world: one for each budget and each reading of ε."""
    spec = params.methods[entry]
    budgets = [np.inf] if ignores_budget(spec) else [float(e) for e in spec.get("epsilons", params.epsilons)]
    named = (context.label, context.dataset, spec["method"], label_of(spec), world)
    read = [(e, reading) for e in budgets for reading in (params.readings if np.isfinite(e) else ["none"])]
    return [Cell(*named, epsilon, reading, seed, entry) for epsilon, reading in read]


def computes_alone(params: Grid, cell: Cell) -> bool:
    """Whether one worker can compute the whole cell: none of its trainings has several clients."""
    return cell.world.kind is not federation.WorldKind.TOGETHER


def trust_of(spec: SettingsSpec, trusted: Sequence[Trust]) -> list[Trust]:
    """The row's levels of trust: those that it names; else ``nobody`` if every node protects itself, else its task's."""
    if "trust" in spec:
        return [Trust(t) for t in spec["trust"]]
    if method_kinds.load(spec["method"]).OFFERS.trusts_nobody:
        return [Trust.NOBODY]
    return [t for t in trusted if t is not Trust.NOBODY] or [Trust.NOBODY]


def trust_of_method(name: str, methods: Sequence[SettingsSpec], trusted: Sequence[Trust]) -> list[Trust]:
    """The levels of trust of all rows of the method ``name``, each once."""
    return list(dict.fromkeys(t for spec in methods if spec.get("method") == name for t in trust_of(spec, trusted)))


def ignores_budget(spec: SettingsSpec) -> bool:
    """Whether the row adds no noise at any ε, under its settings (``Offers.ignores_budget``)."""
    return not method_kinds.load(spec["method"]).OFFERS.is_private(spec)


def label_of(spec: SettingsSpec) -> str:
    """The label of a row: its ``label``, ``model`` or ``variant``; else ``chosen`` or ``default``."""
    name = spec.get("label") or spec.get("model") or spec.get("variant")
    return str(name or ("chosen" if "select" in spec else "default"))
