"""Who is who in tables: which holds the ties, which columns are ids, who the people are. By names, and by what columns hold.

A column is the id if it holds all ends; ends are two columns that hold ids. A header decides by its names; a place decides only
where there is no header. Where two readings are left, the owner is asked: one line with both, and the option that answers.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, pairwise, repeat
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fedgraph.data.own.columns import csv_number
from fedgraph.data.own.relations import (
    A_FOLDER_EACH,
    counts_rows,
    holds_facts,
    no_ties_through,
    own_key,
    related,
    says_people,
    several_ties,
    which_ends,
)
from fedgraph.data.own.tables import TOTAL, Gathered, ReadingQuestion, Table, number_like, spread
from fedgraph.data.own.words import (
    NOTHING,
    SIDES,
    WEAK_SIDES,
    are_times,
    called_so,
    id_text,
    is_id_name,
    names_people,
    plain_name,
    says,
    says_who,
    sides_of,
)
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import GraphMasks, counted

_Pair = tuple[str, str]
ROW = "row"  # ``--id row``: people are their rows, numbered from 0
_PARTS = dict.fromkeys(("train", "training"), "train") | dict.fromkeys(("validation", "valid", "val"), "validation")
_PARTS |= {"test": "test"}
_SHORTENED = re.compile(r"\d([.,]\d+)?E\+\d+")  # as spreadsheets write 491517308974
_LONG = re.compile(r"\d([.,]\d+)?E\+1\d")  # such a number in a column that nothing calls one of ids
_LONG_ID = re.compile(r"[1-9]\d{15,24}")  # of more digits than spreadsheets keep
_ADDRESS = re.compile(r"[^\s@;,<>#|()\"]+@[^\s@;,<>#|()\"]+")
_PHONE = re.compile(r"\+?([ ()/-]*\d){7,15}")
_WIDEST = 400  # columns, where those of a record in a record are columns, too
_SHARED = 5  # people in both of two columns from which on these may be ends
_HOUSEHOLD = 4  # people of one value, on average, up to which a column may say who lives together
_FEW_TIES = 10  # below it ends may well be all different
_WIDE = 40  # columns of which all may be an id or an end; of wider tables the first, the last, and those that are called so
_MOSTLY = 0.5  # share of ids among cells of numbered columns from which on they name people
_LIST = 4  # columns of a list of ties without a header
_NO_TIE = ("no", "n", "false", "f", "nein", "non", "0,0")  # no marks of ties in a matrix
_PLAIN = (("source", "target"), ("from", "to"))
_SPANS = (("from", "to"), ("start", "end"))  # may be times, too
_FEW_LABELS = 3  # columns of a table of labels that is called ``class``
_MOST_TOLD = 8  # rows of one fault that are told one by one
_FEWEST_NAMED = 50  # names of others by which it is looked for how people are named
_FEWEST_ASKED = 20  # people from which on one whom very many name is asked about
_MARKS = 10  # different numbers that may be marks, such as of a boss
_SEEN = 1_000  # cells of a column in which lists are looked for
_NAME = 60  # letters of a name before an address of mail
_ADDRESS = re.compile(r"[^\s<>@,;|\"']+@[^\s<>@,;|\"']+")  # of mail
_FRACTION = re.compile(r"[+-]?\d+[.,]\d+")
_DECIMAL = re.compile(r"[+-]?\d+(\.\d{3})*,\d+")
_ANSWERLESS = re.compile(r"[89]|([789])\1+|-[6-9]9*")  # in a matrix whose other numbers are smaller by far
_BELOW = re.compile(r"-\d+")
_NOBODY = re.compile(r"0+|9+|7{2,}|8{2,}|-\d+")  # as surveys write it
_LINK = re.compile(r" \(https?://[^\s()]+\)")
_PAIRS_OF = "allowed: a table source,target of the pairs of those who stand in one"
_FIXED = (10.0, 11.0)  # no tie, and a tie, that could not be otherwise: in matrices of 0 and 1 alone
_BY_CHANCE = 1e-6  # below it a diagonal that is all the same is no chance
_PART = re.compile(r'\s*"(?:[^"]|"")*"\s*(?=[,;|\n]|$)|[^,;|\n]+')  # of a list, in which a name with a comma is quoted
_NEARLY = 0.9  # share of different cells from which on a column may be an id: a person that is there twice is a fault


@dataclass(eq=False)
class Holder:
    """A table with a row for each person, or for some.

    Attributes:
        id: its column of ids.
        rows: int64 [n], the row of each of the n people; −1 for whoever has none.
        lacking: column → bool [n], who is of a part whose tables have no such column: the column is 0 there, and not empty.
        beside: columns that stand in tables of labels: one of them is the label, and the others are no features.
    """

    table: Table
    id: str
    rows: np.ndarray
    lacking: Mapping[str, np.ndarray] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()


@dataclass(eq=False)
class Roles:
    """What was found.

    Attributes:
        ids: of the n people.
        holders: tables of people; the first says who they are. None where ties alone were given.
        ties: the table of ties; None where nobody has one.
        ends: its two columns.
        one, two: int64 [m], the people at the ends.
        masks: who trains and who is tested, where the data say so, not yet checked.
        remarks: what a person should look at, in whole sentences.
        first: those of them that follow from ends that were said, and come first.
    """

    ids: list[str]
    holders: list[Holder]
    ties: Table
    ends: tuple[str, str]
    one: np.ndarray
    two: np.ndarray
    masks: tuple[GraphMasks, ...] = ()
    remarks: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)


def find_roles(found: Gathered, id: str | None = None, ends: Sequence[str] | None = None) -> Roles:
    """Who is who.

    Args:
        found: tables; wrong rows are noted in its faults.
        id: the column of ids, where its owner said so; ``row`` numbers rows from 0.
        ends: the two columns of the ends of ties, where their owner said so.

    Raises:
        ReadingQuestion: two readings are left; the line holds both, and the option that answers.
        DataError: no table holds ties, or no column their ends.
        ScenarioError: what was said names no column.
    """
    if ends is not None and (isinstance(ends, str) or len(ends) != 2):
        raise ScenarioError(f"ends is {ends!r}; allowed: the names of two columns")
    remarks, first = list[str](), list[str]()
    tables = [one for table in found.tables for one in _people_and_ties(_without_links(table, remarks))]
    tables = [one for table in tables for one in _matrix_as_ties(spread(table, found.faults), tables)]
    tables = _by_addresses([_named_ties(table) for table in tables], remarks)
    if not any(_names_ends(table) for table in tables):  # a group of people may be called as their column is
        tables = [_first_again(table, remarks) for table in tables]
    tables = [_by_their_names(table, first) if len(tables) == 1 else table for table in tables]
    answers: list[str] = []
    tables = [_without_answers(table, ends, answers) for table in _in_order(tables, remarks)]
    masks = [table for table in tables if _is_split(table)]
    try:
        tables = related([table for table in tables if table not in masks], ends, found, _whose(tables, id))
        tables = sorted(tables, key=lambda table: not (id and (_named(table, id) or _whose([table], id))))
        if ends is not None and (among := _ends_among_people(tables, ends, first)) is not tables:
            tables, id = among, id or f"{among[0].stem}.{among[0].id}"
        ties, pair = _ties(tables, ends, found.aside, id)
    except DataError as why:
        if not answers:
            raise
        raise DataError(answers[0]) from why
    others, ties = [table for table in tables if table is not ties], _without_notes(ties, frozenset(), remarks, pair)
    if ends is None and ties.headed and others:
        _require_two_people(ties, pair, others)
    if ends is not None and not ties.headed and not set(ends) <= set(ties.names):
        ties, pair = _with_header(ties, pair)
    elif ends is None and not others:
        _require_alike(ties, pair)
    for known in [key for other in others for key in _keys(other).values()]:
        ties, pair = (ties, pair) if ties.headed else _without_header(ties, pair, known, remarks)
    if ends is None and not ties.headed:
        _require_one_kind_of_ends(ties, pair, others)
    if ends is None and ties.headed and not others:
        _require_no_spans(ties, pair)
    if records := [name for name in pair if any(one[0] == "{" for one in ties.different(name))]:
        said = f"{ties.where}: {records[0]!r} holds lists of records, and no ids"
        raise DataError(f"{said}; allowed: one id or several in a cell, or a table {','.join(pair)} of pairs")
    if ends is not None:
        ties = _without_open(ties, pair, first)
    if ends is not None and not others and (anew := _counts_anew(ties, pair)):
        raise DataError(anew)
    ties = _listed_ends(ties, pair, others, remarks)
    one_side, other_side = map(ties.different, pair)
    both = len(one_side & other_side)
    if (
        not others
        and len(ties.frame) >= _FEW_TIES
        and (not both or (ends and both < _SHARED and 4 * both <= min(len(one_side), len(other_side))))
    ):
        if ends is None:
            asked = f"{ties.where}: are {pair[0]!r} and {pair[1]!r} both people? Nobody stands in both. If so, say --ends "
            asked += f"{shlex.join(pair)}; if one is what people share, write pairs of those who do as source,target"
            raise ReadingQuestion(asked, "ends", [pair])
        who = "hardly anybody" if both else "nobody"
        first.append(f"{who} stands in both {pair[0]!r} and {pair[1]!r}: if one names no people, these are no ties")
    ties = _ends_as_people(ties, pair, others, remarks)
    wanted = ties.different(pair[0]) | ties.different(pair[1])
    for column in pair:
        _require_whole(ties, column)
    if not others:
        if id not in (None, ROW):
            raise ScenarioError(f"--id {id}: no table of people has such a column; found: ties alone, in {ties.title}")
        ids = sorted(wanted, key=_by_number)
        if not ids:
            raise DataError(
                f"{ties.where}: holds no tie, and no table says who the people are; allowed: a table of people beside it"
            )
        remarks.append("people are those who have a tie: no table of people is there")
        holders: list[Holder] = []
    else:
        holders, ids = _holders(others, ties, pair, id, found, remarks)
    position = {one: row for row, one in enumerate(ids)}
    counting = ids and "".join(ids).isdigit() and not any(one[0] == "0" and len(one) > 1 for one in ids)
    remarks += [] if counting else _written_twice(ids)
    nobody = [] if counting else [name for name in ids if name == "-1" or name.casefold() in NOTHING]
    remarks += [f"{name!r} is a person like others: if it stands for nobody, leave it out" for name in nobody]
    ties, pair = _without_header(ties, pair, position, remarks) if holders else (ties, pair)
    lost = set[str]().union(*(holder.table.lost for holder in holders))
    one, two = _positions(ties, pair, position, found, lost, holders)
    kept = (one >= 0) & (two >= 0)
    for column in (name for name in ties.names if name not in pair and says("weight", name)):
        nothing = np.array([csv_number(cell) == 0 for cell in ties.texts(column)], dtype=bool)
        if (kept & nothing).any():
            remarks.append(f"{counted(int((kept & nothing).sum()), 'tie')} with 0 as {column!r} left out, as a matrix has it")
        kept &= ~nothing
    remarks += _named_by_most(ids, one[kept], two[kept])
    split = _split(masks, position, found, remarks) or next(
        (holder.table.masks for holder in holders if holder.table.masks), ()
    )
    return Roles(ids, holders, ties.some(kept), pair, one[kept], two[kept], split, [*first, *remarks], first)


def _require_whole(table: Table, column: str) -> None:
    """``DataError`` where ids lost digits: one is written as a power of ten, or none of the long ones has more than 15."""
    ids = table.different(column)
    long = [one for one in ids if len(one) > 15 and _LONG_ID.fullmatch(one)]
    rounded = len(long) >= min(_SHARED, len(ids)) and all(float(one) == float(f"{float(one):.15g}") for one in long)
    for one in sorted([one for one in ids if "E+" in one and _SHORTENED.fullmatch(one)] or (long if rounded else [])):
        said = f"{table.where}: {one!r} in column {column!r} is a number that a spreadsheet shortened, so different people have"
        allowed = "ids as they are (give the column the format text before the numbers are put in)"
        raise DataError(f"{said} one name; allowed: {allowed}")


def _written_twice(ids: Sequence[str]) -> list[str]:
    """A remark on ids that may be one person's: they differ as phone numbers, or names, of one person do."""
    phones = {one: re.sub(r"\D", "", one).lstrip("0") for one in ids if _PHONE.fullmatch(one)}
    abroad = {own[cut:]: own for one, own in phones.items() if one.startswith(("+", "00")) for cut in (1, 2, 3)}
    phones |= {one: abroad.get(own, own) for one, own in phones.items() if not one.startswith(("+", "00"))}
    gaps = {one: "" if sum(map(str.isdigit, one)) >= _SHARED else " " for one in ids}  # of accounts they mean nothing
    plain = {one: phones.get(one) or gap.join(one.casefold().split()).lstrip("0") for one, gap in gaps.items()}
    alike = {own: one for one, own in plain.items()}
    if len(alike) == len(ids):
        return []
    one, other = next((one, other) for one, own in plain.items() if (other := alike[own]) != one)
    how = "spaces, signs or the prefix of a country" if {one, other} <= phones.keys() else "capitals, spaces or zeros in front"
    more = len(ids) - len(alike) - 1
    return [f"{one!r} and {other!r} differ in {how} alone, and are two people{f', as are {more:,} more such' if more else ''}"]


def _named_by_most(ids: Sequence[str], one: np.ndarray, two: np.ndarray) -> list[str]:
    """A question about one whom very many people name, far more than anybody else, and who hardly names others."""
    n = len(ids)
    pairs = np.unique(np.column_stack([one, two])[one != two], axis=0)
    named, names = (np.bincount(pairs[:, side], minlength=n) for side in (1, 0))
    first = int(named.argmax()) if n >= _FEWEST_ASKED else 0
    if n < _FEWEST_ASKED or named[first] < n / (4 if _NOBODY.fullmatch(ids[first]) else 2):
        return []
    if named[first] < 3 * np.partition(named, -2)[-2] or names[first] > named[first] / 2:
        return []
    said = f"{ids[first]!r} is named by {named[first]:,} of {n:,} people, and nobody else by more than a third as many"
    return [f"{said}: does it stand for nobody? If so, empty these cells, or leave out these lines"]


def _in_order(tables: Sequence[Table], remarks: list[str]) -> list[Table]:
    """A table of one column, or without ids, of a row for each of the people whom a format numbers is in their order."""
    ordered = [table for table in tables if table.ordered]
    if len(ordered) != 1:
        return list(tables)
    (people,), found = ordered, []
    whose = people.ids(str(people.id))
    for table in tables:
        count, names = len(table.frame), table.names
        ends = [name for name in names if 2 * len(own := table.different(name)) > count and own <= {*whose}]
        facts = not (_keys(table) or (table.headed and any(map(is_id_name, names))) or len(ends) > 1 or table.role)
        if table is not people and count == len(whose) and table.matrix is None and (facts or len(names) == 1):
            remarks.append(f"rows of {table.title} are the people of {people.title} in their order")
            called = ["label"] if len(names) == 1 and not table.headed and is_labels(table) else names
            frame = pd.concat([pd.DataFrame({"id": whose}, dtype=object), table.frame.set_axis(called, axis=1)], axis=1)
            table = replace(table, frame=frame, id="id", role="nodes", headed=True)
        found.append(table)
    return found


def _without_answers(table: Table, ends: Sequence[str] | None, answers: list[str]) -> Table:
    """A table of what people wrote without the column that names the row which a row answers: no row is a person."""
    key = own_key(table) or ""
    writers = [name for name in table.names if key and says("writer", name) and len(table.different(name)) < len(table.frame)]
    for name in (name for name in table.names if writers and name not in (key, *writers)):
        named, rows = table.different(name) - {""}, table.different(key)
        filled = {own: sum(bool(a and b) for a, b in zip(table.ids(name), table.ids(own), strict=True)) for own in writers}
        writers.sort(key=lambda own: (-filled[own], not is_id_name(own)))  # whoever was invited wrote nothing
        if table.refers.get(name) != table.where and not (says("reply", name) and 2 * len(named & rows) > len(named)):
            continue
        pairs = f"SELECT a.{writers[0]} AS source, b.{writers[0]} AS target FROM {table.stem} a JOIN {table.stem} b"
        said = f"{table.where}: {name!r} names the row that a row answers, and {writers[0]!r} who wrote it: writers have ties"
        answers.append(f"{said}; allowed: a table of them, such as {pairs} ON a.{name} = b.{key}")
        if name in (ends or ()):
            raise DataError(answers[-1])
        return replace(table, frame=table.frame.drop(columns=name), unused=(*table.unused, f"column {name!r} of {table.title}"))
    return table


