"""What graphs are compared by, without any model: size, degrees, shortest paths; and what is then done with the distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.comparison import classify, gromov
from fedgraph.comparison.metric_space import Metric, MetricSpace, Weights, from_embedding, from_topology
from fedgraph.tasks._pairwise import all_pairs, nearest_pairs
from fedgraph.tasks._scores import named_measures
from fedgraph.tasks.base import Context
from fedgraph.types import Graph, GraphCollection

SIZE, DEGREES, CONSTANT = "graph size", "size and degrees", "constant embedding"
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


def compared(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: Context,
    split: classify.Split,
    k: int | None,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """All discrepancies; or, with ``k``, those that votes of up to k neighbours need, and how many were asked. The facts say
    where each pair's result is kept (``_kept_pairs``).
    """
    if k is None:
        return all_pairs(spaces, options, context)
    found, asked, solved = nearest_pairs(spaces, options, context, split, k, known)
    return found, {"pairs": [asked, int(split.test.size * (split.train.size + split.validation.size))]} | solved


def distances_of(
    row: str,
    collection: GraphCollection,
    alpha: float,
    options: gromov.GromovOptions,
    context: Context,
    split: classify.Split,
    k: int | None,
    weights: Weights = "uniform",
) -> tuple[np.ndarray, dict[str, Any]]:
    """As ``compared``, of one of the rows that need no model; what is found is kept for the other splits of this process."""
    key = ("distances", row, context.dataset, alpha, options, weights)
    plain, fused = replace(options, alpha=None), replace(options, alpha=alpha)
    if k is not None and row in (TOPOLOGY, FUSED):
        used = fused if row == FUSED else plain
        spaces = context.cached((*key, "spaces"), lambda: topology_spaces(collection, row == FUSED, weights))
        known = context.cached((*key, "known"), lambda: np.full((len(spaces), len(spaces)), np.nan))
        return compared(spaces, used, context, split, k, known)
    sizes = np.array([g.num_nodes for g in collection.graphs])
    made: dict[str, Callable[[], tuple[np.ndarray, dict[str, Any]]]] = {
        SIZE: lambda: (size_distances(sizes), {}),
        DEGREES: lambda: (degree_distances(collection.graphs), {}),
        SHORTEST: lambda: (shortest_path_distances(collection), {}),
        TOPOLOGY: lambda: all_pairs(topology_spaces(collection, False, weights), plain, context),
        FUSED: lambda: all_pairs(topology_spaces(collection, True, weights), fused, context),
    }
    return context.cached(key, made[row])


def embedded_spaces(
    embeddings: Sequence[np.ndarray],
    metric: Metric,
    graphs: Sequence[Graph],
    fused: str | None = None,
    weights: Weights = "uniform",
) -> list[MetricSpace]:
    """Spaces of node embeddings; fused: with node features, ``raw`` as the graph has them or the ``embedding`` itself.

    weights ``degree`` reads the graph itself: only for embeddings that are sent in clear.
    """
    made = []
    for rows, graph in zip(embeddings, graphs, strict=True):
        features = None if fused is None else rows if fused == "embedding" else graph.features.toarray()
        made.append(from_embedding(rows, metric, weights, graph.degrees if weights == "degree" else None, features))
    return made


def constant_spaces(sizes: Sequence[int], encoding: Any, metric: Metric, rng: np.random.Generator) -> list[MetricSpace]:
    """What the encoder makes of embeddings that are ½ everywhere, compared as all others are."""
    return [from_embedding(encoding.of_graph(n)[0].apply(np.full((n, encoding.width), 0.5), rng), metric) for n in sizes]


def constant_distances(
    key: tuple[Any, ...],
    sizes: Sequence[int],
    encoding: Any,
    options: gromov.GromovOptions,
    context: Context,
    split: classify.Split,
    k: int | None,
    metric: Metric = "euclidean",
) -> tuple[np.ndarray, dict[str, Any]]:
    """As ``compared``, of embeddings that are ½ everywhere, through the encoder: they carry the size and nothing else.

    Nothing of them is trained, so one draw, named by ``key``, serves all splits of this process.
    """

    def drawn() -> list[MetricSpace]:
        return constant_spaces(sizes, encoding, metric, seeds.generator(context.root, *key, "constant"))

    name = ("constant", *key)
    spaces = context.cached((*name, "spaces"), drawn)
    if k is None:
        return context.cached(name, lambda: all_pairs(spaces, options, context))
    known = context.cached((*name, "known"), lambda: np.full((len(spaces), len(spaces)), np.nan))
    return compared(spaces, options, context, split, k, known)


@dataclass(frozen=True)
class Judging:
    """How distances are turned into accuracies. tuned_on_test: also what picking C and γ on the test rows would print. svm:
    False leaves the votes alone; ``accuracy`` is then that of the first.
    """

    handling: classify.Handling
    neighbours: tuple[int, ...]
    costs: tuple[float, ...] = classify.COSTS
    gammas: tuple[float, ...] = classify.GAMMAS
    tuned_on_test: bool = False
    svm: bool = True


def judge(
    distances: np.ndarray, labels: np.ndarray, split: classify.Split, rng: np.random.Generator, how: Judging
) -> dict[str, float]:
    """``accuracy`` and ``macro_f1`` of the SVM on exp(−γD), its settings, ``knn<k>``, and the majority share of the test rows.

    Without validation rows inner folds choose.
    """
    nearest = {k: classify.nearest(distances, labels, (split,), k) for k in how.neighbours}
    votes = {f"knn{k}": found.mean for k, found in nearest.items()}
    if not how.svm:
        return named_measures(nearest[how.neighbours[0]].named[0], labels[split.test]) | votes
    found = classify.svm(distances, labels, (split,), rng, how.handling, how.costs, how.gammas)
    metrics = named_measures(found.named[0], labels[split.test])
    metrics["most_negative_eigenvalue"] = float(found.most_negative[0])
    if how.tuned_on_test:
        known = np.sort(np.concatenate([split.train, split.validation]))
        picked = classify.Split(known, split.test, split.test)
        found = classify.svm(distances, labels, (picked,), rng, how.handling, how.costs, how.gammas)
        metrics["tuned_on_test"] = found.chosen[0]["validation"]
    return metrics | votes
