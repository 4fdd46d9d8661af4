"""What an attack may look at: one run under attack, the attacker's own shadow runs, and answers to questions.

The attacker knows the plan and every row but what is in question (the assumption of differential privacy, and the strongest an
attacker can have; each attack's ``NEEDS`` says how much of that it uses).

**Answers.** ``alone``: the model is asked about rows without any edge, and nothing spreads over neighbours: what anybody who
holds the model can do. ``shown``: all nodes of the clients' graph at once, as the viewer gets them: the edges are used only
where nothing is guaranteed (ε = ∞). ``answers: everybody`` asks with the true edges in any case, as if each node's answer were
published: that is outside the guarantee of methods in which a node may use its own edges (``own-edges-known``,
``answers-private``), and the report says so.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from fedgraph.attacks.base.game import Game, Kind, Run
from fedgraph.attacks.base.whole_run import answers_of, without_spread
from fedgraph.audit import operating_points
from fedgraph.documents.settings import Settings
from fedgraph.methods.base import Plan, State
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, Partition, without_edges

Answers = Literal["viewer", "everybody"]
Trainer = Callable[[Partition, str], State]  # clients, name of the streams → what comes out of the plan


@dataclass(frozen=True, eq=False)
class Finding:
    """What an attack says.

    Attributes:
        scores: float [k], larger where the answer is more likely true.
        truth: bool [k], the answers.
        what: One phrase: what was told from what.
        units: int64 [k], the place of each score in the game's units, where a coin of its own decides each. None where truth
            is not a matter of coins, so that no theorem turns it into an ε.
        metrics: Other numbers worth a column, by name.
    """

    scores: np.ndarray
    truth: np.ndarray
    what: str
    units: np.ndarray | None = None
    metrics: dict[str, float] = field(default_factory=dict)


def of_members(score: np.ndarray, coins: np.ndarray) -> Finding:
    """Of nodes, each of which trained or did not by its coin."""
    return Finding(score, coins, "nodes that trained from nodes that did not", np.arange(score.size))


def of_edges(score: np.ndarray, kept: np.ndarray, strangers: np.ndarray, what: str) -> Finding:
    """Of real edges, kept or dropped by their coins; as published, the kept ones are also told from pairs that never had one.

    score: float [k]; kept: bool [k]. strangers: float [m], their scores.
    """
    everyone = np.concatenate([score[kept], strangers])
    published = operating_points.operating_points(everyone, np.arange(everyone.size) < kept.sum())
    metrics = {"auc_published": published.auc, "tpr_published": published.tpr[1]}
    return Finding(score, kept, what, np.arange(score.size), metrics)


@dataclass(eq=False)
class Scene:
    """What an attack may look at, and what it may ask.

    Attributes:
        made: The plan.
        game: What is in question, and what the attacker knows beside it.
        target: The run under attack. Nothing but its state may be read: its coins are the truth.
        shadows: The attacker's own runs, with known coins.
        public: The graph that predictions are asked for. The attacker may use its rows, and its labels where they are known.
        answers: Who sees an answer that is made with private edges.
        epsilon: The cell's ε; at ∞ nothing is guaranteed, and the viewer gets answers made with edges.
        rng: The attack's own randomness.
        train: From clients and a name of random streams to what one more run of the plan gives.
    """

    made: Plan
    game: Game
    target: Run
    shadows: tuple[Run, ...]
    public: Graph
    answers: Answers
    epsilon: float
    rng: np.random.Generator
    train: Trainer
    _told: dict[Hashable, np.ndarray] = field(default_factory=dict)

    @property
    def known(self) -> Graph:
        """What the clients hold, apart from what is in question, in global numbers."""
        return self.game.known

    @cached_property
    def labels(self) -> np.ndarray:
        """int64 [n], of the clients' nodes as they are; −1 where there is none."""
        return self.known.labels

    def alone(self, run: Run, graph: Graph) -> np.ndarray:
        """[n, c] log-probabilities of the rows of ``graph``, each by itself."""
        return answers_of(without_spread(self.made), run.state, without_edges(graph))

    def shown(self, run: Run, graph: Graph | None = None) -> np.ndarray:
        """[n, c] log-probabilities of all nodes, as the viewer gets them. graph: other rows for these nodes and edges."""
        asked = self.game.whole(run.coins)
        if graph is not None:
            asked = replace(asked, features=graph.features)
        return answers_of(self.made, run.state, asked if self.edges_used else without_edges(asked))

    @property
    def edges_used(self) -> bool:
        """Whether an answer that the attacker sees may have been made with private edges."""
        return self.answers == "everybody" or math.isinf(self.epsilon)

    def kept(self, key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        """``make()``, once per key: several attacks ask the same questions."""
        if key not in self._told:
            self._told[key] = make()
        return self._told[key]

    def every_alone(self) -> np.ndarray:
        """[1 + shadows, n, c]: the clients' rows as they are, each by itself; first the target."""
        return self.kept("alone", lambda: np.stack([self.alone(run, self.known) for run in (self.target, *self.shadows)]))

    def coins_of_shadows(self) -> np.ndarray:
        """bool [shadows, m]: which units took part in which of the attacker's own runs."""
        return np.stack([run.coins for run in self.shadows])


class AttackModule(Protocol):
    """The module of an attack by name (``attacks.base`` states its contract)."""

    REFERENCE: str
    NEEDS: str
    VIEWER: Viewer
    GAME: Kind
    Params: type[Settings]

    def refuses(self, made: Plan) -> str | None: ...
    def attack(self, params: Any, scene: Scene) -> Finding: ...


def log_odds(log_probability: np.ndarray) -> np.ndarray:
    """ln p/(1 − p) of ln p, any shape: the scale on which confidences look normal (Carlini et al. 2022, Section IV-C)."""
    inside = np.minimum(log_probability, -1e-12)
    return np.asarray(inside - np.log(-np.expm1(inside)))


def of_label(answers: np.ndarray, nodes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[..., m]: the entry of each node's own label. answers: [..., n, c]. labels: int64 [m]."""
    return np.asarray(answers[..., nodes, labels])
