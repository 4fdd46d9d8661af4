"""Stealing links: the answers to two nodes with an edge are similar.

    0  the attacker has only the answers; the score is the correlation of two answers
    3  also a part of the edges (A*): a classifier learns from pairs, described by eight distances between answers and four
       combinations of their entropies

The numbers are the paper's; its attacks that also have all rows, or another graph, are in fedgraph-zoo
(``link_stealing_more``).

**Two games on one run.** As published: existing edges against pairs that never had one. Neighbours are similar anyway, so a
high area alone proves no leak. And the coin game: real edges that a fair coin kept or dropped; only this gives a bound on ε. A*
is drawn from edges without a coin.
"""

from typing import Literal

import numpy as np
from pydantic import Field
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer

REFERENCE = "He, Jia, Backes, Gong & Zhang, USENIX Security 2021, arXiv 2005.02131"
NEEDS = "the model's answers for the nodes; attack 3 a part of the edges"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "edges"


class Params(Settings):
    number: Literal[0, 3] = Field(0, description="which attack of the paper's eight; the others: link_stealing_more (zoo)")
    part: float = Field(0.1, gt=0, le=0.5, description="share of the other edges that the attacker knows (A*)")


refuses = coin_game.refuse_edges


def attack(params: Params, scene: Scene) -> SceneFinding:
    pairs, strangers, coins = scene.game.found.units, scene.game.strangers, scene.target.coins
    answers = np.exp(scene.shown(scene.target))
    what = f"edges kept from edges dropped (attack {params.number})"
    if params.number == 0:
        score, apart = (-pair_distances(answers, some)[:, 2] for some in (pairs, strangers))
        return attack_scene.find_edges(score, coins, apart, what)
    known, there = known_pairs(scene, params.part)
    classifier = pair_classifier(_describe_pairs(answers, known), there)
    score, apart = (classifier.decision_function(_describe_pairs(answers, some)) for some in (pairs, strangers))
    return attack_scene.find_edges(score, coins, apart, what)


def known_pairs(scene: Scene, part: float) -> tuple[np.ndarray, np.ndarray]:
    """(pairs [2k, 2], whether they are edges [2k]): A*, a share ``part`` of the edges without a coin, and as many strangers."""
    inside = np.column_stack(scene.known.adjacency.nonzero())
    inside = inside[inside[:, 0] < inside[:, 1]]
    there = inside[scene.rng.permutation(len(inside))[: max(2, round(part * len(inside)))]]
    away = coin_game.draw_strangers(scene.game.partition, scene.known, len(there), scene.rng)
    return np.concatenate([there, away]), np.arange(len(there) + len(away)) < len(there)


def pair_classifier(examples: np.ndarray, there: np.ndarray) -> Pipeline:
    """A logistic regression that tells edges from strangers. examples: [k, d], standardised first. there: bool [k]."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(examples, there)


def _describe_pairs(answers: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """[k, 12]: distances and entropies of the answers [n, c] of both ends."""
    return np.nan_to_num(np.concatenate([pair_distances(answers, pairs), pair_entropies(answers, pairs)], axis=1))


def pair_distances(rows: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """[k, 8]: cosine, Euclidean, correlation, Chebyshev, Bray-Curtis, Canberra, city block, squared Euclidean (Table 13)."""
    a, b = rows[pairs[:, 0]].astype(np.float64), rows[pairs[:, 1]].astype(np.float64)
    apart, size = np.abs(a - b), np.abs(a) + np.abs(b)
    squared = np.square(apart).sum(axis=1)
    canberra = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0).sum(axis=1)
    total = size.sum(axis=1)
    bray = np.divide(apart.sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    centred = (a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True))
    angles = _angle(a, b), _angle(*centred)
    return np.column_stack(
        [angles[0], np.sqrt(squared), angles[1], apart.max(axis=1), bray, canberra, apart.sum(axis=1), squared]
    )


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """1 − cosine; 1 where a row is zero."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = (a * b).sum(axis=1)
    return 1.0 - np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


def pair_entropies(rows: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """[k, 4]: average, product, |difference|, squared difference of the answers' entropies (Table 12)."""
    every = -(rows * np.log(np.maximum(rows, 1e-12))).sum(axis=1)
    a, b = every[pairs[:, 0]], every[pairs[:, 1]]
    return np.column_stack([(a + b) / 2, a * b, np.abs(a - b), (a - b) ** 2])
