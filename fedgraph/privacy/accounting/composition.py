"""How the privacy losses of many releases add up for one unit: in sequence, and over disjoint or overlapping clients.

* **Sequential**: everything one viewer receives about the same unit composes (``Composed``).
* **Disjoint clients**: a unit lives at one client, so its loss is that client's; the guarantee is the
  maximum (parallel composition, McSherry 2009, Theorem 4; adaptive rounds allowed because selection,
  weights and step counts are public).
* **Overlapping clients, own messages**: a node's loss is composed over every client that holds it. With
  Gaussian noise μ_j² = Σ_i μ_ij²: squares.
* **Overlapping clients, one secure sum**: the viewer sees Σ_i message_i + N(0, σ²I) only, so a node's
  sensitivities add up *before* the noise: μ_j = √rounds · (Σ_i Δ_ij)/σ: linear (five clients: 5C/σ, not √5·C/σ).
* **Ends of edges**: where nodes are held once and events price one *end* of an edge, an edge costs its two ends,
  composed: both at one client (an inner edge) or one each at two (an edge between clients).

**Guarantee.** For the events' own unit and relation, per node; the worst node is the guarantee. That a
node is held by these clients is a public fact of the world (assumption ``membership-given``).

**Edge cases.** No clients, or a node that nobody holds → ε = 0; a client without releases adds nothing;
no nodes at all → ``PrivacyError``; NaN, negative sensitivities or σ ≤ 0, NaN → ``PrivacyError``; σ = ∞ → ε = 0.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian
from fedgraph.privacy.accounting.accountant import Epsilon, accountant_leaves, price
from fedgraph.privacy.events import Composed, Event, Gaussian, Repeated
from fedgraph.privacy.fields import ArrayField

_QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class WorstUnit:
    """What the worst unit pays.

    Attributes:
        price: its price.
        holders: the clients that hold the worst node, or the worst edge's two ends; None where clients share nothing.
        quantiles: ε at 0, 50, 90, 99 and 100 % of the nodes, where clients share nodes; else empty.
    """

    price: Epsilon
    holders: tuple[int, ...] | None = None
    quantiles: tuple[float, ...] = ()


def compose_disjoint(spent: Mapping[int, Event], delta: float) -> Epsilon:
    """The largest price over clients that share no unit; equal events are priced once.

    Args:
        spent: client → everything it released; empty: ε = 0.
        delta: δ in [0, 1).
    """
    prices = [price(event, delta) for event in set(spent.values())]
    return max(prices, key=lambda p: p.epsilon, default=price(Composed(()), delta))


def compose_ends(spent: Mapping[int, Event], delta: float) -> tuple[Epsilon, tuple[int, ...]]:
    """The price of the dearest edge. An inner edge has both ends at one client, so a client may stand twice.

    Args:
        spent: client → what one end of an edge costs there; empty: ε = 0 and nobody.
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

    Args:
        spent: client → everything it released.
        holdings: CSR [clients, nodes], not zero where the client holds the node.
        delta: δ in [0, 1).

    Returns:
        The price of the worst node, who holds it, and quantiles over all nodes.

    Raises:
        PrivacyError: no nodes.
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


def compose_overlapping_secure(sensitivities: sp.csr_array, noise_std: float, rounds: int, delta: float) -> WorstUnit:
    """Per-node composition of ``rounds`` secure sums with total noise ``noise_std`` each: μ_j = √rounds · (Σ_i Δ_ij)/σ.

    Args:
        sensitivities: CSR [clients, nodes], Δ₂ of client i's message for node j, in data units like ``noise_std``.
        noise_std: σ of the whole sum, > 0; ∞ → ε = 0.
        rounds: how many sums, ≥ 0.
        delta: of the guarantee, in [0, 1).

    Raises:
        PrivacyError: no nodes, noise that is not > 0, or a sensitivity that is negative or not finite.

    >>> five = sp.csr_array(np.ones((5, 1)))
    >>> compose_overlapping_secure(five, 10.0, 1, 1e-5).price == price(Gaussian(2.0), 1e-5)
    True
    """
    if not noise_std > 0 or rounds < 0:
        raise PrivacyError(f"a secure sum needs noise_std > 0 and rounds ≥ 0, found {noise_std} and {rounds}")
    if sensitivities.nnz and not (np.isfinite(sensitivities.data).all() and sensitivities.data.min() >= 0):
        raise PrivacyError("sensitivities must be finite and ≥ 0")
    held = _held(sensitivities)
    total = np.asarray(sensitivities.sum(axis=0)).ravel()
    return _gaussian_losses(rounds * np.square(total / noise_std), held, delta)


def _held(holdings: sp.csr_array) -> sp.csr_array:
    if holdings.shape[1] == 0:
        raise PrivacyError("no nodes to account for: the table of holdings has no columns")
    held = sp.csr_array(holdings)
    return sp.csr_array((np.asarray(held.data != 0, dtype=float), held.indices, held.indptr), shape=held.shape)


def _mu_squared(kinds: list[Event]) -> ArrayField | None:
    """μ² of each event where all of them are Gaussian (or free); else None."""
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
    """ε grows with μ, so the quantiles of ε are the ε of the quantiles of μ²."""
    worst = int(np.argmax(mu_squared))
    mus = np.sqrt(np.quantile(mu_squared, _QUANTILES, method="higher"))
    epsilons = tuple(gaussian.epsilon(float(mu), delta) for mu in mus)
    mu = float(mus[-1])
    paid = price(Gaussian(1 / mu) if mu > 0 else Composed(()), delta)
    return WorstUnit(paid, _holders(held, worst), epsilons)


def _by_multiset(counts: sp.csr_array, kinds: list[Event], held: sp.csr_array, delta: float) -> WorstUnit:
    """counts: CSR [nodes, kinds], how many holders released each kind; one price per distinct row."""
    counts.sort_indices()
    cache: dict[tuple[bytes, bytes], Epsilon] = {}
    epsilons = np.zeros(counts.shape[0])
    worst, worst_node = price(Composed(()), delta), 0
    for node in range(counts.shape[0]):
        begin, end = counts.indptr[node], counts.indptr[node + 1]
        key = counts.indices[begin:end].tobytes(), counts.data[begin:end].tobytes()
        if key not in cache:
            of = zip(counts.indices[begin:end], counts.data[begin:end], strict=True)
            cache[key] = price(Composed(tuple(Repeated(kinds[k], int(n)) for k, n in of)), delta)
        epsilons[node] = cache[key].epsilon
        if epsilons[node] > worst.epsilon:
            worst, worst_node = cache[key], node
    quantiles = tuple(float(q) for q in np.quantile(epsilons, _QUANTILES, method="higher"))
    return WorstUnit(worst, _holders(held, worst_node), quantiles)


def _holders(held: sp.csr_array, node: int) -> tuple[int, ...]:
    column = held[:, [node]].tocoo()
    return tuple(sorted(int(row) for row, value in zip(column.row, column.data, strict=True) if value))
