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
from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.attacks import named, whole_run
from fedgraph.cells import NodeClassificationCellFacts, task_facts
from fedgraph.errors import ScenarioError
from fedgraph.methods import Plan, State, method_kinds
from fedgraph.partition import base
from fedgraph.privacy import Assumption, Guarantee
from fedgraph.tasks.base import (
    Cell,
    CellContext,
    Result,
    TaskModels,
    TaskOffers,
    cell_training,
    grid,
    measures,
    nest_methods,
    task_offers,
)
from fedgraph.tasks.base.node_settings import NodeRowKeys as ROW
from fedgraph.tasks.base.node_settings import Params
from fedgraph.tasks.base.task_offers import NestedTaskPlugin, TaskRowSelect
from fedgraph.tasks.node_classification import attendance, bought_accuracy, chosen_settings, pictures
from fedgraph.types import Graph, Partition, partition_of_one
from fedgraph.worlds import Federation, WorldKind, protocols


def plugins_of(params: Params) -> list[NestedTaskPlugin]:
    """Methods, the partition, every choice of settings, and attacks, for validation with their place in the file."""
    found: list[NestedTaskPlugin] = [*nest_methods(params.methods, ROW), (("partition",), "partition", params.partition)]
    for index, method in enumerate(params.methods):
        every = TaskRowSelect.model_validate(method["select"]).choices if "select" in method else []
        plain = {key: value for key, value in method.items() if key not in ROW.model_fields}
        found += [(("methods", index, "select", "over"), "methods", plain | choice) for choice in every]
    return found + task_offers.nest_attacks(params.attack.named if params.attack else [])


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    trusted = grid.list_method_trust(name, params.methods, params.trust)
    return method_kinds.explain_misfit(name, "classifier", params.protocol, trusted)


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every cell, seed by seed (``base.grid``)."""
    return grid.list_cells(params, context)


def alone(params: Params, cell: Cell) -> bool:
    """A curator is one client."""
    return cell.world.kind is WorldKind.WHOLE


def plan(params: Params, cell: Cell, context: CellContext) -> Plan:
    """The method's plan from public facts: counts, client sizes, the public test graph or attributes; or that of a choice."""
    selects = _selecting_of(params, cell, context)
    bought = _bought_of(params, cell, context)
    if bought is not None:
        return bought.whole
    return _plan_one(params, cell, context) if selects is None else selects.priced.plan


def _bought_of(params: Params, cell: Cell, context: CellContext) -> bought_accuracy.Bought | None:
    """What a row that publishes its accuracy declares; None for all others."""
    price = cell.among(params.methods).get("publish_accuracy")
    if price is None:
        return None

    def plan_training(epsilon: float) -> Plan:
        return _plan_one(params, replace(cell, epsilon=epsilon), context)

    def make() -> bought_accuracy.Bought:
        setting = _setting(params, cell, context)
        return bought_accuracy.plan(float(price), cell.epsilon, setting, plan_training)

    return context.cached(("bought", cell.path), make)


def _plan_one(params: Params, cell: Cell, context: CellContext) -> Plan:
    federation = _federation(params, cell, context)
    setting = federation.setting
    method, settings = _method(params, cell)
    cell_training.require_answers(setting, method, cell, params.protocol)
    known = federation.clear_facts if grid.never_private(cell.among(params.methods)) else federation.facts
    facts = attendance.add_to_facts(params.federation, known, cell, method)
    budget = params.budget(cell, setting.num_train)
    made = cell_training.plan(method, settings, facts, budget, setting)
    return attendance.note_sampling(made)


def _selecting_of(params: Params, cell: Cell, context: CellContext) -> chosen_settings.Choice | None:
    given = cell.among(params.methods).get("select")
    if given is None:
        return None
    whole = _unscaled(params, cell, context)
    told = params.model_copy(update={"delta": params.budget(cell, whole.num_train).delta})
    rng = seeds.seeded_generator(context.root, "judges", context.dataset, cell.seed)
    parts = chosen_settings.split_judges(whole, params.protocol, rng)
    asked = TaskRowSelect.model_validate(given)
    return chosen_settings.Choice(asked, told, cell, context, *parts, _plan_one, _train_one, give_setting)


