"""Whatever a person hands over becomes tables of texts: files, folders, archives, pandas, NetworkX, PyG, arrays.

pandas, pyarrow, networkx, scipy, torch and Python's ``csv``, ``json`` and ``sqlite3`` read; XML is looked at by defusedxml
first, and nothing is ever unpickled. A file is told by its content, and by its name where the content leaves it open. Who is
who in the tables is not decided here (``roles``).
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import math
import re
import sqlite3
import tarfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fedgraph.data.base import npz, splits
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.data.own import lakes, replies
from fedgraph.data.own import words as own_words
from fedgraph.data.own.columns import bare_number, csv_number
from fedgraph.data.own.words import ID_NAMES, NOTHING, SIDES, WEAK_SIDES, id_text, is_id_name, plain_name, says, sides_of
from fedgraph.errors import DataError
from fedgraph.types import GraphMasks, counted

if TYPE_CHECKING:
    from types import ModuleType
    from xml.etree.ElementTree import Element

    import networkx as nx

_Facts = dict[str, Any]  # of one node, or of one tie
_SEPARATORS = "\t;|,"
_SAMPLE = 300  # lines that a separator and a header are told from
_MOST_ABOVE = _MOST_BELOW = 10  # lines of words above a table, and below it
_MOST_HEADS = 2  # rows below a header that say what columns hold
_MOST_UNPACKED = 8 * 1024**3
_LARGEST_WHOLE = 2**53  # larger whole numbers are not held by a float
_ASIDE = frozenset(
    {".md", ".rst", ".yaml", ".yml", ".py", ".r", ".ipynb", ".html", ".pdf", ".png", ".jpg", ".svg", ".toml", ".log", ".sh",
     ".bib", ".cff", ".md5", ".sha1", ".sha256", ".sig", ".asc", ".doc", ".docx", ".db"}
)  # fmt: skip
_NO_DATA = re.compile(
    r"readme|meta\.|licen[cs]e|copying|notice|changelog|checksums?|(md5|sha\d+)sums?|thumbs|desktop\.ini|datapackage\.json"
)
_TABLES = frozenset({".csv", ".tsv", ".parquet", ".xlsx", ".jsonl", ".ndjson"})
_NOTES = frozenset({"", ".txt", ".text", ".json", ".xml", ".info", ".dat"})  # of other files no fault is passed over
_LARGE = 1_000_000  # characters of a text from which on it is read at once, where all its lines are alike
_FEW_LINES = 40  # of a text beside tables that may be notes
_FIT = 0.8  # share of lines of one width from which on a text is a damaged table, and no notes
_NAMES = "feature_names.txt"  # what the columns of a file of arrays are called, one a line
_TYPED = re.compile(r"^(?P<name>[^:]*):(?P<kind>[A-Za-z_]+)(\[\])?(\((?P<space>[^)]*)\))?(\{.*\})?$")
_KINDS = frozenset(
    {"id", "start_id", "end_id", "label", "type", "int", "integer", "long", "float", "double", "boolean", "bool", "byte",
     "short", "char", "string", "date", "datetime", "ignore"}
)  # fmt: skip
_FOREIGN = re.compile(rb"[\x80-\xff]{4}|[\x81\x8d\x8f\x90\x9d]")  # letters of other scripts, or bytes that are no Latin letter
_FOREIGN_SIGN = re.compile(r"\w*[a-zß-ÿ][£¥¯³¹¼¾¿][a-zß-ÿ]\w*")  # a letter of Central Europe (cp1250) read as Latin
_DRAWN = re.compile(r"[\s|+:=*-]*(--|==)[\s|+:=*-]*|\(?\d+ rows?\)?( in set.*)?")  # around a table by a database's client
_NO_CELL = re.compile(  # nothing, as databases write it, and what spreadsheets could not compute
    r"(?<![^\t,;|\n])(\\N|#N/[AD]!?|#NV|#DIV/0!|#[¡¿]?(REF|VALUE|NAME|NUM|NULL|BEZUG|WERT|ZAHL|VALOR|NOMBRE|VALEUR|NOM)[!?])"
    r"(?![^\t,;|\r\n])"
)
_NUMBERED = re.compile(r'"?#"?\s*[,;|\t]')  # a header whose first column numbers the rows
TOTAL = re.compile(
    r"(grand[ -]?|sub-?|sous-)?tota(al|l[es]?)|(gesamt|zwischen|teil|end)?sum(me)?|[Σ∑]|gesamt|insgesamt|somme|suma",
    re.IGNORECASE,
)


class ReadingQuestion(DataError):
    """Two readings of somebody's data are left, and their owner has to choose.

    Attributes:
        option: what answers it: ``label``, ``id`` or ``ends``.
        choices: the answers; of ends two names each.
        likely: the answer that is offered; "" where several are equally good.
        understood: people and ties, in lines, where it is known who they are.
    """

    def __init__(self, said: str, option: str, choices: Sequence[str | tuple[str, str]], likely: str = "") -> None:
        super().__init__(said)
        self.option, self.choices, self.likely, self.understood = option, tuple(choices), likely, ""

    def __reduce__(self) -> tuple[object, ...]:
        """As it travels between processes."""
        return type(self), (str(self), self.option, self.choices, self.likely), {"understood": self.understood}


@dataclass(eq=False)
class Table:
    """A table of texts that remembers where each row stands.

    Attributes:
        where: the file, or what it is called in a message.
        frame: texts without spaces around; "" is an empty cell. Every column has a name of its own.
        lines: int64 [rows], the line of each row in the file; empty for what is in memory, whose rows are numbered.
        headed: whether the columns have names of their own; else they are called by their place, ``column 1``.
        role: what the format says it is: ``nodes``, ``edges``, or "".
        id: the column that the format says is the id.
        ends: the two columns that the format says are the ends of ties.
        implied: a column that stands in no file: the number of a row, or a table's index.
        matrix: CSR [rows, d], further columns that are numbers already.
        called: what its d columns are called.
        remarks: what was odd, in whole sentences.
        lost: the cells of wrong rows, which are not in the frame: nobody who is named there is unknown.
        places: where each row stands, of rows from several files; else they stand in ``where``.
        graph: which of several graphs of a file it is of.
        told: what a file says of that graph itself, such as its label.
        label: the column that the format says is the label.
        masks: splits that the format brings, by rows; they are checked once it is known who the people are.
        unused: what the file holds beside, and no method reads.
        ordered: whether the format numbers people, so that a list with a line for each is in their order.
        numbered: whether people have no other names than these numbers.
        paged: whether it is one page of what a service answers.
        refers: column → the table whose rows it names: where the database declares it; later, its title.
        of_ties: column → why it tells ties, of a table of people one of whose columns was read as them.
        undrawn: columns that were left out because they say where and how a program draws people.
    """

    where: str
    frame: pd.DataFrame
    lines: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    headed: bool = True
    role: str = ""
    id: str | None = None
    ends: tuple[str, str] | None = None
    implied: str | None = None
    matrix: sp.csr_array | None = None
    called: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    places: Sequence[str] = ()
    graph: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None
    masks: tuple[GraphMasks, ...] = ()
    unused: tuple[str, ...] = ()
    ordered: bool = False
    numbered: bool = False
    paged: bool = False
    refers: Mapping[str, str] = field(default_factory=dict)
    of_ties: Mapping[str, str] = field(default_factory=dict)
    undrawn: tuple[str, ...] = ()
    keys: dict[tuple[str, ...], dict[str, frozenset[str]]] = field(
        default_factory=dict, init=False, repr=False
    )  # found by ``roles``
    _names: tuple[pd.DataFrame | None, list[str]] = field(default=(None, []), init=False, repr=False)
    _ids: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False)
    _coded: dict[str, tuple[np.ndarray, list[str]]] = field(default_factory=dict, init=False, repr=False)
    _different: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False)

    @property
    def stem(self) -> str:
        """The file's name without its folder and ending, in small letters."""
        return Path(self.where).name.split(".")[0].casefold()

    @property
    def title(self) -> str:
        """The file's name without its folder."""
        return Path(self.where).name

    @property
    def names(self) -> list[str]:
        """Of its columns of texts."""
        if self._names[0] is not self.frame:
            self._names = self.frame, list(map(str, self.frame.columns))
        return [*self._names[1]]

    def some(self, rows: np.ndarray) -> Table:
        """Some of its rows, by their numbers or by a mask [rows], each with its place. It has no matrix."""
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        lines, places = self.lines[at] if self.lines.size else self.lines, [self.places[int(row)] for row in at if self.places]
        return replace(self, frame=self.frame.iloc[at].reset_index(drop=True), lines=lines, places=places)

    def place(self, row: int) -> str:
        """Where a row stands, as ``file:line``."""
        if self.places:
            return self.places[row]
        return f"{self.where}:{self.lines[row] if self.lines.size else row + 1}"

    def texts(self, column: str) -> list[str]:
        """The cells of a column."""
        return self.frame[column].tolist()

    def ids(self, column: str) -> list[str]:
        """The cells of a column as ids: ``1``, ``1.0`` and ``" 1"`` are one."""
        if column not in self._ids:
            codes, ids = self.coded(column)
            self._ids[column] = np.array(ids, dtype=object)[codes].tolist()
        return self._ids[column]

    def coded(self, column: str) -> tuple[np.ndarray, list[str]]:
        """(int64 [rows], ids): which id a cell is, of those of the column, each once."""
        if column not in self._coded:
            codes, texts = pd.factorize(self.frame[column].to_numpy(dtype=object))
            whole = "".join(texts)
            ids = list(texts) if whole.isascii() and "." not in whole else [id_text(text) for text in texts]
            if len(set(ids)) < len(ids):
                again, texts = pd.factorize(np.array(ids, dtype=object))
                codes, ids = again[codes], list(texts)
            self._coded[column] = codes, ids
        return self._coded[column]

    def different(self, column: str) -> frozenset[str]:
        """The ids of a column, each once, without empty cells."""
        if column not in self._different:
            self._different[column] = frozenset(self.coded(column)[1]) - {""}
        return self._different[column]


def id_rows(path: Path, columns: int = 1, known: Container[str] = frozenset()) -> list[list[str]]:
    """The lines of a CSV list of ids, or of pairs of them, without a header: a first line that names columns is nobody.

    Args:
        columns: how many cells of a line are ids.
        known: ids that are somebody, whatever they are called.

    Raises:
        DataError: the file is no such list.
    """
    allowed = "allowed: a CSV list of ids" if columns == 1 else "allowed: a table of pairs, source,target"
    try:
        text, _ = _decoded(path.read_bytes(), str(path))
        rows = [(number, cells) for number, cells in _lines_of(text or "", ",") if cells[0]]
    except (OSError, csv.Error) as error:
        raise DataError(f"{path}: {error}; {allowed}") from error
    if short := next((number for number, cells in rows if len(cells) < columns), None):
        raise DataError(f"{path}:{short}: fewer than {columns} cells; {allowed}")
    if not rows:
        return []
    (_, first), sides = rows[0], {one for pair in SIDES for one in pair} | {"a", "b"}
    plain = [plain_name(cell) for cell in first[:columns]]
    called = all(
        name in sides or is_id_name(name) or (len(name) > 3 and name.rstrip("12") in sides | ID_NAMES) for name in plain
    )
    below = rows[1][1] if len(rows) > 1 else []
    worded = any(not number_like(one) and number_like(two) for one, two in zip(first[columns:], below[columns:], strict=False))
    nobody = not any(cell in known for cell in first[:columns])
    return [cells for _, cells in (rows[1:] if nobody and (called or worded) else rows)]


@dataclass(eq=False)
class Gathered:
    """Everything that was handed over."""

    tables: list[Table] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)  # file name → SHA-256
    aside: dict[str, str] = field(default_factory=dict)  # what was not understood: file name → what it looks like
    faults: DataFileFaults = field(default_factory=DataFileFaults)  # lines that are wrong, of all files


def gather_files(path: Path) -> Gathered:
    """The tables of a file, an archive, or all files of a folder.

    Raises:
        DataError: the path leads nowhere, or a single file is not understood. Wrong lines are noted, and not raised.
    """
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder; allowed: a file with a graph, or a folder of tables")
    found, single = Gathered(), not path.is_dir()
    raw = RawFiles(path.parent if single else path)
    if not single and lakes.kept_by(path):
        _read_parts(path, raw, found)
        found.checksums = raw.checksums
        return found
    names = [path.name] if single else sorted(one.name for one in path.iterdir() if one.is_file())
    _read_files({name: partial(raw.read, name) for name in names}, str(raw.folder), single, found)
    found.checksums = raw.checksums
    inside = [] if single else sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith((".", "__")))
    for folder in (one for one in inside if lakes.is_in_parts(one)):
        _read_parts(folder, raw, found)
    found.aside |= {f"{one.name}/": "a folder, which is not looked into" for one in inside if not lakes.is_in_parts(one)}
    if single and not found.tables:
        found.faults.refuse()
        said = found.aside.get(path.name, "holds no table")
        raise DataError(f"{path}: {said if 'allowed: ' in said else f'{said}; allowed: {FORMATS}'}")
    return found


_COPY = re.compile(r"( \(\d+\)|[ _-]+(copy|kopie)( \(\d+\))?)(?=\.\w+$)", re.IGNORECASE)
_ANSWERS = "allowed: who answers whom as a table source,target, and one of people"


def require_no_chat(names: Collection[str], folder: str | Path) -> None:
    """``DataError`` where channels, each a folder of days, lie beside who is in them, and nothing else."""
    if {"users.json", "channels.json"} <= {*names} and all(one.endswith(".json") for one in names):
        raise DataError(f"{folder}: an export of Slack, whose messages name no ties; {_ANSWERS}")


def _read_files(files: Mapping[str, Callable[[], bytes]], folder: str, single: bool, found: Gathered) -> None:
    """Adds the tables of files, by their names, and says which are no data."""
    whole: list[Table] = []
    before = len(found.tables)
    files = dict(files)
    for name in list(files):  # as ``neo4j-admin import`` takes them: the first line in a file of its own
        below = re.sub(r"[-_]header(?=\.\w+$)", "", name, flags=re.IGNORECASE)
        if below != name and below in files:
            files[below] = partial(_joined_files, files.pop(name), files[below])
    for name, read in files.items():
        title = Path(name).name
        if title == _NAMES or (not single and title.startswith((".", "~", "__"))):
            continue
        if not single and is_note(title):
            found.aside[name] = "no data"
            continue
        if (first := _COPY.sub("", title)) != title and first in files and read() == files[first]():
            found.aside[name] = f"a copy of {first}"
            continue
        if not single and re.search(r"\.(cmty|circles|egofeat|featnames)(\.txt)?$", title):
            found.aside[name] = "circles of SNAP, or names: a person may be in several"
            continue
        own, content = Gathered(), b""
        with own.faults.gathering():
            content = read()
            _read_file(content, f"{folder}/{name}", title, own)
        if not content.strip() and _NUMBERED_PART.search(title):
            continue
        if not single and own.faults.count and _are_notes(own, content, title):
            own = Gathered(aside={name: own.faults.told(name) or "text that is no table"})
        found.tables += own.tables
        found.aside |= own.aside
        if own.faults.count and found.faults.count and own.faults.told(name).endswith(_ANSWERS):
            continue  # another day of a chat
        with found.faults.gathering():
            own.faults.refuse()
        whole += [table for table in own.tables if table.numbered and table.matrix is not None]
    found.tables[before:] = _joined_pages(found.tables[before:], folder)
    require_no_chat(files, folder)
    files_of_whole = dict.fromkeys(table.title for table in whole)
    beside = (table for table in found.tables[before:] if table.stem not in ("ids", "cross", "masks", "labels"))
    others = dict.fromkeys(table.title for table in beside if table.title not in files_of_whole)
    if whole and len(files_of_whole) + len(others) > 1:
        listed = " and ".join([*files_of_whole, *others])
        raise DataError(f"{folder}: found {listed}; allowed: one file with a whole graph, or tables")
    for name in (name for name in files if whole and Path(name).name == _NAMES):
        whole[0].called = _read_names(files[name](), f"{folder}/{name}", len(whole[0].called))
        whole[0].headed = True


