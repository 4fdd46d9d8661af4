"""FedBuff: who is in which buffer, what staleness weighs, and what the client with the most updates pays."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedgraph import run, seeds
from fedgraph.errors import PrivacyError
from fedgraph.federation import rounds
from fedgraph.federation.round_attendance import Attendance, Participation, StaleAttendance, buffered_round_attendance
from fedgraph.methods import features, nonprivate
from fedgraph.methods.base import Budget, PublicAttendanceFacts
from fedgraph.partition import uniform
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Gaussian, Repeated
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.privacy.settle import settle
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.types import Graph
from tests.public_facts import public_facts

SETTINGS = Participation(mode="asynchronous", buffer=4, compute_s=2.0, spread=0.8)
BUDGET = Budget(4.0, 1e-3)


def trained(
    library: Graph, method: Any, who: Attendance, viewer: Viewer = Viewer.SERVER, **given: Any
) -> tuple[Any, rounds.RoundsOutcome]:
    partition = uniform.split(library, uniform.Params(clients=12), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, viewer)
    facts = dataclasses.replace(facts, attendance=PublicAttendanceFacts("some", 4, True))
    plan = method.plan(method.Params(**given), facts, BUDGET)
    runtime = SerialRuntime()
    shared = runtime.share("p", partition)
    return plan, rounds.run_rounds(runtime, shared, plan, 0, ("x",), ("x",), rounds.RoundPrefixes(), attendance=who)


def test_buffers_hold_what_they_should() -> None:
    who = buffered_round_attendance(SETTINGS, 12, 50, 3, ("x",), 12)
    assert who.versions is not None
    assert (who.answered.sum(axis=1) == 4).all()
    rows, clients = np.nonzero(who.answered)
    staleness = rows - who.versions[rows, clients]
    assert staleness.min() >= 0
    assert staleness.max() > 1
    for client in range(12):  # nobody begins before the step that used the client's last update
        made = np.flatnonzero(who.answered[:, client])
        assert (who.versions[made[1:], client] > made[:-1]).all()
    again = buffered_round_attendance(SETTINGS, 12, 50, 3, ("x",), 12)
    assert np.array_equal(again.versions, who.versions)  # type: ignore[arg-type]
    longer = buffered_round_attendance(SETTINGS, 12, 80, 3, ("x",), 12)
    assert np.array_equal(longer.answered[:50], who.answered)
    few = buffered_round_attendance(SETTINGS, 12, 50, 3, ("x",), 4)  # as many as the buffer holds: nobody is stale
    assert few.versions is not None
    assert all(few.needed(r) == [r] for r in range(50))


def test_fast_clients_send_more_and_nobody_waits_for_slow_ones() -> None:
    who = buffered_round_attendance(SETTINGS, 12, 200, 0, ("x",), 12)
    counts = who.answered.sum(axis=0)
    assert counts.max() > 1.5 * counts.min()
    lost = buffered_round_attendance(SETTINGS.model_copy(update={"drop_out": 0.5}), 12, 200, 0, ("x",), 12)
    assert lost.asked > 1.7 * lost.answered.sum()
    assert lost.computed.sum() > 1.3 * who.computed.sum()


def test_a_stale_update_weighs_less_before_noise() -> None:
    stale = StaleAttendance({1: {}, 4: {}}, np.array([1, 4]), 4)
    assert stale.of(0)[1] == pytest.approx(0.5)
    assert stale.of(1)[1] == 1.0
    bound = L2Ball(1.0)
    for mechanism in (Disclose("a test"), GaussianNoise(3.0)):
        planned = [PlannedRelease("m", bound, mechanism, Gaussian(3.0), range(1))]
        large = np.full(4, 5.0)
        found = [
            Desk("c", 0, 0, planned, np.random.default_rng(1), scale=s).release("m", v).value
            for s, v in ((0.5, large), (0.5, np.zeros(4)))
        ]
        assert np.linalg.norm(found[0] - found[1]) == pytest.approx(
            0.5
        )  # the same noise: what is left is the bounded value, halved
    for wrong in (0.0, 1.5, -1.0):
        with pytest.raises(PrivacyError, match="scaled down"):
            Desk("c", 0, 0, [], np.random.default_rng(0), scale=wrong)


def test_every_client_pays_for_its_own_updates(library: Graph) -> None:
    who = buffered_round_attendance(SETTINGS, 12, 15, 3, ("x",), 12)
    plan, out = trained(library, features, who, steps=15)
    made = dict.fromkeys(range(12), 0)
    for line in out.releases:
        for first, last in line.clients:
            for client in range(first, last + 1):
                made[client] += line.of_one_client
    assert [made[c] for c in range(12)] == who.answered.sum(axis=0).tolist()
    most = int(who.answered.sum(axis=0).max())
    spent = settle(plan.guarantee, out.releases).epsilon
    assert spent == price(Repeated(plan.schedule.releases[0].event, most), 1e-3).epsilon
    assert spent < plan.provable().epsilon <= 4.0


@pytest.mark.slow
def test_without_staleness_it_is_the_synchronous_loop(library: Graph) -> None:
    """Everybody begins together and the buffer holds all: FedAvg, up to the rounding of differences."""
    everybody = SETTINGS.model_copy(update={"buffer": 12})
    who = buffered_round_attendance(everybody, 12, 2, 0, ("x",), 12)
    given = {"model": "gcn", "rounds": 2, "validation": 0, "client_optimiser": "sgd"}
    plan, late = trained(library, nonprivate, who, **given)
    runtime = SerialRuntime()
    plain = dataclasses.replace(
        plan, facts=dataclasses.replace(plan.facts, attendance=dataclasses.replace(plan.facts.attendance, asynchronous=False))
    )
    partition = uniform.split(library, uniform.Params(clients=12), seeds.seeded_generator(0, "deal"))
    out = rounds.run_rounds(runtime, runtime.share("p", partition), plain, 0, ("x",), ("x",), rounds.RoundPrefixes())
    one, two = late.state.model["parameters"], out.state.model["parameters"]
    assert np.abs(one - two).max() < 1e-5
    assert np.abs(one).max() > 0.1


@pytest.mark.slow
def test_stale_updates_move_the_newest_model(library: Graph) -> None:
    who = buffered_round_attendance(SETTINGS, 12, 6, 3, ("x",), 12)
    assert who.versions is not None
    given = {"model": "mlp", "validation": 0, "client_optimiser": "sgd", "rounds": 6}
    _, out = trained(library, nonprivate, who, **given)
    assert np.isfinite(out.state.model["parameters"]).all()
    shorter = dataclasses.replace(who, versions=np.where(who.versions >= 0, np.arange(6)[:, None], -1))
    _, fresh = trained(library, nonprivate, shorter, **given)
    assert np.abs(fresh.state.model["parameters"] - out.state.model["parameters"]).max() > 1e-6  # staleness is not for show


SCENARIO = """\
name: late
runtime: {{engine: serial}}
datasets: [{{name: embedded/library}}]
tasks:
  - task: node_classification
    epsilons: [8]
    trust: [sums, own-client]
    partition: {{partition: uniform, clients: 10}}
    federation: {federation}
    methods: [{methods}]
