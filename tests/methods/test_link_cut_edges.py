"""Links where edges between clients are known at both ends: what one of them changes, what it costs, and what it teaches."""

import dataclasses
import math

import numpy as np
import pytest

import fedgraph
from fedgraph import privacy, seeds
from fedgraph.cells.task_facts import LinkPredictionCellFacts
from fedgraph.errors import ScenarioError
from fedgraph.learning import links
from fedgraph.methods import link_clear, link_hops, link_owners
from fedgraph.methods.base import Budget, Plan, PublicFacts
from fedgraph.partition import base, uniform
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.types import Graph, Partition, graph_without_edges
from tests.public_facts import public_facts
from tests.trainings import train

VIEWERS = [Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION]


def situation(graph: Graph, viewer: Viewer, cut_edges: str = "protected") -> tuple[Partition, PublicFacts]:
    partition = uniform.split(graph, uniform.Params(clients=3), seeds.seeded_generator(0, "deal"))
    partition = base.with_cut_edges(graph, partition) if cut_edges == "protected" else partition
    facts = public_facts(
        graph.num_nodes, graph.num_features, graph.num_classes, tuple(s.nodes.size for s in partition.subgraphs), viewer,
        public_attributes=graph_without_edges(graph), members=tuple(s.nodes for s in partition.subgraphs), cut_edges=cut_edges,
        public_name="attributes",
    )  # fmt: skip
    return partition, facts


def made(facts: PublicFacts, epsilon: float, **settings: object) -> Plan:
    return link_hops.plan(link_hops.Params(width=16, **settings), facts, Budget(epsilon, 1e-5))  # type: ignore[arg-type]


