"""The f-DP audit in one run: its largest tail against a linear program, its null, and what it shows of a true Gaussian."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from fedgraph.audit import curve, one_run
from fedgraph.audit.one_run import OneRunCount
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian
from tests.audit_p_values import p_value


def mu_of(epsilon: float, delta: float) -> float:
    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian.epsilon(middle, delta) > epsilon else (middle, high)
    return low


def largest_tail(coins: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """max Σ_{j ≥ v} p_j under every constraint (1), by linear programming: g of (ε, δ)-DP is a minimum of three lines."""
    j = np.arange(guesses + 1)
    rows, most = [], []
    for c in range(1, guesses + 1):
        hits, misses = np.where(j >= c, j / coins, 0.0), np.where(j >= c - 1, (guesses - j) / coins, 0.0)
        rows += [hits, hits - math.exp(epsilon) * misses, hits - math.exp(-epsilon) * misses]
        most += [1.0, delta, 1.0 - math.exp(-epsilon) * (1.0 - delta)]
    found = linprog(-(j >= right).astype(float), np.array(rows), np.array(most), np.ones((1, j.size)), [1.0], (0, 1))
    return float(-found.fun)


@pytest.mark.parametrize(("coins", "guesses"), [(1, 1), (6, 6), (20, 8), (40, 40), (200, 25)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.02), (3.0, 1e-3)])
def test_the_largest_tail_is_that_of_the_linear_program(coins: int, guesses: int, epsilon: float, delta: float) -> None:
    least = curve._inverse_approximate_curve(epsilon, delta)
    for right in {guesses, guesses - guesses // 4, guesses // 2 + 1}:
        expected = largest_tail(coins, guesses, right, epsilon, delta)
        assert p_value(OneRunCount(coins, guesses, right), least) == pytest.approx(expected, abs=2e-6)


def test_randomised_response_is_the_worst_pure_mechanism() -> None:
    """δ = 0: no tail below that of independent coins of bias e^ε/(1 + e^ε), which is reached by a real mechanism."""
    for right in (60, 75, 90):
        truth = float(binom.sf(right - 1, 100, math.e / (1 + math.e)))
        assert p_value(OneRunCount(100, 100, right), curve._inverse_approximate_curve(1.0, 0.0)) >= truth - 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 8.0])
def test_a_true_gaussian_is_accused_no_more_often_than_alpha(epsilon: float) -> None:
    delta, alpha, rng = 1e-3, 0.1, np.random.default_rng(5)
    mu, runs, accused = mu_of(epsilon, delta) if epsilon else 0.0, 200, 0
    for _ in range(runs):
        coins = rng.random(300) < 0.5
        count = one_run.count_guesses(rng.standard_normal(300) + mu * coins, coins, 0.2)
        accused += curve.is_refuted(count, curve._inverse_gaussian_curve(mu), alpha)
    assert binom.sf(accused - 1, runs, alpha) > 1e-4, f"{accused} of {runs} true curves refuted at {alpha}"


def test_one_run_shows_what_the_issue_asks_for() -> None:
    """60 % of ε = 8 and 40 % of ε = 1, for a perfect attacker on one Gaussian release; counting alone does not."""
    rng, delta = np.random.default_rng(0), 3.8e-4
    for epsilon, coins, share, wanted in ((8.0, 10_000, 0.1, 0.6), (1.0, 10_000, 0.1, 0.4)):
        shown = []
        for _ in range(3):
            tossed = rng.random(coins) < 0.5
            count = one_run.count_guesses(rng.standard_normal(coins) + mu_of(epsilon, delta) * tossed, tossed, share)
            shown.append(curve.gaussian_epsilon_lower(count, delta))
        assert wanted * epsilon <= float(np.mean(shown)) <= epsilon


def test_a_third_of_the_noise_is_refuted() -> None:
    """Claimed: ε = 1. Real: the noise of that claim times ⅓. One run cannot tell ⅔ from 1."""
    rng, delta = np.random.default_rng(3), 1e-3
    mu = mu_of(1.0, delta)
    coins = rng.random(10_000) < 0.5
    count = one_run.count_guesses(rng.standard_normal(coins.size) + 3 * mu * coins, coins, 0.1)
    assert curve.is_refuted(count, curve._inverse_gaussian_curve(mu))
    assert not curve.is_refuted(
        one_run.count_guesses(rng.standard_normal(coins.size) + mu * coins, coins, 0.1), curve._inverse_gaussian_curve(mu)
    )


def test_edges_of_the_domain() -> None:
    assert not curve.is_refuted(OneRunCount(10, 0, 0), curve._inverse_gaussian_curve(0.0))
    assert curve._refuted_curve_mu(OneRunCount(100, 100, 50)) == 0.0
    assert curve.gaussian_epsilon_lower(OneRunCount(50, 50, 50), 1e-5) > 0
    assert p_value(OneRunCount(100, 100, 40), curve._inverse_gaussian_curve(0.0)) == 1.0
    for wrong in (
        lambda: curve._inverse_gaussian_curve(-1.0),
        lambda: curve._inverse_gaussian_curve(math.nan),
        lambda: curve._inverse_approximate_curve(1.0, 1.0),
    ):
        with pytest.raises(PrivacyError):
            wrong()
    with pytest.raises(PrivacyError):
        curve.is_refuted(OneRunCount(10, 10, 10), curve._inverse_gaussian_curve(1.0), alpha=0.0)


def test_the_curve_says_more_than_counting_and_neither_too_much() -> None:
    rng, delta = np.random.default_rng(1), 1e-3
    coins = rng.random(4000) < 0.5
    count = one_run.count_guesses(rng.standard_normal(coins.size) + mu_of(4.0, delta) * coins, coins, 0.1)
    found = {name: curve.best_bound([count], delta, name) for name in ("counting", "counting-tight", "curve")}
    assert all(0 < value < 4.0 for value in found.values())
    assert found["curve"] > found["counting"]
    with pytest.raises(PrivacyError, match="unknown estimator"):
        curve.best_bound([], delta, "guessing")
