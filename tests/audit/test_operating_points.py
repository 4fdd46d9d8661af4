"""Operating points, and how far (ε, δ)-DP lets them go."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from fedgraph.audit import operating_points
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian


def test_a_perfect_score_and_a_constant_one() -> None:
    truth = np.arange(2000) < 1000
    perfect = operating_points.of_scores(truth.astype(float), truth)
    assert (perfect.auc, perfect.advantage, perfect.tpr) == (1.0, 1.0, (1.0, 1.0))
    nothing = operating_points.of_scores(np.zeros(2000), truth)
    assert (nothing.auc, nothing.advantage, nothing.tpr) == (0.5, 0.0, (0.0, 0.0))


def test_rates_of_two_normal_laws() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(200_000) % 2 == 0
    found = operating_points.of_scores(rng.normal(size=truth.size) + 2.0 * truth, truth)
    assert found.auc == pytest.approx(norm.cdf(math.sqrt(2)), abs=0.005)
    assert found.advantage == pytest.approx(2 * norm.cdf(1) - 1, abs=0.01)
    for rate, tpr in zip(operating_points.LOW_OPERATING_RATES, found.tpr, strict=True):
        assert tpr == pytest.approx(norm.cdf(2 + norm.ppf(rate)), abs=0.02)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_no_gaussian_mechanism_goes_beyond_the_limits(mu: float, delta: float) -> None:
    epsilon = gaussian.epsilon(mu, delta)
    assert 2 * norm.cdf(mu / 2) - 1 <= operating_points.most_audited_advantage(epsilon, delta) + 1e-12


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(PrivacyError, match="one score per example"):
        operating_points.of_scores(np.array([np.nan, 1.0]), np.array([True, False]))
    empty = operating_points.of_scores(np.zeros(3), np.ones(3, bool))
    assert (empty.auc, empty.advantage) == (0.5, 0.0)
