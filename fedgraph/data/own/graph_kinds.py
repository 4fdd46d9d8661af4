"""Whether a folder holds many small graphs, and how: told by names of files and of columns, before anything is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

INDICATOR = "_graph_indicator.txt"
LABELS = re.compile(r"label|class|target")
_GRAPH_FILES = frozenset({".graphml", ".gexf", ".gml", ".net"})
_TABLES = frozenset({".csv", ".tsv", ".txt", ".parquet"})
_GRAPH_COLUMNS = frozenset({"graph", "graphid", "graphname", "graphs", "graphindex", "graphnr", "graphno"})


def is_graph_folder(folder: Path) -> bool:
    """Whether ``own/graphs`` would read a folder.

    A folder with a table called features is one graph, and folders of these are a federation.
    """
    return folder.is_dir() and (kind_of(folder) != "" or any(map(kind_of, folders(folder))))


def kind_of(folder: Path) -> str:
    """``tables``, ``pairs``, ``files`` or ``tu``; "" for one graph, or what is none."""
    files = sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith((".", "~")))
    stems = [one.name.split(".")[0].casefold() for one in files]
    if "features" in stems:
        return ""
    if any(one.name.endswith(INDICATOR) for one in files):
        return "tu"
    if any(_is_nodes(one) for one in files):
        return "pairs"
    graphs = [one for one in files if one.suffix.casefold() in _GRAPH_FILES]
    labelled = any(LABELS.search(stem) for stem in stems)
    if len(graphs) > 1 or (graphs and (labelled or _holds_several(graphs[0]))):
        return "files"
    if sum(graph_column(head_of(one)) is not None for one in files if one.suffix.casefold() in _TABLES) > 1:
        return "tables"
    inside = [one for one in folders(folder) if any(file.name.split(".")[0].casefold() == "nodes" for file in one.iterdir())]
    return "pairs" if labelled and inside else ""


def _is_nodes(file: Path) -> bool:
    """Whether a file is called ``NAME.nodes.csv``."""
    return len(parts := file.name.casefold().split(".")) > 2 and parts[-2] in ("nodes", "node")


def _holds_several(file: Path) -> bool:
    return file.suffix.casefold() == ".graphml" and len(re.findall(rb"<(?:\w+:)?graph[\s>/]", file.read_bytes())) > 1


def folders(path: Path) -> list[Path]:
    """The folders in a folder, in order, without hidden ones."""
    return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith((".", "__")))


def graph_column(names: Sequence[str]) -> str | None:
    """The column that says of which graph a row is."""
    return next((name for name in names if re.sub(r"[^a-z0-9]", "", name.casefold()) in _GRAPH_COLUMNS), None)


def head_of(file: Path) -> list[str]:
    """Names of the columns of a table, as far as its first line, or its schema, says them."""
    if file.suffix.casefold() == ".parquet":
        try:
            from pyarrow import parquet

            return list(parquet.read_schema(file).names)
        except Exception:  # whatever is wrong with it is said where it is read
            return []
    with file.open("rb") as opened:
        start = opened.read(10_000)
    text = start.decode("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")
    return [cell.strip(' "') for cell in re.split(r"[,;\t|]", text.split("\n")[0].strip("\r"))]
