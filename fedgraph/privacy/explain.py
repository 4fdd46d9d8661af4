"""A ledger file in plain words: the guarantee, the releases, the theorem, the running total.

For each cell: what is protected between which worlds, from whom, on what assumptions; its releases in the
order they happened, runs of equal ones collapsed; after each run the ε of the worst unit so far, for its
path and in total; at the end the theorem used and the unit it is about.

**Guarantee.** Prices are those of ``accountant`` for what the ledger holds, nothing more: it does not know
what a viewer received outside it. Disjoint clients: the worst client. ``holders`` given: the clients that
hold the worst node compose. An account with ``sampled_once`` is priced inside that secret one-time sample.

**Edge cases.** A cell without releases → ε = 0. A file that is missing, not UTF-8 or damaged →
``PrivacyError`` naming file and line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.accountant import Price, price
from fedgraph.privacy.accounting.composition import disjoint
from fedgraph.privacy.events import Composed, Event, Repeated, SampledOnce
from fedgraph.privacy.ledger import Account, Ledger, Release
from fedgraph.privacy.units import Unit


@dataclass
class Run:
    """Equal releases that follow each other on one path."""

    path: str
    mechanism: str
    event: Event
    clients: Counter[int] = field(default_factory=Counter)
    rounds: set[int] = field(default_factory=set)

    def takes(self, release: Release) -> bool:
        return (self.path, self.mechanism, self.event) == (release.path, release.mechanism, release.event)

    def add(self, release: Release) -> None:
        self.clients[release.client] += 1
        self.rounds.add(release.round)

    @property
    def words(self) -> str:
        total = sum(self.clients.values())
        count = "1 release" if total == 1 else f"{total:,} releases"
        return f"rounds {spans(self.rounds)}, clients {spans(self.clients)}: {self.mechanism}, {count}"


def read(path: Path) -> Ledger:
    """The ledger in ``path``; ``PrivacyError`` in one line where it cannot be read."""
    try:
        return Ledger.read(path)
    except OSError as error:
        raise PrivacyError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PrivacyError(f"{path}: not a ledger: not UTF-8 text") from error


def explain(ledger: Ledger) -> str:
    """Every cell of ``ledger``, in words."""
    if not ledger.accounts:
        return "The ledger is empty: nothing was released."
    by_cell: dict[str, list[Release]] = {account.cell: [] for account in ledger.accounts}
    for release in ledger:
        by_cell[release.cell].append(release)
    return "\n\n".join("\n".join(_cell(account, by_cell[account.cell])) for account in ledger.accounts)


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers as ranges.

    >>> spans([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    out: list[tuple[int, int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1] = (out[-1][0], n)
        else:
            out.append((n, n))
    shown = [str(a) if a == b else f"{a}–{b}" for a, b in out]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:10], f"… ({len(shown) - 11} more ranges)", shown[-1]])


def _cell(account: Account, releases: list[Release]) -> Iterator[str]:
    protection = account.protection
    yield f"Cell {account.cell}"
    yield f"  Protected: one {protection.unit.value}."
    yield f"  Neighbouring worlds ({protection.relation.value}): {protection.relation.words}."
    yield f"  From: {protection.viewer.words} ({protection.viewer.value})."
    yield f"  δ = {account.delta:g}. Assuming:" + (" nothing further." if not protection.assumptions else "")
    for assumption in protection.assumptions:
        yield f"    - {assumption.value}: {protection.sentence(assumption)}"
    if account.holders is not None:
        if protection.unit is Unit.EDGE:
            where = " and ".join(str(client) for client in account.holders)
            yield f"  Events price one end of an edge; the worst edge has its ends at clients {where}, and they compose."
        else:
            yield f"  The worst node is held by clients {spans(account.holders)}; their releases compose."
    if account.sampled_once is not None:
        yield f"  All of it ran on a secret sample, drawn once with rate {account.sampled_once:g}, which amplifies the total."
    spent = _Spent(account)
    yield "  Releases:" if releases else "  Releases: none."
    for run in _runs(releases):
        spent.add(run)
        yield f"    {run.path}: {run.words}"
        yield f"      one costs: {_words(run.event)}"
        yield f"      so far: {run.path} {_epsilon(spent.price(run.path))}; everything {_epsilon(spent.price(None))}"
    for path in dict.fromkeys(r.path for r in releases):
        total = spent.price(path)
        yield f"  Path {path}: {_epsilon(total)} — {total.theorem}"
    total = spent.price(None)
    yield f"  Total: {_epsilon(total)} at δ = {account.delta:g}, by {total.accountant}: {total.theorem}"


def _runs(releases: list[Release]) -> Iterator[Run]:
    """Paths are followed separately, so that two interleaved paths still make two runs."""
    current: dict[str, Run] = {}
    finished: list[Run] = []
    for release in releases:
        run = current.get(release.path)
        if run is None or not run.takes(release):
            run = Run(release.path, release.mechanism, release.event)
            current[release.path] = run
            finished.append(run)
        run.add(release)
    yield from finished


class _Spent:
    """Per path and client, what the runs so far cost the worst unit."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._events: dict[str, dict[int, list[Event]]] = {}

    def add(self, run: Run) -> None:
        for client, count in run.clients.items():
            self._events.setdefault(run.path, {}).setdefault(client, []).append(Repeated(run.event, count))

    def price(self, path: str | None) -> Price:
        clients: dict[int, list[Event]] = {}
        for name, per_client in self._events.items():
            if path is None or name == path:
                for client, events in per_client.items():
                    clients.setdefault(client, []).extend(events)
        holders = dict(self._account.path_holders).get(path or "", self._account.holders)
        if holders is None:
            return disjoint({c: self._sampled(Composed(tuple(events))) for c, events in clients.items()}, self._account.delta)
        held = [event for client in holders for event in clients.get(client, ())]
        return price(self._sampled(Composed(tuple(held))), self._account.delta)

    def _sampled(self, event: Event) -> Event:
        rate = self._account.sampled_once
        return event if rate is None else SampledOnce(event, rate)


def _epsilon(paid: Price) -> str:
    return "ε = ∞" if math.isinf(paid.epsilon) else f"ε = {paid.epsilon:.6g}"


def _words(event: Event) -> str:
    text = repr(event)
    return text if len(text) <= 200 else text[:197] + "…"
