"""Each graph of a collection as one row: its size, its degrees, and the means of its nodes' columns.

A row is a function of its own graph alone. Methods that protect a node of such a table protect a whole graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base.structure import feature_matrix
from fedgraph.data.own.columns import own_scales
from fedgraph.types import Graph, GraphCollection, Names

MOST_DEGREE = 5  # degrees from here on share a column


def rows_of(collection: GraphCollection) -> Graph:
    """One node per graph, without edges: owners and labels are those of the graphs. Columns of bounds stay within −1 … 1."""
    first = collection.graphs[0]
    sizes = np.array([graph.num_nodes for graph in collection.graphs])
    degrees = [
        np.bincount(np.minimum(g.degrees, MOST_DEGREE), minlength=MOST_DEGREE + 1) / g.num_nodes for g in collection.graphs
    ]
    edges = np.array([graph.num_edges for graph in collection.graphs])
    means = np.stack([np.asarray(graph.features.mean(axis=0)).ravel() for graph in collection.graphs])
    matrix = np.column_stack([sizes, edges, 2 * edges / sizes, *np.stack(degrees).T, means])
    shares = [f"share of degree {k}" for k in range(MOST_DEGREE)] + [f"share of degree {MOST_DEGREE} or more"]
    columns = tuple(f"mean of {name}" for name in first.names.columns)
    names = ("nodes", "edges", "mean degree", *shares, *columns)
    bounded = () if first.columns is None else tuple(columns[place] for place in first.columns.bounded)
    features = feature_matrix(sp.csr_array(matrix))
    scales = own_scales(features, names, bounded)
    said = f"{collection.provenance.detail}; each graph is one row of {len(names)} columns: size, degrees, means"
    return Graph(
        name=collection.name,
        adjacency=sp.csr_array((sizes.size, sizes.size)),
        features=features,
        labels=collection.labels,
        num_classes=collection.num_classes,
        provenance=replace(collection.provenance, detail=said),
        owner=collection.owner,
        owner_names=collection.owner_names,
        features_from_edges=False,  # of other rows there are none
        columns_from_rows=first.columns_from_rows or (scales is not None and bool(scales.names)),
        nodes_from_edges=False,
        names=Names(tuple(graph.name.rpartition("#")[2] for graph in collection.graphs), names, collection.classes),
        columns=scales,
    )