def _read_parts(folder: Path, raw: RawFiles, found: Gathered) -> None:
    """Adds the one table that a folder holds in parts, without files that its log removed.

    Raises:
        DataError: what is there at present cannot be told, or the parts are not of one table.
    """
    parts, remarks = lakes.parts_of(folder)
    own: list[Table] = []
    for part in parts:
        inside, name = Gathered(), (folder / part.name).relative_to(raw.folder).as_posix()
        _read_files({part.name: partial(raw.read, name)}, str(folder), False, inside)
        with found.faults.gathering():
            inside.faults.refuse()
        found.aside |= inside.aside
        if len(inside.tables) > 1:
            raise DataError(f"{folder / part.name}: holds several tables; allowed: a part of one table")
        for table in inside.tables:
            said = {name: value for name, value in part.said.items() if name not in table.names}
            own.append(replace(table, frame=table.frame.assign(**said)))
    own = _of_one_index(own)
    for other in own[1:]:
        if sorted(other.names) != sorted(own[0].names) or own[0].matrix is not None:
            here, there = (", ".join(one.names[:8]) for one in (own[0], other))
            raise DataError(f"{other.where}: its columns are {there}, and those of {own[0].title} {here}; allowed: parts alike")
    if not own:
        return
    frame = pd.concat([one.frame[own[0].names] for one in own], ignore_index=True)
    lines = np.zeros(0, np.int64) if len(own) > 1 else own[0].lines
    remarks = [*dict.fromkeys(remark for one in own for remark in one.remarks), *remarks]
    remarks += [f"{counted(len(own), 'file')} of {folder.name} are one table"] if len(own) > 1 else []
    found.tables.append(replace(own[0], where=str(folder), frame=frame, lines=lines, remarks=remarks))


def _of_one_index(tables: Sequence[Table]) -> list[Table]:
    """Without the number of a row, where pandas wrote slices of a table whose rows are numbered: the first has none."""
    first, found = 0, []
    for table in tables:
        counting = list(map(str, range(first, first + len(table.frame))))
        found.append(replace(table, frame=table.frame.drop(columns=""), implied="") if table.names[:1] == [""] else table)
        if table.names[:1] == [""] and table.texts("") != counting:
            return list(tables)
        first += len(table.frame)
    return found if tables and tables[0].names[:1] != [""] else list(tables)


_NUMBERED_PART = re.compile(r"(^|[^a-z])(page|part|chunk|batch|offset)s?[^a-z]*\d", re.IGNORECASE)


def _joined_pages(tables: list[Table], folder: str) -> list[Table]:
    """With tables as one that are pages, or parts, of one: of the same columns, and called alike but for numbers.

    Others that are called so are one where each holds ids of its own.
    """
    alike: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        file = re.sub(r"(?<=\d)-[0-9a-f]{8}-[0-9a-f-]{27}", "", table.where[len(folder) :])  # Spark's
        called = re.sub(r"\d+", "*", file)
        nested = {name.partition(".")[0] if ".json" in called else name for name in table.names}  # empty on some pages
        apart = [table.where] if table.matrix is not None or table.role or table.ends or called == file else []
        alike.setdefault((called, *sorted(nested), *apart), []).append(table)
    found = []
    for (called, *_), own in alike.items():
        first = own[0]
        sure = len(own) > 1 and all(one.paged or _NUMBERED_PART.search(one.title) for one in own)
        if not sure and (len(own) == 1 or not _hold_ids_apart(own)):
            found += own
            continue
        names = list(dict.fromkeys(name for one in own for name in one.names))
        frame = pd.concat([one.frame.reindex(columns=names, fill_value="") for one in own], ignore_index=True)
        whole = len(frame)
        frame = frame.drop_duplicates(ignore_index=True) if all(one.paged for one in own) else frame
        unused = tuple(dict.fromkeys(one for page in own for one in page.unused))
        unused = tuple(one for one in unused if one != replies.MORE or all(replies.MORE in page.unused for page in own))
        said = f"{len(own)} files are one table, {called.lstrip('/')}"
        said += f" ({whole - len(frame):,} of {whole:,} rows stand on several pages)" if len(frame) < whole else ""
        found.append(replace(first, where=f"{folder}{called}", frame=frame, lines=np.zeros(0, np.int64), unused=unused,
                             remarks=[*dict.fromkeys(one for page in own for one in page.remarks), said]))  # fmt: skip
    return found


def _hold_ids_apart(tables: Sequence[Table]) -> bool:
    """Whether no id stands in two rows of tables of the same columns."""
    keys = [name for name in tables[0].names if tables[0].headed and is_id_name(name)][:1]
    ids = [one.different(name) for one in tables for name in keys if name in one.names]
    return bool(ids) and sum(map(len, ids)) == len(frozenset().union(*ids)) == sum(len(one.frame) for one in tables)


def is_note(name: str) -> bool:
    """Whether a file beside tables holds no data, as its name says."""
    ending = Path(name).suffix.casefold()
    return ending in _ASIDE or bool(_NO_DATA.match(name.casefold()) and ending not in _TABLES)


def _joined_files(head: Callable[[], bytes], body: Callable[[], bytes]) -> bytes:
    return head().rstrip(b"\r\n") + b"\n" + body()


def _are_notes(own: Gathered, content: bytes, title: str) -> bool:
    """Whether a text beside tables that cannot be read is none, and no damaged one either."""
    lines = content.strip().count(b"\n") + 1
    said = says("ties", title) or says("people", title) or says("parts", title)
    return (
        Path(title).suffix.casefold() in _NOTES
        and not said
        and lines <= _FEW_LINES
        and sum(len(table.frame) for table in own.tables) < _FIT * lines
    )


def _read_names(content: bytes, where: str, count: int) -> tuple[str, ...]:
    """Names of columns, one a line. ``DataError`` where they are not that many, not different, or one is empty."""
    try:
        found = [line.strip() for line in content.decode("utf-8-sig").rstrip().split("\n")]
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 text ({error.reason} at byte {error.start}); allowed: UTF-8") from error
    if "" in found:
        raise DataError(f"{where}:{found.index('') + 1}: an empty line; allowed: {count} different names, one per line")
    if len(found) != count or len(set(found)) != count:
        lines = f"{len(found)} lines, {len(set(found))} different"
        raise DataError(f"{where}: {lines}; allowed: {count} different names, one per line")
    return tuple(found)


