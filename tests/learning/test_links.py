"""Pairs of nodes: public coins, measures, heuristics and the discriminant, each against another way to compute it."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fedgraph.errors import DataError
from fedgraph.learning import links
from fedgraph.methods import link_hops
from fedgraph.types import Graph


def test_edges_are_pairs_and_back(library: Graph) -> None:
    found = links.list_all(library.adjacency)
    assert len(found) == library.num_edges
    assert (found[:, 0] < found[:, 1]).all()
    again = links.adjacency_of(found, library.num_nodes)
    assert (again != library.adjacency).nnz == 0


def test_random_pairs_never_hold_an_edge(library: Graph) -> None:
    found = links.draw_pairs(library.num_nodes, 5000, np.random.default_rng(0), library.adjacency)
    assert len(found) == 5000
    assert not np.asarray(library.adjacency[found[:, 0], found[:, 1]]).any()
    assert (found[:, 0] < found[:, 1]).all()


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


def test_the_discriminant_points_where_edges_differ() -> None:
    rng = np.random.default_rng(3)
    known = rng.normal(size=(4000, 3)) @ np.array([[1, 0.9, 0], [0, 0.5, 0], [0, 0, 1.0]])
    edges = rng.normal(size=(500, 3)) @ np.array([[1, 0.9, 0], [0, 0.5, 0], [0, 0, 1.0]]) + np.array([0.0, 1.0, 0.0])
    direction = links.fit_direction(known, np.r_[500.0, edges.sum(axis=0)])
    both = np.r_[known @ direction, edges @ direction]
    truth = np.r_[np.zeros(4000), np.ones(500)]
    assert roc_auc_score(truth, both) > roc_auc_score(truth, np.r_[known[:, 1], edges[:, 1]]) + 0.1, "columns that go together"
    assert np.isfinite(links.fit_direction(np.zeros((10, 2)), np.zeros(3))).all()


def test_a_pairs_own_edge_is_not_counted() -> None:
    """Random rows: what is known of a pair is the same whether or not its own edge was summed over once."""
    rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(6, 32)).astype(np.float32) / np.float32(32**0.5)
    hop = rows[[1, 0, 3, 2, 5, 4]]
    found = link_hops.likenesses([rows, hop], 0, np.array([[0, 1], [0, 2]]))
    assert found.shape == (2, 2)
    assert found[0, 1] == pytest.approx(found[1, 1]), "the degrees"
    assert abs(found[0, 0] - rows[0].astype(float) @ rows[1].astype(float)) < 1e-6, "hops 1·1, not 0·1, which would be 1"
