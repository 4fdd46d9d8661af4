"""Link prediction: who will be connected, cited or paid, where who is connected is private.

Edges are split at random, each by a public coin of its own pair: most are held by the clients, the rest are hidden and asked
for beside pairs that are no edges (Hu et al. 2020). How many are hidden follows from the private edges, and decides nothing.
Node ids and features are public, so the unit is one edge. ``trust`` says who holds the nodes and who is trusted, as in node
classification; a client knows the edges among its own nodes. Edges between clients are known to nobody, or (``cut_edges:
protected``, one edge private) at both ends.

With ``owners`` each client also trains alone, and every cell is asked about each client's own hidden ties (``owners``): is
joining worth it? Alone a client is its own curator; edges that leave it are dropped there.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fedgraph import seeds, worlds
from fedgraph.attacks import named, whole_run
from fedgraph.cells import LinkPredictionCellFacts
from fedgraph.documents import canonical
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import links
from fedgraph.methods import Budget, Plan, method_kinds
from fedgraph.partition import base
from fedgraph.privacy import Guarantee
from fedgraph.tasks.base import (
    Cell,
    CellContext,
    Result,
    TaskModels,
    TaskOffers,
    cell_training,
    grid,
    nest_methods,
    task_offers,
)
from fedgraph.tasks.base.grid import GridRowKeys as ROW
from fedgraph.tasks.base.task_offers import NestedTaskPlugin
from fedgraph.tasks.link_prediction import owned_links
from fedgraph.tasks.participation import client_records
from fedgraph.types import Graph, partition_of_one
from fedgraph.worlds import ALONE_WORLD, JOINED_WORLD, Federation, WorldKind, protocols

_GIVEN = "links"


class Params(grid.Grid):
    """The grid of cells: methods × trust × budgets × seeds."""

    delta: float = Field(1e-6, gt=0, lt=1, description="δ of every guarantee; below one over the edges")
    cut_edges: Literal["dropped", "protected"] = Field(
        "dropped", description="edges between clients: dropped; or, where one edge is private, used and protected at both ends"
    )
    owners: bool = Field(
        False, description="each client trains alone, too, and gets a page: is joining worth it? (clients as of natural)"
    )
    called: tuple[str, str] = Field(("person", "people"), description="what the pages for owners call a node, and several")
    test_share: float = Field(0.1, gt=0, lt=1, description="chance of each edge to be hidden and asked for")
    negatives: int = Field(10_000, ge=1, description="pairs without an edge that are asked beside them")
    attack: whole_run.WholeRunAttack | None = Field(None, description="attacks by name on what predictions show; canaries: 0")

    @model_validator(mode="after")
    def _attacks_by_name(self) -> "Params":
        if self.attack is not None and (self.attack.canaries or not self.attack.named):
            raise ValueError("links are attacked by name: write attack: {canaries: 0, named: [{attack: link_inference}]}")
        return self


def plugins_of(params: Params) -> list[NestedTaskPlugin]:
    """Methods, the partition and attacks, for validation with their place in the file."""
    attacks = task_offers.nest_attacks(params.attack.named if params.attack else [])
    return [*nest_methods(params.methods, ROW), (("partition",), "partition", params.partition), *attacks]


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    trusted = grid.list_method_trust(name, params.methods, params.trust)
    return method_kinds.explain_misfit(name, "linker", _GIVEN, trusted)


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every cell, seed by seed (``base.grid``). ``DataError`` where a row protects owners of edges, and no edge has one."""
    if any(spec.get("unit") == "entity" for spec in params.methods) and not _graph(context).edge_owners:
        raise DataError(
            f"{context.dataset}: no edge names an owner; unit: entity needs owners of edges (owner: a column of edges.csv), "
            "or write unit: node"
        )
    found = grid.list_cells(params, context)
    for seed in range(context.seeds) if params.owners else ():
        for entry, spec in enumerate(params.methods):
            if seed < int(spec.get("seeds", context.seeds)):
                found += grid.list_row_cells(params, ALONE_WORLD, entry, seed, context)
    return found


def alone(params: Params, cell: Cell) -> bool:
    """Whether one worker can do the whole cell: no training in it has several clients."""
    return cell.world.kind is not WorldKind.TOGETHER


def plan(params: Params, cell: Cell, context: CellContext) -> Plan:
    """The method's plan from public facts: counts, client sizes, features; of clients alone, the plan of the largest one."""
    client = 0
    if cell.world == ALONE_WORLD:
        client = int(np.argmax([s.nodes.size for s in _federation(params, cell, context).partition.subgraphs]))
    return _plan(params, cell, _world(params, cell, context, client))


