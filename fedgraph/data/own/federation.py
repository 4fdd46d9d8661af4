"""Your own federation: one folder per client, each in whatever form one graph may have; columns are matched by name.

    my_federation/
      federation.yaml                      optional, see ``_Manifest``
      bank_a/  features.csv edges.csv labels.csv   [masks.csv ids.csv cross.csv]
      bank_b/  accounts.xlsx payments.parquet
      bank_c/  graph.npz                   gnn-benchmark layout (``base.npz``), masks in it or not  [feature_names.txt]
      bank_d/  graph.pt                    torch.save(data.to_dict(), …) of a PyG ``Data``  [feature_names.txt]

Without a manifest every subfolder is a client, in the order of their names. A client's tables are understood as those of one
graph are (``roles``); ``parts`` joins them, and what is predicted and what becomes of columns is decided for all together
(``reading``). A client without edges or without labels has that table with its head alone (``source,target``, ``id,label``).

**Features** are matched by the names of their columns, so clients may have different ones: a client without a column has
zeros there. A table of exactly ``id,feature,value`` has one line per value that is not zero. Files without names (npz, pt) take
theirs from ``feature_names.txt``, one per line, or are called ``0``, ``1``, ….

**Labels** are matched by their text: ``1`` and ``1.0``, ``Yes`` and ``yes`` are one. Names of columns that differ in capitals
alone are one, with a remark. **masks.csv**: ``id,train|validation|test``; either every client has one or none.

**Edges between clients.** ``ids.csv`` (``id,hash``) gives a client's nodes the names by which others know them, and
``cross.csv`` (``id,hash``) lists edges from own nodes to nodes of others. The hashes are made by the clients beforehand, with
a common secret salt that never comes here; a hash is any text. An edge that only one end lists counts,
because one of the two organisations knows it; the provenance says how many there are. A hash that nobody carries, or two
carry, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from fedgraph.data.base import npz, splits
from fedgraph.data.base.files import RawFiles
from fedgraph.data.own import cross_edges, reading, torch_files
from fedgraph.data.own.columns import ReadRules
from fedgraph.data.own.labels import own_label_text
from fedgraph.data.own.parts import Part, join
from fedgraph.data.own.tables import Gathered, Table, gather_files
from fedgraph.documents import Settings, YamlSource, settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph

_MANIFEST = "federation.yaml"
_LONGEST = 80  # characters of a client's name
_MOST_NAMED = 10  # classes that the provenance numbers
_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
_WHOLE = ("graph.npz", "graph.pt")
_NAMES = "feature_names.txt"


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
    parts, between, seen = [], [], set[Path]()
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
        found = _gathered(folder, labelled)
        apart = {table.stem: table for table in found.tables if table.stem in ("ids", "cross")}
        found.tables = [table for table in found.tables if table.stem not in apart]
        roles = reading.roles_of(found, rules)
        parts.append(Part(client.name, roles, str(folder)))
        between.append(cross_edges.of_tables(folder, apart, {one: row for row, one in enumerate(roles.ids)}))
        every.tables += found.tables
        every.checksums |= {f"{folder.relative_to(path)}/{name}": digest for name, digest in found.checksums.items()}
        every.aside |= {f"{folder.name}/{name}": why for name, why in found.aside.items()}
        found.faults.refuse()
    _require_splits(parts, path)
    _require_tables(parts, rules)
    starts = np.concatenate([[0], np.cumsum([part.size for part in parts])])
    crossing, said = cross_edges.between(between, starts, names)
    roles, owner = join(parts, path, np.concatenate([crossing, crossing[:, ::-1]]))  # both ends count, whoever listed it
    roles.remarks.insert(0, said)
    many = f"own federation {path.name} of {len(parts)} client{'s' if len(parts) > 1 else ''}"
    told = reading.of_roles(roles, every, rules, "own/federation", many, labelled, (owner, tuple(names)))
    graph = told.graph
    assert isinstance(graph, Graph)
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


def _gathered(folder: Path, labelled: bool) -> Gathered:
    """What a client's folder holds; a file with everything becomes tables, too."""
    whole = [name for name in _WHOLE if (folder / name).is_file()]
    found = gather_files(folder, apart=(*_WHOLE, _NAMES))
    people = [table for table in found.tables if table.stem not in ("ids", "cross", "masks")]
    if len(whole) > 1 or (whole and people):
        listed = " and ".join([*whole, *(table.title for table in people)])
        raise DataError(f"{folder}: found {listed}; allowed: one graph.npz, one graph.pt, or tables")
    if whole:
        raw = RawFiles(folder)
        found.tables += _whole(raw, whole[0], labelled)
        found.checksums |= raw.checksums
    elif not people:
        found.faults.refuse()
        raise DataError(f"{folder}: found no table; allowed: a table of people and one of ties, graph.npz, or graph.pt")
    return found


