"""Sums of gradients clipped row by row: autograd's, one row against its clip at any size, and rows that are no rows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.errors import DataError
from fedgraph.learning import (
    FeatureMatrix,
    Layout,
    NetworkExamples,
    NetworkSpec,
    aggregated_rows,
    example_gradients,
    per_sample,
    rooted,
)
from fedgraph.learning.per_sample import SPREAD

LAYOUTS = [Layout((12, 4)), Layout((12, 6, 4)), Layout((12, 7, 5, 4)), Layout((12, 6, 4), bias_scale=0.3)]
N = 12


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel on twelve rows, beside what one row's scores are by definition."""

    total: Callable[[np.ndarray, float | None], np.ndarray]  # (labels, clip) → the sum
    scores: Callable[[torch.Tensor, int], torch.Tensor]  # (parameters, row) → [1, 4]
    vector: np.ndarray


def perceptron(layout: Layout, theta: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    for level, (weight, bias) in enumerate(layout.layers(theta)):
        rows = (torch.relu(rows) if level else rows) @ weight + bias
    return rows


def some(seed: int, shape: tuple[int, int], scale: float) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random(shape) * (rng.random(shape) < 0.5) * scale).astype(np.float32))


def of_rows(layout: Layout) -> Callable[[int, float], Kernel]:
    def made(seed: int, scale: float) -> Kernel:
        x, vector = some(seed, (N, 12), scale), np.random.default_rng(seed).standard_normal(layout.num_parameters)
        vector, dense = vector.astype(np.float32) * 2, torch.tensor(x.toarray())

        def total(labels: np.ndarray, clip: float | None) -> np.ndarray:
            assert clip is not None
            return per_sample.clipped_sum(layout, vector, FeatureMatrix(x), torch.tensor(labels), clip)

        return Kernel(total, lambda theta, row: perceptron(layout, theta, dense[[row]]), vector)

    return made


def of_aggregates(seed: int, scale: float) -> Kernel:
    """Rows are weighted sums of the scores of fifteen nodes."""
    layout, features, rng = Layout((20, 8, 4)), some(seed, (15, 20), scale), np.random.default_rng(seed)
    mixed = sp.random_array((N, 15), density=0.25, rng=rng, format="csr")
    mixed.data -= 0.3  # GM's noisy values may be negative
    vector, dense = layout.start(rng) + 0.05, torch.tensor(features.toarray())
    weights = torch.tensor(mixed.toarray(), dtype=torch.float32)

    def total(labels: np.ndarray, clip: float | None) -> np.ndarray:
        made = aggregated_rows.prepare(features, sp.csr_array(mixed), labels, clipped=clip is not None)
        return aggregated_rows.clipped_sum(layout, vector, made, np.arange(N), clip)

    return Kernel(total, lambda theta, row: weights[[row]] @ perceptron(layout, theta, dense), vector)


KERNELS = {"-".join(map(str, (*x.widths, x.bias_scale))): of_rows(x) for x in LAYOUTS} | {"aggregates": of_aggregates}
each_kernel = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)


def plain(kernel: Kernel, labels: np.ndarray, clip: float | None) -> np.ndarray:
    """The definition: one backward pass for each labelled row, clip, add."""
    total = np.zeros(kernel.vector.size)
    for row in np.flatnonzero(labels >= 0):
        theta = torch.tensor(kernel.vector, requires_grad=True)
        torch.nn.functional.cross_entropy(kernel.scores(theta, int(row)), torch.tensor([labels[row]])).backward()
        assert theta.grad is not None
        found = theta.grad.numpy().astype(np.float64)
        total += found if clip is None else found * min(1.0, clip / max(np.linalg.norm(found), 1e-30))
    return total


@each_kernel
@pytest.mark.parametrize("clip", [0.05, 100.0])
def test_it_is_the_sum_of_autograd_rows_clipped_one_by_one(make: Callable[[int, float], Kernel], clip: float) -> None:
    labels = np.random.default_rng(1).integers(-1, 4, N)
    for seed in range(2):
        kernel = make(seed, 1.0)
        assert np.allclose(kernel.total(labels, clip), plain(kernel, labels, clip), rtol=2e-4, atol=3e-5)
    assert not kernel.total(np.full(N, -1), clip).any(), "rows without a label contribute nothing"


