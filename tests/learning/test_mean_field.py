"""The mean-field pass: lonely nodes keep their own view, neighbours pull labels together; look-alikes are the nearest rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph.learning import mean_field as module

LINE = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=np.float32))


def test_isolated_nodes_and_no_rounds_keep_their_own_view_and_one_round_is_as_by_hand() -> None:
    scores = np.random.default_rng(0).standard_normal((4, 3))
    q = softmax(scores, axis=1)
    assert np.allclose(module.run(scores, [(2.0, LINE)], 3)[3], q[3])
    for pulls, rounds in (([(2.0, LINE)], 0), ([(0.0, LINE)], 3), ([], 3)):
        assert np.allclose(module.run(scores, pulls, rounds), q)
    out = module.run(scores, [(0.7, LINE), (0.5, sp.csr_array(np.eye(4)))], 1)
    assert np.allclose(out[1], softmax(scores[1] + 0.7 * (q[0] + q[2]) + 0.5 * q[1]))


def test_look_alikes_are_the_nearest_other_rows() -> None:
    rows = np.random.default_rng(0).random((30, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = module.look_alikes(rows, 4).toarray()
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -1)
    for i in range(30):
        assert set(np.flatnonzero(found[i])) == set(np.argsort(-likeness[i])[:4])
    assert np.allclose(found.sum(axis=1), 1)
    assert not found.diagonal().any()


def two_blocks(agree: float, n: int = 400) -> tuple[np.ndarray, np.ndarray, sp.csr_array]:
    """(scores that are right for about 80 % of nodes, labels, a graph whose edges join equal labels with probability agree)."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=n)
    scores = np.zeros((n, 2))
    scores[np.arange(n), np.where(rng.random(n) < 0.8, labels, 1 - labels)] = 2.0
    one, same = rng.integers(n, size=3000), rng.random(3000) < agree
    two = np.array([rng.choice(np.flatnonzero((labels == labels[u]) == s)) for u, s in zip(one, same, strict=True)])
    dense = np.zeros((n, n), dtype=np.float32)
    dense[one[one != two], two[one != two]] = 1
    return scores, labels, sp.csr_array(np.maximum(dense, dense.T))


@pytest.mark.parametrize(("agree", "least"), [(0.9, 0.9), (0.1, 0.9), (0.5, 0.75)])
def test_unlike_neighbours_help_as_much_as_like_ones_and_random_ones_do_no_harm(agree: float, least: float) -> None:
    scores, labels, graph = two_blocks(agree)
    alone = (scores.argmax(axis=1) == labels).mean()
    found = (module.couple(scores, graph, [], 4.0, 3).argmax(axis=1) == labels).mean()
    assert found >= least
    assert found >= alone - 0.02
    if agree < 0.5:  # what a fixed attraction does here
        assert (module.run(scores, [(1.0, graph)], 3).argmax(axis=1) == labels).mean() < alone


def test_knowing_nothing_couples_nothing() -> None:
    _, _, graph = two_blocks(0.9)
    assert np.allclose(module.couple(np.zeros((400, 3)), graph, [], 4.0, 3), 1 / 3)
    empty = sp.csr_array((400, 400), dtype=np.float32)
    scores = np.random.default_rng(0).standard_normal((400, 3))
    assert np.allclose(module.couple(scores, empty, [], 4.0, 3), softmax(scores, axis=1))
    assert np.allclose(module.couple(scores, graph, [], 0.0, 3), softmax(scores, axis=1)), "no strength is allowed"
