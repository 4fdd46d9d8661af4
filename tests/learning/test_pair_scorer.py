"""Pairs of nodes: coins and measures against another way to compute them; a scorer's gradients, clip, and what it learns."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fedgraph.errors import DataError
from fedgraph.learning import links, pair_scorer


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


RANK, SHARPNESS, COUNTED = 16, 8.0, 0.3  # rows of the matrix; factor of a score; the entry that counts a pair
PAIRS = np.array([[0, 1], [2, 3], [4, 0], [1, 3]])


def some(seed: int, large: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(a vector, rows [6, 20])."""
    rng = np.random.default_rng(seed)
    first = pair_scorer.start(1, 20)
    return first + large * rng.normal(size=first.size).astype(np.float32), rng.normal(size=(6, 20)).astype(np.float32)


def by_torch(vector: np.ndarray, rows: np.ndarray, pair: np.ndarray, wanted: float) -> np.ndarray:
    """The gradient of one pair's logistic loss."""
    at, x = torch.tensor(vector.astype(np.float64), requires_grad=True), torch.tensor(rows.astype(np.float64))
    found = x @ at[:-1].reshape(RANK, -1).T
    score = SHARPNESS * (found[pair[0]] * found[pair[1]]).sum() - at[-1]
    torch.nn.functional.binary_cross_entropy_with_logits(score, torch.tensor(wanted, dtype=torch.float64)).backward()
    assert at.grad is not None
    assert pair_scorer.score(vector, rows, pair[None])[0] == pytest.approx(score.item(), rel=1e-5)
    return at.grad.numpy()


@pytest.mark.parametrize("wanted", [0.0, 1.0])
@pytest.mark.parametrize("large", [0.001, 0.3])
def test_a_sum_is_that_of_clipped_gradients(wanted: float, large: float) -> None:
    vector, rows = some(0, large)
    most = np.sqrt(1 - COUNTED**2)
    each = [by_torch(vector, rows * large, pair, wanted) for pair in PAIRS]
    clipped = [g * min(1.0, most / np.linalg.norm(g)) for g in each]
    found = pair_scorer.clipped_sum(vector, rows * large, PAIRS, wanted)
    assert found == pytest.approx(np.r_[COUNTED * len(PAIRS), np.sum(clipped, axis=0)], abs=1e-6)


@pytest.mark.parametrize("large", [0.0, 1.0, 1e4, 1e12])
def test_a_pair_more_moves_the_sum_by_one_at_most(large: float) -> None:
    vector, rows = some(1, large)
    longest = 0.0
    for wanted in (0.0, 1.0):
        whole = pair_scorer.clipped_sum(vector, rows, PAIRS, wanted)
        for place in range(len(PAIRS)):
            less = pair_scorer.clipped_sum(vector, rows, np.delete(PAIRS, place, axis=0), wanted)
            longest = max(longest, float(np.linalg.norm(whole - less)))
    assert 0.99 < longest <= 1.0, "and the whole clip is used, so that a price for two thirds of it would be found out"
    assert not pair_scorer.clipped_sum(vector, rows, PAIRS[:0], 1.0).any()


@pytest.mark.parametrize("apart", [1e-3, 1e-7, 1e-9, 1e-15])
def test_opposite_rows_hide_no_gradient_behind_rounding(apart: float) -> None:
    """W sees only where two nearly opposite rows differ: both parts of the squared norm are large and cancel."""
    rows = np.zeros((2, 20), dtype=np.float32)
    rows[:, 0], rows[:, 1] = (1, -1), apart
    weights = np.zeros((RANK, 20), dtype=np.float32)
    for large in 10.0 ** np.arange(0, 37, 3):
        weights[:, 1] = large
        for wanted in (0.0, 1.0):
            found = pair_scorer.clipped_sum(np.append(weights.ravel(), np.float32(0)), rows, PAIRS[:1], wanted)
            assert np.linalg.norm(found) <= 1


def test_it_learns_what_joins_and_more_noise_is_no_gain() -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(200) % 4
    rows = np.concatenate([3 * rng.normal(size=(200, 10)), np.eye(4)[groups]], axis=1).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    many = links.draw_pairs(200, 20_000, rng)
    edges, others = many[groups[many[:, 0]] == groups[many[:, 1]]][:2000], many[-2000:]

    def auc(std: float, steps: int = 40) -> float:
        learner, noise = pair_scorer.PairScorer(steps, std, 0), np.random.default_rng(1)
        learnt = learner.start(pair_scorer.start(1, rows.shape[1]))
        for number in range(steps):
            total = pair_scorer.clipped_sum(learnt.descended.parameters, rows, edges, 1.0)
            learnt = learner.step(learnt, rows, total + std * noise.normal(size=total.size), number)
        vector = learnt.descended.average
        assert np.isfinite(vector).all()
        return links.measure_scores(pair_scorer.score(vector, rows, edges), pair_scorer.score(vector, rows, others))["auc"]

    untrained = pair_scorer.start(1, rows.shape[1])
    first = links.measure_scores(pair_scorer.score(untrained, rows, edges), pair_scorer.score(untrained, rows, others))["auc"]
    assert auc(0.0) > first + 0.1
    assert auc(5.0) > first + 0.05
    assert abs(auc(1e5) - first) < 0.05, "where noise is all there is, hardly a step is taken"
