"""Pairs of nodes: public coins, measures, heuristics and the discriminant, each against another way to compute it."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fedgraph.errors import DataError
from fedgraph.learning import links


@pytest.mark.parametrize(("nodes", "without"), [(1, None), (2, np.array([[0, 1]])), (3, np.array([[0, 1], [0, 2], [1, 2]]))])
def test_where_no_pair_is_free_there_is_an_error_and_no_search_without_end(nodes: int, without: np.ndarray | None) -> None:
    edges = None if without is None else links.adjacency_of(without, nodes)
    with pytest.raises(DataError, match="no pair without an edge"):
        links.draw_pairs(nodes, 10, np.random.default_rng(0), edges)
    assert len(links.draw_pairs(nodes, 0, np.random.default_rng(0), edges)) == 0


def test_measures_are_those_of_the_open_graph_benchmark() -> None:
    rng = np.random.default_rng(1)
    positives, negatives = rng.normal(1, 1, 80), rng.normal(0, 1, 400)
    found = links.measure_scores(positives, negatives)
    truth = np.r_[np.ones(80), np.zeros(400)]
    assert found["auc"] == pytest.approx(roc_auc_score(truth, np.r_[positives, negatives]))
    for k in (20, 50, 100):
        assert found[f"hits_at_{k}"] == pytest.approx(np.mean([np.sum(negatives >= p) < k for p in positives]))
    assert found["mrr"] == pytest.approx(np.mean([1 / (1 + np.sum(negatives > p)) for p in positives]))
    few = links.measure_scores(positives, negatives[:30])
    assert "hits_at_50" not in few
    assert links.measure_scores(np.zeros(5), np.zeros(99))["mrr"] == pytest.approx(1 / (1 + 99 / 2)), (
        "equal scores tell nothing"
    )
