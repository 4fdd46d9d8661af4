"""Distances between graphs that need no model: by size, degrees, shortest paths, and Gromov-Wasserstein on shortest paths.

A table shows these rows beside those of released embeddings. ``graph size`` and ``size and degrees`` (``LEAKING_DISTANCES``)
say what is known without any release; the others read raw data. ``constant embedding`` shows what the size alone gives away
of an encoded one.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from fedgraph.comparison import MetricSpace, SolverFacts, SpaceMetric, SpaceWeights, classify, gromov, metric_space
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.base.graphs import graph_pairs
from fedgraph.types import Graph, GraphCollection

SIZE, DEGREES = "graph size", "size and degrees"
_SHORTEST, TOPOLOGY, FUSED = "shortest-path kernel", "GW(A)", "FGW(A, X)"
TASK_CONSTANT_DISTANCES = "constant embedding"
LEAKING_DISTANCES = (SIZE, DEGREES)


def _size_distances(sizes: np.ndarray) -> np.ndarray:
    """(n − n')², in units of its median over pairs that differ."""
    return scaled(np.subtract.outer(sizes.astype(float), sizes.astype(float)) ** 2)


def _degree_rows(graphs: Sequence[Graph]) -> np.ndarray:
    rows = np.zeros((len(graphs), 1 + max(g.num_nodes for g in graphs)))
    for row, graph in zip(rows, graphs, strict=True):
        row[0] = graph.num_nodes
        row[1 : 1 + graph.num_nodes] = np.sort(graph.degrees)[::-1]
    return rows


def of_degrees(graphs: Sequence[Graph]) -> np.ndarray:
    """Squared Euclidean distance of sizes and sorted degree sequences, in medians."""
    rows = _degree_rows(graphs)
    squares = np.square(rows).sum(axis=1)
    return scaled(np.maximum(squares[:, None] + squares[None, :] - 2 * rows @ rows.T, 0.0))


def scaled(distances: np.ndarray) -> np.ndarray:
    """Divided by the median of the positive entries, so that one grid of γ fits every baseline."""
    positive = distances[distances > 0]
    return distances / float(np.median(positive)) if positive.size else distances


def _shortest_path_distances(collection: GraphCollection) -> np.ndarray:
    """2 − 2K, K the normalised shortest-path kernel without node labels (Borgwardt & Kriegel 2005).

    K of two graphs is the cosine of their histograms of shortest-path lengths, over all pairs of nodes that a path joins. A
    node without edges is on no path; a graph without edges is like no other.
    """
    counts = [_path_length_counts(graph) for graph in collection.graphs]
    histograms = np.zeros((len(counts), max((c.size for c in counts), default=0)))
    for row, found in zip(histograms, counts, strict=True):
        row[: found.size] = found
    products = histograms @ histograms.T
    norms = np.sqrt(np.outer(products.diagonal(), products.diagonal()))
    kernel = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return np.clip(2.0 - 2.0 * kernel, 0.0, None) * (1.0 - np.eye(len(counts)))


def _path_length_counts(graph: Graph) -> np.ndarray:
    """int64 [longest + 1]: number of ordered pairs of different nodes whose shortest path has each length; none has 0."""
    lengths = shortest_path(graph.adjacency, directed=False, unweighted=True)
    return np.bincount(lengths[np.isfinite(lengths) & (lengths > 0)].astype(np.int64))


def of_row(
    row: str,
    collection: GraphCollection,
    alpha: float,
    options: gromov.GromovOptions,
    context: CellContext,
    split: classify.ClassifySplit,
    k: int | None,
    weights: SpaceWeights = "uniform",
) -> tuple[np.ndarray, SolverFacts]:
    """As ``solve_asked``, of one of the rows that need no model; what is found is kept for the other splits of this
    process.
    """
    key = ("distances", row, context.dataset, alpha, options, weights)
    if row in (TOPOLOGY, FUSED):  # shortest paths (unreachable pairs: one more than the diameter)

        def spaces() -> list[MetricSpace]:
            of_nodes = (g.features.toarray() if row == FUSED else None for g in collection.graphs)
            return [
                metric_space.from_topology(g.adjacency, weights, f) for g, f in zip(collection.graphs, of_nodes, strict=True)
            ]

        return graph_pairs.solve_once(key, spaces, replace(options, alpha=alpha if row == FUSED else None), context, split, k)
    sizes = np.array([g.num_nodes for g in collection.graphs])
    made: dict[str, Callable[[], np.ndarray]] = {
        SIZE: lambda: _size_distances(sizes),
        DEGREES: lambda: of_degrees(collection.graphs),
        _SHORTEST: lambda: _shortest_path_distances(collection),
    }
    return context.cached(key, made[row]), SolverFacts()


def embedded_spaces(
    embeddings: Sequence[np.ndarray],
    metric: SpaceMetric,
    graphs: Sequence[Graph],
    fused: str | None = None,
    weights: SpaceWeights = "uniform",
) -> list[MetricSpace]:
    """Spaces of node embeddings; fused: with node features, ``raw`` as the graph has them or the ``embedding`` itself.

    weights ``degree`` reads the graph itself: only for embeddings that are sent in clear.
    """
    made = []
    for rows, graph in zip(embeddings, graphs, strict=True):
        features = None if fused is None else rows if fused == "embedding" else graph.features.toarray()
        made.append(
            metric_space.from_embedding(rows, metric, weights, graph.degrees if weights == "degree" else None, features)
        )
    return made


def constant_spaces(sizes: Sequence[int], encoding: Any, metric: SpaceMetric, rng: np.random.Generator) -> list[MetricSpace]:
    """What the encoder makes of embeddings that are ½ everywhere, compared as all others are."""
    return [
        metric_space.from_embedding(encoding.of_graph(n)[0].apply(np.full((n, encoding.width), 0.5), rng), metric)
        for n in sizes
    ]
