"""LPGNN: the contract, unbiased bits, the labels' channel and its corrections, ε per node."""

import math

import numpy as np
import pytest

from fedgraph.federation import Federation
from fedgraph.methods import lpgnn
from fedgraph.methods.base import Plan
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.mechanisms.local_bits import SampledBits
from fedgraph.types import Graph
from tests.trainings import made, train


def asked(plan: Plan, setting: Federation) -> Graph:
    return setting.question(plan, lambda: plan.provable().epsilon)


def test_epsilon_is_split_between_features_and_label(library: Graph) -> None:
    plan, _, _ = made(lpgnn, library, 10.0, feature_share=0.7)
    events = {r.path: r.event for r in plan.schedule.releases}
    assert price(events["features"], 0.0).epsilon == pytest.approx(7.0)
    assert price(events["labels"], 0.0).epsilon == pytest.approx(3.0)
    assert plan.schedule.releases[0].mechanism.num_sampled == 3  # type: ignore[attr-defined]  # ⌊7/2.18⌋
    only, _, _ = made(lpgnn, library, 10.0, features="random")
    assert only.schedule.paths == ("labels",)
    assert price(only.schedule.releases[0].event, 0.0).epsilon == pytest.approx(10.0)


@pytest.mark.parametrize("epsilon", [1.0, 12.0])
def test_the_server_learns_from_bits_of_unit_mean_square(epsilon: float, library: Graph) -> None:
    """Rows of one ±1 among hundreds of columns would be too small to be learnt from in the given steps."""
    plan, partition, _ = made(lpgnn, library, epsilon)
    found = train(plan, partition).state.memory.features
    assert found.multiply(found).sum() == pytest.approx(found.shape[0] * found.shape[1], rel=1e-5)
    assert np.unique(np.abs(found.data)).size == 1


@pytest.mark.parametrize("kind", ["random", "random-bits"])
def test_rows_of_nobody_cost_nothing(kind: str, library: Graph) -> None:
    plan, partition, setting = made(lpgnn, library, 4.0, features=kind)
    assert plan.schedule.paths == ("labels",)
    assert np.isfinite(lpgnn.predict(plan, train(plan, partition).state, asked(plan, setting))).all()


def test_a_bit_tells_at_most_its_budget() -> None:
    """P(+1 | x = 1)/P(+1 | x = 0) = e^a, measured."""
    rng, a = np.random.default_rng(1), 1.0
    high, low = (SampledBits(a, 1).apply(np.full((200_000, 1), x), rng) % 2 for x in (1.0, 0.0))
    assert math.log(high.mean() / low.mean()) == pytest.approx(a, abs=0.02)


def test_the_rectifier_is_the_unbiased_estimate_of_the_features(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learnt from under ``rows: rectified`` is, entry by entry, what ``SampledBits.rectify`` makes of the bits."""
    plan, partition, setting = made(lpgnn, library, 8.0, rows="rectified")
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
    other, _, _ = made(lpgnn, library, 8.0)
    assert not np.array_equal(rectified, lpgnn.predict(other, out.state, asked(other, setting)))
