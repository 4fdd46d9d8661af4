"""The memory of a run: every release that left, one line each, append-only.

A ledger file is JSON lines of two kinds. ``account`` lines open one experiment cell and state its
guarantee; ``release`` lines follow, one per release:

    {"kind": "account", "cell": …, "protection": {…}, "delta": …, "holders": …}
    {"kind": "release", "cell": …, "path": …, "client": 3, "round": 17, "mechanism": …, "event": {…}}

A first line ``{"kind": "notice", "text": …}`` says that the data was generated; it prices nothing.
``holders``: null where clients are disjoint (or there is one), else the clients that hold the worst node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import Composed, Event, Repeated, from_dict, to_dict
from fedgraph.privacy.units import Protection


@dataclass(frozen=True)
class Account:
    """The guarantee that the releases of one cell are counted for.

    holders: where clients overlap, those that hold the worst node of everything together; where events price one end of
    an edge, the clients of the worst edge's two ends (twice the same for an inner edge); path_holders: those
    that hold the worst node of one path, where it is another one. sampled_once: rate of a secret one-time sample.
    """

    cell: str
    protection: Protection
    delta: float
    holders: tuple[int, ...] | None = None
    path_holders: tuple[tuple[str, tuple[int, ...]], ...] = ()
    sampled_once: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "account",
            "cell": self.cell,
            "protection": self.protection.to_dict(),
            "delta": self.delta,
            "holders": None if self.holders is None else list(self.holders),
            "path_holders": {path: list(held) for path, held in self.path_holders},
            "sampled_once": self.sampled_once,
        }


@dataclass(frozen=True)
class Release:
    """One release. path: the channel it belongs to (e.g. ``model``, ``embedding``). client, round: who and when."""

    cell: str
    path: str
    client: int
    round: int
    mechanism: str
    event: Event

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "release",
            "cell": self.cell,
            "path": self.path,
            "client": self.client,
            "round": self.round,
            "mechanism": self.mechanism,
            "event": to_dict(self.event),
        }


class Ledger:
    """Accounts and releases in the order in which they happened. Entries are only ever added."""

    def __init__(self, accounts: Iterable[Account] = (), releases: Iterable[Release] = ()) -> None:
        self._accounts: dict[str, Account] = {}
        self._releases: list[Release] = []
        for account in accounts:
            self.open(account)
        self.extend(releases)

    def open(self, account: Account) -> None:
        """Add an account; the same cell with another guarantee is a ``PrivacyError``."""
        known = self._accounts.setdefault(account.cell, account)
        if known != account:
            raise PrivacyError(f"cell {account.cell!r} is already open with another guarantee")

    def extend(self, releases: Iterable[Release]) -> None:
        """Append releases, in order; their account must be open."""
        for release in releases:
            if release.cell not in self._accounts:
                raise PrivacyError(f"a release for cell {release.cell!r}, whose account was never opened")
            self._releases.append(release)

    def merge(self, other: Ledger) -> None:
        """Append everything of ``other``."""
        for account in other.accounts:
            self.open(account)
        self.extend(other)

    @property
    def accounts(self) -> tuple[Account, ...]:
        return tuple(self._accounts.values())

    def __iter__(self) -> Iterator[Release]:
        return iter(self._releases)

    def __len__(self) -> int:
        return len(self._releases)

    def spent(self, cell: str, path: str | None = None) -> dict[int, Event]:
        """Per client, everything it released in ``cell`` (on ``path`` only, if given), composed."""
        per_client: dict[int, Counter[Event]] = {}
        for r in self._releases:
            if r.cell == cell and (path is None or r.path == path):
                per_client.setdefault(r.client, Counter())[r.event] += 1
        return {c: Composed(tuple(Repeated(e, n) for e, n in events.items())) for c, events in per_client.items()}

    def lines(self) -> Iterator[str]:
        """The file, line by line, without newlines."""
        for account in self._accounts.values():
            yield json.dumps(account.to_dict(), allow_nan=False)
        encoded: dict[Event, str] = {}
        for r in self._releases:
            if r.event not in encoded:
                encoded[r.event] = json.dumps(to_dict(r.event), allow_nan=False)
            head = json.dumps([r.cell, r.path, r.client, r.round, r.mechanism])
            cell, path, client, round_, mechanism = json.loads(head)
            yield (
                f'{{"kind": "release", "cell": {json.dumps(cell)}, "path": {json.dumps(path)}, "client": {client}, '
                f'"round": {round_}, "mechanism": {json.dumps(mechanism)}, "event": {encoded[r.event]}}}'
            )

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            for line in self.lines():
                file.write(line + "\n")

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Inverse of ``write``; ``PrivacyError`` names file and line of anything it does not know."""
        ledger = cls()
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    ledger._read_line(json.loads(line))
                except (ValueError, KeyError, TypeError, PrivacyError) as error:
                    raise PrivacyError(f"{path}:{number}: not a ledger line: {error}") from error
        return ledger

    def _read_line(self, data: dict[str, Any]) -> None:
        if data["kind"] == "account":
            holders = data["holders"]
            protection = Protection.from_dict(data["protection"])
            held = None if holders is None else tuple(holders)
            by_path = tuple((path, tuple(clients)) for path, clients in data["path_holders"].items())
            self.open(Account(data["cell"], protection, float(data["delta"]), held, by_path, data["sampled_once"]))
        elif data["kind"] == "release":
            event = from_dict(data["event"])
            self.extend([Release(data["cell"], data["path"], data["client"], data["round"], data["mechanism"], event)])
        elif data["kind"] != "notice":
            raise PrivacyError(f"unknown kind {data['kind']!r}; allowed: account, release, notice")
