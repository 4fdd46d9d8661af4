"""Writing into a budget file (``budget_book``): a charge is on the disk before anything that it pays for is released."""

from __future__ import annotations

import base64
import fcntl
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
from fedgraph.privacy.budget_book import ALL, FORMAT, BudgetBook, checked_cap, read
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Event, Unprotected, to_dict
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.lines import Line
from fedgraph.privacy.settle import Guarantee, dearest_events, dearest_of_account, dearest_together, joint_epsilon
from fedgraph.privacy.units import Protection, Unit


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
    epsilon, delta = checked_cap(epsilon, delta)
    twice = len(people) - len(set(people))
    if twice or not people:
        raise PrivacyError(f"the list of people has {twice} ids twice; allowed: each once" if people else "nobody is listed")
    if delta * len(people) >= 1:
        most = 1 / len(people)
        raise PrivacyError(f"δ = {delta:g} would allow publishing one of {len(people):,} people; allowed: below {most:.2g}")
    head = {"kind": "budget", "format": FORMAT, "unit": unit.value, "epsilon": epsilon, "delta": delta, "people": list(people)}
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
    def planned(cls, name: str, guarantee: Guarantee, releases: Sequence[Line] | Sequence[PlannedRelease]) -> Candidate:
        """What a plan declares.

        Raises:
            PrivacyError: the data break a promise of its guarantee.
        """
        return cls(name, guarantee.protection, dearest_events(guarantee, releases))

    @classmethod
    def released(cls, name: str, account: Account, lines: Sequence[Line]) -> Candidate:
        """What a run has released, from its ledger."""
        broken = (Unprotected(account.broken),) if account.broken is not None else None
        return cls(name, account.protection, broken or dearest_of_account(account, lines))


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
    dearest = dearest_together([row.dearest for row in rows])
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
            free = next((row.name for row in rows if math.isinf(joint_epsilon([row.dearest], book.delta))), None)
            why = f"; {free} releases something without noise" if free is not None else ""
            raise PrivacyError(
                f"{path}: with {what} the dearest person would have paid ε = {paid:.4g} of {book.epsilon:g} "
                f"(δ = {book.delta:g}){why}; what is left is one release of ε = {book.left(people):.3g}. Nothing was released"
            )
        said = {
            "kind": "charge",
            "what": what,
            "protection": rows[0].protection.to_dict(),
            "dearest": [to_dict(event) for event in dearest],
            "people": ALL if people.all() else _packed(people),
            "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "mark": mark,
        }
        _append(descriptor, said, book.head)
    return read(path)


def still_fitting(book: BudgetBook, rows: Sequence[Candidate], ids: Sequence[str] | None) -> str:
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
