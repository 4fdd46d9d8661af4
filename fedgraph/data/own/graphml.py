"""GraphML: nodes with data, edges, and data of the graph itself. No entity is expanded, no document type is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from fedgraph.data.base.files import DataFileFaults
from fedgraph.data.own.collection import OwnCollectionGraph
from fedgraph.errors import DataError

_LABELS = ("label", "y", "class", "target")  # keys of the graph's own data that are its label
_DEEPEST = 64  # elements in each other


@dataclass(eq=False)
class _Open:
    """A graph while it is read. rows: node id → row. data, lines: of each row. ends: (one, two, line) by id."""

    name: str
    rows: dict[str, int] = field(default_factory=dict)
    data: list[dict[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    ends: list[tuple[str, str, int]] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)


def read(content: bytes, file: str) -> tuple[list[OwnCollectionGraph], list[str]]:
    """(the graphs of a file, what it holds that no method reads). ``DataError`` lists its faults with their lines."""
    reader = _Reader(file)
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"{file}:{error.lineno}: not XML ({expat.ErrorString(error.code)}); allowed: GraphML") from error
    if not reader.graphs:
        reader.faults.note(file, "no graph; allowed: one <graph> or more inside <graphml>")
    given = [reader.closed(graph) for graph in reader.graphs]
    reader.faults.refuse()
    return given, list(reader.unused)


class _Reader:
    def __init__(self, file: str) -> None:
        self.file, self.faults = file, DataFileFaults()
        self.graphs: list[_Open] = []
        self.unused: dict[str, None] = {}
        self._keys: dict[str, tuple[str, str]] = {}  # id → (what it belongs to, name)
        self._defaults: dict[str, str] = {}
        self._inside: list[str] = []
        self._key, self._text = "", ""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype

    @property
    def _here(self) -> str:
        return f"{self.file}:{self.parser.CurrentLineNumber}"

    def _doctype(self, *_: object) -> None:
        raise DataError(f"{self._here}: a document type; allowed: GraphML without one (it could name entities of any size)")

    def _start(self, tag: str, given: Mapping[str, str]) -> None:
        name = tag.rpartition(":")[2]
        parent = self._inside[-1] if self._inside else ""
        self._inside.append(name)
        if len(self._inside) > _DEEPEST:
            raise DataError(f"{self._here}: {_DEEPEST} elements in each other; allowed: GraphML")
        if name == "key":
            self._key = given.get("id", "")
            self._keys[self._key] = given.get("for", "all"), given.get("attr.name", self._key)
        elif name == "graph" and parent in ("node", "edge"):
            self.faults.note(self._here, "a graph inside a node; allowed: graphs beside each other")
        elif name == "graph":
            self.graphs.append(_Open(given.get("id") or str(len(self.graphs) + 1)))
        elif name == "node" and self.graphs:
            self._node(given.get("id", ""))
        elif name == "edge" and self.graphs:
            self.graphs[-1].ends.append((given.get("source", ""), given.get("target", ""), self.parser.CurrentLineNumber))
        elif name == "hyperedge":
            self.faults.note(self._here, "a hyperedge; allowed: edges of two nodes")
        elif name == "data":
            self._key = given.get("key", "")
            if self._key not in self._keys:
                allowed = ", ".join(self._keys) or "none"
                self.faults.note(self._here, f"data of the unknown key {self._key!r}; allowed: {allowed}")
        self._text = ""

    def _node(self, node: str) -> None:
        graph = self.graphs[-1]
        if not node or node in graph.rows:
            self.faults.note(self._here, f"node {node!r} is {'there twice' if node else 'without an id'}; allowed: each once")
        graph.rows.setdefault(node, len(graph.data))
        graph.data.append({})
        graph.lines.append(self.parser.CurrentLineNumber)

    def _characters(self, text: str) -> None:
        self._text += text

    def _end(self, tag: str) -> None:
        name, text = self._inside.pop(), self._text.strip()
        parent = self._inside[-1] if self._inside else ""
        if name == "default":
            self._defaults[self._key] = text
        elif name == "data" and self._key in self._keys and self.graphs:
            called = self._keys[self._key][1]
            if parent == "node":
                self.graphs[-1].data[-1][called] = text
            elif parent == "graph":
                self.graphs[-1].own[called] = text
            elif parent == "edge":
                self.unused[f"edge attribute {called!r}"] = None

    def closed(self, graph: _Open) -> OwnCollectionGraph:
        """The graph, once all nodes are known."""
        if not graph.rows:
            self.faults.note(self.file, f"graph {graph.name!r} has no node; allowed: one or more")
        for one, two, line in graph.ends:
            for node in sorted({one, two} - graph.rows.keys()):
                allowed = f"the {len(graph.rows)} nodes of its graph"
                self.faults.note(f"{self.file}:{line}", f"unknown node {node!r}; allowed: {allowed}")
        of_nodes = {key: name for key, (what, name) in self._keys.items() if what != "edge"}
        usual = {name: self._defaults[key] for key, name in of_nodes.items() if key in self._defaults}
        columns = tuple(dict.fromkeys(name for data in graph.data for name in data))
        columns += tuple(n for _, (what, n) in self._keys.items() if what == "node" and n in usual and n not in columns)
        ends = [(graph.rows.get(one, 0), graph.rows.get(two, 0)) for one, two, _ in graph.ends]
        own = {name.casefold(): value for name, value in graph.own.items()}
        self.unused |= {f"graph attribute {name!r}": None for name in graph.own if name.casefold() not in (*_LABELS, "owner")}
        cells = [[data.get(name, usual.get(name, "")) for name in columns] for data in graph.data]
        told = (cells, self.file, graph.lines, np.array(ends, dtype=np.int64).reshape(-1, 2))
        label = next((own[name] for name in _LABELS if name in own), None)
        return OwnCollectionGraph(graph.name, columns, tuple(graph.rows), *told, label, own.get("owner", ""))
