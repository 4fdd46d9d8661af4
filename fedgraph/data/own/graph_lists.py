"""A list of small graphs that are in memory already, PyG or NetworkX, as a collection; see ``objects`` for one graph."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.data.own.edge_columns import EdgeRules
from fedgraph.data.own.given_graphs import Joined, collection_of
from fedgraph.errors import DataError
from fedgraph.types import GraphCollection

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

OWNER = "owner"  # of a graph: who holds it
READ_OF_PYG = ("x", "edge_index", "y", "num_nodes", OWNER)

logger = logging.getLogger("fedgraph")


def graphs_of(given: Sequence[object], name: str, rules: EdgeRules, label: str = "y") -> GraphCollection:
    """Many graphs, each with one label, as a collection.

    Args:
        given: PyG ``Data`` objects (``edge_index`` [2, m], ``y`` one number, if wanted ``x`` [n, d] and ``owner``), or NetworkX
            graphs (``graph.graph["y"]``, if wanted nodes with ``x`` and ``graph.graph["owner"]``). Without ``x`` tasks take the
            degrees.
        name: what it is called.
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
    read = [_read(one, f"graph {place}", label, unused) for place, one in enumerate(given)]
    widths = [rows.shape[1] for rows, *_ in read]
    if len(set(widths)) > 1:
        other = next(place for place, width in enumerate(widths) if width != widths[0])
        raise DataError(f"graph {other} has {widths[other]} features, graph 0 has {widths[0]}; allowed: equally many")
    sizes = np.array([rows.shape[0] for rows, *_ in read], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    found = Joined(
        names=[str(place) for place in range(len(read))],
        sizes=sizes,
        labels=[one_label for _, _, one_label, _ in read],
        owners=[owner for *_, owner in read],
        ends=np.concatenate([ends + start for (_, ends, _, _), start in zip(read, starts, strict=True)]),
        matrix=sp.csr_array(np.concatenate([rows for rows, *_ in read])),
        columns=tuple(f"column {place}" for place in range(widths[0])),
        unused=tuple(unused),
    )
    made = collection_of(name, f"graphs in memory called {name}", found, rules, "the labels")
    if unused:
        logger.warning("%s: not used: %s", name, ", ".join(unused))
    return made


_Read = tuple[np.ndarray, np.ndarray, object, str]  # rows [n, d], ends [m, 2], label, owner


def _read(one: object, where: str, label: str, unused: dict[str, None]) -> _Read:
    import networkx as nx
    from torch_geometric.data import Data

    if isinstance(one, Data):
        return _of_pyg(one, where, unused)
    if isinstance(one, nx.Graph):
        return _of_networkx(one, where, label, unused)
    raise DataError(f"{where} is a {type(one).__name__}; allowed: a torch_geometric Data or a NetworkX graph")


def _of_pyg(data: Data, where: str, unused: dict[str, None]) -> _Read:
    held = data.to_dict()
    if held.get("edge_index") is None:
        raise DataError(f"{where}: it has no edge_index; allowed: [2, m]")
    arcs = np.asarray(held["edge_index"].cpu().numpy(), dtype=np.int64)
    if arcs.ndim != 2 or arcs.shape[0] != 2:
        raise DataError(f"{where}: edge_index has shape {arcs.shape}; allowed: [2, m]")
    words = np.asarray([] if held.get("y") is None else held["y"]).reshape(-1).tolist()
    if len(words) > 1:
        raise DataError(f"{where}: y has {len(words)} labels; allowed: one for the graph")
    x = held.get("x")
    rows = np.zeros((int(data.num_nodes or 0), 0)) if x is None else np.asarray(x.cpu().numpy(), dtype=np.float64)
    unused |= {f"{key} of the PyG objects": None for key in held if key not in READ_OF_PYG}
    return _checked(rows, arcs.T, where), arcs.T, words[0] if words else None, str(held.get(OWNER) or "")


def _of_networkx(graph: nx.Graph, where: str, label: str, unused: dict[str, None]) -> _Read:
    position = {node: row for row, node in enumerate(graph.nodes)}
    given = [attributes.get("x") for _, attributes in graph.nodes(data=True)]
    if any(x is None for x in given) and any(x is not None for x in given):
        raise DataError(f"{where}: some nodes have an attribute 'x' and others none; allowed: all or none")
    rows = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in given if x is not None]
    if len({row.shape for row in rows}) > 1:
        raise DataError(f"{where}: the nodes' attributes 'x' have different lengths; allowed: one length")
    ends = np.array([(position[one], position[two]) for one, two, *_ in graph.edges], dtype=np.int64).reshape(-1, 2)
    unused |= {f"node attribute {key!r}": None for _, data in graph.nodes(data=True) for key in data if key != "x"}
    unused |= {f"edge attribute {key!r}": None for *_, data in graph.edges(data=True) for key in data}
    table = np.stack(rows) if rows else np.zeros((len(position), 0))
    return _checked(table, ends, where), ends, graph.graph.get(label), str(graph.graph.get(OWNER, "") or "")


def _checked(rows: np.ndarray, ends: np.ndarray, where: str) -> np.ndarray:
    """The rows; ``DataError`` for none of them, what is no finite number, or an edge to nowhere."""
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise DataError(f"{where}: x has shape {rows.shape}; allowed: [n, d], one node or more")
    if not np.isfinite(rows).all():
        raise DataError(
            f"{where}: x of node {int(np.argwhere(~np.isfinite(rows))[0, 0])} is not finite; allowed: finite numbers"
        )
    if ends.size and (ends.min() < 0 or ends.max() >= rows.shape[0]):
        raise DataError(f"{where}: an edge names node {int(ends.max())}; allowed: 0 … {rows.shape[0] - 1}")
    return rows
