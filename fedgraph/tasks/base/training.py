"""One method trained in one world: its rounds, their price, and what the cell leaves behind.

A guarantee that rests on a promised degree says nothing about graphs that break the promise: ``privacy.settle`` then prices
the run at ε = ∞, and says how far the data are from the promise and what ε would be if they kept it.
"""

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.cells.cell import Cell, Context, Outcome
from fedgraph.cells.facts import Choice, Facts
from fedgraph.documents.settings import Spec
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.federation.messages import Masks
from fedgraph.federation.participation import Attendance
from fedgraph.methods.base import Budget, Plan, PublicFacts, column_ranks, kinds
from fedgraph.partition import base
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.lines import Line
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.settle import Guarantee, Promise, Settlement, settle
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Unit
from fedgraph.types import Graph, Partition
from fedgraph.worlds import protocols
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.world import trusting


def guarantee_looked_up(made: Plan, partition: Partition) -> Guarantee:
    """The plan's guarantee with every promise beside what the data are.

    Args:
        made: The plan.
        partition: The clients. Degrees are those of each client's graph as it is given, before any cut.

    Returns:
        The guarantee as it is where nothing is promised. Else it holds the promised degree, the largest degree that was found,
        how many nodes lie above the promise, and how many there are. ``privacy.settle`` prices a broken promise at ε = ∞.
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
    """A plan that was carried out, and its price.

    Attributes:
        plan: What was declared beforehand.
        outcome: The final state, and every release.
        guarantee: The plan's guarantee, with every promise looked up in the data.
        settled: What the releases cost under that guarantee.
    """

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
        """What the cell leaves.

        Args:
            cell: The cell; its key names the account.
            metrics: The numbers of the cell, by name.
            facts: The record of its task.
            notes: Sentences for the report, in the place of those of the plan and of the rounds.
            measured: The lower bound on ε that an attack proves.
            artefacts: Small arrays for plots, by name.
            timed: Whether how long the cell took may be known.
        """
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


def settled_price(made: Plan, partition: Partition, outcome: rounds.Outcome) -> Settled:
    """The price of what was released.

    Args:
        made: The plan.
        partition: The clients, in whose graphs every promise is looked up.
        outcome: What the rounds left, with every release.
    """
    guarantee = guarantee_looked_up(made, partition)
    return Settled(made, outcome, guarantee, settle(guarantee, outcome.releases))


def price_without_release(
    cell: Cell, protection: Protection, delta: float, metrics: dict[str, float], facts: Facts, *, from_sizes: bool
) -> Outcome:
    """What a cell leaves that releases nothing.

    Args:
        cell: The cell; its key names the account.
        protection: The unit, the relation and the viewer of the rows beside it.
        delta: Their δ.
        metrics: The numbers of the cell, by name.
        facts: The record of its task.
        from_sizes: Whether it reads public sizes alone, so that ε = 0. Else it reads raw data, and ε = ∞.
    """
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


@dataclass(frozen=True, eq=False)
class Trained(Settled):
    """A method that was trained in one world, and its price.

    Attributes:
        world: Where the method trained, with columns on one scale.
        choice: How its settings were found, where they were chosen privately.
    """

    world: DealtWorld
    choice: Choice | None = None

    @property
    def question(self) -> Graph:
        """The graph that the method's ``predict`` receives, with what its viewer may use (``worlds.protocols.question``)."""
        return protocols.question(self.world.setting, self.plan, lambda: self.settled.epsilon)


def partition_key(partition: Spec) -> Hashable:
    """Names the rule by which nodes are dealt: equal settings of a partition have equal keys."""
    return tuple(sorted((key, repr(value)) for key, value in partition.items()))


def disjoint_clients(held: Graph, partition: Spec, cell: Cell, context: Context) -> Partition:
    """The clients of the cell's seed.

    Args:
        held: The graph that is dealt.
        partition: The settings of the partition, its name among them.
        cell: Its seed names the random stream; its task is named in the error.
        context: The root of the random streams.

    Raises:
        ScenarioError: Two clients would hold the same node.
    """
    offers, settings = base.chosen_partition(partition)
    found = offers.split(held, settings, seeds.generator(context.root, "partition", context.dataset, cell.seed))
    if not found.disjoint:
        raise ScenarioError(f"{cell.task} needs disjoint clients; partition {partition['partition']!r} overlaps")
    return found


