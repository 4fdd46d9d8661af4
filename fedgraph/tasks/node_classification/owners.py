"""Is it worth joining, and for whom? The same people under every choice that their organisations have (``owners: true``).

Each owner of the data (a campus, a country, a bank) is a client. One cell is one method at one budget in one of these worlds:

* ``alone``: each client trains alone and is its own curator; the guarantee is that of a model that it may show to others;
* ``federated``: clients train together, with trust ``sums`` or ``own-client``: the server sees sums, or each message;
* ``curator``: one curator holds everything;
* ``left-out``: all clients but one train together, and the one that is left out asks, as a newcomer would;
* ``personalised``: in the federated cells each client also fits a head to the shared scores, or all weights, on its own data in
  clear (``learning.own_models``). Both stay with the client, so they cost nothing toward others. Whoever sees them or their
  answers is not kept from anything. Alone, each client fits the same head to its own model, for a fair comparison.

Every world has the same δ, that of the whole federation, so that one person's ε can be compared between worlds. Each client
predicts at home, on its own part of a public test graph. Results are kept for each client (``facts.results``): number of nodes,
metrics, and the largest ε of its units toward the viewer.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph import plugins, seeds
from fedgraph.cells import ClientResultCellFacts, ParticipationCellFacts, task_facts
from fedgraph.documents import SettingsSpec
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.federation import ALONE_WORLD, Federation, LeftOutOfWorld, World, WorldKind, world_of_trust
from fedgraph.learning import own_models
from fedgraph.methods import ColumnRanks, method_kinds
from fedgraph.privacy import Trust
from fedgraph.tasks.base import Cell, CellContext, Result, cell_training, measures
from fedgraph.tasks.base.cell_training import EVERYBODY, TrainedCell
from fedgraph.tasks.node_classification import training
from fedgraph.tasks.node_classification.settings import Params
from fedgraph.types import Graph, graph_without_labels

_WEIGHTS = "own weights"  # the participation of clients that went on from the shared weights
_TOWARD_NOBODY = "nobody: the model and its answers stay with the client that made them"
_TOWARD_OTHERS = (
    "the server and the other clients; whoever sees the head, the weights or their answers is not kept from anything"
)

_Answers = Callable[[Graph], np.ndarray]  # of one model: graph → scores [n, c]
_Coins = Callable[[int], np.random.Generator]  # client → its own stream, which no other client's data move


def worlds_of(params: Params, spec: SettingsSpec, federation: Federation) -> list[World]:
    """Every world of a row."""
    trusted = [Trust(t) for t in spec.get("trust", params.trust)]
    wanted = set(params.participations)
    found = [
        *([ALONE_WORLD] if "alone" in wanted else []),
        *([world_of_trust(Trust.CURATOR)] if "curator" in wanted else []),
    ]
    found += map(world_of_trust, trusted) if wanted & {"federated", "personalised"} else []
    if "left-out" in wanted:
        left = [LeftOutOfWorld(k, federation.names[k]) for k in _left_out(params, federation)]
        found += [World(WorldKind.TOGETHER, trust, without) for trust in trusted for without in left]
    return found


def _left_out(params: Params, federation: Federation) -> list[int]:
    """The numbers of the clients that are left out in turn: those named, else clients with test nodes.

    Labels do not decide, because the number of rows would then follow from them.
    """
    names = federation.names
    known = [k for k in range(len(names)) if federation.asked_of(k).size]
    if params.left_out == "all":
        return known
    if isinstance(params.left_out, int):
        order = sorted(known, key=lambda k: federation.partition.subgraphs[k].nodes.size)
        places = np.linspace(0, len(order) - 1, min(params.left_out, len(order))).round().astype(int)
        return sorted({order[k] for k in places})
    for name in params.left_out:
        if name not in names:
            hint = plugins.suggest_plugin_name(name, list(names))
            raise ScenarioError(f"left_out: there is no client {name!r}{hint}; allowed: {', '.join(names)}")
    return [names.index(name) for name in params.left_out]


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """All trainings of the cell, and the result of each owner."""
    federation = training.together(params, cell.seed, False, context)
    if cell.world != ALONE_WORLD:
        return _measure(params, cell, context, federation, training.train(params, cell, context))
    trained = cell_training.train_clients_alone(
        federation.names, cell, context, lambda k: training.train(params, cell, context, k, (federation.names[k],))
    )
    return _measure_alone(params, cell, context, federation, trained)


def _measure(params: Params, cell: Cell, context: CellContext, federation: Federation, done: TrainedCell) -> Result:
    """Each owner's result of one training of many clients, or of one curator. federation: of all owners."""
    method, made, world = method_kinds.load_classifier(cell.method), done.plan, cell.world
    found = _Records(federation, params.alerts, params.positive, [done.federation.ranks] * len(federation.names))
    asked = done.question

    def answers(graph: Graph) -> np.ndarray:
        return method.predict(made, done.outcome.state, graph)

    toward = made.guarantee.protection.viewer.words
    if (left := world.without) is not None:  # its data were not used: nobody can learn anything of them
        scores, truth = answers(asked), done.federation.truth
        own = (left.name, found.nodes(left.client), scores, truth, 0.0, "everybody: it did not join")
        return _finished(cell, done, [found.record("left-out", *own)], {}, params, method.OFFERS.says)
    scores, prices = federation.at_home(answers, asked), cell_training.epsilons_of(done, federation)
    records = found.of_all("curator" if world.kind is WorldKind.WHOLE else "federated", scores, prices, toward)
    pooled = dict(records[0].metrics)
    if "personalised" in params.participations and world.joined:
        coins = functools.partial(seeds.seeded_generator, context.root, "personal", *cell.path)
        if params.personalised in ("head", "both"):
            records += found.heads(scores, lambda client: answers, prices, _TOWARD_OTHERS, coins)
        if params.personalised in ("weights", "both"):
            records += found.weights(method, done, prices, functools.partial(coins, "weights"))
    if "federated" not in params.participations:
        records = [r for r in records if r.participation != "federated"]
    return _finished(cell, done, records, pooled, params, method.OFFERS.says)


