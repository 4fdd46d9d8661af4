"""Bounds of one run, counted and by the f-DP curve: below the truth, close to it, and no mechanism at all beats the theorem."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import expit
from scipy.stats import binom

from fedgraph.audit import one_run
from fedgraph.audit.one_run import OneRunCount
from fedgraph.audit.operating_points import audited_roc_area
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_randomised_response_is_recovered_from_below(epsilon: float) -> None:
    """Each coin through randomised response: exactly ε, and as scores nothing can do better."""
    rng, found = np.random.default_rng(1), []
    for _ in range(200):
        coins, kept = rng.random(2000) < 0.5, rng.random(2000) < expit(epsilon)
        count = one_run.count_guesses(np.where(kept, coins, ~coins).astype(float), coins, 1.0)
        found.append(one_run.epsilon_lower(count, 0.0))
    assert np.mean(np.array(found) > epsilon) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)
    assert np.mean(found) > epsilon - 0.4


def test_pure_epsilon_is_the_binomial_limit_and_edges() -> None:
    for v, r in ((70, 100), (99, 100), (100, 100)):
        low = one_run.epsilon_lower(OneRunCount(300, r, v), 0.0)
        assert float(binom.sf(v - 1, r, expit(low))) == pytest.approx(0.05, abs=1e-6)
    assert one_run.epsilon_lower(OneRunCount(10, 0, 0), 1e-5) == 0.0
    assert one_run.epsilon_lower(OneRunCount(10, 1, 1), 0.0) == 0.0, "one right guess of a fair coin proves nothing"
    assert one_run.epsilon_lower(OneRunCount(1000, 100, 90), 0.5) == 0.0, "a δ this large excuses everything"
    two = OneRunCount(2, 2, 2)
    for wrong in (
        *(lambda counts=counts: OneRunCount(*counts) for counts in ((1, 2, 0), (2, 1, 2), (2, 1, -1))),
        lambda: one_run.epsilon_lower(two, 0.0, 1.0),
        lambda: one_run.epsilon_lower(two, 1.0),
        lambda: one_run.count_guesses(np.array([np.nan, 0.0]), np.array([True, False]), 1.0),
        lambda: one_run.best_bound([], 1e-3, "guessing"),
    ):
        with pytest.raises(PrivacyError):
            wrong()


def test_guesses_are_the_extremes_and_runs_add_up() -> None:
    scores, coins = np.array([3.0, -np.inf, 0.1, np.inf, -2.0, 0.0]), np.array([1, 0, 0, 1, 1, 0], bool)
    assert one_run.count_guesses(scores, coins, 0.4) == OneRunCount(6, 2, 2)
    assert one_run.count_guesses(scores, coins, 1.0) == OneRunCount(6, 6, 4)
    assert one_run.count_guesses(scores, coins, 0.7, centred=True) == OneRunCount(6, 4, 3), "∞, −∞, 3, −2 by sign"
    assert OneRunCount(6, 2, 2) + OneRunCount(4, 4, 1) == OneRunCount(10, 6, 3)
    assert audited_roc_area(scores, coins) == pytest.approx(7 / 9)
    assert audited_roc_area(np.zeros(4), np.array([1, 0, 1, 0], bool)) == 0.5


def best_attack(num_coins: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The largest P[V ≥ v] of *any* (ε, δ)-DP mechanism that outputs guesses: a linear program over all of them."""
    coins = np.array(list(itertools.product((-1, 1), repeat=num_coins)))
    outputs = np.array([t for t in itertools.product((-1, 0, 1), repeat=num_coins) if sum(map(abs, t)) == guesses])
    n, k = len(coins), len(outputs)
    pairs = np.argwhere((coins[:, None] != coins).sum(axis=2) == 1)
    size = n * k + len(pairs) * k  # P(t | s), then for each ordered pair of neighbours the excess over e^ε
    gain, total = np.zeros(size), np.zeros((n, size))
    gain[: n * k] = ((coins[:, None] == outputs).sum(axis=2) >= right).ravel() / -n
    for s in range(n):
        total[s, s * k : (s + 1) * k] = 1
    upper, limit = [], []
    for number, (a, b) in enumerate(pairs):
        excess = n * k + number * k + np.arange(k)
        rows, summed = np.zeros((k, size)), np.zeros(size)
        rows[np.arange(k), a * k + np.arange(k)], rows[np.arange(k), b * k + np.arange(k)] = 1, -math.exp(epsilon)
        rows[np.arange(k), excess], summed[excess] = -1, 1
        upper += [*rows, summed]
        limit += [0.0] * k + [delta]
    found = linprog(gain, np.array(upper), limit, total, np.ones(n))
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize(("num_coins", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.02), (1.5, 0.1)])
def test_no_mechanism_at_all_beats_the_theorem(num_coins: int, guesses: int, epsilon: float, delta: float) -> None:
    for v in range(1, guesses + 1):
        best, said = best_attack(num_coins, guesses, v, epsilon, delta), OneRunCount(num_coins, guesses, v)
        assert best <= one_run.p_value(said, epsilon, delta) + 1e-9
        if delta == 0:
            assert best == pytest.approx(one_run.p_value(said, epsilon, 0.0)), "randomised response attains it"


def mu_of(epsilon: float, delta: float) -> float:
    return brentq(lambda mu: gaussian.epsilon(mu, delta) - epsilon, 1e-9, 20.0) if epsilon else 0.0


def one_gaussian(rng: np.random.Generator, coins: int, mu: float, share: float) -> OneRunCount:
    """What a perfect attacker guesses of so many coins, each of which moved one Gaussian release."""
    tossed = rng.random(coins) < 0.5
    return one_run.count_guesses(rng.standard_normal(coins) + mu * tossed, tossed, share)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 8.0])
def test_a_true_gaussian_is_accused_no_more_often_than_alpha(epsilon: float) -> None:
    delta, alpha, rng, runs = 1e-3, 0.1, np.random.default_rng(5), 100
    mu = mu_of(epsilon, delta)
    bounds = [one_run.best_bound([one_gaussian(rng, 300, mu, 0.2)], delta, "curve", alpha) for _ in range(runs)]
    accused = sum(bound > epsilon for bound in bounds)
    assert binom.sf(accused - 1, runs, alpha) > 1e-4, f"{accused} of {runs} true curves refuted at {alpha}"


def test_one_run_shows_what_the_issue_asks_for_and_the_curve_more_than_counting() -> None:
    """60 % of ε = 8 and 40 % of ε = 1, for a perfect attacker on one Gaussian release; counting alone does not."""
    rng, delta = np.random.default_rng(0), 3.8e-4
    for epsilon, wanted in ((8.0, 0.6), (1.0, 0.4)):
        counts = [one_gaussian(rng, 10_000, mu_of(epsilon, delta), 0.1) for _ in range(3)]
        assert wanted * epsilon <= float(np.mean([one_run.best_bound([c], delta, "curve") for c in counts])) <= epsilon
    count = one_gaussian(rng, 4000, mu_of(4.0, 1e-3), 0.1)
    found = {name: one_run.best_bound([count], 1e-3, name) for name in ("counting", "counting-tight", "curve")}
    assert all(0 < value < 4.0 for value in found.values())
    assert found["curve"] > found["counting"]


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
