"""What a guarantee protects: the unit, the neighbouring relation, the viewer, and the assumptions.

A privacy statement without all four is not a statement, so ``Protection`` cannot be built without
them and refuses combinations that mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fedgraph.errors import PrivacyError


class Unit(str, Enum):
    """What one person's data is."""

    EDGE = "edge"
    NODE = "node"
    GRAPH = "graph"


class Relation(str, Enum):
    """Which two inputs are neighbours."""

    EDGE_UNDIRECTED = "edge-undirected"
    EDGE_DIRECTED = "edge-directed"
    NODE_ZERO_OUT = "node-zero-out"
    NODE_REPLACE = "node-replace"
    GRAPH_REPLACE = "graph-replace"

    @property
    def unit(self) -> Unit:
        return Unit(self.value.split("-")[0])

    @property
    def words(self) -> str:
        return _RELATION_WORDS[self]

    @property
    def protects_labels(self) -> bool:
        """Whether a label is private; at edge level it is public."""
        return self.unit is not Unit.EDGE

    @property
    def replaces(self) -> bool:
        """Whether both worlds hold a row for the unit (so two contributions may differ, not just one vanish)."""
        return self in (Relation.NODE_REPLACE, Relation.GRAPH_REPLACE)


_RELATION_WORDS = {
    Relation.EDGE_UNDIRECTED: "one undirected edge is added or removed",
    Relation.EDGE_DIRECTED: "one directed edge is added or removed",
    Relation.NODE_ZERO_OUT: "one node's features become zero, its edges vanish, and its label and its own row are masked "
    "out of every sum; that the node id exists is public",
    Relation.NODE_REPLACE: "one node's features, label and edges are replaced by any others; the number of nodes is public",
    Relation.GRAPH_REPLACE: "one client's whole graph is replaced by any other of the same, public, size",
}


class Viewer(str, Enum):
    """Who must not learn it: everything this viewer receives has been counted."""

    CURATOR_TRUSTED = "curator-trusted"
    SERVER_SECURE_AGGREGATION = "server-secure-aggregation"
    SERVER = "server"
    ACTIVE_SERVER = "active-server"
    WORLD = "world"

    @property
    def words(self) -> str:
        return _VIEWER_WORDS[self]

    @property
    def sees_messages(self) -> bool:
        """Whether it receives every client's own message."""
        return self in (Viewer.SERVER, Viewer.ACTIVE_SERVER)


_VIEWER_WORDS = {
    Viewer.CURATOR_TRUSTED: "anyone who receives the trained model; the curator who holds the whole graph is trusted",
    Viewer.SERVER_SECURE_AGGREGATION: "the server and every other client, who see only sums over clients",
    Viewer.SERVER: "the server, which sees each client's own message",
    Viewer.ACTIVE_SERVER: "a server that sees each client's own message and need not follow the protocol: in every round it "
    "chooses what model each client is sent",
    Viewer.WORLD: "everybody, the server included: each node protects its own data before it leaves",
}


class Assumption(str, Enum):
    """What must be true for the statement to hold. The value is its name, ``words`` its sentence."""

    COUNTS_PUBLIC = "counts-public"
    HYPERPARAMETERS_PUBLIC = "hyperparameters-public"
    SPLIT_PUBLIC = "split-public"
    SPLIT_FROM_EDGES = "split-from-edges"
    SPLIT_FROM_LABELS = "split-from-labels"
    COMPONENT_FROM_EDGES = "component-from-edges"
    TEST_GRAPH_PUBLIC = "test-graph-public"
    MEMBERSHIP_GIVEN = "membership-given"
    MEMBERSHIP_FROM_EDGES = "membership-from-edges"
    MEMBERSHIP_FROM_LABELS = "membership-from-labels"
    CLIENTS_DISJOINT = "clients-disjoint"
    CUT_EDGES_SHARED = "cut-edges-shared"
    SIZES_PUBLIC = "sizes-public"
    MODEL_GIVEN = "model-given"
    IDEAL_SECURE_AGGREGATION = "ideal-secure-aggregation"
    MASKED_SECURE_AGGREGATION = "masked-secure-aggregation"
    ONE_COLLUDER = "one-colluder"
    SEVERAL_COLLUDERS = "several-colluders"
    PROMISED_DEGREE = "promised-degree"
    DEGREE_LIMIT_ENFORCED = "degree-limit-enforced"
    FEATURES_LABELS_PUBLIC = "features-labels-public"
    ROWS_NEVER_RELEASED = "rows-never-released"
    SAMPLE_SECRET = "sample-secret"
    UNTUNED = "untuned"
    TRIALS_SECRET = "trials-secret"
    OWN_EDGES_KNOWN = "own-edges-known"
    EDGES_PUBLIC = "edges-public"
    FEATURES_FROM_EDGES = "features-from-edges"
    COLUMNS_PUBLIC = "columns-public"
    PUBLIC_NODES = "public-nodes"
    ANSWERS_PRIVATE = "answers-private"
    UPDATES_SUMMED = "updates-summed"
    PUBLIC_LABELS = "public-labels"
    GRAPH_LABELS_PUBLIC = "graph-labels-public"

    @property
    def words(self) -> str:
        return _ASSUMPTION_WORDS[self]


