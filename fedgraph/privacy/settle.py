"""What a run costs: every task, the dry run and ``explain`` turn releases into an ε here.

``of_releases(guarantee, releases)`` composes the releases of each client (everything one viewer receives about the same unit
composes), and prices the worst unit that the guarantee protects:

* clients that share no node: a unit lives at one client, so the guarantee is the client with the largest ε (parallel
  composition, McSherry 2009, Theorem 4; adaptive rounds are allowed because selection, weights and step counts are public);
* clients that share nodes: the node whose holders' releases together have the largest ε. That a node is held by these clients
  is a public fact of the world (assumption ``membership-given``);
* events that price one *end* of an edge: the pair of ends with the largest ε, both at one client (an inner edge) or one each
  at two (an edge between clients);
* a secret one-time sample: the total of each client is amplified once (``events.SampledOnce``);
* a promise that the data break: ε = ∞, whatever was released.

**Guarantee.** The ε holds for the unit, the neighbouring relation, the viewer and the assumptions of the guarantee's
``Protection``, and for one run. **Edge cases.** No release, no clients, or a node that nobody holds → ε = 0; a client without
releases adds nothing; a table of holdings without nodes → ``PrivacyError``. A promise that is kept changes nothing.
``Guarantee`` refuses a one-time sample together with clients that share nodes or with prices per end.

What several runs cost the people of one book together: ``budget_book``.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy import desk, ledger
from fedgraph.privacy.accounting.accountant import Epsilon, leaves_of, price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, Gaussian, Repeated, SampledOnce
from fedgraph.privacy.fields import ArrayField
from fedgraph.privacy.ledger import LedgerAccount, LedgerLine
from fedgraph.privacy.units import Assumption, Protection


@dataclass(frozen=True)
class Promise:
    """A number that a guarantee assumes of the data, and what the data are."""

    assumption: Assumption  # what is promised
    stated: float  # the promised number, e.g. the degree D
    found: float  # the largest such number in the data
    breaking: int  # number of units above the promised number
    units: int  # number of units

    @property
    def kept(self) -> bool:
        """Whether no unit breaks it."""
        return self.breaking == 0

    @property
    def share(self) -> float:
        """Share of the units that break the promise, in [0, 1]."""
        return self.breaking / self.units if self.units else 0.0


@dataclass(frozen=True, eq=False)
class Guarantee:
    """The guarantee that releases are priced under.

    Attributes:
        protection: unit, relation, viewer and assumptions.
        delta: δ of every ε.
        holdings: CSR [clients, nodes], who holds which node, if clients share nodes; else None.
        per_end: whether events price one end of an edge, so that an edge costs two of them.
        sampled_once: rate of a secret one-time sample that amplifies the whole pipeline; None: there is none.
        promises: assumptions on the data, each compared with the data; empty before any data are read.

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
class WorstUnit:
    """The price of the worst unit."""

    price: Epsilon
    holders: tuple[int, ...] | None = (
        None  # clients of the worst node, or of the worst edge's two ends; None: no unit is shared
    )


@dataclass(frozen=True)
class Settlement:
    """The price of a run."""

    total: WorstUnit  # price of everything together
    paths: Mapping[str, WorstUnit]  # price of each path alone, the rest taken as given
    broken: tuple[Promise, ...] = ()  # the promises that the data break; if there is one, ``epsilon`` and every path are ∞

    @property
    def epsilon(self) -> float:
        """ε of everything; ∞ if a promise is broken."""
        return math.inf if self.broken else self.total.price.epsilon

    @property
    def theorem(self) -> str:
        """The theorem that gives it."""
        return self.total.price.theorem

    def path_epsilons(self) -> dict[str, float]:
        """Path → its ε; ∞ if a promise is broken."""
        return {path: math.inf if self.broken else settled.price.epsilon for path, settled in self.paths.items()}

    @property
    def broken_words(self) -> str | None:
        """The broken promises as sentences, or None."""
        return " ".join(_words(promise, self.total.price.epsilon) for promise in self.broken) or None

    def account(self, cell: str, guarantee: Guarantee) -> LedgerAccount:
        """The ledger's opening line for this run, without counts of broken promises, because a ledger may be published."""
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
    """The price of what was released, or of what a plan will release: in total and of each path.

    Args:
        guarantee: the guarantee to price under.
        releases: lines of a ledger, or the releases of a plan; none cost 0.
    """
    paths = tuple(dict.fromkeys(release.path for release in releases))
    total = of_events(guarantee, _spent(guarantee, releases, None))
    one = len(paths) == 1
    by_path = {path: total if one else of_events(guarantee, _spent(guarantee, releases, path)) for path in paths}
    return Settlement(total, by_path, tuple(p for p in guarantee.promises if not p.kept))


