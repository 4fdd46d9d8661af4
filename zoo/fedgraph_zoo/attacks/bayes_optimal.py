"""The Bayes-optimal test for a node, in the forms BASE and G-BASE.

    BASE     score(v) = −ℓ(θ; v) − ln mean over shadow models θ′ of exp(−ℓ(θ′; v))
    G-BASE   the same, with ℓ the change of the *summed* loss of v and its neighbourhood when v is taken out

The posterior odds that v took part are the ratio of the likelihood of the model with and without v; with training as
sampling from exp(−loss)/Z, they come down to the target's loss against a soft maximum over shadow models. BASE asks about v
without its edges and is the case of no neighbourhood. G-BASE asks with edges, and averages over ``graphs`` guesses of which
other nodes took part (its "model-independent" sampling: fair coins).

Nodes are taken out many at a time: of one batch no two are near enough for one to change the other's neighbourhood.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.attacks import whole_run
from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.attacks.base.coin_game import CoinGameRun
from fedgraph.documents import Settings
from fedgraph.methods import method_kinds
from fedgraph.privacy import Viewer
from fedgraph.types import Graph
from fedgraph_zoo.attacks.rmia import compute_rmia_ratios

REFERENCE = "Lassila, Östman, Ngo & Graell i Amat, NeurIPS 2025, arXiv 2505.24089"
NEEDS = "the plan, every node's row and label, and shadow models (G-BASE: the edges, too)"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "nodes"


class Params(Settings):
    graphs: int = Field(0, ge=0, le=32, description="guessed training sets of G-BASE; 0: BASE, which asks without edges")
    hops: int = Field(2, ge=1, le=3, description="how far a node's removal is seen (G-BASE)")


refuses = coin_game.refuse_nodes


def attack(params: Params, scene: Scene) -> SceneFinding:
    nodes, runs = scene.game.found.units[:, 0], (scene.target, *scene.shadows)
    if not params.graphs:
        return attack_scene.find_members(compute_rmia_ratios(scene.own_labels()), scene.target.coins)
    total = np.zeros(nodes.size)
    for _ in range(params.graphs):
        guessed = scene.game.whole(scene.rng.random(nodes.size) < 0.5)
        changes = np.stack([_changes(scene, run, guessed, nodes, params.hops) for run in runs])
        total += 1 / (1 + np.exp(-np.clip(compute_rmia_ratios(changes), -500, 500)))
    return attack_scene.find_members(total / params.graphs, scene.target.coins)


def _changes(scene: Scene, run: CoinGameRun, guessed: Graph, nodes: np.ndarray, hops: int) -> np.ndarray:
    """[m]: summed log-likelihood around each node with it, less without it, as ``run`` answers with edges."""
    known, labels = scene.known, scene.labels
    reach, predict = _within(known.adjacency, hops), method_kinds.load_classifier(scene.made.method).predict
    there = guessed.labels >= 0
    found = np.zeros(nodes.size)
    for batch in _batches(reach, nodes):
        chosen = np.zeros(known.num_nodes, dtype=bool)
        chosen[nodes[batch]] = True
        sums = []
        for keep in (there | chosen, there & ~chosen):
            mask = sp.diags_array(keep.astype(known.adjacency.dtype))
            adjacency = sp.csr_array(mask @ known.adjacency @ mask)
            graph = replace(known, name="asked", adjacency=adjacency, labels=np.full_like(labels, -1))
            answer = whole_run.log_probabilities(np.asarray(predict(scene.made, run.state, graph)))
            likely = np.where(keep & (labels >= 0), answer[np.arange(labels.size), np.maximum(labels, 0)], 0.0)
            sums.append(reach[nodes[batch]] @ likely)
        found[batch] = sums[0] - sums[1]
    return found


def _within(adjacency: sp.csr_array, hops: int) -> sp.csr_array:
    """CSR [n, n], 1 where another node, or itself, is within ``hops``."""
    step = sp.csr_array(adjacency + sp.identity(adjacency.shape[0], format="csr", dtype=adjacency.dtype))
    found = step
    for _ in range(hops - 1):
        found = sp.csr_array(found @ step)
    found.data[:] = 1
    return found


def _batches(reach: sp.csr_array, nodes: np.ndarray) -> list[np.ndarray]:
    """Positions in ``nodes``, split so that the neighbourhoods of one batch do not meet (greedy)."""
    left, found = np.arange(nodes.size), []
    while left.size:
        taken = np.zeros(reach.shape[0], dtype=bool)
        own, later = [], []
        for position in left:
            around = reach.indices[reach.indptr[nodes[position]] : reach.indptr[nodes[position] + 1]]
            if taken[around].any():
                later.append(position)
            else:
                taken[around] = True
                own.append(position)
        found.append(np.array(own))
        left = np.array(later, dtype=np.int64)
    return found
