"""Link prediction: who will be connected, cited or paid, where edges are private.

Edges are split at random, each by a public coin of its pair: clients hold most of them, the others are hidden and asked for
beside pairs without an edge (Hu et al. 2020). The number of hidden edges follows from the private edges; nothing depends on it.
Node ids and features are public, and the unit is one edge, or all edges of a node or of an owner, as the method says. ``trust``
says who holds the nodes and who is trusted, as in node classification; a client knows the edges among its own nodes. Edges
between clients are known to nobody, or (``cut_edges: protected``) at both ends.

With ``owners`` each client also trains alone, and every world is asked the same about each client: its own hidden edges beside
pairs of its own nodes without an edge. Hidden edges between clients count only in the metrics of the row.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field, model_validator

from fedgraph import methods, seeds
from fedgraph.attacks import named, whole_run
from fedgraph.cells import ClientResultCellFacts, LinkPredictionCellFacts, task_facts
from fedgraph.documents import canonical
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import ALONE_WORLD, Federation, World, WorldKind
from fedgraph.learning import links
from fedgraph.methods import method_kinds
from fedgraph.privacy import Guarantee
from fedgraph.tasks import base
from fedgraph.tasks.base import Cell, CellContext, Result, cell_training, grid
from fedgraph.tasks.base.grid import RowKeys as ROW
from fedgraph.types import Graph, Partition, graph_without_edges

_GIVEN = "links"
_NEGATIVES = 10_000  # pairs without an edge that are asked beside them
_Scores = Callable[[int, np.ndarray], np.ndarray]  # (client, pairs [m, 2] in the numbers of the whole graph) → [m]


class Params(grid.Grid):
    """The grid of cells: methods × trust × budgets × seeds."""

    delta: float = Field(1e-6, gt=0, lt=1, description="δ of every guarantee; below one over the edges")
    test_share: float = Field(0.1, gt=0, lt=1, description="chance of each edge to be hidden and asked for")
    attack: whole_run.WholeRunAttack | None = Field(None, description="attacks by name on what predictions show; canaries: 0")

    @model_validator(mode="after")
    def _attacks_by_name(self) -> "Params":
        if self.attack is not None and (self.attack.canaries or not self.attack.named):
            raise ValueError("links are attacked by name: write attack: {canaries: 0, named: [{attack: link_inference}]}")
        return self


def plugins_of(params: Params) -> list[base.NestedTaskPlugin]:
    """Methods, the partition and attacks, for validation with their place in the file."""
    attacks = base.nest_attacks(params.attack.named if params.attack else [])
    return [*base.nest_methods(params.methods, ROW), (("partition",), "partition", params.partition), *attacks]


def _refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    trusted = grid.trust_of_method(name, params.methods, params.trust)
    return method_kinds.explain_misfit(name, "linker", _GIVEN, trusted)


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every cell, seed by seed (``tasks.base.grid``). ``DataError`` if a row protects owners of edges, and no edge has one."""
    if any(spec.get("unit") == "entity" for spec in params.methods) and not cell_training.graph_of(context).edge_owners:
        raise DataError(
            f"{context.dataset}: no edge names an owner; unit: entity needs owners of edges (owner: a column of edges.csv), "
            "or write unit: node"
        )
    found = grid.list_cells(params, context)
    for seed in range(context.seeds) if params.owners else ():
        for entry, spec in enumerate(params.methods):
            if seed < int(spec.get("seeds", context.seeds)):
                found += grid.cells_of(params, ALONE_WORLD, entry, seed, context)
    return found


def plan(params: Params, cell: Cell, context: CellContext) -> methods.Plan:
    """The method's plan from public facts; if each client trains alone, the plan of the largest one."""
    client = 0
    if cell.world == ALONE_WORLD:
        client = int(np.argmax([s.nodes.size for s in _together(params, cell, context).partition.subgraphs]))
    return _plan(params, cell, _world(params, cell, context, client))


def _everybody(params: Params, graph: Graph, public: Graph | None) -> Federation:
    if public is not None:
        raise ScenarioError("a row of links takes nobody as public beside all features: leave --public away")
    ties = links.adjacency_of(links.list_all(graph.adjacency), graph.num_nodes)  # in the form in which a run holds them
    return _setting(replace(graph, adjacency=ties, masks=(), validation=None, names=replace(graph.names, ids=graph.ids)))


def _give_setting(params: Params, cell: Cell, context: CellContext, setting: Federation) -> None:
    """Makes ``cell`` train on ``setting`` instead of its own split. Call it before the context has made one."""
    context.cached(_split_key(params, cell.seed, context), lambda: (setting, np.zeros((0, 2), dtype=np.int64)))


