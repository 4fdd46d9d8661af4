"""Releases that cost one number: a pure ε (``pure_epsilon``), or ρ of zero-concentrated DP (``rho``).

**Pure ε**: ε-DP with δ = 0.

**Guarantee.** Pure ε add up under adaptive composition (Dwork & Roth 2014, Theorem 3.14), and any
(εᵢ, δᵢ) add up componentwise (Theorem 3.16).

**Edge cases.** Noise multiplier 0 → ε = ∞ (no noise); ∞ → ε = 0.

    Laplace, multiplier b/Δ₁      Δ₁/b
    k-ary response                its ε
    bounded range ε               ε (Durfee & Rogers 2019, Corollary 4.2)
    multi-bit, m bits at a        m·a

**ρ**: the numbers are added, and the sum is converted to (ε, δ).

ρ-zCDP means D_α(P‖Q) ≤ ρα for every α > 1 (Bun & Steinke 2016, Definition 1.1). ρ adds up under adaptive
composition (Lemma 1.7). Conversion (Canonne, Kamath & Steinke 2020 v4, Proposition 12):

    ε(δ) = min over α > 1 of  ρα + ln(1 − 1/α) − ln(δα)/(α − 1).

What each release costs:

    Gaussian, multiplier σ        1/(2σ²)          Bun & Steinke 2016, Proposition 1.6
    ε-DP (also k-RR, each bit)    ε·tanh(ε/2)      ≤ ε²/2; Bun & Steinke 2016, Proposition 3.3, its KL end
    bounded range ε               ε²/8             Cesar & Rogers 2021, Lemma 3.4
    Laplace, multiplier 1/ε       as ε-DP

**Guarantee.** Any α gives a valid ε, so the search over α cannot make the answer wrong, only loose.

**Edge cases.** ρ = 0 → ε = 0; ρ = ∞ or δ = 0 → ε = ∞; NaN or negative → ``PrivacyError``.
"""

import math

from scipy.optimize import minimize_scalar

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import ApproxDP, BoundedRange, Event, Gaussian, Laplace, MultiBit, PureDP, RandomizedResponse


def pure_epsilon(event: Event) -> float | None:
    """The ε of a release that is ε-DP with δ = 0. event: one release. Returns ε; None if it is not ε-DP, or not known to be."""
    if isinstance(event, (PureDP, RandomizedResponse, BoundedRange)):
        return event.epsilon
    if isinstance(event, MultiBit):
        return event.epsilon_per_bit * event.num_bits
    if isinstance(event, Laplace):
        return math.inf if event.noise_multiplier == 0 else 1.0 / event.noise_multiplier
    if isinstance(event, ApproxDP) and event.delta == 0:
        return event.epsilon
    return None


def rho(event: Event) -> float | None:
    """ρ of one release.

    event: one release; its noise multiplier, where it has one, is > 0. Returns ρ; None where the event has no zCDP bound here.
    """
    if isinstance(event, Gaussian):
        return 0.5 / event.noise_multiplier**2
    if isinstance(event, BoundedRange):
        return event.epsilon**2 / 8
    if isinstance(event, (PureDP, RandomizedResponse)):
        return _pure(event.epsilon)
    if isinstance(event, Laplace):
        return _pure(1 / event.noise_multiplier)
    if isinstance(event, MultiBit):
        return event.num_bits * _pure(event.epsilon_per_bit)
    return None


def _pure(epsilon: float) -> float:
    return epsilon * math.tanh(epsilon / 2)


def epsilon(total_rho: float, delta: float) -> float:
    """ε of a ρ-zCDP mechanism, by the conversion above.

    Args:
        total_rho: ρ ≥ 0; ∞ → ∞.
        delta: δ in [0, 1]; 0 → ∞ unless ρ = 0.

    Raises:
        PrivacyError: a number out of its range, or NaN.

    >>> round(epsilon(0.5, 1e-5), 4)
    4.7284
    """
    if math.isnan(total_rho) or total_rho < 0 or not 0 <= delta <= 1:
        raise PrivacyError(f"need rho ≥ 0 and 0 ≤ delta ≤ 1, found rho={total_rho}, delta={delta}")
    if total_rho == 0:
        return 0.0
    if math.isinf(total_rho) or delta == 0:
        return math.inf

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return total_rho * alpha + math.log(excess / alpha) - math.log(delta * alpha) / excess

    guess = 0.5 * math.log(max(-math.log(delta), 1e-3) / total_rho)
    found = minimize_scalar(at, bounds=(guess - 6, guess + 6), method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(found.fun))
