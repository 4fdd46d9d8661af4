"""DPAR: its noise-free form, its ledger, what one node can change on adversarial graphs, and bad input."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from benchmarks.pagerank_oracle import published_loop
from fedgraph import seeds
from fedgraph.errors import ScenarioError
from fedgraph.learning import StatefulDescent, aggregated_rows, unit_matrix_rows
from fedgraph.methods import dpar
from fedgraph.methods.base import Budget, Plan, PlanStreams
from fedgraph.privacy import sensitivity
from fedgraph.privacy.events import EpochGaussian, Repeated
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.types import Graph, GraphProvenance, partition_of_one, plain_graph
from tests.graphs import zeroed
from tests.methods.test_situations import Watched
from tests.public_facts import public_facts
from tests.trainings import train

SHORT = {"epochs": 3, "num_sources": 8, "batch_size": 20, "hidden": 6}
PRIVATE = ["em0", "em1", "gm"]


def graph_of(adjacency: np.ndarray, seed: int = 0, classes: int = 3) -> Graph:
    rng = np.random.default_rng(seed)
    n = adjacency.shape[0]
    features = sp.csr_array(rng.random((n, 10)).astype(np.float32))
    links = sp.csr_array(np.triu(adjacency, 1) + np.triu(adjacency, 1).T, dtype=float)
    return plain_graph("made", links, features, rng.integers(classes, size=n), classes, GraphProvenance("synthetic", "a test"))


def random_graph(n: int = 60, density: float = 0.1, seed: int = 0) -> Graph:
    return graph_of(np.random.default_rng(seed).random((n, n)) < density, seed)


def planned(graph: Graph, epsilon: float = 4.0, reading: Any = "provable", clients: int = 1, **settings: Any) -> Plan:
    viewer = settings.pop("viewer", Viewer.CURATOR_TRUSTED if clients == 1 else Viewer.SERVER)
    sizes = tuple(part.size for part in np.array_split(np.arange(graph.num_nodes), clients))
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, sizes, viewer)
    return dpar.plan(dpar.Params(**(SHORT | settings)), facts, Budget(epsilon, 1e-3, reading))


def trained(plan: Plan, graph: Graph) -> np.ndarray:
    found: np.ndarray = train(plan, partition_of_one(graph, "one curator")).state.model["parameters"]
    return found


def watched(plan: Plan) -> Watched:
    return Watched(plan, 0, PlanStreams(0, ("watched",)), None)


class Coins(PlanStreams):
    """Streams whose sampling coins are given."""

    def __init__(self, sample: np.ndarray) -> None:
        super().__init__(0, ("cell", "client", 0, "round", 0))
        object.__setattr__(self, "sample", sample)

    def generator(self, name: str) -> Any:
        class Given:
            def random(self, size: int, coins: np.ndarray = self.sample) -> np.ndarray:  # type: ignore[attr-defined]
                return np.where(coins, 0.0, 1.0)

        return Given() if name == "sample" else super().generator(name)


def test_without_noise_it_is_the_plain_algorithm() -> None:
    """ε = ∞ against the algorithm written down again: clipped PageRank rows, top K, aggregated Adam steps."""
    graph = random_graph()
    plan = planned(graph, math.inf, sampled=1.0, num_sources=60, clip_entry=0.02)
    found = trained(plan, graph)
    streams = PlanStreams(0, ("cell", "dpar", "client", 0, "round", 0), plan.fingerprint)
    order = streams.generator("sample").choice(60, 60, replace=False)
    view = graph.induced(order)
    vectors = np.array([np.clip(published_loop(view.adjacency, s), 0, 0.02) for s in range(60)])
    chosen = aggregated_rows.choose_largest(vectors, 2)
    pi = np.zeros((60, 60))
    pi[np.arange(60)[:, None], chosen] = 0.5
    columns = np.abs(pi * (1 - np.eye(60))).sum(axis=0)
    pi = np.where(np.eye(60) == 1, pi, pi / np.maximum(columns, 1.0))
    rows = aggregated_rows.prepare(unit_matrix_rows(view.features), sp.csr_array(pi), view.labels)
    layout = plan.made.layout
    follower = StatefulDescent(dpar.start(plan, seeds.seeded_generator(0, "cell", "dpar", "start")).model["parameters"], 0.005)
    coins = streams.generator("batches")
    for _ in range(9):
        batch = np.flatnonzero(coins.random(60) < 20 / 60)
        follower.step(aggregated_rows.clipped_sum(layout, follower.vector, rows, batch, 1.0), 1 / 20)
    assert found == pytest.approx(follower.vector, abs=1e-6)


STAR = np.zeros((40, 40))
STAR[0, 1:] = 1
DOUBLE_STAR = STAR.copy()
DOUBLE_STAR[1, 2:] = 1
BRIDGE = np.zeros((40, 40))
BRIDGE[:20, :20] = 1
BRIDGE[20:, 20:] = 1
BRIDGE[19, :] = 1
WORST = {"star": STAR, "two hubs": DOUBLE_STAR, "cliques on a bridge": BRIDGE, "empty": np.zeros((40, 40))}


@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("variant", PRIVATE)
def test_first_stage_never_moves_more_than_its_sensitivity(name: str, variant: str) -> None:
    graph = graph_of(WORST[name])
    plan = planned(graph, variant=variant, sampled=1.0, num_sources=40)
    bound = plan.schedule.releases[0].bound
    reached = 0.0
    for node in (0, 1, 19, 39):
        worlds = []
        for world in (graph, zeroed(graph, node)):
            desk = watched(plan)
            dpar.choose(plan, world, Coins(np.ones(40, bool)), desk)
            worlds.append(desk.seen["neighbours"][0])
        moved = worlds[0] - worlds[1]
        if variant == "gm":
            allowed = sensitivity.l2(bound, Relation.NODE_ZERO_OUT)
            reached = max(reached, float(np.linalg.norm(moved)) / allowed)
        else:
            reached = max(reached, float(np.abs(moved).max()) / plan.params.clip_entry)
    assert reached <= 1 + 1e-12
    if name == "star":
        assert reached > 0.3, "a removed hub changes every row: nothing below the order of the stated sensitivity would do"


@pytest.mark.parametrize("variant", PRIVATE)
def test_sampled_and_zeroed_looks_like_not_sampled(variant: str) -> None:
    """Amplification of all that follows needs it: with the same coins and noise every other row is the same, entry by entry."""
    graph, coins = graph_of(DOUBLE_STAR), np.random.default_rng(3).random(40) < 0.6
    plan = planned(graph, 20.0, variant=variant, sampled=0.5)
    for node in np.flatnonzero(coins)[:6]:
        without = np.where(np.arange(40) == node, False, coins)
        worlds = ((zeroed(graph, node), coins), (graph, without))
        given, absent = (dpar.choose(plan, world, Coins(drawn), watched(plan)) for world, drawn in worlds)
        rows = (
            sp.csr_array((r.rows.value, r.rows.column, r.rows.start), shape=(r.num_rows, 40)).toarray()[r.labels >= 0]
            for r in (given, absent)
        )
        assert np.array_equal(*rows)
        assert np.array_equal(given.features.value, absent.features.value)


@pytest.mark.parametrize(("share", "size"), [(0.0425, 3), (0.5, 30)])
def test_a_fixed_sample_amplifies_by_its_true_rate(share: float, size: int) -> None:
    """max(1, round(q'n)) nodes of n are drawn, which is the rate that the theorem is about; and rows count as replaced."""
    graph = random_graph(60)
    plan, coins = (planned(graph, 4.0, reading, variant="features", sampled=share) for reading in ("published", "provable"))
    assert (plan.guarantee.sampled_once, coins.guarantee.sampled_once) == (size / 60, share)
    assert plan.schedule.releases[-1].event.event.replaced

    def present(made: Plan, seed: int) -> int:
        streams = PlanStreams(seed, ("cell", "client", 0, "round", 0))
        return int((dpar.choose(made, graph, streams, watched(made)).labels >= 0).sum())

    assert {present(plan, seed) for seed in range(5)} == {size}
    assert stats.binomtest(sum(present(coins, seed) for seed in range(100)), 6000, share).pvalue > 1e-6


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"clients": 3, "top": 50}, "top = 50 neighbours, but the smallest client has 20 candidate nodes"),
        ({"sampled": 1.5}, "allowed: a share in"),
        ({"batches": "fixed", "sampled": 0.5}, "by rank"),  # ranks would tell who was sampled
        # one step visits some row as a whole pass does, so a round of one step has no price but that of a pass
        ({"clients": 3, "batches": "fixed", "sampled": 1.0, "epochs": 2}, "whole epochs of 3 steps in each round"),
    ],
)
def test_what_cannot_be_priced_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        planned(random_graph(60), **settings)


