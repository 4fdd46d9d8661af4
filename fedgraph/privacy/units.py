"""What a guarantee protects: the unit, the neighbouring relation, the viewer, and the assumptions.

A privacy statement without all four is not a statement, so ``Protection`` cannot be built without
them and refuses combinations that mean nothing.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from importlib import resources

from fedgraph.errors import PrivacyError

PRIVACY_WORDS = tomllib.loads(resources.files("fedgraph.privacy").joinpath("words.toml").read_text(encoding="utf-8"))


class _Worded(str, Enum):
    """An enumeration whose members have a phrase, ``words``, from ``words.toml``."""

    @property
    def words(self) -> str:
        return str(PRIVACY_WORDS[type(self).__name__.lower()][self.value])


class Unit(str, Enum):
    """What one person's data is.

    Attributes:
        EDGE: one edge.
        NODE: a node with its features, its label and its edges, or with its edges alone (``node-links``).
        GRAPH: the whole graph of one client.
        ENTITY: all records that one owner has a part in.
    """

    EDGE = "edge"
    NODE = "node"
    GRAPH = "graph"
    ENTITY = "entity"


class Relation(_Worded):
    """Which two inputs are neighbours: ``words`` states each, in ``words.toml``."""

    EDGE_UNDIRECTED = "edge-undirected"
    EDGE_DIRECTED = "edge-directed"
    NODE_ZERO_OUT = "node-zero-out"
    NODE_REPLACE = "node-replace"
    NODE_LINKS = "node-links"
    GRAPH_REPLACE = "graph-replace"
    ENTITY_LINKS = "entity-links"

    @property
    def unit(self) -> Unit:
        return Unit(self.value.split("-")[0])

    @property
    def links_alone(self) -> bool:
        """Whether only edges are private; nodes, features and labels are public."""
        return self.unit is Unit.EDGE or self in (Relation.NODE_LINKS, Relation.ENTITY_LINKS)

    @property
    def protects_labels(self) -> bool:
        """Whether labels are private; they are public where only edges are private."""
        return not self.links_alone

    @property
    def replaces(self) -> bool:
        """Whether the unit has a row in both worlds: its contribution changes instead of vanishing."""
        return self in (Relation.NODE_REPLACE, Relation.GRAPH_REPLACE)


class Viewer(_Worded):
    """From whom the unit is protected: the price counts everything that this viewer receives (``words``, in ``words.toml``)."""

    CURATOR_TRUSTED = "curator-trusted"
    SERVER_SECURE_AGGREGATION = "server-secure-aggregation"
    SERVER = "server"
    ACTIVE_SERVER = "active-server"
    WORLD = "world"

    @property
    def sees_messages(self) -> bool:
        """Whether the viewer receives every client's own message."""
        return self in (Viewer.SERVER, Viewer.ACTIVE_SERVER)


class Assumption(_Worded):
    """What a guarantee takes for granted: ``words`` states each, in ``words.toml``."""

    COUNTS_PUBLIC = "counts-public"
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
    NETWORK_AS_TRIED = "network-as-tried"


@dataclass(frozen=True)
class Protection:
    """Unit, neighbouring relation, viewer and assumptions of one guarantee.

    Attributes:
        relation: which two inputs are neighbours; the unit follows from it.
        viewer: from whom the unit is protected.
        assumptions: what the guarantee takes for granted, each once.
        promised_degree: D ≥ 1 of ``promised-degree``; given exactly where that assumption is made.
        degree_limit: M ≥ 1 of ``degree-limit-enforced``; given exactly where that assumption is made, for nodes only.
        colluders: t ≥ 2 of ``several-colluders``; given exactly where that assumption is made.

    Raises:
        PrivacyError: parts that exclude each other, a number without its assumption or an assumption without its number, or an
            assumption that the relation or the viewer needs and that is missing.
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
        given = {Assumption.MODEL_GIVEN, Assumption.FEATURES_LABELS_PUBLIC} & have
        if self.relation.links_alone and not given:
            raise PrivacyError(
                "edge-level privacy says nothing about features and labels: assume features-labels-public, "
                "or choose a node-level relation"
            )
        if self.unit is Unit.NODE and not self.relation.links_alone and Assumption.FEATURES_LABELS_PUBLIC in have:
            raise PrivacyError(
                "node-level privacy protects features and labels: drop features-labels-public or use an edge level"
            )

    @property
    def unit(self) -> Unit:
        return self.relation.unit

    @property
    def neighbours(self) -> str:
        """Which two worlds are compared, in a phrase; edges that are public are the same in both."""
        of_rows = PRIVACY_WORDS["relation-of-rows"] if Assumption.EDGES_PUBLIC in self.assumptions else {}
        return str(of_rows.get(self.relation.value, self.relation.words))

    def sentence(self, assumption: Assumption) -> str:
        """What ``assumption`` says here, its number with it."""
        number = {
            Assumption.PROMISED_DEGREE: f" (D = {self.promised_degree})",
            Assumption.DEGREE_LIMIT_ENFORCED: f" (M = {self.degree_limit})",
            Assumption.SEVERAL_COLLUDERS: f" (t = {self.colluders})",
        }
        return assumption.words + number.get(assumption, "")

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; ``colluders`` is left out where it is None."""
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
        """Inverse of ``to_dict``.

        Args:
            data: a mapping that ``to_dict`` made; ``unit``, ``degree_limit`` and ``colluders`` may be missing.

        Returns:
            The protection, checked as when it is built.

        Raises:
            PrivacyError: not a protection, or its unit is not that of its relation.
            KeyError: the relation, the viewer, the assumptions or the promised degree are missing.
            ValueError: a relation, a viewer or an assumption that is not known.
        """
        assumptions = data["assumptions"]
        numbers = (data["promised_degree"], data.get("degree_limit"), data.get("colluders"))
        if not isinstance(assumptions, list) or not all(d is None or isinstance(d, int) for d in numbers):
            raise PrivacyError(f"not a protection: {data}")
        known = tuple(Assumption(a) for a in assumptions)
        made = cls(Relation(data["relation"]), Viewer(data["viewer"]), known, *numbers)  # type: ignore[arg-type]
        if data.get("unit", made.unit.value) != made.unit.value:
            raise PrivacyError(f"the unit {data['unit']!r} is not that of the relation {made.relation.value!r}")
        return made
