"""DP-SGD on pairs: what one edge moves against its price, the price against the noise, and what is learnt."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning import links
from fedgraph.methods import link_hops
from fedgraph.methods.base import Budget, Plan, PlanStreams
from fedgraph.partition import base, uniform
from fedgraph.privacy import desk, priced_noise, sensitivity
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Gaussian, PoissonGaussian, Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.priced_noise import NoisePlace
from fedgraph.privacy.sensitivity import ClippedSum, EdgeClippedSum
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.types import Graph, Subgraph, graph_without_edges
from tests.public_facts import public_facts


def plan(graph: Graph, **settings: object) -> Plan:
    facts = public_facts(
        graph.num_nodes, graph.num_features, graph.num_classes, (graph.num_nodes,), Viewer.CURATOR_TRUSTED,
        public_attributes=graph_without_edges(graph), members=(np.arange(graph.num_nodes),), public_name="attributes",
    )  # fmt: skip
    return link_hops.plan(link_hops.Params(decoder="steps", **settings), facts, Budget(2.0, 1e-5))  # type: ignore[arg-type]


@pytest.mark.parametrize("hops", [0, 2])
def test_hops_and_steps_together_cost_the_budget_and_with_two_thirds_of_the_noise_more(library: Graph, hops: int) -> None:
    made = plan(library, hops=hops, steps=30)
    step = made.schedule.releases[-1]
    assert isinstance(step.event, PoissonGaussian)
    assert step.event.touched_rows == 1
    assert isinstance(step.mechanism, GaussianNoise)
    assert step.mechanism.std == pytest.approx(step.event.noise_multiplier)
    hop = [Repeated(r.event, hops) for r in made.schedule.releases[:-1] if isinstance(r.event, Gaussian)]

    def cost(noise: float) -> float:
        less = dataclasses.replace(step.event, noise_multiplier=step.event.noise_multiplier * noise)
        return price(Composed((*hop, Repeated(less, 30))), 1e-5).epsilon

    assert len(hop) == (1 if hops else 0)
    assert 1.99 < cost(1.0) <= 2.0
    assert cost(2 / 3) > 2.1
    assert price(desk.declared(made.schedule.releases, 0), 1e-5).epsilon == pytest.approx(cost(1.0), rel=1e-6)


def test_two_thirds_of_the_noise_at_the_full_price_is_no_plan(library: Graph) -> None:
    made = plan(library)
    step = made.schedule.releases[-1]
    for share, bound in ((2 / 3, step.bound), (1.0, EdgeClippedSum(1.5, 10, "it"))):
        less = dataclasses.replace(step, bound=bound, mechanism=GaussianNoise(step.mechanism.std * share))
        with pytest.raises(PrivacyError, match="is priced as"):
            priced_noise.require(less, NoisePlace(bound, made.guarantee.protection, per_end=False))
    with pytest.raises(PrivacyError, match="is priced as"):
        priced_noise.require(step, NoisePlace(step.bound, made.guarantee.protection, per_end=True))
    of_nodes = dataclasses.replace(step, bound=ClippedSum(1.0, 10, "it"))
    with pytest.raises(PrivacyError, match="one unit may change several rows"):
        priced_noise.require(of_nodes, NoisePlace(of_nodes.bound, made.guarantee.protection, per_end=False))


@pytest.mark.parametrize("relation", [Relation.NODE_ZERO_OUT, Relation.NODE_LINKS, Relation.ENTITY_LINKS])
def test_a_row_of_an_edge_says_nothing_of_other_units(relation: Relation) -> None:
    with pytest.raises(PrivacyError, match="one unit may change several rows"):
        sensitivity.l2(EdgeClippedSum(1.0, 10, "it"), relation)


def test_an_edge_moves_a_step_by_its_clip_and_no_negative(library: Graph) -> None:
    """All coins fall for it: every edge of the graph is a row, and what the server adds depends on no edge."""
    made = plan(library, hops=0, sampling_rate=1.0)
    state = link_hops.start(made, np.random.default_rng(0))
    streams, bound = PlanStreams(0, ("c", "client", 0, "round", 0)), made.schedule.releases[-1].bound

    def value(graph: Graph) -> np.ndarray:
        work = link_hops.prepare(made, Subgraph(0, graph, np.arange(graph.num_nodes)))
        return bound.enforce(link_hops._gradient(made, work, state.model, streams))

    edges, whole = links.list_all(library.adjacency), value(library)
    moves = []
    for gone in range(0, len(edges), 7):
        kept = links.adjacency_of(np.delete(edges, gone, axis=0), library.num_nodes)
        moves.append(np.linalg.norm(whole - value(dataclasses.replace(library, adjacency=sp.csr_array(kept)))))
    assert 2 / 3 < max(moves) <= sensitivity.l2(bound, Relation.EDGE_UNDIRECTED) == 1.0


def test_an_edge_between_clients_is_drawn_at_one_of_them(library: Graph) -> None:
    partition = uniform.split(library, uniform.Params(clients=3), seeds.seeded_generator(0, "deal"))
    partition = base.with_cut_edges(library, partition)
    facts = public_facts(
        library.num_nodes, library.num_features, library.num_classes, tuple(s.nodes.size for s in partition.subgraphs),
        Viewer.SERVER, public_attributes=graph_without_edges(library), members=tuple(s.nodes for s in partition.subgraphs),
        cut_edges="protected", public_name="attributes",
    )  # fmt: skip
    made = link_hops.plan(link_hops.Params(decoder="steps", hops=0), facts, Budget(2.0, 1e-5))
    drawn = np.concatenate([link_hops.prepare(made, part).supervision for part in partition.subgraphs])
    assert sorted(map(tuple, drawn.tolist())) == [tuple(pair) for pair in links.list_all(library.adjacency).tolist()]
    assert 1.99 < made.provable().epsilon <= 2.0
    with pytest.raises(ScenarioError, match="write cut_edges: dropped, or hops: 0"):
        link_hops.plan(link_hops.Params(decoder="steps"), facts, Budget(2.0, 1e-5))