def _measure_alone(
    params: Params,
    cell: Cell,
    context: CellContext,
    federation: Federation,
    trained: tuple[Sequence[TrainedCell], TrainedCell, Sequence[float]],
) -> Result:
    """Each owner's result of its own training. trained: as ``cell_training.train_clients_alone`` returns it."""
    (each, together, prices), method = trained, method_kinds.load_classifier(cell.method)
    models: list[_Answers] = [functools.partial(method.predict, one.plan, one.outcome.state) for one in each]
    scores: np.ndarray | None = None
    for client, done in enumerate(each):
        rows = federation.asked_of(client)
        if rows.size:
            own = models[client](done.question)
            scores = np.zeros((federation.asked.num_nodes, own.shape[1])) if scores is None else scores
            scores[rows] = own
    if scores is None:
        raise ScenarioError(f"{cell.dataset}: no client holds a node that is tested, so no row alone has a number")
    found = _Records(federation, params.alerts, params.positive, [done.federation.ranks for done in each])
    records = found.of_all("alone", scores, prices, together.plan.guarantee.protection.viewer.words)
    if "personalised" in params.participations and params.personalised in ("head", "both"):
        coins = functools.partial(seeds.seeded_generator, context.root, "personal", *cell.path)
        records += found.heads(scores, models.__getitem__, [np.inf] * len(models), _TOWARD_NOBODY, coins)
    return _finished(cell, together, records, {}, params, None, len(federation.names))


def _finished(
    cell: Cell,
    done: TrainedCell,
    records: list[ClientResultCellFacts],
    metrics: dict[str, float],
    params: Params,
    says: Callable[..., Sequence[str]] | None,
    clients: int | None = None,
) -> Result:
    """The result of the cell. metrics: of all clients together. clients: number of clients, if each trained alone."""
    broken, world = done.settled.broken_words, done.federation
    said = says(done.plan, done.outcome.state) if says else ()
    notes = (*((f"The promise is broken: {broken}",) if broken else ()), *done.plan.notes, *done.outcome.notes, *said)
    alone = {"clients": clients} if clients else {}
    said_of = {"train_nodes": world.num_train, "tested": int((world.truth >= 0).sum()), "results": tuple(records)}
    return done.as_result(cell, metrics, done.facts(ParticipationCellFacts, params.protocol, **said_of, **alone), notes=notes)


