"""What each client of a federation reaches, and what its dearest unit pays; one record per participation and client."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedgraph import plugins, seeds
from fedgraph.cells import ClientResultCellFacts, ParticipationCellFacts, task_facts
from fedgraph.documents import SettingsSpec
from fedgraph.errors import DataError, RuntimeFailure, ScenarioError
from fedgraph.learning import own_models
from fedgraph.methods import ColumnRanks, method_kinds
from fedgraph.partition import base
from fedgraph.privacy import settle
from fedgraph.tasks.base import Cell, CellContext, Result, cell_training, measures
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.types import Graph, Partition
from fedgraph.worlds import Federation, WorldKind, protocols

CLIENT_RECORD_OF_ALL = "all"  # the name of the record that is about everybody's nodes
_WEIGHTS = "own weights"  # the participation of clients that went on from the shared weights
CLIENT_RECORD_TOWARD_NOBODY = "nobody: the model and its answers stay with the client that made them"
RECORD_TOWARD_OTHERS = (
    "the server and the other clients; whoever sees the head, the weights or their answers is not kept from anything"
)

ClientRecordAnswers = Callable[[Graph], np.ndarray]  # of one model: graph → scores [n, c]


def find(name: str, names: Sequence[str], key: str) -> int:
    """The number of the client called ``name``; ``ScenarioError`` where there is none."""
    if name not in names:
        hint = plugins.suggest_plugin_name(name, list(names))
        raise ScenarioError(f"{key}: there is no client {name!r}{hint}; allowed: {', '.join(names)}")
    return list(names).index(name)


def deal(graph: Graph, partition: SettingsSpec, context: CellContext) -> tuple[Graph, Partition]:
    """Deal nodes to clients that stay the same for all seeds.

    Args:
        partition: The settings of the partition, its name among them.
        context: The root of the random streams. It keeps the result.

    Returns:
        (the graph, whose nodes know their owner; how they were dealt). Clients have the names that the data give to owners,
        where the partition keeps these, and are called ``client 1``, ``client 2``, … otherwise.

    Raises:
        ScenarioError: Two clients would hold the same node.
        DataError: Two clients have one name, or a client is called as tables call everybody.
    """

    def make() -> tuple[Graph, Partition]:
        offers, settings = base.chosen(partition)
        found = offers.split(graph, settings, seeds.seeded_generator(context.root, "partition", context.dataset, "owners"))
        if not found.disjoint:
            overlapping = partition["partition"]
            raise ScenarioError(f"participation needs clients that share no node; partition {overlapping!r} overlaps")
        owner = np.zeros(graph.num_nodes, dtype=np.int64)
        for share in found.subgraphs:
            owner[share.nodes] = share.client
        names: tuple[str, ...] = ()
        if graph.owner is not None and graph.owner_names and offers.keeps_owners:
            names = tuple(graph.owner_names[int(k)] for k in np.unique(graph.owner))
        names = names or tuple(f"client {k + 1}" for k in range(found.num_clients))
        if len(set(names)) < len(names):
            raise DataError(f"{graph.name}: two clients have one name; allowed: names that differ")
        if CLIENT_RECORD_OF_ALL in names:
            called = f"a client is called {CLIENT_RECORD_OF_ALL!r}, as tables call everybody"
            raise DataError(f"{graph.name}: {called}; allowed: any other name")
        return replace(graph, owner=owner, owner_names=names), found

    return context.cached(("owned", context.dataset, cell_training.partition_key(partition)), make)


def epsilons_of(done: TrainedCell, federation: Federation) -> list[float]:
    """ε of each owner's dearest unit in a training of all of them."""
    if done.federation.world.kind is WorldKind.WHOLE:
        return [done.settled.epsilon] * len(federation.names)
    each = settle.per_client(done.guarantee, done.outcome.releases)
    return [each.get(client, 0.0) for client in range(len(federation.names))]


