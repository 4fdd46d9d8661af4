"""Columns of people: numbers, yes/no facts, texts and empty cells become one matrix of columns on a like scale.

A column is found by its cells: *yes/no* (0 and 1, true and false, yes and no), *number*, or *text*. Dates (2024-12-31,
31.12.2024; 31/12/2024 where a day above 12 says which is the month) are numbers: days since 1970. So are 2,038.35, 2 038 €, and
2,5 where all commas may be decimal ones. Kinds follow from everybody's cells and are taken as public: a row on such columns
states ``columns-public``, whatever was found. The user decides the rest:

- ``bounds`` names the least and the largest value of a column. They must be known without the data, so they cost no privacy. A
  value outside is cut to the bound, and the column is brought to −1 … 1, one of nothing but 0 and 1, too: otherwise one person
  with a 2 would move the numbers of all others. Other yes/no columns are 0 or 1. Numbers without bounds become ranks before
  anybody learns from them (``methods.base.column_ranks``).
- ``text: one-hot`` gives each distinct text a column of its own (0 or 1); ``drop`` leaves such columns out.
- ``empty: missing`` gives an empty cell the middle of its column, and a further column that says that it was empty. Among
  numbers, NA, NaN, null and none are empty cells, too.

A column that was computed from edges, such as a degree or a PageRank, tells of other people's ties: a node that leaves changes
the rows of its neighbours. At node level methods then rest on the assumption ``features-from-edges``; where edges alone are
private, rows take as public all that features say of them, whatever was found. A column counts as computed where its
values, or their order, go along with the degree, the clustering coefficient, PageRank, the eigenvector centrality, or how many
lines of ties begin or end there. The user may contradict (``from_edges: false``).
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.data.base.files import DataFileFaults
from fedgraph.data.own.words import date_in, says
from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.types import GraphColumns, counted

_TRUE, _FALSE = frozenset({"1", "1.0", "true", "yes"}), frozenset({"0", "0.0", "false", "no"})
_NO_NUMBER = frozenset(
    {"na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "-", "–", ".", "?", "k.a.", "k. a.", "s/o", "unknown",
     *(f".{one}" for one in "abcdefghijklmnopqrstuvwxyz")}
)  # fmt: skip
_MOST_NUMBERS = 64  # columns of numbers that are a table; more of them, mostly zeros and never negative, count words
_MOST_CATEGORIES = 1_000  # of one text column: more are names, and no category
_DAY_ZERO = datetime.date(1970, 1, 1)
_EPOCH = _DAY_ZERO.toordinal()
_ALIKE = 0.98  # correlation, of values or of ranks, from which on a column counts as computed from edges
_CODE = 4  # digits from which on numbers that begin with 0 are codes
_MOST_PATHS = 10**8  # paths of two edges: beyond it no triangle is counted
_SOME = 0.2  # of the people: a column that is 0, or a count that is the same, for more than all others is compared with nothing
_STEPS = 100  # of the power iterations
_LARGEST = float(np.finfo(np.float32).max)
_MISSING_WORDS = frozenset({"", "-1", "-1.0", "nan", "<na>", "nat"})  # labels, as Python, NumPy and pandas write them
_DOUBTFUL_WORDS = frozenset(
    {"unknown", "none", "n/a", "n.a.", "na", "null", "missing", "?", "-", "undefined", "unlabeled", "pending", "k.a.", "k. a."}
    | {"open", "ausstehend", "offen", "unbekannt", "keine angabe"}
    | {f"not {said}" for said in ("available", "tested", "asked", "known", "answered", "stated", "applicable", "done", "yet")}
    | {f"no {said}" for said in ("answer", "data", "result", "label")}
)
_FRACTION = re.compile(r"([+-]?\d+)\.0+")  # a whole number as pandas writes it beside missing ones
_MINUS_ONE = re.compile(r"-1(\.0+)?")
_MOST_FRACTIONS = 20  # distinct labels with a fraction; more than that is a number to predict, not a class
_DAMPING = 0.85  # PageRank's usual


class EdgeColumnRules(Settings):
    """Whether some columns were computed from edges."""

    from_edges: bool | None = Field(
        None, description="whether columns were computed from edges (degree, centrality); empty: looked for in the data"
    )


class OwnColumnRules(Settings):
    """What shall be done with columns that are no plain numbers, and with which bounds numbers are scaled."""

    bounds: dict[str, Annotated[list[float], Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict, description="column → [least, largest] value, known without the data; the column becomes −1 … 1"
    )
    text: Literal["refuse", "one-hot", "drop"] = Field(
        "refuse", description="columns of texts: an error, a column per text, or left out"
    )
    empty: Literal["refuse", "missing"] = Field("refuse", description="empty cells: an error, or a further column that says so")
    drop: list[str] = Field(default_factory=list, description="columns that are left out")


class ReadRules(OwnColumnRules, EdgeColumnRules):
    """What a person says about own data. What is left open is told by the data, or asked."""

    label: str | None = Field(
        None, description="column that is predicted; '': nobody's label is known; default: found, or asked"
    )
    id: str | None = Field(
        None, description="column that names people, or row: the number of a row, from 0 (or 1, as ends are); default: found"
    )
    ends: list[str] | None = Field(None, description="the two columns of the ends of ties; default: found")
    text: Literal["auto", "refuse", "one-hot", "drop"] = Field(  # type: ignore[assignment]
        "auto", description="columns of texts: a column per text where they are few, an error, a column per text, or left out"
    )
    empty: Literal["auto", "refuse", "missing"] = Field(  # type: ignore[assignment]
        "auto", description="empty cells: a further column that says so, or an error"
    )
    owner: str = Field("", description="column of ties that names who owns the record, for entity level (empty: nobody)")
    kind: str = Field("", description="column of ties that names their kind (empty: all ties are alike)")
    kinds: list[str] = Field([], description="kinds of ties that are kept (empty: all of them, and kinds are dropped)")


@dataclass(frozen=True, eq=False)
class OwnColumns:
    """A table of texts, as numbers.

    Attributes:
        matrix: CSR float64 [n, d].
        from_rows: which columns there are, or of which kind, was computed from the rows. False only where all have bounds.
        bounded: names of columns that have bounds, and lie within −1 … 1.
        remarks: whole sentences for the provenance.
        table: a line per column that was read: its name, its kind, what it holds, and what becomes of it.
        spans: column of numbers → (whether they are dates, the least, the largest of its cells).
    """

    matrix: sp.csr_array
    names: tuple[str, ...]
    from_rows: bool
    bounded: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    table: tuple[tuple[str, str, str, str], ...] = ()
    spans: Mapping[str, tuple[bool, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Column:
    """kind: of its cells that are not empty. values: float64 [n], NaN where empty or text. how: the numbers were written."""

    name: str
    kind: Literal["yes/no", "number", "text"]
    cells: Sequence[str]
    values: np.ndarray
    empty: np.ndarray
    how: str = ""


def read_own_columns(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    rules: OwnColumnRules,
    file: str,
    places: Callable[[int], str],
    nodes: Sequence[str],
    faults: DataFileFaults | None = None,
) -> OwnColumns:
    """The matrix of a table of texts.

    Args:
        rows: one list of cells per node, without its id.
        file: names the table in an error.
        places: where a row stands, as ``file:line``.
        faults: what was found wrong with the table before; it is refused together with the faults of its cells.

    Returns:
        The matrix, and what was found out about the columns.

    Raises:
        DataError: one message that lists every fault of the table (the first ones in full).
    """
    for key in (*rules.bounds, *rules.drop):
        if key not in names:
            raise DataError(f"{file}: there is no column {key!r}; allowed: {', '.join(names)}")
    kept = [place for place, name in enumerate(names) if name not in rules.drop]
    columns = [_column(names[place], [row[place] for row in rows], names[place] in rules.bounds) for place in kept]
    wrong = []
    for place, column in zip(kept, columns, strict=True):
        called = _column_called(column.name)
        wrong += [(row, place, f"{called} {sentence}") for row, sentence in _faults(column, rules, nodes)]
    faults = DataFileFaults() if faults is None else faults
    for row, _, sentence in sorted(wrong):
        faults.note(places(row), sentence)
    faults.refuse()
    parts = [_encoded(column, rules, file) for column in columns]
    matrix = sp.csr_array(sp.hstack([sp.csr_array(values) for values, _ in parts])) if parts else sp.csr_array((len(rows), 0))
    texts = [column.name for column in columns if column.kind == "text"]
    left_out = [*rules.drop, *(texts if rules.text == "drop" else [])]
    remarks = [f"columns left out: {', '.join(left_out)}"] if left_out else []
    if texts and rules.text == "one-hot":
        remarks.append(f"a column for each text of {', '.join(texts)}")
    if filled := [column.name for column in columns if column.empty.any()]:
        remarks.append(f"empty cells of {', '.join(filled)} have a column of their own")
    bounded = tuple(c.name for c in columns if c.kind != "text" and c.name in rules.bounds)
    every = tuple(name for _, own in parts for name in own)
    from_rows = rules.empty != "refuse" or bool(texts) or not set(every) <= set(bounded)
    told = tuple(_told(column, rules) for column in columns)
    spans = {
        column.name: (column.how == "date", float(np.nanmin(there)), float(np.nanmax(there)))
        for column in columns
        if column.kind != "text" and not np.isnan(there := np.where(column.empty, np.nan, column.values)).all()
    }
    return OwnColumns(sp.csr_array(matrix, dtype=np.float64), every, from_rows, bounded, tuple(remarks), told, spans)


def _told(column: _Column, rules: OwnColumnRules) -> tuple[str, str, str, str]:
    there = column.values[~np.isnan(column.values) & ~column.empty]
    gaps = int(column.empty.sum())
    also = f", {gaps:,} empty (a column says so)" if gaps else ""
    if column.kind == "text":
        texts = sorted(set(column.cells))
        shown = ", ".join(text or "(empty)" for text in texts[:4]) + (", …" if len(texts) > 4 else "")
        return (
            column.name,
            "text",
            f"{len(texts)} texts: {shown}",
            "left out" if rules.text == "drop" else "a column for each text",
        )
    if column.kind == "yes/no":
        return column.name, "yes/no", f"yes {int(there.sum()):,}, no {int(there.size - there.sum()):,}{also}", "0 or 1"
    if not there.size:
        return column.name, "number", f"nothing{also}", "kept"
    write = day_text if column.how == "date" else "{:.10g}".format
    kind = column.how if column.how == "date" else "number"
    held = f"{write(there.min())} … {write(there.max())}{also}"
    if column.name in rules.bounds:
        least, largest = rules.bounds[column.name]
        return column.name, kind, held, f"cut to {write(least)} … {write(largest)}, brought to −1 … 1"
    return column.name, kind, held, "its rank among the people, −1 … 1 (give bounds if they are known)"


def _column(name: str, cells: list[str], bounded: bool = False) -> _Column:
    """bounded: whether its owner gave bounds, and said so, whatever the cells are, that it is a number."""
    lowered = {cell: cell.casefold() for cell in set(cells)}
    empty = np.array([not cell for cell in cells], dtype=bool)
    there = {*lowered.values()} - {""}
    if there <= _TRUE | _FALSE and there:
        read = {cell: float(low in _TRUE) for cell, low in lowered.items()}
        return _Column(name, "yes/no", cells, np.array([read[cell] for cell in cells]), empty)
    if not bounded and _is_code(lowered.keys() - {""}):
        return _Column(name, "text", cells, np.full(len(cells), np.nan), empty)
    read = {cell: csv_number(cell) for cell in lowered}
    values, how = np.array([read[cell] for cell in cells]), ""
    for other, called in _WRITTEN if np.isnan(values[~empty]).any() else ():
        written_as = dict(zip(lowered, other(list(lowered)), strict=True))
        written = np.array([written_as[cell] for cell in cells])
        if np.isnan(written).sum() < np.isnan(values).sum():
            values, how = written, called
    texts = int((np.isnan(values) & ~empty).sum())
    mostly = texts > 0.5 * max(1, len(cells) - int(empty.sum()))
    if texts and not mostly:  # among numbers these words are what other programs write for nothing
        empty = empty | np.array([lowered[cell] in _NO_NUMBER for cell in cells])
    return _Column(name, "text" if mostly else "number", cells, values, empty, "" if mostly else how)


def _is_code(cells: Set[str]) -> bool:
    """Whether digits are names, such as postcodes: all cells are equally long, and some begin with 0."""
    widths = set(map(len, cells))
    return len(widths) == 1 and max(widths) >= _CODE and "".join(cells).isdecimal() and any(cell[0] == "0" for cell in cells)


def _faults(column: _Column, rules: OwnColumnRules, nodes: Sequence[str]) -> list[tuple[int, str]]:
    """(row, the rest of a sentence) of each cell that the rules do not allow; of those that one word would allow, the first."""
    wrong = column.empty if rules.empty == "refuse" else np.zeros(column.empty.shape, dtype=bool)
    if column.kind == "number" or (column.kind == "text" and rules.text == "refuse"):
        wrong = wrong | (np.isnan(column.values) & ~column.empty)
    kind = "dates" if column.how == "date" else "finite numbers"
    other = "or text: one-hot" if column.kind == "text" else f"an empty cell, or drop: [{column.name}]"
    remedy = {True: f"{kind}, or empty: missing", False: f"{kind}, {other}"}
    choice = wrong & (column.empty | (column.kind == "text"))  # what one word allows is said once for the column
    told = wrong & ~choice
    alike = {emptiness: np.flatnonzero(choice & (column.empty == emptiness)) for emptiness in (True, False)}
    for rows in alike.values():
        told[rows[:1]] = True
    found = []
    for row in np.flatnonzero(told).tolist():
        cell = column.cells[row]
        shown = repr(cell) if cell else "an empty cell"
        what = f"of node {nodes[row]!r} is {shown}"
        further = len(alike[bool(column.empty[row])]) - 1
        also = f" (and {further:,} further cells of this column)" if choice[row] and further else ""
        found.append((row, f"{what}; allowed: {remedy[bool(column.empty[row])]}{also}"))
    return found


def _column_called(name: str) -> str:
    """A column in a sentence; one without a name of its own is called by its place already."""
    return name if re.fullmatch(r"column \d+", name) else f"column {name!r}"


def _encoded(column: _Column, rules: OwnColumnRules, file: str) -> tuple[np.ndarray, list[str]]:
    if column.kind == "text":
        if rules.text == "drop":
            return np.zeros((len(column.cells), 0)), []
        categories, place = np.unique(np.array(column.cells, dtype=object), return_inverse=True)
        if len(categories) > _MOST_CATEGORIES:
            raise DataError(
                f"{file}: column {column.name!r} has {len(categories):,} different texts; allowed: {_MOST_CATEGORIES:,} "
                f"categories. Names and free text say who somebody is: leave the column out (drop: [{column.name}])"
            )
        return np.eye(len(categories))[place], [f"{column.name} is {text or 'missing'}" for text in categories]
    values, name = column.values.copy(), column.name
    if name in rules.bounds:
        values = scaled_to_bounds(values, rules.bounds[name], f"{file}: column {name!r}")
    if not column.empty.any():
        return values[:, None], [name]
    values[column.empty] = 0.0  # the middle of the bounds; without bounds no other number is known without the data
    return np.column_stack([values, column.empty.astype(float)]), [name, _missing_column_name(name)]


def scaled_to_bounds(values: np.ndarray, bounds: Sequence[float], where: str) -> np.ndarray:
    """Values cut to their bounds and brought to −1 … 1; float64 [n], NaN stays NaN. ``DataError`` where bounds hold nothing."""
    least, largest = map(float, bounds)
    if not least < largest:
        raise DataError(f"{where}: bounds {least:g} … {largest:g} hold nothing; allowed: the least value, then the largest")
    cut: np.ndarray = np.clip(values, least, largest)
    return (2.0 * cut - least - largest) / (largest - least)


def _days(cells: Sequence[str]) -> np.ndarray:
    """Days since 1970 of dates that begin as 2024-12-31, or are written 31.12.2024; NaN where there is none."""
    return np.array([day_in(cell) for cell in cells])


def day_text(day: float) -> str:
    """A number of days since 1970 as 2024-12-31; as it is where no calendar has that day."""
    try:
        return (_DAY_ZERO + datetime.timedelta(days=float(day))).isoformat()
    except OverflowError:
        return f"{day:g}"


def day_in(cell: str) -> float:
    """Days since 1970 of 2024-12-31, 31.12.2024 or 31-Dec-2024, whatever hour follows; NaN of anything else."""
    try:
        if cell[4:5] == "-":
            return float(datetime.date.fromisoformat(cell[:10]).toordinal() - _EPOCH)
        parts, either = date_in(cell)
        return math.nan if either or not parts else float(datetime.date(*parts).toordinal() - _EPOCH)
    except ValueError:
        return math.nan


def _slashed_days(cells: Sequence[str]) -> np.ndarray:
    """Days since 1970 of 31/12/2024 or 12/31/2024, where some cell tells days from months."""
    found = [parts if either else [] for parts, either in map(date_in, cells)]
    second, first = (max((parts[side] for parts in found if parts), default=0) for side in (1, 2))
    if (first > 12) == (second > 12):
        return np.full(len(cells), math.nan)
    month, day = (1, 2) if first > 12 else (2, 1)
    return np.array([day_in(f"{one[0]}-{one[month]:02}-{one[day]:02}") if one else math.nan for one in found])


def bare_number(cell: str) -> tuple[str, str]:
    """(a number without gaps between thousands, a sign of money or shares, and with its minus in front; that sign).

    Any other cell is as it is. 65- and (12) may be other things than numbers below 0.
    """
    found = _DRESSED.fullmatch(cell.replace("\u2212", "-"))
    if found is None:
        return cell, ""
    number, signs = re.sub(_GAP, "", found["number"]), [one for one in (found["before"], found["after"]) if one]
    minus = [one for one in (found["open"], found["minus"], found["inner"], found["behind"]) if one]
    sure = bool(signs) or number != found["number"] or not number.isdigit() or (len(number) > 2 and not found["behind"])
    odd = (found["open"] or found["behind"]) and not sure
    if odd or len(signs) > 1 or len(minus) > 1 or bool(found["open"]) != bool(found["close"]):
        return cell, ""
    return "-" * bool(minus) + number, "".join(signs)


def _dressed(cells: Sequence[str]) -> np.ndarray:
    """Numbers written 2,038.35, or 2 038,35 €, or with a minus behind; a comma is what some cell, or money, tells."""
    read = [bare_number(cell) for cell in cells]
    signs = {sign for (_, sign), cell in zip(read, cells, strict=True) if cell and cell.casefold() not in _NO_NUMBER}
    there = [cell for cell in cells if cell]
    behind = all(cell[0] == "(" or cell[-1] == "-" for cell in there)  # of all cells it is no minus
    if len(signs) > 1 or behind or all(re.fullmatch(r"\d{1,3}([\s.]\d{3}){2,}", cell) for cell in there):  # telephones, or ids
        return np.full(len(cells), math.nan)
    numbers = [number for number, _ in read]
    money = bool(signs - {"", "%", "‰"})
    marked = [one for one in numbers if "," in one or one.count(".") > 1 or (money and _EITHER.fullmatch(one))]
    sure = [one for one in marked if not _EITHER.fullmatch(one)]
    marks = {mark for one in marked for mark in one if mark in ".,"} if money and not sure else set()
    if any(map(_GERMAN.fullmatch, sure)) or marks == {"."}:
        numbers = [one.replace(".", "").replace(",", ".") if _GERMAN.fullmatch(one) else "" for one in numbers]
    elif any(map(_ENGLISH.fullmatch, sure)) or marks == {","}:
        numbers = [one.replace(",", "") if _ENGLISH.fullmatch(one) else one for one in numbers]
    elif marked:
        return np.full(len(cells), math.nan)
    return np.array([csv_number(one) for one in numbers])


_GAP = "[ \u00a0\u2009\u202f'\u2019]"
_MONEY = (
    r"[A-Z]{0,3}[$€£¥₹₽₺₴]|EUR|USD|GBP|CHF|JPY|CNY|INR|BRL|CAD|AUD|NZD|MXN|ZAR|TRY|RUB|UAH|PLN|CZK|HUF|RON|BGN|SEK|NOK|DKK|ISK|"
    r"zł|Kč|kr\.?|Ft|lei|Fr\.?"
)
_DRESSED = re.compile(
    rf"(?P<open>\()?(?P<minus>-)?\s?(?P<before>{_MONEY})?\s?(?P<inner>-)?"
    rf"(?P<number>\d{{1,3}}(?:(?P<gap>{_GAP})\d{{3}}(?:(?P=gap)\d{{3}})*)(?:[.,]\d+)?|\d[\d.,]*)"
    rf"(?P<behind>-)?\s?(?P<after>{_MONEY}|[%‰])?(?P<close>\))?"
)
_EITHER = re.compile(r"-?\d{1,3}[.,]\d{3}")  # thousands, or a fraction
_GERMAN = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")
_ENGLISH = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")
_WRITTEN = ((_days, "date"), (_slashed_days, "date"), (_dressed, ""))  # other ways to write numbers


def own_column_scales(matrix: sp.csr_array, names: Sequence[str], bounded: Sequence[str] = ()) -> GraphColumns | None:
    """Which columns [n, d] hold other numbers than 0 and 1, and so lie on a scale of their own; None where none does.

    bounded: names of those that were brought to −1 … 1 already. A bag of words is left as it is: more than ``_MOST_NUMBERS``
    columns of numbers, of which none is negative and half of the entries or more are zero.
    """
    other = np.unique(matrix.indices[(matrix.data != 0) & (matrix.data != 1)])
    known = set(bounded)
    inside = np.array([place for place, name in enumerate(names) if name in known], dtype=np.int64)
    places = np.setdiff1d(other, inside).astype(np.int64)
    entries = matrix[:, places]
    if places.size > _MOST_NUMBERS and entries.min() >= 0 and 2 * entries.nnz <= matrix.shape[0] * places.size:
        places = places[:0]
    if not (places.size or inside.size):
        return None
    flags = {name: place for place, name in enumerate(names)}
    empty = np.array([flags.get(_missing_column_name(names[place]), -1) for place in places], dtype=np.int64)
    return GraphColumns(places, empty, tuple(names[place] for place in places), inside)


def _missing_column_name(name: str) -> str:
    return f"{name} is missing"


def kind_of(cells: Sequence[str]) -> Literal["yes/no", "number", "date", "text"]:
    """What kind a column is."""
    column = _column("", list(cells))
    return "date" if column.how == "date" else column.kind


def numbers_in(cells: Sequence[str]) -> np.ndarray:
    """The numbers of a column, float64 [n], however they are written; NaN where there is none, and throughout one of texts."""
    column = _column("", list(cells))
    return np.where(column.empty | (column.kind == "text"), np.nan, column.values)


def notice_edge_columns(
    rules: EdgeColumnRules,
    features: sp.csr_array,
    adjacency: sp.csr_array,
    names: Sequence[str],
    listed: Iterable[tuple[str, np.ndarray, np.ndarray]] = (),
) -> tuple[bool, tuple[str, ...]]:
    """(whether features were computed from edges, remarks for the provenance).

    listed: what lines of ties are called, and the people at their two ends, int64 [m] each, with lines that stand there twice.
    """
    if rules.from_edges is False:
        return False, ()
    counts = (told for what, one, two in listed for told in _counts_of_lines(what, one, two, adjacency.shape[0]))
    same = _columns_like_edges(features, adjacency, names, counts)
    if not same:
        return bool(rules.from_edges), ()
    found = ", ".join(f"{name} ({what})" for name, what in same.items())
    said = f"columns that go along with the edges: {found}, taken as computed from them (else: from_edges: false)"
    return True, (said,)


def _counts_of_lines(what: str, one: np.ndarray, two: np.ndarray, n: int) -> Iterator[tuple[str, np.ndarray]]:
    """How often each of n people stands at the first end of a line, at the second, and at either: float64 [n] each.

    Counts that most people share go along with whatever has a few large values, and are left out.
    """
    begun, ended = (np.bincount(side, minlength=n).astype(float) for side in (one, two))
    for where, counts in (("that begin there", begun), ("that end there", ended), ("in all", begun + ended)):
        if np.unique(counts, return_counts=True)[1].max(initial=0) <= (1 - _SOME) * n:
            yield f"{what} {where}", counts


def _columns_like_edges(
    features: sp.csr_array, adjacency: sp.csr_array, names: Sequence[str], counts: Iterable[tuple[str, np.ndarray]] = ()
) -> dict[str, str]:
    """Column → what of the edges it goes along with. features: CSR [n, d]. names: of d columns. counts: further measures."""
    degrees = np.diff(adjacency.indptr).astype(float)
    by_column = sp.csc_array(features)
    filled = np.diff(by_column.indptr)
    able = np.flatnonzero(filled >= _SOME * max(1, int((degrees > 1).sum())))  # a centrality of nearly all nodes is not zero
    dense = {int(place): by_column[:, [place]].toarray().ravel() for place in able}
    dense = {place: values for place, values in dense.items() if np.unique(values).size > 2}
    measures = (
        [(what, _ranked(values)) for what, values in (*_measures(adjacency, degrees), *counts) if np.ptp(values) > 0]
        if dense
        else []
    )
    inside = {name.rpartition(".")[0] for name in names}  # as all are, of records
    front = f"{inside.pop()}." if len(inside) == 1 else ""
    drawn = [names[place] for place in dense if names[place].removeprefix(front).casefold() in ("x", "y")]  # by a program
    found = dict.fromkeys(drawn, "a place in a drawing") if len(drawn) == 2 else {}
    measured = [name for name in names if says("measure", name)]
    short = [name for name in names if says("perhaps a measure", name)]
    measured += short if len(short) + len(measured) > 1 else []
    found |= dict.fromkeys(measured, "called as what a program computes of ties")
    grouped = [name for name in names if says("groups", name)]
    grouped += [names[place] for place in dense if names[place].casefold() == "membership"]  # of igraph: more numbers than two
    found |= dict.fromkeys(grouped, "groups that a program makes of ties")
    for place, column in ((place, _ranked(values)) for place, values in dense.items()):
        likeness, what = max(
            ((round(_likeness(column, values), 6), what) for what, values in measures),
            default=(0.0, ""),
            key=lambda one: one[0],
        )  # of equals the first
        found |= {names[place]: what} if likeness >= _ALIKE else {}
    return found


def alike(column: np.ndarray, values: np.ndarray) -> bool:
    """Whether two columns [n], or their orders, go along with one another."""
    return np.ptp(values) > 0 and np.ptp(column) > 0 and _likeness(_ranked(column), _ranked(values)) >= _ALIKE


def _ranked(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(values, their ranks)."""
    from scipy.stats import rankdata  # not before it is used: every run lists all data sets

    return values, rankdata(values)


