"""Local DP embeddings: what each encoder costs, who takes part, and what the server keeps."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.learning import layouts
from fedgraph.methods import local_dp
from fedgraph.methods.base import Budget, Plan, PlanStreams, PublicFacts
from fedgraph.partition import ego
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.events import Composed, Gaussian
from fedgraph.privacy.ledger import Ledger, LedgerAccount, spent_by_client
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.types import Graph, GraphProvenance, Partition, Subgraph, plain_graph
from tests.public_facts import public_facts
from tests.trainings import train

SIZES = ((1, 4), (3,), (2, 5, 1))


def collection() -> tuple[Partition, PublicFacts]:
    """Three clients with whole graphs, one of them without any training label."""
    rng, subgraphs, first = np.random.default_rng(0), [], 0
    for client, sizes in enumerate(SIZES):
        blocks = [sp.csr_array(np.ones((n, n)) - np.eye(n)) for n in sizes]
        n = sum(sizes)
        labels = np.full(n, -1) if client == 1 else np.repeat(np.arange(len(sizes)) % 2, sizes)
        features = sp.csr_array(rng.random((n, 3)).astype(np.float32))
        graph = plain_graph("c", sp.csr_array(sp.block_diag(blocks)), features, labels, 2, GraphProvenance("own", "test"))
        subgraphs.append(Subgraph(client, graph, np.arange(first, first + n)))
        first += n
    sizes_of = tuple(map(sum, SIZES))
    return Partition(tuple(subgraphs), True, 0, "test", from_edges=False, from_labels=False), public_facts(
        first, 3, 2, sizes_of, Viewer.SERVER, graphs=SIZES
    )


def run(epsilon: float = 2.0, **settings: Any) -> tuple[Plan, rounds.RoundsOutcome]:
    partition, facts = collection()
    plan = local_dp.plan(local_dp.Params(**{"rounds": 4, **settings}), facts, Budget(epsilon, 1e-5))
    engine = SerialRuntime()
    return plan, rounds.run(engine, engine.share("p", partition), plan, 0, ("cell",), ("common",), rounds.RoundPrefixes())


ENCODERS = ("multi-bit-node", "gaussian-as-coded")


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "attendance", [{"retrieval_period": 2}, {"client_fraction": 0.5, "dropout": 0.4, "retrieval_period": 1}]
)
def test_declared_is_spent_by_whoever_takes_part(encoder: str, attendance: dict[str, Any]) -> None:
    plan, out = run(encoder=encoder, epsilon_rule="1/n", **attendance)
    ledger = Ledger([LedgerAccount("cell", plan.guarantee.protection, plan.guarantee.delta)], out.releases)
    spent, declared = spent_by_client(ledger.of("cell")), plan.declared()
    for client in range(3):
        own = spent.get(client, Composed(()))
        assert price(own, plan.guarantee.delta).epsilon == pytest.approx(price(declared[client], plan.guarantee.delta).epsilon)
    planned = sum(r.count for r in plan.schedule.releases for _ in range(1 if r.client is not None else 3))
    assert planned == sum(r.count for r in out.releases)


def test_each_graph_gets_its_own_epsilon() -> None:
    """1/|V|: the smallest graph, one node, pays 1; the client's price is its worst graph's."""
    plan, _ = run(1.0, epsilon_rule="1/n")
    assert plan.made.graph_epsilons[2] == pytest.approx([1 / 2, 1 / 5, 1.0])
    assert price(plan.declared("embedding")[1], 0.0).epsilon == pytest.approx(1 / 3)
    assert plan.provable("embedding").epsilon == pytest.approx(1.0, rel=1e-3)
    assert plan.epsilon_published == 1.0
    assert plan.provable("model").epsilon == math.inf
    assert plan.guarantee.protection.relation is Relation.GRAPH_REPLACE
    coded, _ = run(1.0, encoder="gaussian-as-coded", epsilon_rule="1/n")
    (sent,) = [r for r in coded.schedule.releases if r.path == "embedding" and r.client == 2]
    assert sent.event == Gaussian((1 / 5) / math.sqrt(10)), "the largest graph is the worst for the released code"


def test_the_server_keeps_what_all_clients_were_sent() -> None:
    """Copies after rounds 2 and 4 of 4; keeping them changes nothing and releases nothing."""
    plain, kept = run(rounds=4)[1], run(rounds=4, keep_every=2)[1]
    assert len(plain.state.memory.kept) == 0
    first, last = kept.state.memory.kept
    assert np.array_equal(first, run(rounds=2)[1].state.model["parameters"])
    assert np.array_equal(last, plain.state.model["parameters"])
    assert kept.releases == plain.releases


def test_clients_weigh_as_many_nodes_as_they_hold(library: Graph) -> None:
    """FedAvg of one step each (McMahan et al. 2017), where clients differ in size."""
    from fedgraph.learning import shared_gnn

    partition = ego.split(library, ego.Params(clients=4), seeds.seeded_generator(0, "ego"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(300, library.num_features, 4, sizes, Viewer.SERVER, partition.holdings(300))
    params = local_dp.Params(rounds=1, learning_rate=1.0, local_epochs=1, hidden=4)
    plan = local_dp.plan(params, facts, Budget(np.inf, 1e-5))
    wanted = local_dp.start(plan, seeds.seeded_generator(0, "cell", "local_dp", "start")).model["parameters"].copy()
    begun = wanted.copy()
    for size, subgraph in zip(sizes, partition.subgraphs, strict=True):
        work = local_dp.prepare(plan, subgraph)
        step = shared_gnn.gradient(work.network, layouts.to_device(begun[work.where]), work.inputs)
        wanted[work.where] -= size / sum(sizes) * step.cpu().numpy()
    assert len(set(sizes)) > 1
    assert np.allclose(train(plan, partition).state.model["parameters"], wanted, atol=1e-6)


def test_a_graph_is_embedded_from_itself_and_the_broadcast_model_alone() -> None:
    """What PerBlock rests on: replacing one graph of a client leaves its other graphs' rows exactly as they were."""
    plan, out = run(np.inf)
    partition, _ = collection()
    mine = partition.subgraphs[0]
    changed = mine.graph.features.toarray()
    changed[1:] = [9.0, 0.0, 0.0]  # the second graph of client 0: rows 1 … 4
    graph = plain_graph("c", mine.graph.adjacency, sp.csr_array(changed), mine.graph.labels, 2, mine.graph.provenance)
    other = Partition(
        (Subgraph(0, graph, mine.nodes), *partition.subgraphs[1:]), True, 0, "test", from_edges=False, from_labels=False
    )
    model = {"parameters": out.state.model["parameters"]}
    rows = []
    for dealt in (partition, other):
        desk = Desk("cell", 0, plan.params.rounds, plan.schedule.releases, np.random.default_rng(0))
        work = local_dp.prepare(plan, dealt.subgraphs[0])
        streams = PlanStreams(0, ("cell",))
        rows.append(local_dp.client(plan, work, model, plan.params.rounds, streams, desk)["embedding"].value)
    assert np.array_equal(rows[0][:1], rows[1][:1])
    assert not np.array_equal(rows[0][1:], rows[1][1:])


