"""The ledger of a run: every release, append-only.

A ledger file is JSON lines of two kinds. ``account`` lines open one experiment cell and state its
guarantee; ``release`` lines follow. Equal releases of many clients and rounds are one line, with clients and rounds as ranges:

    {"kind": "account", "cell": …, "protection": {…}, "delta": …, "holders": …}
    {"kind": "release", "cell": …, "path": …, "clients": [[0, 9]], "rounds": [[0, 99]], "times": 1, "count": 1000, …}

A first line ``{"kind": "notice", "text": …}`` says that the data was generated; it prices nothing.

``LedgerRelease`` is what the desk writes: one client, one round. ``LedgerLine`` stands for many of them: each of ``clients``
released the same thing on one path ``times`` times in each of ``rounds``. For example, 100 rounds of 10,000 clients that all
add the same noise are one line: clients 0–9999, rounds 0–99. Nothing is lost: a line says exactly which releases it stands for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events
from fedgraph.privacy.units import Protection

LedgerSpans = tuple[tuple[int, int], ...]  # whole numbers as ranges, ascending, both ends inside


@dataclass(frozen=True)
class LedgerRelease:
    """One release, as the desk writes it."""

    cell: str  # the account that it belongs to
    path: str  # the channel, for example ``model`` or ``embedding``
    client: int  # number of the client that released it
    round: int  # number of the round
    mechanism: str  # what was done, in words
    event: events.Event  # what was done, for the accountants


@dataclass(frozen=True)
class LedgerLine:
    """Each of many clients released on one path equally often in each of many rounds, by one mechanism at one price."""

    cell: str  # the account that it belongs to
    path: str  # the channel
    clients: LedgerSpans  # the clients, as ranges
    rounds: LedgerSpans  # the rounds, as ranges
    times: int  # releases of each client in each round, ≥ 1
    mechanism: str  # what was done, in words
    event: events.Event  # what one release did, for the accountants

    @property
    def count(self) -> int:
        """Number of releases that the line stands for."""
        return self.times * count_spans(self.clients) * count_spans(self.rounds)

    @property
    def of_one_client(self) -> int:
        """Number of these releases that each client made."""
        return self.times * count_spans(self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: one line of a ledger file."""
        return {
            "kind": "release",
            "cell": self.cell,
            "path": self.path,
            "clients": [list(span) for span in self.clients],
            "rounds": [list(span) for span in self.rounds],
            "times": self.times,
            "count": self.count,
            "mechanism": self.mechanism,
            "event": events.to_dict(self.event),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LedgerLine:
        """Inverse of ``to_dict``.

        Raises:
            PrivacyError: ranges that are not in ascending order, or a count that is not that of clients, rounds and times.
            KeyError: a key is missing.
        """
        event = events.from_dict(data["event"])
        clients, rounds = _spans_from(data["clients"]), _spans_from(data["rounds"])
        line = cls(data["cell"], data["path"], clients, rounds, int(data["times"]), data["mechanism"], event)
        if line.times < 1 or line.count != data["count"]:
            raise PrivacyError(f"count is {data['count']}, but clients, rounds and times make {line.count}")
        return line


def spans(numbers: Iterable[int]) -> LedgerSpans:
    """Whole numbers as ranges.

    >>> spans([0, 1, 2, 5, 7, 8])
    ((0, 2), (5, 5), (7, 8))
    """
    return _joined((n, n) for n in sorted(set(numbers)))


def _joined(ranges: Iterable[tuple[int, int]]) -> LedgerSpans:
    """Ranges in ascending order, none of which overlap, with those that touch made one."""
    out: list[tuple[int, int]] = []
    for first, last in ranges:
        if out and first == out[-1][1] + 1:
            out[-1] = (out[-1][0], last)
        else:
            out.append((first, last))
    return tuple(out)


def _members_of_spans(spans: LedgerSpans) -> Iterator[int]:
    """Every number in ``spans``, ascending."""
    for first, last in spans:
        yield from range(first, last + 1)


def count_spans(spans: LedgerSpans) -> int:
    """Number of whole numbers in ``spans``."""
    return sum(last - first + 1 for first, last in spans)


def merged(releases: Iterable[LedgerRelease | LedgerLine]) -> tuple[LedgerLine, ...]:
    """The same releases in fewer lines, in the order of their first rounds.

    First, equal releases of the same rounds become one line over clients. Then equal lines of several rounds become one. The
    lines depend on what was released, not on the order in which workers reported it.

    Args:
        releases: single releases, and lines that stand for many.

    Returns:
        Lines that stand for exactly these releases; lines of equal first round keep the order in which they were found.
    """
    counted: dict[tuple[str, str, str, events.Event, int], Counter[int]] = {}
    lines: list[LedgerLine] = []
    for release in releases:
        if isinstance(release, LedgerLine):
            lines.append(release)
        else:
            key = (release.cell, release.path, release.mechanism, release.event, release.round)
            counted.setdefault(key, Counter())[release.client] += 1
    for (cell, path, mechanism, event, round_), clients in counted.items():
        for times in sorted(set(clients.values())):
            who = spans(c for c, n in clients.items() if n == times)
            lines.append(LedgerLine(cell, path, who, ((round_, round_),), times, mechanism, event))
    return tuple(sorted(_merged(_merged(lines, "clients"), "rounds"), key=lambda line: line.rounds[0][0]))


def _merged(lines: Iterable[LedgerLine], along: Literal["clients", "rounds"]) -> list[LedgerLine]:
    """Joins lines that differ only in ``along``. Lines that overlap there stay apart, because both count."""
    found: dict[tuple[object, ...], list[LedgerLine]] = {}
    for line in lines:
        own, rest = (line.clients, line.rounds) if along == "clients" else (line.rounds, line.clients)
        alike = found.setdefault((line.cell, line.path, rest, line.times, line.mechanism, line.event), [])
        for place, other in enumerate(alike):
            before = other.clients if along == "clients" else other.rounds
            if not _overlap(before, own):
                both = _joined(sorted((*before, *own)))
                alike[place] = replace(other, clients=both) if along == "clients" else replace(other, rounds=both)
                break
        else:
            alike.append(line)
    return [line for alike in found.values() for line in alike]


def _overlap(one: LedgerSpans, two: LedgerSpans) -> bool:
    return any(a <= d and c <= b for a, b in one for c, d in two)


def _spans_from(given: Any) -> LedgerSpans:
    found = tuple((int(first), int(last)) for first, last in given)
    if not found or any(last < first for first, last in found) or spans(_members_of_spans(found)) != found:
        raise PrivacyError(f"not ranges of whole numbers in ascending order: {given}")
    return found


def account_name(path: Sequence[str | int | float]) -> str:
    """The parts of a path as one text.

    ``/`` stands between the parts. Inside a part, ``/`` and ``%`` are written ``%2F`` and ``%25``.

    **Guarantee.** Two paths have different names, whatever text their parts hold.

    Args:
        path: the parts, in order.

    >>> account_name(("a/b", "c")), account_name(("a", "b/c"))
    ('a%2Fb/c', 'a/b%2Fc')
    """
    return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in path)


