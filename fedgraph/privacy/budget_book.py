"""A lasting budget: a book that records, for named people, everything that runs and models have spent on them.

A book is a list of JSON lines, in an SQLite file or, if its place is a URL (``postgresql://host/database#book``), in a
PostgreSQL database. The first line states the budget and its people. Every further line is one *charge*: what a run or a model
will release, committed before anything is released (``charge``). Each line holds the SHA-256 of the line before.

    {"kind": "budget", "unit": …, "epsilon": …, "delta": …, "people": […], "file": …}
    {"kind": "charge", "what": …, "protection": {…}, "dearest": [event, …], "people": "all" | base64, …}

A person's price is that of all charges on that person, composed by the accountants at the budget's δ; ε are never added.

**Guarantee.** For each person of the book: all charges together are at most (ε, δ)-DP under the relation of the charges, toward
anybody who sees all of their releases, if every release of these data went through this book. Charges of different viewers
compose as if one viewer saw both.

**Which book.** ``find`` returns the named book; else that of the environment variable ``FEDGRAPH_BUDGET``; else the file beside
the data (``people`` → ``people.budget``).

**Edge cases.** No charge → ε = 0. A charge that releases nothing costs nothing and is written. A charge of ε = ∞ is refused,
whatever the cap. A process that is killed before its charge is committed has released nothing; if it is killed later, the
charge stands. Charges have the order of their commits, without a clock. Two copies of a file could each spend the whole budget,
so a copy, which has another inode, refuses charges. A file that was restored to an earlier state is recognised by the hash of
its last line in ``people.budget.last`` beside it. Whoever can restore or write both files can lose charges: keep
``BudgetBook.head`` elsewhere to detect that, or keep the book in a database.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.printing import lock as lock_file
from fedgraph.printing import telling
from fedgraph.privacy import events, settle
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.ledger import LedgerAccount, LedgerLine, spent_by_client
from fedgraph.privacy.units import Protection, Unit

NOT_COUNTED = (
    "No budget is charged: what this releases, and what else is released of these people, is added up nowhere "
    "(fedgraph budget init; FEDGRAPH_BUDGET or a file beside the data names it for every command)."
)
_FORMAT = 2  # of the lines
_ALL = "all"
_VARIABLE = "FEDGRAPH_BUDGET"
_SCHEMES = ("postgresql", "postgres")
_MOST_CHOICES = 256  # combinations of events over charges that are priced one by one; beyond, one bound for all
_PATIENCE = 120.0  # seconds that a charge waits for others
_TABLE = (
    "CREATE TABLE IF NOT EXISTS fedgraph_budget (book TEXT, number INTEGER, line TEXT NOT NULL, PRIMARY KEY (book, number))"
)


@dataclass(frozen=True)
class _Charge:
    """One line of the book.

    Attributes:
        what: the run or model that was charged.
        protection: unit, relation, viewer and assumptions of its releases.
        dearest: events of which each person pays one (people of different clients may pay differently).
        people: bool [people of the book], who was charged.
        written: time of the charge, as text.
        mark: mark of a run, so that a resumed run is not charged again; else empty.
    """

    what: str
    protection: Protection
    dearest: tuple[events.Event, ...]
    people: np.ndarray
    written: str
    mark: str = ""

    def said(self) -> dict[str, object]:
        """The line without the hash of the line before."""
        return {
            "kind": "charge",
            "what": self.what,
            "protection": self.protection.to_dict(),
            "dearest": [events.to_dict(event) for event in self.dearest],
            "people": _ALL if self.people.all() else _packed(self.people),
            "written": self.written,
            "mark": self.mark,
        }


@dataclass(frozen=True)
class _SpentGroup:
    """People with the same charges."""

    num_people: int  # number of people
    charges: tuple[int, ...]  # indices into ``BudgetBook.charges``
    epsilon: float  # ε that each of them has spent, at the book's δ


class BudgetBook:
    """The content of a book, read and verified. Charging reads what is new under a lock.

    Args:
        place: the file, or the URL.
        lines: its content.

    Attributes:
        place: the file, or the URL.
        unit: what one person's data is.
        epsilon: the cap of each person.
        delta: δ of that cap.
        file: inode of the file when it was made (a copy has another); None for a database.
        row: id of a person → index in every mask of people.
        charges: all charges, in the order in which they were written.
        head: SHA-256 of the last line.

    Raises:
        PrivacyError: a line is not as it was written; the error names it.
    """

    def __init__(self, place: str, lines: Sequence[str]) -> None:
        self.place = place
        self.head = ""
        self._all = hashlib.sha256()
        self.charges: list[_Charge] = []
        self._kinds: dict[bytes, tuple[int, ...]] = {}  # people with the same charges, as a mask → these charges
        if not lines:
            raise PrivacyError(f"{place}: empty; allowed: a book that 'fedgraph budget init' made")
        self.add(lines)

    def add(self, lines: Sequence[str]) -> None:
        """Further lines, each verified."""
        for number, line in enumerate(lines, start=1 if not self.head else len(self.charges) + 2):
            try:
                said = json.loads(line)
                if said.pop("before") != self.head:
                    raise PrivacyError("the line before was changed, or a line is missing")
                self._read(number, said)
            except (ValueError, KeyError, TypeError, PrivacyError) as error:
                raise PrivacyError(f"{self.place}:{number}: not as it was written: {' '.join(str(error).split())}") from error
            self.head = hashlib.sha256(line.encode()).hexdigest()
            self._all.update(line.encode())

    @property
    def digest(self) -> str:
        """SHA-256 of all lines."""
        return self._all.hexdigest()

    def _read(self, number: int, said: dict[str, object]) -> None:
        if number == 1:
            if said["kind"] != "budget" or said["format"] != _FORMAT:
                raise PrivacyError(f"kind {said['kind']!r}, format {said['format']!r}; allowed: budget, {_FORMAT}")
            self.unit = Unit(said["unit"])
            self.epsilon, self.delta = _checked_cap(said["epsilon"], said["delta"])
            people = said["people"]
            if not isinstance(people, list) or not all(isinstance(one, str) for one in people):
                raise PrivacyError("people is no list of texts")
            self.row: Mapping[str, int] = {one: place for place, one in enumerate(people)}
            self.file = said["file"]
            self._kinds = {np.ones(len(people), dtype=bool).tobytes(): ()}
            return
        if said["kind"] != "charge" or not isinstance(said["dearest"], list):
            raise PrivacyError(f"kind {said['kind']!r}; allowed: charge")
        protection = said["protection"]
        if not isinstance(protection, dict):
            raise PrivacyError("protection is no mapping")
        people_ = _unpacked(str(said["people"]), len(self.row))
        dearest = tuple(events.from_dict(event) for event in said["dearest"])
        what, written, mark = (str(said.get(key, "")) for key in ("what", "written", "mark"))
        self._kinds = {
            kind.tobytes(): held
            for mask, before in self._kinds.items()
            for kind, held in (
                (np.frombuffer(mask, dtype=bool) & people_, (*before, len(self.charges))),
                (np.frombuffer(mask, dtype=bool) & ~people_, before),
            )
            if kind.any()
        }
        self.charges.append(_Charge(what, Protection.from_dict(protection), dearest, people_, written, mark))

    @property
    def num_people(self) -> int:
        """Number of people in the book."""
        return len(self.row)

    def groups(self) -> tuple[_SpentGroup, ...]:
        """Groups of people with the same charges, and what they have spent; the largest ε first."""
        found = [
            _SpentGroup(mask.count(1), held, jointly([self.charges[k].dearest for k in held], self.delta))
            for mask, held in self._kinds.items()
        ]
        return tuple(sorted(found, key=lambda group: -group.epsilon))

    def epsilon_with(self, dearest: tuple[events.Event, ...], people: np.ndarray) -> float:
        """The largest ε of one person if a charge were added.

        Args:
            dearest: the events of the charge, of which each person pays one.
            people: bool [people of the book], who would be charged.

        Returns:
            ε at the book's δ; 0 for no people.
        """
        asked = [set(held) for mask, held in self._kinds.items() if (np.frombuffer(mask, dtype=bool) & people).any()]
        most = [held for held in asked if not any(held < other for other in asked)]  # who paid a part of it paid less
        paid = [[self.charges[k].dearest for k in sorted(held)] for held in most]
        return max((jointly([*own, dearest], self.delta) for own in paid), default=0.0)

    def left(self, people: np.ndarray) -> float:
        """What can still be charged to all of ``people``, bool [people of the book].

        Returns:
            The largest ε (at the book's δ) of one more Gaussian release, to 12 bisections from below; 0 if none fits.
        """
        low, high = 0.0, self.epsilon
        for _ in range(12):
            middle = (low + high) / 2
            release = (events.Gaussian(calibrate.gaussian_multiplier(1, middle, self.delta)),)
            low, high = (middle, high) if self.epsilon_with(release, people) <= self.epsilon else (low, middle)
        return low

    def people_of(self, ids: Sequence[str] | None) -> np.ndarray:
        """bool [people of the book], True for the people with these ids; None: all people.

        Raises:
            PrivacyError: an id is not in the book.
        """
        if ids is None:
            return np.ones(self.num_people, dtype=bool)
        unknown = [one for one in ids if one not in self.row]
        if unknown:
            raise PrivacyError(
                f"{self.place}: {len(unknown):,} people of these data are not in the budget, the first is {unknown[0]!r}; "
                "allowed: the people that it was made for. Make a budget for all of them"
            )
        mask = np.zeros(self.num_people, dtype=bool)
        mask[[self.row[one] for one in ids]] = True
        return mask


def jointly(charges: Sequence[tuple[events.Event, ...]], delta: float) -> float:
    """The largest ε that one person pays for several charges together.

    Args:
        charges: for each charge, the events of which each person pays one (``Candidate.dearest``).
        delta: δ in [0, 1).
    """
    return max(price(event, delta).epsilon for event in _combined(charges))


def _combined(parts: Sequence[tuple[events.Event, ...]]) -> tuple[events.Event, ...]:
    """Events that bound what one person pays for several charges: every combination, composed.

    If there are more than ``_MOST_CHOICES``, one event that composes all of them.
    """
    if math.prod(map(len, parts)) > _MOST_CHOICES:  # whoever pays all events of a charge pays at least its own
        return (events.Composed(tuple(event for part in parts for event in part)),)
    return tuple(events.Composed(chosen) for chosen in dict.fromkeys(itertools.product(*parts)))


def find(named: str | Path | None, *data: str | Path | None) -> str | None:
    """The place of the book: ``named``; else that of ``FEDGRAPH_BUDGET``; else a file beside the data; None if there is none.

    Args:
        named: a file or a URL.
        data: folders or files with the data.
    """
    if named is not None or os.environ.get(_VARIABLE):
        return str(named) if named is not None else os.environ[_VARIABLE]
    beside = (Path(f"{str(one).rstrip('/')}.budget") for one in data if one is not None)
    return next((str(one) for one in beside if one.is_file()), None)


def is_url(place: str | Path) -> bool:
    """Whether ``place`` names a database and not a file."""
    return str(place).partition("://")[0] in _SCHEMES and "://" in str(place)


def absolute(place: str | Path) -> str:
    """The place of a book as an absolute path or a URL."""
    return str(place) if is_url(place) else str(Path(place).resolve())


def read(place: str | Path) -> BudgetBook:
    """The verified content of a book.

    Raises:
        PrivacyError: it cannot be read, or a line is not as it was written; the error names the first such line.
    """
    with _opened(str(place)) as book:
        return BudgetBook(str(place), book.lines(0))


class _Cursor(Protocol):
    """A cursor of an SQL database."""

    @property
    def description(self) -> object: ...

    def execute(self, words: str, values: tuple[object, ...], /) -> object: ...

    def fetchall(self) -> list[tuple[object, ...]]: ...


class _Lines:
    """The lines of one book, in an open transaction of an SQL database."""

    def __init__(self, cursor: _Cursor, book: str, mark: str) -> None:
        self._cursor, self._book, self._mark = cursor, book, mark

    def _ask(self, words: str, *values: object) -> list[tuple[object, ...]]:
        self._cursor.execute(words.replace("?", self._mark), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def lines(self, after: int) -> list[str]:
        """All lines but the first ``after``."""
        words = "SELECT line FROM fedgraph_budget WHERE book = ? AND number > ? ORDER BY number"
        return [str(line) for (line,) in self._ask(words, self._book, after)]

    def append(self, number: int, said: Mapping[str, object], before: str) -> str:
        """Write line ``number``; returns it."""
        line = json.dumps({**said, "before": before}, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        self._ask("INSERT INTO fedgraph_budget (book, number, line) VALUES (?, ?, ?)", self._book, number, line)
        return line


@contextmanager
def _opened(place: str, lock: bool = False, make: bool = False) -> Iterator[_Lines]:
    """The lines of a book in one transaction; with ``lock`` no other process can charge before it ends.

    ``PrivacyError``: there is no such book.
    """
    if is_url(place):
        with _server(place, lock, make) as lines:
            yield lines
        return
    why = "not as it was written"
    allowed = "allowed: a book that 'fedgraph budget init' made"
    try:
        descriptor = os.open(place, os.O_RDWR)
    except OSError as error:
        raise PrivacyError(f"{place}: {error.strerror or error}") from error
    connection = None
    try:
        lock_file(descriptor, place)  # SQLite asks again and again, and may starve one; this waits its turn
        if not make and os.pread(descriptor, 16, 0) not in (b"SQLite format 3\0", b""):
            raise PrivacyError(f"{place}: {why}: no SQLite file; {allowed}")
        connection = sqlite3.connect(place, timeout=_PATIENCE, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")
        if make:
            connection.execute(_TABLE)
        connection.execute("BEGIN IMMEDIATE" if lock else "BEGIN")
        yield _Lines(connection.cursor(), "", "?")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise PrivacyError(f"{place}: {why}: {error}; {allowed}") from error
    finally:
        if connection is not None:
            connection.close()  # what was not committed is rolled back
        os.close(descriptor)


@contextmanager
def _server(place: str, lock: bool, make: bool) -> Iterator[_Lines]:
    """The same in a PostgreSQL database. A password stands in no URL: PostgreSQL reads ``PGPASSWORD`` and ``~/.pgpass``."""
    told = urlsplit(place)
    if told.password:
        raise PrivacyError("a budget's URL holds a password, which runs would write down; allowed: PGPASSWORD or ~/.pgpass")
    try:
        import psycopg
    except ImportError as error:
        raise PrivacyError(f"{place}: needs the package psycopg (pip install 'psycopg[binary]')") from error
    book = told.fragment or "people"
    try:
        with psycopg.connect(told._replace(fragment="").geturl()) as connection:  # its end commits, an error rolls back
            connection.execute("SET synchronous_commit = on")
            with telling(place, lambda: "another connection (pg_locks lists advisory locks)"):
                if make:
                    connection.execute("SELECT pg_advisory_xact_lock(hashtext('fedgraph_budget'))")
                    connection.execute(_TABLE)
                if lock:
                    connection.execute("SELECT pg_advisory_xact_lock(hashtext('fedgraph_budget'), hashtext(%s))", (book,))
            yield _Lines(connection.cursor(), book, "%s")
    except psycopg.Error as error:
        raise PrivacyError(f"{place}: {' '.join(str(error).split())}") from error


def _checked_cap(epsilon: object, delta: object) -> tuple[float, float]:
    """Both as floats. ``PrivacyError``: not a finite number > 0, or δ ≥ 1."""
    numbers = []
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < float(value) < math.inf:
            raise PrivacyError(f"{name} is {value!r}; allowed: a number > 0")
        numbers.append(float(value))
    if numbers[1] >= 1:
        raise PrivacyError(f"delta is {numbers[1]:g}; allowed: below 1")
    return numbers[0], numbers[1]


def _unpacked(text: str, num_people: int) -> np.ndarray:
    if text == _ALL:
        return np.ones(num_people, dtype=bool)
    bits = np.unpackbits(np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=np.uint8))
    if bits.size < num_people or bits.size > num_people + 7 or bits[num_people:].any():
        raise PrivacyError(f"people are {bits.size} bits; allowed: {num_people}")
    found: np.ndarray = bits[:num_people].astype(bool)
    return found


def create(
    place: str | Path, unit: Unit, epsilon: float, delta: float, people: Sequence[str], old: BudgetBook | None = None
) -> BudgetBook:
    """Creates a book.

    Args:
        place: a file or a URL at which there is no book yet.
        unit: what one person's data is.
        epsilon: the cap of each person, > 0.
        delta: δ of that cap, below one over the number of people.
        people: their ids, each once.
        old: a book of the same people in the same order, whose charges are carried over.

    Raises:
        PrivacyError: the cap protects nobody, an id is listed twice, ``old`` has other people, or the book exists already.
    """
    epsilon, delta = _checked_cap(epsilon, delta)
    twice = len(people) - len(set(people))
    if twice or not people:
        raise PrivacyError(f"the list of people has {twice} ids twice; allowed: each once" if people else "nobody is listed")
    if delta * len(people) >= 1:
        most = 1 / len(people)
        raise PrivacyError(f"δ = {delta:g} would allow publishing one of {len(people):,} people; allowed: below {most:.2g}")
    if old is not None and (old.unit is not unit or list(old.row) != list(people)):
        raise PrivacyError(
            f"{old.place}: is of other people or another unit; allowed: its own {old.num_people:,} people, {old.unit.value}"
        )
    place = str(place)
    exists = PrivacyError(f"{place}: exists already; a budget is never replaced. Choose another")
    head: dict[str, object] = {"kind": "budget", "format": _FORMAT, "unit": unit.value, "epsilon": epsilon, "delta": delta}
    head |= {"people": list(people), "file": None}
    if not is_url(place):
        if _beside(place).exists() and not Path(place).exists():
            raise PrivacyError(
                f"{place}: was there ({_beside(place).name} is left of it), and is deleted or moved; choose another"
            )
        try:
            with Path(place).open("xb") as file:
                head["file"] = os.fstat(file.fileno()).st_ino
        except FileExistsError:
            raise exists from None
        except OSError as error:
            raise PrivacyError(f"{place}: {error.strerror or error}") from error
    with _opened(place, lock=True, make=True) as book:
        if book.lines(0):
            raise exists
        made = BudgetBook(place, [book.append(1, head, "")])
        for number, one in enumerate(() if old is None else old.charges, start=2):
            made.add([book.append(number, one.said(), made.head)])
        _remember(made, made.head)
    return made


def is_lost(place: str) -> bool:
    """Whether the book at this path was deleted: only the hash of its last line is left, so nothing can be charged."""
    return not Path(place).exists() and _beside(place).is_file()


def _beside(place: str) -> Path:
    """The file with the hash of a book's last line."""
    return Path(f"{place}.last")


def _remember(book: BudgetBook, *heads: str) -> None:
    """Writes the hashes that the last line of the book may have: one, or two while a charge is committed."""
    if is_url(book.place):
        return
    made = Path(f"{book.place}.last.new")
    with made.open("w", encoding="utf-8") as file:
        file.write("".join(f"{head}\n" for head in heads))
        file.flush()
        os.fsync(file.fileno())
    made.replace(_beside(book.place))


def _require_original(book: BudgetBook) -> None:
    """Raises ``PrivacyError`` for a copy of a file, or one that was restored to an earlier state: charges would be lost."""
    if is_url(book.place):
        return
    again = "A new book that carries its charges on: fedgraph budget init NEW --from " + book.place
    if Path(book.place).stat().st_ino != book.file:
        raise PrivacyError(
            f"{book.place}: a copy of a budget, or restored: two would each spend the whole, so it charges nothing. {again}"
        )
    last = _beside(book.place)
    heads = last.read_text(encoding="utf-8").split() if last.is_file() else []
    if book.head not in heads:
        why = "says another" if heads else "is not there (who moves a book moves both)"
        raise PrivacyError(
            f"{book.place}: was restored to an earlier state, or changed: {last.name}, which holds the hash of its last line, "
            f"{why}; charges may be lost. {again}"
        )


@dataclass(frozen=True)
class Candidate:
    """A row that may be charged."""

    name: str  # name of the row
    protection: Protection  # protection of its releases
    dearest: tuple[events.Event, ...]  # events of which each person pays one

    @classmethod
    def planned(
        cls, name: str, guarantee: settle.Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]
    ) -> Candidate:
        """The candidate of a plan's releases, or of lines of a ledger.

        Clients that share nobody: the distinct events of the clients. Prices per end of an edge: each pair of these. Clients
        that share people: one event with all that the holders of any one person release, by kind (an upper bound).

        Raises:
            PrivacyError: the data break a promise of the guarantee, so nothing is protected.
        """
        broken = [promise for promise in guarantee.promises if not promise.kept]
        if broken:
            raise PrivacyError(f"the guarantee assumes {broken[0].assumption.value}, and the data break it: ε is ∞")
        spent, holdings = settle.by_client(guarantee, releases), guarantee.holdings
        kinds = tuple(dict.fromkeys(spent.values()))
        if holdings is None:
            pairs = itertools.combinations_with_replacement(kinds, 2)
            dearest = tuple(events.Composed(pair) for pair in pairs) if guarantee.per_end else kinds
            return cls(name, guarantee.protection, dearest or (events.Composed(()),))
        worst: list[events.Event] = []
        for kind in kinds:
            clients = [client for client, event in spent.items() if event == kind and client < holdings.shape[0]]
            worst += [kind] * (int((holdings[clients] != 0).sum(axis=0).max()) if clients else 0)
        return cls(name, guarantee.protection, (events.Composed(tuple(worst)),))

    @classmethod
    def released(cls, name: str, account: LedgerAccount, lines: Sequence[LedgerLine]) -> Candidate:
        """The candidate of what a run has released, from its ledger."""
        if account.broken is not None:
            return cls(name, account.protection, (events.Unprotected(account.broken),))
        spent, rate = spent_by_client(lines), account.sampled_once
        if account.holders is not None:  # of the worst unit
            spent = {0: events.Composed(tuple(spent[client] for client in account.holders if client in spent))}
        kinds = dict.fromkeys(event if rate is None else events.SampledOnce(event, rate) for event in spent.values())
        return cls(name, account.protection, tuple(kinds) or (events.Composed(()),))


