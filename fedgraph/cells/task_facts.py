"""What a finished cell says of itself beside its metrics: one frozen record for each kind of task.

A task makes its record and the report reads it. The records stand in this room since neither of these two may import the
other. A new task adds its record here; ``entry`` then writes and reads it by its field ``kind``.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fedgraph.comparison import SolverFacts as SolverFacts

_Counts = tuple[tuple[int, int, int], ...]  # coins, guesses, right guesses: the fields of ``audit.one_run.OneRunCount``


def pack_answers(right: np.ndarray) -> str:
    """Which of the tested were answered rightly, as short text.

    Args:
        right: bool [n]: one bit each. float [n] in 0 … 1, how right each is: two bytes each, exact to 1 / 65535.

    Returns:
        Base64.
    """
    told = np.packbits(right) if right.dtype == bool else np.round(65535 * right).astype("<u2")
    return base64.b64encode(told.tobytes()).decode()


def unpack_answers(packed: str, tested: int) -> np.ndarray:
    """What ``pack_answers`` packed.

    Args:
        packed: Its text.
        tested: The length of the array.

    Returns:
        bool [tested], or float [tested] in 0 … 1.
    """
    told = np.frombuffer(base64.b64decode(packed), np.uint8)
    return told.view("<u2") / 65535 if told.size == 2 * tested else np.unpackbits(told, count=tested).astype(bool)


@dataclass(frozen=True)
class CanaryAttackCellFacts:
    """Guesses about canaries in one cell.

    Attributes:
        counts: One for each number of guesses that was tried.
        what: What was compared, in words.
        estimator: Which bound of ``audit.curve`` reads the counts; it was chosen before any score was seen.
        path: The attacked path of releases; None: everything that was released.
    """

    counts: _Counts
    what: str
    estimator: str
    path: str | None = None


@dataclass(frozen=True)
class NamedAttackCellFacts:
    """What one attack by name found on one cell.

    Attributes:
        attack: Its name.
        reference: Who described it.
        needs: What the attacker must know.
        viewer: Who can do it.
        what: What is told from what.
        auc: Area under the ROC curve, 0 … 1.
        advantage: The largest difference of true and false positive rate.
        tpr: The true positive rate at each of ``audit.of_scores.LOW_OPERATING_RATES``.
        positives: Of how many the truth was yes.
        negatives: Of how many it was no.
        relation: Of the two versions that are told apart; None where the truth is no coin.
        epsilon: The lower bound on ε; None where no theorem gives one.
        comparable: Whether ``epsilon`` can be held against the provable ε of the row.
        why: Why not, where it cannot.
        estimator: Which bound of ``audit.curve`` reads the counts.
        counts: One for each number of guesses.
        limit: The largest expected advantage that the provable ε allows; None where it is not known.
        answers: Who sees the answers.
        more: The attack's own numbers, by name.
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
    counts: _Counts
    limit: float | None
    answers: str
    more: Mapping[str, float]


