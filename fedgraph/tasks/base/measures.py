"""Metrics of a classifier beside accuracy, for classes of very different sizes.

A classifier that always predicts the largest class has that class's share as its accuracy (``majority_share``), a macro-F1 a
little above zero, and an AUROC of one half. Definitions are scikit-learn's; averages over classes are unweighted.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from fedgraph.errors import RuntimeFailure
from fedgraph.types import counted

_RARE = 0.15  # a class is rare below this share of the test nodes: accuracy then says little of it
_FEWEST = 100  # test nodes from which one standard error of an accuracy is at most 0.05
_FEWEST_OF_A_CLASS = 20  # fewer test nodes of a class say nothing about it
_NUM_BINS = 15  # bins of the calibration error (Guo et al., ICML 2017)


def probabilities_of(scores: np.ndarray) -> np.ndarray:
    """float64 [n, c], probabilities: ``scores`` if their rows already sum to 1, otherwise their softmax.

    NaN counts as the lowest score of its row.
    """
    found = np.nan_to_num(scores.astype(np.float64), nan=-np.inf, posinf=1e30, neginf=-1e30)
    if found.size and (found >= 0).all() and np.allclose(found.sum(axis=1), 1.0, atol=1e-4):
        return found / found.sum(axis=1, keepdims=True)
    return np.asarray(softmax(found, axis=1))


def _area_under_roc(right: np.ndarray, chances: np.ndarray) -> float:
    """AUROC (Hanley & McNeil 1982), ties counting one half. right: bool [n], some true, some false. chances: float64 [n]."""
    _, place, count = np.unique(chances, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # equal scores share the mean of their ranks
    members, strangers = int(right.sum()), int((~right).sum())
    return float((ranks[right].sum() - members * (members + 1) / 2) / (members * strangers))


def _average_precision(right: np.ndarray, chances: np.ndarray) -> float:
    """Σ (recall_k − recall_{k−1}) · precision_k, from the highest different score down. right: bool [n], some true."""
    order = np.argsort(-chances, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(chances[order])), chances.size - 1)
    found = np.cumsum(right[order])[ends]
    return float((np.diff(found, prepend=0) * (found / (ends + 1))).sum() / found[-1])


def _macro_f1(truth: np.ndarray, named: np.ndarray) -> float:
    """Mean of 2·hits / (nodes of the class + predictions of it), over classes that occur in either; both int64 [n]."""
    most = int(max(truth.max(), named.max())) + 1
    both = np.bincount(truth, minlength=most) + np.bincount(named, minlength=most)
    hits = np.bincount(truth[truth == named], minlength=most)
    return float((2 * hits[both > 0] / both[both > 0]).mean())


def _calibration_error(chances: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error, 0 … 1: mean |confidence − accuracy| over ``_NUM_BINS`` equal bins of the confidence
    (Guo et al., ICML 2017, Equation 3). chances: [n, c]. truth: int64 [n]."""
    confidence, right = chances.max(axis=1), chances.argmax(axis=1) == truth
    bins = np.minimum((confidence * _NUM_BINS).astype(int), _NUM_BINS - 1)
    gaps = [abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in np.unique(bins)]
    return float(sum(gaps) / truth.size)


def least_class(labels: np.ndarray) -> int:
    """Size of the smallest class of at least ``_FEWEST_OF_A_CLASS`` nodes, if there are two such classes; else of the smallest.

    Smaller classes are left out, because ``warn_of_few`` names them.

    Args:
        labels: int64 [n], −1: unknown; at least one is known.
    """
    counts = np.unique(labels[labels >= 0], return_counts=True)[1]
    enough = counts[counts >= _FEWEST_OF_A_CLASS]
    return int((enough if enough.size > 1 else counts).min())


