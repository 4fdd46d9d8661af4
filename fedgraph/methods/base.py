"""The contract of a method: what its one file must hold.

A method module defines

    REFERENCE                                   bibtex of its paper, printed in every report
    Params                                      pydantic model, frozen, unknown keys forbidden
    plan(params, facts, budget) → Plan          every release it will make, priced, before any private data
    start(plan, rng) → State                    round 0
    prepare(plan, subgraph) → work              a client's own arrays, made once and kept at the client
    client(plan, work, model, round_, streams, desk) → dict of released values
    server(plan, state, inbox) → State          one round's merge
    predict(plan, state, graph) → scores [n, c] inference (node-level methods)
    evidence(plan, state, graph, units) → [m]   optional, for attacks: a log-likelihood ratio, or like one, of version 1 of
                                                each unit in the known ``graph`` (``attacks.canaries``), or None
    says(plan, state) → sentences               optional: what the training found, for the report
    reads_rounds(plan) → bool                   optional, for attacks: keep (model, inbox) of every round in ``memory["seen"]``

and nothing else is registered anywhere. A central method is the same file with one client that holds
the whole graph, so *central or federated* is a word in a scenario, not a second code path.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import composition
from fedgraph.privacy.accounting.accountant import Price
from fedgraph.privacy.desk import PlannedRelease, declared
from fedgraph.privacy.events import Event, FixedSizeGaussian, Gaussian, PoissonGaussian, Repeated, SampledOnce
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball, sensitivity_l2
from fedgraph.privacy.units import Assumption, Protection, Relation, Unit, Viewer
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
    split_from_edges: whether who trains and who tests was computed from edges.
    public_name: what is public, in one word (``test-graph``, ``nothing`` or the name of a set). asking: int64, ids of nodes
    that never train and only ask for their own answer (which these are is public).
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
    split_from_edges: bool = False
    public_name: str = "test-graph"
    asking: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def num_clients(self) -> int:
        return len(self.client_sizes)

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


@dataclass(frozen=True, eq=False)
class Plan:
    """A method made ready: its noise is fixed and every release is declared.

    params, layout: the method's own. releases: what each client will release. protection, delta: the
    guarantee they are counted for. epsilon_published: what the paper's formula says of this noise (None:
    no claim). sampled_once: the rate of a secret one-time sample that amplifies the whole pipeline. per_end: events
    price one end of an edge, and an edge costs two of them (``composition.ends``).
    min_clients: fewer finished clients abort a round (secure aggregation). shared_rounds: the first rounds
    are the same for all cells of one ``shared_key``, which may share them. summed: parts of a message that reach the server as
    a sum over clients only, whatever the viewer sees of the rest, and how many clients each sum must hold; such a part is named
    as its path. notes: sentences for the report.
    """

    method: str
    params: Any
    rounds: int
    releases: tuple[PlannedRelease, ...]
    protection: Protection
    delta: float
    facts: PublicFacts
    epsilon_published: float | None = None
    sampled_once: float | None = None
    per_end: bool = False
    min_clients: int = 1
    shared_rounds: int = 0
    shared_key: str = ""
    summed: tuple[tuple[str, int], ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sampled_once is not None and self.facts.holdings is not None:
            raise PrivacyError("a one-time sample amplifies each unit once; clients that overlap would count it several times")
        if self.per_end and (self.facts.holdings is not None or self.sampled_once is not None):
            raise PrivacyError(
                "the ends of an edge compose for clients that share no node and for releases without a secret sample"
            )
        for release in self.releases:
            self._require_noise(release)

    def _require_noise(self, release: PlannedRelease) -> None:
        """A necessary check against a price for noise that is not there: std ≥ multiplier × the least sensitivity."""
        event = release.event.event if isinstance(release.event, Repeated) else release.event
        relation, bound, mechanism = self.protection.relation, release.bound, release.mechanism
        rows = isinstance(bound, (ClippedSum, L2Ball)) and relation.unit is not Unit.EDGE
        if not (
            rows and isinstance(mechanism, GaussianNoise) and isinstance(event, (Gaussian, PoissonGaussian, FixedSizeGaussian))
        ):
            return
        least = (
            sensitivity_l2(bound, relation) if isinstance(event, Gaussian) else sensitivity_l2(bound, Relation.NODE_ZERO_OUT)
        )
        others = self.facts.num_clients - 1 if self.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1
        others = dict(self.summed).get(release.path, others + 1) - 1 if self.summed else others
        if mechanism.std * math.sqrt(others) < event.noise_multiplier * least * (1 - 1e-9):
            raise PrivacyError(
                f"release {release.path!r} is priced at noise multiplier {event.noise_multiplier:.6g} for sensitivity at least "
                f"{least:.6g}, but its noise has standard deviation {mechanism.std:.6g} only"
            )

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes the releases."""
        facts = (self.facts.num_nodes, self.facts.client_sizes)
        text = repr((self.method, self.params, self.delta, self.protection, self.rounds, facts))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r.path for r in self.releases))

    def declared(self, path: str | None = None) -> dict[int, Event]:
        """Per client, everything it will release (on one path); amplified where the plan samples once."""
        return self.amplified({client: declared(self.releases, client, path) for client in range(self.facts.num_clients)})

    def amplified(self, spent: Mapping[int, Event]) -> dict[int, Event]:
        """Per client, what its releases count for: inside the secret one-time sample where there is one."""
        if self.sampled_once is None:
            return dict(spent)
        return {client: SampledOnce(event, self.sampled_once) for client, event in spent.items()}

    def provable(self, path: str | None = None) -> Price:
        """The worst unit's provable price, of everything or of one path."""
        if self.facts.holdings is None:
            return self.total(self.declared(path))[0]
        return composition.overlapping(self.declared(path), self.facts.holdings, self.delta).worst

    def total(self, spent: Mapping[int, Event]) -> tuple[Price, tuple[int, ...] | None]:
        """(price of what disjoint clients spent, ``spent`` being amplified already; ``Account.holders`` of that price)."""
        if self.per_end and spent:
            return composition.ends(spent, self.delta)
        return composition.disjoint(spent, self.delta), None