@dataclass(frozen=True)
class NodeRiskCellFacts:
    """How often an attack was right about each node, over several runs (``attacks.base.named``).

    Attributes:
        runs: How many.
        nodes: How many were attacked.
        histogram: [runs + 1]: how many nodes there are for each number of runs in which the attack was right.
        luck: The same with coins drawn anew.
        mean: The mean share of runs in which it was right.
        always_found: The share of nodes about which it was right whenever it said anything.
        always_by_luck: The same with coins drawn anew.
        by_degree: Groups of nodes as (least, largest, how many, mean share), by their degree.
        by_rarity: The same by how rare their label is.
        by_unlike: The same by the share of neighbours with another label.
        rank_degree: Spearman's correlation of the risk with the degree.
        rank_rarity: The same with the rarity.
        rank_unlike: The same with the share of unlike neighbours.
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
class NamedAttacksCellFacts:
    """All attacks by name on one cell.

    Attributes:
        found: What each of them found.
        refused: Attack → why it says nothing here.
        risk: Where a game of nodes was played; None elsewhere.
    """

    found: tuple[NamedAttackCellFacts, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    risk: NodeRiskCellFacts | None = None


@dataclass(frozen=True)
class SentBytesCellFacts:
    """What travelled between one client and the server.

    Attributes:
        down: Bytes to one client in one round, the largest.
        up: Bytes from one client in one round, the largest.
        seconds: Link → seconds of all rounds on it.
        links: Link → what it is, in words.
        answering: How many clients answer in each round; None where all do.
    """

    down: int
    up: int
    seconds: Mapping[str, float]
    links: Mapping[str, str]
    answering: int | None = None


@dataclass(frozen=True)
class ClientResultCellFacts:
    """What one client, or everybody, reaches by one way of taking part.

    Attributes:
        participation: The way of taking part.
        client: Its name, or ``all``.
        nodes: How many it holds.
        tested: Of how many nodes the answer was checked.
        metrics: Name → value; empty where nothing was tested.
        epsilon: Of the dearest unit of this client.
        toward: From whom that ε protects.
        sought: How many of the tested are of the class that is looked for.
        right: Which of the tested were answered rightly (``pack_answers``).
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
class TaskFacts:
    """What any task may say of a cell.

    Attributes:
        kind: Names the record in a file.
        one: What one node of the data is (``types.GraphNames``).
        clients: How many hold the data; None where that is no question.
        train_nodes: How many people trained; 0 where nobody is counted.
        partition: How the data were dealt.
        cut_edges: Edges between clients.
        cut_edges_shared: Whether both ends know such an edge.
        rounds: Of the federation.
        public: What is public; None where that is no question.
        protocol: How test nodes are asked.
        split: How the nodes were split.
        broken_promise: What the data break of an assumption; None where they keep all.
        tested: Of how many nodes or graphs the answer was checked.
        least_class: How many the smallest class has.
        right: Which of the tested were answered rightly (``pack_answers``).
        attack: Guesses about canaries.
        named: Attacks by name.
        results: One for each way of taking part and client, where owners are compared.
        public_metrics: Names of the cell's metrics that follow from released values and public people alone, or were released.
        public_notes: Those of the cell's notes that follow from its plan.
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
    attack: CanaryAttackCellFacts | None = None
    named: NamedAttacksCellFacts | None = None
    results: tuple[ClientResultCellFacts, ...] = ()
    public_metrics: tuple[str, ...] = ()
    public_notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SettingChoiceCellFacts:
    """Settings that were chosen privately.

    Attributes:
        settings: Of the best trial.
        score: Its noisy share of right answers.
        judges: Among how many people.
        epsilon: Of one training and its score.
        combinations: How many were possible.
        among: The mean number of trials.
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
class NodeClassificationCellFacts(TaskFacts):
    """Of nodes that are classified.

    Attributes:
        curve: (round, test accuracy) of the rounds that were kept.
        sent: What travelled; None where nothing did.
        choice: Of settings, where the row chooses them.
    """

    kind: str = "node_classification"
    curve: tuple[tuple[int, float], ...] = ()
    sent: SentBytesCellFacts | None = None
    choice: SettingChoiceCellFacts | None = None


@dataclass(frozen=True, kw_only=True)
class LinkPredictionCellFacts(TaskFacts):
    """Of links that are foreseen; ``tested`` counts hidden edges.

    Attributes:
        negatives: Pairs without an edge that were asked beside them.
    """

    kind: str = "link_prediction"
    negatives: int = 0


@dataclass(frozen=True, kw_only=True)
class ParticipationCellFacts(TaskFacts):
    """What joining is worth, in ``results``."""

    kind: str = "participation"


@dataclass(frozen=True, kw_only=True)
class GraphClassificationCellFacts(TaskFacts):
    """Of graphs that are classified.

    Attributes:
        graphs: How many the collection has.
        mean_nodes: Of a graph.
        majority: Share of the larger class.
        folds: Training, validation and test graphs.
        classifier: ``SVM``, or what votes in its place.
        model: Of the row.
        label: What the row calls its model.
        pooling: Of the row.
        encoder: Of the row.
        rule: How ε follows from a graph, such as ``1/n``.
        graph_epsilon: Least, median and largest ε of a graph's release.
        bayes_balanced: The best accuracy that the release allows any classifier, sizes given and classes balanced.
        bayes_given_size: The same, sizes included.
        solver: How well the discrepancies were solved.
    """

    kind: str = "graph_classification"
    graphs: int = 0
    mean_nodes: float = 0.0
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
class GraphClusteringCellFacts(TaskFacts):
    """Of graphs that are clustered.

    Attributes:
        mean_nodes: Of the clients' graphs.
        mean_edges: Of the clients' graphs.
        mean_degree: Of the clients' graphs.
        standard_errors: Of these three means.
        label: What the row calls its model.
        encoder: Of the row.
        rule: How ε follows from a graph, such as ``1/n``.
        how: By which distance graphs are compared.
        training: Of the row.
        release: Of the row.
        worst_node_clients: How many clients hold the node with the largest ε.
        solver: How well the discrepancies were solved.
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
    worst_node_clients: int = 0
    solver: SolverFacts = field(default_factory=SolverFacts)


_EVERY: list[type[TaskFacts]] = [TaskFacts, *TaskFacts.__subclasses__()]
CELL_FACTS_RECORDS: dict[str, type[TaskFacts]] = {record.kind: record for record in _EVERY}
