"""What a plan may be made from, public facts and a budget, and the assumptions that follow from the facts."""

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

# assumptions of plans where features and labels are public, and where predictions are for a public graph
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
    # if clients hold several whole graphs, the number of nodes of each (a client's rows follow one another); else empty
    graphs: tuple[tuple[int, ...], ...] = ()
    viewer: Viewer  # who sees what leaves a client
    members: tuple[np.ndarray, ...] = ()  # ids of each client's nodes, if they are public; else empty
    membership_from_edges: bool  # whether who holds which node was computed from edges
    membership_from_labels: bool  # whether who holds which node was computed from labels
    holdings: sp.csr_array | None  # CSR [clients, num_nodes], if clients share nodes; else None
    cut_edges: PublicCutEdgeFacts  # edges between clients: nobody has them (``dropped``), or both ends use them (``protected``)
    public: str  # what is public, in one word (``test-graph``, ``nothing`` or the name of a set)
    public_graph: Graph | None  # the test graph, or another set of nodes, if it is public; else None
    public_attributes: Graph | None  # if only edges are private, all features and labels (−1: unknown), without edges
    # int64, ids of nodes that never train and only ask for their own answer; these ids are public
    asking: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    asks: bool = False  # whether private nodes ask; ``asking`` may be empty, as in a model, where all train and anybody may ask
    # settings that drew who trains, or which edges are hidden; empty: the usual ones. Runs that differ only in these have
    # different data, and may not share noise.
    drawn: str = ""
    split_from_edges: bool  # whether the split was computed from edges; taken as public, as the next four
    split_from_labels: bool  # whether the split was computed from labels
    component_from_edges: bool  # whether the set of nodes (the largest component) was computed from edges
    columns_from_rows: bool  # whether the columns of private features, or their weights, were computed from all rows
    features_from_edges: bool  # whether features were computed from edges
    colluders: int  # number of clients, at least 1, who may tell a server that sees sums their own share of noise
    answering: int | None = None  # number of clients that answer in each round; None: all
    # columns of numbers whose range is not public; None: there are none (``column_ranks``)
    columns: GraphColumns | None = None

    @property
    def num_clients(self) -> int:
        """Number of clients."""
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
    """What a method may spend. ``PrivacyError`` if ε or δ is out of range."""

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
    """The public features and labels of all nodes; ``ScenarioError`` if they are not public, or others are asked."""
    if facts.public_attributes is None or facts.public_graph is not None:
        raise ScenarioError(f"{method} needs public features and labels: set the task's protocol: transductive")
    return facts.public_attributes


def require_public_test_graph(method: str, facts: PublicFacts) -> Graph:
    """The public graph that predictions are for; ``ScenarioError`` if there is none."""
    if facts.public_graph is None:
        raise ScenarioError(f"{method} is tested on a public graph: set the task's protocol: inductive")
    return facts.public_graph


def assume_public_facts(facts: PublicFacts) -> tuple[Assumption, ...]:
    """The assumption of a method that reads the public graph; empty if there is none."""
    if facts.public_graph is None:
        return ()
    return (Assumption.TEST_GRAPH_PUBLIC if facts.public == "test-graph" else Assumption.PUBLIC_NODES,)


def assume_public_derived_facts(facts: PublicFacts, relation: Relation, *, edges_private: bool) -> tuple[Assumption, ...]:
    """Assumptions that something is public although it was computed from what ``relation`` protects.

    edges_private: False for a method that gives all edges away (``edges-public``).
    """
    stated = {
        Assumption.SPLIT_FROM_EDGES: facts.split_from_edges and edges_private,
        Assumption.SPLIT_FROM_LABELS: facts.split_from_labels and relation.protects_labels,
        Assumption.COMPONENT_FROM_EDGES: facts.component_from_edges and edges_private,
        Assumption.COLUMNS_PUBLIC: facts.columns_from_rows,
        # if only edges are private, features are public anyway
        Assumption.FEATURES_FROM_EDGES: facts.features_from_edges and not relation.links_alone,
    }
    return tuple(assumption for assumption, holds in stated.items() if holds)


def assume_public_setting(facts: PublicFacts, relation: Relation) -> tuple[Assumption, ...]:
    """Assumptions of the setting, with private edges: who holds which node, and who sees what."""
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
    """The guarantee of a plan, toward the viewer of ``facts``.

    assumed: assumptions of the method; those of the setting are added. delta: δ. per_end: whether events price one end of an
    edge, so that an edge costs two of them. promised: maximum degree that the data promise, or None. limit: number of
    neighbours that the platform enforces, or None. sampled_once: rate of a secret one-time sample that amplifies all releases,
    or None.
    """
    stated = (*assumed, *assume_public_setting(facts, relation))
    colluders = facts.colluders if facts.colluders > 1 and facts.viewer is Viewer.SERVER_SECURE_AGGREGATION else None
    protection = Protection(relation, facts.viewer, stated, promised, limit, colluders)
    return Guarantee(protection, delta, facts.holdings, per_end, sampled_once)
