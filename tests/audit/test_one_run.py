"""The bound of one run: recovers what is known from below, and no mechanism at all beats its theorem."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binom

from fedgraph.audit import one_run
from fedgraph.audit.one_run import OneRunCount
from fedgraph.audit.operating_points import audited_roc_area
from fedgraph.errors import PrivacyError


def response(epsilon: float, num_coins: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Coins, and each of them through randomised response: exactly ε, and as scores nothing can do better."""
    coins = rng.random(num_coins) < 0.5
    kept = rng.random(num_coins) < expit(epsilon)
    return np.where(kept, coins, ~coins).astype(float), coins


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_randomised_response_is_recovered_from_below(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    found = [one_run.epsilon_lower(one_run.count_guesses(*response(epsilon, 2000, rng), 1.0), 0.0) for _ in range(400)]
    assert np.mean(np.array(found) > epsilon) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)
    assert np.mean(found) > epsilon - 0.4


def test_pure_epsilon_is_the_binomial_limit() -> None:
    for v, r in ((70, 100), (99, 100), (100, 100)):
        low = one_run.epsilon_lower(OneRunCount(300, r, v), 0.0)
        assert float(binom.sf(v - 1, r, expit(low))) == pytest.approx(0.05, abs=1e-6)
    assert one_run.epsilon_lower(OneRunCount(300, 100, 100), 0.0) == pytest.approx(
        math.log(0.05**0.01 / (1 - 0.05**0.01)), abs=1e-6
    )


def test_the_edges() -> None:
    assert one_run.epsilon_lower(OneRunCount(10, 0, 0), 1e-5) == 0.0
    assert one_run.epsilon_lower(OneRunCount(10, 1, 1), 0.0) == 0.0, "one right guess of a fair coin proves nothing"
    assert one_run.epsilon_lower(OneRunCount(1000, 100, 90), 0.5) == 0.0, "a δ this large excuses everything"
    for wrong in ((1, 2, 0), (2, 1, 2), (2, 1, -1)):
        with pytest.raises(PrivacyError, match="m coins"):
            OneRunCount(*wrong)
    with pytest.raises(PrivacyError, match="alpha"):
        one_run.epsilon_lower(OneRunCount(2, 2, 2), 0.0, 1.0)
    with pytest.raises(PrivacyError, match="δ"):
        one_run.epsilon_lower(OneRunCount(2, 2, 2), 1.0)
    with pytest.raises(PrivacyError, match="score"):
        one_run.count_guesses(np.array([np.nan, 0.0]), np.array([True, False]), 1.0)


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
    coins = list(itertools.product((-1, 1), repeat=num_coins))
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=num_coins) if sum(map(abs, t)) == guesses]
    pairs = [
        (a, b)
        for a in range(len(coins))
        for b in range(len(coins))
        if sum(x != y for x, y in zip(coins[a], coins[b], strict=True)) == 1
    ]
    n, k = len(coins), len(outputs)
    size = n * k + len(pairs) * k  # P(t | s), then for each ordered pair of neighbours the excess over e^ε
    gain = np.zeros(size)
    total = np.zeros((n, size))
    for s, t in itertools.product(range(n), range(k)):
        gain[s * k + t] = -(sum(x == y for x, y in zip(coins[s], outputs[t], strict=True)) >= right) / n
        total[s, s * k + t] = 1
    upper, limit = [], []
    for number, (a, b) in enumerate(pairs):
        summed = np.zeros(size)
        for t in range(k):
            row, excess = np.zeros(size), n * k + number * k + t
            row[a * k + t], row[b * k + t], row[excess] = 1, -math.exp(epsilon), -1
            summed[excess] = 1
            upper.append(row)
            limit.append(0.0)
        upper.append(summed)
        limit.append(delta)
    found = linprog(gain, np.array(upper), limit, total, np.ones(n))
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize(("num_coins", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.02), (1.5, 0.1)])
def test_no_mechanism_at_all_beats_the_theorem(num_coins: int, guesses: int, epsilon: float, delta: float) -> None:
    for v in range(1, guesses + 1):
        best = best_attack(num_coins, guesses, v, epsilon, delta)
        assert best <= one_run.p_value(OneRunCount(num_coins, guesses, v), epsilon, delta) + 1e-9
        if delta == 0:
            assert best == pytest.approx(one_run.p_value(OneRunCount(num_coins, guesses, v), epsilon, 0.0)), (
                "randomised response attains it"
            )
