"""Node classification, one curator against a federation: the price of trust.

Nodes are split at random into training and test; ``protocol`` says what the clients hold and what is public
(``worlds.protocols``: inductive for node-level privacy, transductive for edge-level privacy). ``trust`` says who
holds the nodes and who is trusted:

* ``curator``: one curator holds all of them (viewer: whoever gets the model);
* ``sums``: clients hold disjoint parts, the server sees sums (viewer: server and other clients);
* ``own-client``: clients hold disjoint parts, the server sees each message (viewer: server);
* ``active-server``: the same, and the server may send each client any model it likes (viewer: active-server);
* ``nobody``: every node protects its own data before it leaves (viewer: world); methods that do so run here alone.

With ``owners`` each owner of the data is a client in every choice that it has: is joining worth it (``owners``)?
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.attacks import named, whole_run
from fedgraph.cells import NodeClassificationCellFacts, task_facts
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.methods import Plan, State, method_kinds
from fedgraph.privacy import Assumption, Guarantee, Trust
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
    owned,
    task_offers,
)
from fedgraph.tasks.base.node_settings import Params
from fedgraph.tasks.base.node_settings import RowKeys as ROW
from fedgraph.tasks.base.task_offers import NestedTaskPlugin, TaskRowSelect
from fedgraph.tasks.node_classification import attendance, bought_accuracy, chosen_settings, owners, pictures
from fedgraph.types import Graph, Partition
from fedgraph.worlds import ALONE_WORLD, Federation, WorldKind


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
    if params.owners:
        if method_kinds.load(name).OFFERS.trusts_nobody:
            return f"in {name!r} every node protects itself, so whether its organisation joins changes nothing"
        alone = {Trust.CURATOR} if {"alone", "curator"} & set(params.participations) else set()
        trusted = [t for t in Trust if t in {*trusted, *alone}]
    return method_kinds.explain_misfit(name, "classifier", params.protocol, trusted)


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every cell, seed by seed (``base.grid``)."""
    if not params.owners:
        return grid.list_cells(params, context)
    federation = _together(params, 0, False, context)
    return [
        cell
        for seed in range(context.seeds)
        for entry, spec in enumerate(params.methods)
        if seed < int(spec.get("seeds", context.seeds))
        for world in owners.worlds_of(params, spec, federation)
        for cell in grid.list_row_cells(params, world, entry, seed, context)
    ]


def alone(params: Params, cell: Cell) -> bool:
    """Whether one worker can do the whole cell: no training in it has several clients."""
    return cell.world.kind is not WorldKind.TOGETHER


def plan(params: Params, cell: Cell, context: CellContext) -> Plan:
    """The method's plan from public facts: counts, client sizes, the public test graph or attributes; or that of a choice.

    Of clients alone, the plan of the largest one.
    """
    selects = _selecting_of(params, cell, context)
    bought = _bought_of(params, cell, context)
    if bought is not None:
        return bought.whole
    if selects is not None:
        return selects.priced.plan
    client = 0
    if cell.world == ALONE_WORLD:
        shares = _together(params, cell.seed, False, context).partition.subgraphs
        client = int(np.argmax([s.nodes.size for s in shares]))
    return _plan_one(params, cell, context, client)


def _bought_of(params: Params, cell: Cell, context: CellContext) -> bought_accuracy.Bought | None:
    """What a row that publishes its accuracy declares; None for all others."""
    price = cell.among(params.methods).get("publish_accuracy")
    if price is None:
        return None

    def plan_training(epsilon: float) -> Plan:
        return _plan_one(params, replace(cell, epsilon=epsilon), context)

    def make() -> bought_accuracy.Bought:
        asked = _whole(params, cell.seed, _trusts_nobody(cell), context)
        return bought_accuracy.plan(float(price), cell.epsilon, asked, plan_training)

    return context.cached(("bought", cell.path), make)


