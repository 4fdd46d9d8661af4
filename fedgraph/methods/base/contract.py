"""What a method is made from and made of: public facts and a budget, the plan, the parts of a run, and what it offers.

A *plan* fixes a method's noise and every release before any private data are read. It is made from ``PublicFacts`` and a
``Budget``. A run has the server's ``State``, its ``PlanInbox``, and the random ``PlanStreams`` of a client. A module ends with
``OFFERS: Offers[Params, Made, Work, Memory] = Offers(…)``, which says what it can do; nothing else holds a list of methods
(``method_kinds.list_names``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from importlib import resources
from typing import Any, Generic, Literal, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from typing_extensions import TypeVar

from fedgraph import privacy, seeds
from fedgraph.documents import canonical
from fedgraph.errors import PrivacyError, RuntimeFailure, ScenarioError
from fedgraph.types import Graph, GraphColumns, Partition

PublicCalibrationFact = Literal["published", "provable", "none"]
PublicCutEdgeFacts = Literal["dropped", "protected"]

# assumptions of plans where features and labels are public, and where predictions are for a public graph
_ALWAYS = (privacy.Assumption.UNTUNED, privacy.Assumption.SPLIT_PUBLIC)
FACTS_ATTRIBUTES_PUBLIC: tuple[privacy.Assumption, ...] = (
    privacy.Assumption.COUNTS_PUBLIC,
    privacy.Assumption.FEATURES_LABELS_PUBLIC,
    *_ALWAYS,
)
FACTS_TESTED_IN_PUBLIC: tuple[privacy.Assumption, ...] = (
    privacy.Assumption.COUNTS_PUBLIC,
    *_ALWAYS,
    privacy.Assumption.TEST_GRAPH_PUBLIC,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicFacts:
    """What everybody may know before the run, and all that a plan with a guarantee may be made from."""

    num_nodes: int  # nodes over all clients
    num_features: int  # columns of a feature row
    num_classes: int  # classes of the labels
    clients: tuple[int, ...]  # nodes of each client
    # if clients hold several whole graphs, the number of nodes of each (a client's rows follow one another); else empty
    graphs: tuple[tuple[int, ...], ...] = ()
    viewer: privacy.Viewer  # who sees what leaves a client
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


def assume_public_facts(facts: PublicFacts) -> tuple[privacy.Assumption, ...]:
    """The assumption of a method that reads the public graph; empty if there is none."""
    if facts.public_graph is None:
        return ()
    return (privacy.Assumption.TEST_GRAPH_PUBLIC if facts.public == "test-graph" else privacy.Assumption.PUBLIC_NODES,)


def assume_public_derived_facts(
    facts: PublicFacts, relation: privacy.Relation, *, edges_private: bool
) -> tuple[privacy.Assumption, ...]:
    """Assumptions that something is public although it was computed from what ``relation`` protects.

    edges_private: False for a method that gives all edges away (``edges-public``).
    """
    stated = {
        privacy.Assumption.SPLIT_FROM_EDGES: facts.split_from_edges and edges_private,
        privacy.Assumption.SPLIT_FROM_LABELS: facts.split_from_labels and relation.protects_labels,
        privacy.Assumption.COMPONENT_FROM_EDGES: facts.component_from_edges and edges_private,
        privacy.Assumption.COLUMNS_PUBLIC: facts.columns_from_rows,
        # if only edges are private, features are public anyway
        privacy.Assumption.FEATURES_FROM_EDGES: facts.features_from_edges and not relation.links_alone,
    }
    return tuple(assumption for assumption, holds in stated.items() if holds)


def assume_public_setting(facts: PublicFacts, relation: privacy.Relation) -> tuple[privacy.Assumption, ...]:
    """Assumptions of the setting, with private edges: who holds which node, and who sees what."""
    assumed = assume_public_derived_facts(facts, relation, edges_private=True)
    if facts.viewer is privacy.Viewer.CURATOR_TRUSTED:
        return assumed
    stated = {
        privacy.Assumption.MEMBERSHIP_FROM_EDGES: facts.membership_from_edges,
        privacy.Assumption.MEMBERSHIP_FROM_LABELS: facts.membership_from_labels and relation.protects_labels,
    }
    assumed += tuple(assumption for assumption, holds in stated.items() if holds) or (privacy.Assumption.MEMBERSHIP_GIVEN,)
    if facts.cut_edges_shared:
        assumed += (privacy.Assumption.CUT_EDGES_SHARED,)
    else:
        assumed += (privacy.Assumption.SIZES_PUBLIC,) if facts.holdings is not None else (privacy.Assumption.CLIENTS_DISJOINT,)
    if facts.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
        knowing = privacy.Assumption.ONE_COLLUDER if facts.colluders == 1 else privacy.Assumption.SEVERAL_COLLUDERS
        assumed += (privacy.Assumption.IDEAL_SECURE_AGGREGATION, knowing)
    return assumed


def guarantee_from_public_facts(
    facts: PublicFacts,
    relation: privacy.Relation,
    assumed: tuple[privacy.Assumption, ...],
    delta: float,
    *,
    per_end: bool,
    promised: int | None = None,
    limit: int | None = None,
    sampled_once: float | None = None,
) -> privacy.Guarantee:
    """The guarantee of a plan, toward the viewer of ``facts``.

    assumed: assumptions of the method; those of the setting are added. delta: δ. per_end: whether events price one end of an
    edge, so that an edge costs two of them. promised: maximum degree that the data promise, or None. limit: number of
    neighbours that the platform enforces, or None. sampled_once: rate of a secret one-time sample that amplifies all releases,
    or None.
    """
    stated = (*assumed, *assume_public_setting(facts, relation))
    colluders = facts.colluders if facts.colluders > 1 and facts.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION else None
    protection = privacy.Protection(relation, facts.viewer, stated, promised, limit, colluders)
    return privacy.Guarantee(protection, delta, facts.holdings, per_end, sampled_once)


Model: TypeAlias = Mapping[str, np.ndarray]  # what the server broadcasts
PlanSent: TypeAlias = dict[str, privacy.Released]  # one client's message

_S_co = TypeVar("_S_co", default=object, covariant=True)


@dataclass(frozen=True, eq=False)
class State(Generic[_S_co]):
    """What the server knows after a round, a function of released values and public facts."""

    model: dict[str, np.ndarray]  # broadcast to every client
    memory: _S_co  # kept at the server, of the method's own type
    # (model, inbox) of every round so far, if the plan keeps rounds; else empty
    seen: tuple[tuple[dict[str, np.ndarray], PlanInbox], ...] = ()


@dataclass(frozen=True, eq=False)
class PlanInbox:
    """One round's messages as the server may see them."""

    round: int  # its number, from 0
    sums: dict[str, np.ndarray]  # name → sum over the clients that sent this part
    each: dict[str, list[np.ndarray]]  # name → one value per client, in client order; empty behind secure aggregation
    num_clients: int  # number of clients that finished the round
    # name → sum over the colluding clients; only in rounds that are kept for an attack
    colluding: dict[str, np.ndarray] = field(default_factory=dict)


