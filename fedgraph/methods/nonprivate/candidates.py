"""Which candidates answer: what each of them showed on all validation nodes, and who is within a standard error of the best.

A part of the training nodes (a fold) validates while the others train, and each fold does so in turn. What a candidate showed
is added up over folds, round by round, so that one number of rounds is chosen on all validation nodes together: a choice on 150
nodes follows chance, and the best of many rounds on them even more. Where several candidates are within a standard error of
the best, nobody can tell which is better. They answer together: the mean of their log-probabilities, as an average of models is
seldom worse than the one among them that happens to be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

NEAR_CANDIDATES = 1.0  # standard errors below the best within which a candidate answers too


@dataclass(frozen=True, eq=False)
class BestCandidate:
    """A round of a candidate.

    Attributes:
        candidate: its place among the candidates.
        accuracy: on validation nodes.
        loss: mean over validation nodes.
        updates: rounds that led there.
        parameters: float32 [p]; empty where they need not be kept.
        least: rounds that must have led there; before, a network is hardly trained, and a handful of nodes praises it by
            chance.
    """

    candidate: int
    accuracy: float
    loss: float
    updates: int
    parameters: np.ndarray
    least: int = 1

    @property
    def rank(self) -> tuple[bool, float, float]:
        """The larger the better. A network that is hardly trained is the last choice."""
        return self.updates >= self.least, self.accuracy, -self.loss

    def beats(self, other: BestCandidate | None) -> bool:
        return other is None or self.rank > other.rank


@dataclass(frozen=True, eq=False)
class TriedCandidate:
    """What a candidate showed.

    Attributes:
        curve: float64 [rounds, 3], right answers, summed loss and number of validation nodes of the model after so many rounds,
            summed over folds; a fold that stopped earlier counts with its last row.
        folds: how many.
        first: the best round of the first fold.
    """

    curve: np.ndarray
    folds: int
    first: BestCandidate

    @property
    def best(self) -> BestCandidate:
        """The best round by what all folds say together; its parameters are those of the first fold's best round."""
        if self.folds == 1:
            return self.first
        rounds = (replace(self.first, accuracy=r / n, loss=loss / n, updates=t) for t, (r, loss, n) in enumerate(self.curve))
        return max(rounds, key=lambda found: found.rank)

    @property
    def count(self) -> float:
        """Validation nodes, over all folds."""
        return float(self.curve[0, 2])

    def after(self, curve: np.ndarray) -> TriedCandidate:
        """With one more fold, whose ``curve`` is float64 [rounds, 3]."""
        length = max(len(curve), len(self.curve))
        return replace(self, curve=_lengthened(self.curve, length) + _lengthened(curve, length), folds=self.folds + 1)


def _lengthened(curve: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([curve, np.repeat(curve[-1:], length - len(curve), axis=0)])


def candidate_standard_error(accuracy: float, count: float) -> float:
    """Of an accuracy on ``count`` nodes, as if one more had been right and one more wrong: two right of two are not sure."""
    likely = (accuracy * count + 1) / (count + 2)
    return math.sqrt(likely * (1 - likely) / count)


def candidates_within(tried: Mapping[int, TriedCandidate], errors: float) -> list[int]:
    """Candidates at most ``errors`` standard errors below the best, from the best on; of those that saw the most folds."""
    if not tried:
        return []
    folds = max(t.folds for t in tried.values())
    whole = {c: t.best for c, t in tried.items() if t.folds == folds}
    order = sorted(whole, key=lambda c: (-whole[c].accuracy, whole[c].loss))
    top = whole[order[0]]
    least = top.accuracy - errors * candidate_standard_error(top.accuracy, tried[order[0]].count)
    return [c for c in order if whole[c].accuracy >= least]


def candidates_together(scores: Sequence[np.ndarray]) -> np.ndarray:
    """[n, c]: the scores of the only member as they are, or the mean of all members' log-probabilities."""
    if len(scores) == 1:
        return scores[0]
    found = np.zeros_like(scores[0], dtype=np.float64)
    for own in scores:
        found += log_softmax(own.astype(np.float64), axis=1)
    return (found / len(scores)).astype(scores[0].dtype)
