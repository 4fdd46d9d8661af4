"""The accuracy that no classifier of a differentially private release can exceed.

Two classes with priors π ≥ 1 − π, and one ε-DP release of the object (whatever is public about it, such as its size, is
given). By Kairouz, Oh & Viswanath (2015, Theorem 2.1) every ε-DP release is a post-processing of binary randomised response, so

    accuracy ≤ max(π, e^ε / (1 + e^ε))

**Guarantee.** An upper bound for any computation on one graph's release, trained on any other graphs, under the
unit ``graph`` of the release. It says nothing about what the shared model or the public size shows.

**Edge cases.** ε = 0 → the prior; ε = ∞ → 1; negative ε or NaN → ``PrivacyError``.

>>> round(at_epsilon(1 / 18), 3)
0.514
"""

import math

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy.fields import ArrayField


def at_epsilon(epsilon: float) -> float:
    """The best accuracy after an ε-DP release of an object of one of two equally likely classes: e^ε/(1 + e^ε), in [½, 1].

    Args:
        epsilon: ε ≥ 0.

    Raises:
        PrivacyError: ε negative or NaN.
    """
    if not epsilon >= 0:
        raise PrivacyError(f"ε must be a number ≥ 0, found {epsilon}")
    return 1.0 / (1.0 + math.exp(-epsilon))


def given_public(public: ArrayField, labels: ArrayField, epsilons: ArrayField) -> float:
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
        reached += sum(max(share, at_epsilon(float(e))) for e in epsilons[own])
    return reached / public.size