def messages(plan: Plan, graph: Graph, round_: int, model: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What each client's bound lets through in a round, in the rows of all nodes."""
    partition, _ = situation(graph, plan.facts.viewer)
    found = []
    for subgraph in partition.subgraphs:
        work = link_hops.prepare(plan, subgraph)
        release = plan.schedule.releases[round_]

        class Door:
            def release(self, path: str, value):  # type: ignore[no-untyped-def]
                return value() if callable(value) else value

        sent = link_hops.client(plan, work, model, round_, None, Door())[release.path]  # type: ignore[arg-type]
        rows = np.zeros((graph.num_nodes, sent.shape[1])) if release.path == "aggregate" else sent
        if release.path == "aggregate":
            rows[slice(None) if len(sent) == graph.num_nodes else subgraph.nodes] = sent
        found.append(rows if release.path == "aggregate" else release.bound.enforce(sent))
    return found


@pytest.mark.parametrize("viewer", VIEWERS)
def test_an_edge_at_two_clients_moves_what_is_seen_by_at_most_what_is_priced(viewer: Viewer, library: Graph) -> None:
    """μ² over all that is seen, for edges inside a client and between two, against two ends' events."""
    plan = made(situation(library, viewer)[1], 2.0)
    secure = viewer is Viewer.SERVER_SECURE_AGGREGATION
    model = dict(link_hops.start(plan, np.random.default_rng(0)).model)
    model["rows"] = np.concatenate([model["rows"]] * 2, axis=1)
    owner = np.concatenate([np.full(s.nodes.size, s.client) for s in situation(library, viewer)[0].subgraphs])
    owner = owner[np.argsort(np.concatenate([s.nodes for s in situation(library, viewer)[0].subgraphs]))]
    edges = links.list_all(library.adjacency)
    away = owner[edges[:, 0]] != owner[edges[:, 1]]
    coins = link_hops.supervises(plan, edges)
    largest = {False: 0.0, True: 0.0}
    for apart in (False, True):
        for teaches in (False, True):
            for edge in np.flatnonzero((away == apart) & (coins == teaches))[:6]:
                less = dataclasses.replace(
                    library, adjacency=links.adjacency_of(np.delete(edges, edge, axis=0), library.num_nodes)
                )
                for round_, release in enumerate(plan.schedule.releases):
                    assert isinstance(release.mechanism, GaussianNoise)
                    assert isinstance(release.event, Gaussian)
                    given = model if round_ else {**model, "rows": model["rows"][:, : model["rows"].shape[1] // 2]}
                    pairs = zip(messages(plan, library, round_, given), messages(plan, less, round_, given), strict=True)
                    moves = [one - two for one, two in pairs]
                    std = release.mechanism.std * (math.sqrt(plan.facts.cohort - 1) if secure else 1.0)
                    seen = np.linalg.norm(sum(moves)) if secure else math.hypot(*map(np.linalg.norm, moves))
                    priced = math.sqrt(2) / release.event.noise_multiplier  # two ends
                    assert seen / std <= priced * (1 + 1e-6)
                    largest[apart] = max(largest[apart], seen / std / priced)
    assert min(largest.values()) > 2 / 3, "a price for far less would not be seen"


@pytest.mark.parametrize("viewer", VIEWERS)
@pytest.mark.parametrize("hops", [0, 2])
def test_two_ends_cost_what_an_inner_edge_costs(viewer: Viewer, hops: int, library: Graph) -> None:
    partition, facts = situation(library, viewer)
    plan, dropped = made(facts, 2.0, hops=hops), made(situation(library, viewer, "dropped")[1], 2.0, hops=hops)
    noise = [r.mechanism for r in plan.schedule.releases]
    assert noise == [r.mechanism for r in dropped.schedule.releases]
    assert plan.provable().epsilon == pytest.approx(dropped.provable().epsilon, rel=1e-9)
    assert Assumption.CUT_EDGES_SHARED in plan.guarantee.protection.assumptions
    assert privacy.settle.of_releases(plan.guarantee, train(plan, partition).releases).epsilon == plan.provable().epsilon


@pytest.mark.parametrize("viewer", VIEWERS)
def test_without_noise_a_federation_learns_what_a_curator_learns(viewer: Viewer, library: Graph) -> None:
    partition, facts = situation(library, viewer)
    plan = made(facts, math.inf, hops=2)
    alone = dataclasses.replace(
        facts, viewer=Viewer.CURATOR_TRUSTED,
        clients=(library.num_nodes,),
        cut_edges="dropped", members=(np.arange(library.num_nodes),),
    )  # fmt: skip
    from fedgraph.types import partition_of_one

    whole = train(made(alone, math.inf, hops=2), partition_of_one(library, "one"))
    pairs = links.list_all(library.adjacency)[:200]
    told, known = (link_hops.scores(plan, out.state, pairs) for out in (train(plan, partition), whole))
    assert np.allclose(told, known, atol=1e-3)


def test_edges_in_clear_are_all_there(library: Graph) -> None:
    partition, facts = situation(library, Viewer.SERVER)
    plan = link_clear.plan(link_clear.Params(), facts, Budget(math.inf, 1e-5))
    shown = np.unique(np.concatenate([link_clear.prepare(plan, s) for s in partition.subgraphs]), axis=0)
    assert np.array_equal(shown, links.list_all(library.adjacency))


def test_all_ties_of_a_person_at_two_clients_are_refused_in_one_line(library: Graph) -> None:
    _, facts = situation(library, Viewer.SERVER)
    with pytest.raises(ScenarioError, match=r"a person would be at several clients.*cut_edges: dropped, or method: link_hops"):
        link_owners.plan(link_owners.Params(), facts, Budget(1.0, 1e-5))
    assert link_owners.plan(link_owners.Params(learns=False), facts, Budget(1.0, 1e-5)).provable().epsilon == 0


def test_the_task_gives_edges_between_clients_to_both_where_it_is_asked_to(library: Graph) -> None:
    methods = [{"method": "link_hops", "width": 16}, {"method": "link_clear"}]
    tasks = [
        {"task": "link_prediction", "label": word, "trust": ["curator", "own-client", "sums"], "epsilons": [4],
         "methods": [methods[0], *([{**methods[1], "trust": ["curator", "own-client"]}])], "delta": 1e-5,
         "partition": {"partition": "uniform", "clients": 3}, "cut_edges": word}
        for word in ("dropped", "protected")
    ]  # fmt: skip
    asked = {"name": "cut", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}], "tasks": tasks}
    found = {}
    for row in fedgraph.run(asked, quiet=True).rows:
        facts = row.head.facts_as(LinkPredictionCellFacts)
        shared = row.head.task == "protected" and row.head.world.trust is not Trust.CURATOR
        assert facts.cut_edges_shared == shared
        assert (Assumption.CUT_EDGES_SHARED in row.protection.assumptions) == shared
        assert row.provable <= 4 * (1 + 1e-9) or row.head.method == "link_clear"
        found[row.head.task, row.head.method, row.head.world.trust] = row.mean_of("auc")
    both = found["protected", "link_clear", Trust.OWN_CLIENT]
    assert both == found["protected", "link_clear", Trust.CURATOR]
    assert both > found["dropped", "link_clear", Trust.OWN_CLIENT]