def _everybody(params: Params, graph: Graph, public: Graph | None) -> protocols.ProtocolSetting:
    if public is not None:
        raise ScenarioError("a row of links takes nobody as public beside all features: leave --public away")
    ties = links.adjacency_of(links.list_all(graph.adjacency), graph.num_nodes)  # in the form in which a run holds them
    return _setting(replace(graph, adjacency=ties, masks=(), validation=None, names=replace(graph.names, ids=graph.ids)))


def give_setting(params: Params, cell: Cell, context: CellContext, setting: protocols.ProtocolSetting) -> None:
    """Let ``cell`` train on ``setting`` in the place of a split of its own: before the context has made one."""
    context.cached(_split_key(params, cell.seed, context), lambda: (setting, np.zeros((0, 2), dtype=np.int64)))


def priced_plan(params: Params, cell: Cell, context: CellContext) -> tuple[Plan, Guarantee]:
    """The cell's plan and guarantee: what a budget is charged before it runs. ``ScenarioError`` for what nobody prices."""
    if params.attack is not None or params.owners:
        raise ScenarioError("an attack, and clients alone, train in ways that no budget counts: leave attack and owners away")
    world = _world(params, cell, context)
    made = _plan(params, cell, world)
    return made, cell_training.look_up_promises(made, world.partition)


def train(
    params: Params, cell: Cell, context: CellContext, client: int = 0, who: tuple[str, ...] = ()
) -> cell_training.TrainedCell:
    """All rounds of the cell, and their price; nothing is asked. client, who: which one, where every client is alone."""
    world = _world(params, cell, context, client)
    return cell_training.train(world, _key(params, cell, client), _plan(params, cell, world), cell, context, who)


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """Train on the edges that are held, score the hidden ones beside pairs that are none."""
    if cell.world == ALONE_WORLD:
        return _run_alone(params, cell, context)
    done, hidden = train(params, cell, context), _split(params, cell.seed, context)[1]
    made, world, method = done.plan, done.federation, method_kinds.load_linker(cell.method)
    # negatives leave out every edge of the graph, held or hidden: they measure, and nothing learns from them
    rng = seeds.seeded_generator(context.root, "negatives", context.dataset, cell.seed)
    held = world.setting.held
    against = links.draw_pairs(held.num_nodes, params.negatives, rng, _graph(context).adjacency)
    scores = method.scores(made, done.outcome.state, np.concatenate([hidden, against]))
    told = named.measure_all(params.attack, made, cell, context, world.partition, held, held, done.settled.epsilon)
    facts = replace(_facts(params, done, len(hidden)), named=told.facts)
    if params.owners:
        federation, toward = _federation(params, cell, context), made.guarantee.protection.viewer.words
        questions, prices = _questions(params, cell, context), client_records.epsilons_of(done, federation)

        def of_owner(client: int, pairs: np.ndarray) -> np.ndarray:
            return method.scores(made, done.outcome.state, pairs)

        results = owned_links.measure(cell.world, federation, questions, of_owner, prices, toward)
        facts = replace(facts, results=results)
    metrics = links.measure_scores(scores[: len(hidden)], scores[len(hidden) :])
    return done.as_result(cell, metrics | told.metrics, facts)


def _run_alone(params: Params, cell: Cell, context: CellContext) -> Result:
    federation, method = _federation(params, cell, context), method_kinds.load_linker(cell.method)
    names, shares = federation.names, federation.partition.subgraphs
    each, together, prices = cell_training.train_clients_alone(
        names, cell, context, lambda client: train(params, cell, context, client, (names[client],))
    )

    def scores(client: int, pairs: np.ndarray) -> np.ndarray:
        return method.scores(each[client].plan, each[client].outcome.state, np.searchsorted(shares[client].nodes, pairs))

    questions, toward = _questions(params, cell, context), together.plan.guarantee.protection.viewer.words
    results = owned_links.measure(cell.world, federation, questions, scores, prices, toward)
    facts = _facts(params, together, results[0].tested)
    return together.as_result(cell, {}, replace(facts, clients=len(names), results=results))


def _facts(params: Params, done: cell_training.TrainedCell, tested: int) -> LinkPredictionCellFacts:
    return replace(done.facts(LinkPredictionCellFacts, _GIVEN), tested=tested, negatives=params.negatives)


def _plan(params: Params, cell: Cell, world: Federation) -> Plan:
    spec = cell.among(params.methods)
    method = method_kinds.load_linker(spec["method"])
    known = world.clear_facts if grid.never_private(spec) else world.facts
    settings = method.Params(**task_offers.without_row_keys(spec, ROW))
    budget = Budget(cell.epsilon, params.delta)
    return cell_training.plan(method, settings, known, budget, world.setting)


