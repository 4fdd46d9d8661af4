"""Graphs that are in memory already as arrays: of PyG, or of scipy and numpy; and many small ones at once.

Whatever an object holds and no method reads (weights, times, directions, further labels) is named in the graph's provenance and
in the log ``fedgraph``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import splits
from fedgraph.data.own.collection import JoinedOwnCollection, label_own_collection
from fedgraph.data.own.columns import EdgeColumnRules, OwnColumns
from fedgraph.data.own.one_graph import OneGraph
from fedgraph.errors import DataError
from fedgraph.types import GraphCollection, GraphMasks

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

_READ_OF_PYG = ("x", "edge_index", "y", "num_nodes")
_OWNER = "owner"  # of a small graph: who holds it


def are_small_graphs(given: Sequence[object]) -> bool:
    """Whether a tuple holds graphs, and no parts of one."""
    import networkx as nx
    from torch_geometric.data import Data

    return bool(given) and all(isinstance(one, (nx.Graph, Data)) for one in given)


def _title(name: str) -> str:
    return f"a graph in memory called {name}"


def graph_of_pyg(data: Any, name: str, labelled: bool = True) -> OneGraph:
    """What a PyG ``Data`` holds: ``x`` [n, d], ``edge_index`` [2, m], ``y`` [n] where ``labelled``, and masks.

    Raises ``DataError`` for anything else.
    """
    missing = [key for key in ("x", "edge_index", *(("y",) if labelled else ())) if getattr(data, key, None) is None]
    if missing:
        raise DataError(f"the PyG data object has no {', '.join(missing)}; needed: x [n, d], edge_index [2, m], y [n]")
    rows, ends = _parts_of_pyg(data, "the PyG data object")
    if rows.shape[1] == 0:
        raise DataError("the PyG data object's x has no column; allowed: one or more (a constant 1 says nothing, and is one)")
    labels = data.y.cpu().numpy() if labelled else np.full(rows.shape[0], -1)
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


def graph_of_arrays(adjacency: Any, features: Any, labels: Any, name: str) -> OneGraph:
    """What ``(adjacency [n, n], features [n, d], labels [n])`` hold, dense or sparse. ``DataError`` for another shape."""
    table = sp.coo_array(adjacency)
    n = table.shape[0]
    if table.ndim != 2 or table.shape != (n, n):
        raise DataError(f"the adjacency has shape {table.shape}; allowed: square, dense or sparse")
    there = np.asarray(table.data) != 0
    unused = ("edge weights",) if (np.asarray(table.data)[there] != 1).any() else ()
    words = np.asarray(labels).reshape(-1).tolist()
    return OneGraph(name, _title(name), table.coords[0][there], table.coords[1][there], features, words, unused=unused)


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
    table = OwnColumns(sp.csr_array(np.concatenate([rows for rows, *_ in read])), columns, from_rows=bool(columns))
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