def _priced_plan(params: Params, cell: Cell, context: CellContext) -> tuple[methods.Plan, Guarantee]:
    """The cell's plan and guarantee: what a budget is charged before it runs. ``ScenarioError`` for what has no price."""
    if params.attack is not None or params.owners or cell.world == ALONE_WORLD:
        raise ScenarioError("an attack, and clients alone, train in ways that no budget counts: leave attack and owners away")
    world = _world(params, cell, context)
    made = _plan(params, cell, world)
    return made, cell_training.look_up_promises(made, world.partition)


def train(
    params: Params, cell: Cell, context: CellContext, client: int = 0, who: tuple[str, ...] = ()
) -> cell_training.TrainedCell:
    """All rounds of the cell, and their price; nothing is tested. client, who: number and name of one that trains alone."""
    world = _world(params, cell, context, client)
    return cell_training.train(
        world, cell_training.held_key(params, cell, client), _plan(params, cell, world), cell, context, who
    )


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """Trains on the held edges, and scores the hidden ones beside pairs without an edge."""
    if cell.world == ALONE_WORLD:
        return _run_alone(params, cell, context)
    done, hidden = train(params, cell, context), _split(params, cell.seed, context)[1]
    made, world, method = done.plan, done.federation, method_kinds.load_linker(cell.method)
    # negatives leave out every edge of the graph, held or hidden: they measure, and nothing learns from them
    rng = seeds.seeded_generator(context.root, "negatives", context.dataset, cell.seed)
    held = world.held
    against = links.draw_pairs(held.num_nodes, _NEGATIVES, rng, cell_training.graph_of(context).adjacency)
    scores = method.scores(made, done.outcome.state, np.concatenate([hidden, against]))
    told = named.measure_all(params.attack, made, cell, context, world.partition, held, held, done.settled.epsilon)
    results: tuple[ClientResultCellFacts, ...] = ()
    if params.owners:
        federation, toward = _together(params, cell, context), made.guarantee.protection.viewer.words
        questions, prices = _questions(params, cell, context), cell_training.epsilons_of(done, federation)

        def of_owner(client: int, pairs: np.ndarray) -> np.ndarray:
            return method.scores(made, done.outcome.state, pairs)

        results = _measure(cell.world, federation, questions, of_owner, prices, toward)
    asked = {"tested": len(hidden), "negatives": _NEGATIVES, "named": told.facts, "results": results}
    metrics = links.measure_scores(scores[: len(hidden)], scores[len(hidden) :])
    return done.as_result(cell, metrics | told.metrics, done.facts(LinkPredictionCellFacts, _GIVEN, **asked))


def _run_alone(params: Params, cell: Cell, context: CellContext) -> Result:
    federation, method = _together(params, cell, context), method_kinds.load_linker(cell.method)
    names, shares = federation.names, federation.partition.subgraphs
    each, together, prices = cell_training.train_clients_alone(
        names, cell, context, lambda client: train(params, cell, context, client, (names[client],))
    )

    def scores(client: int, pairs: np.ndarray) -> np.ndarray:
        return method.scores(each[client].plan, each[client].outcome.state, np.searchsorted(shares[client].nodes, pairs))

    questions, toward = _questions(params, cell, context), together.plan.guarantee.protection.viewer.words
    results = _measure(cell.world, federation, questions, scores, prices, toward)
    asked = {"tested": results[0].tested, "negatives": _NEGATIVES, "clients": len(names), "results": results}
    return together.as_result(cell, {}, together.facts(LinkPredictionCellFacts, _GIVEN, **asked))


def _plan(params: Params, cell: Cell, world: Federation) -> methods.Plan:
    spec = cell.among(params.methods)
    method = method_kinds.load_linker(spec["method"])
    known = world.clear_facts if method.OFFERS.never_private else world.facts
    settings = method.Params(**grid.without_keys(spec, ROW))
    budget = methods.Budget(cell.epsilon, params.delta)
    return cell_training.plan(method, settings, known, budget, world)


@dataclass(frozen=True, eq=False)
class _Question:
    """The pairs that one owner is asked about; both are empty if it is asked nothing."""

    hidden: np.ndarray  # int64 [m, 2], hidden ties among its nodes, in the numbers of the whole graph
    against: np.ndarray  # int64 [k, 2], pairs of its nodes without a tie


