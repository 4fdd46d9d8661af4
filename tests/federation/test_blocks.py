"""Many clients: fixed blocks, sums in one order, and blocks computed at once, with the one-client loop as oracle."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedgraph import plugins, privacy, seeds
from fedgraph.errors import BudgetExceededError, PrivacyError, RuntimeFailure
from fedgraph.federation import client, messages, server
from fedgraph.federation.messages import BlockMessage, ClientJob, ClientMessage
from fedgraph.methods import dpar, features
from fedgraph.methods.base import Budget, Plan, method_kinds
from fedgraph.partition import base, uniform
from fedgraph.privacy.desk import Desk, DeskSum, PlannedRelease
from fedgraph.privacy.events import Gaussian, PureDP
from fedgraph.privacy.ledger import merged
from fedgraph.privacy.mechanisms.noise import GaussianNoise, KaryResponse, LaplaceNoise
from fedgraph.privacy.sensitivity import Box, ClippedSum, L2Ball, Unbounded
from fedgraph.privacy.trust import Trust
from fedgraph.runtime import base as runtimes
from fedgraph.runtime.base import OnRuntimeRound
from fedgraph.runtime.counts import RuntimeCountPath, RuntimeCountTally
from fedgraph.runtime.serial import SerialClients, SerialRuntime
from fedgraph.types import Graph, Partition
from tests.graphs import same
from tests.trainings import deal, difference, train

CLIENTS = 40
ROUNDING = 2e-4  # of a sum's largest entry, after several rounds in float32
QUICK = {("features", Trust.SUMS), ("features", Trust.OWN_CLIENT)}
SUMMED = [  # every method in the first situation that it declares
    pytest.param(name, trusted, id=f"{name}-{trusted.value}", marks=() if (name, trusted) in QUICK else pytest.mark.slow)
    for name in plugins.names("methods")
    if method_kinds.load(name).OFFERS.kind == "classifier"
    for trusted in method_kinds.load(name).OFFERS.situations[0].trusted
    if trusted is not Trust.CURATOR
]


class Several(SerialRuntime):
    """A serial runtime that deals as a pool of ``workers`` would."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = workers

    def clients(self, path: RuntimeCountPath, on_round: OnRuntimeRound) -> SerialClients:
        return SerialClients(RuntimeCountTally(), path, on_round, self.workers)


def planned(name: str, trusted: Trust, graph: Graph, epsilon: float) -> tuple[Plan, Partition]:
    method = method_kinds.load_classifier(name)
    situation = method.OFFERS.situations[0]
    _, partition, facts = deal(graph, situation.given, trusted.viewer, CLIENTS)
    return method.plan(method.Params(**situation.settings), facts, Budget(epsilon, 1e-3)), partition


def secure(graph: Graph, epsilon: float = 2.0, steps: int = 3) -> tuple[Plan, Partition]:
    plan, partition = planned("features", Trust.SUMS, graph, epsilon)
    return features.plan(features.Params(steps=steps), plan.facts, Budget(epsilon, 1e-3)), partition


@pytest.mark.parametrize("count", [1, 16, 17, 40, 10_000])
def test_every_client_is_in_one_block_and_cuts_are_ascending(count: int) -> None:
    cut = messages.cut_blocks(count)
    assert [c for block in cut for c in block] == list(range(count))
    assert all(len(block) for block in cut)
    if count > messages.FEW_SEEN_CLIENTS:
        assert len(cut) & (len(cut) - 1) == 0, "a power of two"
        assert max(map(len, cut)) - min(map(len, cut)) <= 1
    else:
        assert len(cut) == count


def test_sums_have_one_order_however_blocks_are_held() -> None:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(50).astype(np.float32) * 10.0**k for k in range(-4, 12)]

    def parts() -> list[BlockMessage]:
        return [BlockMessage(i, 1, 0, {"v": DeskSum(v.copy(), 1)}, 1, ()) for i, v in enumerate(values)]

    whole = messages.sum_tree(parts()).released["v"].value
    for workers in (1, 3, 4, 7, 16):
        held = [
            p
            for items in runtimes.split_into_blocks(16, workers)
            for p in messages.merge_branches(parts()[items.start : items.stop])
        ]
        found = messages.sum_tree(held)
        assert np.array_equal(found.released["v"].value, whole)
        assert (found.num_clients, found.first, found.width) == (16, 0, 16)
    assert not np.array_equal(whole, sum(values[1:], values[0])), "another order gives other bits, so this test can fail"


def test_a_union_holds_what_its_parts_hold(library: Graph) -> None:
    dealt = uniform.split(library, uniform.Params(clients=5), seeds.seeded_generator(0, "deal"))
    parts = base.with_cut_edges(library, dealt).subgraphs
    joint, starts = messages.unite(parts), np.cumsum([0, *(s.graph.num_nodes for s in parts)])
    assert joint.cut is not None
    for s, first, end in zip(parts, starts, starts[1:], strict=False):
        assert same(joint.graph.induced(np.arange(first, end)), s.graph)
        assert np.array_equal(joint.nodes[first:end], s.nodes)
        mine = joint.cut[(joint.cut[:, 0] >= first) & (joint.cut[:, 0] < end)]
        assert np.array_equal(mine - [first, 0], s.cut)
    assert joint.graph.num_edges == sum(s.graph.num_edges for s in parts), "no edge between two parts"


