"""One client that holds the whole graph, as one curator does."""

import numpy as np

from fedgraph.documents import Settings
from fedgraph.partition import base
from fedgraph.types import Graph, GraphCollection, Partition


class Params(Settings):
    """Nothing to choose."""


def split(graph: Graph, params: Params, rng: np.random.Generator) -> Partition:
    """The whole graph as client 0; no edge is cut, ``rng`` is not used."""
    return base.disjoint(
        graph, [np.arange(graph.num_nodes)], "one client with the whole graph", from_edges=False, from_labels=False
    )


def deal(collection: GraphCollection, params: Params, rng: np.random.Generator) -> base.PartitionShares:
    """Every graph to client 0."""
    return base.PartitionShares(
        (np.arange(len(collection.graphs), dtype=np.int64),), "one client with every graph", from_labels=False
    )


PARTITION: base.PartitionOffers[Params] = base.PartitionOffers(split=split, deal=deal)