def _whole(raw: RawFiles, kind: str, labelled: bool) -> list[Table]:
    """One file with everything, as tables; nodes are called 0 … n − 1."""
    file = str(raw.folder / kind)
    split: dict[int, str] = {}
    if kind == "graph.npz":
        adjacency, features, labels = npz.read_npz(raw.read(kind), file)
        masks = splits.read_masks(raw.read(kind), file, labels.size)
        if len(masks) > 1:
            raise DataError(f"{file}: its masks are {len(masks)} splits; allowed: one, of shape [{labels.size}]")
        for rows, part in (
            (one, part) for m in masks for one, part in ((m.train, "train"), (m.validation, "validation"), (m.test, "test"))
        ):
            split |= dict.fromkeys(rows.tolist(), part)
        arcs = sp.coo_array(adjacency)
        one, two = (side[arcs.data != 0] for side in arcs.coords)
    else:
        one, two, features, labels, split = torch_files.read(raw.read(kind), file)
    n = labels.size
    if not np.isfinite(features.data.astype(np.float64)).all():
        raise DataError(f"{file}: a feature is NaN or infinite; allowed: finite numbers")
    names = tuple(str(i) for i in range(features.shape[1]))
    if (raw.folder / _NAMES).is_file():
        names = _read_names(raw, features.shape[1])
    if labels.dtype.kind not in "iubUS":
        raise DataError(f"{file}: labels have type {labels.dtype}; allowed: whole numbers, -1 where unknown, or text")
    if labels.dtype.kind == "i" and labels.size and labels.min() < -1:
        raise DataError(f"{file}: the least label is {labels.min()}; allowed: whole numbers, -1 where unknown")
    ids = np.arange(n).astype(str)
    people = pd.DataFrame({"id": ids, "label": [own_label_text(value) or "" for value in labels.tolist()]}, dtype=object)
    ties = pd.DataFrame({"source": ids[one], "target": ids[two]}, dtype=object)
    found = [
        Table(file, people if labelled else people[["id"]], role="nodes", id="id", matrix=sp.csr_array(features), called=names)
    ]
    found.append(Table(file, ties, role="edges", ends=("source", "target")))
    if split:
        parts = pd.DataFrame({"id": ids[list(split)], "part": list(split.values())}, dtype=object)
        found.append(Table(f"{file}/masks", parts))
    return found


def _read_names(raw: RawFiles, count: int) -> tuple[str, ...]:
    """Names of columns, one a line. ``DataError`` where they are not that many, not different, or one is empty."""
    file = raw.folder / _NAMES
    try:
        found = [line.strip() for line in raw.read(_NAMES).decode("utf-8-sig").split("\n")]
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text ({error.reason} at byte {error.start}); allowed: UTF-8") from error
    while found and not found[-1]:
        found.pop()
    empty = next((number for number, one in enumerate(found, start=1) if not one), None)
    if empty is not None:
        raise DataError(f"{file}:{empty}: an empty line; allowed: {count} different names, one per line")
    if len(found) != count or len(set(found)) != len(found):
        lines = f"{len(found)} lines, {len(set(found))} different"
        raise DataError(f"{file}: {lines}; allowed: {count} different names, one per line")
    return tuple(found)


def _require_splits(parts: Sequence[Part], path: Path) -> None:
    brought = [bool(part.roles.split) for part in parts]
    if any(brought) and not all(brought):
        name = parts[brought.index(False)].name
        raise DataError(f"{path}: client {name!r} has no masks but others have; allowed: all or none")


def _require_tables(parts: Sequence[Part], rules: ReadRules) -> None:
    """``DataError`` where bounds or drop name a column of a file of numbers, which are as they are."""
    for part in parts:
        for table in (holder.table for holder in part.roles.holders):
            for key in (*rules.bounds, *rules.drop):
                if key in table.called:
                    raise DataError(
                        f"{table.where}: bounds and drop change columns of tables with a line per node (id, a column for "
                        f"each), and {key!r} is a column of this file, too; allowed: such a table, or no bounds and drop for it"
                    )
