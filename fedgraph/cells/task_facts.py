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
    """Which of the tested were answered rightly, as base64.

    Args:
        right: bool [n]: one bit each. float [n] in 0 … 1, how right each is: two bytes each, exact to 1 / 65535.
    """
    told = np.packbits(right) if right.dtype == bool else np.round(65535 * right).astype("<u2")
    return base64.b64encode(told.tobytes()).decode()


def unpack_answers(packed: str, tested: int) -> np.ndarray:
    """What ``pack_answers`` packed: bool [tested], or float [tested] in 0 … 1."""
    told = np.frombuffer(base64.b64decode(packed), np.uint8)
    return told.view("<u2") / 65535 if told.size == 2 * tested else np.unpackbits(told, count=tested).astype(bool)


@dataclass(frozen=True)
class CanaryAttackCellFacts:
    """Guesses about canaries in one cell."""

    counts: _Counts  # one for each number of guesses that was tried
    what: str  # what was compared, in words
    estimator: str  # which bound of ``audit.one_run`` reads the counts; it was chosen before any score was seen
    path: str | None = None  # the attacked path of releases; None: everything that was released


@dataclass(frozen=True)
class NamedAttackCellFacts:
    """What one attack by name found on one cell."""

    attack: str  # its name
    reference: str  # who described it
    needs: str  # what the attacker must know
    viewer: str  # who can do it
    what: str  # what is told from what
    auc: float  # area under the ROC curve, 0 … 1
    advantage: float  # the largest difference of true and false positive rate
    tpr: tuple[float, ...]  # the true positive rate at each of ``audit.operating_points.LOW_OPERATING_RATES``
    epsilon: float | None  # the lower bound on ε; None where no theorem gives one
    comparable: bool  # whether ``epsilon`` can be held against the provable ε of the row
    why: str  # why not, where it cannot
    estimator: str  # which bound of ``audit.one_run`` reads the counts
    counts: _Counts  # one for each number of guesses
    limit: float | None  # the largest expected advantage that the provable ε allows; None where it is not known
    answers: str  # who sees the answers
    more: Mapping[str, float]  # the attack's own numbers, by name


@dataclass(frozen=True)
class NodeRiskCellFacts:
    """How often an attack was right about each node, over several runs (``attacks.base.named``)."""

    runs: int  # how many
    mean: float  # the mean share of runs in which it was right
    always_found: float  # the share of nodes about which it was right whenever it said anything
    always_by_luck: float  # the same with coins drawn anew
    rank_degree: float  # Spearman's correlation of the risk with the degree
    rank_rarity: float  # the same with how rare its label is
    rank_unlike: float  # the same with the share of neighbours with another label


@dataclass(frozen=True)
class NamedAttacksCellFacts:
    """All attacks by name on one cell."""

    found: tuple[NamedAttackCellFacts, ...] = ()  # what each of them found
    refused: Mapping[str, str] = field(default_factory=dict)  # attack → why it says nothing here
    risk: NodeRiskCellFacts | None = None  # where a game of nodes was played; None elsewhere


@dataclass(frozen=True)
class SentBytesCellFacts:
    """What travelled between one client and the server."""

    down: int  # bytes to one client in one round, the largest
    up: int  # bytes from one client in one round, the largest
    seconds: Mapping[str, float]  # link → seconds of all rounds on it
    links: Mapping[str, str]  # link → what it is, in words
    answering: int | None = None  # how many clients answer in each round; None where all do