@pytest.mark.parametrize(("name", "trusted"), SUMMED)
def test_blocks_give_what_single_messages_give(
    name: str, trusted: Trust, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise, the model after all rounds; and the same ledger."""
    plan, partition = planned(name, trusted, library, np.inf)
    found = train(plan, partition)
    with monkeypatch.context() as patch:
        patch.setattr(messages, "are_summed", lambda plan: False)
        single = train(plan, partition)
    assert found.releases == single.releases
    for key, value in single.state.model.items():
        scale = max(1.0, float(np.abs(value).max(initial=0)))
        assert np.allclose(found.state.model[key], value, rtol=0, atol=ROUNDING * scale), key


@pytest.mark.parametrize(("name", "trusted"), SUMMED)
def test_pools_of_any_size_give_the_same_bits(name: str, trusted: Trust, library: Graph) -> None:
    plan, partition = planned(name, trusted, library, 4.0)
    one, three = train(plan, partition, Several(1)), train(plan, partition, Several(3))
    assert one.releases == three.releases
    assert not difference(one.state.model, three.state.model)
    spent, declared = (privacy.settle.of_releases(plan.guarantee, r).epsilon for r in (one.releases, plan.schedule.releases))
    assert spent == pytest.approx(declared, rel=1e-9)


def test_dp_sgd_on_own_rows_is_computed_for_a_block_at_once(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client's own batches (coins), so the same model but for noise, and the same ledger."""
    dealt, partition = planned("dpar", Trust.SUMS, library, 4.0)
    settings = dpar.Params(variant="features", sampled=1.0, epochs=2, batch_size=20, learning_rate=0.05)
    plan = dpar.plan(settings, dealt.facts, Budget(4.0, 1e-3))
    assert client.compute_together(plan)
    assert train(plan, partition).notes
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, value, rng: np.array(value))
    found = train(plan, partition)
    monkeypatch.setattr(client, "compute_together", lambda plan: False)
    single = train(plan, partition)
    assert found.releases == single.releases
    assert np.allclose(found.state.model["parameters"], single.state.model["parameters"], rtol=0, atol=ROUNDING)
    monkeypatch.undo()
    assert not client.compute_together(dpar.plan(settings, dealt.facts, Budget(np.inf, 1e-3))), "a sample in random order"
    choosing = dpar.plan(dpar.Params(epochs=2), dealt.facts, Budget(4.0, 1e-3))
    assert not client.compute_together(choosing), "neighbours are chosen by each client alone"


