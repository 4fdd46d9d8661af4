"""Clustering small graphs by what they release (Jin & Chen, §4 "Graph clustering"), and classifying them by it.

Clients are ego-networks of one big graph, or the graphs of a collection. Each sends an (encoded) node embedding, or one private
vector. The server compares them (``compare``) by Gromov-Wasserstein discrepancies and clusters them by k-means whose centroids
are barycentres, as in the paper, or it takes simpler distances. The pseudo-label of an ego-network is the label of its centre
node. Scores compare clusters with those labels. The simulator knows them, the server does not (but ``classify`` gives it four
in five).

Every table has the rows ``graph size`` (clusters made from the public number of nodes alone), ``size and degrees`` (raw data)
and ``constant embedding`` (the encoder applied to embeddings that are ½ everywhere). A release has told something only if its
row is above these.

    gw          Gromov-Wasserstein of the rows' distances to each other: blind to which class a row points to
    fgw         the fused discrepancy, with the rows themselves beside their distances
    mean        the squared distance of the graphs' mean rows
    histogram   the squared distance of vectors that were pooled before they were released

``mean`` and ``fgw`` read rows that were made unbiased. All four are post-processing of one release and cost nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from scipy.spatial.distance import cdist

from fedgraph import comparison, methods, seeds
from fedgraph.attacks import canary_graphs
from fedgraph.cells import GraphClusteringCellFacts, require_distinct_cells
from fedgraph.comparison import MetricSpace, classify, cluster, gromov
from fedgraph.documents import SettingsSpec
from fedgraph.errors import ScenarioError
from fedgraph.methods import column_ranks, method_kinds
from fedgraph.partition import base as partitions
from fedgraph.privacy import Assumption
from fedgraph.tasks import base
from fedgraph.tasks.base import Cell, CellContext, Result, graphs, grid
from fedgraph.types import Graph, GraphCollection, Partition, Subgraph

_How = Literal["gw", "fgw", "mean", "histogram"]
_OF_VECTORS = ("mean", "histogram")
_FOLDS, _NEIGHBOURS = 5, 5
_COSTS, _GAMMAS = (1.0, 10.0, 100.0), (0.125, 0.5, 2.0)  # of the support vector machine, on distances in medians
_MOST_DEGREE = 64  # largest one-hot degree, where the nodes of a collection have no features
_PLAIN = "encoded"  # the variant of the paper's encoder at a plain ε


class _RowKeys(grid.TaskRowKeys):
    """The keys that an entry of ``methods`` may have beside the settings of its method."""

    epsilons: graphs.OwnEpsilons = Field(None, description="budgets of this row; default the task's")
    compare: Annotated[list[_How] | None, Field(min_length=1)] = Field(
        None, description="how releases are compared: gw, fgw, mean, histogram"
    )


_Entry = Annotated[graphs.Model, AfterValidator(grid.check_keys(_RowKeys))]


class Params(graphs.CompareSettings):
    """Models, budgets, and how the server compares, clusters and classifies."""

    methods: list[_Entry] = Field(
        default_factory=lambda: [{"method": name} for name in method_kinds.list_names(lambda offers: offers.serves("ego"))],
        min_length=1,
        description="method: file name in fedgraph/methods (default: all that serve here), then its settings; label names the "
        "rows, epsilons are budgets of this entry alone, compare a list of gw, fgw, mean, histogram (default gw; histogram "
        "where a graph sends one vector)",
    )
    partition: SettingsSpec = Field(
        default_factory=lambda: {"partition": "ego", "clients": 200, "hops": 1},
        description="which small graphs of one graph are the clients; of a collection each graph is one",
    )
    public_share: float = Field(0.0, ge=0, lt=1, description="share of the graph's nodes, held by no client, that are public")
    labels: Literal["all", "others"] = Field(
        "all",
        description="labels that train: all that a client holds, or others: without those of the centres, which are asked",
    )
    classify: bool = Field(False, description="also classify each graph, given the labels of four in five of the others")
    clusters: int | None = Field(None, ge=2, description="clusters; default the number of classes")
    num_init: int = Field(3, ge=1, description="k-means starts; the lowest inertia counts")
    max_iterations: int = Field(20, ge=1, description="k-means iterations")
    map: Literal["mds", "tsne"] = Field("mds", description="picture of the distances: mds, or tsne as in the paper")

    @model_validator(mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        if isinstance(given, dict) and "method" in given:
            if "methods" in given:
                raise ValueError("method is one, methods a list of them: write one of the two")
            given = {k: v for k, v in given.items() if k != "method"} | {"methods": [given["method"]]}
        return given

    @field_validator("methods")
    @classmethod
    def _entries(cls, methods: list[SettingsSpec]) -> list[SettingsSpec]:
        require_distinct_cells("the model", [m.get("label", "") for m in methods])
        for m in methods:
            pooled = m.get("release", "rows") != "rows"
            for how in _compared(m):
                if (how == "histogram") != pooled:
                    allowed = "histogram" if pooled else "gw, fgw, mean"
                    raise ValueError(f"compare of {m.get('label', m['method'])!r}: found {how!r}; allowed: {allowed}")
        return methods

    @field_validator("clusters")
    @classmethod
    def _no_more_than_clients(cls, clusters: int | None, info: ValidationInfo) -> int | None:
        partition = info.data.get("partition") or {}
        written = partition != cls.model_fields["partition"].get_default(call_default_factory=True)
        dealt = partition.get("clients") if written else None  # of a collection the default deals nothing
        for key, most in {"partition.clients": dealt, "max_graphs": info.data.get("max_graphs")}.items():
            if clusters is not None and isinstance(most, int) and clusters > most:
                raise ValueError(f"allowed: at most {most}, as many clients as {key} makes")
        return clusters

    @model_validator(mode="after")
    def _can_be_solved(self) -> Params:
        self.options()
        return self


@dataclass(frozen=True)
class _Row(graphs.Row):
    """One line of the table at one budget: one comparison of what one entry releases. label: the entry's, or empty."""

    how: _How

    @property
    def pooled(self) -> bool:
        return self.how == "histogram"

    @property
    def variant(self) -> str:
        """Label, comparison, encoder and rule, without those that are the usual ones."""
        usual = graphs.is_in_clear(self.epsilon) or self.pooled or (self.encoder == "multi-bit" and self.rule == "epsilon")
        parts = [*filter(None, [self.label]), *([self.how] if self.how not in ("gw", "histogram") else [])]
        return " · ".join(parts + ([] if usual and parts else [_PLAIN if usual else f"{self.encoder}/{self.rule}"]))


