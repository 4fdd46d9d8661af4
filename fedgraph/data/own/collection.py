"""Many small graphs, as they stand in somebody's files, become one collection: columns matched by name, one label each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import adjacencies
from fedgraph.data.base.adjacencies import CleanedAdjacency, feature_matrix, undirected_adjacency
from fedgraph.data.own.columns import (
    EdgeColumnRules,
    OwnColumns,
    notice_edge_columns,
    own_column_scales,
)
from fedgraph.data.own.labels import OwnLabels, read_own_labels
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection, GraphNames, GraphProvenance, plain_graph

_MOST_DEGREE = 5  # degrees from here on share a column


@dataclass(frozen=True, eq=False)
class JoinedOwnCollection:
    """All graphs beside each other, with n nodes together.

    Attributes:
        sizes: int64, the nodes of each graph.
        ends: int64 [m, 2], the ends of edges, counted over all nodes.
        read: the columns of all n nodes.
        ids: n of them, or none.
        unused: what the data hold and no method reads.
        checksums: file name → SHA-256.
    """

    names: Sequence[str]
    sizes: np.ndarray
    labels: Sequence[object]
    owners: Sequence[str]
    ends: np.ndarray
    read: OwnColumns
    ids: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    checksums: dict[str, str] = field(default_factory=dict)


def _provenance(
    title: str,
    given: JoinedOwnCollection,
    labels: OwnLabels,
    num_owners: int,
    cleaned: CleanedAdjacency,
    seen: Sequence[str],
    unlabelled: bool,
) -> GraphProvenance:
    known = labels.numbers.size if unlabelled else int((labels.numbers >= 0).sum())
    counted = f"{title}: {known} graphs, {given.sizes.sum()} nodes, {cleaned.adjacency.nnz // 2} edges"
    counted += f", {len(labels.classes)} classes" + (f", {num_owners} owners" if num_owners else "")
    left_out = ("graphs without a label are left out",) if known < labels.numbers.size else ()
    more = (f"not used: {', '.join(given.unused)}",) if given.unused else ()
    parts = (
        counted,
        *labels.remarks,
        *left_out,
        *more,
        *adjacencies.describe_adjacency_cleaning([cleaned]),
        *given.read.remarks,
        *seen,
    )
    return GraphProvenance("own", "; ".join(parts), given.checksums)


def label_own_collection(
    name: str, title: str, given: JoinedOwnCollection, rules: EdgeColumnRules, where: str, *, unlabelled: bool = False
) -> GraphCollection:
    """The collection; its provenance says what was changed and is not used.

    Args:
        rules: whether columns were computed from edges.
        where: names the labels in an error.
        unlabelled: whether graphs whose label nobody knows stay, with label −1; else they are left out.

    Raises:
        DataError: no graph has a label, or some graphs have an owner and others none.
    """
    labels = read_own_labels(given.labels, where, "graph")
    if "" in given.owners and any(given.owners):
        first = given.names[given.owners.index("")]
        raise DataError(f"{where}: graph {first!r} has no owner, others have; allowed: all or none")
    cleaned = undirected_adjacency(given.ends[:, 0], given.ends[:, 1], int(given.sizes.sum()))
    matrix = feature_matrix(given.read.matrix)
    from_edges, seen = notice_edge_columns(rules, matrix, cleaned.adjacency, given.read.names)
    scales = own_column_scales(matrix, given.read.names, given.read.bounded)
    known = np.flatnonzero(labels.numbers >= 0)
    owners = sorted(set(given.owners) - {""})
    provenance = _provenance(title, given, labels, len(owners), cleaned, seen, unlabelled)

    def part(place: int, block: sp.csr_array) -> Graph:
        own = slice(int(ends[place] - given.sizes[place]), int(ends[place]))
        nobody, names = np.full(block.shape[0], -1, dtype=np.int64), GraphNames(given.ids[own], given.read.names)
        graph = plain_graph(f"{name}#{given.names[place]}", block, sp.csr_array(matrix[own]), nobody, 0, provenance)
        return replace(
            graph, features_from_edges=from_edges, columns_from_rows=given.read.from_rows, names=names, columns=scales
        )

    ends = np.cumsum(given.sizes)
    graphs = [part(place, block) for place, block in enumerate(adjacencies.adjacency_blocks(cleaned.adjacency, given.sizes))]
    of_graphs = np.array([owners.index(owner) for owner in given.owners], dtype=np.int64) if owners else None
    whole = GraphCollection(name, tuple(graphs), labels.numbers, len(labels.classes), provenance)
    whole = replace(whole, owner=of_graphs, owner_names=tuple(owners), classes=labels.classes)
    return whole if unlabelled or known.size == labels.numbers.size else whole.chosen(known)


def own_collection_as_rows(collection: GraphCollection) -> Graph:
    """One node per graph, without edges; owners and labels are those of the graphs.

    Args:
        collection: k graphs with the same columns.

    Returns:
        k rows of the numbers of nodes and edges, the mean degree, the shares of degrees, and the mean of each column. Means of
        columns with bounds stay within −1 … 1.
    """
    first = collection.graphs[0]
    sizes = np.array([graph.num_nodes for graph in collection.graphs])
    most = _MOST_DEGREE + 1
    degrees = [np.bincount(g.degrees.clip(max=_MOST_DEGREE), minlength=most) / g.num_nodes for g in collection.graphs]
    edges = np.array([graph.num_edges for graph in collection.graphs])
    means = np.stack([np.asarray(graph.features.mean(axis=0)).ravel() for graph in collection.graphs])
    matrix = np.column_stack([sizes, edges, 2 * edges / sizes, *np.stack(degrees).T, means])
    shares = [f"share of degree {k}" for k in range(_MOST_DEGREE)] + [f"share of degree {_MOST_DEGREE} or more"]
    columns = tuple(f"mean of {name}" for name in first.names.columns)
    names = ("nodes", "edges", "mean degree", *shares, *columns)
    bounded = () if first.columns is None else tuple(columns[place] for place in first.columns.bounded)
    features = feature_matrix(sp.csr_array(matrix))
    scales = own_column_scales(features, names, bounded)
    ids = tuple(graph.name.rpartition("#")[2] for graph in collection.graphs)
    said = f"{collection.provenance.detail}; each graph is one row of {len(names)} columns: size, degrees, means"
    nothing, provenance = sp.csr_array((sizes.size, sizes.size)), replace(collection.provenance, detail=said)
    # of other rows there are none, so no feature comes from an edge
    graph = plain_graph(collection.name, nothing, features, collection.labels, collection.num_classes, provenance)
    graph = replace(graph, owner=collection.owner, owner_names=collection.owner_names, columns_from_rows=True)
    return replace(graph, names=GraphNames(ids, names, collection.classes, one="graph"), columns=scales)
