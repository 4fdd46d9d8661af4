"""LPGNN: the contract, unbiased bits, the labels' channel and its corrections, ε per node."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedgraph.errors import PrivacyError, ScenarioError, UnboundedValueError
from fedgraph.federation import Federation
from fedgraph.learning.optimisers.noisy_graph import NoisyGraphChannel, _Average, _Loss, _with_itself
from fedgraph.methods import lpgnn
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.mechanisms.local_bits import SampledBits
from fedgraph.privacy.mechanisms.noise import KaryResponse
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, Partition
from tests.trainings import deal, train

Made = tuple[Plan, Partition, Federation]


def planned(graph: Graph, epsilon: float, federated: bool = False, protocol: str = "transductive", **given: object) -> Made:
    setting, partition, facts = deal(graph, protocol, Viewer.SERVER if federated else Viewer.CURATOR_TRUSTED)
    return lpgnn.plan(lpgnn.Params(**given), facts, Budget(epsilon, 1e-3)), partition, setting  # type: ignore[arg-type]


def asked(plan: Plan, setting: Federation) -> Graph:
    return setting.question(plan, lambda: plan.provable().epsilon)


def test_epsilon_is_split_between_features_and_label(library: Graph) -> None:
    plan, _, _ = planned(library, 10.0, feature_share=0.7)
    events = {r.path: r.event for r in plan.schedule.releases}
    assert price(events["features"], 0.0).epsilon == pytest.approx(7.0)
    assert price(events["labels"], 0.0).epsilon == pytest.approx(3.0)
    assert plan.schedule.releases[0].mechanism.num_sampled == 3  # type: ignore[attr-defined]  # ⌊7/2.18⌋
    only, _, _ = planned(library, 10.0, features="random")
    assert only.schedule.paths == ("labels",)
    assert price(only.schedule.releases[0].event, 0.0).epsilon == pytest.approx(10.0)


@pytest.mark.parametrize("epsilon", [1.0, 12.0])
def test_the_server_learns_from_bits_of_unit_mean_square(epsilon: float, library: Graph) -> None:
    """Rows of one ±1 among hundreds of columns would be too small to be learnt from in the given steps."""
    plan, partition, setting = planned(library, epsilon)
    found = train(plan, partition).state.memory.features
    assert found.multiply(found).sum() == pytest.approx(found.shape[0] * found.shape[1], rel=1e-5)
    assert np.unique(np.abs(found.data)).size == 1
    for kind in ("random", "random-bits"):
        other, dealt, _ = planned(library, epsilon, features=kind)
        out = train(other, dealt)
        assert other.schedule.paths == ("labels",)
        scores = lpgnn.predict(other, out.state, asked(other, setting))
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("num_sampled", [1, 3, 10])
def test_rectified_bits_are_unbiased_and_the_wrong_budget_is_not(num_sampled: int) -> None:
    row = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 0.3, 0.9, 0.6, 0.2])
    encoder = SampledBits(1.5, num_sampled)
    sent = encoder.apply(np.tile(row, (60_000, 1)), np.random.default_rng(0))
    found = encoder.rectify(sent, 10)
    error = 5 * found.std(axis=0) / math.sqrt(60_000)
    assert (np.abs(found.mean(axis=0) - row) < error).all()
    for factor in (2 / 3, 3 / 2):
        other = replace(encoder, epsilon_per_bit=1.5 * factor).rectify(sent, 10)
        assert (np.abs(other.mean(axis=0) - row) > error).any()


def test_a_bit_tells_at_most_its_budget() -> None:
    """P(+1 | x = 1)/P(+1 | x = 0) = e^a, measured."""
    rng, a = np.random.default_rng(1), 1.0
    high = SampledBits(a, 1).apply(np.ones((200_000, 1)), rng) % 2
    low = SampledBits(a, 1).apply(np.zeros((200_000, 1)), rng) % 2
    assert math.log(high.mean() / low.mean()) == pytest.approx(a, abs=0.02)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_channel_matrix_is_the_law_of_the_response(epsilon: float) -> None:
    keep = 1 / (1 + 3 * math.exp(-epsilon))
    channel = NoisyGraphChannel(4, keep, "forward", 0)
    said = KaryResponse(epsilon, 4).apply(np.full(50_000, 2), np.random.default_rng(0))
    assert np.allclose(np.bincount(said, minlength=4) / 50_000, channel.transition[2], atol=0.01)
    assert np.allclose(channel.transition.sum(axis=1), 1)
    assert channel.transition.max() / channel.transition.min() == pytest.approx(math.exp(epsilon))


def test_drop_recovers_labels_that_the_response_hid(library: Graph) -> None:
    """Averaging over neighbours of mostly one's own class undoes much of the noise."""
    epsilon, rng = 2.0, np.random.default_rng(0)
    noisy = KaryResponse(epsilon, library.num_classes).apply(library.labels, rng)
    keep = 1 / (1 + (library.num_classes - 1) * math.exp(-epsilon))
    average = _with_itself(library.adjacency)
    denoised = NoisyGraphChannel(library.num_classes, keep, "drop", 2).targets(average, noisy)
    assert (denoised == library.labels).mean() > (noisy == library.labels).mean() + 0.1
    assert np.array_equal(NoisyGraphChannel(library.num_classes, keep, "forward", 2).targets(average, noisy), noisy)
    masked = noisy.copy()
    masked[:10] = -1
    assert (NoisyGraphChannel(library.num_classes, keep, "drop", 2).targets(average, masked)[:10] == -1).all()


