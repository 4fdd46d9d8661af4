"""Closed forms: below the truth, close to it, and with their coverage."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtri

from fedgraph.audit import lower_bound
from fedgraph.audit.lower_bound import ClosedFormAudit, LowerBoundScores, _gaussian_mu
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian as exact

Draw = Callable[[np.random.Generator, int], LowerBoundScores]
KEEP = math.e / (math.e + 4)
ONE = 1 / (1 + math.exp(-0.25))


def normals(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(3 * rng.standard_normal(runs) + 5, 3 * rng.standard_normal(runs) + 2)


def laplaces(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(rng.laplace(2.0, 2.0, runs), rng.laplace(0.0, 2.0, runs))


def answers(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(1.0 * (rng.random(runs) < KEEP), 1.0 * (rng.random(runs) < (1 - KEEP) / 4))


def four_bits(rng: np.random.Generator, runs: int) -> LowerBoundScores:
    return LowerBoundScores(rng.binomial(4, ONE, runs).astype(float), rng.binomial(4, 1 - ONE, runs).astype(float))


FORMS = [
    pytest.param(lower_bound.gaussian(), normals, 1e-3, exact.epsilon(1.0, 1e-3), id="gaussian"),
    pytest.param(lower_bound.laplace(), laplaces, 1e-2, 1 + 2 * math.log(0.99), id="laplace"),
    pytest.param(lower_bound.response(5), answers, 0.0, 1.0, id="response"),
    pytest.param(lower_bound.bits(4), four_bits, 0.0, 1.0, id="bits"),
]


@pytest.mark.parametrize(("form", "draw", "delta", "truth"), FORMS)
def test_the_bound_is_below_the_truth_and_within_a_fifth(form: ClosedFormAudit, draw: Draw, delta: float, truth: float) -> None:
    bound = form.bound(draw(np.random.default_rng(1), 40_000), delta, 1e-4)
    assert 0.8 * truth <= bound <= truth


@pytest.mark.parametrize(("form", "draw", "delta", "truth"), FORMS)
def test_the_bound_exceeds_the_truth_no_more_often_than_stated(
    form: ClosedFormAudit, draw: Draw, delta: float, truth: float
) -> None:
    rng, alpha, audits = np.random.default_rng(2), 0.2, 400
    false = sum(form.bound(draw(rng, 60), delta, alpha) > truth for _ in range(audits))
    assert false / audits <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


def test_exact_normal_quantiles_give_mu_within_five_per_cent() -> None:
    normal = ndtri((np.arange(50_000) + 0.5) / 50_000)
    assert 0.95 <= _gaussian_mu(LowerBoundScores(normal + 1, normal), 0.01) < 1


def test_a_scale_of_two_thirds_shows() -> None:
    """What the closed forms are for: a claim of the true ε is refuted by ⅔ of the noise."""
    rng = np.random.default_rng(6)
    quiet = LowerBoundScores(rng.laplace(1.0, 2 / 3, 40_000), rng.laplace(0.0, 2 / 3, 40_000))
    assert lower_bound.laplace().bound(quiet, 0.0, 1e-5) > 1.3


def test_edge_cases() -> None:
    none = LowerBoundScores(np.zeros(0), np.zeros(0))
    for form in (lower_bound.gaussian(), lower_bound.laplace(), lower_bound.response(3), lower_bound.bits(2)):
        assert form.bound(none, 0.0, 0.05) == 0.0
    apart = LowerBoundScores(np.ones(50), np.zeros(50))
    assert lower_bound.gaussian().bound(apart, 1e-3, 0.05) == math.inf
    assert lower_bound.laplace().bound(apart, 1e-3, 0.05) == math.inf
    same = LowerBoundScores(np.ones(50), np.ones(50))
    assert lower_bound.gaussian().bound(same, 1e-3, 0.05) == 0.0
    assert lower_bound.laplace().bound(same, 1e-3, 0.05) == 0.0
    with pytest.raises(PrivacyError, match="delta = 0"):
        lower_bound.bits(2).bound(apart, 0.1, 0.05)
