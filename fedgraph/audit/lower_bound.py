"""Statistics of an audit: the bounds on ε or δ that follow from many runs on two neighbouring inputs.

Each run gives one score; ``LowerBoundScores`` holds the scores of independent runs with the unit (P) and without it
(Q). A score may be anything that can be computed from what the viewer sees: a poor one makes a bound
loose, never false.

**By event** (``of_epsilon``, ``of_delta``). (ε, δ)-DP says P(A) ≤ e^ε Q(A) + δ for every event
A, and the same with P and Q exchanged. With A fixed in advance, k_P of n_P runs in A and k_Q of n_Q,

    ε ≥ ln((p_low − δ) / q_high),        δ ≥ p_low − e^ε q_high,

where p_low, q_high are one-sided Clopper-Pearson limits at α/2 each (union bound: confidence 1 − α). A is
{score ≥ t} under (P, Q) or, the mirror test, {score ≤ t} under (Q, P); threshold and direction are chosen
on *other* runs, so nothing is selected on the runs that are counted.

**By closed form** (``ClosedFormAudit`` and below). Where the law of the score is known up to parameters, a
confidence region for the parameters gives one for ε, far beyond what counting can reach (``ceiling``).
The parameters (distance, noise scale, keep probability) are *estimated from the runs*, so a wrong noise
scale or a wrong sensitivity shows; only the shape of the law is taken from the mechanism's definition.

    ``gaussian``   two normal laws of one variance              ε of μ_low, exactly
    ``laplace``    two Laplace laws of one scale                Δ_low / b_high + 2 ln(1 − δ)
    ``response``   k-ary response: kept, or uniform otherwise   ln((p_low − δ)(k − 1)/(1 − p_low))
    ``bits``       m independent equal bits                     m · ln(p₁_low / p₀_high), at δ = 0

**Guarantee.** Every function returns a number that exceeds the truth with probability at most ``alpha``,
for any sample size; closed forms need their stated law. That is the law of the *sound* mechanism, so a sound mechanism
is accused with probability at most alpha; a mutant may break the law, which can only cost power.

**Edge cases.** No runs in a world → 0 (nothing was seen, nothing is proven); p_low ≤ δ → 0; scores ±∞ are
scores like others; NaN → ``PrivacyError``; alpha outside (0, 1) → ``PrivacyError``. Closed forms: fewer than two runs
in a world → 0; constant scores that differ (no noise at all) → ∞; constant equal scores → 0.

Reference: Clopper & Pearson 1934; Jagielski, Ullman & Oprea 2020 (arXiv v1), Section 4; PRIVACY §10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, gammaincinv
from scipy.stats import binom, chi2, t

from fedgraph.audit import one_run
from fedgraph.errors import PrivacyError
from fedgraph.privacy import gaussian as gaussian_mechanism

_NUM_THRESHOLDS = 256


@dataclass(frozen=True, eq=False)
class LowerBoundScores:
    """Scores of independent runs.

    Raises:
        PrivacyError: a score is NaN.
    """

    present: np.ndarray  # float [n_P], with the unit
    absent: np.ndarray  # float [n_Q], without it

    def __post_init__(self) -> None:
        if np.isnan(self.present).any() or np.isnan(self.absent).any():
            raise PrivacyError("a score is NaN; a score function must map whatever a viewer can see to a number or ±∞")

    @property
    def mirrored(self) -> LowerBoundScores:
        """P and Q exchanged, and large scores made small: {score ≤ t} becomes {score ≥ t}."""
        return LowerBoundScores(-self.absent, -self.present)

    @property
    def empty(self) -> bool:
        return not (self.present.size and self.absent.size)


_Objective = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _at_least(successes: np.ndarray | float, trials: float, alpha: float) -> np.ndarray:
    """Clopper-Pearson lower limit: p_low with P(p < p_low) ≤ alpha. 0 where nothing succeeded.

    I_{p_low}(k, n − k + 1) = alpha (the regularised incomplete beta function).
    """
    k = np.asarray(successes, dtype=float)
    return np.where(k <= 0, 0.0, betaincinv(np.maximum(k, 1e-9), trials - k + 1, one_run.check_alpha(alpha)))


def _at_most(successes: np.ndarray | float, trials: float, alpha: float) -> np.ndarray:
    """Clopper-Pearson upper limit: p_high with P(p > p_high) ≤ alpha. 1 where everything succeeded."""
    return 1.0 - _at_least(trials - np.asarray(successes, dtype=float), trials, alpha)


def of_epsilon(chosen_on: LowerBoundScores, counted_on: LowerBoundScores, delta: float, alpha: float) -> float:
    """max(0, ln((p_low − δ)/q_high)): with probability ≥ 1 − alpha the true ε at ``delta`` is no smaller."""

    def objective(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.maximum(low - delta, 1e-300)) - np.log(high))

    return _by_event(chosen_on, counted_on, objective, alpha)


def of_delta(chosen_on: LowerBoundScores, counted_on: LowerBoundScores, epsilon: float, alpha: float) -> float:
    """max(0, p_low − e^ε q_high): the empirical hockey-stick at ``epsilon``, less its confidence width."""
    factor = math.exp(epsilon)
    return _by_event(chosen_on, counted_on, lambda low, high: low - factor * high, alpha)


def ceiling(runs: int, delta: float, alpha: float) -> float:
    """The largest ε that ``of_epsilon`` can report on ``runs`` runs per world: all of P in A, none of Q.

    >>> round(ceiling(1000, 0.0, 0.05), 2)
    5.6
    """
    low, high = float(_at_least(runs, runs, alpha / 2)), float(_at_most(0, runs, alpha / 2))
    return max(0.0, math.log(low - delta) - math.log(high)) if low > delta else 0.0


def _choose_cut(worlds: LowerBoundScores, counted: tuple[int, int], objective: _Objective, alpha: float) -> tuple[float, bool]:
    """(t, whether worlds are mirrored) of the event {score ≥ t} whose bound would be largest if the counted runs fell as these.

    counted: (n_P, n_Q) of the runs to come. The choice cannot make a bound false, only loose.
    """
    best, value = (math.inf, False), -math.inf
    for mirrored in (False, True):
        seen = worlds.mirrored if mirrored else worlds
        n_p, n_q = counted[::-1] if mirrored else counted
        thresholds = _thresholds(np.concatenate([seen.present, seen.absent]))
        share_p, share_q = _share_above(seen.present, thresholds), _share_above(seen.absent, thresholds)
        bounds = objective(_at_least(share_p * n_p, n_p, alpha / 2), _at_most(share_q * n_q, n_q, alpha / 2))
        top = int(np.argmax(bounds))
        if bounds[top] > value:
            best, value = (float(thresholds[top]), mirrored), float(bounds[top])
    return best


def _by_event(chosen_on: LowerBoundScores, counted_on: LowerBoundScores, objective: _Objective, alpha: float) -> float:
    one_run.check_alpha(alpha)
    if chosen_on.empty or counted_on.empty:
        return 0.0
    threshold, mirrored = _choose_cut(chosen_on, (counted_on.present.size, counted_on.absent.size), objective, alpha)
    seen = counted_on.mirrored if mirrored else counted_on
    k_p, k_q = (int(np.count_nonzero(scores >= threshold)) for scores in (seen.present, seen.absent))
    n_p, n_q = seen.present.size, seen.absent.size
    return max(0.0, float(objective(_at_least(k_p, n_p, alpha / 2), _at_most(k_q, n_q, alpha / 2))))


def _thresholds(pooled: np.ndarray) -> np.ndarray:
    """Candidate thresholds: observed scores at even ranks, and at geometric ranks towards the top."""
    ordered = np.sort(pooled)[::-1]
    even = np.linspace(0, ordered.size - 1, _NUM_THRESHOLDS)
    top = np.geomspace(1, ordered.size, _NUM_THRESHOLDS) - 1
    return np.unique(ordered[np.concatenate([even, top]).astype(np.int64)])


def _share_above(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    below = np.searchsorted(np.sort(scores), thresholds, side="left")
    return 1.0 - below / scores.size


@dataclass(frozen=True)
class ClosedFormAudit:
    """A lower bound on ε where the law of the score is known up to parameters."""

    name: str  # for the table
    bound: Callable[[LowerBoundScores, float, float], float]  # (worlds, delta, alpha) → lower bound on ε


def _gaussian_mu(worlds: LowerBoundScores, alpha: float) -> float:
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


def gaussian() -> ClosedFormAudit:
    """ε(μ_low, δ), as ε grows with μ (Balle & Wang 2018, Theorem 8). Also for a weighted sum of Gaussian releases."""

    def bound(worlds: LowerBoundScores, delta: float, alpha: float) -> float:
        below = 1 - 1e-9  # the calibration rounds up by one part in 10⁹
        return gaussian_mechanism.epsilon(_gaussian_mu(worlds, alpha), delta) * below

    return ClosedFormAudit("Gaussian, μ estimated", bound)


def laplace() -> ClosedFormAudit:
    """Scores a_P + Laplace(b) and a_Q + Laplace(b): δ(e) = 1 − e^{(e − Δ/b)/2}, so ε = Δ/b + 2 ln(1 − δ).

    Four one-sided order-statistic limits enclose the two medians (distribution-free, P(median < x_(k)) =
    P(Bin(n, ½) < k)). Σ|x − a| / b is Gamma(n_P + n_Q, 1) at the true medians and convex in each a, so its
    largest value on the corners of the box of limits, over the Gamma quantile, is at least b. Five limits, α/5 each.
    """

    def bound(worlds: LowerBoundScores, delta: float, alpha: float) -> float:
        if worlds.empty:
            return 0.0
        (low_p, high_p), (low_q, high_q) = _median(worlds.present, alpha / 5), _median(worlds.absent, alpha / 5)
        gap = low_p - high_q
        if not gap > 0:
            return 0.0
        total = max(_spread(worlds.present, a) for a in (low_p, high_p))
        total += max(_spread(worlds.absent, a) for a in (low_q, high_q))
        scale = total / float(gammaincinv(worlds.present.size + worlds.absent.size, alpha / 5))
        return max(0.0, gap / scale + 2 * math.log1p(-delta)) if scale > 0 else math.inf

    return ClosedFormAudit("Laplace, Δ and scale estimated", bound)


def response(num_values: int) -> ClosedFormAudit:
    """Scores 1 where P's own value came out, else 0: P keeps it with p, Q gives it with (1 − p)/(k − 1)."""

    def bound(worlds: LowerBoundScores, delta: float, alpha: float) -> float:
        n = worlds.present.size
        if n == 0:
            return 0.0
        kept = float(_at_least(float(worlds.present.sum()), n, alpha))
        if kept >= 1:
            return math.inf
        return max(0.0, math.log((kept - delta) * (num_values - 1) / (1 - kept))) if kept > delta else 0.0

    return ClosedFormAudit("keep probability estimated", bound)


