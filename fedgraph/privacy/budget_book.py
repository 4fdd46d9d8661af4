"""A budget that lasts: a file that remembers, for named people, everything that runs and models have spent on them.

The file is JSON lines. The first line states the budget and its people, every further line one *charge*: what a run or a model
will release, written and synchronised to the disk before anything that it pays for is released (``charge``). Each
line holds the SHA-256 of the line before.

    {"kind": "budget", "unit": …, "epsilon": …, "delta": …, "people": […]}
    {"kind": "charge", "what": …, "protection": {…}, "dearest": [event, …], "people": "all" | base64, …}

A person's price is that of all charges on that person together, composed by the accountants at the budget's δ, and never a
sum of ε.

**Guarantee.** For each person of the file: all charges together are at most (ε, δ)-DP under the relation of the charges, toward
anybody who sees all of their releases, if every release of these data went through this file. Charges of different viewers
compose as if one viewer saw both.

**Edge cases.** No charge → ε = 0. A charge that releases nothing costs nothing and is written. A charge of ε = ∞ is refused,
whatever the cap. A process that is killed before its line is complete has released nothing, and the next charge takes the torn
line off; killed later, the charge stands. Whoever may write the file can cut off its last lines: keep the hash of the last line
(``BudgetBook.head``) elsewhere to see that.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import math
import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events, settle
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Event, Gaussian, Unprotected
from fedgraph.privacy.ledger import LedgerAccount, LedgerLine
from fedgraph.privacy.settle import Guarantee, dearest_settled_account, dearest_settled_events, dearest_settled_together
from fedgraph.privacy.units import Protection, Unit

_FORMAT = 1
_ALL = "all"


@dataclass(frozen=True)
class _Charge:
    """One line of the book.

    Attributes:
        what: the run or model that was charged.
        protection: unit, relation, viewer and assumptions of its releases.
        dearest: what one person may have paid, one event for each kind of person (people of different clients may pay
            differently); a person's own is one of them.
        people: bool [people of the book], who was charged.
        written: when, as text.
        mark: of a run, so that it is not charged again when it goes on; else empty.
    """

    what: str
    protection: Protection
    dearest: tuple[Event, ...]
    people: np.ndarray
    written: str
    mark: str = ""


@dataclass(frozen=True)
class _SpentGroup:
    """People with the same charges.

    Attributes:
        num_people: how many.
        charges: places in ``BudgetBook.charges``.
        epsilon: what each of them has spent, at the book's δ.
    """

    num_people: int
    charges: tuple[int, ...]
    epsilon: float


class BudgetBook:
    """The content of a budget file, read and verified. Charging reads it again under a lock.

    Args:
        path: the file.
        content: its bytes.

    Attributes:
        path: the file.
        unit: what one person's data is.
        epsilon: the cap of each person.
        delta: δ of that cap.
        row: id of a person → place in every mask of people.
        charges: in the order in which they were written.
        head: SHA-256 of the last whole line.
        torn: bytes after the last whole line, which a killed process left.

    Raises:
        PrivacyError: a line is not as it was written; the error names it.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self.head = ""
        self.charges: list[_Charge] = []
        lines = content.split(b"\n")
        self.torn = len(lines.pop())  # bytes after the last newline: a process was killed while it wrote
        if not lines:
            raise PrivacyError(f"{path}: empty; allowed: a file that 'fedgraph budget init' made")
        for number, line in enumerate(lines, start=1):
            try:
                said = json.loads(line)
                if said.pop("before") != self.head:
                    raise PrivacyError("the line before was changed, or a line is missing")
                self._read(number, said)
            except (ValueError, KeyError, TypeError, PrivacyError) as error:
                raise PrivacyError(f"{path}:{number}: not as it was written: {' '.join(str(error).split())}") from error
            self.head = hashlib.sha256(line).hexdigest()

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
            return
        if said["kind"] != "charge" or not isinstance(said["dearest"], list):
            raise PrivacyError(f"kind {said['kind']!r}; allowed: charge")
        protection = said["protection"]
        if not isinstance(protection, dict):
            raise PrivacyError("protection is no mapping")
        people_ = _unpacked(str(said["people"]), len(self.row))
        dearest = tuple(events.from_dict(event) for event in said["dearest"])
        what, written, mark = (str(said.get(key, "")) for key in ("what", "written", "mark"))
        self.charges.append(_Charge(what, Protection.from_dict(protection), dearest, people_, written, mark))

    @property
    def num_people(self) -> int:
        """How many people the budget is for."""
        return len(self.row)

    def groups(self) -> tuple[_SpentGroup, ...]:
        """People with the same charges, and what they have paid; the dearest group first."""
        kinds, counts = np.unique(self._table().T, axis=0, return_counts=True)
        found = []
        for kind, count in zip(kinds, counts, strict=True):
            held = tuple(int(place) for place in np.flatnonzero(kind))
            found.append(_SpentGroup(int(count), held, settle.jointly([self.charges[k].dearest for k in held], self.delta)))
        return tuple(sorted(found, key=lambda group: -group.epsilon))

    def epsilon_with(self, dearest: tuple[Event, ...], people: np.ndarray) -> float:
        """The ε of the dearest person if a charge were added.

        Args:
            dearest: the events of the charge, of which a person pays one.
            people: bool [people of the book], who would be charged.

        Returns:
            ε at the book's δ; 0 for no people.
        """
        kinds = np.unique(self._table()[:, people].T, axis=0)
        held = [[self.charges[k].dearest for k in np.flatnonzero(kind)] for kind in kinds]
        return max((settle.jointly([*own, dearest], self.delta) for own in held), default=0.0)

    def _table(self) -> np.ndarray:
        """bool [charges, people]: whom each charge was charged to."""
        return np.array([charge.people for charge in self.charges], dtype=bool).reshape(len(self.charges), self.num_people)

    def left(self, people: np.ndarray) -> float:
        """What could still be charged to all of some people.

        Args:
            people: bool [people of the book].

        Returns:
            The largest ε (at the book's δ) of one more Gaussian release, found by 30 halvings from below; 0 for none.
        """
        low, high = 0.0, self.epsilon
        for _ in range(30):
            middle = (low + high) / 2
            release = (Gaussian(calibrate.gaussian_multiplier(1, middle, self.delta)),)
            low, high = (middle, high) if self.epsilon_with(release, people) <= self.epsilon else (low, middle)
        return low

    def people_of(self, ids: Sequence[str] | None) -> np.ndarray:
        """The mask of some people.

        Args:
            ids: their ids; None: all.

        Returns:
            bool [people of the book].

        Raises:
            PrivacyError: somebody is not in the book.
        """
        if ids is None:
            return np.ones(self.num_people, dtype=bool)
        unknown = [one for one in ids if one not in self.row]
        if unknown:
            raise PrivacyError(
                f"{self.path}: {len(unknown):,} people of these data are not in the budget, the first is {unknown[0]!r}; "
                "allowed: the people that it was made for. Make a budget for all of them"
            )
        mask = np.zeros(self.num_people, dtype=bool)
        mask[[self.row[one] for one in ids]] = True
        return mask


