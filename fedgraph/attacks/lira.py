"""LiRA: is the model's confidence in a node that of models that saw it, or of those that did not?

    φ = ln p_y/(1 − p_y),        score = ln N(φ; μ_in, σ_in²) − ln N(φ; μ_out, σ_out²)

μ_in and μ_out are means of each node's φ over the shadow models that trained on it, and that did not. With few shadows the
variance of a single node is a poor estimate: below 64 shadows all nodes share one variance, as the paper advises.

**Risk** (``measure_risk``): how often LiRA is right about each single node. Every run of the game of nodes (target and
shadows) is attacked in turn, with all other runs as shadows. The *risk* of a node is the share of the runs in which its coin is
guessed right, among those in which LiRA can say anything; 0.5 is chance. It describes the runs, and is no bound on ε.

Guesses from a few runs are noisy, and not independent (each run is a shadow of the others): in five runs a node is "always"
guessed right by luck more often than in five coin tosses. ``always_by_luck`` is the same share for coins drawn anew, which the
runs do not depend on.
"""

import numpy as np

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.cells import NodeRiskCellFacts
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer

REFERENCE = "Carlini, Chien, Nasr, Song, Terzis & Tramèr, IEEE S&P 2022, arXiv 2112.03570"
NEEDS = "the plan, every node's row and label, and shadow models trained on the same graph"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "nodes"
_OWN_VARIANCE = 64  # shadows from which on each node has a variance of its own


class Params(Settings):
    pass


refuses = coin_game.refuse_nodes


def attack(params: Params, scene: Scene) -> SceneFinding:
    confidence = _log_odds(scene.own_labels())
    coins = scene.coins_of_shadows()
    score = _likelihood_ratios(confidence[0], confidence[1:], coins, each=len(coins) >= _OWN_VARIANCE)
    return attack_scene.find_members(score, scene.target.coins)


def _log_odds(log_probability: np.ndarray) -> np.ndarray:
    """ln p/(1 − p) of ln p, any shape: confidences are about normal on this scale (Carlini et al. 2022, Section IV-C)."""
    inside = np.minimum(log_probability, -1e-12)
    return np.asarray(inside - np.log(-np.expm1(inside)))


def _likelihood_ratios(seen: np.ndarray, shadows: np.ndarray, coins: np.ndarray, each: bool) -> np.ndarray:
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


_REDRAWN = 20  # sets of coins drawn anew, over which luck is averaged


def measure_risk(scene: Scene) -> NodeRiskCellFacts:
    """The risk of the nodes in question, and how it depends on degree, rarity of the class, and labels of neighbours."""
    nodes = scene.game.found.units[:, 0]
    confidence = _log_odds(scene.own_labels())
    coins = np.stack([scene.target.coins, *(run.coins for run in scene.shadows)])
    right, counted = _named_right(confidence, coins)
    lucky = [_named_right(confidence, _redrawn(coins, scene.rng)) for _ in range(_REDRAWN)]
    risk = right / np.maximum(counted, 1)
    known = scene.labels[scene.labels >= 0]
    shares = np.bincount(known) / known.size
    degrees, rarity = scene.known.degrees[nodes], -np.log(shares[scene.labels[nodes]])
    own_way = _unlike(scene, nodes)
    return NodeRiskCellFacts(
        runs=len(coins),
        mean=float(risk.mean()),
        always_found=float((right == counted).mean()),
        always_by_luck=float(np.mean([(r == c).mean() for r, c in lucky])),
        rank_degree=_rank(degrees, risk),
        rank_rarity=_rank(rarity, risk),
        rank_unlike=_rank(own_way, risk),
    )


def _named_right(confidence: np.ndarray, coins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs in which LiRA guesses the coin right, runs in which it can guess), [m] each; each run against all others."""
    right, counted = np.zeros(coins.shape[1]), np.zeros(coins.shape[1])
    for run in range(len(coins)):
        others = np.arange(len(coins)) != run
        known = coins[others]
        both = known.any(axis=0) & ~known.all(axis=0)
        score = np.where(both, _likelihood_ratios(confidence[run], confidence[others], known, each=False), np.nan)
        right += np.where(both, (score > 0) == coins[run], 0.0)
        counted += both
    return right, counted


def _redrawn(coins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Coins drawn anew, with the same structure: the target's, and pairs of opposites."""
    shadows = coin_game.toss_shadows(len(coins) - 1, coins.shape[1], rng)
    return np.stack([rng.random(coins.shape[1]) < 0.5, *shadows])


def _unlike(scene: Scene, nodes: np.ndarray) -> np.ndarray:
    """[m]: share of a node's labelled neighbours with another label; one half if it has none."""
    labels, adjacency = scene.labels, scene.known.adjacency
    rows, columns = adjacency.nonzero()
    judged = (labels[rows] >= 0) & (labels[columns] >= 0)
    rows, columns = rows[judged], columns[judged]
    count = np.bincount(rows, minlength=labels.size)
    other = np.bincount(rows, weights=(labels[rows] != labels[columns]).astype(float), minlength=labels.size)
    return np.asarray(np.where(count > 0, other / np.maximum(count, 1), 0.5)[nodes])


def _rank(values: np.ndarray, risk: np.ndarray) -> float:
    """Spearman's correlation; 0 if one of the two is constant."""
    if np.ptp(values) == 0 or np.ptp(risk) == 0:
        return 0.0
    from scipy.stats import spearmanr

    return float(spearmanr(values, risk).statistic)
