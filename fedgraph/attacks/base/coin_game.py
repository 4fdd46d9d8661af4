"""Games of fair coins: which nodes or edges of the real graph the model was trained on.

    nodes   each labelled node takes part as it is, or is zeroed           neighbours under node-zero-out
    edges   each of some real edges exists, or does not                    neighbours under ``relation_of_edges``

The target's plan is run on what the coins say, with the same noise multipliers and fresh noise. *Shadow* runs are the
attacker's own: the same plan with other coins, which the attacker knows. Shadow coins come in pairs of opposites, so that every
unit is in exactly half of these runs (Carlini et al. 2022, Section V). They and their noise are independent of the target's
coins, so a score depends on these coins only through what the target released, and the one-run theorems apply.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp

from fedgraph.attacks.base import canaries
from fedgraph.methods import Plan, State
from fedgraph.privacy import Assumption, Relation, Unit
from fedgraph.types import Graph, Partition

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
    known = canaries.join_canary_clients(partition, held)
    labelled = np.flatnonzero(known.labels >= 0)
    chosen = np.sort(rng.permutation(labelled)[:most])
    labels = np.column_stack([np.full(chosen.size, -1), known.labels[chosen]])
    coins = rng.random(chosen.size) < 0.5
    found = canaries.CanaryNodes(chosen, coins, labels, sp.csr_array(known.features[chosen]), alone=False)
    return CoinGame(found, partition, known, np.zeros((0, 2), np.int64))


def toss_edges(partition: Partition, held: Graph, relation: Relation, most: int, rng: np.random.Generator) -> CoinGame:
    """The game in which at most ``most`` real edges inside clients, and at most half of them, exist or not."""
    known = canaries.join_canary_clients(partition, held)
    edges = [(s.nodes, *s.graph.adjacency.nonzero()) for s in partition.subgraphs]
    inside = np.concatenate([np.column_stack([nodes[a[a < b]], nodes[b[a < b]]]) for nodes, a, b in edges]).astype(np.int64)
    chosen = inside[np.sort(rng.permutation(len(inside))[: min(most, len(inside) // 2)])]
    found = canaries.CanaryEdges(chosen, rng.random(len(chosen)) < 0.5, relation is Relation.EDGE_DIRECTED)
    left = partition.with_graphs(lambda s: _without(s.graph, s.nodes, chosen))
    rest = _without(known, np.arange(known.num_nodes), chosen)
    return CoinGame(found, left, rest, draw_strangers(partition, known, len(chosen), rng))


def without_coins(partition: Partition, held: Graph) -> CoinGame:
    """The game without coins, for attacks that read single clients."""
    known = canaries.join_canary_clients(partition, held)
    none = canaries.CanaryEdges(np.zeros((0, 2), np.int64), np.zeros(0, bool), False)
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
    ends = canaries.places_of(nodes, pairs)[pairs]
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