_known: dict[str, BudgetBook] = {}  # place → the book as this process read it last: a charge reads only new lines


def charge(place: str | Path, what: str, rows: Sequence[Candidate], ids: Sequence[str] | None, mark: str = "") -> BudgetBook:
    """Charges releases to the book before they are made, together with all earlier charges.

    Args:
        place: place of the book.
        what: a phrase that names the run or model.
        rows: everything that it will release, of one unit and relation and on the same people.
        ids: the people whose data are used; None: all people of the book.
        mark: mark of a run or a deployment, which is charged only once; empty: always charge.

    Returns:
        The book with the charge. The releases may be made only now.

    Raises:
        PrivacyError: the charge would exceed the cap, or has another unit or relation than the book.
    """
    dearest = _combined([row.dearest for row in rows])
    with _opened(str(place), lock=True) as lines:
        book = _current(str(place), lines)
        _require_original(book)
        if mark and any(one.mark == mark for one in book.charges):
            return book
        people = book.people_of(ids)
        for number, row in enumerate(rows):
            _require_same_relation(book, row.protection, [(one.what, one.protection) for one in book.charges])
            _require_same_relation(book, row.protection, [(one.name, one.protection) for one in rows[:number]])
        paid = book.epsilon_with(dearest, people)
        if paid <= book.epsilon:
            _commit(book, lines, _Charge(what, rows[0].protection, dearest, people, _now(), mark))
    if paid > book.epsilon:  # others need not wait while it is said
        free = next((row.name for row in rows if math.isinf(jointly([row.dearest], book.delta))), None)
        why = f"; {free} releases something without noise" if free is not None else ""
        raise PrivacyError(
            f"{place}: with {what} one person would have paid ε = {paid:.4g} of {book.epsilon:g} "
            f"(δ = {book.delta:g}){why}; what is left is one release of ε = {book.left(people):.3g}. Nothing was released"
        )
    _known[str(place)] = book
    _settled(book)
    return book


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _commit(book: BudgetBook, lines: _Lines, made: _Charge) -> None:
    """Writes the charge; the transaction commits it."""
    before = book.head
    _known.pop(book.place, None)  # until it is committed
    book.add([lines.append(len(book.charges) + 2, made.said(), before)])
    _remember(book, before, book.head)


