"""Classification from distances: splits, kernels, nearest neighbours."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from fedgraph.comparison import classify
from fedgraph.comparison.classify import ClassifySplit


@pytest.fixture(scope="module")
def easy():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    places = labels * 4.0 + rng.normal(size=60)
    return (places[:, None] - places[None, :]) ** 2, labels


def folds(labels, count):
    parts = StratifiedKFold(count, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels)
    return tuple(ClassifySplit(train, np.zeros(0, np.int64), test) for train, test in parts)


@pytest.mark.parametrize(("handling", "protocol"), [("as_is", "folds"), ("clip", "repeated"), ("shift", "folds")])
def test_svm_learns_what_can_be_learnt(easy, handling, protocol):
    distances, labels = easy
    splits = folds(labels, 4)
    if protocol != "folds":  # a part of what trains validates
        trains = [np.random.default_rng(2).permutation(part.train) for part in splits]
        splits = tuple(ClassifySplit(train[:-12], train[-12:], part.test) for train, part in zip(trains, splits, strict=True))
    small = {"costs": (0.1, 1.0, 10.0), "gammas": (0.01, 0.1, 1.0)}
    shuffled = np.random.default_rng(4).permutation(labels)
    found, again, other = (
        classify.by_svm(distances, truth, splits, np.random.default_rng(3), handling, **small)
        for truth in (labels, labels, shuffled)
    )
    assert found.mean > 0.8 > other.mean
    assert len(found.chosen) == 4
    assert np.array_equal(again.accuracies, found.accuracies)


def test_nearest(easy):
    distances, labels = easy
    splits = folds(labels, 5)
    assert classify.by_nearest(distances, labels, splits, 5).mean > 0.85
    few = tuple(ClassifySplit(np.arange(20, 60), part.validation, np.arange(5)) for part in splits)
    assert classify.by_nearest(distances, labels, few, 500).mean == 0, "more neighbours than rows: the majority"
