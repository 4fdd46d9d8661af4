"""Canaries: units that enter a training graph in one of two versions, by a fair coin each, and what both look like.

The two versions of any one canary, all others as their coins fell, are neighbours under the relation that the plan states:

    node-zero-out   1: one public word, a random label, no edge (or as it is, mislabelled)   0: zeroed as the relation says
    node-replace    1, 0: two different labels on such a node (canary: full: and all features against none)
    edge-…          1: an edge between two nodes that had none                                 0: no such edge

Each coin decides one unit: canary nodes are distinct, and canary edges share no end. An edge between two canary nodes exists
while neither is zeroed, so for either coin, given the other, the two versions are neighbours. Both versions keep the plan's
assumptions: counts, membership and public attributes. The graph is attacked as it is given, so that a leak shows if the data
break a promise of the plan (a degree).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.privacy import Relation
from fedgraph.types import Graph, Partition

CanaryKind = Literal["word", "mislabelled", "full"]


def places_of(nodes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """int64, by global id: the row of each of ``nodes``, −1 for other ids. asked: ids that will be looked up."""
    found = np.full(int(max(nodes.max(initial=0), asked.max(initial=0))) + 1, -1)
    found[nodes] = np.arange(nodes.size)
    return found


@dataclass(frozen=True, eq=False)
class CanaryNodes:
    """Nodes that enter a graph in one of two versions."""

    nodes: np.ndarray  # int64 [m], global ids, all different
    coins: np.ndarray  # bool [m], the version of each node: true for version 1
    labels: np.ndarray  # int64 [m, 2], the label in version 0 and in version 1; −1: the node is zeroed in that version
    features: sp.csr_array  # float32 CSR [m, d], the row of each node in a version in which it is not zeroed
    alone: bool  # whether the nodes have no edge in either version
    empty: bool = False  # whether version 0 has a label and an empty row; ``features`` are then those of version 1

    @property
    def units(self) -> np.ndarray:
        """int64 [m, 3]: node, label in version 0, label in version 1; with a fourth column of 1 if version 0 is empty."""
        found = np.column_stack([self.nodes, self.labels])
        return np.column_stack([found, np.ones(self.nodes.size, np.int64)]) if self.empty else found

    def planted(self, graph: Graph, nodes: np.ndarray, versions: np.ndarray) -> Graph:
        """``graph``, whose rows are the global ``nodes``, with each canary in the version that ``versions`` (bool [m]) says."""
        place = places_of(nodes, self.nodes)
        rows = place[self.nodes]
        here = np.flatnonzero(rows >= 0)
        rows, labels = rows[here], graph.labels.copy()
        labels[rows] = self.labels[here, versions[here].astype(np.int64)]
        keep = np.ones(graph.num_nodes, dtype=graph.adjacency.dtype)
        keep[rows if self.alone else rows[labels[rows] < 0]] = 0
        adjacency = sp.csr_array(sp.diags_array(keep) @ graph.adjacency @ sp.diags_array(keep))
        adjacency.eliminate_zeros()
        original = np.ones(graph.num_nodes, dtype=np.float32)
        original[rows] = 0
        there = here[(labels[rows] >= 0) & (versions[here] | (not self.empty))]
        at = (place[self.nodes[there]], there)
        put = sp.csr_array((np.ones(there.size, np.float32), at), shape=(graph.num_nodes, self.nodes.size))
        features = sp.csr_array(sp.diags_array(original) @ graph.features + put @ self.features).astype(np.float32)
        features.eliminate_zeros()
        features.sort_indices()
        return replace(graph, adjacency=adjacency, features=features, labels=labels)


@dataclass(frozen=True, eq=False)
class CanaryEdges:
    """Edges that exist or not."""

    pairs: np.ndarray  # int64 [m, 2], global ids of both ends; no two of these edges share an end
    coins: np.ndarray  # bool [m], whether each edge exists
    directed: bool  # whether only the entry from the first end to the second is set; else both entries are

    @property
    def units(self) -> np.ndarray:
        return self.pairs

    def planted(self, graph: Graph, nodes: np.ndarray, versions: np.ndarray) -> Graph:
        """``graph``, whose rows are the global ``nodes``, with the edges that ``versions`` (bool [m]) says."""
        ends = places_of(nodes, self.pairs)[self.pairs[versions]]
        ends = ends[(ends >= 0).all(axis=1)]
        ends = ends if self.directed else np.concatenate([ends, ends[:, ::-1]])
        ones = np.ones(len(ends), dtype=graph.adjacency.dtype)
        added = sp.csr_array((ones, (ends[:, 0], ends[:, 1])), shape=graph.adjacency.shape)
        adjacency = sp.csr_array(graph.adjacency + added)
        adjacency.sort_indices()
        return replace(graph, adjacency=adjacency)


Canaries = CanaryNodes | CanaryEdges


def plant(partition: Partition, canaries: Canaries) -> Partition:
    """The partition with every canary in the version of its coin."""
    return partition.with_graphs(lambda s: canaries.planted(s.graph, s.nodes, canaries.coins))


def join_canary_clients(partition: Partition, held: Graph) -> Graph:
    """What all clients together hold, in the numbering of ``held``."""
    ends = []
    for s in partition.subgraphs:
        rows, columns = s.graph.adjacency.nonzero()
        ends.append(np.column_stack([s.nodes[rows], s.nodes[columns]]))
        if s.cut is not None:
            ends.append(np.column_stack([s.nodes[s.cut[:, 0]], s.cut[:, 1]]))
    both = np.concatenate(ends)
    ones = np.ones(len(both), dtype=held.adjacency.dtype)
    return replace(held, adjacency=sp.csr_array((ones, (both[:, 0], both[:, 1])), shape=held.adjacency.shape))


def draw_canary_nodes(
    held: Graph, public: Graph, relation: Relation, count: int, kind: CanaryKind, rng: np.random.Generator
) -> CanaryNodes:
    """At most ``count`` labelled nodes, and at most half of all labelled ones.

    kind word: version 1 has no edge and a single feature, a column that ``public`` nodes use (at its largest value there). Each
    canary has its own column as long as there are enough, so a model that saw one shows it best. kind full, if nodes are
    replaced: version 1 has every feature at 1, version 0 none, the two farthest rows in [0, 1]; else as word.
    """
    labelled, c = np.flatnonzero(held.labels >= 0), held.num_classes
    chosen = np.sort(rng.choice(labelled, min(count, labelled.size // 2), replace=False))
    m = chosen.size
    first = _other_classes(held.labels[chosen], c, rng) if kind == "mislabelled" else rng.integers(c, size=m)
    other = _other_classes(first, c, rng) if relation.replaces else np.full(m, -1)
    labels = np.column_stack([other, first]).astype(np.int64)
    features, empty = sp.csr_array(held.features[chosen]), kind == "full" and relation.replaces
    if empty:
        features = sp.csr_array(np.ones((m, held.num_features), dtype=np.float32))
    elif kind != "mislabelled" and public.features.nnz:
        largest = np.asarray(abs(public.features).max(axis=0).todense()).ravel()
        columns = np.resize(rng.permutation(np.flatnonzero(largest)), m)
        features = sp.csr_array((largest[columns], (np.arange(m), columns)), shape=(m, held.num_features)).astype(np.float32)
    return CanaryNodes(chosen, rng.random(m) < 0.5, labels, features, alone=kind != "mislabelled", empty=empty)


def _other_classes(labels: np.ndarray, num_classes: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [m], for each label another class, drawn uniformly; the same one if there is only one class."""
    return np.asarray((labels + rng.integers(1, max(num_classes, 2), size=labels.size)) % num_classes)


