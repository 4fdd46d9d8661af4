"""One training of a method in one world: its rounds, their price, and the result of the cell.

A guarantee that rests on a promised degree does not hold for graphs that break the promise. ``privacy.settle`` prices such a
run at ε = ∞, and says how many nodes break the promise and what ε would be if none did.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fedgraph import cells, methods, plugins, privacy, seeds
from fedgraph.cells import Cell, CellContext, Result
from fedgraph.documents import SettingsSpec
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import Federation, WorldKind, rounds, world_of_trust
from fedgraph.methods import Plan, column_ranks, method_kinds
from fedgraph.partition import base as partitions
from fedgraph.tasks.base.grid import Grid
from fedgraph.types import Graph, Partition

_Facts = TypeVar("_Facts", bound=cells.TaskFacts)
EVERYBODY = "all"  # name of the record about all clients together


def look_up_promises(made: Plan, partition: Partition) -> privacy.Guarantee:
    """The plan's guarantee, with every promise compared with the data.

    Degrees are those of each client's graph as it is given, before neighbours are dropped.
    """
    promised = made.guarantee.protection.promised_degree
    if promised is None:
        return made.guarantee
    degrees = np.concatenate([s.graph.degrees for s in partition.subgraphs])
    above = int((degrees > promised).sum())
    found = privacy.Promise(privacy.Assumption.PROMISED_DEGREE, promised, int(degrees.max(initial=0)), above, degrees.size)
    return replace(made.guarantee, promises=(found,))


@dataclass(frozen=True, eq=False)
class SettledPlan:
    """A plan whose rounds have run, and their price."""

    plan: Plan  # what was declared before the rounds
    outcome: rounds.RoundsOutcome  # the final state and every release
    guarantee: privacy.Guarantee  # the plan's guarantee, with every promise compared with the data
    settled: privacy.Settlement  # the price of the releases under that guarantee

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
        """The result of the cell.

        notes: replace those of the plan and the rounds. measured: lower bound on ε that an attack found. timed: whether the
        time that the cell took may be published.
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


def settle_plan(made: Plan, partition: Partition, outcome: rounds.RoundsOutcome) -> SettledPlan:
    """The rounds of ``made`` with their price; promises are compared with ``partition``."""
    guarantee = look_up_promises(made, partition)
    return SettledPlan(made, outcome, guarantee, privacy.settle.of_releases(guarantee, outcome.releases))


@dataclass(frozen=True, eq=False)
class TrainedCell(SettledPlan):
    """A training in one world, and its price."""

    federation: Federation  # the federation that trained, with columns on one scale
    choice: cells.SettingChoiceCellFacts | None = None  # its settings, if they were chosen privately
    said: tuple[str, ...] = ()  # sentences for the public report about what was released beside the training

    def facts(self, kind: type[_Facts], protocol: str, **own: Any) -> _Facts:
        """The task's record of facts, of the class ``kind``, with the facts about clients that all tasks share.

        protocol: how test nodes are asked. own: the task's own facts, which may replace the shared ones.
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
        """The graph that ``predict`` receives: it holds only what an answer may use (``Federation.question``)."""
        return self.federation.question(self.plan, lambda: self.settled.epsilon)


def partition_key(partition: SettingsSpec) -> Hashable:
    """A key for the settings of a partition: equal settings have equal keys."""
    return tuple(sorted((key, repr(value)) for key, value in partition.items()))


def _deal(held: Graph, partition: SettingsSpec, seed: int | str, context: CellContext) -> Partition:
    """The partition of a seed. ``ScenarioError`` if two clients would hold the same node."""
    offers, settings = partitions.chosen(partition)
    found = offers.split(held, settings, seeds.seeded_generator(context.root, "partition", context.dataset, seed))
    if not isinstance(found, Partition):
        given = f"partition {partition['partition']!r} gave a {type(found).__name__}"
        raise ScenarioError(f"{given}; allowed: a Partition, as partition.base.disjoint makes it")
    if not found.disjoint:
        raise ScenarioError(f"{context.label} needs disjoint clients; partition {partition['partition']!r} overlaps")
    return found


def graph_of(context: CellContext) -> Graph:
    """The context's graph; ``ScenarioError`` if the data are a collection of graphs."""
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; {context.label} needs one graph")
    return context.data


def deal_federation(whole: Federation, params: Grid, key: tuple[Hashable, ...], seed: int, context: CellContext) -> Federation:
    """``whole`` dealt to the clients of a seed; with ``owners`` all seeds have the same. key: cache key of ``whole``."""

    def make() -> Federation:
        if not params.owners:
            return whole.dealt(_deal(whole.held, params.partition, seed, context), params.cut_edges)
        dealt = deal_to_owners(params, context)[1]
        return whole.dealt_to_owners(whole.held.owner_names, dealt, params.cut_edges)

    return context.cached(("together", *key, partition_key(params.partition), params.cut_edges), make)


def world_of(
    whole: Federation, params: Grid, key: tuple[Hashable, ...], cell: Cell, context: CellContext, client: int = 0
) -> Federation:
    """The federation of a cell, in the cell's world. whole: all nodes at one curator. key: cache key of ``whole``. client: its
    number, in a world where each client trains alone.
    """

    def make() -> Federation:
        return deal_federation(whole, params, key, cell.seed, context).within(cell.world, client)

    kind = cell.world.kind
    found = whole if kind is WorldKind.WHOLE else context.cached(("world", *key, held_key(params, cell, client)), make)
    return found if found.world == cell.world else replace(found, world=cell.world)


