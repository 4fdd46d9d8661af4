"""EC-LDA: an active server sends a model that hides the rows, and reads how many nodes of each class a client has.

The gradient of the last layer's bias is Σ over nodes of (p − y). Where the server's model answers every node with the same
probabilities (embeddings compressed to nothing, last layer zero: p = 1/c), that is n/c − n_k: the label distribution, exactly.
It is read from one message per client.

**Viewer.** The server does not follow the protocol: it chooses the broadcast model. A guarantee that holds for every broadcast
(each message is noised for any model it answers) holds against it as well, at the same ε; what was assumed of an honest server
(that parameters lie in a bound, that all got one model) does not.
"""

import numpy as np
from pydantic import Field

from fedgraph.attacks import evidence as evidence_of
from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.methods import Plan
from fedgraph.privacy import Viewer

REFERENCE = "Cheng et al. 2025, EC-LDA, arXiv 2505.15140"
NEEDS = "to choose the model that clients are sent (an active server), and each client's answer to it"
VIEWER = Viewer.ACTIVE_SERVER
GAME: coin_game.CoinGameKind = "clients"
_WHAT = "classes that a client has many of from the others"


class Params(Settings):
    clients: int = Field(10, ge=1, description="clients that are read")


def refuses(made: Plan) -> str | None:
    """It reads single messages about private labels."""
    if why := attack_scene.refuse_messages(made):
        return why
    if evidence_of.readers(made.method).observe is None:
        return "the messages are not gradients of a last layer"
    return None


def attack(params: Params, scene: Scene) -> SceneFinding:
    state, reader = attack_scene.start_model(scene), attack_scene.gradient_reader(scene)
    model = {name: value * 0 if name == "parameters" else value for name, value in state.model.items()}
    scores, truth, alike = [], [], []
    for subgraph, flat in attack_scene.gradients_of(scene, params.clients, model):
        labels = subgraph.graph.labels[subgraph.graph.labels >= 0]
        if not labels.size:
            continue
        counts = np.bincount(labels, minlength=scene.known.num_classes)
        pull = reader.last_bias(flat, subgraph.graph.num_nodes)  # mean over nodes of (p − y) where p = 1/c
        guess = np.maximum(1 / pull.size - pull, 0.0)
        share, true = np.asarray(guess / max(float(guess.sum()), 1e-12)), counts / counts.sum()
        scores.append(share)
        truth.append(counts > counts.mean())
        alike.append(float(share @ true / max(float(np.linalg.norm(share) * np.linalg.norm(true)), 1e-12)))
    if not scores:
        return SceneFinding(np.zeros(0), np.zeros(0, bool), _WHAT)
    return SceneFinding(np.concatenate(scores), np.concatenate(truth), _WHAT, None, {"cosine": float(np.mean(alike))})
