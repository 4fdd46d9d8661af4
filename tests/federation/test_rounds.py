"""The federated loop: rounds that cells share, samples of clients and what they cost, on workers as in one process."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph import privacy, seeds
from fedgraph.errors import PrivacyError, RuntimeFailure
from fedgraph.federation import rounds
from fedgraph.methods import features, local_dp
from fedgraph.methods.base import Budget, Plan, method_kinds
from fedgraph.partition import ego, uniform
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import Runtime
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks.node_classification import training
from fedgraph.tasks.node_classification.settings import Participation
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts
from tests.trainings import planned, train


@pytest.fixture
def dealt(library: Graph) -> Partition:
    return uniform.split(library, uniform.Params(clients=20), seeds.seeded_generator(0, "deal"))


def plan_of(
    graph: Graph, partition: Partition, viewer: Viewer, answering: int | None, epsilon: float = 2.0, **settings: float
) -> Plan:
    """Of ``features``, where so many clients answer in a round (None: all)."""
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, viewer, answering=answering)
    return features.plan(features.Params(**settings), facts, Budget(epsilon, 1e-3))


def run(
    plan: Plan, partition: Partition, who: np.ndarray | None, stream: object = "s", engine: Runtime | None = None
) -> rounds.RoundsOutcome:
    engine = engine or SerialRuntime()
    shared = engine.share(("p", id(partition)), partition)
    return rounds.run(engine, shared, plan, 0, ("c",), ("s", stream), rounds.RoundPrefixes(), answered=who)


def test_shared_rounds_run_once_and_are_recorded_in_every_ledger(library: Graph) -> None:
    partition = ego.split(library, ego.Params(clients=5), seeds.seeded_generator(0, "ego"))
    sizes, holdings = tuple(s.graph.num_nodes for s in partition.subgraphs), partition.holdings(library.num_nodes)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER, holdings)
    runtime, prefixes, seen = SerialRuntime(), rounds.RoundPrefixes(), []
    shared = runtime.share("p", partition)
    for epsilon in (1.0, 4.0):
        plan = local_dp.plan(local_dp.Params(rounds=3, hidden=4), facts, Budget(epsilon, 1e-3))
        out = rounds.run(runtime, shared, plan, 0, ("cell", epsilon), ("common",), prefixes, lambda d, t: seen.append(d))
        assert sum(r.count for r in out.releases) == 5 * (1 + 3 + 1)
        assert {r.cell for r in out.releases} == {f"cell/{epsilon}"}
    assert seen == [1, 2, 3, 4, 4], "the three training rounds ran once"


@pytest.mark.parametrize(("name", "advice"), [("gap_node", "; try a smaller learning_rate"), ("gap_edge", "")])
def test_a_model_that_is_no_number_ends_the_run(
    name: str, advice: str, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A smaller step is advised only where the method has one."""
    plan, partition, _ = planned(name, 0, Trust.CURATOR, library, 2.0)
    method = method_kinds.load(name)
    merge = method.server
    overflown = {"kernel": np.array([1.0, np.nan])}
    monkeypatch.setattr(method, "server", lambda *given: dataclasses.replace(merge(*given), model=overflown))
    with pytest.raises(RuntimeFailure, match=f"round 0: 'kernel' of the model is NaN or infinite{advice}$"):
        train(plan, partition)


def test_each_round_asks_a_fixed_number_by_fair_coins() -> None:
    assert [Participation(**given).answering(50) for given in ({}, {"share": 0.3}, {"share": 0.001})] == [None, 15, 1]
    answered = training.draw_rounds(15, 50, 200, 0, ("x",))
    assert set(answered.sum(axis=1)) == {15}
    assert np.abs(answered.mean(axis=0) - 0.3).max() < 0.13
    assert np.array_equal(training.draw_rounds(15, 50, 5, 0, ("x",)), answered[:5]), "a longer run begins as a shorter one"


