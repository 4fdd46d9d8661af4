"""What tests of one's own data share: files written from texts, and graphs whatever the order of their people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from fedgraph.data.own.door import read
from fedgraph.data.own.reading import Reading
from fedgraph.types import Graph

Ties = set[frozenset[str]]


def put(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """The folder, in which these files stand; their names may begin with further folders."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def given(folder: Path, files: Mapping[str, str | bytes], **asked: object) -> Reading:
    """What is read of them: of one file the file, of several the folder."""
    put(folder, files)
    return read(folder / next(iter(files)) if len(files) == 1 else folder, **asked)  # type: ignore[arg-type]


def lines(rows: Iterable[Iterable[object]], head: str = "", separator: str = ",") -> str:
    return (f"{head}\n" if head else "") + "".join(separator.join(map(str, row)) + "\n" for row in rows)


def ring(count: int, form: str = "p{}", head: str = "source,target") -> str:
    """A table in which each is tied to the next one."""
    return lines(((form.format(k), form.format((k + 1) % count)) for k in range(count)), head)


def graph_of(reading: Reading) -> Graph:
    assert isinstance(reading.graph, Graph)
    return reading.graph


def ties_of(found: Reading | Graph) -> Ties:
    graph = found if isinstance(found, Graph) else graph_of(found)
    arcs = graph.adjacency.tocoo()
    return {frozenset((graph.ids[a], graph.ids[b])) for a, b in zip(*arcs.coords, strict=True)}


def pairs_of(text: str) -> Ties:
    """Of ``"a-b b-c"``."""
    return {frozenset(pair.split("-")) for pair in text.split()}


def facts(graph: Graph) -> tuple[set[str], Ties, dict[str, str], dict[str, tuple[float, ...]]]:
    """(people, ties, classes, rows) whatever the order of people and columns."""
    classes = {one: graph.names.classes[k] for one, k in zip(graph.ids, graph.labels, strict=True) if k >= 0}
    rows = graph.features.toarray()
    values = {one: tuple(sorted(np.round(row.astype(float), 4).tolist())) for one, row in zip(graph.ids, rows, strict=True)}
    return set(graph.ids), ties_of(graph), classes, values
