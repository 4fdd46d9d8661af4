"""Your own collection of small graphs: what lies in the folder says how it is read. Nothing is ever unpickled.

    tables      nodes.csv (graph, id, …), edges.csv (graph, source, target), labels.csv (graph, label)
    pairs       NAME.nodes.csv (id, …) and NAME.edges.csv (source, target) for each graph, and labels.csv;
                or a folder NAME with nodes.csv and edges.csv for each
    GraphML     *.graphml, one graph in a file or several; labels.csv, or <data> of the graph whose key is called label
    TU          NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt [NAME_node_labels.txt, NAME_node_attributes.txt]
    owners      a folder with one folder per owner, each of them one of these; or a column owner in labels.csv

A graph without a line in labels.csv, or with an empty label, is left out, but where each graph is one row: there its label is
private, and so is whether it has one. Features are the columns of nodes.csv; without any,
tasks take the degrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fedgraph.data import tu
from fedgraph.data.base import csv_tables
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.data.own import graphml
from fedgraph.data.own.collection import OwnCollectionGraph, join_own_collection, label_own_collection
from fedgraph.data.own.columns import OwnTableRules
from fedgraph.errors import DataError
from fedgraph.types import GraphCollection

_NODES, EDGES, LABELS = "nodes.csv", "edges.csv", "labels.csv"
_INDICATOR = "_graph_indicator.txt"
_OWNER = "owner"  # a column of the labels
_KINDS = (
    f"allowed: {_NODES}, {EDGES} and {LABELS}; NAME.{_NODES} and NAME.{EDGES} for each graph; *.graphml; NAME{_INDICATOR} and "
    "its like; or a folder of these for each owner"
)


@dataclass(eq=False)
class GraphFolder:
    """What was read so far.

    Attributes:
        unused: what the files hold and no method reads.
        checksums: file name → SHA-256.
        labels: columns that could be predicted.
        faults: of all files; where there are some, only what is sound was read.
        lacking: whether graphs could not be read at all.
    """

    graphs: list[OwnCollectionGraph] = field(default_factory=list)
    unused: dict[str, None] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    labels: dict[str, None] = field(default_factory=dict)
    faults: DataFileFaults = field(default_factory=DataFileFaults)
    lacking: bool = False


def is_graph_folder(folder: Path) -> bool:
    """Whether ``own/graphs`` would read a folder.

    A folder with ``features.csv`` is one graph, and folders of these are a federation.
    """
    return folder.is_dir() and (_kind(folder) != "" or any(map(_kind, _folders(folder))))


def load(path: Path, rules: OwnTableRules, label: str, *, unlabelled: bool = False) -> GraphCollection:
    """The collection in a folder.

    Args:
        label: the column of labels.csv that is predicted; "": the first.
        unlabelled: whether graphs without a label stay, with label −1.

    Raises:
        DataError: all faults of all files, each with file, line, what was found and what is allowed.
    """
    found = read(path, label)
    if not found.graphs:
        found.faults.refuse()
    given = join_own_collection(found.graphs, rules, str(path), tuple(found.unused), found.checksums, found.faults)
    title = f"own graphs {path.resolve().name}"
    return label_own_collection(f"own/{path.resolve().stem}", title, given, rules, str(path), unlabelled=unlabelled)


def read(path: Path, label: str = "") -> GraphFolder:
    """What lies in a folder, before anything is decided about columns.

    Args:
        label: as for ``load``.

    Raises:
        DataError: there is no graph, or the layout is wrong. Faults of lines are noted in the result and not raised.
    """
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/graphs needs one. {_KINDS}")
    found = GraphFolder()
    if _kind(path):
        _read(path, "", label, found, "")
    else:
        owners = [one for one in _folders(path) if _kind(one)]
        if not owners:
            raise DataError(f"{path}: no graph was found; {_KINDS}")
        if strange := [one.name for one in _folders(path) if one not in owners]:
            raise DataError(f"{path / strange[0]}: no graph was found; {_KINDS}")
        for one in owners:
            _read(one, one.name, label, found, f"{one.name}/")
    return found


def _kind(folder: Path) -> str:
    if (folder / "features.csv").exists():
        return ""
    if (folder / _NODES).exists():
        return "tables"
    if any(folder.glob("*.graphml")):
        return "graphml"
    if any(folder.glob(f"*{_INDICATOR}")):
        return "tu"
    inside = (folder / LABELS).exists() and any((one / _NODES).exists() for one in _folders(folder))
    return "pairs" if inside or any(folder.glob(f"*.{_NODES}")) else ""


def _folders(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith((".", "__")))


def _read(folder: Path, owner: str, label: str, found: GraphFolder, prefix: str) -> None:
    raw = RawFiles(folder)
    kind = _kind(folder)
    readers = {"tables": _of_tables, "pairs": _of_pairs, "graphml": _of_graphml, "tu": _of_tu}
    graphs: list[OwnCollectionGraph] = []
    with found.faults.gathering():
        graphs = list(readers[kind](raw, found))
    found.lacking |= not graphs
    if (folder / LABELS).exists():
        with found.faults.gathering():
            graphs = _labelled(raw, graphs, label, found)
    elif kind in ("tables", "pairs"):
        raise DataError(
            f"{folder}: {LABELS} is missing; allowed: a table with the columns graph, label (a folder with {_NODES} is a "
            "collection of graphs; for one graph call that file features.csv)"
        )
    found.graphs += [replace(graph, owner=owner or graph.owner, name=prefix + graph.name) for graph in graphs]
    found.checksums |= {prefix + name: digest for name, digest in raw.checksums.items()}


def _labelled(raw: RawFiles, graphs: Sequence[OwnCollectionGraph], label: str, found: GraphFolder) -> list[OwnCollectionGraph]:
    file = str(raw.folder / LABELS)
    head, lines = csv_tables.read_headed_csv(raw.read(LABELS), file, ("graph",), found.faults)
    others = [name for name in head if name not in ("graph", _OWNER)]
    if not others or (label and label not in others):
        raise DataError(f"{file}:1: there is no column {label or 'label'!r}; found: {', '.join(head)}")
    found.labels |= dict.fromkeys(others)
    of_graph, of_label = head.index("graph"), head.index(label or others[0])
    found.unused |= {f"column {name!r} of {LABELS}": None for name in others if name != (label or others[0])}
    known = {graph.name: graph for graph in graphs}
    said: dict[str, list[str]] = {}
    for number, cells in _as_wide(lines, head):
        name = cells[of_graph]
        if name not in known and not found.lacking:
            found.faults.note(f"{file}:{number}", f"graph {name!r} has no node; allowed: the {len(known)} graphs here")
        elif name in said:
            found.faults.note(f"{file}:{number}", f"graph {name!r} has a second label; allowed: one")
        said[name] = cells
    place = head.index(_OWNER) if _OWNER in head else None
    labelled = []
    for graph in graphs:
        if (own := said.get(graph.name)) is not None:
            graph = replace(graph, label=own[of_label], owner="" if place is None else own[place])
        labelled.append(graph)
    return labelled


def _of_tables(raw: RawFiles, found: GraphFolder) -> Iterator[OwnCollectionGraph]:
    file, other = str(raw.folder / _NODES), str(raw.folder / EDGES)
    head, lines = csv_tables.read_headed_csv(raw.read(_NODES), file, ("graph", "id"), found.faults)
    of_graph, of_id = head.index("graph"), head.index("id")
    kept = [place for place in range(len(head)) if place not in (of_graph, of_id)]
    rows: dict[str, dict[str, int]] = {}
    cells_of: dict[str, list[list[str]]] = {}
    sound: dict[str, list[tuple[str, int]]] = {}  # graph → its nodes, each with its line
    for number, cells in lines:
        graph, node = (cells[place] if place < len(cells) else "" for place in (of_graph, of_id))
        own = rows.setdefault(graph, {})
        if len(cells) == len(head) and not (graph and node):
            found.faults.note(f"{file}:{number}", "an empty graph or id; allowed: any text")
        elif node in own:
            found.faults.note(f"{file}:{number}", f"node {node!r} of graph {graph!r} appears a second time; allowed: once")
        elif len(cells) == len(head):
            cells_of.setdefault(graph, []).append([cells[place] for place in kept])
            sound.setdefault(graph, []).append((node, number))
        own.setdefault(node, len(own))
    if not rows:
        raise DataError(f"{file}: a header but no nodes; allowed: one line per node")
    if not (raw.folder / EDGES).exists():
        raise DataError(f"{raw.folder}: {EDGES} is missing; allowed: a table with the columns graph, source, target")
    ends = _edges_of(raw, other, rows, found)
    columns = tuple(head[place] for place in kept)
    for graph, there in sound.items():
        nodes, at = zip(*there, strict=True)
        yield OwnCollectionGraph(graph, columns, nodes, cells_of[graph], file, at, _pairs(ends.get(graph, [])))


def _edges_of(
    raw: RawFiles, file: str, rows: dict[str, dict[str, int]], found: GraphFolder
) -> dict[str, list[tuple[int, int]]]:
    head, lines = csv_tables.read_headed_csv(raw.read(EDGES), file, ("graph", "source", "target"), found.faults)
    places = [head.index(name) for name in ("graph", "source", "target")]
    found.unused |= {f"column {name!r} of {EDGES}": None for name in head if head.index(name) not in places}
    ends: dict[str, list[tuple[int, int]]] = {}
    for number, cells in _as_wide(lines, head):
        graph, one, two = (cells[place] for place in places)
        own = rows.get(graph)
        if own is None:
            found.faults.note(f"{file}:{number}", f"unknown graph {graph!r}; allowed: the {len(rows)} graphs of {_NODES}")
            continue
        for node in sorted({one, two} - own.keys()):
            found.faults.note(f"{file}:{number}", f"node {node!r} is not in graph {graph!r}; allowed: its {len(own)} nodes")
        ends.setdefault(graph, []).append((own.get(one, 0), own.get(two, 0)))
    return ends


def _as_wide(lines: Sequence[tuple[int, list[str]]], head: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The lines that have a cell for each column; of the others it was noted."""
    return [line for line in lines if len(line[1]) == len(head)]


