"""What a cell leaves behind, from what it released; and a promise about the data, checked on the data.

A guarantee that rests on a promised degree says nothing about graphs that break the promise: ``privacy.settle`` then prices
the run at ε = ∞, and says how far the data are from the promise and what ε would be if they kept it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.cells.cell import Cell, Outcome
from fedgraph.cells.facts import Facts
from fedgraph.federation import rounds
from fedgraph.methods.base import Plan
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.settle import Guarantee, Promise, Settlement, settle
from fedgraph.privacy.units import Assumption, Protection
from fedgraph.types import Partition


def looked_up(made: Plan, partition: Partition) -> Guarantee:
    """The plan's guarantee with every promise beside what the data are.

    Degrees are those of each client's graph as it is given, before any cut.
    """
    promised = made.guarantee.protection.promised_degree
    if promised is None:
        return made.guarantee
    degrees = np.concatenate([s.graph.degrees for s in partition.subgraphs])
    above = int((degrees > promised).sum())
    found = Promise(Assumption.PROMISED_DEGREE, promised, int(degrees.max(initial=0)), above, degrees.size)
    return replace(made.guarantee, promises=(found,))


@dataclass(frozen=True, eq=False)
class Settled:
    """A plan that was carried out. outcome: its final state and every release. settled: what they cost under ``guarantee``."""

    plan: Plan
    outcome: rounds.Outcome
    guarantee: Guarantee
    settled: Settlement

    def as_outcome(
        self,
        cell: Cell,
        metrics: dict[str, float],
        facts: Facts,
        *,
        notes: tuple[str, ...] | None = None,
        measured: float | None = None,
        artefacts: Mapping[str, np.ndarray] | None = None,
        timed: bool = True,
    ) -> Outcome:
        """What the cell leaves. notes: in the place of the plan's and the rounds'. measured: ε that an attack proves."""
        return Outcome(
            metrics=metrics,
            facts=facts,
            account=self.settled.account(cell.key, self.guarantee),
            releases=self.outcome.releases,
            epsilon_published=self.plan.epsilon_published,
            epsilon_provable=self.settled.epsilon,
            epsilon_measured=measured,
            theorem=self.settled.theorem,
            paths=self.settled.path_epsilons(),
            notes=(*self.plan.notes, *self.outcome.notes) if notes is None else notes,
            artefacts=dict(artefacts or {}),
            timed=timed,
        )


def settled(made: Plan, partition: Partition, outcome: rounds.Outcome) -> Settled:
    """The price of what was released, every promise looked up in ``partition``."""
    guarantee = looked_up(made, partition)
    return Settled(made, outcome, guarantee, settle(guarantee, outcome.releases))


def unreleased(
    cell: Cell, protection: Protection, delta: float, metrics: dict[str, float], facts: Facts, *, from_sizes: bool
) -> Outcome:
    """Of a row that releases nothing: it reads public sizes alone (``from_sizes``; ε = 0), or raw data (ε = ∞)."""
    return Outcome(
        metrics=metrics,
        facts=facts,
        account=Account(cell.key, protection, delta),
        releases=(),
        epsilon_published=None,
        epsilon_provable=0.0 if from_sizes else np.inf,
        theorem="nothing was released beyond the public sizes" if from_sizes else "computed on raw data",
        paths={},
    )
