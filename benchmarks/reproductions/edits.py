"""Distances between small graphs beside Gromov-Wasserstein, and graphs that differ in one edge or node.

``edit_distance`` is networkx's exact search (Abu-Aisheh et al. 2015, the algorithm that Jin & Chen use), exponential in the
number of nodes: for graphs of up to about eight.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    import networkx as nx

EDITS = ("edge removed", "edge added", "node removed")


def networkx_for_edits(adjacency: sp.csr_array) -> "nx.Graph":
    """The undirected graph as networkx holds it, nodes 0 … n − 1.

    Args:
        adjacency: CSR [n, n], symmetric; weights and loops are left out.
    """
    import networkx as nx  # not before it is used: every run lists all tasks

    graph = nx.Graph()
    graph.add_nodes_from(range(adjacency.shape[0]))
    rows, columns = adjacency.nonzero()
    graph.add_edges_from((int(i), int(j)) for i, j in zip(rows, columns, strict=True) if i < j)
    return graph


def edit_distance(first: sp.csr_array, second: sp.csr_array) -> float:
    """Fewest insertions and deletions of nodes and edges (one each) that make the topologies alike.

    Args:
        first: CSR [n, n], symmetric.
        second: CSR [m, m], symmetric. The search takes time exponential in the number of nodes.
    """
    import networkx as nx

    return float(nx.graph_edit_distance(networkx_for_edits(first), networkx_for_edits(second)))


def _edit_graph(adjacency: sp.csr_array, edit: str, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray] | None:
    """(adjacency after one random edit, the nodes that are left: int64); None where the graph has no such neighbour.

    Removing is the same pair of neighbours as adding, seen from the other side; an edge is drawn from those that are there
    and from those that are not.
    """
    n = adjacency.shape[0]
    everyone = np.arange(n, dtype=np.int64)
    if edit == "node removed":
        kept = np.delete(everyone, int(rng.integers(n)))
        return None if n < 2 else (sp.csr_array(adjacency[kept][:, kept]), kept)
    present = adjacency.toarray() != 0
    rows, columns = np.nonzero(np.triu(present if edit == "edge removed" else ~present, 1))
    if not rows.size:
        return None
    at = int(rng.integers(rows.size))
    i, j = rows[at], columns[at]
    present[i, j] = present[j, i] = not present[i, j]
    return sp.csr_array(present.astype(np.float64)), everyone


def random_graph_edits(
    adjacency: sp.csr_array, count: int, rng: np.random.Generator
) -> Iterator[tuple[str, sp.csr_array, np.ndarray]]:
    """Random edits of every kind that this graph allows.

    Args:
        adjacency: CSR [n, n], symmetric.
        count: How many of each kind.
        rng: Draws what is edited.

    Yields:
        (kind, the adjacency afterwards, int64 numbers of the nodes that are left).
    """
    for name in EDITS:
        for _ in range(count):
            found = _edit_graph(adjacency, name, rng)
            if found is not None:
                yield name, *found
