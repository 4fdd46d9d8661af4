"""Samples of clients, drop-outs and deadlines: who answers, what it costs, and what travels."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from fedgraph import run, seeds
from fedgraph.cells.cell import Cell, CellContext
from fedgraph.errors import PrivacyError
from fedgraph.federation import rounds
from fedgraph.federation.round_attendance import (
    ROUND_ATTENDANCE_LINKS,
    Participation,
    draw_round_attendance,
    round_attendance_traffic,
)
from fedgraph.methods import features, nonprivate
from fedgraph.methods.base import Budget, PlanInbox, PublicAttendanceFacts, PublicFacts, State
from fedgraph.partition import uniform
from fedgraph.privacy.settle import settle
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks.node_classification.attendance import attendance_facts as facts_of_links
from fedgraph.types import Graph, Partition
from fedgraph.worlds.world import world_of_trust
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


def facts_of(graph: Graph, partition: Partition, viewer: Viewer, least: int | None) -> PublicFacts:
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, viewer)
    return facts if least is None else dataclasses.replace(facts, attendance=PublicAttendanceFacts("some", least))


def test_samples_have_the_rates_that_they_state() -> None:
    fixed = draw_round_attendance(Participation(sample="fixed", share=0.3), 50, 200, 1, 0, ("x",))
    assert set(fixed.answered.sum(axis=1)) == {15}
    assert np.abs(fixed.answered.mean(axis=0) - 0.3).max() < 0.13
    coins = draw_round_attendance(Participation(sample="poisson", share=0.3), 50, 200, 1, 0, ("x",))
    assert abs(coins.answered.mean() - 0.3) < 0.02
    assert len(set(coins.answered.sum(axis=1))) > 5
    dropped = draw_round_attendance(Participation(drop_out=0.25), 50, 200, 1, 0, ("x",))
    assert abs(dropped.answered.mean() - 0.75) < 0.02
    late = Participation(compute_s=10, spread=0.5, deadline_s=15)
    slow = draw_round_attendance(late, 50, 200, 1, 0, ("x",))
    assert abs(slow.answered.mean() - late.chance) < 0.02
    assert slow.computed.max() == 15


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    settings = Participation(sample="poisson", share=0.5, drop_out=0.1)
    short, long = (draw_round_attendance(settings, 30, n, 5, 7, ("x",)) for n in (5, 50))
    assert np.array_equal(short.answered, long.answered[:5])


def test_rounds_with_too_few_answers_are_empty() -> None:
    who = draw_round_attendance(Participation(sample="poisson", share=0.5), 20, 300, 10, 0, ("x",))
    counts = who.answered.sum(axis=1)
    assert who.aborted == (counts == 0).sum() > 0
    assert counts[counts > 0].min() >= 10


def test_the_default_least_is_rarely_missed() -> None:
    for settings in (Participation(sample="fixed", share=0.5, drop_out=0.2), Participation(sample="poisson", share=0.5)):
        least = settings.answers_needed(200)
        who = draw_round_attendance(settings, 200, 300, least, 0, ("x",))
        assert least > 50
        assert who.aborted <= 5


def test_the_noise_of_a_secure_sum_covers_the_least_answers(library: Graph, dealt: Partition) -> None:
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
    settings = Participation(sample="fixed", share=0.5, drop_out=0.2)
    least = settings.answers_needed(20)
    plan = features.plan(features.Params(steps=12), facts_of(library, dealt, viewer, least), Budget(2.0, 1e-3))
    who = draw_round_attendance(settings, 20, plan.schedule.rounds, least, 0, ("x",))
    engine = SerialRuntime()
    out = rounds.run_rounds(engine, engine.share("p", dealt), plan, 0, ("c",), ("s",), rounds.RoundPrefixes(), attendance=who)
    assert sum(line.count for line in out.releases) == who.answered.sum()
    spent = settle(plan.guarantee, out.releases)
    assert spent.epsilon < plan.provable().epsilon <= 2.0
    most = int(who.answered.sum(axis=0).max())
    again = features.plan(features.Params(steps=12), facts_of(library, dealt, viewer, least), Budget(2.0, 1e-3))
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
    params = features.Params(steps=1, momentum=0.0, averaged=1.0)
    engine = SerialRuntime()
    shared = engine.share("p", dealt)

    def stepped(who: np.ndarray | None, number: int) -> np.ndarray:
        given = facts if who is not None else facts_of(library, dealt, Viewer.SERVER, None)
        plan = features.plan(params, given, Budget(np.inf, 1e-3))
        start = features.start(plan, seeds.seeded_generator(0, "c", "start")).model["parameters"]
        partial = None if who is None else dataclasses.replace(example, answered=who[None, :])
        out = rounds.run_rounds(engine, shared, plan, 0, ("c",), ("s", number), rounds.RoundPrefixes(), attendance=partial)
        return out.state.model["parameters"] - start

    example = draw_round_attendance(Participation(sample="fixed", share=0.5), 20, 1, 1, 0, ("x",))
    half = np.arange(20) < 10
    mean = (stepped(half, 1) + stepped(~half, 2)) / 2
    assert np.allclose(mean, stepped(None, 3), atol=1e-5)


def test_all_dropped_leaves_the_model(library: Graph, dealt: Partition) -> None:
    plan = nonprivate.plan(nonprivate.Params(rounds=3), facts_of(library, dealt, Viewer.SERVER, 1), Budget(np.inf, 1e-3))
    who = draw_round_attendance(Participation(drop_out=0.5), 20, plan.schedule.rounds, 1, 0, ("x",))
    nobody = dataclasses.replace(who, answered=np.zeros_like(who.answered))
    engine = SerialRuntime()
    out = rounds.run_rounds(
        engine, engine.share("p", dealt), plan, 0, ("c",), ("s",), rounds.RoundPrefixes(), attendance=nobody
    )
    assert out.releases == ()
    assert all(up == 0 for _, up in out.sizes)


@pytest.mark.parametrize("aborted", [range(0), range(5, 8), range(5, 10), range(10)])
def test_iterates_are_averaged_over_the_rounds_that_were_not_aborted(aborted: range, library: Graph, dealt: Partition) -> None:
    """The second half of ten rounds is averaged; an aborted round gives no iterate, and the average is of as many fewer."""
    params = features.Params(model="mlp", steps=10, momentum=0.0, learning_rate=1.0)
    plan = features.plan(params, facts_of(library, dealt, Viewer.SERVER, 2), Budget(8.0, 1e-3))
    state = features.start(plan, seeds.seeded_generator(0, "start"))
    late: list[np.ndarray] = []
    for round_ in (r for r in range(10) if r not in aborted):
        sums = {"gradient": seeds.seeded_generator(0, "sum", round_).normal(size=plan.made.layout.num_parameters)}
        state = features.server(plan, state, PlanInbox(round_, sums, {}, 20))
        late += [state.model["parameters"]] if round_ >= 5 else []
    expected = np.mean(late, axis=0) if late else state.model["parameters"]
    assert np.allclose(state.memory.average, expected, atol=1e-6)


def test_time_on_links_is_the_stated_sum() -> None:
    home = ROUND_ATTENDANCE_LINKS["home"]
    found = round_attendance_traffic([(1_000_000, 500_000)] * 3, np.array([1.0, 2.0, 3.0]))
    each = 2 * home.latency + 8e6 / home.down + 4e6 / home.up
    assert found.seconds["home"] == pytest.approx(3 * each + 6)
    assert (found.down, found.up) == (1_000_000, 500_000)
    assert found.seconds["data centre"] < found.seconds["home"]


def test_a_round_waits_for_the_slowest_also_where_everybody_answers() -> None:
    cell = Cell("t", "d", "features", "default", world_of_trust(Trust.SUMS), 8.0, "provable", 0)
    context = CellContext("t", "d", None, 5, 1, SerialRuntime())
    done = rounds.RoundsOutcome(State({}, None), (), sizes=((1000, 1000),) * 4)
    slow, quick = (
        facts_of_links(Participation(compute_s=s, spread=0.5 * (s > 0)), None, done, 30, cell, context) for s in (2.0, 0.0)
    )
    waited = slow.seconds["home"] - quick.seconds["home"]
    expected = draw_round_attendance(Participation(compute_s=2.0, spread=0.5), 30, 4, 1, 5, ("d", 0)).computed.sum()
    assert waited == pytest.approx(expected)
    assert waited > 4 * 2.0


@pytest.mark.parametrize(
    ("federation", "methods", "words"),
    [
        ("{sample: fixed}", "features", "share: 1 asks everybody"),
        ("{share: 0.5}", "features", "sample: all asks everybody"),
        ("{deadline_s: 3}", "features", "deadline_s needs compute_s"),
        ("{drop_out: 1}", "features", "drop_out"),
        ("{sample: fixed, share: 0.5}", "dpar", "dpar needs every client in every round; federation is for"),
        ("{sample: fixed, share: 0.05}", "features", "a secure sum of one client hides nothing"),
        ("{sample: fixed, share: 0.5, least: 15}", "features", "none of 60 rounds has the 15 answers that it needs"),
        ("{drop_out: 0.1, least: 21}", "features", "federation.least is 21; allowed: at most 20"),
        ("{least: 21}", "features", "federation.least is 21; allowed: at most 20"),
        ("{sample: fixed, share: 0.5, asynchronous: true}", "features", "asynchronous"),
    ],
)
def test_what_cannot_be_is_one_line_with_its_place(
    federation: str, methods: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "partial.yaml"
    path.write_text(SCENARIO.format(federation=federation, methods=f"{{method: {methods}}}"), encoding="utf-8")
    assert run.main([str(path), "--dry-run"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"{path}:")
    assert words in said


def test_a_scenario_tells_who_answered_and_what_travelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "partial.yaml"
    federation = "{sample: fixed, share: 0.5, drop_out: 0.1, compute_s: 2, spread: 0.3}"
    path.write_text(
        SCENARIO.format(federation=federation, methods="{method: features, steps: 4}, {method: nonprivate, rounds: 3}")
    )
    assert run.main([str(path), "--out", str(tmp_path / "out")]) == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["rows"]
    found = {(r["method"], r["trust"], m): v for r in rows for m, v in r["metrics"].items()}
    assert ("features", "curator", "bytes_up") not in found
    assert found["features", "own-client", "bytes_up"] == found["features", "own-client", "bytes_down"] == 4 * (16 * 4 + 4)
    assert found["features", "own-client", "seconds_home"] > found["features", "own-client", "seconds_data_centre"] > 4
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "buys no amplification" in page
    assert "requests were answered and used" in page
    assert "All rounds take, on stated links: home" in page