def _questions(params: Params, cell: Cell, context: CellContext) -> list[_Question]:
    """One for each owner; empty if it has no hidden edge, or no pair without an edge."""
    federation, graph = _together(params, cell, context), cell_training.graph_of(context)
    hidden = _split(params, cell.seed, context)[1]

    def make() -> list[_Question]:
        found, owner = [], np.zeros(graph.num_nodes, dtype=np.int64)
        for share in federation.partition.subgraphs:
            owner[share.nodes] = share.client
        for share, name in zip(federation.partition.subgraphs, federation.names, strict=True):
            own, n = hidden[(owner[hidden] == share.client).all(axis=1)], share.nodes.size
            inside = graph.induced(share.nodes)
            some = _NEGATIVES if len(own) and inside.num_edges < n * (n - 1) // 2 else 0
            rng = seeds.seeded_generator(context.root, "negatives", context.dataset, cell.seed, "owner", name)
            pairs = links.draw_pairs(n, some, rng, inside.adjacency)
            found.append(_Question(own if some else own[:0], share.nodes[pairs] if some else own[:0]))
        return found

    return context.cached(("questions", *_split_key(params, cell.seed, context)), make)


def _measure(
    world: World,
    federation: Federation,
    questions: Sequence[_Question],
    scores: _Scores,
    prices: Sequence[float],
    toward: str,
) -> tuple[ClientResultCellFacts, ...]:
    """The results of all owners together, as means over their hidden edges, and of each owner."""
    participation = {WorldKind.ALONE: "alone", WorldKind.TOGETHER: "federated", WorldKind.WHOLE: "curator"}[world.kind]
    found = []
    for client, question in enumerate(questions):
        tested, metrics, right = len(question.hidden), dict[str, float](), ""
        if tested:
            told = scores(client, np.concatenate([question.hidden, question.against]))
            metrics = links.measure_scores(told[:tested], told[tested:])
            right = task_facts.pack_answers(links.rank_scores(told[:tested], told[tested:]))
        size = int(federation.partition.subgraphs[client].nodes.size)
        name, price = federation.names[client], prices[client]
        found.append(ClientResultCellFacts(participation, name, size, tested, metrics, price, toward, right=right))
    tested, asked = sum(one.tested for one in found), [one for one in found if one.tested]
    names = asked[0].metrics if asked else ()
    means = {name: sum(one.tested * one.metrics[name] for one in asked) / tested for name in names}
    nodes = sum(one.nodes for one in found)
    return (ClientResultCellFacts(participation, cell_training.EVERYBODY, nodes, tested, means, max(prices), toward), *found)


def _split(params: Params, seed: int, context: CellContext) -> tuple[Federation, np.ndarray]:
    """(the federation without the hidden edges, at one curator; int64 [m, 2], the hidden edges)."""

    def make() -> tuple[Federation, np.ndarray]:
        graph = cell_training.graph_of(context)
        if params.owners:
            graph = _owned(params, context)[0]
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


def _split_key(params: Params, seed: int, context: CellContext) -> tuple[Hashable, ...]:
    dealt = cell_training.partition_key(params.partition) if params.owners else None
    return ("links", context.dataset, params.test_share, seed, dealt)


def _setting(held: Graph) -> Federation:
    nobody, attributes = np.full(held.num_nodes, -1), graph_without_edges(held)
    attributes = replace(attributes, names=replace(held.names, ids=()))  # a model keeps them: digests say who trained
    setting = Federation(held, held, nobody, held.num_nodes, None, attributes, "attributes", split="random")
    return setting.on_one_scale(rows_private=False)


def _owned(params: Params, context: CellContext) -> tuple[Graph, Partition]:
    """As ``deal_to_owners``; ``ScenarioError`` if the partition reads edges, since it would see the hidden ones."""
    found = cell_training.deal_to_owners(params, context)
    if found[1].from_edges:
        raise ScenarioError(
            f"owners asks for clients that stay the same, and partition {params.partition['partition']!r} follows edges, "
            "hidden ones, too; allowed with it: natural, uniform, dirichlet"
        )
    return found


def _together(params: Params, cell: Cell, context: CellContext) -> Federation:
    """The federation of all clients of the cell's seed."""
    whole, key = _split(params, cell.seed, context)[0], _split_key(params, cell.seed, context)
    return cell_training.deal_federation(whole, params, key, cell.seed, context)


def _world(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Federation:
    """The federation of a cell. client: number of the client, if each trains alone."""
    whole, key = _split(params, cell.seed, context)[0], _split_key(params, cell.seed, context)
    return cell_training.world_of(whole, params, key, cell, context, client)


TASK: base.TaskOffers[Params] = base.TaskOffers(
    row_keys=ROW,
    refuses=_refuses,
    alone=grid.computes_alone,
    models=base.TaskModels(Params, _everybody, _priced_plan, _give_setting, train),
)
