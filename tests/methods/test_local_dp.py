"""``local_dp``: what encoders and protected training cost, who takes part, what neighbours move, what the server keeps."""

import functools
import hashlib
import math
from typing import Any

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.audit import operating_points
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.federation import rounds
from fedgraph.learning import layouts, shared_gnn
from fedgraph.methods import local_dp
from fedgraph.methods.base import Budget, Plan, PublicFacts
from fedgraph.methods.local_dp import EncoderSettings, clip_gradients
from fedgraph.privacy import sensitivity
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Gaussian, Repeated
from fedgraph.privacy.ledger import Ledger, LedgerAccount, spent_by_client
from fedgraph.privacy.mechanisms.blocks import PerBlock
from fedgraph.privacy.mechanisms.noise import GaussianNoise, MultiBitEncoder
from fedgraph.privacy.sensitivity import SimplexRows
from fedgraph.privacy.units import Assumption, Relation
from fedgraph.types import Graph
from tests.trainings import collection, egos, train

SIZES = ((1, 4), (3,), (2, 5, 1))


def run(epsilon: float = 2.0, **settings: Any) -> tuple[Plan, rounds.RoundsOutcome]:
    """Of three clients with whole graphs, one of them without any training label."""
    partition, facts = collection(SIZES, unlabelled=1)
    plan = local_dp.plan(local_dp.Params(**{"rounds": 4, **settings}), facts, Budget(epsilon, 1e-5))
    return plan, train(plan, partition)


DELTA = 1e-3
NOISY = ("dp_fedavg", "dp_sgd")


dealt = functools.partial(egos, public=True)


def begin(plan: Plan) -> np.ndarray:
    """The parameters that ``train`` begins with."""
    found: np.ndarray = local_dp.start(plan, seeds.seeded_generator(0, "cell", "local_dp", "start")).model["parameters"]
    return found


@pytest.mark.parametrize(
    ("encoder", "attendance"),
    [("multi-bit-node", {"retrieval_period": 2}),
     ("gaussian-as-coded", {"client_fraction": 0.5, "dropout": 0.4, "retrieval_period": 1})],
)  # fmt: skip
def test_declared_is_spent_by_whoever_takes_part(encoder: str, attendance: dict[str, Any]) -> None:
    plan, out = run(encoder=encoder, epsilon_rule="1/n", **attendance)
    ledger = Ledger([LedgerAccount("cell/local_dp", plan.guarantee.protection, plan.guarantee.delta)], out.releases)
    spent, declared = spent_by_client(ledger.of("cell/local_dp")), plan.declared()
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
    partition, facts = dealt(library, 4)
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    params = local_dp.Params(rounds=1, learning_rate=1.0, local_epochs=1, hidden=4)
    plan = local_dp.plan(params, facts, Budget(np.inf, 1e-5))
    begun = begin(plan)
    wanted = begun.copy()
    for size, subgraph in zip(sizes, partition.subgraphs, strict=True):
        work = local_dp.prepare(plan, subgraph)
        step = shared_gnn.gradient(work.network, layouts.to_device(begun[work.where]), work.inputs)
        wanted[work.where] -= size / sum(sizes) * step.cpu().numpy()
    assert len(set(sizes)) > 1
    assert np.allclose(train(plan, partition).state.model["parameters"], wanted, atol=1e-6)


def test_partial_rounds_average_over_those_who_train() -> None:
    """With one client per round the model follows that client's step in full, not its share of all."""
    plan, out = run(np.inf, client_fraction=0.34, rounds=1, learning_rate=1.0, local_epochs=1)
    (who,) = plan.made.attendance.training[0]
    work = local_dp.prepare(plan, collection(SIZES, unlabelled=1)[0].subgraphs[who])
    vector = layouts.to_device(begin(plan)[work.where])
    step = (vector - shared_gnn.gradient(work.network, vector, work.inputs)).numpy()
    assert np.allclose(out.state.model["parameters"][work.where], step, atol=1e-6)


def test_a_client_may_ask_for_a_stricter_epsilon_of_its_own() -> None:
    """Its release alone costs less, and its bits are noisier; the others' stay as they were."""
    plain, _ = run(epsilon=2.0)
    plan, out = run(epsilon=2.0, client_epsilons={1: 0.5})
    ledger = Ledger([LedgerAccount("cell/local_dp", plan.guarantee.protection, plan.guarantee.delta)], out.releases)
    for client, epsilon in enumerate((2.0, 0.5, 2.0)):
        assert price(plan.declared("embedding")[client], 0.0).epsilon == pytest.approx(epsilon)
    assert set(spent_by_client(ledger.of("cell/local_dp"))) == {0, 1, 2}
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


