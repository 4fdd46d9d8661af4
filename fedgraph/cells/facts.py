"""What a finished cell says of itself beside its metrics: one frozen record for each kind of task.

A task makes its record and the report reads it. The records stand in this room since neither of these two may import the
other. A new task adds its record here; ``entry`` then writes and reads it by its field ``kind``.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fedgraph.comparison.solving import SolverFacts as SolverFacts

Counts = tuple[tuple[int, int, int], ...]  # coins, guesses, right guesses: the fields of ``audit.one_run.Count``


def pack_right(right: np.ndarray) -> str:
    """One bit for each tested node, or two bytes for how right it is, as text. right: bool [n], or float [n] in 0 … 1."""
    told = np.packbits(right) if right.dtype == bool else np.round(65535 * right).astype("<u2")
    return base64.b64encode(told.tobytes()).decode()


def unpack_right(packed: str, tested: int) -> np.ndarray:
    """What ``pack_right`` packed; bool [tested], or float [tested]."""
    told = np.frombuffer(base64.b64decode(packed), np.uint8)
    return told.view("<u2") / 65535 if told.size == 2 * tested else np.unpackbits(told, count=tested).astype(bool)


@dataclass(frozen=True)
class CanaryAttack:
    """Guesses about canaries in one cell.

    counts: one per number of guesses. what: what was compared, in words. estimator: which bound of ``audit.curve`` reads
    them, chosen before any score was seen. path: the attacked path of releases; None: everything that was released.
    """

    counts: Counts
    what: str
    estimator: str
    path: str | None = None


@dataclass(frozen=True)
class NamedAttack:
    """What one attack by name found on one cell.

    attack: its name. reference, needs, viewer: who described it, what it must know, and who can do it. what: what is told
    from what. auc … negatives: as in ``audit.operating_points``. relation: of the two versions; None where truth is no coin.
    epsilon: the lower bound on ε; None where no theorem gives one. comparable: whether it can be held against the row's
    provable ε; else ``why`` not. limit: the largest expected advantage that the provable ε allows. answers: who sees the
    answers. more: the attack's own numbers.
    """

    attack: str
    reference: str
    needs: str
    viewer: str
    what: str
    auc: float
    advantage: float
    tpr: tuple[float, ...]
    positives: int
    negatives: int
    relation: str | None
    epsilon: float | None
    comparable: bool
    why: str
    estimator: str
    counts: Counts
    limit: float | None
    answers: str
    more: Mapping[str, float]


@dataclass(frozen=True)
class NodesAtRisk:
    """How often an attack was right about each node, over ``runs`` runs (``attacks.base.named``).

    histogram, luck: number of nodes for each number of runs in which the attack was right; luck with coins drawn anew. by_…:
    groups of nodes as (least, largest, how many, mean share). rank_…: Spearman's correlation with the risk.
    """

    runs: int
    nodes: int
    histogram: tuple[float, ...]
    luck: tuple[float, ...]
    mean: float
    always_found: float
    always_by_luck: float
    by_degree: tuple[tuple[float, float, float, float], ...]
    by_rarity: tuple[tuple[float, float, float, float], ...]
    by_unlike: tuple[tuple[float, float, float, float], ...]
    rank_degree: float
    rank_rarity: float
    rank_unlike: float


@dataclass(frozen=True)
class NamedAttacks:
    """All attacks by name on one cell. refused: attack → why it says nothing here. risk: where a game of nodes was played."""

    found: tuple[NamedAttack, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    risk: NodesAtRisk | None = None


@dataclass(frozen=True)
class PartialRounds:
    """Who answered where not every client answers in every round.

    settings: the scenario's ``federation``, without its defaults. asked, answered: requests over all rounds. aborted: rounds
    with too few answers. mean_staleness, most_stale, most_updates: of a server that steps whenever enough updates are there.
    """

    settings: Mapping[str, str | int | float | bool | None]
    asked: int
    answered: int
    aborted: int
    mean_staleness: float | None = None
    most_stale: int | None = None
    most_updates: int | None = None


@dataclass(frozen=True)
class SentBytes:
    """What travelled: bytes to and from one client in one round (the largest).

    seconds: of all rounds, on each stated link. links: what each link is, in words. partial: None where everybody answers.
    """

    down: int
    up: int
    seconds: Mapping[str, float]
    links: Mapping[str, str]
    partial: PartialRounds | None = None


@dataclass(frozen=True)
class ClientResult:
    """What one client, or everybody (``all``), reaches by one way of taking part.

    nodes: that it holds. tested: of whose answer is known. sought: of these, how many are of the class that is looked for.
    metrics: empty where nothing was tested. epsilon: of its dearest unit. toward: from whom that ε protects. right: which of
    the tested were answered rightly (``pack_right``).
    """

    participation: str
    client: str
    nodes: int
    tested: int
    metrics: Mapping[str, float]
    epsilon: float
    toward: str
    sought: int = 0
    right: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What any task may say of a cell.

    one: what one node of the data is (``types.Names``). clients: how many hold the data. train_nodes: how many people
    trained, 0 where nobody is counted. partition: how the data were dealt. cut_edges: edges between clients;
    cut_edges_shared: whether both ends know one. public: what is public, None where that is no question. protocol, split: of
    the nodes. broken_promise: what the data break of an assumption. tested: of how many nodes or graphs the answer was checked.
    least_class: how many the smallest class has. right: which of the tested were answered rightly (``pack_right``). attack,
    named: of attacks on this cell. results: one for each way of taking part and client, where owners are compared. kind: names
    the record in a file.
    """

    kind: str = "plain"
    one: str = "node"
    clients: int | None = None
    train_nodes: int = 0
    partition: str = ""
    cut_edges: int | None = None
    cut_edges_shared: bool = False
    rounds: int = 0
    public: str | None = None
    protocol: str = ""
    split: str = ""
    broken_promise: str | None = None
    tested: int | None = None
    least_class: int | None = None
    right: str = ""
    attack: CanaryAttack | None = None
    named: NamedAttacks | None = None
    results: tuple[ClientResult, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Settings that were chosen privately. settings: the best trial's. score: its noisy share of right answers among ``judges``
    people. epsilon: of one training and its score. combinations, among: how many were possible, and the mean number of trials.
    """

    settings: Mapping[str, bool | int | float | str]
    score: float
    judges: int
    epsilon: float
    combinations: int
    among: float

    @property
    def words(self) -> str:
        """The settings, as tables show them."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True, kw_only=True)
class NodeClassificationFacts(Facts):
    """curve: (round, test accuracy) of the kept rounds. choice: of settings, where the row chooses them."""

    kind: str = "node_classification"
    curve: tuple[tuple[int, float], ...] = ()
    sent: SentBytes | None = None
    choice: Choice | None = None


@dataclass(frozen=True, kw_only=True)
class LinkPredictionFacts(Facts):
    """tested: hidden edges that were asked for. negatives: pairs without an edge that were asked beside them."""

    kind: str = "link_prediction"
    negatives: int = 0


@dataclass(frozen=True, kw_only=True)
class ParticipationFacts(Facts):
    """What joining is worth, in ``results``."""

    kind: str = "participation"


@dataclass(frozen=True, kw_only=True)
class GraphClassificationFacts(Facts):
    """graphs, mean_nodes, smallest: of the collection. majority: share of its larger class. folds: training, validation and
    test graphs. classifier: where votes replace the support vector machine. model, label, pooling, encoder, rule: of the row.
    graph_epsilon: least, median and largest ε of a graph's release; bayes_…: the best accuracy that it allows any classifier.
    """

    kind: str = "graph_classification"
    graphs: int = 0
    mean_nodes: float = 0.0
    smallest: int = 0
    majority: float = 0.0
    folds: tuple[int, int, int] = (0, 0, 0)
    classifier: str = "SVM"
    model: str = ""
    label: str = ""
    pooling: str = ""
    encoder: str = ""
    rule: str = ""
    graph_epsilon: tuple[float, float, float] | None = None
    bayes_balanced: float | None = None
    bayes_given_size: float | None = None
    solver: SolverFacts = field(default_factory=SolverFacts)


@dataclass(frozen=True, kw_only=True)
class GraphClusteringFacts(Facts):
    """mean_nodes, mean_edges, mean_degree: of the clients' graphs; standard_errors: of these three. label, encoder, rule, how,
    training, release: of the row. node_losses: ε at 0, 50, 90, 99 and 100 % of nodes; worst_node_clients hold the worst node.
    """

    kind: str = "graph_clustering"
    mean_nodes: float = 0.0
    mean_edges: float = 0.0
    mean_degree: float = 0.0
    standard_errors: tuple[float, float, float] = (0.0, 0.0, 0.0)
    label: str = ""
    encoder: str = ""
    rule: str = ""
    how: str = ""
    training: str = ""
    release: str = ""
    node_losses: tuple[float, ...] = ()
    worst_node_clients: int = 0
    solver: SolverFacts = field(default_factory=SolverFacts)


@dataclass(frozen=True, kw_only=True)
class GraphMetricsFacts(Facts):
    """compared: how many of ``graphs`` are compared pair by pair. edits: random edits of each kind and graph."""

    kind: str = "graph_metrics"
    graphs: int = 0
    compared: int = 0
    mean_nodes: float = 0.0
    edits: int = 0


@dataclass(frozen=True, kw_only=True)
class GraphStartsFacts(Facts):
    """descents: how many of each pair. noise: its standard deviation in the start. with_product: beside the published start."""

    kind: str = "graph_starts"
    descents: int = 0
    pairs: int = 0
    graphs: int = 0
    hops: int = 0
    noise: float | None = None
    with_product: bool = False


@dataclass(frozen=True, kw_only=True)
class ClaimFacts(Facts):
    """inputs: every number that went into the price. explanation: why the price is what it is."""

    kind: str = "claims"
    mechanism: str = ""
    inputs: Mapping[str, float | str] = field(default_factory=dict)
    explanation: str = ""
    delta: float = 0.0


_EVERY: list[type[Facts]] = [Facts, *Facts.__subclasses__()]
RECORDS: Mapping[str, type[Facts]] = {record.kind: record for record in _EVERY}
