"""Edges between clients of a federation, which name nodes of others by hashes (``ids.csv``, ``cross.csv``)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import csv_tables
from fedgraph.data.base.adjacencies import adjacency_of_edges
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph


@dataclass(frozen=True, eq=False)
class CrossEdges:
    """One client's side of the edges between clients.

    Attributes:
        hashes: hash of an own node → (row, line of ids.csv).
        cross: (row, hash of another client's node, line of cross.csv) of the edges that leave it.
    """

    folder: Path
    hashes: dict[str, tuple[int, int]] = field(default_factory=dict)
    cross: tuple[tuple[int, str, int], ...] = ()


NO_CROSS_EDGES = CrossEdges(Path())


def read_cross_edges(raw: RawFiles, rows: dict[str, int]) -> CrossEdges:
    """Both files of one client, where they are there. rows: node id → row. ``DataError`` names file and line."""
    hashes: dict[str, tuple[int, int]] = {}
    named: set[int] = set()
    for number, row, text in _pairs(raw, "ids.csv", rows):
        if text in hashes or row in named:
            raise DataError(f"{raw.folder / 'ids.csv'}:{number}: hash {text!r} or its node stands twice; allowed: each once")
        hashes[text] = row, number
        named.add(row)
    return CrossEdges(raw.folder, hashes, tuple((row, text, number) for number, row, text in _pairs(raw, "cross.csv", rows)))


def _pairs(raw: RawFiles, name: str, rows: dict[str, int]) -> list[tuple[int, int, str]]:
    file = raw.folder / name
    if not file.is_file():
        return []
    found, faults = [], DataFileFaults()
    lines = csv_tables.read_csv_lines(raw.read(name), str(file), least=1)
    for number, cells in csv_tables.skip_csv_header(lines, rows, columns=1):
        if len(cells) != 2 or not cells[1]:
            faults.note(f"{file}:{number}", f"found {cells}; allowed: two columns, a node and a text")
        elif cells[0] not in rows:
            faults.note(f"{file}:{number}", csv_tables.unknown_csv_id(cells[0], rows, number))
        else:
            found.append((number, rows[cells[0]], cells[1]))
    faults.refuse()
    return found


def add_cross_edges(graph: Graph, given: Sequence[CrossEdges], starts: np.ndarray, names: Sequence[str]) -> tuple[Graph, str]:
    """The graph with the edges between clients, and a phrase that counts them. starts: each client's first node, and n."""
    where: dict[str, tuple[int, int]] = {}  # hash → (client, node)
    for client, own in enumerate(given):
        for text, (row, line) in own.hashes.items():
            if text in where:
                raise DataError(
                    f"{own.folder / 'ids.csv'}:{line}: hash {text!r} belongs to nodes of {names[where[text][0]]!r} and of "
                    f"{names[client]!r}; allowed: one node"
                )
            where[text] = client, int(starts[client]) + row
    listed: dict[tuple[int, int], set[int]] = {}  # edge → the clients that list it
    for client, own in enumerate(given):
        for row, text, line in own.cross:
            if text not in where:
                raise DataError(
                    f"{own.folder / 'cross.csv'}:{line}: hash {text!r} is in no client's ids.csv; allowed: a hash of another "
                    "client's node"
                )
            other, node = where[text]
            if other == client:
                raise DataError(
                    f"{own.folder / 'cross.csv'}:{line}: hash {text!r} is a node of this very client; allowed: a hash of "
                    "another client's node (own edges stand in edges)"
                )
            one, two = sorted((int(starts[client]) + row, node))
            listed.setdefault((one, two), set()).add(client)
    if not listed:
        return graph, "none between clients"
    upper = sp.triu(graph.adjacency, k=1, format="coo")
    inner = upper.coords[0].astype(np.int64) * graph.num_nodes + upper.coords[1]
    cross = np.array([one * graph.num_nodes + two for one, two in listed], dtype=np.int64)
    adjacency = adjacency_of_edges(np.union1d(inner, cross), graph.num_nodes)
    alone = sum(len(ends) == 1 for ends in listed.values())
    return replace(graph, adjacency=adjacency), f"{len(listed)} of them between clients ({alone} listed at one end only)"
