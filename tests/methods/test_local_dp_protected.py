"""Protected training and pooled releases of ``local_dp``: the noise, what neighbours can change, and the price."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.federation import rounds
from fedgraph.methods import local_dp
from fedgraph.methods.base import Budget, Plan, PublicFacts
from fedgraph.methods.local_dp import clip_gradients
from fedgraph.partition import ego
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Gaussian, Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.units import Assumption, Relation, Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts

DELTA = 1e-3
NOISY = ("dp_fedavg", "dp_sgd")


def dealt(graph: Graph, clients: int = 6) -> tuple[Partition, PublicFacts]:
    partition = ego.split(graph, ego.Params(clients=clients), seeds.seeded_generator(0, "ego"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    held = partition.holdings(graph.num_nodes)
    outside = graph.induced(np.flatnonzero(np.asarray(held.sum(axis=0)).ravel() == 0))
    facts = public_facts(
        graph.num_nodes, graph.num_features, graph.num_classes, sizes, Viewer.SERVER, held, public_graph=outside
    )
    return partition, facts


def plan_of(facts: PublicFacts, epsilon: float = 4.0, **settings: Any) -> Plan:
    given = {"rounds": 3, "hidden": 4, "projection": 8, "training": "dp_fedavg"} | settings
    return local_dp.plan(local_dp.Params(**given), facts, Budget(epsilon, DELTA))


def trained(plan: Plan, partition: Partition) -> rounds.RoundsOutcome:
    engine = SerialRuntime()
    return rounds.run(engine, engine.share("p", partition), plan, 0, ("cell",), ("common",), rounds.RoundPrefixes())


@pytest.mark.parametrize(
    ("training", "updates", "release", "unit"),
    [("dp_fedavg", "sum", "rows", "node"), ("dp_fedavg", "each", "labels", "graph"), ("dp_sgd", "sum", "labels", "graph"),
     ("dp_sgd", "each", "rows", "node"), ("public", "sum", "rows", "graph"), ("none", "sum", "labels", "node")],
)  # fmt: skip
def test_everything_released_stays_within_the_budget(
    training: str, updates: str, unit: str, release: str, library: Graph
) -> None:
    """Both paths composed, for the unit that is stated: at most ε, and not much less."""
    _, facts = dealt(library)
    plan = plan_of(facts, training=training, updates=updates, unit=unit, release=release)
    assert 0.6 * 4.0 < plan.provable().epsilon <= 4.0
    assert plan.guarantee.protection.relation is (Relation.GRAPH_REPLACE if unit == "graph" else Relation.NODE_REPLACE)
    assert Assumption.MODEL_GIVEN not in plan.guarantee.protection.assumptions
    assert (Assumption.UPDATES_SUMMED in plan.guarantee.protection.assumptions) == (training in NOISY and updates == "sum")


def test_a_secure_sum_is_priced_as_sensitivities_that_add_up_before_the_noise(library: Graph) -> None:
    """The worst node's price equals that of one sum in which all its holders' changes lie on one line."""
    _, facts = dealt(library, clients=12)
    plan = plan_of(facts, unit="node", updates="sum")
    release = next(r for r in plan.schedule.releases if r.path == "model")
    assert isinstance(release.mechanism, GaussianNoise)
    assert facts.holdings is not None
    total = release.mechanism.std * math.sqrt(facts.num_clients - 1)  # one participant takes its own share off
    most = facts.holdings.sum(axis=0).max()
    exact = price(Repeated(Gaussian(total / (2 * plan.params.clip * most)), plan.params.rounds), DELTA)
    assert most > 1
    assert plan.provable("model").epsilon == pytest.approx(exact.epsilon, rel=1e-6)


@pytest.mark.parametrize("training", NOISY)
def test_without_noise_the_server_steps_by_the_mean(training: str, library: Graph) -> None:
    """Of the clients' updates; or against that of their graphs' gradients."""
    partition, facts = dealt(library)
    plan = plan_of(facts, epsilon=math.inf, training=training, clip=1e6, unit="graph", rounds=1)
    begun = local_dp.start(plan, seeds.seeded_generator(0, "common", "start")).model["parameters"]
    made = clip_gradients if training == "dp_sgd" else local_dp.update_of
    mean = np.mean([made(plan.params, local_dp.prepare(plan, s), begun) for s in partition.subgraphs], axis=0)
    rate = -plan.params.learning_rate if training == "dp_sgd" else plan.params.server_rate
    assert np.abs(mean).max() > 1e-3
    assert np.allclose(trained(plan, partition).state.model["parameters"], begun + rate * mean, atol=1e-5)


def test_cells_that_share_their_training_share_its_noise_whoever_is_first(library: Graph) -> None:
    """Shared rounds are named by what shapes them, so a resumed run finds the same model; another ε has another noise."""
    partition, facts = dealt(library)
    plans = [plan_of(facts, unit="graph", release=r, pooled_by="multi-bit") for r in ("rows", "mean")]
    models = [trained(p, partition).state.model["parameters"] for p in plans]
    assert np.array_equal(*models)
    tight, loose = (plan_of(facts, epsilon=e, unit="graph") for e in (2.0, 4.0))
    assert tight.schedule.shared_key != loose.schedule.shared_key
    noises = []
    for plan in (tight, loose):
        release = next(r for r in plan.schedule.releases if r.path == "model")
        assert isinstance(release.mechanism, GaussianNoise)
        noises.append(trained(plan, partition).state.model["parameters"] / release.mechanism.std)
    assert abs(np.corrcoef(*noises)[0, 1]) < 0.5, "two budgets must not add one noise twice"


def test_public_training_learns_and_random_does_not(library: Graph) -> None:
    partition, facts = dealt(library)
    found = {}
    for training in ("public", "none"):
        plan = plan_of(facts, training=training, epsilon=math.inf, unit="graph", projection=None)
        rows = trained(plan, partition).state.memory.embeddings
        guessed = np.concatenate([r.argmax(axis=1) for r in rows])
        found[training] = float((guessed == np.concatenate([s.graph.labels for s in partition.subgraphs])).mean())
        assert plan.schedule.paths == ("embedding",)
    assert found["public"] > 0.6 > found["none"]


@pytest.mark.parametrize("by", ["gaussian", "multi-bit", "response"])
def test_a_pooled_release_tells_opposite_graphs_apart_at_its_price(by: str, library: Graph) -> None:
    _, facts = dealt(library)
    plan = plan_of(facts, epsilon=1.0, training="none", release="labels", unit="graph", pooled_by=by)
    assert 0.9 < plan.provable().epsilon <= 1.0
    pooled, release, rng = plan.made.pooled, plan.schedule.releases[0], np.random.default_rng(0)
    means = []
    for row in np.eye(facts.num_classes)[:2]:
        value = release.bound.enforce(pooled.value(row))
        means.append(np.mean([pooled.read(release.mechanism.apply(value, rng))[0] for _ in range(3000)], axis=0))
    assert means[0][0] - means[1][0] > 0.1 < means[1][1] - means[0][1]
