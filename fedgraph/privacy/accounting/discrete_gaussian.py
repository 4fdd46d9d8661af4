"""What sums of rounded values with discrete Gaussian noise cost: the price of distributed noise behind real secure aggregation.

Every client scales its value to whole steps, rounds it at random (⌊x + U⌋ with U uniform in [0, 1) per entry), and adds
discrete Gaussian noise of standard deviation parameter σ steps. Sums are taken modulo 2^b.

U does not depend on data, so it may be thought of as published. Where the bound fails (chance β in both worlds) everything
is given up: the release is β-approximately ρ-zCDP (Bun & Steinke 2016, Definition 8.1), and β adds to δ.

**Noise of n honest clients.** A sum of n discrete Gaussians is not one, but nearly (Kairouz, Liu & Steinke 2021, "The
distributed discrete Gaussian mechanism", Theorem 1, its second form): for σ ≥ ½

    ρ = ½·(‖D‖₂/(√n·σ) + τ·√d)²,        τ = 10·Σ_{k=1}^{n−1} exp(−2π²σ²k/(k + 1)).

**Wrap-around** is taken of the noisy sum: post-processing, which is free. It can only cost accuracy. More clients than n add
noise that is independent of the rest: post-processing, too.

**Rounding.** With R the L2 sensitivity in steps and d entries, except with probability β (proof: ``docs/proofs.md``)

    ‖D‖₂² ≤ R² + d/4 + (2R + √d)·√(ln(1/β)/2),        and always ‖D‖₂ ≤ R + √d.

**Edge cases.** σ < ½ → ∞ (the theorem says nothing); R = 0 → rounding is still paid for; d = 0 → nothing is released, ρ = 0.
"""

import math

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import ZCDP, ApproxDP, Composed, Event

DISCRETE_FRACTION = 2.0**16  # values are first rounded to this part of a step, so that everything after is exact


def discrete_rounded_norm(norm: float, dimension: int, failure: float) -> float:
    """The L2 norm, in steps, that a rounded difference exceeds with a small chance only.

    Args:
        norm: R ≥ 0, of the difference before rounding, in steps, finite.
        dimension: d ≥ 0, how many entries.
        failure: β in (0, 1), that chance.

    Raises:
        PrivacyError: a number out of its range.

    >>> round(discrete_rounded_norm(1000.0, 10_000, 1e-12), 2)
    1005.14
    """
    if not (math.isfinite(norm) and norm >= 0 and dimension >= 0 and 0 < failure < 1):
        raise PrivacyError(f"need norm ≥ 0, dimension ≥ 0 and 0 < failure < 1, found {norm}, {dimension} and {failure}")
    root = math.sqrt(dimension)
    exact = norm + root / DISCRETE_FRACTION  # two values, each within half a fraction
    likely = math.sqrt(exact**2 + dimension / 4 + (2 * exact + root) * math.sqrt(-math.log(failure) / 2))
    return min(likely, exact + root)


def _tau(std: float, shares: int) -> float:
    """How far the sum of ``shares`` discrete Gaussians of parameter ``std`` is from one: τ of the theorem."""
    terms = np.arange(1, shares, dtype=np.float64)
    return 10.0 * float(np.exp(-2 * (math.pi * std) ** 2 * terms / (terms + 1)).sum())


def _discrete_gaussian_rho(norm: float, std: float, shares: int, dimension: int) -> float:
    """ρ of a sum with ``shares`` discrete Gaussians: ½(norm/(√shares·std) + τ√dimension)², ∞ for std < ½.

    Args:
        norm: the largest L2 norm of a difference of whole numbers, in steps.
        std: parameter σ of one share, in steps, > 0.
        shares: honest clients, ≥ 1.
        dimension: entries, ≥ 0.

    Raises:
        PrivacyError: no share, or noise that is not > 0.
    """
    if shares < 1 or not std > 0:
        raise PrivacyError(f"need at least one share of noise with std > 0, found {shares} of {std}")
    if std < 0.5:
        return math.inf
    return 0.5 * (norm / (math.sqrt(shares) * std) + _tau(std, shares) * math.sqrt(dimension)) ** 2


def discrete_gaussian_event(norm: float, std: float, shares: int, dimension: int, failure: float) -> Event:
    """What one such sum costs.

    Args:
        norm: R, of the difference before rounding, in steps.
        std: parameter σ of one share, in steps, > 0.
        shares: honest clients, ≥ 1.
        dimension: entries; 0: nothing is released.
        failure: β in (0, 1), which adds to δ.

    Raises:
        PrivacyError: a number out of its range.
    """
    if not dimension:
        return Composed(())
    rounded = discrete_rounded_norm(norm, dimension, failure)
    return Composed((ZCDP(_discrete_gaussian_rho(rounded, std, shares, dimension)), ApproxDP(0.0, failure)))
