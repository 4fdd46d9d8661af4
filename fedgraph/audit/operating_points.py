"""Operating points (``of_scores``): what a vector of scores is worth to an attacker, and the most that (ε, δ)-DP lets
it be worth. An attacker calls ``score ≥ t`` positive. TPR is the share of positives that are called so, FPR that of negatives.
A mean over examples says little about those few who are found for sure, so the true-positive rate at a small false-positive
rate stands beside the area (Carlini et al., IEEE S&P 2022, arXiv 2112.03570, Section III).

**Limits.** Where every positive or negative is a fair coin of its own, and the two versions of it make neighbouring inputs,
TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ (Kairouz, Oh & Viswanath 2015, Theorem 2.1). So in expectation

    TPR − FPR ≤ (e^ε − 1 + 2δ)/(e^ε + 1),        TPR ≤ min(e^ε FPR + δ, 1 − e^{−ε}(1 − δ − FPR)).

Sums of such coins average these lines, which are concave in FPR, so the limits hold for the averages, too. They limit
expectations: an observed value may lie above by chance. Where positives and negatives differ in other ways as well (real
edges against pairs that share nothing), there is no such limit.

**The best accuracy** of any classifier of a private release (``best_accuracy``). Two classes with priors π ≥ 1 − π, and one
ε-DP release of the object (whatever is public about it, such as its size, is given). By the same theorem every ε-DP release is
a post-processing of binary randomised response, so

    accuracy ≤ max(π, e^ε / (1 + e^ε))

**Guarantee.** An upper bound for any computation on one graph's release, trained on any other graphs, under the unit ``graph``
of the release. It says nothing about what the shared model or the public size shows. **Edge cases.** ε = 0 → the prior; ε = ∞
→ 1.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError

LOW_OPERATING_RATES = (0.001, 0.01)  # the false-positive rates of every report


@dataclass(frozen=True)
class _OperatingPoints:
    """What a vector of scores is worth to an attacker."""

    auc: float  # area under the receiver's curve, 0 … 1
    advantage: float  # the largest TPR − FPR over all thresholds, 0 … 1
    tpr: tuple[float, ...]  # the largest TPR at each of ``LOW_OPERATING_RATES``; below 1/negatives: at no false positive


def audited_roc_area(scores: np.ndarray, coins: np.ndarray) -> float:
    """Area under the receiver's curve: P[a score (float [k]) of version 1 is above one of version 0], ties half.

    ½ for one-sided coins (bool [k]). It is not an ε and bounds none.
    """
    ones = int(np.count_nonzero(coins))
    zeros = coins.size - ones
    if not ones or not zeros:
        return 0.5
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # equal scores share the mean of their ranks
    return float((ranks[coins].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def of_scores(scores: np.ndarray, truth: np.ndarray) -> _OperatingPoints:
    """What scores (float [k]; larger: more likely positive) are worth to an attacker. Equal scores are called alike.

    Without a positive or a negative in ``truth`` (bool [k]) the area is one half, and all others are 0. ``PrivacyError``: NaN,
    or shapes that differ.
    """
    if scores.shape != truth.shape or np.isnan(scores).any():
        raise PrivacyError("an attack needs one score per example, a number or ±∞")
    positives, negatives = int(np.count_nonzero(truth)), int(np.count_nonzero(~truth))
    if not positives or not negatives:
        return _OperatingPoints(0.5, 0.0, (0.0,) * len(LOW_OPERATING_RATES))
    order = np.argsort(-scores, kind="stable")
    ordered, found = scores[order], truth[order]
    last = np.append(ordered[1:] != ordered[:-1], True)  # thresholds lie between different scores
    tpr = np.cumsum(found)[last] / positives
    fpr = np.cumsum(~found)[last] / negatives
    low = tuple(float(tpr[fpr <= rate].max(initial=0.0)) for rate in LOW_OPERATING_RATES)
    return _OperatingPoints(audited_roc_area(scores, truth), max(0.0, float((tpr - fpr).max())), low)


def most_audited_advantage(epsilon: float, delta: float) -> float:
    """The largest expected TPR − FPR under (ε, δ)-DP, ε ≥ 0 or ∞, δ in [0, 1).

    >>> round(most_audited_advantage(1.0, 0.0), 3)
    0.462
    """
    if math.isinf(epsilon):
        return 1.0
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (math.exp(min(epsilon, 700.0)) + 1))


def best_accuracy(epsilon: float) -> float:
    """The best accuracy after an ε-DP release of an object of one of two equally likely classes: e^ε/(1 + e^ε), in [½, 1].

    Args:
        epsilon: ε ≥ 0.

    Raises:
        PrivacyError: ε negative or NaN.

    >>> round(best_accuracy(1 / 18), 3)
    0.514
    """
    if not epsilon >= 0:
        raise PrivacyError(f"ε must be a number ≥ 0, found {epsilon}")
    return 1.0 / (1.0 + math.exp(-epsilon))


def best_accuracy_given(public: np.ndarray, labels: np.ndarray, epsilons: np.ndarray) -> float:
    """Accuracy of an oracle that knows the class shares at every value of the public statistic, and sees the release.

    For two classes: the mean over graphs of max(π, e^ε/(1 + e^ε)), π the share of the larger class among graphs of the same
    public value. The shares are those of the collection itself: optimistic for small groups.

    Args:
        public: int [graphs], e.g. sizes.
        labels: int [graphs].
        epsilons: float [graphs], ε of each graph's release.

    Raises:
        PrivacyError: vectors of other lengths, empty ones, or more than two classes (for which the bound is another).
    """
    if public.shape != labels.shape or public.shape != epsilons.shape or public.size == 0:
        raise PrivacyError("public statistic, labels and epsilons must be three equally long, non-empty vectors")
    if np.unique(labels).size > 2:
        raise PrivacyError(f"the bound for unequal priors is for two classes, found {np.unique(labels).size}")
    reached = 0.0
    for value in np.unique(public):
        own = public == value
        share = float(np.unique(labels[own], return_counts=True)[1].max()) / float(own.sum())
        reached += sum(max(share, best_accuracy(float(e))) for e in epsilons[own])
    return reached / public.size
