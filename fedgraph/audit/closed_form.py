"""Lower bounds on ε where the law of the score is known up to parameters.

The parameters (distance, noise scale, keep probability) are *estimated from the runs*, so a wrong noise
scale or a wrong sensitivity shows; only the shape of the law is taken from the mechanism's definition.

    ``gaussian``   two normal laws of one variance              ε of μ_low, exactly
    ``laplace``    two Laplace laws of one scale                Δ_low / b_high + 2 ln(1 − δ)
    ``response``   k-ary response: kept, or uniform otherwise   ln((p_low − δ)(k − 1)/(1 − p_low))
    ``bits``       m independent equal bits                     m · ln(p₁_low / p₀_high), at δ = 0

**Guarantee.** If the law is as stated, the result exceeds the true ε at ``delta`` with probability at most
``alpha``, at any sample size. The law is that of the *sound* mechanism, so a sound mechanism is accused
with probability at most alpha; a mutant may break the law, which can only cost power.

**Edge cases.** Fewer than two runs in a world → 0; constant scores that differ (no noise at all) → ∞;
constant equal scores → 0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import binom, chi2, t

from fedgraph.audit.lower_bound import Worlds, at_least, at_most
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.gaussian import epsilon as gaussian_epsilon


@dataclass(frozen=True)
class ClosedForm:
    """name: for the table. bound: (worlds, delta, alpha) → lower bound on ε."""

    name: str
    bound: Callable[[Worlds, float, float], float]


def gaussian_mu(worlds: Worlds, alpha: float) -> float:
    """Lower confidence limit of μ = (m_P − m_Q)/s for scores N(m_P, s²) and N(m_Q, s²).

    With the pooled variance s_p² on f = n_P + n_Q − 2 degrees of freedom (exact, independent of the means),

        m_P − m_Q ≥ x̄_P − x̄_Q − t_{1−α/2, f} s_p √(1/n_P + 1/n_Q),      s ≤ s_p √(f / χ²_{α/2, f}),

    each with probability 1 − α/2; the quotient follows by the union bound.
    """
    n_p, n_q = worlds.present.size, worlds.absent.size
    if min(n_p, n_q) < 2:
        return 0.0
    freedom = n_p + n_q - 2
    squares = np.square(worlds.present - worlds.present.mean()).sum() + np.square(worlds.absent - worlds.absent.mean()).sum()
    spread = math.sqrt(float(squares) / freedom)
    gap = float(worlds.present.mean() - worlds.absent.mean())
    gap -= float(t.isf(alpha / 2, freedom)) * spread * math.sqrt(1 / n_p + 1 / n_q)
    if gap <= 0:
        return 0.0
    widest = spread * math.sqrt(freedom / float(chi2.ppf(alpha / 2, freedom)))
    return gap / widest if widest > 0 else math.inf


def gaussian() -> ClosedForm:
    """ε(μ_low, δ), as ε grows with μ (Balle & Wang 2018, Theorem 8). Also for a weighted sum of Gaussian releases."""

    def bound(worlds: Worlds, delta: float, alpha: float) -> float:
        return gaussian_epsilon(gaussian_mu(worlds, alpha), delta) * (1 - 1e-9)  # the calibration rounds up by one part in 10⁹

    return ClosedForm("Gaussian, μ estimated", bound)


def laplace() -> ClosedForm:
    """Scores a_P + Laplace(b) and a_Q + Laplace(b): δ(e) = 1 − e^{(e − Δ/b)/2}, so ε = Δ/b + 2 ln(1 − δ).

    Four one-sided order-statistic limits enclose the two medians (distribution-free, P(median < x_(k)) =
    P(Bin(n, ½) < k)). Σ|x − a| / b is Gamma(n_P + n_Q, 1) at the true medians and convex in each a, so its
    largest value on the corners of the box of limits, over the Gamma quantile, is at least b. Five limits, α/5 each.
    """

    def bound(worlds: Worlds, delta: float, alpha: float) -> float:
        if worlds.empty:
            return 0.0
        (low_p, high_p), (low_q, high_q) = _median(worlds.present, alpha / 5), _median(worlds.absent, alpha / 5)
        gap = low_p - high_q
        if not gap > 0:
            return 0.0
        total = max(_spread(worlds.present, a) for a in (low_p, high_p)) + max(
            _spread(worlds.absent, a) for a in (low_q, high_q)
        )
        scale = total / float(gammaincinv(worlds.present.size + worlds.absent.size, alpha / 5))
        return max(0.0, gap / scale + 2 * math.log1p(-delta)) if scale > 0 else math.inf

    return ClosedForm("Laplace, Δ and scale estimated", bound)


def response(num_values: int) -> ClosedForm:
    """Scores 1 where P's own value came out, else 0: P keeps it with p, Q gives it with (1 − p)/(k − 1)."""

    def bound(worlds: Worlds, delta: float, alpha: float) -> float:
        n = worlds.present.size
        if n == 0:
            return 0.0
        kept = float(at_least(float(worlds.present.sum()), n, alpha))
        if kept >= 1:
            return math.inf
        return max(0.0, math.log((kept - delta) * (num_values - 1) / (1 - kept))) if kept > delta else 0.0

    return ClosedForm("keep probability estimated", bound)


def bits(num_bits: int) -> ClosedForm:
    """Scores are the number of +1 among ``num_bits`` independent bits, each +1 with p₁ under P and p₀ under Q.

    All bits +1 is one outcome, with likelihood ratio (p₁/p₀)^m; p₁ and p₀ are Clopper-Pearson limits, α/2 each.
    """

    def bound(worlds: Worlds, delta: float, alpha: float) -> float:
        if delta != 0:
            raise PrivacyError(f"the closed form for bits is stated at delta = 0, found {delta}")
        if worlds.empty:
            return 0.0
        ones = float(at_least(float(worlds.present.sum()), worlds.present.size * num_bits, alpha / 2))
        none = float(at_most(float(worlds.absent.sum()), worlds.absent.size * num_bits, alpha / 2))
        return num_bits * max(0.0, math.log(ones / none)) if ones > 0 else 0.0

    return ClosedForm("bit probabilities estimated", bound)


def _median(scores: np.ndarray, alpha: float) -> tuple[float, float]:
    """(lower, upper) limits of the median, each wrong with probability at most alpha."""
    rank = int(binom.ppf(alpha, scores.size, 0.5))
    if rank < 1:
        return -math.inf, math.inf
    ordered = np.sort(scores)
    return float(ordered[rank - 1]), float(ordered[-rank])


def _spread(scores: np.ndarray, centre: float) -> float:
    return float(np.abs(scores - centre).sum()) if math.isfinite(centre) else math.inf