def test_a_round_of_whole_epochs_has_the_price_of_passes_and_clients_know_their_sample() -> None:
    plan = planned(random_graph(60), clients=3, batch_size=60, batches="fixed", sampled=1.0, epochs=2)
    assert plan.schedule.rounds == 2
    assert plan.schedule.releases[-1].event == Repeated(EpochGaussian(plan.made.noise.sgd, 1, 2, replaced=False), 1)
    for viewer in (Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION):
        assert planned(random_graph(90), 4.0, clients=3, viewer=viewer).guarantee.sampled_once is None


@pytest.mark.parametrize("reading", ["published", "provable"])
def test_fixed_batches_visit_every_row_once_an_epoch(reading: str) -> None:
    graph = random_graph(60)
    plan = planned(graph, 4.0, reading, batches="fixed", sampled=1.0)
    sizes = plan.made.sizes
    batches = dpar.Batches([(60, PlanStreams(0, ("cell",)))], sizes, True, 0)
    visits = np.bincount(np.concatenate([batches.next() for _ in range(sizes.steps)]), minlength=60)
    assert (visits == plan.params.epochs).all()
    if reading == "provable":
        assert 3.9 < plan.provable().epsilon <= 4.0
    assert np.isfinite(trained(plan, graph)).all()


@pytest.mark.parametrize("variant", [*PRIVATE, "random", "none"])
def test_isolated_nodes_missing_classes_empty_features_and_tiny_budgets_run(variant: str) -> None:
    graph = graph_of(np.zeros((40, 40)), classes=5)
    empty = dataclasses.replace(graph, features=sp.csr_array((40, 10), dtype=np.float32), labels=np.zeros(40, np.int64))
    for epsilon, reading in ((4.0, "provable"), (1e-3, "provable"), (1e-3, "published")):
        plan = planned(empty, epsilon, reading, variant=variant)
        assert np.isfinite(trained(plan, empty)).all()
        assert reading == "published" or variant == "none" or plan.provable().epsilon <= epsilon
        assert any("too small" in note for note in plan.notes) == (epsilon < 1 and variant != "none")


@pytest.mark.parametrize(("variant", "reading"), [("em0", "provable"), ("gm", "published")])
def test_the_public_share_is_the_smallest_at_which_an_entry_can_stand_out(variant: str, reading: Any) -> None:
    """Noise that drowns every entry gets the least share; what needs no more than a third of the budget gets a third."""
    given = {"variant": variant, "reading": reading}
    drowned = planned(random_graph(), 1.0, split="public", **given)
    assert drowned.made.noise == planned(random_graph(), 1.0, split=0.1, **given).made.noise
    rich = planned(random_graph(), 2000.0, split="public", num_sources=1, sampled=1.0, **given)
    assert rich.made.noise.choice * (math.sqrt(2 * math.log(60)) if variant == "gm" else math.log(60)) <= 1