FORMATS = (
    "text tables and edge lists (.csv, .tsv, .txt), Parquet, Feather, ORC, Excel, Stata, SQLite, JSON, JSON lines, GML, GEXF, "
    "GraphML, XGMML, GDF, TGF, Pajek, UCINET, DIMACS, METIS, SIF, LGL, Matrix Market, .npz, .pt, .gz, .bz2, .xz, .zip, .tar"
)
_PACKED: tuple[tuple[bytes, Callable[[bytes], bytes], str], ...] = (
    (b"\x1f\x8b", gzip.decompress, ".gz"), (b"BZh", bz2.decompress, ".bz2"), (b"\xfd7zXZ", lzma.decompress, ".xz"),
)  # fmt: skip
_OTHERS = (
    (b"\xd0\xcf\x11\xe0", "an old Office file; allowed: the same saved as .xlsx, or as CSV"),
    (b"$FL", "an SPSS file; allowed: the same exported as CSV, or read by pandas.read_spss and handed over"),
    (b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81", "a SAS file; allowed: the same exported as CSV"),
    (b"MATLAB ", "a MATLAB file; allowed: its matrix written by scipy.io.mmwrite, and its columns as CSV"),
    (b"\x93NUMPY", "an array without names; allowed: a matrix as .npz (scipy.sparse.save_npz), or a table as CSV"),
    (b"\x89HDF", "an HDF5 file; allowed: each table as CSV or Parquet"),
    (b"\xe2\x9b\xbe gt", "a graph-tool file; allowed: the same graph saved as GraphML (graph.save('graph.graphml'))"),
    (b"RDX", "a workspace of R; allowed: each table by write.csv, a graph by igraph's write_graph(format = 'graphml')"),
    (b"X\n\0", "an object of R; allowed: a table by write.csv, a graph by igraph's write_graph(format = 'graphml')"),
    (b"7z\xbc\xaf", "a 7z archive; allowed: .zip, or a folder"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive; allowed: .gz, .bz2 or .xz"),
)
# Texts that are no table, and what may be brought instead
_TEXTS = (
    (r"^(CREATE TABLE|INSERT INTO|COPY .* FROM stdin;)",
     "an SQL dump, whose statements are not run; allowed: each table exported as CSV, or an SQLite database"),
    (r"=\"urn:iso:std:iso:20022:|^:61:\d{6}|<OFX>",
     "a bank's statement (CAMT, MT940, OFX); allowed: who pays whom as a table source,target, and one of people"),
    (r"urn:schemas-microsoft-com:office:spreadsheet", "an old Excel file in XML; allowed: the same saved as .xlsx, or as CSV"),
    (r"\A\s*\{\s*\"type\":\s*\"gephi-lite\"", "a workspace of Gephi Lite; allowed: the graph that it exports as GEXF"),
    (r"^\s*(strict\s+)?(di)?graph\b[^\[\n]*\{",
     "a Graphviz file; allowed: the same graph as GraphML or GEXF, or its ties as a table source,target"),
    (r"\A[\w.]+\s*=\s*[\[{]", "JavaScript, which is not run; allowed: the JSON behind its first '=' as a file of its own"),
    (r"\A<[^<>\s]+>\s+<[^<>\s]+>\s|^@prefix\s|<rdf:RDF\b|\A[\s{\[]*\"@(context|graph|id)\"",
     "triples (RDF, JSON-LD); allowed: ties of one kind as a table source,target, facts as one with a column each"),
    (r"\A\W*\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}:\d\d.{0,12}?[\]-] [^:\n]+: ",
     "a chat, which names no ties; allowed: who answers whom as a table source,target"),
    (r"\A\s*\{\s*\"cells\":\s*\[\s*\{\s*\"(cell_type|attachments|execution_count|id)\"",
     "a notebook, which is not run; allowed: the tables that it reads or writes, each as CSV"),
    (r"\A(\w+\s*<-|structure\()", "R, which is not run; allowed: each table by write.csv, a graph by igraph's write_graph"),
    (r"\A\s*(graph|flowchart)\s+(TD|TB|BT|LR|RL)\b|\A@startuml|<(mxfile|mxGraphModel)\b",
     "a drawing (Mermaid, PlantUML, draw.io); allowed: its ties as a table source,target"),
    (r"\Aversion https://git-lfs", "a pointer of Git LFS, and not the file; allowed: the file itself (git lfs pull)"),
    (r"\A\s*@\w+\s*\{", "BibTeX, which names no ties; allowed: pairs of authors as a table source,target"),
    (r"\A\s*<(!doctype html|!DOCTYPE html|html|HTML)\b", "a page of HTML; allowed: its table saved as CSV or .xlsx"),
    (r"\A(#.*\n|\s)*(version: \d+\s+)?dn::? ?\S", "LDIF; allowed: the same as CSV (csvde), with a line for each entry"),
    (r"^SQL> ", "a listing of SQL*Plus, whose columns nothing parts; allowed: the same as CSV (SET MARKUP CSV ON)"),
    (r"\A\(tlp ", "a Tulip file; allowed: the same graph as GEXF or GML"),
    (r"\A(LEDA\.GRAPH|>>(graph|sparse)6<<|:\S+\s*\Z)", "a LEDA, graph6 or sparse6 file; allowed: the same graph as GraphML"),
)  # fmt: skip
# Texts of people that stay aside where tables are
_OF_PEOPLE = (
    (r"From \S+ .*\d{4}\s*\n[\w-]+: ", "mails (mbox); allowed: who writes to whom as a table source,target, and one of people"),
    (r"\ufeff?0 HEAD\b", "a family tree (GEDCOM); allowed: who is tied to whom as a table source,target, and one of people"),
    (r"(TY  - |PMID- |%0 |FN (Clarivate|Thomson))", "references; allowed: pairs of authors as a table source,target"),
)  # fmt: skip


def _read_file(content: bytes, where: str, name: str, found: Gathered) -> None:
    """Adds the tables of one file, or says what it looks like."""
    ending, zipped = Path(name).suffix.casefold(), content[:4] == b"PK\x03\x04"
    if packed := next((one for one in _PACKED if content.startswith(one[0])), None):
        try:
            inner = packed[1](content)
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise DataError(f"{where}: not a whole {packed[2]} file ({error})") from error
        _read_file(inner, where, name.removesuffix(packed[2]), found)
    elif ending == ".npz":
        found.tables += _npz(content, where)
    elif ending == ".pt":
        found.tables += _torch(content, where)
    elif zipped and (ending == ".xlsx" or b"xl/workbook" in content):
        found.tables += _excel(content, where)
    elif zipped and b"mimetypeapplication/vnd.oasis.opendocument" in content[:200]:
        found.aside[name] = "an OpenDocument file; allowed: each sheet saved as CSV, or all as .xlsx"
    elif zipped or content[257:262] == b"ustar":
        _unpack(content, where, found)
    elif said := next((words for mark, words in _OTHERS if content.startswith(mark)), ""):
        found.aside[name] = said
    elif content.startswith((b"PAR1", b"ORC", b"ARROW1", b"FEA1\0\0")):
        found.tables.append(_arrow(content, where))
    elif content.startswith(b"<stata_dta>") or ending == ".dta":
        found.tables.append(_stata(content, where))
    elif content.startswith(b"SQLite format 3"):
        found.tables += _sqlite(content, where)
    elif ending in (".pkl", ".pickle") or (content[:1] == b"\x80" and content[1:2] <= b"\x05" and content.endswith(b".")):
        raise DataError(f"{where}: a pickle, which can run code when it is opened, is refused; allowed: {FORMATS}")
    elif not content.strip():
        found.aside[name] = "empty"
        raise DataError(f"{where}: empty; {_NEEDED}")
    else:
        _read_text(content, where, name, found)


_NEEDED = "allowed: a line for each row; a table without rows has its header alone, such as source,target"


def _unpack(content: bytes, where: str, found: Gathered) -> None:
    """The files of a zip or tar archive; nothing is written to a disk."""
    files: dict[str, Callable[[], bytes]] = {}
    try:
        if content[:2] == b"PK":
            archive = zipfile.ZipFile(io.BytesIO(content))
            parts = [(one.filename, one.file_size) for one in archive.infolist() if not one.is_dir()]
            files = {name: partial(archive.read, name) for name, _ in parts}
        else:
            tar = tarfile.open(fileobj=io.BytesIO(content))  # noqa: SIM115
            members = [one for one in tar.getmembers() if one.isfile()]
            parts = [(one.name, one.size) for one in members]
            files = {one.name: partial(_of_tar, tar, one) for one in members}
        if sum(size for _, size in parts) > _MOST_UNPACKED:
            raise DataError(f"{where}: larger than {_MOST_UNPACKED:,} bytes when unpacked")
        files = {name: read for name, read in files.items() if "__MACOSX" not in name}
        if marked := next((name for name in files if lakes.MARKED.search(name)), None):
            raise DataError(f"{where}: {marked} keeps which files are valid; allowed: the archive unpacked")
        require_no_chat({Path(name).name for name in files}, where)
        again = Counter(Path(name).name for name in files if not (is_note(Path(name).name) or Path(name).name.startswith(".")))
        if several := [name for name, count in again.items() if count > 1]:
            raise DataError(f"{where}: {several[0]} lies in several folders; allowed: the archive unpacked, a folder per owner")
        _read_files(files, where, False, found)
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{where}: not a whole archive ({error})") from error


def _of_tar(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = tar.extractfile(member)
    return b"" if opened is None else opened.read()


def _decoded(content: bytes, where: str) -> tuple[str | None, list[str]]:
    """(text, remarks); None where it is no text."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            try:
                return content.decode(encoding), []
            except UnicodeDecodeError as error:
                raise DataError(f"{where}: not whole {encoding} text ({error.reason})") from error
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):  # every other byte is nothing, and no mark says so
        if len(content) > 20 and len(content) % 2 == 0 and not any(content[first:200:2]) and any(content[1 - first : 200 : 2]):
            return content.decode(encoding, "replace"), [f"{Path(where).name} was read as {encoding}, which no mark says"]
    try:
        text = content.decode("utf-8")
        return (None if "\0" in text else text), []
    except UnicodeDecodeError:
        control = sum(byte < 9 or 13 < byte < 32 for byte in content[:100_000])
        if control:
            return None, []
        if _FOREIGN.search(content):  # read as Latin text, names would be others, and two might become one
            said = f"{where}: text that is neither UTF-8 nor Latin (cp1252)"
            raise DataError(f"{said}; allowed: the same saved as UTF-8") from None
        text = content.decode("cp1252")
        words = next(filter(None, (_FOREIGN_SIGN.findall(text), re.findall(r"\w*[^\x00-\x7f]\w*", text))), [""])
        said = f"{Path(where).name} is no UTF-8 and was read as Latin text (cp1252), with words such as {words[0][:40]!r}"
        return text, [f"{said}: if letters are wrong, save it as UTF-8"]


def _read_text(content: bytes, where: str, name: str, found: Gathered) -> None:
    text, remarks = _decoded(content, where)
    if text is None and Path(name).suffix.casefold() in (".csv", ".tsv", ".txt", ".json", ".gml"):
        raise DataError(f"{where}: bytes that are no text; allowed: {FORMATS}")
    if text is None:
        found.aside[name] = "bytes that are no text"
        return
    start, ending = text.lstrip()[:4000], Path(name).suffix.casefold()
    if re.match("%%?MatrixMarket", start):
        found.tables += _matrix_market(b"%" * (not start.startswith("%%")) + content, where)
    elif name.startswith("ent.") or re.match(r"%\s*(a?sym|bip)\b", start):
        found.tables += _konect(text, where, name, found.faults)
    elif start.casefold().startswith("nodedef>"):
        found.tables += _gdf(text, where, found.faults)
    elif re.search(r"\n#[ \t\r]*\n", text) and not start.startswith("#"):
        found.tables += _tgf(text, where)
    elif said := next((words for pattern, words in _TEXTS if re.search(pattern, start, re.MULTILINE)), ""):
        raise DataError(f"{where}: {said}")
    elif said := next((words for pattern, words in _OF_PEOPLE if re.match(pattern, start)), ""):
        found.aside[name] = said
    elif start.startswith("<"):
        found.tables += _xml(content, where, start)
    elif ending == ".gml" or re.search(r"^\s*graph\s*\[", start, re.MULTILINE | re.IGNORECASE):
        found.tables += _gml(text, where)
    elif re.match(r"(%.*\s+)*\*(vertices|network|partition|vector|arcs|edges)", start, re.IGNORECASE):
        found.tables += _pajek(text, where, ending)
    elif re.match(r"dl\b", start, re.IGNORECASE):
        found.tables += _ucinet(text, where)
    elif ending in (".sif", ".lgl"):
        found.tables += _sif_or_lgl(text, where, ending)
    elif ending in (".graph", ".metis") and (listed := _metis(text, where)):
        found.tables += listed
    elif re.search(r"^p\s+(edge|col|sp|max)\s+\d+\s+\d+\s*$", start, re.MULTILINE):
        found.tables += _dimacs(text, where)
    elif ending == ".multiline_adjlist" or re.match(r"(#.*\n)*(\S+ 0\n)*\S+ [1-9]\d*\n\S+ \{.*\}$", start, re.MULTILINE):
        found.tables += _networkx(lambda nx: nx.parse_multiline_adjlist(iter(text.splitlines())), where, "a list of networkx")
    elif ending == ".adjlist" or re.match(r"(#.*\n)*[^{\s]\S* \S+ \{.*\}$", start, re.MULTILINE):
        lines = text.splitlines()
        read = (lambda nx: nx.parse_adjlist(lines)) if ending == ".adjlist" else (lambda nx: nx.parse_edgelist(lines))
        found.tables += _networkx(read, where, "a list of networkx")
    elif start.startswith(("{", "[")):
        found.tables += _json(text, where)
    else:
        table = _delimited(text, where, name, found)
        if table is None:
            found.aside[name] = "text that is no table (lists of who is tied to the first of each line end in .adjlist)"
        else:
            table.remarks += remarks
            found.tables.append(table)


def _lines_of(text: str, separator: str) -> Iterable[tuple[int, list[str]]]:
    """(line, cells) of each line that is not empty. separator: "" splits at spaces and tabs."""
    quoted = '"' in text and (separator or re.search(r'(^|\s)"[^"\n]*"(\s|$)', text))  # as R writes tables with spaces
    text, separator = (
        (re.sub(r"[ \t]+$", "", text.replace("\t", " "), flags=re.MULTILINE), " ")
        if quoted and not separator
        else (text, separator)
    )
    if not quoted:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        at, space = re.escape(separator), r"[^\S\n\t]" if separator == "\t" else r"[^\S\n]"
        spaced = separator and re.search(f"{space}(?:{at}|$)|(?:{at}|^){space}", text, re.MULTILINE)
        for number, line in enumerate(text.split("\n"), 1):
            cells = line.split(separator) if separator else line.split()
            cells = [cell.strip() for cell in cells] if spaced else cells
            if any(cells):
                yield number, cells
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator != "\t", strict=True)
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            yield reader.line_num, stripped


def _separator(lines: Sequence[str]) -> str | None:
    """What splits the lines; "" for spaces, None where nothing does."""
    best: tuple[float, bool, int, str] | None = None
    for one in (*_SEPARATORS, ""):
        widths: list[int] = []
        try:
            widths.extend(len(cells) for _, cells in _lines_of("\n".join(lines), one))
        except csv.Error as error:
            if "unexpected end" not in str(error):  # a quoted cell may go on beyond the sample
                continue
        if not widths:
            continue
        width, count = Counter(widths).most_common(1)[0]
        share = count / len(widths)
        if width > 1 and share > 0.5 and any(abs(own - width) <= 1 for own in widths[: _MOST_ABOVE + 1]):
            from_the_top = (
                bool(one) and widths[0] > 1 and abs(widths[0] - width) <= 1
            )  # no words above the table, and no commas
            rank = (round(share, 1), from_the_top, min(width, 99) if one else 0, one)
            best = rank if best is None or rank[:3] > best[:3] else best
    return None if best is None else best[3]


def _delimited(text: str, where: str, name: str, found: Gathered) -> Table | None:
    skipped, lines = 0, text.splitlines()
    while skipped < len(lines) and (
        not lines[skipped].strip()
        or (lines[skipped].lstrip()[:1] in ("#", "%") and not _NUMBERED.match(lines[skipped]))
        or re.match(r"\s*(//|; )", lines[skipped])
        or re.fullmatch(r"sep=.", lines[skipped].strip())
    ):
        skipped += 1
    ruled = '"' not in text and any(mark in text for mark in ("--", "==", " row"))
    drawn = [place for place in range(skipped, len(lines)) if ruled and lines[place][-1:] in "-=+|:)*cs"]
    drawn = [place for place in drawn if _DRAWN.fullmatch(lines[place])]
    for place in drawn:
        lines[place] = ""
    body = "\n".join(lines[skipped:]) if skipped or drawn else text
    body = _NO_CELL.sub("", body) if r"\N" in body or "#" in body else body
    sample = [line for line in lines[skipped : skipped + _SAMPLE] if line.strip()]
    if not sample:
        found.aside[name] = "comments alone"
        raise DataError(f"{where}: holds comments alone; {_NEEDED}")
    if all(re.fullmatch(r"\(.*\),?", line.strip()) for line in sample):  # as Python writes pairs
        body = re.sub(r"^[ \t]*\(|\),?[ \t]*\r?$", "", body, flags=re.MULTILINE)
        sample = [line.strip().strip("(),") for line in sample]
    if all("::" in line for line in sample) and "\t" not in body:  # as MovieLens writes
        body, sample = body.replace("::", "\t"), [line.replace("::", "\t") for line in sample]
    separator = _separator(sample)
    if separator is None:
        if any(len(line.split()) > 3 for line in sample) and len({len(line.split()) for line in sample}) > 2:
            return None
        separator = ","
    if len(body) > _LARGE and (even := _even(body, separator, where, skipped)) is not None:
        return even
    rows: list[tuple[int, list[str]]] = []
    try:
        rows.extend((number + skipped, cells) for number, cells in _lines_of(body, separator))
    except csv.Error as error:
        raise DataError(f"{where}:{rows[-1][0] + 1 if rows else 1}: {error}; allowed: a table, one line a row") from error
    # in lists of ties a comment may stand anywhere; in tables it is a line that nothing splits, or has a space behind its mark
    loose = not separator and Path(name).suffix.casefold() != ".csv"
    marked = [row for row in rows if row[1][0][:1] in ("#", "%") and not (row is rows[0] and row[1][0] == "#")]
    noted = {row[0] for row in marked if loose or (separator and len(row[1]) == 1) or re.match(r"[#%](\s|$)", row[1][0])}
    kept = [row for row in rows if row[0] not in noted] if 2 * len(noted) <= len(rows) else rows
    table, *others = _of_each(kept, where, found.faults)
    found.tables += others
    numbers = {row[0] for row in kept}
    if taken := [row for row in rows if row[0] not in numbers]:
        said = f"{counted(len(taken), 'line')} between others taken for a comment, such as {' '.join(taken[0][1])[:40]!r}"
        table.remarks.append(f"{Path(where).name}:{taken[0][0]}: {said}")
    return table


def _even(body: str, separator: str, where: str, skipped: int) -> Table | None:
    """A large table whose lines are all as wide, read at once; None where some line has to be looked at.

    separator: "" is one space. skipped: lines above it.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    one, at = separator or " ", re.escape(separator or " ")
    body = body.replace("\r\n", "\n").rstrip("\n")
    first, *_ = body.split("\n", 1)
    if '"' in body or "\r" in body or f"\n{first}\n" in body:
        return None
    spaced = not body.isascii() or any(space in body for space in " \t\v\f\x1c\x1d\x1e\x1f".replace(one, ""))
    if spaced or body[0] in f"#%{one}" or any(begun in body for begun in ("\n\n", "\n#", "\n%", f"\n{one}", f" {one}", " \n")):
        strange = rf"^[#%]|^{at}*$|^[^\S\t]|[^\S\n\t]$|{at}[^\S\t\n]|[^\S\t\n]{at}" + ("" if one == "\t" else r"|\t")
        if re.search(strange if separator else r"^[#%]|^\s|\s$|\s\s|[^\S \n]", body, re.MULTILINE):
            return None
    columns = dict.fromkeys(map(str, range(first.count(one) + 1)), pa.dictionary(pa.int32(), pa.string()))
    try:  # each text of a column is there once
        read = arrow.read_csv(
            pa.py_buffer(body.encode()), arrow.ReadOptions(use_threads=False, block_size=2**26, column_names=list(columns)),
            arrow.ParseOptions(delimiter=one, quote_char=False, double_quote=False, ignore_empty_lines=False),
            arrow.ConvertOptions(column_types=columns, null_values=[], strings_can_be_null=False),
        ).unify_dictionaries()  # fmt: skip
    except pa.ArrowInvalid:
        return None
    cells = []
    for chunks in (column.chunks for column in read.columns):
        texts = np.array(chunks[0].dictionary.to_pylist(), dtype=object)
        cells.append(texts[np.concatenate([chunk.indices.to_numpy() for chunk in chunks])])
    count, faults = read.num_rows, DataFileFaults()
    if count <= _SAMPLE + 1:
        return None
    few = _of_rows([(k + 1 + skipped, [own[k] for own in cells]) for k in (*range(_SAMPLE + 1), count - 1)], where, faults)
    last = next((own[-1] for own in cells if own[-1]), "")
    if faults.count or few.remarks or len(few.names) != len(cells) or TOTAL.fullmatch(last.rstrip(": ")):
        return None
    frame = pd.DataFrame({name: own[few.headed :] for name, own in zip(few.names, cells, strict=True)}, dtype=object)
    return replace(few, frame=frame, lines=np.arange(few.headed, count, dtype=np.int64) + 1 + skipped)


def _of_rows(rows: list[tuple[int, list[str]]], where: str, faults: DataFileFaults) -> Table:
    """A table of rows of texts, of which the first may be a header. Rows of other widths are noted."""
    while len(rows) > 1 and not any(cells[0] for _, cells in rows) and len(rows[0][1]) > 2:
        rows = [(number, cells[1:]) for number, cells in rows]  # a table that does not begin at the left
    width = max(len(cells) for _, cells in rows)
    while width > 1 and not any(cells[width - 1] for _, cells in rows if len(cells) >= width):
        width -= 1  # a separator at the end of lines
    rows, remarks = _without_title([(number, cells[:width]) for number, cells in rows])
    head, body = rows[0][1], rows[1:]
    width = Counter(len(cells) for _, cells in body).most_common(1)[0][0] if body else len(head)
    short = len(head) == width - 1 and len(set(head)) == len(head)  # R names no column of names of rows
    head = ["", *head] if short else head
    headed = short or _is_header(head, [cells for _, cells in body[:_SAMPLE]])
    width = len(head) if headed else width
    named_not = [place for place, name in enumerate(head) if headed and not name]
    if gone := {place for place in named_not if all(len(cells) <= place or not cells[place] for _, cells in body)}:
        # columns that part others
        head, *rest = ([one for at, one in enumerate(cells) if at not in gone] for cells in (head, *(own for _, own in body)))
        body, width = [(number, cells) for (number, _), cells in zip(body, rest, strict=True)], len(head)
    if headed and (again := sum(cells == head for _, cells in body)):
        remarks.append(f"its header stands there {again} more time{'s' * (again > 1)}, which is no row")
        body = [(number, cells) for number, cells in body if cells != head]
    if headed and (count := _heads_below([cells for _, cells in body[:_SAMPLE]])):
        remarks.append(f"{count} line{'s' * (count > 1)} below its header left out: what columns hold, {body[0][1][0][:40]!r}")
        body = body[count:]
    if headed and (notes := _notes_below(body, width)):
        remarks.append(f"{len(notes)} line{'s' * (len(notes) > 1)} below the table left out, {notes[0][:40]!r}")
        body = body[: -len(notes)]
    if headed and len(body) > 2 and _is_total(body):
        remarks.append(f"its last row, {next(filter(None, body[-1][1]))!r}, was taken for sums of the others, and left out")
        width -= bool(width == len(head) and TOTAL.fullmatch(head[-1]))
        head, body = head[:width], [(number, cells[:width]) for number, cells in body[:-1]]
    if headed:
        typed = [_TYPED.match(cell) for cell in head]
        named = _named(head, where)
    else:
        body, typed = rows, []
        named = [f"column {place + 1}" for place in range(width)]
    sound, lost = [], set[str]()
    for number, cells in body:
        if len(cells) == width:
            sound.append((number, cells))
        else:
            lost.update(cells)
            plural = "column" if len(cells) == 1 else "columns"
            faults.note(
                f"{where}:{number}", f"{len(cells)} {plural}; allowed: {width}, as in the {'header' if headed else 'others'}"
            )
    lines = np.array([number for number, _ in sound], dtype=np.int64)
    frame = pd.DataFrame([cells for _, cells in sound], columns=named, dtype=object)
    found = Table(where, frame, lines, headed, lost=lost, remarks=[f"{Path(where).name}: {remark}" for remark in remarks])
    return _of_typed_header(found, typed) if any(m and m["kind"].casefold() in _KINDS for m in typed) else found


def _heads_below(body: Sequence[Sequence[str]]) -> int:
    """How many first rows say what columns hold: words, or records, of a kind that no row below has, or above all numbers."""
    for count in (k for k in range(_MOST_HEADS, 0, -1) if len(body) > k + 2):
        heads, below = body[:count], [cells for cells in body[count:] if len(cells) == len(body[0])]
        columns = [[cell for cell in own if cell] for own in zip(*below, strict=False)]
        numbers = sum(bool(own) and all(map(number_like, own)) for own in columns)
        last, records = heads[-1], [all(cell[:2] == '{"' for cell in cells) for cells in (heads[-1], *below)]
        words = all(last) and len(set(last)) == len(last) == len(columns) and numbers > 1
        words &= not any(cell in own or cell.casefold() in NOTHING for cell, own in zip(last, columns, strict=False))
        if (words or (records[0] and sum(records) == 1)) and not any(number_like(cell) for cells in heads for cell in cells):
            return count
    return 0


def _side_by_side(rows: list[tuple[int, list[str]]], where: str) -> list[tuple[str, list[tuple[int, list[str]]]]]:
    """(what it is called, its rows) of each of several tables in one sheet: empty columns part them, and one is longer."""
    width = len(rows[0][1])
    if any(len(cells) != width for _, cells in rows):
        return [(where, rows)]
    there = [any(cells[place] for _, cells in rows) for place in range(width)]
    blocks = [list(own) for filled, own in itertools.groupby(range(width), there.__getitem__) if filled]
    parts = [[(number, [cells[place] for place in own]) for number, cells in rows] for own in blocks]
    parts = [[row for row in part if any(row[1])] for part in parts]
    whole = all([number for number, _ in part] == [number for number, _ in rows[: len(part)]] for part in parts)
    heads = [cell for part in parts for cell in part[0][1]]
    if len(parts) < 2 or not whole or len({*map(len, parts)}) < len(parts) or min(map(len, blocks)) < 2 or "" in heads:
        return [(where, rows)]
    if any(map(number_like, heads)):
        return [(where, rows)]
    return [(f"{where}/columns {own[0] + 1}-{own[-1] + 1}", part) for own, part in zip(blocks, parts, strict=True)]


def _of_each(rows: list[tuple[int, list[str]]], where: str, faults: DataFileFaults) -> list[Table]:
    """The tables of the rows of a sheet or a text."""
    tables = [_of_rows(part, called, faults) for called, part in _side_by_side(rows, where)]
    for table in tables if len(tables) > 1 else ():
        table.remarks.append(f"{table.title} of {Path(where).name}: a table of its own, with an empty column before the next")
    return tables


def _notes_below(body: Sequence[tuple[int, list[str]]], width: int) -> list[str]:
    """The last lines of one cell, where they are words and no row that was cut off: below an empty line, or of more words."""
    count = next((k for k, (_, cells) in enumerate(reversed(body)) if len(cells) == width or sum(map(bool, cells)) != 1), 0)
    if width < 3 or not 0 < count <= _MOST_BELOW or count == len(body):
        return []
    notes = [next(filter(None, cells)) for _, cells in body[-count:]]
    apart = body[-count][0] > body[-count - 1][0] + 1
    longest = max(len(cells[0].split()) for _, cells in body[:-count])
    return notes if apart or max(len(one.split()) for one in notes) > max(2, longest) else []


def _is_total(body: Sequence[tuple[int, list[str]]]) -> bool:
    """Whether the last row holds sums: it is called so, and beside its name has numbers alone, which the others add up to.

    Suma is a name, too: one cell that the others happen to add up to says nothing.
    """
    (_, cells), others = body[-1], [own for _, own in body[:-1]]
    name, *filled = [*filter(None, cells), ""]
    if not TOTAL.fullmatch(name.rstrip(": ")) or not all(map(number_like, filled[:-1])):
        return False
    columns = zip(map(csv_number, cells), zip(*others, strict=False), strict=False)
    sums = [(one, math.fsum(csv_number(cell) for cell in own if cell)) for one, own in columns if not math.isnan(one)]
    return all(math.isclose(one, added) for one, added in sums) and (any(one for one, _ in sums) or not all(cells))


def _without_title(rows: list[tuple[int, list[str]]]) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """(rows without lines above the table, and with a header of two rows as one; what was done, in words)."""
    filled = [sum(map(bool, cells)) for _, cells in rows[:_SAMPLE]]
    usual = Counter(filled).most_common(1)[0][0]
    width = Counter(len(cells) for _, cells in rows[:_SAMPLE]).most_common(1)[0][0]
    above, sure, remarks = 0, 0, []
    while usual > 2 and above < min(_MOST_ABOVE, len(rows) - 2):
        alone = filled[above] == 1 or 2 * len(rows[above][1]) <= width
        if not alone and not (filled[above] <= max(2, usual / 2) and all(rows[above][1][: filled[above]])):
            break
        sure += alone and sure == above
        above += 1
    head = above + (filled[above] < usual)  # may be the second row of a header
    if above > sure and not (rows[above][1][0] and _is_header(rows[head][1], [cells for _, cells in rows[head + 1 : _SAMPLE]])):
        above = sure  # lines of few cells at the left, such as ``Date;2024-06-30;;;``, stand above a header alone
    if above:
        remarks.append(f"{above} line{'s' if above > 1 else ''} above the table left out, {max(rows[0][1])[:40]!r}")
        rows = rows[above:]
    if len(rows) < 4 or len(rows[0][1]) != len(rows[1][1]):
        return rows, remarks
    (_, first), (number, second) = rows[:2]
    below = [cells for _, cells in rows[2:_SAMPLE]]
    numbers = [
        place
        for place in range(len(first))
        if (own := [c[place] for c in below if len(c) > place and c[place]]) and all(map(number_like, own))
    ]
    merged = not all(first) or len(set(first)) < len(first)
    texts = not any(map(number_like, (*first, *second)))
    matrix = second[0] in first[1:]
    if merged and texts and not matrix and any(second[place] for place in numbers):
        spread_right = zip(_spread_right(first, second), second, strict=True)
        names = [" ".join(dict.fromkeys(filter(None, (one, two)))) for one, two in spread_right]
        if all(second) and len(set(second)) == len(second) >= 2 * filled[above]:
            names = list(second)  # few headings stand above them
        remarks.append("its first two rows are its header")
        rows = [(number, names), *rows[2:]]
    return rows, remarks


def _spread_right(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """A merged cell stands over all its columns, of which each has a name below."""
    found: list[str] = []
    for one, two in zip(first, second, strict=True):
        found.append(one or (found[-1] if found and two else ""))
    return found


def _named(head: Sequence[str], where: str) -> list[str]:
    """Names of columns, each once. ``DataError`` where one is there twice, or two columns have none."""
    counts = Counter(head)
    twice = next((name for name in head if counts[name] > 1), None)
    if twice is not None:
        said = f"column {twice!r} is named twice" if twice else "two columns are without a name"
        raise DataError(f"{where}:1: {said}; allowed: each name once")
    return list(head)


def _of_typed_header(table: Table, typed: Sequence[re.Match[str] | None]) -> Table:
    """Columns as Neo4j exports name them: ``personId:ID``, ``:START_ID``, ``age:int``, ``:LABEL``."""
    names, said = [], {}
    for name, match in zip(table.names, typed, strict=True):
        kind = match["kind"].casefold() if match else ""
        if kind not in _KINDS or match is None:
            names.append(name)
            continue
        plain = match["name"] or {"id": "id", "start_id": "source", "end_id": "target", "label": "kind", "type": "kind"}.get(
            kind, name
        )
        names.append(plain)
        said[kind] = plain
    frame = table.frame.set_axis(_named(names, table.where), axis=1)
    ends = (said["start_id"], said["end_id"]) if {"start_id", "end_id"} <= said.keys() else None
    role = "edges" if ends else "nodes" if "id" in said else ""
    return replace(table, frame=frame, role=role, id=said.get("id"), ends=ends)


def number_like(cell: str) -> bool:
    """Whether a cell is written as a number, or a date."""
    return not math.isnan(csv_number(cell)) or bool(
        re.fullmatch(
            r"[+-]?(\d+|\d{1,3}(,\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})+(,\d+)?|\d+,\d+)|\d{4}-\d\d-\d\d.*", bare_number(cell)[0]
        )
    )


def _is_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: by usual names, or by a column of which it differs in kind."""
    known = [bool(cell) and (is_id_name(cell) or says("head", cell)) for cell in first]
    weak = sides_of(first, WEAK_SIDES[:2])
    paired = bool(sides_of(first, SIDES)) or (bool(weak) and not _is_people(first, below))
    typed = any((m := _TYPED.match(cell)) and m["kind"].casefold() in _KINDS for cell in first)
    texts = [cell for cell in first if not number_like(cell)]
    twice = len(set(first)) < len(first)
    if not texts:
        return False
    if twice and not (paired or typed or known[0]):  # names, which ``_named`` refuses, where words alone stand above numbers
        columns = [[cells[place] for cells in below if place < len(cells) and cells[place]] for place in range(len(first))]
        return len(texts) == len(first) and any(column and all(map(number_like, column)) for column in columns)
    if not below:
        return (paired or typed or any(map(is_id_name, first))) and len(texts) == len(first)
    if not first[0] and all(first[1:]) and all(cells[0] for cells in below):  # pandas names no index
        return True
    kinds: list[bool | None] = []  # of each column: the first cell differs from all others in kind; None: it may or may not
    for place, cell in enumerate(first):
        column = [cells[place] for cells in below if place < len(cells) and cells[place].casefold() not in NOTHING]
        if not column:
            kinds.append(None)
        elif all(map(number_like, column)):
            kinds.append((not number_like(cell) and cell.casefold() not in NOTHING) or (None if not cell else False))
        elif len(column) >= 10 and len(set(column)) * 5 <= len(column) and cell:
            kinds.append(True if cell not in column else None)
        else:
            kinds.append(None)
    codes, beside = ([re.sub(r"\d+", "0", cell) for cells in below for cell in cells[k : k + 1]] for k in (0, 1))
    numbered = len(codes) > 2 and all("0" in cell for cell in codes) and len({cells[0] for cells in below}) == len(codes)
    again = any(cell and any(cell == cells[k] for cells in below if k < len(cells)) for k, cell in enumerate(first))
    if numbered and set(codes).isdisjoint(beside) and not again and not re.search(r"\d", "".join(first)):
        return True  # words above ``n1, n2, …``, of whom each has one row
    if any(kinds) and kinds[0] is not False:
        return True
    if any(kind is False for kind in kinds):  # numbers stand in the first row: names only where the id's is one
        digits = all(cell.isdigit() for cell in first[1:])
        return known[0] and (digits or is_id_name(first[0])) and not number_like(first[0])
    return paired or typed or any(known) or (first[0] == "" and len(texts) == len(first))


def _is_people(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first two cells, such as ``m1, m2``, are called as all below: by one word, no name of ends, and a number."""
    shapes = [re.fullmatch(r"(\D*?)\d+", cell) for cells in (first, *below) for cell in cells[:2]]
    stems = {shape[1] if shape else "" for shape in shapes}
    return len(below) > 1 and len(stems) == 1 and not stems <= {""} and not any(map(is_id_name, stems))


def spread(table: Table, faults: DataFileFaults) -> Table:
    """A table of exactly ``id, feature, value``, one line for each number, as a column for each feature; others as they are."""
    if not table.headed or [plain_name(name) for name in table.names] != ["id", "feature", "value"]:
        return table
    rows: dict[str, int] = {}
    things: dict[str, int] = {}
    found: dict[tuple[int, int], float] = {}
    for row, (node, thing, cell) in enumerate(table.frame.itertuples(index=False)):
        value, own = csv_number(cell), rows.setdefault(id_text(node), len(rows))
        if not thing and not cell:
            continue  # a person without any
        if not thing or math.isnan(value):
            faults.note(table.place(row), f"{thing or 'a feature without a name'} is {cell!r}; allowed: a finite number")
        elif (key := (own, things.setdefault(thing, len(things)))) in found:
            faults.note(table.place(row), f"node {node!r} has feature {thing!r} twice; allowed: once")
        else:
            found[key] = value
    places, columns = np.array(list(found), dtype=np.int64).reshape(-1, 2).T
    matrix = sp.csr_array((np.array(list(found.values())), (places, columns)), shape=(len(rows), len(things)))
    frame = pd.DataFrame({"id": list(rows)}, dtype=object)
    return Table(table.where, frame, id="id", role="features", matrix=matrix, called=tuple(things), lost=table.lost)


# Formats that other libraries read


def _arrow(content: bytes, where: str) -> Table:
    """Parquet, ORC or Feather."""
    import pyarrow as pa
    from pyarrow import feather, orc, parquet

    read = {b"PAR": parquet.read_table, b"ORC": orc.read_table}.get(content[:3], feather.read_table)
    try:
        frame = read(pa.BufferReader(content)).to_pandas()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{where}: not a Parquet table of plain columns: {str(error).splitlines()[0]}") from error
    return frame_table(frame, where)


def _stata(content: bytes, where: str) -> Table:
    try:
        return frame_table(pd.read_stata(io.BytesIO(content)), where)
    except (ValueError, OSError, KeyError) as error:
        raise DataError(f"{where}: not a Stata file that can be read ({error}); allowed: the same exported as CSV") from error


def _sqlite(content: bytes, where: str) -> list[Table]:
    """Each plain table of a database; no view, trigger or virtual table runs."""
    asked = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    found = []
    opened = sqlite3.connect(":memory:")
    try:
        opened.deserialize(content)
        for (name,) in opened.execute(asked).fetchall():
            cells = opened.execute('SELECT * FROM "{}"'.format(name.replace('"', '""')))
            frame = pd.DataFrame(cells.fetchall(), columns=[one[0] for one in cells.description], dtype=object)
            declared = opened.execute('SELECT "from", "table" FROM pragma_foreign_key_list(?)', (name,)).fetchall()
            found.append(frame_table(frame, f"{where}/{name}", refers={own: f"{where}/{other}" for own, other in declared}))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not an SQLite database that can be read ({error}); allowed: tables as CSV") from error
    finally:
        opened.close()
    return found


def _excel(content: bytes, where: str) -> list[Table]:
    try:
        sheets = pd.read_excel(
            io.BytesIO(content), sheet_name=None, header=None, dtype=object, na_filter=False, engine="openpyxl"
        )
        merged = _merged(content, where)
    except ImportError as error:
        raise DataError(f"{where}: Excel needs the package openpyxl; install it, or save each sheet as CSV") from error
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{where}: not a workbook that can be read ({' '.join(str(error).split())})") from error
    tables = []
    if node_xl := {"Edges", "Vertices"} <= sheets.keys():  # its first row groups the columns of the second
        node_xl = list(sheets["Edges"].iloc[1:2, :2].astype(str).itertuples(index=False, name=None)) == [
            ("Vertex 1", "Vertex 2")
        ]
    for name, sheet in sheets.items():
        if node_xl and name not in ("Edges", "Vertices"):
            continue
        sheet = sheet.iloc[int(node_xl) :]
        cells = [[cell_text(value) for value in row] for row in sheet.itertuples(index=False)]
        down = _fill_down(cells, merged.get(str(name), ()))
        rows = [(number, row) for number, row in enumerate(cells, 1) if any(row)]
        if rows:
            faults = DataFileFaults()
            several = _of_each(rows, f"{where}/{name}" if len(sheets) > 1 else where, faults)
            faults.refuse()
            title = several[0].title
            several[0].remarks += [f"{title}: what stands in a merged cell is said of each of its rows"] if down else []
            tables += several
    return tables


_FORMULA = re.compile(rb'<c (?![^>]*t="str")[^>]*><f\b[^>]*(/>|>[^<]*</f>)\s*(<v\s*/>|<v></v>)?\s*</c>')  # without a value


def _merged(content: bytes, where: str) -> dict[str, list[tuple[int, int, int, int]]]:
    """Of each sheet of a workbook the cells that were merged: first column, first row, last column, last row, from 1.

    ``DataError`` where a program wrote formulas that no spreadsheet computed.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheets = [archive.read(one) for one in archive.namelist() if one.startswith("xl/worksheets/")]
    if formulas := sum(len(_FORMULA.findall(sheet)) for sheet in sheets):
        said = f"{counted(formulas, 'cell')} with a formula and no value, as no spreadsheet has computed it"
        raise DataError(f"{where}: {said}; allowed: the same opened and saved by one, or as CSV")
    if not any(b"<mergeCell " in sheet for sheet in sheets):
        return {}
    from openpyxl import load_workbook

    return {sheet.title: [one.bounds for one in sheet.merged_cells.ranges] for sheet in load_workbook(io.BytesIO(content))}


def _fill_down(cells: list[list[str]], merged: Iterable[tuple[int, int, int, int]]) -> bool:
    """Writes a cell that was merged over several rows into each of them; whether there was one below the header."""
    found = False
    for column, first, _, last in merged:
        for row in range(first, min(last, len(cells))):
            cells[row][column - 1] = cells[first - 1][column - 1]
        found |= last > first + 1 and bool(cells[first - 1][column - 1])
    return found


def _matrix_market(content: bytes, where: str) -> list[Table]:
    from scipy.io import mmread

    try:
        found = sp.coo_array(mmread(io.BytesIO(content)))
    except (ValueError, OSError, OverflowError) as error:
        raise DataError(f"{where}: not a Matrix Market file ({error})") from error
    if found.shape[0] != found.shape[1]:
        raise DataError(
            f"{where}: a matrix of {found.shape[0]} × {found.shape[1]}; allowed: a square one, a row and a column a person"
        )
    kept = found.data != 0
    ends = {"source": (found.coords[0][kept] + 1).astype(str), "target": (found.coords[1][kept] + 1).astype(str)}
    remark = f"people of {Path(where).name} are numbered from 1, as Matrix Market does"
    return [_counted(where, found.shape[0], remark), Table(where, pd.DataFrame(ends, dtype=object), role="edges", ends=_ENDS)]


_ENDS = ("source", "target")


def _counted(where: str, count: int, remark: str = "") -> Table:
    """People who are numbered from 1, so that a list with a line for each is in their order."""
    frame = pd.DataFrame({"id": [str(number) for number in range(1, count + 1)]}, dtype=object)
    return Table(where, frame, role="nodes", id="id", ordered=True, remarks=[remark] if remark else [])


def _xml(content: bytes, where: str, start: str) -> list[Table]:
    import networkx as nx
    from defusedxml import ElementTree
    from defusedxml.common import DefusedXmlException

    try:
        root = ElementTree.fromstring(content, forbid_dtd=True)
    except DefusedXmlException as error:
        raise DataError(f"{where}: refused, its XML declares entities or a document type ({type(error).__name__})") from error
    except ElementTree.ParseError as error:
        raise DataError(f"{where}: not whole XML ({error})") from error
    parts = [root] if (xgmml := _tag(root) == "graph") else [one for one in root if _tag(one) == "graph"]
    _require_declared(parts, where)
    if xgmml:
        return _xgmml(root, where)
    held, column = dict[str, _Facts](), "pid" if _tag(root) == "gexf" else "container"
    try:
        if _tag(root) == "gexf":
            for one in root.iter():  # the names of 1.2, of whatever edition, and wherever that is said to lie
                one.tag = f"{{http://www.gexf.net/1.2draft{'/viz' * ('viz}' in str(one.tag))}}}{_tag(one)}"
            graphs = [_without_times(nx.read_gexf(io.BytesIO(ElementTree.tostring(root))))]
        elif "<graphml" in start:
            content = ElementTree.tostring(root) if (held := _unnested(parts)) else content
            named = content.replace(b"<graphml>", b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">', 1)
            named = re.sub(
                rb'attr\.type="(vector_\w+|python::object|u?int\w+|short)"', b'attr.type="string"', named
            )  # of graph-tool
            graphs = list(nx.readwrite.graphml.GraphMLReader()(path=io.BytesIO(named)))
        else:
            said = f"XML that is neither GraphML, GEXF nor XGMML ({_tag(root)})"
            raise DataError(f"{where}: {said}; allowed: one of these, or who is tied to whom as a table source,target")
    except (nx.NetworkXException, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{where}: not a graph that can be read ({' '.join(str(error).split())})") from error
    if not graphs:
        raise DataError(f"{where}: no graph; allowed: one <graph> or more")
    found = []
    for number, (graph, part) in enumerate(zip(graphs, parts, strict=True), 1):
        told = {str(key): cell_text(value) for key, value in graph.graph.items() if not isinstance(value, (Mapping, list))}
        name = part.get("id") or str(number)
        for node in held.keys() & graph.nodes:
            graph.nodes[node].update(held[node])
        people, ties = network_tables(graph, where)
        people = _without_containers(_undrawn(people), ties, column)
        found += [replace(table, graph=name, told=told) for table in (people, ties)]
    return found


def _unnested(graphs: Sequence[Element]) -> dict[str, _Facts]:
    """Moves what lies in graphs of nodes to the graph around; node → which one holds it, and, if it holds some, yEd's title."""
    told: dict[str, _Facts] = {}
    for around, node in [(graph, one) for graph in graphs for one in graph.iter() if _tag(one) == "node"]:
        node.attrib.pop("yfiles.foldertype", "")
        for inner in [one for one in node if _tag(one) == "graph"]:
            node.remove(inner)
            around.extend(moved := [one for one in inner if _tag(one) in ("node", "edge")])
            told |= {str(one.get("id")): {"container": node.get("id")} for one in moved if _tag(one) == "node"}
            if titles := [one.text for one in node.iter() if _tag(one) == "NodeLabel"]:
                told.setdefault(str(node.get("id")), {})["label"] = titles[0]
    return told


def _without_containers(people: Table, ties: Table, column: str) -> Table:
    """Without nodes that hold others, as a column says, and have no tie: it says the title of each that has one of its own."""
    ids, tied = people.ids(str(people.id)), frozenset().union(*(ties.different(end) for end in ties.ends or ()))
    holding = (people.different(column) if column in people.names else frozenset()) & {*ids} - tied
    if not holding:
        return people
    heads = zip(ids, *(people.texts(name) for name in ("label", "name") if name in people.names), strict=True)
    called = {one: next(filter(None, own), one) for one, *own in heads if one in holding}
    called = called if len({*called.values()}) == len(called) else {one: one for one in called}
    found = people.some(np.array([one not in holding for one in ids]))
    frame = found.frame.assign(**{column: [called.get(one, one) for one in found.ids(column)]})
    such = f"{counted(len(called), 'node')} that no tie names, such as {next(iter(called.values()))!r},"
    said = f"{such} hold others and are no people: {column!r} says who lies in which"
    return replace(found, frame=frame, remarks=[*people.remarks, said])


def _without_times(graph: nx.Graph) -> nx.Graph:
    """Without when nodes and ties were there, and how ties are drawn; of a value that changed the last one."""
    for *_, data in graph.edges(data=True):
        data.pop("viz", None)
    for data in (data for part in (graph.nodes(data=True), graph.edges(data=True)) for *_, data in part):
        for key in ("start", "end", "spells", "slices"):
            data.pop(key, None)
        if not data.get("label", True):  # networkx gives a node without a title an empty one
            del data["label"]
        for key, value in data.items():
            if isinstance(value, list) and value and isinstance(value[-1], tuple):
                data[key] = value[-1][0]
    return graph


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _require_declared(parts: Sequence[Element], where: str) -> None:
    """``DataError`` that lists nodes that are there twice, and ends of edges that no node is: other readers would add them."""
    faults = DataFileFaults()
    for number, part in enumerate(parts, 1):
        ids = Counter(str(one.get("id", "")) for one in part.iter() if _tag(one) == "node")
        called = f"graph {part.get('id') or str(number)!r}"
        if not ids:
            faults.note(where, f"{called} has no node; allowed: one or more")
        for node, count in ids.items():
            if count > 1 or not node:
                faults.note(where, f"node {node!r} is {'there twice' if node else 'without an id'}; allowed: each once")
        edges = [one for one in part.iter() if _tag(one) == "edge"]
        for node in dict.fromkeys(str(one.get(side, "")) for one in edges for side in ("source", "target")):
            if node not in ids:
                faults.note(where, f"unknown node {node!r}; allowed: the {len(ids)} nodes of its graph")
    faults.refuse()


_DRAWING = frozenset(
    {"x", "y", "z", "vx", "vy", "fx", "fy", "px", "py", "r", "g", "b", "index", "size", "color", "colour", "shape", "visible",
     "fixed", "style", "labelvisible"}
)  # fmt: skip
_PLACES = frozenset({"viz", "graphics", "position", "shape_type"})
_CHANNEL = re.compile(r"|(25[0-5]|(2[0-4]|1\d|[1-9])?\d)(\.0+)?")  # of a colour
_COLOUR = re.compile(r"#[0-9a-f]{3,8}|(rgba?\()?\d{1,3}(\s*,\s*[\d.]+){2,3}\)?", re.IGNORECASE)


def drawn_columns(table: Table, by_format: bool = False) -> list[str]:
    """Columns that say where and how a program draws people: it placed them by their ties, or coloured them by their class.

    Colours tell it, of which r, g and b are one; a format of drawings, and a place beside something else that is drawn. What
    stands within a record, such as ``attributes.x``, is called as its last part.
    """
    inside, found = dict[str, dict[str, str]](), list[str]()
    for name in table.names:
        front, _, last = name.rpartition(".")
        inside.setdefault(front, {})[last.casefold()] = name
    places = _PLACES if by_format else {"viz"}  # elsewhere a position is one that somebody holds
    for called in inside.values():
        drawn = [name for name in called.values() if re.split("[.:]", name)[0] in places]
        channels = [called[one] for one in "rgb" if one in called]
        coloured = len(channels) == 3 and all(_CHANNEL.fullmatch(cell) for name in channels for cell in table.texts(name))
        drawn += channels if coloured else []
        for name in (called[one] for one in ("color", "colour") if one in called):
            cells = list(filter(None, table.texts(name)))
            drawn += [name] if cells and all(map(_COLOUR.fullmatch, cells)) else []
        beside = [name for one, name in called.items() if one in _DRAWING and name not in drawn]
        placed = {"x", "y"} <= called.keys() and (drawn or (by_format and len(beside) > 2))
        found += drawn + (beside if placed else [])
    return found


def _undrawn(table: Table) -> Table:
    """Without what a format says of a drawing. A remark names it."""
    drawn = drawn_columns(table, by_format=True)
    said = f"where and how {table.title} draws people is not read ({', '.join(drawn)})"
    remarks = [*table.remarks, *([said] if drawn else [])]
    return replace(table, frame=table.frame.drop(columns=drawn), remarks=remarks, undrawn=tuple(drawn))


def _networkx(read: Callable[[ModuleType], nx.Graph], where: str, what: str) -> list[Table]:
    """The tables of what networkx reads. read: networkx → a graph; what: it should be, for an error."""
    import networkx as nx

    try:
        people, ties = network_tables(read(nx), where)
        return [_undrawn(people), ties]
    except (nx.NetworkXException, ValueError, KeyError, TypeError, AttributeError, IndexError, StopIteration, RecursionError,
            SyntaxError) as error:  # fmt: skip
        raise DataError(f"{where}: not {what} that can be read ({' '.join(str(error).split())})") from error


def _gml(text: str, where: str) -> list[Table]:
    several = re.search(r"^\s*multigraph\s", text, re.MULTILINE)
    many = text if several else re.sub(r"(\bgraph\s*\[)", r"\1 multigraph 1 ", text, count=1)
    many = re.sub(r"^(\s*\w+\s+)([+-]?(?:nan|inf))\s*$", r'\1"\2"', many, flags=re.MULTILINE | re.IGNORECASE)  # of igraph

    def read(nx: ModuleType) -> nx.Graph:
        graph = nx.parse_gml(many.splitlines(), label="id")
        titles = [str(data.get("label", "")).strip() for _, data in graph.nodes(data=True)]
        if all(titles) and len(set(titles)) == len(titles):  # in GML the label is a node's name
            for _, data in graph.nodes(data=True):
                del data["label"]
            graph = nx.relabel_nodes(graph, dict(zip(graph.nodes, titles, strict=True)))
        return graph

    return _networkx(read, where, "GML")


def _pajek(text: str, where: str, ending: str) -> list[Table]:
    """A network, and partitions of its people, which have a line for each in their order."""
    pieces = re.split(r"^\*(?=network|partition|vector)", text, flags=re.MULTILINE | re.IGNORECASE)
    found = []
    for piece in filter(str.strip, pieces):
        head, *lines = piece.splitlines()
        kind = head.lstrip("*").split()[0].casefold()
        if kind in ("partition", "vector") or ending in (".clu", ".vec"):
            name = head.partition(" ")[2].strip() if kind in ("partition", "vector") else Path(where).name.split(".")[0]
            cells = [line.strip() for line in lines if line.strip() and not line.startswith("*")]
            found.append(Table(where, pd.DataFrame({name or "partition": cells}, dtype=object)))
        else:
            network = lines if kind == "network" else piece.splitlines()
            found += _pajek_network(network, where)
    return found


def _pajek_network(lines: Sequence[str], where: str) -> list[Table]:
    """``*Vertices N``, names of some, and sections of ties: pairs, lists, or a matrix; not where nodes were drawn."""
    section, kind, several, directed, drawn = "", "", False, False, False
    n, rows, names, ties = 0, 0, dict[int, str](), list[tuple[int, int, str, str]]()
    for line in (line.strip() for line in lines if not line.startswith("%")):
        cells = line.split()
        try:
            if begun := re.match(r"\*(\w+)\s*(:\s*\d+)?\s*(.*)", line):
                section, kind, several = begun[1].casefold(), begun[3].strip('" ') or begun[2] or "", several or bool(begun[2])
                directed |= section.startswith("arc")
                if section == "vertices":
                    n, *first = map(int, begun[3].split())
                    if first and first[0] != n:
                        both = f"{first[0]:,} and {n - first[0]:,} nodes of two kinds"
                        raise DataError(f"{where}: a network of two modes, {both}; allowed: ties between people")
            elif section == "vertices" and cells:
                _, quoted, bare, more = re.match(r'(\d+)(?:\s+(?:"([^"]*)"|(\S+)))?(.*)', line).groups("")  # type: ignore[union-attr]
                drawn |= bool(more.strip())
                names[int(cells[0])] = quoted.strip() or bare or cells[0]
            elif section == "matrix" and cells:
                rows += 1
                ties += [(rows, place, kind, cell) for place, cell in enumerate(cells, 1) if float(cell)]
            elif cells:
                one, *others = map(int, cells if section.endswith("list") else cells[:2])
                weight = "" if section.endswith("list") else next(iter(cells[2:]), "")
                ties += [(one, other, kind, weight) for other in others]
        except (ValueError, AttributeError) as error:
            raise DataError(f"{where}: not a Pajek network that can be read ({line[:60]!r})") from error
    if strange := [one for tie in ties for one in tie[:2] if not 1 <= one <= n] or [one for one in names if not 1 <= one <= n]:
        raise DataError(f"{where}: names node {strange[0]}; allowed: 1 … {n}, as *Vertices says")
    called = [names.get(number, str(number)) for number in range(1, n + 1)]
    ids = called if len(set(called)) == n else [str(number) for number in range(1, n + 1)]
    cells_of = {"id": ids} | ({} if ids is called else {"name": called})
    rows_of = [(ids[a - 1], ids[b - 1], of, weight) for a, b, of, weight in ties]
    tied = pd.DataFrame(rows_of, columns=["source", "target", "kind", "weight"], dtype=object)
    unknown = [*(["kind"] if not several else []), *(["weight"] if not tied["weight"].any() else [])]
    remarks = ["the direction of ties is not used"] if directed else []
    said = [f"where and how {Path(where).name} draws people is not read"] if drawn else []
    return [
        Table(where, pd.DataFrame(cells_of, dtype=object), role="nodes", id="id", ordered=True, remarks=said),
        Table(where, tied.drop(columns=unknown), role="edges", ends=_ENDS, remarks=remarks),
    ]


def _gdf(text: str, where: str, faults: DataFileFaults) -> list[Table]:
    """``nodedef>`` and ``edgedef>``, each a table whose header says a type behind each name."""
    tables, line = list[Table](), 0
    text = re.sub(r"(?<=,)'([^'\n]*)'(?=[,\r\n])", r'"\1"', text)  # of a colour
    for part in re.split(r"^edgedef>", text, maxsplit=1, flags=re.MULTILINE | re.IGNORECASE):
        head, *body = [(line + number, cells) for number, cells in _lines_of(part[part.find(">") + 1 :], ",")]
        line += part.count("\n")
        names = [cell.split()[0].strip("'\"") for cell in head[1]]
        table = _undrawn(_of_rows([(head[0], names), *body], where, faults))
        tables.append(
            replace(table, role="edges", ends=(names[0], names[1])) if tables else replace(table, role="nodes", id=names[0])
        )
    return tables


def _tgf(text: str, where: str) -> list[Table]:
    """``ID NAME`` for each person, a line ``#``, and ``ONE TWO KIND`` for each tie."""
    above, _, below = text.replace("\r\n", "\n").partition("\n#")
    people = [[*line.split(None, 1), "", ""][:2] for line in above.splitlines() if line.strip()]
    ties = [[*line.split(None, 2), "", "", ""][:3] for line in below.splitlines() if line.strip()]
    tied = pd.DataFrame(ties, columns=[*_ENDS, "kind"], dtype=object)
    known = Table(where, pd.DataFrame(people, columns=["id", "name"], dtype=object), role="nodes", id="id")
    return [known, Table(where, tied, np.arange(len(ties)) + len(people) + 2, role="edges", ends=_ENDS)]


def _konect(text: str, where: str, name: str, faults: DataFileFaults) -> list[Table]:
    """``out.*`` of KONECT, ties with weights and times between people who are numbered from 1; ``ent.*``, a line for each."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    head = [line[1:].split() for _, line in lines if line.startswith("%")]
    body = [(number, line) for number, line in lines if not line.startswith("%")]
    if name.startswith("ent."):
        named = head[0][1:] if head and head[0][:1] == ["ent"] else [name.rpartition(".")[2]]
        rows = [(number, line.split(None, len(named) - 1) if len(named) > 1 else [line]) for number, line in body]
        table = _of_rows([(0, named), *rows], where, faults)
        frame = table.frame.assign(**{" id": [str(place) for place in range(1, len(table.frame) + 1)]})
        return [replace(table, frame=frame, role="nodes", id=" id", headed=True)]
    if head[0][0] == "bip":
        raise DataError(f"{where}: ties between two kinds of nodes, each numbered from 1; allowed: ties between people")
    rows = [(number, line.split()) for number, line in body]
    columns = ["source", "target", "weight", "time"][: max((len(cells) for _, cells in rows), default=2)]
    tied = replace(_of_rows([(0, columns), *rows], where, faults), headed=True, role="edges", ends=_ENDS)
    said = [int(one) for one in (head[1] if len(head) > 1 else []) if one.isdigit()]
    ends = [int(one) for side in _ENDS for one in tied.ids(side) if one.isdigit()]
    return [_counted(where, max([*said[1:3], *ends])), tied]


def _dimacs(text: str, where: str) -> list[Table]:
    """``p edge N M``, then ``e ONE TWO`` for each tie."""
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
    count = next(int(cells[2]) for _, cells in lines if cells[:1] == ["p"])
    ties = [(number, [*cells[1:4], ""][:3]) for number, cells in lines if cells[:1] in (["e"], ["a"])]
    if bad := next((number for number, cells in ties if not cells[1]), None):
        raise DataError(f"{where}:{bad}: not a tie; allowed: e ONE TWO")
    frame = pd.DataFrame([cells for _, cells in ties], columns=[*_ENDS, "value"], dtype=object)
    frame = frame if frame["value"].any() else frame.drop(columns="value")
    tied = Table(where, frame, np.array([number for number, _ in ties], dtype=np.int64), role="edges", ends=_ENDS)
    return [_counted(where, count), tied]


def _sif_or_lgl(text: str, where: str, ending: str) -> list[Table]:
    """``ONE KIND TWO THREE …`` of Cytoscape; or ``# ONE``, and below it a line for each TWO. Some have no tie."""
    one, people, ties, lines = "", dict[str, None](), list[list[str]](), list[int]()
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split("\t" if ending == ".sif" and "\t" in text else None)]
        if ending == ".sif" and cells:
            one, kind, *others = *cells, *([""] if len(cells) == 1 else [])
        elif line.startswith("#"):
            one, kind, others = line[1:].strip(), "", []
        else:
            kind, others = "", cells[:1]
        if any(cells) and (not one or (kind and not others)):
            raise DataError(f"{where}:{number}: no tie; allowed: {'ONE KIND TWO' if kind else '# ONE, and then TWO'}")
        people |= dict.fromkeys([one, *others] if any(cells) else [])
        ties += [[one, other, kind] for other in others]
        lines += [number] * len(others)
    tied = pd.DataFrame(ties, columns=["source", "target", "kind"], dtype=object)
    tied = tied.drop(columns=[] if ending == ".sif" else ["kind"])
    known = Table(where, pd.DataFrame({"id": list(people)}, dtype=object), role="nodes", id="id")
    return [known, Table(where, tied, np.array(lines, dtype=np.int64), role="edges", ends=_ENDS)]


def _metis(text: str, where: str) -> list[Table]:
    """``N M [FORMAT [WEIGHTS]]``, and a line for each of N people with those that they are tied to, from 1; none of a table."""
    if not re.match(r"(%.*\n)*[ \t]*\d+[ \t]+\d+([ \t]+\d+){0,2}[ \t]*\r?$", text, re.MULTILINE):
        return []
    (n, count, *form), *lines = [line.split() for line in text.splitlines() if not line.startswith("%")]
    size, heavy, weighted = map(int, (form[0] if form else "0").zfill(3)[-3:])
    skipped = size + heavy * int(form[1] if len(form) > 1 else 1)
    ties = [[str(row), other] for row, cells in enumerate(lines[: int(n)], 1) for other in cells[skipped :: 1 + weighted]]
    different = len({frozenset(pair) for pair in ties})
    if len(lines) < int(n) or any(lines[int(n) :]) or different != int(count):
        if {len(cells) for cells in lines if cells} == {2 + len(form)}:
            return []  # as wide as its first line everywhere: a list of ties
        said = f"its first line says {n} people and {count} ties, found {len(lines)} lines and {different} ties"
        raise DataError(f"{where}: {said}; allowed: METIS, with a line for each person, or a table source,target")
    tied = Table(where, pd.DataFrame(ties, columns=list(_ENDS), dtype=object), role="edges", ends=_ENDS)
    return [_counted(where, int(n)), tied]


def _ucinet(text: str, where: str) -> list[Table]:
    """A DL file: ``n=``, a format (a full matrix, or a list of pairs or of neighbours), labels in front or among data, data."""
    begun = re.match(r"(.*?)\bdata\s*:(.*)", text, re.DOTALL | re.IGNORECASE)
    head = re.sub(r"\s*=\s*", "=", begun[1]) if begun else text
    count = re.search(r"\bn=(\d+)", head, re.IGNORECASE)
    form = re.search(r"format=(\w+)", head, re.IGNORECASE)
    kind = form[1].casefold() if form else "fullmatrix"
    full, embedded = kind in ("fullmatrix", "fm"), bool(re.search("labels embedded", head, re.IGNORECASE))
    known = full or kind in ("edgelist1", "el1", "nodelist1", "nl1")
    if begun is None or count is None or not known or re.search(r"\bn(m=(?!1\b)|[rc]=)", head, re.IGNORECASE):
        allowed = "one square dl n=…, format fullmatrix, edgelist1 or nodelist1, and data:"
        raise DataError(f"{where}: a UCINET file of another form ({' '.join(head.split())[:60]}); allowed: {allowed}")
    n = int(count[1])
    listed = re.search(r"labels:(.*?)(\w+\s+labels|$)", head, re.DOTALL | re.IGNORECASE)
    word = r'"[^"]*"|\'[^\']*\'|[^\s,]+'
    names = [one.strip("\"'") for one in re.findall(word, listed[1])] if listed else [str(k) for k in range(1, n + 1)]
    rows = [[one.strip("\"'") for one in re.findall(word, line)] for line in begun[2].splitlines() if line.strip()]
    try:
        if full:
            names, rows = (rows[0], [row[1:] for row in rows[1:]]) if embedded else (names, rows)
            at = np.argwhere(np.array([float(cell) for row in rows for cell in row]).reshape(n, n) != 0)
            ties = [(names[one], names[two]) for one, two in at.tolist()]
        else:
            ties = [(row[0], other) for row in rows for other in (row[1:] if kind.startswith("n") else row[1:2])]
            if embedded:
                names = list(dict.fromkeys(one for row in rows for one in (row if kind.startswith("n") else row[:2])))
            else:
                ties = [(names[int(one) - 1], names[int(two) - 1]) for one, two in ties]
    except (ValueError, IndexError) as error:
        raise DataError(f"{where}: not a UCINET file that can be read ({error})") from error
    if len(set(names)) != n and (full or not embedded):
        raise DataError(f"{where}: {len(set(names))} different labels; allowed: {n}, as n says")
    people = replace(_counted(where, len(names)), frame=pd.DataFrame({"id": names}, dtype=object), ordered=not embedded or full)
    tied = Table(where, pd.DataFrame(ties, columns=list(_ENDS), dtype=object), role="edges", ends=_ENDS)
    if (some := len({*names})) == n:
        return [people, tied]
    said = f"{tied.title} names {some} of {n} people: who has no tie is known where a table of people is beside it"
    return [replace(tied, remarks=[said])]


def _json(text: str, where: str) -> list[Table]:
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise DataError(f"{where}: JSON that is nested too deeply") from error
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith("{"):
            raise DataError(f"{where}: not JSON ({error})") from error
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                found += [json.loads(line)] if line.strip() else []
            except (ValueError, RecursionError) as wrong:
                raise DataError(f"{where}:{number}: not JSON ({wrong})") from wrong
    every = found.get("vertices", [found]) if isinstance(found, dict) else found
    if isinstance(every, list) and any(isinstance(one, dict) and {"id", "label", "outE"} <= one.keys() for one in every):
        return _graphson(every, where)
    first = found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}
    if first.keys() & {"CXVersion", "numberVerification"}:
        try:
            return _cx(found, where)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{where}: not a CX network that can be read ({type(error).__name__}: {error})") from error
    reply, paged, unread = replies.plain(found)
    if isinstance(reply, list):
        return [replace(one, paged=paged, unused=unread) for one in _records(reply, where)]
    if paged and isinstance(reply, Mapping):
        by_kind = {kind: own for kind, own in reply.items() if isinstance(own, list) and own}
        read = [one for kind, own in by_kind.items() for one in _records(own, f"{where}/{kind}")]
        return [replace(one, paged=True, unused=unread) for one in read]
    if found.get("type") in ("FeatureCollection", "Topology"):
        raise DataError(f"{where}: a map (GeoJSON), which names no ties; allowed: pairs of neighbours as a table source,target")
    if isinstance(whole := found.get("graph"), Mapping) and {"nodes", "edges", "vertices"} & whole.keys():  # JSON Graph Format
        found = dict(whole)
    if isinstance(named := found.get("nodes"), Mapping) and all(isinstance(one, Mapping) for one in named.values()):
        found["nodes"] = [{"id": key, **one} for key, one in named.items()]
    if isinstance(found.get("adjacency"), list) and isinstance(found.get("nodes"), list):
        return _networkx(lambda nx: nx.adjacency_graph(found), where, "adjacency data of networkx")
    if isinstance(inside := found.get("elements"), Mapping):  # as Cytoscape exports
        lists = {key: part for key, part in inside.items() if isinstance(part, list)}
        found = {key: [{**one.get("data", one), "position": one.get("position")} for one in own] for key, own in lists.items()}
    links = next((key for key in ("links", "edges", "relationships", "connections") if isinstance(found.get(key), list)), None)
    people = next((key for key in ("nodes", "vertices", "elements") if isinstance(found.get(key), list)), None)
    if links and people:
        nodes, tied = _node_link(found[people], found[links], where)
        return [_without_containers(nodes, tied, "parent") if isinstance(inside, Mapping) else nodes, tied]
    values = list(found.values())
    if found.keys() == {"columns", "index", "data"}:  # as pandas splits a table
        return [frame_table(pd.DataFrame(found["data"], columns=found["columns"]), where)]
    inside = [one for key, one in found.items() if isinstance(one, (list, Mapping)) and one and key != "schema"]
    beside = "schema" in found or not all(isinstance(one, (list, Mapping)) for one in values)
    if len(inside) == 1 and beside and (isinstance(inside[0], list) or len(inside[0]) > 1):
        return _json(json.dumps(inside[0]), where)  # what a program says beside is no data
    lists = {key: one for key, one in found.items() if isinstance(one, list) and one}
    tables = {key: one for key, one in lists.items() if all(isinstance(row, Mapping) for row in one)}
    others = [key for key in found if key not in tables]  # what a service says beside them
    if len(tables) > bool(others) and lists == tables:
        read = [frame_table(pd.json_normalize(rows), f"{where}/{key}") for key, rows in tables.items()]
        read[0].unused += tuple(f"{key!r} of {Path(where).name}" for key in others)
        return read
    if values and all(isinstance(one, Mapping) and one and list(one) == [str(k) for k in range(len(one))] for one in values):
        return [frame_table(pd.DataFrame({key: list(one.values()) for key, one in found.items()}), where)]
    if values and all(isinstance(value, list) for value in values):
        if len({len(value) for value in values}) == 1 and len(values) < len(values[0]) and len(values[0]) > 1:
            return [frame_table(pd.DataFrame(found), where)]
        return [_bags(found, where)]
    if values and all(isinstance(one, Mapping) and one.keys() <= found.keys() for one in values) and any(values):
        return [_bags({key: list(one) for key, one in found.items()}, where)]
    if values and all(isinstance(value, Mapping) for value in values):
        listed = {key: own for key, own in found.items() if all(isinstance(one, Mapping) for one in own.values())}
        kinds = {key: own for key, own in listed.items() if len(own) > len(found)}
        if kinds and found.keys().isdisjoint(key for own in kinds.values() for one in own.values() for key in one):  # Firebase
            read = [one for key, own in kinds.items() for one in _json(json.dumps(own), f"{where}/{key}")]
            read[0].unused += tuple(f"{key} of {Path(where).name}" for key in found if key not in kinds)
            return read
        remarks, unused = list[str](), tuple[str, ...]()
        if _are_columns(values):
            remarks.append(f"{Path(where).name} was read as pandas writes tables, column → row → value")
            found = {row: {name: own[row] for name, own in found.items()} for row in values[0]}
        frame = pd.DataFrame.from_dict(found, orient="index")
        for name, cells in frame.items():  # a mapping may name others, each with true, or with what is said of it
            named = [(key, said) for one in cells if isinstance(one, Mapping) for key, said in one.items()]
            if 2 * sum(key in found for key, _ in named) > len(named):
                frame[name] = [", ".join(key for key in one if one[key]) if isinstance(one, Mapping) else one for one in cells]
                unused += () if all(isinstance(said, bool) for _, said in named) else (f"what {name!r} says beside ids",)
        frame.insert(0, "id" if "id" not in frame else "key", list(found))
        return [frame_table(frame.reset_index(drop=True), where, unused=unused, remarks=remarks)]
    if values and not any(isinstance(value, (list, Mapping)) for value in values):
        names = ("id", "label" if "label" in Path(where).stem or "class" in Path(where).stem else "value")
        return [frame_table(pd.DataFrame({names[0]: list(found), names[1]: values}, dtype=object), where)]
    raise DataError(
        f"{where}: JSON of an unknown form ({', '.join(map(repr, list(found)[:4]))}, …); allowed: node-link, records, id → list"
    )


def _are_columns(values: Sequence[Mapping[str, Any]]) -> bool:
    """Whether mappings name the same rows, more than they are, and hold texts alone or numbers alone, some texts."""
    if len({tuple(one) for one in values}) > 1 or len(values) >= len(values[0]):
        return False
    kinds = [{isinstance(cell, str) or type(cell) for cell in one.values() if cell is not None} for one in values]
    return {True} in kinds and all(own <= {int, float} or own in ({True}, {bool}) for own in kinds)


def _cx(found: list[_Facts], where: str) -> list[Table]:
    """CX of Cytoscape, whose attributes stand apart from nodes, and CX2, where they may have short names and usual values."""
    aspects: dict[str, list[_Facts]] = {}
    for key, own in ((key, own) for one in found for key, own in one.items() if isinstance(own, list)):
        aspects.setdefault(key, []).extend(own)
    (declared,) = aspects.get("attributeDeclarations") or [{}]
    parts = []
    for kind, apart in (("nodes", "nodeAttributes"), ("edges", "edgeAttributes")):
        known, told = declared.get(kind, {}), dict[object, dict[str, object]]()
        usual = {name: said["v"] for name, said in known.items() if "v" in said}
        short = {said["a"]: name for name, said in known.items() if "a" in said}
        for one in aspects.get(apart, ()):
            told.setdefault(one["po"], {})[one["n"]] = one["v"]
        rows = []
        for one in aspects.get(kind, ()):
            number = one.get("@id", one.get("id"))
            facts = {**usual, **{short.get(key, key): value for key, value in one.get("v", {}).items()}, **told.get(number, {})}
            ends = {"source": one["s"], "target": one["t"], "kind": one.get("i")} if kind == "edges" else {"id": number}
            drawn = {"position": one.get("x", "apart" if aspects.get("cartesianLayout") else None)} if kind == "nodes" else {}
            rows.append({**facts, **ends, **drawn, **({"name": one["n"]} if "n" in one else {})})
        parts.append(rows)
    nodes, edges = parts
    return _node_link(*_by_title(nodes, edges, "name"), where)


def _by_title(nodes: list[_Facts], links: list[_Facts], title: str) -> tuple[list[_Facts], list[_Facts]]:
    """Nodes, and the links between them, called by their titles where all have one of their own."""
    titles = {one["id"]: str(one.get(title) or "").strip() for one in nodes}
    if not all(titles.values()) or len(set(titles.values())) < len(nodes):
        return nodes, links
    nodes = [{**{key: value for key, value in one.items() if key != title}, "id": titles[one["id"]]} for one in nodes]
    return nodes, [{**one, **{side: titles.get(one[side], one[side]) for side in _ENDS}} for one in links]


def _xgmml(root: Element, where: str) -> list[Table]:
    """XGMML of Cytoscape: GML's words as XML, and what is known of a node in elements ``att``."""
    parts: dict[str, list[_Facts]] = {"node": [], "edge": []}
    for one in (one for one in root.iter() if _tag(one) in parts and (one.get("id") or one.get("source"))):
        facts = {str(att.get("name")): att.get("value") for att in one if _tag(att) == "att"}
        drawn = {"graphics": "here"} if any(_tag(inner) == "graphics" for inner in one) and _tag(one) == "node" else {}
        parts[_tag(one)].append({**facts, **one.attrib, **drawn})
    return _node_link(*_by_title(parts["node"], parts["edge"], "label"), where)


def _node_link(nodes: list[_Facts], links: list[_Facts], where: str) -> list[Table]:
    for part, what in ((nodes, "nodes"), (links, "links")):
        if not all(isinstance(one, Mapping) for one in part):
            raise DataError(f"{where}: its {what} are no mappings; allowed: node-link, as networkx and d3 write it")
    people = pd.json_normalize(nodes)
    people = people if len(people.columns) else pd.DataFrame(index=range(len(nodes)))
    titled = ("label",) if len({str(one.get("label")) for one in nodes}) == len(nodes) else ()  # as Kumu names elements
    key = next((name for name in ("id", "_id", "key", "name", *titled) if name in people and people[name].notna().all()), None)
    if key is None:
        people.insert(0, "id", range(len(people)))
        key = "id"
    nodes_table = _undrawn(frame_table(people.dropna(axis=1, how="all"), where, role="nodes", id=key))
    ties = pd.json_normalize(links) if links else pd.DataFrame({"source": [], "target": []})
    pair = next(iter(sides_of([str(name) for name in ties.columns], SIDES)), None)
    if pair is None:
        raise DataError(f"{where}: its links name no source and target; found: {', '.join(map(str, ties.columns))}")
    tied = frame_table(ties, where, role="edges", ends=pair)
    ends, names = {*tied.ids(pair[0]), *tied.ids(pair[1])}, nodes_table.ids(key)
    if ends and ends.isdisjoint(names) and all(one.isdigit() and int(one) < len(names) for one in ends):
        frame = tied.frame.assign(**{side: [names[int(one)] for one in tied.ids(side)] for side in pair})  # d3 before version 4
        tied = replace(tied, frame=frame, remarks=["ends of links are places in the list of nodes, from 0"])
    return [nodes_table, tied]


def _graphson(found: list[Any], where: str) -> list[Table]:
    """GraphSON of TinkerPop, a vertex a line: values may say their type, and ties stand at the vertex that they leave."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return plain(value["@value"]) if "@type" in value else {key: plain(one) for key, one in value.items()}
        return [plain(one) for one in value] if isinstance(value, list) else value

    people, ties = [], []
    for one in plain(found):
        if several := [key for key, own in one.get("properties", {}).items() if len(own) != 1]:
            said = f"property {several[0]!r} of vertex {one.get('id')!r} has {len(one['properties'][several[0]])} values"
            raise DataError(f"{where}: {said}; allowed: one value for each property, or a table of people")
        facts = {key: own[0]["value"] for key, own in one.get("properties", {}).items()}
        people.append({"id": one["id"], "kind": one.get("label", ""), **facts})
        for kind, own in one.get("outE", {}).items():
            ties += [{"source": one["id"], "target": tie["inV"], "kind": kind, **tie.get("properties", {})} for tie in own]
    tied = pd.DataFrame(ties) if ties else pd.DataFrame({"source": [], "target": []})
    nodes = frame_table(pd.DataFrame(people), where, role="nodes", id="id")
    return [nodes, frame_table(tied, where, role="edges", ends=_ENDS)]


def _records(found: list[Any], where: str) -> list[Table]:
    if not found or not all(isinstance(one, (Mapping, list)) for one in found):
        raise DataError(
            f"{where}: a JSON list of {type(found[0]).__name__ if found else 'nothing'}; allowed: a list of records"
        )
    if all(isinstance(one, list) for one in found):
        return [_of_rows([(k, [cell_text(v) for v in row]) for k, row in enumerate(found, 1)], where, DataFileFaults())]
    if not all(isinstance(one, Mapping) for one in found):
        raise DataError(f"{where}: a JSON list of records and of other things; allowed: records alone")
    if all({"user", "text", "ts"} <= one.keys() or one.get("type") == "message" for one in found):
        raise DataError(f"{where}: messages of a chat, which name no ties; {_ANSWERS}")
    kinds = [str(one.get("type", "")) for one in found]
    if set(kinds) == {"node", "relationship"}:  # as Neo4j exports JSON
        parts = []
        for kind in ("node", "relationship"):
            frame = pd.json_normalize([one for one, said in zip(found, kinds, strict=True) if said == kind])
            frame = frame.drop(columns=["type"]).rename(columns={"labels": "_labels", "label": "_type"})  # as in its tables
            frame = frame.rename(columns=lambda name: str(name).removeprefix("properties."))
            if kind == "relationship":
                kept = [name for name in frame.columns if not re.match(r"(start|end)\.(?!id$)", name)]
                ends = ("start.id", "end.id") if "start.id" in frame else ("start", "end")
                parts.append(frame_table(frame[kept], where, role="edges", ends=ends))
                continue
            if "_labels" in frame:
                frame["_labels"] = [":".join(own) if isinstance(own, list) else "" for own in frame["_labels"]]
            parts.append(frame_table(frame, where, role="nodes", id="id"))
        return parts
    return [frame_table(pd.json_normalize(found), where)]


def _bags(found: Mapping[str, list[Any]], where: str) -> Table:
    """A table id → what each has: a column for each thing."""
    things: dict[str, int] = {}
    indptr, indices = [0], []
    for own in found.values():
        indices += sorted({things.setdefault(cell_text(one), len(things)) for one in own})
        indptr.append(len(indices))
    order = sorted(things, key=lambda one: (0, int(one), "") if one.isdigit() else (1, 0, one))
    rank = {things[one]: place for place, one in enumerate(order)}
    columns = np.array([rank[one] for one in indices], dtype=np.int64)
    matrix = sp.csr_array((np.ones(columns.size, np.float32), columns, np.array(indptr)), shape=(len(found), len(things)))
    frame = pd.DataFrame({"id": [str(key).strip() for key in found]}, dtype=object)
    called = tuple(f"feature {one}" for one in order)
    return Table(where, frame, id="id", role="features", matrix=matrix, called=called)


# What is in memory already


def cell_text(value: object) -> str:
    """A value as text; "" where it is missing."""
    if isinstance(value, str):
        return value.strip()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(map(cell_text, value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value == value.normalize() else str(value)
    return str(value).strip()


def _texts(values: pd.Series[Any], where: str) -> list[str]:
    if values.dtype.kind == "f" and is_id_name(str(values.name)) and (values.abs() >= _LARGEST_WHOLE).any():
        found = f"column {values.name!r} holds numbers such as {values.abs().max():.0f} as floats, which lose digits"
        raise DataError(f"{where}: {found}; allowed: text or whole numbers (dtype str or Int64)")
    return [cell_text(value) for value in values.astype(object)]


def _names_others(name: str, lists: Sequence[Any], beside: Mapping[str, pd.Series[Any]]) -> bool:
    """Whether lists of one length name people whom a column beside names, too, so that no place of them is a column."""
    if not all(isinstance(one, (str, int, np.integer)) for own in lists for one in own):
        return False
    ids, known = {cell_text(one) for own in lists for one in own}, (set(map(cell_text, own)) - {""} for own in beside.values())
    if any(name in pair for pair in sides_of([name, *beside], SIDES)):
        return True
    return any(own_words.names_people(*pair) for own in known for pair in ((ids, own), (own, ids)))


def frame_table(frame: pd.DataFrame, where: str, **said: Any) -> Table:
    """A pandas table, its index among the columns where that is no plain count of rows.

    Args:
        frame: any columns; a column of vectors of one length becomes columns, unless they name people.
        where: what it is called in a message.
        said: further attributes of ``Table``.

    Raises:
        DataError: two columns have one name, or ids are floats that lost digits.
    """
    plain = (
        isinstance(frame.index, pd.RangeIndex) and frame.index.name is None and frame.index.start == 0 and frame.index.step == 1
    )
    if isinstance(frame.index, pd.MultiIndex) or isinstance(frame.columns, pd.MultiIndex):
        raise DataError(f"{where}: has an index of several levels; allowed: one level (reset_index())")
    columns = {str(name): frame.iloc[:, place] for place, name in enumerate(frame.columns)}
    if len(columns) < len(frame.columns):
        _named([str(name) for name in frame.columns], where)
    cells: dict[str, list[str]] = {}
    if not plain:
        cells[str(frame.index.name or "")] = [cell_text(value) for value in frame.index]
    lists = {name: list(values) for name, values in columns.items() if len(values) and values.dtype == object}
    lists = {n: own for n, own in lists.items() if all(isinstance(v, (list, tuple, np.ndarray)) for v in own)}
    lists = {n: own for n, own in lists.items() if not any(isinstance(part, Mapping) for v in own for part in v[:1])}
    others = {name: values for name, values in columns.items() if name not in lists} if lists else {}
    for name, values in columns.items():
        own = lists.get(name, [])
        if len({len(one) for one in own}) == 1 and not _names_others(name, own, others):
            cells |= {f"{name} {place}": [cell_text(one[place]) for one in own] for place in range(len(own[0]))}
            continue
        cells[name] = _texts(values, where)
    found = pd.DataFrame(cells, dtype=object, index=range(len(frame)))
    numbered = bool(len(columns)) and all(isinstance(name, (int, np.integer)) for name in frame.columns)
    if plain and "role" not in said:
        return Table(where, found, headed=not numbered, implied="", **said)
    return Table(where, found, headed=not numbered, **said)


def network_tables(graph: nx.Graph, where: str) -> list[Table]:
    """The two tables of a NetworkX graph: attributes of nodes are columns, an attribute ``x`` of vectors several.

    Raises:
        DataError: some nodes have the vector and others not, or its lengths differ.
    """
    rows = [{str(key): value for key, value in data.items()} for _, data in graph.nodes(data=True)]
    ids = [cell_text(node) for node in graph.nodes]
    if len(set(ids)) < len(ids):
        raise DataError(f"{where}: two nodes are called the same when written as text; allowed: each once")
    names = dict.fromkeys(key for row in rows for key in row)
    matrix, called = None, tuple[str, ...]()
    vectors = [row["x"] for row in rows if row.get("x") is not None]
    if vectors and not isinstance(vectors[0], (str, bytes, int, float, np.number)):
        if len(vectors) < len(rows):
            lacking = next(node for node, row in zip(ids, rows, strict=True) if row.get("x") is None)
            raise DataError(f"{where}: node {lacking!r} has no attribute 'x', others have; allowed: all nodes or none")
        try:
            stacked = np.stack([np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in vectors])
        except (ValueError, TypeError) as error:
            raise DataError(f"{where}: the nodes' attributes 'x' are no numbers of one length ({error})") from error
        matrix, called = sp.csr_array(stacked), tuple(f"column {place}" for place in range(stacked.shape[1]))
        names.pop("x")
    key = "id" if "id" not in names else "node"
    cells = {key: ids} | {name: [cell_text(row.get(name)) for row in rows] for name in names}
    people = Table(
        where, pd.DataFrame(cells, dtype=object, index=range(len(ids))), role="nodes", id=key, matrix=matrix, called=called
    )
    ties = [(one, two, data) for one, two, data in graph.edges(data=True)]
    more = dict.fromkeys(str(key) for *_, data in ties for key in data)
    ends = {"source": [cell_text(one) for one, _, _ in ties], "target": [cell_text(two) for _, two, _ in ties]}
    ends |= {name if name not in ends else f"{name} ": [cell_text(data.get(name)) for *_, data in ties] for name in more}
    remarks = ["the direction of ties is not used"] if graph.is_directed() else []
    frame = pd.DataFrame(ends, dtype=object, index=range(len(ties)))
    return [people, Table(where, frame, role="edges", ends=("source", "target"), remarks=remarks)]


def _array_tables(
    one: np.ndarray,
    two: np.ndarray,
    features: Any,
    labels: Sequence[object] | None,
    where: str,
    *,
    label: str = "label",
    masks: tuple[GraphMasks, ...] = (),
    unused: tuple[str, ...] = (),
) -> list[Table]:
    """The two tables of a graph in arrays, whose people are their rows, from 0.

    Args:
        one, two: integers [m], the ends of ties.
        features: [n, d], dense or sparse.
        labels: n of them; None: nobody's is known.
        label: what they are called.

    Raises:
        DataError: a feature is not finite, an end is no row, or there are not n labels.
    """
    matrix = sp.csr_array(features if sp.issparse(features) else np.atleast_2d(np.asarray(features, np.float64)))
    n = matrix.shape[0]
    if (labels is not None and len(labels) != n) or n == 0:
        found = f"{n} rows of features for {len(labels or ())} labels"
        raise DataError(f"{where}: {found}; allowed: one of each per node, at least one node")
    with np.errstate(over="ignore"):
        unsound = ~np.isfinite(matrix.data.astype(np.float32))
    for bad in np.flatnonzero(unsound)[:1]:
        row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
        raise DataError(f"{where}: a feature of node {row} is NaN or infinite; allowed: finite numbers")
    for end in (int(end) for side in (one, two) if side.size for end in (side.min(), side.max())):
        if not 0 <= end < n:
            raise DataError(f"{where}: an edge names node {end}; allowed: 0 … {n - 1}")
    ids = np.arange(n).astype(str).astype(object)
    cells: dict[str, Any] = {"id": ids} | ({} if labels is None else {label: [cell_text(value) for value in labels]})
    least = min((value for value in labels or () if isinstance(value, int)), default=0)
    if least < -1:
        raise DataError(f"{where}: the least label is {least}; allowed: 0 or more, or -1 for unknown")
    names = tuple(f"column {place}" for place in range(matrix.shape[1]))
    people = Table(
        where, pd.DataFrame(cells, dtype=object), headed=False, role="nodes", id="id",
        matrix=matrix if names else None, called=names,
        label=None if labels is None else label, masks=masks, unused=unused, numbered=True,
    )  # fmt: skip
    ties = pd.DataFrame({"source": ids[one], "target": ids[two]}, dtype=object)
    return [people, Table(where, ties, role="edges", ends=_ENDS)]


def _npz(content: bytes, where: str) -> list[Table]:
    """The gnn-benchmark layout, or one sparse matrix of scipy: who is tied to whom."""
    members = npz.read_members(content, where, ("format", "shape", "x", "edge_index", "y", *splits.SPLIT_MASKS))
    if "format" in members and "shape" in members:
        try:
            arcs = sp.coo_array(sp.load_npz(io.BytesIO(content)))
        except npz.NPZ_ERRORS as error:
            raise DataError(f"{where}: not a sparse matrix that can be read ({error})") from error
        if arcs.shape[0] != arcs.shape[1]:
            raise DataError(f"{where}: a matrix of {arcs.shape[0]} × {arcs.shape[1]}; allowed: square")
        people, ties = _array_tables(*_ends_of(arcs), sp.csr_array((arcs.shape[0], 0)), None, where, unused=_weights(arcs))
        return [replace(people, ordered=True), ties]
    if "edge_index" in members:
        import torch

        return tensor_tables({key: torch.from_numpy(one) for key, one in members.items() if one.dtype.kind in "iufb"}, where)
    adjacency, attributes, values = npz.read_npz(content, where)
    if values.dtype.kind not in "iubUS":
        raise DataError(f"{where}: labels are of type {values.dtype}; allowed: integers (-1 for unknown) or text")
    arcs, masks = sp.coo_array(adjacency), splits.of_masks(members, where, values.size, whole=False)
    if not np.isfinite(arcs.data).all():
        raise DataError(f"{where}: an edge weight is NaN or infinite; allowed: finite numbers")
    return _array_tables(*_ends_of(arcs), attributes, values.tolist(), where, masks=masks, unused=_weights(arcs))


def _ends_of(arcs: sp.coo_array) -> tuple[np.ndarray, np.ndarray]:
    there = np.asarray(arcs.data) != 0
    return arcs.coords[0][there], arcs.coords[1][there]


def _weights(arcs: sp.coo_array) -> tuple[str, ...]:
    data = np.asarray(arcs.data)
    return (f"edge weights ({(data != 0).sum():,} edges)",) if (data[data != 0] != 1).any() else ()


def parts_of_a_graph(adjacency: Any, features: Any, labels: Any, where: str) -> list[Table]:
    """The tables of ``(adjacency [n, n], features [n, d], labels [n])``, dense or sparse. ``DataError`` for another shape."""
    arcs = sp.coo_array(adjacency)
    if arcs.ndim != 2 or arcs.shape[0] != arcs.shape[1]:
        raise DataError(f"the adjacency has shape {arcs.shape}; allowed: square, dense or sparse")
    words = np.asarray(labels).reshape(-1).tolist()
    return _array_tables(*_ends_of(arcs), features, words, where, unused=_weights(arcs))


def _torch(content: bytes, where: str) -> list[Table]:
    """A plain dictionary of tensors, ``torch.save(data.to_dict(), file)``; nothing is unpickled."""
    import pickle

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a pickle that is refused in the next line
            found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError, AttributeError) as error:
        hint = "write torch.save(data.to_dict(), file)"
        raise DataError(f"{where}: refused, it is not a plain dictionary of tensors; {hint}") from error
    if not isinstance(found, dict):
        raise DataError(f"{where}: holds {type(found).__name__}; allowed: data.to_dict() of a PyG Data")
    return tensor_tables(found, where, label="label")


def tensor_tables(
    found: Mapping[str, Any], where: str, *, label: str = "y", labelled: bool = True, small: bool = False
) -> list[Table]:
    """The tables of a PyG ``Data``: ``x`` [n, d], ``edge_index`` [2, m], ``y`` [n] where ``labelled``, and masks.

    Args:
        found: the members of the data, by name.
        where: names the data in an error.
        label: what ``y`` is called.
        small: whether it is one of many graphs: ``y`` is its label, and it may have no ``x``.

    Raises:
        DataError: a member is missing, or is not of this form.
    """
    import torch

    needed = ("edge_index",) if small else ("x", "edge_index", *(("y",) if labelled else ()))
    tensors = {key: one for key, one in found.items() if isinstance(one, torch.Tensor)}
    if missing := [key for key in needed if key not in tensors]:
        raise DataError(f"{where}: no tensor {', '.join(missing)}; needed: x [n, d], edge_index [2, m], y [n]")
    held = {key: tensors[key].detach().cpu() for key in ("x", "edge_index", "y") if key in tensors}
    for key, one in held.items():
        if one.is_complex() or (key != "x" and str(one.layout) != "torch.strided"):
            raise DataError(f"{where}: {key} is {one.dtype}, {one.layout}; allowed: a dense tensor of real numbers")
    arcs = held["edge_index"]
    if arcs.ndim != 2 or arcs.shape[0] != 2 or arcs.is_floating_point():
        shape = f"shape {tuple(arcs.shape)} and type {arcs.dtype}"
        raise DataError(f"{where}: edge_index has {shape}; allowed: whole numbers [2, m]")
    ends = arcs.numpy().astype(np.int64)
    count = int(found.get("num_nodes") or ends.max(initial=-1) + 1)
    rows = held["x"].to_dense().double().numpy() if "x" in held else np.zeros((count, 0))
    if rows.ndim != 2 or len(rows) == 0 or (not small and rows.shape[1] == 0):
        raise DataError(f"{where}: x has shape {rows.shape}; allowed: [n, d], one node and one column or more")
    read = ["x", "edge_index", "y", "num_nodes", *splits.SPLIT_MASKS]
    words, masks = None, tuple[GraphMasks, ...]()
    if "y" in held and labelled and not small:
        if held["y"].ndim > 2 or (held["y"].ndim == 2 and held["y"].shape[1] != 1):
            said = f"{where}: y has shape {tuple(held['y'].shape)}"
            raise DataError(f"{said}; allowed: one label per node, [n]. For several compare one at a time")
        words = held["y"].reshape(-1).tolist()
    if not small:
        given = {key: np.asarray(found[key].cpu()) for key in splits.SPLIT_MASKS if found.get(key) is not None}
        masks = splits.of_masks(given, where, len(rows), whole=False)
    read += ["owner"] if small else []
    unused = tuple(f"{key} of the PyG object" for key in found if key not in read)
    return _array_tables(ends[0], ends[1], rows, words, where, label=label, masks=masks, unused=unused)