def _likeness(column: tuple[np.ndarray, np.ndarray], values: tuple[np.ndarray, np.ndarray]) -> float:
    return max(abs(float(np.corrcoef(one, other)[0, 1])) for one, other in zip(column, values, strict=True))


def _measures(adjacency: sp.csr_array, degrees: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "degree", degrees
    if float((degrees**2).sum()) <= _MOST_PATHS:
        yield "clustering coefficient", 2 * _triangles(adjacency) / np.maximum(degrees * (degrees - 1), 1)
    share = sp.diags_array(1 / np.maximum(degrees, 1)) @ adjacency
    ranks = np.full(degrees.size, 1 / degrees.size)
    vector = np.full(degrees.size, 1.0)
    for _ in range(_STEPS):
        ranks = (1 - _DAMPING) / degrees.size + _DAMPING * (share.T @ ranks + ranks[degrees == 0].sum() / degrees.size)
        vector = adjacency @ vector + vector
        vector /= np.linalg.norm(vector)
    yield "PageRank", ranks
    yield "eigenvector centrality", vector


def _triangles(adjacency: sp.csr_array) -> np.ndarray:
    """Of how many triangles each node is part, float64 [n]: each is found once, along ties that lead to higher degrees."""
    degrees = np.diff(adjacency.indptr)
    rank = np.empty(degrees.size, dtype=np.int64)
    rank[np.argsort(degrees, kind="stable")] = np.arange(degrees.size)
    one, two = sp.coo_array(adjacency).coords
    up = rank[one] < rank[two]
    ahead = sp.csr_array((np.ones(int(up.sum())), (one[up], two[up])), shape=adjacency.shape)
    over, under = (ahead @ ahead).multiply(ahead), (ahead @ ahead.T).multiply(ahead)
    return np.asarray(over.sum(axis=0) + over.sum(axis=1) + under.sum(axis=0)).ravel()


def csv_number(cell: str) -> float:
    """The finite number in a cell, NaN where there is none, or one that float32 cannot hold."""
    if "_" in cell:  # Python reads 1_0 as 10; nobody else does
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) and abs(value) <= _LARGEST else math.nan


