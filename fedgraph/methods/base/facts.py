"""What a plan may be made from: public facts and a budget; and what the setting itself assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.types import Graph

Calibration = Literal["published", "provable", "none"]


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """What everybody may know before the run, and all a plan may be made from.

    num_nodes: nodes over all clients. client_sizes: nodes per client. holdings: who holds which
    node, CSR [clients, num_nodes]; None where clients are disjoint. public_graph: the test graph, where
    the setting makes it public. public_attributes: where only edges are private, every node's features and
    its label (−1 where unknown), without any edge. members: node ids of each client, where they are public.
    membership_from_edges: whether who holds which node was computed from edges.
    cut_edges_shared: edges between clients are known, and used, at both of them (otherwise they are dropped).
    cut_edges_generated: such an edge is used, but what it leads to is stood in for by a node of the client's own.
    split_from_edges: whether who trains and who tests was computed from edges. columns_from_rows: whether private features'
    columns or their weights were computed from all rows. features_from_edges: whether features were computed from edges.
    public_name: what is public, in one word (``test-graph``, ``nothing`` or the name of a set). asking: int64, ids of nodes
    that never train and only ask for their own answer (which these are is public).
    participation, least_answers: where not every client answers in every round: who does, in words, and how many answers a
    round needs (``federation.participation``).
    colluders: how many participants may pool what they know of their own noise with a server that sees sums (1 or more).
    asynchronous: clients send how far they moved, and from which model they began differs (``federation.asynchronous``).
    filled: share of the entries of all feature rows that are not zero; computed from private rows, so only for methods without
    a guarantee.
    graph_sizes: where a client holds several whole graphs, the nodes of each of them (its rows follow one another).
    """

    num_nodes: int
    num_features: int
    num_classes: int
    client_sizes: tuple[int, ...]
    viewer: Viewer
    holdings: sp.csr_array | None = None
    public_graph: Graph | None = None
    public_attributes: Graph | None = None
    members: tuple[np.ndarray, ...] = ()
    graph_sizes: tuple[tuple[int, ...], ...] = ()
    membership_from_edges: bool = False
    cut_edges_shared: bool = False
    cut_edges_generated: bool = False
    split_from_edges: bool = False
    columns_from_rows: bool = False
    participation: str = ""
    asynchronous: bool = False
    least_answers: int | None = None
    features_from_edges: bool = False
    public_name: str = "test-graph"
    colluders: int = 1
    filled: float = 0.0
    asking: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def num_clients(self) -> int:
        return len(self.client_sizes)

    @property
    def cohort(self) -> int:
        """Clients whose answers every round has."""
        return self.num_clients if self.least_answers is None else self.least_answers

    @property
    def num_train(self) -> int:
        """Nodes that may train."""
        return self.num_nodes - self.asking.size


@dataclass(frozen=True)
class Budget:
    """ε (∞ allowed), δ and under which reading of the guarantee the noise is chosen."""

    epsilon: float
    delta: float
    calibrated_by: Calibration = "provable"

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise PrivacyError(f"epsilon must be > 0, found {self.epsilon}: at ε = 0 nothing may be released")
        if not 0 < self.delta < 1:
            raise PrivacyError(f"delta must satisfy 0 < delta < 1, found {self.delta}")

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)


def public_assumptions(facts: PublicFacts) -> tuple[Assumption, ...]:
    """What the setting makes public, for a method that predicts on the public graph or learns a view from it."""
    if facts.public_graph is None:
        return ()
    return (Assumption.TEST_GRAPH_PUBLIC if facts.public_name == "test-graph" else Assumption.PUBLIC_NODES,)


def setting_assumptions(facts: PublicFacts) -> tuple[Assumption, ...]:
    """What the setting itself assumes: where the data lives and who sees what."""
    split: tuple[Assumption, ...] = (Assumption.SPLIT_FROM_EDGES,) if facts.split_from_edges else ()
    split += (Assumption.COLUMNS_PUBLIC,) if facts.columns_from_rows else ()
    split += (Assumption.FEATURES_FROM_EDGES,) if facts.features_from_edges else ()
    if facts.viewer is Viewer.CURATOR_TRUSTED:
        return split
    known = Assumption.MEMBERSHIP_FROM_EDGES if facts.membership_from_edges else Assumption.MEMBERSHIP_GIVEN
    assumed: tuple[Assumption, ...] = (*split, known)
    if facts.cut_edges_shared:
        assumed += (Assumption.CUT_EDGES_SHARED,)
    else:
        assumed += (Assumption.SIZES_PUBLIC,) if facts.holdings is not None else (Assumption.CLIENTS_DISJOINT,)
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        knowing = Assumption.ONE_COLLUDER if facts.colluders == 1 else Assumption.SEVERAL_COLLUDERS
        assumed += (Assumption.IDEAL_SECURE_AGGREGATION, knowing)
    return assumed


def several_colluders(facts: PublicFacts) -> int | None:
    """``Protection.colluders`` of the setting: their number where it is more than one and somebody sees sums only."""
    return facts.colluders if facts.colluders > 1 and facts.viewer is Viewer.SERVER_SECURE_AGGREGATION else None