@dataclass(frozen=True)
class ClientResultCellFacts:
    """What one client, or everybody, reaches by one way of taking part."""

    participation: str  # the way of taking part
    client: str  # its name, or ``all``
    nodes: int  # how many it holds
    tested: int  # of how many nodes the answer was checked
    metrics: Mapping[str, float]  # name → value; empty where nothing was tested
    epsilon: float  # of the dearest unit of this client
    toward: str  # from whom that ε protects
    sought: int = 0  # how many of the tested are of the class that is looked for
    right: str = ""  # which of the tested were answered rightly (``pack_answers``)


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What any task may say of a cell."""

    kind: str = "plain"  # names the record in a file
    one: str = "node"  # what one node of the data is (``types.GraphNames``)
    clients: int | None = None  # how many hold the data; None where that is no question
    train_nodes: int = 0  # how many people trained; 0 where nobody is counted
    partition: str = ""  # how the data were dealt
    natural: bool = False  # the clients are owners that the data name (``types.Partition``)
    cut_edges: int | None = None  # edges between clients
    cut_edges_shared: bool = False  # whether both ends know such an edge
    rounds: int = 0  # of the federation
    public: str | None = None  # what is public; None where that is no question
    protocol: str = ""  # how test nodes are asked
    split: str = ""  # how the nodes were split
    broken_promise: str | None = None  # what the data break of an assumption; None where they keep all
    tested: int | None = None  # of how many nodes or graphs the answer was checked
    least_class: int | None = None  # how many the smallest class has
    right: str = ""  # which of the tested were answered rightly (``pack_answers``)
    attack: CanaryAttackCellFacts | None = None  # guesses about canaries
    named: NamedAttacksCellFacts | None = None  # attacks by name
    results: tuple[ClientResultCellFacts, ...] = ()  # one for each way of taking part and client, where owners are compared
    # names of the cell's metrics that follow from released values and public people alone, or were released
    public_metrics: tuple[str, ...] = ()
    public_notes: tuple[str, ...] = ()  # those of the cell's notes that follow from its plan


@dataclass(frozen=True)
class SettingChoiceCellFacts:
    """Settings that were chosen privately."""

    settings: Mapping[str, bool | int | float | str]  # of the best trial
    epsilon: float  # of one training and its score

    @property
    def words(self) -> str:
        """The settings, as tables show them."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True, kw_only=True)
class NodeClassificationCellFacts(TaskFacts):
    """Of nodes that are classified."""

    kind: str = "node_classification"
    curve: tuple[tuple[int, float], ...] = ()  # (round, test accuracy) of the rounds that were kept
    sent: SentBytesCellFacts | None = None  # what travelled; None where nothing did
    choice: SettingChoiceCellFacts | None = None  # of settings, where the row chooses them


@dataclass(frozen=True, kw_only=True)
class LinkPredictionCellFacts(TaskFacts):
    """Of links that are foreseen; ``tested`` counts hidden edges."""

    kind: str = "link_prediction"
    negatives: int = 0  # pairs without an edge that were asked beside them


@dataclass(frozen=True, kw_only=True)
class ParticipationCellFacts(TaskFacts):
    """What joining is worth, in ``results``."""

    kind: str = "participation"


@dataclass(frozen=True, kw_only=True)
class GraphClassificationCellFacts(TaskFacts):
    """Of graphs that are classified."""

    kind: str = "graph_classification"
    graphs: int = 0  # how many the collection has
    mean_nodes: float = 0.0  # of a graph
    folds: tuple[int, int, int] = (0, 0, 0)  # training, validation and test graphs
    classifier: str = "SVM"  # ``SVM``, or what votes in its place
    # the best accuracy that the release allows any classifier, sizes given and classes balanced
    bayes_balanced: float | None = None
    bayes_given_size: float | None = None  # the same, sizes included
    solver: SolverFacts = field(default_factory=SolverFacts)  # how well the discrepancies were solved


@dataclass(frozen=True, kw_only=True)
class GraphClusteringCellFacts(TaskFacts):
    """Of graphs that are clustered."""

    kind: str = "graph_clustering"
    mean_nodes: float = 0.0  # of the clients' graphs
    mean_edges: float = 0.0  # of the clients' graphs
    worst_node_clients: int = 0  # how many clients hold the node with the largest ε
    solver: SolverFacts = field(default_factory=SolverFacts)  # how well the discrepancies were solved


_EVERY: list[type[TaskFacts]] = [TaskFacts, *TaskFacts.__subclasses__()]
CELL_FACTS_RECORDS: dict[str, type[TaskFacts]] = {record.kind: record for record in _EVERY}