def warn_of_few(truth: np.ndarray, labels: np.ndarray, names: Sequence[str], one: str) -> list[str]:
    """Warnings: of a small test set, with two standard errors of an accuracy of ½; of classes that are too small to be judged.

    truth: int64 [n], −1 does not count. labels: of all nodes, as for ``least_class``. names: of the classes; empty: they have
    none. one: what a node is called; ``graph`` if each is a whole graph.
    """
    found, number, counts = [], int((truth >= 0).sum()), np.bincount(labels[labels >= 0])
    if number < _FEWEST:
        many = counted(number, f"test {one}")
        found.append(f"Accuracy is measured on {many} only: chance alone moves it by up to ± {1 / number**0.5:.2f}.")
    few = [(names[k] if names else str(k), int(count)) for k, count in enumerate(counts) if 0 < count < _FEWEST_OF_A_CLASS]
    if few:
        listed = ", ".join(f"{name} {count}" for name, count in few[:8]) + (", …" if len(few) > 8 else "")
        many = f"Of {len(few)} classes with" if len(few) > 1 else "Of a class with"
        said = f"{many} fewer than {counted(_FEWEST_OF_A_CLASS, one)} ({listed}) nothing can be said"
        found.append(f"{said}: merge it with another, or leave its label empty.")
    return found


def of_scores(scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Metric name → value, over the nodes whose ``truth`` (int64 [n]) is known (≥ 0). scores: [n, c].

    ``macro_f1`` averages over the classes that occur or are predicted. ``auroc`` and ``average_precision`` are one class
    against the others, averaged over the classes that have both members and non-members in the test set; they are left out if
    there is no such class. ``majority_share`` is the share of the largest class of the test set. ``RuntimeFailure`` if a score
    is not finite.
    """
    known = truth >= 0
    scores, truth = scores[known], truth[known]
    if not np.isfinite(scores).all():
        raise RuntimeFailure("scores of test nodes are NaN or infinite; if the method has a learning_rate, try a smaller one")
    chances = probabilities_of(scores)
    found = of_classes(scores.argmax(axis=1), truth)
    ranked = [c for c in np.unique(truth) if (truth != c).any()]
    if ranked:
        found["auroc"] = float(np.mean([_area_under_roc(truth == c, chances[:, c]) for c in ranked]))
        found["average_precision"] = float(np.mean([_average_precision(truth == c, chances[:, c]) for c in ranked]))
    found["calibration_error"] = _calibration_error(chances, truth)
    return found


def of_classes(named: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """``accuracy``, ``macro_f1`` and ``majority_share`` (see ``of_scores``) of predicted classes without scores.

    named, truth: int64 [n], n ≥ 1, predicted and true classes; every truth is known (≥ 0).
    """
    return {
        "accuracy": float((named == truth).mean()),
        "macro_f1": _macro_f1(truth, named),
        "majority_share": float(np.bincount(truth).max() / truth.size),
    }


def of_rare_class(scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """``recall_at_alerts`` and ``precision_at_alerts`` of the smaller of two classes, if it is rare; else empty.

    The number of alerts is the size of the class, so recall and precision are equal.
    """
    known = truth[truth >= 0]
    counts = np.bincount(known, minlength=scores.shape[1])
    if counts.size != 2 or not 0 < counts.min() < _RARE * known.size:
        return {}
    found = of_alerts(scores, truth, float(counts.min() / known.size), int(counts.argmin()))
    return {name: value for name, value in found.items() if name.endswith("_at_alerts")}


def of_alerts(scores: np.ndarray, truth: np.ndarray, share: float, positive: int) -> dict[str, float]:
    """How well a classifier finds a rare class if only some nodes can be inspected (alerts).

    share: share of the test nodes that can be inspected (at least one node). positive: the class to find.
    ``average_precision_positive``: average precision of the class (chance: its share). ``recall_at_alerts``: share of the
    positives that are among the alerts. ``precision_at_alerts``: share of the alerts that are positive. Nodes with equal scores
    at the limit count by their share. Empty if no test node is of the class.
    """
    known = truth >= 0
    chances, right = probabilities_of(scores[known])[:, positive], truth[known] == positive
    if not right.any():
        return {}
    count = max(1, round(share * right.size))
    limit = np.sort(chances)[-count]
    above, level = chances > limit, chances == limit
    found = right[above].sum() + right[level].mean() * (count - above.sum())
    return {
        "average_precision_positive": _average_precision(right, chances),
        "recall_at_alerts": float(found / right.sum()),
        "precision_at_alerts": float(found / count),
    }
