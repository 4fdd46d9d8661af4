"""Is it worth joining, and for whom? The same people with every choice that their organisations have.

Each owner of the data (a campus, a country, a bank) is a client. One cell is one method at one budget in one of these worlds:

* ``alone``: every client for itself, its own curator; the privacy of a model that it may show to others;
* together, with trust ``sums`` or ``own-client``: the server sees sums, or each message (``participations: federated``);
* one curator holds everything (``curator``);
* together without one client, which asks: what a newcomer gets, and what the others lose nothing by (``left-out``);
* ``personalised``: beside the clients together: each client goes on from the shared model on its own data in clear, and
  fits a head to its scores (``learning.own_models``) or all of its weights. Both stay with the
  client. Toward everybody else that costs nothing beyond the shared model; toward whoever gets to see them or their answers, it
  protects nothing. Beside ``alone`` each client fits the same head to its own model, so that joining is compared with as much.

Every world has the same δ, that of the whole federation, so that one person's ε can be compared between them. Each client
predicts at home: of a public test graph it reads its own part. Scores are kept per client (``facts.results``): what it
holds, what it reaches, and the ε of the dearest of its units toward the viewer.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fedgraph import seeds, worlds
from fedgraph.documents import SettingsSpec
from fedgraph.errors import ScenarioError
from fedgraph.methods import Plan, method_kinds
from fedgraph.privacy import Trust
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import Cell, CellContext, Result, TaskOffers, cell_training, grid, node_settings, task_offers
from fedgraph.tasks.base.grid import GridRowKeys as ROW
from fedgraph.tasks.participation import client_records as clients
from fedgraph.types import Graph
from fedgraph.worlds import (
    ALONE_WORLD,
    Federation,
    LeftOutOfWorld,
    World,
    WorldKind,
    world_of_trust,
)

_Participation = Literal["alone", "federated", "curator", "left-out", "personalised"]
_DEFAULT: list[_Participation] = ["alone", "federated", "curator", "personalised"]
_FEDERATED = (Trust.SUMS, Trust.OWN_CLIENT)


class Params(node_settings.Params):
    """As ``node_classification``, and who takes part."""

    partition: SettingsSpec = Field(
        default_factory=lambda: {"partition": "natural"}, description="who owns which node (default: as the data say)"
    )
    participations: list[_Participation] = Field(_DEFAULT, min_length=1, description="which choices are compared")
    left_out: Literal["all"] | int | list[str] = Field(
        3, description="clients left out in turn: all, so many (from the smallest to the largest), or names"
    )
    personalised: Literal["head", "weights", "both", "none"] = Field(
        "head", description="what a client fits to its own data in clear: a head on the shared scores, all weights, both, none"
    )
    alerts: float | None = Field(None, gt=0, le=1, description="share of a client's test nodes that can be looked at")
    positive: int = Field(1, ge=0, description="number of the class that alerts look for")
    called: tuple[str, str] = Field(("person", "people"), description="what the pages for owners call a node, and several")

    @model_validator(mode="after")
    def _fits(self) -> Params:
        trusted = {*self.trust, *(Trust(t) for m in self.methods for t in m.get("trust", ()))}
        if wrong := [t.value for t in Trust if t in trusted - set(_FEDERATED)]:
            raise ValueError(
                f"trust says how a federation is trusted: found {wrong[0]}; allowed: sums, own-client (one curator is "
                "participations: [curator])"
            )
        if self.map or self.attack is not None or self.federation.share < 1:
            raise ValueError("map, attack and federation belong to node_classification: write that task for them")
        if "left-out" in self.participations and self.protocol == "transductive":
            raise ValueError(
                "left-out asks for nodes that nobody trained with, and protocol transductive has none; allowed with it: "
                "protocol inductive, inductive-edges or asking"
            )
        if isinstance(self.left_out, int) and self.left_out < 1:
            raise ValueError(f"left_out leaves out 1 client or more in turn, found {self.left_out}")
        return self


plugins_of = node_classification.plugins_of


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    if method_kinds.load(name).OFFERS.trusts_nobody:
        return f"in {name!r} every node protects itself, so whether its organisation joins changes nothing"
    own = {Trust(t) for m in params.methods if m.get("method") == name for t in m.get("trust", params.trust)}
    own |= {Trust.CURATOR} if {"alone", "curator"} & set(params.participations) else set()
    return method_kinds.explain_misfit(name, "classifier", params.protocol, [t for t in Trust if t in own])


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every cell: seed by seed, row by row, world by world."""
    federation = _federation(params, 0, context)
    found: list[Cell] = []
    for seed in range(context.seeds):
        for entry, spec in enumerate(params.methods):
            for world in _worlds(params, spec, federation):
                found += grid.list_row_cells(params, world, entry, seed, context)
    return found


