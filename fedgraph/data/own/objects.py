"""Graphs that are in memory already: a PyG ``Data``, a NetworkX graph, or three arrays, as a ``fedgraph`` graph.

``own/object`` is the name of such a graph in a scenario. It is given to ``fedgraph.compare`` and lies in no file, so a scenario
that names it elsewhere is refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base.structure import feature_matrix, undirected
from fedgraph.errors import DataError
from fedgraph.types import Graph, Masks, Provenance


def graph_of(data: Any, name: str) -> Graph:
    """``data`` as a graph. Edges become undirected, self-loops and repeated edges are dropped, weights too.

    Raises ``DataError`` in one line that says what was found and what is allowed.
    """
    if isinstance(data, Graph):
        return data
    if isinstance(data, tuple) and len(data) == 3:
        return _of_arrays(*data, name=name)
    if hasattr(data, "edge_index"):
        return _of_pyg(data, name)
    if hasattr(data, "nodes") and hasattr(data, "edges") and hasattr(data, "is_directed"):
        return _of_networkx(data, name)
    raise DataError(
        f"data is a {type(data).__name__}; allowed: a torch_geometric Data, a NetworkX graph, a fedgraph Graph, or the tuple "
        "(adjacency, features, labels)"
    )


def _of_pyg(data: Any, name: str) -> Graph:
    missing = [key for key in ("x", "edge_index", "y") if getattr(data, key, None) is None]
    if missing:
        raise DataError(f"the PyG data object has no {', '.join(missing)}; needed: x [n, d], edge_index [2, m], y [n]")
    x = data.x.to_dense() if hasattr(data.x, "to_dense") else data.x
    arcs = data.edge_index.cpu().numpy()
    if arcs.ndim != 2 or arcs.shape[0] != 2:
        raise DataError(f"edge_index has shape {arcs.shape}; allowed: [2, m]")
    graph = _made(arcs[0], arcs[1], x.cpu().numpy(), data.y.cpu().numpy(), name)
    return replace(graph, masks=_masks_of(data, graph.num_nodes))


def _masks_of(data: Any, num_nodes: int) -> tuple[Masks, ...]:
    """``train_mask``, ``val_mask`` and ``test_mask`` of a PyG object ([n], or [n, k] for k splits), where it has them."""
    parts = []
    for key in ("train_mask", "val_mask", "test_mask"):
        mask = getattr(data, key, None)
        parts.append(None if mask is None else np.asarray(mask.cpu().numpy()).astype(bool))
    train, validation, test = parts
    if train is None or test is None:
        return ()
    shape = train.shape
    if any(p is not None and p.shape != shape for p in parts) or shape[0] != num_nodes or len(shape) > 2:
        raise DataError(f"the masks have shapes {[p.shape for p in parts if p is not None]}; allowed: one per node, all alike")
    empty = np.zeros(shape, dtype=bool)
    columns = [np.asarray(p if p is not None else empty).reshape(num_nodes, -1) for p in (train, validation, test)]
    return tuple(Masks(*(np.flatnonzero(c[:, k]) for c in columns)) for k in range(columns[0].shape[1]))


def _of_networkx(data: Any, name: str) -> Graph:
    nodes = list(data.nodes)
    row = {node: i for i, node in enumerate(nodes)}
    given = []
    for node in nodes:
        attributes = data.nodes[node]
        if "x" not in attributes:
            raise DataError(f"node {node!r} has no attribute 'x'; every node needs its features there (and its label in 'y')")
        given.append(np.atleast_1d(np.asarray(attributes["x"], dtype=np.float64)))
    if len({g.shape for g in given}) > 1:
        raise DataError("the nodes' attributes 'x' have different lengths; allowed: one length")
    labels = [data.nodes[node].get("y", -1) for node in nodes]
    arcs = np.array([(row[e[0]], row[e[1]]) for e in data.edges], dtype=np.int64).reshape(-1, 2)
    return _made(arcs[:, 0], arcs[:, 1], np.stack(given) if given else np.zeros((0, 0)), np.array(labels), name)


def _of_arrays(adjacency: Any, features: Any, labels: Any, name: str) -> Graph:
    table = sp.coo_array(adjacency)
    n = table.shape[0]
    if table.ndim != 2 or table.shape != (n, n):
        raise DataError(f"the adjacency has shape {table.shape}; allowed: square, dense or sparse")
    there = np.asarray(table.data) != 0
    return _made(table.coords[0][there], table.coords[1][there], features, np.asarray(labels), name)


def _made(one: np.ndarray, two: np.ndarray, features: Any, labels: np.ndarray, name: str) -> Graph:
    rows = sp.csr_array(features) if sp.issparse(features) else sp.csr_array(np.atleast_2d(np.asarray(features, np.float64)))
    labels = np.asarray(labels).reshape(-1)
    n = labels.size
    if rows.shape[0] != n or n == 0:
        raise DataError(f"{rows.shape[0]} rows of features for {n} labels; allowed: one of each per node, at least one node")
    if one.size and (min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= n):
        raise DataError(f"an edge names node {max(one.max(), two.max())}; allowed: 0 … {n - 1}")
    if labels.dtype.kind not in "iub" and labels.dtype.kind not in "US":
        raise DataError(f"labels are of type {labels.dtype}; allowed: whole numbers (−1 for unknown) or text")
    known = labels != -1 if labels.dtype.kind in "iub" else labels != ""
    if not known.any():
        raise DataError("no node has a label; allowed: at least one labelled node")
    classes, position = np.unique(labels[known], return_inverse=True)
    numbers = np.full(n, -1, dtype=np.int64)
    numbers[known] = position
    cleaned = undirected(one, two, n)
    matrix = feature_matrix(rows)
    digest = hashlib.sha256()
    for part in (cleaned.adjacency.indptr, cleaned.adjacency.indices, matrix.indptr, matrix.indices, matrix.data, numbers):
        digest.update(np.ascontiguousarray(part).tobytes())
    detail = f"a graph in memory called {name}: {n} nodes, {cleaned.adjacency.nnz // 2} edges, {classes.size} classes"
    provenance = Provenance("own", detail, {"(in memory)": digest.hexdigest()})
    return Graph(name, cleaned.adjacency, matrix, numbers, int(classes.size), provenance)