def _graph(context: CellContext) -> Graph:
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; link_prediction needs one graph")
    return context.data


def _questions(params: Params, cell: Cell, context: CellContext) -> list[owned_links.Question]:
    federation = _federation(params, cell, context)
    hidden = _split(params, cell.seed, context)[1]

    def make() -> list[owned_links.Question]:
        return owned_links.ask(_graph(context), federation, hidden, params.negatives, (cell.seed,), context)

    return context.cached(("questions", _dealt_key(params, cell), params.negatives), make)


def _split(params: Params, seed: int, context: CellContext) -> tuple[protocols.ProtocolSetting, np.ndarray]:
    """(the setting: a graph without its hidden edges, whose attributes are public; int64 [m, 2], the hidden edges)."""

    def make() -> tuple[protocols.ProtocolSetting, np.ndarray]:
        graph = _graph(context)
        if params.owners:
            graph = owned_links.deal(graph, params.partition, context)[0]
        edges = links.list_all(graph.adjacency)
        # each edge by its own coin: one edge more or less hides no other one
        coins = seeds.coins(int(context.root), "split", context.dataset, seed, things=edges)
        hidden = coins < params.test_share
        count = int(hidden.sum())
        if not 0 < count < len(edges):
            raise DataError(
                f"{context.dataset}: hiding {params.test_share:g} of {len(edges)} edges leaves {len(edges) - count} to learn "
                f"from and {count} to ask for; both need one"
            )
        links.require_unlinked_pair(graph.num_nodes, graph.adjacency)
        held = replace(graph, adjacency=links.adjacency_of(edges[~hidden], graph.num_nodes))
        usual = params.test_share == Params.model_fields["test_share"].default
        return replace(_setting(held), drawn="" if usual else canonical.text(params.test_share)), edges[hidden]

    return context.cached(_split_key(params, seed, context), make)


def _split_key(params: Params, seed: int, context: CellContext) -> Hashable:
    dealt = cell_training.partition_key(params.partition) if params.owners else None
    return ("links", context.dataset, params.test_share, seed, dealt)


def _setting(held: Graph) -> protocols.ProtocolSetting:
    nobody, attributes = np.full(held.num_nodes, -1), protocols.graph_without_edges(held)
    attributes = replace(attributes, names=replace(held.names, ids=()))  # a model keeps them: digests say who trained
    setting = protocols.ProtocolSetting(held, held, nobody, held.num_nodes, None, attributes, "attributes", split="random")
    return setting.on_one_scale(rows_private=False)


def _dealt_key(params: Params, cell: Cell) -> tuple[Hashable, ...]:
    """Two cells with the same key share out the same edges."""
    dealt = cell_training.partition_key(params.partition)
    return (cell.dataset, params.test_share, dealt, params.owners, params.cut_edges, cell.seed)


def _key(params: Params, cell: Cell, client: int = 0) -> Hashable:
    """Who holds which node: worlds that are trusted differently hold the same. client: which one, where each is alone."""
    return (_GIVEN, _dealt_key(params, cell), cell.world.kind, client if cell.world == ALONE_WORLD else None)


def _federation(params: Params, cell: Cell, context: CellContext) -> Federation:
    setting = _split(params, cell.seed, context)[0]

    def make() -> Federation:
        if params.owners:
            source = owned_links.deal(_graph(context), params.partition, context)[1]
            return worlds.deal(setting, setting.held.owner_names, source, params.cut_edges)
        found = cell_training.deal(setting.held, params.partition, cell, context)
        if params.cut_edges != "dropped":
            found = base.with_cut_edges(setting.held, found)
        return Federation(JOINED_WORLD, setting, found, params.cut_edges, 1)

    return context.cached(("federation of links", _dealt_key(params, cell)), make)


def _world(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Federation:
    setting = _split(params, cell.seed, context)[0]

    def make() -> Federation:
        if cell.world.kind is WorldKind.WHOLE:
            return Federation(cell.world, setting, partition_of_one(setting.held, "one curator"), "dropped", 1)
        return _federation(params, cell, context).within(cell.world, client)

    dealt: Federation = context.cached(("dealt", _key(params, cell, client)), make)
    return replace(dealt, world=cell.world)


TASK: TaskOffers[Params] = TaskOffers(
    row_keys=ROW, refuses=refuses, alone=alone, models=TaskModels(Params, _everybody, priced_plan, give_setting, train)
)
