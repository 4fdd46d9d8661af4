"""Node classification, one curator against a federation: the price of trust.

Nodes are split into training and test nodes (``split``). ``protocol`` says what the clients hold and what is public
(``protocols``: inductive for node-level privacy, transductive for edge-level privacy). ``trust`` says who holds the nodes and
who is trusted:

* ``curator``: one curator holds all of them (viewer: whoever gets the model);
* ``sums``: clients hold disjoint parts, the server sees sums (viewer: server and other clients);
* ``own-client``: clients hold disjoint parts, the server sees each message (viewer: server);
* ``active-server``: the same, and the server may send each client any model (viewer: active-server);
* ``nobody``: every node protects its own data before it leaves (viewer: world); methods that do so run only here.

With ``owners`` each owner of the data is a client, and the choices that it has are compared (``owners``).
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from fedgraph import privacy, seeds
from fedgraph.attacks import named, whole_run
from fedgraph.cells import NodeClassificationCellFacts, SentBytesCellFacts, task_facts
from fedgraph.comparison import cluster
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.federation import ALONE_WORLD, Federation, RoundsOutcome, WorldKind
from fedgraph.methods import Plan, State, method_kinds
from fedgraph.tasks import base
from fedgraph.tasks.base import Cell, CellContext, Result, cell_training, grid, measures
from fedgraph.tasks.node_classification import owners, paid_scores, training
from fedgraph.tasks.node_classification.settings import Params
from fedgraph.tasks.node_classification.settings import RowKeys as ROW
from fedgraph.types import Graph, Partition

_MOST_NODES = 1000  # of a map: t-SNE of more takes longer than the training


@dataclass(frozen=True)
class _Link:
    """A line between a client and the server."""

    down: float  # bit per second to the client
    up: float  # bit per second from the client
    latency: float  # seconds, one way

    @property
    def words(self) -> str:
        return f"{self.down / 1e6:g} Mbit/s down, {self.up / 1e6:g} up, {self.latency * 1e3:g} ms one way"


_LINKS = {"home": _Link(50e6, 10e6, 0.02), "data centre": _Link(10e9, 10e9, 0.0005)}


def plugins_of(params: Params) -> list[base.NestedTaskPlugin]:
    """Methods, the partition, every choice of settings, and attacks, for validation with their place in the file."""
    found: list[base.NestedTaskPlugin] = [
        *base.nest_methods(params.methods, ROW),
        (("partition",), "partition", params.partition),
    ]
    for index, method in enumerate(params.methods):
        every = grid.TaskRowSelect.model_validate(method["select"]).choices if "select" in method else []
        plain = {key: value for key, value in method.items() if key not in ROW.model_fields}
        found += [(("methods", index, "select", "over"), "methods", plain | choice) for choice in every]
    return found + base.nest_attacks(params.attack.named if params.attack else [])


def _refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    trusted = grid.trust_of_method(name, params.methods, params.trust)
    if params.owners:
        if method_kinds.load(name).OFFERS.trusts_nobody:
            return f"in {name!r} every node protects itself, so whether its organisation joins changes nothing"
        alone = {privacy.Trust.CURATOR} if {"alone", "curator"} & set(params.participations) else set()
        trusted = [t for t in privacy.Trust if t in {*trusted, *alone}]
    return method_kinds.explain_misfit(name, "classifier", params.protocol, trusted)


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every cell, seed by seed (``tasks.base.grid``)."""
    if not params.owners:
        return grid.list_cells(params, context)
    federation = training.together(params, 0, False, context)
    return [
        cell
        for seed in range(context.seeds)
        for entry, spec in enumerate(params.methods)
        if seed < int(spec.get("seeds", context.seeds))
        for world in owners.worlds_of(params, spec, federation)
        for cell in grid.cells_of(params, world, entry, seed, context)
    ]