def test_the_noise_of_a_secure_sum_covers_the_clients_that_answer(library: Graph, dealt: Partition) -> None:
    """Fails when the noise of a share is chosen for all clients, or scaled by two thirds."""
    alone, secure = (plan_of(library, dealt, v, 8, 1.0) for v in (Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION))
    (release,), (whole,) = secure.schedule.releases, alone.schedule.releases
    share = release.mechanism.std  # type: ignore[attr-defined]
    assert np.sqrt(8 - 1) * share == pytest.approx(whole.mechanism.std)  # type: ignore[attr-defined]
    assert secure.schedule.min_clients == 8
    for weak in (np.sqrt(7 / 19), 2 / 3):
        less = dataclasses.replace(release, mechanism=dataclasses.replace(release.mechanism, std=share * weak))  # type: ignore[call-arg]
        with pytest.raises(PrivacyError, match="standard deviation"):
            dataclasses.replace(secure, schedule=dataclasses.replace(secure.schedule, releases=(less,)))
    with pytest.raises(PrivacyError, match="more than 1 others, found 1"):
        plan_of(library, dealt, Viewer.SERVER_SECURE_AGGREGATION, 1, 1.0)


@pytest.mark.parametrize("viewer", [Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION])
def test_only_who_answered_has_spent(library: Graph, dealt: Partition, viewer: Viewer) -> None:
    """Every release in the ledger is one of an answer; the dearest client pays for its own answers, never more than planned."""
    plan = plan_of(library, dealt, viewer, 10, steps=12)
    who = training.draw_rounds(10, 20, plan.schedule.rounds, 0, ("x",))
    out = run(plan, dealt, who)
    assert sum(line.count for line in out.releases) == who.sum()
    spent = privacy.settle.of_releases(plan.guarantee, out.releases)
    assert spent.epsilon < plan.provable().epsilon <= 2.0
    answers = dataclasses.replace(plan.schedule.releases[0], rounds=range(int(who.sum(axis=0).max())))
    only = dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, releases=(answers,)))
    assert spent.epsilon == pytest.approx(only.provable().epsilon)


def test_the_mean_of_samples_is_the_whole_sum(library: Graph, dealt: Partition) -> None:
    """In clear, half of equal clients, scaled up, step on average as all of them do."""
    half, steps = np.arange(20) < 10, []
    for number, who in enumerate((half, ~half, None)):
        plan = plan_of(library, dealt, Viewer.SERVER, None if who is None else 10, np.inf, steps=1, momentum=0.0)
        start = features.start(plan, seeds.seeded_generator(0, "c", "start")).model["parameters"]
        out = run(plan, dealt, None if who is None else who[None, :], number)
        steps.append(out.state.model["parameters"] - start)
    assert np.allclose((steps[0] + steps[1]) / 2, steps[2], atol=1e-5)


@pytest.mark.ray
@pytest.mark.parametrize(("clients", "answering"), [(40, 12), (1, None)], ids=["a share", "more workers than clients"])
def test_workers_give_the_bits_of_one_process(clients: int, answering: int | None, ray_engine: Runtime, library: Graph) -> None:
    partition = uniform.split(library, uniform.Params(clients=clients), seeds.seeded_generator(0, "deal"))
    plan = plan_of(library, partition, Viewer.SERVER, answering, steps=4)
    who = None if answering is None else training.draw_rounds(answering, clients, plan.schedule.rounds, 0, ("x",))
    one, other = (run(plan, partition, who, engine=engine) for engine in (None, ray_engine))
    assert np.array_equal(one.state.model["parameters"], other.state.model["parameters"])
    assert (one.releases, one.sizes) == (other.releases, other.sizes)
    assert sum(line.count for line in one.releases) == (answering or clients) * plan.schedule.rounds


def test_a_scenario_tells_what_travelled(tmp_path: Path) -> None:
    task = {
        "task": "node_classification", "epsilons": [8], "trust": ["curator", "own-client"], "federation": {"share": 0.5},
        "partition": {"partition": "uniform", "clients": 20}, "methods": [{"method": "features", "steps": 4}],
    }  # fmt: skip
    asked = {"name": "partial", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}], "tasks": [task]}
    fedgraph.run(asked, out=tmp_path / "out", quiet=True)
    results = fedgraph.open_run(tmp_path / "out").kept[0].results
    found = {(r.world.trust.value, m): v for r in results for m, v in r.metrics.items()}
    assert ("curator", "bytes_up") not in found
    assert found["own-client", "bytes_up"] == found["own-client", "bytes_down"] == 4 * (16 * 4 + 4)
    assert found["own-client", "seconds_home"] > found["own-client", "seconds_data_centre"] > 0
