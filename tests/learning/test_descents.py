"""Descents with noise and batches by coins; a client's own weights and its own head."""

from collections import Counter

import numpy as np
import pytest
import torch

from fedgraph.learning import DenseMatrix, Descent, Layout, StatefulDescent, descents, layouts, own_models
from fedgraph.types import Graph


@pytest.mark.parametrize(("momentum", "averaged"), [(0.9, 0.5), (0.0, 1.0), (0.5, 0.1)])
def test_gain_is_the_spread_of_parameters_that_noise_alone_makes(momentum: float, averaged: float) -> None:
    descent, rng = Descent(0.7, momentum, 12, averaged), np.random.default_rng(0)
    memory = descent.start(np.zeros(40_000, dtype=np.float64))
    for number in range(descent.steps):
        memory = descent.step(memory, rng.standard_normal(40_000), number)
    assert memory.average.std() == pytest.approx(descent.gain(), rel=0.02)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
def test_a_poisson_batch_is_independent_coins_and_a_fixed_one_is_not(rate: float) -> None:
    """Their prices differ: a batch of fixed size in the place of coins, or one batch for all steps, is found out."""
    rng, n, steps = np.random.default_rng(0), 40, 4_000
    coins = np.array([descents.draw_poisson_mask(n, rate, rng) for _ in range(steps)])
    sizes = coins.sum(axis=1)
    assert sizes.var() == pytest.approx(n * rate * (1 - rate), rel=0.12), "a fixed size has no variance"
    assert np.abs(coins.mean(axis=0) - rate).max() < 5 * np.sqrt(rate * (1 - rate) / steps), "every row has the rate"
    together = (coins[:, 0] & coins[:, 1]).mean()
    assert abs(together - rate**2) < 5 * np.sqrt(rate**2 / steps), "rows know nothing of each other"
    again = (coins[1:] == coins[:-1]).mean()
    assert again == pytest.approx(rate**2 + (1 - rate) ** 2, abs=0.01), "steps know nothing of each other"
    size = round(rate * n)
    fixed = np.array([descents.draw_fixed_mask(n, size, rng) for _ in range(steps)])
    assert set(fixed.sum(axis=1).tolist()) == {size}
    assert np.abs(fixed.mean(axis=0) - size / n).max() < 5 * np.sqrt(rate / steps)


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_a_stateful_descent_is_torchs(rule: str) -> None:
    rng = np.random.default_rng(0)
    start = rng.standard_normal(50).astype(np.float32)
    ours, parameters = StatefulDescent(start, 0.05, rule), torch.tensor(start, requires_grad=True)  # type: ignore[arg-type]
    theirs = torch.optim.Adam([parameters], lr=0.05) if rule == "adam" else torch.optim.SGD([parameters], lr=0.05)
    for _ in range(20):
        gradient = rng.standard_normal(50).astype(np.float32)
        parameters.grad = torch.tensor(gradient / 4)
        theirs.step()
        ours.step(gradient, 0.25)
    assert ours.vector == pytest.approx(parameters.detach().numpy(), rel=1e-5, abs=1e-6)


def test_every_batch_of_a_fixed_size_is_as_likely() -> None:
    """What is priced is a batch without replacement, and not any batch in which each row is as often."""
    draws = (tuple(np.flatnonzero(descents.draw_fixed_mask(6, 3, np.random.default_rng(seed)))) for seed in range(4_000))
    counts = Counter(draws)
    assert len(counts) == 20
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 19 + 6 * np.sqrt(2 * 19)


def accuracy(layout: Layout, vector: np.ndarray, x: DenseMatrix, labels: np.ndarray) -> float:
    return float((layouts.logits(layout, vector, x).argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("layout", [Layout((5, 3), bias_scale=0.1), Layout((5, 8, 3))])
def test_own_weights_learn_what_the_shared_ones_do_not_know(layout: Layout) -> None:
    """The pull is toward the shared weights, not toward zero: those of a word that nobody has stay."""
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.standard_normal((300, 4)), np.zeros((300, 1))]).astype(np.float32)
    labels = rows[:, :3].argmax(axis=1).astype(np.int64)
    shared, x = layout.start(np.random.default_rng(1)), DenseMatrix(rows)
    own = own_models.tune(layout, shared, x, labels, rng)
    assert accuracy(layout, own, x, labels) > max(0.85, accuracy(layout, shared, x, labels) + 0.2)
    width = layout.widths[1]
    assert np.array_equal(own[4 * width : 5 * width], shared[4 * width : 5 * width])
    assert not np.allclose(own[: 3 * width], shared[: 3 * width])


def uniform(graph: Graph) -> np.ndarray:
    return np.full((graph.num_nodes, graph.num_classes), 1 / graph.num_classes)


def test_a_head_learns_where_the_shared_model_knows_nothing_and_keeps_one_that_knows_everything(library: Graph) -> None:
    rng = np.random.default_rng(0)
    rows, train = own_models.prepare(library, uniform(library)), rng.random(library.num_nodes) < 0.7
    head = own_models.fit_head(rows, np.where(train, library.labels, -1), rng)
    right = head.scores(rows).argmax(axis=1) == library.labels
    assert head.steps > 0
    assert right[~train].mean() > 0.45, "the majority class alone is right for about a quarter"
    labels = rng.integers(0, library.num_classes, library.num_nodes)
    chances = np.full((library.num_nodes, library.num_classes), 1e-9)
    chances[np.arange(labels.size), labels] = 1.0
    rows = own_models.prepare(library, chances)
    assert (own_models.fit_head(rows, labels, rng).scores(rows).argmax(axis=1) == labels).all()
