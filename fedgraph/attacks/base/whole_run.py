"""An attack on a whole training run: it computes a lower bound on ε from the output of the run.

The plan is run once more on the same data with canaries (``coin_game``), with the same noise multipliers and fresh
noise. The attacker knows the data, the plan and both versions of each canary; only the coins are unknown. It computes a score
for each canary from what the viewer sees, and guesses the coins of the highest and of the lowest scores. ``audit.one_run``
turns the number of right guesses into a lower bound on ε that holds with 95 % confidence. If all releases are Gaussian, the
bound refutes their whole curve; otherwise it counts right guesses.

What the attacker looks at is fixed beforehand, for each method one thing:

* the method's own ``evidence``, if it has one: released values are compared with the values that both versions would give;
* otherwise the trained model, which is asked about the canaries. For a node: the log-probability of its label, minus that of
  its other label (or the mean over classes), minus the same number of the ordinary run, which has no canaries. For an edge: how
  much closer the predictions of its two ends are than in the ordinary run.

Every viewer sees the trained model. The bound is therefore valid, but weak, for a server that sees more. A low bound is no
proof of privacy.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.special import log_softmax

from fedgraph import seeds
from fedgraph.attacks.base import coin_game
from fedgraph.attacks.base import evidence as evidence_of
from fedgraph.audit import one_run, operating_points
from fedgraph.cells import CanaryAttackCellFacts, Cell, CellContext
from fedgraph.documents import InfiniteSetting, Settings, SettingsSpec
from fedgraph.federation import rounds
from fedgraph.methods import Plan, PlanInbox, State, method_kinds, seen
from fedgraph.privacy import Trust, Unit, Viewer, accountant, ledger
from fedgraph.types import Graph, Partition, graph_without_labels

_TINY = 1e-12  # smallest probability that a logarithm is taken of


class WholeRunAttack(Settings):
    """How a cell is attacked."""

    canaries: int = Field(500, ge=0, description="coins per run (at most half of the labelled nodes); 0: no canaries")
    seeds: int = Field(1, ge=1, description="attack the first so many seeds; their coins are pooled")
    guesses: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        [0.2], min_length=1, description="share of canaries that is guessed; several share the error probability"
    )
    trust: Annotated[list[Trust] | None, Field(min_length=1)] = Field(
        None, description="attack rows with this trust only (default: all)"
    )
    epsilons: Annotated[list[float] | None, Field(min_length=1), InfiniteSetting] = Field(
        None, description="attack these budgets only (default: all)"
    )
    reads: Literal["viewer", "releases"] = Field(
        "viewer",
        description="viewer: what the row's viewer gets; releases: every value that the price counts, at a curator, too",
    )
    canary: coin_game.CanaryKind = Field(
        "word", description="a canary node: word (one public feature, any label), or full (all features against none)"
    )
    named: list[SettingsSpec] = Field([], description="attacks by name, attack: a file of fedgraph/attacks, then its settings")
    shadows: int = Field(8, ge=2, le=256, description="models that the attacker trains, for attacks that use them (even)")
    units: int = Field(3000, ge=4, description="named attacks: most nodes, edges or words that enter by a coin")
    answers: Literal["viewer", "everybody"] = Field(
        "viewer", description="named attacks: who sees an answer that is made with private edges"
    )

    @model_validator(mode="after")
    def _coins_in_pairs(self) -> Self:
        if self.shadows % 2:
            raise ValueError(f"shadows: found {self.shadows}; their coins come in pairs of opposites, so their number is even")
        if self.canaries == 1:
            raise ValueError("canaries: found 1; allowed: 0 (none) or at least 2")
        if not (self.canaries or self.named):
            raise ValueError("an attack needs canaries > 0, or attacks under named")
        return self

    def meant_for(self, cell: Cell) -> bool:
        """Whether the cell is attacked: its seed, its trust and its ε are among those that the scenario names."""
        here = self.trust is None or cell.world.trust in self.trust
        return cell.seed < self.seeds and here and (self.epsilons is None or cell.epsilon in self.epsilons)


@dataclass(frozen=True)
class WholeRunResult:
    """What an attack measured on one cell."""

    epsilon: float | None  # lower bound on ε with 95 % confidence; None: nothing was attacked
    metrics: dict[str, float]  # as in ``cells.Result``
    attack: CanaryAttackCellFacts | None  # what was guessed, for the report


NO_WHOLE_RUN_RESULT = WholeRunResult(None, {}, None)


def bound_scores(
    scores: np.ndarray,
    coins: np.ndarray,
    shares: list[float],
    delta: float,
    what: str,
    centred: bool = False,
    estimator: str = "counting",
    path: str | None = None,
) -> WholeRunResult:
    """The bound on ε by guesses from scores.

    scores, coins: [m]. shares: shares of coins that are guessed. what: in words, what was compared. centred: as in
    ``audit.one_run.count_guesses``. estimator: a name of ``audit.one_run``, chosen before any score is seen. path: the attacked
    path, if it is a single one.
    """
    counts = [one_run.count_guesses(scores, coins, share, centred) for share in dict.fromkeys(shares)]
    bound = one_run.best_bound(counts, delta, estimator)
    attack = CanaryAttackCellFacts(tuple((c.coins, c.guesses, c.right) for c in counts), what, estimator, path)
    first = counts[0]
    metrics = {"attack_accuracy": first.right / first.guesses, "attack_auc": operating_points.audited_roc_area(scores, coins)}
    return WholeRunResult(bound, metrics, attack)


def measure_canaries(
    settings: WholeRunAttack | None, made: Plan, cell: Cell, context: CellContext, partition: Partition, held: Graph,
    public: Graph,
    ordinary: State,
) -> WholeRunResult:  # fmt: skip
    """Attacks one cell by canaries.

    settings: None: cells are not attacked. cell: names the random streams. held: all clients' nodes. public: nodes whose
    features may be known. ordinary: the final state of the ordinary run, which has no canaries.

    Returns ``NO_WHOLE_RUN_RESULT`` if the cell is not attacked, releases nothing, prices whole graphs, or has fewer than two
    canaries.
    """
    if settings is None or not settings.canaries or not settings.meant_for(cell):
        return NO_WHOLE_RUN_RESULT
    if not made.schedule.releases or made.guarantee.protection.unit is Unit.GRAPH:
        return NO_WHOLE_RUN_RESULT
    rng = seeds.seeded_generator(context.root, "attack", *cell.path)
    known = coin_game.join_canary_clients(partition, held)
    relation = made.guarantee.protection.relation
    honest, labelled = _of_the_honest(made, partition, known)
    found: coin_game.Canaries
    if relation.unit is Unit.NODE:
        found = coin_game.draw_canary_nodes(labelled, public, relation, settings.canaries, settings.canary, rng)
    else:
        found = coin_game.draw_canary_edges(known, honest, relation, settings.canaries, rng)
    if found.coins.size < 2:
        return NO_WHOLE_RUN_RESULT
    opened = _opened(made) if settings.reads == "releases" else made
    attacked = train_again(opened, coin_game.plant(partition, found), cell, context)
    told = replace(attacked, seen=_ToldRounds(attacked.seen).telling(context.on_round))
    scores, read = _scores(opened, told, ordinary, known, found)
    what = f"{relation.value} canaries, {'read in the released values' if read else 'seen in the trained model'}"
    what += ", more than the viewer gets" if read and opened is not made else ""
    by = one_run.choose_estimator(all(accountant.is_gaussian(event) for event in made.declared().values()))
    return bound_scores(scores, found.coins, settings.guesses, made.guarantee.delta, what, centred=read, estimator=by)


def _opened(made: Plan) -> Plan:
    """The plan with a viewer who reads every release that is priced: also single training steps at a curator, whose viewer gets
    only the last model, and values that stay with their client. Behind secure aggregation it is the plan itself: sums are
    priced.
    """
    able = made.guarantee.protection.viewer in (Viewer.CURATOR_TRUSTED, Viewer.SERVER, Viewer.ACTIVE_SERVER)
    if not able or made.guarantee.protection.unit is Unit.EDGE:
        return made
    protection = replace(made.guarantee.protection, viewer=Viewer.SERVER)
    return replace(made, guarantee=replace(made.guarantee, protection=protection), watch=replace(made.watch, opened=True))


def _of_the_honest(made: Plan, partition: Partition, known: Graph) -> tuple[Partition, Graph]:
    """(clients that do not collude, the graph without labels of the others): a colluder's own nodes are no secret."""
    colluding = seen.colluders_of(made)
    if not colluding:
        return partition, known
    labels = known.labels.copy()
    for client in colluding:
        labels[partition.subgraphs[client].nodes] = -1
    left = tuple(s for s in partition.subgraphs if s.client not in colluding)
    return replace(partition, subgraphs=left), replace(known, labels=labels)


