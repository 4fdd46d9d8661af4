"""RMIA: by how many other people is this node beaten, when each is measured against what models say of it on average?

    score(x) = share of z with [p(x|θ)/p(x)] / [p(z|θ)/p(z)] ≥ γ,        p(·) = mean over the shadow models

z are people of the same kind who are in nobody's training set. Where the setting has none, the other units stand in.
"""

import numpy as np
from pydantic import Field

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer

REFERENCE = "Zarifzadeh, Liu & Shokri, ICML 2024, arXiv 2312.03262"
NEEDS = "the plan, every node's row and label, shadow models, and labelled nodes that nobody trained on"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "nodes"


class Params(Settings):
    gamma: float = Field(2.0, ge=1, description="by how much another person must be beaten, γ")


refuses = coin_game.refuse_nodes


def attack(params: Params, scene: Scene) -> SceneFinding:
    own = compute_rmia_ratios(scene.own_labels())
    known = np.flatnonzero(scene.public.labels >= 0)
    others = own
    if known.size and not scene.public_is_held:
        asked = scene.kept("public", lambda: np.stack([scene.alone(r, scene.public) for r in (scene.target, *scene.shadows)]))
        others = compute_rmia_ratios(attack_scene.label_probability(asked, known, scene.public.labels[known]))
    score = np.searchsorted(np.sort(others), own - np.log(params.gamma), side="right") / others.size
    # Many nodes beat everybody: the ratio itself breaks their ties, and no order between different scores changes.
    tie = np.argsort(np.argsort(own)) / (own.size * (others.size + 1))
    return attack_scene.find_members(score + tie, scene.target.coins)


def compute_rmia_ratios(answers: np.ndarray) -> np.ndarray:
    """[m] ln p(x|θ) − ln mean over shadows. answers: [1 + s, m] log-probabilities of labels, the target's first."""
    return np.asarray(answers[0] - (np.logaddexp.reduce(answers[1:], axis=0) - np.log(len(answers) - 1)))
