"""Your own collection of small graphs, in a folder or in memory: what lies in the folder says how it is read.

    tables      a table of nodes and one of ties, both with a column ``graph``, and a table graph → label
    pairs       NAME.nodes.* and NAME.edges.* for each graph, or a folder NAME for each, and a table graph → label
    files       a file for each graph (GraphML, GEXF, GML, Pajek), or several graphs in one GraphML file; a table
                graph → label, or data of the graph itself that is called label
    TU          NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt [NAME_node_labels.txt, NAME_node_attributes.txt]
    owners      a folder with one folder per owner, each of them one of these; or a column owner in the table of labels

Tables are understood as those of one graph are, and their columns joined by name (``roles``). A graph without a
label is left out, but where each graph is one row: there its label is private, and so is whether it has one. Features are the
columns of nodes; without any, tasks take the degrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedgraph.data.own import reading, tables
from fedgraph.data.own.columns import ReadRules
from fedgraph.data.own.roles import Part, Roles, find_roles, join_parts
from fedgraph.data.own.tables import Gathered, ReadingQuestion, Table, gather_files
from fedgraph.data.own.words import called_so, id_text, plain_name, says_who
from fedgraph.errors import DataError

_INDICATOR = "_graph_indicator.txt"
_LABELS = re.compile(r"label|class|target")
_GRAPH_FILES = frozenset({".graphml", ".gexf", ".gml", ".net"})
_TABLES = frozenset({".csv", ".tsv", ".txt", ".parquet"})
_GRAPH_COLUMNS = frozenset({"graph", "graphid", "graphname", "graphs", "graphindex", "graphnr", "graphno"})
_OWNER = "owner"  # a column of the labels
_KINDS = (
    "allowed: tables of nodes and ties with a column graph, and one of labels; NAME.nodes.csv and NAME.edges.csv for each; "
    f"a GraphML, GEXF or GML file for each; NAME{_INDICATOR} and its like; or a folder of these for each owner"
)


@dataclass(eq=False)
class _Found:
    """What was read so far."""

    parts: list[Part] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)  # label and owner of each part; "" where there is none
    unused: dict[str, None] = field(default_factory=dict)  # what the files hold and no method reads
    every: Gathered = field(default_factory=Gathered)  # checksums and faults of all files, and what was not understood
    label: str = ""  # the column that is predicted
    lacking: bool = False  # whether some graph could not be read


def read(path: Path, rules: ReadRules, *, unlabelled: bool = False) -> reading.Reading:
    """The collection in a folder.

    Args:
        rules: ``label`` is the column of the table of labels that is predicted.
        unlabelled: whether graphs without a label stay, with label −1.

    Raises:
        ReadingQuestion: two readings are left; the line names both, and the option that answers.
        DataError: all faults of all files, each with file, line, what was found and what is allowed.
    """
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/graphs needs one. {_KINDS}")
    found = _Found()
    if _kind_of(path):
        _read(path, "", rules, found)
    else:
        owners = [one for one in _folders(path) if _kind_of(one)]
        if not owners:
            raise DataError(f"{path}: no graph was found; {_KINDS}")
        if strange := [one.name for one in _folders(path) if one not in owners]:
            raise DataError(f"{path / strange[0]}: no graph was found; {_KINDS}")
        for one in owners:
            _read(one, one.name, rules, found)
    faults = found.every.faults
    if not found.parts:
        faults.refuse()
        raise DataError(f"{path}: no graph was found; {_KINDS}")
    return _joined(found, rules, f"own/{path.resolve().stem}", f"own graphs {path.resolve().name}", path, unlabelled)


def _joined(found: _Found, rules: ReadRules, name: str, title: str, where: Path, unlabelled: bool = False) -> reading.Reading:
    roles, number = join_parts(found.parts, where, np.zeros((0, 2), dtype=np.int64))
    used = {*roles.ends, "source", "target"}
    found.unused |= {f"column {column!r} of ties": None for column in roles.ties.names if column not in used}
    given = [(part.name, *said) for part, said in zip(found.parts, found.told, strict=True)]
    return reading.of_collection(
        roles, number, given, found.every, rules, name, title, where=str(where), label=found.label,
        unused=list(found.unused), unlabelled=unlabelled,
    )  # fmt: skip


def read_list(given: Sequence[object], rules: ReadRules, name: str) -> reading.Reading:
    """Many graphs in memory, each with one label.

    Args:
        given: PyG ``Data`` objects (``edge_index`` [2, m], ``y`` one number, if wanted ``x`` [n, d] and ``owner``), or NetworkX
            graphs (``graph.graph["y"]``, if wanted attributes of nodes and ``graph.graph["owner"]``). Without columns tasks
            take the degrees. Graphs without a label are left out.
        rules: ``label`` is where a NetworkX graph keeps its label.

    Raises:
        DataError: one line that names the graph by its place in the list, what was found and what is allowed.
    """
    if not given:
        raise DataError("the list holds no graph; allowed: one or more")
    found, widths = _Found(), dict[int, int]()
    for place, one in enumerate(given):
        where = f"graph {place}"
        held, label, owner = _small(one, where, rules.label or "y")
        if not len(held[0].frame):
            raise DataError(f"{where}: it has no node; allowed: one node or more")
        roles = find_roles(Gathered(held))
        found.parts.append(Part(str(place), replace(roles, remarks=[]), where))
        found.told.append((tables.cell_text(label), owner))
        found.every.tables += held
        widths.setdefault(len(held[0].called), place)
    if len(widths) > 1:
        (width, _), (other, place) = sorted(widths.items(), key=lambda one: one[1])[:2]
        raise DataError(f"graph {place} has {other} features, graph 0 has {width}; allowed: equally many")
    return _joined(found, rules.model_copy(update={"label": None}), name, f"graphs in memory called {name}", Path("the labels"))


def _small(graph: Any, where: str, label: str) -> tuple[list[Table], object, str]:
    """(the tables of a graph, its label, its owner)."""
    import networkx as nx
    from torch_geometric.data import Data

    if isinstance(graph, Data):
        told = graph.to_dict() | {"num_nodes": graph.num_nodes}
        labels = np.asarray([] if told.get("y") is None else told["y"]).reshape(-1).tolist()
        if len(labels) > 1:
            raise DataError(f"{where}: y has {len(labels)} labels; allowed: one for the graph")
        return tables.tensor_tables(told, where, small=True), (labels or [None])[0], str(told.get(_OWNER) or "")
    if isinstance(graph, nx.Graph):
        return tables.network_tables(graph, where), graph.graph.get(label), str(graph.graph.get(_OWNER) or "")
    raise DataError(f"{where} is a {type(graph).__name__}; allowed: a torch_geometric Data or a NetworkX graph")


def _read(folder: Path, owner: str, rules: ReadRules, found: _Found) -> None:
    kind = _kind_of(folder)
    prefix = f"{owner}/" if owner else ""
    parts: list[Part] = []
    labels: Table | None = None
    gathered = _gathered(folder, kind)
    found.every.checksums |= {prefix + name: digest for name, digest in gathered.checksums.items()}
    found.every.aside |= {prefix + name: why for name, why in gathered.aside.items()}
    with found.every.faults.gathering():
        gathered.faults.refuse()
    if kind == "tu":
        found.every.faults.refuse()
        parts = _of_tu(folder, {table.title: table for table in gathered.tables}, found)
    else:
        files = {table.where for table in gathered.tables}
        found.lacking |= len(gathered.checksums) > len(files) + len(gathered.aside)  # one is no table at all
        labels, others = _label_table(gathered.tables, folder, kind)
        parts = {"tables": _of_tables, "pairs": _of_pairs, "files": _of_files}[kind](folder, others, rules, found)
    told = _labelled(labels, parts, rules, found)
    found.parts += [replace(part, name=prefix + part.name) for part in parts]
    found.told += [(label, owner or said) for label, said in told]


def _gathered(folder: Path, kind: str) -> Gathered:
    """The tables of a folder; of pairs in folders those of each, called as its folder."""
    gathered = gather_files(folder)
    for one in _folders(folder) if kind == "pairs" else ():
        inside = gather_files(one)
        gathered.tables += [replace(table, graph=one.name) for table in inside.tables]
        gathered.checksums |= {f"{one.name}/{name}": digest for name, digest in inside.checksums.items()}
        with gathered.faults.gathering():
            inside.faults.refuse()
    return gathered


def _label_table(tables: Sequence[Table], folder: Path, kind: str) -> tuple[Table | None, list[Table]]:
    """(the table with a line for each graph, the others)."""
    able = [table for table in tables if not (table.graph or table.role) and table.matrix is None]
    if kind == "tables":  # of several with a column graph, it is that in which each graph stands once
        able = [one for one in able if _graph_column(one.names)]
        once = [one for one in able if len(set(one.ids(str(_graph_column(one.names))))) == len(one.frame)]
        able = [one for one in able if _LABELS.search(one.stem)] or once
    named = [table for table in able if _LABELS.search(table.stem)]
    if kind == "pairs":
        able = [table for table in able if "." not in table.title.rsplit(".", 1)[0]]
    chosen = named or able
    if len(chosen) > 1:
        listed = ", ".join(table.title for table in chosen)
        raise DataError(f"{folder}: {listed} may each hold the labels of graphs; allowed: one, such as labels.csv")
    if not chosen and kind in ("tables", "pairs"):
        raise DataError(f"{folder}: labels are missing; allowed: a table with the columns graph, label")
    return (chosen[0] if chosen else None), [table for table in tables if not chosen or table is not chosen[0]]


def _labelled(table: Table | None, parts: Sequence[Part], rules: ReadRules, found: _Found) -> list[tuple[str, str]]:
    """(label, owner) of each graph."""
    if table is None:
        return [_own_label(part, rules, found) for part in parts]
    key = _graph_column(table.names) or table.names[0]
    others = [name for name in table.names if name != key]
    owner = next((name for name in others if plain_name(name) == _OWNER), None)
    others = [name for name in others if name != owner and not says_who(name, table.texts(name), table.headed)]
    wanted = rules.label or ""
    chosen = called_so(wanted, others)
    if wanted and not chosen:
        raise DataError(f"{table.place(0)}: there is no column {wanted!r}; found: {', '.join(table.names)}")
    if not others:
        raise DataError(f"{table.where}: there is no column 'label'; found: {', '.join(table.names)}")
    chosen = chosen or (
        others if len(others) == 1 else [name for name in others if plain_name(name) in ("label", "y", "class")]
    )
    if len(chosen) != 1:
        listed = " or ".join(map(repr, others[:4]))
        asked = f"{table.where}: which column is the label of graphs: {listed}? Say --label {others[0]} or another"
        raise ReadingQuestion(asked, "label", others)
    found.label = chosen[0]
    found.unused |= {f"column {name!r} of {table.title}": None for name in others if name != chosen[0]}
    known = {id_text(part.name) for part in parts}
    said: dict[str, tuple[str, str]] = {}
    for row, name in enumerate(table.ids(key)):
        if name not in known and not found.lacking:
            found.every.faults.note(table.place(row), f"graph {name!r} has no node; allowed: the {len(known)} graphs here")
        elif name in said:
            found.every.faults.note(table.place(row), f"graph {name!r} has a second label; allowed: one")
        said[name] = table.frame[chosen[0]].iloc[row], "" if owner is None else table.frame[owner].iloc[row]
    return [said.get(id_text(part.name), ("", "")) for part in parts]


def _own_label(part: Part, rules: ReadRules, found: _Found) -> tuple[str, str]:
    """What a file says of its graph."""
    own = {name.casefold(): value for name, value in part.told.items()}
    wanted = (rules.label.casefold(),) if rules.label else ("label", "y", "class", "target")
    key = next((name for name in wanted if name in own), None)
    used = (key, _OWNER, "name", "node_default", "edge_default")
    found.unused |= {f"graph attribute {name!r}": None for name in part.told if name.casefold() not in used}
    return (own[key] if key else ""), own.get(_OWNER, "")


def _of_tables(folder: Path, tables: Sequence[Table], rules: ReadRules, found: _Found) -> list[Part]:
    """Ids count within their graph: they are read as ``graph/id``, and each graph's people and ties are taken from there."""
    columns = {table.where: _graph_column(table.names) for table in tables}
    apart = sum(column is not None for column in columns.values()) > 1  # else ids count over all graphs
    inside = Gathered(
        [_within(table, columns[table.where]) if apart else _without(table, columns[table.where]) for table in tables]
    )
    roles = None
    with found.every.faults.gathering():
        roles = find_roles(inside, rules.id, rules.ends)
    with found.every.faults.gathering():
        inside.faults.refuse()
    if roles is None or not roles.holders or columns[roles.holders[0].table.where] is None:
        found.every.faults.refuse()
        raise DataError(f"{folder}: no table of nodes with a column graph was found; {_KINDS}")
    plain = {table.where: table for table in tables}
    first = roles.holders[0]
    of_graph = np.array(plain[first.table.where].ids(str(columns[first.table.where])), dtype=object)[first.rows].tolist()
    place = {name: number for number, name in enumerate(dict.fromkeys(of_graph))}
    number = np.array([place[name] for name in of_graph], dtype=np.int64)
    people = _split(number, len(place))
    ties = _split(number[roles.one], len(place))
    at = np.zeros(number.size, dtype=np.int64)
    for own in people:
        at[own] = np.arange(own.size)
    _require_inside(roles, number, found)
    parts = []
    for name, own, tied in zip(place, people, ties, strict=True):
        holders = [
            replace(one, table=_without(plain[one.table.where], columns[one.table.where]), rows=one.rows[own])
            for one in roles.holders
        ]
        ids = [roles.ids[person].partition("/")[2] if apart else roles.ids[person] for person in own]
        table = roles.ties.some(tied)
        if apart and columns.get(roles.ties.where):
            table = replace(table, frame=table.frame.map(lambda cell: cell.partition("/")[2]))
        mine = replace(
            roles, ids=ids, holders=holders, ties=table, one=at[roles.one[tied]], two=at[roles.two[tied]], remarks=[]
        )
        parts.append(Part(name, mine, first.table.where))
    return parts


