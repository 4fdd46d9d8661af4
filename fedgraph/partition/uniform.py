"""Random parts of equal size. This partition ignores edges, so it cuts most of them."""

import numpy as np
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.partition import base
from fedgraph.types import Graph, GraphCollection, Partition


class Params(Settings):
    """How many parts."""

    clients: int = Field(10, ge=1, description="number of clients (count); at most one per node")


def split(graph: Graph, params: Params, rng: np.random.Generator) -> Partition:
    """Random disjoint parts whose sizes differ by at most one node. ``DataError`` if there are more clients than nodes."""
    base.require_clients(params.clients, graph.num_nodes)
    groups = np.array_split(rng.permutation(graph.num_nodes), params.clients)
    return base.disjoint(graph, groups, f"{params.clients} equal random parts", from_edges=False, from_labels=False)


def deal(collection: GraphCollection, params: Params, rng: np.random.Generator) -> base.PartitionShares:
    """Random shares whose numbers of graphs differ by at most one. ``DataError`` if there are more clients than graphs."""
    base.require_clients(params.clients, len(collection.graphs), "graphs")
    parts = np.array_split(rng.permutation(len(collection.graphs)), params.clients)
    return base.PartitionShares(
        tuple(np.sort(p).astype(np.int64) for p in parts),
        f"{params.clients} equal random shares of the graphs",
        from_labels=False,
    )


PARTITION: base.PartitionOffers[Params] = base.PartitionOffers(split=split, deal=deal)
