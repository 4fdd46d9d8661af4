"""Ego-networks as clients: a centre, everyone within a few hops, and all edges among them.

Clients overlap: a node belongs to the ego-network of every sampled centre within reach. So parallel composition does not
apply, and a guarantee adds up over the clients that hold a node (``Partition.holdings``).
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.partition import base
from fedgraph.types import Graph, Partition


class Params(Settings):
    """Which centres, and the radius."""

    clients: int = Field(200, ge=1, description="number of ego-networks (count), sampled without replacement")
    hops: int = Field(1, ge=0, description="radius (edges): nodes at most this far from the centre belong to the ego-network")
    centres: Literal["sampled", "training"] = Field(
        "sampled", description="sampled: that many clients; training: all nodes that the data's published split trains on"
    )
    largest_component: bool = Field(False, description="centres in the largest connected component only")
    min_nodes: int = Field(1, ge=1, description="smallest ego-network to sample (nodes, centre included)")


def split(graph: Graph, params: Params, rng: np.random.Generator) -> Partition:
    """Ego-networks of ``clients`` random centres, or of all training nodes; ``Subgraph.center`` is the centre's row.

    ``DataError`` if there are fewer such centres than clients, or if the data came without a split.
    """
    candidates = graph.largest_component() if params.largest_component else np.arange(graph.num_nodes)
    wanted, order = params.clients, rng.permutation(candidates)
    if params.centres == "training":
        if not graph.masks:
            raise DataError(f"{graph.name} came without a split; allowed: centres: sampled")
        order = np.intersect1d(graph.masks[0].train, candidates)
        order = order[[ego_nodes(graph.adjacency, int(c), params.hops).size >= params.min_nodes for c in order]]
        wanted = order.size
    groups: list[np.ndarray] = []
    centers: list[int] = []
    for center in order:
        if len(centers) == wanted:
            break
        nodes = ego_nodes(graph.adjacency, int(center), params.hops)
        if nodes.size >= params.min_nodes:
            groups.append(nodes)
            centers.append(int(center))
    if len(centers) < max(wanted, 1):
        where = "in the largest component " if params.largest_component else ""
        raise DataError(
            f"{max(wanted, 1)} ego-networks asked for, but only {len(centers)} nodes {where}have an ego-network of at least "
            f"{params.min_nodes} node(s) within {params.hops} hop(s); ask for fewer clients or a smaller min_nodes"
        )
    return base.overlapping(graph, groups, centers, f"{wanted} ego-networks of {params.hops} hop(s)")


def ego_nodes(adjacency: sp.csr_array, center: int, hops: int) -> np.ndarray:
    """int64, sorted: the nodes at most ``hops`` edges from ``center``, itself included. adjacency: CSR [n, n]."""
    nodes = np.array([center], dtype=np.int64)
    frontier = nodes
    for _ in range(hops):
        spans = [adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]] for v in frontier]
        frontier = np.setdiff1d(np.concatenate(spans), nodes) if spans else frontier
        if frontier.size == 0:
            break
        nodes = np.union1d(nodes, frontier)
    return nodes.astype(np.int64)


PARTITION: base.PartitionOffers[Params] = base.PartitionOffers(split=split)