def _split(number: np.ndarray, count: int) -> list[np.ndarray]:
    """Where each number stands, of 0 … count − 1."""
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number, minlength=count))[:-1])


def _require_inside(roles: Roles, number: np.ndarray, found: _Found) -> None:
    for tie in np.flatnonzero(number[roles.one] != number[roles.two]):
        found.every.faults.note(roles.ties.place(int(tie)), "a tie between two graphs; allowed: nodes of one graph")


def _within(table: Table, column: str | None) -> Table:
    """Every cell with its graph before it, and without the column of graphs."""
    if column is None:
        return table
    graphs = table.ids(column)
    cells = {
        name: [f"{graph}/{cell}" if graph and cell else "" for graph, cell in zip(graphs, table.ids(name), strict=True)]
        for name in table.names
        if name != column
    }
    return replace(table, frame=pd.DataFrame(cells, dtype=object, index=range(len(graphs))), implied=None)


def _without(table: Table, column: str | None) -> Table:
    return table if column is None else replace(table, frame=table.frame.drop(columns=[column]))


def _of_pairs(folder: Path, tables: Sequence[Table], rules: ReadRules, found: _Found) -> list[Part]:
    """NAME.nodes.* and NAME.edges.*, or the tables of a folder NAME."""
    groups: dict[str, list[Table]] = {}
    for table in tables:
        groups.setdefault(table.graph or table.title.rsplit(".", 2)[0], []).append(table)
    return _of_groups(groups.items(), rules, found, folder)