def _compared(entry: SettingsSpec) -> list[_How]:
    return list(entry.get("compare", ["gw" if entry.get("release", "rows") == "rows" else "histogram"]))


def _rows(params: Params) -> list[_Row]:
    """All rows, in order: entries, their budgets, encoders, comparisons."""
    return [
        _Row(index, str(entry.get("label", "")), encoder, value, how)
        for index, entry in enumerate(params.methods)
        for value in map(graphs.parse_epsilon, entry.get("epsilons", params.epsilons))
        for encoder in params.encoders[: 1 if graphs.is_in_clear(value) or entry.get("release", "rows") != "rows" else None]
        for how in _compared(entry)
    ]


def plugins_of(params: Params) -> list[base.NestedTaskPlugin]:
    """The methods and the partition, for validation with their place in the file."""
    return [*base.nest_methods(params.methods, _RowKeys), (("partition",), "partition", params.partition)]


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Per seed: the rows that read no embedding of a graph, then every entry, budget, encoder and comparison."""
    found: list[Cell] = []
    rows = _rows(params)
    _require_enough_clients(params, context)
    encoded = [r for r in rows if not graphs.is_in_clear(r.epsilon) and r.how != "histogram"]
    for seed in range(min(context.seeds, params.seeds or context.seeds)):
        found += [graphs.name_row_in_clear(context, row, seed) for row in graphs.LEAKING]
        found += [_cell(params, context, graphs.CONSTANT, r, seed) for r in encoded[:1]]
        found += [_cell(params, context, params.methods[r.index]["method"], r, seed) for r in rows]
    return found


def _cell(params: Params, context: CellContext, method: str, row: _Row, seed: int) -> Cell:
    """The variant names entry, encoder, rule and comparison; epsilon is the largest over graphs."""
    epsilon = row.epsilon
    if isinstance(epsilon, str):
        epsilon = 1.0 / min(s.graph.num_nodes for s in deal(params, seed, context).subgraphs)
    return graphs.name_cell(context, method, row, float(epsilon), seed)


def _row(params: Params, cell: Cell) -> _Row:
    return next(r for r in _rows(params) if (r.variant, r.index) == (cell.variant, cell.entry))


def plan(params: Params, cell: Cell, context: CellContext) -> graphs.EmbedderPlan | None:
    """The method's plan from public facts; None for a row without a release."""
    return None if cell.method in graphs.LEAKING else _planned(params, cell, context)