@pytest.mark.parametrize("n", [1, 5, 18])
def test_what_each_encoder_costs(n: int) -> None:
    def pure(encoder: str, **more: Any) -> float:
        return price(EncoderSettings(encoder, 2.0, "epsilon", 4, True, **more).of_graph(n)[1], 0.0).epsilon  # type: ignore[arg-type]

    assert pure("multi-bit", bits=3) == pytest.approx(2.0)
    assert pure("multi-bit-total", bits=3) == pytest.approx(2.0 / n)
    assert pure("multi-bit-node", bits=2) == pytest.approx(2.0 * n)
    assert pure("none") == math.inf
    assert pure("gaussian-as-coded") == math.inf
    encoding = EncoderSettings("multi-bit-node", 2.0, "epsilon", 4, True, 1)
    assert encoding.pure_losses([(30, n), (2,)], [1, 0]) == [pytest.approx([60.0, 2.0 * n]), [0.0]]


def test_released_code_is_a_gaussian_mechanism() -> None:
    """MUTAG's mean size at ε = 1/n: std 1/18, Δ₂ = 6, μ = 108, far beyond any use."""
    mechanism, event = EncoderSettings("gaussian-as-coded", 1.0, "1/n", 2, True).of_graph(18)
    assert mechanism == GaussianNoise(1 / 18)
    assert isinstance(event, Gaussian)
    assert event == Gaussian((1 / 18) / sensitivity.l2(SimplexRows(18), Relation.GRAPH_REPLACE))
    assert event.noise_multiplier == pytest.approx(1 / 108)
    assert price(event, 1e-5).epsilon > 108**2 / 2
    assert price(event, 0.0).epsilon == math.inf
    box = EncoderSettings("gaussian-as-coded", 1.0, "1/n", 64, False).of_graph(18)[1]
    assert isinstance(box, Gaussian)
    assert box.noise_multiplier == pytest.approx((1 / 18) / math.sqrt(18 * 64))


def test_blocks_are_noised_apart() -> None:
    """Changing one graph leaves every other graph's part as it was, under the same coins."""
    mechanism = PerBlock((MultiBitEncoder(0.5, 1), MultiBitEncoder(0.1, 1), GaussianNoise(1.0)), (2, 3, 1))
    value = np.full((6, 4), 0.5)
    other = value.copy()
    other[2:5] = 1.0
    one, two = (mechanism.apply(v, np.random.default_rng(3)) for v in (value, other))
    assert np.array_equal(np.delete(one, [2, 3, 4], axis=0), np.delete(two, [2, 3, 4], axis=0))
    with pytest.raises(PrivacyError, match="covers 6 rows"):
        mechanism.apply(np.ones((5, 4)), np.random.default_rng(0))
    for parts, sizes in (((), ()), ((GaussianNoise(1.0),), (0,))):
        with pytest.raises(PrivacyError, match="one mechanism per block"):
            PerBlock(parts, sizes)


def test_bayes_bound() -> None:
    assert operating_points.best_accuracy(1 / 18) == pytest.approx(0.5139, abs=1e-4)
    assert operating_points.best_accuracy(math.inf) == 1.0
    sizes, labels = np.array([1, 1, 1, 2]), np.array([0, 0, 1, 1])
    assert operating_points.best_accuracy_given(sizes, labels, np.zeros(4)) == pytest.approx(0.75)
    assert operating_points.best_accuracy_given(sizes, labels, np.full(4, math.inf)) == 1.0
    with pytest.raises(PrivacyError):
        operating_points.best_accuracy(math.nan)
    with pytest.raises(PrivacyError, match="two classes"):
        operating_points.best_accuracy_given(np.arange(3), np.arange(3), np.zeros(3))


def plan_of(facts: PublicFacts, epsilon: float = 4.0, **settings: Any) -> Plan:
    """Protected training."""
    given = {"rounds": 3, "hidden": 4, "projection": 8, "training": "dp_fedavg"} | settings
    return local_dp.plan(local_dp.Params(**given), facts, Budget(epsilon, DELTA))


@pytest.mark.parametrize(
    ("training", "updates", "release", "unit"),
    [("dp_fedavg", "sum", "rows", "node"), ("dp_fedavg", "each", "labels", "graph"), ("dp_sgd", "sum", "labels", "graph"),
     ("dp_sgd", "each", "rows", "node"), ("public", "sum", "rows", "graph"), ("none", "sum", "labels", "node")],
)  # fmt: skip
def test_everything_released_stays_within_the_budget(
    training: str, updates: str, unit: str, release: str, library: Graph
) -> None:
    """Both paths composed, for the unit that is stated: at most ε, and not much less."""
    _, facts = dealt(library)
    plan = plan_of(facts, training=training, updates=updates, unit=unit, release=release)
    assert 0.6 * 4.0 < plan.provable().epsilon <= 4.0
    assert plan.guarantee.protection.relation is (Relation.GRAPH_REPLACE if unit == "graph" else Relation.NODE_REPLACE)
    assert Assumption.MODEL_GIVEN not in plan.guarantee.protection.assumptions
    assert (Assumption.UPDATES_SUMMED in plan.guarantee.protection.assumptions) == (training in NOISY and updates == "sum")