def _of_files(folder: Path, tables: Sequence[Table], rules: ReadRules, found: _Found) -> list[Part]:
    """Files that hold a graph each, or several."""
    files: dict[str, dict[str, list[Table]]] = {}
    for table in tables:
        files.setdefault(table.where, {}).setdefault(table.graph, []).append(table)
    groups: dict[str, list[Table]] = {}
    for where, graphs in files.items():
        for graph, own in graphs.items():
            name = graph if len(graphs) > 1 else Path(where).name.split(".")[0]
            if name in groups:
                raise DataError(f"{where}: graph {name!r} is in {groups[name][0].where}, too; allowed: each name once")
            groups[name] = own
    return _of_groups(groups.items(), rules, found, folder)


def _of_groups(groups: Iterable[tuple[str, list[Table]]], rules: ReadRules, found: _Found, folder: Path) -> list[Part]:
    parts = []
    for name, own in groups:
        gathered, roles = Gathered([replace(table, graph="") for table in own]), None
        with found.every.faults.gathering():
            roles = find_roles(gathered, rules.id, rules.ends)
        with found.every.faults.gathering():
            gathered.faults.refuse()
        found.lacking |= roles is None
        parts += [Part(name, roles, str(folder), own[0].told)] if roles is not None else []
    return parts


