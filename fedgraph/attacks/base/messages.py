"""Single messages of clients, for a server that reads them, or that chooses the model they answer.

The client's own code makes the message and the desk releases it, with the noise of the plan: what is attacked is what a server
would hold. A server that chooses the model (an *active* one) sends what it likes in the place of the broadcast; whatever the
client then releases is noised and priced as before. Rounds are those of the plan: no more releases than it declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedgraph.attacks.base.scene import Scene
from fedgraph.methods.base import State, Streams, kinds
from fedgraph.privacy.desk import Desk
from fedgraph.types import Subgraph


def begun(scene: Scene) -> State[Any]:
    """The state before the first round."""
    return kinds.method(scene.made.method).start(scene.made, np.random.default_rng(int(scene.rng.integers(2**63))))


def released(scene: Scene, subgraph: Subgraph, model: Mapping[str, np.ndarray], round_: int = 0) -> dict[str, np.ndarray]:
    """What the client of ``subgraph`` sends in ``round_`` when it is sent ``model``."""
    made = scene.made
    method = kinds.method(made.method)
    streams = Streams(int(scene.rng.integers(2**31)), ("attack", "client", subgraph.client, "round", round_), made.fingerprint)
    desk = Desk("attack", subgraph.client, round_, made.releases, streams.generator("noise"))
    found = method.client(made, method.prepare(made, subgraph), model, round_, streams, desk)
    return {name: value.value for name, value in found.items()}


def gradient(scene: Scene, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The gradient, flat, that a message shows; None where it shows none.

    ``features`` sends a sum of gradients. ``nonprivate`` sends parameters and Adam's moments after t local steps, times the
    number of labelled nodes. The first moment, from zero, over 1 − 0.9ᵗ is a weighted mean of the gradients on the way; with
    plain descent the change of the parameters over rate and steps is their mean: what attacks on FedAvg updates read.
    """
    if "gradient" in sent:
        return np.asarray(sent["gradient"], dtype=np.float64)
    if "update" not in sent or "parameters" not in model:
        return None
    p, params = model["parameters"].size, scene.made.params
    if sent["update"].size <= 3 * p or not sent["update"][3 * p]:
        return None  # no labelled node
    update = sent["update"] / sent["update"][3 * p]
    if params.client_optimiser == "adam":
        return np.asarray(update[p : 2 * p] / (1 - 0.9**params.local_epochs), dtype=np.float64)
    change = model["parameters"] - update[:p]
    return np.asarray(change / (params.learning_rate * params.local_epochs), dtype=np.float64)