def _planned(params: Params, cell: Cell, context: CellContext) -> graphs.EmbedderPlan:
    graph, row = _find_one(params, context), _row(params, cell)
    together = isinstance(context.data, GraphCollection)
    partition = deal(params, cell.seed, context)
    own = tuple(s.graph.num_nodes for s in partition.subgraphs)
    some = isinstance(context.data, GraphCollection) and len(own) < len(context.data.graphs)  # drawn class by class
    facts = graphs.public_facts(
        partition, tuple((n,) for n in own) if together else (), graph.num_features, graph.num_classes,
        num_nodes=graph.num_nodes, holdings=None if together else partition.holdings(graph.num_nodes), public="test-graph",
        public_graph=draw_public(params, cell.seed, context), split_from_labels=some,
        component_from_edges=graph.nodes_from_edges, columns_from_rows=graph.columns_from_rows,
        features_from_edges=graph.features_from_edges,
    )  # fmt: skip
    entry = cell.among(params.methods)
    spec, module = grid.without_keys(entry, _RowKeys), method_kinds.load_embedder(entry["method"])
    value = cell.epsilon
    if row.how != "histogram":
        spec |= {"rectify": True} if row.how in ("fgw", "mean") else {}
        if row.rule != "epsilon" or row.encoder != "multi-bit":
            spec |= {"encoder": row.encoder, "epsilon_rule": row.rule}
            value = 1.0 if row.rule == "1/n" else value
    made = module.plan(module.Params(**spec), facts, methods.Budget(value, 1.0 / graph.num_nodes))
    if params.classify:
        given = (*made.guarantee.protection.assumptions, Assumption.GRAPH_LABELS_PUBLIC)
        protection = replace(made.guarantee.protection, assumptions=given)
        made = replace(made, guarantee=replace(made.guarantee, protection=protection))
    return made


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """One row with one seed: train and encode at the clients, compare, cluster and classify at the server."""
    partition = deal(params, cell.seed, context)
    truth = _find_classes(params, cell.seed, context)
    k = params.clusters or _find_one(params, context).num_classes
    if cell.method in (*graphs.LEAKING, graphs.CONSTANT):
        found = _compare_unreleased(params, cell, context, partition, k)
        metrics, delta = _scores(params, cell, context, truth, found), 1.0 / _find_one(params, context).num_nodes
        by_edges = not isinstance(context.data, GraphCollection)
        return graphs.price_untrained(cell, delta, metrics, _facts(partition, found), by_edges=by_edges)
    made = _planned(params, cell, context)
    done = graphs.train(made, partition, None, (_PLAIN, cell.world.stream_word), cell, context)
    row, received = _row(params, cell), _known(done.outcome.state.memory.embeddings, made)
    if row.how in _OF_VECTORS:
        found = compare_vectors(received, k, cell, context)
    else:
        weights = params.weights if np.isinf(cell.epsilon) else "uniform"
        held = [s.graph for s in partition.subgraphs]
        fused, alpha = ("embedding", params.alpha) if row.how == "fgw" else (None, None)
        spaces = graphs.embedded_spaces(received, params.metric, held, fused, weights)
        found = compare_spaces(params, spaces, k, alpha, cell, context)
    measured = canary_graphs.measure(params.attack, made, cell, context, partition, done.outcome.state)
    embedding = done.settled.paths["embedding"]
    by_spectrum = cluster.spectrally(found.distances, k, seeds.seeded_generator(context.root, *cell.path, "spectral"))
    metrics = _scores(params, cell, context, truth, found)
    metrics |= {f"spectral_{name}": value for name, value in cluster.scores(truth, by_spectrum.labels).items()}
    if row.how not in _OF_VECTORS and len(received) > 1:
        upper = found.distances[np.triu_indices(len(received), 1)]
        metrics |= {"gw_mean": float(upper.mean()), "gw_spread": float(upper.std())}
    facts = replace(_facts(partition, found), rounds=made.schedule.rounds, attack=measured.attack)
    facts = replace(facts, worst_node_clients=len(embedding.holders or (0,)))
    drawn = _artefacts(params, cell, context, found, truth) if cell.seed == 0 and row.how == "gw" else {}
    return done.as_result(cell, metrics | measured.metrics, facts, measured=measured.epsilon, artefacts=drawn)


