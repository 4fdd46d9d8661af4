"""One method trained in one world: its rounds, their price, and what the cell leaves behind.

A guarantee that rests on a promised degree says nothing about graphs that break the promise: ``privacy.settle`` then prices
the run at ε = ∞, and says how far the data are from the promise and what ε would be if they kept it.
"""

import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from fedgraph import cells, methods, plugins, privacy, seeds
from fedgraph.cells import Cell, CellContext, Result
from fedgraph.documents import SettingsSpec
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import Federation, WorldKind, rounds, world_of_trust
from fedgraph.methods import Plan, column_ranks, method_kinds
from fedgraph.partition import base as partitions
from fedgraph.types import Graph, Partition

_Facts = TypeVar("_Facts", bound=cells.TaskFacts)
_Made = TypeVar("_Made")
EVERYBODY = "all"  # the name of the record that is about everybody's nodes
_HALVINGS = 9  # of an interval of ε, by its geometric mean


def look_up_promises(made: Plan, partition: Partition) -> privacy.Guarantee:
    """The plan's guarantee with every promise beside what the data are.

    Degrees are those of each client's graph as it is given, before any cut.
    """
    promised = made.guarantee.protection.promised_degree
    if promised is None:
        return made.guarantee
    degrees = np.concatenate([s.graph.degrees for s in partition.subgraphs])
    above = int((degrees > promised).sum())
    found = privacy.Promise(privacy.Assumption.PROMISED_DEGREE, promised, int(degrees.max(initial=0)), above, degrees.size)
    return replace(made.guarantee, promises=(found,))