def test_aggregates_may_be_added_without_a_clip() -> None:
    kernel, labels = of_aggregates(0, 1.0), np.arange(N) % 4
    assert np.allclose(kernel.total(labels, None), plain(kernel, labels, None), rtol=2e-4, atol=3e-5)


@each_kernel
def test_a_row_moves_the_sum_by_its_clip_and_one_in_its_place_by_twice_that(make: Callable[[int, float], Kernel]) -> None:
    clip, labels, gone, turned = 0.01, np.arange(N) % 4, [], []
    for seed in range(8):
        kernel, row = make(seed, 5.0), seed % N
        whole = kernel.total(labels, clip)
        for found, label in ((gone, -1), (turned, (labels[row] + 1) % 4)):
            other = np.where(np.arange(N) == row, label, labels)
            found.append(float(np.linalg.norm(whole.astype(np.float64) - kernel.total(other, clip))))
    assert 0.95 * clip <= max(gone) <= clip
    assert max(turned) <= 2 * clip


@each_kernel
@pytest.mark.parametrize("scale", [1e20, 1e30])
def test_rows_that_overflow_are_bounded_or_count_as_zero(make: Callable[[int, float], Kernel], scale: float) -> None:
    found = make(0, scale).total(np.arange(N) % 4, 1.0)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= N


@pytest.mark.parametrize("layout", LAYOUTS, ids=list(KERNELS)[:-1])
def test_products_are_of_each_rows_clipped_gradient(layout: Layout) -> None:
    """With what is left of a message, and with one another: one row at a time through the sum, and the plain inner product."""
    kernel, rng, x = of_rows(layout)(1, 3.0), np.random.default_rng(0), FeatureMatrix(some(1, (N, 12), 3.0))
    labels, of = rng.integers(-1, 4, N), np.array([1, 2, 5])
    message, weights = rng.standard_normal(layout.num_parameters).astype(np.float32), rng.choice([0.0, 0.5, 1.0], N)
    alone = np.stack([kernel.total(np.where(np.arange(N) == i, labels, -1), 0.5).astype(np.float64) for i in range(N)])
    clipped = per_sample.gradients(layout, kernel.vector, x, torch.tensor(labels)).clipped(0.5)
    left = clipped.left_over_products(message, weights)
    np.testing.assert_allclose(left, alone @ (message - weights @ alone), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        clipped.products([per_sample.overlaps(x, of)], of), alone[of] @ alone[of].T, rtol=1e-4, atol=1e-6
    )


def test_wrong_shapes_and_unprepared_clipping_raise() -> None:
    rows, labels = sp.csr_array(np.eye(3)), np.arange(3)
    with pytest.raises(DataError, match="do not fit together"):
        aggregated_rows.prepare(some(0, (2, 20), 1.0), rows, labels)
    made = aggregated_rows.prepare(some(0, (3, 20), 1.0), rows, labels, clipped=False)
    with pytest.raises(DataError, match="cannot be clipped"):
        aggregated_rows.clipped_sum(Layout((20, 8, 4)), np.zeros(204, np.float32), made, np.arange(3), 1.0)
    with pytest.raises(DataError, match="aggregated rows need an MLP"):
        aggregated_rows.clipped_sum(Layout((20, 4)), np.zeros(84, np.float32), made, np.arange(3), None)


CLIP = 0.7
Sum = Callable[[np.ndarray], np.ndarray]