def priced_plan(params: Params, cell: Cell, context: CellContext) -> tuple[Plan, Guarantee]:
    """The cell's plan, and its guarantee with every promise looked up in the data: what a budget is charged before it runs.

    Raises ``ScenarioError`` where the cell would read private data beside its plan.
    """
    if params.attack is not None or params.map:
        raise ScenarioError("an attack or a map reads private rows that nobody prices: leave attack and map away")
    made = plan(params, cell, context)
    return made, cell_training.look_up_promises(made, _partition(params, cell, context))


def train(params: Params, cell: Cell, context: CellContext) -> cell_training.TrainedCell:
    """All rounds of the cell, and their price; nothing is tested. Of a row that chooses its settings, the best trial."""
    selects = _selecting_of(params, cell, context)
    return _train_one(params, cell, context) if selects is None else selects.train()


def _train_one(params: Params, cell: Cell, context: CellContext) -> cell_training.TrainedCell:
    bought = _bought_of(params, cell, context)
    made, federation = plan(params, cell, context) if bought is None else bought.training, _federation(params, cell, context)
    who = attendance.draw(made, cell, context)
    keep = pictures.choose_rounds(params.curve, made)
    key = _partition_key(params, cell)
    return cell_training.train(federation, key, made, cell, context, answered=who, keep=keep)


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """Train, count, test."""
    done, method = train(params, cell, context), _method(params, cell)[0]
    bought = _bought_of(params, cell, context)
    paid: dict[str, float] = {}  # a noisy accuracy, which may leave
    said: list[str] = []
    if bought is not None:
        done, paid[bought_accuracy.BOUGHT_ACCURACY], words = bought.buy(done, cell, context.root)
        said = [words]
    made, setting, partition = done.plan, done.federation.setting, done.federation.partition
    trained, settled, broken = done.outcome, done.settled, done.settled.broken_words
    asked = done.question
    answers, known = method.predict(made, trained.state, asked), setting.truth >= 0
    metrics = measures.of_scores(answers, setting.truth) | measures.of_rare_class(answers, setting.truth)
    public = (*(tuple(metrics) if _tests_in_public(setting, made) else ()), *paid)

    def accuracy(state: State) -> float:
        return measures.of_scores(method.predict(made, state, asked), setting.truth)["accuracy"]

    artefacts: dict[str, np.ndarray] = {}
    if params.map and cell.seed == 0:
        scores = method.predict(made, trained.state, setting.held)
        rng = seeds.seeded_generator(context.root, "map", *cell.path)
        artefacts, apart = pictures.of_nodes(scores, setting.held.labels, rng)
        metrics |= {"silhouette": apart} if np.isfinite(apart) else {}
    attacked = (params.attack, made, cell, context, partition, setting.held, setting.asked)
    measured = whole_run.measure_canaries(*attacked, trained.state)
    told = named.measure_all(*attacked, settled.epsilon)
    one = context.data.names.one if isinstance(context.data, Graph) else "node"
    went = attendance.facts_of(made, trained)
    metrics |= paid | measured.metrics | told.metrics | attendance.metrics_of(went)
    facts = done.facts(NodeClassificationCellFacts, params.protocol)
    right = task_facts.pack_answers((answers.argmax(axis=1) == setting.truth)[known])
    facts = replace(facts, one=one, train_nodes=setting.num_train, split=params.split, tested=int(known.sum()), right=right)
    curve = tuple((round_, accuracy(state)) for round_, state in trained.kept)
    everybody = context.data.labels if isinstance(context.data, Graph) else setting.held.labels
    facts = replace(facts, least_class=measures.least_class(everybody), curve=curve, sent=went, choice=done.choice)
    facts = replace(facts, attack=measured.attack, named=told.facts)
    chosen = [chosen_settings.describe(done.choice, settled.epsilon)] if done.choice else []  # a noisy score
    facts = replace(facts, public_metrics=public, public_notes=(*said, *chosen))
    small = measures.warn_of_small_classes(everybody, setting.held.names.classes, one)
    notes = [*measures.warn_of_few(setting.truth, one), *small, *((f"The promise is broken: {broken}",) if broken else ())]
    notes += [chosen_settings.describe(done.choice, settled.epsilon)] if done.choice else []
    notes += [*said, *made.notes, *trained.notes, *(method.OFFERS.says(made, trained.state) if method.OFFERS.says else ())]
    shown = (measured.epsilon, artefacts, done.choice is None)
    return done.as_result(cell, metrics, facts, tuple(notes), *shown)


