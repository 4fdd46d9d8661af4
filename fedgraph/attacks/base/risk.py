"""Who is at risk: how often the attack is right about each single person, over many runs.

Every run of the game of nodes (the target's and the shadows') is attacked in turn by LiRA, with all the others as the
attacker's shadows, and for each node it is counted how often its coin was named right where the attacker was sure enough.
*Risk* of a node: share of the runs in which its coin was guessed right, 0.5 where nothing can be told. Shadow coins here are
the attacker's knowledge about other runs of the same people, so this is a description, not a bound on ε.

Guesses about single people from a few runs are noisy, and those of several runs are not independent (each run is among the
other ones' shadows): in five runs a node is "always" named right by luck more often than in five coin tosses. ``luck`` is
therefore what the same attack finds with coins drawn anew, which have nothing to do with the runs.
"""

import numpy as np

from fedgraph.attacks.base.game import coins_of_shadows
from fedgraph.attacks.base.scene import Scene, log_odds, of_label
from fedgraph.attacks.lira import ratio
from fedgraph.cells.facts import NodesAtRisk

NUM_GROUPS = 4
REDRAWN = 20  # sets of coins that luck is averaged over


def measure_risk(scene: Scene) -> NodesAtRisk:
    """The distribution over nodes, and what the nodes found have in common."""
    nodes = scene.game.found.units[:, 0]
    confidence = log_odds(of_label(scene.every_alone(), nodes, scene.labels[nodes]))
    coins = np.stack([scene.target.coins, *(run.coins for run in scene.shadows)])
    right, counted = _named_right(confidence, coins)
    drawn = [_redrawn(coins, scene.rng) for _ in range(REDRAWN)]
    lucky = [_named_right(confidence, other) for other in drawn]
    luck = np.mean([np.bincount(r.astype(int), minlength=len(coins) + 1) for r, _ in lucky], axis=0)
    risk = right / np.maximum(counted, 1)
    degrees, rarity = scene.known.degrees[nodes], _rarity(scene.labels, nodes)
    own_way = _unlike(scene, nodes)
    return NodesAtRisk(
        runs=len(coins),
        nodes=int(nodes.size),
        histogram=tuple(np.bincount(np.round(right).astype(int), minlength=len(coins) + 1).tolist()),
        luck=tuple(luck.round(1).tolist()),
        mean=float(risk.mean()),
        always_found=float((right == counted).mean()),
        always_by_luck=float(np.mean([(r == c).mean() for r, c in lucky])),
        by_degree=_groups(degrees.astype(float), risk),
        by_rarity=_groups(rarity, risk),
        by_unlike=_groups(own_way, risk),
        rank_degree=_rank(degrees, risk),
        rank_rarity=_rank(rarity, risk),
        rank_unlike=_rank(own_way, risk),
    )


def _named_right(confidence: np.ndarray, coins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs in which LiRA names the coin right, runs in which it can say anything), [m] each; each run against all others."""
    right, counted = np.zeros(coins.shape[1]), np.zeros(coins.shape[1])
    for run in range(len(coins)):
        others = np.arange(len(coins)) != run
        known = coins[others]
        both = known.any(axis=0) & ~known.all(axis=0)
        score = np.where(both, ratio(confidence[run], confidence[others], known, each=False), np.nan)
        right += np.where(both, (score > 0) == coins[run], 0.0)
        counted += both
    return right, counted


def _redrawn(coins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Coins that nobody tossed for these runs, with the same structure: the target's, and pairs of opposites."""
    shadows = coins_of_shadows(len(coins) - 1, coins.shape[1], rng)
    return np.stack([rng.random(coins.shape[1]) < 0.5, *shadows])


def _rarity(labels: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """[m]: −ln of the share of each node's class."""
    known = labels[labels >= 0]
    shares = np.bincount(known, minlength=int(known.max()) + 1) / known.size
    return np.asarray(-np.log(shares[labels[nodes]]))


def _unlike(scene: Scene, nodes: np.ndarray) -> np.ndarray:
    """[m]: share of a node's labelled neighbours whose label is another; one half where it has none."""
    labels, adjacency = scene.labels, scene.known.adjacency
    rows, columns = adjacency.nonzero()
    judged = (labels[rows] >= 0) & (labels[columns] >= 0)
    rows, columns = rows[judged], columns[judged]
    count = np.bincount(rows, minlength=labels.size)
    other = np.bincount(rows, weights=(labels[rows] != labels[columns]).astype(float), minlength=labels.size)
    return np.asarray(np.where(count > 0, other / np.maximum(count, 1), 0.5)[nodes])


def _groups(values: np.ndarray, risk: np.ndarray) -> tuple[tuple[float, float, float, float], ...]:
    """(from, to, nodes, mean risk) of at most ``NUM_GROUPS`` groups of about one size, equal values together."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, NUM_GROUPS + 1)))
    which = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(edges.size - 2, 0))
    found = []
    for group in np.unique(which):
        own = which == group
        found.append((float(values[own].min()), float(values[own].max()), float(own.sum()), float(risk[own].mean())))
    return tuple(found)


def _rank(values: np.ndarray, risk: np.ndarray) -> float:
    """Spearman's correlation; 0 where one of the two is constant."""
    if np.ptp(values) == 0 or np.ptp(risk) == 0:
        return 0.0
    from scipy.stats import spearmanr

    return float(spearmanr(values, risk).statistic)
