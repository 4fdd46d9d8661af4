"""How the losses of many releases add up for one unit: in sequence, over disjoint and overlapping clients.

* **Sequential**: everything one viewer receives about the same unit composes (``Composed``).
* **Disjoint clients**: a unit lives at one client, so its loss is that client's; the guarantee is the
  maximum (parallel composition, McSherry 2009; adaptive rounds allowed because selection, weights and
  step counts are public).
* **Overlapping clients**: a node's loss is composed over every client that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.privacy.accountant import Price, price
from fedgraph.privacy.events import Composed, Event


@dataclass(frozen=True)
class UnitLosses:
    """The worst unit's price, and how the units are spread.

    worst: its price. worst_holders: the clients that hold the worst unit. quantiles: ε at 0, 50, 90, 99,
    100 % of the units.
    """

    worst: Price
    worst_holders: tuple[int, ...]
    quantiles: tuple[float, ...]


def disjoint(spent: Mapping[int, Event], delta: float) -> Price:
    """The largest price over clients; equal events are priced once."""
    prices = {event: price(event, delta) for event in set(spent.values())}
    return max(prices.values(), key=lambda p: p.epsilon)


def overlapping(spent: Mapping[int, Event], holdings: sp.csr_array, delta: float) -> UnitLosses:
    """Per-node composition. holdings: CSR [clients, nodes], non-zero where the client holds the node."""
    by_node = sp.csc_array(holdings)
    cache: dict[tuple[Event, ...], Price] = {}
    epsilons = np.zeros(by_node.shape[1])
    worst: tuple[Price, tuple[int, ...]] | None = None
    for node in range(by_node.shape[1]):
        holders = tuple(int(c) for c in by_node.indices[by_node.indptr[node] : by_node.indptr[node + 1]])
        key = tuple(sorted((spent[c] for c in holders), key=repr))
        if key not in cache:
            cache[key] = price(Composed(key), delta)
        epsilons[node] = cache[key].epsilon
        if worst is None or cache[key].epsilon > worst[0].epsilon:
            worst = (cache[key], holders)
    if worst is None:
        raise ValueError("no nodes to account for")
    return UnitLosses(worst[0], worst[1], tuple(float(q) for q in np.quantile(epsilons, [0, 0.5, 0.9, 0.99, 1], method="higher")))