def _of_tu(folder: Path, held: dict[str, Table], found: _Found) -> list[Part]:
    """The files of a TUDataset: lines have no names, nodes and graphs are counted from 1."""
    several = sorted(name for name in held if name.endswith(_INDICATOR))
    if len(several) > 1:
        raise DataError(f"{folder}: {several[0]} and {several[1]}; allowed: one collection in a folder")
    prefix = several[0].removesuffix(_INDICATOR)

    def part(what: str, rows: int | None = None) -> Table | None:
        table = held.pop(f"{prefix}_{what}.txt", None)
        if table is not None and rows is not None and len(table.frame) != rows:
            raise DataError(f"{table.where}: {len(table.frame)} lines; allowed: {rows}, as the indicator says")
        return table

    indicator, tied = part("graph_indicator"), part("A")
    graphs = [] if indicator is None else indicator.ids("column 1")
    labels = part("graph_labels", len(set(graphs)))
    if indicator is None or tied is None or labels is None:
        raise DataError(f"{folder}: allowed: {prefix}_A.txt, {prefix}{_INDICATOR} and {prefix}_graph_labels.txt, all of them")
    cells: dict[str, list[str]] = {"graph": graphs, "id": [str(row) for row in range(1, len(graphs) + 1)]}
    if (values := part("node_attributes", len(graphs))) is not None:
        cells |= {f"attribute {place}": values.texts(name) for place, name in enumerate(values.names, 1)}
    if (kinds := part("node_labels", len(graphs))) is not None:
        own = kinds.ids("column 1")
        cells |= {f"kind is {kind}": [str(int(one == kind)) for one in own] for kind in sorted(set(own), key=_by_value)}
    found.unused |= dict.fromkeys(name for name in held if name.startswith(prefix))
    people = replace(indicator, frame=pd.DataFrame(cells, dtype=object), id="id", headed=True)
    pair = (tied.names[0], tied.names[-1])
    parts = _of_tables(folder, [people, replace(tied, role="edges", ends=pair)], ReadRules(), found)
    classes = dict(zip(sorted(set(graphs), key=_by_value), labels.ids("column 1"), strict=True))
    return [replace(part, told={"label": f"class {classes[part.name]}"}) for part in parts]