@dataclass(frozen=True)
class LedgerAccount:
    """The guarantee that the releases of one cell are counted for.

    Attributes:
        cell: its name.
        protection: unit, relation, viewer and assumptions.
        delta: δ of every ε.
        holders: if clients overlap, the clients that hold the worst node; if events price one end of an edge, those of
            the worst edge's two ends (the same one twice for an inner edge); None if clients are disjoint.
        path_holders: for each path, the clients that hold the worst node of that path alone.
        sampled_once: rate of a secret one-time sample; None: there is none.
        broken: the broken promises of the guarantee as sentences, with which every ε is ∞; None: none is broken.
        one: what a node is called when the ledger is put into words.
    """

    cell: str
    protection: Protection
    delta: float
    holders: tuple[int, ...] | None = None
    path_holders: tuple[tuple[str, tuple[int, ...]], ...] = ()
    sampled_once: float | None = None
    broken: str | None = None
    one: str = "node"

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "account",
            "cell": self.cell,
            "protection": self.protection.to_dict(),
            "delta": self.delta,
            "holders": None if self.holders is None else list(self.holders),
            "path_holders": {path: list(held) for path, held in self.path_holders},
            "sampled_once": self.sampled_once,
            "broken": self.broken,
            "one": self.one,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LedgerAccount:
        holders = data["holders"]
        protection = Protection.from_dict(data["protection"])
        held = None if holders is None else tuple(holders)
        by_path = tuple((path, tuple(clients)) for path, clients in data["path_holders"].items())
        numbers = (float(data["delta"]), held, by_path, data["sampled_once"])
        return cls(data["cell"], protection, *numbers, data.get("broken"), data.get("one", "node"))


