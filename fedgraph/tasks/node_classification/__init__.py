"""Node classification, one curator against a federation: the price of trust.

Nodes are split at random into training and test; ``protocol`` says what the clients hold and what is public
(``worlds.protocols``: inductive for node-level privacy, transductive for edge-level privacy). ``trust`` says who
holds the nodes and who is trusted:

* ``curator``: one curator holds all of them (viewer: whoever gets the model);
* ``sums``: clients hold disjoint parts, the server sees sums (viewer: server and other clients);
* ``own-client``: clients hold disjoint parts, the server sees each message (viewer: server);
* ``active-server``: the same, and the server may send each client any model it likes (viewer: active-server);
* ``nobody``: every node protects its own data before it leaves (viewer: world); methods that do so run here alone.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.attacks.base import named, whole_run
from fedgraph.cells.facts import NodeClassificationFacts, pack_right
from fedgraph.errors import ScenarioError
from fedgraph.methods.base import Plan, State, kinds
from fedgraph.partition import base
from fedgraph.privacy.settle import Guarantee
from fedgraph.tasks.base import Cell, Context, Models, Outcome, TaskOffers, entries_of, grid, measures, training
from fedgraph.tasks.base.node_settings import Params
from fedgraph.tasks.base.node_settings import Row as ROW
from fedgraph.tasks.base.offers import Nested, Select, attacks_of, of_method
from fedgraph.tasks.node_classification import attendance, pictures, selecting
from fedgraph.types import Graph, Partition, one_client
from fedgraph.worlds import missing, protocols
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.world import Kind


def plugins_of(params: Params) -> list[Nested]:
    """Methods, the partition, every choice of settings, and attacks, for validation with their place in the file."""
    found: list[Nested] = [*entries_of(params.methods, ROW), (("partition",), "partition", params.partition)]
    for index, method in enumerate(params.methods):
        every = Select.model_validate(method["select"]).choices if "select" in method else []
        plain = {key: value for key, value in method.items() if key not in ROW.model_fields}
        found += [(("methods", index, "select", "over"), "methods", plain | choice) for choice in every]
    return found + attacks_of(params.attack.named if params.attack else [])


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    return kinds.misfit(name, "classifier", params.protocol, grid.trusted_of(name, params.methods, params.trust))


def cells(params: Params, context: Context) -> list[Cell]:
    """Every cell, seed by seed (``base.grid``)."""
    return grid.cells(params.methods, params.trust, params.epsilons, params.calibrated_by, context)


def alone(params: Params, cell: Cell) -> bool:
    """A curator is one client."""
    return cell.world.kind is Kind.WHOLE


def plan(params: Params, cell: Cell, context: Context) -> Plan:
    """The method's plan from public facts: counts, client sizes, the public test graph or attributes; or that of a choice."""
    selects = selecting_of(params, cell, context)
    return _plan_one(params, cell, context) if selects is None else selects.priced.plan


def _plan_one(params: Params, cell: Cell, context: Context) -> Plan:
    world = _dealt_world(params, cell, context)
    setting = world.setting
    method, settings = _method(params, cell)
    training.require_answers(setting, method, cell, params.protocol)
    if params.cut_edges == "generated":
        missing.require_public(setting, cell.method)
    known = world.clear_facts if grid.never_private(cell.among(params.methods)) else world.facts
    facts = attendance.with_answers(params.federation, known, cell, method)
    budget = params.budget(cell, setting.num_train)
    made = training.planned_training_run(method, settings, facts, budget, setting)
    made = attendance.possible_plan(params.federation, attendance.plan_with_sampling_note(made), cell, context)
    return attendance.behind_masks(params.federation, made, budget, method)


def selecting_of(params: Params, cell: Cell, context: Context) -> selecting.Selecting | None:
    """How the cell chooses its settings privately; None where it does not."""
    given = cell.among(params.methods).get("select")
    if given is None:
        return None
    whole = _unscaled(params, cell, context)
    told = params.model_copy(update={"delta": params.budget(cell, whole.num_train).delta})
    parts = selecting.judges_and_trainers(
        whole, params.protocol, seeds.generator(context.root, "judges", context.dataset, cell.seed)
    )
    asked = Select.model_validate(given)
    return selecting.Selecting(asked, told, cell, context, *parts, _plan_one, _train_one, give_setting)