PLAN_PUBLIC_COINS = "public-coins"  # the one stream of a client that everybody may know


def client_path(cell: tuple[str | int | float, ...], client: int, round_: int) -> tuple[str | int | float, ...]:
    """The name of one client's streams in one round of a cell."""
    return (*cell, "client", client, "round", round_)


def block_path(cell: tuple[str | int | float, ...], first: int, last: int, round_: int) -> tuple[str | int | float, ...]:
    """The name of the streams of the clients ``first`` … ``last`` in one round, if they compute as one."""
    return (*cell, "clients", first, last, "round", round_)


@dataclass(frozen=True)
class PlanStreams:
    """A client's random streams for one round; noise and training never share one.

    The fingerprint of the plan is a part of every name except that of the public coins. So runs with different settings, public
    data or holders of nodes never draw the same noise (whose difference would show the data), nor the same sample or batches.
    Runs of one plan on different private data do so under the same written seed: they need ``seed: secret``. Cells of one run
    have different paths.
    """

    root: int  # root of all streams of the run, a number or a secret
    path: tuple[str | int | float, ...]  # names the client and the round (``client_path``, ``block_path``)
    fingerprint: str = ""  # ``Plan.fingerprint``

    def generator(self, name: str) -> np.random.Generator:
        """The stream called ``name``, from its start; it is secret unless it is ``PLAN_PUBLIC_COINS``."""
        if name == PLAN_PUBLIC_COINS:
            return seeds.seeded_generator(self.root, *self.path, name)
        return seeds.secret_seeded_generator(self.root, *self.path, name, self.fingerprint)

    def drawn(self, name: str, things: np.ndarray, rate: float) -> np.ndarray:
        """bool [m]: which of some private things are in a Poisson sample, each by its own secret coin (``seeds.coins``).

        things: int64 [m] or [m, 2], ids of nodes, or of both ends of edges. rate: chance of each thing; from 1 on all are
        drawn.
        """
        return seeds.coins(self.root, *self.path, name, self.fingerprint, things=things) < rate

    def of_client(self, client: int) -> PlanStreams:
        """One client's own streams, if these are the streams of its block (``block_path``)."""
        *cell, _, _, _, _, round_ = self.path
        return replace(self, path=client_path(tuple(cell), client, int(round_)))