class Ledger:
    """Accounts, and releases in the order of their first rounds. Entries are only added.

    Raises:
        PrivacyError: a cell has two guarantees, or a release has no account.
    """

    def __init__(self, accounts: Iterable[LedgerAccount] = (), releases: Iterable[LedgerRelease | LedgerLine] = ()) -> None:
        self._accounts: dict[str, LedgerAccount] = {}
        self._lines: dict[str, tuple[LedgerLine, ...]] = {}
        for account in accounts:
            self.open(account)
        self.extend(releases)

    def open(self, account: LedgerAccount) -> None:
        """Adds an account. The same account may be added again.

        Raises:
            PrivacyError: the cell is open with another guarantee.
        """
        known = self._accounts.setdefault(account.cell, account)
        if known != account:
            raise PrivacyError(f"cell {account.cell!r} is already open with another guarantee")

    def extend(self, releases: Iterable[LedgerRelease | LedgerLine]) -> None:
        """Adds releases.

        Raises:
            PrivacyError: the account of one was never opened.
        """
        by_cell: dict[str, list[LedgerRelease | LedgerLine]] = {}
        for release in releases:
            if release.cell not in self._accounts:
                raise PrivacyError(f"a release for cell {release.cell!r}, whose account was never opened")
            by_cell.setdefault(release.cell, []).append(release)
        for cell, added in by_cell.items():
            self._lines[cell] = merged((*self._lines.get(cell, ()), *added))

    @property
    def accounts(self) -> tuple[LedgerAccount, ...]:
        """In the order in which they were opened."""
        return tuple(self._accounts.values())

    def __iter__(self) -> Iterator[LedgerLine]:
        for cell in self._accounts:
            yield from self._lines.get(cell, ())

    def __len__(self) -> int:
        """Number of releases, not of lines."""
        return sum(line.count for line in self)

    def of(self, cell: str) -> tuple[LedgerLine, ...]:
        """The lines of one cell."""
        return self._lines.get(cell, ())

    def lines(self) -> Iterator[str]:
        """The file, line by line, without newlines."""
        for account in self._accounts.values():
            yield json.dumps(account.to_dict(), allow_nan=False, separators=(",", ":"))
        for line in self:
            yield json.dumps(line.to_dict(), allow_nan=False, separators=(",", ":"))

    def write(self, path: Path) -> None:
        """Write the file, as ``lines`` gives it."""
        with path.open("w", encoding="utf-8") as file:
            for line in self.lines():
                file.write(line + "\n")

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Inverse of ``write``.

        Args:
            path: a ledger file, JSON lines.

        Raises:
            PrivacyError: a line is not one of a ledger; the error names file and line. Or a cell has two guarantees.
            OSError: the file cannot be read.
            UnicodeDecodeError: it is not UTF-8.
        """
        with path.open(encoding="utf-8") as file:
            return cls._read_lines(file, f"{path}:")

    @classmethod
    def of_lines(cls, texts: Iterable[str]) -> Ledger:
        """Inverse of ``lines``.

        Args:
            texts: JSON, one line each.

        Raises:
            PrivacyError: a text is no line of a ledger; the error has its number. Or a cell has two guarantees.
        """
        return cls._read_lines(texts, "line ")

    @classmethod
    def _read_lines(cls, texts: Iterable[str], place: str) -> Ledger:
        """place: what stands before the number of a line in an error."""
        ledger, found = cls(), list[LedgerLine]()
        for number, text in enumerate(texts, 1):
            try:
                found += ledger._read_line(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError, PrivacyError) as error:
                raise PrivacyError(f"{place}{number}: not a ledger line: {error}") from error
        ledger.extend(found)
        return ledger

    def _read_line(self, data: dict[str, Any]) -> list[LedgerLine]:
        if data["kind"] == "account":
            self.open(LedgerAccount.from_dict(data))
        elif data["kind"] == "release":
            if data["cell"] not in self._accounts:
                raise PrivacyError(f"a release for cell {data['cell']!r}, whose account was never opened")
            return [LedgerLine.from_dict(data)]
        elif data["kind"] != "notice":
            raise PrivacyError(f"unknown kind {data['kind']!r}; allowed: account, release, notice")
        return []


def spent_by_client(lines: Iterable[LedgerLine], path: str | None = None) -> dict[int, events.Event]:
    """Client → everything that it released, composed.

    Clients that released the same share one event, so pricing ten thousand equal clients takes no longer than pricing one.

    lines: lines of one cell. path: count only this path; None: all paths.
    """
    per_client: dict[int, dict[events.Event, int]] = {}
    for line in lines:
        if path is None or line.path == path:
            for client in _members_of_spans(line.clients):
                held = per_client.setdefault(client, {})
                held[line.event] = held.get(line.event, 0) + line.of_one_client
    released = {client: tuple(held.items()) for client, held in per_client.items()}
    made = {
        once: events.Composed(tuple(events.Repeated(event, count) for event, count in once)) for once in set(released.values())
    }
    return {client: made[once] for client, once in released.items()}
