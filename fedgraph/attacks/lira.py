"""LiRA: is the model's confidence in a node that of models that saw it, or of those that did not?

    φ = ln p_y/(1 − p_y),        score = ln N(φ; μ_in, σ_in²) − ln N(φ; μ_out, σ_out²)

μ_in and μ_out are means of each node's φ over the shadow models that trained on it, and that did not. With few shadows the
variance of a single node is a poor estimate: below 64 shadows all nodes share one variance, as the paper advises.
"""

import numpy as np
from pydantic import Field

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer

REFERENCE = "Carlini, Chien, Nasr, Song, Terzis & Tramèr, IEEE S&P 2022, arXiv 2112.03570"
NEEDS = "the plan, every node's row and label, and shadow models trained on the same graph"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "nodes"
_OWN_VARIANCE = 64  # shadows from which on each node has a variance of its own


class Params(Settings):
    variance: str = Field(
        "auto", pattern="^(auto|one|each)$", description="one for all nodes, of each node, or auto (one below 64 shadows)"
    )


refuses = coin_game.refuse_nodes


def attack(params: Params, scene: Scene) -> SceneFinding:
    confidence = attack_scene.log_odds(scene.own_labels())
    coins = scene.coins_of_shadows()
    each = params.variance == "each" or (params.variance == "auto" and len(coins) >= _OWN_VARIANCE)
    score = likelihood_ratios(confidence[0], confidence[1:], coins, each)
    return attack_scene.find_members(score, scene.target.coins)


def likelihood_ratios(seen: np.ndarray, shadows: np.ndarray, coins: np.ndarray, each: bool) -> np.ndarray:
    """[m], log-likelihood ratios of "trained" over "did not".

    seen: [m], φ of the model under attack. shadows: [s, m], φ of each shadow. coins: bool [s, m], who trained in which shadow;
    each unit in some, not in all. each: whether every unit has a variance of its own.
    """
    from scipy.stats import norm  # its import takes half a second

    parts = []
    for where in (coins, ~coins):
        count = where.sum(axis=0)
        mean = (shadows * where).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(where, (shadows - mean) ** 2, 0.0)
        if each:
            spread = np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1))
        else:
            spread = np.full(seen.shape, np.sqrt(squares.sum() / max(1, int(count.sum()) - seen.size)))
        parts.append(norm.logpdf(seen, mean, np.maximum(spread, 1e-6)))
    return np.asarray(parts[0] - parts[1])