def _by_number(one: str) -> tuple[int, int, str]:
    return (0, int(one), "") if one.isascii() and one.isdigit() and len(one) < 19 else (1, 0, one)


def _named(table: Table, name: str) -> str | None:
    """The column that a person calls so, where one alone fits. A first line may name columns, too."""
    called = dict(zip(table.names, table.names, strict=True))
    if not table.headed and table.names and len(table.frame):
        called |= {one: str(cell) for one, cell in zip(table.names, table.frame.iloc[0], strict=True)}
    fitting = [name] if name in called else called_so(name, called.values())
    alike = [one for one, words in called.items() if one == name or (words in fitting and name not in called)]
    return alike[0] if len(alike) == 1 else None


def _whose(tables: Iterable[Table], id: str | None) -> list[tuple[Table, str]]:
    """The table, and its column, that ``users.id`` names."""
    able = [table for table in tables if id is not None and id.casefold().startswith(f"{table.stem}.")]
    return [(table, column) for table in able if (column := _named(table, str(id)[len(table.stem) + 1 :])) is not None]


def _likely(table: Table) -> list[str]:
    """Columns that may be ids or ends: those of times are none."""
    names = [name for name in table.names if not are_times(table.coded(name)[1])]
    if len(names) <= _WIDE:
        return names
    called = [name for name in names if is_id_name(name)] if table.headed else []
    return list(dict.fromkeys([*names[:12], *names[-4:], *called, *(n for pair in sides_of(names, SIDES) for n in pair)]))


def _keys(table: Table) -> dict[str, frozenset[str]]:
    """Columns in which (nearly) every row has a cell of its own, with what they hold; the number of a row under "" is one."""
    if (told := table.keys.get(tuple(table.names))) is not None:
        return told
    found = table.keys[tuple(table.names)] = {}
    for name in _likely(table):
        different = table.different(name)
        if len(different) >= _NEARLY * max(1, len(table.frame)) or (table.headed and plain_name(name) == "id"):
            found[name] = different
    if table.implied is not None:
        found.setdefault(table.implied, frozenset(map(str, range(len(table.frame)))))
    return found


# Which table holds the ties


def _ties(tables: list[Table], ends: Sequence[str] | None, aside: dict[str, str], id: str | None) -> tuple[Table, _Pair]:
    if ends is not None:
        having = [(table, pair) for table in tables if None not in (pair := (_named(table, ends[0]), _named(table, ends[1])))]
        if len(having) > 1:  # tables without a header have columns of the same names: those of ties hold ids of others
            others_keys = [[key for one in tables if one is not table for key in _keys(one).values()] for table, _ in having]
            held = [one for one, own in zip(having, others_keys, strict=True) if _cover(*one, own) >= _MOSTLY]  # type: ignore[arg-type]
            having = held if len(held) == 1 else having
        if len(having) != 1:
            found = "; ".join(f"{table.title}: {', '.join(table.names[:12])}" for table in tables)
            many = "several tables have" if having else "no table has"
            raise ScenarioError(f"--ends {' '.join(ends)}: {many} both columns; found: {found}")
        ((table, pair),) = having
        return table, cast(tuple[str, str], pair)
    said = [table for table in tables if table.ends is not None]
    if len(said) == 1 and said[0].ends is not None:
        said += [table for table in tables if table is not said[0] and _is_list(table, tables)]
        if len(said) == 1:
            return said[0], said[0].ends
        said.sort(key=lambda table: table.title)
    if len(said) > 1:
        raise several_ties([table.title for table in said])
    tables[:] = _of_one_form(tables, aside, id)
    if (tied := next((table for table in tables if table.ends), None)) is not None:
        return tied, ("source", "target")
    keys = {table.where: _keys(table) for table in tables}
    best: dict[str, tuple[Table, float, list[tuple[str, str]]]] = {}
    for table in tables:
        if table.role in ("nodes", "features") or table.matrix is not None:
            continue
        others = [key for other in tables if other is not table for key in keys[other.where].values()]
        if (ranked := _ranked(table, others)) is not None:
            best[table.where] = (table, *ranked)
    owned = {table.where: column for table, column in _whose(tables, id)}
    owned = owned or {one.where: column for one in tables if id is not None and (column := _named(one, id)) is not None}
    owned = owned if len(owned) == 1 else {}  # its rows are people, as their owner says
    every = [one for where, one in best.items() if where not in owned or any(owned[where] in pair for pair in one[2])]
    if not every:
        return _no_ties(tables, aside, id)
    # a table whose own column holds all the ends of another one is that one's table of people
    every = [one for one in every if not _is_keyed(one, every, keys)] or every
    top = max(rank for _, rank, _ in every)
    first = [one for one in every if one[1] == top]
    if len(first) > 1:
        hinted = [one for one in first if says("ties", one[0].stem) and not says("people", one[0].stem)]
        first = hinted if len(hinted) == 1 else [one for one in first if not says("people", one[0].stem)] or first
    if len(first) > 1:
        same = len({table.title for table, *_ in first}) < len(first)
        called = ["/".join(Path(table.where).parts[-2:]) if same else table.title for table, *_ in first]
        if len({pairs[0] for *_, pairs in first}) == 1:  # no option tells them apart
            raise several_ties(called)
        either = " or ".join(f"{name} ({', '.join(pairs[0])})" for name, (*_, pairs) in zip(called, first, strict=True))
        asked = f"which table holds the ties: {either}? Say --ends ONE TWO, its two columns, or leave the other out"
        raise ReadingQuestion(asked, "ends", [pairs[0] for _, _, pairs in first])
    table, rank, pairs = first[0]
    more = [one for one in tables if one is table or (one.where not in owned and _is_list(one, tables))]
    if len(more) > 1:
        raise several_ties(sorted(one.title for one in more))
    wide = len(table.names) > 3
    if (wide and rank == 0.5) or (rank <= 0.5 and len(table.frame) >= _FEW_TIES and not _alike(table, pairs[0])):
        (one, two), row = pairs[0], table.frame.iloc[0]
        asked = f"{table.where}: are {row[one][:40]!r} and {row[two][:40]!r} the ends of a tie? "
        asked += "The columns have no names" if wide else "Nobody stands in both columns"
        asked += "" if wide or table.headed else ", and they have no names"
        asked += f". If so, say --ends {shlex.join(pairs[0])}; else name the columns in a first line"
        raise ReadingQuestion(asked, "ends", pairs)
    if rank <= 2 and table.headed and all(one.isdigit() for side in pairs[0] for one in table.different(side)):
        people = [pair for pair in pairs if not any(says("things", name) or name in table.refers for name in pair)]
        (one, two), few = (people or pairs)[0], 1 / 3
        sizes = sorted(len(table.different(side)) for side in (one, two))
        if not people and (told := _with_things(table)):
            raise DataError(told)
        known_so = len(pairs) == 1 and any(  # every end is somebody's id, and ids are no count of rows
            (key := own_key(other)) and not counts_rows(other, key) and _cover(table, pairs[0], [other.different(key)]) == 1.0
            for other in tables
            if other is not table
        )
        sided = plain_name(one)[:-1] == plain_name(two)[:-1] or bool(sides_of((one, two), (*SIDES, *WEAK_SIDES)))
        meant = sided or rank > 1 or all(is_id_name(name) or says("others", name) for name in (one, two))
        rated = len(table.frame) >= _FEW_TIES and sizes[0] < few * sizes[1]
        if not known_so and (not people or (len(people) == 1 and (rated or not meant))):
            asked = f"{table.where}: are {one!r} and {two!r} both people? Both hold numbers that are ids. If so, say --ends "
            asked += f"{shlex.join((one, two))}; if one is what people share, write pairs of those who do as source,target"
            raise ReadingQuestion(asked, "ends", [(one, two)])
        pairs = people or pairs
    if len(pairs) > 1:
        raise which_ends(table, pairs)
    return table, pairs[0]


def _is_list(table: Table, tables: Sequence[Table]) -> bool:
    """Whether a table is surely one of ties, by its names and what it holds, and has no ids of its own."""
    if table.role or table.matrix is not None:
        return False
    keys = [key for other in tables if other is not table for key in _keys(other).values()]
    ranked = _ranked(table, keys)
    if ranked is None or not _keys(table).keys() <= {*ranked[1][0], table.implied}:
        return False
    if ranked[0] == 4 or says("people", table.stem):
        return ranked[0] == 4
    pair, own = ranked[1][0], _keys(table).get(ranked[1][0][0], ())  # a row for each of the people tells more of them
    some = [key for key in keys if ranked[0] == 3 or len(own) < _NEARLY * len(key)]
    held = [key for key in some if all(_are_people(table, name, key) for name in pair)]
    return any(ranked[0] == 3 or all(names_people(table.different(name), key) for name in pair) for key in held)


def _ends_among_people(tables: list[Table], ends: Sequence[str], first: list[str]) -> list[Table]:
    """With the ties apart of a table of people of which one column is who they are, and another whom each of them names."""
    able = [table for table in tables if table.headed and not table.role and None not in [_named(table, one) for one in ends]]
    if len(able) != 1 or len(able[0].names) <= 2 or able[0].matrix is not None:
        return tables
    (table,), others = able, [table for table in tables if table is not able[0]]
    pair = cast(tuple[str, str], tuple(_named(table, one) for one in ends))
    known = [key for other in others for key in _keys(other).values()]
    if pair[0] == pair[1] or sides_of(pair, SIDES) or any(_cover(table, (name, name), known) >= _MOSTLY for name in pair):
        return tables
    for key, other in (pair, pair[::-1]):
        if _lines_of_others(table, key, others):
            continue
        ids, named = table.different(key), {one for one in table.different(other) if one.casefold() not in NOTHING}
        if len(named & ids) < _MOSTLY * len(named):  # several in a cell
            named = {part for one in named for part in _parted(one)}
        if len(ids) < max(_FEW_TIES, _NEARLY * len(table.frame)) or not named or len(named & ids) < _MOSTLY * len(named):
            continue
        ties = table.some(np.array([one.casefold() not in NOTHING for one in table.ids(other)], dtype=bool))
        first.append(f"{table.title} has a line for each of the people: {other!r} is whom they are tied to")
        ties.frame = ties.frame[list(pair)]
        people = replace(table, frame=table.frame.drop(columns=other), id=key, of_ties=_going_with(table, [other]))
        return [people, replace(ties, role="edges"), *others]
    return tables


def _by_addresses(tables: list[Table], remarks: list[str]) -> list[Table]:
    """With the addresses alone, in small letters, where a table names people as ``Ann <ann@x>``."""
    mails = list[list[str]]()
    for table in tables:
        told = {name: table.different(name) - {""} for name in _likely(table)} if table.matrix is None else {}
        some = {n: [c for c in own if "@" in c and len(_ADDRESS.sub("", c)) < _NAME * c.count("@")] for n, own in told.items()}
        mails.append([name for name, own in some.items() if len(own) >= _NEARLY * len(told[name]) > 0])
    every = list(zip(tables, mails, strict=True))
    full = [(table.title, name, one) for table, own in every for name in own for one in table.different(name) if "<" in one]
    if not full:
        return tables
    title, name, one = min(full)
    remarks.append(f"{name!r} of {title} and others are read by addresses of mail, in small letters, such as that of {one!r}")
    plain = [{n: ["; ".join(_ADDRESS.findall(c)).casefold() or c for c in table.texts(n)] for n in own} for table, own in every]
    return [replace(table, frame=table.frame.assign(**own)) for table, own in zip(tables, plain, strict=True)]


def _by_their_names(table: Table, first: list[str]) -> Table:
    """With ids where a column names people of the table: by two columns of names, or as ``Ann (7)``."""
    n, frame = len(table.frame), table.frame
    key = next((name for name, ids in _keys(table).items() if name and len(ids) == n), "")
    if not table.headed or table.matrix is not None or n < _FEW_TIES:
        return table
    words = _likely(table)
    for column in (name for name in words if name != key):
        named = sorted(one for one in table.different(column) if one.casefold() not in NOTHING)
        some = named[:: 1 + len(named) // _FEWEST_NAMED]
        how = Counter(way for one in some for way in _ways_to_name(one, table, key, [name for name in words if name != column]))
        way, count = how.most_common(1)[0] if how else (("", "", ""), 0)
        if len(named) < 2 or count < _NEARLY * len(some):
            continue
        if way == (key, "", ""):
            called = mine = table.ids(key)
            whom = {one: one[one.rindex("(") + 1 : -1] for one in named if one.endswith(")")}
        else:
            called = list(map(way[1].join, zip(table.ids(way[0]), table.ids(way[2]), strict=True)))
            mine = table.ids(key) if key else called
            whom = dict(zip(called, mine, strict=True))
        cells = table.ids(column)
        own = sum(whom.get(one) == other for one, other in zip(cells, mine, strict=True))
        if len(set(called)) < _NEARLY * n or 2 * own > sum(map(bool, cells)):
            continue  # no names, or their own
        if twin := next((one for one, count in Counter(called).items() if count > 1 and one in {*named}), ""):
            said = f"{column!r} names {twin!r}, and several people are called so"
            raise DataError(f"{table.where}: {said}; allowed: ids{f' of {key!r}' if key else ''} there")
        if not key:
            key = way[1].join(way[::2])
            frame = pd.concat([pd.DataFrame({key: called}, dtype=object), frame], axis=1)
        first.append(f"{column!r} of {table.title} names people: {named[0]!r} is {whom.get(named[0], named[0])!r} of {key!r}")
        frame = frame.assign(**{column: [whom.get(one, one) for one in cells]})
    return table if frame is table.frame else replace(table, frame=frame)


def _ways_to_name(one: str, table: Table, key: str, words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(column, what stands between, column) of which a name may be put together."""
    if key and (match := re.fullmatch(r".+ \((\S+)\)", one)) and match[1] in table.different(key):
        yield key, "", ""
    for cut in re.finditer(r", | ", one):
        fronts = [name for name in words if one[: cut.start()] in table.different(name)]
        backs = [name for name in words if fronts and one[cut.end() :] in table.different(name)]
        yield from ((front, cut[0], back) for front in fronts for back in backs if front != back)


def _lines_of_others(table: Table, key: str, others: Sequence[Table]) -> bool:
    """Whether lines have ids of their own before this column, whose people stand in another table, written otherwise."""
    known = [own for other in others if other is not table for own in _keys(other).values()]
    ids = table.different(key)
    return next(iter(_keys(table)), key) != key and any(len(_meant(ids, own)[0]) >= _NEARLY * len(ids) for own in known)


def _without_open(ties: Table, pair: _Pair, remarks: list[str]) -> Table:
    """Without lines in which one end is open, of a table whose lines have ids of their own: of issues, some have nobody."""
    open_ = {name: np.array([one.casefold() in NOTHING for one in ties.ids(name)], dtype=bool) for name in pair}
    several = {name: int(own.sum()) for name, own in open_.items() if own.any()}
    if len(several) != 1 or not _keys(ties).keys() - {*pair}:
        return ties
    ((name, count),) = several.items()
    remarks.append(f"{name!r} is open in {count:,} of {len(ties.frame):,} lines of {ties.title}: no tie there")
    return ties.some(~open_[name])


def _with_things(table: Table, tables: Sequence[Table] = ()) -> str:
    """Why a table holds no ties where one column names people, and another what they rate, buy or attend; "" elsewhere.

    tables: of two columns of ids, neither called as things are, one may name people who have rows there.
    """
    called = [name for name in table.names if table.headed and is_id_name(name)]
    things = [name for name in called if says("things", name)]
    if not things and len(called) == 2:
        known = [key for other in tables if other is not table for key in _keys(other).values()]
        rows = [name for name in called if any(table.different(name) <= key for key in known)]
        again = [name for name in called if len(table.different(name)) < len(table.frame)]
        things = [name for name in again if len(rows) == 1 and name not in rows]
    people = [name for name in called if name not in things]
    if len(people) != 1 or len(things) != 1:
        return ""
    if says_people(things[0]) > says_people(people[0]):
        people, things = things, people
    return no_ties_through(table, people[0], things[0], f"{people[0]!r} names people and {things[0]!r} what they share")


def _require_two_people(ties: Table, pair: _Pair, others: Sequence[Table]) -> None:
    """Asks where one stands beside two equals, as a captain beside two of the crew; ``DataError`` where equals are three."""
    every = [key for other in others for key in _keys(other).values()]
    known = max(every, key=lambda key: _cover(ties, pair, [key]), default=frozenset[str]())
    if (called := _unnumbered(pair[0])) != _unnumbered(pair[1]):
        return
    counts = {name: _names_columns(ties.ids(name), ()) or name == own_key(ties) for name in ties.names}
    rows = [name for name, own in counts.items() if own and counts_rows(ties, name) and ties.different(name) != known]
    more = [name for name in ties.names if name not in (*pair, *rows) and _are_people(ties, name, known)]
    several = [name for name in ties.names if name in (*pair, *more) and _unnumbered(name) == called]
    more = [name for name in more if _go_through(ties.different(name) & known, known, name)]  # unlike rounds or points
    if len(several) > 2:
        said = "".join([f", or of {name!r} and each of these" for name in more if name not in several][:1])
        listed = ", ".join(map(repr, several[:_MOST_TOLD]))
        raise DataError(f"{ties.where}: {listed} name people in each row; {_PAIRS_OF} row{said}")
    if more and called:
        raise which_ends(ties, [*((one, two) for one in more for two in pair), pair])


def _unnumbered(name: str) -> str:
    """A name without the number, or the letter, at its end, in which columns of equals differ."""
    return re.sub(r"[ _.-]*(\d+|(?<![^\W_])[A-Za-z]|(?<=[a-z])[A-Z])$", "", name)


def _require_one_kind_of_ends(ties: Table, pair: tuple[str, str], others: Sequence[Table]) -> None:
    """``DataError`` where each end goes through the rows of a table of its own, such as of users and of films."""
    held: list[set[str]] = []
    for side in (ties.different(name) for name in pair):
        keys = [(other.where, key) for other in others for key in _keys(other).values()]
        held.append({where for where, key in keys if side <= key and len(side) >= _NEARLY * len(key)})
    if held[0] and held[1] and held[0].isdisjoint(held[1]):
        one, two = (next(other.title for other in others if other.where in own) for own in held)
        said = f"{pair[0]!r} goes through the rows of {one} and {pair[1]!r} those of {two}"
        raise DataError(no_ties_through(ties, *pair, said))


def _require_no_spans(ties: Table, pair: tuple[str, str]) -> None:
    """Asks where two columns of numbers may say when each row began and ended: years, hours, or seconds since 1970."""
    rows = [name for name in _keys(ties) if name and name not in pair]
    spans = [(csv_number(one), csv_number(two)) for one, two in zip(*map(ties.ids, pair), strict=True) if one and two]
    if rows and sides_of(pair, _SPANS) and len(spans) > _FEW_TIES and all(one <= two for one, two in spans):  # no NaN
        asked = (
            f"{ties.where}: do {pair[0]!r} and {pair[1]!r} name people, or from when to when each {rows[0]!r} was there? If "
        )
        asked += (
            f"people, say --ends {shlex.join(pair)}; if times, write pairs of those who were there together as source,target"
        )
        raise ReadingQuestion(asked, "ends", [pair])


def _require_alike(ties: Table, pair: tuple[str, str]) -> None:
    """Asks where the first line of a list alone may name its columns; ``DataError`` where the last one is written below it.

    Nobody who stands there is there again, and the last one has a name that is made as no other.
    """
    one, two = ties.ids(pair[0]), ties.ids(pair[1])
    counts = Counter([*one, *two])
    if len(one) < _FEW_TIES or len(counts) >= 2 * len(one):
        return
    first, last = (one[0], two[0]), (one[-1], two[-1])
    if not ties.headed and max(counts[name] for name in first) == 1 and not any(re.search(r"\d", name) for name in first):
        asked = f"{ties.place(0)}: are {first[0]!r} and {first[1]!r} names of columns, or a tie? Neither is there again. Say "
        asked += f"--ends {shlex.join(first)}, or for a tie --ends {shlex.join(pair)}"
        raise ReadingQuestion(asked, "ends", [first, pair])
    made = {name: _made(name) for name in counts}
    alike = Counter(made.values())
    if max(counts[name] for name in last) == 1 and min(alike[made[name]] for name in last) <= 2:
        said = f"{last[0][:40]!r} and {last[1][:40]!r} stand in the last line alone, and are no names like others"
        raise DataError(f"{ties.place(len(one) - 1)}: {said}; allowed: ties alone, or a table of people beside that names both")


def _made(name: str) -> str:
    """Of what signs, numbers and words an id is made, such as ``a-0``."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", name))