def _current(place: str, lines: _Lines) -> BudgetBook:
    """The book as it is now: the known book with its new lines, or read anew if the known lines have changed."""
    every, known = lines.lines(0), _known.get(place)
    if known is not None:
        old = len(known.charges) + 1
        if _digest(every[:old]) == known.digest:
            known.add(every[old:])
            return known
    _known[place] = BudgetBook(place, every)
    return _known[place]


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _settled(book: BudgetBook) -> None:
    """After a commit, keeps only the hash of the last line, unless another process has charged meanwhile."""
    if is_url(book.place):
        return
    with _opened(book.place, lock=True) as lines:
        if not lines.lines(len(book.charges) + 1):
            _remember(book, book.head)


def fits(book: BudgetBook, rows: Sequence[Candidate], ids: Sequence[str] | None) -> str:
    """A sentence that names the first candidate that still fits into the budget.

    Args:
        book: the budget.
        rows: the candidates, in order of preference.
        ids: the people whose data are used; None: all people of the book.
    """
    people = book.people_of(ids)
    for row in rows:
        if row.protection.unit is book.unit and book.epsilon_with(row.dearest, people) <= book.epsilon:
            return f"This would still fit: {row.name}"
    return "No other row would fit"


def _require_same_relation(book: BudgetBook, protection: Protection, earlier: Sequence[tuple[str, Protection]]) -> None:
    if protection.unit is not book.unit:
        raise PrivacyError(f"{book.place}: is for one {book.unit.value}, and this protects one {protection.unit.value}")
    for name, other in earlier:
        if other.relation is not protection.relation:
            raise PrivacyError(
                f"{book.place}: {name} was charged under the relation {other.relation.value}, and this has "
                f"{protection.relation.value}: they do not compose. Allowed: rows of one relation in one budget"
            )


def _packed(people: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.packbits(people).tobytes())).decode()
