"""What each client of a federation reaches, and what its dearest unit pays; one record per participation and client."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedgraph import plugins
from fedgraph.cells.facts import ClientResult, ParticipationFacts, pack_right
from fedgraph.documents.settings import Spec
from fedgraph.errors import DataError, RuntimeFailure, ScenarioError
from fedgraph.learning import own_models
from fedgraph.methods.base import Plan, kinds
from fedgraph.methods.base.column_ranks import ColumnRanks
from fedgraph.partition import base
from fedgraph.privacy.settle import per_client
from fedgraph.tasks.base import Cell, Outcome, measures
from fedgraph.tasks.base.training import Trained
from fedgraph.types import Graph, Partition
from fedgraph.worlds import protocols
from fedgraph.worlds.dealt import DealtWorld, Federation
from fedgraph.worlds.world import Kind, World

ALL = "all"  # the name of the record that is about everybody's nodes
WEIGHTS = "own weights"  # the participation of clients that went on from the shared weights
NOBODY = "nobody: the model and its answers stay with the client that made them"
OWN_EYES = "the server and the other clients; whoever sees the head, the weights or their answers is not kept from anything"

Answers = Callable[[Graph], np.ndarray]  # of one model: graph → scores [n, c]


def number_of_client(name: str, names: Sequence[str], key: str) -> int:
    """The number of the client called ``name``; ``ScenarioError`` where there is none."""
    if name not in names:
        hint = plugins.suggest(name, list(names))
        raise ScenarioError(f"{key}: there is no client {name!r}{hint}; allowed: {', '.join(names)}")
    return list(names).index(name)


def graph_with_owners(graph: Graph, partition: Spec, rng: np.random.Generator) -> tuple[Graph, Partition]:
    """(the graph whose nodes know their owner, how they were dealt)."""
    offers, settings = base.chosen_partition(partition)
    found = offers.split(graph, settings, rng)
    if not found.disjoint:
        raise ScenarioError(f"participation needs clients that share no node; partition {partition['partition']!r} overlaps")
    owner = np.zeros(graph.num_nodes, dtype=np.int64)
    for share in found.subgraphs:
        owner[share.nodes] = share.client
    names: tuple[str, ...] = ()
    if graph.owner is not None and graph.owner_names and offers.keeps_owners:
        names = tuple(graph.owner_names[int(k)] for k in np.unique(graph.owner))
    names = names or tuple(f"client {k + 1}" for k in range(found.num_clients))
    if len(set(names)) < len(names):
        raise DataError(f"{graph.name}: two clients have one name; allowed: names that differ")
    if ALL in names:
        raise DataError(f"{graph.name}: a client is called {ALL!r}, as tables call everybody; allowed: any other name")
    return replace(graph, owner=owner, owner_names=names), found


@dataclass(frozen=True, eq=False)
class Found:
    """Scores per client. alerts: share of a client's tested nodes that can be looked at; positive: the class they look for.

    scales: how the model that each client has reads columns of numbers; None where they are on one scale already.
    """

    federation: Federation
    alerts: float | None
    positive: int
    scales: Sequence[ColumnRanks | None]

    def scaled(self, client: int, graph: Graph) -> Graph:
        """``graph`` as the model of ``client`` reads it."""
        ranks = self.scales[client]
        return graph if ranks is None else ranks.scaled(graph)

    def pooled(self, scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        """Every measure over all tested nodes."""
        found = measures.measures(scores, truth)
        if self.alerts is not None:
            if not 0 <= self.positive < scores.shape[1]:
                raise ScenarioError(f"positive: there is no class {self.positive}; allowed: 0 … {scores.shape[1] - 1}")
            found |= measures.alerts(scores, truth, self.alerts, self.positive)
        return found

    def briefly(self, scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        """Of one client: the accuracy, what naming its largest class always would give, and what alerts find."""
        known = truth >= 0
        found = {"accuracy": float((scores[known].argmax(axis=1) == truth[known]).mean())}
        found["majority_share"] = float(np.bincount(truth[known]).max() / known.sum())
        return found if self.alerts is None else found | measures.alerts(scores, truth, self.alerts, self.positive)

    def records(
        self, world: World, scores: np.ndarray, asked: protocols.Setting, made: Plan, done: Trained
    ) -> list[ClientResult]:
        """Of one training of many clients: of each client, or of the one that was left out."""
        left, toward = world.without, made.guarantee.protection.viewer.words
        if left is not None:  # its data were not used: nobody can learn anything of them
            own = (left.name, self.nodes(left.client), scores, asked.truth, 0.0, "everybody: it did not join")
            return [self._record("left-out", *own)]
        if world.kind is Kind.WHOLE:
            return self.records_of_all("curator", scores, [done.settled.epsilon] * len(self.federation.names), toward)
        return self.records_of_all("federated", scores, self.prices(done), toward)

    def records_of_all(
        self, participation: str, scores: np.ndarray, prices: Sequence[float], toward: str
    ) -> list[ClientResult]:
        """One record of everybody, and one per client. scores: of all asked nodes. prices: ε of each client's dearest unit."""
        truth = self.federation.setting.truth
        nodes = sum(self.nodes(k) for k in range(len(self.federation.names)))
        found = [self._record(participation, ALL, nodes, scores, truth, max(prices), toward)]
        for client, name in enumerate(self.federation.names):
            rows = self.federation.asked_of(client)
            own = (scores[rows], truth[rows], prices[client])
            found.append(self._record(participation, name, self.nodes(client), *own, toward))
        return found

    def personal(
        self,
        scores: np.ndarray,
        answers: Callable[[int], Answers],
        prices: Sequence[float],
        toward: str,
        rng: np.random.Generator,
    ) -> list[ClientResult]:
        """Each client's own head on ``scores``, fitted to its own labelled nodes. answers: client → of the model it has."""
        federation, asked = self.federation, self.federation.setting.asked
        after = np.zeros(scores.shape)
        for client, share in enumerate(federation.partition.subgraphs):
            rows, own = federation.asked_of(client), self.scaled(client, share.graph)
            if federation.same:
                mine = own_models.inputs(own, measures.probabilities(scores[share.nodes]))
                after[rows] = own_models.fitted_head(mine, own.labels, rng).scores(mine)
            elif rows.size:
                mine, labels = _as_asked(own, rows.size, answers(client), rng)
                then = own_models.inputs(self.scaled(client, asked.induced(rows)), measures.probabilities(scores[rows]))
                after[rows] = own_models.fitted_head(mine, labels, rng).scores(then)
        return self.records_of_all("personalised", after, prices, toward)

    def tuned(
        self, made: Plan, method: kinds.Classifier, asked: Graph, done: Trained, rng: np.random.Generator
    ) -> list[ClientResult]:
        """Each client with the shared weights after steps on its own labelled nodes. asked: all test nodes."""
        after: np.ndarray | None = None
        tuned = method.OFFERS.tuned
        if tuned is None:
            raise RuntimeFailure(f"{made.method} has no weights that a client could fit (Offers.tuned)")
        for client, share in enumerate(self.federation.partition.subgraphs):
            rows = self.federation.asked_of(client)
            if not rows.size:
                continue
            state = tuned(made, done.outcome.state, self.scaled(client, share.graph), rng)
            own = (
                method.predict(made, state, asked)[rows]
                if self.federation.same
                else method.predict(made, state, asked.induced(rows))
            )
            after = np.zeros((asked.num_nodes, own.shape[1])) if after is None else after
            after[rows] = own
        assert after is not None
        return self.records_of_all(WEIGHTS, after, self.prices(done), OWN_EYES)

    def prices(self, done: Trained) -> list[float]:
        """ε of each client's dearest unit, by what was released."""
        each = per_client(done.guarantee, done.outcome.releases)
        return [each.get(k, 0.0) for k in range(len(self.federation.names))]

    def nodes(self, client: int) -> int:
        """How many nodes ``client`` brings."""
        return int(self.federation.partition.subgraphs[client].nodes.size)

    def _record(
        self, participation: str, client: str, nodes: int, scores: np.ndarray, truth: np.ndarray, epsilon: float, toward: str
    ) -> ClientResult:
        """Without metrics where of no asked node the answer is known."""
        known = truth >= 0
        tested, right = int(known.sum()), pack_right((scores.argmax(axis=1) == truth)[known])
        measured = {} if not tested else self.pooled(scores, truth) if client == ALL else self.briefly(scores, truth)
        sought = 0 if self.alerts is None else int((truth == self.positive).sum())
        return ClientResult(participation, client, nodes, tested, measured, epsilon, toward, sought, right)