# Labels


@dataclass(frozen=True, eq=False)
class OwnLabels:
    """Labels, as classes."""

    numbers: np.ndarray  # int64 [n], −1 where the label is missing
    classes: tuple[str, ...]  # the names, in the order of their numbers
    remarks: tuple[str, ...]  # whole sentences about what counted as missing, and what looks as if it should


def read_own_labels(values: Iterable[str | None], where: str, what: str = "person") -> OwnLabels:
    """The class of each node, or of each graph.

    Missing is None, −1, and the texts of ``_MISSING_WORDS`` (capitals do not matter); where 1 and −1 are all there is, −1 is a
    class. Texts that differ in capitals or spaces alone are one class, called as most write it. Classes are in the order of
    their values where they are whole numbers, and then in the order of their texts.

    Args:
        values: one label each.
        where: names the labels in an error.

    Returns:
        The numbers, the names and the remarks.

    Raises:
        DataError: no label is known, or the labels are numbers to predict and no classes.
    """
    given = [(value or "").strip() for value in values]
    read = {value: own_label_text(value) for value in set(given)}
    texts = [read[value] for value in given]
    signed = {text for text in texts if text is not None} == {"1"} and any(map(_MINUS_ONE.fullmatch, given))
    if signed:
        texts = ["-1" if _MINUS_ONE.fullmatch(value) else text for text, value in zip(texts, given, strict=True)]
    spellings: dict[str, Counter[str]] = {}
    for text, count in Counter(texts).items():
        if text is not None:
            spellings.setdefault(" ".join(text.casefold().split()), Counter())[text] += count
    usual = {text: min(own, key=lambda one: (-own[one], one)) for own in spellings.values() for text in own}
    texts = [None if text is None else usual[text] for text in texts]
    known = sorted({text for text in texts if text is not None}, key=_by_value)
    if not known:
        raise DataError(f"{where}: no {what} has a label; allowed: at least one labelled {what}")
    fractions = sum(math.isfinite(n) and not n.is_integer() for n in map(csv_number, known))
    if fractions > _MOST_FRACTIONS:
        raise DataError(
            f"{where}: {len(known):,} different labels, {fractions:,} of them numbers with a fraction, such as {known[-1]}; "
            "allowed: classes. To predict a number is not supported: cut it into classes, for example low, middle and high"
        )
    position = {text: number for number, text in enumerate(known)}
    numbers = np.array([-1 if text is None else position[text] for text in texts], dtype=np.int64)
    remarks = ["the labels are −1 and 1: −1 is a class here, and not a missing label"] if signed else []
    if several := [own for own in spellings.values() if len(own) > 1]:
        listed = "; ".join(" and ".join(map(repr, sorted(own))) for own in several[:3])
        remarks.append(f"spellings that differ in capitals or spaces alone are one class: {listed}")
    if missing := int((numbers < 0).sum()):
        remarks.append(f"{missing:,} of {counted(numbers.size, what)} have no label (None, NaN, −1, empty)")
    for text in (text for text in known if text.casefold().strip() in _DOUBTFUL_WORDS):
        some = int((numbers == position[text]).sum())
        some_of = f"the label {text!r} of {counted(some, what)}"
        remarks.append(f"{some_of} counts as a class: if it means that nobody knows, leave it empty")
    return OwnLabels(numbers, tuple(known), tuple(remarks))


def own_label_text(cell: str) -> str | None:
    """The label in a cell, None where it is missing. Whole numbers lose their ``.0``: pandas adds it beside missing ones."""
    text = _FRACTION.sub(r"\1", cell) if _FRACTION.fullmatch(cell) else cell
    return None if text.casefold() in _MISSING_WORDS else text


def _by_value(label: str) -> tuple[int, int, str]:
    digits = label.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return (0, int(label), "") if whole else (1, 0, label)
