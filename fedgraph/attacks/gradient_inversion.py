"""Gradient inversion: what a client's update shows of its rows.

The gradient of a first layer's weights is a sum of (error of a node) × (row of the node), Zhu, Liu & Han 2019; Geiping et al.
2020. A word that no node of the client has gets gradient zero, so words with a large gradient are words of the client. For a
client with one node this is its row, up to scale. ``cosine`` is the mean over clients of the best match between a row of the
gradient and a row of the client.

It applies to methods whose messages are gradients, or FedAvg updates, of a layer that reads rows as they are.
"""

import numpy as np
from pydantic import Field

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base import evidence as evidence_of
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.learning import unit_matrix_rows
from fedgraph.methods import Plan
from fedgraph.privacy import Viewer

REFERENCE = (
    "Zhu, Liu & Han, NeurIPS 2019, arXiv 1906.08935; Geiping, Bauermeister, Dröge & Moeller, NeurIPS 2020, arXiv 2003.14053"
)
NEEDS = "each client's message of the first round (a server that sees them), and the broadcast model"
VIEWER = Viewer.SERVER
GAME: coin_game.CoinGameKind = "clients"
_WHAT = "words at a client from words at none of its nodes"


class Params(Settings):
    clients: int = Field(10, ge=1, description="clients that are read")


def refuses(made: Plan) -> str | None:
    """Why it does not apply to a plan, or None: it reads single messages about private rows."""
    if why := attack_scene.refuse_messages(made):
        return why
    observe = evidence_of.readers(made.method).observe
    if observe is None:
        return "the messages are not gradients of a layer that reads rows as they are"
    if not observe(made).names_words:
        return "rows are seen through pairs of words, so the first layer's gradient names no word"
    return None


def attack(params: Params, scene: Scene) -> SceneFinding:
    model, reader = attack_scene.start_model(scene).model, attack_scene.gradient_reader(scene)
    scores, truth, matches = [], [], []
    for subgraph, flat in attack_scene.gradients_of(scene, params.clients, model):
        layer, back = reader.first_layer(flat)
        rows = unit_matrix_rows(subgraph.graph.features)[subgraph.graph.labels >= 0].toarray()
        strength = np.abs(layer @ back).max(axis=0)
        spread = strength.std()
        scores.append((strength - strength.mean()) / (spread if spread > 0 else 1.0))
        truth.append((rows != 0).any(axis=0))
        one, two = (part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in (layer @ back, rows))
        matches.append(float(np.abs(one @ two.T).max(initial=0.0)))
    if not scores:
        return SceneFinding(np.zeros(0), np.zeros(0, bool), _WHAT)
    cosine = {"cosine": float(np.mean(matches))}
    return SceneFinding(np.concatenate(scores), np.concatenate(truth), _WHAT, None, cosine)
