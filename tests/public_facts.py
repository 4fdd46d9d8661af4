"""Public facts of a test's small setting: what a test does not name is as plain as can be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import splits
from fedgraph.methods.base import ClearFacts, PublicCutEdgeFacts, PublicFacts
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph

NO_NODES = np.zeros(0, dtype=np.int64)


class Sides(NamedTuple):
    """Graphs on the training and on the test nodes of one graph."""

    train: Graph
    test: Graph


def sides(graph: Graph, train_fraction: float, rng: np.random.Generator) -> Sides:
    """The graph divided at random; edges between the two sides are in neither."""
    return Sides(*(graph.induced(nodes) for nodes in splits.random_split(graph.num_nodes, train_fraction, rng)))


def public_facts(
    num_nodes: int,
    num_features: int,
    num_classes: int,
    clients: tuple[int, ...],
    viewer: Viewer,
    holdings: sp.csr_array | None = None,
    public_graph: Graph | None = None,
    *,
    public_attributes: Graph | None = None,
    public_name: str = "test-graph",
    asking: np.ndarray = NO_NODES,
    members: tuple[np.ndarray, ...] = (),
    graphs: tuple[tuple[int, ...], ...] = (),
    cut_edges: PublicCutEdgeFacts = "dropped",
    columns_from_rows: bool = False,
    features_from_edges: bool = False,
    colluders: int = 1,
    answering: int | None = None,
) -> PublicFacts:
    """The records of ``methods.base.PublicFacts`` from loose values: nothing is derived, and membership is given."""
    return PublicFacts(
        num_nodes=num_nodes, num_features=num_features, num_classes=num_classes, clients=clients, graphs=graphs, viewer=viewer,
        members=members, membership_from_edges=False, membership_from_labels=False, holdings=holdings,
        cut_edges=cut_edges, public=public_name, public_graph=public_graph,
        public_attributes=public_attributes, asking=asking, asks=asking.size > 0, split_from_edges=False,
        split_from_labels=False, component_from_edges=False, columns_from_rows=columns_from_rows,
        features_from_edges=features_from_edges, colluders=colluders, answering=answering,
    )  # fmt: skip


def clear_facts(known: PublicFacts, filled: float) -> ClearFacts:
    """``known``, and how full private rows are."""
    return ClearFacts(**vars(known), filled=filled)
