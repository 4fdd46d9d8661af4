"""What methods let an attack read of their released values: it finds too little noise, and no sound run is accused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedgraph.learning.own_networks import example_gradients
from fedgraph.learning.own_networks.example_gradients import OuterGradients
from fedgraph.methods import gap_node
from fedgraph.privacy.desk import Released
from fedgraph.privacy.mechanisms.local_bits import SampledBits
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


def test_products_of_gradients_that_are_never_made_are_those_of_gradients() -> None:
    rng = np.random.default_rng(0)
    inputs, labels, vector, of = rng.normal(size=(5, 6)), np.array([0, 1, -1, 0, 1]), rng.normal(size=21), np.array([0, 2, 4])
    each = np.stack([example_gradients.outer(vector, inputs[[i]], labels[[i]], 3, 0.5).total() for i in range(5)])
    found = example_gradients.outer(vector, inputs, labels, 3, 0.5)
    message, weights = rng.normal(size=21), rng.random(5)
    np.testing.assert_allclose(found.left_over_products(message, weights), each @ (message - weights @ each), atol=1e-9)
    np.testing.assert_allclose(found.products(of), each[of] @ each[of].T, atol=1e-9)
    np.testing.assert_allclose(found.total(), each.sum(axis=0), atol=1e-9)


def test_who_reads_all_that_is_priced_gets_the_hops_and_nobody_else_does(
    library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an encoder the classifier's messages are all there is: they are read where the hops are shown, and only there."""
    sent: list[set[str]] = []
    honest = gap_node.client

    def client(*args: Any) -> dict[str, Released]:
        found = honest(*args)
        sent.append(set(found))
        return found

    monkeypatch.setattr(gap_node, "client", client)
    method = {"method": "gap_node", "steps": 6, "encoder": "none", "projection": 16}
    reads = {"attack": {"canaries": 40, "guesses": [1.0], "reads": "releases"}}
    told = outcome(library, method, "own-client", 8.0, **CLIENTS, **reads)
    assert {"gradient", "hop 0", "hop 1"} in sent
    assert "read in the released values, more than the viewer gets" in told.facts.attack.what
    assert told.epsilon_measured <= told.epsilon_provable
    sent.clear()
    own = outcome(library, method, "own-client", 8.0, **CLIENTS, attack={"canaries": 40, "guesses": [1.0]})
    assert set().union(*sent) == {"gradient"}
    assert "seen in the trained model" in own.facts.attack.what
    assert own.releases == told.releases, "what is priced is the same, and so is the run that counts"


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


def test_feature_bits_are_read_beside_labels(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bits that are nearly never flipped the label alone would show less."""
    method, full = {"method": "lpgnn", "epochs": 2, "feature_share": 0.8}, {"canary": "full"}
    params = node_classification.Params(
        methods=[method], trust=["curator"], epsilons=[3.0], attack={"canaries": 200, "guesses": [0.5]} | full, delta=1e-3,
        protocol="transductive",
    )  # fmt: skip
    where = CellContext("t", library.name, library, root=5, seeds=1, runtime=SerialRuntime())
    (cell,) = node_classification.cells(params, where)
    found = node_classification.run(params, cell, where)
    assert found.epsilon_measured <= found.epsilon_provable == pytest.approx(3.0)
    honest = SampledBits.apply
    monkeypatch.setattr(
        SampledBits, "apply", lambda self, v, rng: honest(SampledBits(20.0, self.num_sampled, self.low, self.high), v, rng)
    )
    broken = node_classification.run(params, cell, where)
    assert broken.metrics["attack_auc"] > 0.99 > found.metrics["attack_auc"]