def bits(num_bits: int) -> ClosedFormAudit:
    """Scores are the number of +1 among ``num_bits`` independent bits, each +1 with p₁ under P and p₀ under Q.

    All bits +1 is one outcome, with likelihood ratio (p₁/p₀)^m; p₁ and p₀ are Clopper-Pearson limits, α/2 each.
    """

    def bound(worlds: LowerBoundScores, delta: float, alpha: float) -> float:
        if delta != 0:
            raise PrivacyError(f"the closed form for bits is stated at delta = 0, found {delta}")
        if worlds.empty:
            return 0.0
        ones = float(_at_least(float(worlds.present.sum()), worlds.present.size * num_bits, alpha / 2))
        none = float(_at_most(float(worlds.absent.sum()), worlds.absent.size * num_bits, alpha / 2))
        return num_bits * max(0.0, math.log(ones / none)) if ones > 0 else 0.0

    return ClosedFormAudit("bit probabilities estimated", bound)


def _median(scores: np.ndarray, alpha: float) -> tuple[float, float]:
    """(lower, upper) limits of the median, each wrong with probability at most alpha."""
    rank = int(binom.ppf(alpha, scores.size, 0.5))
    if rank < 1:
        return -math.inf, math.inf
    ordered = np.sort(scores)
    return float(ordered[rank - 1]), float(ordered[-rank])


def _spread(scores: np.ndarray, centre: float) -> float:
    return float(np.abs(scores - centre).sum()) if math.isfinite(centre) else math.inf
