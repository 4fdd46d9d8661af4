"""Your own federation: one folder (or file) per client, columns matched by name, nothing unpickled.

    my_federation/
      federation.yaml                      optional, see ``Manifest``
      bank_a/  features.csv edges.csv labels.csv   [masks.csv ids.csv cross.csv]
      bank_b/  features.parquet edges.parquet labels.parquet
      bank_c/  graph.npz                   gnn-benchmark layout (``_npz``)  [feature_names.txt]
      bank_d/  graph.pt                    torch.save(data.to_dict(), …) of a PyG ``Data``  [feature_names.txt]

Without a manifest every subfolder is a client, in the order of their names. A client without edges or without labels has that
file with its head alone (``source,target``, ``id,label``).

**Features** are matched by the names of their columns, so clients may have different ones: a client without a column has
zeros there. ``features.csv`` starts with a header ``id,<name>,<name>,…``, or is sparse: exactly ``id,feature,value``, one
line per value that is not zero. Files without names (npz, pt) take theirs from ``feature_names.txt``, one per line, or are
called ``0``, ``1``, ….

**Labels** are matched by their text. **masks.csv**: ``id,train|validation|test``; either every client has one or none.

**Edges between clients.** ``ids.csv`` (``id,hash``) gives a client's nodes the names by which others know them, and
``cross.csv`` (``id,hash``) lists edges from own nodes to nodes of others. The hashes are made by the clients beforehand, with
a common secret salt that never comes here; a hash is any text without a comma. An edge that only one end lists counts,
because one of the two organisations knows it; the provenance says how many there are. A hash that nobody carries, or two
carry, is an error.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.data import _federated, _masks, _npz, _own_tables, _tables
from fedgraph.data._files import RawFiles
from fedgraph.data._structure import from_edges, undirected
from fedgraph.errors import DataError, ScenarioError
from fedgraph.settings import Settings
from fedgraph.source import Source
from fedgraph.types import Graph, Masks, Provenance
from fedgraph.validation import validate

MANIFEST = "federation.yaml"
NOTHING = {  # file → how a client says that it has none, so that a file that was forgotten is not taken for that
    "edges": "allowed: a line per edge; of a client without edges, a table with the head source,target and no line",
    "labels": "allowed: a line per labelled node; of a client without labels, a table with the head id,label and no line",
}
PRINTABLE = r"^[^\x00-\x1f\x7f]*$"


class Client(Settings):
    """One client of the manifest."""

    name: str = Field(min_length=1, max_length=80, pattern=PRINTABLE, description="its name in tables")
    folder: str = Field("", description="its folder, relative to the federation; default its name")


class Manifest(Settings):
    """``federation.yaml``."""

    clients: tuple[Client, ...] = Field((), description="the clients in order; none: every subfolder")
    classes: tuple[str, ...] = Field((), description="the public list of classes; none: the labels that occur")


@dataclass(frozen=True, eq=False)
class Given:
    """What one client gave. rows: node id → row. split: row → part, where it brought masks. hashes: hash → row.

    cross: (row, hash) of edges that leave it. notes: edges that were cleaned away, in words.
    """

    part: _federated.Part
    rows: dict[str, int]
    split: dict[int, str] = field(default_factory=dict)
    hashes: dict[str, int] = field(default_factory=dict)
    cross: tuple[tuple[int, str], ...] = ()


def load(path: Path) -> Graph:
    """All clients of the folder as one graph whose nodes know their owner.

    Raises ``DataError`` in one line that names file, line, what was found and what is allowed.
    """
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/federation needs one with a folder per client")
    raws: list[RawFiles] = [RawFiles(path)]
    manifest = _manifest(raws[0])
    clients = manifest.clients or tuple(Client(name=p.name, folder=p.name) for p in _folders(path))
    if not clients:
        raise DataError(f"{path}: no client; allowed: one folder per client, or a {MANIFEST} that names them")
    names = [c.name for c in clients]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"{path / MANIFEST}: client {twice!r} is named twice; allowed: each once")
    given = []
    for client in clients:
        folder = path / (client.folder or client.name)
        if not folder.resolve().is_relative_to(path.resolve()):
            where = path / MANIFEST if manifest.clients else path
            raise DataError(f"{where}: folder {client.folder!r} of client {client.name!r} lies outside {path}")
        if folder.resolve() in (raw.folder.resolve() for raw in raws[1:]):
            raise DataError(f"{path / MANIFEST}: folder {folder.name!r} belongs to two clients; allowed: one client each")
        raws.append(RawFiles(folder))
        given.append(_client(raws[-1], client.name, manifest.classes))
    graph = _federated.joined("own/federation", [g.part for g in given], Provenance("own", ""))
    starts = np.concatenate([[0], np.cumsum([len(g.rows) for g in given])])
    graph, crossing = _with_cross_edges(graph, given, starts, path, names)
    checksums = {f"{raw.folder.relative_to(path)}/{name}": sha for raw in raws for name, sha in raw.checksums.items()}
    many = f"{len(given)} client{'s' if len(given) > 1 else ''}"
    detail = (
        f"own federation {path.name}: {many}, {graph.num_nodes} nodes, {graph.num_edges} edges, "
        f"{crossing}, {graph.num_features} features, {graph.num_classes} classes"
    )
    return replace(graph, masks=_joined_split(given, starts, path, names), provenance=Provenance("own", detail, checksums))


def _folders(path: Path) -> list[Path]:
    """Every subfolder that is not hidden (``.git``, ``__MACOSX``). ``DataError`` for a link that leads nowhere."""
    found = sorted(p for p in path.iterdir() if not p.name.startswith((".", "__")))
    for one in found:
        if one.is_symlink() and not one.exists():
            raise DataError(f"{one}: a link that leads nowhere; allowed: a folder per client")
    return [p for p in found if p.is_dir()]


def _manifest(raw: RawFiles) -> Manifest:
    file = raw.folder / MANIFEST
    if not file.is_file():
        return Manifest()
    raw.read(MANIFEST)  # its checksum goes into the provenance
    try:
        source = Source.read(file)
        return validate(Manifest, {} if source.data is None else source.data, source, ())
    except ScenarioError as error:
        raise DataError(str(error)) from error


def _client(raw: RawFiles, name: str, classes: Sequence[str]) -> Given:
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
    given = _whole(raw, name, kinds[0]) if kinds[0].startswith("graph") else _tabled(raw, name, kinds[0])
    unknown = sorted(set(map(str, np.unique(given.part.labels))) - {"", *classes}) if classes else []
    if unknown:
        raise DataError(f"{folder}: label {unknown[0]!r}; allowed by {MANIFEST}: {', '.join(classes)}")
    given = replace(given, part=replace(given.part, classes=tuple(classes)))
    return replace(given, split=_split(raw, given), hashes=_hashes(raw, given), cross=_cross(raw, given))


def _tabled(raw: RawFiles, name: str, kind: str) -> Given:
    """Three tables, CSV or Parquet."""
    read = _own_tables.parquet if kind.endswith("parquet") else RawFiles.read
    ending = kind.rpartition(".")[2]

    def text(stem: str) -> tuple[bytes, str]:
        file = raw.folder / f"{stem}.{ending}"
        if stem in NOTHING and not file.exists():
            raise DataError(f"{file}: there is none; {NOTHING[stem]}")
        content = read(raw, file.name)
        if stem in NOTHING and not content.strip():
            raise DataError(f"{file}: empty; {NOTHING[stem]}")
        return content, str(file)

    rows, set_rows, columns, column_names, values = _own_tables.named_features(*text("features"))
    one, two = _tables.edges(*text("edges"), rows)
    labels, classes = _tables.labels(*text("labels"), rows)
    words = np.array([*classes, ""])[labels]
    adjacency = undirected(one, two, len(rows)).adjacency
    return Given(_federated.Part(name, adjacency, set_rows, columns, column_names, words, (), values), rows)


def _whole(raw: RawFiles, name: str, kind: str) -> Given:
    """One file with everything; nodes are called 0 … n − 1."""
    file = str(raw.folder / kind)
    if kind == "graph.npz":
        adjacency, features, labels = _npz.read(raw.read(kind), file)
        split: dict[int, str] = {}
        arcs = sp.coo_array(adjacency)
        there = arcs.data != 0
        one, two = arcs.coords[0][there], arcs.coords[1][there]
    else:
        one, two, features, labels, split = _own_tables.data_object(raw.read(kind), file)
    n = labels.size
    entries = sp.coo_array(features)
    if not np.isfinite(entries.data.astype(np.float64)).all():
        raise DataError(f"{file}: a feature is NaN or infinite; allowed: finite numbers")
    names = tuple(str(i) for i in range(features.shape[1]))
    if (raw.folder / "feature_names.txt").is_file():
        names = tuple(raw.read("feature_names.txt").decode("utf-8", "replace").split("\n"))
        names = names[:-1] if names and not names[-1] else names
        if len(names) != features.shape[1] or len(set(names)) != len(names):
            raise DataError(
                f"{raw.folder / 'feature_names.txt'}: {len(names)} lines, {len(set(names))} different; "
                f"allowed: {features.shape[1]} different names, one per line"
            )
    if labels.dtype.kind not in "iubUS":
        raise DataError(f"{file}: labels have type {labels.dtype}; allowed: whole numbers, -1 where unknown, or text")
    if labels.dtype.kind == "i" and labels.size and labels.min() < -1:
        raise DataError(f"{file}: the least label is {labels.min()}; allowed: whole numbers, -1 where unknown")
    words = np.array(["" if str(v) == "-1" else str(v) for v in labels.tolist()])
    part = _federated.Part(
        name, undirected(one, two, n).adjacency, entries.coords[0], entries.coords[1].astype(np.int64), names, words, (),
        entries.data.astype(np.float32),
    )  # fmt: skip
    return Given(part, {str(i): i for i in range(n)}, split)


def _pairs(raw: RawFiles, name: str, rows: dict[str, int]) -> list[tuple[int, int, str]]:
    """(line, row, text) of a two-column CSV whose first column is an own node; a header is left out."""
    file = raw.folder / name
    if not file.is_file():
        return []
    try:
        lines = list(csv.reader(io.StringIO(raw.read(name).decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file}: not a CSV file in UTF-8: {error}") from error
    found = []
    for number, cells in enumerate(lines, start=1):
        cells = [c.strip() for c in cells]
        if not any(cells) or (number == 1 and cells[0].casefold() == "id" and "id" not in rows):
            continue
        if len(cells) != 2 or not cells[1]:
            raise DataError(f"{file}:{number}: found {cells}; allowed: two columns, a node and a text")
        if cells[0] not in rows:
            raise DataError(f"{file}:{number}: unknown node {cells[0]!r}; allowed: the {len(rows)} nodes of this client")
        found.append((number, rows[cells[0]], cells[1]))
    return found


def _split(raw: RawFiles, given: Given) -> dict[int, str]:
    found = dict(given.split)
    file = raw.folder / "masks.csv"
    if file.is_file():
        for row, part in _tables.parts(raw.read(file.name), str(file), given.rows).items():
            if found.setdefault(row, part) != part:
                raise DataError(f"{file}: a node is in {found[row]} and, by another file, in {part}; allowed: one part")
    return found


def _hashes(raw: RawFiles, given: Given) -> dict[str, int]:
    found: dict[str, int] = {}
    named: set[int] = set()
    for number, row, text in _pairs(raw, "ids.csv", given.rows):
        if text in found or row in named:
            raise DataError(f"{raw.folder / 'ids.csv'}:{number}: hash {text!r} or its node stands twice; allowed: each once")
        found[text] = row
        named.add(row)
    return found


def _cross(raw: RawFiles, given: Given) -> tuple[tuple[int, str], ...]:
    return tuple((row, text) for _, row, text in _pairs(raw, "cross.csv", given.rows))


def _with_cross_edges(
    graph: Graph, given: Sequence[Given], starts: np.ndarray, path: Path, names: Sequence[str]
) -> tuple[Graph, str]:
    """The graph with the edges between clients, and a phrase that counts them."""
    where: dict[str, int] = {}
    for client, own in enumerate(given):
        for text, row in own.hashes.items():
            if text in where:
                other = names[int(np.searchsorted(starts, where[text], side="right")) - 1]
                raise DataError(f"{path}: hash {text!r} belongs to nodes of {other!r} and of {names[client]!r}; allowed: one")
            where[text] = int(starts[client]) + row
    listed: dict[tuple[int, int], int] = {}
    for client, own in enumerate(given):
        for row, text in own.cross:
            if text not in where:
                raise DataError(f"{path / names[client]}/cross.csv: hash {text!r} is in no client's ids.csv")
            one, two = sorted((int(starts[client]) + row, where[text]))
            if starts[client] <= where[text] < starts[client + 1]:
                raise DataError(f"{path / names[client]}/cross.csv: hash {text!r} is a node of this very client")
            listed[one, two] = listed.get((one, two), 0) + 1
    if not listed:
        return graph, "none between clients"
    upper = sp.triu(graph.adjacency, k=1, format="coo")
    inner = upper.coords[0].astype(np.int64) * graph.num_nodes + upper.coords[1]
    cross = np.array([one * graph.num_nodes + two for one, two in listed], dtype=np.int64)
    adjacency = from_edges(np.union1d(inner, cross), graph.num_nodes)
    alone = sum(count == 1 for count in listed.values())
    return replace(graph, adjacency=adjacency), f"{len(listed)} of them between clients ({alone} listed at one end only)"


def _joined_split(given: Sequence[Given], starts: np.ndarray, path: Path, names: Sequence[str]) -> tuple[Masks, ...]:
    brought = [bool(own.split) for own in given]
    if not any(brought):
        return ()
    if not all(brought):
        raise DataError(f"{path}: client {names[brought.index(False)]!r} has no masks but others have; allowed: all or none")
    every = [(int(start) + row, part) for own, start in zip(given, starts, strict=False) for row, part in own.split.items()]
    return _masks.of_parts(dict(every), int(starts[-1]), str(path))
