"""All clients of a block trained in one compiled call, with the one-client loop in torch as oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.federation import client, rounds
from fedgraph.federation.messages import unite_message_block
from fedgraph.learning.baselines import fitting, many_gcns
from fedgraph.learning.baselines.networks import NetworkShape
from fedgraph.methods import nonprivate
from fedgraph.methods.base import Budget
from fedgraph.methods.nonprivate import phases
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts

ROUNDING = 2e-6  # largest difference in a parameter after a few steps of float32


@pytest.fixture(scope="module")
def dealt(library: Graph) -> Partition:
    return uniform.split(library, uniform.Params(clients=30), seeds.seeded_generator(0, "deal"))


@pytest.mark.parametrize("adam", [False, True])
@pytest.mark.parametrize(("dropout", "of_input", "filled"), [(0.0, 0.0, False), (0.5, 0.3, False), (0.0, 0.0, True)])
def test_one_call_is_the_loop(
    adam: bool,
    dropout: float,
    of_input: float,
    filled: bool,
    dealt: Partition,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parameters and moments, weighted and summed; a client without a labelled node adds nothing. filled: dense products."""
    monkeypatch.setattr(many_gcns, "_FILLED", 0.0 if filled else 1.0)
    monkeypatch.setattr(many_gcns, "_BLOCK", 5)
    joint, starts = unite_message_block(dealt.subgraphs)
    labels = joint.graph.labels.copy()
    labels[starts[3] : starts[4]] = -1
    labels[::7] = -1
    shape = NetworkShape("gcn", joint.graph.num_features, joint.graph.num_classes, 16, dropout, of_input)
    how, rng = fitting.FittingSteps(4, 2, 0.05, 5e-4, adam), np.random.default_rng(0)
    start = fitting.start_fitting(shape, 1)
    drawn = np.abs(rng.standard_normal(start.moments.shape)).astype(np.float32) * 1e-3
    before = fitting.FittingProgress(start.vector, drawn if adam else drawn[:, :0])
    network, vector, moments, weight = fitting.build_network_for_fitting(shape, 0), 0.0, 0.0, 0
    for number, s in enumerate(dealt.subgraphs):
        own = labels[starts[number] : starts[number + 1]]
        after = fitting.continue_fitting(
            network, fitting.prepare_fitting_inputs(s.graph), own, before, how, lambda t, n=number: 1000 * n + t
        )
        known = int((own >= 0).sum())
        vector, moments, weight = vector + known * after.vector, moments + known * after.moments, weight + known
    given = np.array([[1000 * n + t for t in range(3, 7)] for n in range(30)])
    found = many_gcns.train_many_gcns(shape, many_gcns.prepare_many_gcns(joint.graph, starts), labels, before, how, given)
    assert found[2] == weight
    assert np.abs(found[0] - vector).max() / weight < ROUNDING
    assert np.abs(found[0] / weight - start.vector).max() > 100 * ROUNDING, "something was learnt"
    if adam:
        assert np.abs(found[1] - moments).max() / weight < ROUNDING
    else:
        assert found[1].size == 0


def test_masks_are_cut_into_chunks(dealt: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    joint, starts = unite_message_block(dealt.subgraphs)
    shape = NetworkShape("gcn", joint.graph.num_features, joint.graph.num_classes, 8, 0.5, 0.2)
    clients, before = many_gcns.prepare_many_gcns(joint.graph, starts), fitting.start_fitting(shape, 1)
    args = (joint.graph.labels, before, fitting.FittingSteps(2, 0, 0.05, 0.0), np.arange(60).reshape(30, 2))
    whole = many_gcns.train_many_gcns(shape, clients, *args)
    monkeypatch.setattr(many_gcns, "_MOST_MASKS", 1000)
    assert len(many_gcns._chunks(clients, shape, args[2])) > 3
    assert np.array_equal(many_gcns.train_many_gcns(shape, clients, *args)[0], whole[0])


def test_the_parts_of_the_vector_are_torchs(dealt: Partition) -> None:
    """Order and shapes of the network's parameters, and its scores."""
    graph = dealt.subgraphs[0].graph
    shape = NetworkShape("gcn", graph.num_features, graph.num_classes, 5)
    network = fitting.build_network_for_fitting(shape, 0)
    names = {n: tuple(p.shape) for n, p in network.named_parameters()}
    d, h, c = graph.num_features, 5, graph.num_classes
    inner = {"0.layer.bias": (h,), "0.layer.lin.weight": (h, d), "1.layer.bias": (c,), "1.layer.lin.weight": (c, h)}
    assert list(names.items()) == [(f"body.convs.{n}", s) for n, s in inner.items()]
    vector = np.random.default_rng(0).standard_normal(h + h * d + c + c * h).astype(np.float32)
    assert np.array_equal(many_gcns._joined(*many_gcns._split(shape, vector), h), vector)
    ours = many_gcns.score_many_gcns(shape, vector, many_gcns.prepare_many_gcns(graph, np.array([0, graph.num_nodes])))
    assert np.allclose(ours, fitting.score_after_fitting(network, vector, fitting.prepare_fitting_inputs(graph)), atol=1e-4)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("count", [4, 30])
def test_a_federation_learns_what_the_loop_learns(
    optimiser: str, count: int, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds with validation and dropout, few clients (one call each) and many (one call per block)."""
    partition = uniform.split(library, uniform.Params(clients=count), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER)
    params = nonprivate.Params(rounds=2, local_epochs=2, client_optimiser=optimiser, hidden=8, refit=False)  # type: ignore[arg-type]
    plan = nonprivate.plan(params, facts, Budget(math.inf, 1e-5))

    def vector() -> np.ndarray:
        engine = SerialRuntime()
        shared = engine.share("p", partition)
        state = rounds.run_rounds(engine, shared, plan, 0, ("a",), ("a",), rounds.RoundPrefixes()).state
        return phases.answering_in_phase(state)[0][1]

    fused = vector()
    with monkeypatch.context() as patch:
        patch.setattr(many_gcns, "can_train_many_gcns", lambda shape, clients: False)
        assert client.clients_compute_together(plan) == (count > 16)
        looped = vector()
    assert np.abs(fused - looped).max() < 10 * ROUNDING
