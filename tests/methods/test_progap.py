"""ProGAP: what one edge changes, the noise that is there, and stages that grow from released sums alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from fedgraph.learning.propagation.aggregation import aggregate_hop
from fedgraph.methods import progap_edge
from fedgraph.methods.base import Budget, Plan, PlanStreams
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, Partition
from fedgraph.worlds import protocols
from tests.methods.test_gap import run, situation, without_edge

torch = pytest.importorskip("torch")
CURATOR = Viewer.CURATOR_TRUSTED


def edge_plan(graph: Graph, epsilon: float, reading: str = "provable", **params: object) -> tuple[Plan, Partition]:
    _, partition, facts = situation(graph, "transductive", CURATOR)
    settings = progap_edge.Params(**{"epochs": 30, **params})  # type: ignore[arg-type]
    return progap_edge.plan(settings, facts, Budget(epsilon, 1e-5, reading)), partition  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def grown(library: Graph) -> tuple[Plan, Partition, object]:
    plan, partition = edge_plan(library, np.inf, epochs=100)
    return plan, partition, run(plan, partition).state


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
    assert np.array_equal(scores, progap_edge.predict(plan, state, protocols.graph_without_edges(library)))
    assert (scores.argmax(axis=1) == library.labels).mean() > 0.8


def test_a_stage_begins_with_the_bases_of_the_stage_before(library: Graph) -> None:
    """Without a step of training stage 1 holds what stage 0 held."""
    from fedgraph.learning.baselines import gap_networks

    public, nobody = protocols.graph_without_edges(library), np.zeros(library.num_nodes, dtype=bool)
    first = gap_networks.train_progressive_stage(None, public, [], nobody, 4, 5, 0)
    sums = [aggregate_hop(library.adjacency, gap_networks.progressive_rows(first, public, [], 4))]
    second = gap_networks.train_progressive_stage(first, public, sums, nobody, 4, 0, 1)
    again = gap_networks._progressive(public, sums, 4)
    gap_networks.fitting.load_vector(again, second)
    before = gap_networks._progressive(public, [], 4)
    gap_networks.fitting.load_vector(before, first)
    for name, tensor in before.bases[0].state_dict().items():
        assert np.array_equal(tensor.numpy(), again.bases[0].state_dict()[name].numpy()), name


def test_an_edge_moves_a_released_hop_by_at_most_what_is_priced(library: Graph) -> None:
    plan, _ = edge_plan(library, 2.0, epochs=5)
    state = progap_edge.start(plan, np.random.default_rng(0))
    release = plan.schedule.releases[0]
    priced = release.mechanism.std / release.event.noise_multiplier
    assert priced == pytest.approx(math.sqrt(2))
    before, largest = aggregate_hop(library.adjacency, state.model["rows"]), 0.0
    for u, v in list(zip(*sp.triu(library.adjacency, k=1).nonzero(), strict=True))[:200]:
        change = before.astype(np.float64) - aggregate_hop(without_edge(library.adjacency, int(u), int(v)), state.model["rows"])
        largest = max(largest, float(np.linalg.norm(change)))
    assert largest <= priced
    assert largest > priced * 0.99, "two rows change; the published Δ = 1 does not cover it"


def test_the_noise_on_a_hop_is_the_planned_one(library: Graph) -> None:
    plan, partition = edge_plan(library, 2.0, epochs=5)
    release, subgraph = plan.schedule.releases[0], partition.subgraphs[0]
    rows = progap_edge.start(plan, np.random.default_rng(0)).model["rows"]
    desk = Desk("c", 0, 0, plan.schedule.releases, np.random.default_rng(5))
    work = progap_edge.prepare(plan, subgraph)
    out = progap_edge.client(plan, work, {"rows": rows}, 0, PlanStreams(0, ("c", "client", 0, "round", 0)), desk)
    noise = (out["aggregate"].value - aggregate_hop(subgraph.graph.adjacency, rows[subgraph.nodes])).ravel()
    std = release.mechanism.std
    assert kstest(noise / std, "norm").pvalue > 1e-3
    assert kstest(noise / (std * 2 / 3), "norm").pvalue < 1e-6, "two thirds of the noise must be told apart"


@pytest.mark.parametrize(("claimed", "truth"), [(1, 1.45), (4, 5.89)])
def test_the_published_price_counts_one_of_two_rows(claimed: float, truth: float, library: Graph) -> None:
    _, _, facts = situation(library, "transductive", CURATOR)
    plan = progap_edge.plan(progap_edge.Params(hops=2), facts, Budget(claimed, 1e-7, "published"))
    assert plan.epsilon_published == pytest.approx(claimed, rel=1e-6)
    assert plan.provable().epsilon == pytest.approx(truth, abs=0.05)
