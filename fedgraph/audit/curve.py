"""What one run with many coins says about a whole *curve* δ(ε): the f-DP audit in one run.

m canaries each enter in one of two versions, by a fair coin of their own, as in ``one_run``; r of the coins, r fixed in
advance, are guessed, and V guesses are right. The claim under test is a trade-off curve: for each coin, whatever the others
are, and for every event A, P₁(A) ≤ g(P₀(A)) and P₀(A) ≤ g(P₁(A)), with g concave and not decreasing (g = 1 − f of f-DP; g(x)
= inf_ε δ(ε) + e^ε x).

**Theorem** (Mahloujifar, Melis & Chaudhuri, ICML 2025, arXiv 2410.22235; the proof here is short and complete). Let p_j = P[V
= j]. For every c in 1 … r,

    Σ_{j ≥ c} (j/m) p_j  ≤  g( Σ_{j ≥ c−1} ((r − j)/m) p_j ).                                                          (1)

*Proof.* Fix i and the other coins s_{−i}. Let A be the outputs for which coin i is guessed to be 1 and at least c − 1 of the
other guesses are right. If S_i = 1, A says "i is guessed, right, and V ≥ c". If S_i = 0, A says "i is guessed as 1, wrong,
and V ≥ c − 1". So P[i guessed as 1, right, V ≥ c | S_i = 1] ≤ g(P[i guessed as 1, wrong, V ≥ c − 1 | S_i = 0]), and the same
with 0 and 1 exchanged. Average over both values of the coin, over s_{−i} and over i; Jensen moves the average inside the
concave g. The averages are the two sides of (1), because V counts the right guesses and r − V the wrong ones. ∎

**The largest P[V ≥ v] that (1) allows.** Let R and H be the two sums in (1) with j ≥ c. Suppose P[V ≥ v] = τ. Put all of τ on
j = v, then go down: (1) asks for H at least g⁻¹(R), and the least mass on j = c − 1 that gives it is taken. Moving any
further mass from one level to the next lower one makes R smaller and H larger in every constraint below, so no other way
needs less mass in all. τ is possible exactly if the mass that is needed is at most 1, and needed mass grows with τ.

So a curve is refuted with confidence 1 − α where τ = α already needs more than 1. **What is refuted is the curve, not one
point of it**: "these releases are μ-GDP" is wrong, for any μ up to the one found. A mechanism that is (ε, δ)-DP at one δ
without being μ-GDP is not accused. ``gaussian_epsilon_lower`` turns the refuted μ into the ε that μ-GDP has at δ.

**Curves.** ``_inverse_gaussian_curve(μ)``: g(x) = Φ(Φ⁻¹(x) + μ), for compositions of Gaussian releases, where it is exact.
``_inverse_approximate_curve(ε, δ)``: g(x) = min(1, δ + e^ε x, 1 − e^{−ε}(1 − δ − x)), for anything else.

**Guarantee.** Under any mechanism with the stated curve, refuted with probability at most α, for any scores, any m and any
attack, provided that r was fixed without looking at the coins. Several r: share α between them.

**Edge cases.** r = 0 → nothing is refuted; v ≤ r/2 with g(x) ≥ x is never refuted; a NaN score, a count that cannot be, α
outside (0, 1) → ``PrivacyError``.

**Estimators** of ε from guesses about coins, each beside what it guarantees (``best_bound``):

| name | what it says | holds for |
|---|---|---|
| ``counting`` | (ε, δ)-DP is refuted below this ε (``one_run``) | coins of one run, or of several |
| ``counting-tight`` | the same, by more constraints (``curve._inverse_approximate_curve``) | coins of one run, or of several |
| ``curve`` | all smaller μ-GDP curves are refuted; shown as ε at δ (``curve._inverse_gaussian_curve``) | compositions of
Gaussian releases |

Choose one estimator before looking at the scores; taking the largest of several needs a share of α for each
(``choose_estimator`` names the one that a report uses).
"""

import math
from collections.abc import Callable

from scipy.special import ndtr, ndtri

from fedgraph.audit import one_run
from fedgraph.audit.one_run import ONE_RUN_ALPHA, OneRunCount
from fedgraph.errors import PrivacyError
from fedgraph.privacy import gaussian as gaussian_mechanism

InverseAuditCurve = Callable[[float], float]  # R → the least H with g(H) ≥ R

_MU_MOST = 60.0  # no audit in one run comes near


