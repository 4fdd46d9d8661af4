"""Label skew: each class is dealt to the clients in proportions drawn from a Dirichlet distribution.

Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019
(arXiv 1909.06335), with proportions drawn per class. A small concentration gives clients of one or two classes, a large one
similar clients. ``deal`` deals the graphs of a collection, ``split`` the nodes of one graph.
"""

import numpy as np
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.partition import base
from fedgraph.types import Graph, GraphCollection, Partition


class Params(Settings):
    """How many clients, and how unlike each other."""

    clients: int = Field(10, ge=1, description="number of clients (count)")
    concentration: float = Field(
        0.5, gt=0, allow_inf_nan=False, description="Dirichlet concentration (no unit); smaller means more label skew"
    )


def deal(collection: GraphCollection, params: Params, rng: np.random.Generator) -> base.PartitionShares:
    """Deals whole graphs by label; a client without any gets one of the largest client. ``DataError`` for too many clients."""
    owner = _owners(collection.labels, params, rng, "graphs")
    return base.shares(collection, owner, params.clients, _describe(params, "graphs"), from_labels=True)


def split(graph: Graph, params: Params, rng: np.random.Generator) -> Partition:
    """Deals the nodes of one graph by label, as ``deal``; unknown labels count as one more class."""
    owner = _owners(graph.labels, params, rng, "nodes")
    groups = [np.flatnonzero(owner == client) for client in range(params.clients)]
    return base.disjoint(graph, groups, _describe(params, "nodes"), from_edges=False, from_labels=True)


def _describe(params: Params, what: str) -> str:
    return f"{params.clients} clients, {what} dealt by label, Dirichlet({params.concentration:g})"


def _owners(labels: np.ndarray, params: Params, rng: np.random.Generator, what: str) -> np.ndarray:
    """int64 [items]: the client of each item."""
    base.require_clients(params.clients, labels.size, what)
    owner = np.empty(labels.size, dtype=np.int64)
    for label in np.unique(labels):
        items = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet(np.full(params.clients, params.concentration))
        bounds = np.rint(np.cumsum(shares)[:-1] * items.size).astype(np.int64)
        for client, part in enumerate(np.split(items, bounds)):
            owner[part] = client
    sizes = np.bincount(owner, minlength=params.clients)
    while not sizes.min():
        giver, taker = int(sizes.argmax()), int(sizes.argmin())
        owner[rng.choice(np.flatnonzero(owner == giver))] = taker
        sizes = np.bincount(owner, minlength=params.clients)
    return owner


PARTITION: base.PartitionOffers[Params] = base.PartitionOffers(split=split, deal=deal)
