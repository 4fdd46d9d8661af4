"""A classifier of posteriors: what does the answer about a node look like when the node took part?

The attacker trains shadow models, knows who was in them, and learns to tell members by the model's class probabilities, as they
are and in descending order, with their entropy (0-hop queries: a node's row without its edges).
"""

import warnings

import numpy as np
from pydantic import Field
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer

REFERENCE = "Olatunji, Nejdl & Khosla, IEEE TPS 2021, arXiv 2101.06570"
NEEDS = "the plan, every node's row, and shadow models; no label"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "nodes"


class Params(Settings):
    hidden: int = Field(64, ge=1, description="hidden units of the attacker's network")
    steps: int = Field(30, ge=1, description="passes over the shadow answers")
    most: int = Field(20_000, ge=10, description="shadow answers learnt from, at most")


refuses = coin_game.refuse_nodes


def attack(params: Params, scene: Scene) -> SceneFinding:
    answers = scene.every_alone()[:, scene.game.found.units[:, 0]]
    seen = _described(answers[1:]).reshape(-1, 2 * answers.shape[2] + 1)
    truth = scene.coins_of_shadows().reshape(-1)
    chosen = scene.rng.permutation(truth.size)[: params.most]
    seed, steps = int(scene.rng.integers(2**31)), params.steps
    network = MLPClassifier((params.hidden,), max_iter=steps, random_state=seed, tol=0.0, n_iter_no_change=steps)
    classifier = make_pipeline(StandardScaler(), network)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many steps are meant
        classifier.fit(seen[chosen], truth[chosen])
    score = classifier.predict_proba(_described(answers[0]))[:, 1]
    return attack_scene.find_members(score, scene.target.coins)


def _described(answers: np.ndarray) -> np.ndarray:
    """[…, 2c + 1]: probabilities, their logarithms in descending order, and the entropy."""
    likely = np.exp(answers)
    entropy = -(likely * answers).sum(axis=-1, keepdims=True)
    return np.concatenate([likely, -np.sort(-np.maximum(answers, -30.0), axis=-1), entropy], axis=-1)