def _of_pairs(raw: RawFiles, found: GraphFolder) -> Iterator[OwnCollectionGraph]:
    given = {file.name.removesuffix(f".{_NODES}"): file.name for file in sorted(raw.folder.glob(f"*.{_NODES}"))}
    given |= {one.name: f"{one.name}/{_NODES}" for one in _folders(raw.folder) if (one / _NODES).exists()}
    for name, nodes in given.items():
        edges = nodes.removesuffix(_NODES) + EDGES
        if not (raw.folder / edges).exists():
            raise DataError(f"{raw.folder / edges}: missing; of a graph without edges it is the header source,target alone")
        file, ends = str(raw.folder / nodes), np.zeros((0, 2), dtype=np.int64)
        table, more = None, 0
        with found.faults.gathering():
            table = csv_tables.read_csv_features(raw.read(nodes), file, found.faults)
            one, two, more = csv_tables.read_csv_edges(raw.read(edges), str(raw.folder / edges), table.rows)
            ends = np.stack([one, two], axis=1)
        if table is None:
            found.lacking = True
            continue
        found.unused |= {"further columns of edges (weights, times)": None} if more else {}
        columns = table.names or tuple(f"column {place + 2}" for place in range(len((table.cells or [[]])[0])))
        yield OwnCollectionGraph(name, columns, tuple(table.ids), table.cells, file, table.lines, ends)


