"""The exact Gaussian accountant against 60-digit arithmetic."""

import math

import mpmath as mp
import pytest

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate, gaussian

mp.mp.dps = 60


def oracle_delta(epsilon, mu):
    """Quadrature of ∫ (p − e^ε q)₊ for N(μ, 1) against N(0, 1), independent of the closed form."""
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    start = epsilon / mu + mu / 2
    reach = mp.mpf(40)
    points = [start, start + 1, start + 3, start + 8, start + reach]
    return mp.quad(lambda x: mp.npdf(x - mu) - mp.exp(epsilon) * mp.npdf(x), points)


def closed_delta(epsilon, mu):
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.3), (1.0, 1.0), (3.0, 1.5), (20.0, 4.0), (8.0, 3.0)])
def test_log_delta_equals_quadrature(epsilon, mu):
    assert gaussian.log_delta(epsilon, mu) == pytest.approx(float(mp.log(oracle_delta(epsilon, mu))), rel=1e-10)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8, 1e-12])
def test_stable_from_tiny_to_huge_epsilon(delta):
    for epsilon in (1e-6, 1e-4, 1e-2, 1.0, 10.0, 1e2, 1e3, 1e4):
        sigma = calibrate.gaussian_multiplier(1, epsilon, delta)
        found = gaussian.epsilon(1 / sigma, delta)
        assert epsilon * (1 - 1e-6) <= found <= epsilon
        assert delta * (1 - 1e-3) <= closed_delta(found, 1 / mp.mpf(sigma)) <= delta * (1 + 1e-7)


def test_edge_cases_and_nonsense():
    for mu, delta, expected in (
        (0.0, 1e-5, 0.0), (math.inf, 1e-5, math.inf), (1.0, 0.0, math.inf), (0.1, 0.5, 0.0), (1.0, 1.0, 0.0),
    ):  # fmt: skip
        assert gaussian.epsilon(mu, delta) == expected
    for mu, delta in ((math.nan, 0.1), (-1.0, 0.1), (1.0, math.nan), (1.0, -0.1), (1.0, 1.1)):
        with pytest.raises(PrivacyError):
            gaussian.epsilon(mu, delta)