def _counts_anew(table: Table, keys: Sequence[str] = ()) -> str:
    """What to do where people are numbered from 1 in each class, say; of no keys, where numbered columns name them; else ""."""
    groups = Counter(map(_unnumbered, table.names))
    choices = [name for name in table.names if groups[_unnumbered(name)] > 1]
    for key in keys or (name for name in table.names[:_WIDE] if len(choices) > 1 and name not in choices):
        named = set[str]().union(*(table.different(name) for name in keys or choices if name != key)) - NOTHING
        if not all(map(str.isdecimal, table.ids(key))) or not 0 < _NEARLY * len(named) <= len(named & table.different(key)):
            continue
        for column in (name for name in table.names[:_WIDE] if table.headed and name not in (*keys, *choices, key)):
            parts: dict[str, list[int]] = {}
            for part, number in zip(table.ids(column), table.ids(key), strict=True):
                parts.setdefault(part, []).append(int(number))
            if len(parts) > 1 and all(
                len(own) >= _SHARED and sorted(own) == [*range(1, len(own) + 1)] for own in parts.values()
            ):
                asked = f"{table.where}: {key!r} counts anew in each {column!r}: are these others, or the same people again?"
                asked += f" Allowed: ids that tell all apart, in ties, too, or {A_FOLDER_EACH}; "
                return f"{asked}for the same leave out {column!r}"
    return ""


def _alike(table: Table, pair: tuple[str, str]) -> float:
    """The share of all who stand in two columns that stands in both; 0 where nobody does."""
    one, two = map(table.different, pair)
    return len(one & two) / max(1, len(one | two))


def _cover(table: Table, pair: tuple[str, str], keys: Sequence[frozenset[str]]) -> float:
    """The largest share of each of both ends that one column of ids holds."""
    held = [own for column in pair if (own := table.different(column))]
    return max((min(len(own & key) / len(own) for own in held) for key in keys), default=0.0) if held else 1.0


def _held(table: Table, pairs: Sequence[_Pair], keys: Sequence[frozenset[str]], least: float) -> list[_Pair]:
    """Of pairs those that hold most ids, if that is enough, and those of people: a few who are nobody decide nothing."""
    covers = {pair: _cover(table, pair, keys) for pair in pairs}
    most = max(covers.values(), default=0.0)
    if most < least:
        return []
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    people = [{name for name in names if _are_people(table, name, key)} for key in keys]
    return [pair for pair in pairs if covers[pair] == most or any(own.issuperset(pair) for own in people)]


def _are_people(table: Table, name: str, key: frozenset[str]) -> bool:
    """Whether most cells of a column are ids, or most of those that fill most; of numbers that may be anything, nearly all."""
    own = {one for one in table.different(name) if one.casefold() not in NOTHING}
    share = len(own & key) / max(1, len(own))
    if 2 * sum(map(str.isdigit, key)) >= len(key) and (says("things", name) or share >= _NEARLY):
        return not says("things", name)
    if 2 * sum(map(str.isdigit, key)) >= len(key) and not (is_id_name(name) or names_people(own & key, key)):
        return False
    cells = [one in key or (one in own and share >= _MOSTLY) for one in table.ids(name)] if own & key else []
    return 0 < len(cells) <= 2 * sum(cells)


def _ranked(table: Table, keys: Sequence[frozenset[str]]) -> tuple[float, list[tuple[str, str]]] | None:
    """(how sure it is that the table holds ties, the pairs of columns that may be their ends)."""
    names, likely = table.names, _behind_a_layer(table, _likely(table))
    if len(likely) < 2:
        return None
    strong = sides_of(likely, SIDES) if table.headed else []
    weak = sides_of(likely, WEAK_SIDES) if table.headed else []
    if not len(table.frame):  # a header alone: its names decide
        named = strong or (weak if says("ties", table.stem) else [])
        return (4, named[:1]) if named else None
    if sure := _held(table, strong, keys, 0.5):
        plain = [pair for pair in sure if tuple(map(plain_name, pair)) in _PLAIN]
        return 4, plain[:1] or sure
    if sure := _held(table, weak, keys, 0.5):
        return 3, sure
    if strong and (not keys or len(names) <= 6 or says("ties", table.stem)):
        if not keys and tuple(map(plain_name, strong[0])) not in _PLAIN:  # of names and addresses either may be meant
            met = [pair for pair in strong if len(table.different(pair[0]) & table.different(pair[1])) > 1]
            return 2.5, met or strong[:1]
        return 2.5, strong[:1]  # the people of these ends are nowhere; said where they are looked for
    first = (likely[0], likely[1])
    own_row = len(names) > _LIST and len(table.different(first[0])) == len(table.frame)  # of people, whose names stand first
    if ((not table.headed and not own_row) or len(names) == 2) and _cover(table, first, keys) >= 0.5:
        return 2, [first]
    filled = [name for name in likely if any(table.ids(name))]
    own = own_key(table) if len(names) > 2 else None  # numbers of rows are no ends
    filled = [name for name in filled if name != own]
    pairs = [(one, two) for k, one in enumerate(filled) for two in filled[k + 1 :]] if len(likely) <= 14 else []
    if held := _held(table, pairs, keys, 1.0):
        return 1, held
    if not table.headed and 2 <= len(names) <= _LIST and not keys:
        outer = (likely[0], likely[-1])  # of ``Ann -- Bob`` and ``Ann;knows;Bob``
        words = any(cell and not cell.isdigit() for cell in table.ids(likely[1]))  # numbers between them may be ends, too
        inner = [outer] if words else [(one, two) for one, two in pairs if likely[0] not in (one, two)]  # behind a time
        alike = {pair: _alike(table, pair) for pair in (first, *inner)}
        nearest = max(inner or [first], key=alike.__getitem__)
        told = {name: list(map(csv_number, table.ids(name))) for name in (*first, *nearest)}
        rising = [all(a < b for a, b in zip(*map(told.get, pair), strict=True)) for pair in (first, nearest)]
        timed = alike[nearest] > alike[first] and all(one <= two for one, two in pairwise(told[first[0]]))
        timed &= rising != [True, False]  # a clock may go through numbers of people; a list of pairs may be sorted, too
        shared = [nearest] if alike[nearest] > 0 and (timed or not alike[first]) else []
        return 0.5, [*shared, first] if not words else [*shared, first][:1]
    beside = any(says("apart", name) for name in names)
    return (0.4, [first]) if says("ties", table.stem) and len(names) == len(filled) == 2 and not beside else None


def _behind_a_layer(table: Table, likely: list[str]) -> list[str]:
    """Without a first column of a few values, such as of layers, where the two behind it hold far more, and the same ids."""
    front = [table.different(name) for name in likely[: 0 if table.headed else 3]]
    if len(front) < 3 or not 1 < len(front[0]) <= _MARKS:
        return likely
    counting = [frozenset(map(str, range(first, len(front[0]) + first))) for first in (0, 1)]
    if not front[0].isdisjoint(front[1] | front[2]) and front[0] not in counting:
        return likely  # a few of the people, who name others
    few, many = sorted(map(len, front[1:]))
    apart = many > 3 * few or few < 3 * len(front[0]) or 4 * len(front[1] & front[2]) < few
    return likely if apart else likely[1:]


def _is_keyed(
    one: tuple[Table, float, list[tuple[str, str]]],
    every: Sequence[tuple[Table, float, list[tuple[str, str]]]],
    keys: dict[str, dict[str, frozenset[str]]],
) -> bool:
    """Whether a table holds the ids of all ends of another that is as surely one of ties, and not the other way round."""
    mine = list(keys[one[0].where].values())
    for other in every:
        if other is not one and other[1] >= one[1] and any(_cover(other[0], pair, mine) == 1.0 for pair in other[2]):
            theirs = list(keys[other[0].where].values())
            if _cover(one[0], one[2][0], theirs) < 1.0:
                return True
    return False


def _no_ties(tables: Sequence[Table], aside: Mapping[str, str], id: str | None) -> tuple[Table, tuple[str, str]]:
    """Lists id → ids as ties, or two columns of ids that are written otherwise than people's, where nothing else holds any.

    aside: what was not understood, for the words.
    """
    for table in tables:
        if table.role == "features" and table.matrix is not None and table.id is not None:
            items, people = [name.removeprefix("feature ") for name in table.called], set(table.ids(table.id))
            every = people.union(*(key for other in tables if other is not table for key in _keys(other).values()))
            if set(items) <= every:
                arcs = sp.coo_array(table.matrix)
                mine = np.array(table.ids(table.id), dtype=object)
                frame = pd.DataFrame({"source": mine[arcs.coords[0]], "target": np.array(items, dtype=object)[arcs.coords[1]]})
                table.matrix, table.called = None, ()
                return Table(table.where, frame, role="edges", ends=("source", "target")), ("source", "target")
    copies = [(table, replace(table)) for table in tables]
    told = [(table, own, ties) for table, own in copies if (ties := _listed_ties(own, _keys(table))) is not None]
    if told := [one for one in told if not _lines_of_others(one[0], str(one[1].id), tables)]:
        if id is None and told[0][1].different(str(told[0][1].id)).isdisjoint(told[-1][1].different(str(told[-1][1].id))):
            keys = [f"{own.stem}.{own.id}" for _, own, _ in told]
            asked = f"{' and '.join(own.title for _, own, _ in told)} each have a column that names own rows: which are"
            raise ReadingQuestion(f"{asked} the people? Say --id {', or --id '.join(map(shlex.quote, keys))}", "id", keys)
        table, own, ties = told[0]
        table.frame, table.id, table.of_ties = own.frame, own.id, own.of_ties
        return ties, ("source", "target")
    for table in tables:
        for name in _likely(table):
            if 2 * sum(map(bool, map(_LONG.fullmatch, table.different(name)))) > len(table.different(name)):
                _require_whole(table, name)
    if (written := _written_otherwise(tables)) is not None:
        return written
    if (
        said := next(filter(None, (_with_things(table, tables) for table in tables)), "")
        or _strangers(tables)
        or _several_lines(tables)
        or _lists(tables)
        or next(filter(None, map(_names_amiss, tables)), "")
    ):
        raise DataError(said)
    if len(tables) == 1 and (anew := _counts_anew(tables[0])):
        raise DataError(anew)
    if len(tables) == 1 and (pairs := _meeting(tables[0])):
        (one, two), either = pairs[0], " or ".join(f"{a} and {b}" for a, b in pairs[1:4])
        alike = [name for name in tables[0].names if _unnumbered(name) == _unnumbered(one) != one]
        if len(alike) > 2 and two in alike:
            said = f"{', '.join(map(repr, alike[:6]))} name several in each row"
            said += ", of whom none has a row: whom one person alone knows is no tie between them"
            allowed = "ids of those who have rows; of people who meet there, a table source,target of their pairs"
            raise DataError(f"{tables[0].where}: {said}; allowed: {allowed}")
        asked = f"{tables[0].where}: are {one!r} and {two!r} the ends of ties{f' (or {either})' if either else ''}? The same "
        asked += f"names stand in both, and no table says who the people are. If so, say --ends {shlex.join(pairs[0])}"
        raise ReadingQuestion(asked, "ends", pairs)
    if len(tables) == 1 and (pairs := _numbers_of_people(tables[0])):
        either = "".join(f" (or {name!r})" for _, name in pairs[1:4])
        asked = f"{tables[0].where}: does {pairs[0][1]!r}{either} say whom each of {pairs[0][0]!r} is tied to? All its numbers "
        asked += f"stand there. If so, say --ends {shlex.join(pairs[0])}; if not, write the ties as a table source,target"
        raise ReadingQuestion(asked, "ends", pairs)
    if said := next(filter(None, map(_people_in_cells, tables)), ""):
        raise DataError(said)
    seen = "; ".join(f"{table.title}: {', '.join(table.names[:8])}{', …' if len(table.names) > 8 else ''}" for table in tables)
    seen += "".join(f"; {table.title}: not read: {', '.join(table.unused)}" for table in tables if table.unused)
    cells = ((name, table.title, table.texts(name)[:_SEEN]) for table in tables for name in table.names)
    records = [f"{name!r} of {title}" for name, title, own in cells if any(one.startswith("{'") for one in own)]
    seen += f"; lists of records, of which pairs would be ties: {', '.join(records[:_MOST_TOLD])}" if records else ""
    numbers = [repr(name) for table in tables for name in _likely(table) if _decimals(name, table.texts(name)[:_SEEN], ())]
    seen += f"; {', '.join(numbers[:_MOST_TOLD])}: numbers with a decimal comma (several ids would be 2;3)" if numbers else ""
    unread = [f"{name} ({why})" for name, why in aside.items() if why != "no data" and not name.endswith("/")]
    seen += f"; not read: {', '.join(unread[:_MOST_TOLD])}" if unread else ""
    first = Path(tables[0].where if tables else "")
    place = f"{first if len(tables) == 1 and not aside else first.parent}: " if len(first.parts) > 1 else ""
    raise DataError(
        f"{place}no table of ties was found, in which two columns hold ids of people; found: {seen or 'no table'}; allowed: a "
        "table such as source,target (its header alone where nobody has a tie; of people who share an event or a bed, their "
        "pairs; whom one person alone knows is no tie between them), or --ends ONE TWO"
    )


