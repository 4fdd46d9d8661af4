"""GAP with the networks and the training of its released code: signed rows, batch norm, the best step on held-out labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedgraph import data
from fedgraph.learning import gap_networks
from fedgraph.methods import gap_edge
from fedgraph.methods.base import Budget
from fedgraph.privacy.units import Viewer
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph
from tests.trainings import deal, train

PUBLISHED = {"encoder": "published", "hidden": 16, "depth": "all"}


def accuracy(graph: Graph, protocol: protocols.Protocol, epsilon: float, **settings: object) -> float:
    made, partition, facts = deal(graph, protocol, Viewer.CURATOR_TRUSTED)
    plan = gap_edge.plan(gap_edge.Params(**settings), facts, Budget(epsilon, 1e-5))  # type: ignore[arg-type]
    named = gap_edge.predict(plan, train(plan, partition).state, made.asked).argmax(axis=1)
    known = made.truth >= 0
    return float((named == made.truth)[known].mean())


def test_encoded_rows_are_signed_and_of_norm_one(library: Graph) -> None:
    parameters = gap_networks.train_encoder(library, 16, 30, np.random.default_rng(0))
    rows = gap_networks.encode(parameters, library, 16)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert (rows < 0).mean() > 0.2
    alike = (rows @ rows.T)[np.triu_indices(len(rows), 1)].mean()
    assert alike < 0.5, "rows after a ReLU would look much alike"
    assert np.array_equal(parameters, gap_networks.train_encoder(library, 16, 30, np.random.default_rng(0)))


@pytest.mark.parametrize("protocol", ["transductive", "inductive-edges"])
def test_it_learns_and_answers_for_old_and_new_nodes(protocol: protocols.Protocol, library: Graph) -> None:
    assert accuracy(library, protocol, np.inf, hops=1, epochs=40, **PUBLISHED) > 0.6


@pytest.mark.quality("methods", "learning", "data")
@pytest.mark.dataset
def test_on_a_campus_it_is_above_rows_after_a_relu(data_root: Path) -> None:
    """Three draws of the first parameters give .716 to .731, and .704 to .706 after a ReLU."""
    graph = data.load("facebook100/mit8", root=data_root, download=False)
    assert isinstance(graph, Graph)
    published = accuracy(graph, "transductive", np.inf, hops=2, **PUBLISHED)
    after_relu = accuracy(graph, "transductive", np.inf, hops=2, encoder="hidden", folds=1, depth="all")
    assert published > after_relu + 0.005
    assert published > 0.71
