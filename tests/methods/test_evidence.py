"""What methods let an attack read of their released values: it finds too little noise, and no sound run is accused."""

from typing import Any

import numpy as np
import pytest

from fedgraph.learning.example_gradients import OuterGradients
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.mechanisms.objective_perturbation import ObjectivePerturbation
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext, Result
from fedgraph.types import Graph

CLIENTS = {"partition": {"partition": "uniform", "clients": 3}}


def outcome(graph: Graph, method: dict[str, Any], trust: str, epsilon: float, **changes: Any) -> Result:
    attack = {"canaries": 200, "guesses": [0.3]} | changes.pop("attack", {})
    given = {"methods": [method], "trust": [trust], "epsilons": [epsilon], "attack": attack, "delta": 1e-3} | changes
    params = node_classification.Params(**given)
    where = CellContext("t", graph.name, graph, root=5, seeds=1, runtime=SerialRuntime())
    (cell,) = node_classification.cells(params, where)
    return node_classification.run(params, cell, where)


@pytest.mark.parametrize(  # sums of sage_node are read below
    ("method", "trust"),
    [
        ({"method": "sage_node", "steps": 20}, "own-client"),
        ({"method": "gap_node", "steps": 20}, "sums"),
        ({"method": "dpar", "epochs": 20, "hidden": 8, "num_sources": 3}, "own-client"),
    ],
    ids=["sage_node", "gap_node", "dpar"],
)
def test_training_messages_are_read(
    library: Graph, method: dict[str, Any], trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = CLIENTS | {"attack": {"canaries": 40, "guesses": [1.0]}}  # many canaries hide one another
    sound = outcome(library, method, trust, 1.0, **few)
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 50), v, rng))
    broken = outcome(library, method, trust, 1.0, **few)
    assert "read in the released values" in sound.facts.attack.what
    assert sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    least = 0.6 if method["method"] == "dpar" else 0.75  # dpar: secret batches and rows blur what is read
    assert broken.metrics["attack_auc"] > least


def test_what_colluders_sent_is_taken_off_a_sum_once(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise only halves of the canaries' rows are left of a sum, so no product with a row is larger than theirs."""
    canaries, clip, left = 4, 0.5, list[float]()
    honest, rest = GaussianNoise.apply, OuterGradients.left_over_products
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 1e5), v, rng))

    def spied(*args: Any) -> np.ndarray:
        found = rest(*args)
        left.append(float(abs(found).max()))
        return found

    monkeypatch.setattr(OuterGradients, "left_over_products", spied)
    few = CLIENTS | {"attack": {"canaries": canaries, "guesses": [1.0]}}
    outcome(library, {"method": "sage_node", "steps": 3, "clip": clip}, "sums", 1.0, **few)
    assert len(left) == 3
    assert max(left) <= clip**2 * canaries / 2 + 1e-3


def test_a_minimiser_with_hardly_any_noise_is_told_from_a_sound_one(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"protocol": "transductive", "attack": {"canaries": 10, "guesses": [1.0]}}
    honest = ObjectivePerturbation.apply

    def quiet(self: ObjectivePerturbation, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        made = ObjectivePerturbation(self.num_columns, self.rate * 1e6, self.gradient_norm, 1e-12, self.problem, self.weight)
        return honest(made, value, rng)

    monkeypatch.setattr(ObjectivePerturbation, "apply", quiet)
    broken = outcome(library, {"method": "gcon"}, "curator", 1.0, **given)
    _, guesses, right = broken.facts.attack.counts[0]
    assert right >= guesses - 2