def _as_asked(graph: Graph, size: int, answers: Answers, rng: np.random.Generator) -> tuple[own_models.Inputs, np.ndarray]:
    """A client's own labelled nodes as its test nodes will be: random parts of about ``size`` nodes, each a graph of its own.

    On the whole training graph a node has more neighbours than a test node has, and the shared model is surer there.
    """
    order = rng.permutation(graph.num_nodes)
    parts = [graph.induced(np.sort(p)) for p in np.array_split(order, max(1, round(graph.num_nodes / size)))]
    seen = [own_models.inputs(p, measures.probabilities(answers(protocols.without_labels(p)))) for p in parts]
    return own_models.stack_inputs(seen), np.concatenate([p.labels for p in parts])


def participation_outcome(
    cell: Cell,
    made: Plan,
    done: Trained,
    records: list[ClientResult],
    metrics: dict[str, float],
    world: DealtWorld,
    protocol: str,
    method: kinds.Classifier,
    clients: int | None = None,
) -> Outcome:
    """A finished cell. metrics: of everybody, where such rows may be ranked with others. clients: where each trained alone."""
    broken, setting = done.settled.broken_words, world.setting
    said = method.OFFERS.says(made, done.outcome.state) if method.OFFERS.says and clients is None else ()
    return done.as_outcome(
        cell,
        metrics,
        ParticipationFacts(
            results=tuple(records),
            clients=clients or world.partition.num_clients,
            partition=world.partition.description,
            cut_edges=world.partition.num_cut_edges,
            cut_edges_shared=made.facts.membership.cut_edges_shared,
            rounds=made.schedule.rounds,
            train_nodes=setting.num_train,
            protocol=protocol,
            public=setting.public,
            broken_promise=broken,
            tested=int((setting.truth >= 0).sum()),
        ),
        notes=((f"The promise is broken: {broken}",) if broken else ()) + made.notes + done.outcome.notes + said,
    )
