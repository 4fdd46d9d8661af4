"""The mean-field pass: lonely nodes keep their own view, neighbours pull labels together; look-alikes are the nearest rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph.learning.propagation import mean_field as module
from fedgraph.learning.propagation.mean_field import _class_agreement, _is_sure

LINE = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=np.float32))


def test_isolated_nodes_and_no_rounds_keep_their_own_view() -> None:
    scores = np.random.default_rng(0).standard_normal((4, 3))
    assert np.allclose(module.run(scores, [(2.0, LINE)], 3)[3], softmax(scores[3]))
    assert np.allclose(module.run(scores, [(2.0, LINE)], 0), softmax(scores, axis=1))
    assert np.allclose(module.run(scores, [(0.0, LINE)], 3), softmax(scores, axis=1))
    assert np.allclose(module.run(scores, [], 3), softmax(scores, axis=1))


def test_one_round_by_hand() -> None:
    scores = np.random.default_rng(1).standard_normal((4, 3))
    q = softmax(scores, axis=1)
    out = module.run(scores, [(0.7, LINE), (0.5, sp.csr_array(np.eye(4)))], 1)
    assert np.allclose(out[1], softmax(scores[1] + 0.7 * (q[0] + q[2]) + 0.5 * q[1]))


@pytest.mark.parametrize("block", [7, 2048])
def test_look_alikes_are_the_nearest_other_rows(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", block)
    rows = np.random.default_rng(0).random((30, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = module.look_alikes(rows, 4).toarray()
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -1)
    for i in range(30):
        assert set(np.flatnonzero(found[i])) == set(np.argsort(-likeness[i])[:4])
    assert np.allclose(found.sum(axis=1), 1)
    assert not found.diagonal().any()


def test_zero_rows_and_tiny_graphs_have_no_look_alikes() -> None:
    rows = np.array([[1, 0], [1, 0], [0, 0], [0, 1]], dtype=np.float32)
    found = module.look_alikes(rows, 2).toarray()
    assert found[0, 1] == 1
    assert found[1, 0] == 1
    assert not found[2].any()
    assert not found[:, 2].any()
    assert not found[3].any()
    assert module.look_alikes(rows[:1], 10).shape == (1, 1)


def two_blocks(agree: float, seed: int = 0, n: int = 400) -> tuple[np.ndarray, np.ndarray, sp.csr_array]:
    """(scores that are right for about 80 % of nodes, labels, a graph whose edges join equal labels with probability agree)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    scores = np.zeros((n, 2))
    scores[np.arange(n), np.where(rng.random(n) < 0.8, labels, 1 - labels)] = 2.0
    one = rng.integers(n, size=3000)
    same = rng.random(3000) < agree
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
    flat = np.full((400, 3), 1 / 3)
    assert np.allclose(_class_agreement(flat, flat, graph)[0], 0, atol=1e-9)
    empty = sp.csr_array((400, 400), dtype=np.float32)
    scores = np.random.default_rng(0).standard_normal((400, 3))
    assert np.allclose(module.couple(scores, empty, [], 4.0, 3), softmax(scores, axis=1))
    assert np.allclose(module.couple(scores, graph, [], 0.0, 3), softmax(scores, axis=1)), "no strength is allowed"


def test_the_error_of_an_agreement_is_its_spread_over_graphs() -> None:
    """Twenty draws: the mean stated error is within a third of the standard deviation between them, and a coupling is taken
    where neighbours are alike or unlike, and nearly never where they are as chance has it."""
    for agree, least, most in ((0.8, 20, 20), (0.2, 20, 20), (0.5, 0, 4)):
        draws = [_class_agreement(view, view, graph) for view, graph in blocks(agree)]
        spread = np.std([found for found, _ in draws], axis=0, ddof=1)
        stated = np.mean([errors for _, errors in draws], axis=0)
        assert np.all((stated > spread / 1.5) & (stated < spread * 1.5)), (agree, stated, spread)
        assert least <= sum(_is_sure(found, errors) for found, errors in draws) <= most, agree


def blocks(agree: float) -> list[tuple[np.ndarray, sp.csr_array]]:
    return [(softmax(scores, axis=1), graph) for scores, _, graph in (two_blocks(agree, seed, 200) for seed in range(20))]
