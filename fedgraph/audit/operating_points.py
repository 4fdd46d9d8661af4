"""What a vector of scores is worth to an attacker, and the most that (ε, δ)-DP lets it be worth.

An attacker calls ``score ≥ t`` positive. TPR is the share of positives that are called so, FPR that of negatives. A mean over
examples says little about those few who are found for sure, so the true-positive rate at a small false-positive rate stands
beside the area (Carlini et al., IEEE S&P 2022, arXiv 2112.03570, Section III).

**Limits.** Where every positive or negative is a fair coin of its own, and the two versions of it make neighbouring inputs,
TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ (Kairouz, Oh & Viswanath 2015, Theorem 2.1). So in expectation

    TPR − FPR ≤ (e^ε − 1 + 2δ)/(e^ε + 1),        TPR ≤ min(e^ε FPR + δ, 1 − e^{−ε}(1 − δ − FPR)).

Sums of such coins average these lines, which are concave in FPR, so the limits hold for the averages, too. They limit
expectations: an observed value may lie above by chance. Where positives and negatives differ in other ways as well (real
edges against pairs that share nothing), there is no such limit.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fedgraph.audit.one_run import area
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian

LOW_RATES = (0.001, 0.01)  # the false-positive rates of every report


@dataclass(frozen=True)
class OperatingPoints:
    """auc: 0 … 1. advantage: largest TPR − FPR over all thresholds. tpr: at each of ``LOW_RATES``. positives, negatives: how
    many there are; with fewer than 1/FPR negatives a rate is that of no false positive at all.
    """

    auc: float
    advantage: float
    tpr: tuple[float, ...]
    positives: int
    negatives: int


def from_scores(scores: np.ndarray, truth: np.ndarray) -> OperatingPoints:
    """Of ``scores`` (float [k], larger: more likely positive) and ``truth`` (bool [k]).

    Equal scores are called alike. Without a positive or a negative: area one half, all others 0. ``PrivacyError`` for NaN, or
    shapes that differ.
    """
    if scores.shape != truth.shape or np.isnan(scores).any():
        raise PrivacyError("an attack needs one score per example, a number or ±∞")
    positives, negatives = int(np.count_nonzero(truth)), int(np.count_nonzero(~truth))
    if not positives or not negatives:
        return OperatingPoints(0.5, 0.0, (0.0,) * len(LOW_RATES), positives, negatives)
    order = np.argsort(-scores, kind="stable")
    ordered, found = scores[order], truth[order]
    last = np.append(ordered[1:] != ordered[:-1], True)  # thresholds lie between different scores
    tpr = np.cumsum(found)[last] / positives
    fpr = np.cumsum(~found)[last] / negatives
    low = tuple(float(tpr[fpr <= rate].max(initial=0.0)) for rate in LOW_RATES)
    return OperatingPoints(area(scores, truth), max(0.0, float((tpr - fpr).max())), low, positives, negatives)


def most_advantage(epsilon: float, delta: float) -> float:
    """The largest expected TPR − FPR under (ε, δ)-DP.

    >>> round(most_advantage(1.0, 0.0), 3)
    0.462
    """
    if math.isinf(epsilon):
        return 1.0
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (math.exp(min(epsilon, 700.0)) + 1))


def of_gaussian(mu: float, delta: float) -> tuple[float, float]:
    """(ε at ``delta``, the largest expected TPR − FPR) of a composition of Gaussian releases that is μ-GDP: 2 Φ(μ/2) − 1.

    >>> [round(x, 3) for x in of_gaussian(1.0, 1e-5)]
    [4.377, 0.383]
    """
    return gaussian.epsilon(mu, delta), float(2 * ndtr(mu / 2) - 1)
