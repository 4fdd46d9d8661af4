"""Who trains and who tests.

The *inductive* split cuts the graph in two before anything private happens: training sees the graph on the training nodes,
testing the graph on the test nodes, and edges between them exist for neither. It is the setting of DPAR (Zhang et al. 2024,
§6) and the one in which a statement about training edges holds for the whole journey.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedgraph.errors import DataError
from fedgraph.types import Graph


@dataclass(frozen=True, eq=False)
class InductiveSplit:
    """train, test: graphs on disjoint node sets. train_nodes, test_nodes: int64, the global id of each of their rows.

    num_cut_edges: undirected edges of the whole graph that joined the two and are in neither.
    """

    train: Graph
    test: Graph
    train_nodes: np.ndarray
    test_nodes: np.ndarray
    num_cut_edges: int


def random_split(num_nodes: int, train_fraction: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ids of training and test nodes, int64, sorted, disjoint, together every node.

    num_nodes: at least 2. train_fraction: strictly between 0 and 1; the training side gets that share rounded to whole nodes,
    but each side at least one. Raises ``DataError`` otherwise.
    """
    if num_nodes < 2:
        raise DataError(f"cannot split {num_nodes} node(s) into training and test; allowed: 2 or more")
    if not 0.0 < train_fraction < 1.0:
        raise DataError(f"train_fraction is {train_fraction}; allowed: strictly between 0 and 1")
    num_train = min(max(round(train_fraction * num_nodes), 1), num_nodes - 1)
    order = rng.permutation(num_nodes).astype(np.int64)
    return np.sort(order[:num_train]), np.sort(order[num_train:])


def inductive_split(graph: Graph, train_fraction: float, rng: np.random.Generator) -> InductiveSplit:
    """The graph cut in two at random; see :func:`random_split` for the sizes and errors."""
    train_nodes, test_nodes = random_split(graph.num_nodes, train_fraction, rng)
    train, test = graph.induced(train_nodes), graph.induced(test_nodes)
    cut = graph.num_edges - train.num_edges - test.num_edges
    return InductiveSplit(train, test, train_nodes, test_nodes, cut)
