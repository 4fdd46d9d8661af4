"""How accuracy grows over the rounds of one cell: for the experimenter's eyes, since it compares with true labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedgraph.methods.base import Plan, State, kinds


class Getter(Protocol):
    """What a curve needs of a runtime."""

    def get(self, future: Any) -> Any: ...


@dataclass(eq=False)
class Curve:
    """States after at most ``points`` rounds, evenly spaced, the last always among them; 0 keeps none.

    A method that has no answer before its last phase (``Offers.answers_every_round``) has no curve, nor has a single round.
    """

    points: int
    plan: Plan[Any, Any]
    method: kinds.Classifier
    kept: list[tuple[int, Any]] = field(default_factory=list)

    def keep(self, round_: int, state: Any) -> None:
        """Told by the federated loop after each round, counted from 0."""
        if round_ + 1 in self.rounds:
            self.kept.append((round_ + 1, state))

    @property
    def rounds(self) -> frozenset[int]:
        """After which rounds, counted from 1."""
        many = self.plan.schedule.rounds
        if not self.points or many < 2 or not self.method.OFFERS.answers_every_round:
            return frozenset()
        return frozenset(int(r) for r in np.linspace(0, many, min(self.points, many) + 1).round()[1:])

    def points_of(self, runtime: Getter, accuracy: Callable[[State[Any]], float]) -> tuple[tuple[int, float], ...]:
        """(round, accuracy) of each kept state."""
        return tuple((round_, accuracy(runtime.get(state))) for round_, state in self.kept)