def _plan_one(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Plan:
    federation = _federation(params, cell, context, client)
    method, settings = _method(params, cell)
    cell_training.require_answers(federation, method, cell, params.protocol)
    if params.owners and "personalised" in params.participations and params.personalised in ("weights", "both"):
        owners.require_weights(method, cell)
    known = federation.clear_facts if grid.never_private(cell.among(params.methods)) else federation.facts
    facts = attendance.add_to_facts(params.federation, known, cell, method)
    budget = params.budget(cell, _whole(params, cell.seed, _trusts_nobody(cell), context).num_train)  # δ is one for all worlds
    return attendance.note_sampling(cell_training.plan(method, settings, facts, budget, federation))


def _selecting_of(params: Params, cell: Cell, context: CellContext) -> chosen_settings.Choice | None:
    given = cell.among(params.methods).get("select")
    if given is None:
        return None
    whole = _unscaled(params, cell.seed, _trusts_nobody(cell), context)
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
    if params.owners or cell.world.kind is WorldKind.ALONE or cell.world.without is not None:
        raise ScenarioError("owners alone, or without one of them, train in ways that no budget counts: leave owners away")
    made = plan(params, cell, context)
    return made, cell_training.look_up_promises(made, _federation(params, cell, context).partition)


def train(params: Params, cell: Cell, context: CellContext) -> cell_training.TrainedCell:
    """All rounds of the cell, and their price; nothing is tested. Of a row that chooses its settings, the best trial."""
    selects = _selecting_of(params, cell, context)
    return _train_one(params, cell, context) if selects is None else selects.train()


def _train_one(
    params: Params, cell: Cell, context: CellContext, client: int = 0, who: Sequence[str] = ()
) -> cell_training.TrainedCell:
    """client, who: which one, where every client is alone."""
    bought = _bought_of(params, cell, context)
    made = _plan_one(params, cell, context, client) if bought is None else bought.training
    answered = attendance.draw(made, cell, context)
    keep = pictures.choose_rounds(params.curve, made)
    federation, key = _federation(params, cell, context, client), _key(params, cell, client)
    return cell_training.train(federation, key, made, cell, context, who, answered=answered, keep=keep)


def _measure_owners(params: Params, cell: Cell, context: CellContext) -> Result:
    federation = _together(params, cell.seed, False, context)
    if cell.world != ALONE_WORLD:
        return owners.measure(params, cell, context, federation, _train_one(params, cell, context))
    names = federation.names
    trained = cell_training.train_clients_alone(
        names, cell, context, lambda client: _train_one(params, cell, context, client, (names[client],))
    )
    return owners.measure_alone(params, cell, context, federation, trained)


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """Train, count, test."""
    if params.owners:
        return _measure_owners(params, cell, context)
    done, method = train(params, cell, context), _method(params, cell)[0]
    bought = _bought_of(params, cell, context)
    paid: dict[str, float] = {}  # a noisy accuracy, which may leave
    said: list[str] = []
    if bought is not None:
        done, paid[bought_accuracy.BOUGHT_ACCURACY], words = bought.buy(done, cell, context.root)
        said = [words]
    made, world = done.plan, done.federation
    trained, settled, broken = done.outcome, done.settled, done.settled.broken_words
    asked = done.question
    answers, known = method.predict(made, trained.state, asked), world.truth >= 0
    if answers.shape != (needed := (world.truth.size, made.facts.num_classes)):
        raise RuntimeFailure(f"predict of {cell.method} gave scores {answers.shape}; allowed: [n, c] = {needed}")
    metrics = measures.of_scores(answers, world.truth) | measures.of_rare_class(answers, world.truth)
    public = (*(tuple(metrics) if _tests_in_public(world, made) else ()), *paid)

    def accuracy(state: State) -> float:
        return measures.of_scores(method.predict(made, state, asked), world.truth)["accuracy"]

    artefacts: dict[str, np.ndarray] = {}
    if params.map and cell.seed == 0:
        scores = method.predict(made, trained.state, world.held)
        rng = seeds.seeded_generator(context.root, "map", *cell.path)
        artefacts, apart = pictures.of_nodes(scores, world.held.labels, rng)
        metrics |= {"silhouette": apart} if np.isfinite(apart) else {}
    attacked = (params.attack, made, cell, context, world.partition, world.held, world.asked)
    measured = whole_run.measure_canaries(*attacked, trained.state)
    told = named.measure_all(*attacked, settled.epsilon)
    went = attendance.facts_of(made, trained)
    metrics |= paid | measured.metrics | told.metrics | attendance.metrics_of(went)
    facts = done.facts(NodeClassificationCellFacts, params.protocol)
    right = task_facts.pack_answers((answers.argmax(axis=1) == world.truth)[known])
    facts = replace(facts, train_nodes=world.num_train, split=params.split, tested=int(known.sum()), right=right)
    curve = tuple((round_, accuracy(state)) for round_, state in trained.kept)
    everybody = context.data.labels if isinstance(context.data, Graph) else world.held.labels
    facts = replace(facts, least_class=measures.least_class(everybody), curve=curve, sent=went, choice=done.choice)
    facts = replace(facts, attack=measured.attack, named=told.facts)
    chosen = [chosen_settings.describe(done.choice, settled.epsilon)] if done.choice else []  # a noisy score
    facts = replace(facts, public_metrics=public, public_notes=(*said, *chosen))
    small = measures.warn_of_small_classes(everybody, world.held.names.classes, facts.one)
    notes = [*measures.warn_of_few(world.truth, facts.one), *small, *((f"The promise is broken: {broken}",) if broken else ())]
    notes += [chosen_settings.describe(done.choice, settled.epsilon)] if done.choice else []
    notes += [*said, *made.notes, *trained.notes, *(method.OFFERS.says(made, trained.state) if method.OFFERS.says else ())]
    shown = (measured.epsilon, artefacts, done.choice is None)
    return done.as_result(cell, metrics, facts, tuple(notes), *shown)


def _tests_in_public(world: Federation, made: Plan) -> bool:
    """Whether who is tested is public, rows, edges and labels; or edges alone are private, and no answer reads one."""
    held = made.guarantee.protection
    own = Assumption.OWN_EDGES_KNOWN in held.assumptions
    return world.test_graph_public or (held.relation.links_alone and not own and world.public_attributes is not None)


def _trusts_nobody(cell: Cell) -> bool:
    """Such rows read columns on another scale."""
    return method_kinds.load(cell.method).OFFERS.trusts_nobody


def give_setting(params: Params, cell: Cell, context: CellContext, setting: Federation) -> None:
    """Let ``cell`` train on ``setting`` in the place of a split of its own: before the context has made one."""
    context.cached(("unscaled", *_split_key(params, cell.seed, _trusts_nobody(cell), context)), lambda: setting)


def _split_key(params: Params, seed: int, nobody: bool, context: CellContext) -> tuple[Hashable, ...]:
    """Two cells with the same key hold, ask and test the same nodes."""
    own = (params.train_per_class, params.validation_per_class) if params.split == "per-class" else params.train_fraction
    owned = cell_training.partition_key(params.partition) if params.owners else None
    return (context.dataset, params.protocol, repr(params.public), own, params.split, params.component, owned, seed, nobody)


def _unscaled(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """Everybody at one curator; the nodes know their owners where these are compared."""

    def make() -> Federation:
        graph = _owned(params, context)[0] if params.owners else _graph(context)
        return params.divide(graph, seed, seeds.seeded_generator(context.root, "split", context.dataset, seed))

    return context.cached(("unscaled", *_split_key(params, seed, nobody, context)), make)


def _whole(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    made = _unscaled(params, seed, nobody, context)
    key = ("whole", *_split_key(params, seed, nobody, context))
    return context.cached(key, lambda: made.on_one_scale(rows_private=nobody))


def _graph(context: CellContext) -> Graph:
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; node_classification needs one graph")
    return context.data


def _owned(params: Params, context: CellContext) -> tuple[Graph, Partition]:
    return owned.deal(_graph(context), params.partition, context)


def _together(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """All clients of a seed."""
    whole = _whole(params, seed, nobody, context)

    def make() -> Federation:
        if params.owners:
            return whole.dealt_to_owners(whole.held.owner_names, _owned(params, context)[1], params.cut_edges)
        return whole.dealt(cell_training.deal(whole.held, params.partition, seed, context), params.cut_edges)

    dealt = cell_training.partition_key(params.partition)
    return context.cached(("together", *_split_key(params, seed, nobody, context), dealt, params.cut_edges), make)


def _federation(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Federation:
    """The world of a cell. client: which one, where every client is alone."""
    nobody = _trusts_nobody(cell)

    def make() -> Federation:
        if cell.world.kind is WorldKind.WHOLE:
            return _whole(params, cell.seed, nobody, context)
        return _together(params, cell.seed, nobody, context).within(cell.world, client)

    split = _split_key(params, cell.seed, nobody, context)
    found = context.cached(("world", *split, _key(params, cell, client)), make)
    return replace(found, world=cell.world, colluders=params.colluders)


def _key(params: Params, cell: Cell, client: int = 0) -> Hashable:
    """Who holds which node: clients that are trusted differently hold the same."""
    dealt = None if cell.world.kind is WorldKind.WHOLE else (cell_training.partition_key(params.partition), params.cut_edges)
    each = client if cell.world == ALONE_WORLD else None
    return (cell.dataset, cell.world.holding, dealt, cell.seed, each, _trusts_nobody(cell))


def clients(params: Params, cell: Cell, context: CellContext) -> Partition:
    """Who holds which node. ``ScenarioError`` where the model reads columns as ranks, which a deployment does not know."""
    if params.owners:
        raise ScenarioError("owners compares choices, and a project is one of them: leave owners away")
    federation = _federation(params, cell, context)
    if federation.facts.columns is not None or federation.ranks is not None:
        raise ScenarioError(f"{context.dataset}: columns of numbers became ranks, which no project carries; give them bounds")
    return federation.partition


def _method(params: Params, cell: Cell) -> tuple[method_kinds.ClassifierMethod, Any]:
    spec = cell.among(params.methods)
    module = method_kinds.load_classifier(spec["method"])
    return module, module.Params(**task_offers.without_row_keys(spec, ROW))


TASK: TaskOffers[Params] = TaskOffers(
    row_keys=ROW,
    refuses=refuses,
    alone=alone,
    models=TaskModels(Params, Params.everybody, priced_plan, give_setting, train),
    clients=clients,
)
