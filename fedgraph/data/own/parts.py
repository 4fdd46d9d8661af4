"""Several owners' people, or many small graphs, as one: each part's tables were read by themselves; columns are joined by name.

Names that differ in capitals or spaces around alone are one. What a column is, and which texts it has, is decided over all
parts that have it; in a part whose tables have no such column it is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fedgraph.data.own.roles import Holder, Roles, is_labels
from fedgraph.data.own.tables import Table, says_who
from fedgraph.errors import DataError

_LABEL = "\0label"  # the one column of a table of labels, whatever it is called


@dataclass(eq=False)
class Part:
    """One owner's people, or one small graph.

    Attributes:
        folder: where it lies, for messages.
        told: what its file says of the graph itself.
    """

    name: str
    roles: Roles
    folder: str
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many people it has."""
        return len(self.roles.ids)


def join(parts: Sequence[Part], where: Path, more: np.ndarray) -> tuple[Roles, np.ndarray]:
    """(everybody, called ``part/id``; int64 [n], the number of each one's part).

    Args:
        parts: one or more.
        where: names all of them in a message.
        more: int64 [k, 2], further ties, such as those between parts.
    """
    sizes = np.array([part.size for part in parts], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    ids = [f"{part.name}/{one}" for part in parts for one in part.roles.ids]
    remarks: list[str] = []
    holder = _people(parts, starts, ids, where, remarks)
    split = {
        row + int(start): said for part, start in zip(parts, starts, strict=True) for row, said in part.roles.parts.items()
    }
    remarks += dict.fromkeys(remark for part in parts for remark in part.roles.remarks)
    one = np.concatenate([*(part.roles.one + start for part, start in zip(parts, starts, strict=True)), more[:, 0]])
    two = np.concatenate([*(part.roles.two + start for part, start in zip(parts, starts, strict=True)), more[:, 1]])
    ties, ends = _ties(parts, where, len(more))
    told = Roles(ids, [holder], ties, ends, one, two, split, str(where) if split else "", remarks)
    return told, np.repeat(np.arange(len(parts)), sizes)


def _ties(parts: Sequence[Part], where: Path, more: int) -> tuple[Table, tuple[str, str]]:
    """The tables of ties, one below the other; a tie between parts has no further cell."""
    frames = [part.roles.ties.frame.set_axis(_ends_called(part), axis=1) for part in parts]
    frames.append(pd.DataFrame("", index=range(more), columns=["source", "target"], dtype=object))
    frame = pd.concat(frames, ignore_index=True).fillna("").astype(object)
    places = [part.roles.ties.place(row) for part in parts for row in range(len(part.roles.ties.frame))]
    remarks = [remark for part in parts for remark in part.roles.ties.remarks]
    return Table(str(where), frame, places=[*places, *[str(where)] * more], remarks=remarks), ("source", "target")


def _ends_called(part: Part) -> list[str]:
    called = dict(zip(part.roles.ends, ("source", "target"), strict=True))
    return [called.get(name, name if name not in ("source", "target") else f"{name} ") for name in part.roles.ties.names]


def _people(parts: Sequence[Part], starts: np.ndarray, ids: list[str], where: Path, remarks: list[str]) -> Holder:
    for part in parts:
        bare = [one.table for one in part.roles.holders if not one.table.headed and len(one.table.names) > 2]
        if bare and len(parts) > 1:
            first = ", ".join(bare[0].frame.iloc[0].tolist()[:6]) if len(bare[0].frame) else ""
            said = f"{bare[0].place(0)}: found {first}; allowed: a first line that names the columns, such as id,age"
            raise DataError(f"{said}: they are matched by name")
    columns, beside = _columns(parts, starts, len(ids), remarks)
    every = {column.name for column in columns}
    key = next(name for name in ("id", "node", " id") if name not in every)
    cells = {key: np.array(ids, dtype=object)} | {column.name: column.cells for column in columns}
    table = Table(str(where), pd.DataFrame(cells, dtype=object), role="nodes", id=key, places=_places(parts))
    lacking = {column.name: column.lacking for column in columns if column.lacking.any()}
    matrices = [(one, int(start)) for part, start in zip(parts, starts, strict=True) for one in part.roles.holders]
    if matrices := [one for one in matrices if one[0].table.matrix is not None]:
        table.called = tuple(dict.fromkeys(name for holder, _ in matrices for name in holder.table.called))
        table.matrix = _stacked(matrices, table.called, len(ids))
    return Holder(table, key, np.arange(len(ids)), lacking, beside)


def _stacked(matrices: Sequence[tuple[Holder, int]], called: Sequence[str], n: int) -> sp.csr_array:
    """CSR [n, columns] of matrices whose columns are matched by name; each begins at the row of its part's first person."""
    place = {name: number for number, name in enumerate(called)}
    blocks = []
    for holder, start in matrices:
        there = np.flatnonzero(holder.rows >= 0)
        entries = sp.coo_array(sp.csr_array(holder.table.matrix)[holder.rows[there]])
        at = np.array([place[name] for name in holder.table.called], dtype=np.int64)
        blocks.append((entries.data, there[entries.coords[0]] + start, at[entries.coords[1]]))
    data, rows, columns = (np.concatenate(side) for side in zip(*blocks, strict=True))
    return sp.csr_array((data, (rows, columns)), shape=(n, len(called)))


@dataclass(eq=False)
class _Column:
    """cells: [n], "" where there is none. lacking: of whom no table has it. beside: only tables of labels have it."""

    name: str
    cells: np.ndarray
    lacking: np.ndarray
    beside: bool = True


def _columns(parts: Sequence[Part], starts: np.ndarray, n: int, remarks: list[str]) -> tuple[list[_Column], frozenset[str]]:
    """The columns of all parts, and the names of those that stand in tables of labels alone."""
    found: dict[str, _Column] = {}
    people = {_plain(name) for part in parts for holder, name in _every(part) if not _beside(part, holder)}
    for part, start in zip(parts, starts, strict=True):
        own: dict[str, tuple[Holder, str]] = {}  # what it is compared by, and called → where it stands
        every = [(holder, name) for holder, name in _every(part) if not _left_out(holder, name, remarks)]
        names = [name for _, name in every]
        for holder, name in every:
            single = _beside(part, holder) and sum(one is holder for one, _ in every) == 1
            key = _plain(name)
            if single and key not in people:
                key = "label" if "label" in people else _LABEL
            if not single and len({one for one in names if _plain(one) == key}) > 1:
                key = name  # two of this part differ in capitals alone, and stay two
            key = key if key not in own else f"{name} ({holder.table.stem})"
            own[key] = holder, name
        for key, (holder, name) in own.items():
            shown = (
                name if key in (_plain(name), name) else "label" if not holder.table.headed else name if key == _LABEL else key
            )
            column = found.setdefault(key, _Column(shown, np.full(n, "", dtype=object), np.ones(n, dtype=bool)))
            if column.name != shown and key == _plain(name):
                remarks.append(f"columns that differ in capitals alone are one: {column.name!r} and {shown!r}")
            mine = slice(int(start), int(start) + part.size)
            column.cells[mine] = np.array([*holder.table.texts(name), ""], dtype=object)[holder.rows]
            column.lacking[mine] = False
            column.beside = column.beside and _beside(part, holder)
    return list(found.values()), frozenset(column.name for column in found.values() if column.beside)


def _left_out(holder: Holder, name: str, remarks: list[str]) -> bool:
    """Whether a column says who a person of its part is, and no more; remarks: gets the reason."""
    cells = holder.table.texts(name)
    again = bool(cells) and cells == holder.table.texts(holder.id)
    reason = "it is the id again" if again else says_who(name, cells, holder.table.headed)
    remarks += [f"column {name!r} of {holder.table.title} is left out: {reason}"] if reason else []
    return bool(reason)


def _plain(name: str) -> str:
    return name.casefold().strip()


def _beside(part: Part, holder: Holder) -> bool:
    return is_labels(holder.table) and len(part.roles.holders) > 1


def _every(part: Part) -> Iterator[tuple[Holder, str]]:
    """Every column but ids."""
    for holder in part.roles.holders:
        yield from ((holder, name) for name in holder.table.names if name != holder.id)


def _places(parts: Sequence[Part]) -> list[str]:
    """Where each one stands: in the first table that has a row for it."""
    found = []
    for part in parts:
        own = [part.folder] * part.size
        for holder in reversed(part.roles.holders):
            for person in np.flatnonzero(holder.rows >= 0):
                own[person] = holder.table.place(int(holder.rows[person]))
        found += own
    return found