def priced_plan(params: Params, cell: Cell, context: Context) -> tuple[Plan, Guarantee]:
    """The cell's plan, and its guarantee with every promise looked up in the data: what a budget is charged before it runs.

    Raises ``ScenarioError`` where the cell would read private data beside its plan.
    """
    if params.attack is not None or params.map:
        raise ScenarioError("an attack or a map reads private rows that nobody prices: leave attack and map away")
    made = plan(params, cell, context)
    return made, training.guarantee_looked_up(made, _partition(params, cell, context))


def train(params: Params, cell: Cell, context: Context) -> training.Trained:
    """All rounds of the cell, and their price; nothing is tested. Of a row that chooses its settings, the best trial."""
    selects = selecting_of(params, cell, context)
    return _train_one(params, cell, context) if selects is None else selects.train()


def _train_one(params: Params, cell: Cell, context: Context) -> training.Trained:
    made, world = plan(params, cell, context), _dealt_world(params, cell, context)
    who = attendance.drawn_attendance(params.federation, made, cell, context)
    masks = attendance.masks_of(params.federation, made)
    keep = pictures.curve_rounds(params.curve, made)
    key = _partition_key(params, cell)
    return training.train(world, key, made, cell, context, attendance=who, masks=masks, keep=keep)


def run(params: Params, cell: Cell, context: Context) -> Outcome:
    """Train, count, test."""
    done, method = train(params, cell, context), _method(params, cell)[0]
    made, setting, partition = done.plan, done.world.setting, done.world.partition
    who = attendance.drawn_attendance(params.federation, made, cell, context)
    trained, settled, broken = done.outcome, done.settled, done.settled.broken_words
    asked = done.question
    answers, known = method.predict(made, trained.state, asked), setting.truth >= 0
    metrics = measures.measures(answers, setting.truth)

    def accuracy(state: State) -> float:
        return measures.measures(method.predict(made, state, asked), setting.truth)["accuracy"]

    artefacts: dict[str, np.ndarray] = {}
    if params.map and cell.seed == 0:
        scores = method.predict(made, trained.state, setting.held)
        rng = seeds.generator(context.root, "map", *cell.path)
        artefacts, apart = pictures.node_map(scores, setting.held.labels, rng)
        metrics |= {"silhouette": apart} if np.isfinite(apart) else {}
    measured = whole_run.measure(params.attack, made, cell, context, partition, setting.held, setting.asked, trained.state)
    told = named.measure(params.attack, made, cell, context, partition, setting.held, setting.asked, settled.epsilon)
    one = context.data.names.one if isinstance(context.data, Graph) else "node"
    went = attendance.facts_of(params.federation, who, trained, partition.num_clients, cell, context)
    return done.as_outcome(
        cell,
        metrics | measured.metrics | told.metrics | attendance.metrics_of(went),
        NodeClassificationFacts(
            one=one,
            clients=partition.num_clients,
            partition=partition.description,
            cut_edges=partition.num_cut_edges,
            cut_edges_shared=made.facts.membership.cut_edges_shared,
            rounds=made.schedule.rounds,
            train_nodes=setting.num_train,
            protocol=params.protocol,
            public=setting.public,
            split=params.split,
            broken_promise=broken,
            tested=int(known.sum()),
            least_class=_least_class(context),
            right=pack_right((answers.argmax(axis=1) == setting.truth)[known]),
            curve=tuple((round_, accuracy(state)) for round_, state in trained.kept),
            sent=went,
            attack=measured.attack,
            named=told.facts,
            choice=done.choice,
        ),
        measured=measured.epsilon,
        notes=(
            *measures.too_few(setting.truth, one),
            *((f"The promise is broken: {broken}",) if broken else ()),
            *((selecting.selection_sentence(done.choice, settled.epsilon),) if done.choice else ()),
            *made.notes,
            *trained.notes,
            *(method.OFFERS.says(made, trained.state) if method.OFFERS.says else ()),
        ),
        artefacts=artefacts,
        timed=done.choice is None,
    )


def _least_class(context: Context) -> int | None:
    """How many labelled nodes the smallest class has that has any."""
    if not isinstance(context.data, Graph):
        return None
    return int(np.unique(context.data.labels[context.data.labels >= 0], return_counts=True)[1].min())


