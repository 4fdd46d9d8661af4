"""A cell: one method in one world at one budget with one seed; and what its task may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import numpy as np

from fedgraph.federation import World
from fedgraph.privacy import ledger
from fedgraph.types import Graph, GraphCollection

if TYPE_CHECKING:
    from fedgraph.federation import RoundPrefixes
    from fedgraph.runtime import RuntimeParties

_Spec = TypeVar("_Spec")
_Made = TypeVar("_Made")
CellKind = tuple[str, str, str, str, World]


@dataclass(frozen=True)
class Cell:
    """What names one cell of a run."""

    task: str  # the task's label in the scenario
    dataset: str  # the label of the data set
    method: str  # the method, or the name of a row that the task adds itself
    variant: str  # the label that the scenario gives the row, or ``default``
    world: World  # who trains together, and who is trusted
    epsilon: float  # the target ε; ∞ asks for no privacy
    calibrated_by: str  # for which reading of ε the noise is chosen: ``provable``, ``published``, or ``none`` at ε = ∞
    seed: int  # the number of the repetition, from 0
    # where the cell's row stands in its task's list: of ``methods``, or of the claims. It names no stream and no file. None:
    # a row that no entry asked for, such as ``graph size``
    entry: int | None = None

    @property
    def kind(self) -> CellKind:
        """Cells of one kind differ in ε, reading and seed alone, so they do the same work."""
        return (self.task, self.dataset, self.method, self.variant, self.world)

    @property
    def row(self) -> Cell:
        """Names its row: all that names the cell but the seed, as the row's first cell."""
        return Cell(*self.kind[:4], self.world, self.epsilon, self.calibrated_by, 0)

    @property
    def path(self) -> tuple[str | int, ...]:
        """Names the cell's random streams."""
        return (*self.kind[:4], self.world.stream_word, f"eps={self.epsilon!r}", self.calibrated_by, self.seed)

    @property
    def key(self) -> str:
        """Names its account while it is computed; two cells of different paths have different keys."""
        return ledger.account_name(self.path)

    @property
    def name(self) -> str:
        """Names its account in what a run leaves: as ``key``, in the words that users write."""
        return ledger.account_name((*self.path[:4], self.world.words, *self.path[5:]))

    @property
    def words(self) -> str:
        """As a person reads it."""
        name = self.method if self.variant == "default" else f"{self.method} · {self.variant}"
        target = "∞" if math.isinf(self.epsilon) else repr(self.epsilon)
        return f"{name}, {self.world.words}, ε = {target}, seed {self.seed}"

    def among(self, entries: Sequence[_Spec]) -> _Spec:
        """The cell's own entry of those that its task lists, in the order of the scenario.

        Raises:
            ValueError: No entry asked for this row.
        """
        if self.entry is None:
            raise ValueError(f"no entry of the task asked for the cell {self.key}")
        return entries[self.entry]


def require_distinct_cells(what: str, names: Sequence[object]) -> None:
    """Refuse names that appear twice: their cells would share one name, one noise stream and one file.

    Raises:
        ValueError: Two are equal; the line names them.
    """
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"{what} {name!r} appears twice; give one of them another value, or its own 'label'")


class CellPairKeeper(Protocol):
    """Where solved pairs are kept while a run goes on and after it; what each method does stands in ``store.CellPairStore``."""

    def reachable(self) -> bool: ...
    def load(self, name: str) -> list[dict[str, np.ndarray]]: ...
    def add(self, name: str, columns: dict[str, np.ndarray]) -> None: ...
    def close(self, name: str) -> str: ...


def _no_prefixes() -> RoundPrefixes:
    from fedgraph.federation import RoundPrefixes  # it loads torch, which whoever only reads cells does not need

    return RoundPrefixes()


@dataclass(eq=False)
class CellContext:
    """What a task may use while it computes cells."""

    label: str  # the task's label
    dataset: str  # the label of the data set
    data: Graph | GraphCollection  # the graph or collection
    root: int  # the root seed of all random streams
    seeds: int  # how many repetitions the scenario asks for
    runtime: RuntimeParties  # where the rounds run
    prefixes: RoundPrefixes = field(default_factory=_no_prefixes)  # first parts of trainings that several cells have in common
    cache: dict[Hashable, object] = field(default_factory=dict)  # kept for the life of the process: splits, shared partitions
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None  # called with (stage, done, total)
    pairs: CellPairKeeper | None = None  # where solved pairs are kept; None keeps none

    def on_round(self, done: int, total: int) -> None:
        """Told by the federated loop."""
        self.progress("rounds", done, total)

    def cached(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """The value that is kept under a key, which names one thing only; it is made when it is first asked for."""
        if key not in self.cache:
            self.cache[key] = make()
        return cast(_Made, self.cache[key])
