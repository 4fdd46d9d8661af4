"""Graphs that are in memory already: PyG, NetworkX, pandas or arrays, as a ``fedgraph`` graph.

``own/object`` is the name of such a graph in a scenario. It is given to ``fedgraph.compare`` and lies in no file, so a scenario
that names it elsewhere is refused. Whatever an object holds and no method reads (weights, times, directions, further labels) is
named in the graph's provenance and in the log ``fedgraph``.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import validated
from fedgraph.data.base.structure import feature_matrix, undirected
from fedgraph.data.own.columns import ColumnRules, own_scales, read_columns
from fedgraph.data.own.detail import own_graph_detail
from fedgraph.data.own.edge_columns import EdgeRules, noticed
from fedgraph.data.own.labels import ReadLabels, read_labels
from fedgraph.errors import DataError
from fedgraph.types import Graph, Masks, Names, Provenance

if TYPE_CHECKING:
    import pandas as pd

LABEL_COLUMNS = ("y", "label", "labels", "class", "target")
ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
READ_OF_PYG = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask", "num_nodes")

logger = logging.getLogger("fedgraph")


class ObjectRules(ColumnRules, EdgeRules):
    """What ``compare(columns=…)`` may say."""


@dataclass(frozen=True, eq=False)
class _Given:
    """Ends of arcs int [m], rows [n, d], one label per node, and what else the object holds.

    names: of the d columns; bounded: of those that have bounds.
    """

    one: np.ndarray
    two: np.ndarray
    features: Any
    labels: Iterable[object]
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    columns_from_rows: bool = False
    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()


def graph_of(
    data: Any, name: str, label: str | None = None, columns: Mapping[str, object] | None = None, labelled: bool = True
) -> Graph:
    """``data`` as a graph. Edges become undirected, self-loops and repeated edges are dropped, weights too.

    Args:
        data: a PyG ``Data``, a NetworkX graph, ``(nodes, edges)`` of two pandas tables, ``(adjacency, features, labels)``, or a
            ``Graph``.
        name: what it is called.
        label: the column or node attribute with the labels, where it has another name than ``y`` or ``label``.
        columns: what becomes of columns of a pandas table, as ``columns.ColumnRules`` says; ``from_edges`` of any data.
        labelled: whether some label must be known. If not, labels are not read, and a table of nodes needs none.

    Returns:
        The graph; its provenance says what was not used.

    Raises:
        DataError: one line that says what was found and what is allowed.
        ScenarioError: ``columns`` holds a key or a value that is not allowed.
    """
    rules = validated(ObjectRules, columns or {}, "own/object")
    if isinstance(data, Graph):
        return data
    if isinstance(data, tuple) and len(data) == 2 and all(hasattr(part, "columns") for part in data):
        given = _of_tables(*data, label, rules, labelled)
    elif isinstance(data, tuple) and len(data) == 3:
        given = _of_arrays(*data)
    elif hasattr(data, "edge_index"):
        return _of_pyg(data, name, rules, labelled)
    elif hasattr(data, "nodes") and hasattr(data, "edges") and hasattr(data, "is_directed"):
        given = _of_networkx(data, label or "y")
    else:
        raise DataError(
            f"data is a {type(data).__name__}; allowed: a torch_geometric Data, a NetworkX graph, two pandas tables (nodes, "
            "edges), a fedgraph Graph, or the tuple (adjacency, features, labels)"
        )
    return _checked(given, name, rules, labelled)


def _of_pyg(data: Any, name: str, rules: EdgeRules, labelled: bool) -> Graph:
    missing = [key for key in ("x", "edge_index", "y") if getattr(data, key, None) is None]
    if missing:
        raise DataError(f"the PyG data object has no {', '.join(missing)}; needed: x [n, d], edge_index [2, m], y [n]")
    x = data.x.to_dense() if hasattr(data.x, "to_dense") else data.x
    arcs = data.edge_index.cpu().numpy()
    if arcs.ndim != 2 or arcs.shape[0] != 2:
        raise DataError(f"edge_index has shape {arcs.shape}; allowed: [2, m]")
    labels = data.y.cpu().numpy()
    if labels.ndim > 1 and labels.shape[1:] != (1,):
        raise DataError(
            f"y has shape {labels.shape}; allowed: one label per node, [n]. For several labels compare one at a time"
        )
    masks, alone = _masks_of(data, int(x.shape[0]))
    unused = [f"{key} of the PyG object" for key in list(data.keys()) if key not in READ_OF_PYG] + alone
    given = _Given(arcs[0], arcs[1], x.cpu().numpy(), labels.reshape(-1).tolist(), tuple(unused))
    graph = _checked(given, name, rules, labelled)
    return replace(graph, masks=masks)


def _masks_of(data: Any, num_nodes: int) -> tuple[tuple[Masks, ...], list[str]]:
    """Splits by ``train_mask``, ``val_mask`` and ``test_mask`` ([n], or [n, k] for k splits), and masks that make no split."""
    parts: list[np.ndarray | None] = []
    for key in ("train_mask", "val_mask", "test_mask"):
        mask = getattr(data, key, None)
        parts.append(None if mask is None else np.asarray(mask.cpu().numpy()).astype(bool))
    train, validation, test = parts
    if train is None or test is None:
        return (), [
            f"{key} (a split needs train_mask and test_mask)"
            for key, p in zip(READ_OF_PYG[3:], parts, strict=False)
            if p is not None
        ]
    shape = train.shape
    if any(p is not None and p.shape != shape for p in parts) or shape[0] != num_nodes or len(shape) > 2:
        raise DataError(f"the masks have shapes {[p.shape for p in parts if p is not None]}; allowed: one per node, all alike")
    empty = np.zeros(shape, dtype=bool)
    columns = [np.asarray(p if p is not None else empty).reshape(num_nodes, -1) for p in (train, validation, test)]
    return tuple(Masks(*(np.flatnonzero(c[:, k]) for c in columns)) for k in range(columns[0].shape[1])), []


def _of_networkx(data: Any, label: str) -> _Given:
    nodes = list(data.nodes)
    row = {node: i for i, node in enumerate(nodes)}
    given = []
    for node in nodes:
        attributes = data.nodes[node]
        if "x" not in attributes:
            raise DataError(
                f"node {node!r} has no attribute 'x'; every node needs its features there (and its label in {label!r}). For "
                "several attributes give two pandas tables: (nodes, edges)"
            )
        given.append(np.atleast_1d(np.asarray(attributes["x"], dtype=np.float64)))
    if len({g.shape for g in given}) > 1:
        raise DataError("the nodes' attributes 'x' have different lengths; allowed: one length")
    labels = [data.nodes[node].get(label) for node in nodes]
    arcs = np.array([(row[e[0]], row[e[1]]) for e in data.edges], dtype=np.int64).reshape(-1, 2)
    of_nodes = sorted({str(key) for node in nodes for key in data.nodes[node]} - {"x", label})
    of_edges = sorted({str(key) for *_, attributes in data.edges(data=True) for key in attributes})
    unused = [f"node attribute {key!r}" for key in of_nodes] + [f"edge attribute {key!r}" for key in of_edges]
    unused += ["the direction of edges"] if data.is_directed() else []
    rows = np.stack(given) if given else np.zeros((0, 0))
    return _Given(arcs[:, 0], arcs[:, 1], rows, labels, tuple(unused), ids=tuple(map(str, nodes)))


def _of_arrays(adjacency: Any, features: Any, labels: Any) -> _Given:
    table = sp.coo_array(adjacency)
    n = table.shape[0]
    if table.ndim != 2 or table.shape != (n, n):
        raise DataError(f"the adjacency has shape {table.shape}; allowed: square, dense or sparse")
    there = np.asarray(table.data) != 0
    unused = ("edge weights",) if (np.asarray(table.data)[there] != 1).any() else ()
    words = np.asarray(labels).reshape(-1).tolist()
    return _Given(table.coords[0][there], table.coords[1][there], features, words, unused)


def _of_tables(nodes: pd.DataFrame, edges: pd.DataFrame, label: str | None, rules: ColumnRules, labelled: bool) -> _Given:
    """nodes: its id is the column ``id``, else the index. edges: the columns of the ends by name, else the first two."""
    columns = [str(column) for column in nodes.columns]
    chosen = label or next((column for column in columns if column.casefold() in LABEL_COLUMNS), None)
    if labelled and (chosen is None or chosen not in columns):
        raise DataError(f"the table of nodes has no column {label or ' or '.join(LABEL_COLUMNS)}; found: {', '.join(columns)}")
    ids = [str(one) for one in (nodes["id"] if "id" in columns else nodes.index)]
    if len(set(ids)) < len(ids):
        raise DataError("two rows of the table of nodes have one id; allowed: each once")
    kept = [column for column in columns if column not in (chosen, "id")]
    cells = [["" if _is_missing(value) else _cell(value) for value in row] for row in nodes[kept].itertuples(index=False)]
    read = read_columns(kept, cells, rules, "the table of nodes", lambda row: f"the table of nodes:{row + 1}", ids)
    ends = _ends([str(column) for column in edges.columns])
    one, two = (_rows_of(edges[end].tolist(), ids, end) for end in ends)
    unused = tuple(f"column {column!r} of the edges" for column in edges.columns if column not in ends)
    words = nodes[chosen].tolist() if chosen in columns else [None] * len(ids)
    return _Given(one, two, read.matrix, words, unused, read.remarks, read.from_rows, read.names, tuple(ids), read.bounded)


def _ends(columns: Sequence[str]) -> tuple[str, str]:
    if len(columns) < 2:
        raise DataError(
            f"the table of edges has the columns {', '.join(columns) or 'none'}; allowed: two ends, such as source, target"
        )
    return next((pair for pair in ENDS if set(pair) <= set(columns)), (columns[0], columns[1]))


def _rows_of(values: Sequence[object], ids: Sequence[str], end: str) -> np.ndarray:
    position: Mapping[str, int] = {one: row for row, one in enumerate(ids)}
    unknown = next((value for value in values if str(value) not in position), None)
    if unknown is not None:
        raise DataError(f"the column {end!r} of the edges names {unknown!r}; allowed: the {len(ids):,} ids of the nodes")
    return np.array([position[str(value)] for value in values], dtype=np.int64)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _cell(value: object) -> str:
    """true and false as a CSV would hold them; numbers in full."""
    return str(value).strip()


def _checked(given: _Given, name: str, rules: EdgeRules, labelled: bool) -> Graph:
    """The parts as a graph. labelled: whether some label must be known; if not, none is read."""
    features = given.features
    rows = sp.csr_array(features) if sp.issparse(features) else sp.csr_array(np.atleast_2d(np.asarray(features, np.float64)))
    words = list(given.labels)
    n = len(words)
    if rows.shape[0] != n or n == 0:
        raise DataError(f"{rows.shape[0]} rows of features for {n} labels; allowed: one of each per node, at least one node")
    one, two = given.one, given.two
    if one.size and (min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= n):
        raise DataError(f"an edge names node {max(one.max(), two.max())}; allowed: 0 … {n - 1}")
    labels = read_labels(words, "the labels") if labelled else ReadLabels(np.full(n, -1, dtype=np.int64), (), ())
    cleaned = undirected(one, two, n)
    matrix = feature_matrix(rows)
    digest = hashlib.sha256()
    for part in (
        cleaned.adjacency.indptr,
        cleaned.adjacency.indices,
        matrix.indptr,
        matrix.indices,
        matrix.data,
        labels.numbers,
    ):
        digest.update(np.ascontiguousarray(part).tobytes())
    names = given.names or tuple(f"column {k}" for k in range(matrix.shape[1]))
    from_edges, seen = noticed(rules, matrix, cleaned.adjacency, names)
    remarks = (*given.remarks, *seen)
    for sentence in (*(f"not used: {what}" for what in given.unused), *labels.remarks, *remarks):
        logger.warning("%s: %s", name, sentence)
    detail = own_graph_detail(f"a graph in memory called {name}", cleaned, labels, given.unused, remarks)
    provenance = Provenance("own", detail, {"(in memory)": digest.hexdigest()})
    scales = own_scales(matrix, names, given.bounded)
    return Graph(
        name=name,
        adjacency=cleaned.adjacency,
        features=matrix,
        labels=labels.numbers,
        num_classes=len(labels.classes),
        provenance=provenance,
        columns_from_rows=given.columns_from_rows or (scales is not None and bool(scales.names)),
        features_from_edges=from_edges,
        nodes_from_edges=False,
        names=Names(given.ids, given.names, labels.classes),
        columns=scales,
    )
