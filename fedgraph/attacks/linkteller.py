"""LinkTeller: change one person's row a little; whose answer moves is a neighbour.

    influence of v on u:   ‖f_u(X with row v times 1 + Δ) − f_u(X)‖₂ / Δ

A graph network of k layers moves exactly the nodes within k hops, so without noise the direct neighbours stand out. It needs
answers that are made with the private edges at the time of asking; where answers are made without them, nothing moves but v.

The coin game asks about real edges that were kept or dropped by a coin. As published: edges against strangers, drawn

    uniform       among all pairs of the nodes that are asked
    by-degree     so that strangers have the degrees that edges have
    two-hops      among pairs with a common neighbour: what moves is no longer a neighbour only
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer

REFERENCE = "Wu, Long, Zhang & Li, IEEE S&P 2022, arXiv 2108.06504"
NEEDS = "all rows, and answers to changed rows that are made with the private edges"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "edges"
_Pairs = Literal["uniform", "by-degree", "two-hops"]


class Params(Settings):
    pairs: _Pairs = Field("uniform", description="strangers of the published game")
    most: int = Field(100, ge=4, description="pairs of each kind; one question each")
    change: float = Field(1e-3, gt=0, description="relative change of the row, Δ")


refuses = coin_game.refuse_edges


def attack(params: Params, scene: Scene) -> SceneFinding:
    pairs = scene.game.found.units[: params.most]
    kept = scene.target.coins[: params.most]
    away = _strangers(params.pairs, scene, len(pairs))

    def ask(features: sp.csr_array) -> np.ndarray:
        return np.asarray(np.exp(scene.shown(scene.target, graph=replace(scene.known, features=features))))

    every = np.concatenate([pairs, away])
    asked = influence_of(every, scene.known.features, params.change, ask)
    score, apart = asked[: len(pairs)], asked[len(pairs) :]
    what = f"edges kept from edges dropped (published game: strangers {params.pairs})"
    return attack_scene.find_edges(score, kept, apart, what)


def influence_of(
    pairs: np.ndarray, features: sp.csr_array, change: float, ask: Callable[[sp.csr_array], np.ndarray]
) -> np.ndarray:
    """float64 [k], the influence of both nodes of a pair on each other, summed.

    pairs: int64 [k, 2]. features: CSR [n, d], all rows. ask: rows → answers [n, c], made with the private edges. One question
    for each node that is in a pair, and one with nothing changed.
    """
    before, found = ask(features), np.zeros(len(pairs))
    for node in np.unique(pairs):
        moved = np.linalg.norm(ask(_changed(features, int(node), change)) - before, axis=1) / change
        for one, other in ((0, 1), (1, 0)):
            here = pairs[:, one] == node
            found[here] += moved[pairs[here, other]]
    return found


def _changed(features: sp.csr_array, node: int, change: float) -> sp.csr_array:
    """The rows with that of ``node`` times 1 + change."""
    scale = np.ones(features.shape[0], dtype=np.float64)
    scale[node] = 1 + change
    changed = sp.csr_array(sp.diags_array(scale) @ features)
    own = sp.csr_array(features[[node]])
    if own.nnz:  # rows may be scaled to norm 1 by the model: then a new entry moves what a longer row cannot
        column = own.indices[np.argmax(np.abs(own.data))]
        value = 10 * change * float(np.abs(own.data).max())
        changed = changed + sp.csr_array((np.array([value]), (np.array([node]), np.array([column]))), shape=features.shape)
    return sp.csr_array(changed).astype(np.float32)


def _strangers(kind: _Pairs, scene: Scene, count: int) -> np.ndarray:
    """int64 [≤ count, 2], pairs that never had an edge."""
    if kind == "uniform":
        return scene.game.strangers[:count]
    every = scene.game.whole(np.ones(scene.target.coins.size, dtype=bool))
    rng, adjacency = scene.rng, every.adjacency
    if kind == "by-degree":
        ends = adjacency.indices

        def draw(k: int) -> np.ndarray:
            return np.column_stack([rng.permutation(np.resize(ends, k)) for _ in range(2)])

        return coin_game.draw_pairs(every, count, draw)
    rows, columns = sp.csr_array(adjacency @ adjacency).nonzero()
    apart = np.column_stack([rows, columns]).astype(np.int64)
    return coin_game.draw_pairs(every, count, lambda k: apart[rng.integers(len(apart), size=k)])
