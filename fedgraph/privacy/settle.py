"""What a run costs: releases become an ε here, for every task, the dry run and ``explain``.

``of_releases(guarantee, releases)`` composes what each client released, and prices the worst unit of those that the guarantee
protects:

* clients that share no node: the dearest client (parallel composition);
* clients that share nodes: the node whose holders' releases cost most together;
* events that price one *end* of an edge: the dearest pair of ends;
* a secret one-time sample: each client's total is amplified once, as a whole (``events.SampledOnce``);
* a promise that the data break: ε = ∞, whatever was released.

**Guarantee.** The ε holds for the unit, the neighbouring relation, the viewer and the assumptions of the guarantee's
``Protection``, and for one run. **Edge cases.** No release → ε = 0. A promise that is kept changes nothing. A one-time
sample together with clients that share nodes, or with prices per end, is refused where the guarantee is made.

``dearest_*`` and ``jointly`` say what several runs cost one person together, where people of different clients pay
differently.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy import desk, ledger
from fedgraph.privacy.accounting import composition
from fedgraph.privacy.accounting.accountant import Epsilon, price
from fedgraph.privacy.accounting.composition import WorstUnit
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, SampledOnce
from fedgraph.privacy.ledger import LedgerAccount, LedgerLine
from fedgraph.privacy.units import Assumption, Protection


@dataclass(frozen=True)
class Promise:
    """What a guarantee assumes of the data, and what was found in them."""

    assumption: Assumption  # what is promised
    stated: float  # the promised number, e.g. the degree D.
    found: float  # the largest one in the data
    breaking: int  # how many units are above the promised number
    units: int  # how many there are

    @property
    def kept(self) -> bool:
        """Whether no unit breaks it."""
        return self.breaking == 0

    @property
    def share(self) -> float:
        """Of the units, how large a part breaks the promise; 0 … 1."""
        return self.breaking / self.units if self.units else 0.0


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What releases are counted for.

    Attributes:
        protection: unit, relation, viewer and assumptions.
        delta: δ of every ε.
        holdings: who holds which node, CSR [clients, nodes], where clients share nodes; None where they do not.
        per_end: whether events price one end of an edge, so that an edge costs two of them (``composition.compose_ends``).
        sampled_once: the rate of a secret one-time sample that amplifies the whole pipeline; None where there is none.
        promises: what is assumed of the data and was looked up there; empty before any data are read.

    Raises:
        PrivacyError: a one-time sample together with clients that share nodes, or prices per end together with either of them.
    """

    protection: Protection
    delta: float
    holdings: sp.csr_array | None
    per_end: bool
    sampled_once: float | None = None
    promises: tuple[Promise, ...] = ()

    def __post_init__(self) -> None:
        if self.sampled_once is not None and self.holdings is not None:
            raise PrivacyError("a one-time sample amplifies each unit once; clients that overlap would count it several times")
        if self.per_end and (self.holdings is not None or self.sampled_once is not None):
            raise PrivacyError(
                "the ends of an edge compose for clients that share no node and for releases without a secret sample"
            )


@dataclass(frozen=True)
class Settlement:
    """The price of a run."""

    total: WorstUnit  # of everything together
    paths: Mapping[str, WorstUnit]  # of each path alone, the rest taken as given
    broken: tuple[Promise, ...] = ()  # the promises that the data break; where there is one, ``epsilon`` and every path are ∞

    @property
    def epsilon(self) -> float:
        """Of everything; ∞ where a promise is broken."""
        return math.inf if self.broken else self.total.price.epsilon

    @property
    def theorem(self) -> str:
        """By which result."""
        return self.total.price.theorem

    def path_epsilons(self) -> dict[str, float]:
        """Per path, its ε; ∞ where a promise is broken."""
        return {path: math.inf if self.broken else settled.price.epsilon for path, settled in self.paths.items()}

    @property
    def broken_words(self) -> str | None:
        """What the data do to the guarantee's promises, in sentences; None where they keep all of them."""
        return " ".join(_words(promise, self.total.price.epsilon) for promise in self.broken) or None

    def account(self, cell: str, guarantee: Guarantee) -> LedgerAccount:
        """The ledger's opening line for this run. Of a broken promise it holds no count: a ledger is handed out."""
        by_path = tuple((path, s.holders) for path, s in self.paths.items() if s.holders is not None)
        same = guarantee.per_end  # the worst edge of everything is what the ledger names
        return LedgerAccount(
            cell,
            guarantee.protection,
            guarantee.delta,
            self.total.holders,
            () if same else by_path,
            guarantee.sampled_once,
            " ".join(f"{promise.assumption.words}; the data break it." for promise in self.broken) or None,
        )


