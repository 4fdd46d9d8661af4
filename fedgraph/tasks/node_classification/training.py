"""One training of a cell that classifies nodes: its federation, its plan and its rounds."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.errors import ScenarioError
from fedgraph.federation import Federation
from fedgraph.methods import Plan, method_kinds
from fedgraph.tasks import base
from fedgraph.tasks.base import Cell, CellContext, cell_training, grid
from fedgraph.tasks.node_classification import attendance
from fedgraph.tasks.node_classification.settings import Params, RowKeys


def method_of(params: Params, cell: Cell) -> tuple[method_kinds.ClassifierMethod, Any]:
    """The method of a cell and its settings."""
    spec = cell.among(params.methods)
    module = method_kinds.load_classifier(spec["method"])
    return module, module.Params(**base.without_row_keys(spec, RowKeys))


def trusts_nobody(cell: Cell) -> bool:
    """Whether every node of this row protects itself; such rows scale columns differently."""
    return method_kinds.load(cell.method).OFFERS.trusts_nobody


def _split_key(params: Params, seed: int, nobody: bool, context: CellContext) -> tuple[Hashable, ...]:
    """A cache key: two cells with the same key hold, ask and test the same nodes."""
    own = (params.train_per_class, params.validation_per_class) if params.split == "per-class" else params.train_fraction
    owned = cell_training.partition_key(params.partition) if params.owners else None
    return (context.dataset, params.protocol, repr(params.public), own, params.split, params.component, owned, seed, nobody)


def unscaled(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """All nodes at one curator, with columns as they are; with ``owners`` each node has its owner."""

    def make() -> Federation:
        graph = cell_training.graph_of(context)
        graph = cell_training.deal_to_owners(graph, params.partition, context)[0] if params.owners else graph
        return params.divide(graph, seed, seeds.seeded_generator(context.root, "split", context.dataset, seed))

    return context.cached(("unscaled", *_split_key(params, seed, nobody, context)), make)


def give_setting(params: Params, cell: Cell, context: CellContext, setting: Federation) -> None:
    """Makes ``cell`` train on ``setting`` instead of its own split. Call it before the context has made one."""
    context.cached(("unscaled", *_split_key(params, cell.seed, trusts_nobody(cell), context)), lambda: setting)


def whole(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """As ``unscaled``, with numeric columns on one scale. nobody: whether every node protects itself."""

    def make() -> Federation:
        made = unscaled(params, seed, nobody, context).on_one_scale(rows_private=nobody)
        return replace(made, colluders=params.colluders)

    return context.cached(("whole", *_split_key(params, seed, nobody, context)), make)


def together(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """``whole``, dealt to the clients of a seed."""
    everybody, key = whole(params, seed, nobody, context), _split_key(params, seed, nobody, context)
    return cell_training.deal_federation(everybody, params, key, seed, context)


def federation_of(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Federation:
    """The federation of a cell. client: number of the client, if each trains alone."""
    seeded = (params, cell.seed, trusts_nobody(cell), context)
    return cell_training.world_of(whole(*seeded), params, _split_key(*seeded), cell, context, client)


def plan(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Plan:
    """The plan of one training. client: number of the client, if each trains alone."""
    federation = federation_of(params, cell, context, client)
    method, settings = method_of(params, cell)
    if not (federation.test_graph_public or federation.public_attributes is not None or method.OFFERS.private_test_nodes):
        raise ScenarioError(
            f"{cell.method} predicts on a public test graph, and here test nodes are private (public: {federation.public}, "
            f"protocol: {params.protocol}): write public: test-graph with protocol: inductive, or choose features"
        )
    if params.owners and "personalised" in params.participations and params.personalised in ("weights", "both"):
        _require_weights(method, cell)
    known = federation.clear_facts if grid.never_private(cell.among(params.methods)) else federation.facts
    facts = attendance.add_to_facts(params.federation, known, cell, method)
    everybody = whole(params, cell.seed, trusts_nobody(cell), context)  # δ is one for all worlds
    budget = params.budget(cell, everybody.num_train)
    return attendance.note_sampling(cell_training.plan(method, settings, facts, budget, federation))


def _rounds_of_curve(points: int, plan: Plan) -> frozenset[int]:
    """The rounds, counted from 1, after which accuracy is measured: at most ``points``, evenly spaced, the last included.

    There is no curve for a single round, or if the method cannot predict after every round (``Offers.answers_every_round``).
    """
    many = plan.schedule.rounds
    if not points or many < 2 or not method_kinds.load(plan.method).OFFERS.answers_every_round:
        return frozenset()
    return frozenset(int(r) for r in np.linspace(0, many, min(points, many) + 1).round()[1:])


def _require_weights(method: method_kinds.ClassifierMethod, cell: Cell) -> None:
    """``ScenarioError`` if the method has no weights that an owner could train further."""
    if method.OFFERS.tuned is None:
        able = ", ".join(method_kinds.list_names(lambda offers: offers.tuned))
        head = f"{cell.method} has no weights that a client could fit to its own data; write personalised: head"
        raise ScenarioError(f"{head}, or one of {able}")


def train(
    params: Params, cell: Cell, context: CellContext, client: int = 0, who: Sequence[str] = (), made: Plan | None = None
) -> cell_training.TrainedCell:
    """One training. client, who: number and name of a client that trains alone. made: its plan; None: that of ``plan``."""
    made = plan(params, cell, context, client) if made is None else made
    answered = attendance.draw(made, cell, context)
    keep = _rounds_of_curve(params.curve, made)
    federation, held = federation_of(params, cell, context, client), cell_training.held_key(params, cell, client)
    return cell_training.train(federation, (held, trusts_nobody(cell)), made, cell, context, who, answered=answered, keep=keep)