def plan(params: Params, cell: Cell, context: CellContext) -> Plan:
    """The plan of the method, or of a private choice of its settings, from public facts.

    If each client trains alone, it is the plan of the largest one.
    """
    if (bought := paid_scores.accuracy_of(params, cell, context)) is not None:
        return bought.whole
    if (selects := paid_scores.choice_of(params, cell, context)) is not None:
        return selects.priced.plan
    client = 0
    if cell.world == ALONE_WORLD:
        shares = training.together(params, cell.seed, False, context).partition.subgraphs
        client = int(np.argmax([s.nodes.size for s in shares]))
    return training.plan(params, cell, context, client)


def _priced_plan(params: Params, cell: Cell, context: CellContext) -> tuple[Plan, privacy.Guarantee]:
    """The cell's plan, and its guarantee with every promise compared with the data: what a budget is charged before it runs.

    ``ScenarioError`` if the cell would read private data outside its plan.
    """
    if params.attack is not None or params.map:
        raise ScenarioError("an attack or a map reads private rows that nobody prices: leave attack and map away")
    if params.owners or cell.world.kind is WorldKind.ALONE or cell.world.without is not None:
        raise ScenarioError("owners alone, or without one of them, train in ways that no budget counts: leave owners away")
    made = plan(params, cell, context)
    return made, cell_training.look_up_promises(made, training.federation_of(params, cell, context).partition)


def train(params: Params, cell: Cell, context: CellContext) -> cell_training.TrainedCell:
    """All rounds of the cell, and their price; nothing is tested. If the row chooses its settings, the best trial."""
    if (selects := paid_scores.choice_of(params, cell, context)) is not None:
        return selects.train()
    bought = paid_scores.accuracy_of(params, cell, context)
    return training.train(params, cell, context, made=None if bought is None else bought.training)


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """Trains the cell, prices its releases, and tests the model."""
    if params.owners:
        return owners.run(params, cell, context)
    done, method = train(params, cell, context), method_kinds.load_classifier(cell.method)
    bought = paid_scores.accuracy_of(params, cell, context)
    paid: dict[str, float] = {}  # a noisy accuracy, which may leave
    if bought is not None:
        done, paid[paid_scores.BOUGHT_ACCURACY] = bought.buy(done, cell, context.root)
    made, world = done.plan, done.federation
    trained, settled, broken = done.outcome, done.settled, done.settled.broken_words
    asked = done.question
    answers, known = method.predict(made, trained.state, asked), world.truth >= 0
    if answers.shape != (needed := (world.truth.size, made.facts.num_classes)):
        raise RuntimeFailure(f"predict of {cell.method} gave scores {answers.shape}; allowed: [n, c] = {needed}")
    metrics = measures.of_scores(answers, world.truth) | measures.of_rare_class(answers, world.truth)
    public = (*(tuple(metrics) if _tests_in_public(world, made) else ()), *paid)

    def accuracy(state: State) -> float:
        return measures.of_scores(method.predict(made, state, asked), world.truth)["accuracy"]

    artefacts: dict[str, np.ndarray] = {}
    if params.map:
        scores = method.predict(made, trained.state, world.held)
        rng = seeds.seeded_generator(context.root, "map", *cell.path)
        artefacts, apart = map_of_nodes(scores, world.held.labels, rng, drawn=cell.seed == 0)
        metrics |= {"silhouette": apart} if np.isfinite(apart) else {}
    attacked = (params.attack, made, cell, context, world.partition, world.held, world.asked)
    measured = whole_run.measure_canaries(*attacked, trained.state)
    told = named.measure_all(*attacked, settled.epsilon)
    went, of_messages = _count_sent(made, trained)
    metrics |= paid | measured.metrics | told.metrics | of_messages
    everybody = context.data.labels if isinstance(context.data, Graph) else world.held.labels
    facts = done.facts(
        NodeClassificationCellFacts,
        params.protocol,
        train_nodes=world.num_train,
        split=params.split,
        tested=int(known.sum()),
        right=task_facts.pack_answers((answers.argmax(axis=1) == world.truth)[known]),
        least_class=measures.least_class(everybody),
        curve=tuple((round_, accuracy(state)) for round_, state in trained.kept),
        sent=went,
        choice=done.choice,
        attack=measured.attack,
        named=told.facts,
        public_metrics=public,
        public_notes=done.said,
    )
    notes = measures.warn_of_few(world.truth, everybody, world.held.names.classes, facts.one)
    notes += [f"The promise is broken: {broken}"] if broken else []
    notes += [*done.said, *made.notes, *trained.notes, *(method.OFFERS.says(made, trained.state) if method.OFFERS.says else ())]
    shown = (measured.epsilon, artefacts, done.choice is None)
    return done.as_result(cell, metrics, facts, tuple(notes), *shown)


