"""The exact δ and ε of the Gaussian mechanism, computed with logarithms.

For sensitivity Δ₂ and standard deviation s let μ = Δ₂/s. Then (Balle & Wang 2018, Theorem 8; Dong, Roth &
Su 2022, Corollary 2.13)

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),     and n releases compose to μ = √(μ₁² + … + μₙ²).

**Guarantee.** Both are equalities, so nothing is lost. Adaptive composition is included (Dong et al.,
Corollary 3.3).

**Edge cases.** μ = 0 → ε = 0; μ = ∞ → ε = ∞; NaN or negative → ``PrivacyError``; δ ≥ δ(0) → ε = 0;
δ = 0 with μ > 0 → ε = ∞.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fedgraph.errors import PrivacyError
from fedgraph.privacy.fields import ArrayField


def log_delta(epsilon: float, mu: float) -> float:
    """log δ(ε) of the μ-Gaussian mechanism; −∞ when δ underflows even as a logarithm.

    Computed as log Φ(a) + log(1 − e^x), x = ε + log Φ(b) − log Φ(a) ≤ 0, with a, b = ±μ/2 − ε/μ.

    Args:
        epsilon: ε ≥ 0.
        mu: μ > 0, finite.
    """
    a = mu / 2 - epsilon / mu
    b = -mu / 2 - epsilon / mu
    log_a = float(log_ndtr(a))
    x = epsilon + float(log_ndtr(b)) - log_a
    if x >= 0:  # the two terms agree to rounding: δ is below what this ε can resolve
        return -math.inf
    return log_a + math.log(-math.expm1(x))


def deltas(e: ArrayField, mu: float) -> ArrayField:
    """δ(e) of the μ-Gaussian mechanism at many e.

    e: any shape, of either sign. mu: μ > 0, or an array of them that broadcasts with ``e``.
    """
    log_above = log_ndtr(mu / 2 - e / mu)
    ratio = np.minimum(e + log_ndtr(-mu / 2 - e / mu) - log_above, 0.0)
    return np.asarray(np.exp(log_above) * -np.expm1(ratio))


def epsilon(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 with δ(ε) ≤ delta, to one part in 10⁹, rounded up where double precision resolves δ(ε).

    For μ below about 1e-9 together with δ below about 1e-12 it does not, and δ(ε) may be missed by rounding.

    Args:
        mu: Δ₂/s of everything together, ≥ 0; ∞ → ∞.
        delta: in [0, 1]; 0 → ∞ unless μ = 0.

    Raises:
        PrivacyError: NaN or a number out of range.
    """
    if math.isnan(mu) or mu < 0 or math.isnan(delta) or not 0 <= delta <= 1:
        raise PrivacyError(f"need mu ≥ 0 and 0 ≤ delta ≤ 1, found mu={mu}, delta={delta}")
    if mu == 0:
        return 0.0
    if math.isinf(mu) or delta == 0:
        return math.inf
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    high = max(1.0, mu * mu)
    while log_delta(high, mu) > target:
        high *= 2
    root = brentq(lambda e: max(log_delta(e, mu), -1e300) - target, 0.0, high, xtol=1e-14 * max(high, 1e-6), rtol=1e-14)
    for step in (1e-13, 1e-12, 1e-11, 1e-10):
        candidate = root * (1 + step) + 1e-300
        if log_delta(candidate, mu) <= target:
            return float(candidate)
    return float(root * (1 + 1e-9))


def total_mu(noise_multipliers: np.ndarray, counts: np.ndarray) -> float:
    """μ of Gaussian releases together: √Σ countᵢ / multiplierᵢ².

    noise_multipliers: [kinds], s/Δ₂ of each kind of release; 0 gives ∞, and ∞ adds nothing. counts: [kinds], how often each is
    made.
    """
    with np.errstate(divide="ignore"):
        return float(np.sqrt(np.sum(counts / np.square(noise_multipliers))))


def moments_epsilon(mu: float, delta: float) -> float:
    """ε as papers publish it: μ²/2 + μ√(2 ln 1/δ), the closed form of the moments accountant.

    It is min over α of αμ²/2 + ln(1/δ)/(α − 1) (Mironov 2017, Propositions 3 and 7); with μ = √K/σ this is GAP's formula. An
    upper bound on ``epsilon(mu, delta)``.

    Args:
        mu: μ ≥ 0.
        delta: δ in (0, 1).
    """
    return mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))


def moments_mu(target: float, delta: float) -> float:
    """The largest μ with ``moments_epsilon(μ, δ) ≤ target``: √(s² + 2ε) − s with s = √(2 ln 1/δ), rounded down.

    Args:
        target: ε ≥ 0.
        delta: δ in (0, 1).
    """
    s = math.sqrt(2 * math.log(1 / delta))
    return 2 * target / (math.sqrt(s * s + 2 * target) + s) * (1 - 1e-12)