@dataclass(frozen=True, eq=False)
class Settled:
    """A plan that was carried out, and its price."""

    plan: Plan  # What was declared beforehand
    outcome: rounds.RoundsOutcome  # The final state, and every release
    guarantee: privacy.Guarantee  # The plan's guarantee, with every promise looked up in the data
    settled: privacy.Settlement  # What the releases cost under that guarantee

    @classmethod
    def of(cls, made: Plan, partition: Partition, outcome: rounds.RoundsOutcome, **own: Any) -> Self:
        """The price of what was released, every promise looked up in ``partition``. own: fields of a richer record."""
        guarantee = look_up_promises(made, partition)
        return cls(made, outcome, guarantee, privacy.settle.of_releases(guarantee, outcome.releases), **own)

    def as_result(
        self,
        cell: Cell,
        metrics: dict[str, float],
        facts: cells.TaskFacts,
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


@dataclass(frozen=True, eq=False)
class TrainedCell(Settled):
    """A method that was trained in one world, and its price."""

    federation: Federation  # Where the method trained, with columns on one scale
    choice: cells.SettingChoiceCellFacts | None = None  # Its settings, where they were chosen privately
    said: tuple[str, ...] = ()  # Sentences that may leave on what was released beside the training

    def facts(self, kind: type[_Facts], protocol: str, **own: Any) -> _Facts:
        """The record of a task, with what every task that trains says of its clients.

        Args:
            kind: Of the record.
            protocol: How test nodes are asked.
            own: What the task says beside it, or in its place.
        """
        partition = self.federation.partition
        usual: dict[str, Any] = {
            "clients": partition.num_clients, "partition": partition.description, "cut_edges": partition.num_cut_edges,
            "cut_edges_shared": self.plan.facts.cut_edges_shared, "rounds": self.plan.schedule.rounds, "protocol": protocol,
            "one": self.federation.held.names.one, "natural": partition.natural, "public": self.federation.public,
            "broken_promise": self.settled.broken_words,
        }  # fmt: skip
        return kind(**usual | own)

    @property
    def question(self) -> Graph:
        """The graph that the method's ``predict`` receives, with what its viewer may use (``Federation.question``)."""
        return self.federation.question(self.plan, lambda: self.settled.epsilon)


def partition_key(partition: SettingsSpec) -> Hashable:
    """Names the rule by which nodes are dealt: equal settings of a partition have equal keys."""
    return tuple(sorted((key, repr(value)) for key, value in partition.items()))


def deal(held: Graph, partition: SettingsSpec, seed: int | str, context: CellContext) -> Partition:
    """The clients of a seed. ``ScenarioError`` where two of them would hold the same node."""
    offers, settings = partitions.chosen(partition)
    found = offers.split(held, settings, seeds.seeded_generator(context.root, "partition", context.dataset, seed))
    if not isinstance(found, Partition):
        given = f"partition {partition['partition']!r} gave a {type(found).__name__}"
        raise ScenarioError(f"{given}; allowed: a Partition, as partition.base.disjoint makes it")
    if not found.disjoint:
        raise ScenarioError(f"{context.label} needs disjoint clients; partition {partition['partition']!r} overlaps")
    return found


def graph_of(context: CellContext) -> Graph:
    """The graph of a task that needs one; ``ScenarioError`` where the data are a collection."""
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; {context.label} needs one graph")
    return context.data


class _Deals(Protocol):
    """What a task says of its clients (``grid.Grid``)."""

    @property
    def partition(self) -> SettingsSpec: ...
    @property
    def cut_edges(self) -> methods.PublicCutEdgeFacts: ...
    @property
    def owners(self) -> bool: ...


def deal_federation(
    whole: Federation, params: _Deals, key: tuple[Hashable, ...], seed: int, context: CellContext
) -> Federation:
    """All clients of a seed; with ``owners`` the same for all seeds. key: names ``whole``."""

    def make() -> Federation:
        if not params.owners:
            return whole.dealt(deal(whole.held, params.partition, seed, context), params.cut_edges)
        dealt = deal_to_owners(graph_of(context), params.partition, context)[1]
        return whole.dealt_to_owners(whole.held.owner_names, dealt, params.cut_edges)

    return context.cached(("together", *key, partition_key(params.partition), params.cut_edges), make)


def world_of(
    whole: Federation, params: _Deals, key: tuple[Hashable, ...], cell: Cell, context: CellContext, client: int = 0
) -> Federation:
    """The world of a cell.

    Args:
        whole: Everybody, at one curator.
        params: Who is a client, and what becomes of edges between clients.
        key: Names ``whole``.
        client: Which one, where every client is alone.
    """

    def make() -> Federation:
        return deal_federation(whole, params, key, cell.seed, context).within(cell.world, client)

    kind = cell.world.kind
    found = whole if kind is WorldKind.WHOLE else context.cached(("world", *key, held_key(params, cell, client)), make)
    return found if found.world == cell.world else replace(found, world=cell.world)


def held_key(params: _Deals, cell: Cell, client: int = 0) -> Hashable:
    """Who holds which node: clients that are trusted differently hold the same. client: as for ``world_of``."""
    dealt = None if cell.world.kind is WorldKind.WHOLE else (partition_key(params.partition), params.cut_edges)
    return (cell.dataset, cell.world.holding, dealt, cell.seed, client if cell.world.kind is WorldKind.ALONE else None)


def deal_to_owners(graph: Graph, partition: SettingsSpec, context: CellContext) -> tuple[Graph, Partition]:
    """Deal nodes to clients that stay the same for all seeds.

    Args:
        partition: The settings of the partition, its name among them.
        context: The root of the random streams. It keeps the result.

    Returns:
        (the graph, whose nodes know their owner; how they were dealt). Clients have the names that the data give to owners,
        where the partition keeps these, and are called ``client 1``, ``client 2``, … otherwise.

    Raises:
        ScenarioError: As for ``deal``.
        DataError: Two clients have one name, or a client is called as tables call everybody.
    """

    def make() -> tuple[Graph, Partition]:
        found = deal(graph, partition, "owners", context)
        owner = np.zeros(graph.num_nodes, dtype=np.int64)
        for share in found.subgraphs:
            owner[share.nodes] = share.client
        names: tuple[str, ...] = ()
        if graph.owner is not None and graph.owner_names and found.natural:
            names = tuple(graph.owner_names[int(k)] for k in np.unique(graph.owner))
        names = names or tuple(f"client {k + 1}" for k in range(found.num_clients))
        if len(set(names)) < len(names):
            raise DataError(f"{graph.name}: two clients have one name; allowed: names that differ")
        if EVERYBODY in names:
            called = f"a client is called {EVERYBODY!r}, as tables call everybody"
            raise DataError(f"{graph.name}: {called}; allowed: any other name")
        return replace(graph, owner=owner, owner_names=names), found

    return context.cached(("owned", context.dataset, partition_key(partition)), make)


def epsilons_of(done: TrainedCell, federation: Federation) -> list[float]:
    """ε of each owner's dearest unit in a training of all of them."""
    if done.federation.world.kind is WorldKind.WHOLE:
        return [done.settled.epsilon] * len(federation.names)
    each = privacy.settle.per_client(done.guarantee, done.outcome.releases)
    return [each.get(client, 0.0) for client in range(len(federation.names))]


def plan(
    method: method_kinds.Method, settings: Any, facts: methods.PublicFacts, budget: methods.Budget, federation: Federation
) -> Plan:
    """The method's plan, and what brings columns of numbers to one scale before it (``methods.base.column_ranks``)."""
    made = column_ranks.plan_with(functools.partial(method.plan, settings, facts), facts, budget)
    if made.method not in plugins.names("methods") or method_kinds.load(made.method) is not method:
        raise ScenarioError(f"the plan is named {made.method!r}: base.Plan's first argument is the name of its own method")
    if made.schedule.releases and (unit := made.guarantee.protection.unit) not in method.OFFERS.units:
        offered = ", ".join(one.value for one in method.OFFERS.units)
        raise ScenarioError(f"the plan of {made.method} protects a unit {unit.value!r}; OFFERS.units says: {offered}")
    return replace(made, notes=(*made.notes, *federation.said)) if federation.said else made


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
    lines: list[privacy.LedgerLine] = []
    for client in range(len(names)):
        done = train_one(client)
        owners = done.guarantee.protection.unit is privacy.Unit.ENTITY
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
    counted: tuple[privacy.LedgerLine, ...] = ()
    first = column_ranks.plan_before(made)
    if first is not None:
        ranked = rounds.run(context.runtime, shared, first, context.root, path, common, *progress)
        federation, counted = federation.scaled(ranked.state.memory), ranked.releases
        shared = context.runtime.share(("partition", context.label, key, "scaled", *path), federation.partition)
    noisy = any(not isinstance(release.mechanism, privacy.Disclose) for release in made.schedule.releases)
    one = made.facts.num_clients == 1 and not noisy and not who
    starts = replace(cell, world=world_of_trust(privacy.Trust.CURATOR)).path if one else None
    outcome = rounds.run(
        context.runtime, shared, made, context.root, path, common, *progress,
        answered=answered, starts=starts, keep=keep,
    )  # fmt: skip
    if first is not None:
        context.runtime.forget(shared)
        outcome = replace(outcome, releases=(*counted, *outcome.releases))
    return TrainedCell.of(made, federation.partition, outcome, federation=federation)