"""


def test_a_scenario_tells_staleness_and_the_most_updates(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    federation = "{mode: asynchronous, buffer: 4, compute_s: 1, spread: 1}"
    path.write_text(SCENARIO.format(federation=federation, methods="{method: features, steps: 8}"))
    run(path, out=tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    (named,) = (row["metrics"] for row in found if row["trust"] == "own-client")
    assert 0 < named["staleness"] < 8
    assert named["most_updates"] in range(4, 9)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "The server steps whenever 4 updates are there" in report


@pytest.mark.parametrize(
    ("federation", "methods", "said"),
    [
        ("{buffer: 3}", "{method: features}", "buffer: for mode: asynchronous only"),
        ("{mode: asynchronous}", "{method: features}", "needs compute_s"),
        ("{mode: asynchronous, compute_s: 1, drop_out: 0.9999999}", "{method: features}", "allowed: at most 0.99 in mode"),
        ("{mode: asynchronous, compute_s: 1, buffer: 40}", "{method: features}", "buffer 40 and concurrency 10; allowed"),
        ("{mode: asynchronous, compute_s: 1, concurrency: 3}", "{method: features}", "allowed: at least buffer, 10"),
        ("{mode: asynchronous, compute_s: 1, deadline_s: 2}", "{method: features}", "deadline_s is for mode: synchronous"),
        (
            "{mode: asynchronous, compute_s: 1, secure_aggregation: masks}",
            "{method: features}",
            "secure_aggregation is for mode",
        ),
        ("{mode: asynchronous, compute_s: 1, buffer: 4}", "{method: nonprivate, model: mlp}", "write validation: 0"),
    ],
)
def test_what_cannot_be_is_one_line(federation: str, methods: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(federation=federation, methods=methods))
    with pytest.raises(Exception, match=said) as caught:
        run(path, out=tmp_path / "out")
    assert len(str(caught.value).splitlines()) <= 2
