"""Tables of a database: columns that name rows of another table say who the people are, and which table holds their ties.

``friendships(id, user_a, user_b)`` beside ``users(id, …)``: two columns are called as what ``users`` holds, and hold its ids. A
database that declares its foreign keys says so itself; elsewhere names and cells together do. Ids that count rows (1, 2, 3, …)
are the same in every table, so that cells alone say nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from fedgraph.data.own.tables import Gathered, ReadingQuestion, Table
from fedgraph.data.own.words import SIDES, WEAK_SIDES, called_so, is_id_name, plain_name, says, sides_of
from fedgraph.errors import DataError

_NEARLY = 0.9  # share of a column's cells that are ids of another table
_BESIDE_NOUNS = frozenset(
    {"id", "ids", "fk", "ref", "key", "uuid", "guid", "no", "nr", "number", "one", "two", "first", "second"}
)
_BESIDE_NOUNS |= {"other", *(side for pair in (*SIDES, *WEAK_SIDES) for side in pair)}
_PLURALS = (("people", "person"), ("ies", "y"), ("es", ""), ("s", ""), ("en", ""), ("n", ""))
A_FOLDER_EACH = "a folder for each, with its people and their ties (a federation)"
_Named = Mapping[str, Table]  # column → the table whose rows it names


def _nouns(table: Table) -> set[str]:
    """What one row may be called: one of ``bank_accounts_20240131.csv`` is a bank account, or an account."""
    stem = re.sub(r"\.(csv|tsv|txt|parquet|json|xlsx?|feather|orc|gz)\b.*$", "", table.title.casefold()).rpartition(".")[2]
    words = re.findall(r"[^\W\d_]+", stem)
    found = {"".join(words), *words[-1:]}
    return found | {one.removesuffix(end) + new for one in found for end, new in _PLURALS if one.endswith(end) and one != new}


def own_key(table: Table) -> str | None:
    """The column that numbers or names the table's own rows: ``id``, or ``user_id`` of users, a cell of its own in each row."""
    called = {"id", "pk", "uuid", *(f"{noun}id" for noun in _nouns(table)), *(f"id{noun}" for noun in _nouns(table))}
    able = [name for name in table.names if table.headed and plain_name(name) in called]
    return next((name for name in able if 0 < len(table.different(name)) == len(table.frame)), None)


def counts_rows(table: Table, key: str) -> bool:
    """Whether the ids of a table are 1, 2, 3, … or nearly so: as those of any other table."""
    ids = table.different(key)
    return all(one.isdigit() for one in ids) and max(map(int, ids), default=0) <= 2 * len(ids) + 1


def holds_facts(table: Table) -> bool:
    """Whether a table is called as one that says more of people who stand in another."""
    return says("facts", table.stem)