def _of_graphml(raw: RawFiles, found: GraphFolder) -> Iterator[OwnCollectionGraph]:
    seen: dict[str, str] = {}
    for file in sorted(raw.folder.glob("*.graphml")):
        graphs: list[OwnCollectionGraph] = []
        with found.faults.gathering():
            graphs, unused = graphml.read(raw.read(file.name), str(file))
            found.unused |= dict.fromkeys(unused)
        found.lacking |= not graphs
        for graph in graphs:
            named = replace(graph, name=file.stem if len(graphs) == 1 else graph.name)
            if named.name in seen:
                raise DataError(f"{file}: graph {named.name!r} is in {seen[named.name]}, too; allowed: each name once")
            seen[named.name] = file.name
            yield named


def _of_tu(raw: RawFiles, found: GraphFolder) -> Iterator[OwnCollectionGraph]:
    several = sorted(file.name for file in raw.folder.glob(f"*{_INDICATOR}"))
    if len(several) > 1:
        raise DataError(f"{raw.folder}: {several[0]} and {several[1]}; allowed: one collection in a folder")
    prefix = several[0].removesuffix(_INDICATOR)
    owner = tu.read_tu_indicator(raw, several[0])
    count = int(owner[-1]) + 1
    ends = tu.read_tu_arcs(raw, f"{prefix}_A.txt", owner)
    labels = tu.read_tu_classes(raw, f"{prefix}_graph_labels.txt", count)
    cells: list[list[str]] = [[] for _ in range(owner.size)]
    columns: list[str] = []
    if (raw.folder / (file := f"{prefix}_node_attributes.txt")).exists():
        values = tu.read_tu_attributes(raw, file, owner.size, None)
        columns += [f"attribute {place + 1}" for place in range(values.shape[1])]
        cells = [[*row, *map(repr, own)] for row, own in zip(cells, values.tolist(), strict=True)]
    if (raw.folder / (file := f"{prefix}_node_labels.txt")).exists():
        kinds = tu.read_tu_node_kinds(raw, file, owner.size, None)
        every = np.unique(kinds)
        columns += [f"kind is {kind}" for kind in every]
        cells = [[*row, *("1" if kind == one else "0" for one in every)] for row, kind in zip(cells, kinds, strict=True)]
    unread = (file for end in ("edge_labels", "edge_attributes") for file in raw.folder.glob(f"{prefix}_{end}.txt"))
    found.unused |= dict.fromkeys(file.name for file in unread)
    starts = np.searchsorted(owner, np.arange(count + 1))
    order = np.argsort(owner[ends[:, 0]], kind="stable")
    cuts = np.searchsorted(owner[ends[order, 0]], np.arange(count + 1))
    for graph in range(count):
        own = slice(starts[graph], starts[graph + 1])
        nodes = tuple(str(node + 1) for node in range(own.start, own.stop))
        mine = ends[order[cuts[graph] : cuts[graph + 1]]] - own.start
        lines = range(own.start + 1, own.stop + 1)
        label = f"class {labels[graph]}"
        file = str(raw.folder / several[0])
        yield OwnCollectionGraph(str(graph + 1), tuple(columns), nodes, cells[own], file, lines, mine, label)


def _pairs(ends: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array(ends, dtype=np.int64).reshape(-1, 2)