def read(path: Path) -> BudgetBook:
    """The verified content of a budget file.

    Raises:
        PrivacyError: the file cannot be read, or a line is not as it was written; the error names the first such line.
    """
    try:
        return BudgetBook(path, path.read_bytes())
    except OSError as error:
        raise PrivacyError(f"{path}: {error.strerror or error}") from error


def _checked_cap(epsilon: object, delta: object) -> tuple[float, float]:
    """Both as floats.

    Raises:
        PrivacyError: not a finite number > 0, or δ ≥ 1.
    """
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


def create(path: Path, unit: Unit, epsilon: float, delta: float, people: Sequence[str]) -> BudgetBook:
    """A new budget file.

    Args:
        path: the file; it must not exist.
        unit: what one person's data is.
        epsilon: the cap of each person, > 0.
        delta: of that cap, below one over the number of people.
        people: their ids, each once.

    Raises:
        PrivacyError: a cap that protects nobody, a person twice, or a file that is there already.
    """
    epsilon, delta = _checked_cap(epsilon, delta)
    twice = len(people) - len(set(people))
    if twice or not people:
        raise PrivacyError(f"the list of people has {twice} ids twice; allowed: each once" if people else "nobody is listed")
    if delta * len(people) >= 1:
        most = 1 / len(people)
        raise PrivacyError(f"δ = {delta:g} would allow publishing one of {len(people):,} people; allowed: below {most:.2g}")
    head = {"kind": "budget", "format": _FORMAT, "unit": unit.value, "epsilon": epsilon, "delta": delta, "people": list(people)}
    try:
        with path.open("xb") as file:
            _append(file.fileno(), head, "")
    except FileExistsError:
        raise PrivacyError(f"{path}: exists already; a budget is never replaced. Choose another file") from None
    return read(path)


