"""What every discovered method must do: declared = spent, its own noise-free form at ε = ∞, inputs untouched, serial = Ray."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from fedgraph import plugins, seeds
from fedgraph.methods.base import Budget, Plan, PlanStreams, PublicFacts, method_kinds
from fedgraph.partition import ego, uniform
from fedgraph.privacy.accounting import composition
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import Runtime
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts, sides
from tests.trainings import Key, Trainings, difference, train

EMBEDS = {m for m in plugins.names("methods") if method_kinds.load(m).OFFERS.kind == "embedder"}  # clients overlap
KIND_OF = {"classifier": ("predict",), "embedder": ("answers", "in_clear"), "linker": ("scores",)}
PROTOCOL_OF = {
    "classifier": method_kinds.ClassifierMethod,
    "embedder": method_kinds.EmbedderMethod,
    "linker": method_kinds.LinkerMethod,
}
OWN_PROTOCOL = set(method_kinds.list_names(lambda offers: not offers.serves("inductive"))) - EMBEDS  # suites of their own


def methods() -> list[str]:
    return [m for m in plugins.names("methods") if m not in OWN_PROTOCOL]


def situation(name: str, graph: Graph, viewer: Viewer) -> tuple[Partition, PublicFacts, Graph]:
    if name in EMBEDS:
        partition = ego.split(graph, ego.Params(clients=6), seeds.seeded_generator(0, "ego"))
        sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
        holdings = partition.holdings(graph.num_nodes)
        return (
            partition,
            public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, Viewer.SERVER, holdings),
            graph,
        )
    split = sides(graph, 0.8, seeds.seeded_generator(0, "split"))
    clients = 1 if viewer is Viewer.CURATOR_TRUSTED else 3
    partition = uniform.split(split.train, uniform.Params(clients=clients), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(split.train.num_nodes, graph.num_features, graph.num_classes, sizes, viewer, None, split.test)
    return partition, facts, split.test


def planned(
    name: str, graph: Graph, epsilon: float, viewer: Viewer = Viewer.SERVER, **settings: object
) -> tuple[Plan, Partition, Graph]:
    partition, facts, test = situation(name, graph, viewer)
    module = plugins.load("methods", name)
    return module.plan(module.Params(**settings), facts, Budget(epsilon, 1e-3)), partition, test


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_the_file_holds_the_contract(name: str) -> None:
    module = plugins.load("methods", name)
    assert "@" in module.REFERENCE
    wanted = PROTOCOL_OF[module.OFFERS.kind]
    for function in ("plan", "start", "prepare", "client", "server", *KIND_OF[module.OFFERS.kind]):
        here = list(inspect.signature(getattr(module, function)).parameters)
        assert here == list(inspect.signature(getattr(wanted, function)).parameters)[1:], f"{name}.{function}"
    for key, field in module.Params.model_fields.items():
        assert field.description, f"{name}.Params.{key} says nothing about itself"


@pytest.mark.parametrize("name", [m for m in methods() if m not in EMBEDS and method_kinds.load(m).OFFERS.is_private({})])
@pytest.mark.parametrize("viewer", [Viewer.CURATOR_TRUSTED, Viewer.SERVER])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_provable_calibration_never_exceeds_its_target(name: str, viewer: Viewer, epsilon: float, library: Graph) -> None:
    plan, _, _ = planned(name, library, epsilon, viewer)
    assert plan.provable().epsilon <= epsilon
    assert plan.provable().epsilon > 0.8 * epsilon, "noise that nobody asked for"


@pytest.mark.parametrize("name", [m for m in methods() if m not in EMBEDS])
def test_without_noise_it_is_deterministic_and_predicts(name: str, library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """At ε = ∞ the noise stream must not matter: another one gives the same model."""
    quick = next(s.settings for s in method_kinds.load(name).OFFERS.situations if s.given == "inductive")
    plan, partition, test = planned(name, library, np.inf, Viewer.CURATOR_TRUSTED, **quick)
    module, honest = plugins.load("methods", name), PlanStreams.generator

    def other(streams: PlanStreams, stream: str) -> np.random.Generator:
        return np.random.default_rng(1) if stream == "noise" else honest(streams, stream)

    first = train(plan, partition)
    monkeypatch.setattr(PlanStreams, "generator", other)
    again = train(plan, partition)
    scores = module.predict(plan, first.state, test)
    assert scores.shape == (test.num_nodes, test.num_classes)
    assert np.array_equal(scores, module.predict(plan, again.state, test))
    assert np.isfinite(scores).all()


@pytest.mark.ray
@pytest.mark.parametrize("name", plugins.names("methods"))
def test_serial_equals_ray_bit_for_bit(name: str, trainings: Trainings, ray_engine: Runtime) -> None:
    """With the few steps of its contract: one release differs as surely as sixty, and every client, stream and sum is there."""
    training = trainings.of(Key(name, 0, Trust.OWN_CLIENT))
    parallel = train(training.plan, training.partition, ray_engine)
    assert training.outcome.releases == parallel.releases
    assert not difference(training.outcome.state, parallel.state)


def test_overlapping_clients_compose_per_node(library: Graph) -> None:
    """The worst node of pure ε-LDP encoders pays for every client that holds it (or a tighter valid bound)."""
    plan, partition, _ = planned("local_dp", library, 3.0)
    holders = np.asarray(partition.holdings(library.num_nodes).sum(axis=0)).ravel()
    worst = plan.provable("embedding").epsilon
    assert worst <= 3.0 * holders.max() + 1e-9
    assert worst > 3.0 * holders.max() * 0.7
    assert composition.compose_overlapping(
        plan.declared("embedding"), partition.holdings(library.num_nodes), 0.0
    ).price.epsilon == pytest.approx(3.0 * holders.max())
    assert plan.provable("model").epsilon == np.inf


def test_a_plan_priced_for_noise_it_does_not_have_is_refused(library: Graph) -> None:
    import dataclasses

    from fedgraph.errors import PrivacyError
    from fedgraph.privacy.mechanisms.noise import GaussianNoise

    for viewer in (Viewer.CURATOR_TRUSTED, Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION):
        plan, _, _ = planned("features", library, 1.0, viewer)
        release = plan.schedule.releases[0]
        assert isinstance(release.mechanism, GaussianNoise)
        weaker = dataclasses.replace(release, mechanism=GaussianNoise(release.mechanism.std * 2 / 3))
        with pytest.raises(PrivacyError, match="more noise than it gets"):
            dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, releases=(weaker,)))
