"""Lower bounds on ε from many runs: below the truth, close to it, above it no more often than stated; what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from fedgraph.audit import lower_bound
from fedgraph.audit.lower_bound import LowerBoundScores
from fedgraph.errors import PrivacyError
from fedgraph.privacy import gaussian as exact

Draw = Callable[[np.random.Generator, int], LowerBoundScores]
Bound = Callable[[Draw, np.random.Generator, int, float], float]
KEEP, HALF = math.e / (math.e + 4), math.e / (math.e + 1)
ONE = 1 / (1 + math.exp(-0.25))
NORMAL = ndtri((np.arange(50_000) + 0.5) / 50_000)  # mid-point quantiles: N(0, 1) without chance


def normals(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(3 * rng.standard_normal(runs) + 5, 3 * rng.standard_normal(runs) + 2)


def laplaces(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(rng.laplace(2.0, 2.0, runs), rng.laplace(0.0, 2.0, runs))


def answers(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(1.0 * (rng.random(runs) < KEEP), 1.0 * (rng.random(runs) < (1 - KEEP) / 4))


def binary(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(1.0 * (rng.random(runs) < HALF), 1.0 * (rng.random(runs) >= HALF))


def four_bits(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(rng.binomial(4, ONE, runs).astype(float), rng.binomial(4, 1 - ONE, runs).astype(float))


def closed(form: lower_bound.ClosedFormAudit, delta: float) -> Bound:
    return lambda draw, rng, runs, alpha: form.bound(draw(rng, runs), delta, alpha)


def counted(draw: Draw, rng: np.random.Generator, runs: int, alpha: float) -> float:
    return lower_bound.of_epsilon(draw(rng, runs), draw(rng, runs), 0.0, alpha)


def stick(draw: Draw, rng: np.random.Generator, runs: int, alpha: float) -> float:
    return lower_bound.of_delta(draw(rng, runs), draw(rng, runs), 0.5, alpha)


KNOWN = [
    pytest.param(closed(lower_bound.gaussian(), 1e-3), normals, exact.epsilon(1.0, 1e-3), id="gaussian"),
    pytest.param(closed(lower_bound.laplace(), 1e-2), laplaces, 1 + 2 * math.log(0.99), id="laplace"),
    pytest.param(closed(lower_bound.response(5), 0.0), answers, 1.0, id="response"),
    pytest.param(closed(lower_bound.bits(4), 0.0), four_bits, 1.0, id="bits"),
    pytest.param(counted, binary, 1.0, id="counted events"),
    pytest.param(stick, normals, math.exp(exact.log_delta(0.5, 1.0)), id="counted hockey-stick"),
]


@pytest.mark.parametrize(("bound", "draw", "truth"), KNOWN)
def test_a_bound_is_within_a_fifth_of_the_truth_and_above_it_no_more_often_than_stated(
    bound: Bound, draw: Draw, truth: float
) -> None:
    assert 0.8 * truth <= bound(draw, np.random.default_rng(1), 40_000, 1e-4) <= truth
    rng, alpha, audits = np.random.default_rng(2), 0.2, 400
    false = sum(bound(draw, rng, 60, alpha) > truth for _ in range(audits))
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
    with pytest.raises(PrivacyError, match="delta = 0"):
        lower_bound.bits(2).bound(apart, 0.1, 0.05)
    with pytest.raises(PrivacyError, match="NaN"):
        LowerBoundScores(np.array([math.nan]), np.zeros(1))
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(PrivacyError, match="alpha"):
            lower_bound.of_epsilon(apart, apart, 0.0, alpha)
