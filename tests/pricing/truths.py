"""What noise is worth, without fedgraph: Gaussian releases in closed form, sampled ones by dp_accounting."""

from __future__ import annotations

import functools
import math

import dp_accounting
from dp_accounting import pld
from scipy.optimize import brentq
from scipy.stats import norm

INF = math.inf


@functools.cache
def gaussian(mu: float, delta: float) -> float:
    """ε of a μ-Gaussian release: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    if mu == 0:
        return 0.0

    def gap(epsilon: float) -> float:
        high, low = norm.logcdf(mu / 2 - epsilon / mu), epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
        return float(high + math.log1p(-math.exp(min(low - high, -1e-300))) - math.log(delta))

    return float(brentq(gap, 0.0, mu * mu + 50 * mu + 1, xtol=1e-12)) if gap(0.0) > 0 else 0.0


@functools.cache
def poisson(multiplier: float, rate: float, steps: int, delta: float) -> float:
    """Sampled Gaussians, by the distribution of their privacy loss, to about a thousandth; little noise needs less."""
    grid = 1e-3 / min(1.0, multiplier) ** 2
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=grid)
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    return float(accountant.compose(event, steps).get_epsilon(delta))


def local(clip: float, sensitivity: float, epsilon: float, delta: float, rounds: int) -> float:
    """Flower's LocalDpMod over rounds, one client zeroed."""
    std = sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return gaussian(clip / std * math.sqrt(rounds), delta)


def svt(parameters: int, rounds: int, fraction: float = 0.1, epsilon: float = 0.1, noise_var: float = 0.1) -> float:
    """FLARE's SVT: threshold, every query that may be accepted, and the release of each uploaded value."""
    uploads = math.ceil(parameters * fraction)
    first = epsilon / (1 + (2 * uploads) ** (2 / 3))
    return rounds * (first + (epsilon - first) * parameters / uploads + uploads * noise_var)