def _of_one_form(tables: Sequence[Table], aside: dict[str, str], id: str | None) -> list[Table]:
    """With tables of the same columns, in each of which people name each other, as one, and its ties: those of classes, say.

    Where an id stands in several, it may be somebody else in each, or the same person again: their owner is asked.
    """
    for first in tables:
        able = [one for one in tables if one.headed and one.matrix is None and not one.role]
        alike = [one for one in able if sorted(one.names) == sorted(first.names)]
        if len(alike) < 2 or not all(map(_keys, alike)):
            continue
        held = [key for one in alike for key in _keys(one).values()]
        if any(_ranked(one, () if one in alike else held) for one in tables if one.matrix is None and not one.role):
            continue  # a table of ties
        within = Path(os.path.commonpath([one.where for one in alike]))
        where = str(within / "*" if within.stem.casefold() in ("", *(one.stem for one in alike)) else within)
        numbered = [(one, [one.place(row) for row in range(len(one.frame))]) for one in alike]
        each = [replace(one, where=where, lines=np.zeros(0, np.int64), places=places) for one, places in numbered]
        people = _below(each)
        ties, key = _listed_ties(people, _keys(people)), str(people.id)
        if ties is None or len(people.different(key)) < sum(len(one.different(key)) for one in alike):
            listed = [own for one in each if (own := _listed_ties(one, _keys(one))) is not None]
            if len(listed) < len(each) or len({one.id for one in each}) > 1:
                continue
            key, shown = str(each[0].id), [f"{one.stem}.{each[0].id}" for one in alike]
            every = f"{people.stem}.{key}"
            if id != every and not _whose(alike, id):
                told = f"{' and '.join(one.title for one in alike)} have the same columns, and ids that stand in several"
                asked = f"{told}. Are these other people in each? Then say --id {shlex.quote(every)}; if they are the same "
                asked += f"people again, keep one table: --id {', or --id '.join(map(shlex.quote, shown))}"
                raise ReadingQuestion(asked, "id", [every, *shown])
            for one, own, table in zip(each, listed, alike, strict=True):
                called = Path(table.where).relative_to(within).as_posix()
                for part, columns in ((one, [key]), (own, own.names)):
                    cells = {name: [cell and f"{called}/{cell}" for cell in part.ids(name)] for name in columns}
                    part.frame = part.frame.assign(**cells)
            people, ties = _below(each), _below(listed)
        kept = [one for one, _ in _whose(alike, id)]
        if kept:
            aside |= {one.title: f"rows of other things than {kept[0].title}, as --id says" for one in alike if one not in kept}
            return [one for one in tables if one not in alike or one in kept]
        ties.remarks.append(f"{len(alike)} tables of the same columns are one, {people.title}")
        return [people, ties, *(one for one in tables if one not in alike)]
    return list(tables)


def _below(tables: Sequence[Table]) -> Table:
    """Tables of the same columns as one."""
    frame = pd.concat([one.frame[tables[0].names] for one in tables], ignore_index=True)
    told = {name: why for one in tables for name, why in one.of_ties.items()}
    lost = set[str]().union(*(one.lost for one in tables))
    return replace(tables[0], frame=frame, places=[at for one in tables for at in one.places], of_ties=told, lost=lost)


def _written_otherwise(tables: Sequence[Table]) -> tuple[Table, tuple[str, str]] | None:
    """Two columns of ids of another table, by a rule if need be. Asks where hardly all are, or some cells list several."""
    plain = _SPELLINGS[-1][1]
    for table in (one for one in tables if one.matrix is None and one.role != "nodes"):
        alone, found, several = len(table.names) == 2, dict[tuple[str, str], bool](), False
        own_rows = own_key(table)
        names = [one for one in table.names[:_WIDEST] if alone or not (says("things", one) or one == own_rows)]
        for key in (own for other in tables if other is not table for name, own in _keys(other).items() if name):
            people, whole, lists = set(map(plain, key)), list[str](), list[str]()
            for name in names:
                own, cells = table.different(name), [*filter(None, table.ids(name)[:_SEEN])]
                parts = [part for one in cells for part in _parted(one)]
                near = [sum(plain(one) in people for one in some) >= max(1, _MOSTLY * len(some)) for some in (cells, parts)]
                meant = _meant(own, key)[0] if near[0] else {}
                known = [meant.get(one, one) for one in own if one in key or one in meant]
                if near[0] and (alone or (len(known) >= _NEARLY * len(own) and names_people(known, key))):
                    whole.append(name)
                elif near[1] and len(parts) > len(cells) and sum(one in key for one in parts) >= _NEARLY * len(parts):
                    lists += [name] * (not _decimals(name, cells, key))
            for pair in combinations(whole, 2):
                ends = table.different(pair[0]) | table.different(pair[1])
                if (every := ends <= key | _meant(ends, key)[0].keys()) or not alone:
                    found[pair] = every
            found |= {(one, many): False for one in whole for many in lists}
            several |= bool(whole and lists)
        if len(found) == 1 and all(found.values()):
            return table, next(iter(found))
        if pairs := list(found):
            (one, two), either = pairs[0], " or ".join(f"{a} and {b}" for a, b in pairs[1:4])
            lists_too = ", and several people in one cell are a tie each" * several
            asked = f"{table.where}: are {one!r} and {two!r} the ends of ties{f' (or {either})' if either else ''}? Nearly all"
            asked += f" who stand there have rows elsewhere{lists_too}. If so, say --ends {shlex.join(pairs[0])}"
            raise ReadingQuestion(asked, "ends", pairs)
    return None


def _numbers_of_people(table: Table) -> list[tuple[str, str]]:
    """(who they are, numbers of people who have rows): of all parts, and some again unless they are called as partners."""
    for key, ids in _keys(table).items() if table.headed and table.matrix is None and len(table.frame) >= _FEW_TIES else ():
        found = list[tuple[str, str]]()
        for name in _likely(table) if key and sum(map(str.isdigit, ids)) == len(table.frame) else ():
            every, cells = table.different(name), [*filter(None, table.ids(name))]
            each = says("others", name) or says("superior", name)
            if name != key and every and every <= ids and (len(every) < len(cells) or each):
                found += [(key, name)] * _go_through(every, ids, name)
        if found:
            return found
    return []


def _go_through(own: Set[str], ids: Set[str], name: str) -> bool:
    """Whether ids in a column so called are words, or numbers of all parts of the ids, and many, or superiors."""
    mine, known = ([int(one) for one in some if one.isdigit()] or [0] for some in (own, ids))
    spread, many = 2 * (max(mine) - min(mine)) > max(known) - min(known), len(mine) > min(_MARKS, len(known) / 4)
    return known == [0] or (spread and (says("superior", name) or (many and not says("things", name))))


def _meeting(table: Table) -> list[tuple[str, str]]:
    """Pairs of named columns in which the same people may stand: words, or numbers where the columns are called as ids.

    Columns that differ in a side alone are so called, too, where no other one tells who a row is of. Two columns that are the
    same wherever two others are, such as the classes of whoever met, are no pair.
    """
    likely = [name for name in _likely(table) if table.headed and not says("things", name)]
    held = {name: table.different(name) for name in likely}
    parts = {name for name, own in held.items() if 2 * sum(map(bool, map(_FRACTION.fullmatch, own))) > len(own)}
    numbers = {name for name, own in held.items() if name in parts or all(map(str.isdigit, own))}
    words = {name for name in held if is_id_name(name) or name not in numbers}
    pairs = [(one, two) for place, one in enumerate(likely) for two in likely[place + 1 :] if {one, two} <= words]
    who = {name for name in _keys(table) if name == own_key(table) or name not in numbers}
    for one, two in sides_of(likely, WEAK_SIDES):
        alone = sum(name.rstrip("0123456789") == one.rstrip("0123456789") for name in table.names) < 3
        alone &= not who - {one, two} or is_id_name(_unnumbered(one))
        if not {one, two} & parts and (one, two) not in pairs and alone:
            pairs += [(one, two)] * (len(held[one] | held[two]) > _MARKS)
    pairs = [
        (one, two) for one, two in pairs if len(held[one] & held[two]) >= max(_SHARED, len(held[one]) / 4, len(held[two]) / 4)
    ]
    pairs = [pair for pair in pairs if not any(_coarser(table, pair, other) for other in pairs)]
    sides = [pair for pair in pairs if pair in sides_of(likely, WEAK_SIDES)]  # two whom one of the rows names, say
    ids = [(key, own, pair) for pair in sides for key, own in _keys(table).items() if key in held and key not in pair]
    meant = [(key, pair) for key, own, pair in ids if all(len(held[one] & own) >= _NEARLY * len(held[one]) for one in pair)]
    return [*((key, one) for key, pair in meant for one in pair), *pairs]


def _coarser(table: Table, pair: _Pair, other: _Pair) -> bool:
    """Whether each of two columns is the same wherever that of another pair is, which tells far more apart."""
    sides = list(zip(pair, other, strict=True))
    if any(2 * len(table.different(one)) > len(table.different(two)) for one, two in sides):
        return False
    return all(len(set(zip(table.ids(one), table.ids(two), strict=True))) == len(set(table.ids(two))) for one, two in sides)


def _strangers(tables: Sequence[Table]) -> str:
    """What is wrong where a table of two columns would hold ties if there were rows for who stands in it; "" elsewhere."""
    found: list[tuple[int, str]] = []
    for table in tables:
        if len(table.names) != 2 or table.matrix is not None or table.role in ("nodes", "features"):
            continue
        one, two = (table.ids(name) for name in table.names)
        for other in tables:
            for key, known in _keys(other).items() if other is not table and other.matrix is None else ():
                if not key or not (known.intersection(one) or known.intersection(two)):
                    continue
                head = not table.headed and len(one) > 1 and known.isdisjoint((one[0], two[0]))
                sides = [set(side[1:] if head else side) - {""} for side in (one, two)]
                told = table.headed and not all(known & side for side in sides)  # ids, and a label or a number
                if told and not says("ties", table.stem):
                    continue
                names, held = (one[0], two[0]) if head else table.names, set().union(*sides)
                lacking = sorted(held - known)
                if lacking:
                    found.append((
                        len(held & known),
                        f"{table.where}: no table of ties was found: {names[0]!r} and {names[1]!r} hold {len(held):,} names, "
                        f"of which {len(held & known):,} are in {key!r} of {other.title}; allowed: a row there for the other "
                        f"{len(lacking):,}, too, such as {lacking[0]!r}",
                    ))  # fmt: skip
    return max(found)[1] if found else ""


def _several_lines(tables: Sequence[Table]) -> str:
    """What is wrong where two columns hold ids of a table in which people have several lines each; "" elsewhere."""
    for other in (one for one in tables if one.headed and one.matrix is None):
        for key in (name for name in _likely(other) if name not in _keys(other)):
            known = other.different(key)
            if 2 * len(known) < len(other.frame):
                continue
            for table in (one for one in tables if one is not other and one.headed and one.matrix is None):
                pair = [
                    name
                    for name in table.names
                    if len(own := table.different(name)) > 1 and len(own & known) >= _NEARLY * len(own)
                ]
                if len(pair) > 1:
                    name, lines = Counter(other.ids(key)).most_common(1)[0]
                    said = f"{key!r} names {len(known):,} people on {len(other.frame):,} lines ({name!r}: {lines}), whom"
                    both = " and ".join(map(repr, pair[:2]))
                    return f"{other.where}: {said} {both} of {table.title} tie; allowed: one line for each"
    return ""


def _lists(tables: Sequence[Table]) -> str:
    """What to write where the cells of a column list ids of people who stand in another table; "" elsewhere."""
    for table in (one for one in tables if one.headed and one.matrix is None):
        for name in _likely(table):
            lists = [[one for part in re.split(r"[,;|]", cell) if (one := part.strip())] for cell in table.texts(name)[:_SEEN]]
            several, every = sum(len(one) > 1 for one in lists), {one for own in lists for one in own}
            for other in (one for one in tables if one is not table):
                for key, known in _keys(other).items():
                    alike = several > _FEW_TIES and len(every & known) >= _NEARLY * len(every)
                    if key and alike and not _decimals(name, table.texts(name)[:_SEEN], known):
                        said = f"{table.where}: {name!r} lists ids of {other.title}, no two columns hold them"
                        return f"{said}; {_PAIRS_OF} list"
    return ""


def _people_in_cells(table: Table) -> str:
    """What to write where numbered columns may name the people of as many rows, or cells list authors; "" elsewhere."""
    n, key = len(table.frame), next(filter(None, _keys(table)), "")
    likely = _likely(table) if table.headed and table.matrix is None and n > _FEW_TIES else []
    for stem in {_unnumbered(name): name for name in table.names} if likely and key else ():
        own = [name for name in table.names if name != _unnumbered(name) == stem]
        if len(own) == n and all(one in NOTHING or number_like(one) for name in own for one in table.different(name)):
            said = f"{table.where}: {own[0]!r} … {own[-1]!r} are {n:,} columns, as many as rows: whom each of {key!r} names?"
            return f"{said} If so, it is a matrix; allowed: its columns called as people are in {key!r}"
    for name in (one for one in likely if says("writer", one)):
        cells = [cell for cell in table.texts(name)[:_SEEN] if cell[:1] != "{"]
        mark = next((one for one in ";|," if sum(one in cell for cell in cells) > _FEW_TIES), "\0")
        every = Counter(one.strip() for cell in cells if mark in cell for one in cell.split(mark))
        if len(every) < every.total() and not any(map(number_like, every)):
            said = f"{table.where}: {name!r} lists several in a cell, and no column says whom they are tied to"
            return f"{said}; {_PAIRS_OF} cell (split and explode it, and join it with itself by the row)"
    return ""


def _names_amiss(table: Table) -> str:
    """What keeps a column that lists names, such as of a survey, from being ties of those who answered; "" elsewhere."""
    for name in _likely(table) if table.headed and table.matrix is None else ():
        lists = [_parted(cell) for cell in table.texts(name)]
        every = list(dict.fromkeys(one for own in lists for one in own))
        if sum(len(own) > 1 for own in lists) <= _FEW_TIES or _decimals(name, table.texts(name), ()):
            continue
        for key in (one for one in _likely(table) if one != name and 2 * len(table.different(one)) > len(table.frame)):
            ids = dict.fromkeys(filter(None, table.ids(key)))
            counts = Counter(map(_letters, filter(None, table.ids(key))))
            plain = {_letters(one): one for one in ids}
            absent = [one for one in every if _letters(one) not in counts]
            other = [one for one in every if one not in ids and _letters(one) in counts]
            twice = [plain[one] for one, count in counts.items() if count > 1]
            if len(absent) > _MOSTLY * len(every) or not (absent or other or twice) or all(map(str.isdigit, ids)):
                continue
            said = [f"{len(every) - len(other) - len(absent):,} stand in {key!r}"]
            said += [f"{len(other):,} are written otherwise there ({plain[_letters(one)]!r} for {one!r})" for one in other[:1]]
            said += [f"{len(absent):,} have no row, such as {one!r}" for one in absent[:1]]
            said += [f"{counts.total() - len(counts):,} rows name somebody again, such as {one!r}" for one in twice[:1]]
            asked = (
                "one spelling of each name, a row for each, and one for those who did not answer, too (its other cells empty)"
            )
            return f"{table.where}: {name!r} lists {len(every):,} names: {'; '.join(said)}; allowed: {asked}"
    return ""


def _parted(cell: str) -> list[str]:
    """The names that one cell lists."""
    inside = cell.strip("[]{}()")
    parts = inside.split() if re.fullmatch(r"\[[\d\s]+\]", cell) else _PART.findall(inside)  # of numpy; of others
    told = (
        one[1:-1].replace('""', '"') if one[0] == '"' == one[-1] != one else one.strip(" '\"")
        for one in map(str.strip, parts)
        if one
    )
    return [one for one in told if one.casefold() not in NOTHING]


