"""Who is at risk: how often the attack is right about each single person, over many runs.

Every run of the game of nodes (the target's and the shadows') is attacked in turn by LiRA, with all the others as the
attacker's shadows, and for each node it is counted how often its coin was named right where the attacker was sure enough.
*Risk* of a node: share of the runs in which its coin was guessed right, 0.5 where nothing can be told. Shadow coins here are
the attacker's knowledge about other runs of the same people, so this is a description, not a bound on ε.

Guesses about single people from a few runs are noisy: a share of R coin tosses scatters by 1/(2√R) around one half. ``luck``
is the distribution that pure guessing would give, so that what lies beyond it can be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom, spearmanr

from fedgraph.attacks.base.scene import Scene, log_odds, of_label
from fedgraph.attacks.lira import ratio

NUM_GROUPS = 4


def of(scene: Scene) -> dict[str, Any]:
    """JSON-ready: the distribution over nodes, and what the nodes found have in common."""
    nodes = scene.game.found.units[:, 0]
    confidence = log_odds(of_label(scene.every_alone(), nodes, scene.labels[nodes]))
    coins = np.stack([scene.target.coins, *(run.coins for run in scene.shadows)])
    right = np.zeros(nodes.size)
    counted = np.zeros(nodes.size)
    for run in range(len(coins)):
        others = np.arange(len(coins)) != run
        known = coins[others]
        both = known.any(axis=0) & ~known.all(axis=0)
        score = np.where(both, ratio(confidence[run], confidence[others], known, each=False), np.nan)
        right += np.where(both, (score > 0) == coins[run], 0.0)
        counted += both
    risk = right / np.maximum(counted, 1)
    degrees, rarity = scene.known.degrees[nodes], _rarity(scene.labels, nodes)
    own_way = _unlike(scene, nodes)
    return {
        "runs": len(coins),
        "nodes": int(nodes.size),
        "histogram": np.bincount(np.round(right).astype(int), minlength=len(coins) + 1).tolist(),
        "luck": (binom.pmf(np.arange(len(coins) + 1), len(coins), 0.5) * nodes.size).round(1).tolist(),
        "mean": float(risk.mean()),
        "always_found": float((right == counted).mean()),
        "always_by_luck": float(np.mean(0.5**counted)),
        "by_degree": _groups(degrees.astype(float), risk),
        "by_rarity": _groups(rarity, risk),
        "by_unlike": _groups(own_way, risk),
        "rank_degree": _rank(degrees, risk),
        "rank_rarity": _rank(rarity, risk),
        "rank_unlike": _rank(own_way, risk),
    }


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


def _groups(values: np.ndarray, risk: np.ndarray) -> list[list[float]]:
    """[from, to, nodes, mean risk] of at most ``NUM_GROUPS`` groups of about one size, equal values together."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, NUM_GROUPS + 1)))
    which = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(edges.size - 2, 0))
    found = []
    for group in np.unique(which):
        own = which == group
        found.append([float(values[own].min()), float(values[own].max()), int(own.sum()), float(risk[own].mean())])
    return found


def _rank(values: np.ndarray, risk: np.ndarray) -> float:
    """Spearman's correlation; 0 where one of the two is constant."""
    if np.ptp(values) == 0 or np.ptp(risk) == 0:
        return 0.0
    return float(spearmanr(values, risk).statistic)
