"""How accuracy grows over the rounds of one cell: for the experimenter's eyes, since it compares with true labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.methods.base import Plan, State, kinds


@dataclass(frozen=True, eq=False)
class Curve:
    """States after at most ``points`` rounds, evenly spaced, the last always among them; 0 keeps none.

    A method that has no answer before its last phase (``Offers.answers_every_round``) has no curve, nor has a single round.
    """

    points: int
    plan: Plan
    method: kinds.Classifier

    @property
    def rounds(self) -> frozenset[int]:
        """After which rounds, counted from 1."""
        many = self.plan.schedule.rounds
        if not self.points or many < 2 or not self.method.OFFERS.answers_every_round:
            return frozenset()
        return frozenset(int(r) for r in np.linspace(0, many, min(self.points, many) + 1).round()[1:])

    def points_of(self, kept: Sequence[tuple[int, State]], accuracy: Callable[[State], float]) -> tuple[tuple[int, float], ...]:
        """(round, accuracy) of each kept state (``federation.rounds.Outcome``)."""
        return tuple((round_, accuracy(state)) for round_, state in kept)
