"""Your own federation: one folder per client, each in whatever form one graph may have; columns are matched by name.

    my_federation/
      federation.yaml                      optional, see ``_Manifest``
      bank_a/  features.csv edges.csv labels.csv   [masks.csv ids.csv cross.csv]
      bank_b/  accounts.xlsx payments.parquet
      bank_c/  graph.npz                   gnn-benchmark layout (``base.npz``), with masks or without  [feature_names.txt]
      bank_d/  graph.pt                    torch.save(data.to_dict(), …) of a PyG ``Data``  [feature_names.txt]

Without a manifest every subfolder is a client, in the order of their names. A client's tables are understood as those of one
graph are, and joined by ``roles``; what is predicted and what becomes of columns is decided for all together
(``reading``). A client without edges or without labels has that table with its head alone (``source,target``, ``id,label``).

**Features** are matched by the names of their columns, so clients may have different ones: a client without a column has
zeros there. A table of exactly ``id,feature,value`` has one line per value that is not zero. Files without names (npz, pt) take
theirs from ``feature_names.txt``, one per line, or are called ``column 0``, ``column 1``, ….

**Labels** are matched by their text: ``1`` and ``1.0``, ``Yes`` and ``yes`` are one. Names of columns that differ in capitals
alone are one, with a remark. **masks.csv**: ``id,train|validation|test``; either every client has one or none.

**Edges between clients.** ``ids.csv`` (``id,hash``) gives a client's nodes the names by which others know them, and
``cross.csv`` (``id,hash``) lists edges from own nodes to nodes of others. The hashes are made by the clients beforehand, with
a common secret salt that never comes here; a hash is any text. An edge that only one end lists counts,
because one of the two organisations knows it; the provenance says how many there are. A hash that nobody carries, or two
carry, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from pydantic import Field

from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.data.own import reading
from fedgraph.data.own.columns import ReadRules
from fedgraph.data.own.roles import Part, join_parts
from fedgraph.data.own.tables import Gathered, Table, gather_files
from fedgraph.documents import Settings, YamlSource, settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph

_MANIFEST = "federation.yaml"
_LONGEST = 80  # characters of a client's name
_MOST_NAMED = 10  # classes that the provenance numbers
_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
_Pairs = list[tuple[int, str, str]]  # row of a node, text beside it, where both stand


class _Client(Settings):
    """One client of the manifest."""

    name: str = Field(min_length=1, max_length=_LONGEST, pattern=_PRINTABLE, description="its name in tables")
    folder: str = Field("", description="its folder, relative to the federation; default its name")


class _Manifest(Settings):
    """``federation.yaml``."""

    clients: tuple[_Client, ...] = Field((), description="the clients in order; none: every subfolder")
    classes: tuple[str, ...] = Field((), description="the public list of classes; none: the labels that occur")


def read(path: Path, rules: ReadRules, labelled: bool = True) -> reading.Reading:
    """All clients of a folder as one graph whose nodes know their owner; a node is called ``client/id``.

    Args:
        rules: what is predicted, what becomes of columns, and whether features come from edges.
        labelled: whether labels are read; without, nobody has one, and tables of labels may be missing.

    Raises:
        ReadingQuestion: two readings are left; the line names both, and the option that answers.
        DataError: the line names file, line, what was found and what is allowed.
    """
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/federation needs one with a folder per client")
    raw = RawFiles(path)
    manifest = _manifest(raw)
    clients = manifest.clients or tuple(_unnamed(p) for p in _folders(path))
    if not clients:
        raise DataError(f"{path}: no client; allowed: one folder per client, or a {_MANIFEST} that names them")
    names = [c.name for c in clients]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"{path / _MANIFEST}: client {twice!r} is named twice; allowed: each once")
    every = Gathered(checksums=dict(raw.checksums))
    parts, apart, seen = [], list[tuple[_Pairs, _Pairs]](), set[Path]()
    for client in clients:
        folder = path / (client.folder or client.name)
        if not folder.resolve().is_relative_to(path.resolve()):
            where = path / _MANIFEST if manifest.clients else path
            raise DataError(f"{where}: folder {client.folder!r} of client {client.name!r} lies outside {path}")
        if folder.resolve() in seen:
            raise DataError(f"{path / _MANIFEST}: folder {folder.name!r} belongs to two clients; allowed: one client each")
        seen.add(folder.resolve())
        if not folder.is_dir():
            raise DataError(f"{folder}: not a folder; client {client.name!r} of the federation needs one")
        found = gather_files(folder)
        beside = {table.stem: table for table in found.tables if table.stem in ("ids", "cross")}
        found.tables = [table for table in found.tables if table.stem not in beside]
        if not found.tables:
            found.faults.refuse()
            raise DataError(f"{folder}: found no table; allowed: a table of people and one of ties, graph.npz, or graph.pt")
        roles = reading.roles_of(found, rules)
        parts.append(Part(client.name, roles, str(folder)))
        rows = {one: row for row, one in enumerate(roles.ids)}
        apart.append((_pairs(beside.get("ids"), rows), _pairs(beside.get("cross"), rows)))
        every.tables += found.tables
        every.checksums |= {f"{folder.relative_to(path)}/{name}": digest for name, digest in found.checksums.items()}
        every.aside |= {f"{folder.name}/{name}": why for name, why in found.aside.items()}
        try:
            found.faults.refuse()
        except DataError as error:
            hint = f"\n{folder}: ties to other clients' nodes stand in cross.csv, by hash" * ("unknown node" in str(error))
            raise DataError(f"{error}{hint}") from error
    starts = np.concatenate([[0], np.cumsum([part.size for part in parts])])
    crossing, said = _between(apart, starts, names)
    both = np.concatenate([crossing, crossing[:, ::-1]])  # both ends count, whoever listed it
    roles, owner = join_parts(parts, path, both, rules.label)
    roles.remarks.insert(0, said)
    many = f"own federation {path.name} of {len(parts)} client{'s' if len(parts) > 1 else ''}"
    told = reading.of_roles(roles, every, rules, "own/federation", many, labelled, (owner, tuple(names)))
    graph = cast(Graph, told.graph)
    if manifest.classes and labelled:
        graph = _with_classes(graph, manifest.classes, path)
    numbered = ", ".join(f"{number}: {name!r}" for number, name in enumerate(graph.names.classes[:_MOST_NAMED]))
    detail = f"{graph.provenance.detail}; classes are numbered {numbered}" if numbered else graph.provenance.detail
    return replace(told, graph=replace(graph, provenance=replace(graph.provenance, detail=detail)))


def _with_classes(graph: Graph, classes: Sequence[str], path: Path) -> Graph:
    """With the public list of classes, those that nobody has among them."""
    unknown = sorted(set(graph.names.classes) - set(classes))
    if unknown:
        who = graph.ids[int(np.flatnonzero(graph.labels == graph.names.classes.index(unknown[0]))[0])]
        raise DataError(f"{path}: {who} has the label {unknown[0]!r}; allowed by {_MANIFEST}: {', '.join(classes)}")
    order = sorted(classes, key=lambda one: (0, int(one), "") if one.removeprefix("-").isdigit() else (1, 0, one))
    place = np.array([*(order.index(one) for one in graph.names.classes), -1], dtype=np.int64)
    names = replace(graph.names, classes=tuple(order))
    return replace(graph, labels=place[graph.labels], num_classes=len(order), names=names)


def _folders(path: Path) -> list[Path]:
    found = sorted(p for p in path.iterdir() if not p.name.startswith((".", "__")))
    for one in found:
        if one.is_symlink() and not one.exists():
            raise DataError(f"{one}: a link that leads nowhere; allowed: a folder per client")
    return [p for p in found if p.is_dir()]


def _unnamed(folder: Path) -> _Client:
    """A client that is called as its folder; ``DataError`` where that is no name for a table."""
    name = folder.name
    if len(name) > _LONGEST or not name.isprintable():
        raise DataError(
            f"{folder.parent}: folder {name!r} is a client's name; allowed: at most {_LONGEST} printable characters, or a "
            f"{_MANIFEST} that names its client"
        )
    return _Client(name=name, folder=name)


def _manifest(raw: RawFiles) -> _Manifest:
    file = raw.folder / _MANIFEST
    if not file.is_file():
        return _Manifest()
    raw.read(_MANIFEST)  # its checksum goes into the provenance
    try:
        source = YamlSource.read(file)
        return settings.validate(_Manifest, {} if source.data is None else source.data, source, ())
    except ScenarioError as error:
        raise DataError(str(error)) from error


def _pairs(table: Table | None, rows: Mapping[str, int]) -> _Pairs:
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


def _between(given: Sequence[tuple[_Pairs, _Pairs]], starts: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, str]:
    """(int64 [m, 2], the edges between clients, each once; words that count them).

    Args:
        given: of each client its nodes with their hashes, and its nodes with hashes of others.
        starts: each client's first node.
    """
    where: dict[str, tuple[int, int]] = {}  # hash → (client, node)
    for client, (hashes, _) in enumerate(given):
        named: set[int] = set()
        for row, text, place in hashes:
            if text in where and where[text][0] != client:
                both = f"{names[where[text][0]]!r} and of {names[client]!r}"
                raise DataError(f"{place}: hash {text!r} belongs to nodes of {both}; allowed: one node")
            if text in where or row in named:
                raise DataError(f"{place}: hash {text!r} or its node stands twice; allowed: each once")
            where[text] = client, row
            named.add(row)
    listed: dict[tuple[int, int], set[int]] = {}  # edge → the clients that list it
    for client, (_, cross) in enumerate(given):
        for row, text, place in cross:
            other = where.get(text)
            if other is None or other[0] == client:
                what = "is in no client's ids.csv" if other is None else "is a node of this very client"
                own = "" if other is None else " (own edges stand in edges)"
                raise DataError(f"{place}: hash {text!r} {what}; allowed: a hash of another client's node{own}")
            one, two = sorted((int(starts[client]) + row, int(starts[other[0]]) + other[1]))
            listed.setdefault((one, two), set()).add(client)
    alone = sum(len(ends) == 1 for ends in listed.values())
    said = f"{len(listed)} ties are between clients ({alone} listed at one end only)" if listed else "no tie is between clients"
    return np.array(sorted(listed), dtype=np.int64).reshape(-1, 2), said