def _by_value(text: str) -> tuple[int, str]:
    return (int(text), "") if text.removeprefix("-").isdigit() else (0, text)


# Whether a folder holds many graphs, and how: by names of files and of columns, before anything is read


def is_graph_folder(folder: Path) -> bool:
    """Whether ``own/graphs`` would read a folder.

    A folder with a table called features is one graph, and folders of these are a federation.
    """
    return folder.is_dir() and (_kind_of(folder) != "" or any(map(_kind_of, _folders(folder))))


def _kind_of(folder: Path) -> str:
    """``tables``, ``pairs``, ``files`` or ``tu``; "" for one graph, or what is none."""
    files = sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith((".", "~")))
    stems = [one.name.split(".")[0].casefold() for one in files]
    if "features" in stems:
        return ""
    if any(one.name.endswith(_INDICATOR) for one in files):
        return "tu"
    if any(_is_nodes(one) for one in files):
        return "pairs"
    graphs = [one for one in files if one.suffix.casefold() in _GRAPH_FILES]
    labelled = any(_LABELS.search(stem) for stem in stems)
    if len(graphs) > 1 or (graphs and (labelled or _holds_several(graphs[0]))):
        return "files"
    if sum(_graph_column(_head_of(one)) is not None for one in files if one.suffix.casefold() in _TABLES) > 1:
        return "tables"
    inside = [one for one in _folders(folder) if any(file.name.split(".")[0].casefold() == "nodes" for file in one.iterdir())]
    return "pairs" if labelled and inside else ""


def _is_nodes(file: Path) -> bool:
    """Whether a file is called ``NAME.nodes.csv``."""
    return len(parts := file.name.casefold().split(".")) > 2 and parts[-2] in ("nodes", "node")


def _holds_several(file: Path) -> bool:
    beside = rb"</(?:\w+:)?graph>\s*<(?:\w+:)?graph[\s>/]"  # and not one within another
    return file.suffix.casefold() == ".graphml" and re.search(beside, file.read_bytes()) is not None


def _folders(path: Path) -> list[Path]:
    """The folders in a folder, in order, without hidden ones."""
    return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith((".", "__")))


def _graph_column(names: Sequence[str]) -> str | None:
    """The column that says of which graph a row is."""
    return next((name for name in names if re.sub(r"[^a-z0-9]", "", name.casefold()) in _GRAPH_COLUMNS), None)


def _head_of(file: Path) -> list[str]:
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
