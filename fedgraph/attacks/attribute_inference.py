"""Attribute inference: one word of a person's row is unknown; which of the two rows does the model know better?

    score = ln p(y | row with the word) − ln p(y | row without), less what models that never saw the word say on average

Each of some training nodes has, by a fair coin, one more word than its row holds. The attacker knows the rest of the row and
the label (black-box inversion of Fredrikson et al., CCS 2015, on node classifiers as in the reference). The reference models
keep what follows from the word alone (imputation) apart from what the target remembers of this person.
"""

from dataclasses import replace

import numpy as np

from fedgraph.attacks.base import coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding, scene_label_probability
from fedgraph.attacks.base.coin_game import CoinGameRun, CoinWords
from fedgraph.documents.settings import Settings
from fedgraph.methods.base import Plan
from fedgraph.privacy.units import Unit, Viewer

REFERENCE = "Olatunji, Hizber, Sihlovec & Khosla 2023, arXiv 2306.00644; Fredrikson, Jha & Ristenpart, CCS 2015"
NEEDS = "the model, the rest of the node's row, its label, and (for the comparison) shadow models"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "words"


class Params(Settings):
    """No settings."""


def refuses(made: Plan) -> str | None:
    """Features that are public are no secret."""
    return "features and labels are public here" if made.guarantee.protection.unit is not Unit.NODE else None


def attack(params: Params, scene: Scene) -> SceneFinding:
    found = scene.game.found
    assert isinstance(found, CoinWords)
    with_it = scene.game.whole(np.ones(found.coins.size, dtype=bool))

    def gain(run: CoinGameRun) -> np.ndarray:
        """[m]: by how much the log-probabilities of the nodes' own labels are larger with the word."""
        asked = [scene.alone(run, replace(graph, labels=scene.labels)) for graph in (with_it, scene.known)]
        one, two = (scene_label_probability(answers, found.nodes, scene.labels[found.nodes]) for answers in asked)
        return np.asarray(one - two)

    score = gain(scene.target)
    if scene.shadows:
        score = score - np.mean([gain(run) for run in scene.shadows], axis=0)
    return SceneFinding(score, scene.target.coins, "rows with one more word from rows without", np.arange(found.coins.size))
