"""Classifying graphs by the geometry of what their clients release (Jin & Chen, §4 "Graph classification", Table 1).

Graphs are dealt to clients by a Dirichlet distribution over labels. A shared GCN or GIN is trained federatedly, on the node
labels of the training graphs as in the paper (``pooling: none``; IMDB-BINARY has none: degrees) or on their graph labels
(``mean``, ``sum``; then the model itself is a classifier, too). Each graph's node embedding is encoded, the server computes all
Gromov-Wasserstein discrepancies D and classifies by a support vector machine on exp(−γD) and by nearest neighbours (or by these
alone: then only pairs that can be among them are solved). Seed s tests fold s of a cross-validation (7 : 2 : 1).

Rows that see the model choose C and γ on validation graphs, which the model has not seen either; all others by inner folds.

Every table holds the rows that expose what size alone gives away: ``graph size``, ``size and degrees``, and ``constant
embedding``, the encoder applied to embeddings that are ½ everywhere.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.attacks import canary_graphs
from fedgraph.cells import GraphClassificationCellFacts
from fedgraph.comparison import ClassifySplit, GromovOptions, MetricSpace, SolverFacts
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.methods import (
    Budget,
    EmbedderMethodMade,
    Plan,
    PublicFacts,
    method_kinds,
)
from fedgraph.partition import base
from fedgraph.privacy import Assumption, Protection, Relation, Viewer
from fedgraph.tasks.base import (
    Cell,
    CellContext,
    NestedTaskPlugin,
    Result,
    TaskOffers,
    cell_training,
    nest_methods,
    task_offers,
)
from fedgraph.tasks.base.graphs import graph_collections as collections
from fedgraph.tasks.base.graphs import graph_distances as raw
from fedgraph.tasks.base.graphs import graph_pairs, graph_settings
from fedgraph.tasks.base.graphs.graph_settings import COMPARE, FUSED
from fedgraph.tasks.base.graphs.graph_settings import GraphRowKeys as ROW
from fedgraph.tasks.graph_classification import classified_graphs as graph_models
from fedgraph.tasks.graph_classification.settings import Params
from fedgraph.types import GraphCollection, Partition
from fedgraph.worlds import JOINED_WORLD


def plugins_of(params: Params) -> list[NestedTaskPlugin]:
    """The partition and the methods, for validation with their place in the file."""
    return [(("partition",), "partition", params.partition), *nest_methods(params.methods, ROW)]


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    return method_kinds.explain_misfit(name, "embedder", "collection")


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Per seed: the leak-exposing rows, the rows on raw data, then every model, encoder and budget."""
    collection = _collection(params, context)
    collections.require_classes(collection, params.folds)
    smallest = min(g.num_nodes for g in collection.graphs)
    rows = (*raw.LEAKING_DISTANCES, *(b for b in params.baselines if b != raw.FUSED or _has_features(context)))
    found: list[Cell] = []
    for seed in range(min(context.seeds, params.seeds_of.get(context.dataset, params.seeds or context.seeds))):
        found += [Cell(context.label, context.dataset, row, "baseline", JOINED_WORLD, np.inf, "none", seed) for row in rows]
        for rows_of_model in _rows(params, context):
            first = rows_of_model[0]
            if not graph_settings.is_in_clear(first.epsilon):
                exposing = [r for r in rows_of_model if r.epsilon == first.epsilon]
                found += [_cell(context, raw.TASK_CONSTANT_DISTANCES, r, smallest, seed) for r in exposing]
            found += [_cell(context, params.methods[r.index]["method"], r, smallest, seed) for r in rows_of_model]
    return found


def _rows(params: Params, context: CellContext) -> list[tuple[graph_settings.Row, ...]]:
    budgets = params.epsilons_of.get(context.dataset, params.epsilons)
    return list(graph_settings.list_rows(params.methods, budgets, params.encoders))


def _row(params: Params, cell: Cell, context: CellContext) -> graph_settings.Row:
    return next(r for r in cell.among(_rows(params, context)) if r.variant == cell.variant)


def _cell(context: CellContext, method: str, row: graph_settings.Row, smallest: int, seed: int) -> Cell:
    value = 1.0 / smallest if isinstance(row.epsilon, str) else row.epsilon
    reading = "none" if np.isinf(value) else "published" if row.encoder == "gaussian-as-coded" else "provable"
    return Cell(context.label, context.dataset, method, row.variant, JOINED_WORLD, value, reading, seed, row.index)


def plan(params: Params, cell: Cell, context: CellContext) -> Plan[Any, EmbedderMethodMade] | None:
    """The method's plan from public facts: the sizes of the graphs that each client holds. None where no model runs."""
    return None if cell.variant == "baseline" else _planned(params, cell, context)[0]


