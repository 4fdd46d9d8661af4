"""The measures beside accuracy, by hand and on cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from fedgraph.audit import operating_points
from fedgraph.tasks.base import measures
from fedgraph.tasks.base.measures import _area_under_roc, _average_precision, _calibration_error, _macro_f1


def test_naming_the_majority_is_seen_through() -> None:
    truth = np.array([0] * 90 + [1] * 10)
    found = measures.of_scores(np.tile([3.0, 0.0], (100, 1)), truth)
    assert found["accuracy"] == pytest.approx(0.9)
    assert found["majority_share"] == pytest.approx(0.9)
    assert found["macro_f1"] == pytest.approx((2 * 0.9 / 1.9) / 2)
    assert found["auroc"] == pytest.approx(0.5)


def test_perfect_scores() -> None:
    truth = np.array([0, 1, 2, 1, -1])
    scores = 50.0 * np.eye(3)[np.array([0, 1, 2, 1, 0])]
    found = measures.of_scores(scores, truth)
    assert found["accuracy"] == found["macro_f1"] == found["auroc"] == found["average_precision"] == 1.0
    assert found["calibration_error"] < 1e-9
    assert found["majority_share"] == 0.5


def test_unknown_truth_does_not_count() -> None:
    rng = np.random.default_rng(0)
    scores, truth = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    hidden = np.concatenate([truth, np.full(20, -1)])
    assert measures.of_scores(scores, truth) == measures.of_scores(np.concatenate([scores, rng.normal(size=(20, 3))]), hidden)


def test_calibration_error_by_hand() -> None:
    chances = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    assert _calibration_error(chances, np.array([0, 1, 0, 0])) == pytest.approx((abs(1.8 - 1) + abs(1.2 - 2)) / 4)


def test_probabilities_are_kept_and_logits_are_turned_into_them() -> None:
    rows = np.array([[0.25, 0.75], [1.0, 0.0]])
    assert np.allclose(measures.probabilities_of(rows), rows)
    assert np.allclose(measures.probabilities_of(np.log([[1.0, 3.0]])), [[0.25, 0.75]])
    assert np.isfinite(measures.probabilities_of(np.array([[np.nan, 1.0], [np.inf, 0.0]]))).all()


def test_one_class_in_the_test_set_has_no_ranking() -> None:
    found = measures.of_scores(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0]))
    assert "auroc" not in found
    assert found["accuracy"] == 0.5
    assert found["majority_share"] == 1.0


def test_names_alone_have_accuracy_macro_f1_and_majority() -> None:
    found = measures.of_classes(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    assert found == {"accuracy": 0.75, "macro_f1": pytest.approx((0.8 + 2 / 3) / 2), "majority_share": 0.5}


@pytest.mark.parametrize("levels", [2, 7, 1000])
def test_measures_are_those_of_scikit_learn_with_many_ties_and_few(levels: int) -> None:
    rng = np.random.default_rng(levels)
    for _ in range(20):
        right = rng.random(60) < rng.uniform(0.05, 0.95)
        right[:2] = True, False
        chances = rng.integers(levels, size=60) / levels
        assert _area_under_roc(right, chances) == operating_points.audited_roc_area(chances, right)
        assert operating_points.audited_roc_area(chances, right) == pytest.approx(
            metrics.roc_auc_score(right, chances), abs=1e-12
        )
        assert _average_precision(right, chances) == pytest.approx(metrics.average_precision_score(right, chances), abs=1e-12)
        truth, named = rng.integers(4, size=60), rng.integers(1, 6, size=60)
        expected = metrics.f1_score(truth, named, average="macro", zero_division=0.0)
        assert _macro_f1(truth, named) == pytest.approx(expected, abs=1e-12)


def test_a_class_of_a_few_is_named_and_no_reason_to_conclude_nothing_about_the_others() -> None:
    labels = np.repeat([0, 1, 2, -1], [300, 200, 7, 5])
    assert measures.least_class(labels) == 200
    assert measures.least_class(np.repeat([0, 1], [300, 7])) == 7, "one class alone can be told from nothing"
    (said,) = measures.warn_of_small_classes(labels, ("red", "green", "blue"), "person")
    assert said.startswith("Of a class with fewer than 20 people (blue 7) nothing can be said: merge it with another")
    assert not measures.warn_of_small_classes(labels[:500], ("red", "green"))
