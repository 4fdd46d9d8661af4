"""Trainings that many tests share: a method is trained once in each of its situations, and everybody asserts on what came out.

``Trainings.of(key)`` trains when it is first asked, with the engine that asks everything again (``AsksAgain``), so that what is
shared is also what a worker with a lost answer would give. Whoever needs a second training (the same again, under Ray, with
another stream) makes it with ``train`` and compares.
"""

import dataclasses
import functools
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import plugins, seeds
from fedgraph.federation import Federation, rounds
from fedgraph.federation import client as federated_client
from fedgraph.methods.base import Budget, MethodSituation, Plan, PublicCutEdgeFacts, PublicFacts, method_kinds
from fedgraph.partition import ego, uniform
from fedgraph.partition.base import with_cut_edges
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import OnRuntimeRound, Runtime, RuntimeFunction
from fedgraph.runtime.counts import RuntimeCountPath
from fedgraph.runtime.serial import SerialClients, SerialRuntime
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, GraphProvenance, Partition, Subgraph, plain_graph
from tests.public_facts import public_facts

DELTA = 1e-3
Dealt = tuple[Partition, PublicFacts]  # (who holds what, what is public)


def collection(sizes: tuple[tuple[int, ...], ...] = ((2, 4), (3,), (2, 5, 3)), unlabelled: int | None = None) -> Dealt:
    """Clients with whole graphs, of so many nodes each; one of them may have no label."""
    rng, subgraphs, first = np.random.default_rng(0), [], 0
    for client, own in enumerate(sizes):
        n = sum(own)
        edges, rows = sp.block_diag([np.ones((k, k)) - np.eye(k) for k in own]), rng.random((n, 3)).astype(np.float32)
        labels = np.full(n, -1) if client == unlabelled else np.repeat(np.arange(len(own)) % 2, own)
        graph = plain_graph("c", sp.csr_array(edges), sp.csr_array(rows), labels, 2, GraphProvenance("own", "test"))
        subgraphs.append(Subgraph(client, graph, np.arange(first, first + n)))
        first += n
    partition = Partition(tuple(subgraphs), True, 0, "test", from_edges=False, from_labels=False)
    return partition, public_facts(first, 3, 2, tuple(map(sum, sizes)), Viewer.SERVER, graphs=sizes)


def egos(graph: Graph, clients: int = 6, public: bool = False) -> Dealt:
    """Clients with ego-networks. public: whether the part of the graph that nobody holds is."""
    partition = ego.split(graph, ego.Params(clients=clients), seeds.seeded_generator(0, "ego"))
    sizes, held = tuple(s.graph.num_nodes for s in partition.subgraphs), partition.holdings(graph.num_nodes)
    outside = graph.induced(np.flatnonzero(np.asarray(held.sum(axis=0)).ravel() == 0)) if public else None
    dimensions = (graph.num_nodes, graph.num_features, graph.num_classes)
    return partition, public_facts(*dimensions, sizes, Viewer.SERVER, held, outside)


def placed(situation: MethodSituation, trusted: Trust, graph: Graph) -> tuple[Partition, PublicFacts, Graph]:
    """(who holds what, what is public, the graph that is asked)."""
    if situation.given == "collection":
        return *collection(), graph
    if situation.given == "ego":
        return *egos(graph), graph
    given = "transductive" if situation.given == "links" else situation.given
    setting, partition, facts = deal(graph, given, trusted.viewer)
    return partition, facts, setting.asked


def deal(
    graph: Graph, protocol: str, viewer: Viewer, clients: int = 3, cut_edges: PublicCutEdgeFacts = "dropped"
) -> tuple[Federation, Partition, PublicFacts]:
    """(the setting, who holds what, what is public); one curator, or so many clients with nodes dealt at random."""
    setting = protocols.divide(graph, protocol, 0.8, seeds.seeded_generator(0, "split"))  # type: ignore[arg-type]
    parts = uniform.Params(clients=1 if viewer is Viewer.CURATOR_TRUSTED else clients)
    partition = uniform.split(setting.held, parts, seeds.seeded_generator(0, "deal"))
    if cut_edges == "protected":
        partition = with_cut_edges(setting.held, partition)
    sizes, members = tuple(s.graph.num_nodes for s in partition.subgraphs), tuple(s.nodes for s in partition.subgraphs)
    held = setting.held
    facts = public_facts(
        held.num_nodes, held.num_features, held.num_classes, sizes, viewer, public_graph=setting.public_graph,
        public_attributes=setting.public_attributes, members=members, public_name=setting.public, asking=setting.asking,
        cut_edges=cut_edges,
    )  # fmt: skip
    return setting, partition, facts


def made(
    method: Any, graph: Graph, epsilon: float, viewer: Viewer = Viewer.CURATOR_TRUSTED, protocol: str = "transductive",
    reading: Any = "provable", delta: float = DELTA, **settings: object,
) -> tuple[Plan, Partition, Federation]:  # fmt: skip
    """A plan of the method in this file with these settings, who holds what, and the setting that was dealt."""
    setting, partition, facts = deal(graph, protocol, viewer)
    return method.plan(method.Params(**settings), facts, Budget(epsilon, delta, reading)), partition, setting


