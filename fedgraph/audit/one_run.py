"""Lower bounds on ε from one run in which many independent coins were tossed: by counting, or by refuting a whole curve.

m *canaries* each enter in one of two versions, by a fair coin of their own; the two versions of any one of them, the others
as they are, make neighbouring inputs. Whoever sees the output (and knows everything but the coins) guesses r of the coins, r
fixed in advance, and v guesses are right.

**Counting** (``epsilon_lower``; Steinke, Nasr & Jagielski, NeurIPS 2023). For an (ε, δ)-DP mechanism, with q = e^ε/(1 + e^ε),
W ~ Bin(r, q), μ_j = max_c P[Bin(j, q) = c],

    P[V ≥ v] ≤ P[W ≥ v] + (m/r)·δ·(1 − q)·Σ_{j < r} μ_j.                                                           (*)

*δ = 0* is their Theorem 5.1: given the output t and the other coins, Bayes with equal priors and a likelihood ratio of at most
e^ε gives S_i a probability of at most q, so correct guesses are dominated, one after another, by coins of bias q.

*δ > 0*, in a form of our own (their Theorem 5.2 has 2mδ·max_i P[v > W ≥ v − i]/i in place of the sum; here every step is
below). Let e_i(t) = E[max(P[S_i = t_i | t, S_{−i}] − q, 0) | t]. For fixed s_{−i} and sign σ the mean of this excess over
outputs is ½∫ max(P_σ − q(P_σ + P_{−σ}), 0) = ½(1 − q)∫ max(P_σ − e^ε P_{−σ}, 0) ≤ ½(1 − q)δ; both signs: E e_i(T) ≤ (1 − q)δ.
Reveal all coins in a uniformly random order, drawn after the output. At the k-th guess, given what was revealed, the guess is
right with probability at most q + g, where g averages at most e_i(t) over what was revealed (Jensen: the excess is convex and
posteriors are a martingale). With U_k(c) = P[Bin(r − k, q) ≥ v − c], one step raises E U_k(right so far) by at most
g·(U_k(c + 1) − U_k(c)) ≤ g·μ_{r−k}; U_0(0) = P[W ≥ v] and U_r is the event. A guessed coin is k-th with probability 1/r,
whatever t, so the sum of all steps is at most Σ_i E e_i(T) · (1/r) Σ_k μ_{r−k}: (*).
For m ≤ 3 the tests maximise P[V ≥ v] over *all* (ε, δ)-DP mechanisms (a linear program): never above (*), at times equal.

The ε for which (*) is at most α are refuted with confidence 1 − α; so is any smaller one, since such a mechanism would be
(ε, δ)-DP, too, and V ≥ v is one event. ``epsilon_lower`` is the largest refuted ε.

**Pooling.** Runs on independent coins (other seeds) may be added up: a coin enters one of them only, so all of them together
are (ε, δ)-DP in each coin (parallel composition) and (*) holds with the sums of m, r and v, if every run is (ε, δ)-DP.

**A curve** (Mahloujifar, Melis & Chaudhuri, ICML 2025; the proof here is short and complete). The claim under test is a
trade-off curve: for each coin, whatever the others are, and for every event A, P₁(A) ≤ g(P₀(A)) and P₀(A) ≤ g(P₁(A)), with g
concave and not decreasing (g = 1 − f of f-DP; g(x) = inf_ε δ(ε) + e^ε x). Let p_j = P[V = j]. For every c in 1 … r,

    Σ_{j ≥ c} (j/m) p_j  ≤  g( Σ_{j ≥ c−1} ((r − j)/m) p_j ).                                                          (**)

*Proof.* Fix i and the other coins s_{−i}. Let A be the outputs for which coin i is guessed to be 1 and at least c − 1 of the
other guesses are right. If S_i = 1, A says "i is guessed, right, and V ≥ c". If S_i = 0, A says "i is guessed as 1, wrong,
and V ≥ c − 1". So P[i guessed as 1, right, V ≥ c | S_i = 1] ≤ g(P[i guessed as 1, wrong, V ≥ c − 1 | S_i = 0]), and the same
with 0 and 1 exchanged. Average over both values of the coin, over s_{−i} and over i; Jensen moves the average inside the
concave g. The averages are the two sides of (**), because V counts the right guesses and r − V the wrong ones. ∎

*The largest P[V ≥ v] that (**) allows.* Let R and H be the two sums in (**) with j ≥ c. Suppose P[V ≥ v] = τ. Put all of τ on
j = v, then go down: (**) asks for H at least g⁻¹(R), and the least mass on j = c − 1 that gives it is taken. Moving any
further mass from one level to the next lower one makes R smaller and H larger in every constraint below, so no other way
needs less mass in all. τ is possible exactly if the mass that is needed is at most 1, and needed mass grows with τ.

So a curve is refuted with confidence 1 − α where τ = α already needs more than 1. **What is refuted is the curve, not one
point of it**: "these releases are μ-GDP" is wrong, for any μ up to the one found. A mechanism that is (ε, δ)-DP at one δ
without being μ-GDP is not accused. Two curves: that of μ-GDP, g(x) = Φ(Φ⁻¹(x) + μ), for compositions of Gaussian releases,
where it is exact; and g(x) = min(1, δ + e^ε x, 1 − e^{−ε}(1 − δ − x)) of (ε, δ), for anything else.

**Estimators** (``best_bound``); each says what it refutes:

    counting         (ε, δ)-DP below this ε, by (*)                      coins of one run, or of several
    counting-tight   the same, by more constraints, (**)                 coins of one run, or of several
    curve            all smaller μ-GDP curves; shown as their ε at δ     compositions of Gaussian releases

Choose one before looking at the scores; taking the largest of several needs a share of α for each (``choose_estimator`` names
the one that a report uses).

**Guarantee.** The result exceeds the true ε at ``delta`` (``curve``: of any mechanism whose trade-off curve is that of μ-GDP)
with probability at most ``alpha``, for any scores, any m and any attack, provided that r was fixed without looking at coins.
Several r may be tried if each is given its share of alpha.

**Edge cases.** r = 0 → 0; v ≤ r/2 → 0; counts that cannot be, alpha outside (0, 1), δ outside [0, 1), a NaN score →
``PrivacyError``.

References: arXiv:2305.08846v1, Theorems 5.1 and 5.2; arXiv 2410.22235.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr, ndtri

from fedgraph.errors import PrivacyError
from fedgraph.privacy import gaussian

ONE_RUN_ALPHA = 0.05  # error probability of every bound that a report shows
_GRID = 1 / 32  # ε steps of the search, refined by bisection
_MU_MOST = 60.0  # no audit in one run comes near

_InverseCurve = Callable[[float], float]  # R → the least H with g(H) ≥ R


@dataclass(frozen=True)
class OneRunCount:
    """What was guessed, and how much of it was right.

    Raises:
        PrivacyError: not 0 ≤ v ≤ r ≤ m.
    """

    coins: int  # m, tossed
    guesses: int  # r, made
    right: int  # v of them

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.guesses <= self.coins:
            raise PrivacyError(f"of m coins r are guessed and v right, 0 ≤ v ≤ r ≤ m; found {self}")

    def __add__(self, other: OneRunCount) -> OneRunCount:
        """Both runs together; their coins must be independent."""
        return OneRunCount(self.coins + other.coins, self.guesses + other.guesses, self.right + other.right)


def p_value(found: OneRunCount, epsilon: float, delta: float) -> float:
    """How likely at most so many right guesses are where (ε, δ)-DP holds: the right-hand side of (*), at most 1."""
    return float(_p_values(found, np.array([epsilon]), _checked_delta(delta))[0])


def epsilon_lower(found: OneRunCount, delta: float, alpha: float = ONE_RUN_ALPHA) -> float:
    """The largest ε that ``found`` refutes: with probability ≥ 1 − alpha the true ε at ``delta`` is no smaller.

    >>> round(epsilon_lower(OneRunCount(1000, 1000, 800), 0.0), 3)
    1.254
    """
    check_alpha(alpha)
    _checked_delta(delta)
    if 2 * found.right <= found.guesses:
        return 0.0
    most = -math.log(math.expm1(-math.log(alpha) / found.guesses))  # v = r, δ = 0: q^r = α
    grid = np.arange(0.0, max(most, 0.0) + 2 * _GRID, _GRID)
    refuted = np.flatnonzero(_p_values(found, grid, delta) <= alpha)
    if not refuted.size:
        return 0.0
    low = float(grid[refuted[-1]])
    high = low + _GRID
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(found, middle, delta) <= alpha else (low, middle)
    return low


def count_guesses(scores: np.ndarray, coins: np.ndarray, share: float, centred: bool = False) -> OneRunCount:
    """Guesses version 1 for the highest scores and version 0 for the lowest, in equal parts, and counts; ties by position.

    scores: float [m], any function of what the viewer sees and of anything that does not depend on the coins (bool [m]).
    share: of all coins, which is guessed; in (0, 1]; two coins at least, where there are two. centred: scores are
    log-likelihood ratios, or like them around 0; the largest are guessed instead, each by its sign. ``PrivacyError``: a NaN
    score, or not one score per coin.
    """
    if np.isnan(scores).any() or scores.shape != coins.shape:
        raise PrivacyError("an attack needs one score per coin, a number or ±∞")
    half = min(scores.size // 2, max(1, round(share * scores.size / 2)))
    if centred:
        surest = np.argsort(-abs(scores), kind="stable")[: 2 * half]
        return OneRunCount(scores.size, 2 * half, int(np.count_nonzero((scores[surest] > 0) == coins[surest])))
    order = np.argsort(scores, kind="stable")
    right = np.count_nonzero(coins[order[scores.size - half :]]) + np.count_nonzero(~coins[order[:half]])
    return OneRunCount(scores.size, 2 * half, int(right))


def _p_values(found: OneRunCount, epsilons: np.ndarray, delta: float) -> np.ndarray:
    from scipy.stats import binom  # its import takes half a second

    q = expit(epsilons)
    tail = binom.sf(found.right - 1, found.guesses, q)
    if delta and found.guesses:
        j = np.arange(found.guesses)
        modes = np.array([binom.pmf(np.minimum(np.floor((j + 1) * x), j), j, x).sum() for x in q])
        tail = tail + found.coins / found.guesses * delta * expit(-epsilons) * modes
    return np.minimum(tail, 1.0)


def check_alpha(alpha: float) -> float:
    """Itself; ``PrivacyError`` unless it is an error probability, 0 < alpha < 1."""
    if not 0 < alpha < 1:
        raise PrivacyError(f"an error probability alpha lies in (0, 1), found {alpha}")
    return alpha


def _checked_delta(delta: float) -> float:
    if not 0 <= delta < 1:
        raise PrivacyError(f"δ must satisfy 0 ≤ δ < 1, found {delta}")
    return delta


def choose_estimator(gaussian_composition: bool) -> str:
    """The estimator of a report: ``curve`` where what is released is a composition of Gaussian releases, else ``counting``."""
    return "curve" if gaussian_composition else "counting"


def best_bound(counts: list[OneRunCount], delta: float, by: str, alpha: float = ONE_RUN_ALPHA) -> float:
    """The best lower bound on ε at δ of one estimator over several numbers of guesses, each at its share of ``alpha``.

    by: ``counting``, ``counting-tight`` or ``curve``, chosen before the scores were seen; ``PrivacyError`` for others.
    Returns 0 without counts.
    """
    found = {"counting": epsilon_lower, "counting-tight": _tight_epsilon, "curve": _curve_epsilon}
    if by not in found:
        raise PrivacyError(f"unknown estimator {by!r}; allowed: {', '.join(found)}")
    return max((found[by](count, delta, alpha / len(counts)) for count in counts), default=0.0)


# ------------------------------------------------------------------------------------------------------------- a whole curve


def _inverse_gaussian_curve(mu: float) -> _InverseCurve:
    """g⁻¹ of μ-GDP: Φ(Φ⁻¹(R) − μ). Raises ``PrivacyError`` for μ < 0 or NaN."""
    if not mu >= 0:
        raise PrivacyError(f"a Gaussian parameter μ is a number ≥ 0, found {mu}")
    return lambda right: 1.0 if right >= 1 else (0.0 if right <= 0 else float(ndtr(ndtri(right) - mu)))


def _inverse_approximate_curve(epsilon: float, delta: float) -> _InverseCurve:
    """g⁻¹ of (ε, δ)-DP: max(0, (R − δ) e^{−ε}, 1 − δ − e^ε (1 − R)).

    Raises ``PrivacyError`` for ε < 0, NaN, δ outside [0, 1).
    """
    if not epsilon >= 0 or not 0 <= delta < 1:
        raise PrivacyError(f"(ε, δ) needs ε ≥ 0 and 0 ≤ δ < 1, found ({epsilon}, {delta})")
    shrink, grow = math.exp(-epsilon), math.exp(min(epsilon, 700.0))
    return lambda right: min(1.0, max(0.0, (right - delta) * shrink, 1.0 - delta - grow * (1.0 - right)))


def _is_refuted(found: OneRunCount, least: _InverseCurve, alpha: float = ONE_RUN_ALPHA) -> bool:
    """Whether P[V ≥ v] ≥ alpha is impossible under the curve whose g⁻¹ is ``least``."""
    return found.guesses > 0 and _needed_mass(found, least, check_alpha(alpha)) > 1.0 + 1e-12


def _needed_mass(found: OneRunCount, least: _InverseCurve, tail: float) -> float:
    """The least total probability that (**) needs where P[V ≥ v] = ``tail``; above 1 it is impossible.

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


def _curve_epsilon(found: OneRunCount, delta: float, alpha: float = ONE_RUN_ALPHA) -> float:
    """The ε at ``delta`` of the largest refuted μ: for releases that are compositions of Gaussian ones.

    >>> round(_curve_epsilon(OneRunCount(1000, 1000, 800), 1e-3), 2)
    1.6
    """
    mu = _largest(lambda mu: _is_refuted(found, _inverse_gaussian_curve(mu), alpha), _MU_MOST)
    return gaussian.epsilon(mu, delta)


def _tight_epsilon(found: OneRunCount, delta: float, alpha: float = ONE_RUN_ALPHA) -> float:
    """The largest ε such that (ε, δ)-DP is refuted, for any mechanism."""
    return _largest(lambda epsilon: _is_refuted(found, _inverse_approximate_curve(epsilon, delta), alpha), 100.0)


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