def _worlds(params: Params, spec: SettingsSpec, federation: Federation) -> list[World]:
    """Every world of a row: the only place where this task makes one."""
    trusted = [Trust(t) for t in spec.get("trust", params.trust)]
    wanted = set(params.participations)
    found = [*([ALONE_WORLD] if "alone" in wanted else []), *([world_of_trust(Trust.CURATOR)] if "curator" in wanted else [])]
    found += map(world_of_trust, trusted) if wanted & {"federated", "personalised"} else []
    if "left-out" in wanted:
        left = [LeftOutOfWorld(k, federation.names[k]) for k in _left_out(params, federation)]
        found += [World(WorldKind.TOGETHER, trust, without) for trust in trusted for without in left]
    return found


def _left_out(params: Params, federation: Federation) -> list[int]:
    """The numbers of the clients that are left out in turn: of those that are asked about somebody, unless they are named.

    Whether an answer is known follows from labels, and would decide how many rows there are.
    """
    names = federation.names
    known = [k for k in range(len(names)) if federation.asked_of(k).size]
    if params.left_out == "all":
        return known
    if isinstance(params.left_out, int):
        order = sorted(known, key=lambda k: federation.partition.subgraphs[k].nodes.size)
        places = np.linspace(0, len(order) - 1, min(params.left_out, len(order))).round().astype(int)
        return sorted({order[k] for k in places})
    return [clients.find(name, names, "left_out") for name in params.left_out]


def alone(params: Params, cell: Cell) -> bool:
    """Whether one worker can do the whole cell: no training in it has several clients."""
    return cell.world.kind is not WorldKind.TOGETHER


def plan(params: Params, cell: Cell, context: CellContext) -> Plan:
    """The plan of the cell's world; of ``alone``, the largest client's."""
    federation = _federation(params, cell.seed, context)
    client = int(np.argmax([s.nodes.size for s in federation.partition.subgraphs]))
    return _planned(params, cell, federation, _dealt(params, cell, federation, context, client))


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """Train in the cell's world, count, and test each client's nodes."""
    federation = _federation(params, cell.seed, context)
    if cell.world == ALONE_WORLD:
        return _run_alone(params, cell, context, federation)
    world = _dealt(params, cell, federation, context)
    made = _planned(params, cell, federation, world)
    done = cell_training.train(world, _holding(params, cell, context), made, cell, context)
    scales = [done.federation.setting.ranks] * len(federation.names)
    found = clients.Records(federation, params.alerts, params.positive, scales)
    method = method_kinds.load_classifier(cell.method)
    asked = done.question

    def answers(graph: Graph) -> np.ndarray:
        return method.predict(made, done.outcome.state, graph)

    scores = federation.at_home(answers, asked) if cell.world.without is None else answers(asked)
    records = found.records(scores, done)
    pooled = dict(records[0].metrics) if cell.world.without is None else {}
    if "personalised" in params.participations and cell.world.joined:
        own = functools.partial(seeds.seeded_generator, context.root, "personal", *cell.path)
        if params.personalised in ("head", "both"):
            prices = clients.epsilons_of(done, federation)
            records += found.personal(scores, lambda client: answers, prices, clients.RECORD_TOWARD_OTHERS, own)
        if params.personalised in ("weights", "both"):
            records += found.tuned(method, done, functools.partial(own, "weights"))
    if "federated" not in params.participations:
        records = [r for r in records if r.participation != "federated"]
    return clients.finish(cell, done, records, pooled, params.protocol, method)


