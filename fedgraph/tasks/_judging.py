"""From distances between graphs to accuracies: a support vector machine, and votes of the nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedgraph.comparison import classify


@dataclass(frozen=True)
class Judging:
    """How distances are turned into accuracies. tuned_on_test: also what picking C and γ on the test rows would print. svm:
    False leaves the votes alone; ``accuracy`` is then that of the first.
    """

    handling: classify.Handling
    neighbours: tuple[int, ...]
    costs: tuple[float, ...] = classify.COSTS
    gammas: tuple[float, ...] = classify.GAMMAS
    tuned_on_test: bool = False
    svm: bool = True


def judge(
    distances: np.ndarray, labels: np.ndarray, split: classify.Split, rng: np.random.Generator, how: Judging
) -> dict[str, float]:
    """``accuracy`` of the SVM on exp(−γD), its settings, and ``knn<k>``. Without validation rows inner folds choose."""
    votes = {f"knn{k}": classify.nearest(distances, labels, (split,), k).mean for k in how.neighbours}
    if not how.svm:
        return {"accuracy": votes[f"knn{how.neighbours[0]}"], **votes}
    found = classify.svm(distances, labels, (split,), rng, how.handling, how.costs, how.gammas)
    metrics = {"accuracy": found.mean, "most_negative_eigenvalue": float(found.most_negative[0])}
    if how.tuned_on_test:
        known = np.sort(np.concatenate([split.train, split.validation]))
        picked = classify.Split(known, split.test, split.test)
        found = classify.svm(distances, labels, (picked,), rng, how.handling, how.costs, how.gammas)
        metrics["tuned_on_test"] = found.chosen[0]["validation"]
    return metrics | votes
