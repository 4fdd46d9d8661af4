"""ProGAP at node level: what it learns and costs; its clipped gradients, of one base a hop, against autograd row by row."""

from typing import Any

import numpy as np
import pytest
import torch

from fedgraph.learning import DenseMatrix, per_sample
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, graph_without_edges
from fedgraph_zoo import staged
from fedgraph_zoo.methods import progap_node
from tests.trainings import made, train


def test_node_level_learns_without_noise_and_its_stages_grow(library: Graph) -> None:
    plan, partition, setting = made(progap_node, library, np.inf, protocol="inductive")
    state = train(plan, partition).state
    right = (progap_node.predict(plan, state, setting.asked).argmax(axis=1) == setting.truth)[setting.truth >= 0].mean()
    assert right > 0.6
    without = progap_node.predict(plan, state, graph_without_edges(setting.asked))
    assert not np.allclose(without, progap_node.predict(plan, state, setting.asked))


@pytest.mark.parametrize("claimed", [2.0, 8.0])
def test_the_published_node_price_needs_the_promise(claimed: float, library: Graph) -> None:
    given: tuple[Any, ...] = (progap_node, library, claimed, Viewer.SERVER, "inductive")
    plan = made(*given, "published", steps=4, degree=5, sampling_rate=0.3)[0]
    assert plan.epsilon_published == pytest.approx(claimed, rel=1e-3)
    assert plan.guarantee.protection.promised_degree == 5
    proven = made(*given, steps=4, cap="log")[0]
    assert proven.provable().epsilon <= claimed
    assert proven.guarantee.protection.promised_degree is None


def test_what_a_stage_s_sum_holds_beyond_known_rows() -> None:
    """The fast products of the attack against row-by-row gradients."""
    rng, clip = np.random.default_rng(0), 0.4
    stage = staged.ClippedStage(6, 3, 4, 1)
    xs = [DenseMatrix(rng.normal(size=(7, 6)).astype(np.float32)), DenseMatrix(rng.normal(size=(7, 3)).astype(np.float32))]
    vector, labels = rng.normal(size=stage.num_parameters).astype(np.float32), rng.integers(4, size=7)
    alone = [torch.tensor(np.where(np.arange(7) == row, labels, -1)) for row in range(7)]
    each = np.stack([staged.clip_staged_gradients(stage, vector, xs, one, clip) for one in alone]).astype(float)
    message, weights, of = rng.normal(size=stage.num_parameters), rng.random(7), np.array([1, 4])
    clipped = staged.staged_gradients(stage, vector, xs, torch.tensor(labels)).clipped(clip)
    left = clipped.left_over_products(message, weights)
    assert left == pytest.approx(each @ (message - weights @ each), rel=1e-4, abs=1e-5)
    found = clipped.products([per_sample.overlaps(x, of) for x in xs], of)
    assert found == pytest.approx(each[of] @ each[of].T, rel=1e-4, abs=1e-6)


STAGES = [staged.ClippedStage(6, 4, 3, hops) for hops in (0, 2)]


def given(stage: staged.ClippedStage, n: int, seed: int, scale: float = 1.0) -> list[DenseMatrix]:
    rng = np.random.default_rng(seed)
    return [DenseMatrix(scale * rng.standard_normal((n, width))) for width, _ in stage.shapes[:-1]]


def parameters(stage: staged.ClippedStage, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(stage.num_parameters).astype(np.float32)


def by_autograd(
    stage: staged.ClippedStage, vector: np.ndarray, xs: list[DenseMatrix], labels: np.ndarray, clip: float
) -> np.ndarray:
    """The plain definition: one backward pass per row, clip, add."""
    total = np.zeros(stage.num_parameters)
    for i, label in enumerate(labels):
        if label < 0:
            continue
        theta = torch.tensor(vector, requires_grad=True)
        *bases, (head, bias) = stage.parts(theta)
        units = torch.cat([torch.selu(x.forward[[i]] @ w + b) for x, (w, b) in zip(xs, bases, strict=True)], dim=1)
        out = torch.nn.functional.normalize(units, dim=1) @ head + bias
        torch.nn.functional.cross_entropy(out, torch.tensor([label])).backward()
        assert theta.grad is not None
        g = theta.grad.numpy().astype(np.float64)
        total += g * min(1.0, clip / max(np.linalg.norm(g), 1e-30))
    return total


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: f"{s.hops} hops")
@pytest.mark.parametrize("clip", [0.05, 100.0])
def test_equals_per_row_autograd(stage: staged.ClippedStage, clip: float) -> None:
    labels = np.random.default_rng(1).integers(-1, 3, 15)
    xs, vector = given(stage, 15, 0), parameters(stage, 2)
    found = staged.clip_staged_gradients(stage, vector, xs, torch.tensor(labels), clip)
    assert np.allclose(found, by_autograd(stage, vector, xs, labels, clip), atol=2e-5)
    assert staged.score_staged_network(stage, vector, xs).shape == (15, 3)


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: f"{s.hops} hops")
def test_one_row_moves_the_sum_by_at_most_the_clip(stage: staged.ClippedStage) -> None:
    clip, labels, largest = 0.3, np.random.default_rng(3).integers(0, 3, 10), 0.0
    gone = np.where(np.arange(10) == 4, -1, labels)
    for seed in range(20):
        xs, vector = given(stage, 10, seed, scale=5.0), 2 * parameters(stage, seed)
        sums = [staged.clip_staged_gradients(stage, vector, xs, torch.tensor(known), clip) for known in (labels, gone)]
        largest = max(largest, float(np.linalg.norm(sums[0].astype(float) - sums[1])))
    assert 0.95 * clip < largest <= clip


def test_a_hopeless_row_counts_as_zero() -> None:
    stage = STAGES[1]
    xs, vector, labels = given(stage, 5, 0), parameters(stage, 0), np.array([0, 1, 2, 0, 1])
    for x in xs:
        x.forward[2] = 3e38  # its activations overflow
    found = staged.clip_staged_gradients(stage, vector, xs, torch.tensor(labels), 0.5)
    others = [DenseMatrix(np.delete(x.forward.numpy(), 2, axis=0)) for x in xs]
    assert np.allclose(found, staged.clip_staged_gradients(stage, vector, others, torch.tensor([0, 1, 0, 1]), 0.5), atol=1e-6)


def test_a_stage_keeps_the_bases_of_the_one_before() -> None:
    small, large = staged.ClippedStage(6, 4, 3, 1), staged.ClippedStage(6, 4, 3, 2)
    before = parameters(small, 0)
    after = large.start(np.random.default_rng(0), before)
    kept = (6 + 1) * 4 + (4 + 1) * 4
    assert np.array_equal(after[:kept], before[:kept])
    assert not after[-(12 + 1) * 3 :].any()