def _decimals(name: str, cells: Sequence[str], ids: Collection[str]) -> bool:
    """Whether a column holds numbers such as 2,3: lists are told by its name, by a third, by ids like no other number."""
    several = [(cell, parts) for cell in cells if len(parts := _parted(cell)) > 1]
    numbers = [parts for cell, parts in several if _DECIMAL.fullmatch(cell)]
    if not numbers or len(numbers) < _NEARLY * len(several) or says("others", name) or says("superior", name):
        return False
    return not names_people({id_text(one) for parts in numbers for one in parts}, ids)


def _listed_ties(table: Table, keys: dict[str, frozenset[str]]) -> Table | None:
    """Columns whose cells name ids of the same table, as ties; they leave the table.

    Several columns that differ in a number, such as ``friend1, friend2``; one of lists, such as ``Ann, Bob``; one that names
    one other, where ids are words or it is called as a superior: a number may be anything. Others of this kind are ties, too.
    """
    if table.matrix is not None:
        return None
    groups: dict[str, list[str]] = {}
    place = {name: number for number, name in enumerate(table.names)}
    for name in place:
        groups.setdefault(re.sub(r"[ _.-]*\d+$", "", name), []).append(name)
    for names in [own for own in groups.values() if len(own) > 1] + [[name] for name in place]:
        cells = [table.texts(name) for name in names]
        told = {one: [] if one.strip().casefold() in NOTHING else [id_text(one.strip())] for own in cells for one in set(own)}
        parts = {one: [id_text(part) for cell in own for part in _parted(cell)] for one, own in told.items()}
        each = {one for some in (told, parts) for own in some.values() for one in own}
        able = {key: ids for key, ids in keys.items() if not ids.isdisjoint(each)}
        rows = list(zip(*cells, strict=True)) if able else []
        whole, parted = ([[one for cell in row for one in of[cell]] for row in rows] for of in (told, parts))
        for key, ids in able.items():
            single = parted != whole and _decimals(names[0], [cell for row in whole for cell in row], ids)
            held = [sum(one in ids for own in some for one in own) / max(1, sum(map(len, some))) for some in (whole, parted)]
            single |= held[0] >= max(_MOSTLY, held[1])
            lists = whole if single else parted
            listed = [one for own in lists for one in own if one]
            given = [one for one in listed if not _BELOW.fullmatch(one)] if len(names) > 1 else listed  # without codes
            if key in (*names, "") or key not in place or len(listed) <= len(table.frame) / 4:
                continue
            if names[0] in keys and place[key] > place[names[0]]:
                continue  # of two columns that may be ids the first is
            share = sum(one in ids for one in given) / max(1, len(given))
            words = not any(one.isdigit() for one in ids)
            if len(names) == 1:  # ``manager_emp_no`` beside ``emp_no``
                above = says("superior", names[0]) and (is_id_name(names[0]) or len(set(given)) > _MARKS)
                answers = above or (len(key) > 2 and plain_name(names[0]).endswith(plain_name(key)))
                found = share >= _NEARLY and (
                    words or answers or any(len(own) > 1 for own in lists) or names_people(set(given), ids)
                )
            else:  # codes of who gave no answer stand among them, and are named as wrong; grades are few
                found = share >= _MOSTLY and len(ids.intersection(listed)) >= len(ids) / 2
            if found:
                others = {
                    name: {*table.ids(name)} - {""} for name in table.names if len(names) == 1 and name not in (key, *names)
                }
                more = [name for name, own in others.items() if own and ((words and own <= ids) or names_people(own, ids))]
                lists = [[*own, *(table.ids(name)[row] for name in more)] for row, own in enumerate(lists)]
                names = [*names, *more]
                mine = table.ids(key)
                pairs = [(row, mine[row], one) for row, own in enumerate(lists) for one in own if one]
                frame = pd.DataFrame([pair for _, *pair in pairs], columns=["source", "target"], dtype=object)
                places = [table.place(row) for row, *_ in pairs]
                table.of_ties = _going_with(table, names)
                table.frame, table.id = table.frame.drop(columns=names), key
                called = f"column {names[0]!r}" if len(names) == 1 else ", ".join(names)
                remark = f"{called} of {table.title} list{'s' * (len(names) == 1)} ids: each is a tie"
                return Table(table.where, frame, role="edges", ends=("source", "target"), places=places, remarks=[remark])
    return None


def _going_with(table: Table, tied: Sequence[str]) -> dict[str, str]:
    """Columns that say of whom one of ties names."""
    found = dict[str, str]()
    coded = {name: table.coded(name) for name in table.names}
    filled = {name: np.array([one.casefold() not in NOTHING for one in ids])[codes] for name, (codes, ids) in coded.items()}
    for tie in tied:
        for column in (name for name in table.names if name not in (*tied, *found)):
            there = filled[tie] & filled[column]
            if _goes_with(tie, coded[tie][0][there], column, coded[column][0][there]):
                found[column] = f"it goes with {tie!r}, which says ties"
    return found


def _goes_with(tie: str, named: np.ndarray, column: str, cells: np.ndarray) -> bool:
    """Whether each tells the other, or one is called as the other and follows from it. named, cells: int64 [rows], numbers."""
    if not named.size:
        return False
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tie).casefold().split(".")
    words = next(filter(None, (re.findall(r"[^\W\d_]{4,}", one) for one in parts[::-1])), [])
    again = np.bincount(named)[named] > 1
    both = again.sum() >= _FEW_TIES and _follows(named[again], cells[again]) and _follows(cells[again], named[again])
    return bool(both or (any(word in column.casefold() for word in words) and _follows(named, cells)))


def goes_with_ties(roles: Roles, column: str, cells: Sequence[str]) -> str:
    """Why a column of people says who is tied to whom: of whom each names, or which few know each other; "" where it does not.

    cells: of all people.
    """
    apart = roles.one != roles.two
    one, two, n = roles.one[apart], roles.two[apart], len(roles.ids)
    if one.size < _FEW_TIES:
        return ""
    codes, texts = pd.factorize(np.array(cells, dtype=object))
    filled = np.array([text.casefold() not in NOTHING for text in texts])[codes]
    same = (codes[one] == codes[two]) & filled[one]
    if _HOUSEHOLD * len(texts) >= n and same.sum() >= _NEARLY * one.size:
        return "ties are between those who have one value of it"
    for mine, other, end in ((one, two, roles.ends[1]), (two, one, roles.ends[0])):
        names = np.bincount(mine, minlength=n)
        if (names == 1).sum() < _NEARLY * (names > 0).sum():
            continue  # one names several
        there = filled[mine]
        if _goes_with(end if roles.ties.headed else "", other[there], column, codes[mine][there]):
            return f"it goes with {end!r}, which says ties"
    return ""


