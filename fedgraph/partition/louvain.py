"""Communities as clients: Louvain communities, merged into clients of similar size.

Blondel, Guillaume, Lambiotte, Lefebvre, "Fast unfolding of communities in large networks", J. Stat. Mech. P10008, 2008,
as igraph's ``community_multilevel`` computes it; with ``algorithm: leiden`` Traag, Waltman, van Eck, "From Louvain to Leiden:
guaranteeing well-connected communities", Scientific Reports 9, 5233, 2019 (``community_leiden``), which takes 0.5 in place of
13 processor seconds on 60,000 nodes. Communities are dealt largest first, each to the client that holds fewest
nodes so far (ties: the lower number). With fewer communities than clients, the largest one is halved along a breadth-first
order until there are enough. Isolated nodes are communities of their own.
"""

import heapq
import random
import threading
from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.partition import base
from fedgraph.types import Graph, Partition

_igraph_generator = threading.Lock()


class Params(Settings):
    """How many clients, and the algorithm that finds communities."""

    clients: int = Field(10, ge=1, description="number of clients (count); at most one per node")
    algorithm: Literal["louvain", "leiden"] = Field("louvain", description="who finds communities; leiden for large graphs")


def split(graph: Graph, params: Params, rng: np.random.Generator) -> Partition:
    """Disjoint clients, made of whole communities if possible. ``DataError`` if there are more clients than nodes."""
    base.require_clients(params.clients, graph.num_nodes)
    found = _communities(graph, rng, params.algorithm)
    pieces = _at_least(found, params.clients, graph)
    # Deal groups, largest first, to the client with fewest nodes.
    load = [(0, client) for client in range(params.clients)]
    dealt: list[list[np.ndarray]] = [[] for _ in range(params.clients)]
    for group in pieces:
        size, client = heapq.heappop(load)
        dealt[client].append(group)
        heapq.heappush(load, (size + group.size, client))
    groups = [np.concatenate(parts) for parts in dealt]
    return base.disjoint(
        graph,
        groups,
        f"{params.clients} clients from {len(found)} {params.algorithm.capitalize()} communities",
        from_edges=True,
        from_labels=False,
    )


def _communities(graph: Graph, rng: np.random.Generator, algorithm: str = "louvain") -> list[np.ndarray]:
    """Communities as sorted node ids, largest first (ties: the smaller first node)."""
    import igraph  # not before it is used: every run reads all tasks' settings while nothing else starts

    upper = sp.triu(graph.adjacency, k=1, format="coo")
    edges = np.column_stack([upper.row, upper.col])
    seed = int(rng.integers(2**63))
    with _igraph_generator:  # igraph draws from one generator per process: lend it ours, then give Python's back
        igraph.set_random_number_generator(random.Random(seed))
        try:
            joined = igraph.Graph(n=graph.num_nodes, edges=edges)
            found = joined.community_leiden("modularity") if algorithm == "leiden" else joined.community_multilevel()
        finally:
            igraph.set_random_number_generator(random)
    groups = [np.array(sorted(members), dtype=np.int64) for members in found if members]
    return sorted(groups, key=_largest_first)


def _largest_first(nodes: np.ndarray) -> tuple[int, int]:
    return -nodes.size, int(nodes[0])


def _at_least(groups: list[np.ndarray], count: int, graph: Graph) -> list[np.ndarray]:
    """At least ``count`` groups: the largest is halved as long as there are fewer."""
    groups = list(groups)
    while len(groups) < count:
        groups.sort(key=_largest_first)
        order = _breadth_first(graph, groups.pop(0))
        middle = order.size // 2
        groups += [np.sort(order[:middle]), np.sort(order[middle:])]
    return sorted(groups, key=_largest_first)


def _breadth_first(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """``nodes`` in breadth-first order within their own subgraph, component after component."""
    adjacency = sp.csr_array(graph.adjacency[nodes][:, nodes])
    seen = np.zeros(nodes.size, dtype=bool)
    order: list[int] = []
    for start in range(nodes.size):
        if not seen[start]:
            reached = sp.csgraph.breadth_first_order(adjacency, start, directed=False, return_predecessors=False)
            seen[reached] = True
            order += reached.tolist()
    return nodes[order]


PARTITION: base.PartitionOffers[Params] = base.PartitionOffers(split=split)
