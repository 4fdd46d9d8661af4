"""Samples of clients: who answers, what it costs, and what travels."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph import privacy, run, seeds
from fedgraph.errors import PrivacyError
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks.node_classification import training
from fedgraph.tasks.node_classification.settings import Participation
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts

SCENARIO = """\
name: partial
runtime: {{engine: serial}}
datasets: [{{name: embedded/library}}]
tasks:
  - task: node_classification
    epsilons: [8]
    trust: [curator, sums, own-client]
    partition: {{partition: uniform, clients: 20}}
    federation: {federation}
    methods: [{methods}]
"""


@pytest.fixture
def dealt(library: Graph) -> Partition:
    return uniform.split(library, uniform.Params(clients=20), seeds.seeded_generator(0, "deal"))


def facts_of(graph: Graph, partition: Partition, viewer: Viewer, answering: int | None) -> PublicFacts:
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, viewer)
    return dataclasses.replace(facts, answering=answering)


def test_each_round_asks_a_fixed_number_by_fair_coins() -> None:
    assert Participation().answering(50) is None
    assert Participation(share=0.3).answering(50) == 15
    assert Participation(share=0.001).answering(50) == 1
    answered = training.draw_rounds(15, 50, 200, 0, ("x",))
    assert set(answered.sum(axis=1)) == {15}
    assert np.abs(answered.mean(axis=0) - 0.3).max() < 0.13
    assert np.array_equal(training.draw_rounds(15, 50, 5, 0, ("x",)), answered[:5]), "a longer run begins as a shorter one"


def test_the_noise_of_a_secure_sum_covers_the_clients_that_answer(library: Graph, dealt: Partition) -> None:
    """Fails when the noise of a share is chosen for all clients, or scaled by two thirds."""
    params, budget = features.Params(steps=5), Budget(1.0, 1e-3)
    alone = features.plan(params, facts_of(library, dealt, Viewer.SERVER, 8), budget)
    secure = features.plan(params, facts_of(library, dealt, Viewer.SERVER_SECURE_AGGREGATION, 8), budget)
    share, full = secure.schedule.releases[0].mechanism.std, alone.schedule.releases[0].mechanism.std  # type: ignore[attr-defined]
    assert np.sqrt(8 - 1) * share == pytest.approx(full)
    assert secure.schedule.min_clients == 8
    for weak in (np.sqrt(7 / 19), 2 / 3):
        mechanism = dataclasses.replace(secure.schedule.releases[0].mechanism, std=share * weak)  # type: ignore[call-arg]
        with pytest.raises(PrivacyError, match="standard deviation"):
            dataclasses.replace(
                secure,
                schedule=dataclasses.replace(
                    secure.schedule, releases=(dataclasses.replace(secure.schedule.releases[0], mechanism=mechanism),)
                ),
            )
    with pytest.raises(PrivacyError, match="more than 1 others, found 1"):
        features.plan(params, facts_of(library, dealt, Viewer.SERVER_SECURE_AGGREGATION, 1), budget)


@pytest.mark.parametrize("viewer", [Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION])
def test_only_who_answered_has_spent(library: Graph, dealt: Partition, viewer: Viewer) -> None:
    """Every release in the ledger is one of an answer; the dearest client pays for its own answers, never more than planned."""
    plan = features.plan(features.Params(steps=12), facts_of(library, dealt, viewer, 10), Budget(2.0, 1e-3))
    who = training.draw_rounds(10, 20, plan.schedule.rounds, 0, ("x",))
    engine = SerialRuntime()
    out = rounds.run(engine, engine.share("p", dealt), plan, 0, ("c",), ("s",), rounds.RoundPrefixes(), answered=who)
    assert sum(line.count for line in out.releases) == who.sum()
    spent = privacy.settle.of_releases(plan.guarantee, out.releases)
    assert spent.epsilon < plan.provable().epsilon <= 2.0
    most = int(who.sum(axis=0).max())
    again = features.plan(features.Params(steps=12), facts_of(library, dealt, viewer, 10), Budget(2.0, 1e-3))
    only = dataclasses.replace(
        again,
        schedule=dataclasses.replace(
            again.schedule, releases=(dataclasses.replace(again.schedule.releases[0], rounds=range(most)),)
        ),
    )
    assert spent.epsilon == pytest.approx(only.provable().epsilon)
    assert np.isfinite(out.state.model["parameters"]).all()


def test_the_mean_of_samples_is_the_whole_sum(library: Graph, dealt: Partition) -> None:
    """In clear, half of equal clients, scaled up, step on average as all of them do."""
    facts = facts_of(library, dealt, Viewer.SERVER, 10)
    params = features.Params(steps=1, momentum=0.0)
    engine = SerialRuntime()
    shared = engine.share("p", dealt)

    def stepped(who: np.ndarray | None, number: int) -> np.ndarray:
        given = facts if who is not None else facts_of(library, dealt, Viewer.SERVER, None)
        plan = features.plan(params, given, Budget(np.inf, 1e-3))
        start = features.start(plan, seeds.seeded_generator(0, "c", "start")).model["parameters"]
        partial = None if who is None else who[None, :]
        out = rounds.run(engine, shared, plan, 0, ("c",), ("s", number), rounds.RoundPrefixes(), answered=partial)
        return out.state.model["parameters"] - start

    half = np.arange(20) < 10
    mean = (stepped(half, 1) + stepped(~half, 2)) / 2
    assert np.allclose(mean, stepped(None, 3), atol=1e-5)


def test_a_scenario_tells_who_answered_and_what_travelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "partial.yaml"
    federation = "{share: 0.5}"
    path.write_text(
        SCENARIO.format(federation=federation, methods="{method: features, steps: 4}, {method: nonprivate, rounds: 3}")
    )
    assert run.main([str(path), "--out", str(tmp_path / "out")]) == 0
    results = fedgraph.open_run(tmp_path / "out").kept[0].results
    found = {(r.method, r.world.trust.value, m): v for r in results for m, v in r.metrics.items()}
    assert ("features", "curator", "bytes_up") not in found
    assert found["features", "own-client", "bytes_up"] == found["features", "own-client", "bytes_down"] == 4 * (16 * 4 + 4)
    assert found["features", "own-client", "seconds_home"] > found["features", "own-client", "seconds_data_centre"] > 0
