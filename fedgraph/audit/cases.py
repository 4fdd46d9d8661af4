"""One audited mechanism: what it claims, and how to run it many times on two neighbouring inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from fedgraph.audit.closed_form import ClosedForm
from fedgraph.privacy.accounting.accountant import Price, price
from fedgraph.privacy.events import Event

Sampler: TypeAlias = Callable[[int, np.random.Generator], np.ndarray]
RUNS = 40_000


@dataclass(frozen=True)
class Claim:
    """The mechanism says it is (epsilon, delta)-DP; accountant: who says so."""

    epsilon: float
    delta: float
    accountant: str

    @classmethod
    def of(cls, event: Event, delta: float) -> Claim:
        """What fedgraph's own accountant charges for ``event``."""
        return cls.paid(price(event, delta), delta)

    @classmethod
    def paid(cls, paid: Price, delta: float) -> Claim:
        return cls(paid.epsilon, delta, paid.accountant)


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism on its worst-case neighbouring inputs.

    name: of the sound mechanism. mutant: what was broken; None for the sound one. relation: unit and
    neighbouring relation, in the words of ``privacy.units``. present, absent: (runs, generator) → float
    [runs], one score per independent run with and without the unit. runs: per world, counted (half as many
    again choose the event). closed_form: where the score's law allows one. measures: whether ε is bounded at
    the claimed δ, or δ at the claimed ε; the test is the same, the number shown is the more telling one.
    """

    name: str
    relation: str
    claim: Claim
    present: Sampler
    absent: Sampler
    closed_form: ClosedForm | None = None
    measures: Literal["epsilon", "delta"] = "epsilon"
    runs: int = RUNS
    mutant: str | None = None

    def broken(self, mutant: str, present: Sampler, absent: Sampler | None = None, claim: Claim | None = None) -> Case:
        """A twin that makes the same claim (or ``claim``) for something else."""
        return replace(self, mutant=mutant, present=present, absent=absent or self.absent, claim=claim or self.claim)