def _scores(params: Params, cell: Cell, context: CellContext, truth: np.ndarray, found: _Compared) -> dict[str, float]:
    known = found.distances if found.distances.size else None
    metrics = cluster.scores(truth, found.labels, known)
    if params.classify and known is not None:
        rng = seeds.seeded_generator(context.root, *cell.path, "classify")
        metrics |= context.runtime.on_server(accuracy_of_folds, known, truth, rng)
    return metrics


def _known(received: Sequence[np.ndarray | None], made: graphs.EmbedderPlan) -> list[np.ndarray]:
    """What each client sent; ½ everywhere, or a uniform histogram, for a client that never sent anything."""
    width, pooled = made.made.encoding.width, made.made.pooled
    sizes = made.facts.clients
    if pooled is not None:
        return [np.full((1, pooled.width), 1.0 / pooled.width) if h is None else h for h in received]
    return [np.full((n, width), 0.5) if h is None else h for h, n in zip(received, sizes, strict=True)]


def _compare_unreleased(params: Params, cell: Cell, context: CellContext, partition: Partition, k: int) -> _Compared:
    """Clusters of public sizes, of raw degrees, or of encoded embeddings that were ½ everywhere."""
    if cell.method == graphs.CONSTANT:
        made, rng = _planned(params, cell, context), seeds.seeded_generator(context.root, *cell.path, "constant")
        spaces = graphs.constant_spaces(made.facts.clients, made.made.encoding, params.metric, rng)
        return compare_spaces(params, spaces, k, None, cell, context)
    rng, held = seeds.seeded_generator(context.root, *cell.path, "cluster"), [s.graph for s in partition.subgraphs]
    if cell.method == graphs.SIZE:
        found = cluster.by_size(np.array([graph.num_nodes for graph in held]), k, rng)
    else:
        found = cluster.spectrally(graphs.of_degrees(held), k, rng)
    return _Compared(np.zeros((0, 0)), found.labels, comparison.SolverFacts())


def _facts(partition: Partition, found: _Compared) -> GraphClusteringCellFacts:
    nodes, edges = (
        float(np.mean(counts))
        for counts in zip(*((s.graph.num_nodes, s.graph.num_edges) for s in partition.subgraphs), strict=True)
    )
    return GraphClusteringCellFacts(
        mean_nodes=nodes, mean_edges=edges, clients=partition.num_clients, partition=partition.description,
        solver=found.facts, cut_edges=partition.num_cut_edges,
    )  # fmt: skip


def _artefacts(params: Params, cell: Cell, context: CellContext, found: _Compared, truth: np.ndarray) -> dict[str, np.ndarray]:
    if params.map == "mds":
        places = cluster.map_distances_by_mds(found.distances)
    else:
        places = cluster.tsne(found.distances, seeds.seeded_generator(context.root, *cell.path, "map"))
    distances = found.distances.astype(np.float32)
    return {"distances": distances, "truth": truth, "clusters": found.labels, "map": places} | found.pictured


def _find_collection(params: Params, context: CellContext) -> GraphCollection | None:
    """The collection, with features for every node; None if the data are one graph."""
    given = context.data
    if not isinstance(given, GraphCollection):
        return None
    if params.public_share:
        raise ScenarioError(f"public_share needs one graph; {context.dataset} is a collection, whose graphs are all private")
    trained = [str(m.get("training", "fedavg")) for m in params.methods if m.get("training", "fedavg") != "none"]
    if trained:
        without = f"{context.dataset} is a collection, whose nodes have no labels"
        raise ScenarioError(f"training is {trained[0]}; {without}: allowed: training: none")
    key = ("collection", context.label, context.dataset)
    return context.cached(key, lambda: graphs.prepare(given, params.max_graphs, _MOST_DEGREE, context.root))


def _require_enough_clients(params: Params, context: CellContext) -> None:
    """``ScenarioError`` if there would be more clusters than clients."""
    collection = _find_collection(params, context)
    clients = params.partition.get("clients") if collection is None else len(collection.graphs)
    k = params.clusters or _find_one(params, context).num_classes
    if isinstance(clients, int) and k > clients:  # else only the data say how many there are
        found = f"clusters is {k}" + ("" if params.clusters else " (the number of classes)")
        raise ScenarioError(f"{found}; allowed: at most {clients}, as many as there are clients")


