"""What a plan may be made from: public facts and a budget; and what the setting itself assumes."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.privacy import Assumption, Guarantee, Protection, Relation, Viewer
from fedgraph.types import Graph, GraphColumns

PublicCalibrationFact = Literal["published", "provable", "none"]
PublicCutEdgeFacts = Literal["dropped", "protected"]

# What plans assume: where features and labels are public, and where a public graph is predicted for.
_ALWAYS = (Assumption.UNTUNED, Assumption.SPLIT_PUBLIC)
FACTS_ATTRIBUTES_PUBLIC: tuple[Assumption, ...] = (Assumption.COUNTS_PUBLIC, Assumption.FEATURES_LABELS_PUBLIC, *_ALWAYS)
FACTS_TESTED_IN_PUBLIC: tuple[Assumption, ...] = (Assumption.COUNTS_PUBLIC, *_ALWAYS, Assumption.TEST_GRAPH_PUBLIC)


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicFacts:
    """What everybody may know before the run, and all that a plan with a guarantee may be made from."""

    num_nodes: int  # nodes over all clients
    num_features: int  # columns of a feature row
    num_classes: int  # classes of the labels
    clients: tuple[int, ...]  # nodes of each client
    # where a client holds several whole graphs, the nodes of each of them (its rows follow one another); else empty
    graphs: tuple[tuple[int, ...], ...] = ()
    viewer: Viewer  # who sees what leaves a client
    members: tuple[np.ndarray, ...] = ()  # ids of each client's nodes, where they are public; else empty
    membership_from_edges: bool  # who holds which node was computed from edges
    membership_from_labels: bool  # who holds which node was computed from labels
    holdings: sp.csr_array | None  # CSR [clients, num_nodes], where clients share nodes; None where they share none
    # of edges between clients. ``dropped``: nobody has them. ``protected``: they are known, and used, at both ends.
    cut_edges: PublicCutEdgeFacts
    public: str  # what is public, in one word (``test-graph``, ``nothing`` or the name of a set)
    public_graph: Graph | None  # the test graph, or another set of nodes, where the setting makes it public; else None
    # where only edges are private, every node's features and its label (−1 where unknown), without any edge
    public_attributes: Graph | None
    # int64, ids of nodes that never train and only ask for their own answer (which these are is public)
    asking: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    asks: bool = False  # whether nodes ask so, be it that none is set apart: in a model everybody trains, and anybody may ask
    # settings by which it was drawn who trains, or which edges are hidden; empty: as usual, or sizes show it. Runs that differ
    # in these alone hold other data, and may not share noise.
    drawn: str = ""
    split_from_edges: bool  # who trains and who tests was computed from edges; taken as public, as the next four are
    split_from_labels: bool  # who trains and who tests was chosen by labels
    component_from_edges: bool  # which nodes there are (the largest component) was computed from edges
    columns_from_rows: bool  # the columns of private features, or their weights, were computed from all rows
    features_from_edges: bool  # features were computed from edges
    colluders: int  # how many participants, 1 or more, may tell a server that sees sums what they know of their own noise
    answering: int | None = None  # how many clients answer in each round (``federation`` of a task); None: all
    # columns of numbers whose range is not public; None where there is none (``column_ranks``)
    columns: GraphColumns | None = None

    @property
    def num_clients(self) -> int:
        """How many clients there are."""
        return len(self.clients)

    @property
    def cohort(self) -> int:
        """Number of clients that answer in each round."""
        return self.num_clients if self.answering is None else self.answering

    @property
    def num_train(self) -> int:
        """Nodes that may train."""
        return self.num_nodes - self.asking.size

    @property
    def cut_edges_shared(self) -> bool:
        """Whether both clients know an edge between them."""
        return self.cut_edges != "dropped"


@dataclass(frozen=True, eq=False, kw_only=True)
class ClearFacts(PublicFacts):
    """Public facts, and what was counted in private rows: for methods that guarantee nothing.

    A plan made from these is refused unless all that it releases is ``Unprotected``.
    """

    filled: float  # the share of the entries of all feature rows that are not zero, in [0, 1]


@dataclass(frozen=True)
class Budget:
    """What a method may spend. Raises ``PrivacyError``: ε or δ is out of range."""

    epsilon: float  # ε, above 0; ∞: no noise is asked for
    delta: float  # δ, between 0 and 1
    calibrated_by: PublicCalibrationFact = "provable"  # under which reading of the guarantee the noise is chosen

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise PrivacyError(f"epsilon must be > 0, found {self.epsilon}: at ε = 0 nothing may be released")
        if not 0 < self.delta < 1:
            raise PrivacyError(f"delta must satisfy 0 < delta < 1, found {self.delta}")

    @property
    def private(self) -> bool:
        """Whether ε is finite, so that noise is needed."""
        return math.isfinite(self.epsilon)


def require_public_attributes(method: str, facts: PublicFacts) -> Graph:
    """Public features and labels of the nodes that are trained on and asked; ``ScenarioError`` where they are not public."""
    if facts.public_attributes is None or facts.public_graph is not None:
        raise ScenarioError(f"{method} needs public features and labels: set the task's protocol: transductive")
    return facts.public_attributes


def require_public_test_graph(method: str, facts: PublicFacts) -> Graph:
    """The public graph that is predicted for; ``ScenarioError`` where there is none."""
    if facts.public_graph is None:
        raise ScenarioError(f"{method} is tested on a public graph: set the task's protocol: inductive")
    return facts.public_graph


def assume_public_facts(facts: PublicFacts) -> tuple[Assumption, ...]:
    """What the setting makes public, for a method that predicts on the public graph or learns a view from it."""
    if facts.public_graph is None:
        return ()
    return (Assumption.TEST_GRAPH_PUBLIC if facts.public == "test-graph" else Assumption.PUBLIC_NODES,)


def assume_public_derived_facts(facts: PublicFacts, relation: Relation, *, edges_private: bool) -> tuple[Assumption, ...]:
    """What is taken as public although it was computed from what ``relation`` protects.
    edges_private: False where a method gives all edges away (``edges-public``).
    """
    stated = {
        Assumption.SPLIT_FROM_EDGES: facts.split_from_edges and edges_private,
        Assumption.SPLIT_FROM_LABELS: facts.split_from_labels and relation.protects_labels,
        Assumption.COMPONENT_FROM_EDGES: facts.component_from_edges and edges_private,
        Assumption.COLUMNS_PUBLIC: facts.columns_from_rows,
        # where edges alone are private, features are public with all that they say of edges; whether they count them is not
        Assumption.FEATURES_FROM_EDGES: facts.features_from_edges and not relation.links_alone,
    }
    return tuple(assumption for assumption, holds in stated.items() if holds)


def assume_public_setting(facts: PublicFacts, relation: Relation) -> tuple[Assumption, ...]:
    """What the setting itself assumes where ``relation`` is protected and edges are private: where data live, who sees what."""
    assumed = assume_public_derived_facts(facts, relation, edges_private=True)
    if facts.viewer is Viewer.CURATOR_TRUSTED:
        return assumed
    stated = {
        Assumption.MEMBERSHIP_FROM_EDGES: facts.membership_from_edges,
        Assumption.MEMBERSHIP_FROM_LABELS: facts.membership_from_labels and relation.protects_labels,
    }
    assumed += tuple(assumption for assumption, holds in stated.items() if holds) or (Assumption.MEMBERSHIP_GIVEN,)
    if facts.cut_edges_shared:
        assumed += (Assumption.CUT_EDGES_SHARED,)
    else:
        assumed += (Assumption.SIZES_PUBLIC,) if facts.holdings is not None else (Assumption.CLIENTS_DISJOINT,)
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        knowing = Assumption.ONE_COLLUDER if facts.colluders == 1 else Assumption.SEVERAL_COLLUDERS
        assumed += (Assumption.IDEAL_SECURE_AGGREGATION, knowing)
    return assumed


def guarantee_from_public_facts(
    facts: PublicFacts,
    relation: Relation,
    assumed: tuple[Assumption, ...],
    delta: float,
    *,
    per_end: bool,
    promised: int | None = None,
    limit: int | None = None,
    sampled_once: float | None = None,
) -> Guarantee:
    """What a plan counts its releases for, toward the viewer of ``facts``.
    assumed: what the method assumes; what the setting assumes follows after it. delta: δ. per_end: events price one end of an
    edge, and an edge costs two of them. promised: maximum degree that the data promise, or None. limit: number of neighbours
    that the platform enforces, or None. sampled_once: rate of a secret one-time sample that amplifies all releases, or None.
    """
    stated = (*assumed, *assume_public_setting(facts, relation))
    colluders = facts.colluders if facts.colluders > 1 and facts.viewer is Viewer.SERVER_SECURE_AGGREGATION else None
    protection = Protection(relation, facts.viewer, stated, promised, limit, colluders)
    return Guarantee(protection, delta, facts.holdings, per_end, sampled_once)
