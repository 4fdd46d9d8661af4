"""Encoders of embeddings: what a release of one graph costs, and what any classifier can make of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fedgraph.audit import operating_points
from fedgraph.errors import PrivacyError
from fedgraph.methods.local_dp import EncoderSettings
from fedgraph.privacy import sensitivity
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.blocks import PerBlock
from fedgraph.privacy.mechanisms.noise import GaussianNoise, MultiBitEncoder
from fedgraph.privacy.sensitivity import SimplexRows
from fedgraph.privacy.units import Relation


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
    assert np.array_equal(one[:2], two[:2])
    assert np.array_equal(one[5:], two[5:])
    with pytest.raises(PrivacyError, match="covers 6 rows"):
        mechanism.apply(np.ones((5, 4)), np.random.default_rng(0))
    with pytest.raises(PrivacyError, match="one mechanism per block"):
        PerBlock((), ())
    with pytest.raises(PrivacyError, match="one mechanism per block"):
        PerBlock((GaussianNoise(1.0),), (0,))


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
