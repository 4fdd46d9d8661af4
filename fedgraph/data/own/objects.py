"""Graphs that are in memory already: PyG, NetworkX, pandas or arrays, as a ``fedgraph`` graph, or many small ones at once.

``own/object`` is the name of such a graph in a scenario. It is given to ``fedgraph.compare`` and lies in no file, so a scenario
that names it elsewhere is refused. Whatever an object holds and no method reads (weights, times, directions, further labels) is
named in the graph's provenance and in the log ``fedgraph``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import splits, validate_data_parameters
from fedgraph.data.own.collection import JoinedOwnCollection, label_own_collection
from fedgraph.data.own.columns import EdgeColumnRules, OwnColumnRules, OwnColumns, OwnTableRules, read_own_columns
from fedgraph.data.own.one_graph import OneGraph, check_one_graph
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection, GraphMasks

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from torch_geometric.data import Data

_LABEL_COLUMNS = ("y", "label", "labels", "class", "target")
_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
_READ_OF_PYG = ("x", "edge_index", "y", "num_nodes")
_OWNER = "owner"  # of a small graph: who holds it


def graph_from_object(
    data: Any, name: str, label: str | None = None, columns: Mapping[str, object] | None = None, labelled: bool = True
) -> Graph:
    """``data`` as a graph. Edges become undirected, self-loops and repeated edges are dropped, weights too.

    Args:
        data: a PyG ``Data``, a NetworkX graph, ``(nodes, edges)`` of two pandas tables, ``(adjacency, features, labels)``, or a
            ``Graph``.
        label: the column or node attribute with the labels, where it has another name than ``y`` or ``label``.
        columns: what becomes of the columns of a pandas table (``columns.OwnTableRules``); of other data only
            ``from_edges`` counts.
        labelled: whether some label must be known. If not, labels are not read, and a table of nodes needs none.

    Returns:
        The graph; its provenance says what was not used. A ``Graph`` is returned as it is.

    Raises:
        DataError: one line that says what was found and what is allowed.
        ScenarioError: ``columns`` holds a key or a value that is not allowed.
    """
    rules = validate_data_parameters(OwnTableRules, columns or {}, "own/object")
    if isinstance(data, Graph):
        return data
    if isinstance(data, tuple) and len(data) == 2 and all(hasattr(part, "columns") for part in data):
        given = _of_tables(*data, name, label, rules, labelled)
    elif isinstance(data, tuple) and len(data) == 3:
        given = _of_arrays(*data, name)
    elif hasattr(data, "edge_index"):
        given = _of_pyg(data, name)
    elif hasattr(data, "nodes") and hasattr(data, "edges") and hasattr(data, "is_directed"):
        given = _of_networkx(data, name, label or "y")
    else:
        raise DataError(
            f"data is a {type(data).__name__}; allowed: a torch_geometric Data, a NetworkX graph, two pandas tables (nodes, "
            "edges), a fedgraph Graph, or the tuple (adjacency, features, labels)"
        )
    return check_one_graph(given, rules, labelled)


def _title(name: str) -> str:
    return f"a graph in memory called {name}"


def _of_pyg(data: Any, name: str) -> OneGraph:
    missing = [key for key in ("x", "edge_index", "y") if getattr(data, key, None) is None]
    if missing:
        raise DataError(f"the PyG data object has no {', '.join(missing)}; needed: x [n, d], edge_index [2, m], y [n]")
    rows, ends = _parts_of_pyg(data, "the PyG data object")
    labels = data.y.cpu().numpy()
    if labels.ndim > 1 and labels.shape[1:] != (1,):
        one = "one label per node, [n]. For several labels compare one at a time"
        raise DataError(f"y has shape {labels.shape}; allowed: {one}")
    masks, alone = _masks_of(data, rows.shape[0])
    unused = (*_unused_of_pyg(data, (*_READ_OF_PYG, *splits.SPLIT_MASKS), "object"), *alone)
    words = labels.reshape(-1).tolist()
    return OneGraph(name, _title(name), ends[:, 0], ends[:, 1], rows, words, unused=unused, masks=masks)


def _parts_of_pyg(data: Data, where: str) -> tuple[np.ndarray, np.ndarray]:
    x, arcs = data.x, data.edge_index
    if arcs is None or arcs.ndim != 2 or arcs.shape[0] != 2:
        found = "no edge_index" if arcs is None else f"edge_index of shape {tuple(arcs.shape)}"
        raise DataError(f"{where} has {found}; allowed: [2, m]")
    ends = np.asarray(arcs.cpu().numpy(), dtype=np.int64).T
    if x is None:
        return np.zeros((int(data.num_nodes or 0), 0)), ends
    return np.asarray(x.to_dense().cpu().numpy(), dtype=np.float64), ends


def _unused_of_pyg(data: Data, read: Sequence[str], what: str) -> list[str]:
    return [f"{key} of the PyG {what}" for key in list(data.keys()) if key not in read]


def _masks_of(data: Data, num_nodes: int) -> tuple[tuple[GraphMasks, ...], list[str]]:
    """Splits by ``train_mask``, ``val_mask`` and ``test_mask`` ([n], or [n, k] for k splits), and masks that make no split."""
    given = {key: data[key].cpu().numpy() for key in splits.SPLIT_MASKS if data.get(key) is not None}
    if {"train_mask", "test_mask"} <= set(given):
        return splits.of_masks(given, "the PyG data object", num_nodes), []
    return (), [f"{key} (a split needs train_mask and test_mask)" for key in given]


def _of_networkx(data: nx.Graph, name: str, label: str) -> OneGraph:
    rows, ends, unused = _parts_of_networkx(data, "the graph", ("x", label))
    if rows.shape[1] == 0:
        raise DataError(
            f"nodes have no attribute 'x'; every node needs its features there (and its label in {label!r}). For several "
            "attributes give two pandas tables: (nodes, edges)"
        )
    labels = [data.nodes[node].get(label) for node in data.nodes]
    ids = tuple(map(str, data.nodes))
    return OneGraph(name, _title(name), ends[:, 0], ends[:, 1], rows, labels, unused=tuple(unused), ids=ids)


def _parts_of_networkx(graph: nx.Graph, where: str, read: Sequence[str]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """(rows [n, d], ends [m, 2], what no method reads); without ``x`` d is 0. read: attributes of nodes that are read."""
    position = {node: row for row, node in enumerate(graph.nodes)}
    given = {node: attributes["x"] for node, attributes in graph.nodes(data=True) if attributes.get("x") is not None}
    if 0 < len(given) < len(position):
        lacking = next(node for node in position if node not in given)
        raise DataError(f"{where}: node {lacking!r} has no attribute 'x', others have; allowed: all nodes or none")
    rows = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in given.values()]
    if len({row.shape for row in rows}) > 1:
        raise DataError(f"{where}: the nodes' attributes 'x' have different lengths; allowed: one length")
    ends = np.array([(position[one], position[two]) for one, two, *_ in graph.edges], dtype=np.int64).reshape(-1, 2)
    of_nodes = sorted({str(key) for _, data in graph.nodes(data=True) for key in data} - set(read))
    of_edges = sorted({str(key) for *_, data in graph.edges(data=True) for key in data})
    unused = [f"node attribute {key!r}" for key in of_nodes] + [f"edge attribute {key!r}" for key in of_edges]
    unused += ["the direction of edges"] if graph.is_directed() else []
    return np.stack(rows) if rows else np.zeros((len(position), 0)), ends, unused


def _of_arrays(adjacency: Any, features: Any, labels: Any, name: str) -> OneGraph:
    table = sp.coo_array(adjacency)
    n = table.shape[0]
    if table.ndim != 2 or table.shape != (n, n):
        raise DataError(f"the adjacency has shape {table.shape}; allowed: square, dense or sparse")
    there = np.asarray(table.data) != 0
    unused = ("edge weights",) if (np.asarray(table.data)[there] != 1).any() else ()
    words = np.asarray(labels).reshape(-1).tolist()
    return OneGraph(name, _title(name), table.coords[0][there], table.coords[1][there], features, words, unused=unused)


def _of_tables(
    nodes: pd.DataFrame, edges: pd.DataFrame, name: str, label: str | None, rules: OwnColumnRules, labelled: bool
) -> OneGraph:
    """Two pandas tables. A node's id is its column ``id``, else the index; edges have named ends, or the first two columns."""
    columns = [str(column) for column in nodes.columns]
    chosen = label or next((column for column in columns if column.casefold() in _LABEL_COLUMNS), None)
    if labelled and (chosen is None or chosen not in columns):
        raise DataError(f"the table of nodes has no column {label or ' or '.join(_LABEL_COLUMNS)}; found: {', '.join(columns)}")
    ids = [str(one) for one in (nodes["id"] if "id" in columns else nodes.index)]
    if len(set(ids)) < len(ids):
        raise DataError("two rows of the table of nodes have one id; allowed: each once")
    kept = [column for column in columns if column not in (chosen, "id")]
    cells = [["" if _is_missing(value) else str(value).strip() for value in row] for row in nodes[kept].itertuples(index=False)]
    read = read_own_columns(kept, cells, rules, "the table of nodes", lambda row: f"the table of nodes:{row + 1}", ids)
    ends = _ends([str(column) for column in edges.columns])
    one, two = (_rows_of(edges[end].tolist(), ids, end) for end in ends)
    unused = tuple(f"column {column!r} of the edges" for column in edges.columns if column not in ends)
    words = nodes[chosen].tolist() if chosen in columns else [None] * len(ids)
    return OneGraph(name, _title(name), one, two, read.matrix, words, unused=unused, ids=tuple(ids)).with_table(read)


