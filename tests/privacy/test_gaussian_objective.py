"""Objective perturbation: the Gaussian price against exact integrals, the law of both noises, and the certificate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError
from fedgraph.learning import LinearObjective, ObjectiveLoss
from fedgraph.privacy.events import ApproxDP
from fedgraph.privacy.mechanisms import objective_perturbation as calibration
from fedgraph.privacy.mechanisms.objective_perturbation import OUTPUT_SHARE, ObjectivePerturbation


@pytest.mark.parametrize("sharpness", [0.2, 5.0])
@pytest.mark.parametrize("std", [1.0, 3.0])
def test_it_covers_the_exact_loss_of_a_scalar_objective(std, sharpness):
    """θ minimises f(θ) + Λθ²/2 + bθ with f' changed by V(θ) = tanh(kθ), |V| ≤ 1 (one class, one row): integrated on a grid."""
    strength, theta = 40.0, np.linspace(-1.5, 1.5, 100_001)
    noise = -strength * theta, -strength * theta - np.tanh(sharpness * theta)
    slopes = np.full_like(theta, strength), strength + sharpness / np.cosh(sharpness * theta) ** 2
    density = [stats.norm.pdf(b, scale=std) * slope for b, slope in zip(noise, slopes, strict=True)]
    log_determinant, step = math.log1p(sharpness / strength), theta[1] - theta[0]
    assert density[0].sum() * step == pytest.approx(1.0, abs=1e-6)
    for epsilon in (log_determinant + 0.05, 0.5, 1.0, 2.0):
        real = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step) for p, q in (density, density[::-1]))
        assert real <= calibration.gaussian_delta(epsilon, std, 1.0, 1, log_determinant) + 1e-9


class Flat(LinearObjective):
    """Without loss rows the minimiser is −B/(n₁Λ)."""

    def minimise(self, rows, noise):
        return -noise / (len(rows) * self.regulariser)

    def gradient(self, theta, rows, noise):
        return noise / len(rows) + self.regulariser * theta


FLAT = Flat(ObjectiveLoss("soft-margin", 2), np.array([0, 1]), 0.5, 1e-9)
SOFT = calibration.LossBounds.soft_margin(7)
PSI = calibration.psi([2], 0.4)
CORA = calibration.Situation(1.0, 1e-4, 0.9, SOFT, PSI, 7, 64, 1_000, per_end=False, gaussian=True)


@pytest.mark.parametrize("per_end", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_all_constants_together_keep_the_budget(epsilon, prior, per_end):
    """Every constant is computed again from σ alone, and σ scaled by 2/3 no longer keeps δ."""
    given = replace(CORA, epsilon=epsilon, prior_norm=prior, per_end=per_end)
    made = calibration.calibrated(given, 3 * calibration.least_regulariser(given), 1e-9)
    left = 1 - OUTPUT_SHARE
    c_theta = prior + (given.bounds.c1 + made.noise_std * given.length / given.num_labelled) / made.regulariser
    assert c_theta <= made.c_theta * (1 + 1e-12)
    change = (given.bounds.c1 + given.bounds.c2 * c_theta) * given.sensitivity
    bent = given.determinant(c_theta, made.regulariser)

    def worst(std):
        """The largest δ over its target: of a whole change, and where it matters of half of it."""
        return max(
            calibration.gaussian_delta(epsilon * left / k, std, change / k, 7, bent, given.missed) / (given.delta * left / k)
            for k in ((1, 2) if per_end else (1,))
        )

    assert worst(made.noise_std) <= 1
    assert worst(made.noise_std * 2 / 3) > 1
    ends = 2 if per_end else 1
    assert made.event == ApproxDP(epsilon / ends, given.delta / ends)


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_both_noises_in_the_minimiser_are_as_stated_and_no_other(factor):
    """Read off an objective without loss: columns have gamma norms and uniform directions; entries are normal."""
    d, rate, mechanism = 6, 2.5, ObjectivePerturbation(20_000, 2.5, 1e-9, 1e-12, FLAT)
    noise = -2 * 0.5 * mechanism.apply(np.zeros((2, d)), np.random.default_rng(0))
    norms = np.linalg.norm(noise, axis=0)
    assert np.abs((noise / norms).mean(axis=1)).max() < 4 / math.sqrt(20_000 * d)
    normal = ObjectivePerturbation(2, math.inf, 1e-9, 1e-12, FLAT, noise_std=factor * 3.0)
    entries = normal.apply(np.zeros((2, 2_000)), np.random.default_rng(0)).ravel()
    for found in (
        stats.kstest(norms, stats.gamma(d, scale=1 / (rate * factor)).cdf).pvalue,
        stats.kstest(entries, stats.norm(scale=3.0).cdf).pvalue,
    ):
        assert (found > 0.01) if factor == 1.0 else (found < 1e-10)


def test_what_is_not_the_minimiser_or_has_no_price_never_leaves():
    class Lazy(LinearObjective):
        def minimise(self, rows, noise):
            return np.zeros((3, 3))

    lazy = Lazy(ObjectiveLoss("soft-margin", 3), np.array([0, 1, 2]), 1.0, 1e-9)
    least = calibration.least_regulariser(CORA)
    for refused, says in (
        (lambda: ObjectivePerturbation(3, 1.0, 1e-9, 1e-8, lazy).apply(np.eye(3), np.random.default_rng(0)), "not reached"),
        (lambda: calibration.calibrated(CORA, least * 0.999, 1e-9), "must exceed"),
        (lambda: ObjectivePerturbation(2, 1.0, 1e-9, 1e-9, FLAT, noise_std=1.0), "one noise"),
        (lambda: ObjectivePerturbation(2, math.inf, 1e-9, 0.0, FLAT, noise_std=1.0), r"."),
        (lambda: calibration.calibrated(GAMMA, 1.0, math.nan), "gradient norm"),
    ):
        with pytest.raises(PrivacyError, match=says):
            refused()


GAMMA = calibration.Situation(4.0, 1e-4, 0.9, SOFT, 1.12, 7, 16, 140, per_end=False)


def test_gamma_noise_keeps_the_determinant_within_its_share():
    made, tight = (calibration.gamma_noise(given, 1.0) for given in (GAMMA, replace(GAMMA, share=0.9999, epsilon=2.0)))
    assert made.log_determinant <= 0.1 * 4.0
    assert made.regulariser == 1.0 < tight.regulariser
    assert tight.log_determinant <= (1 - 0.9999) * 2.0 * (1 + 1e-9)
    assert calibration.gamma_noise(replace(GAMMA, sensitivity=0.0), 1.0).rate == math.inf
    assert calibration.psi([0.0], 0.3) == 0.0
    outputs = [calibration.calibrated(GAMMA, 1.0, g).output_std for g in (1e-10, 2e-10)]
    assert outputs[1] == pytest.approx(2 * outputs[0])
