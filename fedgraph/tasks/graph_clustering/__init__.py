"""Clustering small graphs by what they release (Jin & Chen, §4 "Graph clustering"), and classifying them by it.

Clients are ego-networks of one big graph, or the graphs of a collection (``clients``). Each sends an (encoded) node embedding,
or one private vector; the server compares what it received (``compare``): by Gromov-Wasserstein discrepancies and k-means whose
centroids are barycentres, as in the paper, or by what tells classes apart. The pseudo-label of an ego-network is the label of
its centre node. Scores compare with those labels; the simulator knows them, the server does not (but for ``classify``, which
gives it four in five).

Every table has the rows ``graph size`` (clusters made from the public number of nodes alone), ``size and degrees`` and
``constant embedding`` (the encoder applied to embeddings that are ½ everywhere). A release has shown something only above them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.attacks import canary_graphs
from fedgraph.cells import GraphClusteringCellFacts
from fedgraph.comparison import SolverFacts, cluster
from fedgraph.federation import rounds
from fedgraph.methods import (
    Budget,
    EmbedderMethodMade,
    Plan,
    PublicFacts,
    method_kinds,
)
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
from fedgraph.tasks.base.graphs import graph_distances, graph_settings
from fedgraph.tasks.base.graphs.graph_distances import DEGREES, SIZE, TASK_CONSTANT_DISTANCES
from fedgraph.tasks.graph_clustering import compared_clients, held_graphs
from fedgraph.tasks.graph_clustering.compared_clients import CLIENT_VECTOR_COMPARISONS, Clustering, Compared
from fedgraph.tasks.graph_clustering.settings import PLAIN_CLUSTERING, ClusteringRow, Params
from fedgraph.tasks.graph_clustering.settings import ClusteringRowKeys as ROW
from fedgraph.tasks.graph_clustering.settings import list_clustering_rows as rows_of
from fedgraph.types import GraphCollection, Partition
from fedgraph.worlds import JOINED_WORLD


def plugins_of(params: Params) -> list[NestedTaskPlugin]:
    """The methods and the partition, for validation with their place in the file."""
    return [*nest_methods(params.methods, ROW), (("partition",), "partition", params.partition)]


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    return method_kinds.explain_misfit(name, "embedder", "ego")


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Per seed: the rows that see no embedding, then every entry, budget and encoder."""
    found: list[Cell] = []
    rows = rows_of(params)
    held_graphs.require_enough_clients(params, context)
    encoded = [r for r in rows if not graph_settings.is_in_clear(r.epsilon) and r.how != "histogram"]
    for seed in range(min(context.seeds, params.seeds or context.seeds)):
        for row in (SIZE, DEGREES):
            found.append(Cell(context.label, context.dataset, row, "baseline", JOINED_WORLD, np.inf, "none", seed))
        found += [_cell(params, context, TASK_CONSTANT_DISTANCES, r, seed) for r in encoded[:1]]
        found += [_cell(params, context, params.methods[r.index]["method"], r, seed) for r in rows]
    return found


def _cell(params: Params, context: CellContext, method: str, row: ClusteringRow, seed: int) -> Cell:
    """The variant names entry, encoder, rule and comparison; epsilon is the largest over graphs."""
    epsilon = row.epsilon
    if isinstance(epsilon, str):
        epsilon = 1.0 / min(s.graph.num_nodes for s in held_graphs.deal(params, seed, context).subgraphs)
    coded = row.encoder == "gaussian-as-coded" and row.how != "histogram"  # whose target is the published ε
    reading = "none" if np.isinf(epsilon) else "published" if coded else "provable"
    return Cell(context.label, context.dataset, method, row.variant, JOINED_WORLD, float(epsilon), reading, seed, row.index)


def _row(params: Params, cell: Cell) -> ClusteringRow:
    return next(r for r in rows_of(params) if (r.variant, r.index) == (cell.variant, cell.entry))


def plan(params: Params, cell: Cell, context: CellContext) -> Plan[Any, EmbedderMethodMade] | None:
    """The method's plan from public facts: sizes, and who holds which node. None for the rows without a release."""
    return None if cell.method in (SIZE, DEGREES) else _planned(params, cell, context)