def _find_one(params: Params, context: CellContext) -> Graph:
    """The one graph, with columns on one scale; of a collection, the disjoint union of its graphs, without labels."""
    collection = _find_collection(params, context)
    if collection is not None:
        held = collection

        def together() -> Graph:
            nothing = np.full(sum(g.num_nodes for g in held.graphs), -1, dtype=np.int64)
            return graphs.unite(held.name, held.graphs, nothing, held.num_classes)

        return context.cached(("together", context.label, context.dataset), together)
    graph = context.data
    if not isinstance(graph, Graph):
        raise ScenarioError(f"graph_clustering needs a graph or a collection of graphs; {context.dataset} gives none")
    columns = graph.columns  # nobody can estimate ranks where a person is a whole client
    if columns is None:
        return graph
    return context.cached(("one scale", context.dataset), lambda: column_ranks.fixed(columns).scaled(graph))


def deal(params: Params, seed: int, context: CellContext) -> Partition:
    """The clients of a seed."""
    collection = _find_collection(params, context)

    def make() -> Partition:
        if collection is not None:
            return _one_each(collection)
        offers, settings = partitions.chosen(params.partition)
        rng = seeds.seeded_generator(context.root, "partition", context.label, context.dataset, seed)
        found = offers.split(_find_one(params, context), settings, rng)
        if any(s.center is None for s in found.subgraphs):
            raise ScenarioError(f"graph_clustering needs centres; partition {params.partition['partition']!r} has none")
        return found if params.labels == "all" else _without_labels_of(found, _centres_of(found))

    return context.cached(("ego", context.label, context.dataset, seed), make)


def _one_each(collection: GraphCollection) -> Partition:
    first, clients = 0, []
    for client, graph in enumerate(collection.graphs):
        blank = replace(graph, num_classes=collection.num_classes)
        clients.append(Subgraph(client, blank, np.arange(first, first + graph.num_nodes, dtype=np.int64)))
        first += graph.num_nodes
    words = f"{len(clients)} clients, each a graph of the collection"
    return Partition(tuple(clients), True, 0, words, from_edges=False, from_labels=False)


def _find_classes(params: Params, seed: int, context: CellContext) -> np.ndarray:
    """int64 [clients]: the class of each small graph; of an ego-network, that of its centre."""
    collection = _find_collection(params, context)
    if collection is not None:
        return collection.labels
    return np.asarray(_find_one(params, context).labels[_centres_of(deal(params, seed, context))])


def _centres_of(partition: Partition) -> np.ndarray:
    return np.array([s.nodes[s.center] for s in partition.subgraphs], dtype=np.int64)


def _without_labels_of(partition: Partition, nodes: np.ndarray) -> Partition:
    """The same clients, with the labels of ``nodes`` hidden from all of them: a centre is in its neighbours' networks, too."""
    return partition.with_graphs(lambda s: replace(s.graph, labels=np.where(np.isin(s.nodes, nodes), -1, s.graph.labels)))


def draw_public(params: Params, seed: int, context: CellContext) -> Graph | None:
    """The public nodes, drawn from those that no client holds, with the edges among them; None if none are public."""
    if not params.public_share:
        return None
    graph = _find_one(params, context)

    def make() -> Graph:
        held = np.asarray(deal(params, seed, context).holdings(graph.num_nodes).sum(axis=0)).ravel()
        free = np.flatnonzero(held == 0)
        count = max(1, round(params.public_share * graph.num_nodes))
        if count > free.size:
            raise ScenarioError(f"public_share {params.public_share:g} is {count} nodes; {free.size} are held by no client")
        rng = seeds.seeded_generator(context.root, "public", context.label, context.dataset, seed)
        order = rng.permutation(graph.num_nodes)  # over all nodes: who is held by nobody follows from edges
        return graph.induced(np.sort(order[held[order] == 0][:count]))

    return context.cached(("public", context.label, context.dataset, seed), make)


@dataclass(frozen=True, eq=False)
class _Compared:
    """What the server computed from the releases."""

    distances: np.ndarray  # float64 [graphs, graphs]; [0, 0] if clusters were made without distances
    labels: np.ndarray  # int64 [graphs], the cluster of each
    facts: comparison.SolverFacts  # how Gromov-Wasserstein problems were solved
    # arrays for a picture (``_matched_largest``); empty if none is drawn
    pictured: dict[str, np.ndarray] = field(default_factory=dict)


