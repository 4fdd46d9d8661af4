"""Classification from distances: splits, kernels, nearest neighbours."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from fedgraph.comparison import classify
from fedgraph.comparison.classify import ClassifySplit, _kernel, _vote


@pytest.fixture(scope="module")
def easy():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    places = labels * 4.0 + rng.normal(size=60)
    return (places[:, None] - places[None, :]) ** 2, labels


def folds(labels, count):
    parts = StratifiedKFold(count, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels)
    return tuple(ClassifySplit(train, np.zeros(0, np.int64), test) for train, test in parts)


def shuffled_train(part):
    return replace(part, train=np.random.default_rng(2).permutation(part.train))


def test_kernel_handling():
    rng = np.random.default_rng(1)
    distances = rng.random((12, 12)) * 3
    distances = distances + distances.T
    np.fill_diagonal(distances, 0)
    raw, lowest = _kernel(distances, 0.5, "as_is")
    assert lowest < 0
    assert np.allclose(raw, np.exp(-0.5 * distances))
    for handling in ("clip", "shift"):
        fixed, reported = _kernel(distances, 0.5, handling)
        assert reported == pytest.approx(lowest)
        assert np.linalg.eigvalsh(fixed)[0] > -1e-10
    with pytest.raises(ValueError, match="'clip'"):
        _kernel(distances, 0.5, "flip")


def test_where_divide_and_conquer_does_not_converge_or_one_class_trains_there_is_an_answer(easy, monkeypatch):
    """LAPACK's faster routine gave up on a kernel of ldp_gw_epsilon; the slower one must answer, and the same."""
    distances, _ = easy
    one = (ClassifySplit(np.arange(42), np.arange(42, 54), np.arange(54, 60)),)
    assert classify.by_svm(distances, np.zeros(60), one, np.random.default_rng(0), costs=(1.0,), gammas=(1.0,)).mean == 1.0
    wanted = [_kernel(distances, 0.5, handling) for handling in ("clip", "shift")]

    def give_up(gram):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", give_up)
    for handling, (gram, lowest) in zip(("clip", "shift"), wanted, strict=True):
        found = _kernel(distances, 0.5, handling)
        assert np.allclose(found[0], gram, atol=1e-12)
        assert found[1] == pytest.approx(lowest, abs=1e-12)


@pytest.mark.parametrize("handling", ["as_is", "clip", "shift"])
@pytest.mark.parametrize("protocol", ["folds", "repeated"])
def test_svm_learns_what_can_be_learnt(easy, handling, protocol):
    distances, labels = easy
    splits = folds(labels, 4)
    if protocol != "folds":  # a part of what trains validates
        splits = tuple(ClassifySplit(part.train[:-12], part.train[-12:], part.test) for part in map(shuffled_train, splits))
    small = {"costs": (0.1, 1.0, 10.0), "gammas": (0.01, 0.1, 1.0)}
    found = classify.by_svm(distances, labels, splits, np.random.default_rng(3), handling, **small)
    assert found.mean > 0.8
    assert len(found.chosen) == 4
    again = classify.by_svm(distances, labels, splits, np.random.default_rng(3), handling, **small)
    assert np.array_equal(again.accuracies, found.accuracies)
    shuffled = np.random.default_rng(4).permutation(labels)
    assert classify.by_svm(distances, shuffled, splits, np.random.default_rng(3), handling, **small).mean < 0.8


def test_nearest(easy):
    distances, labels = easy
    splits = folds(labels, 5)
    assert classify.by_nearest(distances, labels, splits, 5).mean > 0.85
    assert _vote(distances[:, 10:], labels[10:], 500).tolist() == [1] * 60  # more neighbours than rows: the majority


def test_tied_votes_go_to_the_nearest():
    assert _vote(np.array([[3.0, 1.0, 2.0, 4.0]]), np.array([7, 9, 7, 9]), 4).tolist() == [9]
    assert _vote(np.array([[3.0, 1.0, 2.0, 4.0]]), np.array([7, 9, 7, 9]), 3).tolist() == [7]
    with pytest.raises(ValueError, match="at least 1"):
        _vote(np.zeros((1, 1)), np.zeros(1), 0)