def of_releases(guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]) -> Settlement:
    """The price of what was released, or of what a plan will release.

    Args:
        guarantee: what it is counted for.
        releases: lines of a ledger, or those of a plan.

    Returns:
        The price in total and of each path. No release costs 0.
    """
    paths = tuple(dict.fromkeys(release.path for release in releases))
    total = _settled(guarantee, _spent(guarantee, releases, None))
    one = len(paths) == 1
    by_path = {path: total if one else _settled(guarantee, _spent(guarantee, releases, path)) for path in paths}
    return Settlement(total, by_path, tuple(p for p in guarantee.promises if not p.kept))


def per_client(guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]) -> dict[int, float]:
    """Per client, the ε of the dearest unit that it holds: of a node, or of an edge with at least one end there.

    The largest is the total of ``of_releases``.

    Args:
        guarantee: of clients that share no node.
        releases: lines of a ledger, or those of a plan.

    Returns:
        Client → ε; ∞ for all where a promise is broken.

    Raises:
        PrivacyError: clients share nodes, so that a unit belongs to several.
    """
    if guarantee.holdings is not None:
        raise PrivacyError("clients that share nodes have no price of their own: ask for the worst node's")
    given = amplified(guarantee, _spent(guarantee, releases, None))
    if any(not p.kept for p in guarantee.promises):
        return dict.fromkeys(given, math.inf)
    known: dict[Event, float] = {}

    def of(event: Event) -> float:
        if event not in known:
            known[event] = price(event, guarantee.delta).epsilon
        return known[event]

    if not guarantee.per_end:
        return {client: of(event) for client, event in given.items()}
    every = set(given.values())
    return {client: max(of(Composed((event, other))) for other in every) for client, event in given.items()}


def of_plan(guarantee: Guarantee, releases: Sequence[PlannedRelease], path: str | None = None) -> Epsilon:
    """The price of one path of a plan, or of all of it; the promises of the guarantee are not looked at.

    Args:
        guarantee: what it is counted for.
        releases: those of a plan.
        path: only this one; None: all paths.
    """
    return _settled(guarantee, _spent(guarantee, releases, path)).price


def of_account(account: LedgerAccount, lines: Iterable[LedgerLine], path: str | None = None) -> Epsilon:
    """The price of a ledger's lines, from what the account says of the worst unit: what ``explain`` shows.

    Args:
        account: of the cell.
        lines: of that cell.
        path: only this one; None: all paths.

    Returns:
        The price; its ε is ∞ where a promise is broken.
    """
    events = ledger.spent_by_client(lines, path)
    holders = dict(account.path_holders).get(path or "", account.holders)
    guarantee = Guarantee(account.protection, account.delta, None, False, account.sampled_once)
    if holders is None:
        found = _settled(guarantee, events).price
    else:
        held = Composed(tuple(events[client] for client in holders if client in events))
        found = price(_amplified(held, account.sampled_once), account.delta)
    return found if account.broken is None else replace(found, epsilon=math.inf)


def amplified(guarantee: Guarantee, events: Mapping[int, Event]) -> dict[int, Event]:
    """Per client, what its releases count for: inside the secret one-time sample where there is one."""
    return {client: _amplified(event, guarantee.sampled_once) for client, event in events.items()}


def _amplified(event: Event, rate: float | None) -> Event:
    return event if rate is None else SampledOnce(event, rate)


def _spent(
    guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease], path: str | None
) -> dict[int, Event]:
    planned = [r for r in releases if isinstance(r, PlannedRelease)]
    if not planned:
        return ledger.spent_by_client((r for r in releases if isinstance(r, LedgerLine)), path)
    named = {r.client for r in planned if r.client is not None}
    most = guarantee.holdings.shape[0] if guarantee.holdings is not None else 1 + max(named, default=0)
    return {client: desk.declared(planned, client, path) for client in range(most)}