def alike(n: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows that all point almost the same way, so that their sum is as long as a sum can be: where rounding is worst."""
    rng = np.random.default_rng(n)
    features = sp.csr_array(np.column_stack([np.ones(n), rng.uniform(0.6, 0.7, n)]).astype(np.float32))
    return features, np.zeros(n, dtype=np.int64)


def many_rows(n: int) -> tuple[Sum, np.ndarray]:
    features, labels = alike(n)
    layout, x = Layout((2, 3)), FeatureMatrix(features)
    vector = np.zeros(layout.num_parameters, np.float32)
    return lambda kept: per_sample.clipped_sum(layout, vector, x, torch.tensor(kept), CLIP), labels


def many_examples(n: int) -> tuple[Sum, np.ndarray]:
    features, labels = alike(n)
    spec = NetworkSpec("torch.nn.Linear", '{"in_features": "$inputs", "out_features": "$classes"}', 2, 3)
    rows, vector = features.toarray(), np.zeros(9)

    def total(kept: np.ndarray) -> np.ndarray:
        roots = np.flatnonzero(kept >= 0)
        given = NetworkExamples(rows, rooted.alone(roots), kept[roots])
        return example_gradients.clipped_sum(spec, vector, given, CLIP, n)

    return total, labels


def many_aggregates(n: int) -> tuple[Sum, np.ndarray]:
    features, labels = alike(n)
    rows = sp.csr_array(
        (np.full(2 * n, 0.5), np.sort(np.column_stack([np.arange(n), np.arange(n) ^ 1])).ravel(), 2 * np.arange(n + 1))
    )
    layout = Layout((2, 3, 3))
    vector = np.linspace(0.1, 0.6, layout.num_parameters).astype(np.float32)
    made = aggregated_rows.prepare(features, rows, labels)
    return lambda kept: aggregated_rows.clipped_sum(layout, vector, made, np.flatnonzero(kept >= 0), CLIP), labels


@pytest.mark.parametrize("kernel", [many_rows, many_examples, many_aggregates], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [2_000, 4_098, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_one_row_of_very_many(kernel: Callable[[int], tuple[Sum, np.ndarray]], n: int) -> None:
    """Rounding is part of the bound."""
    total, labels = kernel(n)
    whole = total(labels).astype(np.float64)
    assert np.linalg.norm(whole) > 0.8 * CLIP * n, "rows that cancel would hide what rounding does"
    for gone in (0, n // 2, n - 1):
        change = np.linalg.norm(whole - total(np.where(np.arange(n) == gone, -1, labels)))
        assert 0.8 * CLIP < change <= CLIP


def test_what_rounding_costs_is_little_and_what_it_cannot_bound_is_refused() -> None:
    assert [per_sample.room_for(n)[0] for n in (2_396, 4_097)] == [np.float32, np.float64]
    for n in (1, 100, 4_096, 4_097, 100_000, 1_000_000):
        assert 0.9990 < per_sample.room_for(n)[1] < 1
        assert 0.94 < per_sample.room_for(n, SPREAD)[1] <= per_sample.room_for(n)[1]
    with pytest.raises(DataError, match="100000000 rows"):
        per_sample.room_for(10**8)


def test_largest_breaks_ties_by_the_smaller_index() -> None:
    values = np.array([[0.0, 2.0, 2.0, 1.0, 2.0], [5.0, 1.0, 0.0, 0.0, 0.0]])
    assert aggregated_rows.choose_largest(values, 2).tolist() == [[1, 2], [0, 1]]
    assert aggregated_rows.choose_largest(values, 5).tolist() == [[1, 2, 4, 3, 0], [0, 1, 2, 3, 4]]
    assert aggregated_rows.choose_largest(np.zeros((0, 5)), 2).shape == (0, 2)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_node_is_named_by_more_other_rows_than_allowed(most: int) -> None:
    rng = np.random.default_rng(most)
    sources = rng.choice(60, 40, replace=False)
    chosen = np.array([rng.choice(12, 4, replace=False) for _ in sources])  # a crowd around twelve hubs
    kept = aggregated_rows.limit_mentions(sources, chosen, most, rng.random(40))
    for node in range(60):
        naming = {int(s) for s, row in zip(sources, kept, strict=True) if node in row} - {node}
        available = {int(s) for s, row in zip(sources, chosen, strict=True) if node in row} - {node}
        assert len(naming) == min(most, len(available)), "never more than allowed, and no slot wasted"
    own = chosen == sources[:, None]
    assert (kept[own] == chosen[own]).all(), "a row may always name its own node"


def test_aggregation_falls_back_on_the_own_node() -> None:
    chosen = np.array([[3, 4], [-1, -1], [0, -1]])
    pi = aggregated_rows.matrix_of(6, np.array([0, 1, 2]), chosen, np.full((3, 2), 0.5), np.array([5]), 1.0, "none").toarray()
    assert pi[0].tolist() == [0, 0, 0, 0.5, 0.5, 0]
    assert pi[1].tolist() == [0, 1, 0, 0, 0, 0]
    assert pi[2].tolist() == [0.5, 0, 0, 0, 0, 0]
    assert pi[5, 5] == 1
    assert not pi[3].any()
