"""The f-DP audit in one run: its largest tail against a linear program, its null, and what it shows of a true Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from fedgraph.audit import one_run
from fedgraph.audit.one_run import OneRunCount
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian


def mu_of(epsilon: float, delta: float) -> float:
    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian.epsilon(middle, delta) > epsilon else (middle, high)
    return low


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 8.0])
def test_a_true_gaussian_is_accused_no_more_often_than_alpha(epsilon: float) -> None:
    delta, alpha, rng = 1e-3, 0.1, np.random.default_rng(5)
    mu, runs, accused = mu_of(epsilon, delta) if epsilon else 0.0, 200, 0
    for _ in range(runs):
        coins = rng.random(300) < 0.5
        count = one_run.count_guesses(rng.standard_normal(300) + mu * coins, coins, 0.2)
        accused += one_run.best_bound([count], delta, "curve", alpha) > epsilon
    assert binom.sf(accused - 1, runs, alpha) > 1e-4, f"{accused} of {runs} true curves refuted at {alpha}"


def test_one_run_shows_what_the_issue_asks_for() -> None:
    """60 % of ε = 8 and 40 % of ε = 1, for a perfect attacker on one Gaussian release; counting alone does not."""
    rng, delta = np.random.default_rng(0), 3.8e-4
    for epsilon, coins, share, wanted in ((8.0, 10_000, 0.1, 0.6), (1.0, 10_000, 0.1, 0.4)):
        shown = []
        for _ in range(3):
            tossed = rng.random(coins) < 0.5
            count = one_run.count_guesses(rng.standard_normal(coins) + mu_of(epsilon, delta) * tossed, tossed, share)
            shown.append(one_run.best_bound([count], delta, "curve"))
        assert wanted * epsilon <= float(np.mean(shown)) <= epsilon


# What jax_privacy 2.0.0 gives for the same counts (``CanaryScoreAuditor``, threshold ``Explicit``): coins, guesses, right, δ;
# ``epsilon_one_run_fdp`` at α = .05 and .001; ``epsilon_one_run`` at α = .05 with this δ and with 1e-14.
JAX = [
    (OneRunCount(300, 60, 50), 1e-3, 1.1209747, 0.4868386, 0.7854417, 1.0135238),
    (OneRunCount(1000, 100, 98), 1e-5, 4.2278729, 2.7112933, 2.7109631, 2.7231824),
    (OneRunCount(1500, 450, 317), 3.8e-4, 0.8253111, 0.4929696, 0.6522665, 0.6947202),
    (OneRunCount(200, 80, 80), 1e-5, 6.4603970, 3.6748061, 3.2605108, 3.2660561),
    (OneRunCount(400, 80, 37), 1e-3, 0.0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("found", "delta", "curved", "surer", "counted", "pure"), JAX)
def test_bounds_are_those_of_jax_privacy(
    found: OneRunCount, delta: float, curved: float, surer: float, counted: float, pure: float
) -> None:
    """But for counting with δ > 0: their term of δ is that of Theorem 5.2, ours is smaller (``one_run``, (*))."""
    assert one_run.best_bound([found], delta, "curve") == pytest.approx(curved, rel=1e-3, abs=2e-4)
    assert one_run.best_bound([found], delta, "curve", 0.001) == pytest.approx(surer, rel=1e-3, abs=2e-4)
    assert one_run.epsilon_lower(found, delta) >= counted - 1e-4
    assert one_run.epsilon_lower(found, 0.0) == pytest.approx(pure, rel=1e-4, abs=1e-4)


def test_the_curve_says_more_than_counting_and_neither_too_much() -> None:
    rng, delta = np.random.default_rng(1), 1e-3
    coins = rng.random(4000) < 0.5
    count = one_run.count_guesses(rng.standard_normal(coins.size) + mu_of(4.0, delta) * coins, coins, 0.1)
    found = {name: one_run.best_bound([count], delta, name) for name in ("counting", "counting-tight", "curve")}
    assert all(0 < value < 4.0 for value in found.values())
    assert found["curve"] > found["counting"]
    with pytest.raises(PrivacyError, match="unknown estimator"):
        one_run.best_bound([], delta, "guessing")
