"""The federated loop: stamped values only, sums only behind secure aggregation, planned = spent."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.errors import RuntimeFailure
from fedgraph.federation import rounds
from fedgraph.methods import local_dp
from fedgraph.methods.base import Budget, PublicFacts, method_kinds
from fedgraph.partition import ego
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts
from tests.trainings import planned


def facts_of(graph: Graph, partition: Partition, viewer: Viewer) -> PublicFacts:
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    holdings = None if partition.disjoint else partition.holdings(graph.num_nodes)
    return public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, viewer, holdings, None)


def test_shared_rounds_run_once_and_are_recorded_in_every_ledger(library: Graph) -> None:
    partition = ego.split(library, ego.Params(clients=5), seeds.seeded_generator(0, "ego"))
    params = local_dp.Params(rounds=3, hidden=4)
    runtime, prefixes, seen = SerialRuntime(), rounds.RoundPrefixes(), []
    shared = runtime.share("p", partition)
    for epsilon in (1.0, 4.0):
        plan = local_dp.plan(params, facts_of(library, partition, Viewer.SERVER), Budget(epsilon, 1e-3))
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
    engine = SerialRuntime()
    method = method_kinds.load(name)
    merge = method.server

    def overflows(*args: object) -> object:
        after = merge(*args)
        return dataclasses.replace(after, model={"kernel": np.array([1.0, np.nan])})

    monkeypatch.setattr(method, "server", overflows)
    with pytest.raises(RuntimeFailure, match=f"round 0: 'kernel' of the model is NaN or infinite{advice}$"):
        rounds.run(engine, engine.share("p", partition), plan, 0, ("cell",), ("common",), rounds.RoundPrefixes())
