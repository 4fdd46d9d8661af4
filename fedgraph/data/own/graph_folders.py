"""Your own collection of small graphs: what lies in the folder says how it is read. Nothing is ever unpickled.

    tables      a table of nodes and one of ties, both with a column ``graph``, and a table graph → label
    pairs       NAME.nodes.* and NAME.edges.* for each graph, or a folder NAME for each, and a table graph → label
    files       a file for each graph (GraphML, GEXF, GML, Pajek), or several graphs in one GraphML file; a table
                graph → label, or data of the graph itself that is called label
    TU          NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt [NAME_node_labels.txt, NAME_node_attributes.txt]
    owners      a folder with one folder per owner, each of them one of these; or a column owner in the table of labels

Tables are understood as those of one graph are (``roles``), and their columns joined by name (``parts``). A graph without a
label is left out, but where each graph is one row: there its label is private, and so is whether it has one. Features are the
columns of nodes; without any, tasks take the degrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from fedgraph.data import tu
from fedgraph.data.base.files import RawFiles
from fedgraph.data.own import reading
from fedgraph.data.own.collection import JoinedOwnCollection, label_own_collection
from fedgraph.data.own.columns import ReadRules
from fedgraph.data.own.graph_kinds import INDICATOR, LABELS, folders, graph_column, kind_of
from fedgraph.data.own.parts import Part, join
from fedgraph.data.own.roles import ReadingQuestion, Roles, find_roles
from fedgraph.data.own.tables import Gathered, Table, gather_files, id_text, plain_name, says_who
from fedgraph.errors import DataError

_OWNER = "owner"  # a column of the labels
_KINDS = (
    "allowed: tables of nodes and ties with a column graph, and one of labels; NAME.nodes.csv and NAME.edges.csv for each; "
    f"a GraphML, GEXF or GML file for each; NAME{INDICATOR} and its like; or a folder of these for each owner"
)


@dataclass(eq=False)
class _Found:
    """What was read so far.

    Attributes:
        labels, owners: of each part; "" where there is none.
        unused: what the files hold and no method reads.
        every: checksums and faults of all files, and what was not understood.
        label: the column that is predicted.
        lacking: whether some graph could not be read.
    """

    parts: list[Part] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    unused: dict[str, None] = field(default_factory=dict)
    every: Gathered = field(default_factory=Gathered)
    label: str = ""
    lacking: bool = False


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
    if kind_of(path):
        _read(path, "", rules, found)
    else:
        owners = [one for one in folders(path) if kind_of(one)]
        if not owners:
            raise DataError(f"{path}: no graph was found; {_KINDS}")
        if strange := [one.name for one in folders(path) if one not in owners]:
            raise DataError(f"{path / strange[0]}: no graph was found; {_KINDS}")
        for one in owners:
            _read(one, one.name, rules, found)
    faults = found.every.faults
    if not found.parts:
        faults.refuse()
        raise DataError(f"{path}: no graph was found; {_KINDS}")
    roles, number = join(found.parts, path, np.zeros((0, 2), dtype=np.int64))
    left_out: list[tuple[str, str]] = []
    table = reading.columns_of(roles, rules, faults, left_out)
    faults.refuse()
    used = {*roles.ends, "source", "target"}
    found.unused |= {f"column {name!r} of ties": None for name in roles.ties.names if name not in used}
    sizes = np.bincount(number, minlength=len(found.parts)).astype(np.int64)
    ends = np.column_stack([roles.one, roles.two])
    names = [part.name for part in found.parts]
    ids = tuple(one for part in found.parts for one in part.roles.ids)
    sums = found.every.checksums
    given = JoinedOwnCollection(names, sizes, found.labels, found.owners, ends, table, ids, tuple(found.unused), sums)
    name, title = f"own/{path.resolve().stem}", f"own graphs {path.resolve().name}"
    collection = label_own_collection(name, title, given, rules, str(path), unlabelled=unlabelled)
    return reading.of_collection(collection, rules, found.label, table, left_out, found.every)


def _read(folder: Path, owner: str, rules: ReadRules, found: _Found) -> None:
    kind = kind_of(folder)
    prefix = f"{owner}/" if owner else ""
    parts: list[Part] = []
    labels: Table | None = None
    if kind == "tu":
        parts = _of_tu(RawFiles(folder), found)
    else:
        gathered = _gathered(folder, kind)
        found.every.checksums |= {prefix + name: digest for name, digest in gathered.checksums.items()}
        found.every.aside |= {prefix + name: why for name, why in gathered.aside.items()}
        with found.every.faults.gathering():
            gathered.faults.refuse()
        files = {table.where for table in gathered.tables}
        found.lacking |= len(gathered.checksums) > len(files) + len(gathered.aside)  # one is no table at all
        labels, others = _label_table(gathered.tables, folder, kind)
        parts = {"tables": _of_tables, "pairs": _of_pairs, "files": _of_files}[kind](folder, others, rules, found)
    told = _labelled(labels, parts, rules, found)
    found.parts += [replace(part, name=prefix + part.name) for part in parts]
    found.labels += [label for label, _ in told]
    found.owners += [owner or said for _, said in told]


def _gathered(folder: Path, kind: str) -> Gathered:
    """The tables of a folder; of pairs in folders those of each, called as its folder."""
    gathered = gather_files(folder)
    for one in folders(folder) if kind == "pairs" else ():
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
        able = [one for one in able if graph_column(one.names)]
        once = [one for one in able if len(set(one.ids(str(graph_column(one.names))))) == len(one.frame)]
        able = [one for one in able if LABELS.search(one.stem)] or once
    named = [table for table in able if LABELS.search(table.stem)]
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
    key = graph_column(table.names) or table.names[0]
    others = [name for name in table.names if name != key]
    owner = next((name for name in others if plain_name(name) == _OWNER), None)
    others = [name for name in others if name != owner and not says_who(name, table.texts(name), table.headed)]
    wanted = rules.label or ""
    chosen = [name for name in others if wanted and name.casefold() == wanted.casefold()]
    chosen = [name for name in chosen if name == wanted] or chosen
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
    columns = {table.where: graph_column(table.names) for table in tables}
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
        frame, lines = roles.ties.frame.iloc[tied].reset_index(drop=True), roles.ties.lines
        frame = frame.map(lambda cell: cell.partition("/")[2]) if apart and columns.get(roles.ties.where) else frame
        table = replace(roles.ties, frame=frame, lines=lines[tied] if lines.size else lines)
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


def _of_tu(raw: RawFiles, found: _Found) -> list[Part]:
    several = sorted(file.name for file in raw.folder.glob(f"*{INDICATOR}"))
    if len(several) > 1:
        raise DataError(f"{raw.folder}: {several[0]} and {several[1]}; allowed: one collection in a folder")
    prefix = several[0].removesuffix(INDICATOR)
    owner = tu.read_tu_indicator(raw, several[0])
    count = int(owner[-1]) + 1
    ends = tu.read_tu_arcs(raw, f"{prefix}_A.txt", owner)
    labels = tu.read_tu_classes(raw, f"{prefix}_graph_labels.txt", count)
    cells: dict[str, list[str]] = {
        "graph": (owner + 1).astype(str).tolist(),
        "id": (np.arange(owner.size) + 1).astype(str).tolist(),
    }
    if (raw.folder / (file := f"{prefix}_node_attributes.txt")).exists():
        values = tu.read_tu_attributes(raw, file, owner.size, None)
        cells |= {f"attribute {place + 1}": list(map(repr, column)) for place, column in enumerate(values.T.tolist())}
    if (raw.folder / (file := f"{prefix}_node_labels.txt")).exists():
        kinds = tu.read_tu_node_kinds(raw, file, owner.size, None)
        cells |= {f"kind is {kind}": (kinds == kind).astype(int).astype(str).tolist() for kind in np.unique(kinds)}
    unread = (file for end in ("edge_labels", "edge_attributes") for file in raw.folder.glob(f"{prefix}_{end}.txt"))
    found.unused |= dict.fromkeys(file.name for file in unread)
    found.every.checksums |= raw.checksums
    where = str(raw.folder / several[0])
    people = Table(where, pd.DataFrame(cells, dtype=object), np.arange(1, owner.size + 1), id="id")
    graphs = (owner[ends[:, 0]] + 1).astype(str)
    ties = pd.DataFrame(
        {"graph": graphs, "source": (ends[:, 0] + 1).astype(str), "target": (ends[:, 1] + 1).astype(str)}, dtype=object
    )
    tied = Table(
        str(raw.folder / f"{prefix}_A.txt"), ties, np.arange(1, len(ends) + 1), role="edges", ends=("source", "target")
    )
    parts = _of_tables(raw.folder, [people, tied], ReadRules(), found)
    return [replace(part, told={"label": f"class {labels[int(part.name) - 1]}"}) for part in parts]