def require_answers(setting: protocols.Setting, method: kinds.Classifier, cell: Cell, protocol: str) -> None:
    """Refuse a method that has no answer for a private test node, where test nodes are private.

    Args:
        setting: What is asked, and what is public.
        method: The method.
        cell: Named in the error.
        protocol: Named in the error.

    Raises:
        ScenarioError: The method predicts on a public test graph only, and there is none.
    """
    if not (setting.test_graph_public or setting.public_attributes is not None or method.OFFERS.private_test_nodes):
        raise ScenarioError(
            f"{cell.method} predicts on a public test graph, and here test nodes are private (public: {setting.public}, "
            f"protocol: {protocol}): write public: test-graph with protocol: inductive, or choose features"
        )


def planned_training_run(
    method: kinds.Method, settings: Any, facts: PublicFacts, budget: Budget, setting: protocols.Setting
) -> Plan:
    """The method's plan, and what brings columns of numbers to one scale before it (``methods.base.column_ranks``).

    Args:
        method: The method.
        settings: Its ``Params``.
        facts: All that a plan may be made from.
        budget: What the cell may spend, in all.
        setting: What it says of columns becomes notes of the plan.
    """
    made = column_ranks.plan_with_counts(functools.partial(method.plan, settings, facts), facts, budget)
    return replace(made, notes=(*made.notes, *setting.said))


def train_alone(
    names: Sequence[str], cell: Cell, context: Context, train_one: Callable[[int], Trained]
) -> tuple[list[Trained], Trained, list[float]]:
    """Train every client for itself, one after another.

    Args:
        names: The clients, in the order of their numbers; at least one.
        cell: The cell to which all releases belong.
        context: Hears how many clients are done.
        train_one: From the number of a client to its training, as the only client.

    Returns:
        (each training; all of them as one; ε of each client's dearest unit). What one person has is at one client, so the
        dearest client is the price of all. Owners of edges (entity level) may have some at every client, and pay for all.
    """
    each: list[Trained] = []
    lines: list[Line] = []
    for client in range(len(names)):
        done = train_one(client)
        owners = done.guarantee.protection.unit is Unit.ENTITY
        at = ((0, 0),) if owners else ((client, client),)
        lines += [replace(line, cell=cell.key, clients=at) for line in done.outcome.releases]
        each.append(done)
        context.progress("clients alone", client + 1, len(names))
    settled = settle(done.guarantee, lines)
    prices = [settled.epsilon if owners else one.settled.epsilon for one in each]
    settled = replace(settled, broken=done.settled.broken) if max(prices) == np.inf else settled
    return each, replace(done, settled=settled, outcome=replace(done.outcome, releases=tuple(lines))), prices


def train(
    world: DealtWorld,
    key: Hashable,
    made: Plan,
    cell: Cell,
    context: Context,
    who: Sequence[str | int] = (),
    *,
    attendance: Attendance | None = None,
    masks: Masks | None = None,
    keep: frozenset[int] = frozenset(),
) -> Trained:
    """Train one method in one world: all rounds, and their price.

    One client without noise begins as a curator does, so both end with the same model.

    Args:
        world: Who holds what, and what is public.
        key: Names the partition at the workers; equal keys mean equal partitions.
        made: The plan. Where ranks of columns are estimated, the counts for them are released before its first round.
        cell: The cell; it names the random streams.
        context: Where the rounds run, and what hears of them.
        who: Names one of several trainings of a cell.
        attendance: Which clients answer in which round. None: all do.
        masks: How the sums of a masked plan are hidden.
        keep: After which rounds, counted from 1, the state is kept (``federation.rounds``).

    Returns:
        The training. Its world has columns on one scale.
    """
    shared = context.runtime.share(("partition", context.label, key), world.partition)
    common = (cell.task, cell.dataset, cell.method, cell.variant, cell.world.stream_word, cell.seed, *who)
    path = (*cell.path, *who)
    progress = (context.prefixes, context.on_round)
    counted: tuple[Line, ...] = ()
    first = column_ranks.plan_of_counts(made)
    if first is not None:
        ranked = rounds.run(context.runtime, shared, first, context.root, path, common, *progress)
        world, counted = world.scaled(ranked.state.memory), ranked.releases
        shared = context.runtime.share(("partition", context.label, key, "scaled", *path), world.partition)
    noisy = any(not isinstance(release.mechanism, Disclose) for release in made.schedule.releases)
    one = made.facts.sizes.num_clients == 1 and not noisy and not who
    starts = replace(cell, world=trusting(Trust.CURATOR)).path if one else None
    outcome = rounds.run(
        context.runtime, shared, made, context.root, path, common, *progress,
        attendance=attendance, masks=masks, starts=starts, keep=keep,
    )  # fmt: skip
    if first is not None:
        context.runtime.forget(shared)
    outcome = replace(outcome, releases=(*counted, *outcome.releases))
    return Trained(**vars(settled_price(made, world.partition, outcome)), world=world)
