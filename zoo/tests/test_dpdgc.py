"""DPDGC at edge level: what an edge moves, what is paid as published and provably, noise that is found out, and no edges."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.methods.base import Budget
from fedgraph.privacy import sensitivity
from fedgraph.privacy.sensitivity import EndsClippedSum, EndsSimplexRows
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Relation
from fedgraph.types import Graph
from fedgraph_zoo.methods import dpdgc
from tests.trainings import placed, train

SITUATION = dpdgc.OFFERS.situations[0]


def planned(graph: Graph, epsilon: float, reading: str = "provable", trust: Trust = Trust.CURATOR, **settings: object):  # type: ignore[no-untyped-def]
    partition, facts, asked = placed(SITUATION, trust, graph)
    return dpdgc.plan(dpdgc.Params(**settings), facts, Budget(epsilon, 1e-5, reading)), partition, asked  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_published_noise_counts_one_row_of_two(library: Graph, epsilon: float) -> None:
    """Half of what a sum moves by, and half of what the rows move by: μ is twice the published one."""
    plan, _, _ = planned(library, epsilon)
    assert 0.99 * epsilon < plan.provable().epsilon <= epsilon
    published, _, _ = planned(library, epsilon, "published")
    assert published.epsilon_published == pytest.approx(epsilon, rel=1e-3)
    assert published.provable().epsilon > 1.8 * epsilon
    stds = [[r.mechanism.std for r in p.schedule.releases] for p in (plan, published)]
    assert stds[0] == pytest.approx([2 * s for s in stds[1]])


def test_an_edge_turns_two_rows(library: Graph) -> None:
    rng, clip = np.random.default_rng(0), 0.7
    sums, rows = EndsClippedSum(clip, 9, "fedgraph.learning.per_sample.clipped_sum"), EndsSimplexRows(9)
    there, away = rng.dirichlet(np.full(4, 0.01), (2, 9))
    away[2:] = there[2:]
    moved = np.linalg.norm(rows.enforce(there) - rows.enforce(away))
    assert moved <= sensitivity.l2(rows, Relation.EDGE_UNDIRECTED) == 2.0
    assert np.linalg.norm(rows.enforce(np.eye(9)) - rows.enforce(np.eye(9)[[1, 0, *range(2, 9)]])) == pytest.approx(2.0)
    assert sensitivity.l2(sums, Relation.EDGE_UNDIRECTED) == pytest.approx(4 * clip)
    assert np.array_equal(rows.enforce(np.zeros((3, 4))), np.zeros((3, 4)))  # nodes of other clients stay zero
    for bound in (sums, rows):
        for relation in (Relation.NODE_ZERO_OUT, Relation.EDGE_DIRECTED):
            with pytest.raises(PrivacyError):
                sensitivity.l2(bound, relation)


@pytest.mark.parametrize("k", [2, 5])
def test_k_edges_of_one_node_are_protected_together(library: Graph, k: int) -> None:
    """They turn k + 1 rows, so the noise grows by (k + 1)/2 and its root, and one edge costs less."""
    one, _, _ = planned(library, 2.0)
    several, partition, _ = planned(library, 2.0, neighbours=k)
    ratios = [b.mechanism.std / a.mechanism.std for a, b in zip(one.schedule.releases, several.schedule.releases, strict=True)]
    assert ratios == pytest.approx([(k + 1) / 2, ((k + 1) / 2) ** 0.5])
    assert several.provable().epsilon < one.provable().epsilon <= 2.0
    (said,) = several.notes
    assert 1.99 < float(said.split("ε ≤ ")[1].split(";")[0]) <= 2.0
    clear, _, _ = planned(library, np.inf)
    graph = partition.subgraphs[0].graph
    shape = dpdgc.start(clear, np.random.default_rng(1)).model["parameters"].shape
    model = {"parameters": (300 * np.random.default_rng(1).normal(size=shape)).astype(np.float32)}

    def met(adjacency: np.ndarray) -> np.ndarray:
        held = dataclasses.replace(partition.subgraphs[0], graph=dataclasses.replace(graph, adjacency=sp.csr_array(adjacency)))
        desk = SimpleNamespace(release=lambda path, value: value())
        return np.asarray(dpdgc.client(clear, dpdgc.prepare(clear, held), model, clear.params.steps, None, desk)["rows"])  # type: ignore[arg-type]

    largest, whole = 0.0, graph.adjacency.toarray()
    for node in np.flatnonzero(np.diff(graph.adjacency.indptr) >= k)[:20]:
        gone = whole.copy()
        others = np.flatnonzero(whole[node])[:k]
        gone[node, others] = gone[others, node] = 0
        largest = max(largest, float(np.linalg.norm(met(whole) - met(gone))))
    assert 0.6 * (2 * (k + 1)) ** 0.5 < largest <= (2 * (k + 1)) ** 0.5


def test_rows_without_noise_know_the_classes_and_no_steps_read_no_edge(library: Graph) -> None:
    plan, partition, _ = planned(library, np.inf)
    released = train(plan, partition).state.memory.released
    assert released.sum(axis=1) == pytest.approx(np.ones(library.num_nodes))
    assert (released.argmax(axis=1) == library.labels).mean() > 0.5
    none, partition, asked = planned(library, 1.0, steps=0)
    assert none.provable().epsilon == 0
    assert dpdgc.predict(none, train(none, partition).state, asked).shape == (library.num_nodes, 4)


def test_the_attack_reads_the_rows(library: Graph) -> None:
    """Without noise the rows of both ends tell an edge from none."""
    plan, partition, _ = planned(library, np.inf)
    state = train(plan, partition).state
    edges = np.argwhere(np.triu(library.adjacency.toarray(), 1))[::40]
    pairs = np.random.default_rng(0).integers(library.num_nodes, size=(40, 2))
    others = pairs[(pairs[:, 0] != pairs[:, 1]) & (library.adjacency[pairs[:, 0], pairs[:, 1]] == 0)][: len(edges)]
    known = library.adjacency.tolil()
    for one, two in edges:
        known[one, two] = known[two, one] = 0
    found = dpdgc.evidence(
        plan, state, dataclasses.replace(library, adjacency=sp.csr_array(known)), np.concatenate([edges, others])
    )
    assert found is not None
    assert ((found > 0) == (np.arange(len(found)) < len(edges))).mean() > 0.9
    none, partition, _ = planned(library, 1.0, steps=0)
    assert dpdgc.evidence(none, train(none, partition).state, library, others) is None


def test_an_edge_of_a_batch_is_no_single_row(library: Graph) -> None:
    plan, _, _ = planned(library, 2.0, batch=20, steps=30)
    step, *others = plan.schedule.releases
    one_row = dataclasses.replace(step, event=dataclasses.replace(step.event, touched_rows=1))  # type: ignore[type-var]
    with pytest.raises(PrivacyError, match="release 'gradient' is priced as"):
        dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, releases=(one_row, *others)))
