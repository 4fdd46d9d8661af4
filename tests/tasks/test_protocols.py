"""What clients hold and what may be asked: nothing private leaves through the question."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.federation import Federation
from fedgraph.methods import gap_edge, nonprivate
from fedgraph.methods.base import Budget
from fedgraph.privacy.units import Viewer
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph
from tests.public_facts import public_facts


def made(graph: Graph, protocol: protocols.Protocol) -> Federation:
    return protocols.divide(graph, protocol, 0.8, seeds.seeded_generator(0, "split"))


def test_both_protocols_train_on_the_same_nodes(library: Graph) -> None:
    inductive, transductive = made(library, "inductive"), made(library, "transductive")
    assert inductive.num_train == transductive.num_train == 240
    assert inductive.held.num_nodes == 240
    assert transductive.held.num_nodes == library.num_nodes
    assert (transductive.held.labels >= 0).sum() == 240


def test_transductive_masks_test_labels_and_publishes_no_edge(library: Graph) -> None:
    setting = made(library, "transductive")
    hidden = setting.truth >= 0
    assert hidden.sum() == 60
    assert (setting.held.labels[hidden] == -1).all()
    assert np.array_equal(setting.truth[hidden], library.labels[hidden])
    assert (setting.truth[~hidden] == -1).all()
    assert setting.public_graph is None
    assert setting.public_attributes is not None
    assert setting.public_attributes.num_edges == 0
    assert setting.held.num_edges == library.num_edges
    assert library.labels.min() >= 0, "the original is untouched"


@pytest.mark.parametrize(("spent", "edges"), [(1.0, 0), (0.0, 0), (math.inf, 720)])
def test_private_edges_are_withheld_from_the_question(spent: float, edges: int, library: Graph) -> None:
    setting = made(library, "transductive")
    facts = public_facts(
        300, 240, 4, (300,), Viewer.CURATOR_TRUSTED, public_attributes=setting.public_attributes, members=(np.arange(300),)
    )
    plan = gap_edge.plan(gap_edge.Params(hops=1), facts, Budget(1.0, 1e-5))
    assert setting.question(plan, lambda: spent).num_edges == edges


def test_a_public_test_graph_is_shown_whole(library: Graph) -> None:
    setting = made(library, "inductive")
    facts = public_facts(240, 240, 4, (240,), Viewer.CURATOR_TRUSTED, public_graph=setting.public_graph)
    plan = nonprivate.plan(nonprivate.Params(), facts, Budget(math.inf, 1e-5))
    assert setting.question(plan, lambda: 1.0) is setting.asked