@pytest.mark.parametrize("correction", ["drop", "forward", "none"])
def test_gradient_is_that_of_the_stated_loss(correction: str, library: Graph) -> None:
    rng, c = np.random.default_rng(0), library.num_classes
    channel = NoisyGraphChannel(c, 0.6, correction, 2)  # type: ignore[arg-type]
    itself = _with_itself(library.adjacency)
    targets = np.where(rng.random(library.num_nodes) < 0.7, rng.integers(c, size=library.num_nodes), -1)
    raw = torch.tensor(rng.standard_normal((library.num_nodes, c)), requires_grad=True)
    found = _Loss(channel, _Average(itself, 2), targets).gradient(raw.detach().float())
    q = torch.softmax(raw, dim=1) @ torch.tensor(channel.transition if correction != "none" else np.eye(c))
    if correction == "drop":
        matrix = torch.tensor(itself.toarray(), dtype=torch.float64)
        q = matrix @ (matrix @ q)
    known = np.flatnonzero(targets >= 0)
    (-torch.log(q[known, targets[known]]).mean()).backward()
    assert np.allclose(found.numpy(), raw.grad.numpy(), atol=1e-6)


def test_what_is_refused(library: Graph) -> None:
    with pytest.raises(ScenarioError, match="transductive"):
        planned(library, 1.0, protocol="inductive-edges")
    for sizes in ((1.0, 1, 1.0, 0.0), (0.0, 1), (1.0, 0)):
        with pytest.raises(PrivacyError):
            SampledBits(*sizes)  # type: ignore[arg-type]
    with pytest.raises(UnboundedValueError):
        SampledBits(1.0, 1).apply(np.array([[np.nan]]), np.random.default_rng(0))


def test_the_rectifier_is_the_unbiased_estimate_of_the_features(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learnt from under ``rows: rectified`` is, entry by entry, what ``SampledBits.rectify`` makes of the bits."""
    plan, partition, setting = planned(library, 8.0, rows="rectified")
    out, given = train(plan, partition), {}
    honest = lpgnn.train_on_noisy_graph

    def keep(*args):  # type: ignore[no-untyped-def]
        given["features"], given["shift"] = args[1], args[-1]
        return honest(*args)

    monkeypatch.setattr(lpgnn, "train_on_noisy_graph", keep)
    rectified = lpgnn.predict(plan, out.state, asked(plan, setting))
    bits = out.state.memory.features
    encoder = plan.schedule.releases[0].mechanism
    sent = np.array([[2 * c + (v > 0) for c, v in zip(row.indices, row.data, strict=True)] for row in bits])
    wanted = encoder.rectify(sent, library.num_features)  # type: ignore[attr-defined]
    np.testing.assert_allclose(given["features"].toarray() + given["shift"], wanted, rtol=1e-6)
    other, _, _ = planned(library, 8.0)
    assert not np.array_equal(rectified, lpgnn.predict(other, out.state, asked(other, setting)))
