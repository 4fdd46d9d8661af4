"""Rooted subgraphs: what a node that was drawn reads of the nodes around it.

A root w reads neighbours, and their neighbours, up to ``hops`` away. Which nodes it may read at all is said for each pair
(root, node) by ``allowed``. Each reader takes at most ``cap`` of the neighbours that it may read, those with the smallest of
public numbers that are drawn for each pair (root, node) by its names.

**What one node changes.** A node that is not in the subgraph of w does not change it: no number of a pair depends on other
pairs, and a neighbour that was passed over leaves the same ones chosen when it goes. Degrees of the whole graph are never read.
So a node is in no more subgraphs than its own, those whose ``allowed`` names it, and those of the nodes within ``hops`` of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import neighbour_limits


@dataclass(frozen=True, eq=False)
class RootedSamples:
    """Subgraphs of equal size, padded."""

    # int64 [b, s], numbers of nodes in the graph, the root first; −1 where a place is empty. The last place is always.
    nodes: np.ndarray
    # int64 [b, 2, e], (from, to) as places of ``nodes``, all edges and then all of them the other way; the rest leads from the
    # last place to itself
    arcs: np.ndarray

    def rooms(self) -> np.ndarray:
        """int64 [b]: places for nodes that each is given, which follows from its own nodes and edges alone; for r nodes there
        is room for r − 1 edges.

        >>> alone(np.array([3, 5])).rooms().tolist()
        [1, 1]
        """
        edges = (self.arcs[:, 0] != self.nodes.shape[1] - 1).sum(axis=1) // 2
        own = np.maximum((self.nodes >= 0).sum(axis=1), edges + 1)
        return np.asarray(2 ** np.ceil(np.log2(own)), dtype=np.int64)

    def of(self, chosen: np.ndarray) -> RootedSamples:
        """Some of them, with the room that the largest of these needs. chosen: int64 [k]."""
        last, size = self.nodes.shape[1] - 1, int(self.rooms()[chosen].max(initial=1))
        most = 2 * (size - 1)
        nodes, arcs = np.full((len(chosen), size + 1), -1), np.full((len(chosen), 2, most + 1), size)
        given, led = self.nodes[chosen, :size], self.arcs[chosen, :, :most]
        nodes[:, : given.shape[1]], arcs[:, :, : led.shape[2]] = given, np.where(led == last, size, led)
        nodes[:, size] = -1
        return RootedSamples(nodes, arcs)


def alone(roots: np.ndarray) -> RootedSamples:
    """Roots that read nobody. roots: int64 [b]."""
    return RootedSamples(np.stack([roots, np.full_like(roots, -1)], axis=1), np.ones((len(roots), 2, 1), dtype=np.int64))


def subgraphs(
    adjacency: sp.csr_array,
    ids: np.ndarray,
    roots: np.ndarray,
    allowed: Callable[[np.ndarray, np.ndarray], np.ndarray],
    cap: int,
    hops: int,
    coin: int,
) -> RootedSamples:
    """The subgraphs of ``roots``.
    adjacency: CSR [n, n], symmetric, without self-loops. ids: int64 [n], public names of the nodes. roots: int64 [b], numbers
    of nodes, each once. allowed: (roots int64 [m], nodes int64 [m]), both as numbers → bool [m]: whether a root may read a
    node; it must say the same of a pair whatever else it is asked. cap: the most neighbours that one reader reads, at least 1.
    hops: how far a root reads; 0: itself alone. coin: a public number that names the order in which neighbours are taken.
    """
    n, count = adjacency.shape[0], len(roots)
    if not hops:
        return alone(roots)
    readers = np.stack([np.arange(count), roots])  # (subgraph, node)
    found, read = [readers], [np.zeros((3, 0), dtype=np.int64)]
    seen = np.sort(readers[0] * n + readers[1])
    for _ in range(hops):
        taken = _taken(adjacency, ids, roots, readers, allowed, cap, coin)
        read.append(taken)
        keys = np.setdiff1d(taken[0] * n + taken[2], seen)
        seen = np.union1d(seen, keys)
        readers = np.stack([keys // n, keys % n])
        found.append(readers)
    return _padded(np.concatenate(found, axis=1), np.concatenate(read, axis=1), count, n)


def _taken(
    adjacency: sp.csr_array,
    ids: np.ndarray,
    roots: np.ndarray,
    readers: np.ndarray,
    allowed: Callable[[np.ndarray, np.ndarray], np.ndarray],
    cap: int,
    coin: int,
) -> np.ndarray:
    """int64 [3, m]: (subgraph, reader, node that it reads)."""
    degrees = np.diff(adjacency.indptr)[readers[1]]
    reader = np.repeat(np.arange(readers.shape[1]), degrees)
    first = np.repeat(np.cumsum(degrees) - degrees, degrees)
    node = adjacency.indices[adjacency.indptr[readers[1]][reader] + np.arange(reader.size) - first].astype(np.int64)
    subgraph = readers[0][reader]
    kept = (node != roots[subgraph]) & allowed(roots[subgraph], node)
    reader, node, subgraph = reader[kept], node[kept], subgraph[kept]
    place = neighbour_limits.coins_of(ids[roots[subgraph]], ids[node], coin)
    order = np.lexsort((node, place, reader))
    reader, node, subgraph = reader[order], node[order], subgraph[order]
    rank = np.arange(reader.size) - np.searchsorted(reader, reader)
    few = rank < cap
    return np.stack([subgraph[few], readers[1][reader[few]], node[few]])


def _padded(found: np.ndarray, read: np.ndarray, count: int, n: int) -> RootedSamples:
    """found: int64 [2, m], (subgraph, node), each once, roots first. read: int64 [3, k], with pairs that may come twice."""
    order = np.argsort(found[0], kind="stable")
    owner, node = found[0][order], found[1][order]
    place = np.arange(owner.size) - np.searchsorted(owner, owner)
    size = int(place.max(initial=0)) + 2
    nodes = np.full((count, size), -1, dtype=np.int64)
    nodes[owner, place] = node
    keys = owner * n + node
    sorted_keys = np.argsort(keys)
    low, high = (
        place[sorted_keys[np.searchsorted(keys, read[0] * n + side(read[1], read[2]), sorter=sorted_keys)]]
        for side in (np.minimum, np.maximum)
    )
    edges = np.unique(np.stack([read[0], low, high]), axis=1)
    number = np.arange(edges.shape[1]) - np.searchsorted(edges[0], edges[0])
    own = np.bincount(edges[0], minlength=count)
    arcs = np.full((count, 2, 2 * int(own.max(initial=0)) + 1), size - 1, dtype=np.int64)
    for shift, (source, target) in enumerate(((edges[1], edges[2]), (edges[2], edges[1]))):
        arcs[edges[0], 0, number + shift * own[edges[0]]] = source
        arcs[edges[0], 1, number + shift * own[edges[0]]] = target
    return RootedSamples(nodes, arcs)


def reach(degree: int, hops: int) -> int:
    """The most nodes within ``hops`` of one node, itself left out, where no node has more than ``degree`` neighbours.

    >>> reach(10, 1), reach(10, 2), reach(10, 0)
    (10, 100, 0)
    """
    return degree * sum((degree - 1) ** i for i in range(hops))
