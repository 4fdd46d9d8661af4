"""How alike are two small graphs, and how much does one edge or node matter (Jin & Chen, Appendix D and F, Figures 11 and 12)?

Rows: ``graph size`` ((n − n')²: what public sizes alone tell), ``GED`` (graph edit distance on topology; only where all graphs
are small enough for an exact search), ``GW(A)`` (shortest paths), ``FGW(A, X)`` (with node features) and ``GW(H)`` (embeddings
in clear of a model trained on node labels). Per repetition: the distances of all pairs of ``compared`` graphs, and for every
graph |GW(G, G')| where G' is G after one random edit. The edited graph is embedded by the same model: what changes is the
graph alone. Raw data: nothing is released and no ε is claimed.
"""

from dataclasses import replace

import numpy as np
from pydantic import Field

from benchmarks.reproductions import clear_embeddings as clear
from benchmarks.reproductions import edits
from benchmarks.reproductions.facts import GraphMetricsCellFacts
from fedgraph import seeds
from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.metric_space import MetricSpace, SpaceMetric, SpaceWeights
from fedgraph.federation import JOINED_WORLD
from fedgraph.tasks.base import Cell, CellContext, NestedTaskPlugin, Result, TaskOffers
from fedgraph.tasks.base.graphs import SIZE, SolverSettings
from fedgraph.tasks.graph_classification import FUSED, TOPOLOGY
from fedgraph.types import Graph

GED, _EMBEDDED = "GED", "GW(H)"


class Params(SolverSettings, clear.ClearSampleSettings):
    """Which graphs, which edits, which model."""

    compared: int = Field(30, ge=2, description="the first of them, compared pair by pair")
    shown: int = Field(5, ge=2, description="the first of those, drawn in the report")
    edits: int = Field(3, ge=1, description="random edits of each kind per graph")
    ged_nodes: int = Field(7, ge=0, le=9, description="GED only where no graph has more nodes (its search is exponential)")
    metric: SpaceMetric = Field(
        "euclidean", description="distance between rows of embeddings: euclidean, cosine or correlation"
    )
    weights: SpaceWeights = Field("uniform", description="weights of nodes: uniform or degree")
    alpha: float = Field(0.5, ge=0, le=1, description="weight of structure in the fused discrepancy")
    restarts: int = Field(5, ge=0, description="random restarts of each Gromov-Wasserstein problem")


def plugins_of(params: Params) -> list[NestedTaskPlugin]:
    """Nothing of it is a plugin."""
    return []


def plan(params: Params, cell: Cell, context: CellContext) -> None:
    """Nothing is released."""


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every way to compare, seed by seed; ``GED`` only where ``max_nodes`` is at most ``ged_nodes``."""
    names = [SIZE, *([GED] if params.max_nodes <= params.ged_nodes else []), TOPOLOGY, FUSED, _EMBEDDED]
    named = (JOINED_WORLD, np.inf, "none")
    return [Cell(context.label, context.dataset, n, "raw", *named, seed) for seed in range(context.seeds) for n in names]


def alone(params: Params, cell: Cell) -> bool:
    """Nothing here uses the pool."""
    return True


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """One way to compare, on one repetition's graphs."""
    found, model = _sampled(params, cell, context)
    compared = found.graphs[: params.compared]
    which = gromov.all_pairs(len(compared))
    metrics: dict[str, float] = {}
    arrays: dict[str, np.ndarray] = {}
    if cell.method == SIZE:
        nodes = np.array([g.num_nodes for g in compared], dtype=np.float64)
        values = (nodes[which[:, 0]] - nodes[which[:, 1]]) ** 2
    elif cell.method == GED:
        values = np.array([edits.edit_distance(compared[i].adjacency, compared[j].adjacency) for i, j in which])
    else:
        options = params.options(params.alpha if cell.method == FUSED else None)
        values = gromov.solve_pairs([_space(params, cell.method, g, model) for g in compared], which, options).value
        changes = _changes(params, cell, context, found.graphs, model, options)
        for name, moved in changes.items():
            key = name.replace(" ", "_")
            arrays[key] = moved
            metrics |= {f"{key}_median": float(np.median(moved)), f"{key}_largest": float(moved.max())}
            metrics[f"{key}_high"] = float(np.quantile(moved, 0.95))
    metrics |= {"pairs_median": float(np.median(values)), "pairs_mean": float(values.mean())}
    arrays |= {"distances": gromov.assemble_matrix(len(compared), which, values), "labels": found.label[: len(compared)]}
    if cell.seed == 0:
        arrays |= _drawing(compared[: params.shown])
    sizes = [g.num_nodes for g in found.graphs]
    mean = float(np.mean(sizes))
    facts = GraphMetricsCellFacts(graphs=len(sizes), compared=len(compared), mean_nodes=mean, edits=params.edits)
    told = "computed on raw data"
    return Result.of(cell, metrics=metrics, facts=facts, artefacts=arrays, epsilon_provable=np.inf, theorem=told)