_ASSUMPTION_WORDS = {
    Assumption.COUNTS_PUBLIC: "the number of training nodes, the class list and the number of steps are public",
    Assumption.HYPERPARAMETERS_PUBLIC: "hyper-parameters were chosen without looking at this private data",
    Assumption.SPLIT_PUBLIC: "which node ids are used for training is public",
    Assumption.SPLIT_FROM_EDGES: "who trains and who tests is taken as given, though this simulation computed it from "
    "the edges (parts of a balanced cut): edges that it reveals get no protection",
    Assumption.SPLIT_FROM_LABELS: "who trains and who tests is taken as given, though labels were read to choose them (so many "
    "nodes of each class, or a split that came with the data): a label that the split gives away gets no protection",
    Assumption.COMPONENT_FROM_EDGES: "which nodes there are is taken as given, though this simulation computed it from the "
    "private edges (the largest component): an edge whose removal cuts nodes off gets no protection",
    Assumption.TEST_GRAPH_PUBLIC: "test nodes and the edges among them are public and get no guarantee",
    Assumption.MEMBERSHIP_GIVEN: "which client holds which node id is a public fact, not computed from private edges",
    Assumption.MEMBERSHIP_FROM_EDGES: "which client holds which node id is taken as public, though this simulation computed "
    "it from the private edges (communities, or the neighbours of a centre): edges that it reveals get no protection",
    Assumption.MEMBERSHIP_FROM_LABELS: "which client holds which node id is taken as public, though this simulation dealt "
    "nodes by their labels: a label that it gives away gets no protection",
    Assumption.CLIENTS_DISJOINT: "nothing of a node is held by a second client (edges across clients are dropped)",
    Assumption.CUT_EDGES_SHARED: "an edge between nodes of two clients is known to these two clients and protected from "
    "everybody else, what both release because of it being counted together; nodes are held once",
    Assumption.SIZES_PUBLIC: "the number of nodes of every client's graph is public",
    Assumption.MODEL_GIVEN: "the shared model is taken as given; what it reveals is priced as a path of its own",
    Assumption.IDEAL_SECURE_AGGREGATION: "secure aggregation reveals sums only; simulated in floating point, where a real "
    "protocol adds integers and discrete noise",
    Assumption.MASKED_SECURE_AGGREGATION: "sums are taken of whole numbers behind pairwise masks; the server is curious and "
    "follows the protocol, key agreement (X25519) and cipher (AES-128) hold, who is asked and who answers is public, and who "
    "colludes may give away its keys and shares, too",
    Assumption.ONE_COLLUDER: "at most one participant adds its knowledge of its own noise share to the sums it sees",
    Assumption.SEVERAL_COLLUDERS: "at most the stated number of participants tell the server what they know of "
    "their own noise shares",
    Assumption.PROMISED_DEGREE: "both neighbouring graphs are promised to have at most the stated maximum degree",
    Assumption.DEGREE_LIMIT_ENFORCED: "the platform that keeps the graph lets no node have more than the stated number of "
    "neighbours; input that breaks this limit was refused when it was read",
    Assumption.FEATURES_LABELS_PUBLIC: "node features and labels are public; only edges are private",
    Assumption.ROWS_NEVER_RELEASED: "a node's own aggregated row is never shown to anybody but itself",
    Assumption.SAMPLE_SECRET: "nobody learns which nodes were sampled",
    Assumption.UNTUNED: "the cost of searching hyper-parameters on private data is not counted; defaults, a paper's or "
    "ours, were chosen with some of these public graphs in sight",
    Assumption.TRIALS_SECRET: "how many trainings the choice of settings took, how long they took, and all that is known of "
    "them but the chosen one stays secret",
    Assumption.OWN_EDGES_KNOWN: "a node that asks for its prediction may use its own edges",
    Assumption.PUBLIC_NODES: "a named set of other nodes is public, with their features and the edges among them, and gets "
    "no guarantee",
    Assumption.ANSWERS_PRIVATE: "a node that asks uses its own row and its own edges, which it knows, and its answer is shown "
    "to it alone (joint differential privacy: of a node, all others together learn no more than ε allows, beyond their own "
    "edges to it); an answer that others see may tell them of its edges",
    Assumption.UPDATES_SUMMED: "a client's update reaches the server only inside a sum over clients (ideal secure aggregation, "
    "simulated in floating point; at most one participant adds its own noise share to it); what is compared is seen one by one",
    Assumption.GRAPH_LABELS_PUBLIC: "for the accuracy of classification alone, the labels of the graphs that the server learns "
    "from are public",
    Assumption.PUBLIC_LABELS: "the labels of the public nodes are public, too",
    Assumption.COLUMNS_PUBLIC: "which features there are, and how they are weighted, is public, though whoever prepared the "
    "data computed it from all nodes' rows (a vocabulary, a list of codes, TF-IDF, which columns hold numbers); beyond that a "
    "node's row is its own",
    Assumption.EDGES_PUBLIC: "which edges exist is public; of a node, only its features and its label are private",
    Assumption.FEATURES_FROM_EDGES: "the features of a node count its edges (for example its payments), so a node leaves "
    "traces in the rows of its neighbours, at other clients too: those traces get no protection, only the node's own row, "
    "label and place in the graph do; with public features (edge level), what they say of an edge is public",
}