@dataclass(frozen=True)
class Candidate:
    """A row that may be charged.

    Attributes:
        name: what it is called.
        protection: of its releases.
        dearest: what one person may pay, one event for each kind of person.
    """

    name: str
    protection: Protection
    dearest: tuple[Event, ...]

    @classmethod
    def planned(cls, name: str, guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]) -> Candidate:
        """What a plan declares.

        Raises:
            PrivacyError: the data break a promise of its guarantee.
        """
        return cls(name, guarantee.protection, dearest_settled_events(guarantee, releases))

    @classmethod
    def released(cls, name: str, account: LedgerAccount, lines: Sequence[LedgerLine]) -> Candidate:
        """What a run has released, from its ledger."""
        broken = (Unprotected(account.broken),) if account.broken is not None else None
        return cls(name, account.protection, broken or dearest_settled_account(account, lines))


def charge(path: Path, what: str, rows: Sequence[Candidate], ids: Sequence[str] | None, mark: str = "") -> BudgetBook:
    """Write down what will be released, before it is; everything before counts.

    Args:
        path: the budget file.
        what: one phrase that names the run or model.
        rows: all that it will release, of one unit and relation; the same people are in each of them.
        ids: the people whose data are used; None: all of the book.
        mark: of a run, so that it is not charged again when it goes on.

    Returns:
        The book with the charge. Only now may the releases be made.

    Raises:
        PrivacyError: it would exceed the cap, or a guarantee is of another unit or relation.
    """
    dearest = dearest_settled_together([row.dearest for row in rows])
    with _locked(path) as descriptor:
        book = BudgetBook(path, path.read_bytes())
        if book.torn:
            os.ftruncate(descriptor, path.stat().st_size - book.torn)
        people = book.people_of(ids)
        for number, row in enumerate(rows):
            _require_same_relation(book, row.protection, [(one.what, one.protection) for one in book.charges])
            _require_same_relation(book, row.protection, [(one.name, one.protection) for one in rows[:number]])
        paid = book.epsilon_with(dearest, people)
        if paid > book.epsilon:
            free = next((row.name for row in rows if math.isinf(settle.jointly([row.dearest], book.delta))), None)
            why = f"; {free} releases something without noise" if free is not None else ""
            raise PrivacyError(
                f"{path}: with {what} the dearest person would have paid ε = {paid:.4g} of {book.epsilon:g} "
                f"(δ = {book.delta:g}){why}; what is left is one release of ε = {book.left(people):.3g}. Nothing was released"
            )
        said = {
            "kind": "charge",
            "what": what,
            "protection": rows[0].protection.to_dict(),
            "dearest": [events.to_dict(event) for event in dearest],
            "people": _ALL if people.all() else _packed(people),
            "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "mark": mark,
        }
        _append(descriptor, said, book.head)
    return read(path)


def fits(book: BudgetBook, rows: Sequence[Candidate], ids: Sequence[str] | None) -> str:
    """One sentence that names the first candidate that a budget would still carry.

    Args:
        book: the budget.
        rows: the candidates, in order of preference.
        ids: the people whose data are used; None: all of the book.
    """
    people = book.people_of(ids)
    for row in rows:
        if row.protection.unit is book.unit and book.epsilon_with(row.dearest, people) <= book.epsilon:
            return f"This would still fit: {row.name}"
    return "No other row would fit"


def _require_same_relation(book: BudgetBook, protection: Protection, earlier: Sequence[tuple[str, Protection]]) -> None:
    if protection.unit is not book.unit:
        raise PrivacyError(f"{book.path}: is for one {book.unit.value}, and this protects one {protection.unit.value}")
    for name, other in earlier:
        if other.relation is not protection.relation:
            raise PrivacyError(
                f"{book.path}: {name} was charged under the relation {other.relation.value}, and this has "
                f"{protection.relation.value}: they do not compose. Allowed: rows of one relation in one budget"
            )


def _append(descriptor: int, said: Mapping[str, object], before: str) -> None:
    line = json.dumps({**said, "before": before}, allow_nan=False, separators=(",", ":"), ensure_ascii=False) + "\n"
    os.lseek(descriptor, 0, os.SEEK_END)
    left = memoryview(line.encode())
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, open for writing, while no other process has it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError as error:
        raise PrivacyError(f"{path}: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _packed(people: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.packbits(people).tobytes())).decode()