_P_co = TypeVar("_P_co", default=object, covariant=True)
_M_co = TypeVar("_M_co", default=object, covariant=True)


@dataclass(frozen=True)
class PlanSchedule:
    """What is released when."""

    rounds: int  # number of rounds
    releases: tuple[privacy.PlannedRelease, ...]  # what each client will release
    min_clients: int  # a round with fewer clients is aborted (secure aggregation)
    shared_rounds: int = 0  # number of first rounds that all cells of one ``shared_key`` share; 0: they share only the start
    shared_key: str = ""  # names what is shared; empty: nothing

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path of the releases once, in their order."""
        return tuple(dict.fromkeys(r.path for r in self.releases))

    @cached_property
    def _of_one(self) -> dict[int, tuple[privacy.PlannedRelease, ...]]:
        own: dict[int, tuple[privacy.PlannedRelease, ...]] = {}
        for release in self.releases:
            if release.client is not None:
                own[release.client] = (*own.get(release.client, ()), release)
        return own

    def of_client(self, client: int) -> tuple[privacy.PlannedRelease, ...]:
        """What ``client`` will release: the releases of all clients, and those of this client alone."""
        if not self._of_one:
            return self.releases
        return (*(r for r in self.releases if r.client is None), *self._of_one.get(client, ()))


@dataclass(frozen=True)
class PlanSums:
    """How far the messages of clients may be added up before the server reads them."""

    # (part of a message, least number of clients in its sum): parts that reach the server only as a sum over clients, whatever
    # the viewer sees of the rest. Such a part has the name of its path.
    paths: tuple[tuple[str, int], ...] = ()
    suffice: bool = False  # whether the server reads only ``PlanInbox.sums``, so many clients may send a sum
    # as ``suffice``, and the exact value of a disjoint union of subgraphs is the sum of their values. Then ``client`` may
    # compute the clients of a block as one that holds their union; samples are drawn for each (``PlanStreams.of_client``).
    additive: bool = False


@dataclass(frozen=True)
class _Watch:
    """What is kept for an attack."""

    keeps_rounds: bool = False  # whether every broadcast and inbox is kept (``State.seen``)
    opened: bool = False  # whether clients also send priced values that otherwise stay with them


@dataclass(frozen=True, eq=False)
class Plan(Generic[_P_co, _M_co]):
    """A method made ready: its noise is fixed and every release is declared.

    ``PrivacyError`` if a release has other noise than its event prices (``priced_noise.require``), if a release with a price
    comes from ``ClearFacts``, or if ``guarantee`` and ``facts`` differ in who holds which node.
    """

    method: str  # name of the method
    params: _P_co  # its settings
    facts: PublicFacts  # the public facts that it was made from
    guarantee: privacy.Guarantee  # what its releases are priced for
    schedule: PlanSchedule
    made: _M_co  # what the method made of its settings and of public facts, of the method's own type
    epsilon_published: float | None = None  # ε of this noise by the paper's formula; None: it claims nothing
    sums: PlanSums = PlanSums()
    watch: _Watch = _Watch()
    notes: tuple[str, ...] = ()  # sentences for the report

    def __post_init__(self) -> None:
        protection = self.guarantee.protection
        protected = [r.path for r in self.schedule.releases if not isinstance(r.event, privacy.Unprotected)]
        if isinstance(self.facts, ClearFacts) and protected:
            raise PrivacyError(
                f"{self.method} is made from what was counted in private rows (ClearFacts), so every release must be "
                f"Unprotected; found a price on {', '.join(protected)}: make the plan from PublicFacts"
            )
        if protection.unit is not privacy.Unit.GRAPH and self.guarantee.holdings is not self.facts.holdings:
            raise PrivacyError(f"{self.method}: who holds which node is counted otherwise than the public facts say")
        secure, fewest = protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION, dict(self.sums.paths)
        others = self.facts.cohort - self.facts.colluders if secure else 1
        for release in self.schedule.releases:
            # number of clients whose noise hides one unit from the viewer; in a path's own sum one colluder knows its part
            hiding = fewest.get(release.path, others + 1) - 1
            place = privacy.priced_noise.NoisePlace(release.bound, protection, hiding, per_end=self.guarantee.per_end)
            privacy.priced_noise.require(release, place)

    @cached_property
    def public_text(self) -> str:
        """The public part of the data and who holds which node, as text for names of streams: counts and digests.

        Nothing in it follows from what the guarantee protects. Of membership that was computed from edges, or from protected
        labels, it has only the sizes.
        """
        facts, relation = self.facts, self.guarantee.protection.relation
        from_private = facts.membership_from_edges or (facts.membership_from_labels and relation.protects_labels)
        holders = () if from_private else (facts.members, facts.holdings)
        said = (
            (facts.num_nodes, facts.num_features, facts.num_classes, facts.clients, facts.graphs),
            (facts.membership_from_edges, facts.membership_from_labels, facts.cut_edges, holders),
            (
                facts.public,
                _public_part(facts.public_graph),
                _public_part(facts.public_attributes),
                *filter(None, [facts.drawn]),
            ),
        )
        return canonical.text(said)

    @cached_property
    def fingerprint_text(self) -> str:
        """The text of ``fingerprint``: settings, price, who answers, and ``public_text``."""
        said = (self.method, self.params, self.guarantee.delta, self.guarantee.protection, self.schedule.rounds)
        return canonical.text((said, self.facts.answering, self.public_text))

    @property
    def fingerprint(self) -> str:
        """A digest of ``fingerprint_text``, 16 hexadecimal digits.

        It is a part of the names of secret random streams, so every change of that text changes all noise.
        """
        return hashlib.sha256(self.fingerprint_text.encode()).hexdigest()[:16]

    @property
    def shared_fingerprint(self) -> str:
        """As ``fingerprint``, for the first rounds that plans with one ``shared_key`` share."""
        return hashlib.sha256(canonical.text((self.schedule.shared_key, self.public_text)).encode()).hexdigest()[:16]

    def declared(self, path: str | None = None) -> dict[int, privacy.Event]:
        """Client → all its releases (on ``path``, or on all paths), composed, and amplified if the plan samples once."""
        clients, releases = range(self.facts.num_clients), self.schedule.releases
        return privacy.settle.amplified(self.guarantee, {c: privacy.desk.declared(releases, c, path) for c in clients})

    def provable(self, path: str | None = None) -> privacy.Epsilon:
        """The provable price of the worst unit, if the data keep every promise; of ``path`` alone, or of everything."""
        return privacy.settle.of_plan(self.guarantee, self.schedule.releases, path)

    def to_dict(self) -> dict[str, Any]:
        """The declared releases as JSON; equal releases of many clients are one entry.

        It has the class and the numbers of each bound, but no graph, array or digest.
        """
        clients: dict[str, list[int | None]] = {}
        for release in self.schedule.releases:
            held = {f.name: vars(release.bound)[f.name] for f in dataclasses.fields(release.bound)}
            bound = {name: value for name, value in held.items() if isinstance(value, (bool, int, float, str))}
            said = {
                "path": release.path,
                "bound": {"kind": type(release.bound).__name__, **bound},
                "mechanism": release.mechanism.words,
                "event": privacy.events.to_dict(release.event),
                "rounds": [list(span) for span in privacy.ledger.spans(release.rounds)],
                "per_round": release.per_round,
            }
            clients.setdefault(json.dumps(said), []).append(release.client)
        releases = [
            {
                **json.loads(said),
                "clients": [list(span) for span in privacy.ledger.spans(c for c in who if c is not None)] or "all",
            }
            for said, who in clients.items()
        ]
        return {
            "method": self.method,
            "delta": self.guarantee.delta,
            "protection": self.guarantee.protection.to_dict(),
            "sampled_once": self.guarantee.sampled_once,
            "epsilon_published": self.epsilon_published,
            "public": self.facts.public,
            "clients": self.facts.num_clients,
            "least_answers": self.schedule.min_clients,
            "rounds": self.schedule.rounds,
            "releases": releases,
            "notes": list(self.notes),
        }


def _public_part(graph: Graph | None) -> object:
    """The numbers of a public graph; its name, ids and provenance shape no release."""
    return None if graph is None else (graph.num_classes, graph.adjacency, graph.features, graph.labels)


PLAN_WITHOUT_NOISE: tuple[privacy.NoiseMechanism, privacy.Event] = (
    privacy.Disclose("no noise was asked for"),
    privacy.Unprotected("no noise"),
)
_R = TypeVar("_R")


def require_received(plan: Plan, found: _R | None) -> _R:
    """``found``; ``RuntimeFailure`` if it is None, because predictions were asked for before the last round."""
    if found is None:
        raise RuntimeFailure(f"{plan.method} was asked for predictions before its last round")
    return found


def gradient_std(noise_multiplier: float, sensitivity: float, facts: PublicFacts) -> tuple[float, int]:
    """(standard deviation of the noise that each client adds, in data units; clients that must finish a round).

        std = σΔ                        the viewer sees each client's message, which must carry all the noise
        std = σΔ / √(n_min − t)         the viewer sees the sum, and t of the clients tell it their shares of noise

    noise_multiplier: σ, the standard deviation of the noise over the sensitivity; at least 0. sensitivity: Δ₂ of the sum, in
    data units. facts: have the viewer, the number of clients that answer (n_min = ``cohort``) and of those that collude
    (t = ``colluders``). ``PrivacyError`` if, behind secure aggregation, no more clients answer than collude.
    """
    if facts.viewer is not privacy.Viewer.SERVER_SECURE_AGGREGATION:
        return noise_multiplier * sensitivity, 1
    if facts.cohort <= facts.colluders:
        raise PrivacyError(
            f"secure aggregation hides a client among more than {facts.colluders} others, found {facts.cohort} clients; "
            "allowed: fewer colluders than clients that answer"
        )
    return noise_multiplier * sensitivity / math.sqrt(facts.cohort - facts.colluders), facts.cohort


_P = TypeVar("_P")  # settings of the method (``Params``)
_M = TypeVar("_M")  # what its plan made of them
_W = TypeVar("_W")  # what a client prepares
_S = TypeVar("_S")  # what its server remembers

OfferedMethodKind = Literal["classifier", "embedder", "linker"]
_Given = Literal["inductive", "transductive", "inductive-edges", "asking", "ego", "collection", "links"]


@cache
def _papers() -> dict[str, str]:
    text = resources.files("fedgraph.methods.base").joinpath("papers.bib").read_text(encoding="utf-8")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry.strip() for entry in text.split("\n\n")}


def method_bibtex(*keys: str) -> str:
    """Entries of ``papers.bib``, for the ``REFERENCE`` of a method. ``KeyError`` for an unknown key."""
    return "\n".join(_papers()[key] for key in keys)


class MethodReads(Enum):
    """What an answer about a node, or a pair of nodes, reads beside released values and public facts."""

    NOTHING = "nothing else: only who was in the training graph has an answer"
    OWN_ROW = "its own row"
    OWN_EDGES = "its own row, and its own edges to people of the training graph"
    PUBLIC_GRAPH = "the rows of other nodes, and the edges among them, without noise"
    PRIVATE_EDGES = "the private edges of the training graph themselves, without noise"


@dataclass(frozen=True)
class MethodSituation:
    """A setting in which a method can be used, and in which the contract tests run it."""

    # what the clients hold. ``inductive``, ``transductive``, ``inductive-edges``, ``asking``: the protocols of node
    # classification. ``ego``: every client holds one small graph cut out of a common one. ``collection``: every client holds
    # several whole graphs. ``links``: edges are private, and pairs are asked that may be linked.
    given: _Given
    # levels of trust that the method supports there (with whole graphs only ``own-client``)
    trusted: tuple[privacy.Trust, ...] = (privacy.Trust.CURATOR, privacy.Trust.SUMS, privacy.Trust.OWN_CLIENT)
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of the method with which a test is quick


class MethodGradientReader(Protocol):
    """How somebody who sees one client's message reads a gradient in it."""

    @property
    def names_words(self) -> bool: ...  # whether the first layer reads rows as they are, so that its gradient names words
    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """float64 [p], the gradient in a message; None: there is none. sent: part → value. model: the broadcast model."""

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(gradient of the first layer's weights [out, k], map [k, num_features] to words). gradient: of all parameters."""

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """float64 [c], the gradient of the last layer's bias, as a mean over ``num_nodes`` nodes.

        At parameters zero it is the mean of (probability − label). gradient: float64 [p], of all parameters.
        """


@dataclass(frozen=True, kw_only=True)
class Offers(Generic[_P, _M, _W, _S]):
    """What a method can do. A default is never the less private choice."""

    units: tuple[privacy.Unit, ...]  # what may be protected as one person's data; the first is that of its default settings
    situations: tuple[MethodSituation, ...]  # where it can be used
    # ``classifier`` (gives nodes a class), ``embedder`` (releases embeddings of whole graphs) or ``linker`` (scores pairs)
    kind: OfferedMethodKind = "classifier"
    # settings under which it adds no noise at any ε (``{}``: under all settings); None: there are none
    ignores_budget: Mapping[str, object] | None = None
    any_broadcast: bool = False  # whether its proof holds whatever model clients are sent, so the server may be active
    trusts_nobody: bool = False  # whether every node protects its own data before it leaves
    private_test_nodes: bool = False  # whether it answers a private test node from that node's own row
    partial_rounds: bool = False  # whether a round may ask a share of the clients
    answers_every_round: bool = False  # whether its state predicts after any round, so that a curve can be drawn
    # what an answer reads under a plan; None: unknown, so there are no models of the method
    reads: Callable[[Plan[_P, _M]], MethodReads | None] | None = None
    # the state after a client's own steps on its graph, in clear
    tuned: Callable[[Plan[_P, _M], State[_S], Graph, np.random.Generator], State[_S]] | None = None
    # what the training found, as sentences for the report
    says: Callable[[Plan[_P, _M], State[_S]], tuple[str, ...]] | None = None
    # the next four are for attacks (methods of this repository have them in ``attacks.base.evidence``): whether (model, inbox)
    # of every round is kept in ``State.seen``
    reads_rounds: Callable[[Plan[_P, _M]], bool] | None = None
    # float64 [m], for each unit the log-likelihood ratio, or a similar score, of version 1 (``attacks.base.coin_game``) in the
    # known graph; None: the viewer sees too little
    evidence: Callable[[Plan[_P, _M], State[_S], Graph, np.ndarray], np.ndarray | None] | None = None
    # the same for whole graphs: from clients with every canary in version 0, in version 1, and which canary decides each graph
    graph_evidence: (
        Callable[[Plan[_P, _M], State[_S], Partition, Partition, Sequence[np.ndarray]], np.ndarray | None] | None
    ) = None
    # reads the gradient in one client's message
    observe: Callable[[Plan[_P, _M]], MethodGradientReader] | None = None

    def serves(self, given: _Given) -> bool:
        """Whether one of its situations is ``given``."""
        return any(situation.given == given for situation in self.situations)

    @property
    def never_private(self) -> bool:
        """Whether it adds no noise under any settings: only then may its plan read ``ClearFacts``."""
        return self.ignores_budget is not None and not self.ignores_budget

    def is_private(self, settings: Mapping[str, object]) -> bool:
        """Whether it adds noise under ``settings`` (of a row, as written)."""
        free = self.ignores_budget
        return free is None or any(settings.get(key) != value for key, value in free.items())


AnyMethodOffers: TypeAlias = Offers[Any, Any, Any, Any]  # of any method