def _run_alone(params: Params, cell: Cell, context: CellContext, federation: Federation) -> Result:
    method = method_kinds.load_classifier(cell.method)

    def train_one(client: int) -> cell_training.TrainedCell:
        world = _dealt(params, cell, federation, context, client)
        made = _planned(params, cell, federation, world)
        key, who = _holding(params, cell, context, client), (federation.names[client],)
        return cell_training.train(world, key, made, cell, context, who)

    each, together, prices = cell_training.train_clients_alone(federation.names, cell, context, train_one)
    scales = [done.federation.setting.ranks for done in each]
    models: list[clients.ClientRecordAnswers] = [functools.partial(method.predict, one.plan, one.outcome.state) for one in each]
    scores: np.ndarray | None = None
    for client, done in enumerate(each):
        rows = federation.asked_of(client)
        if rows.size:
            own = models[client](done.question)
            scores = np.zeros((federation.setting.asked.num_nodes, own.shape[1])) if scores is None else scores
            scores[rows] = own
    if scores is None:
        raise ScenarioError(f"{cell.dataset}: no client holds a node that is tested, so no row alone has a number")
    found = clients.Records(federation, params.alerts, params.positive, scales)
    records = found.records_of_all("alone", scores, prices, together.plan.guarantee.protection.viewer.words)
    if "personalised" in params.participations and params.personalised in ("head", "both"):
        rng = functools.partial(seeds.seeded_generator, context.root, "personal", *cell.path)
        records += found.personal(scores, models.__getitem__, [np.inf] * len(models), clients.CLIENT_RECORD_TOWARD_NOBODY, rng)
    return clients.finish(cell, together, records, {}, params.protocol, method, len(federation.names))


def _dealt(params: Params, cell: Cell, federation: Federation, context: CellContext, client: int = 0) -> Federation:
    make = functools.partial(federation.within, cell.world, client)
    dealt: Federation = context.cached(("dealt", _holding(params, cell, context, client)), make)
    return replace(dealt, world=cell.world)


def _holding(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Hashable:
    """Cells with the same key deal the same nodes to the same clients, whoever is trusted."""
    return _key(params, cell.seed, context), cell.world.holding, client if cell.world == ALONE_WORLD else None


def _planned(params: Params, cell: Cell, federation: Federation, world: Federation) -> Plan:
    spec = cell.among(params.methods)
    method = method_kinds.load_classifier(cell.method)
    cell_training.require_answers(world.setting, method, cell, params.protocol)
    if "personalised" in params.participations and params.personalised in ("weights", "both") and method.OFFERS.tuned is None:
        able = ", ".join(method_kinds.list_names(lambda offers: offers.tuned))
        head = f"{cell.method} has no weights that a client could fit to its own data; write personalised: head"
        raise ScenarioError(f"{head}, or one of {able}")
    facts = world.clear_facts if grid.never_private(spec) else world.facts
    settings = method.Params(**task_offers.without_row_keys(spec, ROW))
    budget = params.budget(cell, federation.setting.num_train)
    return cell_training.plan(method, settings, facts, budget, world.setting)


def _key(params: Params, seed: int, context: CellContext) -> Hashable:
    """Two cells with the same key ask the same federation."""
    split = node_classification.split_key(params)
    dealt = cell_training.partition_key(params.partition)
    return ("participation", context.dataset, split, dealt, seed, params.cut_edges)


def _federation(params: Params, seed: int, context: CellContext) -> Federation:
    graph = context.data
    if not isinstance(graph, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; participation needs one graph with owners")

    def make() -> Federation:
        whole, source = clients.deal(graph, params.partition, context)
        rng = seeds.seeded_generator(context.root, "split", context.dataset, seed)
        setting = params.setting(whole, seed, rng).on_one_scale(rows_private=False)
        return worlds.deal(setting, whole.owner_names, source, params.cut_edges, params.colluders)

    return context.cached(_key(params, seed, context), make)


TASK: TaskOffers[Params] = TaskOffers(row_keys=ROW, refuses=refuses, alone=alone)
