"""How the privacy losses of many releases add up for one unit: in sequence, and over disjoint or overlapping clients.

* **Sequential**: everything one viewer receives about the same unit composes (``Composed``).
* **Disjoint clients**: a unit lives at one client, so its loss is that client's; the guarantee is the
  maximum (parallel composition, McSherry 2009, Theorem 4; adaptive rounds allowed because selection,
  weights and step counts are public).
* **Overlapping clients, own messages**: a node's loss is composed over every client that holds it. With
  Gaussian noise μ_j² = Σ_i μ_ij²: squares.
* **Ends of edges**: where nodes are held once and events price one *end* of an edge, an edge costs its two ends,
  composed: both at one client (an inner edge) or one each at two (an edge between clients).

**Guarantee.** For the events' own unit and relation, per node; the worst node is the guarantee. That a
node is held by these clients is a public fact of the world (assumption ``membership-given``).

**Edge cases.** No clients, or a node that nobody holds → ε = 0; a client without releases adds nothing;
no nodes at all → ``PrivacyError``.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.accountant import Epsilon, accountant_leaves, price
from fedgraph.privacy.events import Composed, Event, Gaussian, Repeated
from fedgraph.privacy.fields import ArrayField


@dataclass(frozen=True)
class WorstUnit:
    """The price of the worst unit.

    Attributes:
        price: its price.
        holders: the clients that hold the worst node, or the worst edge's two ends; None if clients share no unit.
    """

    price: Epsilon
    holders: tuple[int, ...] | None = None


def compose_disjoint(spent: Mapping[int, Event], delta: float) -> Epsilon:
    """The largest price over clients that share no unit; equal events are priced once.

    spent: client → everything it released; empty: ε = 0. delta: δ in [0, 1).
    """
    prices = [price(event, delta) for event in set(spent.values()) or {Composed(())}]
    return max(prices, key=lambda p: p.epsilon)


def compose_ends(spent: Mapping[int, Event], delta: float) -> tuple[Epsilon, tuple[int, ...]]:
    """The largest price of an edge. An inner edge has both ends at one client, which is then named twice.

    Args:
        spent: client → what one end of an edge costs there; empty: ε = 0 and no clients.
        delta: δ in [0, 1).

    Returns:
        (its price, the clients of its two ends)

    >>> compose_ends({0: Gaussian(1.0), 1: Gaussian(2.0)}, 1e-5)[1]
    (0, 0)
    """
    first = {event: client for client, event in reversed(list(spent.items()))}
    worst, held = price(Composed(()), delta), tuple(list(spent)[:1]) * 2
    for one, two in itertools.combinations_with_replacement(first, 2):
        paid = price(Composed((one, two)), delta)
        if paid.epsilon > worst.epsilon:
            worst, held = paid, (first[one], first[two])
    return worst, held


def compose_overlapping(spent: Mapping[int, Event], holdings: sp.csr_array, delta: float) -> WorstUnit:
    """Per-node composition of the clients' own messages.

    spent: client → everything it released. holdings: CSR [clients, nodes], not zero where the client holds the node. delta: δ
    in [0, 1). Returns the price of the worst node, and who holds it. ``PrivacyError``: no nodes.
    """
    held = _held(holdings)
    kinds = list(dict.fromkeys(spent.values()))
    squares = _mu_squared(kinds)
    number = {event: i for i, event in enumerate(kinds)}
    clients = np.array([c for c in spent if c < held.shape[0]], dtype=np.int64)
    kind_of = np.array([number[spent[int(c)]] for c in clients], dtype=np.int64)
    if squares is not None:
        per_client = np.zeros(held.shape[0])
        per_client[clients] = squares[kind_of]
        return _gaussian_losses(np.asarray(held.T @ per_client), held, delta)
    kinds_held = sp.csr_array((np.ones(clients.size), (clients, kind_of)), shape=(held.shape[0], len(kinds)))
    return _by_multiset(sp.csr_array(held.T @ kinds_held), kinds, held, delta)


def _held(holdings: sp.csr_array) -> sp.csr_array:
    if holdings.shape[1] == 0:
        raise PrivacyError("no nodes to account for: the table of holdings has no columns")
    held = sp.csr_array(holdings)
    return sp.csr_array((np.asarray(held.data != 0, dtype=float), held.indices, held.indptr), shape=held.shape)


def _mu_squared(kinds: list[Event]) -> ArrayField | None:
    """μ² of each event if all of them are Gaussian or free; else None."""
    out = np.zeros(len(kinds))
    for i, event in enumerate(kinds):
        leaves = accountant_leaves(event)
        if isinstance(leaves, Epsilon):
            out[i] = 0.0 if leaves.epsilon == 0 else math.inf
            if leaves.epsilon > 0:
                return None
            continue
        for leaf, count in leaves:
            if not isinstance(leaf, Gaussian):
                return None
            out[i] += count / leaf.noise_multiplier**2
    return out


def _gaussian_losses(mu_squared: ArrayField, held: sp.csr_array, delta: float) -> WorstUnit:
    """ε grows with μ, so the node with the largest μ² pays most."""
    worst = int(np.argmax(mu_squared))
    mu = float(np.sqrt(mu_squared[worst]))
    return WorstUnit(price(Gaussian(1 / mu) if mu > 0 else Composed(()), delta), _holders(held, worst))


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
    return WorstUnit(worst, _holders(held, worst_node))


def _holders(held: sp.csr_array, node: int) -> tuple[int, ...]:
    column = held[:, [node]].tocoo()
    return tuple(sorted(int(row) for row, value in zip(column.row, column.data, strict=True) if value))
