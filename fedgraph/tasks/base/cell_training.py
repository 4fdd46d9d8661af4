"""One method trained in one world: its rounds, their price, and what the cell leaves behind.

A guarantee that rests on a promised degree says nothing about graphs that break the promise: ``privacy.settle`` then prices
the run at ε = ∞, and says how far the data are from the promise and what ε would be if they kept it.
"""

import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fedgraph import plugins, privacy, seeds
from fedgraph.cells import Cell, CellContext, Result, SettingChoiceCellFacts, TaskFacts
from fedgraph.documents import SettingsSpec
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.methods import Budget, Plan, PublicFacts, column_ranks, method_kinds
from fedgraph.partition import base
from fedgraph.privacy import (
    Assumption,
    Disclose,
    Guarantee,
    LedgerAccount,
    LedgerLine,
    Promise,
    Protection,
    Settlement,
    Trust,
    Unit,
)
from fedgraph.types import Graph, Partition
from fedgraph.worlds import Federation, protocols, world_of_trust

_Facts = TypeVar("_Facts", bound=TaskFacts)
_Made = TypeVar("_Made")
_HALVINGS = 9  # of an interval of ε, by its geometric mean


def look_up_promises(made: Plan, partition: Partition) -> Guarantee:
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
class _Settled:
    """A plan that was carried out, and its price."""

    plan: Plan  # What was declared beforehand
    outcome: rounds.RoundsOutcome  # The final state, and every release
    guarantee: Guarantee  # The plan's guarantee, with every promise looked up in the data
    settled: Settlement  # What the releases cost under that guarantee

    def as_result(
        self,
        cell: Cell,
        metrics: dict[str, float],
        facts: TaskFacts,
        notes: tuple[str, ...] | None = None,
        measured: float | None = None,
        artefacts: Mapping[str, np.ndarray] | None = None,
        timed: bool = True,
    ) -> Result:
        """What the cell leaves. notes: in the place of the plan's and the rounds'. measured: ε that an attack proves.

        timed: whether it may be known how long the cell took.
        """
        settled = self.settled
        return Result.of(
            cell,
            settled.account(cell.key, self.guarantee),
            self.outcome.releases,
            metrics=metrics,
            facts=replace(facts, public_notes=(*facts.public_notes, *self.plan.notes)),
            epsilon_published=self.plan.epsilon_published,
            epsilon_provable=settled.epsilon,
            epsilon_measured=measured,
            theorem=settled.theorem,
            paths=settled.path_epsilons(),
            notes=(*self.plan.notes, *self.outcome.notes) if notes is None else notes,
            seconds=None if timed else 0.0,
            artefacts=dict(artefacts or {}),
        )


def settle_plan(made: Plan, partition: Partition, outcome: rounds.RoundsOutcome) -> _Settled:
    """The price of what was released, every promise looked up in ``partition``."""
    guarantee = look_up_promises(made, partition)
    return _Settled(made, outcome, guarantee, privacy.settle.of_releases(guarantee, outcome.releases))


def price_untrained(
    cell: Cell, protection: Protection, delta: float, metrics: dict[str, float], facts: TaskFacts, *, from_sizes: bool
) -> Result:
    """Of a row that releases nothing: it reads public sizes alone (``from_sizes``; ε = 0), or raw data (ε = ∞)."""
    epsilon, theorem = (0.0, "nothing was released beyond the public sizes") if from_sizes else (np.inf, "computed on raw data")
    account = LedgerAccount(cell.key, protection, delta)
    return Result.of(cell, account, metrics=metrics, facts=facts, epsilon_provable=epsilon, theorem=theorem)


@dataclass(frozen=True, eq=False)
class TrainedCell(_Settled):
    """A method that was trained in one world, and its price."""

    federation: Federation  # Where the method trained, with columns on one scale
    choice: SettingChoiceCellFacts | None = None  # How its settings were found, where they were chosen privately

    def facts(self, kind: type[_Facts], protocol: str) -> _Facts:
        """The record of a task, with what every task that trains says of its clients. protocol: how test nodes are asked."""
        partition, shared = self.federation.partition, self.plan.facts.cut_edges_shared
        dealt = kind(clients=partition.num_clients, partition=partition.description, cut_edges=partition.num_cut_edges)
        dealt = replace(dealt, cut_edges_shared=shared, rounds=self.plan.schedule.rounds, protocol=protocol)
        dealt = replace(dealt, one=self.federation.held.names.one)
        return replace(dealt, public=self.federation.public, broken_promise=self.settled.broken_words)

    @property
    def question(self) -> Graph:
        """The graph that the method's ``predict`` receives, with what its viewer may use
        (``worlds.protocols.question``).
        """
        return protocols.question(self.federation, self.plan, lambda: self.settled.epsilon)


def partition_key(partition: SettingsSpec) -> Hashable:
    """Names the rule by which nodes are dealt: equal settings of a partition have equal keys."""
    return tuple(sorted((key, repr(value)) for key, value in partition.items()))


