"""Single messages of clients, for a server that reads them, or that chooses the model they answer.

The client's own code makes the message and the desk releases it, with the noise of the plan: what is attacked is what a server
would hold. A server that chooses the model (an *active* one) sends what it likes in the place of the broadcast; whatever the
client then releases is noised and priced as before. Rounds are those of the plan: no more releases than it declares.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from fedgraph.attacks.base.scene import Scene
from fedgraph.errors import RuntimeFailure
from fedgraph.methods.base import Plan, State, Streams, kinds
from fedgraph.methods.base.offers import GradientReader
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.units import Unit
from fedgraph.types import Subgraph


def first_state(scene: Scene) -> State:
    """The state before the first round, with parameters drawn by the scene's own stream."""
    return kinds.method(scene.made.method).start(scene.made, np.random.default_rng(int(scene.rng.integers(2**63))))


def _released_by_client(scene: Scene, subgraph: Subgraph, model: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the client of ``subgraph`` sends in the first round when it is sent ``model``."""
    made = scene.made
    method = kinds.method(made.method)
    streams = Streams(int(scene.rng.integers(2**31)), ("attack", "client", subgraph.client, "round", 0), made.fingerprint)
    desk = Desk("attack", subgraph.client, 0, made.schedule.releases, streams.generator("noise"))
    found = method.client(made, method.prepare(made, subgraph), model, 0, streams, desk)
    return {name: value.value for name, value in found.items()}


def why_unread(made: Plan) -> str | None:
    """Why no single message of this plan says something of private rows, or None."""
    if not made.guarantee.protection.viewer.sees_messages:
        return f"it reads each client's message, which {made.guarantee.protection.viewer.value} does not see"
    return "features and labels are public here" if made.guarantee.protection.unit is not Unit.NODE else None


def gradients_sent(scene: Scene, clients: int, model: Mapping[str, np.ndarray]) -> Iterator[tuple[Subgraph, np.ndarray]]:
    """(client, its gradient in the answer to ``model``) of the first ``clients`` whose answer holds one."""
    read = gradient_reader(scene)
    for subgraph in scene.game.partition.subgraphs[:clients]:
        flat = read.gradient(_released_by_client(scene, subgraph, model), model)
        if flat is not None:
            yield subgraph, flat


def gradient_reader(scene: Scene) -> GradientReader:
    """What reads a gradient in those messages; ``RuntimeFailure`` for a method that offers none (attacks refuse it before)."""
    observe = kinds.method(scene.made.method).OFFERS.observe
    if observe is None:
        raise RuntimeFailure(f"{scene.made.method}: its messages show no gradient (Offers.observe)")
    return observe(scene.made)
