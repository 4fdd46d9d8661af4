"""Edges between clients of a federation, which name nodes of others by hashes (``ids.csv``, ``cross.csv``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedgraph.data.base.files import DataFileFaults
from fedgraph.data.own.tables import Table
from fedgraph.errors import DataError


@dataclass(frozen=True, eq=False)
class CrossEdges:
    """One client's side of the edges between clients.

    Attributes:
        hashes: hash of an own node → (row, where it stands).
        cross: (row, hash of another client's node, where it stands) of the edges that leave it.
    """

    folder: Path
    hashes: dict[str, tuple[int, str]]
    cross: tuple[tuple[int, str, str], ...]


def of_tables(folder: Path, tables: Mapping[str, Table], rows: Mapping[str, int]) -> CrossEdges:
    """Both tables of one client, where they are there: ``ids`` and ``cross``. rows: node id → row."""
    hashes: dict[str, tuple[int, str]] = {}
    named: set[int] = set()
    for row, text, where in _pairs(tables.get("ids"), rows):
        if text in hashes or row in named:
            raise DataError(f"{where}: hash {text!r} or its node stands twice; allowed: each once")
        hashes[text] = row, where
        named.add(row)
    return CrossEdges(folder, hashes, tuple(_pairs(tables.get("cross"), rows)))


def _pairs(table: Table | None, rows: Mapping[str, int]) -> list[tuple[int, str, str]]:
    if table is None:
        return []
    if len(table.names) != 2:
        raise DataError(f"{table.where}: {len(table.names)} columns; allowed: two columns, a node and a text")
    found, faults = [], DataFileFaults()
    for place, (node, text) in enumerate(zip(table.ids(table.names[0]), table.texts(table.names[1]), strict=True)):
        if node not in rows:
            faults.note(table.place(place), f"unknown node {node[:60]!r}; allowed: the {len(rows):,} ids of the nodes")
        elif not text:
            faults.note(table.place(place), "an empty cell; allowed: two columns, a node and a text")
        else:
            found.append((rows[node], text, table.place(place)))
    faults.refuse()
    return found


def between(given: Sequence[CrossEdges], starts: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, str]:
    """(int64 [m, 2], the edges between clients, each once; words that count them). starts: each client's first node, and n."""
    where: dict[str, tuple[int, int]] = {}  # hash → (client, node)
    for client, own in enumerate(given):
        for text, (row, place) in own.hashes.items():
            if text in where:
                raise DataError(
                    f"{place}: hash {text!r} belongs to nodes of {names[where[text][0]]!r} and of {names[client]!r}; "
                    "allowed: one node"
                )
            where[text] = client, int(starts[client]) + row
    listed: dict[tuple[int, int], set[int]] = {}  # edge → the clients that list it
    for client, own in enumerate(given):
        for row, text, place in own.cross:
            if text not in where:
                raise DataError(f"{place}: hash {text!r} is in no client's ids.csv; allowed: a hash of another client's node")
            other, node = where[text]
            if other == client:
                raise DataError(
                    f"{place}: hash {text!r} is a node of this very client; allowed: a hash of another client's node "
                    "(own edges stand in edges)"
                )
            one, two = sorted((int(starts[client]) + row, node))
            listed.setdefault((one, two), set()).add(client)
    found = np.array(sorted(listed), dtype=np.int64).reshape(-1, 2)
    alone = sum(len(ends) == 1 for ends in listed.values())
    return (
        found,
        f"{len(listed)} ties are between clients ({alone} listed at one end only)" if listed else "no tie is between clients",
    )
