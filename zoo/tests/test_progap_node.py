"""ProGAP at node level: hops that are priced and never sent, the noise that is there, and stages that grow."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.learning import DenseMatrix, per_sample
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, Partition, graph_without_edges
from fedgraph_zoo import staged
from fedgraph_zoo.methods import progap_node
from tests.trainings import deal as situation
from tests.trainings import train as run

torch = pytest.importorskip("torch")
CURATOR = Viewer.CURATOR_TRUSTED


def node_plan(graph: Graph, epsilon: float, reading: str = "provable", **params: object) -> tuple[Plan, Partition]:
    _, partition, facts = situation(graph, "inductive", Viewer.SERVER)
    settings = progap_node.Params(**{"steps": 4, **params})  # type: ignore[arg-type]
    return progap_node.plan(settings, facts, Budget(epsilon, 1e-3, reading)), partition  # type: ignore[arg-type]


def test_node_level_learns_without_noise_and_its_stages_grow(library: Graph) -> None:
    setting, partition, facts = situation(library, "inductive", CURATOR)
    plan = progap_node.plan(progap_node.Params(), facts, Budget(np.inf, 1e-3))
    state = run(plan, partition).state
    right = (progap_node.predict(plan, state, setting.asked).argmax(axis=1) == setting.truth)[setting.truth >= 0].mean()
    assert right > 0.6
    without = progap_node.predict(plan, state, graph_without_edges(setting.asked))
    assert not np.allclose(without, progap_node.predict(plan, state, setting.asked))


@pytest.mark.parametrize("claimed", [2.0, 8.0])
def test_the_published_node_price_needs_the_promise(claimed: float, library: Graph) -> None:
    plan, _ = node_plan(library, claimed, "published", degree=5, sampling_rate=0.3)
    assert plan.epsilon_published == pytest.approx(claimed, rel=1e-3)
    assert plan.guarantee.protection.promised_degree == 5
    proven, _ = node_plan(library, claimed, cap="log")
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
