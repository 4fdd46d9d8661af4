"""Links in clear, and links where all edges of a person are private: price, owners across clients, and what is learnt."""

import dataclasses
import math
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import roc_auc_score

from fedgraph.data.base.adjacencies import adjacency_of_owners
from fedgraph.learning import links
from fedgraph.methods import link_clear, link_owners
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.types import Graph, GraphProvenance, Subgraph, graph_without_edges, partition_of_one, plain_graph
from tests.public_facts import public_facts
from tests.trainings import train


def test_adamic_adar_is_that_of_networkx(library: Graph) -> None:
    asked = links.draw_pairs(library.num_nodes, 200, np.random.default_rng(2))
    graph = nx.from_scipy_sparse_array(library.adjacency)
    theirs = [score for _, _, score in nx.adamic_adar_index(graph, [tuple(p) for p in asked.tolist()])]
    assert link_clear.adamic_adar(library.adjacency, asked) == pytest.approx(theirs)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As in every process of a run (``runtime.process``): several threads add up in an order that changes the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_the_encoder_learns_and_repeats(library: Graph, model: str) -> None:
    library = library.induced(np.arange(150))
    rows = link_clear.encoder_rows(library, 0, model)
    assert model == "sage" or np.array_equal(rows, link_clear.encoder_rows(library, 0, model))
    edges = links.list_all(library.adjacency)
    against = links.draw_pairs(library.num_nodes, 500, np.random.default_rng(0), library.adjacency)
    score = np.concatenate([np.einsum("ij,ij->i", rows[p[:, 0]], rows[p[:, 1]]) for p in (edges, against)])
    assert roc_auc_score(np.arange(len(score)) < len(edges), score) > 0.8


PEOPLE = 60  # owners of the library's edges


def owned(graph: Graph, rng: np.random.Generator) -> Graph:
    """Every edge has one to three records, each with an owner; owner 0 is in a third of all."""
    edges = links.list_all(graph.adjacency)
    ends = edges[rng.integers(len(edges), size=2 * len(edges))]
    ends = np.concatenate([edges, ends])
    owners = np.where(rng.random(len(ends)) < 1 / 3, 0, rng.integers(1, PEOPLE, size=len(ends)))
    return dataclasses.replace(graph, edge_owners=adjacency_of_owners(ends, owners, graph.num_nodes))


def without(graph: Graph, owner: int) -> Graph:
    """The neighbour: no edge that the owner has a part in."""
    edges = links.list_all(graph.adjacency)
    kept = edges[~(link_owners.owners_of(graph, edges) == owner).any(axis=1)]
    return dataclasses.replace(graph, adjacency=links.adjacency_of(kept, graph.num_nodes))


def plan(graph: Graph, epsilon: float, clients: int, viewer: Viewer, **settings: object) -> Plan:
    parts = np.array_split(np.arange(graph.num_nodes), clients)
    facts = public_facts(
        graph.num_nodes, graph.num_features, graph.num_classes, tuple(map(len, parts)), viewer,
        public_attributes=graph_without_edges(graph), members=tuple(parts), public_name="attributes",
    )  # fmt: skip
    return link_owners.plan(link_owners.Params(**settings), facts, Budget(epsilon, 1e-5))  # type: ignore[arg-type]


