"""Distances between graphs that need no model: by size, degrees, shortest paths, and Gromov-Wasserstein on shortest paths.

A table shows these rows beside those of released embeddings. ``graph size`` and ``size and degrees`` (``LEAKS``) say what is
known without any release; the others read raw data.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fedgraph.comparison import classify, gromov
from fedgraph.comparison.metric_space import MetricSpace, Weights, from_topology
from fedgraph.comparison.solving import SolverFacts
from fedgraph.tasks.base import Context
from fedgraph.tasks.base.graphs.pairwise import all_pairs, asked_pairs
from fedgraph.types import Graph, GraphCollection

SIZE, DEGREES = "graph size", "size and degrees"
SHORTEST, TOPOLOGY, FUSED = "shortest-path kernel", "GW(A)", "FGW(A, X)"
LEAKS = (SIZE, DEGREES)


def size_distances(sizes: np.ndarray) -> np.ndarray:
    """(n − n')², in units of its median over pairs that differ."""
    return in_medians(np.subtract.outer(sizes.astype(float), sizes.astype(float)) ** 2)


def degree_rows(graphs: Sequence[Graph]) -> np.ndarray:
    """float64 [graphs, 1 + largest n]: the size, then the sorted degree sequence padded with zeros."""
    rows = np.zeros((len(graphs), 1 + max(g.num_nodes for g in graphs)))
    for row, graph in zip(rows, graphs, strict=True):
        row[0] = graph.num_nodes
        row[1 : 1 + graph.num_nodes] = np.sort(graph.degrees)[::-1]
    return rows


def degree_distances(graphs: Sequence[Graph]) -> np.ndarray:
    """Squared Euclidean distance of sizes and sorted degree sequences, in medians."""
    rows = degree_rows(graphs)
    squares = np.square(rows).sum(axis=1)
    return in_medians(np.maximum(squares[:, None] + squares[None, :] - 2 * rows @ rows.T, 0.0))


def in_medians(distances: np.ndarray) -> np.ndarray:
    """Divided by the median of the positive entries, so that one grid of γ fits every baseline."""
    positive = distances[distances > 0]
    return distances / float(np.median(positive)) if positive.size else distances


def shortest_path_distances(collection: GraphCollection) -> np.ndarray:
    """2 − 2K, K GraKeL's normalised shortest-path kernel without node labels (Borgwardt & Kriegel 2005).

    A node without edges is on no path and is left out (GraKeL cannot take one); a graph without edges is like no other.
    """
    import grakel

    kept, given = [], []
    for index, graph in enumerate(collection.graphs):
        if graph.num_edges:
            places = np.cumsum(graph.degrees > 0) - 1
            table: dict[int, list[int]] = {int(i): [] for i in range(int(places[-1]) + 1)}
            for i, j in zip(*graph.adjacency.nonzero(), strict=True):
                table[int(places[i])].append(int(places[j]))
            kept.append(index)
            given.append(grakel.Graph(table))
    kernel = np.zeros((len(collection.graphs), len(collection.graphs)))
    if given:
        found = grakel.ShortestPath(normalize=True, with_labels=False, algorithm_type="dijkstra").fit_transform(given)
        kernel[np.ix_(kept, kept)] = np.nan_to_num(found, nan=0.0)
    return np.clip(2.0 - 2.0 * kernel, 0.0, None) * (1.0 - np.eye(len(collection.graphs)))


def topology_spaces(collection: GraphCollection, features: bool, weights: Weights) -> list[MetricSpace]:
    """Shortest paths, with node features where asked for (unreachable pairs: one more than the diameter)."""
    return [from_topology(g.adjacency, weights, g.features.toarray() if features else None) for g in collection.graphs]


def distances_of(
    row: str,
    collection: GraphCollection,
    alpha: float,
    options: gromov.GromovOptions,
    context: Context,
    split: classify.Split,
    k: int | None,
    weights: Weights = "uniform",
) -> tuple[np.ndarray, SolverFacts]:
    """As ``asked_pairs``, of one of the rows that need no model; what is found is kept for the other splits of this process."""
    key = ("distances", row, context.dataset, alpha, options, weights)
    plain, fused = replace(options, alpha=None), replace(options, alpha=alpha)
    if k is not None and row in (TOPOLOGY, FUSED):
        used = fused if row == FUSED else plain
        spaces = context.cached((*key, "spaces"), lambda: topology_spaces(collection, row == FUSED, weights))
        known = context.cached((*key, "known"), lambda: np.full((len(spaces), len(spaces)), np.nan))
        return asked_pairs(spaces, used, context, split, k, known)
    sizes = np.array([g.num_nodes for g in collection.graphs])
    made: dict[str, Callable[[], tuple[np.ndarray, SolverFacts]]] = {
        SIZE: lambda: (size_distances(sizes), SolverFacts()),
        DEGREES: lambda: (degree_distances(collection.graphs), SolverFacts()),
        SHORTEST: lambda: (shortest_path_distances(collection), SolverFacts()),
        TOPOLOGY: lambda: all_pairs(topology_spaces(collection, False, weights), plain, context),
        FUSED: lambda: all_pairs(topology_spaces(collection, True, weights), fused, context),
    }
    return context.cached(key, made[row])
