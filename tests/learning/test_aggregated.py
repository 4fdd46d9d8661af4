"""Aggregated rows: autograd's gradients, autograd's norms, and what one row or one node can change."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.errors import DataError
from fedgraph.learning.clipping import aggregated_rows
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.optimisers.descents import StatefulDescent

LAYOUT = Layout((20, 8, 4))


def problem(seed: int, num_rows: int = 12, nodes: int = 15) -> tuple[sp.csr_array, sp.csr_array, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = sp.random_array((nodes, 20), density=0.3, rng=rng, format="csr", dtype=np.float64).astype(np.float32)
    rows = sp.random_array((num_rows, nodes), density=0.25, rng=rng, format="csr")
    rows.data -= 0.3  # GM's noisy values may be negative
    return features, sp.csr_array(rows), rng.integers(4, size=num_rows), LAYOUT.start(rng) + 0.05


def autograd_row(features: sp.csr_array, row: np.ndarray, label: int, vector: np.ndarray) -> np.ndarray:
    parameters = torch.tensor(vector, requires_grad=True)
    (w1, b1), (w2, b2) = LAYOUT.layers(parameters)
    scores = torch.relu(torch.tensor(features.toarray()) @ w1 + b1) @ w2 + b2
    logits = torch.tensor(row, dtype=torch.float32) @ scores
    torch.nn.functional.cross_entropy(logits[None], torch.tensor([label])).backward()
    assert parameters.grad is not None
    return parameters.grad.numpy()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("clip", [None, 0.05, 100.0])
def test_equals_the_sum_of_autograd_rows_clipped_one_by_one(seed: int, clip: float | None) -> None:
    features, rows, labels, vector = problem(seed)
    expected = np.zeros_like(vector)
    for i, row in enumerate(rows.toarray()):
        gradient = autograd_row(features, row, int(labels[i]), vector) if row.any() else np.zeros_like(vector)
        norm = np.linalg.norm(gradient)
        expected += gradient if clip is None or norm <= clip else gradient * (clip / norm)
    made = aggregated_rows.prepare(features, rows, labels)
    found = aggregated_rows.clipped_sum(LAYOUT, vector, made, np.arange(12), clip)
    assert found == pytest.approx(expected, rel=2e-4, abs=2e-6)


def test_a_batch_is_the_sum_of_its_rows_and_may_be_empty() -> None:
    features, rows, labels, vector = problem(7)
    made = aggregated_rows.prepare(features, rows, labels)
    parts = [aggregated_rows.clipped_sum(LAYOUT, vector, made, np.array([i]), 0.1) for i in (2, 5, 9)]
    assert aggregated_rows.clipped_sum(LAYOUT, vector, made, np.array([2, 5, 9]), 0.1) == pytest.approx(sum(parts), abs=1e-6)
    assert not aggregated_rows.clipped_sum(LAYOUT, vector, made, np.zeros(0, np.int64), 0.1).any()


@pytest.mark.parametrize("seed", range(5))
def test_no_row_exceeds_the_clip_and_a_node_moves_only_its_rows(seed: int) -> None:
    """Zeroing a node in B' rows moves the sum by at most C + 2C(B' − 1): own row masked, the others changed."""
    features, rows, labels, vector = problem(seed, num_rows=15)
    clip = 0.01
    made = aggregated_rows.prepare(features, rows, labels)
    for i in range(15):
        assert np.linalg.norm(aggregated_rows.clipped_sum(LAYOUT, vector, made, np.array([i]), clip)) <= clip * (1 + 1e-4)
    whole = aggregated_rows.clipped_sum(LAYOUT, vector, made, np.arange(15), clip)
    for node in range(15):
        others = int((rows.toarray()[:, node] != 0).sum() - (rows.toarray()[node, node] != 0))
        zeroed, masked = features.toarray(), labels.copy()
        zeroed[node], masked[node] = 0, -1
        after = aggregated_rows.prepare(sp.csr_array(zeroed), rows, masked)
        moved = np.linalg.norm(whole - aggregated_rows.clipped_sum(LAYOUT, vector, after, np.arange(15), clip))
        assert moved <= (clip + 2 * clip * others) * (1 + 1e-3)


def test_masked_empty_and_overflowing_rows_count_as_zero() -> None:
    features, rows, labels, vector = problem(3)
    masked = np.full_like(labels, -1)
    assert not aggregated_rows.clipped_sum(
        LAYOUT, vector, aggregated_rows.prepare(features, rows, masked), np.arange(12), 1.0
    ).any()
    empty = aggregated_rows.prepare(features, sp.csr_array(rows.shape), labels)
    assert not aggregated_rows.clipped_sum(LAYOUT, vector, empty, np.arange(12), 1.0).any()
    huge = aggregated_rows.prepare(sp.csr_array(features * np.float32(1e30)), rows, labels)
    found = aggregated_rows.clipped_sum(LAYOUT, vector, huge, np.arange(12), 1.0)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= 12.0


def test_zero_features_leave_only_biases() -> None:
    _, rows, labels, vector = problem(3)
    made = aggregated_rows.prepare(sp.csr_array((15, 20), dtype=np.float32), rows, labels)
    assert not aggregated_rows.clipped_sum(LAYOUT, vector, made, np.arange(12), 1.0)[: 20 * 8].any()


def test_wrong_shapes_and_unprepared_clipping_raise() -> None:
    features, rows, labels, vector = problem(1)
    with pytest.raises(DataError, match="do not fit together"):
        aggregated_rows.prepare(features[:3], rows, labels)
    made = aggregated_rows.prepare(features, rows, labels, clipped=False)
    assert aggregated_rows.clipped_sum(LAYOUT, vector, made, np.arange(12), None).any()
    with pytest.raises(DataError, match="cannot be clipped"):
        aggregated_rows.clipped_sum(LAYOUT, vector, made, np.arange(12), 1.0)
    with pytest.raises(DataError, match="aggregated rows need an MLP"):
        aggregated_rows.clipped_sum(Layout((20, 4)), np.zeros(84, np.float32), made, np.arange(12), None)


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_optimiser_follows_torch(rule: str) -> None:
    rng = np.random.default_rng(0)
    start = rng.standard_normal(50).astype(np.float32)
    ours = StatefulDescent(start, 0.05, rule)  # type: ignore[arg-type]
    parameters = torch.tensor(start, requires_grad=True)
    theirs = torch.optim.Adam([parameters], lr=0.05) if rule == "adam" else torch.optim.SGD([parameters], lr=0.05)
    for _ in range(20):
        gradient = rng.standard_normal(50).astype(np.float32)
        gradient.flags.writeable = False
        parameters.grad = torch.tensor(gradient / 4)
        theirs.step()
        ours.step(gradient, 0.25)
    assert ours.vector == pytest.approx(parameters.detach().numpy(), rel=1e-5, abs=1e-6)
    assert start[0] != ours.vector[0]