def bounded(made: Plan, graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """What a client with ``nodes`` hands to the mechanism."""
    subgraph = Subgraph(0, graph.induced(nodes), nodes)
    return made.schedule.releases[0].bound.enforce(link_owners.prepare(made, subgraph))


def test_owners_survive_cuts_and_repeated_records() -> None:
    ends = np.array([[0, 1], [1, 0], [1, 0], [2, 3], [1, 2]])
    layers = adjacency_of_owners(ends, np.array([4, 0, 4, 2, 1]), 5)
    edges, rows = links.adjacency_of(np.sort(ends, axis=1), 5), sp.csr_array(np.eye(5, dtype=np.float32))
    graph = plain_graph("t", edges, rows, np.zeros(5, int), 1, GraphProvenance("own", ""))
    graph = dataclasses.replace(graph, edge_owners=layers)
    assert link_owners.owners_of(graph, np.array([[0, 1], [1, 2], [2, 3]])).tolist() == [[0, 4], [1, -1], [2, -1]]
    part = graph.induced(np.array([3, 2, 1]))
    assert link_owners.owners_of(part, np.array([[0, 1], [1, 2]])).tolist() == [[2, -1], [1, -1]]


@pytest.mark.parametrize(
    ("clients", "viewer"), [(1, Viewer.CURATOR_TRUSTED), (3, Viewer.SERVER), (3, Viewer.SERVER_SECURE_AGGREGATION)]
)
def test_an_owner_moves_what_is_seen_by_at_most_what_is_priced(clients: int, viewer: Viewer, library: Graph) -> None:
    """At all clients together: μ² adds up over messages, changes add up inside a sum."""
    made = plan(library, 2.0, clients, viewer, unit="entity", limit=3, width=2)
    graph, release = owned(library, np.random.default_rng(3)), made.schedule.releases[0]
    assert made.guarantee.protection.relation is Relation.ENTITY_LINKS
    assert isinstance(release.mechanism, GaussianNoise)
    assert isinstance(release.event, Gaussian)
    hidden = math.sqrt(made.facts.cohort - 1) if viewer is Viewer.SERVER_SECURE_AGGREGATION else 1.0
    std = release.mechanism.std * hidden
    for owner in (0, 1, 7):
        moves = [
            np.linalg.norm(bounded(made, graph, part) - bounded(made, without(graph, owner), part))
            for part in made.facts.members
        ]
        summed = viewer is Viewer.SERVER_SECURE_AGGREGATION
        mu = (sum(moves) if summed else math.hypot(*moves)) / std
        assert mu <= 1 / release.event.noise_multiplier
        if owner == 0:
            assert mu > 2 / 3 / release.event.noise_multiplier * 0.9, "a price for far less would not be seen"
    if clients == 3 and viewer is Viewer.SERVER:
        told = [Gaussian(release.event.noise_multiplier * math.sqrt(3))] * 3
        assert price(Composed(tuple(told)), 1e-5).epsilon == pytest.approx(made.provable().epsilon, rel=1e-6)
    assert made.provable().epsilon <= 2.0


def test_more_is_learnt_than_the_cosine_says_with_noise_too(library: Graph) -> None:
    """Links that follow one column and no other: the cosine alone cannot say which."""
    rng = np.random.default_rng(0)
    groups, noise = np.repeat(np.arange(4), 50), rng.integers(0, 6, size=200)
    features = np.concatenate([np.eye(4)[groups], np.eye(6)[noise]], axis=1).astype(np.float32)
    pairs = links.draw_pairs(200, 12_000, rng)
    pairs = np.unique(pairs[(groups[pairs[:, 0]] == groups[pairs[:, 1]]) | (rng.random(len(pairs)) < 0.02)], axis=0)
    graph = dataclasses.replace(
        library.induced(np.arange(180)), adjacency=links.adjacency_of(pairs, 200), features=sp.csr_array(features),
        labels=groups, num_classes=4,
    )  # fmt: skip
    against = links.draw_pairs(200, 2000, rng, graph.adjacency)

    def auc(epsilon: float, **settings: object) -> float:
        made = plan(graph, epsilon, 1, Viewer.CURATOR_TRUSTED, **settings)
        out = train(made, partition_of_one(graph, "one curator"))
        positive, negative = (link_owners.scores(made, out.state, p) for p in (pairs, against))
        return links.measure_scores(positive, negative)["auc"]

    clear, private, cosine = auc(np.inf, limit=60), auc(20.0, limit=60), auc(np.inf, width=0)
    assert min(clear, private) > cosine + 0.03
    assert private == pytest.approx(clear, abs=0.05)
