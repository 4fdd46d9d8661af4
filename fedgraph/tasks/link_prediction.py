"""Link prediction: who will be connected, cited or paid, where who is connected is private.

Edges are split at random: most are held by the clients, the rest are hidden and asked for beside pairs that are no edges (Hu et
al. 2020). Node ids and features are public, so the unit is one edge. ``trust`` says who holds the nodes and who is trusted, as
in node classification; a client knows the edges among its own nodes. Edges between clients are known to nobody, or
(``cut_edges: protected``, one edge private) at both ends.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from fedgraph import seeds
from fedgraph.attacks.base import named, whole_run
from fedgraph.cells.facts import LinkPredictionFacts
from fedgraph.documents.settings import Settings, Spec
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import links
from fedgraph.methods.base import Budget, Plan, kinds
from fedgraph.partition import base
from fedgraph.privacy.settle import Guarantee
from fedgraph.tasks.base import Cell, Context, Models, Outcome, TaskOffers, entries_of, grid, training
from fedgraph.tasks.base.grid import Row as ROW
from fedgraph.tasks.base.offers import Nested, of_method
from fedgraph.types import Graph, Partition, one_client
from fedgraph.worlds import protocols
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.world import Kind

GIVEN = "links"


class Params(Settings):
    """The grid of cells: methods × trust × budgets × seeds."""

    methods: Annotated[list[grid.Entry], grid.Rows] = Field(
        min_length=1, description="method: file name in fedgraph/methods, then its settings"
    )
    trust: list[grid.TrustWord] = Field(min_length=1, description="who is trusted")
    partition: Spec = Field(
        default_factory=lambda: {"partition": "louvain", "clients": 10}, description="how federated clients share the nodes"
    )
    epsilons: grid.Budgets = Field(min_length=1, description="privacy budgets ε; inf for none")
    delta: float = Field(1e-6, gt=0, lt=1, description="δ of every guarantee; below one over the edges")
    cut_edges: Literal["dropped", "protected"] = Field(
        "dropped", description="edges between clients: dropped; or, where one edge is private, used and protected at both ends"
    )
    test_share: float = Field(0.1, gt=0, lt=1, description="share of the edges that are hidden and asked for")
    negatives: int = Field(10_000, ge=1, description="pairs without an edge that are asked beside them")
    attack: whole_run.Attack | None = Field(None, description="attacks by name on what predictions show; canaries: 0")

    @model_validator(mode="after")
    def _attacks_by_name(self) -> "Params":
        if self.attack is not None and (self.attack.canaries or not self.attack.named):
            raise ValueError("links are attacked by name: write attack: {canaries: 0, named: [{attack: link_inference}]}")
        return self


def plugins_of(params: Params) -> list[Nested]:
    """Nested plugin settings, for validation with their place in the file."""
    attacks = params.attack.named if params.attack else []
    return [
        *entries_of(params.methods, ROW),
        (("partition",), "partition", params.partition),
        *(
            (("attack", "named", index), "attacks", {k: v for k, v in attack.items() if k != "label"})
            for index, attack in enumerate(attacks)
        ),
    ]


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    return kinds.misfit(name, "linker", GIVEN, grid.trusted_of(name, params.methods, params.trust))


def cells(params: Params, context: Context) -> list[Cell]:
    """Every cell, seed by seed (``base.grid``). ``DataError`` where a row protects owners of edges, and no edge has one."""
    if any(spec.get("unit") == "entity" for spec in params.methods) and not _graph(context).edge_owners:
        raise DataError(
            f"{context.dataset}: no edge names an owner; unit: entity needs owners of edges (owner: a column of edges.csv), "
            "or write unit: node"
        )
    return grid.cells(params.methods, params.trust, params.epsilons, ["provable"], context)


def alone(params: Params, cell: Cell) -> bool:
    """A curator is one client."""
    return cell.world.kind is Kind.WHOLE


def plan(params: Params, cell: Cell, context: Context) -> Plan:
    """The method's plan from public facts: counts, client sizes, features."""
    return _plan(params, cell, _world(params, cell, context))


def everybody(params: Params, graph: Graph, public: Graph | None) -> protocols.Setting:
    """All edges of ``graph`` are learnt from, none is hidden. ``ScenarioError`` for public people."""
    if public is not None:
        raise ScenarioError("a row of links takes nobody as public beside all features: leave --public away")
    return _setting(replace(graph, masks=(), validation=None, names=replace(graph.names, ids=graph.ids)))


def give_setting(params: Params, cell: Cell, context: Context, setting: protocols.Setting) -> None:
    """Let ``cell`` train on ``setting`` in the place of a split of its own: before the context has made one."""
    context.cached(_split_key(params, cell.seed, context), lambda: (setting, np.zeros((0, 2), dtype=np.int64)))


def priced_plan(params: Params, cell: Cell, context: Context) -> tuple[Plan, Guarantee]:
    """The cell's plan and guarantee: what a budget is charged before it runs. ``ScenarioError`` for what nobody prices."""
    if params.attack is not None:
        raise ScenarioError("an attack reads private edges that nobody prices: leave attack away")
    world = _world(params, cell, context)
    made = _plan(params, cell, world)
    return made, training.guarantee_looked_up(made, world.partition)