def test_a_secure_sum_is_priced_as_sensitivities_that_add_up_before_the_noise(library: Graph) -> None:
    """The worst node's price equals that of one sum in which all its holders' changes lie on one line."""
    _, facts = dealt(library, 12)
    plan = plan_of(facts, unit="node", updates="sum")
    release = next(r for r in plan.schedule.releases if r.path == "model")
    assert isinstance(release.mechanism, GaussianNoise)
    assert facts.holdings is not None
    total = release.mechanism.std * math.sqrt(facts.num_clients - 1)  # one participant takes its own share off
    most = facts.holdings.sum(axis=0).max()
    exact = price(Repeated(Gaussian(total / (2 * plan.params.clip * most)), plan.params.rounds), DELTA)
    assert most > 1
    assert plan.provable("model").epsilon == pytest.approx(exact.epsilon, rel=1e-6)


@pytest.mark.parametrize("training", NOISY)
def test_without_noise_the_server_steps_by_the_mean(training: str, library: Graph) -> None:
    """Of the clients' updates; or against that of their graphs' gradients."""
    partition, facts = dealt(library)
    plan = plan_of(facts, epsilon=math.inf, training=training, clip=1e6, unit="graph", rounds=1)
    begun = begin(plan)
    made = clip_gradients if training == "dp_sgd" else local_dp.update_of
    mean = np.mean([made(plan.params, local_dp.prepare(plan, s), begun) for s in partition.subgraphs], axis=0)
    rate = -plan.params.learning_rate if training == "dp_sgd" else plan.params.server_rate
    assert np.abs(mean).max() > 1e-3
    assert np.allclose(train(plan, partition).state.model["parameters"], begun + rate * mean, atol=1e-5)


def test_cells_that_share_their_training_share_its_noise_whoever_is_first(library: Graph) -> None:
    """Shared rounds are named by what shapes them, so a resumed run finds the same model; another ε has another noise."""
    partition, facts = dealt(library)
    plans = [plan_of(facts, unit="graph", release=r, pooled_by="multi-bit") for r in ("rows", "mean")]
    models = [train(p, partition).state.model["parameters"] for p in plans]
    assert np.array_equal(*models)
    tight, loose = (plan_of(facts, epsilon=e, unit="graph") for e in (2.0, 4.0))
    assert tight.schedule.shared_key != loose.schedule.shared_key
    noises = []
    for plan in (tight, loose):
        release = next(r for r in plan.schedule.releases if r.path == "model")
        assert isinstance(release.mechanism, GaussianNoise)
        noises.append(train(plan, partition).state.model["parameters"] / release.mechanism.std)
    assert abs(np.corrcoef(*noises)[0, 1]) < 0.5, "two budgets must not add one noise twice"


def test_public_training_learns_and_random_does_not(library: Graph) -> None:
    partition, facts = dealt(library)
    found = {}
    for training in ("public", "none"):
        plan = plan_of(facts, training=training, epsilon=math.inf, unit="graph", projection=None, hidden=16)
        rows = train(plan, partition).state.memory.embeddings
        guessed = np.concatenate([r.argmax(axis=1) for r in rows])
        found[training] = float((guessed == np.concatenate([s.graph.labels for s in partition.subgraphs])).mean())
        assert plan.schedule.paths == ("embedding",)
    assert found["public"] > 0.6 > found["none"]


@pytest.mark.parametrize("by", ["gaussian", "multi-bit", "response"])
def test_a_pooled_release_tells_opposite_graphs_apart_at_its_price(by: str, library: Graph) -> None:
    _, facts = dealt(library)
    plan = plan_of(facts, epsilon=1.0, training="none", release="labels", unit="graph", pooled_by=by)
    assert 0.9 < plan.provable().epsilon <= 1.0
    pooled, release, rng = plan.made.pooled, plan.schedule.releases[0], np.random.default_rng(0)
    means = []
    for row in np.eye(facts.num_classes)[:2]:
        value = release.bound.enforce(pooled.value(row))
        means.append(np.mean([pooled.read(release.mechanism.apply(value, rng))[0] for _ in range(3000)], axis=0))
    assert means[0][0] - means[1][0] > 0.1 < means[1][1] - means[0][1]
