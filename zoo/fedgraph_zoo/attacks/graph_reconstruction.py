"""GraphMI: find the edges with which the model's answers fit the labels best.

White box. The attacker holds the network's weights, all rows and the training labels, and looks for the adjacency a ∈ [0, 1]:

    min over a  cross-entropy(f(A(a), X), y) + (α/n)·Σ a_uv ‖x_u − x_v‖²        with Σ a given

by projected gradient descent (the paper bounds Σ a by a projection; here every step leaves the median pair where it is). a is
asked for at the pairs in question and as many strangers; no other edge is known. Pairs that end beyond 0 or 1 are ranked by
how far.
It speaks of networks whose answers are differentiable in the edges: ``nonprivate`` with ``model: gcn``.
"""

from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch.nn import functional

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.learning import NetworkShape, fitting, unit_matrix_rows
from fedgraph.methods import Plan, State
from fedgraph.privacy import Viewer

REFERENCE = "Zhang, Liu, Huang, Wang, Lu, Liu & Chen, IJCAI 2021, arXiv 2106.02820"
NEEDS = "the network's weights, all rows and the training labels; no edge"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "edges"
_START = 0.5  # of every pair


class Params(Settings):
    steps: int = Field(100, ge=1, description="steps of projected descent")
    rate: float = Field(2.0, gt=0, description="length of all steps together, on gradients scaled to spread 1")


def refuses(made: Plan[Any, Any]) -> str | None:
    """It needs a graph network whose weights come out."""
    if made.method == "nonprivate" and made.params.model == "gcn":
        return None
    return "it inverts a graph convolution whose weights come out; this model reads no edge when asked"


def attack(params: Params, scene: Scene) -> SceneFinding:
    pairs, kept = scene.game.found.units, scene.target.coins
    every = np.concatenate([pairs, scene.game.strangers])
    found = _reconstructed(params, scene, every)
    score, apart = found[: len(pairs)], found[len(pairs) :]
    return attack_scene.find_edges(score, kept, apart, "edges kept from edges dropped, by the weights")


def _reconstructed(params: Params, scene: Scene, pairs: np.ndarray) -> np.ndarray:
    """[k]: how much of an edge each pair gets, before it is clamped to [0, 1]."""
    weights = _layers(scene.made, scene.target.state)
    rows = torch.tensor(unit_matrix_rows(scene.known.features).toarray(), dtype=torch.float32)
    known = torch.tensor(np.flatnonzero(scene.labels >= 0))
    target = torch.tensor(scene.labels)[known]
    ends = torch.tensor(pairs.T.copy())
    first = rows @ weights[0][0].T
    apart = (rows[ends[0]] - rows[ends[1]]).square().sum(dim=1)
    wanted = torch.full((len(pairs),), _START)
    for _ in range(params.steps):
        amount = wanted.clamp(0.0, 1.0).requires_grad_()
        hidden = torch.relu(_spread(first, ends, amount) + weights[0][1])
        scores = _spread(hidden @ weights[1][0].T, ends, amount) + weights[1][1]
        loss = functional.cross_entropy(scores[known], target)
        loss = loss + (amount * apart).sum() / len(known)  # weight α = 1 of differing rows
        (slope,) = torch.autograd.grad(loss, amount)
        level = slope.median()  # what all pairs share says how many edges there are, which is given
        wanted = wanted - params.rate / params.steps * (slope - level) / slope.std().clamp_min(1e-12)
    return wanted.numpy().astype(np.float64)


def _layers(made: Plan[Any, Any], state: State) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(weights [out, in], bias [out]) of both layers of the trained network."""
    shape = NetworkShape("gcn", made.facts.num_features, made.facts.num_classes, made.params.hidden)
    network = fitting.build_network_for_fitting(shape, 0)
    fitting.load_vector(network, state.model["parameters"])
    every = [parameter.detach().cpu() for parameter in network.parameters()]
    weights, biases = ([p for p in every if p.ndim == dimensions] for dimensions in (2, 1))
    return list(zip(weights, biases, strict=True))


def _spread(rows: torch.Tensor, ends: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """D^{−½}(I + A)D^{−½} rows, with A of ``amount`` at both orders of ``ends``."""
    degree = torch.ones(len(rows)).index_add(0, ends[0], amount).index_add(0, ends[1], amount)
    scaled = rows * degree.rsqrt()[:, None]
    found = scaled.index_add(0, ends[0], amount[:, None] * scaled[ends[1]])
    found = found.index_add(0, ends[1], amount[:, None] * scaled[ends[0]])
    return found * degree.rsqrt()[:, None]