def compare_vectors(received: Sequence[np.ndarray], k: int, cell: Cell, context: CellContext) -> _Compared:
    """Squared Euclidean distances of one vector of each client, and k clusters of the vectors by k-means.

    received: for each client, float64 [n, h], its rows. The vector is their mean; a vector that was released is one row.
    """
    points = np.stack([rows.mean(axis=0) for rows in received])
    rng = seeds.seeded_generator(context.root, *cell.path, "cluster")
    found = cluster.by_vectors(points, k, rng)
    return _Compared(cdist(points, points, "sqeuclidean"), found.labels, comparison.SolverFacts())


def compare_spaces(
    params: Params, made: Sequence[MetricSpace], k: int, alpha: float | None, cell: Cell, context: CellContext
) -> _Compared:
    """All discrepancies, and k clusters by k-means with barycentres. alpha: as in ``GromovOptions``."""
    options = params.options(alpha, [space.num_points for space in made])
    distances, solved = graphs.solve_all(made, options, context)
    rng = seeds.seeded_generator(context.root, *cell.path, "cluster")
    found = context.runtime.on_server(_kmeans, tuple(made), options, k, params.num_init, params.max_iterations, rng, distances)
    checked = graphs.verify(made, options, params.verify, seeds.seeded_generator(context.root, *cell.path, "verify"), context)
    pictured = {} if cell.seed else context.runtime.on_server(_matched_largest, tuple(made), options)
    return _Compared(distances, found.labels, replace(solved, verified=checked), pictured)


def _matched_largest(made: Sequence[MetricSpace], options: gromov.GromovOptions) -> dict[str, np.ndarray]:
    """The coupling of the two largest clients, whose sizes are public, for a picture; empty if there is one client.

    matched: int64 [2], their numbers. coupling: float32 [n, m]. places_one, places_two: float32 [n, 2] and [m, 2], maps of
    their own distances.
    """
    sizes = np.array([space.num_points for space in made])
    pair = np.sort(np.argsort(-sizes, kind="stable")[:2])
    if pair.size < 2:
        return {}
    plan = gromov.solve_couplings(made, pair[None, :], options)[1][0]
    one, two = (cluster.map_distances_by_mds(made[i].distances).astype(np.float32) for i in pair)
    return {"matched": pair.astype(np.int64), "coupling": plan.astype(np.float32), "places_one": one, "places_two": two}


def _kmeans(
    made: Sequence[MetricSpace], options: gromov.GromovOptions, k: int, num_init: int, max_iterations: int,
    rng: np.random.Generator, distances: np.ndarray,
) -> cluster.Clustering:  # fmt: skip
    plain = gromov.GromovOptions(solver=options.solver, alpha=options.alpha)
    return cluster.by_gromov(made, k, rng, options=plain, num_init=num_init, max_iterations=max_iterations, distances=distances)


def accuracy_of_folds(distances: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """Mean accuracy over five folds, where the labels of the other four are known: ``accuracy`` of a support vector machine on
    exp(−γD), its settings chosen on the known graphs, and ``knn5`` of the votes of the five nearest. Graphs of a class with
    fewer members than folds are left out. Empty if too few graphs or classes are left.
    """
    kept = np.flatnonzero(np.bincount(truth, minlength=truth.max() + 1)[truth] >= _FOLDS)
    if kept.size < 2 * _FOLDS or np.unique(truth[kept]).size < 2:
        return {}
    scaled, labels = graphs.scaled(np.maximum(distances[np.ix_(kept, kept)], 0.0)), truth[kept]
    from sklearn.model_selection import StratifiedKFold  # not before it is used: every run lists all tasks

    model = StratifiedKFold(_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    folds = model.split(np.zeros(labels.size), labels)
    splits = tuple(classify.ClassifySplit(train, np.zeros(0, np.int64), test) for train, test in folds)
    by_kernel = classify.by_svm(scaled, labels, splits, rng, costs=_COSTS, gammas=_GAMMAS)
    nearest = classify.by_nearest(scaled, labels, splits, _NEIGHBOURS)
    return {"accuracy": by_kernel.mean, f"knn{_NEIGHBOURS}": nearest.mean}


TASK: base.TaskOffers[Params] = base.TaskOffers(
    row_keys=_RowKeys,
    refuses=lambda params, name: method_kinds.explain_misfit(name, "embedder", "ego"),
    one_method=True,
    clients=lambda params, cell, context: deal(params, cell.seed, context),
)
