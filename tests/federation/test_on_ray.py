"""A share of the clients in each round on Ray: its workers give the serial engine's bits, also where they are too many."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fedgraph import runtime, seeds
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.base import Runtime
from fedgraph.tasks.node_classification import training
from fedgraph.types import Graph
from tests.public_facts import public_facts


@pytest.mark.ray
@pytest.mark.parametrize(("clients", "answering"), [(40, 12), (1, None)], ids=["a share", "more workers than clients"])
def test_workers_give_the_bits_of_one_process(clients: int, answering: int | None, ray_engine: Runtime, library: Graph) -> None:
    partition = uniform.split(library, uniform.Params(clients=clients), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER)
    plan = features.plan(features.Params(steps=4), dataclasses.replace(facts, answering=answering), Budget(2.0, 1e-3))
    who = None if answering is None else training.draw_rounds(answering, clients, plan.schedule.rounds, 0, ("x",))
    outs = []
    with runtime.start("serial") as serial:
        for engine in (serial, ray_engine):
            shared = engine.share(("dealt", clients), partition)
            stream = ("ray", clients)
            outs.append(rounds.run(engine, shared, plan, 5, stream, stream, rounds.RoundPrefixes(), answered=who))
    assert np.array_equal(outs[0].state.model["parameters"], outs[1].state.model["parameters"])
    assert outs[0].releases == outs[1].releases
    assert outs[0].sizes == outs[1].sizes
    assert sum(line.count for line in outs[0].releases) == (answering or clients) * plan.schedule.rounds