def planned(
    name: str, index: int, trusted: Trust, graph: Graph, epsilon: float, **more: object
) -> tuple[Plan, Partition, Graph]:
    method = method_kinds.load(name)
    situation = method.OFFERS.situations[index]
    partition, facts, asked = placed(situation, trusted, graph)
    return method.plan(method.Params(**situation.settings, **more), facts, Budget(epsilon, DELTA)), partition, asked


def train(plan: Plan, partition: Partition, engine: Runtime | None = None, cell: str = "cell") -> rounds.RoundsOutcome:
    """One training; serial where no engine is given."""
    engine = engine or SerialRuntime()
    shared = engine.share(f"partition:{cell}:{plan.method}:{id(partition)}", partition)
    return rounds.run(engine, shared, plan, 0, (cell, plan.method), (cell, plan.method), rounds.RoundPrefixes())


class AskedAgain(SerialClients):
    """Every answer is lost once, and computed again: at once by a worker that was started anew and remembers nothing, and after
    the next round by one that keeps its memory.

    It must be the same to the last bit, with the same lines of the ledger: then nothing is released or advanced twice.
    """

    before: tuple[tuple[Any, ...], bytes] | None = None

    def ask(self, function: RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        call = function, num_items, *args
        found = super().ask(*call)
        if function is federated_client.forget:
            return found
        said = pickle.dumps(found)
        super().ask(federated_client.forget, num_items, args[1])
        assert pickle.dumps(super().ask(*call)) == said, f"{function.__name__}, asked again"
        if self.before is not None:
            earlier, answer = self.before
            assert pickle.dumps(super().ask(*earlier)) == answer, f"{function.__name__}, asked again too late"
        self.before = call, said
        return found


class AsksAgain(SerialRuntime):
    def clients(self, path: RuntimeCountPath, on_round: OnRuntimeRound) -> AskedAgain:
        return AskedAgain(self._tally, path, on_round)


def cases(turn: int | None = None, clear: bool = True) -> list[Any]:
    """(method, number of a situation, trust) of every method in all its situations.

    turn: of each situation one trust is quick and the others are slow: the ``turn``-th from the end for the first situation of
    a method, the one before for its second, round and round. Who is trusted is one piece of code for all methods.
    clear: also methods that are never private.
    """
    found = []
    for name in plugins.names("methods"):
        offers = method_kinds.load(name).OFFERS
        for index, situation in enumerate(offers.situations if clear or not offers.never_private else ()):
            for place, trusted in enumerate(situation.trusted):
                rare = turn is not None and place != -(turn + index) % len(situation.trusted)
                called = f"{name}-{situation.given}-{index}-{trusted.value}"
                found.append(pytest.param(name, index, trusted, id=called, marks=pytest.mark.slow if rare else ()))
    return found


class Key(NamedTuple):
    """What is trained: a method in the ``index``-th of its situations, whom clients trust, and the budget."""

    name: str
    index: int
    trusted: Trust
    epsilon: float = 2.0


@dataclass(frozen=True)
class Training:
    """A finished training, for reading only.

    Args:
        asked: the graph whose nodes ask.
        outcome: its last state, and every line of its ledger.
        changed: names of input arrays that are not as they were before.
    """

    plan: Plan
    partition: Partition
    asked: Graph
    outcome: rounds.RoundsOutcome
    changed: tuple[str, ...]


class Trainings:
    """What was trained so far on one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.of = functools.cache(self._train)
        self.planned = functools.cache(self._plan)

    def _plan(self, key: Key) -> tuple[Plan, Partition, Graph]:
        return planned(*key[:3], self._graph, key.epsilon)

    def _train(self, key: Key) -> Training:
        plan, partition, asked = self._plan(key)  # of its own: a method that writes into its inputs spoils nobody's plan
        before = inputs(partition)
        outcome = train(plan, partition, AsksAgain())
        after = inputs(partition)
        return Training(plan, partition, asked, outcome, tuple(k for k in before if not np.array_equal(before[k], after[k])))


def inputs(partition: Partition) -> dict[str, np.ndarray]:
    """Copies of every client's arrays."""
    return {
        f"{name} of client {s.client}": array.copy()
        for s in partition.subgraphs
        for name, array in (
            ("features", s.graph.features.data),
            ("columns", s.graph.features.indices),
            ("labels", s.graph.labels),
            ("edges", s.graph.adjacency.indices),
            ("weights", s.graph.adjacency.data),
            ("nodes", s.nodes),
        )
    }


def difference(one: Any, other: Any, where: str = "") -> str:
    """Where two values are not equal to the last bit; the empty string where they are."""
    if type(one) is not type(other):
        return f"{where}: {type(one).__name__} and {type(other).__name__}"
    if isinstance(one, np.ndarray):
        equal = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        return "" if equal else where
    if sp.issparse(one):
        one, other = ((m.shape, m.data, m.indices, m.indptr) for m in (one, other))
    if dataclasses.is_dataclass(one):
        one, other = ({f.name: getattr(m, f.name) for f in dataclasses.fields(m)} for m in (one, other))
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return f"{where}: {sorted(map(str, one))} and {sorted(map(str, other))}"
        return next(filter(None, (difference(one[k], other[k], f"{where}.{k}") for k in one)), "")
    if isinstance(one, tuple | list):
        if len(one) != len(other):
            return f"{where}: {len(one)} and {len(other)} of them"
        return next(filter(None, (difference(a, b, f"{where}[{k}]") for k, (a, b) in enumerate(zip(one, other)))), "")  # noqa: B905
    return "" if one == other or (one != one and other != other) else where