def _tests_in_public(setting: protocols.ProtocolSetting, made: Plan) -> bool:
    """Whether who is tested is public, rows, edges and labels; or edges alone are private, and no answer reads one."""
    held = made.guarantee.protection
    own = Assumption.OWN_EDGES_KNOWN in held.assumptions
    return setting.test_graph_public or (held.relation.links_alone and not own and setting.public_attributes is not None)


def _federation(params: Params, cell: Cell, context: CellContext) -> Federation:
    shared = params.cut_edges if _shares_cut_edges(params, cell) else "dropped"
    parts = _setting(params, cell, context), _partition(params, cell, context)
    return Federation(cell.world, *parts, shared, params.colluders)


def clients(params: Params, cell: Cell, context: CellContext) -> Partition:
    """Who holds which node. ``ScenarioError`` where the model reads columns as ranks, which a deployment does not know."""
    federation = _federation(params, cell, context)
    if federation.facts.columns is not None or federation.setting.ranks is not None:
        raise ScenarioError(f"{context.dataset}: columns of numbers became ranks, which no project carries; give them bounds")
    return federation.partition


def _method(params: Params, cell: Cell) -> tuple[method_kinds.ClassifierMethod, Any]:
    spec = cell.among(params.methods)
    module = method_kinds.load_classifier(spec["method"])
    return module, module.Params(**task_offers.without_row_keys(spec, ROW))


def give_setting(params: Params, cell: Cell, context: CellContext, setting: protocols.ProtocolSetting) -> None:
    """Let ``cell`` train on ``setting`` in the place of a split of its own: before the context has made one."""
    context.cached(("unscaled", *_setting_key(params, cell, context)), lambda: setting)


def _setting_key(params: Params, cell: Cell, context: CellContext) -> tuple[Hashable, ...]:
    """Rows that trust nobody read columns on another scale."""
    nobody = method_kinds.load(cell.method).OFFERS.trusts_nobody
    return ("setting", context.dataset, split_key(params), cell.seed, nobody)


def _setting(params: Params, cell: Cell, context: CellContext) -> protocols.ProtocolSetting:
    nobody = method_kinds.load(cell.method).OFFERS.trusts_nobody
    made = _unscaled(params, cell, context)
    return context.cached(_setting_key(params, cell, context), lambda: made.on_one_scale(rows_private=nobody))


def _unscaled(params: Params, cell: Cell, context: CellContext) -> protocols.ProtocolSetting:
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; node_classification needs one graph")
    graph, seed = context.data, cell.seed

    def make() -> protocols.ProtocolSetting:
        rng = seeds.seeded_generator(context.root, "split", context.dataset, seed)
        return params.setting(graph, seed, rng)

    return context.cached(("unscaled", *_setting_key(params, cell, context)), make)


def _partition_key(params: Params, cell: Cell) -> Hashable:
    """Who holds which node: clients that are trusted differently hold the same."""
    dealt = None if cell.world.kind is WorldKind.WHOLE else cell_training.partition_key(params.partition)
    shared = params.cut_edges if _shares_cut_edges(params, cell) else None
    nobody = method_kinds.load(cell.method).OFFERS.trusts_nobody
    return (cell.dataset, split_key(params), cell.world.kind, dealt, cell.seed, shared, nobody)


def split_key(params: Params) -> Hashable:
    """Two tasks with the same key hold, ask and test the same nodes."""
    own = (params.train_per_class, params.validation_per_class) if params.split == "per-class" else params.train_fraction
    return (params.protocol, repr(params.public), own, params.split, params.component)


def _shares_cut_edges(params: Params, cell: Cell) -> bool:
    return params.cut_edges != "dropped" and cell.world.kind is WorldKind.TOGETHER


def _partition(params: Params, cell: Cell, context: CellContext) -> Partition:
    held = _setting(params, cell, context).held
    key = ("partition", _partition_key(params, cell))
    if cell.world.kind is WorldKind.WHOLE:  # one object per key: a runtime refuses another one under a key it has shared
        return context.cached(key, lambda: partition_of_one(held, "one curator"))

    def make() -> Partition:
        found = cell_training.deal(held, params.partition, cell, context)
        return base.with_cut_edges(held, found) if _shares_cut_edges(params, cell) else found

    return context.cached(key, make)


TASK: TaskOffers[Params] = TaskOffers(
    row_keys=ROW,
    refuses=refuses,
    alone=alone,
    models=TaskModels(Params, Params.everybody, priced_plan, give_setting, train),
    clients=clients,
)
