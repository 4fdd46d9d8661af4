"""The memory of a run: every release that left, append-only.

A ledger file is JSON lines of two kinds. ``account`` lines open one experiment cell and state its
guarantee; ``release`` lines follow. A release that is repeated by many clients and in many rounds is one line,
with its clients and rounds as ranges (``lines.Line``):

    {"kind": "account", "cell": …, "protection": {…}, "delta": …, "holders": …}
    {"kind": "release", "cell": …, "path": …, "clients": [[0, 9]], "rounds": [[0, 99]], "times": 1, "count": 1000, …}

A first line ``{"kind": "notice", "text": …}`` says that the data was generated; it prices nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import Composed, Event, Repeated
from fedgraph.privacy.lines import Line, fewest_lines, members
from fedgraph.privacy.lines import Release as Release
from fedgraph.privacy.units import Protection


def account_name(path: Sequence[str | int | float]) -> str:
    """The parts of a path as one text.

    ``/`` stands between the parts. Inside a part, ``/`` and ``%`` are written ``%2F`` and ``%25``.

    **Guarantee.** Two paths have different names, whatever text their parts hold.

    Args:
        path: the parts, in order.

    Returns:
        The name.

    >>> account_name(("a/b", "c")), account_name(("a", "b/c"))
    ('a%2Fb/c', 'a/b%2Fc')
    """
    return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in path)


@dataclass(frozen=True)
class Account:
    """The guarantee that the releases of one cell are counted for.

    Attributes:
        cell: its name.
        protection: unit, relation, viewer and assumptions.
        delta: δ of every ε.
        holders: where clients overlap, those that hold the worst node of everything together; where events price one end of an
            edge, the clients of the worst edge's two ends (twice the same for an inner edge); None where clients are disjoint.
        path_holders: for each path, those that hold the worst node of that path alone.
        sampled_once: rate of a secret one-time sample; None where there is none.
        broken: what the data do to a promise that the guarantee rests on, in sentences; then every ε is ∞.
    """

    cell: str
    protection: Protection
    delta: float
    holders: tuple[int, ...] | None = None
    path_holders: tuple[tuple[str, tuple[int, ...]], ...] = ()
    sampled_once: float | None = None
    broken: str | None = None

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
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Account:
        holders = data["holders"]
        protection = Protection.from_dict(data["protection"])
        held = None if holders is None else tuple(holders)
        by_path = tuple((path, tuple(clients)) for path, clients in data["path_holders"].items())
        return cls(data["cell"], protection, float(data["delta"]), held, by_path, data["sampled_once"], data.get("broken"))


class Ledger:
    """Accounts and releases in the order of their first rounds. Entries are only ever added.

    Raises:
        PrivacyError: a cell has two guarantees, or a release has no account.
    """

    def __init__(self, accounts: Iterable[Account] = (), releases: Iterable[Release | Line] = ()) -> None:
        self._accounts: dict[str, Account] = {}
        self._lines: dict[str, tuple[Line, ...]] = {}
        for account in accounts:
            self.open(account)
        self.extend(releases)

    def open(self, account: Account) -> None:
        """Adds an account. The same account may be added again.

        Raises:
            PrivacyError: the cell is open with another guarantee.
        """
        known = self._accounts.setdefault(account.cell, account)
        if known != account:
            raise PrivacyError(f"cell {account.cell!r} is already open with another guarantee")

    def extend(self, releases: Iterable[Release | Line]) -> None:
        """Adds releases.

        Raises:
            PrivacyError: the account of one was never opened.
        """
        by_cell: dict[str, list[Release | Line]] = {}
        for release in releases:
            if release.cell not in self._accounts:
                raise PrivacyError(f"a release for cell {release.cell!r}, whose account was never opened")
            by_cell.setdefault(release.cell, []).append(release)
        for cell, added in by_cell.items():
            self._lines[cell] = fewest_lines((*self._lines.get(cell, ()), *added))

    def merge(self, other: Ledger) -> None:
        """Add everything of ``other``."""
        for account in other.accounts:
            self.open(account)
        self.extend(other)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """In the order in which they were opened."""
        return tuple(self._accounts.values())

    def __iter__(self) -> Iterator[Line]:
        for cell in self._accounts:
            yield from self._lines.get(cell, ())

    def __len__(self) -> int:
        """How many releases, not lines."""
        return sum(line.count for line in self)

    def of(self, cell: str) -> tuple[Line, ...]:
        """The lines of one cell."""
        return self._lines.get(cell, ())

    def spent(self, cell: str, path: str | None = None) -> dict[int, Event]:
        """Per client, everything it released in ``cell`` (on ``path`` only, if given), composed."""
        return spent(self.of(cell), path)

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
        ledger, found = cls(), list[Line]()
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    found += ledger._read_line(json.loads(line))
                except (ValueError, KeyError, TypeError, PrivacyError) as error:
                    raise PrivacyError(f"{path}:{number}: not a ledger line: {error}") from error
        ledger.extend(found)
        return ledger

    @classmethod
    def of_lines(cls, texts: Iterable[str]) -> Ledger:
        """Inverse of ``lines``.

        Raises:
            PrivacyError: a line is of no kind that a ledger has, or says what it may not.
            ValueError: a line is not JSON.
        """
        ledger, found = cls(), list[Line]()
        for text in texts:
            found += ledger._read_line(json.loads(text))
        ledger.extend(found)
        return ledger

    def _read_line(self, data: dict[str, Any]) -> list[Line]:
        if data["kind"] == "account":
            self.open(Account.from_dict(data))
        elif data["kind"] == "release":
            if data["cell"] not in self._accounts:
                raise PrivacyError(f"a release for cell {data['cell']!r}, whose account was never opened")
            return [Line.from_dict(data)]
        elif data["kind"] != "notice":
            raise PrivacyError(f"unknown kind {data['kind']!r}; allowed: account, release, notice")
        return []


def spent(lines: Iterable[Line], path: str | None = None) -> dict[int, Event]:
    """Per client, everything that it released, composed.

    Clients that released the same share one event, so that ten thousand equal clients cost no more than one.

    Args:
        lines: of one cell.
        path: only what was released on it; None: all paths.

    Returns:
        Client → its releases as one event.
    """
    per_client: dict[int, dict[Event, int]] = {}
    for line in lines:
        if path is None or line.path == path:
            for client in members(line.clients):
                events = per_client.setdefault(client, {})
                events[line.event] = events.get(line.event, 0) + line.of_one_client
    made: dict[tuple[tuple[Event, int], ...], Event] = {}
    return {
        client: made.setdefault(key := tuple(events.items()), Composed(tuple(Repeated(e, n) for e, n in key)))
        for client, events in per_client.items()
    }
