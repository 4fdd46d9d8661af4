"""Every owner becomes one client: the partition that came with the data.

For data whose nodes have an owner (``Graph.owner``): campuses, countries, banks, or a federation of your own. Who holds which
node came with the data, and is not computed from edges.
"""

import numpy as np

from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.partition import base
from fedgraph.types import Graph, GraphCollection, Partition


class Params(Settings):
    """Nothing to choose."""


def split(graph: Graph, params: Params, rng: np.random.Generator) -> Partition:
    """One client per owner that has a node in ``graph``, in the order of the owners; ``rng`` is not used.

    ``DataError`` if the graph has no owners.
    """
    if graph.owner is None:
        raise DataError(
            f"{graph.name}: partition 'natural' needs data whose nodes know their owner (facebook100/federation, "
            "twitch/federation, amlsim, own/federation); for one graph use louvain, uniform or dirichlet"
        )
    present = np.unique(graph.owner)
    order = np.argsort(graph.owner, kind="stable")
    groups = np.split(order, np.searchsorted(graph.owner[order], present[1:]))
    said = f"{present.size} clients, each a graph of its own"
    return base.disjoint(graph, groups, said, from_edges=False, from_labels=False, natural=True)


def deal(collection: GraphCollection, params: Params, rng: np.random.Generator) -> base.PartitionShares:
    """One client per owner of a graph, in the order of the owners; ``DataError`` if the graphs have no owners."""
    if collection.owner is None:
        raise DataError(
            f"{collection.name}: partition 'natural' needs graphs that know their owner (a column owner in labels.csv, or a "
            "folder per owner); else use uniform or dirichlet"
        )
    numbers = np.unique(collection.owner, return_inverse=True)[1]
    clients = int(numbers.max()) + 1
    return base.shares(collection, numbers, clients, f"{clients} owners of graphs", from_labels=False, natural=True)


PARTITION: base.PartitionOffers[Params] = base.PartitionOffers(split=split, deal=deal)
