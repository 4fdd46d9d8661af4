"""DP-SGD on pairs: what one edge moves against its price, the price against the noise, and what is learnt."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.learning import links
from fedgraph.methods import link_hops
from fedgraph.methods.base import Budget, Plan, PlanStreams
from fedgraph.privacy import sensitivity
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, PoissonGaussian, Repeated
from fedgraph.privacy.sensitivity import EdgeClippedSum
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
    *before, step = made.schedule.releases
    assert isinstance(step.event, PoissonGaussian)

    def cost(noise: float) -> float:
        less = dataclasses.replace(step.event, noise_multiplier=step.event.noise_multiplier * noise)
        return price(Composed((*(Repeated(r.event, hops) for r in before), Repeated(less, 30))), 1e-5).epsilon

    assert len(before) == (1 if hops else 0)
    assert 1.99 < cost(1.0) <= 2.0 < 2.1 < cost(2 / 3)
    assert made.provable().epsilon == pytest.approx(cost(1.0), rel=1e-6)


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