@dataclass(frozen=True, eq=False)
class _Records:
    """Makes the records of results, one for each client and one for all together."""

    federation: Federation  # each owner is a client; it has the nodes that are asked
    alerts: float | None  # share of a client's test nodes that can be inspected; None: no metrics of alerts
    positive: int  # number of the class that alerts look for
    # for each client, how its model reads columns of numbers; None: they are on one scale already
    scales: Sequence[ColumnRanks | None]

    def scaled(self, client: int, graph: Graph) -> Graph:
        """A graph as the model of a client reads it."""
        ranks = self.scales[client]
        return graph if ranks is None else ranks.scaled(graph)

    def pooled(self, scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        """Every metric over all test nodes."""
        found = measures.of_scores(scores, truth)
        if self.alerts is not None:
            if not 0 <= self.positive < scores.shape[1]:
                raise ScenarioError(f"positive: there is no class {self.positive}; allowed: 0 … {scores.shape[1] - 1}")
            found |= measures.of_alerts(scores, truth, self.alerts, self.positive)
        return found

    def briefly(self, scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
        """Of one client: accuracy, the share of its largest class, and the metrics of alerts."""
        known = truth >= 0
        found = {"accuracy": float((scores[known].argmax(axis=1) == truth[known]).mean())}
        found["majority_share"] = float(np.bincount(truth[known]).max() / known.sum())
        return found if self.alerts is None else found | measures.of_alerts(scores, truth, self.alerts, self.positive)

    def of_all(
        self, participation: str, scores: np.ndarray, prices: Sequence[float], toward: str
    ) -> list[ClientResultCellFacts]:
        """One record of all clients, and one for each. scores: of all asked nodes. prices: largest ε of each client's units."""
        truth = self.federation.truth
        nodes = sum(self.nodes(k) for k in range(len(self.federation.names)))
        found = [self.record(participation, EVERYBODY, nodes, scores, truth, max(prices), toward)]
        for client, name in enumerate(self.federation.names):
            rows = self.federation.asked_of(client)
            own = (scores[rows], truth[rows], prices[client])
            found.append(self.record(participation, name, self.nodes(client), *own, toward))
        return found

    def heads(
        self,
        scores: np.ndarray,
        answers: Callable[[int], _Answers],
        prices: Sequence[float],
        toward: str,
        rng: _Coins,
    ) -> list[ClientResultCellFacts]:
        """Records of heads that each client fits to ``scores`` on its own labelled nodes.

        answers: from a client to the answers of its model.
        """
        federation = self.federation
        after = np.zeros(scores.shape)
        for client, share in enumerate(federation.partition.subgraphs):
            rows, own = federation.asked_of(client), self.scaled(client, share.graph)
            if federation.same:
                mine = own_models.prepare(own, measures.probabilities_of(scores[share.nodes]))
                after[rows] = own_models.fit_head(mine, own.labels, rng(client)).scores(mine)
            elif rows.size:
                coins = rng(client)
                mine, labels = _as_asked(own, rows.size, answers(client), coins)
                asking = self.scaled(client, federation.asked.induced(rows))
                then = own_models.prepare(asking, measures.probabilities_of(scores[rows]))
                after[rows] = own_models.fit_head(mine, labels, coins).scores(then)
        return self.of_all("personalised", after, prices, toward)

    def weights(
        self, method: method_kinds.ClassifierMethod, done: TrainedCell, prices: Sequence[float], rng: _Coins
    ) -> list[ClientResultCellFacts]:
        """Records of weights that each client trains further on its own labelled nodes. done: the training of all clients."""
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
        return self.of_all(_WEIGHTS, after, prices, _TOWARD_OTHERS)

    def nodes(self, client: int) -> int:
        """Number of nodes of ``client``."""
        return int(self.federation.partition.subgraphs[client].nodes.size)

    def record(
        self, participation: str, client: str, nodes: int, scores: np.ndarray, truth: np.ndarray, epsilon: float, toward: str
    ) -> ClientResultCellFacts:
        known = truth >= 0
        tested, right = int(known.sum()), task_facts.pack_answers((scores.argmax(axis=1) == truth)[known])
        measured: dict[str, float] = {}
        if tested:
            measured = (self.pooled if client == EVERYBODY else self.briefly)(scores, truth)
        sought = 0 if self.alerts is None else int((truth == self.positive).sum())
        return ClientResultCellFacts(participation, client, nodes, tested, measured, epsilon, toward, sought, right)


def _as_asked(
    graph: Graph, size: int, answers: _Answers, rng: np.random.Generator
) -> tuple[own_models.OwnModelInputs, np.ndarray]:
    """A client's own nodes as its test nodes will be: in random parts of about ``size`` nodes, each a graph of its own.

    On the whole training graph a node has more neighbours than a test node, and the shared model would be surer.
    """
    order = rng.permutation(graph.num_nodes)
    parts = [graph.induced(np.sort(p)) for p in np.array_split(order, max(1, round(graph.num_nodes / size)))]
    blind = [measures.probabilities_of(answers(graph_without_labels(p))) for p in parts]
    seen = [own_models.prepare(p, said) for p, said in zip(parts, blind, strict=True)]
    return own_models.stack_inputs(seen), np.concatenate([p.labels for p in parts])