def of_events(guarantee: Guarantee, events: Mapping[int, Event]) -> WorstUnit:
    """The price of everything that each client released; promises of the guarantee are not checked.

    events: client → everything that it released (where ``per_end``: what one end of an edge costs there), before the secret
    one-time sample.
    """
    if guarantee.holdings is not None:
        return _overlapping(events, guarantee.holdings, guarantee.delta)
    given = amplified(guarantee, events)
    if guarantee.per_end and given:
        return _ends(given, guarantee.delta)
    prices = [price(event, guarantee.delta) for event in set(given.values()) or {Composed(())}]
    return WorstUnit(max(prices, key=lambda paid: paid.epsilon))


def per_client(guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]) -> dict[int, float]:
    """Client → the largest ε of a unit that it holds: a node, or an edge with at least one end there.

    The largest of them is the total of ``of_releases``. All are ∞ if a promise is broken.

    Args:
        guarantee: of clients that share no node.
        releases: lines of a ledger, or the releases of a plan.

    Raises:
        PrivacyError: clients share nodes, so that a unit belongs to several.
    """
    if guarantee.holdings is not None:
        raise PrivacyError("clients that share nodes have no price of their own: ask for the worst node's")
    given = by_client(guarantee, releases)
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
    """The price of a plan, or of one of its paths; promises of the guarantee are not checked.

    Args:
        guarantee: the guarantee to price under.
        releases: the releases of the plan.
        path: price only this path; None: all paths.
    """
    return of_events(guarantee, _spent(guarantee, releases, path)).price


def of_account(account: LedgerAccount, lines: Iterable[LedgerLine], path: str | None = None) -> Epsilon:
    """The price of a ledger's lines, for the worst unit that the account names; ε is ∞ if a promise is broken.

    Args:
        account: the account of the cell.
        lines: the lines of the cell.
        path: price only this path; None: all paths.
    """
    events = ledger.spent_by_client(lines, path)
    holders = dict(account.path_holders).get(path or "", account.holders)
    if holders is None:
        guarantee = Guarantee(account.protection, account.delta, None, False, account.sampled_once)
        found = of_events(guarantee, events).price
    else:
        held = Composed(tuple(events[client] for client in holders if client in events))
        found = price(_amplified(held, account.sampled_once), account.delta)
    return found if account.broken is None else replace(found, epsilon=math.inf)


def by_client(guarantee: Guarantee, releases: Sequence[LedgerLine] | Sequence[PlannedRelease]) -> dict[int, Event]:
    """Client → everything that it releases, inside the secret one-time sample if there is one.

    releases: lines of a ledger, or the releases of a plan.
    """
    return amplified(guarantee, _spent(guarantee, releases, None))


def amplified(guarantee: Guarantee, events: Mapping[int, Event]) -> dict[int, Event]:
    """Client → its releases, inside the secret one-time sample if there is one."""
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


def _ends(spent: Mapping[int, Event], delta: float) -> WorstUnit:
    """The largest price of an edge. An inner edge has both ends at one client, which is then named twice.

    spent: client → what one end of an edge costs there.
    """
    first = {event: client for client, event in reversed(list(spent.items()))}
    worst, held = price(Composed(()), delta), tuple(list(spent)[:1]) * 2
    for one, two in itertools.combinations_with_replacement(first, 2):
        paid = price(Composed((one, two)), delta)
        if paid.epsilon > worst.epsilon:
            worst, held = paid, (first[one], first[two])
    return WorstUnit(worst, held)