def train(params: Params, cell: Cell, context: Context) -> training.Trained:
    """All rounds of the cell, and their price; nothing is asked."""
    world = _world(params, cell, context)
    return training.train(world, _key(params, cell), _plan(params, cell, world), cell, context)


def run(params: Params, cell: Cell, context: Context) -> Outcome:
    """Train on the edges that are held, score the hidden ones beside pairs that are none."""
    done, hidden = train(params, cell, context), _split(params, cell.seed, context)[1]
    made, world, method = done.plan, done.world, kinds.linker(cell.method)
    # negatives leave out every edge of the graph, held or hidden: they measure, and nothing learns from them
    rng = seeds.generator(context.root, "negatives", context.dataset, cell.seed)
    against = links.random_pairs(world.setting.held.num_nodes, params.negatives, rng, _graph(context).adjacency)
    scores = method.scores(made, done.outcome.state, np.concatenate([hidden, against]))
    told = _attacked(params, made, cell, context, world, done.settled.epsilon)
    return done.as_outcome(
        cell,
        links.measure(scores[: len(hidden)], scores[len(hidden) :]) | told.metrics,
        LinkPredictionFacts(
            clients=world.partition.num_clients,
            partition=world.partition.description,
            cut_edges=world.partition.num_cut_edges,
            cut_edges_shared=made.facts.membership.cut_edges_shared,
            rounds=made.schedule.rounds,
            public=world.setting.public,
            protocol=GIVEN,
            broken_promise=done.settled.broken_words,
            tested=len(hidden),
            negatives=len(against),
            named=told.facts,
        ),
    )


def _attacked(params: Params, made: Plan, cell: Cell, context: Context, world: DealtWorld, epsilon: float) -> named.Found:
    """What attacks that were asked for by name found; nothing where none was."""
    attack = params.attack
    if attack is None or not attack.meant_for(cell) or not made.schedule.releases:
        return named.Found((), {})
    asked = named.Asked(attack.named, attack.shadows, attack.units, attack.answers)
    held = world.setting.held
    return named.measure(asked, made, cell, context, world.partition, held, held, epsilon)


def _plan(params: Params, cell: Cell, world: DealtWorld) -> Plan:
    spec = cell.among(params.methods)
    method = kinds.linker(spec["method"])
    known = world.clear_facts if grid.never_private(spec) else world.facts
    settings, budget = method.Params(**of_method(spec, ROW)), Budget(cell.epsilon, params.delta)
    return training.planned_training_run(method, settings, known, budget, world.setting)


def _graph(context: Context) -> Graph:
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; link_prediction needs one graph")
    return context.data


def _split(params: Params, seed: int, context: Context) -> tuple[protocols.Setting, np.ndarray]:
    """(the setting: a graph without its hidden edges, whose attributes are public; int64 [m, 2], the hidden edges)."""

    def make() -> tuple[protocols.Setting, np.ndarray]:
        graph = _graph(context)
        edges = links.edges_of(graph.adjacency)
        count = round(params.test_share * len(edges))
        if not 0 < count < len(edges):
            raise DataError(
                f"{context.dataset}: hiding {params.test_share:g} of {len(edges)} edges leaves {len(edges) - count} to learn "
                f"from and {count} to ask for; both need one"
            )
        links.require_free_pair(graph.num_nodes, graph.adjacency)
        order = seeds.generator(context.root, "split", context.dataset, seed).permutation(len(edges))
        held = replace(graph, adjacency=links.adjacency_of(edges[order[count:]], graph.num_nodes))
        return _setting(held), edges[order[:count]]

    return context.cached(_split_key(params, seed, context), make)


def _split_key(params: Params, seed: int, context: Context) -> Hashable:
    return ("links", context.dataset, params.test_share, seed)


def _setting(held: Graph) -> protocols.Setting:
    """``held``, whose features are public and no label counts."""
    nobody, attributes = np.full(held.num_nodes, -1), protocols.without_edges(held)
    attributes = replace(attributes, names=replace(held.names, ids=()))  # a model keeps them: digests say who trained
    setting = protocols.Setting(held, held, nobody, held.num_nodes, None, attributes, "attributes", split="random")
    return setting.on_one_scale(rows_private=False)


def _key(params: Params, cell: Cell) -> Hashable:
    """Who holds which node: worlds that are trusted differently hold the same."""
    dealt = None if cell.world.kind is Kind.WHOLE else tuple(sorted((k, repr(v)) for k, v in params.partition.items()))
    return (GIVEN, cell.dataset, params.test_share, cell.world.kind, dealt, params.cut_edges, cell.seed)


def _world(params: Params, cell: Cell, context: Context) -> DealtWorld:
    setting = _split(params, cell.seed, context)[0]
    shared = params.cut_edges if cell.world.kind is Kind.TOGETHER else "dropped"

    def make() -> Partition:
        if cell.world.kind is Kind.WHOLE:
            return one_client(setting.held, "one curator")
        found = training.disjoint_clients(setting.held, params.partition, cell, context)
        return found if shared == "dropped" else base.with_cut_edges(setting.held, found)

    return DealtWorld(cell.world, setting, context.cached(("partition", _key(params, cell)), make), shared, 1)


TASK: TaskOffers[Params] = TaskOffers(
    row_keys=ROW, refuses=refuses, alone=alone, models=Models(Params, everybody, priced_plan, give_setting, train)
)