def _planned(
    params: Params, cell: Cell, context: CellContext
) -> tuple[Plan[Any, EmbedderMethodMade], collections.TaskCollection, ClassifySplit]:
    collection = _collection(params, context)
    row, entry = _row(params, cell, context), cell.among(params.methods)
    spec = task_offers.without_row_keys(entry, ROW)
    split, dealt = _dealt(params, cell.seed, context, on_nodes=spec.get("pooling") == "none")
    features, classes = collection.graphs[0].num_features, dealt.partition.subgraphs[0].graph.num_classes
    own = tuple(map(sum, dealt.sizes))
    all_of_them = isinstance(context.data, GraphCollection) and len(context.data.graphs) == len(collection.graphs)
    by_label = params.held_out == "folds" or not all_of_them  # folds, and a part of the collection, are drawn class by class
    facts = PublicFacts(
        num_nodes=sum(own), num_features=features, num_classes=classes, clients=own, graphs=dealt.sizes, viewer=Viewer.SERVER,
        membership_from_edges=dealt.partition.from_edges, membership_from_labels=dealt.partition.from_labels, holdings=None,
        cut_edges="dropped", public="nothing", public_graph=None, public_attributes=None, colluders=1,
        split_from_edges=False, split_from_labels=by_label, component_from_edges=False, columns_from_rows=False,
        features_from_edges=False,
    )  # fmt: skip
    module = method_kinds.load_embedder(entry["method"])
    attendance = seeds.seeded_integer(context.root, "attendance", cell.seed)
    spec |= {"encoder": row.encoder, "epsilon_rule": row.rule, "attendance_seed": attendance}
    epsilon = 1.0 if row.rule == "1/n" else cell.epsilon
    made = module.plan(module.Params(**spec), facts, Budget(epsilon, params.delta))
    return made, dealt, split


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """One row for one fold."""
    collection = _collection(params, context)
    if cell.variant == "baseline":
        split, dealt = _dealt(params, cell.seed, context)
        known = np.sort(np.concatenate([split.train, split.validation]))
        chosen_by_folds = ClassifySplit(known, np.zeros(0, np.int64), split.test)
        wanted = (params.alpha, _options(params, context), context, split, params.only_nearest, params.weights)
        distances, asked = raw.of_row(cell.method, collection, *wanted)
        judged = _judged(params, cell, context, distances, chosen_by_folds)
        return _unreleased(params, cell, judged, replace(_facts(params, context, dealt, split), solver=asked))
    return (_constant if cell.method == raw.TASK_CONSTANT_DISTANCES else _released)(params, cell, context)


def _constant(params: Params, cell: Cell, context: CellContext) -> Result:
    made, dealt, split = _planned(params, cell, context)
    distances, asked = _constant_distances(params, cell, context, made, split)
    row, facts = _row(params, cell, context), _facts(params, context, dealt, split)
    facts = replace(facts, label=row.label, encoder=row.encoder, rule=row.rule, solver=asked)
    return _unreleased(params, cell, _judged(params, cell, context, distances, split), facts)


def _constant_distances(
    params: Params, cell: Cell, context: CellContext, made: Plan[Any, EmbedderMethodMade], split: ClassifySplit
) -> tuple[np.ndarray, SolverFacts]:
    """Of embeddings that are ½ everywhere, through the encoder. Nothing is trained, so one draw serves all splits."""
    key = cell.path[:-1]

    def spaces() -> list[MetricSpace]:
        sizes = [g.num_nodes for g in _collection(params, context).graphs]
        rng = seeds.seeded_generator(context.root, *key, "constant")
        return raw.constant_spaces(sizes, made.made.encoding, params.metric, rng)

    return graph_pairs.solve_once(("constant", *key), spaces, _options(params, context), context, split, params.only_nearest)


