"""What an attack may look at: one run under attack, the attacker's own shadow runs, and answers to questions.

The attacker knows the plan and every row except what is in question: the assumption of differential privacy, and the strongest
attacker. Each attack's ``NEEDS`` says how much of this it uses.

**Answers.** ``alone`` asks the model about rows without edges, as anybody who holds the model can. ``shown`` asks about all
nodes of the clients' graph at once, as the viewer sees them: with edges only if nothing is guaranteed (ε = ∞). ``answers:
everybody`` always asks with the true edges, as if each node's answer were published. That is outside the guarantee of methods
in which a node may use its own edges (``own-edges-known``, ``answers-private``), and the report says so.

**Single messages** of clients, for a server that reads them, or that chooses the model (an *active* one): the client's own code
computes the message, and the desk releases it with the noise of the plan. So what is attacked is what such a server would hold.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fedgraph.attacks.base import evidence as evidence_of
from fedgraph.attacks.base import whole_run
from fedgraph.attacks.base.coin_game import CoinGame, CoinGameRun
from fedgraph.audit import operating_points
from fedgraph.errors import RuntimeFailure
from fedgraph.methods import MethodGradientReader, Plan, PlanStreams, State, method_kinds
from fedgraph.privacy import Desk, Unit
from fedgraph.types import Graph, Partition, Subgraph, graph_without_edges

_Answers = Literal["viewer", "everybody"]
_Trainer = Callable[[Partition, str], State]  # (clients, name of the streams) → final state


@dataclass(frozen=True, eq=False)
class SceneFinding:
    """The result of an attack.

    Attributes:
        scores: float [k]; a larger score means "more likely true".
        truth: bool [k], the right answers.
        what: One phrase: what was told from what.
        units: int64 [k], the place of each score among the game's units, if a coin of its own decides each. None if truth does
            not follow from coins, so that no theorem gives a bound on ε.
        metrics: Further columns of the table, by name.
    """

    scores: np.ndarray
    truth: np.ndarray
    what: str
    units: np.ndarray | None = None
    metrics: dict[str, float] = field(default_factory=dict)


def find_members(score: np.ndarray, coins: np.ndarray) -> SceneFinding:
    """The finding about nodes, each of which trained or not by its coin."""
    return SceneFinding(score, coins, "nodes that trained from nodes that did not", np.arange(score.size))


def find_edges(score: np.ndarray, kept: np.ndarray, strangers: np.ndarray, what: str) -> SceneFinding:
    """The finding about real edges, kept or dropped by their coins; as published, kept ones are also told from other pairs.

    score: float [k], of the edges. kept: bool [k]. strangers: float [m], scores of pairs that never had an edge.
    """
    everyone = np.concatenate([score[kept], strangers])
    published = operating_points.of_scores(everyone, np.arange(everyone.size) < kept.sum())
    metrics = {"auc_published": published.auc, "tpr_published": published.tpr[1]}
    return SceneFinding(score, kept, what, np.arange(score.size), metrics)


@dataclass(eq=False)
class Scene:
    """What an attack may look at, and what it may ask.

    Attributes:
        made: The plan.
        game: What is in question, and what the attacker knows beside it.
        target: The run under attack. Only its state may be read: its coins are the truth.
        shadows: The attacker's own runs, with known coins.
        public: The graph that predictions are asked for. The attacker may use its rows, and its labels if they are known.
        answers: Who sees an answer that is made with private edges.
        epsilon: The cell's ε; at ∞ nothing is guaranteed, and the viewer gets answers made with edges.
        rng: The attack's own randomness.
        train: From clients and a name of random streams to the final state of one more run of the plan.
    """

    made: Plan
    game: CoinGame
    target: CoinGameRun
    shadows: tuple[CoinGameRun, ...]
    public: Graph
    answers: _Answers
    epsilon: float
    rng: np.random.Generator
    train: _Trainer
    _told: dict[Hashable, np.ndarray] = field(default_factory=dict)

    @property
    def known(self) -> Graph:
        """What all clients hold except what is in question, in global numbers."""
        return self.game.known

    @property
    def public_is_held(self) -> bool:
        """Whether ``public`` has the clients' own rows (protocols in which held nodes ask): its labels are then of training
        nodes. The rows are the same object, whatever the coins and the masked labels are.
        """
        return self.public.features is self.known.features

    @cached_property
    def labels(self) -> np.ndarray:
        """int64 [n], labels of the clients' nodes; −1: none."""
        return self.known.labels

    def alone(self, run: CoinGameRun, graph: Graph) -> np.ndarray:
        """[n, c] log-probabilities of the rows of ``graph``, each asked alone."""
        return whole_run.answers_of(whole_run.without_spread(self.made), run.state, graph_without_edges(graph))

    def shown(self, run: CoinGameRun, graph: Graph | None = None) -> np.ndarray:
        """[n, c] log-probabilities of all nodes, as the viewer gets them. graph: has other rows for these nodes."""
        asked = self.game.whole(run.coins)
        if graph is not None:
            asked = replace(asked, features=graph.features)
        return whole_run.answers_of(self.made, run.state, asked if self.edges_used else graph_without_edges(asked))

    @property
    def edges_used(self) -> bool:
        """Whether an answer that the attacker sees may have been made with private edges."""
        return self.answers == "everybody" or math.isinf(self.epsilon)

    def kept(self, key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        """``make()``, computed once per key, because several attacks ask the same questions."""
        if key not in self._told:
            self._told[key] = make()
        return self._told[key]

    def every_alone(self) -> np.ndarray:
        """[1 + shadows, n, c]: log-probabilities of the clients' rows, each asked alone; first the target's."""
        return self.kept("alone", lambda: np.stack([self.alone(run, self.known) for run in (self.target, *self.shadows)]))

    def own_labels(self) -> np.ndarray:
        """[1 + shadows, m]: log-probabilities of the labels of the nodes in question, each asked alone; first the target's."""
        nodes = self.game.found.units[:, 0]
        return label_probability(self.every_alone(), nodes, self.labels[nodes])

    def coins_of_shadows(self) -> np.ndarray:
        """bool [shadows, m]: which units took part in which of the attacker's own runs."""
        return np.stack([run.coins for run in self.shadows])


def label_probability(answers: np.ndarray, nodes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[..., m]: the entry of each node's own label. answers: [..., n, c]. labels: int64 [m]."""
    return np.asarray(answers[..., nodes, labels])


def start_model(scene: Scene) -> State:
    """The state before the first round, with parameters drawn by the scene's own stream."""
    return method_kinds.load(scene.made.method).start(scene.made, np.random.default_rng(int(scene.rng.integers(2**63))))


def refuse_messages(made: Plan) -> str | None:
    """Why no single message of this plan shows private rows, or None."""
    if not made.guarantee.protection.viewer.sees_messages:
        return f"it reads each client's message, which {made.guarantee.protection.viewer.value} does not see"
    return "features and labels are public here" if made.guarantee.protection.unit is not Unit.NODE else None


def gradients_of(scene: Scene, clients: int, model: Mapping[str, np.ndarray]) -> Iterator[tuple[Subgraph, np.ndarray]]:
    """(client, its gradient in the answer to ``model``) of the first ``clients`` whose answer holds one."""
    read, made, releases = gradient_reader(scene), scene.made, scene.made.schedule.releases
    method = method_kinds.load(made.method)
    for subgraph in scene.game.partition.subgraphs[:clients]:
        path = ("attack", "client", subgraph.client, "round", 0)
        streams = PlanStreams(int(scene.rng.integers(2**31)), path, made.fingerprint)
        desk = Desk("attack", subgraph.client, 0, releases, streams.generator("noise"))
        sent = method.client(made, method.prepare(made, subgraph), model, 0, streams, desk)
        flat = read.gradient({name: released.value for name, released in sent.items()}, model)
        if flat is not None:
            yield subgraph, flat


def gradient_reader(scene: Scene) -> MethodGradientReader:
    """The reader of gradients in messages; ``RuntimeFailure`` if the method has none (attacks refuse it before)."""
    observe = evidence_of.readers(scene.made.method).observe
    if observe is None:
        raise RuntimeFailure(f"{scene.made.method}: its messages show no gradient (Offers.observe)")
    return observe(scene.made)
