"""LinkTeller: change one node's row a little; the nodes whose answers change are neighbours.

    influence of v on u:   ‖f_u(X with row v changed by Δ) − f_u(X)‖₂ / Δ

The row is multiplied by 1 + Δ, and 10 Δ times the size of its largest entry is added to that entry: a model may scale rows to
norm 1, and would not see a longer row. A graph network of k layers changes exactly the answers of nodes within k hops, so
without noise the direct neighbours stand out. Answers must read the private edges when they are asked; else only v's own answer
changes.

The coin game asks about real edges that a coin kept or dropped. As published: edges against strangers, drawn

    uniform       among all pairs of the nodes that are asked
    two-hops      among pairs with a common neighbour, whose answers change, too
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
_Pairs = Literal["uniform", "two-hops"]


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
    """float64 [k], the sum of the influences of the two nodes of a pair on each other.

    pairs: int64 [k, 2]. features: CSR [n, d], all rows. change: Δ. ask: rows → answers [n, c], made with the private edges; it
    is called once for each node in a pair, and once with nothing changed.
    """
    before, found = ask(features), np.zeros(len(pairs))
    for node in np.unique(pairs):
        moved = np.linalg.norm(ask(_changed(features, int(node), change)) - before, axis=1) / change
        for one, other in ((0, 1), (1, 0)):
            here = pairs[:, one] == node
            found[here] += moved[pairs[here, other]]
    return found


def _changed(features: sp.csr_array, node: int, change: float) -> sp.csr_array:
    """The rows with that of ``node`` changed, as the module says."""
    scale = np.ones(features.shape[0], dtype=np.float64)
    scale[node] = 1 + change
    changed = sp.csr_array(sp.diags_array(scale) @ features)
    own = sp.csr_array(features[[node]])
    if own.nnz:
        column = own.indices[np.argmax(np.abs(own.data))]
        value = 10 * change * float(np.abs(own.data).max())
        changed = changed + sp.csr_array((np.array([value]), (np.array([node]), np.array([column]))), shape=features.shape)
    return sp.csr_array(changed).astype(np.float32)


def _strangers(kind: _Pairs, scene: Scene, count: int) -> np.ndarray:
    """int64 [≤ count, 2], pairs that never had an edge."""
    if kind == "uniform":
        return scene.game.strangers[:count]
    every = scene.game.whole(np.ones(scene.target.coins.size, dtype=bool))
    rows, columns = sp.csr_array(every.adjacency @ every.adjacency).nonzero()
    apart = np.column_stack([rows, columns]).astype(np.int64)
    return coin_game.draw_pairs(every, count, lambda k: apart[scene.rng.integers(len(apart), size=k)])