def held_key(params: Grid, cell: Cell, client: int = 0) -> Hashable:
    """A key for who holds which node; it does not depend on the trust. client: as for ``world_of``."""
    dealt = None if cell.world.kind is WorldKind.WHOLE else (partition_key(params.partition), params.cut_edges)
    return (cell.dataset, cell.world.holding, dealt, cell.seed, client if cell.world.kind is WorldKind.ALONE else None)


def deal_to_owners(params: Grid, context: CellContext) -> tuple[Graph, Partition]:
    """(the context's graph with the owner of each node, the partition), the same for all seeds.

    If the partition keeps the owners of the data, clients have their names; otherwise they are called ``client 1``, ``client
    2``, …

    Raises:
        ScenarioError: The partition is unknown, overlaps, or gives no ``Partition``.
        DataError: Two clients have one name, or a client has the name that tables use for all clients together.
    """

    def make() -> tuple[Graph, Partition]:
        graph = graph_of(context)
        found = _deal(graph, params.partition, "owners", context)
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

    return context.cached(("owned", context.dataset, partition_key(params.partition)), make)


def epsilons_of(done: TrainedCell, federation: Federation) -> list[float]:
    """For each owner the largest ε of its units, in a training of all owners."""
    if done.federation.world.kind is WorldKind.WHOLE:
        return [done.settled.epsilon] * len(federation.names)
    each = privacy.settle.per_client(done.guarantee, done.outcome.releases)
    return [each.get(client, 0.0) for client in range(len(federation.names))]


def plan(
    method: method_kinds.Method, settings: Any, facts: methods.PublicFacts, budget: methods.Budget, federation: Federation
) -> Plan:
    """The method's plan, preceded by private ranks of numeric columns if they are needed (``methods.column_ranks``).

    ``ScenarioError`` if the plan has another method's name, protects a unit that the method does not offer, or leaves out what
    it rests on.
    """

    def make(spent: methods.Budget) -> Plan:
        found: object = method.plan(settings, facts, spent)
        if not isinstance(found, Plan):
            raise ScenarioError(f"plan of {vars(method)['__name__']} gave a {type(found).__name__}; allowed: a base.Plan")
        return found

    made = column_ranks.plan_with(make, facts, budget)
    if made.method not in plugins.names("methods") or method_kinds.load(made.method) is not method:
        raise ScenarioError(f"the plan is named {made.method!r}: base.Plan's first argument is the name of its own method")
    if made.schedule.releases and (unit := made.guarantee.protection.unit) not in method.OFFERS.units:
        offered = ", ".join(one.value for one in method.OFFERS.units)
        raise ScenarioError(f"the plan of {made.method} protects a unit {unit.value!r}; OFFERS.units says: {offered}")
    if unsaid := _unsaid(method, made, budget):
        raise ScenarioError(f"the plan of {made.method} does not state {unsaid}")
    return replace(made, notes=(*made.notes, *federation.said)) if federation.said else made


def _unsaid(method: method_kinds.Method, made: Plan, budget: methods.Budget) -> str:
    """An assumption on which every private plan of such a method rests, and which this one leaves out; "" if there is none."""
    offered, said = method.OFFERS, set(made.guarantee.protection.assumptions)
    if not (budget.private and made.schedule.releases) or offered.ignores_budget is not None:
        return ""
    if privacy.Assumption.UNTUNED not in said:
        return f"{privacy.Assumption.UNTUNED.value!r}; allowed: assumptions that hold it, as base.FACTS_TESTED_IN_PUBLIC does"
    reads = None if offered.reads is None else offered.reads(made)
    public = {privacy.Assumption.TEST_GRAPH_PUBLIC, privacy.Assumption.PUBLIC_NODES}
    if made.facts.public_graph is None or reads not in (None, methods.MethodReads.PUBLIC_GRAPH) or said & public:
        return ""
    needed = " or ".join(repr(one.value) for one in sorted(public, key=lambda one: one.value))
    return (
        f"{needed}, and may read the public graph; allowed: base.FACTS_TESTED_IN_PUBLIC, or Offers.reads that says what is read"
    )


def train_clients_alone(
    names: Sequence[str], cell: Cell, context: CellContext, train_one: Callable[[int], TrainedCell]
) -> tuple[list[TrainedCell], TrainedCell, list[float]]:
    """Trains every client alone, one after another. train_one: number of a client → its training as the only client.

    Returns:
        (each training, all of them as one, for each client the largest ε of its units). The data of one person are at one
        client, so the price of all is the largest price of a client. At entity level an owner may have edges at every
        client, so it pays for all of them.
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
    found: dict[tuple[privacy.Assumption, float], privacy.Promise] = {}
    for promise in (promise for one in each for promise in one.guarantee.promises):  # each client's data may break it
        seen = found.get(key := (promise.assumption, promise.stated), replace(promise, breaking=0, units=0))
        most, breaking = max(seen.found, promise.found), seen.breaking + promise.breaking
        found[key] = replace(promise, found=most, breaking=breaking, units=seen.units + promise.units)
    guarantee = replace(done.guarantee, promises=tuple(found.values()))
    settled = privacy.settle.of_releases(guarantee, lines)
    prices = [settled.epsilon if owners else one.settled.epsilon for one in each]
    outcome = replace(done.outcome, releases=tuple(lines))
    return each, replace(done, guarantee=guarantee, settled=settled, outcome=outcome), prices


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
    """Runs all rounds of a plan and prices them.

    key: names the partition at the workers. made: the plan. who: names one of several trainings of a cell. answered: bool
    [rounds, clients], which clients answer in which round; None: all. keep: rounds, counted from 1, after which the state is
    kept. One client without noise starts from a curator's first parameters, so both end with the same model.
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
    guarantee = look_up_promises(made, federation.partition)
    return TrainedCell(made, outcome, guarantee, privacy.settle.of_releases(guarantee, outcome.releases), federation)
