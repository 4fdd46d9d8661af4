"""ProGAP: what one edge changes, the noise that is there, and stages that grow from released sums alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.learning import aggregate_hop
from fedgraph.methods import progap_edge
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, Partition, graph_without_edges
from tests.trainings import deal, train

torch = pytest.importorskip("torch")
CURATOR = Viewer.CURATOR_TRUSTED


def edge_plan(graph: Graph, epsilon: float, reading: str = "provable", **params: object) -> tuple[Plan, Partition]:
    _, partition, facts = deal(graph, "transductive", CURATOR)
    settings = progap_edge.Params(**{"epochs": 30, **params})  # type: ignore[arg-type]
    return progap_edge.plan(settings, facts, Budget(epsilon, 1e-5, reading)), partition  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def grown(library: Graph) -> tuple[Plan, Partition, object]:
    plan, partition = edge_plan(library, np.inf, epochs=100)
    return plan, partition, train(plan, partition).state


def test_without_noise_every_hop_sums_the_rows_of_the_stage_before(library: Graph, grown) -> None:  # type: ignore[no-untyped-def]
    plan, _, state = grown
    memory = state.memory
    assert len(memory.stages) == plan.params.hops + 1
    for rows, sums in zip(memory.sent, memory.sums, strict=True):
        assert np.array_equal(sums, aggregate_hop(library.adjacency, rows))
    assert not np.array_equal(memory.sent[0], memory.sent[1])


def test_it_learns_and_answers_without_reading_an_edge(library: Graph, grown) -> None:  # type: ignore[no-untyped-def]
    plan, _, state = grown
    scores = progap_edge.predict(plan, state, library)
    assert np.array_equal(scores, progap_edge.predict(plan, state, graph_without_edges(library)))
    assert (scores.argmax(axis=1) == library.labels).mean() > 0.8


@pytest.mark.parametrize(("claimed", "truth"), [(1, 1.36), (4, 5.54)])
def test_the_published_price_counts_one_of_two_rows(claimed: float, truth: float, library: Graph) -> None:
    _, _, facts = deal(library, "transductive", CURATOR)
    plan = progap_edge.plan(progap_edge.Params(hops=2), facts, Budget(claimed, 1e-7, "published"))
    assert plan.epsilon_published == pytest.approx(claimed, rel=1e-4)
    assert plan.provable().epsilon == pytest.approx(truth, abs=0.01)