def _inverse_gaussian_curve(mu: float) -> InverseAuditCurve:
    """g⁻¹ of μ-GDP: Φ(Φ⁻¹(R) − μ). Raises ``PrivacyError`` for μ < 0 or NaN."""
    if not mu >= 0:
        raise PrivacyError(f"a Gaussian parameter μ is a number ≥ 0, found {mu}")
    return lambda right: 1.0 if right >= 1 else (0.0 if right <= 0 else float(ndtr(ndtri(right) - mu)))


def _inverse_approximate_curve(epsilon: float, delta: float) -> InverseAuditCurve:
    """g⁻¹ of (ε, δ)-DP: max(0, (R − δ) e^{−ε}, 1 − δ − e^ε (1 − R)).

    Raises ``PrivacyError`` for ε < 0, NaN, δ outside [0, 1).
    """
    if not epsilon >= 0 or not 0 <= delta < 1:
        raise PrivacyError(f"(ε, δ) needs ε ≥ 0 and 0 ≤ δ < 1, found ({epsilon}, {delta})")
    shrink, grow = math.exp(-epsilon), math.exp(min(epsilon, 700.0))
    return lambda right: min(1.0, max(0.0, (right - delta) * shrink, 1.0 - delta - grow * (1.0 - right)))


def is_refuted(found: OneRunCount, least: InverseAuditCurve, alpha: float = ONE_RUN_ALPHA) -> bool:
    """Whether P[V ≥ v] ≥ alpha is impossible under the curve whose g⁻¹ is ``least``."""
    return found.guesses > 0 and _needed_mass(found, least, one_run.check_alpha(alpha)) > 1.0 + 1e-12


def _needed_mass(found: OneRunCount, least: InverseAuditCurve, tail: float) -> float:
    """The least total probability that (1) needs where P[V ≥ v] = ``tail``; above 1 it is impossible.

    Stops as soon as 1 is passed, so values above 1 are not exact.
    """
    m, r, v = float(found.coins), found.guesses, found.right
    right, wrong, mass = v / m * tail, (r - v) / m * tail, tail
    for level in range(v - 1, -1, -1):
        more = (least(right) - wrong) * m / (r - level)
        if more > 0:
            mass += more
            right += level / m * more
            wrong += (r - level) / m * more
            if mass > 1.0 + 1e-9:
                break
    return mass


def _refuted_curve_mu(found: OneRunCount, alpha: float = ONE_RUN_ALPHA) -> float:
    """The largest μ that ``found`` refutes: with probability ≥ 1 − alpha a mechanism with a Gaussian curve has no smaller μ.

    >>> round(_refuted_curve_mu(OneRunCount(1000, 1000, 800)), 2)
    0.58
    """
    return _largest(lambda mu: is_refuted(found, _inverse_gaussian_curve(mu), alpha), _MU_MOST)


def gaussian_epsilon_lower(found: OneRunCount, delta: float, alpha: float = ONE_RUN_ALPHA) -> float:
    """The ε at ``delta`` of the largest refuted μ: for releases that are compositions of Gaussian ones."""
    return gaussian_mechanism.epsilon(_refuted_curve_mu(found, alpha), delta)


def epsilon_lower(found: OneRunCount, delta: float, alpha: float = ONE_RUN_ALPHA) -> float:
    """The largest ε such that (ε, δ)-DP is refuted, for any mechanism."""
    return _largest(lambda epsilon: is_refuted(found, _inverse_approximate_curve(epsilon, delta), alpha), 100.0)


def _largest(is_refuted: Callable[[float], bool], most: float) -> float:
    """The largest parameter that is refuted, from below, by bisection; 0 where none is."""
    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < most and is_refuted(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def choose_estimator(gaussian_composition: bool) -> str:
    """The estimator of a report: ``curve`` where what is released is a composition of Gaussian releases, else ``counting``."""
    return "curve" if gaussian_composition else "counting"


def best_bound(counts: list[one_run.OneRunCount], delta: float, by: str, alpha: float = ONE_RUN_ALPHA) -> float:
    """The best lower bound on ε at δ of one estimator over several numbers of guesses, each at its share of ``alpha``.

    by: ``counting``, ``counting-tight`` or ``curve``, chosen before the scores were seen; ``PrivacyError`` for others.
    Returns 0 without counts.
    """
    found = {"counting": one_run.epsilon_lower, "counting-tight": epsilon_lower, "curve": gaussian_epsilon_lower}
    if by not in found:
        raise PrivacyError(f"unknown estimator {by!r}; allowed: {', '.join(found)}")
    return max((found[by](count, delta, alpha / len(counts)) for count in counts), default=0.0)