def _settled(guarantee: Guarantee, events: Mapping[int, Event]) -> WorstUnit:
    if guarantee.holdings is not None:
        return composition.compose_overlapping(events, guarantee.holdings, guarantee.delta)
    given = amplified(guarantee, events)
    if guarantee.per_end and given:
        return WorstUnit(*composition.compose_ends(given, guarantee.delta))
    return WorstUnit(composition.compose_disjoint(given, guarantee.delta))


def _words(promise: Promise, epsilon: float) -> str:
    kept = f"ε would be at most {math.ceil(epsilon * 1e4) / 1e4:g}" if math.isfinite(epsilon) else "ε would still be ∞"
    return (
        f"no node may have more than D = {promise.stated:g} neighbours, but {promise.breaking} of {promise.units} nodes "
        f"({100 * promise.share:.1f} %) do, up to {promise.found:g}; if none did, {kept}."
    )


_MOST_CHOICES = 256  # combinations of dearest events over runs that are priced one by one; beyond, one bound for all


def dearest_events(guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]) -> tuple[Event, ...]:
    """What one person may pay for some releases: each person pays one of these events, or something that one of them bounds.

    Clients that share nobody: the distinct events of clients. Prices per end of an edge: each pair of them. Clients that share
    people: one event with all that the holders of any one person release, by kind (an upper bound).

    guarantee: what is counted. releases: lines of a ledger, or those of a plan. Returns at least one event; the empty one where
    nothing is released. ``PrivacyError``: a promise is broken, so nothing is protected.
    """
    broken = [promise for promise in guarantee.promises if not promise.kept]
    if broken:
        raise PrivacyError(f"the guarantee assumes {broken[0].assumption.value}, and the data break it: ε is ∞")
    events = amplified(guarantee, _spent(guarantee, releases, None))
    kinds = tuple(dict.fromkeys(events.values()))
    if guarantee.holdings is None:
        pairs = itertools.combinations_with_replacement(kinds, 2)
        found = tuple(Composed(pair) for pair in pairs) if guarantee.per_end else kinds
        return found or (Composed(()),)
    holdings = guarantee.holdings
    worst = []
    for kind in kinds:
        clients = [client for client, event in events.items() if event == kind and client < holdings.shape[0]]
        most = int((holdings[clients] != 0).sum(axis=0).max()) if clients else 0
        worst += [kind] * most
    return (Composed(tuple(worst)),)


def dearest_together(parts: Sequence[tuple[Event, ...]]) -> tuple[Event, ...]:
    """What one person may pay for several trainings on the same people.

    parts: for each training, the events of which a person pays one. Returns every combination, composed. Where there are more
    than ``_MOST_CHOICES``, one event with all of them, which bounds each.
    """
    if math.prod(map(len, parts)) > _MOST_CHOICES:  # whoever pays all events of a training pays at least its own
        return (Composed(tuple(event for part in parts for event in part)),)
    return tuple(Composed(chosen) for chosen in dict.fromkeys(itertools.product(*parts)))


def dearest_of_account(account: LedgerAccount, lines: Sequence[LedgerLine]) -> tuple[Event, ...]:
    """What one person may pay, from a ledger, which names the holders of the worst unit where several clients release something
    of one.

    account: of the cell. lines: of that cell. Returns at least one event. A broken promise is not looked at.
    """
    events = ledger.spent_by_client(lines)
    if account.holders is not None:
        events = {0: Composed(tuple(events[client] for client in account.holders if client in events))}
    return tuple(dict.fromkeys(_amplified(event, account.sampled_once) for event in events.values())) or (Composed(()),)


def jointly(charges: Sequence[tuple[Event, ...]], delta: float) -> float:
    """ε of one person's charges, where each charge is one of several events: the dearest choice.

    Args:
        charges: for each charge, the events of which a person pays one.
        delta: δ in [0, 1).
    """
    return max(price(event, delta).epsilon for event in dearest_together(charges))
