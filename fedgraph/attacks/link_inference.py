"""Inferring links from predictions of links: a pair that was trained on scores higher than one that was not.

The attacker asks for the scores of the pairs in question. It also trains the same plan ``references`` times on all that the
clients hold except these pairs, and subtracts the mean score of these runs, which features and other edges explain. If links
are scored by shared neighbours, a pair's own edge shows in the scores of pairs that share one end with it. So for a pair (u, v)
the mean score of u with v's known neighbours, and of v with u's, is added.

Real edges are kept or dropped by a coin each; as published, edges are also told from pairs that never had one.
"""

import numpy as np
from pydantic import Field

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.methods import Plan, State, method_kinds
from fedgraph.privacy import Viewer

REFERENCE = "He, Jia, Backes, Gong & Zhang, USENIX Security 2021, arXiv 2005.02131 (attack 0), asked of a predictor of links"
NEEDS = "scores of pairs; with references all features and all other edges, too"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "edges"


class Params(Settings):
    references: int = Field(2, ge=0, description="trainings of the attacker's own on all but the pairs in question")


def refuses(made: Plan) -> str | None:
    """Why it does not apply to a plan, or None."""
    if method_kinds.load(made.method).OFFERS.kind != "linker":
        return "it asks for scores of pairs, and this row names classes of nodes"
    return coin_game.refuse_edges(made)


def attack(params: Params, scene: Scene) -> SceneFinding:
    pairs, strangers = scene.game.found.units, scene.game.strangers
    asked = np.concatenate([pairs, strangers])
    absent = scene.game.dealt(np.zeros(len(pairs), dtype=bool))
    own = [scene.train(absent, f"reference-{k}") for k in range(params.references)]
    found = _said(scene, scene.target.state, asked)
    if own:
        found = found - np.mean([_said(scene, state, asked) for state in own], axis=0)
    return attack_scene.find_edges(
        found[: len(pairs)], scene.target.coins, found[len(pairs) :], "edges kept from edges dropped"
    )


def _said(scene: Scene, state: State, pairs: np.ndarray) -> np.ndarray:
    """float64 [k], ranks (0 … 1) of the scores of pairs, plus the mean rank of pairs around each."""
    scores = method_kinds.load_linker(scene.made.method).scores
    found = _ranks(scores(scene.made, state, pairs))
    adjacency, beside, owner = scene.known.adjacency, [pairs[:0]], [np.zeros(0, dtype=np.int64)]
    for place, (one, two) in enumerate(pairs.tolist()):
        for end, other in ((one, two), (two, one)):
            near = adjacency.indices[adjacency.indptr[other] : adjacency.indptr[other + 1]][:_MOST_NEARBY]
            near = near[(near != end) & (near != other)]
            beside.append(np.sort(np.column_stack([np.full(near.size, end), near]), axis=1).astype(np.int64))
            owner.append(np.full(near.size, place))
    every, of = np.concatenate(beside), np.concatenate(owner)
    if not of.size:
        return found
    ranked = _ranks(scores(scene.made, state, every))
    count = np.bincount(of, minlength=len(pairs))
    return found + np.bincount(of, weights=ranked, minlength=len(pairs)) / np.maximum(count, 1)


_MOST_NEARBY = 30  # neighbours of each end


def _ranks(scores: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata  # not before it is used: every run lists all attacks

    return np.asarray(rankdata(scores) / max(1, scores.size))
