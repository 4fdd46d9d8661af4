"""One training of a cell that classifies nodes: its federation, its plan, who answers in which round, and its rounds.

A round asks all clients, or a fixed number of them without replacement (``federation: {share: …}``). Public coins draw who is
asked, so sampling does not amplify the guarantee: whoever runs a round, also behind secure aggregation, knows whom it asked. A
client that does not answer releases nothing in that round, and the ledger holds only what was released. Behind secure
aggregation each client adds a share of the noise, chosen for as many clients as a round asks.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from fedgraph import seeds
from fedgraph.errors import ScenarioError
from fedgraph.federation import Federation
from fedgraph.methods import Plan, PublicFacts, method_kinds
from fedgraph.privacy import Viewer
from fedgraph.tasks.base import Cell, CellContext, cell_training, grid
from fedgraph.tasks.node_classification.settings import Params, RowKeys

_NO_AMPLIFICATION = (
    "Whom a round asks is known to whoever runs it, so sampling clients buys no amplification: ε counts every release that was "
    "made, and none in rounds in which a client did not answer."
)


def trusts_nobody(cell: Cell) -> bool:
    """Whether every node of this row protects itself; such rows scale columns differently."""
    return method_kinds.load(cell.method).OFFERS.trusts_nobody


def _split_key(params: Params, seed: int, nobody: bool, context: CellContext) -> tuple[Hashable, ...]:
    """A cache key: two cells with the same key hold, ask and test the same nodes."""
    own = (params.train_per_class, params.validation_per_class) if params.split == "per-class" else params.train_fraction
    owned = cell_training.partition_key(params.partition) if params.owners else None
    return (context.dataset, params.protocol, repr(params.public), own, params.split, params.component, owned, seed, nobody)


def unscaled(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """All nodes at one curator, with columns as they are; with ``owners`` each node has its owner."""

    def make() -> Federation:
        graph = cell_training.deal_to_owners(params, context)[0] if params.owners else cell_training.graph_of(context)
        return params.divide(graph, seed, seeds.seeded_generator(context.root, "split", context.dataset, seed))

    return context.cached(("unscaled", *_split_key(params, seed, nobody, context)), make)


def give_setting(params: Params, cell: Cell, context: CellContext, setting: Federation) -> None:
    """Makes ``cell`` train on ``setting`` instead of its own split. Call it before the context has made one."""
    context.cached(("unscaled", *_split_key(params, cell.seed, trusts_nobody(cell), context)), lambda: setting)


def whole(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """As ``unscaled``, with numeric columns on one scale. nobody: whether every node protects itself."""

    def make() -> Federation:
        made = unscaled(params, seed, nobody, context).on_one_scale(rows_private=nobody)
        return replace(made, colluders=params.colluders)

    return context.cached(("whole", *_split_key(params, seed, nobody, context)), make)


def together(params: Params, seed: int, nobody: bool, context: CellContext) -> Federation:
    """``whole``, dealt to the clients of a seed."""
    everybody, key = whole(params, seed, nobody, context), _split_key(params, seed, nobody, context)
    return cell_training.deal_federation(everybody, params, key, seed, context)


def federation_of(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Federation:
    """The federation of a cell. client: number of the client, if each trains alone."""
    seeded = (params, cell.seed, trusts_nobody(cell), context)
    return cell_training.world_of(whole(*seeded), params, _split_key(*seeded), cell, context, client)


def plan(params: Params, cell: Cell, context: CellContext, client: int = 0) -> Plan:
    """The plan of one training. client: number of the client, if each trains alone."""
    federation = federation_of(params, cell, context, client)
    method, spec = method_kinds.load_classifier(cell.method), cell.among(params.methods)
    if not (federation.test_graph_public or federation.public_attributes is not None or method.OFFERS.private_test_nodes):
        raise ScenarioError(
            f"{cell.method} predicts on a public test graph, and here test nodes are private (public: {federation.public}, "
            f"protocol: {params.protocol}): write public: test-graph with protocol: inductive, or choose features"
        )
    if params.owners and "personalised" in params.participations and params.personalised in ("weights", "both"):
        _require_weights(method, cell)
    known = federation.clear_facts if method.OFFERS.never_private else federation.facts
    facts = _with_answering(params, known, cell, method)
    everybody = whole(params, cell.seed, trusts_nobody(cell), context)  # δ is one for all worlds
    budget = params.budget(cell, everybody.num_train)
    made = cell_training.plan(method, method.Params(**grid.without_keys(spec, RowKeys)), facts, budget, federation)
    return made if made.facts.answering is None else replace(made, notes=(*made.notes, _NO_AMPLIFICATION))


def _with_answering(params: Params, facts: PublicFacts, cell: Cell, method: method_kinds.Method) -> PublicFacts:
    """Public facts with the number of clients that answer in a round. ``ScenarioError`` if the method needs every client."""
    answering = params.federation.answering(facts.num_clients)
    if answering is None or facts.viewer in (Viewer.CURATOR_TRUSTED, Viewer.WORLD):
        return facts
    if not method.OFFERS.partial_rounds:
        able = method_kinds.list_names(lambda offers: offers.partial_rounds)
        raise ScenarioError(f"{cell.method} needs every client in every round; federation is for {', '.join(able)}")
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION and answering < 2:
        raise ScenarioError(
            f"federation: a secure sum of one client hides nothing; share: {params.federation.share} of {facts.num_clients} "
            "clients is one; write a larger share"
        )
    return replace(facts, answering=answering)


def _rounds_of_curve(points: int, plan: Plan) -> frozenset[int]:
    """The rounds, counted from 1, after which accuracy is measured: at most ``points``, evenly spaced, the last included.

    There is no curve for a single round, or if the method cannot predict after every round (``Offers.answers_every_round``).
    """
    many = plan.schedule.rounds
    if not points or many < 2 or not method_kinds.load(plan.method).OFFERS.answers_every_round:
        return frozenset()
    return frozenset(int(r) for r in np.linspace(0, many, min(points, many) + 1).round()[1:])


def draw_rounds(answering: int, num_clients: int, rounds: int, root: int, path: tuple[str | int, ...]) -> np.ndarray:
    """bool [rounds, num_clients], who answers: ``answering`` clients in each round. Every round has a stream of its own, under
    ``path``, so a longer run begins like a shorter one.
    """
    answered = np.zeros((rounds, num_clients), dtype=bool)
    for round_ in range(rounds):
        order = seeds.seeded_generator(root, "participation", *path, round_).permutation(num_clients)
        answered[round_, order[:answering]] = True
    return answered


def who_answers(made: Plan, cell: Cell, context: CellContext) -> np.ndarray | None:
    """bool [rounds, clients], who answers in which round of the plan; None if all clients do.

    Data set and seed of the cell name the public coins, so all rows of a table miss the same clients.
    """
    if made.facts.answering is None:
        return None
    sizes = (made.facts.num_clients, made.schedule.rounds)
    return draw_rounds(made.facts.answering, *sizes, context.root, (cell.dataset, cell.seed))


def _require_weights(method: method_kinds.ClassifierMethod, cell: Cell) -> None:
    """``ScenarioError`` if the method has no weights that an owner could train further."""
    if method.OFFERS.tuned is None:
        able = ", ".join(method_kinds.list_names(lambda offers: offers.tuned))
        head = f"{cell.method} has no weights that a client could fit to its own data; write personalised: head"
        raise ScenarioError(f"{head}, or one of {able}")


def train(
    params: Params, cell: Cell, context: CellContext, client: int = 0, who: Sequence[str] = (), made: Plan | None = None
) -> cell_training.TrainedCell:
    """One training. client, who: number and name of a client that trains alone. made: its plan; None: that of ``plan``."""
    made = plan(params, cell, context, client) if made is None else made
    answered = who_answers(made, cell, context)
    keep = _rounds_of_curve(params.curve, made)
    federation, held = federation_of(params, cell, context, client), cell_training.held_key(params, cell, client)
    return cell_training.train(federation, (held, trusts_nobody(cell)), made, cell, context, who, answered=answered, keep=keep)
