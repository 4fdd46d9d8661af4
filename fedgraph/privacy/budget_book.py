"""A budget that lasts: a file that remembers, for named people, everything that runs and models have spent on them.

The file is JSON lines. The first line states the budget and its people, every further line one *charge*: what a run or a model
will release, written and synchronised to the disk before anything is released. Each line holds the SHA-256 of the line before.

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

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.events import Event, Gaussian, from_dict
from fedgraph.privacy.settle import joint_epsilon
from fedgraph.privacy.units import Protection, Unit

FORMAT = 1
ALL = "all"


@dataclass(frozen=True)
class Charge:
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
class SpentGroup:
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
        self.charges: list[Charge] = []
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
            if said["kind"] != "budget" or said["format"] != FORMAT:
                raise PrivacyError(f"kind {said['kind']!r}, format {said['format']!r}; allowed: budget, {FORMAT}")
            self.unit = Unit(said["unit"])
            self.epsilon, self.delta = checked_cap(said["epsilon"], said["delta"])
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
        dearest = tuple(from_dict(event) for event in said["dearest"])
        what, written, mark = (str(said.get(key, "")) for key in ("what", "written", "mark"))
        self.charges.append(Charge(what, Protection.from_dict(protection), dearest, people_, written, mark))

    @property
    def num_people(self) -> int:
        """How many people the budget is for."""
        return len(self.row)

    def groups(self) -> tuple[SpentGroup, ...]:
        """People with the same charges, and what they have paid; the dearest group first."""
        kinds, counts = np.unique(self._table().T, axis=0, return_counts=True)
        found = []
        for kind, count in zip(kinds, counts, strict=True):
            held = tuple(int(place) for place in np.flatnonzero(kind))
            found.append(SpentGroup(int(count), held, joint_epsilon([self.charges[k].dearest for k in held], self.delta)))
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
        return max((joint_epsilon([*own, dearest], self.delta) for own in held), default=0.0)

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
            release = (Gaussian(gaussian_multiplier(1, middle, self.delta)),)
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


def checked_cap(epsilon: object, delta: object) -> tuple[float, float]:
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
    if text == ALL:
        return np.ones(num_people, dtype=bool)
    bits = np.unpackbits(np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=np.uint8))
    if bits.size < num_people or bits.size > num_people + 7 or bits[num_people:].any():
        raise PrivacyError(f"people are {bits.size} bits; allowed: {num_people}")
    found: np.ndarray = bits[:num_people].astype(bool)
    return found
