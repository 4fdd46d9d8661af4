"""One method trained in one world: its rounds, and their price."""

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedgraph.cells.cell import Cell, Context
from fedgraph.cells.choice import Choice
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.federation.messages import Masks
from fedgraph.federation.participation import Attendance
from fedgraph.methods.base import Budget, Plan, PublicFacts, column_ranks, kinds
from fedgraph.privacy.lines import Line
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.trust import Trust
from fedgraph.tasks.base.outcomes import Settled, settled
from fedgraph.worlds import protocols
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.world import trusting


@dataclass(frozen=True, eq=False)
class Trained(Settled):
    """world: in which the method trained: with columns on one scale."""

    world: DealtWorld


@dataclass(frozen=True, eq=False)
class Fitted:
    """One training of a cell, and what it was made of. choice: how its settings were found, where they were chosen."""

    plan: Plan
    world: DealtWorld
    done: Trained
    choice: Choice | None = None


def require_answers(setting: protocols.Setting, method: kinds.Classifier, cell: Cell, protocol: str) -> None:
    """``ScenarioError`` where test nodes are private and the method has no answer for such a node."""
    if not (setting.test_graph_public or setting.public_attributes is not None or method.OFFERS.private_test_nodes):
        raise ScenarioError(
            f"{cell.method} predicts on a public test graph, and here test nodes are private (public: {setting.public}, "
            f"protocol: {protocol}): write public: test-graph with protocol: inductive, or choose features"
        )


def planned(method: kinds.Method, settings: Any, facts: PublicFacts, budget: Budget, setting: protocols.Setting) -> Plan:
    """The method's plan, and what brings columns of numbers to one scale before it (``methods.base.column_ranks``)."""
    made = column_ranks.before(functools.partial(method.plan, settings, facts), facts, budget)
    return replace(made, notes=(*made.notes, *setting.said))


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
    """All rounds, and their price. key: names the partition at the workers. who: names one of several trainings of a cell.

    attendance: which clients answer in which round; None where all do. masks: how sums are hidden.
    keep: after which rounds, counted from 1, the state is kept (``federation.rounds``). One client without noise begins as a
    curator does, so both end with the same model.
    """
    shared = context.runtime.share(("partition", context.label, key), world.partition)
    common = (cell.task, cell.dataset, cell.method, cell.variant, cell.world.stream_word, cell.seed, *who)
    path = (*cell.path, *who)
    progress = (context.prefixes, context.on_round)
    counted: tuple[Line, ...] = ()
    first = column_ranks.counting(made)
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
    return Trained(**vars(settled(made, world.partition, outcome)), world=world)
