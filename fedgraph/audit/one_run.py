"""A lower bound on ε from one run in which many independent coins were tossed (Steinke, Nasr & Jagielski, NeurIPS 2023).

m *canaries* each enter in one of two versions, by a fair coin of their own; the two versions of any one of them, the others
as they are, make neighbouring inputs. Whoever sees the output (and knows everything but the coins) guesses r of the coins, r
fixed in advance, and v guesses are right.

**Theorem.** For an (ε, δ)-DP mechanism, with q = e^ε/(1 + e^ε), W ~ Bin(r, q), μ_j = max_c P[Bin(j, q) = c],

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

**Guarantee.** The result exceeds the true ε at ``delta`` with probability at most ``alpha``, for any scores and any m, provided
that r was fixed without looking at coins. Several r may be tried if each is given its share of alpha.

**Edge cases.** r = 0 → 0; v ≤ r/2 → 0; counts that cannot be, alpha outside (0, 1), δ outside [0, 1),
a NaN score → ``PrivacyError``.

Reference: arXiv:2305.08846v1, Theorems 5.1 and 5.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from fedgraph.errors import PrivacyError

ONE_RUN_ALPHA = 0.05  # error probability of every bound that a report shows
_GRID = 1 / 32  # ε steps of the search, refined by bisection


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
