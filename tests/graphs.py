"""Neighbouring graphs, and whether two graphs are one."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from fedgraph.types import Graph


def zeroed(graph: Graph, node: int) -> Graph:
    """The neighbour under zero-out: no features, no edges, no label, same id."""
    keep = sp.diags_array((np.arange(graph.num_nodes) != node).astype(np.float32), format="csr")
    labels = np.where(np.arange(graph.num_nodes) == node, -1, graph.labels)
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep)
    adjacency.eliminate_zeros()
    features = sp.csr_array(keep @ graph.features)
    features.eliminate_zeros()
    return dataclasses.replace(graph, adjacency=adjacency, features=features, labels=labels)


def same(one: Graph, two: Graph) -> bool:
    """Whether edges, features and labels are the same."""
    parts = ((one.adjacency, two.adjacency), (one.features, two.features))
    return not any((a != b).nnz for a, b in parts) and np.array_equal(one.labels, two.labels)
