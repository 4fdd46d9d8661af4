"""From distances between graphs to accuracies: a support vector machine, and votes of the nearest neighbours."""

from dataclasses import dataclass

import numpy as np

from fedgraph.comparison import classify
from fedgraph.tasks.base.measures import named_measures


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
    """``accuracy`` and ``macro_f1`` of the SVM on exp(−γD), its settings, ``knn<k>``, and the majority share of the test rows.

    Without validation rows inner folds choose.
    """
    nearest = {k: classify.nearest(distances, labels, (split,), k) for k in how.neighbours}
    votes = {f"knn{k}": found.mean for k, found in nearest.items()}
    if not how.svm:
        return named_measures(nearest[how.neighbours[0]].named[0], labels[split.test]) | votes
    found = classify.svm(distances, labels, (split,), rng, how.handling, how.costs, how.gammas)
    metrics = named_measures(found.named[0], labels[split.test])
    metrics["most_negative_eigenvalue"] = float(found.most_negative[0])
    if how.tuned_on_test:
        known = np.sort(np.concatenate([split.train, split.validation]))
        picked = classify.Split(known, split.test, split.test)
        found = classify.svm(distances, labels, (picked,), rng, how.handling, how.costs, how.gammas)
        metrics["tuned_on_test"] = found.chosen[0]["validation"]
    return metrics | votes