def _changes(
    params: Params,
    cell: Cell,
    context: CellContext,
    graphs: tuple[Graph, ...],
    model: clear.ClearEmbedder,
    options: gromov.GromovOptions,
) -> dict[str, np.ndarray]:
    """|GW(G, G')| per kind of edit, float64 [edits made]; all rows see the same edits."""
    rng = seeds.seeded_generator(context.root, "edits", context.label, context.dataset, cell.seed)
    spaces: list[MetricSpace] = []
    kinds: list[str] = []
    which: list[tuple[int, int]] = []
    for graph in graphs:
        own = len(spaces)
        spaces.append(_space(params, cell.method, graph, model))
        for kind, adjacency, kept in edits.random_graph_edits(graph.adjacency, params.edits, rng):
            after = replace(graph, adjacency=adjacency, features=graph.features[kept], labels=graph.labels[kept])
            which.append((own, len(spaces)))
            kinds.append(kind)
            spaces.append(_space(params, cell.method, after, model))
    values = gromov.solve_pairs(spaces, np.array(which), options).value
    return {name: values[[k == name for k in kinds]] for name in edits.EDITS if name in kinds}


def _space(params: Params, method: str, graph: Graph, model: clear.ClearEmbedder) -> MetricSpace:
    if method == _EMBEDDED:
        return metric_space.from_embedding(model.of(graph), params.metric, params.weights, graph.degrees)
    return metric_space.from_topology(graph.adjacency, params.weights, graph.features.toarray() if method == FUSED else None)


def _sampled(params: Params, cell: Cell, context: CellContext) -> tuple[clear.ClearSample, clear.ClearEmbedder]:
    key = ("sampled", context.label, context.dataset, cell.seed)
    return context.cached(key, lambda: params.embedded(context, cell.seed, max(params.graphs, params.compared))[:2])


def _drawing(graphs: tuple[Graph, ...]) -> dict[str, np.ndarray]:
    """Where to draw nodes, float64 [nodes, 2], and edges as numbers of nodes, int64 [edges, 2], of all graphs end to end."""
    import networkx as nx  # not before it is used: every run lists all tasks

    places, joined, first = [], [], 0
    for graph in graphs:
        drawn = nx.spring_layout(edits.networkx_for_edits(graph.adjacency), seed=0)
        places.append(np.array([drawn[i] for i in range(graph.num_nodes)]))
        rows, columns = graph.adjacency.nonzero()
        joined.append(first + np.stack([rows, columns], axis=1)[rows < columns].astype(np.int64))
        first += graph.num_nodes
    sizes = np.array([g.num_nodes for g in graphs])
    return {"places": np.concatenate(places), "edges": np.concatenate(joined), "sizes": sizes}


TASK: TaskOffers[Params] = TaskOffers(alone=alone)