def deal(held: Graph, partition: SettingsSpec, seed: int, context: CellContext) -> Partition:
    """The clients of a seed. ``ScenarioError`` where two of them would hold the same node."""
    offers, settings = base.chosen(partition)
    found = offers.split(held, settings, seeds.seeded_generator(context.root, "partition", context.dataset, seed))
    if not isinstance(found, Partition):
        given = f"partition {partition['partition']!r} gave a {type(found).__name__}"
        raise ScenarioError(f"{given}; allowed: a Partition, as partition.base.disjoint makes it")
    if not found.disjoint:
        raise ScenarioError(f"{context.label} needs disjoint clients; partition {partition['partition']!r} overlaps")
    return found


def require_answers(federation: Federation, method: method_kinds.ClassifierMethod, cell: Cell, protocol: str) -> None:
    """``ScenarioError`` where test nodes are private and the method has no answer for such a node."""
    if not (federation.test_graph_public or federation.public_attributes is not None or method.OFFERS.private_test_nodes):
        raise ScenarioError(
            f"{cell.method} predicts on a public test graph, and here test nodes are private (public: {federation.public}, "
            f"protocol: {protocol}): write public: test-graph with protocol: inductive, or choose features"
        )


def plan(method: method_kinds.Method, settings: Any, facts: PublicFacts, budget: Budget, federation: Federation) -> Plan:
    """The method's plan, and what brings columns of numbers to one scale before it (``methods.base.column_ranks``)."""
    made = column_ranks.plan_with(functools.partial(method.plan, settings, facts), facts, budget)
    if made.method not in plugins.names("methods") or method_kinds.load(made.method) is not method:
        raise ScenarioError(f"the plan is named {made.method!r}: base.Plan's first argument is the name of its own method")
    return replace(made, notes=(*made.notes, *federation.said))


def dearest_within(
    epsilon: float, least: float, made: Callable[[float], _Made], priced: Callable[[_Made], Plan]
) -> _Made | None:
    """What ``made`` gives of the largest ε, from ``least`` on, whose plan costs at most ``epsilon``; None where none does."""
    low, high, best = least, epsilon, made(least)
    if priced(best).provable().epsilon > epsilon:
        return None
    for _ in range(_HALVINGS):
        tried = made(middle := math.sqrt(low * high))
        if priced(tried).provable().epsilon <= epsilon:
            low, best = middle, tried
        else:
            high = middle
    return best


def train_clients_alone(
    names: Sequence[str], cell: Cell, context: CellContext, train_one: Callable[[int], TrainedCell]
) -> tuple[list[TrainedCell], TrainedCell, list[float]]:
    """Every client for itself, one after another. train_one: number of a client → its training, as the only client.

    Returns:
        each training; all of them as one; ε of each client's dearest unit. What one person has is at one client, so the
        dearest client is the price of all. Owners of edges (entity level) may have some at every client, and pay for all.
    """
    each: list[TrainedCell] = []
    lines: list[LedgerLine] = []
    for client in range(len(names)):
        done = train_one(client)
        owners = done.guarantee.protection.unit is Unit.ENTITY
        at = ((0, 0),) if owners else ((client, client),)
        lines += [replace(line, cell=cell.key, clients=at) for line in done.outcome.releases]
        each.append(done)
        context.progress("clients alone", client + 1, len(names))
    settled = privacy.settle.of_releases(done.guarantee, lines)
    prices = [settled.epsilon if owners else one.settled.epsilon for one in each]
    settled = replace(settled, broken=done.settled.broken) if max(prices) == np.inf else settled
    return each, replace(done, settled=settled, outcome=replace(done.outcome, releases=tuple(lines))), prices


def train(
    federation: Federation,
    key: Hashable,
    made: Plan,
    cell: Cell,
    context: CellContext,
    who: Sequence[str | int] = (),
    *,
    answered: np.ndarray | None = None,
    keep: frozenset[int] = frozenset(),
) -> TrainedCell:
    """All rounds, and their price. key: names the partition at the workers. who: names one of several trainings of a cell.

    answered: which clients answer in which round, bool [rounds, clients]; None where all do.
    keep: after which rounds, counted from 1, the state is kept (``federation.rounds``). One client without noise begins as a
    curator does, so both end with the same model.
    """
    shared = context.runtime.share(("partition", context.label, key), federation.partition)
    common = (cell.task, cell.dataset, cell.method, cell.variant, cell.world.stream_word, cell.seed, *who)
    path = (*cell.path, *who)
    progress = (context.prefixes, context.on_round)
    counted: tuple[LedgerLine, ...] = ()
    first = column_ranks.plan_before(made)
    if first is not None:
        ranked = rounds.run(context.runtime, shared, first, context.root, path, common, *progress)
        federation, counted = federation.scaled(ranked.state.memory), ranked.releases
        shared = context.runtime.share(("partition", context.label, key, "scaled", *path), federation.partition)
    noisy = any(not isinstance(release.mechanism, Disclose) for release in made.schedule.releases)
    one = made.facts.num_clients == 1 and not noisy and not who
    starts = replace(cell, world=world_of_trust(Trust.CURATOR)).path if one else None
    outcome = rounds.run(
        context.runtime, shared, made, context.root, path, common, *progress,
        answered=answered, starts=starts, keep=keep,
    )  # fmt: skip
    if first is not None:
        context.runtime.forget(shared)
    outcome = replace(outcome, releases=(*counted, *outcome.releases))
    return TrainedCell(**vars(settle_plan(made, federation.partition, outcome)), federation=federation)