def _planned(params: Params, cell: Cell, context: CellContext) -> Plan[Any, EmbedderMethodMade]:
    graph, row = held_graphs.find_one(params, context), _row(params, cell)
    together = isinstance(context.data, GraphCollection)
    partition = held_graphs.deal(params, cell.seed, context)
    own = tuple(s.graph.num_nodes for s in partition.subgraphs)
    graphs, holdings = (tuple((n,) for n in own), None) if together else ((), partition.holdings(graph.num_nodes))
    some = isinstance(context.data, GraphCollection) and len(own) < len(context.data.graphs)  # drawn class by class
    facts = PublicFacts(
        num_nodes=graph.num_nodes, num_features=graph.num_features, num_classes=graph.num_classes, clients=own, graphs=graphs,
        viewer=Viewer.SERVER, membership_from_edges=partition.from_edges, membership_from_labels=partition.from_labels,
        holdings=holdings, cut_edges="dropped", public="test-graph",
        public_graph=held_graphs.draw_public(params, cell.seed, context), public_attributes=None, colluders=1,
        split_from_edges=False, split_from_labels=some, component_from_edges=graph.nodes_from_edges,
        columns_from_rows=graph.columns_from_rows, features_from_edges=graph.features_from_edges,
    )  # fmt: skip
    entry = cell.among(params.methods)
    spec, module = task_offers.without_row_keys(entry, ROW), method_kinds.load_embedder(entry["method"])
    value = cell.epsilon
    if row.how != "histogram":
        spec |= {"rectify": True} if row.how in ("fgw", "mean") else {}
        if row.rule != "epsilon" or row.encoder != "multi-bit":
            spec |= {"encoder": row.encoder, "epsilon_rule": row.rule}
            value = 1.0 if row.rule == "1/n" else value
    made = module.plan(module.Params(**spec), facts, Budget(value, 1.0 / graph.num_nodes))
    if params.classify:
        given = (*made.guarantee.protection.assumptions, Assumption.GRAPH_LABELS_PUBLIC)
        protection = replace(made.guarantee.protection, assumptions=given)
        made = replace(made, guarantee=replace(made.guarantee, protection=protection))
    return made


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """One row with one seed: train and encode at the clients, compare, cluster and classify at the server."""
    partition = held_graphs.deal(params, cell.seed, context)
    truth = held_graphs.find_classes(params, cell.seed, context)
    k = params.clusters or held_graphs.find_one(params, context).num_classes
    if cell.method in (SIZE, DEGREES):
        return _unreleased(params, cell, context, partition, truth, _by_counts(cell, context, partition, k))
    made = _planned(params, cell, context)
    sizes = [s.graph.num_nodes for s in partition.subgraphs]
    how_many = Clustering(k, params.num_init, params.max_iterations, params.verify)
    if cell.method == TASK_CONSTANT_DISTANCES:
        rng = seeds.seeded_generator(context.root, *cell.path, "constant")
        spaces = graph_distances.constant_spaces(made.facts.clients, made.made.encoding, params.metric, rng)
        found = compared_clients.compare_spaces(spaces, params.options(None, sizes), how_many, cell, context)
        return _unreleased(params, cell, context, partition, truth, found)
    shared = context.runtime.share(("partition", context.label, cell.dataset, cell.seed), partition)
    common = (cell.task, cell.dataset, cell.method, PLAIN_CLUSTERING, cell.world.stream_word, cell.seed)
    trained = rounds.run(context.runtime, shared, made, context.root, cell.path, common, context.prefixes, context.on_round)
    row, received = _row(params, cell), _known(trained.state.memory.embeddings, made)
    if row.how in CLIENT_VECTOR_COMPARISONS:
        found = compared_clients.compare_vectors(received, how_many, cell, context)
    else:
        weights = params.weights if np.isinf(cell.epsilon) else "uniform"
        graphs = [s.graph for s in partition.subgraphs]
        fused, alpha = ("embedding", params.alpha) if row.how == "fgw" else (None, None)
        spaces = graph_distances.embedded_spaces(received, params.metric, graphs, fused, weights)
        options = params.options(alpha, sizes)
        found = compared_clients.compare_spaces(spaces, options, how_many, cell, context)

    measured = canary_graphs.measure(params.attack, made, cell, context, partition, trained.state)
    done = cell_training.settle_plan(made, partition, trained)
    embedding = done.settled.paths["embedding"]
    by_spectrum = cluster.spectrally(found.distances, k, seeds.seeded_generator(context.root, *cell.path, "spectral"))
    metrics = _scores(params, cell, context, truth, found)
    metrics |= {f"spectral_{name}": value for name, value in cluster.scores(truth, by_spectrum.labels).items()}
    if row.how not in CLIENT_VECTOR_COMPARISONS and len(received) > 1:
        upper = found.distances[np.triu_indices(len(received), 1)]
        metrics |= {"gw_mean": float(upper.mean()), "gw_spread": float(upper.std())}
    facts = replace(_facts(partition, found), rounds=made.schedule.rounds, label=row.named, encoder=row.encoder, rule=row.rule)
    facts = replace(facts, how=row.how, training=made.params.training, release=made.params.release, attack=measured.attack)
    facts = replace(facts, worst_node_clients=len(embedding.holders or (0,)))
    drawn = _artefacts(params, cell, context, found, truth) if cell.seed == 0 and row.how == "gw" else {}
    return done.as_result(cell, metrics | measured.metrics, facts, measured=measured.epsilon, artefacts=drawn)


