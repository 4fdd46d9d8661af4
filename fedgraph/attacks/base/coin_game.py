"""Units that enter a training by a fair coin each: canaries, which are made up, and games about real nodes and edges.

**Canaries.** The two versions of any one canary, all others as their coins fell, are neighbours under the relation of the plan:

    node-zero-out   1: one public word, a random label, no edge                                0: zeroed as the relation says
    node-replace    1, 0: two different labels on such a node (canary: full: and all features against none)
    edge-…          1: an edge between two nodes that had none                                 0: no such edge

Each coin decides one unit: canary nodes are distinct, and canary edges share no end. Both versions keep the plan's assumptions:
counts, membership and public attributes. The graph is attacked as it is given, so that a leak shows if the data break a promise
of the plan (a degree).

**Games.** Which nodes or edges of the real graph was the model trained on?

    nodes   each labelled node takes part as it is, or is zeroed           neighbours under node-zero-out
    edges   each of some real edges exists, or does not                    neighbours under ``relation_of_edges``

An edge between two nodes in question exists while neither is zeroed, so for either coin, given the other, the two versions are
neighbours. The target's plan is run on what the coins say, with the same noise multipliers and fresh noise. *Shadow* runs are
the attacker's own: the same plan with other coins, which the attacker knows. Shadow coins come in pairs of opposites, so that
every unit is in exactly half of these runs (Carlini et al. 2022, Section V). They and their noise are independent of the
target's coins, so a score depends on these coins only through what the target released, and the one-run theorems apply.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp

from fedgraph.methods import Plan, State
from fedgraph.privacy import Assumption, Relation, Unit
from fedgraph.types import Graph, Partition

CanaryKind = Literal["word", "full"]


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
    first = rng.integers(c, size=m)
    other = _other_classes(first, c, rng) if relation.replaces else np.full(m, -1)
    labels = np.column_stack([other, first]).astype(np.int64)
    features, empty = sp.csr_array(held.features[chosen]), kind == "full" and relation.replaces
    if empty:
        features = sp.csr_array(np.ones((m, held.num_features), dtype=np.float32))
    elif public.features.nnz:
        largest = np.asarray(abs(public.features).max(axis=0).todense()).ravel()
        columns = np.resize(rng.permutation(np.flatnonzero(largest)), m)
        features = sp.csr_array((largest[columns], (np.arange(m), columns)), shape=(m, held.num_features)).astype(np.float32)
    return CanaryNodes(chosen, rng.random(m) < 0.5, labels, features, alone=True, empty=empty)


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


CoinGameKind = Literal["nodes", "edges", "clients"]


class Units(Protocol):
    """What is in question.

    Attributes:
        units: int64 [m, k], one row for each unit; its first number is a node.
        coins: bool [m], the coins of the run under attack.
    """

    @property
    def units(self) -> np.ndarray: ...
    @property
    def coins(self) -> np.ndarray: ...
    def planted(self, graph: Graph, nodes: np.ndarray, versions: np.ndarray) -> Graph:
        """``graph``, whose rows are the global ``nodes``, with every unit as ``versions`` (bool [m]) says."""


@dataclass(frozen=True)
class OwnCoinGame:
    """A game that an attack brings as its ``GAME``, if none of ``CoinGameKind`` fits.

    Attributes:
        name: names its random streams.
        relation: relation under which the two versions of a unit are neighbours.
        play: (partition, all clients' nodes, public graph, most units, generator of the coins) → the game.
    """

    name: str
    relation: Relation
    play: "Callable[[Partition, Graph, Graph, int, np.random.Generator], CoinGame]"


@dataclass(frozen=True, eq=False)
class CoinGameRun:
    """One trained run."""

    coins: np.ndarray  # bool [m], which units took part
    state: State  # after the last round


@dataclass(frozen=True, eq=False)
class CoinGame:
    """What is in question, and what is known."""

    found: Units  # the units, with the coins of the run under attack
    partition: Partition  # what each client holds except what is in question
    known: Graph  # the same of all clients together, in global numbers
    strangers: np.ndarray  # int64 [k, 2], global ids of pairs that never had an edge; k is 0 unless edges are in question

    def dealt(self, coins: np.ndarray) -> Partition:
        """The partition with every unit as ``coins`` say."""
        return self.partition.with_graphs(lambda s: self.found.planted(s.graph, s.nodes, coins))

    def whole(self, coins: np.ndarray) -> Graph:
        """All that the clients hold together, with every unit as ``coins`` say."""
        return self.found.planted(self.known, np.arange(self.known.num_nodes), coins)


def toss_nodes(partition: Partition, held: Graph, most: int, rng: np.random.Generator) -> CoinGame:
    """The game in which every labelled node (at most ``most``) takes part as it is, or is zeroed."""
    known = join_canary_clients(partition, held)
    labelled = np.flatnonzero(known.labels >= 0)
    chosen = np.sort(rng.permutation(labelled)[:most])
    labels = np.column_stack([np.full(chosen.size, -1), known.labels[chosen]])
    coins = rng.random(chosen.size) < 0.5
    found = CanaryNodes(chosen, coins, labels, sp.csr_array(known.features[chosen]), alone=False)
    return CoinGame(found, partition, known, np.zeros((0, 2), np.int64))


def toss_edges(partition: Partition, held: Graph, relation: Relation, most: int, rng: np.random.Generator) -> CoinGame:
    """The game in which at most ``most`` real edges inside clients, and at most half of them, exist or not."""
    known = join_canary_clients(partition, held)
    edges = [(s.nodes, *s.graph.adjacency.nonzero()) for s in partition.subgraphs]
    inside = np.concatenate([np.column_stack([nodes[a[a < b]], nodes[b[a < b]]]) for nodes, a, b in edges]).astype(np.int64)
    chosen = inside[np.sort(rng.permutation(len(inside))[: min(most, len(inside) // 2)])]
    found = CanaryEdges(chosen, rng.random(len(chosen)) < 0.5, relation is Relation.EDGE_DIRECTED)
    left = partition.with_graphs(lambda s: _without(s.graph, s.nodes, chosen))
    rest = _without(known, np.arange(known.num_nodes), chosen)
    return CoinGame(found, left, rest, draw_strangers(partition, known, len(chosen), rng))


def without_coins(partition: Partition, held: Graph) -> CoinGame:
    """The game without coins, for attacks that read single clients."""
    known = join_canary_clients(partition, held)
    none = CanaryEdges(np.zeros((0, 2), np.int64), np.zeros(0, bool), False)
    return CoinGame(none, partition, known, np.zeros((0, 2), np.int64))


def toss_shadows(count: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """``count`` vectors of ``size`` coins, in pairs of opposites."""
    found: list[np.ndarray] = []
    while len(found) < count:
        tossed = rng.random(size) < 0.5
        found += [tossed, ~tossed]
    return found[:count]


def _without(graph: Graph, nodes: np.ndarray, pairs: np.ndarray) -> Graph:
    """``graph``, whose rows are the global ``nodes``, without the edges of ``pairs`` (int64 [m, 2], global), both ways."""
    ends = places_of(nodes, pairs)[pairs]
    ends = ends[(ends >= 0).all(axis=1)]
    both = np.concatenate([ends, ends[:, ::-1]])
    gone = sp.csr_array((np.ones(len(both), graph.adjacency.dtype), (both[:, 0], both[:, 1])), shape=graph.adjacency.shape)
    adjacency = sp.csr_array(graph.adjacency - graph.adjacency.multiply(gone))
    adjacency.eliminate_zeros()
    adjacency.sort_indices()
    return replace(graph, adjacency=adjacency)


def draw_strangers(partition: Partition, known: Graph, count: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [≤ count, 2]: pairs of different nodes of one client without an edge, drawn uniformly."""
    sizes = np.array([s.nodes.size for s in partition.subgraphs])
    starts, every = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([s.nodes for s in partition.subgraphs])
    chances = sizes.astype(float) ** 2

    def draw(k: int) -> np.ndarray:
        which = rng.choice(sizes.size, k, p=chances / chances.sum())
        drawn = [starts[which] + (rng.random(which.size) * sizes[which]).astype(np.int64) for _ in range(2)]
        return np.column_stack([every[drawn[0]], every[drawn[1]]])

    return draw_pairs(known, count, draw)


def draw_pairs(known: Graph, count: int, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """int64 [≤ count, 2]: pairs without an edge in ``known``, in the order they were drawn, each once, the smaller id first.

    draw: from a number k to int64 [≤ k, 2], pairs with repetitions; called at most 50 times with 4 · ``count``.
    """
    found: dict[tuple[int, int], None] = {}
    for _ in range(50):
        if len(found) >= count or not count:
            break
        pairs = draw(4 * count)
        pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        joined = np.asarray(known.adjacency[pairs[:, 0], pairs[:, 1]]).ravel() != 0
        found.update(dict.fromkeys(map(tuple, pairs[~joined].tolist())))
    return np.array(list(found)[:count], dtype=np.int64).reshape(-1, 2)


def refuse_nodes(made: Plan) -> str | None:
    """Why a plan has no game of nodes, or None."""
    if made.guarantee.protection.unit is not Unit.NODE:
        return "features and labels are public here"
    if made.guarantee.protection.relation is Relation.NODE_REPLACE:
        return "who takes part is public here (nodes are replaced, not left out)"
    return None


def refuse_edges(made: Plan) -> str | None:
    """Why a plan has no game of edges, or None."""
    return "its edges are public" if Assumption.EDGES_PUBLIC in made.guarantee.protection.assumptions else None


def relation_of(kind: CoinGameKind | OwnCoinGame, made: Plan) -> Relation | None:
    """The relation under which the two versions of a unit are neighbours; None: there are no units."""
    if isinstance(kind, OwnCoinGame):
        return kind.relation
    if kind == "edges":
        return relation_of_edges(made)
    return Relation.NODE_ZERO_OUT if kind == "nodes" else None


def relation_of_edges(made: Plan) -> Relation:
    """The relation between a graph with an edge and one without it: the plan's own, if it is one of edges."""
    own = made.guarantee.protection.relation
    return own if own in (Relation.EDGE_DIRECTED, Relation.EDGE_UNDIRECTED) else Relation.EDGE_UNDIRECTED