@dataclass(frozen=True, eq=False)
class State:
    """What the server knows after a round. model: broadcast to every client. memory: kept at the server.

    Both hold numpy arrays and are functions of released values only.
    """

    model: dict[str, np.ndarray]
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Inbox:
    """One round's messages as the server may see them.

    sums: name → sum over clients. each: name → one value per client, in client order; empty behind secure
    aggregation. num_clients: how many finished.
    """

    round: int
    sums: dict[str, np.ndarray]
    each: dict[str, list[np.ndarray]]
    num_clients: int


@dataclass(frozen=True)
class Streams:
    """A client's random streams for one round; noise and training never share one.

    fingerprint: of the plan; it enters the name of the noise stream, so that runs with other settings never
    add the same noise twice (their difference would show the data).
    """

    root: int
    path: tuple[str | int | float, ...]
    fingerprint: str = ""

    def generator(self, name: str) -> np.random.Generator:
        return seeds.generator(self.root, *self.path, name, *((self.fingerprint,) if name == "noise" else ()))


def gradient_std(noise_multiplier: float, sensitivity: float, facts: PublicFacts, colluders: int = 1) -> tuple[float, int]:
    """(noise std each client adds, clients that must finish) for a summed release of this sensitivity.

    Behind secure aggregation a viewer sees the sum and, being a participant, may know ``colluders`` shares:
    each client adds σΔ/√(n_min − t), so that the rest of the sum still hides σΔ. Everywhere else the
    viewer sees the client's own message (or there is one client), which must carry all the noise itself.
    """
    if facts.viewer is not Viewer.SERVER_SECURE_AGGREGATION:
        return noise_multiplier * sensitivity, 1
    if facts.num_clients <= colluders:
        raise PrivacyError(
            f"secure aggregation hides a client among more than {colluders} others, found {facts.num_clients} clients"
        )
    return noise_multiplier * sensitivity / math.sqrt(facts.num_clients - colluders), facts.num_clients


def public_assumptions(facts: PublicFacts) -> tuple[Assumption, ...]:
    """What the setting makes public, for a method that predicts on the public graph or learns a view from it."""
    if facts.public_graph is None:
        return ()
    return (Assumption.TEST_GRAPH_PUBLIC if facts.public_name == "test-graph" else Assumption.PUBLIC_NODES,)


def setting_assumptions(facts: PublicFacts) -> tuple[Assumption, ...]:
    """What the setting itself assumes: where the data lives and who sees what."""
    split = (Assumption.SPLIT_FROM_EDGES,) if facts.split_from_edges else ()
    if facts.viewer is Viewer.CURATOR_TRUSTED:
        return split
    known = Assumption.MEMBERSHIP_FROM_EDGES if facts.membership_from_edges else Assumption.MEMBERSHIP_GIVEN
    assumed: tuple[Assumption, ...] = (*split, known)
    if facts.cut_edges_shared:
        assumed += (Assumption.CUT_EDGES_SHARED,)
    else:
        assumed += (Assumption.SIZES_PUBLIC,) if facts.holdings is not None else (Assumption.CLIENTS_DISJOINT,)
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        assumed += (Assumption.IDEAL_SECURE_AGGREGATION, Assumption.ONE_COLLUDER)
    return assumed