def _scores(params: Params, cell: Cell, context: CellContext, truth: np.ndarray, found: Compared) -> dict[str, float]:
    known = found.distances if found.distances.size else None
    metrics = cluster.scores(truth, found.labels, known)
    if params.classify and known is not None:
        rng = seeds.seeded_generator(context.root, *cell.path, "classify")
        metrics |= context.runtime.on_server(compared_clients.accuracy_of_folds, known, truth, rng)
    return metrics


def _known(received: Sequence[np.ndarray | None], made: Plan[Any, EmbedderMethodMade]) -> list[np.ndarray]:
    """A client that never sent anything is known by its size alone: ½ everywhere, or a uniform histogram."""
    width, pooled = made.made.encoding.width, made.made.pooled
    sizes = made.facts.clients
    if pooled is not None:
        return [np.full((1, pooled.width), 1.0 / pooled.width) if h is None else h for h in received]
    return [np.full((n, width), 0.5) if h is None else h for h, n in zip(received, sizes, strict=True)]


def _by_counts(cell: Cell, context: CellContext, partition: Partition, k: int) -> Compared:
    rng, graphs = seeds.seeded_generator(context.root, *cell.path, "cluster"), [s.graph for s in partition.subgraphs]
    if cell.method == SIZE:
        found = cluster.by_size(np.array([graph.num_nodes for graph in graphs]), k, rng)
    else:
        found = cluster.spectrally(graph_distances.of_degrees(graphs), k, rng)
    return Compared(np.zeros((0, 0)), found.labels, SolverFacts())


def _unreleased(
    params: Params, cell: Cell, context: CellContext, partition: Partition, truth: np.ndarray, found: Compared
) -> Result:
    public = cell.method != DEGREES
    whole = isinstance(context.data, GraphCollection)
    given = (Assumption.SIZES_PUBLIC, Assumption.MEMBERSHIP_GIVEN if whole else Assumption.MEMBERSHIP_FROM_EDGES)
    protection = Protection(Relation.GRAPH_REPLACE if whole else Relation.NODE_REPLACE, Viewer.SERVER, given)
    metrics = _scores(params, cell, context, truth, found)
    delta = 1.0 / held_graphs.find_one(params, context).num_nodes
    return cell_training.price_untrained(cell, protection, delta, metrics, _facts(partition, found), from_sizes=public)


def _facts(partition: Partition, found: Compared) -> GraphClusteringCellFacts:
    counts = np.array([(s.graph.num_nodes, s.graph.num_edges) for s in partition.subgraphs], dtype=np.float64)
    counts = np.column_stack([counts, 2 * counts[:, 1] / np.maximum(counts[:, 0], 1.0)])
    errors = counts.std(axis=0, ddof=1) / math.sqrt(len(counts)) if len(counts) > 1 else np.zeros(3)
    nodes, edges, degree = (float(column.mean()) for column in counts.T)
    sure = (float(errors[0]), float(errors[1]), float(errors[2]))
    facts = GraphClusteringCellFacts(mean_nodes=nodes, mean_edges=edges, mean_degree=degree, standard_errors=sure)
    facts = replace(facts, clients=partition.num_clients, partition=partition.description, solver=found.facts)
    return replace(facts, cut_edges=partition.num_cut_edges)


def _artefacts(params: Params, cell: Cell, context: CellContext, found: Compared, truth: np.ndarray) -> dict[str, np.ndarray]:
    if params.map == "mds":
        places = cluster.map_distances_by_mds(found.distances)
    else:
        places = cluster.tsne(found.distances, seeds.seeded_generator(context.root, *cell.path, "map"))
    distances = found.distances.astype(np.float32)
    return {"distances": distances, "truth": truth, "clusters": found.labels, "map": places} | found.pictured


def clients(params: Params, cell: Cell, context: CellContext) -> Partition:
    """Who holds what: one small graph each."""
    return held_graphs.deal(params, cell.seed, context)


TASK: TaskOffers[Params] = TaskOffers(row_keys=ROW, refuses=refuses, one_method=True, clients=clients)
