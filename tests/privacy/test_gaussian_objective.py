"""Objective perturbation: the Gaussian price against exact integrals, the law of both noises, and the certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError
from fedgraph.learning import LinearObjective, ObjectiveLoss
from fedgraph.privacy.events import ApproxDP
from fedgraph.privacy.mechanisms import objective_perturbation as calibration
from fedgraph.privacy.mechanisms.objective_perturbation import OUTPUT_SHARE, ObjectivePerturbation


@pytest.mark.parametrize("sharpness", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("std", [1.0, 3.0])
def test_it_covers_the_exact_loss_of_a_scalar_objective(std: float, sharpness: float) -> None:
    """θ minimises f(θ) + Λθ²/2 + bθ with f' changed by V(θ) = tanh(kθ), |V| ≤ 1 (one class, one row): integrated on a grid."""
    strength = 40.0
    theta = np.linspace(-1.5, 1.5, 400_001)
    one, other = -strength * theta, -strength * theta - np.tanh(sharpness * theta)
    slope_one, slope_other = np.full_like(theta, strength), strength + sharpness / np.cosh(sharpness * theta) ** 2
    density = [
        np.exp(-(b**2) / (2 * std**2)) / (std * math.sqrt(2 * math.pi)) * slope
        for b, slope in ((one, slope_one), (other, slope_other))
    ]
    log_determinant = math.log1p(sharpness / strength)
    step = theta[1] - theta[0]
    assert density[0].sum() * step == pytest.approx(1.0, abs=1e-6)
    for epsilon in (log_determinant + 0.05, 0.5, 1.0, 2.0):
        real = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step) for p, q in (density, density[::-1]))
        assert real <= calibration.gaussian_delta(epsilon, std, 1.0, 1, log_determinant) + 1e-9


class Flat(LinearObjective):
    """Without loss rows the minimiser is −B/(n₁Λ)."""

    def minimise(self, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return -noise / (len(rows) * self.regulariser)

    def gradient(self, theta: np.ndarray, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return noise / len(rows) + self.regulariser * theta


FLAT = Flat(ObjectiveLoss("soft-margin", 2), np.array([0, 1]), 0.5, 1e-9)
CORA = calibration.Situation(
    1.0,
    1e-4,
    0.9,
    calibration.LossBounds.soft_margin(7),
    calibration.psi([2], 0.4),
    7,
    64,
    1_000,
    per_end=False,
    gaussian=True,
)


@pytest.mark.parametrize("per_end", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_all_constants_together_keep_the_budget(epsilon: float, prior: float, per_end: bool) -> None:
    """Every constant is computed again from σ alone, and σ scaled by 2/3 no longer keeps δ."""
    given = calibration.Situation(**{**vars(CORA), "epsilon": epsilon, "prior_norm": prior, "per_end": per_end})
    made = calibration.calibrated(given, 3 * calibration.least_regulariser(given), 1e-9)
    left = 1 - OUTPUT_SHARE
    c_theta = prior + (given.bounds.c1 + made.noise_std * given.length / given.num_labelled) / made.regulariser
    assert c_theta <= made.c_theta * (1 + 1e-12)
    change = (given.bounds.c1 + given.bounds.c2 * c_theta) * given.sensitivity
    bent = given.determinant(c_theta, made.regulariser)

    def worst(std: float) -> float:
        """The largest δ over its target: of a whole change, and where it matters of half of it."""
        found = [calibration.gaussian_delta(epsilon * left, std, change, 7, bent, given.missed) / (given.delta * left)]
        if per_end:
            half = calibration.gaussian_delta(epsilon * left / 2, std, change / 2, 7, bent, given.missed)
            found.append(half / (given.delta * left / 2))
        return max(found)

    assert worst(made.noise_std) <= 1
    assert worst(made.noise_std * 2 / 3) > 1
    ends = 2 if per_end else 1
    assert made.event == ApproxDP(epsilon / ends, given.delta / ends)


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_columns_of_gamma_noise_have_gamma_norms_and_uniform_directions(factor: float) -> None:
    """The published noise, read off the minimiser of an objective without loss."""
    d, rate, mechanism = 6, 2.5, ObjectivePerturbation(20_000, 2.5, 1e-9, 1e-12, FLAT)
    noise = -2 * 0.5 * mechanism.apply(np.zeros((2, d)), np.random.default_rng(0))
    norms = np.linalg.norm(noise, axis=0)
    found = stats.kstest(norms, stats.gamma(d, scale=1 / (rate * factor)).cdf).pvalue
    assert (found > 0.01) if factor == 1.0 else (found < 1e-10)
    assert np.abs((noise / norms).mean(axis=1)).max() < 4 / math.sqrt(20_000 * d)


def test_a_solution_that_is_not_the_minimiser_never_leaves() -> None:
    class Lazy(LinearObjective):
        def minimise(self, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
            return np.zeros((3, 3))

    lazy = Lazy(ObjectiveLoss("soft-margin", 3), np.array([0, 1, 2]), 1.0, 1e-9)
    with pytest.raises(PrivacyError, match="minimiser was not reached"):
        ObjectivePerturbation(3, 1.0, 1e-9, 1e-8, lazy).apply(np.eye(3), np.random.default_rng(0))


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_the_noise_in_the_minimiser_is_as_stated(factor: float) -> None:
    """Without loss rows the minimiser is −B/(n₁Λ): its entries are normal with the stated deviation, and with no other."""
    mechanism = ObjectivePerturbation(2, math.inf, 1e-9, 1e-12, FLAT, noise_std=factor * 3.0)
    found = mechanism.apply(np.zeros((2, 2_000)), np.random.default_rng(0)).ravel()
    accepted = stats.kstest(found, stats.norm(scale=3.0).cdf).pvalue
    assert (accepted > 0.01) if factor == 1.0 else (accepted < 1e-10)


def test_what_has_no_price_is_refused() -> None:
    least = calibration.least_regulariser(CORA)
    with pytest.raises(PrivacyError, match="must exceed"):
        calibration.calibrated(CORA, least * 0.999, 1e-9)
    with pytest.raises(PrivacyError, match="one noise"):
        ObjectivePerturbation(2, 1.0, 1e-9, 1e-9, FLAT, noise_std=1.0)
    with pytest.raises(PrivacyError):
        ObjectivePerturbation(2, math.inf, 1e-9, 0.0, FLAT, noise_std=1.0)
