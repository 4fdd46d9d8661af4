"""From tables of which it is known who is who to a graph: which column is the label, what becomes of the others, and the words.

The words hold exact counts: they are for the eyes of the data's holder alone.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fedgraph.data.base import adjacencies
from fedgraph.data.base.files import DataFileFaults
from fedgraph.data.own import columns as own_columns
from fedgraph.data.own.columns import OwnColumns, OwnLabels, ReadRules, csv_number, own_label_text, read_own_columns
from fedgraph.data.own.roles import Holder, Roles, find_roles, goes_with_ties, is_labels
from fedgraph.data.own.tables import Gathered, ReadingQuestion, drawn_columns
from fedgraph.data.own.words import called_so, date_in, id_text, names_people, plain_name, says, says_who
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import (
    ROWS_OF_ONE,
    SOME_NO_TIES,
    WRITTEN_AFTER,
    Graph,
    GraphCollection,
    GraphMasks,
    GraphNames,
    GraphProvenance,
    counted,
    in_words_of,
    plain_graph,
)

_MOST_TEXTS = 50  # different texts of a column that become columns; more are names, and left out
_FEW = 20  # people of a class below which nothing can be said about it
_FEWEST = 10  # people from which on a column of which each cell is another one is told to be the label again
_RARE = 0.15  # share of the people, of a class below it accuracy says little
_MOST_CLASSES = 200
_CODE = re.compile(r"-9{1,5}|-[678]|-9{1,3}[678]")  # by which surveys say why somebody gave no answer
_NO_ANSWER = re.compile(r"[89]|([789])\1+|9+[78]")  # of answers that are all smaller by far
_SEVERAL = 3  # people from which on such a number is no slip, or somebody's own
_MOST_NUMBERS = 12  # different numbers of a column that may be a label though nothing calls it so
_MOST_DEGREE = 5  # of rows of graphs, degrees from here on share a column
_SHOWN = 24  # columns, and classes, that the words list
_MOST_PARTS = 50  # values of a column, each of which may stand for a class; of more, the commonest stands beside all others
_TOLD = 0.9  # of the people whom naming the largest class gets wrong: a column that tells so many is remarked
_BY_CHANCE = 1e-6  # below this chance, everybody who has a value being of one class is no chance
_CLASSES_CUT = 4  # classes that are looked for between two cuts
_ROWS_OF_ONE = 5  # at most, on average, of one person or household
_NEARLY_ALL = 0.9  # share of all pairs of people
_BESIDE = "it stands beside the label in"
_UNDERSTOOD = "what was understood (exact counts, for the data's holder alone)"
_CONSTANT = "nothing known"
_logger = logging.getLogger("fedgraph")
_OFFERED = 6  # columns that a question about the label shows with their counts
_YEARS = 1900, 2100  # whole numbers of which all lie between them are years
_KIND = "_labels"  # where Neo4j's exports say what a node is


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read.

    Attributes:
        graph: the graph; of many small graphs their collection.
        says: what was understood, a small table for the eyes of the data's holder.
        parameters: what a scenario says under ``parameters`` to read the same, and other people in the same way.
        spans: column of numbers → (whether they are dates, the least, the largest of its cells); of one graph in tables.
    """

    graph: Graph | GraphCollection
    says: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    spans: Mapping[str, tuple[bool, float, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.says


def told_rules(rules: ReadRules, label: str | None = None, left_out: Sequence[tuple[str, str]] = ()) -> dict[str, object]:
    """What was said of the data, and what was found out, without what is the default."""
    dropped = list(dict.fromkeys([*rules.drop, *(column for column, _ in left_out)]))
    found = {key: value for key, value in (("label", label), ("drop", dropped)) if value}
    return {"text": "one-hot", "empty": "missing"} | rules.model_dump(exclude_defaults=True) | found


# Tables


@dataclass(eq=False)
class _Label:
    """holder, column: where it stands. texts: of the n people, None where it is missing."""

    holder: Holder
    column: str
    texts: list[str | None]


def roles_of(found: Gathered, rules: ReadRules) -> Roles:
    """Who is who; wrong lines are refused first. Raises as ``roles.find_roles``."""
    try:
        return find_roles(found, rules.id, rules.ends)
    except (DataError, ScenarioError):
        found.faults.refuse()  # wrong lines come first: they may be the reason
        raise


def of_roles(
    roles: Roles,
    found: Gathered,
    rules: ReadRules,
    name: str,
    title: str,
    labelled: bool,
    owners_of: tuple[np.ndarray, tuple[str, ...]] | None = None,
) -> Reading:
    """The graph, once it is known who is who.

    Args:
        found: what was handed over, with what was wrong in it.
        title: what the provenance calls it.
        labelled: whether labels are read.
        owners_of: int64 [n], who holds each person, and their names; None: one owner.
    """
    faults = found.faults
    try:
        label = _label_of(roles, rules, labelled)
    except (DataError, ScenarioError) as error:
        faults.refuse(_read_as(roles))
        if isinstance(error, ReadingQuestion):
            parts = [("people", [f"{len(roles.ids):,}{_named_by(roles)}"])]
            parts.append(("ties", [f"{roles.one.size:,} lines{_tied_by(roles)}", *roles.first]))
            error.understood = _as_table(name, parts)
        raise
    if owners_of is not None and label is not None:
        _require_everywhere(label, *owners_of)
    n = len(roles.ids)
    known = label if labelled else None
    roles.remarks += [] if known is None else _coded(known.column, known.texts)
    roles.remarks += _between_kinds(roles)
    left_out: list[tuple[str, str]] = []
    read = _columns_of(roles, label, rules, faults, left_out, labelled)
    faults.refuse(_read_as(roles))
    if read.matrix.shape[1] == 0:
        read = replace(read, matrix=sp.csr_array(np.ones((n, 1))), names=(_CONSTANT,))
        roles.remarks.append("nothing is known of people but their ties: all have one column, a constant 1")
    one, two, owners, remarks = _typed(roles, rules)
    more = [column for column in roles.ties.names if column not in {*roles.ends, rules.owner, rules.kind}]
    unused = [f"column {column!r} of {roles.ties.title}" for column in more]
    roles.remarks += [told for column in more if (told := _tells_ties_apart(column, roles))]
    unused += [f"column {column!r}: {reason}" for column, reason in left_out if reason.startswith(_BESIDE)]
    unused += [one for table in found.tables for one in table.unused]
    left_out = [one for one in left_out if not one[1].startswith(_BESIDE)]
    where = roles.ties.where if label is None else label.holder.table.where
    masks = _masks_of(roles.masks, n, where, None if found.checksums else unused)
    labels = OwnLabels(np.full(n, -1, dtype=np.int64), (), ())
    labels = labels if known is None else own_columns.read_own_labels(known.texts, where)
    matrix, cleaned = _as_narrow(read.matrix), adjacencies.undirected_adjacency(one, two, n)
    listed = itertools.chain([("lines of ties", one, two)], _lines_of_a_kind(roles))
    from_edges, seen = own_columns.notice_edge_columns(rules, matrix, cleaned.adjacency, read.names, listed)
    notes = [*(remark for table in found.tables for remark in table.remarks), *roles.ties.remarks, *roles.remarks]
    notes = [*read.remarks, *dict.fromkeys(notes), *remarks, *seen]
    for column in dict.fromkeys(c for h in roles.holders for c in h.table.names if owners_of is None and says("owner", c)):
        taken = "is taken for a fact of people: if it names who holds their rows, write a folder for each owner (a federation)"
        notes += [f"column {column!r} {taken}"] if label is None or column != label.column else []
    classes = counted(len(labels.classes), "class") if labels.classes else "no labels"
    many = f"{counted(n, 'person')}, {counted(cleaned.adjacency.nnz // 2, 'tie')}"
    detail = [f"{title}: {many}, {classes}", *labels.remarks]
    detail += [f"not used: {', '.join(unused)}"] if unused else []
    detail += [*(in_words_of("person", said) for said in adjacencies.describe_adjacency_cleaning([cleaned])), *notes]
    checksums = found.checksums
    if not checksums:
        for sentence in (*(f"not used: {what}" for what in unused), *labels.remarks, *notes):
            _logger.warning("%s: %s", name, sentence)
        checksums = {"(in memory)": _digest(cleaned.adjacency, matrix, labels.numbers)}
    provenance = GraphProvenance("own", "; ".join(detail), dict(checksums))
    graph = plain_graph(name, cleaned.adjacency, matrix, labels.numbers, len(labels.classes), provenance)
    from_rows = read.from_rows or owners_of is not None or not set(read.names) <= set(read.bounded)
    headed = not roles.holders or any(holder.table.headed for holder in roles.holders)
    ids = () if roles.holders and roles.holders[0].table.numbered else tuple(roles.ids)
    graph = replace(
        graph, masks=masks, columns_from_rows=from_rows, features_from_edges=from_edges,
        names=GraphNames(ids, read.names if headed else (), labels.classes, "person", "" if label is None else label.column),
        columns=own_columns.own_column_scales(matrix, read.names, read.bounded),
    )  # fmt: skip
    if owners.size:
        apart = one != two
        layers = adjacencies.adjacency_of_owners(np.column_stack([one, two])[apart], owners[apart], n)
        graph = replace(graph, edge_owners=layers, one_owner_a_record=True)
    if owners_of is not None:
        graph = replace(graph, owner=owners_of[0], owner_names=owners_of[1])
    used = {row[0] for row in read.table}  # of another table
    dropped = [one for one in left_out if one[0] not in used]
    told_of = told_rules(rules, label.column if label is not None else rules.label, dropped)
    return Reading(graph, say_graph(graph, (roles, label, read), left_out, unused, found.aside.items()), told_of, read.spans)


def _lines_of_a_kind(roles: Roles) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """All lines, and those of each kind that a column of few values tells, each with the people at their two ends."""
    yield "all lines", roles.one, roles.two
    for column in (name for name in roles.ties.names if name not in roles.ends):
        number, kinds = pd.factorize(np.array(roles.ties.texts(column), dtype=object))
        for place, kind in enumerate(kinds if 1 < len(kinds) <= _MOST_NUMBERS else ()):
            own = number == place
            yield f"lines of the {column} {kind or '(empty)'}", roles.one[own], roles.two[own]


def _between_kinds(roles: Roles) -> list[str]:
    """A remark for each column of few values of which no tie has one at both its ends, as of heroes and their comics."""
    found = list[str]()
    apart = roles.one != roles.two
    one, two = roles.one[apart], roles.two[apart]
    for holder, column in ((own, name) for own in roles.holders for name in own.table.names if name != own.id):
        number, kinds = pd.factorize(np.array(_cells(holder, column), dtype=object))
        if not 1 < len(kinds) <= _MOST_NUMBERS or "" in kinds or (number[one] == number[two]).any():
            continue
        share = np.bincount(np.concatenate([number[one], number[two]]), minlength=len(kinds)) / max(1, 2 * one.size)
        if one.size and share.max() < 1 and one.size * math.log1p(-np.square(share).sum()) < math.log(_BY_CHANCE):
            what = "if these are kinds of nodes, such as people and what they share, bring pairs of people who share one as "
            what += "source,target, or let the kind be a column and another one the label"
            found.append(f"no tie is between two of one {column!r} ({', '.join(map(str, sorted(kinds)))}): {what}")
    return found


def _tells_ties_apart(column: str, roles: Roles) -> str:
    """A remark where a column may say of some ties that they are none: of a status, a layer, a sign, an end; "" elsewhere."""
    cells = Counter(roles.ties.texts(column))
    below = sum(count for cell, count in cells.items() if cell.startswith("-") and csv_number(cell) < 0)
    ended = says("ended", column)
    first = min(map(roles.ties.names.index, roles.ends))
    before = not roles.ties.headed and column in roles.ties.names[:first]  # of a list, in front of both ends
    said = says("status", column) or before or (len(cells) == 2 and own_columns.kind_of([*cells]) == "yes/no")
    if 2 <= len(cells) <= _MOST_NUMBERS and (said or ended):
        told = ", ".join(f"{cell or '(empty)'} {count:,}" for cell, count in cells.most_common(5))
    elif ended and 0 < cells[""] < cells.total():
        told = f"filled in {cells.total() - cells['']:,} of {cells.total():,} lines"
    elif says("sign", column) and 0 < below < cells.total():
        told = f"below 0 in {below:,} of {cells.total():,} lines"
    else:
        return ""
    return f"column {column!r} of {roles.ties.title} tells ties apart ({told}), {SOME_NO_TIES}"


def _masks_of(masks: Sequence[GraphMasks], n: int, where: str, unused: list[str] | None) -> tuple[GraphMasks, ...]:
    """Splits that are whole. unused: gets those that are not, of data in memory; None: they are refused."""
    if unused is not None and masks and not all(one.train.size and one.test.size for one in masks):
        unused.append("masks (a split needs train_mask and test_mask)")
        return ()
    for one in masks:
        one.check(n, where)
    return tuple(masks)


def _digest(edges: sp.csr_array, matrix: sp.csr_array, labels: np.ndarray) -> str:
    found = hashlib.sha256()
    for part in (edges.indptr, edges.indices, matrix.indptr, matrix.indices, matrix.data, labels):
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def _as_narrow(rows: sp.csr_array) -> sp.csr_array:
    """CSR float32 without stored zeros; float64 where some column would lose values that differ, such as seconds since 1970."""
    narrow = adjacencies.feature_matrix(rows)
    wide = sp.csc_array(rows, dtype=np.float64)
    wide.sum_duplicates()
    wide.eliminate_zeros()
    for place in range(wide.shape[1]):
        own = wide.data[wide.indptr[place] : wide.indptr[place + 1]]
        if own.size and np.abs(own).max() > 2**24 and np.unique(own.astype(np.float32)).size < np.unique(own).size:
            found = sp.csr_array(wide)
            found.sort_indices()
            return found
    return narrow


def _require_everywhere(label: _Label, owner: np.ndarray, names: Sequence[str]) -> None:
    """``DataError`` where some owner has no such column, so that one who forgot it is not taken for one who has no labels."""
    lacking = label.holder.lacking.get(label.column)
    if lacking is not None and lacking.any():
        one = names[int(owner[int(np.flatnonzero(lacking)[0])])]
        raise DataError(
            f"{label.holder.table.where}: client {one!r} has no column {label.column!r}, others have; allowed: a line for each "
            f"person with a label; of a client without labels, a table with the head id,{label.column} and no line"
        )


def _typed(roles: Roles, rules: ReadRules) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """(both ends of the ties of kinds that are kept; the number of each one's owner, or nothing; remarks)."""
    ties, remarks = roles.ties, list[str]()
    if rules.kinds and not rules.kind:
        raise ScenarioError("own/read: kinds says which kinds of ties are kept, and kind, which column names them, is missing")
    for column in (rules.kind, rules.owner):
        if column and column not in ties.names:
            others = ", ".join(sorted({*ties.names} - {*roles.ends}))
            raise DataError(f"{ties.where}: there is no column {column!r} beside the two ids; found: {others}")
        if column and (bare := [row for row, cell in enumerate(ties.texts(column)) if not cell]):
            also = f" (and on {len(bare) - 1:,} more lines)" if len(bare) > 1 else ""
            raise DataError(f"{ties.place(bare[0])}: no {column}{also}; allowed: any text")
    if not rules.kind:
        _require_some(roles)
    kept = np.ones(roles.one.size, dtype=bool)
    if rules.kind:
        kinds = np.array(ties.texts(rules.kind), dtype=object)
        every = sorted(set(kinds.tolist()))
        if unknown := sorted(set(rules.kinds) - set(every)):
            raise ScenarioError(f"{ties.where}: no edge is of the kind {unknown[0]!r}; allowed: {', '.join(every)}")
        kept = np.isin(kinds, rules.kinds or every)
        said = ", ".join(f"{kind}: {int((kinds == kind).sum())}" for kind in every)
        chosen = f"of the kind {' or '.join(rules.kinds)} are read" if rules.kinds else "are read, of whatever kind"
        remarks.append(f"{int(kept.sum()):,} ties {chosen} ({said})")
    owners = np.zeros(0, dtype=np.int64)
    if rules.owner:
        names, numbers = np.unique(np.array(ties.texts(rules.owner), dtype=object), return_inverse=True)
        owners = numbers.astype(np.int64)[kept]
        remarks.append(f"{names.size} owners of edges")
    return roles.one[kept], roles.two[kept], owners, remarks


def _require_some(roles: Roles) -> None:
    """``DataError`` where nearly all pairs of people are listed, and a column says of some that they are no ties."""
    n, ties = len(roles.ids), roles.ties
    many = _NEARLY_ALL * n * (n - 1) / 2
    low, high = np.minimum(roles.one, roles.two), np.maximum(roles.one, roles.two)
    if n < _FEWEST or low.size < many or np.unique((low * n + high)[low < high]).size < many:
        return
    for column in (name for name in ties.names if name not in roles.ends):
        cells = Counter(ties.texts(column))
        nothing = sum(count for cell, count in cells.items() if csv_number(cell) == 0 or cell.casefold() in ("no", "false"))
        if 0 < nothing < ties.frame.shape[0]:
            said = f"lists nearly all pairs of people, and {column!r} is 0 or no in {nothing:,} of {len(ties.frame):,} lines"
            raise DataError(
                f"{ties.where}: {said}; allowed: lines of ties alone, or this column called weight, of which 0 is no tie"
            )


def of_collection(
    roles: Roles,
    number: np.ndarray,
    given: Sequence[tuple[str, str, str]],
    found: Gathered,
    rules: ReadRules,
    name: str,
    title: str,
    *,
    where: str,
    label: str = "",
    unused: Sequence[str] = (),
    unlabelled: bool = False,
) -> Reading:
    """Many small graphs, and what was understood.

    Args:
        roles: of the people of all of them.
        number: int64 [n], the graph of each.
        given: (name, label, owner) of each graph; "" where there is none.
        where: names the labels in an error.
        label: what their column is called, where they have one.
        unlabelled: whether graphs whose label nobody knows stay, with label −1; else they are left out.

    Raises:
        DataError: no graph has a label, or some graphs have an owner and others none.
    """
    left_out: list[tuple[str, str]] = []
    read = _columns_of(roles, None, rules, found.faults, left_out, False)
    found.faults.refuse()
    names, texts, owned = zip(*given, strict=True)
    labels = own_columns.read_own_labels(texts, where, "graph")
    if "" in owned and any(owned):
        raise DataError(f"{where}: graph {names[owned.index('')]!r} has no owner, others have; allowed: all or none")
    n, owners = len(roles.ids), sorted(set(owned) - {""})
    cleaned, matrix = adjacencies.undirected_adjacency(roles.one, roles.two, n), adjacencies.feature_matrix(read.matrix)
    from_edges, seen = own_columns.notice_edge_columns(
        rules, matrix, cleaned.adjacency, read.names, [("lines of ties", roles.one, roles.two)]
    )
    scales = own_columns.own_column_scales(matrix, read.names, read.bounded)
    known = np.arange(len(names)) if unlabelled else np.flatnonzero(labels.numbers >= 0)
    unused = [*unused, *dict.fromkeys(one for table in found.tables for one in table.unused)]
    counts = [(known.size, "graph"), (n, "node"), (cleaned.adjacency.nnz // 2, "edge"), (len(labels.classes), "class")]
    counts += [(len(owners), "owner")] if owners else []
    notes = [f"{title}: {', '.join(counted(*one) for one in counts)}", *labels.remarks]
    notes += ["graphs without a label are left out"] if known.size < len(names) else []
    notes += [f"not used: {', '.join(unused)}"] if unused else []
    notes += [*adjacencies.describe_adjacency_cleaning([cleaned]), *read.remarks, *seen]
    if unused and not found.checksums:
        _logger.warning("%s: not used: %s", name, ", ".join(unused))
    provenance, sizes = GraphProvenance("own", "; ".join(notes), found.checksums), np.bincount(number, minlength=len(names))
    graphs, ends = [], np.cumsum(sizes)
    for place, block in enumerate(adjacencies.adjacency_blocks(cleaned.adjacency, sizes)):
        own, nobody = slice(int(ends[place] - sizes[place]), int(ends[place])), np.full(sizes[place], -1, dtype=np.int64)
        graph = plain_graph(f"{name}#{names[place]}", block, sp.csr_array(matrix[own]), nobody, 0, provenance)
        ids = tuple(one.partition(f"{names[place]}/")[2] for one in roles.ids[own])
        graphs.append(replace(
            graph, features_from_edges=from_edges, columns_from_rows=read.from_rows and bool(read.names),
            names=GraphNames(ids, read.names), columns=scales,
        ))  # fmt: skip
    of_graphs = np.array([owners.index(owner) for owner in owned], dtype=np.int64) if owners else None
    whole = GraphCollection(name, tuple(graphs), labels.numbers, len(labels.classes), provenance)
    whole = replace(whole, owner=of_graphs, owner_names=tuple(owners), classes=labels.classes)
    whole = whole if known.size == len(names) else whole.chosen(known)
    held = np.bincount(whole.labels[whole.labels >= 0], minlength=whole.num_classes)
    listed = ", ".join(f"{name} {count:,}" for name, count in zip(whole.classes, held, strict=True))
    few = _few(list(zip(whole.classes, map(int, held), strict=True)), "graphs")
    parts: list[tuple[str, Sequence[str]]] = [("graphs", notes[:1]), ("nodes", [f"{sizes.min()} … {sizes.max()} of a graph"])]
    parts += [("label", [f"{label or 'label'}: {listed}", *([few] if few else [])]), ("columns", _aligned(read.table))]
    parts += _beside(left_out, (), found.aside.items(), notes[1:])
    return Reading(whole, _as_table(whole.name, parts), told_rules(rules, label or rules.label, left_out))


def collection_as_rows(collection: GraphCollection) -> Graph:
    """One node per graph, without edges; owners and labels are those of the graphs.

    Args:
        collection: k graphs with the same columns.

    Returns:
        k rows of the numbers of nodes and edges, the mean degree, the shares of degrees, and the mean of each column. Means of
        columns with bounds stay within −1 … 1.
    """
    first = collection.graphs[0]
    sizes = np.array([graph.num_nodes for graph in collection.graphs])
    most = _MOST_DEGREE + 1
    degrees = [np.bincount(g.degrees.clip(max=_MOST_DEGREE), minlength=most) / g.num_nodes for g in collection.graphs]
    edges = np.array([graph.num_edges for graph in collection.graphs])
    means = np.stack([np.asarray(graph.features.mean(axis=0)).ravel() for graph in collection.graphs])
    matrix = np.column_stack([sizes, edges, 2 * edges / sizes, *np.stack(degrees).T, means])
    shares = [f"share of degree {k}" for k in range(_MOST_DEGREE)] + [f"share of degree {_MOST_DEGREE} or more"]
    columns = tuple(f"mean of {name}" for name in first.names.columns)
    names = ("nodes", "edges", "mean degree", *shares, *columns)
    bounded = () if first.columns is None else tuple(columns[place] for place in first.columns.bounded)
    features = adjacencies.feature_matrix(sp.csr_array(matrix))
    ids = tuple(graph.name.rpartition("#")[2] for graph in collection.graphs)
    said = f"{collection.provenance.detail}; each graph is one row of {len(names)} columns: size, degrees, means"
    nothing, provenance = sp.csr_array((sizes.size, sizes.size)), replace(collection.provenance, detail=said)
    # of other rows there are none, so no feature comes from an edge
    graph = plain_graph(collection.name, nothing, features, collection.labels, collection.num_classes, provenance)
    graph = replace(graph, owner=collection.owner, owner_names=collection.owner_names, columns_from_rows=True)
    scales = own_columns.own_column_scales(features, names, bounded)
    return replace(graph, names=GraphNames(ids, names, collection.classes, one="graph"), columns=scales)


# Which column is the label


def _cells(holder: Holder, column: str) -> list[str]:
    """The cells of the n people; "" for whoever has no row. Called as the file: whether somebody has one."""
    if column not in holder.table.names:
        return np.where(holder.rows >= 0, "yes", "no").tolist()
    texts = holder.table.texts(column)
    if len(texts) == holder.rows.size and np.array_equal(holder.rows, np.arange(len(texts))):
        return texts
    return list(np.array([*texts, ""], dtype=object)[holder.rows])


def _lists(roles: Roles) -> list[tuple[Holder, str]]:
    """Files of some people alone, with what they are called: lists, and those called as what is asked about people."""
    able = [h for h in roles.holders[1:] if not is_labels(h.table) and h.table.matrix is None]
    found = [h for h in able if h.table.stem not in h.table.names]
    found = [h for h in found if (h.table.names == [h.id] and not h.table.unused) or says("listed", h.table.stem)]
    return [(h, h.table.stem) for h in found if 0 < int((h.rows >= 0).sum()) < h.rows.size]


def _texts_of(cells: Iterable[str]) -> list[str | None]:
    """Labels as they will be read; −1 beside 1 alone is a class."""
    given = list(cells)
    known = {cell: own_label_text(cell) for cell in set(given)}
    texts = [known[cell] for cell in given]
    return given if {text for text in texts if text is not None} == {"1"} else texts  # type: ignore[return-value]


def _few_values(texts: Sequence[str | None]) -> bool:
    """Whether few values stand for many people each."""
    counts = Counter(text for text in texts if text is not None)
    known = sum(counts.values())
    return 2 <= len(counts) <= min(_MOST_CLASSES, max(5, known // 3)) and len(counts) < known


def _names_people(texts: Sequence[str | None]) -> bool:
    """Whether there are (nearly) as many values as people: names, or numbers to predict."""
    counts = Counter(text for text in texts if text is not None)
    known = sum(counts.values())
    numbers = all(_is_numeric([text]) for text in counts)
    return len(counts) > max(5, known / 3) or (known >= 3 and len(counts) == known and not numbers)


def _shared(texts: Sequence[str | None]) -> bool:
    """Whether the values of a column that is not called a label are as few as classes are, of numbers very few."""
    counts = Counter(text for text in texts if text is not None)
    return len(counts) <= (_MOST_NUMBERS if all(_is_numeric([text]) for text in counts) else _MOST_TEXTS)


def _label_of(roles: Roles, rules: ReadRules, labelled: bool) -> _Label | None:
    """The column that is predicted; None where there is none. ``ReadingQuestion`` where several may be it."""
    every = [(h, column) for h in roles.holders for column in h.table.names if column not in (h.id, "")]
    for holder, column in every:
        kinds = Counter(cell for cell in _cells(holder, column) if cell) if column == _KIND else Counter()
        if len(kinds) > 1 and not set.intersection(*(set(kind.strip(":").split(":")) for kind in kinds)):
            listed = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(5))
            said = f"{holder.table.where}: {_KIND!r} names several kinds of nodes: {listed}; allowed: people alone"
            raise DataError(f"{said}. Keep the rows of one kind, and the ties between them")
    if rules.label:
        return _told_label(roles, every, rules.label, labelled)
    drawn = {table.where: {_KIND, *drawn_columns(table)} for table in (h.table for h in roles.holders)}
    every = [(h, column) for h, column in every if not says("groups", column) and column not in drawn[h.table.where]]
    if rules.label == "":
        return None
    told = [(h, h.table.label) for h in roles.holders if h.table.label is not None]
    if len(told) == 1:
        return _Label(*told[0], _texts_of(_cells(*told[0])) if labelled else [None] * len(roles.ids))
    if not labelled:
        sure = [(h, column) for h, column in every if says("label", column) and h.table.headed]
        return _Label(*sure[0], [None] * len(roles.ids)) if len(sure) == 1 else None
    apart = [one for one in every if _stands_apart(*one)]
    every = [one for one in every if one in apart or not says("label", one[1]) or any(_cells(*one))]
    narrow = every if len(every) <= 2000 else [one for one in every if one[0].table.headed]
    texts: dict[int, list[str | None]] = {}

    def few(place: int) -> bool:
        if place not in texts:
            texts[place] = _texts_of(_cells(*narrow[place]))
        return _few_values(texts[place]) and not any(re.fullmatch(r"[+-]?\d+\.\d+", text or "") for text in texts[place])

    named = [one for one in apart if says("label", one[1]) and one[0].table.headed]
    if not named and len(apart) == 1:
        named = apart
    if not named and apart:
        named = [one for one in apart if _few_values(_texts_of(_cells(*one)))]
    places = range(len(narrow))
    if not named:
        certain = [p for p in places if narrow[p][0].table.headed and says("label", narrow[p][1])]
        named = [narrow[p] for p in certain if not _names_people(_texts_of(_cells(*narrow[p])))]
    if not named:
        ends = ("label", "class", "target")
        named = [narrow[p] for p in places if narrow[p][0].table.headed and plain_name(narrow[p][1]).endswith(ends) and few(p)]
        sought = [narrow[p] for p in places if named and narrow[p][0].table.headed and says("wanted", narrow[p][1]) and few(p)]
        named = [*sought, *(one for one in named if one not in sought)]  # who survived, beside a class of travel
    if not named:
        plain = [p for p in places if not narrow[p][0].table.headed and not _is_numeric(_cells(*narrow[p]))]
        named = [narrow[p] for p in plain if few(p)]
    if not named and len(narrow) == 1 and not narrow[0][0].table.headed and few(0):
        named = narrow
    if not named and len(narrow) <= 400:
        able = [p for p in places if few(p) and _many_each(texts[p]) and not _told_otherwise(roles, *narrow[p])]
        shared = [p for p in able if _shared(texts[p])]
        # numbers of many values may be codes of classes, too, where another column may be the label
        named = [narrow[p] for p in (*shared, *(p for p in able if p not in shared))] if shared else []
        files = _lists(roles)  # not even one of them is the label before its owner says so
        if named or files:
            named = _different(sorted([*named, *files], key=lambda one: not says("wanted", one[1])))
            if files or len(named) > 1:
                raise _question(named)
    named = _different(named)
    if len(named) > 1:
        raise _question(named)
    return _Label(*named[0], _texts_of(_cells(*named[0]))) if named else None


def _question(named: Sequence[tuple[Holder, str]]) -> ReadingQuestion:
    """Which of several columns is the label: those first that are called as what people want to know."""
    wanted = [one for one in named if says("wanted", one[1])]
    ordered = [*wanted, *(one for one in named if one not in wanted)]
    whose = [f"who is in {h.table.title}; " if column not in h.table.names else "" for h, column in ordered[:_OFFERED]]
    counts = [_counts(_texts_of(_cells(h, column))) for h, column in ordered[:_OFFERED]]
    listed = [f"{column!r} ({who}{count})" for (_, column), who, count in zip(ordered, whose, counts, strict=False)]
    more = f" or one of {len(ordered) - _OFFERED} more" if len(ordered) > _OFFERED else ""
    said = f"{ordered[0][0].table.where}: which column is the label: {' or '.join(listed)}{more}? Say --label NAME"
    likely = wanted[0][1] if len(wanted) == 1 else ""
    said += f", such as {shlex.quote(likely)} (in Python label={likely!r})" if likely else " (in Python label='NAME')"
    return ReadingQuestion(said, "label", [column for _, column in ordered], likely)


def _many_each(texts: Sequence[str | None]) -> bool:
    """Whether many people stand for each value; of more values than are usual, for the rarest, too."""
    counts = Counter(text for text in texts if text is not None)
    return sum(counts.values()) >= 5 * len(counts) and (_shared(texts) or min(counts.values()) >= 5)


def _told_otherwise(roles: Roles, holder: Holder, column: str) -> bool:
    """Whether a column of few values says when somebody came, or whom or how many ties one has, and is no label."""
    cells = _cells(holder, column)
    if own_columns.kind_of(cells) == "date" or (column in holder.table.of_ties and not says("wanted", column)):
        return True
    numbers = np.array([csv_number(cell) for cell in cells])
    known = ~np.isnan(numbers)
    different = np.unique(numbers[known])
    if different.size < 3 or not (known | np.array([not cell for cell in cells])).all():
        return False
    if (different == different.round()).all() and _YEARS[0] <= different.min() and different.max() <= _YEARS[1]:
        return True
    counts = [np.bincount(side, minlength=len(roles.ids)) for side in (roles.one, roles.two)]
    return any(own_columns.alike(numbers[known], count[known]) for count in (*counts, counts[0] + counts[1]))


def _stands_apart(holder: Holder, column: str) -> bool:
    """Whether a column is one of labels because of the file where it stands."""
    return is_labels(holder.table) or column in holder.beside


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(not cell or not math.isnan(csv_number(cell)) for cell in cells)


def _different(named: list[tuple[Holder, str]]) -> list[tuple[Holder, str]]:
    """Without columns that say the same as an earlier one."""
    kept: list[tuple[tuple[Holder, str], list[str | None]]] = []
    for one in named:
        texts = _texts_of(_cells(*one))
        if not any(_same_parts(texts, other) for _, other in kept):
            kept.append((one, texts))
    return [one for one, _ in kept]


def _told_label(roles: Roles, every: Sequence[tuple[Holder, str]], label: str, labelled: bool) -> _Label | None:
    names = called_so(label, (column for _, column in every))
    having = [one for one in every if one[1] in names]
    ids = [holder for holder in roles.holders if called_so(label, [holder.id])]
    if len(names) > 1 and labelled:
        both = [f"{column!r} ({_counts(_texts_of(_cells(h, column)))})" for h, column in having]
        said = (
            f"{_places(roles)}: no column is spelled {label!r}; which one is the label: {' or '.join(both)}? Say --label NAME"
        )
        raise ReadingQuestion(said, "label", names)
    if names and names[0] != label:
        roles.remarks.append(f"the label {label!r} was taken for the column {names[0]!r}")
    files = [one for one in _lists(roles) if called_so(label, [one[1], one[0].table.title])]
    if not having and len(files) == 1:
        return _Label(*files[0], _texts_of(_cells(*files[0])) if labelled else [None] * len(roles.ids))
    if not having and ids and labelled:
        raise ScenarioError(
            f"--label {label}: this column of {ids[0].table.title} names people, and is no label; {_choices(every)}"
        )
    if not having:
        if not labelled:
            return None
        if called_so(label, roles.ties.names):
            raise DataError(
                f"{roles.ties.where}: {label!r} is a column of ties; allowed: a label of people (whether any tie of a person "
                f"has it, say: write that beside the person); {_choices(every)}"
            )
        raise DataError(f"{_places(roles)}: there is no column {label!r}; {_choices(every)}")
    apart = [one for one in having if _stands_apart(*one)]
    holder, column = (apart or having)[0]
    if not labelled:
        return _Label(holder, column, [None] * len(roles.ids))
    texts = _texts_of(_cells(holder, column))
    counts = Counter(text for text in texts if text is not None)
    known = sum(counts.values())
    numbers = all(_is_numeric([text]) for text in counts)
    if _names_people(texts):
        fractions = " To predict a number is not supported: cut it into classes (low, middle, high)." if numbers else ""
        raise ScenarioError(
            f"--label {label}: {len(counts):,} different values for {known:,} people, such as {next(iter(counts))!r}; a class "
            f"is shared by many.{fractions} {_choices(every)}"
        )
    return _Label(holder, column, texts)


def _places(roles: Roles) -> str:
    return ", ".join(dict.fromkeys(holder.table.where for holder in roles.holders)) or roles.ties.where


def _choices(every: Sequence[tuple[Holder, str]]) -> str:
    fit = [column for holder, column in every[:400] if _few_values(_texts_of(_cells(holder, column)))]
    if fit:
        return f"columns that may be it: {', '.join(fit[:12])}"
    return f"found: {', '.join(column for _, column in every[:12]) or 'no column'}"


def _same_parts(one: Sequence[object], two: Sequence[object]) -> bool:
    """Whether two columns tell the same people apart, over those of whom both are known."""
    pairs = {(a, b) for a, b in zip(one, two, strict=True) if a not in (None, "") and b not in (None, "")}
    firsts, seconds = {a for a, _ in pairs}, {b for _, b in pairs}
    return len(pairs) > 1 and len(pairs) == len(firsts) == len(seconds)


def _counts(texts: Sequence[str | None]) -> str:
    counts = sorted(Counter(text for text in texts if text is not None).items(), key=lambda one: (-one[1], one[0]))
    if len(counts) > 4:
        return f"{len(counts)} values, {counts[-1][1]:,}–{counts[0][1]:,} people each"
    return ", ".join(f"{text}: {count:,}" for text, count in counts)


# What becomes of the other columns


def _columns_of(
    roles: Roles,
    label: _Label | None,
    rules: ReadRules,
    faults: DataFileFaults,
    left_out: list[tuple[str, str]],
    labelled: bool,
) -> OwnColumns:
    """The columns of all tables of people. left_out: gets the names of columns that are no features, each with its reason."""
    n, ids = len(roles.ids), set(roles.ids)
    found: list[OwnColumns] = []
    seen: set[str] = set()
    mine = [holder for holder in roles.holders if not is_labels(holder.table) or len(roles.holders) == 1]
    for holder in roles.holders:
        table = holder.table
        others = [c for c in table.names if c != holder.id and not (label and holder is label.holder and c == label.column)]
        if label and holder is label.holder and label.column not in table.names:
            left_out += [(column, f"it stands in {table.title}, and who stands there is the label") for column in others]
            continue
        if holder not in mine:
            left_out += [(column, f"{_BESIDE} {table.title}") for column in others if column not in rules.drop]
            continue
        kept: dict[str, list[str]] = {}
        drawn = drawn_columns(table) if table.headed else []
        null = any("NULL" in (cells := _cells(holder, column)) and own_columns.kind_of(cells) != "text" for column in others)
        for column in others:
            if column in rules.drop:
                left_out.append((column, "as said (drop)"))
                continue
            if column in holder.beside:
                left_out.append((column, f"{_BESIDE} tables of labels"))
                continue
            cells = _cells(holder, column)
            if null and "NULL" in cells and own_columns.kind_of(cells) == "text":
                roles.remarks.append(f"'NULL' in {column} is an empty cell, as among numbers there")
                cells = ["" if cell == "NULL" else cell for cell in cells]
            told = f"it names rows of {table.refers[column]}" if column in table.refers and column not in rules.bounds else ""
            told = "a program draws people so" if column in drawn and column not in rules.bounds else told
            told = told if rules.from_edges else table.of_ties.get(column, told or goes_with_ties(roles, column, cells))
            told = "it is the id again" if cells == _cells(holder, holder.id) else told
            if not told and column not in rules.bounds and names_people({id_text(cell) for cell in set(cells) if cell}, ids):
                told = "it names other people, which ties say and no column; a file of two columns of ids has ties"
            if not told and column not in rules.bounds and (told := _names_who(column, cells, table.headed)):
                roles.remarks.append(f"column {column!r} {told}: {ROWS_OF_ONE}")
            if reason := told or _no_feature(column, cells, label, rules, table.headed):
                left_out.append((column, reason))
                continue
            called = column if column not in seen else f"{column} ({table.stem})"
            kept[called] = cells
            if column not in rules.bounds:
                roles.remarks += _coded(column, cells)
            roles.remarks += _tells_label(called, cells, label)
            seen.add(called)
        found += _read_columns(holder, kept, rules, faults, roles.ids)
        if table.matrix is not None:
            found.append(_matrix_of(holder, n, seen, rules))
    _require_known(roles, rules, labelled)
    if not found:
        return OwnColumns(sp.csr_array((n, 0)), (), False)
    matrix = sp.csr_array(sp.hstack([one.matrix for one in found]))
    names = tuple(name for one in found for name in one.names)
    if any(holder.table.places for holder in roles.holders):
        matrix, names = _by_name(matrix, names)
    if matrix.nnz < 2**31:  # scipy chooses by what it joins; the same rows are the same bytes
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    remarks = tuple(dict.fromkeys(remark for one in found for remark in one.remarks))
    spans: dict[str, tuple[bool, float, float]] = {}
    for name, (dates, *held) in (one for own in found for one in own.spans.items()):  # a client may lack a column
        held += spans[name][1:] if name in spans else ()
        spans[name] = (dates, min(held), max(held))
    return OwnColumns(
        matrix,
        names,
        any(one.from_rows for one in found) or bool(left_out),
        tuple(name for one in found for name in one.bounded),
        remarks,
        tuple(row for one in found for row in one.table),
        spans,
    )


def _coded(column: str, cells: Iterable[str | None]) -> list[str]:
    """A remark where numbers are such as surveys write for no answer: below 0 with nothing else, or far above all others."""
    counts = Counter(cell for cell in cells if cell)
    below = sorted(cell for cell in counts if cell.startswith("-"))
    codes = below if all(map(_CODE.fullmatch, below)) else []
    codes += _far_above({cell: count for cell, count in counts.items() if cell not in codes})
    if not codes:
        return []
    return [
        f"{', '.join(codes)} of {column} may stand for no answer, and is a value like others as it is: if so, empty these cells"
    ]


def _far_above(counts: Mapping[str, int]) -> list[str]:
    """The 9 of answers from 1 to 5, or the 99 of numbers below a third of it, that several people have; nothing elsewhere."""
    numbers = {own_label_text(cell) or "": count for cell, count in counts.items()}
    if len(numbers) < 3 or not all(one.isascii() and one.isdigit() and len(one) < 9 for one in numbers):
        return []
    width = max(map(len, numbers))
    codes = sorted((one for one in numbers if len(one) == width and _NO_ANSWER.fullmatch(one)), key=int)
    others = {int(one) for one in numbers if one not in codes}
    if not codes or len(others) < 2 or sum(numbers[one] for one in codes) < _SEVERAL:
        return []
    most, least = max(others), min(others)
    scale = width == 1 and least <= 1 and len(others) == most - least + 1 and most <= int(codes[0]) - 3
    return codes if scale or (width > 1 and 3 * most < int(codes[0])) else []


def _tells_label(column: str, cells: Sequence[str], label: _Label | None) -> list[str]:
    """A remark where a column alone tells nearly every label, or has a value (or the rarer of two) for one class alone."""
    if label is None:
        return []
    pairs = {pair: count for pair, count in Counter(zip(cells, label.texts, strict=True)).items() if pair[1] is not None}
    sizes, classes, filled = Counter[str](), Counter[str](), Counter[str]()
    for (cell, text), count in pairs.items():
        sizes[cell] += count
        classes[str(text)] += count
    known, guess = classes.total(), max(classes.values(), default=0)
    if known - guess < _FEWEST:
        return []
    many = len(sizes) > _MOST_PARTS or 5 * len(sizes) > known
    nothing = {"", "-1", "-1.0", "NaN", "nan", *(("0", "0.0") if many else ())}
    usual, parts = max(sizes, key=sizes.__getitem__), dict[str, Counter[str]]()
    rare = next((cell for cell in sizes if cell != usual), "") if len(sizes) == 2 and not nothing & sizes.keys() else ""
    nothing |= {usual} if rare else set()  # of yes and no, the one that fewer have
    for (cell, text), count in pairs.items():
        filled[str(text)] += count if cell not in nothing else 0
        parts.setdefault(cell if not many or cell == usual else "all others", Counter())[str(text)] += count
    halves = list(parts.values())
    right = sum(max(own.values(), default=0) for own in halves)
    if known - right <= (1 - _TOLD) * (known - guess):
        return [f"column {column} alone tells the label of {right:,} of {known:,} people, {WRITTEN_AFTER}"]
    count, (one, most) = filled.total(), (filled.most_common(1) or [("", 0)])[0]
    if _FEWEST <= count < known and most == count and count * math.log(classes[one] / known) < math.log(_BY_CHANCE):
        has = f"is {rare!r}" if rare else "has a value"
        return [f"column {column} {has} for {count:,} people, all of the class {one}, {WRITTEN_AFTER}"]
    told = _told_by_size(cells, label.texts) if many else 0
    return [f"column {column}, cut at one or two numbers, tells the label of {told:,} of {known:,} people, {WRITTEN_AFTER}"] * (
        told > 0
    )


def _told_by_size(cells: Sequence[str], texts: Sequence[str | None]) -> int:
    """Of how many people a column of numbers, cut at one or two of them, tells the label; 0 where that may be chance.

    Those without a number are a part of their own.
    """
    known = np.array([text is not None for text in texts])
    values = own_columns.numbers_in(cells)[known]
    number, names = pd.factorize(np.array([text for text in texts if text is not None], dtype=object))
    classes, wrong = np.bincount(number), 0
    n, least = values.size, int(values.size - classes.max())
    there = ~np.isnan(values)
    commonest = np.argsort(-classes, kind="stable")[:_CLASSES_CUT]
    parts, place = np.unique(values[there], return_inverse=True)
    if parts.size < 3:
        return 0
    counts = np.stack([np.bincount(place[number[there] == one], minlength=parts.size) for one in commonest], axis=1)
    below = np.concatenate([np.zeros((1, commonest.size), dtype=np.int64), counts.cumsum(axis=0)])  # of each class, up to a cut
    best = below.max(axis=1)  # people up to here who are told by no cut, then by one, then by two
    for _ in range(2):
        best = (below + np.maximum.accumulate(best[:, None] - below, axis=0)).max(axis=1)
    wrong = n - int(best[-1]) - int(np.bincount(number[~there], minlength=1).max())
    if wrong > (1 - _TOLD) * least:
        return 0
    # ways to deal classes that two cuts and so many errors fit, over all ways: an upper bound of the chance
    fitting = 2 * math.log(parts.size + 1) + 3 * math.log(len(names)) + (wrong + 1) * math.log(2 * len(names))
    fitting += math.lgamma(n + 1) - math.lgamma(wrong + 1) - math.lgamma(n - wrong + 1)
    every = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1)
    return n - wrong if fitting - every < math.log(_BY_CHANCE) else 0


def _by_name(matrix: sp.csr_array, names: Sequence[str]) -> tuple[sp.csr_array, tuple[str, ...]]:
    """Columns in the order of their names; of one name, of which each person has one at most, they are one."""
    order = tuple(sorted(set(names)))
    place = {name: number for number, name in enumerate(order)}
    fold = sp.csr_array(
        (np.ones(len(names)), (np.arange(len(names)), [place[name] for name in names])), (len(names), len(order))
    )
    return sp.csr_array(matrix @ fold), order


def _require_known(roles: Roles, rules: ReadRules, labelled: bool) -> None:
    every = list(dict.fromkeys(one for h in roles.holders for one in (*h.table.names, *h.table.called) if one != h.id))
    undrawn = [one for holder in roles.holders for one in holder.table.undrawn]
    for key in (*rules.bounds, *(one for one in rules.drop if labelled and one not in undrawn)):
        if key not in every:
            raise DataError(f"{_places(roles)}: there is no column {key!r}; allowed: {', '.join(every[:40])}")


def _read_columns(
    holder: Holder, kept: Mapping[str, list[str]], rules: ReadRules, faults: DataFileFaults, ids: Sequence[str]
) -> Iterator[OwnColumns]:
    """The columns, those together that the same people have."""
    strict: dict[str, object] = {
        "text": "one-hot" if rules.text == "auto" else rules.text,
        "empty": "missing" if rules.empty == "auto" else rules.empty,
    }
    together: dict[bytes, list[str]] = {}
    nobody = np.zeros(len(ids), dtype=bool)
    for name in kept:
        together.setdefault(holder.lacking.get(name, nobody).tobytes(), []).append(name)
    file = holder.table.where
    for lacking, names in together.items():
        there = np.flatnonzero(~np.frombuffer(lacking, dtype=bool))
        bounds = {key: value for key, value in rules.bounds.items() if key in names}
        own = own_columns.OwnColumnRules.model_validate({**strict, "bounds": bounds})
        cells = [[kept[name][person] for person in there] for name in names]

        def place(row: int, there: np.ndarray = there) -> str:
            at = int(holder.rows[there[row]])
            return holder.table.place(at) if at >= 0 else f"{file} (no line)"

        with faults.gathering():
            called = [ids[int(person)] for person in there]
            wrong = DataFileFaults()
            read = read_own_columns(names, list(zip(*cells, strict=True)), own, file, place, called, wrong)
            put = sp.csr_array((np.ones(there.size), (there, np.arange(there.size))), shape=(len(ids), there.size))
            yield replace(read, matrix=sp.csr_array(put @ read.matrix)) if there.size < len(ids) else read


def _matrix_of(holder: Holder, n: int, seen: set[str], rules: ReadRules) -> OwnColumns:
    """The columns of a table that are numbers already."""
    whole = cast(sp.csr_array, holder.table.matrix)
    there = np.flatnonzero(holder.rows >= 0)
    pick = sp.csr_array((np.ones(there.size), (there, holder.rows[there])), shape=(n, whole.shape[0]))
    joined = bool(holder.table.places)  # of several parts: what one has as text may be a number of another
    kept = [place for place, name in enumerate(holder.table.called) if name not in rules.drop]
    called = [holder.table.called[place] for place in kept]
    names = tuple(name if joined or name not in seen else f"{name} ({holder.table.stem})" for name in called)
    matrix = sp.csr_array(pick @ whole)
    matrix = matrix if len(kept) == matrix.shape[1] else sp.csr_array(matrix[:, kept])
    held = f"{matrix.nnz:,} entries that are not 0"
    how = "as they are" if set(np.unique(matrix.data)) <= {0.0, 1.0} else "ranks, or words"
    row = (f"{len(names):,} columns", "numbers", held, how)
    bounded = tuple(name for name in names if name in rules.bounds)
    if bounded and joined:  # 0 is nothing there for whoever's client has no such column
        raise DataError(
            f"{holder.table.where}: bounds change columns of tables with a line per node (id, a column for each), and "
            f"{bounded[0]!r} is a column of a file of numbers, too; allowed: such a table, or no bounds for it"
        )
    if bounded:
        wide = matrix.toarray()
        for place, name in enumerate(names):
            if name in rules.bounds:
                where = f"{holder.table.where}: column {name!r}"
                wide[:, place] = own_columns.scaled_to_bounds(wide[:, place], rules.bounds[name], where)
        matrix = sp.csr_array(wide)
    return OwnColumns(matrix, names, False, bounded, table=(row,))


def _names_who(column: str, cells: Sequence[str], headed: bool) -> str:
    """Why a column is the name of whom several rows are of; "" where it is not: called so, and each value is of a few rows."""
    there = [cell for cell in cells if cell]
    different = len(set(there))
    if not headed or different < _FEWEST or different == len(there) or different * _ROWS_OF_ONE < len(there):
        return ""
    if not says("someone", column) or any(math.isfinite(n := csv_number(cell)) and not n.is_integer() for cell in there):
        return ""
    return f"names {different:,} for {len(there):,} rows"


def _no_feature(column: str, cells: Sequence[str], label: _Label | None, rules: ReadRules, headed: bool) -> str:
    """Why a column is no feature; "" where it is one."""
    there = [cell for cell in cells if cell]
    different = set(there)
    if column in rules.bounds:
        return ""
    if not there:
        return "all its cells are empty"
    if reason := says_who(column, cells, headed):
        return reason
    if headed and says("mask", column):
        return "it says who trains and who is tested (write masks.csv to use that)"
    many = len(there) >= _FEWEST
    if many and label is not None and len(different) <= _MOST_CLASSES and _is_label_again(cells, label.texts):
        return f"it says the same as the label {label.column!r}"
    if rules.text == "auto" and headed and len(different) == 1 and len(there) == len(cells):
        return f"all have the same, {there[0]!r}"
    if rules.text != "auto" or own_columns.kind_of(cells) != "text":
        return ""
    commas = next((cell for cell in there if re.fullmatch(r"\d{1,3},\d{3}", cell)), None)
    if commas and all(re.fullmatch(r"[\d,.]+", cell) for cell in there):
        return f"{commas} may be {commas.replace(',', '')} or {commas.replace(',', '.')}: write numbers without a comma"
    slashed = next((cell for cell in there if date_in(cell)[1]), None)
    if slashed:
        return f"{slashed} may be day/month or month/day: write dates as 2024-12-31"
    if len(different) > _MOST_TEXTS or (many and 2 * len(different) > len(there)):
        return f"{len(different):,} different texts, such as {there[0][:40]!r}: names or free text"
    return ""


def _is_label_again(cells: Sequence[str], texts: Sequence[str | None]) -> bool:
    pairs = {(a, b): count for (a, b), count in Counter(zip(cells, texts, strict=True)).items() if a and b is not None}
    return sum(pairs.values()) >= _FEWEST and _same_parts([a for a, _ in pairs], [b.casefold() for _, b in pairs])


# The words


def say_graph(
    graph: Graph,
    told: tuple[Roles, _Label | None, OwnColumns] | None,
    left_out: Sequence[tuple[str, str]],
    unused: Sequence[str],
    aside: Iterable[tuple[str, str]],
) -> str:
    """The small table."""
    n = graph.num_nodes
    alone = int((np.diff(graph.adjacency.indptr) == 0).sum())
    who, ties, what, first = "", "", "", list[str]()
    if told is not None:
        roles, label, _ = told
        who, first = _named_by(roles), roles.first
        ties = _tied_by(roles)
        what = "" if label is None else f"{label.column!r} of {label.holder.table.title}: "
    parts: list[tuple[str, Sequence[str]]] = [("people", [f"{n:,}{who}"])]
    if graph.owner is not None:
        held = np.bincount(graph.owner, minlength=len(graph.owner_names))
        listed = ", ".join(f"{name} {count:,}" for name, count in zip(graph.owner_names[:_SHOWN], held[:_SHOWN], strict=True))
        parts.append(("owners", [f"{len(graph.owner_names)}: {listed}{', …' if held.size > _SHOWN else ''}"]))
    parts.append(("ties", [f"{graph.num_edges:,}{ties}; {_people(alone)} none", *first]))
    doubts = filter(None, (_few(_sizes(graph), "people"), _rare(_sizes(graph))))
    parts.append(("label", [f"{what}{_class_counts(graph)}", *doubts]))
    constant = told is not None and graph.num_features == 1
    plain = "a constant 1" if constant else f"{graph.num_features:,}"
    parts.append(("columns", _aligned(told[2].table) if told is not None and told[2].table else [plain]))
    _, *notes = graph.provenance.detail.split("; ")
    notes = [note for note in notes if not (note.startswith("not used: ") or note in first)]
    return _as_table(graph.name, parts + _beside(left_out, unused, aside, notes))


def _tied_by(roles: Roles) -> str:
    every = " ids: each is a tie"
    listed = (f", from each to those whom {one.removesuffix(every)}" for one in roles.ties.remarks if one.endswith(every))
    return next(listed, f", between {roles.ends[0]!r} and {roles.ends[1]!r} of {roles.ties.title}")


def _read_as(roles: Roles) -> str:
    """Which files were read as what, where some may be of something else."""
    titles = [
        holder.table.title for holder in roles.holders if holder is roles.holders[0] or not says("facts", holder.table.stem)
    ]
    if len(titles) < 2:
        return ""
    said = f"Ties were read from {roles.ties.title}, people from {titles[0]}, and facts of them from {', '.join(titles[1:])}"
    return f"{said}: leave out files that hold none of these"


def _named_by(roles: Roles) -> str:
    if not roles.holders:
        return ", those who have a tie"
    first = roles.holders[0]
    rows = [] if first.id else first.table.ids("")
    counting = any(rows == [str(begin + row) for row in range(len(rows))] for begin in (0, 1))
    called = repr(first.id) if first.id else f"the {'number of the row' if counting else 'column without a name'}"
    return f", named by {called} of {first.table.title}"


def _as_table(name: str, parts: Iterable[tuple[str, Sequence[str]]]) -> str:
    """What was understood: a head before the first of each part's lines."""
    lines = [f"  {head if place == 0 else '':<9}{text}" for head, texts in parts for place, text in enumerate(texts)]
    return "\n".join([f"{name}: {_UNDERSTOOD}", *lines])


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """A line for each of the first columns: its name, its kind, what it holds, and what becomes of it."""
    shown = table[:_SHOWN]
    widths = [min(28, max(len(row[place]) for row in shown)) for place in range(3)] if shown else []
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in shown]
    return lines + _more(table)


def _more(given: Sequence[object]) -> list[str]:
    return [f"… and {len(given) - _SHOWN:,} more columns"] if len(given) > _SHOWN else []


def _beside(
    left_out: Sequence[tuple[str, str]], unused: Sequence[str], aside: Iterable[tuple[str, str]], notes: Sequence[str]
) -> list[tuple[str, Sequence[str]]]:
    """What is no column, and why."""
    reasons = [f"{column or '(no name)'}: {reason}" for column, reason in left_out[:_SHOWN]] + _more(left_out)
    return [("left out", reasons), ("not used", unused), ("aside", [f"{name}: {why}" for name, why in aside]), ("notes", notes)]


def _rare(sizes: Sequence[tuple[str, int]]) -> str:
    """By what rows are compared where a class is a small share of the people; "" where none is."""
    known = sum(count for _, count in sizes)
    rare = [(name, count) for name, count in sizes if _FEW <= count < _RARE * known]
    if not rare:
        return ""
    listed = ", ".join(f"{name} {count / known:.1%}" for name, count in rare[:4]) + (", …" if len(rare) > 4 else "")
    said = f"below {_RARE:.0%} of the people with a label: {listed}"
    if len(sizes) == 2:
        return f"{said}; rows are compared by how many of them are among the first that are looked at, and not by accuracy"
    hardly = "of more than two classes rows are compared by accuracy, which hardly counts them"
    return f"{said}; {hardly}: to look for one, merge the others"


def _few(sizes: Sequence[tuple[str, int]], what: str) -> str:
    """What to do about classes of few people; "" where none is."""
    small = [(name, count) for name, count in sizes if count < _FEW]
    if not small:
        return ""
    listed = ", ".join(f"{name} {count}" for name, count in small[:_SHOWN]) + (", …" if len(small) > _SHOWN else "")
    plural = "1 class has" if len(small) == 1 else f"{len(small)} classes have"
    few = f"{plural} fewer than {_FEW} {what} ({listed}): nothing can be said of such a class"
    return f"{few}; merge it with another, or leave the label of its {what} empty"


def _people(count: int) -> str:
    return f"{count:,} {'person has' if count == 1 else 'people have'}"


def _sizes(graph: Graph) -> list[tuple[str, int]]:
    counts = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.num_classes)
    names = graph.names.classes or tuple(map(str, range(graph.num_classes)))
    return [(name, int(count)) for name, count in zip(names, counts, strict=True)]


def _class_counts(graph: Graph) -> str:
    sizes = _sizes(graph)
    if not sizes:
        return "nobody's is known, so that links alone can be asked for"
    shown = ", ".join(f"{name} {count:,}" for name, count in sizes[:_SHOWN])
    more = f", … {len(sizes)} classes" if len(sizes) > _SHOWN else ""
    unknown = int((graph.labels < 0).sum())
    return f"{shown}{more}{f'; {_people(unknown)} none' if unknown else ''}"