def _released(params: Params, cell: Cell, context: CellContext) -> Result:
    made, dealt, split = _planned(params, cell, context)
    collection = _collection(params, context)
    row, own = _row(params, cell, context), cell.among(params.methods)
    on_nodes = made.params.pooling == "none"
    shared = context.runtime.share(("partition", cell.task, cell.dataset, cell.seed, on_nodes), dealt.partition)
    common = (cell.task, cell.dataset, cell.method, row.label, cell.seed)
    trained = rounds.run(context.runtime, shared, made, context.root, cell.path, common, context.prefixes, context.on_round)
    metrics: dict[str, float] = {}
    asked = SolverFacts()
    if own.get(COMPARE, True):
        embeddings = graph_models.in_order(trained.state.memory.embeddings, dealt, made.made.encoding.width)
        weights = params.weights if graph_settings.is_in_clear(cell.epsilon) else "uniform"
        spaces = raw.embedded_spaces(embeddings, params.metric, collection.graphs, own.get(FUSED), weights)
        options = _options(params, context, params.alpha if FUSED in own else None)
        distances, asked = graph_pairs.solve_asked(spaces, options, context, split, params.only_nearest)
        drawn = seeds.seeded_generator(context.root, *cell.path, "verify")
        asked = replace(asked, verified=graph_pairs.verify(spaces, options, params.verify, drawn, context))
        metrics = _judged(params, cell, context, distances, split)
        if params.only_nearest is None:
            metrics["gw_mean"] = float(distances[np.triu_indices(len(spaces), 1)].mean())
    if not on_nodes:
        metrics |= graph_models.measure_model(made, trained.state, dealt, collection, split, params.tuned_on_test)
    measured = canary_graphs.measure(params.attack, made, cell, context, dealt.partition, trained.state)
    facts = graph_models.bound(_facts(params, context, dealt, split), made, dealt, collection)
    facts = replace(facts, label=row.label, encoder=row.encoder, rule=row.rule, solver=asked, attack=measured.attack)
    facts = replace(facts, rounds=made.schedule.rounds, model=made.params.model, pooling=made.params.pooling)
    done = cell_training.settle_plan(made, dealt.partition, trained)
    return done.as_result(cell, metrics | measured.metrics, facts, measured=measured.epsilon)


def _options(params: Params, context: CellContext, alpha: float | None = None) -> GromovOptions:
    return params.options(alpha, [graph.num_nodes for graph in _collection(params, context).graphs])


def _judged(params: Params, cell: Cell, context: CellContext, distances: np.ndarray, split: ClassifySplit) -> dict[str, float]:
    rng = seeds.seeded_generator(context.root, *cell.path, "svm")
    labels_of = _collection(params, context).labels
    return dict(context.runtime.on_server(graph_models.judge, distances, labels_of, split, rng, params))


def _unreleased(params: Params, cell: Cell, metrics: dict[str, float], facts: GraphClassificationCellFacts) -> Result:
    public = cell.method in (raw.SIZE, raw.TASK_CONSTANT_DISTANCES)
    protection = Protection(Relation.GRAPH_REPLACE, Viewer.SERVER, (Assumption.SIZES_PUBLIC, Assumption.MEMBERSHIP_GIVEN))
    return cell_training.price_untrained(cell, protection, params.delta, metrics, facts, from_sizes=public)


def _facts(
    params: Params, context: CellContext, dealt: collections.TaskCollection, split: ClassifySplit
) -> GraphClassificationCellFacts:
    facts = graph_models.facts_of(_collection(params, context), dealt, split)
    return facts if params.only_nearest is None else replace(facts, classifier=f"k-NN, k = {params.neighbours[0]}")


def _dealt(
    params: Params, seed: int, context: CellContext, on_nodes: bool = False
) -> tuple[ClassifySplit, collections.TaskCollection]:
    def make() -> tuple[ClassifySplit, collections.TaskCollection]:
        collection = _collection(params, context)
        offers, settings = base.chosen(params.partition)
        if offers.deal is None:
            raise ScenarioError(f"graph_classification deals whole graphs; partition {params.partition['partition']!r} cannot")
        rng = seeds.seeded_generator(context.root, "partition", context.label, context.dataset, seed)
        shares = offers.deal(collection, settings, rng)
        how = (params.folds, params.validation, context.root, context.dataset, seed)
        if params.held_out == "clients":
            split = collections.split_by_clients(shares, *how)
        else:
            split = collections.split_by_folds(collection.labels, *how)
        kinds = collections.node_kinds(collection) if on_nodes else None
        return split, collections.deal(collection, shares, split.train, kinds)

    return context.cached(("dealt", context.label, context.dataset, seed, on_nodes), make)


def _collection(params: Params, context: CellContext) -> GraphCollection:
    given = context.data
    if not isinstance(given, GraphCollection):
        raise ScenarioError(f"{context.dataset} is one graph; task graph_classification needs a collection, such as tu/mutag")

    def make() -> GraphCollection:
        most = params.max_graphs_of.get(context.dataset, params.max_graphs)
        return collections.prepare(given, most, params.max_degree, context.root, params.degrees, params.attributes)

    return context.cached(("collection", context.label, context.dataset), make)


def _has_features(context: CellContext) -> bool:
    return isinstance(context.data, GraphCollection) and context.data.graphs[0].num_features > 0


def clients(params: Params, cell: Cell, context: CellContext) -> Partition:
    """Each client's graphs, as one graph of several parts."""
    return _planned(params, cell, context)[1].partition


TASK: TaskOffers[Params] = TaskOffers(row_keys=ROW, refuses=refuses, clients=clients)
