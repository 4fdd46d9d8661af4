"""Tables of a federation's clients: what a column is, and which texts it has, is decided over all clients that have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base.files import Faults
from fedgraph.data.base.structure import Part
from fedgraph.data.base.tables import FeatureTable
from fedgraph.data.own.columns import ColumnRules, read_columns
from fedgraph.errors import DataError


@dataclass(frozen=True, eq=False)
class ClientTable:
    """What one client gave. file: of its features. texts: of a table with a column for each; None where all are numbers."""

    file: str
    part: Part
    texts: FeatureTable | None


@dataclass(frozen=True, eq=False)
class ReadTables:
    """parts: of all clients, with the columns that became of their texts. bounded, remarks: as ``ReadColumns`` says."""

    parts: tuple[Part, ...]
    bounded: tuple[str, ...]
    remarks: tuple[str, ...]


def read_tables(given: Sequence[ClientTable], rules: ColumnRules, folder: str) -> ReadTables:
    """Every client's columns. A client that has no such column has zeros there.

    Args:
        given: by the clients.
        rules: what the user decided, for all clients alike.
        folder: names the federation in an error.

    Raises:
        DataError: one message that lists every cell that the rules do not allow; or they name a column that they cannot change.
    """
    _require_tables(given, rules, folder)
    holders: dict[str, list[int]] = {}
    for number, one in enumerate(given):
        for name in one.texts.names if one.texts is not None else ():
            holders.setdefault(name, []).append(number)
    together: dict[tuple[int, ...], list[str]] = {}  # columns that the same clients have
    for name, who in holders.items():
        together.setdefault(tuple(who), []).append(name)
    found: list[list[tuple[tuple[str, ...], sp.csr_array]]] = [[] for _ in given]
    bounded: list[str] = []
    remarks: list[str] = []
    faults = Faults()
    for holding, names in together.items():
        cells, places, nodes, ends = _stacked([given[number] for number in holding], names)
        own = {"bounds": {k: v for k, v in rules.bounds.items() if k in names}, "drop": [k for k in rules.drop if k in names]}
        with faults.gathering():
            read = read_columns(names, cells, rules.model_copy(update=own), folder, places.__getitem__, nodes, numbered=False)
            bounded += read.bounded
            remarks += read.remarks
            for number, begin, end in zip(holding, [0, *ends[:-1]], ends, strict=True):
                found[number].append((read.names, read.matrix[begin:end]))
    faults.refuse()
    parts = [one.part if one.texts is None else _with_columns(one.part, own) for one, own in zip(given, found, strict=True)]
    return ReadTables(tuple(parts), tuple(bounded), tuple(dict.fromkeys(remarks)))


def _require_tables(given: Sequence[ClientTable], rules: ColumnRules, folder: str) -> None:
    """``DataError`` where bounds or drop name a column that nobody has, or that is no column of a table."""
    for key in (*rules.bounds, *rules.drop):
        every = [one.part.column_names if one.texts is None else one.texts.names for one in given]
        if not any(key in names for names in every):
            known = ", ".join(dict.fromkeys(name for names in every for name in names))
            raise DataError(f"{folder}: no client has a column {key!r}; allowed: {known}")
        for one, names in zip(given, every, strict=True):
            if one.texts is None and key in names:
                raise DataError(
                    f"{one.file}: bounds and drop change columns of tables with a line per node (id, a column for each), and "
                    f"{key!r} is a column of this file, too; allowed: such a table, or no bounds and drop for it"
                )


def _stacked(given: Sequence[ClientTable], names: Sequence[str]) -> tuple[list[list[str]], list[str], list[str], list[int]]:
    """(cells of these columns, where each row stands, its node, where each client's rows end)."""
    cells: list[list[str]] = []
    places: list[str] = []
    nodes: list[str] = []
    ends: list[int] = []
    for one in given:
        assert one.texts is not None
        at = [one.texts.names.index(name) for name in names]
        cells += [[row[place] for place in at] for row in one.texts.cells]
        places += [f"{one.file}:{line}" for line in one.texts.lines]
        nodes += one.texts.ids
        ends.append(len(cells))
    return cells, places, nodes, ends


def _with_columns(part: Part, found: Sequence[tuple[tuple[str, ...], sp.csr_array]]) -> Part:
    names = tuple(name for own, _ in found for name in own)
    empty = sp.csr_array((part.adjacency.shape[0], 0), dtype=np.float32)
    entries = sp.coo_array(sp.hstack([empty, *(matrix for _, matrix in found)]))
    rows, columns = (place.astype(np.int64) for place in entries.coords)
    return replace(part, rows=rows, columns=columns, column_names=names, values=entries.data.astype(np.float32))