@dataclass(frozen=True, eq=False)
class Records:
    """What models of a federation say, client by client.

    Attributes:
        federation: Each owner a client, and the nodes that are asked.
        alerts: The share of a client's tested nodes that can be looked at; None: nobody looks for a rare class.
        positive: The number of the class that alerts look for.
        scales: For each client, how the model that it has reads columns of numbers; None where they are on one scale already.
    """

    federation: Federation
    alerts: float | None
    positive: int
    scales: Sequence[ColumnRanks | None]

    def scaled(self, client: int, graph: Graph) -> Graph:
        """A graph as the model of a client reads it."""
        ranks = self.scales[client]
        return graph if ranks is None else ranks.scaled(graph)

    def pooled(self, scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        """Every measure over all tested nodes."""
        found = measures.of_scores(scores, truth)
        if self.alerts is not None:
            if not 0 <= self.positive < scores.shape[1]:
                raise ScenarioError(f"positive: there is no class {self.positive}; allowed: 0 … {scores.shape[1] - 1}")
            found |= measures.of_alerts(scores, truth, self.alerts, self.positive)
        return found

    def briefly(self, scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        """Of one client: the accuracy, what naming its largest class always would give, and what alerts find."""
        known = truth >= 0
        found = {"accuracy": float((scores[known].argmax(axis=1) == truth[known]).mean())}
        found["majority_share"] = float(np.bincount(truth[known]).max() / known.sum())
        return found if self.alerts is None else found | measures.of_alerts(scores, truth, self.alerts, self.positive)

    def records(self, scores: np.ndarray, done: TrainedCell) -> list[ClientResultCellFacts]:
        """The records of one training of many clients.

        Args:
            scores: float [n, c], of the nodes that are asked in its world.
            done: The training. The viewer of its plan is the one toward whom prices hold.

        Returns:
            One record of everybody and one of each client. Where a client was left out, one of that client alone, at ε = 0.
        """
        world, toward = done.federation.world, done.plan.guarantee.protection.viewer.words
        if (left := world.without) is not None:  # its data were not used: nobody can learn anything of them
            truth = done.federation.setting.truth
            own = (left.name, self.nodes(left.client), scores, truth, 0.0, "everybody: it did not join")
            return [self._record("left-out", *own)]
        participation = "curator" if world.kind is WorldKind.WHOLE else "federated"
        return self.records_of_all(participation, scores, epsilons_of(done, self.federation), toward)

    def records_of_all(
        self, participation: str, scores: np.ndarray, prices: Sequence[float], toward: str
    ) -> list[ClientResultCellFacts]:
        """One record of everybody, and one per client. scores: of all asked nodes. prices: ε of each client's dearest unit."""
        truth = self.federation.setting.truth
        nodes = sum(self.nodes(k) for k in range(len(self.federation.names)))
        found = [self._record(participation, CLIENT_RECORD_OF_ALL, nodes, scores, truth, max(prices), toward)]
        for client, name in enumerate(self.federation.names):
            rows = self.federation.asked_of(client)
            own = (scores[rows], truth[rows], prices[client])
            found.append(self._record(participation, name, self.nodes(client), *own, toward))
        return found

    def personal(
        self,
        scores: np.ndarray,
        answers: Callable[[int], ClientRecordAnswers],
        prices: Sequence[float],
        toward: str,
        rng: Callable[[int], np.random.Generator],
    ) -> list[ClientResultCellFacts]:
        """Each client's own head on ``scores``, fitted to its own labelled nodes.

        answers: client → of the model it has. rng: client → its own stream, which no other client's data move.
        """
        federation, asked = self.federation, self.federation.setting.asked
        after = np.zeros(scores.shape)
        for client, share in enumerate(federation.partition.subgraphs):
            rows, own = federation.asked_of(client), self.scaled(client, share.graph)
            if federation.same:
                mine = own_models.prepare(own, measures.probabilities_of(scores[share.nodes]))
                after[rows] = own_models.fit_head(mine, own.labels, rng(client)).scores(mine)
            elif rows.size:
                coins = rng(client)
                mine, labels = _as_asked(own, rows.size, answers(client), coins)
                asking = self.scaled(client, asked.induced(rows))
                then = own_models.prepare(asking, measures.probabilities_of(scores[rows]))
                after[rows] = own_models.fit_head(mine, labels, coins).scores(then)
        return self.records_of_all("personalised", after, prices, toward)

    def tuned(
        self, method: method_kinds.ClassifierMethod, done: TrainedCell, rng: Callable[[int], np.random.Generator]
    ) -> list[ClientResultCellFacts]:
        """The records of clients that go on from the shared weights on their own labelled nodes, in clear.

        Args:
            done: The training of all clients together.
            rng: Client → the randomness of its own steps.

        Raises:
            RuntimeFailure: The method offers no such steps (a plan refuses it before), or nobody is tested.
        """
        after: np.ndarray | None = None
        made, asked, tuned = done.plan, done.question, method.OFFERS.tuned
        if tuned is None:
            raise RuntimeFailure(f"{made.method} has no weights that a client could fit (Offers.tuned)")
        for client, share in enumerate(self.federation.partition.subgraphs):
            rows = self.federation.asked_of(client)
            if not rows.size:
                continue
            state = tuned(made, done.outcome.state, self.scaled(client, share.graph), rng(client))
            if self.federation.same:
                own = method.predict(made, state, asked)[rows]
            else:
                own = method.predict(made, state, asked.induced(rows))
            after = np.zeros((asked.num_nodes, own.shape[1])) if after is None else after
            after[rows] = own
        if after is None:
            raise RuntimeFailure(f"{made.method}: no client holds a node that is tested")
        return self.records_of_all(_WEIGHTS, after, epsilons_of(done, self.federation), RECORD_TOWARD_OTHERS)

    def nodes(self, client: int) -> int:
        """How many nodes ``client`` brings."""
        return int(self.federation.partition.subgraphs[client].nodes.size)

    def _record(
        self, participation: str, client: str, nodes: int, scores: np.ndarray, truth: np.ndarray, epsilon: float, toward: str
    ) -> ClientResultCellFacts:
        known = truth >= 0
        tested, right = int(known.sum()), task_facts.pack_answers((scores.argmax(axis=1) == truth)[known])
        measured: dict[str, float] = {}
        if tested:
            measured = (self.pooled if client == CLIENT_RECORD_OF_ALL else self.briefly)(scores, truth)
        sought = 0 if self.alerts is None else int((truth == self.positive).sum())
        return ClientResultCellFacts(participation, client, nodes, tested, measured, epsilon, toward, sought, right)


def _as_asked(
    graph: Graph, size: int, answers: ClientRecordAnswers, rng: np.random.Generator
) -> tuple[own_models.OwnModelInputs, np.ndarray]:
    """A client's own labelled nodes as its test nodes will be: random parts of about ``size`` nodes, each a graph of its own.

    On the whole training graph a node has more neighbours than a test node has, and the shared model is surer there.
    """
    order = rng.permutation(graph.num_nodes)
    parts = [graph.induced(np.sort(p)) for p in np.array_split(order, max(1, round(graph.num_nodes / size)))]
    blind = [measures.probabilities_of(answers(protocols.graph_without_labels(p))) for p in parts]
    seen = [own_models.prepare(p, said) for p, said in zip(parts, blind, strict=True)]
    return own_models.stack_inputs(seen), np.concatenate([p.labels for p in parts])


def finish(
    cell: Cell,
    done: TrainedCell,
    records: list[ClientResultCellFacts],
    metrics: dict[str, float],
    protocol: str,
    method: method_kinds.ClassifierMethod,
    clients: int | None = None,
) -> Result:
    """What a finished cell leaves.

    Args:
        done: The training, or all trainings of clients alone as one.
        records: Of everybody and of each client.
        metrics: Of everybody, where such a row may be ranked with others; else empty.
        protocol: What clients held and what was public.
        method: The method; it may say what the training found.
        clients: How many there were, where each trained alone.
    """
    broken, setting = done.settled.broken_words, done.federation.setting
    said = method.OFFERS.says(done.plan, done.outcome.state) if method.OFFERS.says and clients is None else ()
    notes = ((f"The promise is broken: {broken}",) if broken else ()) + done.plan.notes + done.outcome.notes + said
    facts, tested = done.facts(ParticipationCellFacts, protocol), int((setting.truth >= 0).sum())
    facts = replace(facts, results=tuple(records), clients=clients or facts.clients)
    return done.as_result(cell, metrics, replace(facts, train_nodes=setting.num_train, tested=tested), notes=notes)
