"""Masks and FedBuff on Ray: three workers give the serial engine's bits, also after one of them has died."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fedgraph import runtime, seeds
from fedgraph.federation import rounds
from fedgraph.federation.messages import SecureMasks
from fedgraph.federation.round_attendance import Attendance, Participation, buffered_round_attendance, draw_round_attendance
from fedgraph.federation.secure import masked_plan as secure_plan
from fedgraph.methods import features
from fedgraph.methods.base import Budget, Plan, PublicAttendanceFacts, PublicFacts
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import Runtime, RuntimeClients
from fedgraph.types import Graph
from tests.public_facts import public_facts

pytestmark = [pytest.mark.ray("own"), pytest.mark.slow]

CLIENTS, BUDGET = 40, Budget(4.0, 1e-3)
MASKED = Participation(secure_aggregation="masks", drop_out=0.1)
LATE = Participation(mode="asynchronous", buffer=7, compute_s=2.0, spread=0.8)


@pytest.fixture(scope="module")
def pool(one_ray: Any) -> Iterator[Runtime]:
    one_ray.close()  # the shared one has two CPUs, and a fixture of a module begins before those of its tests
    with runtime.start("ray", workers=3) as engine:
        yield engine


def facts_of(library: Graph, viewer: Viewer, colluders: int = 1, **more: Any) -> PublicFacts:
    partition = uniform.split(library, uniform.Params(clients=CLIENTS), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, viewer)
    return dataclasses.replace(facts, attendance=PublicAttendanceFacts("some", **more), colluders=colluders)


def masked(library: Graph) -> tuple[Plan[Any, Any], Attendance, SecureMasks]:
    facts = facts_of(library, Viewer.SERVER_SECURE_AGGREGATION, least_answers=MASKED.answers_needed(CLIENTS), colluders=2)
    ideal = features.plan(features.Params(steps=4), facts, BUDGET)
    plan = secure_plan.make_masked_plan(ideal, BUDGET, features.num_sent(ideal))
    return (
        plan,
        draw_round_attendance(MASKED, CLIENTS, 4, facts.cohort, 0, ("r",)),
        SecureMasks(2, facts.cohort, MASKED.drop_out),
    )


def buffered(library: Graph) -> tuple[Plan[Any, Any], Attendance, None]:
    facts = facts_of(library, Viewer.SERVER, least_answers=LATE.buffer, asynchronous=True)
    who = buffered_round_attendance(LATE, CLIENTS, 12, 0, ("r",), 20)
    assert who.versions is not None
    assert max(len(who.needed(r)) for r in range(12)) > 1, "somebody is stale"
    return features.plan(features.Params(steps=12), facts, BUDGET), who, None


def trained(
    engine: Runtime,
    library: Graph,
    made: tuple[Plan[Any, Any], Attendance, SecureMasks | None],
    root: int,
    keep: frozenset[int] = frozenset(),
) -> rounds.RoundsOutcome:
    plan, who, masks = made
    partition = uniform.split(library, uniform.Params(clients=CLIENTS), seeds.seeded_generator(0, "deal"))
    shared = engine.share("partition", partition)
    out = rounds.run_rounds(
        engine, shared, plan, root, ("x",), ("x",), rounds.RoundPrefixes(), attendance=who, masks=masks, keep=keep
    )
    engine.forget(shared)
    return out


def nobody_comes(who: Attendance) -> Attendance:
    """Round 1 asks nobody; in round 2 all who were asked drop out."""
    chosen, answered = np.array(who.chosen), np.array(who.answered)
    chosen[1] = answered[1] = answered[2] = False
    assert answered[[0, 3]].any(axis=1).all()
    return dataclasses.replace(who, chosen=chosen, answered=answered)


def own_pid(items: range) -> int:
    return os.getpid()


def pids(clients: RuntimeClients) -> list[int]:
    return clients.ask(own_pid, 3)


@pytest.mark.parametrize("way", [masked, buffered])
def test_three_workers_give_the_bits_of_one_process(
    way: Callable[[Graph], tuple[Plan[Any, Any], Attendance, SecureMasks | None]], pool: Runtime, library: Graph
) -> None:
    made = way(library)
    with runtime.start("serial") as serial:
        truth, other = trained(serial, library, made, 5), trained(serial, library, made, 6)
    expected = truth.state.model["parameters"]
    assert not np.array_equal(other.state.model["parameters"], expected)  # another root, another noise
    for dies in (False, True):
        if dies:  # what it kept of keys, agreements and prepared clients is gone with it
            os.kill(pool.federate(pids, path=("pids",))[1], signal.SIGKILL)
        found = trained(pool, library, made, 5)
        assert np.array_equal(found.state.model["parameters"], expected)
        assert found.releases == truth.releases
        assert found.sizes == truth.sizes
    assert pool.describe()["workers"] == 3
    until = time.monotonic() + 60
    while not pool.describe()["workers_lost"] and time.monotonic() < until:
        pool.look()  # type: ignore[attr-defined]
        time.sleep(0.2)
    assert pool.describe()["workers_lost"] >= 1


@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "masks"])
def test_rounds_without_anybody_leave_the_model(hidden: bool, pool: Runtime, library: Graph) -> None:
    plan, who, masks = masked(library)
    if not hidden:
        plan = features.plan(features.Params(steps=4), facts_of(library, Viewer.SERVER, least_answers=1), BUDGET)
    made = (plan, nobody_comes(who), masks if hidden else None)
    with runtime.start("serial") as serial:
        truth = trained(serial, library, made, 5, keep=frozenset({1, 2, 3, 4}))
    assert [round_ for round_, _ in truth.kept] == [1, 2, 3, 4]
    states = [state.model["parameters"] for _, state in truth.kept]
    assert np.array_equal(states[0], states[2])
    assert not np.array_equal(states[2], states[3])
    found = trained(pool, library, made, 5)
    assert np.array_equal(found.state.model["parameters"], states[3])
    assert found.releases == truth.releases


def test_more_workers_than_clients(pool: Runtime, library: Graph) -> None:
    partition = uniform.split(library, uniform.Params(clients=2), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER)
    plan = features.plan(features.Params(steps=3), facts, BUDGET)
    outs = []
    with runtime.start("serial") as serial:
        for engine in (serial, pool):
            shared = engine.share("two", partition)
            outs.append(rounds.run_rounds(engine, shared, plan, 0, ("two",), ("two",), rounds.RoundPrefixes()))
    assert np.array_equal(outs[0].state.model["parameters"], outs[1].state.model["parameters"])
    assert outs[0].releases == outs[1].releases
