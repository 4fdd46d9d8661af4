"""Gaussian noise on an objective: the price against exact integrals in one dimension, and against the Gamma noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError
from fedgraph.learning.optimisers.objective import LinearObjective, ObjectiveLoss
from fedgraph.privacy.events import ApproxDP
from fedgraph.privacy.mechanisms import gaussian_objective as calibration
from fedgraph.privacy.mechanisms import gcon_noise as claim
from fedgraph.privacy.mechanisms.objective_perturbation import OBJECTIVE_OUTPUT_SHARE, ObjectivePerturbation


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_calibration_lands_at_or_below(epsilon: float) -> None:
    std = calibration.noise_std(epsilon, 1e-5, 0.3, 7, 0.1 * epsilon, 1e-6)
    assert 0.99e-5 < calibration.delta_at(epsilon, std, 0.3, 7, 0.1 * epsilon, 1e-6) <= 1e-5
    assert calibration.delta_at(epsilon, std * 2 / 3, 0.3, 7, 0.1 * epsilon, 1e-6) > 1e-5


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
        assert real <= calibration.delta_at(epsilon, std, 1.0, 1, log_determinant) + 1e-9


def test_at_64_directions_it_needs_a_quarter_of_the_gamma_noise() -> None:
    """Root mean square per entry: Gamma's radius has mean square d(d + 1)/β², β = (ε − ε_Λ)/(cW)."""
    d, classes, change, epsilon, bent = 64, 7, 0.1, 1.0, 0.1
    gamma = math.sqrt(d + 1) * classes * change / (epsilon - bent)
    std = calibration.noise_std(epsilon, 1e-5, change, classes, bent)
    assert 2.0 < gamma / std < 6.0


def test_nonsense_is_refused() -> None:
    with pytest.raises(PrivacyError):
        calibration.delta_at(1.0, 0.0, 1.0, 1, 0.0)
    with pytest.raises(PrivacyError, match="no noise"):
        calibration.noise_std(1.0, 1e-5, 1.0, 1, 2.0)


CORA = calibration.Situation(
    1.0, 1e-4, 0.9, claim.gcon_soft_margin(7), claim.claimed_gcon_psi([2], 0.4), 7, 64, 1_000, per_end=False
)


@pytest.mark.parametrize("per_end", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_all_constants_together_keep_the_budget(epsilon: float, prior: float, per_end: bool) -> None:
    """Every constant is computed again from σ alone, and σ scaled by 2/3 no longer keeps δ."""
    given = calibration.Situation(**{**vars(CORA), "epsilon": epsilon, "prior_norm": prior, "per_end": per_end})
    made = calibration.calibrated(given, 3 * calibration.least_regulariser(given), 1e-9)
    left = 1 - OBJECTIVE_OUTPUT_SHARE
    c_theta = prior + (given.bounds.c1 + made.noise_std * given.length / given.num_labelled) / made.regulariser
    assert c_theta <= made.c_theta * (1 + 1e-12)
    change = (given.bounds.c1 + given.bounds.c2 * c_theta) * given.sensitivity
    bent = given.determinant(c_theta, made.regulariser)

    def worst(std: float) -> float:
        """The largest δ over its target: of a whole change, and where it matters of half of it."""
        found = [calibration.delta_at(epsilon * left, std, change, 7, bent, given.missed) / (given.delta * left)]
        if per_end:
            half = calibration.delta_at(epsilon * left / 2, std, change / 2, 7, bent, given.missed)
            found.append(half / (given.delta * left / 2))
        return max(found)

    assert worst(made.noise_std) <= 1
    assert worst(made.noise_std * 2 / 3) > 1
    ends = 2 if per_end else 1
    assert made.event == ApproxDP(epsilon / ends, given.delta / ends)


def test_neighbouring_rows_move_the_density_within_the_budget() -> None:
    """The exact loss of the minimiser, sampled: E(1 − e^(ε − loss))₊ ≤ δ; with a twelfth of the noise it is not."""
    rng = np.random.default_rng(3)
    n, c, d = 60, 3, 3
    labels = np.arange(n) % c
    one = np.eye(c)[labels]
    other = one.copy()
    other[0] = -other[0]  # a change of length 2, all that Ψ allows here
    given = calibration.Situation(1.0, 0.01, 0.9, claim.gcon_soft_margin(c), 2.0, c, d, n, per_end=False)
    made = calibration.calibrated(given, 3 * calibration.least_regulariser(given), 1e-9)
    loss = ObjectiveLoss("soft-margin", c)
    objective = LinearObjective(loss, labels, made.regulariser, 1e-9)

    def log_det(rows: np.ndarray, theta: np.ndarray) -> float:
        weights = loss.second(rows @ theta, np.eye(c)[labels])
        return float(sum(np.linalg.slogdet((rows.T * w) @ rows + n * made.regulariser * np.eye(d))[1] for w in weights.T))

    def spent(std: float) -> float:
        found = []
        for _ in range(300):
            noise = std * rng.standard_normal((d, c))
            theta = objective.minimise(one, noise)
            if (np.linalg.norm(noise, axis=0) <= std * given.length).all() and std == made.noise_std:
                assert (np.linalg.norm(theta, axis=0) <= made.c_theta * (1 + 1e-9)).all()
                assert abs(log_det(one, theta) - log_det(other, theta)) <= made.log_determinant
            needed = noise - n * objective.gradient(theta, other, noise)  # the noise that gives θ in the other world
            ratio = (np.square(needed).sum() - np.square(noise).sum()) / (2 * std**2)
            found.append(ratio + log_det(one, theta) - log_det(other, theta))
        return float(np.maximum(1 - np.exp(given.epsilon - np.array(found)), 0).mean())

    assert spent(made.noise_std) <= given.delta
    assert spent(made.noise_std / 12) > given.delta


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_the_noise_in_the_minimiser_is_as_stated(factor: float) -> None:
    """Without loss rows the minimiser is −B/(n₁Λ): its entries are normal with the stated deviation, and with no other."""

    class Flat(LinearObjective):
        def minimise(self, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
            return -noise / (len(rows) * self.regulariser)

        def gradient(self, theta: np.ndarray, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
            return noise / len(rows) + self.regulariser * theta

    flat = Flat(ObjectiveLoss("soft-margin", 2), np.array([0, 1]), 0.5, 1e-9)
    mechanism = ObjectivePerturbation(2, math.inf, 1e-9, 1e-12, flat, noise_std=factor * 3.0)
    found = mechanism.apply(np.zeros((2, 2_000)), np.random.default_rng(0)).ravel()
    accepted = stats.kstest(found, stats.norm(scale=3.0).cdf).pvalue
    assert (accepted > 0.01) if factor == 1.0 else (accepted < 1e-10)


def test_what_has_no_price_is_refused() -> None:
    least = calibration.least_regulariser(CORA)
    with pytest.raises(PrivacyError, match="must exceed"):
        calibration.calibrated(CORA, least * 0.999, 1e-9)
    flat = LinearObjective(ObjectiveLoss("soft-margin", 2), np.array([0, 1]), 0.5, 1e-9)
    with pytest.raises(PrivacyError, match="one noise"):
        ObjectivePerturbation(2, 1.0, 1e-9, 1e-9, flat, noise_std=1.0)
    with pytest.raises(PrivacyError):
        ObjectivePerturbation(2, math.inf, 1e-9, 0.0, flat, noise_std=1.0)
