"""The contract of a task: what is run, cell by cell, and what a cell leaves behind.

A task module defines

    Params                                 pydantic model, frozen, unknown keys forbidden
    plugins_of(params)                     (location, package, settings) of every nested plugin, for validation
    refuses(params, method) → str | None   where it uses methods: why this one cannot serve (kind, protocol, setting)
    cells(params, context) → list[Cell]    all that will be run, in order
    plan(params, cell, context) → Plan     its noise and releases, from public facts (None: nothing is released)
    run(params, cell, context) → Outcome   the numbers, the releases and the artefacts
    alone(params, cell) → bool             optional: one worker can do the whole cell, so that cells may run side by side
    NEEDS_DATA = False                     only where a task reads no data set

A *cell* is one method in one setting at one budget with one seed. It is computed whole or not at all, so
a killed run resumes at the first cell that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedgraph.federation.rounds import Prefixes
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.lines import Line
from fedgraph.runtime.base import Runtime
from fedgraph.types import Graph, GraphCollection


@dataclass(frozen=True)
class Cell:
    """task: the task's label. setting: ``central`` or what kind of federation. epsilon: the target (∞ allowed)."""

    task: str
    dataset: str
    method: str
    variant: str
    setting: str
    epsilon: float
    calibrated_by: str
    seed: int

    @property
    def path(self) -> tuple[str | int, ...]:
        """Names the cell's random streams, its ledger account and its file."""
        return (
            self.task,
            self.dataset,
            self.method,
            self.variant,
            self.setting,
            f"eps={self.epsilon!r}",
            self.calibrated_by,
            self.seed,
        )

    @property
    def key(self) -> str:
        return "/".join(str(p) for p in self.path)


def require_distinct(what: str, names: Sequence[object]) -> None:
    """``ValueError`` where two are equal: their cells would share one name, one noise stream and one file."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"{what} {name!r} appears twice; give one of them another value, or its own 'label'")


@dataclass(frozen=True, eq=False)
class Outcome:
    """metrics: name → value. facts: what the tables show beside them (clients, cut edges …).

    account, releases: the cell's part of the ledger; account None where nothing is released or learnt.
    published, provable, paths: the price of the whole cell, and of each path alone. measured: what an attack on
    the cell proves at least. artefacts: named arrays for plots (small).
    """

    metrics: dict[str, float]
    facts: dict[str, Any]
    account: Account | None
    releases: tuple[Line, ...]
    epsilon_published: float | None
    epsilon_provable: float
    theorem: str
    paths: dict[str, float]
    notes: tuple[str, ...] = ()
    artefacts: dict[str, np.ndarray] = field(default_factory=dict)
    epsilon_measured: float | None = None


class Pairs(Protocol):
    """Where solved pairs are kept while a run goes on and after it (``store.PairStore``)."""

    def load(self, name: str) -> list[dict[str, np.ndarray]]: ...
    def add(self, name: str, columns: dict[str, np.ndarray]) -> None: ...
    def close(self, name: str) -> str: ...


@dataclass(eq=False)
class Context:
    """What a task may use. cache: kept for the life of the process (splits, shared partitions). pairs: None keeps none."""

    label: str
    dataset: str
    data: Graph | GraphCollection | None
    root: int
    seeds: int
    runtime: Runtime
    prefixes: Prefixes = field(default_factory=Prefixes)
    cache: dict[Any, Any] = field(default_factory=dict)
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None
    pairs: Pairs | None = None

    def on_round(self, done: int, total: int) -> None:
        """Told by the federated loop."""
        self.progress("rounds", done, total)

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:
        """``make()``, once per key."""
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]