def test_a_client_may_ask_for_a_stricter_epsilon_of_its_own() -> None:
    """Its release alone costs less, and its bits are noisier; the others' stay as they were."""
    plain, _ = run(epsilon=2.0)
    plan, out = run(epsilon=2.0, client_epsilons={1: 0.5})
    ledger = Ledger([LedgerAccount("cell", plan.guarantee.protection, plan.guarantee.delta)], out.releases)
    for client, epsilon in enumerate((2.0, 0.5, 2.0)):
        assert price(plan.declared("embedding")[client], 0.0).epsilon == pytest.approx(epsilon)
    assert set(spent_by_client(ledger.of("cell"))) == {0, 1, 2}
    assert plan.made.sent[0] == plain.made.sent[0]
    assert plan.made.graph_epsilons[1] == pytest.approx([0.5])
    assert plan.fingerprint != plain.fingerprint, "noise is never shared between settings"
    one = run(epsilon=math.inf, client_epsilons={0: 1.0})[0]
    assert one.made.graph_epsilons[0] == pytest.approx([1.0, 1.0])
    assert not math.isfinite(one.made.graph_epsilons[1][0])


@pytest.mark.parametrize(("own", "why"), [({1: 3.0}, "stricter"), ({7: 1.0}, "allowed: 0 … 2")])
def test_an_own_epsilon_above_the_promise_or_of_nobody_is_refused(own: Any, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        run(epsilon=2.0, client_epsilons=own)


def test_the_name_of_a_training_is_that_of_the_printed_tables() -> None:
    """A setting more or less in it draws the noise of every training anew: ``benchmarks.same_results`` finds other numbers."""
    key = local_dp.Params().training_key
    assert hashlib.sha256(key.encode()).hexdigest()[:16] == "ec3c4ba36776ead5", key


@pytest.mark.parametrize(
    "settings",
    [{"model": "gcn", "optimiser": "momentum"}, {"model": "gin", "embedding": "hidden"}, {"model": "gin", "optimiser": "adam"},
     {"model": "gin", "batch_size": 1, "local_epochs": 2}],
)  # fmt: skip
def test_every_model_runs_on_one_node_graphs_and_unlabelled_clients(settings: dict[str, Any]) -> None:
    _, out = run(np.inf, hidden=4, layers=2, learning_rate=0.1, **settings)
    for rows, sizes in zip(out.state.memory.embeddings, SIZES, strict=True):
        assert rows.shape[0] == sum(sizes)
        assert np.isfinite(rows).all()
        assert rows.min() >= 0
        assert rows.max() <= 1


def test_partial_rounds_average_over_those_who_train() -> None:
    """With one client per round the model follows that client's step in full, not its share of all."""
    plan, out = run(np.inf, client_fraction=0.34, rounds=1, learning_rate=1.0, local_epochs=1)
    (who,) = plan.made.attendance.training[0]
    partition, _ = collection()
    work = local_dp.prepare(plan, partition.subgraphs[who])
    from fedgraph.learning import shared_gnn

    begin = local_dp.start(plan, seeds.seeded_generator(0, "common", "start")).model["parameters"]
    vector = layouts.to_device(begin[work.where])
    step = (vector - shared_gnn.gradient(work.network, vector, work.inputs)).numpy()
    assert np.allclose(out.state.model["parameters"][work.where], step, atol=1e-6)