def _overlapping(spent: Mapping[int, Event], holdings: sp.csr_array, delta: float) -> WorstUnit:
    """Per-node composition of the clients' own messages. With Gaussian noise μ_j² = Σ_i μ_ij²: squares.

    spent: client → everything it released. holdings: CSR [clients, nodes], not zero where the client holds the node.
    """
    if holdings.shape[1] == 0:
        raise PrivacyError("no nodes to account for: the table of holdings has no columns")
    held = sp.csr_array(holdings)
    held = sp.csr_array((np.asarray(held.data != 0, dtype=float), held.indices, held.indptr), shape=held.shape)
    kinds = list(dict.fromkeys(spent.values()))
    number = {event: i for i, event in enumerate(kinds)}
    clients = np.array([c for c in spent if c < held.shape[0]], dtype=np.int64)
    kind_of = np.array([number[spent[int(c)]] for c in clients], dtype=np.int64)
    squares = _mu_squared(kinds)
    if squares is None:
        kinds_held = sp.csr_array((np.ones(clients.size), (clients, kind_of)), shape=(held.shape[0], len(kinds)))
        return _by_multiset(sp.csr_array(held.T @ kinds_held), kinds, held, delta)
    per_client = np.zeros(held.shape[0])
    per_client[clients] = squares[kind_of]
    per_node = np.asarray(held.T @ per_client)  # ε grows with μ, so the node with the largest μ² pays most
    worst = int(np.argmax(per_node))
    mu = float(np.sqrt(per_node[worst]))
    return WorstUnit(price(Gaussian(1 / mu) if mu > 0 else Composed(()), delta), _holders_of(held, worst))


def _mu_squared(kinds: list[Event]) -> ArrayField | None:
    """μ² of each event if all of them are Gaussian or free; else None."""
    out = np.zeros(len(kinds))
    for i, event in enumerate(kinds):
        leaves = leaves_of(event)
        if isinstance(leaves, Epsilon):
            if leaves.epsilon > 0:
                return None
            continue
        for leaf, count in leaves:
            if not isinstance(leaf, Gaussian):
                return None
            out[i] += count / leaf.noise_multiplier**2
    return out


def _by_multiset(counts: sp.csr_array, kinds: list[Event], held: sp.csr_array, delta: float) -> WorstUnit:
    """One price per distinct row of ``counts``, CSR [nodes, kinds]: the number of holders that released each kind."""
    counts.sort_indices()
    cache: dict[tuple[bytes, bytes], Epsilon] = {}
    worst, worst_node = price(Composed(()), delta), 0
    for node in range(counts.shape[0]):
        begin, end = counts.indptr[node], counts.indptr[node + 1]
        key = counts.indices[begin:end].tobytes(), counts.data[begin:end].tobytes()
        if key not in cache:
            of = zip(counts.indices[begin:end], counts.data[begin:end], strict=True)
            cache[key] = price(Composed(tuple(Repeated(kinds[k], int(n)) for k, n in of)), delta)
        if cache[key].epsilon > worst.epsilon:
            worst, worst_node = cache[key], node
    return WorstUnit(worst, _holders_of(held, worst_node))


def _holders_of(held: sp.csr_array, node: int) -> tuple[int, ...]:
    column = held[:, [node]].tocoo()
    return tuple(sorted(int(row) for row, value in zip(column.row, column.data, strict=True) if value))


def _words(promise: Promise, epsilon: float) -> str:
    kept = f"ε would be at most {math.ceil(epsilon * 1e4) / 1e4:g}" if math.isfinite(epsilon) else "ε would still be ∞"
    return (
        f"no node may have more than D = {promise.stated:g} neighbours, but {promise.breaking} of {promise.units} nodes "
        f"({100 * promise.share:.1f} %) do, up to {promise.found:g}; if none did, {kept}."
    )
