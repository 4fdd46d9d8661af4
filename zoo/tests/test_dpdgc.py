"""DPDGC at edge level: what an edge moves, what is paid as published and provably, noise that is found out, and no edges."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.methods.base import Budget
from fedgraph.privacy import Composed, FixedSizeGaussian, Gaussian, Repeated, price, sensitivity
from fedgraph.privacy.sensitivity import EndsClippedSum, EndsSimplexRows
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Relation
from fedgraph.types import Graph, Subgraph
from fedgraph_zoo import dpdgc_claim
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
    sums, rows = EndsClippedSum(clip, 9, "fedgraph.learning.clipping.per_sample.clipped_sum"), EndsSimplexRows(9)
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


def test_neighbouring_graphs_stay_within_what_is_declared(library: Graph) -> None:
    """Through the client, at steep parameters: an edge moves the released rows by nearly 2, gradients by at most 4 clips."""
    plan, partition, _ = planned(library, 1.0, steps=3)
    whole, rng = partition.subgraphs[0], np.random.default_rng(1)
    shape = dpdgc.start(plan, rng).model["parameters"].shape
    model = {"parameters": (300 * rng.normal(size=shape)).astype(np.float32)}
    bounds = {release.path: release.bound for release in plan.schedule.releases}

    def met(held: Subgraph, round_: int) -> np.ndarray:
        desk = SimpleNamespace(release=lambda path, value: bounds[path].enforce(value()))
        (found,) = dpdgc.client(plan, dpdgc.prepare(plan, held), model, round_, None, desk).values()  # type: ignore[arg-type]
        return np.asarray(found, dtype=np.float64)

    moved = [0.0, 0.0]
    for one, two in np.argwhere(np.triu(whole.graph.adjacency.toarray(), 1))[:40]:
        adjacency = whole.graph.adjacency.toarray()
        adjacency[one, two] = adjacency[two, one] = 0
        gone = dataclasses.replace(whole, graph=dataclasses.replace(whole.graph, adjacency=sp.csr_array(adjacency)))
        for place, round_ in enumerate((0, 3)):
            moved[place] = max(moved[place], float(np.linalg.norm(met(whole, round_) - met(gone, round_))))
    declared = [sensitivity.l2(bound, Relation.EDGE_UNDIRECTED) for bound in bounds.values()]
    assert 0 < moved[0] <= declared[0]
    assert 1.9 < moved[1] <= declared[1]


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


def test_it_refuses_other_settings(library: Graph) -> None:
    _, facts, _ = placed(SITUATION, Trust.OWN_CLIENT, library)
    shared = dataclasses.replace(facts, cut_edges="protected")
    with pytest.raises(ScenarioError, match="cut_edges: dropped"):
        dpdgc.plan(dpdgc.Params(), shared, Budget(1, 1e-5))
    public = dataclasses.replace(facts, public_graph=library)
    with pytest.raises(ScenarioError, match="transductive"):
        dpdgc.plan(dpdgc.Params(), public, Budget(1, 1e-5))


@pytest.mark.parametrize(
    ("epsilon", "delta", "batch", "epochs", "authors", "edge"),
    [
        (1, 1e-5, 256, 100, 29.4997, 0.9472),
        (8, 1e-5, 256, 100, 4.6854, 8.3187),
        (1, 1e-5, 64, 100, 15.0626, 0.9727),
        (4, 1e-6, 256, 50, 6.6584, 4.0711),
    ],
)
def test_the_noise_scale_is_the_released_code_s(
    epsilon: float, delta: float, batch: int, epochs: int, authors: float, edge: float
) -> None:
    """authors: thupchnsky/dp-gnn at 6ea28473 (dpdgc_edp.py, noisy_sgd.py) with autodp 0.2.3.1, 2,031 rows of Cora.

    edge: what it is worth for an undirected edge, where steps have std 2sC and the release √2 of its std.
    """
    steps = epochs * 2031 // batch
    found = dpdgc_claim.noise_scale(epsilon, batch, 2031, steps, delta)
    assert found == pytest.approx(authors, rel=3e-5)
    assert dpdgc_claim.epsilon(found, batch, 2031, steps, delta) <= epsilon
    step = FixedSizeGaussian(2 * found, batch, 2031, touched_rows=2, replaced=True)
    assert price(Composed((Repeated(step, steps), Gaussian(found / 2**0.5))), delta).epsilon == pytest.approx(edge, rel=1e-3)


def test_batches_share_one_noise_scale_as_published(library: Graph) -> None:
    """Two clips for a gradient, one for the rows; both rows that an edge turns are priced, and provably it costs at most ε."""
    plan, partition, asked = planned(library, 2.0, "published", batch=20, steps=30)
    gradient, rows = (release.mechanism.std for release in plan.schedule.releases)
    assert gradient == pytest.approx(2 * plan.params.clip * rows)
    assert plan.epsilon_published == pytest.approx(2.0, rel=1e-4)
    event = plan.schedule.releases[0].event
    assert isinstance(event, FixedSizeGaussian)
    assert (event.batch_size, event.touched_rows, event.replaced) == (20, 2, True)
    assert event.noise_multiplier == pytest.approx(gradient / plan.params.clip)
    provable, _, _ = planned(library, 2.0, batch=20, steps=30)
    assert 1.98 < provable.provable().epsilon <= 2.0
    scores = dpdgc.predict(plan, train(plan, partition).state, asked)
    assert scores.shape == (library.num_nodes, 4)


def test_an_edge_of_a_batch_is_no_single_row(library: Graph) -> None:
    plan, _, _ = planned(library, 2.0, batch=20, steps=30)
    step, *others = plan.schedule.releases
    one_row = dataclasses.replace(step, event=dataclasses.replace(step.event, touched_rows=1))  # type: ignore[type-var]
    with pytest.raises(PrivacyError, match="release 'gradient' is priced as"):
        dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, releases=(one_row, *others)))


def test_a_batch_is_drawn_among_labelled_rows(library: Graph) -> None:
    plan, partition, _ = planned(library, np.inf, batch=20, steps=3)
    work, met = dpdgc.prepare(plan, partition.subgraphs[0]), []
    for seed in range(3):
        streams = SimpleNamespace(generator=lambda name, seed=seed: np.random.default_rng(seed))
        left = dpdgc._batch(plan, work, streams).numpy()  # type: ignore[arg-type]
        assert (left >= 0).sum() == 20
        assert np.array_equal(left[left >= 0], work.labels.numpy()[left >= 0])
        met.append(tuple(np.flatnonzero(left >= 0)))
    assert len(set(met)) == 3


def test_batches_are_one_client_s(library: Graph) -> None:
    for settings in ({"batch": 10_000}, {"batch": 20, "neighbours": 2}):
        with pytest.raises(ScenarioError, match="batch: 0"):
            planned(library, 1.0, **settings)
    with pytest.raises(ScenarioError, match="batch: 0"):
        planned(library, 1.0, trust=Trust.OWN_CLIENT, batch=20)