def _ends(columns: Sequence[str]) -> tuple[str, str]:
    if len(columns) < 2:
        found = f"the table of edges has the columns {', '.join(columns) or 'none'}"
        raise DataError(f"{found}; allowed: two ends, such as source, target")
    return next((pair for pair in _ENDS if set(pair) <= set(columns)), (columns[0], columns[1]))


def _rows_of(values: Sequence[object], ids: Sequence[str], end: str) -> np.ndarray:
    position: Mapping[str, int] = {one: row for row, one in enumerate(ids)}
    unknown = next((value for value in values if str(value) not in position), None)
    if unknown is not None:
        raise DataError(f"the column {end!r} of the edges names {unknown!r}; allowed: the {len(ids):,} ids of the nodes")
    return np.array([position[str(value)] for value in values], dtype=np.int64)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def collection_from_objects(given: Sequence[object], name: str, rules: EdgeColumnRules, label: str = "y") -> GraphCollection:
    """Many graphs, each with one label, as a collection.

    Args:
        given: PyG ``Data`` objects (``edge_index`` [2, m], ``y`` one number, if wanted ``x`` [n, d] and ``owner``), or NetworkX
            graphs (``graph.graph["y"]``, if wanted nodes with ``x`` and ``graph.graph["owner"]``). Without ``x`` tasks take the
            degrees.
        rules: whether features were computed from edges.
        label: where a NetworkX graph keeps its label.

    Returns:
        The collection; graphs without a label are left out.

    Raises:
        DataError: one line that names the graph by its place in the list, what was found and what is allowed.
    """
    if not given:
        raise DataError("the list holds no graph; allowed: one or more")
    unused: dict[str, None] = {}
    read = [_small(one, f"graph {place}", label, unused) for place, one in enumerate(given)]
    widths = [rows.shape[1] for rows, *_ in read]
    if len(set(widths)) > 1:
        other = next(place for place, width in enumerate(widths) if width != widths[0])
        raise DataError(f"graph {other} has {widths[other]} features, graph 0 has {widths[0]}; allowed: equally many")
    sizes = np.array([rows.shape[0] for rows, *_ in read], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    columns = tuple(f"column {place}" for place in range(widths[0]))
    table = OwnColumns(sp.csr_array(np.concatenate([rows for rows, *_ in read])), columns, from_rows=False)
    ends = np.concatenate([ends + start for (_, ends, _, _), start in zip(read, starts, strict=True)])
    labels, owners = [one_label for _, _, one_label, _ in read], [owner for *_, owner in read]
    names = list(map(str, range(len(read))))
    found = JoinedOwnCollection(names, sizes, labels, owners, ends, table, unused=tuple(unused))
    if unused:
        logging.getLogger("fedgraph").warning("%s: not used: %s", name, ", ".join(unused))
    return label_own_collection(name, f"graphs in memory called {name}", found, rules, "the labels")


def _small(graph: Any, where: str, label: str, unused: dict[str, None]) -> tuple[np.ndarray, np.ndarray, object, str]:
    import networkx as nx
    from torch_geometric.data import Data

    if isinstance(graph, Data):
        (rows, ends), told = _parts_of_pyg(graph, where), graph.to_dict()
        labels = np.asarray([] if told.get("y") is None else told["y"]).reshape(-1).tolist()
        if len(labels) > 1:
            raise DataError(f"{where}: y has {len(labels)} labels; allowed: one for the graph")
        found = labels[0] if labels else None
        more = _unused_of_pyg(graph, (*_READ_OF_PYG, _OWNER), "objects")
    elif isinstance(graph, nx.Graph):
        rows, ends, more = _parts_of_networkx(graph, where, ("x",))
        found, told = graph.graph.get(label), graph.graph
    else:
        raise DataError(f"{where} is a {type(graph).__name__}; allowed: a torch_geometric Data or a NetworkX graph")
    unused |= dict.fromkeys(more)
    _require_sound(rows, ends, where)
    return rows, ends, found, str(told.get(_OWNER) or "")


def _require_sound(rows: np.ndarray, ends: np.ndarray, where: str) -> None:
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise DataError(f"{where}: x has shape {rows.shape}; allowed: [n, d], one node or more")
    if not np.isfinite(rows).all():
        node = int(np.argwhere(~np.isfinite(rows))[0, 0])
        raise DataError(f"{where}: x of node {node} is not finite; allowed: finite numbers")
    if ends.size and (ends.min() < 0 or ends.max() >= rows.shape[0]):
        raise DataError(f"{where}: an edge names node {int(ends.max())}; allowed: 0 … {rows.shape[0] - 1}")