@dataclass(frozen=True)
class Protection:
    """Unit, neighbouring relation, viewer and assumptions of one guarantee.

    promised_degree: the D of ``promised-degree``; must be given exactly when that assumption is made. degree_limit: the M of
    ``degree-limit-enforced``, likewise. colluders: the t ≥ 2 of ``several-colluders``, likewise.

    Raises ``PrivacyError`` when the relation speaks of another unit, or the parts exclude each other.
    """

    relation: Relation
    viewer: Viewer
    assumptions: tuple[Assumption, ...]
    promised_degree: int | None = None
    degree_limit: int | None = None
    colluders: int | None = None

    def __post_init__(self) -> None:
        have = set(self.assumptions)
        if (self.degree_limit is not None) != (Assumption.DEGREE_LIMIT_ENFORCED in have):
            raise PrivacyError("degree-limit-enforced needs its number: give degree_limit with the assumption, or neither")
        if self.degree_limit is not None and (self.degree_limit < 1 or self.unit is not Unit.NODE):
            raise PrivacyError(f"degree_limit is at least 1 and for node-level privacy, found {self.degree_limit}")
        if (self.promised_degree is not None) != (Assumption.PROMISED_DEGREE in have):
            raise PrivacyError("promised-degree needs its number: give promised_degree with the assumption, or neither")
        if self.promised_degree is not None and self.promised_degree < 1:
            raise PrivacyError(f"promised_degree must be at least 1, found {self.promised_degree}")
        if (self.colluders is not None) != (Assumption.SEVERAL_COLLUDERS in have) or (self.colluders or 2) < 2:
            raise PrivacyError("several-colluders needs its number, at least 2: give colluders with the assumption, or neither")
        knowing = {Assumption.ONE_COLLUDER, Assumption.SEVERAL_COLLUDERS}
        summed = {Assumption.IDEAL_SECURE_AGGREGATION, Assumption.MASKED_SECURE_AGGREGATION}
        secure = summed | knowing
        if self.viewer is Viewer.SERVER_SECURE_AGGREGATION and (len(summed & have) != 1 or len(knowing & have) != 1):
            raise PrivacyError(
                "a viewer behind secure aggregation needs the assumptions ideal-secure-aggregation and one-colluder "
                "(or masked-secure-aggregation and several-colluders in their places)"
            )
        if self.viewer is not Viewer.SERVER_SECURE_AGGREGATION and secure & have:
            raise PrivacyError(f"secure aggregation is assumed, but the viewer is {self.viewer.value}, who sees more than sums")
        if self.viewer is Viewer.CURATOR_TRUSTED and Assumption.CLIENTS_DISJOINT in have:
            raise PrivacyError("a trusted curator holds the whole graph: there are no clients to be disjoint")
        if Assumption.CUT_EDGES_SHARED in have and (
            self.unit is not Unit.EDGE or self.viewer is Viewer.CURATOR_TRUSTED or Assumption.CLIENTS_DISJOINT in have
        ):
            raise PrivacyError(
                f"cut-edges-shared gives an edge to two clients, which edge-level privacy of a federation allows; here one "
                f"{self.unit.value} is protected from {self.viewer.value}: write cut_edges: dropped"
            )
        if len(have) != len(self.assumptions):
            raise PrivacyError(f"an assumption is stated twice: {', '.join(a.value for a in self.assumptions)}")
        if self.unit is Unit.GRAPH and Assumption.PROMISED_DEGREE in have:
            raise PrivacyError("a whole graph is replaced by any other: a promised degree has no meaning there")
        if self.unit is Unit.GRAPH and self.viewer is Viewer.CURATOR_TRUSTED:
            raise PrivacyError("a trusted curator holds every client's graph: protect a node or an edge from the world instead")
        if self.unit is not Unit.EDGE and Assumption.OWN_EDGES_KNOWN in have:
            raise PrivacyError("own-edges-known gives a node its own edges: it means something for edge-level privacy only")
        if self.unit is not Unit.NODE and Assumption.ANSWERS_PRIVATE in have:
            raise PrivacyError("answers-private speaks of nodes that ask: at edge level write own-edges-known")
        if self.unit is not Unit.NODE and Assumption.EDGES_PUBLIC in have:
            raise PrivacyError(
                "edges-public gives all edges away: only node-level privacy of features and labels is left to protect"
            )
        if self.viewer is Viewer.WORLD and Assumption.SAMPLE_SECRET in have:
            raise PrivacyError("with no trusted party each node would have to hide from itself whether it was sampled")
        if self.unit is Unit.EDGE and Assumption.MODEL_GIVEN not in have and Assumption.FEATURES_LABELS_PUBLIC not in have:
            raise PrivacyError(
                "edge-level privacy says nothing about features and labels: assume features-labels-public, "
                "or choose a node-level relation"
            )
        if self.unit is Unit.NODE and Assumption.FEATURES_LABELS_PUBLIC in have:
            raise PrivacyError(
                "node-level privacy protects features and labels: drop features-labels-public or use an edge level"
            )

    @property
    def unit(self) -> Unit:
        return self.relation.unit

    def sentence(self, assumption: Assumption) -> str:
        """What ``assumption`` says here, its number with it."""
        number = {
            Assumption.PROMISED_DEGREE: f" (D = {self.promised_degree})",
            Assumption.DEGREE_LIMIT_ENFORCED: f" (M = {self.degree_limit})",
            Assumption.SEVERAL_COLLUDERS: f" (t = {self.colluders})",
        }
        return assumption.words + number.get(assumption, "")

    def to_dict(self) -> dict[str, object]:
        return {
            "unit": self.unit.value,
            "relation": self.relation.value,
            "viewer": self.viewer.value,
            "assumptions": [a.value for a in self.assumptions],
            "promised_degree": self.promised_degree,
            "degree_limit": self.degree_limit,
            **({} if self.colluders is None else {"colluders": self.colluders}),
        }

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Protection:
        """Inverse of ``to_dict``."""
        assumptions = data["assumptions"]
        numbers = (data["promised_degree"], data.get("degree_limit"), data.get("colluders"))
        if not isinstance(assumptions, list) or not all(d is None or isinstance(d, int) for d in numbers):
            raise PrivacyError(f"not a protection: {data}")
        known = tuple(Assumption(a) for a in assumptions)
        made = cls(Relation(data["relation"]), Viewer(data["viewer"]), known, *numbers)  # type: ignore[arg-type]
        if data.get("unit", made.unit.value) != made.unit.value:
            raise PrivacyError(f"the unit {data['unit']!r} is not that of the relation {made.relation.value!r}")
        return made
