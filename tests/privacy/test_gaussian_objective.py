"""Gaussian noise on an objective: the price against exact integrals in one dimension, and against the Gamma noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian_objective


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_calibration_lands_at_or_below(epsilon: float) -> None:
    std = gaussian_objective.noise_std(epsilon, 1e-5, 0.3, 7, 0.1 * epsilon, 1e-6)
    assert 0.99e-5 < gaussian_objective.delta(epsilon, std, 0.3, 7, 0.1 * epsilon, 1e-6) <= 1e-5
    assert gaussian_objective.delta(epsilon, std * 2 / 3, 0.3, 7, 0.1 * epsilon, 1e-6) > 1e-5


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
        assert real <= gaussian_objective.delta(epsilon, std, 1.0, 1, log_determinant) + 1e-9


def test_a_change_along_the_noise_is_no_sum_of_fixed_directions() -> None:
    """Why the proof needs fixed directions: a field of length W along b itself moves the loss by √d, not by |N|."""
    b = np.random.default_rng(0).standard_normal((20_000, 64))
    along = np.linalg.norm(b, axis=1)
    fixed = np.abs(b @ np.eye(64)[0])
    assert along.mean() > 9 * fixed.mean()


def test_at_64_directions_it_needs_a_quarter_of_the_gamma_noise() -> None:
    """Root mean square per entry: Gamma's radius has mean square d(d + 1)/β², β = (ε − ε_Λ)/(cW)."""
    d, classes, change, epsilon, bent = 64, 7, 0.1, 1.0, 0.1
    gamma = math.sqrt(d + 1) * classes * change / (epsilon - bent)
    std = gaussian_objective.noise_std(epsilon, 1e-5, change, classes, bent)
    assert 2.0 < gamma / std < 6.0


def test_nonsense_is_refused() -> None:
    with pytest.raises(PrivacyError):
        gaussian_objective.delta(1.0, 0.0, 1.0, 1, 0.0)
    with pytest.raises(PrivacyError, match="no noise"):
        gaussian_objective.noise_std(1.0, 1e-5, 1.0, 1, 2.0)
