"""Your own federation: one folder (or file) per client, columns matched by name, nothing unpickled.

    my_federation/
      federation.yaml                      optional, see ``_Manifest``
      bank_a/  features.csv edges.csv labels.csv   [masks.csv ids.csv cross.csv]
      bank_b/  features.parquet edges.parquet labels.parquet
      bank_c/  graph.npz                   gnn-benchmark layout (``base.npz``), masks in it or not  [feature_names.txt]
      bank_d/  graph.pt                    torch.save(data.to_dict(), …) of a PyG ``Data``  [feature_names.txt]

Without a manifest every subfolder is a client, in the order of their names. A client without edges or without labels has that
file with its head alone (``source,target``, ``id,label``).

**Features** are matched by the names of their columns, so clients may have different ones: a client without a column has
zeros there. ``features.csv`` starts with a header ``id,<name>,<name>,…``, or is sparse: exactly ``id,feature,value``, one
line per value that is not zero. Files without names (npz, pt) take theirs from ``feature_names.txt``, one per line, or are
called ``0``, ``1``, ….

Texts, empty cells, dates and bounds are read as in ``own/csv`` (``columns``), by one rule for all clients: a text that one
client has is a column for all.

**Labels** are matched by their text. Names of columns, and labels, that differ in capitals alone are one, with a remark.
**masks.csv**: ``id,train|validation|test``; either every client has one or none.

**Edges between clients.** ``ids.csv`` (``id,hash``) gives a client's nodes the names by which others know them, and
``cross.csv`` (``id,hash``) lists edges from own nodes to nodes of others. The hashes are made by the clients beforehand, with
a common secret salt that never comes here; a hash is any text without a comma. An edge that only one end lists counts,
because one of the two organisations knows it; the provenance says how many there are. A hash that nobody carries, or two
carry, is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.data.base import csv_tables, npz, owner_parts, splits
from fedgraph.data.base.adjacencies import CleanedAdjacency, describe_adjacency_cleaning, undirected_adjacency
from fedgraph.data.base.files import RawFiles
from fedgraph.data.own import client_tables, cross_edges
from fedgraph.data.own.client_tables import ClientTable
from fedgraph.data.own.columns import OwnTableRules, notice_edge_columns, own_column_scales
from fedgraph.data.own.labels import describe_label_classes, own_label_text
from fedgraph.documents import Settings, YamlSource, settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, GraphMasks, GraphProvenance

_MANIFEST = "federation.yaml"
_LONGEST = 80  # characters of a client's name
_MOST_NAMED = 10  # classes that the provenance numbers
_NOTHING = {  # file → how a client says that it has none, so that a file that was forgotten is not taken for that
    "edges": "allowed: a line per edge; of a client without edges, a table with the head source,target and no line",
    "labels": "allowed: a line per labelled node; of a client without labels, a table with the head id,label and no line",
}
_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"


class _Client(Settings):
    """One client of the manifest."""

    name: str = Field(min_length=1, max_length=_LONGEST, pattern=_PRINTABLE, description="its name in tables")
    folder: str = Field("", description="its folder, relative to the federation; default its name")


class _Manifest(Settings):
    """``federation.yaml``."""

    clients: tuple[_Client, ...] = Field((), description="the clients in order; none: every subfolder")
    classes: tuple[str, ...] = Field((), description="the public list of classes; none: the labels that occur")


@dataclass(frozen=True, eq=False)
class _Given(ClientTable):
    """What one client gave.

    Attributes:
        cleaned: its edges, and what was cleaned away.
        split: row → part, where it brought masks.
        between: its side of the edges between clients.
        more_columns: of its edges, which nobody reads.
    """

    rows: dict[str, int]
    cleaned: CleanedAdjacency
    split: dict[int, str] = field(default_factory=dict)
    between: cross_edges.CrossEdges = cross_edges.NO_CROSS_EDGES
    more_columns: int = 0


def load(path: Path, rules: OwnTableRules, labelled: bool = True) -> Graph:
    """All clients of a folder as one graph whose nodes know their owner; a node is called ``client/id``.

    Args:
        rules: what becomes of columns, and whether features come from edges.
        labelled: whether labels are read; without, nobody has one, and tables of labels may be missing.

    Raises:
        DataError: the line names file, line, what was found and what is allowed.
    """
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/federation needs one with a folder per client")
    raws: list[RawFiles] = [RawFiles(path)]
    manifest = _manifest(raws[0])
    clients = manifest.clients or tuple(_unnamed(p) for p in _folders(path))
    if not clients:
        raise DataError(f"{path}: no client; allowed: one folder per client, or a {_MANIFEST} that names them")
    names = [c.name for c in clients]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"{path / _MANIFEST}: client {twice!r} is named twice; allowed: each once")
    given = []
    for client in clients:
        folder = path / (client.folder or client.name)
        if not folder.resolve().is_relative_to(path.resolve()):
            where = path / _MANIFEST if manifest.clients else path
            raise DataError(f"{where}: folder {client.folder!r} of client {client.name!r} lies outside {path}")
        if folder.resolve() in (raw.folder.resolve() for raw in raws[1:]):
            raise DataError(f"{path / _MANIFEST}: folder {folder.name!r} belongs to two clients; allowed: one client each")
        raws.append(RawFiles(folder))
        given.append(_client(raws[-1], client.name, manifest.classes if labelled else (), labelled))
    given, alike = (given, list[str]()) if manifest.classes else _spelt_alike(given)
    parts, bounded, remarks = client_tables.join_client_tables(given, rules, str(path))
    remarks = [*alike, *remarks]
    given = [replace(g, part=part) for g, part in zip(given, parts, strict=True)]
    graph = owner_parts.join_owner_parts("own/federation", parts, GraphProvenance("own", ""), labelled)
    starts = np.concatenate([[0], np.cumsum([len(g.rows) for g in given])])
    graph, crossing = cross_edges.add_cross_edges(graph, [g.between for g in given], starts, names)
    columns = tuple(sorted({name for g in given for name in g.part.column_names}))
    from_edges, seen = notice_edge_columns(rules, graph.features, graph.adjacency, columns)
    checksums = {f"{raw.folder.relative_to(path)}/{name}": sha for raw in raws for name, sha in raw.checksums.items()}
    many = f"{len(given)} client{'s' if len(given) > 1 else ''}"
    detail = (
        f"own federation {path.name}: {many}, {graph.num_nodes} nodes, {graph.num_edges} edges, "
        f"{crossing}, {graph.num_features} features, {describe_label_classes(graph.num_classes)}"
        f"{_numbered(owner_parts.owner_part_classes(parts))}{_remarks(given, graph)}"
        f"{''.join(f'; {one}' for one in remarks)}"
    )
    split = _joined_split(given, starts, path, names)
    provenance = GraphProvenance("own", "; ".join((detail, *seen)), checksums)
    scales = own_column_scales(graph.features, columns, bounded)
    of_clients = (sorted(g.rows, key=g.rows.__getitem__) for g in given)
    ids = tuple(f"{name}/{node}" for name, nodes in zip(names, of_clients, strict=True) for node in nodes)
    called = replace(graph.names, ids=ids)
    return replace(graph, names=called, masks=split, provenance=provenance, features_from_edges=from_edges, columns=scales)


def federation_feature_tables(path: Path) -> list[csv_tables.CsvFeatures]:
    """The clients' tables with a line per node, for a draft.

    Raises:
        DataError: a table or the manifest cannot be read.
    """
    found = []
    for client in _manifest(RawFiles(path)).clients or tuple(_unnamed(p) for p in _folders(path)):
        raw = RawFiles(path / (client.folder or client.name))
        for name, read in (("features.csv", RawFiles.read), ("features.parquet", client_tables.read_client_parquet_table)):
            if (raw.folder / name).is_file():
                one = client_tables.read_client_table(read(raw, name), str(raw.folder / name))
                found += [one] if isinstance(one, csv_tables.CsvFeatures) else []
    return found


def _spelt_alike(given: list[_Given]) -> tuple[list[_Given], list[str]]:
    """(the clients with one spelling of each column and of each label, remarks): ``age`` and ``Age`` of two owners are one."""
    remarks: list[str] = []
    of_columns = _spellings((name for one in given for name in _columns_of(one)), "columns", remarks)
    of_labels = _spellings((text for one in given for text in one.part.labels.tolist() if text), "labels", remarks)
    found = []
    for one in given:
        names = _columns_of(one)
        if len({of_columns[name] for name in names}) == len(names):  # else both are this client's own
            renamed = tuple(of_columns[name] for name in names)
            texts = one.texts if one.texts is None else replace(one.texts, names=renamed)
            one = replace(one, texts=texts, part=replace(one.part, column_names=renamed if texts is None else ()))
        labels = np.array([of_labels.get(text, text) for text in one.part.labels.tolist()], dtype=str)
        found.append(replace(one, part=replace(one.part, labels=labels)))
    return found, remarks


def _columns_of(one: ClientTable) -> tuple[str, ...]:
    return one.part.column_names if one.texts is None else one.texts.names


def _spellings(texts: Iterable[str], what: str, remarks: list[str]) -> dict[str, str]:
    """Each text → the first one that differs from it in capitals alone."""
    first: dict[str, str] = {}
    found = {text: first.setdefault(text.casefold(), text) for text in texts}
    if several := [(text, one) for text, one in found.items() if text != one]:
        listed = ", ".join(f"{one!r} and {text!r}" for text, one in several[:3])
        remarks.append(f"{what} that differ in capitals alone are one: {listed}")
    return found


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


def _client(raw: RawFiles, name: str, classes: Sequence[str], labelled: bool) -> _Given:
    folder = raw.folder
    if not folder.is_dir():
        raise DataError(f"{folder}: not a folder; client {name!r} of the federation needs one")
    kinds = [k for k in ("graph.npz", "graph.pt", "features.parquet", "features.csv") if (folder / k).is_file()]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise DataError(
            f"{folder}: found {found}; allowed: exactly one of graph.npz, graph.pt, features.csv, features.parquet "
            "(the last two with edges and labels beside them)"
        )
    given = _whole(raw, name, kinds[0]) if kinds[0].startswith("graph") else _tabled(raw, name, kinds[0], labelled)
    given = given if labelled else replace(given, part=replace(given.part, labels=np.full(len(given.rows), "")))
    unknown = sorted(set(map(str, np.unique(given.part.labels))) - {"", *classes}) if classes else []
    if unknown:
        raise DataError(f"{folder}: label {unknown[0]!r}; allowed by {_MANIFEST}: {', '.join(classes)}")
    given = replace(given, part=replace(given.part, classes=tuple(classes)))
    split = dict(given.split)
    file = raw.folder / "masks.csv"
    if file.is_file():
        for row, part in csv_tables.read_csv_split(raw.read(file.name), str(file), given.rows).items():
            if split.setdefault(row, part) != part:
                raise DataError(f"{file}: a node is in {split[row]} and, by another file, in {part}; allowed: one part")
    return replace(given, split=split, between=cross_edges.read_cross_edges(raw, given.rows))


def _tabled(raw: RawFiles, name: str, kind: str, labelled: bool) -> _Given:
    read = client_tables.read_client_parquet_table if kind.endswith("parquet") else RawFiles.read
    ending = kind.rpartition(".")[2]

    def text(stem: str) -> tuple[bytes, str]:
        file = raw.folder / f"{stem}.{ending}"
        if stem in _NOTHING and not file.exists():
            raise DataError(f"{file}: there is none; {_NOTHING[stem]}")
        content = read(raw, file.name)
        if stem in _NOTHING and not content.strip():
            raise DataError(f"{file}: empty; {_NOTHING[stem]}")
        return content, str(file)

    features = client_tables.read_client_table(*text("features"))
    rows = features.rows
    one, two, more = csv_tables.read_csv_edges(*text("edges"), rows)
    told = csv_tables.read_csv_labels(*text("labels"), rows) if labelled else [None] * len(rows)
    words = np.array([own_label_text(word) or "" for word in told])
    cleaned = undirected_adjacency(one, two, len(rows))
    nothing = np.zeros(0, np.int64)
    part = owner_parts.OwnerPart(name, cleaned.adjacency, nothing, nothing, (), words)
    texts = None
    if isinstance(features, csv_tables.CsvFeatures):
        texts = features
    else:
        part = replace(part, rows=features.set_rows, columns=features.columns, values=features.values)
        part = replace(part, column_names=features.names)
    return _Given(str(raw.folder / kind), part, texts, rows, cleaned, more_columns=more)


def _whole(raw: RawFiles, name: str, kind: str) -> _Given:
    """One file with everything; nodes are called 0 … n − 1."""
    file = str(raw.folder / kind)
    if kind == "graph.npz":
        adjacency, features, labels = npz.read_npz(raw.read(kind), file)
        # Row → part, of the masks that an ``.npz`` may hold; ``DataError`` where it holds several splits.
        num_nodes = labels.size
        masks = splits.read_masks(raw.read(kind), file, num_nodes)
        if len(masks) > 1:
            raise DataError(f"{file}: its masks are {len(masks)} splits; allowed: one, of shape [{num_nodes}]")
        split = {
            int(row): part
            for one in masks
            for rows, part in ((one.train, "train"), (one.validation, "validation"), (one.test, "test"))
            for row in rows
        }
        arcs = sp.coo_array(adjacency)
        there = arcs.data != 0
        one, two = arcs.coords[0][there], arcs.coords[1][there]
    else:
        one, two, features, labels, split = client_tables.read_client_pyg_table(raw.read(kind), file)
    n = labels.size
    entries = sp.coo_array(features)
    if not np.isfinite(entries.data.astype(np.float64)).all():
        raise DataError(f"{file}: a feature is NaN or infinite; allowed: finite numbers")
    names = tuple(str(i) for i in range(features.shape[1]))
    if (raw.folder / "feature_names.txt").is_file():
        names = client_tables.read_client_table_names(raw, "feature_names.txt", features.shape[1])
    if labels.dtype.kind not in "iubUS":
        raise DataError(f"{file}: labels have type {labels.dtype}; allowed: whole numbers, -1 where unknown, or text")
    if labels.dtype.kind == "i" and labels.size and labels.min() < -1:
        raise DataError(f"{file}: the least label is {labels.min()}; allowed: whole numbers, -1 where unknown")
    words = np.array([own_label_text(value) or "" for value in labels.tolist()])
    cleaned = undirected_adjacency(one, two, n)
    part = owner_parts.OwnerPart(
        name, cleaned.adjacency, entries.coords[0], entries.coords[1].astype(np.int64), names, words, (),
        entries.data.astype(np.float32),
    )  # fmt: skip
    return _Given(file, part, None, {str(i): i for i in range(n)}, cleaned, split)


def _numbered(names: Sequence[str]) -> str:
    if not names:
        return ""
    told = [f"{number}: {name if name.isprintable() else repr(name)}" for number, name in enumerate(names[:_MOST_NAMED])]
    return f" ({', '.join(told)}{', …' if len(names) > _MOST_NAMED else ''})"


def _remarks(given: Sequence[_Given], graph: Graph) -> str:
    missing = int((graph.labels < 0).sum()) if graph.num_classes else 0
    told = [f"{missing} of {graph.num_nodes} nodes have no label (None, NaN, −1, empty)"] if missing else []
    told += ["further columns of edges (weights, times) are not read"] if any(g.more_columns for g in given) else []
    return "".join(f"; {one}" for one in (*told, *describe_adjacency_cleaning([g.cleaned for g in given])))


def _joined_split(given: Sequence[_Given], starts: np.ndarray, path: Path, names: Sequence[str]) -> tuple[GraphMasks, ...]:
    brought = [bool(own.split) for own in given]
    if not any(brought):
        return ()
    if not all(brought):
        raise DataError(f"{path}: client {names[brought.index(False)]!r} has no masks but others have; allowed: all or none")
    every = [(int(start) + row, part) for own, start in zip(given, starts, strict=False) for row, part in own.split.items()]
    return splits.of_parts(dict(every), int(starts[-1]), str(path))
