"""Counted events: exact normal quantiles are bracketed, limits have their coverage, bad input is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binomtest

from fedgraph.audit import lower_bound
from fedgraph.audit.lower_bound import LowerBoundScores, _at_least, _at_most, _choose_cut, _share_above
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian

NUM_QUANTILES = 50_000


def quantiles(mu: float) -> LowerBoundScores:
    """The scores of N(μ, 1) and N(0, 1) without chance: mid-point quantiles."""
    normal = ndtri((np.arange(NUM_QUANTILES) + 0.5) / NUM_QUANTILES)
    return LowerBoundScores(normal + mu, normal)


@pytest.mark.parametrize(("mu", "delta"), [(0.5, 1e-3), (0.5, 1e-2), (1.0, 1e-3), (1.0, 1e-2), (2.0, 1e-2)])
def test_exact_normal_quantiles_give_a_bound_below_the_truth_and_within_a_fifth(mu: float, delta: float) -> None:
    truth = gaussian.epsilon(mu, delta)
    bound = lower_bound.of_epsilon(quantiles(mu), quantiles(mu), delta, 0.05)
    assert 0.8 * truth <= bound < truth


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_exact_normal_quantiles_give_a_hockey_stick_below_the_truth_and_within_a_fifth(mu: float) -> None:
    truth = math.exp(gaussian.log_delta(0.5, mu))
    bound = lower_bound.of_delta(quantiles(mu), quantiles(mu), 0.5, 0.05)
    assert 0.8 * truth <= bound < truth


def test_the_mirror_test_sees_what_shows_in_the_other_direction_only() -> None:
    """Q falls in {score ≤ 0} with probability ½ and P never: no event {score ≥ t} has a ratio above 2."""
    present = np.ones(4_000)
    absent = np.tile([0.0, 1.0], 2_000)
    worlds = LowerBoundScores(present, absent)
    _, mirrored = _choose_cut(worlds, (4_000, 4_000), lambda low, high: np.log(low) - np.log(high), 0.05)
    assert mirrored
    assert lower_bound.of_epsilon(LowerBoundScores(present, absent), LowerBoundScores(present, absent), 0.0, 0.05) > 6


def test_limits_agree_with_scipy() -> None:
    for hits, trials in ((0, 50), (1, 50), (17, 50), (49, 50), (50, 50)):
        low = binomtest(hits, trials, alternative="greater").proportion_ci(0.975, "exact").low
        high = binomtest(hits, trials, alternative="less").proportion_ci(0.975, "exact").high
        assert float(_at_least(hits, trials, 0.025)) == pytest.approx(low, abs=1e-12)
        assert float(_at_most(hits, trials, 0.025)) == pytest.approx(high, abs=1e-12)


def test_the_bound_exceeds_the_truth_no_more_often_than_stated() -> None:
    """Repeated audits of a mechanism whose ε is known (two-point response, ε = 1, worst event fixed)."""
    rng = np.random.default_rng(3)
    keep, alpha, audits = math.e / (math.e + 1), 0.2, 2_000
    false = 0
    for _ in range(audits):
        worlds = [LowerBoundScores(1.0 * (rng.random(200) < keep), 1.0 * (rng.random(200) >= keep)) for _ in range(2)]
        false += lower_bound.of_epsilon(*worlds, 0.0, alpha) > 1.0
    assert false / audits <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


def test_the_hockey_stick_exceeds_the_truth_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(4)
    truth, alpha, audits = math.exp(gaussian.log_delta(0.5, 1.0)), 0.2, 500
    false = 0
    for _ in range(audits):
        worlds = [LowerBoundScores(rng.standard_normal(300) + 1, rng.standard_normal(300)) for _ in range(2)]
        false += lower_bound.of_delta(*worlds, 0.5, alpha) > truth
    assert false / audits <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


@pytest.mark.parametrize(("runs", "published"), [(100, 3.28), (500, 4.91), (1000, 5.60), (5000, 7.21)])
def test_the_ceiling_is_that_of_the_science_note(runs: int, published: float) -> None:
    assert lower_bound.ceiling(runs, 0.0, 0.05) == pytest.approx(published, abs=0.01)
    apart = LowerBoundScores(np.ones(runs), np.zeros(runs))
    assert lower_bound.of_epsilon(apart, apart, 0.0, 0.05) == pytest.approx(lower_bound.ceiling(runs, 0.0, 0.05))


def test_equal_worlds_prove_nothing() -> None:
    rng = np.random.default_rng(5)
    worlds = [LowerBoundScores(rng.standard_normal(5_000), rng.standard_normal(5_000)) for _ in range(2)]
    assert lower_bound.of_epsilon(*worlds, 0.0, 0.01) == 0.0


def test_edge_cases() -> None:
    none = LowerBoundScores(np.zeros(0), np.zeros(0))
    assert lower_bound.of_epsilon(none, none, 0.0, 0.05) == 0.0
    apart = LowerBoundScores(np.full(50, math.inf), np.full(50, -math.inf))
    assert lower_bound.of_epsilon(apart, apart, 0.0, 0.05) == pytest.approx(lower_bound.ceiling(50, 0.0, 0.05))
    assert lower_bound.of_epsilon(apart, apart, 0.99, 0.05) == 0.0
    assert [_share_above(scores, np.zeros(1)).item() for scores in (apart.present, apart.absent)] == [1.0, 0.0]
    with pytest.raises(PrivacyError, match="NaN"):
        LowerBoundScores(np.array([math.nan]), np.zeros(1))
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(PrivacyError, match="alpha"):
            lower_bound.of_epsilon(apart, apart, 0.0, alpha)