def draw_canary_edges(
    held: Graph, partition: Partition, relation: Relation, count: int, rng: np.random.Generator
) -> CanaryEdges:
    """At most ``count`` pairs inside clients, of different classes if both labels are known, at nodes of few edges.

    A client gets a share by its number of nodes. A mean over neighbours shows a new edge best at nodes of few edges.
    """
    total = sum(s.nodes.size for s in partition.subgraphs)
    found = []
    for s in partition.subgraphs:
        share = round(count * s.nodes.size / total)
        by_degree = np.lexsort((rng.random(s.nodes.size), s.graph.degrees))
        pool = rng.permutation(by_degree[: max(2, 3 * share)])
        found += [s.nodes[list(pair)] for pair in _matched(s.graph, held.labels[s.nodes], pool, share)]
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return CanaryEdges(pairs, rng.random(len(pairs)) < 0.5, relation is Relation.EDGE_DIRECTED)


def _matched(graph: Graph, labels: np.ndarray, pool: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Pairs of the pool without an edge, whose labels are not known to be equal; no node twice."""
    left = list(map(int, pool))
    found: list[tuple[int, int]] = []
    while left and len(found) < count:
        one = left.pop()
        known = set(graph.adjacency.indices[graph.adjacency.indptr[one] : graph.adjacency.indptr[one + 1]].tolist())
        for position in range(len(left) - 1, -1, -1):
            two = left[position]
            if two not in known and (labels[one] != labels[two] or labels[one] < 0):
                found.append((one, two))
                del left[position]
                break
    return found