def train_again(made: Plan, partition: Partition, cell: Cell, context: CellContext, name: str = "attack") -> State:
    """The final state of the plan, run on ``partition`` with noise of its own. name: names its random streams."""
    stream, reads_rounds = (name, *cell.path), evidence_of.readers(made.method).reads_rounds
    if reads_rounds is not None and reads_rounds(made):
        made = replace(made, watch=replace(made.watch, keeps_rounds=True))
    shared = context.runtime.share(ledger.account_name(stream), partition)
    at = (context.root, stream, stream, rounds.RoundPrefixes(), context.on_round)
    state = rounds.run(context.runtime, shared, made, *at).state
    context.runtime.forget(shared)
    return state


class _ToldRounds(tuple[tuple[dict[str, np.ndarray], PlanInbox], ...]):
    """Rounds that report their progress: ``telling`` sets what is called with (rounds read, all rounds)."""

    def telling(self, tell: Callable[[int, int], None]) -> Self:
        self._tell = tell
        return self

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], PlanInbox]]:
        for number, one in enumerate(super().__iter__()):
            yield one
            self._tell(number + 1, len(self))


def _scores(made: Plan, attacked: State, ordinary: State, known: Graph, found: coin_game.Canaries) -> tuple[np.ndarray, bool]:
    """(score of each canary, whether scores are log-likelihood ratios, or similar, of released values)."""
    evidence, asked = evidence_of.readers(made.method).evidence, known
    if isinstance(found, coin_game.CanaryNodes):
        asked = found.planted(known, np.arange(known.num_nodes), np.ones(found.coins.size, dtype=bool))
    if evidence is not None:
        read = evidence(made, attacked, asked, found.units)
        if read is not None:
            return read, True
    alone = without_spread(made)
    after, before = answers_of(alone, attacked, asked), answers_of(alone, ordinary, asked)
    if isinstance(found, coin_game.CanaryNodes):
        return _node_scores(after, before, found), False
    # how far the log-probabilities of both ends moved towards what the other end was predicted to be
    one, two, moved, likely = found.pairs[:, 0], found.pairs[:, 1], after - before, np.exp(before)
    return np.asarray(((moved[one] - moved[two]) * (likely[two] - likely[one])).sum(axis=1)), False


