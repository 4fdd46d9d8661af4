"""Bounds from many runs are below the truth, close to it, and false no more often than stated; operating points keep limits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, norm

from fedgraph.audit import lower_bound, operating_points
from fedgraph.audit.lower_bound import LowerBoundScores
from fedgraph.errors import PrivacyError
from fedgraph.privacy import gaussian as exact

Draw = Callable[[np.random.Generator, int], LowerBoundScores]
KEEP, HALF = math.e / (math.e + 4), math.e / (math.e + 1)
ONE = 1 / (1 + math.exp(-0.25))
NORMAL = ndtri((np.arange(50_000) + 0.5) / 50_000)  # mid-point quantiles: N(0, 1) without chance


def normals(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(3 * rng.standard_normal(runs) + 5, 3 * rng.standard_normal(runs) + 2)


def laplaces(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(rng.laplace(2.0, 2.0, runs), rng.laplace(0.0, 2.0, runs))


def bits(chance: float, other: float, count: int = 1) -> Draw:
    return lambda rng, runs: LowerBoundScores(*(1.0 * rng.binomial(count, p, runs) for p in (chance, other)))


KNOWN = {  # (bound of a draw at α, draw, what is true)
    "gaussian": (lambda draw, alpha: lower_bound.gaussian().bound(draw(), 1e-3, alpha), normals, exact.epsilon(1.0, 1e-3)),
    "laplace": (lambda draw, alpha: lower_bound.laplace().bound(draw(), 1e-2, alpha), laplaces, 1 + 2 * math.log(0.99)),
    "response": (lambda draw, alpha: lower_bound.response(5).bound(draw(), 0.0, alpha), bits(KEEP, (1 - KEEP) / 4), 1.0),
    "bits": (lambda draw, alpha: lower_bound.bits(4).bound(draw(), 0.0, alpha), bits(ONE, 1 - ONE, 4), 1.0),
    "counted events": (lambda draw, alpha: lower_bound.of_epsilon(draw(), draw(), 0.0, alpha), bits(HALF, 1 - HALF), 1.0),
    "counted hockey-stick": (
        lambda draw, alpha: lower_bound.of_delta(draw(), draw(), 0.5, alpha), normals, math.exp(exact.log_delta(0.5, 1.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_a_bound_is_within_a_fifth_of_the_truth_and_above_it_no_more_often_than_stated(name: str) -> None:
    (bound, draw, truth), rng, alpha, audits = KNOWN[name], np.random.default_rng(1), 0.2, 400
    assert 0.8 * truth <= bound(lambda: draw(rng, 40_000), 1e-4) <= truth
    false = sum(bound(lambda: draw(rng, 60), alpha) > truth for _ in range(audits))
    assert binom.sf(false - 1, audits, alpha) > 1e-6


@pytest.mark.parametrize(("mu", "delta"), [(0.5, 1e-3), (0.5, 1e-2), (1.0, 1e-3), (1.0, 1e-2), (2.0, 1e-2)])
def test_exact_normal_quantiles_give_a_bound_below_the_truth_and_within_a_fifth(mu: float, delta: float) -> None:
    truth, worlds = exact.epsilon(mu, delta), LowerBoundScores(NORMAL + mu, NORMAL)
    assert 0.8 * truth <= lower_bound.of_epsilon(worlds, worlds, delta, 0.05) < truth


def test_the_mirror_test_sees_what_shows_in_the_other_direction_only() -> None:
    """Q falls in {score ≤ 0} with probability ½ and P never: no event {score ≥ t} has a ratio above 2."""
    worlds = LowerBoundScores(np.ones(4_000), np.tile([0.0, 1.0], 2_000))
    assert lower_bound.of_epsilon(worlds, worlds, 0.0, 0.05) > 6


@pytest.mark.parametrize(("runs", "published"), [(100, 3.28), (500, 4.91), (1000, 5.60), (5000, 7.21)])
def test_the_ceiling_is_that_of_the_science_note(runs: int, published: float) -> None:
    assert lower_bound.ceiling(runs, 0.0, 0.05) == pytest.approx(published, abs=0.01)
    apart = LowerBoundScores(np.full(runs, math.inf), np.full(runs, -math.inf))
    assert lower_bound.of_epsilon(apart, apart, 0.0, 0.05) == pytest.approx(lower_bound.ceiling(runs, 0.0, 0.05))


def test_edge_cases() -> None:
    none, apart = LowerBoundScores(np.zeros(0), np.zeros(0)), LowerBoundScores(np.ones(50), np.zeros(50))
    same = LowerBoundScores(np.ones(50), np.ones(50))
    noisy = (lower_bound.gaussian(), lower_bound.laplace())
    assert [form.bound(none, 0.0, 0.05) for form in (*noisy, lower_bound.response(3), lower_bound.bits(2))] == [0.0] * 4
    assert [form.bound(apart, 1e-3, 0.05) for form in noisy] == [math.inf] * 2
    assert [form.bound(same, 1e-3, 0.05) for form in noisy] == [0.0] * 2
    assert lower_bound.of_epsilon(none, none, 0.0, 0.05) == lower_bound.of_epsilon(same, same, 0.0, 0.05) == 0.0
    assert lower_bound.of_epsilon(apart, apart, 0.99, 0.05) == 0.0
    for wrong in (
        lambda: lower_bound.bits(2).bound(apart, 0.1, 0.05),
        lambda: LowerBoundScores(np.array([math.nan]), np.zeros(1)),
        lambda: operating_points.of_scores(np.array([np.nan, 1.0]), np.array([True, False])),
        *(lambda alpha=alpha: lower_bound.of_epsilon(apart, apart, 0.0, alpha) for alpha in (0.0, 1.0, math.nan)),
    ):
        with pytest.raises(PrivacyError):
            wrong()


def test_operating_points_of_perfect_constant_and_normal_scores() -> None:
    truth = np.arange(200_000) % 2 == 0
    perfect, nothing, empty = (
        operating_points.of_scores(*given)
        for given in ((1.0 * truth, truth), (0.0 * truth, truth), (np.zeros(3), np.ones(3, bool)))
    )
    assert (perfect.auc, perfect.advantage, perfect.tpr) == (1.0, 1.0, (1.0, 1.0))
    assert (nothing.auc, nothing.advantage, nothing.tpr) == (0.5, 0.0, (0.0, 0.0))
    assert (empty.auc, empty.advantage) == (0.5, 0.0)
    found = operating_points.of_scores(np.random.default_rng(0).normal(size=truth.size) + 2.0 * truth, truth)
    assert found.auc == pytest.approx(norm.cdf(math.sqrt(2)), abs=0.005)
    assert found.advantage == pytest.approx(2 * norm.cdf(1) - 1, abs=0.01)
    for rate, tpr in zip(operating_points.LOW_OPERATING_RATES, found.tpr, strict=True):
        assert tpr == pytest.approx(norm.cdf(2 + norm.ppf(rate)), abs=0.02)
    for mu, delta in ((0.3, 1e-5), (0.3, 1e-2), (1.0, 1e-5), (2.5, 1e-2)):
        most = operating_points.most_audited_advantage(exact.epsilon(mu, delta), delta)
        assert 2 * norm.cdf(mu / 2) - 1 <= most + 1e-12, "no Gaussian mechanism goes beyond the limits"