def _dealt_world(params: Params, cell: Cell, context: Context) -> DealtWorld:
    """The setting, dealt to the cell's clients."""
    return DealtWorld(
        cell.world,
        _setting(params, cell, context),
        _partition(params, cell, context),
        params.cut_edges if _shares_cut_edges(params, cell) else "dropped",
        params.colluders,
    )


def clients(params: Params, cell: Cell, context: Context) -> Partition:
    """Who holds which node. ``ScenarioError`` where the model reads columns as ranks, which a deployment does not know."""
    world = _dealt_world(params, cell, context)
    if world.facts.columns is not None or world.setting.ranks is not None:
        raise ScenarioError(f"{context.dataset}: columns of numbers became ranks, which no project carries; give them bounds")
    return world.partition


def _method(params: Params, cell: Cell) -> tuple[kinds.Classifier, Any]:
    spec = cell.among(params.methods)
    module = kinds.classifier(spec["method"])
    return module, module.Params(**of_method(spec, ROW))


def give_setting(params: Params, cell: Cell, context: Context, setting: protocols.Setting) -> None:
    """Let ``cell`` train on ``setting`` in the place of a split of its own: before the context has made one."""
    context.cached(("unscaled", *_setting_key(params, cell, context)), lambda: setting)


def _setting_key(params: Params, cell: Cell, context: Context) -> tuple[Hashable, ...]:
    """Rows that trust nobody read columns on another scale."""
    nobody = kinds.method(cell.method).OFFERS.trusts_nobody
    return ("setting", context.dataset, split_key(params), cell.seed, nobody)


def _setting(params: Params, cell: Cell, context: Context) -> protocols.Setting:
    nobody = kinds.method(cell.method).OFFERS.trusts_nobody
    made = _unscaled(params, cell, context)
    return context.cached(_setting_key(params, cell, context), lambda: made.on_one_scale(rows_private=nobody))


def _unscaled(params: Params, cell: Cell, context: Context) -> protocols.Setting:
    """The split, with columns of numbers as they are."""
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; node_classification needs one graph")
    graph, seed = context.data, cell.seed

    def make() -> protocols.Setting:
        rng = seeds.generator(context.root, "split", context.dataset, seed)
        return params.setting(graph, seed, rng)

    return context.cached(("unscaled", *_setting_key(params, cell, context)), make)


def _partition_key(params: Params, cell: Cell) -> Hashable:
    """Who holds which node: clients that are trusted differently hold the same."""
    dealt = None if cell.world.kind is Kind.WHOLE else training.partition_key(params.partition)
    shared = params.cut_edges if _shares_cut_edges(params, cell) else None
    nobody = kinds.method(cell.method).OFFERS.trusts_nobody
    return (cell.dataset, split_key(params), cell.world.kind, dealt, cell.seed, shared, nobody)


def split_key(params: Params) -> Hashable:
    """Two tasks with the same key hold, ask and test the same nodes."""
    own = (params.train_per_class, params.validation_per_class) if params.split == "per-class" else params.train_fraction
    return (params.protocol, repr(params.public), own, params.split, params.component)


def _shares_cut_edges(params: Params, cell: Cell) -> bool:
    return params.cut_edges != "dropped" and cell.world.kind is Kind.TOGETHER


def _partition(params: Params, cell: Cell, context: Context) -> Partition:
    held = _setting(params, cell, context).held
    key = ("partition", _partition_key(params, cell))
    if cell.world.kind is Kind.WHOLE:  # one object per key: a runtime refuses another one under a key it has shared
        return context.cached(key, lambda: one_client(held, "one curator"))

    def make() -> Partition:
        found = training.disjoint_clients(held, params.partition, cell, context)
        told = base.with_cut_edges(held, found) if _shares_cut_edges(params, cell) else found
        return missing.stood_in(told, held.features) if params.cut_edges == "generated" else told

    return context.cached(key, make)


TASK: TaskOffers[Params] = TaskOffers(
    row_keys=ROW,
    refuses=refuses,
    alone=alone,
    models=Models(Params, Params.everybody, priced_plan, give_setting, train),
    clients=clients,
)