def test_dp_sgd_of_a_block_carries_the_noise_that_is_priced(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summed gradient of one round with noise less that without: std of the share times √clients, to 5 % (⅔ fails)."""
    dealt, partition = planned("dpar", Trust.SUMS, library, 4.0)
    settings = dpar.Params(variant="features", sampled=1.0, epochs=1, batch_size=20)
    plan = dpar.plan(settings, dealt.facts, Budget(4.0, 1e-3))
    plan = dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, rounds=1))
    sums: list[np.ndarray] = []
    monkeypatch.setattr(dpar, "server", lambda plan, state, inbox: sums.append(inbox.sums["gradient"]) or state)
    train(plan, partition)
    share = next(r.mechanism for r in plan.schedule.releases if r.path == "model")
    assert isinstance(share, GaussianNoise)
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, value, rng: np.array(value))
    train(plan, partition)
    noise = np.asarray(sums[0], dtype=float) - sums[1]
    assert noise.size > 5000
    assert noise.std() == pytest.approx(share.std * math.sqrt(CLIENTS), rel=0.05)


def test_where_shares_are_seen_every_client_draws_its_own(library: Graph) -> None:
    plan, _ = secure(library)
    assert client.compute_together(plan)
    assert not client.compute_together(dataclasses.replace(plan, watch=dataclasses.replace(plan.watch, keeps_rounds=True)))
    local, _ = planned("features", Trust.OWN_CLIENT, library, 2.0)
    assert messages.are_summed(local)
    assert not client.compute_together(local)
    assert not messages.are_summed(dataclasses.replace(local, watch=dataclasses.replace(local.watch, keeps_rounds=True))), (
        "an attack reads single messages"
    )


@pytest.mark.parametrize("name", [name for name, trusted in (p.values for p in SUMMED) if trusted is Trust.SUMS])
def test_behind_secure_aggregation_a_method_is_shown_sums_alone(
    name: str, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an attack has each message kept, and where few clients' messages travel one by one."""
    method = method_kinds.load_classifier(name)
    situation, shown = method.OFFERS.situations[0], list[Any]()
    _, partition, facts = deal(library.induced(np.arange(120)), situation.given, Trust.SUMS.viewer, 3)
    plan = method.plan(method.Params(**situation.settings), facts, Budget(2.0, 1e-3))
    honest = method.server

    def watched(plan: Plan, state: Any, inbox: Any) -> Any:
        shown.append(inbox)
        return honest(plan, state, inbox)

    monkeypatch.setattr(plugins.load("methods", name), "server", watched)
    watching = dataclasses.replace(plan, watch=dataclasses.replace(plan.watch, keeps_rounds=True))
    for made in (plan, watching):
        train(made, partition)
    assert any(inbox.sums for inbox in shown)
    assert not [inbox.each for inbox in shown if inbox.each]


def test_a_failing_client_in_a_block_is_named(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, partition = secure(library)
    honest = features.client

    def fails_on_17(plan, work, model, round_, streams, desk):  # type: ignore[no-untyped-def]
        if 17 in (desk.together or [desk.client]):
            raise ZeroDivisionError("on purpose")
        return honest(plan, work, model, round_, streams, desk)

    monkeypatch.setattr(features, "client", fails_on_17)
    with pytest.raises(RuntimeFailure, match="features, client 17, round 0: ZeroDivisionError: on purpose"):
        train(plan, partition)


def test_secure_sums_need_every_client_and_every_part_of_each(library: Graph) -> None:
    plan, partition = secure(library)
    job = ClientJob("missing", 0, ("missing",), plan)
    state = server.begin(job)
    sent = client.run_blocks(range(15), partition.subgraphs, job, state.model, 0)
    with pytest.raises(RuntimeFailure, match=rf"3[78] clients finished, {CLIENTS} are needed"):
        server.merge(job, state, 0, [sent])
    silent = [BlockMessage(15, 1, 0, {}, 3, ()), BlockMessage(16, 1, 0, {"other": DeskSum(np.zeros(3), 1)}, 1, ())]
    with pytest.raises(RuntimeFailure, match=r"blocks of clients sent .* round aborted"):
        server.merge(job, state, 0, [sent, silent])


def test_a_client_that_answers_alone_in_its_block_is_in_the_sum(library: Graph) -> None:
    plan, partition = secure(library)
    cut = messages.cut_blocks(CLIENTS)
    answered = np.ones((3, CLIENTS), dtype=bool)
    answered[:, cut[0][1:]] = False
    job = ClientJob("alone", 0, ("alone",), plan, answered=answered)
    state = server.begin(job)
    for workers in (1, len(cut)):
        held = runtimes.split_into_blocks(len(cut), workers)
        sent = [message for blocks in held for message in client.run_blocks(blocks, partition.subgraphs, job, state.model, 0)]
        whole = messages.sum_tree(sent)
        assert (whole.num_clients, whole.width) == (answered[0].sum(), len(cut))
        spans = {span for line in merged(whole.lines) for span in line.clients}
        assert spans == {(0, 0), (len(cut[0]), CLIENTS - 1)}


@pytest.mark.parametrize("shares", [1, 7, 64])
def test_one_draw_for_many_has_the_law_of_their_sum(shares: int) -> None:
    std, size = 0.7, 40_000
    planned = PlannedRelease("model", ClippedSum(1.0, 10, "a.kernel"), GaussianNoise(std), Gaussian(1.0), range(1))
    door = Desk("c", 3, 0, [planned], np.random.default_rng(0), together=range(3, 3 + shares))
    drawn = door.release("model", np.zeros(size)).value
    assert stats.kstest(drawn, "norm", args=(0, std * math.sqrt(shares))).pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(drawn, "norm", args=(0, wrong * std * math.sqrt(shares))).pvalue < 1e-6
    (line,) = door.entries
    assert (line.clients, line.count) == (((3, 2 + shares),), shares)  # type: ignore[union-attr]
    assert line.event == Gaussian(1.0)


@pytest.mark.parametrize(
    ("bound", "mechanism", "event"),
    [
        (L2Ball(1.0), GaussianNoise(1.0), Gaussian(1.0)),
        (Box(0.0, 1.0), LaplaceNoise(1.0), PureDP(1.0)),
        (Unbounded(), KaryResponse(1.0, 2), PureDP(1.0)),
    ],
)
def test_what_is_no_sum_of_records_is_never_released_for_many(bound, mechanism, event) -> None:  # type: ignore[no-untyped-def]
    """A client's whole vector, clipped; a box; a randomised answer: the noise of one does not cover many."""
    door = Desk(
        "c", 0, 0, [PlannedRelease("x", bound, mechanism, event, range(1))], np.random.default_rng(0), together=range(2)
    )
    with pytest.raises(PrivacyError, match=r"which a sum does not keep|not one draw of a known law"):
        door.release("x", np.zeros(3))
    with pytest.raises((PrivacyError, BudgetExceededError)):
        door.replay("x", np.zeros(3))


@pytest.mark.parametrize("what", [ClientMessage, lambda who, round_, bare: BlockMessage(who, 1, round_, bare, 1, ())])
def test_messages_refuse_bare_arrays(what: Any) -> None:
    with pytest.raises(PrivacyError, match="tried to send 'gradient' as a bare ndarray"):
        what(0, 0, {"gradient": np.zeros(3)})