def _count_sent(made: Plan, trained: RoundsOutcome) -> tuple[SentBytesCellFacts | None, dict[str, float]]:
    """(bytes of one client and round, seconds of all rounds on each stated link, and how many answered; the same as metrics).

    None and empty for one client. Seconds are computed, not measured: latency + bytes down / rate down + latency + bytes up /
    rate up. Clients work side by side, and the server's own line is no limit.
    """
    if made.facts.num_clients == 1:
        return None, {}
    down, up = (max((size[way] for size in trained.sizes), default=0) for way in (0, 1))
    seconds = {
        name: sum((2 * link.latency + 8 * to / link.down + 8 * back / link.up for to, back in trained.sizes), 0.0)
        for name, link in _LINKS.items()
    }
    links = {name: link.words for name, link in _LINKS.items()}
    metrics = {f"seconds_{name.replace(' ', '_')}": found for name, found in seconds.items()}
    metrics = {"bytes_down": float(down), "bytes_up": float(up)} | metrics if up else {}
    return SentBytesCellFacts(down, up, seconds, links, made.facts.answering), metrics


def _tests_in_public(world: Federation, made: Plan) -> bool:
    """Whether metrics are public: the test nodes are public altogether, or only edges are private and no answer reads one."""
    held = made.guarantee.protection
    own = privacy.Assumption.OWN_EDGES_KNOWN in held.assumptions
    return world.test_graph_public or (held.relation.links_alone and not own and world.public_attributes is not None)


def _clients(params: Params, cell: Cell, context: CellContext) -> Partition:
    """Who holds which node. ``ScenarioError`` if the model reads columns as ranks, which a deployment does not know."""
    if params.owners:
        raise ScenarioError("owners compares choices, and a project is one of them: leave owners away")
    federation = training.federation_of(params, cell, context)
    if federation.facts.columns is not None or federation.ranks is not None:
        raise ScenarioError(f"{context.dataset}: columns of numbers became ranks, which no project carries; give them bounds")
    return federation.partition


def map_of_nodes(
    scores: np.ndarray, labels: np.ndarray, rng: np.random.Generator, drawn: bool = True
) -> tuple[dict[str, np.ndarray], float]:
    """(artefacts ``map`` [m, 2] and ``classes`` [m], none unless ``drawn``; silhouette of the classes in the scores, −1 … 1).

    scores: [n, c], one embedding per node. labels: int64 [n]; nodes with −1 are left out. rng: draws m ≤ ``_MOST_NODES`` of the
    others. The silhouette is NaN if there are fewer than two classes, or as many as nodes.
    """
    from sklearn.metrics import silhouette_score  # its import takes a second

    order = rng.permutation(labels.size)
    shown = np.sort(order[labels[order] >= 0][:_MOST_NODES])
    distances = cdist(scores[shown].astype(np.float64), scores[shown].astype(np.float64))
    classes = labels[shown]
    enough = 2 <= np.unique(classes).size < shown.size
    apart = float(silhouette_score(distances, classes, metric="precomputed")) if enough else float("nan")
    if not drawn:
        return {}, apart
    return {"map": cluster.tsne(distances, rng).astype(np.float32), "classes": classes.astype(np.int16)}, apart


TASK: base.TaskOffers[Params] = base.TaskOffers(
    row_keys=ROW,
    refuses=_refuses,
    alone=grid.computes_alone,
    models=base.TaskModels(Params, Params.everybody, _priced_plan, training.give_setting, train),
    clients=_clients,
)