def _called_as(column: str, nouns: set[str]) -> int:
    """Letters of the noun that a column is called by, beside sides and words for ids alone; 0 where it is not called so."""
    words = re.findall(r"[^\W\d_]+|\d+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).casefold())
    found = 0
    for begin, end in combinations(range(len(words) + 1), 2):
        noun, beside = "".join(words[begin:end]), {*words[:begin], *words[end:]}
        if all(one.isdigit() or one in _BESIDE_NOUNS for one in beside):
            called = [one for one in (noun, noun.removesuffix("id"), noun.removeprefix("id")) if one in nouns]
            found = max([found, *map(len, called)])
    return found


def _holds(table: Table, column: str, other: Table, key: str) -> bool:
    own = table.different(column)
    return len(own & other.different(key)) >= _NEARLY * max(1, len(own))


def _named_in(table: Table, keys: Mapping[str, str], tables: Sequence[Table]) -> dict[str, Table]:
    """Columns that name rows of a table, as the database declares, or as their names and cells say."""
    found: dict[str, Table] = {}
    for column in (name for name in table.names if name != keys.get(table.where)):
        declared = [one for one in tables if one.where == table.refers.get(column)]
        fitting = [(_called_as(column, _nouns(one)), one) for one in tables if one.where in keys]
        best = max((size for size, _ in fitting), default=0)
        fitting = [one for one in fitting if one[0] == best > 0 and _holds(table, column, one[1], keys[one[1].where])]
        if declared or len(fitting) == 1:
            found[column] = declared[0] if declared else fitting[0][1]
    return found


def related(
    tables: list[Table], ends: Sequence[str] | None, found: Gathered, chosen: Sequence[tuple[Table, str]] = ()
) -> list[Table]:
    """The tables of a database that are of the people, with what their columns are; others are put aside, and it is said why.

    Tables of which none names rows of another stay as they are. chosen: the table of people and its id, if the owner said so.

    Raises:
        ReadingQuestion: two tables hold ties, or a column may name people or other things.
        DataError: people are tied to other things alone.
    """
    able = [one for one in tables if one.headed and one.matrix is None and not (one.role or one.ends)]
    keys = {one.where: key for one in able if (key := own_key(one)) is not None}
    keys |= {one.where: key for one, key in chosen[:1] if one in able}
    named = {one.where: _named_in(one, keys, able) for one in able}
    if not any(other is not one for one in able for other in named[one.where].values()):
        return tables
    pairs = {one.where: _pairs(one, named[one.where], keys) for one in able if ends is None}
    if ends is None and not any(pairs.values()):
        pairs = {one.where: _pairs(one, named[one.where], keys, ask=True) for one in able}
    told = {one.where: [called_so(end, one.names) for end in ends or ()] for one in able}
    tied = [one for one in able if (pairs[one.where] if ends is None else all(len(own) == 1 for own in told[one.where]))]
    if ends is None and len(tied) > 1:
        _which(tied, [pairs[one.where] for one in tied])
    joins = [one for one in able if len({other.where for other in named[one.where].values()} - {one.where}) > 1]
    if len(tied) != 1:
        open_ = [one for one in able if one not in joins and len(_unnamed(one, named[one.where], keys)) > 1]
        sided = [one for one in tables if one.ends or one not in able or (one not in joins and sides_of(one.names, SIDES))]
        if joins and ends is None and not (open_ or sided or tied):
            raise DataError(_joined(joins[0], named[joins[0].where]))
        found.aside |= {one.title: "which rows of two other tables belong together: no ties between people" for one in joins}
        refers = {one.where: {name: other.title for name, other in named[one.where].items()} for one in open_}
        kept = [one for one in tables if one not in joins]
        return [replace(one, refers=refers[one.where]) if one in open_ else one for one in kept]
    ties = tied[0]
    if ends is None and len(pairs[ties.where]) > 1:
        raise which_ends(ties, pairs[ties.where])
    pair = pairs[ties.where][0] if ends is None else (told[ties.where][0][0], told[ties.where][1][0])
    people = next((named[ties.where][name] for name in pair if name in named[ties.where]), None)
    people = chosen[0][0] if chosen and chosen[0][0] in able else people
    if people is None:
        holding = [one for one in able if one.where in keys and all(_holds(ties, name, one, keys[one.where]) for name in pair)]
        if len(holding) != 1:
            return tables
        (people,) = holding
    for name, other in ((name, named[ties.where].get(name, people)) for name in pair):
        if other is not people and counts_rows(other, keys[other.where]):  # the same numbers, of others
            person = pair[pair[0] == name]
            raise DataError(no_ties_through(ties, person, name, f"{name!r} names rows of {other.title}, not of {people.title}"))
    kept = [one for one in tables if one not in able]
    for one in able:
        columns = [name for name, other in named[one.where].items() if other is people]
        if one is ties:
            kept.append(replace(one, role="edges", ends=pair) if ends is None else one)
        elif one is people:
            others = {name: other.title for name, other in named[one.where].items()}
            kept.insert(0, replace(one, role="nodes", id=keys.get(one.where), refers=others))
        elif len(columns) == 1 and len(one.different(columns[0])) == len(one.frame):
            frame = one.frame.drop(columns=[key for key in [keys.get(one.where)] if key])
            others = {name: other.title for name, other in named[one.where].items()}
            kept.append(replace(one, frame=frame, id=columns[0], refers=others))
        elif columns:
            many = "ties of another kind" if len(columns) > 1 else f"several rows for one of {people.title}"
            found.aside[one.title] = f"{many}, named by {' and '.join(map(repr, columns))}"
        elif one.where not in keys or holds_facts(one) or not counts_rows(one, keys[one.where]):
            kept.append(one)
        else:
            by = [f"{t.title} names them in {c!r}" for t in able if t is not one for c, o in named[t.where].items() if o is one]
            more = f"; {by[0]}" if by else f" (facts of {people.title} need a column that names its rows)"
            found.aside[one.title] = f"rows of other things than {people.title}, numbered by {keys[one.where]!r}{more}"
    return kept


def _unnamed(table: Table, named: _Named, keys: Mapping[str, str]) -> list[str]:
    """Columns that are called as ids, but not of which table."""
    others = [name for name in table.names if name not in named and name != keys.get(table.where)]
    return [name for name in others if is_id_name(name) or says("others", name)]


def _pairs(table: Table, named: _Named, keys: Mapping[str, str], ask: bool = False) -> list[tuple[str, str]]:
    """Pairs of columns that name rows of one other table. Asks, if it may, where one of two is called as no table is."""
    others = {one.where: one for one in named.values() if one is not table}
    for other in others.values():
        own = [name for name, one in named.items() if one is other]
        if len(own) > 1:
            return sides_of(own, SIDES)[:1] or sides_of(own, WEAK_SIDES)[:1] or list(combinations(own, 2))
        key = keys.get(other.where)
        more = [name for name in _unnamed(table, named, keys) if key and _holds(table, name, other, key)]
        if len(others) != 1 or len(more) != 1:
            continue
        if says("things", own[0]) != says("things", more[0]):
            continue  # a film, and who rated it
        if says("others", more[0]) and says("ties", table.stem):
            return [(own[0], more[0])]
        if ask and len(table.different(own[0])) < len(table.frame):
            asked = f"{table.where}: are {own[0]!r} and {more[0]!r} both rows of {other.title}? If so, say --ends {own[0]} "
            asked += f"{more[0]}; if one is what people share, write pairs of those who do"
            raise ReadingQuestion(asked, "ends", [(own[0], more[0])])
    return []


def several_ties(called: Sequence[str]) -> DataError:
    """What to do where no option tells several files of ties apart."""
    return DataError(
        f"several files hold ties: {', '.join(called)}; allowed: one file with all ties, or one (leave the others out); where "
        f"each is of a class, a school or a bank, {A_FOLDER_EACH}"
    )


def which_ends(table: Table, pairs: Sequence[tuple[str, str]]) -> ReadingQuestion:
    """Which of several pairs of columns are the ends."""
    either = " or ".join(f"{one} and {two}" for one, two in pairs[:8])
    asked = f"{table.where}: which columns are the ends of ties: {either}? Say --ends {shlex.join(pairs[0])}, or others"
    return ReadingQuestion(f"{asked}; if several are, write all pairs as source,target", "ends", pairs)


def _which(tied: Sequence[Table], pairs: Sequence[list[tuple[str, str]]]) -> None:
    called = [one.title for one in tied]
    if len({own[0] for own in pairs}) < len(pairs):
        raise several_ties(called)
    either = " or ".join(f"{name} ({', '.join(own[0])})" for name, own in zip(called, pairs, strict=True))
    asked = f"which table holds the ties: {either}? Say --ends ONE TWO, its two columns"
    raise ReadingQuestion(asked, "ends", [own[0] for own in pairs])


def _joined(table: Table, named: _Named) -> str:
    (one, first), (two, second) = list({other.where: (name, other) for name, other in named.items()}.values())[:2]
    if says_people(two, second.stem) > says_people(one, first.stem):
        one, first, two, second = two, second, one, first
    return no_ties_through(table, one, two, f"{one!r} names rows of {first.title} and {two!r} rows of {second.title}")


def says_people(*names: str) -> int:
    """By how many of the names of a column, and of its table, people are meant, less those by which things are."""
    return sum((says("writer", name) or says("someone", name)) - says("things", name) for name in names)


def no_ties_through(table: Table, one: str, two: str, said: str) -> str:
    """What to bring where people are tied to other things alone."""
    shared = f"SELECT DISTINCT a.{one} AS source, b.{one} AS target FROM {table.stem} a JOIN {table.stem} b USING ({two})"
    such = f", such as {shared} WHERE a.{one} < b.{one}" if table.headed else ""
    return f"{table.where}: {said}: no ties between people; allowed: a table of pairs of those who share one{such}"
