"""What each owner of a federation reaches on the hidden ties among its own nodes, and what its dearest unit pays.

An owner is asked about its own hidden ties beside pairs of its own nodes without one, the same in every world: alone it has no
other node to rank. Ties that lead to nodes of others are asked in the row's own numbers, and not here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph import seeds
from fedgraph.cells import ClientResultCellFacts, task_facts
from fedgraph.documents import SettingsSpec
from fedgraph.errors import ScenarioError
from fedgraph.learning import links
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.participation import client_records
from fedgraph.tasks.participation.client_records import CLIENT_RECORD_OF_ALL
from fedgraph.types import Graph, Partition
from fedgraph.worlds import Federation, World, WorldKind

_Scores = Callable[[int, np.ndarray], np.ndarray]  # (client, pairs [m, 2] in the numbers of the whole graph) → [m]


def deal(graph: Graph, partition: SettingsSpec, context: CellContext) -> tuple[Graph, Partition]:
    """Deal nodes to owners that stay the same for all seeds, as ``client_records.deal`` does.

    Args:
        partition: The settings of the partition, its name among them.
        context: The root of the random streams. It keeps the result.

    Raises:
        ScenarioError: The partition follows edges, so it would see those that are hidden; or two clients would hold one node.
        DataError: Two clients have one name, or a client is called as tables call everybody.
    """
    found = client_records.deal(graph, partition, context)
    if found[1].from_edges:
        raise ScenarioError(
            f"owners asks for clients that stay the same, and partition {partition['partition']!r} follows edges, hidden ones, "
            "too; allowed with it: natural, uniform, dirichlet"
        )
    return found


@dataclass(frozen=True, eq=False)
class Question:
    """What one owner is asked; both are empty where nothing is asked.

    Attributes:
        hidden: int64 [m, 2], hidden ties among its nodes, in the numbers of the whole graph.
        against: int64 [k, 2], pairs of its nodes without a tie.
    """

    hidden: np.ndarray
    against: np.ndarray


def ask(graph: Graph, federation: Federation, hidden: np.ndarray, negatives: int, path: Sequence[str | int],
                 context: CellContext) -> list[Question]:  # fmt: skip
    """One for each owner, empty where it has no hidden tie, or no pair without a tie. path: names the random stream."""
    found, owner = [], np.zeros(graph.num_nodes, dtype=np.int64)
    for share in federation.partition.subgraphs:
        owner[share.nodes] = share.client
    for share, name in zip(federation.partition.subgraphs, federation.names, strict=True):
        own, n = hidden[(owner[hidden] == share.client).all(axis=1)], share.nodes.size
        inside = graph.induced(share.nodes)
        some = negatives if len(own) and inside.num_edges < n * (n - 1) // 2 else 0
        rng = seeds.seeded_generator(context.root, "negatives", context.dataset, *path, "owner", name)
        pairs = links.draw_pairs(n, some, rng, inside.adjacency)
        found.append(Question(own if some else own[:0], share.nodes[pairs] if some else own[:0]))
    return found


def measure(
    world: World,
    federation: Federation,
    questions: Sequence[Question],
    scores: _Scores,
    prices: Sequence[float],
    toward: str,
) -> tuple[ClientResultCellFacts, ...]:
    """One of everybody, whose numbers are means over all hidden ties that were asked, and one for each owner."""
    participation = {WorldKind.ALONE: "alone", WorldKind.TOGETHER: "federated", WorldKind.WHOLE: "curator"}[world.kind]
    found = []
    for client, question in enumerate(questions):
        tested, metrics, right = len(question.hidden), dict[str, float](), ""
        if tested:
            told = scores(client, np.concatenate([question.hidden, question.against]))
            metrics = links.measure_scores(told[:tested], told[tested:])
            right = task_facts.pack_answers(links.rank_scores(told[:tested], told[tested:]))
        size = int(federation.partition.subgraphs[client].nodes.size)
        name, price = federation.names[client], prices[client]
        found.append(ClientResultCellFacts(participation, name, size, tested, metrics, price, toward, right=right))
    tested, asked = sum(one.tested for one in found), [one for one in found if one.tested]
    names = asked[0].metrics if asked else ()
    means = {name: sum(one.tested * one.metrics[name] for one in asked) / tested for name in names}
    nodes = sum(one.nodes for one in found)
    return (ClientResultCellFacts(participation, CLIENT_RECORD_OF_ALL, nodes, tested, means, max(prices), toward), *found)