def _node_scores(after: np.ndarray, before: np.ndarray, found: coin_game.CanaryNodes) -> np.ndarray:
    """log P(label of version 1) − log P(label of version 0, or mean over classes), minus the same of the ordinary run."""
    moved = (after - before)[found.nodes]
    of_one = np.take_along_axis(moved, found.labels[:, 1:], axis=1)[:, 0]
    of_zero = np.take_along_axis(moved, np.maximum(found.labels[:, :1], 0), axis=1)[:, 0]
    return np.asarray(of_one - np.where(found.labels[:, 0] >= 0, of_zero, moved.mean(axis=1)))


def answers_of(made: Plan, state: State, graph: Graph) -> np.ndarray:
    """float64 [n, c], log-probabilities of a model for the nodes of a graph, whose labels it does not see."""
    found = method_kinds.load_classifier(made.method).predict(made, state, graph_without_labels(graph))
    return log_probabilities(np.asarray(found, dtype=np.float64))


def without_spread(made: Plan) -> Plan:
    """The plan with predictions that do not spread over neighbours: ``propagation_steps`` is 0, if the method has it."""
    params = made.params
    if not isinstance(params, Settings) or "propagation_steps" not in type(params).model_fields:
        return made
    return replace(made, params=params.model_copy(update={"propagation_steps": 0}))


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """[n, c]: the logarithm of ``scores`` if their rows are probabilities, otherwise their log-softmax."""
    if (scores >= 0).all() and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3):
        return np.log(np.maximum(scores, _TINY))
    return np.asarray(log_softmax(scores, axis=1))
