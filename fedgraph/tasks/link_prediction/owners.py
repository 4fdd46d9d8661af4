"""What each owner of a federation reaches on the hidden ties among its own nodes, and what its dearest unit pays.

An owner is asked about its own hidden ties beside pairs of its own nodes without one, the same in every world: alone it has no
other node to rank. Ties that lead to nodes of others are asked in the row's own numbers, and not here.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph import seeds
from fedgraph.cells.facts import ClientResult, pack_right
from fedgraph.documents.settings import Spec
from fedgraph.errors import ScenarioError
from fedgraph.learning import links
from fedgraph.privacy.settle import per_client
from fedgraph.tasks.base import Context
from fedgraph.tasks.base.training import Trained
from fedgraph.tasks.participation.records import ALL, graph_with_owners
from fedgraph.types import Graph, Partition
from fedgraph.worlds.dealt import Federation
from fedgraph.worlds.world import Kind, World

Scores = Callable[[int, np.ndarray], np.ndarray]  # (client, pairs [m, 2] in the numbers of the whole graph) → [m]


def owned_graph(graph: Graph, partition: Spec, key: Hashable, context: Context) -> tuple[Graph, Partition]:
    """(the graph whose nodes know their owner, how they were dealt): once for all seeds.

    ``ScenarioError`` for a partition that follows edges: it would see those that are hidden.
    """

    def make() -> tuple[Graph, Partition]:
        return graph_with_owners(graph, partition, seeds.generator(context.root, "partition", context.dataset, "owners"))

    found: tuple[Graph, Partition] = context.cached(("owned", context.dataset, key), make)
    if found[1].from_edges:
        raise ScenarioError(
            f"owners asks for clients that stay the same, and partition {partition['partition']!r} follows edges, hidden ones, "
            "too; allowed with it: natural, uniform, dirichlet"
        )
    return found


@dataclass(frozen=True, eq=False)
class Question:
    """What one owner is asked, int64 [m, 2] each: hidden ties among its nodes, and pairs of its nodes without one."""

    hidden: np.ndarray
    against: np.ndarray


def questions_of(graph: Graph, federation: Federation, hidden: np.ndarray, negatives: int, path: Sequence[str | int],
                 context: Context) -> list[Question]:  # fmt: skip
    """One for each owner, empty where it has no hidden tie, or no pair without a tie. path: names the random stream."""
    found, owner = [], np.zeros(graph.num_nodes, dtype=np.int64)
    for share in federation.partition.subgraphs:
        owner[share.nodes] = share.client
    for share, name in zip(federation.partition.subgraphs, federation.names, strict=True):
        own, n = hidden[(owner[hidden] == share.client).all(axis=1)], share.nodes.size
        inside = graph.induced(share.nodes)
        some = negatives if len(own) and inside.num_edges < n * (n - 1) // 2 else 0
        rng = seeds.generator(context.root, "negatives", context.dataset, *path, "owner", name)
        pairs = links.random_pairs(n, some, rng, inside.adjacency)
        found.append(Question(own if some else own[:0], share.nodes[pairs] if some else own[:0]))
    return found


def prices_of(done: Trained, federation: Federation) -> list[float]:
    """ε of each owner's dearest unit in a training of all of them."""
    if done.world.world.kind is Kind.WHOLE:
        return [done.settled.epsilon] * len(federation.names)
    each = per_client(done.guarantee, done.outcome.releases)
    return [each.get(client, 0.0) for client in range(len(federation.names))]


def results_of(
    world: World, federation: Federation, questions: Sequence[Question], scores: Scores, prices: Sequence[float], toward: str
) -> tuple[ClientResult, ...]:
    """One of everybody, whose numbers are means over all hidden ties that were asked, and one for each owner."""
    participation = {Kind.ALONE: "alone", Kind.TOGETHER: "federated", Kind.WHOLE: "curator"}[world.kind]
    found = []
    for client, question in enumerate(questions):
        tested, metrics, right = len(question.hidden), dict[str, float](), ""
        if tested:
            told = scores(client, np.concatenate([question.hidden, question.against]))
            metrics = links.measure(told[:tested], told[tested:])
            right = pack_right(links.shares_below(told[:tested], told[tested:]))
        size = int(federation.partition.subgraphs[client].nodes.size)
        name, price = federation.names[client], prices[client]
        found.append(ClientResult(participation, name, size, tested, metrics, price, toward, right=right))
    tested, asked = sum(one.tested for one in found), [one for one in found if one.tested]
    names = asked[0].metrics if asked else ()
    means = {name: sum(one.tested * one.metrics[name] for one in asked) / tested for name in names}
    nodes = sum(one.nodes for one in found)
    return (ClientResult(participation, ALL, nodes, tested, means, max(prices), toward), *found)