def _follows(one: np.ndarray, two: np.ndarray) -> bool:
    """Whether the first numbers [n] tell (nearly) all of the second that naming the commonest gets wrong."""
    most, width = int(np.bincount(two).max(initial=0)), int(two.max(initial=0)) + 1
    pairs, counts = np.unique(one * width + two, return_counts=True)
    best = np.zeros(int(one.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(best, pairs // width, counts)
    return bool(best.sum() - most >= _NEARLY * (two.size - most) > 0)


def _matrix_as_ties(table: Table, every: Sequence[Table]) -> list[Table]:
    """An adjacency matrix, whose columns are called as its rows are, as a table of ties and one of people; else the table."""
    known = [key for other in every if other is not table for key in _keys(other).values()]
    whole, table = table, _without_sums(_numbered_head(table, known))
    names, n = table.names, len(table.frame)
    if table.matrix is not None or n < 2 or len(names) < n or (not table.headed and len(names) > n):
        return [whole]
    beside = list[str]()
    ordered = list[str]()
    if table.headed and (placed := _placed(table, known)) is not None:
        rows = columns = placed
        body = table.frame.iloc[:, -n:]
        ordered = [f"rows of the matrix {table.title} are the people of its header, in its order"] * (len(names) == n)
    elif table.headed:
        called = {id_text(name): name for name in names}
        able = names[: len(names) - n + 1][:_FEW_TIES]
        key = next((name for name in able if len(ids := {*table.ids(name)}) == n and ids <= called.keys()), None)
        if key is None:
            return [whole]
        rows = table.ids(key)
        columns = [id_text(name) for name in names if name != key and id_text(name) in set(rows)]
        body = table.frame[[called[one] for one in columns]]
        beside = [name for name in names if name != key and id_text(name) not in set(rows)]
        if len(columns) != n:
            return [whole]
    else:
        rows = columns = list(map(str, range(n)))
        body = table.frame
    cells = _filled(body)
    absent = np.isin(np.char.lower(body.to_numpy(dtype=object).astype(str)), [*NOTHING - {""}]) & ~np.eye(n, dtype=bool)
    if table.headed:
        cells[np.array(rows)[:, None] == np.array(columns)] = "0"  # nobody is tied to itself, whatever stands there
    marks = {one.casefold() for one in np.unique(cells).tolist()} - {"0", *_NO_TIE}
    if len(marks) == 1 and np.isnan(csv_number(*marks)):
        cells = np.where(np.char.lower(cells) == min(marks), "1", "0")
    try:
        weights = cells.astype(np.float64)
    except ValueError as error:
        if not table.headed:
            return [table]
        said = f"a matrix of people whose cells are no numbers ({str(error).replace('np.str_', '')})"
        raise DataError(f"{table.where}: {said}; allowed: numbers, or one mark such as x") from error
    apart = weights[~np.eye(n, dtype=bool)]
    people: list[Table] = []
    if not table.headed:
        people = [one for one in every if one is not whole and len(one.frame) == n and any(_keys(one)) and not _names_ends(one)]
        if not _is_adjacency(weights, len(every) == 1):
            return [table]
        np.fill_diagonal(weights, 0)
        rows = columns = [str(place) for place in range(1, n + 1)]
        if people:
            rows = columns = people[0].ids(people[0].id or next(filter(None, _keys(people[0]))))
    _require_answers(table, weights)
    if n > 3 and apart.all() and np.unique(apart).size > 2:
        said = f"a matrix in which everybody is tied to everybody ({apart.min():g} … {apart.max():g}): distances, or likeness?"
        raise DataError(f"{table.where}: {said} allowed: 0 where there is no tie")
    at = np.argwhere(weights != 0)
    frame = pd.DataFrame(
        {"source": np.array(rows, dtype=object)[at[:, 0]], "target": np.array(columns, dtype=object)[at[:, 1]]}, dtype=object
    )
    whose = f"people in the order of {people[0].title}" if people else "people, numbered from 1"
    ordered += [] if table.headed else [f"rows of the matrix {table.title} are the {whose}"]
    ordered += [f"{table.title}: {counted(int(absent.sum()), 'cell')} such as NA, no tie there"] if absent.any() else []
    range_ = f"{weights.min():g} … {weights.max():g}"
    weighted = [f"weights of ties ({range_}) are not used: each cell but 0 is a tie"] if np.unique(weights).size > 2 else []
    tied = Table(table.where, frame, role="edges", ends=("source", "target"), remarks=[*table.remarks, *ordered, *weighted])
    facts = {"id" if "id" not in beside else " id": rows} | {name: table.texts(name) for name in beside}
    named = Table(table.where, pd.DataFrame(facts, dtype=object), role="nodes", id=next(iter(facts)), ordered=True)
    return [tied] if people else [named, tied]


def _filled(frame: pd.DataFrame) -> np.ndarray:
    """Cells as texts, with 0 where nothing stands."""
    cells = frame.to_numpy(dtype=object).astype(str)
    return np.where(np.isin(np.char.lower(cells), list(NOTHING)), "0", cells)


def _answerless(weights: np.ndarray) -> tuple[dict[float, int], float]:
    """(codes of no answer in a matrix, such as 9, 99 or -9, with how many cells there are; the largest other number)."""
    apart = weights[~np.eye(len(weights), dtype=bool)]
    counts = dict(zip(*(told.tolist() for told in np.unique(apart, return_counts=True)), strict=True))
    codes = {one: count for one, count in counts.items() if _ANSWERLESS.fullmatch(f"{one:g}")}
    if all(one in (0, 1, *codes, *_FIXED) for one in counts):
        codes |= {one: counts[one] for one in _FIXED if one in counts}
    return codes, max((abs(one) for one in counts if one not in codes), default=0)


def _is_adjacency(weights: np.ndarray, alone: bool) -> bool:
    """Whether a square of numbers without names says who is tied to whom: its diagonal is all the same, but for codes.

    Beside, it is the same at both sides, or of 0 and 1, or holds so many other numbers that this is no chance.
    """
    n, (codes, _) = len(weights), _answerless(weights)
    apart, known = weights[~np.eye(n, dtype=bool)], {0.0, *codes}
    own = {*np.diag(weights).tolist()}
    if n < 3 or len(own - {*codes}) > 1 or {*apart.tolist()} <= known:
        return False
    plain = {*apart.tolist()} - {*codes} == {0.0, 1.0} and (alone or n >= _FEW_TIES)
    if own <= known and (plain or (weights == weights.T).all()):
        return True
    return n >= _FEW_TIES and np.isin(apart, [*own]).mean() ** n < _BY_CHANCE


def _require_answers(table: Table, weights: np.ndarray) -> None:
    """``DataError`` where cells of a matrix are 9, 99 or -9, far above all else: no answer, in surveys, and hardly a tie."""
    n, (counts, most) = len(weights), _answerless(weights)
    codes, cells, least = sorted(counts), sum(counts.values()), min(map(abs, counts), default=0)
    silent = most < least and ((weights == max(codes)).sum(axis=1) >= n - 1).any()
    far = most <= 1 or (cells >= 3 and 3 * most <= least)
    if n > 3 and most and (silent or (far and 2 * most <= least)):
        listed = ", ".join(f"{one:g}" for one in codes)
        said = f"{listed} in {counted(cells, 'cell')} of this matrix, and no other number is above {most:g}"
        asked = f"does it stand for no answer, or a tie of strength {codes[-1]:g}?"
        raise DataError(f"{table.where}: {said}: {asked} Allowed: empty cells (NA) there, or another number if it is a weight")


def _without_sums(table: Table) -> Table:
    """Without sums at the edges of a matrix of people, and what is written below it; other tables as they are.

    Whoever is called Suma, and has a row and a column, is a person, unless these add up what the others hold.
    """
    names, ids = table.names, table.ids(table.names[0]) if table.names else []
    if not table.headed or table.matrix is not None or len(names) <= 3 or len(ids) <= 3:
        return table
    kept = names[:-1] if TOTAL.fullmatch(names[-1].rstrip(": ")) or _adds_up(table, len(names) - 2) else names
    people, rows, below = set(map(id_text, kept[1:])), len(ids), list[str]()
    while rows > 3 and ids[rows - 1] not in people:
        rows -= 1
        filled = [cell for cell in table.frame.iloc[rows, 1:] if cell]
        sums = not any(map(np.isnan, map(csv_number, filled)))
        if filled and not (sums and (TOTAL.fullmatch(ids[rows].rstrip(": ")) or _adds_up(table, len(kept) - 1, rows))):
            if len(kept) - 1 == len(people) and {*ids[: len(people)]} == people:
                said = f"{ids[rows][:40]!r} stands below a matrix of {len(people):,} people, and is none of them"
                raise DataError(f"{table.place(rows)}: {said}, nor their sum; allowed: people alone (delete this line)")
            return table
        below.append(ids[rows])
    if (kept is names and not below) or set(ids[:rows]) != people or len(people) != rows:
        return table
    if kept is not names:
        numbers = [[0.0 if np.isnan(one := csv_number(cell)) else one for cell in table.texts(name)] for name in names[1:]]
        own, total = np.array(numbers[:-1])[:, :rows], np.array(numbers[-1])[:rows]
        fits = max((np.isclose(told.sum(axis=0), total) for told in (own, own != 0)), key=np.sum)
        if not fits.all():
            if total.max() <= own.max() or 2 * fits[total != 0].sum() < (total != 0).sum():  # a person
                return table
            wrong = int(np.argmin(fits))
            said = f"{names[-1]!r} beside a matrix of {rows:,} people adds up {int(fits.sum()):,} rows, and not that of"
            told = f"{ids[wrong][:40]!r} ({total[wrong]:g}, not {own[:, wrong].sum():g})"
            raise DataError(
                f"{table.where}: {said} {told}; allowed: sums or counts that are right, or none (delete this column)"
            )
        below.append(names[-1])
    listed = ", ".join(repr(one[:40].replace(";", ",")) for one in dict.fromkeys(below) if one)
    remark = f"{table.title} is a matrix of {rows:,} people: what stands beside them is nobody, and left out ({listed})"
    return replace(table.some(np.arange(rows)), frame=table.frame.iloc[:rows][list(kept)], remarks=[*table.remarks, remark])


def _adds_up(table: Table, n: int, row: int = -1) -> bool:
    """Whether that row of a matrix of n people, or the column behind them, holds sums; where both meet, the sum of all."""
    called, ids = list(map(id_text, table.names[1:])), table.ids(table.names[0])
    if {*called[:n]} != {*ids[:n]} or len({*ids[:n]}) < n:
        return False
    cells = np.nan_to_num([list(map(csv_number, own)) for own in table.frame.iloc[:, 1:].to_numpy(dtype=object)])
    whole, told = cells[:n, :n], cells[row, :n] if row >= 0 else cells[:n, n]
    meets = row >= 0 or called[n : n + 1] != ids[n : n + 1] or cells[n, n] == whole.sum()
    return bool(whole.any() and meets and np.allclose(whole.sum(axis=int(row < 0)), told))


def _without_notes(table: Table, named: Set[str], remarks: list[str], ends: Sequence[str] = ()) -> Table:
    """Without rows of hardly a cell, or of sums, that no tie names, and whose texts have other signs than their columns.

    ends: columns of ties; no row that fills both is left out.
    """
    columns = [table.frame[name].to_numpy(dtype=object) for name in table.names]
    if table.role or table.matrix is not None or len(columns) < 2:
        return table
    filled = np.array([own != "" for own in columns], dtype=bool)
    first, count = filled.argmax(axis=0).tolist(), filled.sum(axis=0)
    few, at = (2 * count <= max(2, len(columns))) & (count > 0), [table.names.index(name) for name in ends]
    bare = np.asarray(filled[at].sum(axis=0) == 0) & bool(ends)
    for k in np.flatnonzero(~few & (count < len(columns))).tolist():
        few[k] = _is_sum(columns[0][k], bool(bare[k]))
    few &= ~filled[at].all(axis=0) if ends else True
    apart = [k for k in np.flatnonzero(few).tolist() if id_text(columns[first[k]][k]) not in named]
    known = set(map(_letters, named)) if apart else set()
    apart = [k for k in apart if _letters(columns[first[k]][k]) not in known]
    others = ~np.isin(np.arange(len(few)), apart)
    if not apart or others.sum() <= max(2, len(apart)):
        return table
    texts = [{*own[others]} - {""} for own in columns]
    signs: list[tuple[set[str], set[str]]] = []  # of a column: what all cells have, and what some have
    for own in texts:
        least, most = set(map(_sign, next(iter(own), ""))), set[str]()
        for told in (set(map(_sign, one)) for one in own):
            least, most = least & told, most | told
        signs.append((least, most))
    notes, plain = list[str](), list[str]()
    for k in apart:
        row = [
            (own[k], told, least <= set(map(_sign, own[k])) <= most)
            for own, told, (least, most) in zip(columns, texts, signs, strict=True)
            if own[k]
        ]
        others[k] = row[0][2] or not texts[first[k]]
        total = _is_sum(row[0][0], bool(bare[k]))
        others[k] |= any(alike and not (total and (number_like(one) or {one} == told)) for one, told, alike in row[1:])
        if not others[k] or not row[1:]:
            (plain if others[k] else notes).append(repr(row[0][0][:40]))
    if notes:
        more = f" and {counted(len(notes) - 1, 'more row')}" if notes[1:] else ""
        remarks.append(f"{notes[0]}{more} of {table.title} left out: a note or a sum, written unlike others and in no tie")
    if plain and len(columns) > 2 and _MOST_TOLD * len(plain) < len(few):
        more = f" (as {len(plain) - 1:,} more)" if plain[1:] else ""
        remarks.append(f"{plain[0]}{more} of {table.title} has no other cell, and is a person: if not, leave it out")
    return table.some(others) if notes else table


def _is_sum(cell: str, bare: bool) -> bool:
    """Whether a cell says so, as ``Total`` and ``Total: 60`` do; of a tie without ends (bare) ``Total Energies`` is no firm."""
    rest = cell[found.end() :] if (found := TOTAL.match(cell)) else "a"
    return not any(map(str.isalpha, rest[: 1 if bare else None]))


def _sign(letter: str) -> str:
    """Of which kind a letter is: all letters are one, and all digits."""
    return "a" if letter.isalpha() else "0" if letter.isdigit() else letter


def _numbered_head(table: Table, known: Sequence[Set[str]]) -> Table:
    """With its first row as names, where that counts the columns of a square below it, or holds ids that are known."""
    head = [id_text(cell) for cell in table.frame.iloc[0].tolist()] if len(table.frame) else []
    if table.headed or len(table.frame) != len(table.names) + 1 or not _names_columns(head, known):
        return table
    return replace(
        table, frame=table.frame.iloc[1:].reset_index(drop=True).set_axis(head, axis=1), lines=table.lines[1:], headed=True
    )


def _names_columns(ids: Sequence[str], known: Sequence[Set[str]]) -> bool:
    """Whether texts are people in order: numbers that count them, or all of them different ids that are known."""
    counted = ids in [[str(k + first) for k in range(len(ids))] for first in (0, 1)]
    return counted or (len({*ids}) == len(ids) and any(key >= {*ids} for key in known))


def _placed(table: Table, known: Sequence[Set[str]]) -> list[str] | None:
    """The people of a matrix whose rows are in the order of its columns, or None: what stands at both sides is the same.

    Columns may be called as rows are but for signs, as R writes ``Ann Lee``, or 7, above a column as ``Ann.Lee``, or X7.
    """
    n, more = len(table.frame), len(table.names) - len(table.frame)
    if n < 3 or more not in (0, 1):
        return None
    rows, names = table.ids(table.names[0]) if more else [id_text(name) for name in table.names], table.names[more:]
    if len({*rows} - {""}) < n or (more and set(map(id_text, names)) == set(rows)):
        return None
    try:
        weights = _filled(table.frame.iloc[:, more:]).astype(np.float64)
    except ValueError:
        return None
    own = np.count_nonzero(np.diag(weights))  # who name themselves, as some do
    if more:
        alike = all(_letters(a) in (_letters(b), _letters(b[1:])) for a, b in zip(rows, names, strict=True))
    elif not (alike := _names_columns(rows, known)) and any(key >= {one[1:] for one in rows} for key in known):
        rows, alike = [one[1:] for one in rows], True
    sound = own <= n / 10 if alike and not more else not own and (alike or (weights == weights.T).all())
    return rows if weights.any() and sound else None


# Who the people are


def _holders(
    others: list[Table], ties: Table, pair: tuple[str, str], id: str | None, found: Gathered, remarks: list[str]
) -> tuple[list[Holder], list[str]]:
    wanted, of_one = ties.different(pair[0]) | ties.different(pair[1]), _whose(others, id)[:1]
    said = {table.where: column for table, column in of_one}
    for people, _ in of_one:  # ``users.id``: rows of other tables that have such a column, or none of ids, are no people
        things = [one for one in others if one is not people and (own_key(one) or _keys(one).keys() <= {one.implied})]
        things = [one for one in things if one.matrix is None and not holds_facts(one)]
        found.aside |= {one.title: f"rows of other things than {people.title}, as --id says" for one in things}
        others = [one for one in others if one not in things]
    said |= {table.where: column for table in others if id is not None and (column := _named(table, id)) is not None}
    if id is not None and not said and id != ROW:
        listed = "; ".join(f"{table.title}: {', '.join(table.names[:12])}" for table in others)
        raise ScenarioError(f"--id {id}: no table of people has such a column; found: {listed}")
    chosen: list[tuple[Table, str, frozenset[str]]] = []
    nameless: list[tuple[Table, DataError]] = []
    longest = max(len(table.frame) for table in others)
    if id is None and not any(table.headed or table.matrix is not None or table.implied is not None for table in others):
        held = any(wanted <= {*table.ids(name)} for table in others for name in _likely(table))
        begin = _first_row(longest, wanted)
        counted_so = all(one.isdigit() and begin <= int(one) < longest + begin for one in wanted)
        if not held and (begin or "0" in wanted) and counted_so:
            asked = f"{others[0].where}: no column holds the ends of ties, and there are {longest:,} rows: are people numbers "
            raise ReadingQuestion(f"{asked}of rows, from {begin}? If so, say --id {ROW}; else add a column of ids", "id", [ROW])
    for table in (_without_notes(one, wanted, remarks) if id != ROW else one for one in others):
        if id == ROW and ROW not in table.names:
            if 2 * len(table.frame) < longest and not is_labels(table):
                found.aside[table.title] = "no row for each of the people"
                continue
            table = _numbered(table, _first_row(len(table.frame), wanted, _keys(table).values()))
            chosen.append((table, "", table.different("")))
            continue
        try:
            column = said.get(table.where) or table.id or _id_of(table, ties, wanted, remarks)
        except ReadingQuestion:
            raise
        except DataError as error:
            nameless.append((table, error))
            continue
        if column == table.implied and column is not None and column not in table.names:
            table = _numbered(table)
        chosen.append((table, column, table.different(column)))

    def rank(one: tuple[Table, str, frozenset[str]]) -> tuple[float, int, int, bool]:
        covered = len(wanted & one[2]) / len(wanted) if wanted else 1.0
        size = len(one[0].names) + len(one[0].called)
        return round(covered, 2), len(one[2]), size, not is_labels(one[0])

    for table, column, _ in chosen:
        _require_whole(table, column)
    if id is None and len(chosen) == 1 and chosen[0][0].id is None:
        table, column = _of_rows_or_ids(*chosen[0][:2], ties, pair, remarks)
        chosen = [(table, column, table.different(column))]
    chosen.sort(key=lambda one: (bool(of_one) and one[0].where in said, *rank(one)), reverse=True)
    for table, column, _ in chosen[1:]:
        _require_same_people(*chosen[0][:2], table, column)
    if chosen and not of_one:
        _require_one_kind([(table, column) for table, column, _ in chosen])
    for table, why in nameless:
        few = bool(said) or (bool(chosen) and 2 * len(table.frame) < len(chosen[0][2]))
        if not chosen or rank(chosen[0])[0] < 1 or not few or is_labels(table):
            raise why
        found.aside[table.title] = "no column of it holds ids of people"
    ids: dict[str, int] = {}
    holders: list[Holder] = []
    for number, (table, column, mine) in enumerate(chosen):
        if number and mine and not mine & ids.keys() and (said or 2 * len(mine) < len(ids)) and not is_labels(table):
            found.aside[table.title] = "no column of it holds ids of people"
            continue
        if not len(table.frame) and not is_labels(table):
            found.faults.note(table.where, "a header but no nodes; allowed: one line per node")
        if number:
            table = _as_people(table, [column], ids.keys(), f"{chosen[0][1]!r} of {chosen[0][0].title}", remarks)
            table = table if is_labels(table) else _listed_once(table, column)
            mine = table.different(column)
        rows: dict[str, int] = {}
        unknown, apart, every = list[tuple[int, str]](), _tells_apart(table, column), table.ids(column)
        sound = len(mine) == len(every) and (not number or mine <= ids.keys())
        rows |= dict(zip(every, range(len(every)), strict=True)) if sound else {}
        ids |= rows if not number else {}
        again = sum(map(bool, every)) - len(mine)
        more = f", as {again - 1:,} more of {len(every):,} rows do" if again > _MOST_TOLD else ""
        if number and not (said or mine & ids.keys() or is_labels(table)):
            _written_otherwise([chosen[0][0], table])  # its rows are other things, and it may say who is tied
        for row, one in enumerate(() if sound else every):
            if not one:
                found.faults.note(table.place(row), f"a node without an id in column {column!r}; allowed: any text")
            elif one in rows:
                if again:
                    found.faults.note(table.place(row), f"node {one!r} appears a second time{more}; allowed: once{apart}")
                again = 0 if more else again
            elif number and one not in ids and one not in holders[0].table.lost:
                unknown.append((row, one))
            else:
                rows[one] = row
                if not number:
                    ids[one] = len(ids)
        for row, one in unknown:
            first = chosen[0][0].title
            found.faults.note(table.place(row), f"unknown node {one!r}; allowed: the {len(ids):,} ids of {first}")
        if number == 0 and not ids:
            found.faults.refuse()
            raise DataError(f"{table.where}: names nobody; allowed: one line per node")
        whole = len(rows) == len(every) == len(ids) and every == list(ids)
        at = np.arange(len(ids)) if whole else np.array([rows.get(one, -1) for one in ids], dtype=np.int64)
        holders.append(Holder(table, column, at))
        lacking = int((holders[-1].rows < 0).sum())
        if number and lacking and not is_labels(table):
            remarks.append(f"{lacking:,} {'person has' if lacking == 1 else 'people have'} no row in {table.title}")
    return holders, list(ids)


def _listed_once(table: Table, column: str) -> Table:
    """Who stands in a table of cases, of which some people have several: the list of them, each once."""
    ids = table.ids(column)
    first = ~pd.Index(ids).duplicated()
    if len(ids) < _FEW_TIES or 4 * first.sum() > 3 * len(ids):
        return table  # a slip, which is refused
    more = tuple(
        f"column {name!r} of {table.title}, which has several rows for one person" for name in table.names if name != column
    )
    table.unused = (*table.unused, *more)  # of what was gathered, where it is listed
    own = table.some(first)
    return replace(own, frame=own.frame[[column]])


def _require_one_kind(chosen: Sequence[tuple[Table, str]]) -> None:
    """Asks who the people are where each of two tables numbers rows of its own, and nothing says that these are the same."""
    (first, key), *others = chosen
    for other, own in others:
        if any(holds_facts(one) or one.role for one in (first, other)) or own_key(first) != key or own_key(other) != own:
            continue
        if not (first.headed and other.headed and counts_rows(first, key) and counts_rows(other, own)):
            continue
        same = first.different(key) == other.different(own)
        rows = dict(zip(other.ids(own), range(len(other.frame)), strict=True))
        shared = [name for name in first.names if name in other.names and name not in (key, own)]
        at = [(row, rows[one]) for row, one in enumerate(first.ids(key)) if one in rows]
        differ = any(
            4 * sum(mine[a] != theirs[b] for a, b in at) > len(at)
            for mine, theirs in ((first.texts(name), other.texts(name)) for name in shared)
        )
        count = len(other.frame)
        whole = other.different(own) in [{str(begin + row) for row in range(count)} for begin in (0, 1)]
        if differ or (whole and not same):
            either = f"{first.stem}.{key}", f"{other.stem}.{own}"
            asked = f"{first.title} and {other.title} both number rows from 1: which are the people? Say --id {either[0]}, or "
            raise ReadingQuestion(
                f"{asked}--id {either[1]}; facts of one kind need one id, such as {first.stem}_id", "id", either
            )


def _require_same_people(first: Table, key: str, other: Table, own: str) -> None:
    """``DataError`` where two tables have the same columns, and whoever has an id of one is another in the second.

    People whose table was written twice, such as in two years, keep some of their facts.
    """
    shared = [name for name in first.names if name in other.names and name not in (key, own)]
    few = 2 * len(shared) <= max(len(first.names), len(other.names)) - 1
    if few or not (first.headed and other.headed) or is_labels(first) or is_labels(other):
        return
    rows = dict(zip(other.ids(own), range(len(other.frame)), strict=True))
    at = [(row, rows[one]) for row, one in enumerate(first.ids(key)) if one in rows]
    if len(at) < _SHARED:
        return
    said = ""
    for mine, theirs, name in ((first.ids(name), other.ids(name), name) for name in shared):
        pairs = [(mine[a], theirs[b], a) for a, b in at if mine[a] and theirs[b]]
        one, two = Counter(a for a, _, _ in pairs), Counter(b for _, b, _ in pairs)
        alike = sum(a == b for a, b, _ in pairs)
        if alike >= _NEARLY * len(pairs) and 4 * sum(one[cell] * two[cell] for cell in one) <= 3 * len(pairs) ** 2:
            return
        if 4 * alike < 3 * len(pairs):
            a, b, row = next(pair for pair in pairs if pair[0] != pair[1])
            said = said or f"{first.ids(key)[row]!r}, say, has {name} {a!r} there and {b!r} here"
    if said:
        raise DataError(
            f"{other.where}: has the columns of {first.title}, and with the same ids other people: {said}; allowed: ids that "
            f"tell all people apart, in ties, too; or, where each is of a class, a school or a bank, {A_FOLDER_EACH}"
        )


def _tells_apart(table: Table, key: str) -> str:
    """What to do where ids stand several times, and another column says of what they are, such as of which site or year."""
    ids = table.ids(key)
    if len(set(ids)) == len(ids):
        return ""
    if full := [name for name in table.names if name != key and is_id_name(name) and len(table.different(name)) == len(ids)]:
        return f" ({full[0]!r} tells all rows apart: let it be the id, in ties, too)"
    for name in (name for name in table.names[:_WIDE] if name != key):
        cells = table.texts(name)
        if 1 < len(set(cells)) <= len(cells) / 2 and len(set(zip(ids, cells, strict=True))) == len(ids):
            return f" (in each {name!r} it stands once: keep one, or let both together be the id, in ties, too)"
    return ""


def is_labels(table: Table) -> bool:
    """Whether a table holds labels beside the table of people, as its file's name says."""
    few = len(table.names) <= _FEW_LABELS  # more are facts of a school's class
    return not table.role and bool(re.search(r"label|classes" + "|class" * few, table.stem))


def _first_row(count: int, wanted: frozenset[str], keys: Collection[frozenset[str]] = ()) -> int:
    """What the first of rows is called: 1 where somebody, in a tie or a column of ids, is called as the last one is then."""
    return int("0" not in wanted and (str(count) in wanted or frozenset(map(str, range(1, count + 1))) in keys))


def _of_rows_or_ids(table: Table, column: str, ties: Table, pair: _Pair, remarks: list[str]) -> tuple[Table, str]:
    """The people, who are numbers of rows where a column ``degree`` is right so alone. Asks where nothing decides."""
    mine, wanted = table.different(column), ties.different(pair[0]) | ties.different(pair[1])
    first = _first_row(len(table.frame), wanted, _keys(table).values())
    rows = [str(row + first) for row in range(len(table.frame))]
    if column in ("", table.implied) or not wanted or not wanted <= mine or mine != set(rows) or table.ids(column) == rows:
        return table, column
    every = list(zip(ties.ids(pair[0]), ties.ids(pair[1]), strict=True))
    counts = [Counter(one for tie in some for one in tie) for some in (every, set(map(frozenset, every)))]
    for name in (name for name in table.names if plain_name(name) == "degree"):
        told = [csv_number(cell) for cell in table.texts(name)]
        by_row, by_id = (any(told == [of[one] for one in ids] for of in counts) for ids in (rows, table.ids(column)))
        if by_row != by_id:
            so = "numbers of rows" if by_row else f"ids in {column!r}"
            remarks.append(f"{name!r} of {table.title} is the number of ties only if ends are {so}: they are read so")
            return (_numbered(table, first), "") if by_row else (table, column)
    called = plain_name(column) in ("id", "nodeid", "node", *map(plain_name, (own_key(table) or "id",)))
    if called or not table.headed or any(plain_name(column) in plain_name(name) for name in pair):
        remarks.append(f"ends are {column!r} of {table.title}: if they are numbers of rows, say --id {ROW}")
        return table, column
    asked = f"{table.where}: are ends of ties in {ties.title} ids in {column!r}, or numbers of rows, from {first}? They may be "
    raise ReadingQuestion(f"{asked}both. Say --id {shlex.quote(column)}, or --id {ROW}", "id", (column, ROW))


def _numbered(table: Table, first: int = 0) -> Table:
    """The table with the number of its rows as a column without a name."""
    frame = table.frame.rename(columns={"": "level 0" if "index" in table.names else "index"})  # names of rows
    frame.insert(0, "", [str(row + first) for row in range(len(frame))])
    return replace(table, frame=frame, implied=None)


def _id_of(table: Table, ties: Table, wanted: frozenset[str], remarks: list[str]) -> str:
    """The column of ids of a table of people: it holds the ends, or is called so."""
    keys = _keys(table)

    def held(column: str) -> float:  # of a table that knows only some of the people, what it knows
        mine = keys[column]
        return max(len(wanted & mine) / len(wanted) if wanted else 1.0, len(wanted & mine) / len(mine) if mine else 0.0)

    own = {name: share for name in keys if (share := held(name)) >= 0.5 or not wanted}
    if wanted:
        most = max((len(wanted & keys[name]) for name in own), default=0)
        full = [name for name in own if len(wanted & keys[name]) == most]
    else:
        full = list(own)
    written = [name for name in full if name != table.implied or name in table.names]
    called = [name for name in written if table.headed and is_id_name(name)]
    number = own_key(table)  # of a case, of which some people have several
    named = [name for name in table.names if table.headed and is_id_name(name) and name != number]
    if len(named) == 1 and named[0] not in keys and wanted and 2 * most < len(wanted):
        mine = table.different(named[0])
        if len(mine & wanted) >= _NEARLY * len(mine) > 0:
            return named[0]
    exact = [name for name in called if plain_name(name) in ("id", "nodeid", "node")]
    plain = [name for name in written if name and not name.casefold().startswith("unnamed")]
    placed = [name for name in written[:1] if not table.headed and name == table.names[0]]
    for several in (exact, called, placed, plain, written, full):
        if len(several) == 1:
            if several is full and several != written:
                remarks.append(f"{table.title} has no column of ids: its index, or the number of a row, is the id")
            return several[0]
        if len(several) > 1:
            either = " or ".join(map(repr, several[:4]))
            said = f"say --id {shlex.quote(several[0])}, or the other"
            asked = f"{table.where}: which column is the id: {either}? Each holds the ends; {said}"
            raise ReadingQuestion(asked, "id", several)
    named = [name for name in table.names if table.headed and is_id_name(name)]
    exact = [name for name in named if plain_name(name) in ("id", "nodeid", "node")]
    if len(exact) == 1 or len(named) == 1:
        return (exact or named)[0]
    if not table.headed and table.names[0] in keys:
        return table.names[0]
    for name in _likely(table):
        held_here = table.different(name)
        if held_here and len(held_here & wanted) >= _NEARLY * len(held_here):  # somebody is there twice
            return name
    example = next(iter(sorted(wanted)), "")
    near = max(keys, key=lambda name: len(wanted & keys[name]), default=None)
    close = f"; the nearest is {near!r}, with {len(wanted & keys[near]):,} of {len(wanted):,}" if near else ""
    raise DataError(
        f"{table.where}: no column holds the ends of the ties in {ties.title}, such as {example!r}{close}; allowed: a column "
        f"of ids (--id NAME), or --id {ROW} where ends are the numbers of rows, from 0 or 1"
    )


def _without_header(
    ties: Table, pair: tuple[str, str], position: Collection[str], remarks: list[str]
) -> tuple[Table, tuple[str, str]]:
    """Without a first row of words of which neither is an id, where most other ends are: it names the columns."""
    if ties.headed and all(id_text(name) in position for name in pair):
        return _first_tie(ties, pair, position, remarks), pair
    if ties.headed or len(ties.frame) < 2:
        return ties, pair
    one, two = ties.ids(pair[0]), ties.ids(pair[1])
    unknown = sum(end not in position for side in (one, two) for end in side[1:])
    if one[0] in position or two[0] in position or unknown > _MOSTLY * 2 * len(one):
        return ties, pair
    if unknown and not {_letters(one[0]), _letters(two[0])}.isdisjoint(map(_letters, position)):
        return ties, pair  # people who are written otherwise
    remarks.append(f"the first line of {ties.title}, {one[0]!r} and {two[0]!r}, was taken for names of columns")
    return _with_header(ties, pair)


def _with_header(ties: Table, pair: tuple[str, str]) -> tuple[Table, tuple[str, str]]:
    """With its first row as names of its columns, but for numbers."""
    first = {name: ties.ids(name)[0] for name in ties.names}
    counts = Counter([*first.values(), *first])
    first = {name: cell for name, cell in first.items() if cell and counts[cell] == 1}
    called = {name: cell for name, cell in first.items() if first.keys() >= {*pair} and (name in pair or not number_like(cell))}
    frame = ties.frame.iloc[1:].reset_index(drop=True).rename(columns=called)
    return replace(ties, frame=frame, lines=ties.lines[1:]), (called.get(pair[0], pair[0]), called.get(pair[1], pair[1]))


def _without_links(table: Table, remarks: list[str]) -> Table:
    """Without the links that stand behind names, as in ``Ann (https://…), Bob (https://…)``."""
    frame = table.frame
    for name in table.names if table.matrix is None else ():
        there = (cell for cell in frame[name] if cell.casefold() not in NOTHING)  # of the first one alone it is told mostly
        if _LINK.search(next(there, "")) and all(map(_LINK.search, there)):
            remarks.append(f"links behind what stands in {name!r} of {table.title} are left out")
            frame = frame.assign(**{name: [_LINK.sub("", cell) for cell in table.texts(name)]})
    return table if frame is table.frame else replace(table, frame=frame)


def _people_and_ties(table: Table) -> list[Table]:
    """Both, of one table that holds them, as Neo4j exports everything: ``_id``, or ``_start`` and ``_end``, is filled."""
    if not {"_id", "_start", "_end"} <= set(table.names):
        return [table]
    tied, found = (table.frame["_start"] != "").to_numpy(dtype=bool), []
    for rows, role in ((~tied, "nodes"), (tied, "edges")):
        own = table.some(rows)
        frame = own.frame[[name for name in own.names if any(own.texts(name)) or name in ("_id", "_start", "_end")]]
        if role == "nodes":
            found.append(replace(own, frame=frame.drop(columns=["_start", "_end"]), role=role, id="_id"))
        else:
            found.append(replace(own, frame=frame.drop(columns="_id"), role=role, ends=("_start", "_end")))
    return found


def _named_ties(table: Table) -> Table:
    """With columns of ends, of a table that Cytoscape exports, where a tie is called ``Ann (knows) Bob``."""
    kind = next((name for name in ("shared interaction", "interaction") if name in table.names), None)
    if kind is None or "shared name" not in table.names:
        return table
    sides = [one.split(f" ({how}) ", 1) for one, how in zip(table.texts("shared name"), table.texts(kind), strict=True)]
    if not all(len(own) == 2 for own in sides):
        return table
    frame = table.frame.drop(columns=["shared name", "name"], errors="ignore")
    frame = frame.assign(source=[one for one, _ in sides], target=[two for _, two in sides])
    return replace(table, frame=frame, role="edges", ends=("source", "target"))


def _listed_ends(ties: Table, pair: tuple[str, str], others: Sequence[Table], remarks: list[str]) -> Table:
    """With a row for each of several people who stand in one cell, such as ``ann@x; bob@x``: some of them are known apart."""
    for column in pair:
        cells, whole_column = ties.ids(column), "".join(ties.different(column))
        there = [mark for mark in ",;|" if mark in whole_column]
        listed = {cell for cell in ties.different(column) if any(mark in cell for mark in there)} if there else set()
        marked = [cell for cell in cells if cell in listed] if listed else []
        if not marked:
            continue
        if all(re.fullmatch(r"[+-]?\d+,0+", cell) for cell in marked):
            raise DataError(f"{ties.where}: ends such as {marked[0]!r} have a decimal comma; allowed: ids as they are")
        whole = set[str]().union(*(key for other in others for key in _keys(other).values()))
        if not whole and 2 * sum(cell.count(",") == 1 for side in pair for cell in ties.ids(side)) > 2 * len(cells):
            continue  # a family's name stands in front
        known = whole.union(*(ties.ids(side) for side in pair))
        lists = [[id_text(one.strip()) for one in re.split("[,;|]", cell) if one.strip()] or [""] for cell in cells]
        parts = [one for own in lists if len(own) > 1 for one in own]
        mostly = 2 * sum(one in known for one in parts) > len(parts)
        sure = any(2 * sum(one in known for one in own) > len(own) > 1 for own in lists)
        sure |= any(re.search("[;|]", cell) for cell in marked)
        kept = [cell in whole or not (mostly or (sure and known & {*own})) for own, cell in zip(lists, cells, strict=True)]
        lists = [[cell] if one else own for own, cell, one in zip(lists, cells, kept, strict=True)]
        if several := sum(len(own) > 1 for own in lists):
            rows = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
            ties = ties.some(rows)
            ties = replace(ties, frame=ties.frame.assign(**{column: [one for own in lists for one in own]}))
            remarks.append(f"{several:,} cells of column {column!r} of {ties.title} name several people: each is a tie")
    for column, beside in (pair, pair[::-1]):
        own, plain = ties.different(column), sum(map(bool, map(_ADDRESS.fullmatch, ties.different(beside))))
        odd = sorted(one for one in own if _ADDRESS.search(one) and not _ADDRESS.fullmatch(one))
        if 2 * len(odd) > len(own) and 2 * plain > len(ties.different(beside)):
            said = f"{ties.where}: cells of {column!r} hold addresses and more, such as {odd[0][:60]!r}"
            raise DataError(f"{said}; allowed: addresses alone, several as ann@x; bob@x")
    return ties


def _first_tie(ties: Table, pair: tuple[str, str], known: Container[str], remarks: list[str]) -> Table:
    """With its first line as a tie where that names somebody who is known, although it looks like a header (``a,b``)."""
    people = [name for name in pair if id_text(name) in known]
    others = [name for name in ties.names if name not in pair and np.isnan(csv_number(name))]
    if any(not any(np.isnan(csv_number(cell)) for cell in ties.different(name)) for name in others if any(ties.ids(name))):
        return ties  # a word above numbers names them
    if not (ties.headed and ties.lines.size and people):
        return ties
    said, who = " and ".join(map(repr, pair)), "both are people" if len(people) == 2 else f"{people[0]!r} is there again"
    remarks.append(f"the first line of {ties.title}, {said}, was taken for a tie, since {who}")
    frame = pd.concat([pd.DataFrame([list(ties.names)], columns=ties.frame.columns), ties.frame], ignore_index=True)
    return replace(ties, frame=frame, lines=np.concatenate([[max(ties.lines[0] - 1, 1)], ties.lines]))


def _names_ends(table: Table) -> bool:
    """Whether a table is one of ties by its names alone; ``m1, m2`` where somebody is called so are people."""
    words = [name for name in table.names if len(name) > 1]
    if not table.headed or table.ends or sides_of(words, SIDES):
        return table.headed
    weak = sides_of(words, WEAK_SIDES)
    return any({one, two}.isdisjoint(map(id_text, (*table.ids(one), *table.ids(two)))) for one, two in weak)


def _first_again(table: Table, remarks: list[str]) -> Table:
    """Without a header of which one of the first two names, both words, stands in these columns again: it is a tie."""
    pair = table.names[:2]
    if not 2 <= len(table.names) <= _LIST or any(id_text(name).isdigit() for name in pair) or table.matrix is not None:
        return table
    if sides_of([name for name in pair if len(name) > 1], SIDES):
        return table  # somebody may be called ``target``
    found = _first_tie(table, (pair[0], pair[1]), {*table.ids(pair[0]), *table.ids(pair[1])}, remarks)
    names = [f"column {place + 1}" for place in range(len(table.names))]
    return table if found is table else replace(found, frame=found.frame.set_axis(names, axis=1), headed=False)


def _letters(one: str) -> str:
    """An id without case, spaces and signs, and of a number without zeros that say nothing; -1 is another than 1."""
    return one if _BELOW.fullmatch(one) else re.sub(r"[\W_]", "", re.sub(r"[.,]0+$", "", one.casefold())).lstrip("0")


# How one system writes ids and another does not, from what says least of a person to what says most
_WRITTEN_BOTH_WAYS = ("spaces", "capitals")  # by one person in one table
_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")
_SPELLINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("spaces", lambda one: re.sub(r"\s", "", one)),
    ("zeros in front", partial(_ZEROS.sub, "")),
    ("capitals", str.casefold),
    ("capitals, spaces, signs and zeros in front", lambda one: _ZEROS.sub("", _letters(one))),
)


def _meant(ids: Set[str], known: Set[str]) -> tuple[dict[str, str], str]:
    """(id that nobody has → who is meant, what is written otherwise); nothing where that is no rule, or two would be one."""
    strange = ids - known
    if 2 * len(strange) < len(ids) and len(strange) < _FEW_TIES:
        return {}, ""  # slips of the pen, which are named one by one
    for what, plain in _SPELLINGS:
        people = {plain(one): one for one in known}
        meant = {one: people[key] for one in strange if (key := plain(one)) in people}
        whom = set(meant.values())
        once = (len(whom) == len(meant) and not whom & ids) or what in _WRITTEN_BOTH_WAYS
        if once and len(meant) >= _NEARLY * len(strange) > 0 and len(people) == len(known):
            return meant, what
    return {}, ""


def _as_people(table: Table, columns: Iterable[str], known: Set[str], of: str, remarks: list[str]) -> Table:
    """With ids as ``known`` writes them, where one rule tells who is meant: one system keeps 007, and another 7."""
    names = list(dict.fromkeys(columns))
    every = frozenset[str]().union(*(table.different(name) for name in names))
    meant, what = _meant(every, known)
    if not meant:
        return table
    one = min(meant)
    remarks.append(
        f"{len(meant):,} of {len(every):,} ids in {table.title} are written otherwise than in {of}, such as {one!r} for "
        f"{meant[one]!r}: they were matched without {what}"
    )
    cells = {name: [meant.get(cell, cell) for cell in table.ids(name)] for name in names}
    return replace(table, frame=table.frame.assign(**cells))


def _ends_as_people(ties: Table, pair: tuple[str, str], others: Sequence[Table], remarks: list[str]) -> Table:
    """With ends as the table of people writes them that knows most of them, if need be by a rule."""
    wanted = ties.different(pair[0]) | ties.different(pair[1])
    keys = [(key, f"{name!r} of {other.title}") for other in others for name, key in _keys(other).items() if name]
    if any(wanted <= key for key, _ in keys):
        return ties
    able = [(len(wanted & key) + len(_meant(wanted, key)[0]), key, of) for key, of in keys]
    _, key, of = max(able, key=lambda one: one[0], default=(0, frozenset[str](), ""))
    return _as_people(ties, pair, key, of, remarks)


def _positions(
    ties: Table, pair: tuple[str, str], position: dict[str, int], found: Gathered, lost: set[str], holders: Sequence[Holder]
) -> list[np.ndarray]:
    """int64 [m], the people at each of both ends; −1 where nobody is known, which is noted."""
    coded = [ties.coded(column) for column in pair]
    places = [np.fromiter(map(position.get, ids, repeat(-1)), np.int64, len(ids))[codes] for codes, ids in coded]
    unknown = np.flatnonzero(np.minimum(*places) < 0)
    if not unknown.size:
        return places
    allowed = f"allowed: the {len(position):,} ids of the nodes"
    alike, count = {_letters(one): one for one in position}, len(ties.frame)
    nobody, strange = list[int](), list[tuple[int, str]]()
    for row in unknown.tolist():
        for (codes, ids), side in zip(coded, places, strict=True):
            end = ids[codes[row]]
            if side[row] >= 0 or (end and end in lost):
                continue
            if end.casefold() in NOTHING:
                nobody.append(row)
            else:
                strange.append((row, end))
    if nobody:
        rows = list(dict.fromkeys(nobody))
        sides = " or ".join(repr(name) for name, side in zip(pair, places, strict=True) if (side[rows] < 0).any())
        also = f" (so {', '.join(_line(ties, row) for row in rows[1:9])}{', …' if len(rows) > 9 else ''})" if rows[1:] else ""
        said = f"an empty cell in column {sides}, as in {len(rows):,} of {count:,} lines{also}"
        found.faults.note(ties.place(rows[0]), f"{said}; allowed: both ends of a tie, or no such line")
    names = list(dict.fromkeys(end for _, end in strange))
    advice = _EMPTY if any(one.endswith(": each is a tie") for one in ties.remarks) else _LEAVE_OUT
    if len(names) <= _FEW_TIES and len(strange) > _MOST_TOLD and not any(_letters(name) in alike for name in names):
        found.faults.note(ties.place(strange[0][0]), f"{_named_often(ties, pair, strange)}; {allowed}. {advice}")
        return places
    if len(names) <= _FEW_TIES or not holders:
        for row, end in strange:
            near = f" (written {alike[key][:60]!r} there?)" if (key := _letters(end)) in alike else ""
            found.faults.note(ties.place(row), f"unknown node {end[:60]!r}{near}; {allowed}")
        return places
    every = ties.different(pair[0]) | ties.different(pair[1])
    lines = len({row for row, _ in strange})
    here, there = (", ".join(repr(one[:40]) for one in some) for some in (names[1:4], [*position][:3]))
    said = f"unknown node {names[0][:40]!r}: it and {len(names) - 1:,} more of {len(every):,} that ties name ({here}, …), in "
    said += f"{lines:,} of {count:,} lines, have no row in {holders[0].table.title}, whose {len(position):,} ids in column "
    said += f"{holders[0].id or 'row'!r} are such as {there}"
    found.faults.note(ties.place(strange[0][0]), f"{said}. {_why_unknown(names, alike, position)}")
    return places


_LEAVE_OUT = "If they stand for nobody (a code, somebody who left), leave out these lines"
_EMPTY = "If they stand for nobody (a code, somebody who left), empty these cells"  # of people who list others


def _named_often(ties: Table, pair: tuple[str, str], strange: Sequence[tuple[int, str]]) -> str:
    """Which few names that nobody has stand in many lines, and in which column."""
    counts = Counter(name for _, name in strange)
    listed = ", ".join(f"{one[:40]!r} {count:,} times" for one, count in counts.most_common())
    told = next((one.partition(f" of {ties.title} ")[0] for one in ties.remarks if one.endswith(": each is a tie")), "")
    sides = [repr(one) for one in pair if not counts.keys().isdisjoint(ties.different(one))]
    column = told or f"column {' and '.join(sides)}"
    return f"unknown node{'s' * (len(counts) > 1)} {listed} in {column}"


def _line(ties: Table, row: int) -> str:
    return ties.place(row).rpartition(":")[2]


def _why_unknown(names: Sequence[str], alike: Mapping[str, str], position: Container[str]) -> str:
    """What is likely where many ends are nobody, and what to do."""
    near = [one for one in names if _letters(one) in alike]
    if 2 * len(near) > len(names):
        both = f"{near[0]!r} may be {alike[_letters(near[0])]!r}"
        return f"Are ids written otherwise there ({both})? By no rule all are somebody, and each one: write ids alike"
    made = set(map(_made, alike.values()))
    if 2 * sum(_made(one) not in made for one in names) > len(names):
        return "These are ids of another kind: is another column the id (--id NAME), or are these no people?"
    return "Are rows missing there (a page of an answer, a filter)? Bring them, or leave out the lines that name others"


def _is_split(table: Table) -> bool:
    """Whether a table says who trains and who tests."""
    if len(table.names) != 2 or table.matrix is not None:
        return False
    if table.stem in ("mask", "masks", "split", "splits"):
        return True
    cells = table.texts(table.names[1])
    return all(cell.casefold() in _PARTS for cell in cells) and len(set(cells)) > 1


def _split(masks: Iterable[Table], position: dict[str, int], found: Gathered, remarks: list[str]) -> tuple[GraphMasks, ...]:
    parts: dict[int, str] = {}
    for table in masks:
        remarks.append(f"{table.title} says who trains and who is tested, for split: public")
        for row, (one, said) in enumerate(zip(table.ids(table.names[0]), table.texts(table.names[1]), strict=True)):
            where, part = table.place(row), _PARTS.get(said.casefold())
            if one not in position:
                found.faults.note(where, f"unknown node {one!r}; allowed: the {len(position):,} ids of the nodes")
            elif part is None:
                found.faults.note(where, f"part {said!r}; allowed: train, validation, test")
            elif parts.setdefault(position[one], part) != part:
                found.faults.note(where, f"node {one!r} is in {parts[position[one]]} and in {part}; allowed: one part")
    rows = (sorted(row for row, said in parts.items() if said == part) for part in ("train", "validation", "test"))
    return (GraphMasks(*(np.array(own, dtype=np.int64) for own in rows)),) if parts else ()


# Several owners' people, or many small graphs, as one


_LABEL = "\0label"  # the one column of a table of labels, whatever it is called


@dataclass(eq=False)
class Part:
    """One owner's people, or one small graph."""

    name: str
    roles: Roles
    folder: str  # where it lies, for messages
    told: Mapping[str, str] = field(default_factory=dict)  # what its file says of the graph itself

    @property
    def size(self) -> int:
        """How many people it has."""
        return len(self.roles.ids)


def join_parts(parts: Sequence[Part], where: Path, more: np.ndarray, label: str | None = None) -> tuple[Roles, np.ndarray]:
    """(everybody, called ``part/id``; int64 [n], the number of each one's part).

    Columns are joined by name; names that differ in capitals or spaces around alone are one. What a column is, and which texts
    it has, is decided over all parts that have it; in a part whose tables have no such column it is 0.

    Args:
        parts: one or more.
        where: names all of them in a message.
        more: int64 [k, 2], further ties, such as those between parts.
        label: a column that stays whatever it holds; what is wrong with it is said where it is read as a label.
    """
    sizes = np.array([part.size for part in parts], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    ids = [f"{part.name}/{one}" for part in parts for one in part.roles.ids]
    remarks: list[str] = []
    holder = _people(parts, starts, ids, where, remarks, label or "")
    splits = {len(part.roles.masks): part.name for part in parts}
    if len(splits) > 1:
        listed = " and ".join(f"{name!r} has {count or 'no'} masks" for count, name in sorted(splits.items()))
        raise DataError(f"{where}: {listed}; allowed: all the same number, or none")
    masks = []
    for number in range(next(iter(splits))):
        own = [(part.roles.masks[number], start) for part, start in zip(parts, starts, strict=True)]
        sides = zip(*((one.train + start, one.validation + start, one.test + start) for one, start in own), strict=True)
        masks.append(GraphMasks(*(np.concatenate(side).astype(np.int64) for side in sides)))
    remarks += dict.fromkeys(remark for part in parts for remark in part.roles.remarks)
    one = np.concatenate([*(part.roles.one + start for part, start in zip(parts, starts, strict=True)), more[:, 0]])
    two = np.concatenate([*(part.roles.two + start for part, start in zip(parts, starts, strict=True)), more[:, 1]])
    ties, ends = _joined_ties(parts, where, len(more))
    told = Roles(ids, [holder], ties, ends, one, two, tuple(masks), remarks)
    return told, np.repeat(np.arange(len(parts)), sizes)


def _joined_ties(parts: Sequence[Part], where: Path, more: int) -> tuple[Table, tuple[str, str]]:
    """The tables of ties, one below the other; a tie between parts has no further cell."""
    frames = [part.roles.ties.frame.set_axis(_ends_called(part), axis=1) for part in parts]
    frames.append(pd.DataFrame("", index=range(more), columns=["source", "target"], dtype=object))
    frame = pd.concat(frames, ignore_index=True).fillna("").astype(object)
    places = [part.roles.ties.place(row) for part in parts for row in range(len(part.roles.ties.frame))]
    remarks = [remark for part in parts for remark in part.roles.ties.remarks]
    return Table(str(where), frame, places=[*places, *[str(where)] * more], remarks=remarks), ("source", "target")


def _ends_called(part: Part) -> list[str]:
    called = dict(zip(part.roles.ends, ("source", "target"), strict=True))
    return [called.get(name, name if name not in ("source", "target") else f"{name} ") for name in part.roles.ties.names]


def _people(parts: Sequence[Part], starts: np.ndarray, ids: list[str], where: Path, remarks: list[str], label: str) -> Holder:
    for part in parts:
        bare = [one.table for one in part.roles.holders if not one.table.headed and len(one.table.names) > 2]
        if bare and len(parts) > 1:
            first = ", ".join(bare[0].frame.iloc[0].tolist()[:6]) if len(bare[0].frame) else ""
            said = f"{bare[0].place(0)}: found {first}; allowed: a first line that names the columns, such as id,age"
            raise DataError(f"{said}: they are matched by name")
    columns, beside = _columns(parts, starts, len(ids), remarks, label)
    every = {column.name for column in columns}
    key = next(name for name in ("id", "node", " id") if name not in every)
    cells = {key: np.array(ids, dtype=object)} | {column.name: column.cells for column in columns}
    table = Table(str(where), pd.DataFrame(cells, dtype=object), role="nodes", id=key, places=_places(parts))
    lacking = {column.name: column.lacking for column in columns if column.lacking.any()}
    matrices = [(one, int(start)) for part, start in zip(parts, starts, strict=True) for one in part.roles.holders]
    if matrices := [one for one in matrices if one[0].table.matrix is not None]:
        table.called = tuple(dict.fromkeys(name for holder, _ in matrices for name in holder.table.called))
        table.matrix = _stacked(matrices, table.called, len(ids))
    return Holder(table, key, np.arange(len(ids)), lacking, beside)


def _stacked(matrices: Sequence[tuple[Holder, int]], called: Sequence[str], n: int) -> sp.csr_array:
    """CSR [n, columns] of matrices whose columns are matched by name; each begins at the row of its part's first person."""
    place = {name: number for number, name in enumerate(called)}
    blocks = []
    for holder, start in matrices:
        there = np.flatnonzero(holder.rows >= 0)
        entries = sp.coo_array(sp.csr_array(holder.table.matrix)[holder.rows[there]])
        at = np.array([place[name] for name in holder.table.called], dtype=np.int64)
        blocks.append((entries.data, there[entries.coords[0]] + start, at[entries.coords[1]]))
    data, rows, columns = (np.concatenate(side) for side in zip(*blocks, strict=True))
    return sp.csr_array((data, (rows, columns)), shape=(n, len(called)))


@dataclass(eq=False)
class _Column:
    """cells: [n], "" where there is none. lacking: of whom no table has it. beside: only tables of labels have it."""

    name: str
    cells: np.ndarray
    lacking: np.ndarray
    beside: bool = True


def _columns(
    parts: Sequence[Part], starts: np.ndarray, n: int, remarks: list[str], label: str
) -> tuple[list[_Column], frozenset[str]]:
    """The columns of all parts, and the names of those that stand in tables of labels alone."""
    found: dict[str, _Column] = {}
    people = {_plain(name) for part in parts for holder, name in _every(part) if not _beside(part, holder)}
    for part, start in zip(parts, starts, strict=True):
        own: dict[str, tuple[Holder, str]] = {}  # what it is compared by, and called → where it stands
        told = called_so(label, (name for _, name in _every(part)))
        every = [(holder, name) for holder, name in _every(part) if name in told or not _left_out(holder, name, remarks)]
        names = [name for _, name in every]
        for holder, name in every:
            single = _beside(part, holder) and sum(one is holder for one, _ in every) == 1
            key = _plain(name)
            if single and key not in people:
                key = "label" if "label" in people else _LABEL
            if not single and len({one for one in names if _plain(one) == key}) > 1:
                key = name  # two of this part differ in capitals alone, and stay two
            key = key if key not in own else f"{name} ({holder.table.stem})"
            own[key] = holder, name
        for key, (holder, name) in own.items():
            shown = (
                name if key in (_plain(name), name) else "label" if not holder.table.headed else name if key == _LABEL else key
            )
            column = found.setdefault(key, _Column(shown, np.full(n, "", dtype=object), np.ones(n, dtype=bool)))
            if column.name != shown and key == _plain(name):
                remarks.append(f"columns that differ in capitals alone are one: {column.name!r} and {shown!r}")
            mine = slice(int(start), int(start) + part.size)
            column.cells[mine] = np.array([*holder.table.texts(name), ""], dtype=object)[holder.rows]
            column.lacking[mine] = False
            column.beside = column.beside and _beside(part, holder)
    return list(found.values()), frozenset(column.name for column in found.values() if column.beside)


def _left_out(holder: Holder, name: str, remarks: list[str]) -> bool:
    """Whether a column says who a person of its part is, and no more; remarks: gets the reason."""
    cells = holder.table.texts(name)
    again = bool(cells) and cells == holder.table.texts(holder.id)
    reason = "it is the id again" if again else holder.table.of_ties.get(name) or says_who(name, cells, holder.table.headed)
    remarks += [f"column {name!r} of {holder.table.title} is left out: {reason}"] if reason else []
    return bool(reason)


def _plain(name: str) -> str:
    return name.casefold().strip()


def _beside(part: Part, holder: Holder) -> bool:
    return is_labels(holder.table) and len(part.roles.holders) > 1


def _every(part: Part) -> Iterator[tuple[Holder, str]]:
    """Every column but ids."""
    for holder in part.roles.holders:
        yield from ((holder, name) for name in holder.table.names if name != holder.id)


def _places(parts: Sequence[Part]) -> list[str]:
    """Where each one stands: in the first table that has a row for it."""
    found = []
    for part in parts:
        own = [part.folder] * part.size
        for holder in reversed(part.roles.holders):
            for person in np.flatnonzero(holder.rows >= 0):
                own[person] = holder.table.place(int(holder.rows[person]))
        found += own
    return found
