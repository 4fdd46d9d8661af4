"""What methods of noisy hops at node level share: for each client the rule that bounds how much one node changes a hop.

log        edges weigh h(larger degree of their ends): proven for every graph, no promise (``privacy.neighbour_sums``)
limit      the platform enforces at most M neighbours, and more are refused: log weights or plain sums
promised   as published: neighbourhoods are cut to D by public coins, and √D is claimed. This is provable only if no node of
           either graph has more than D neighbours, because others fill a slot that a removed node frees
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.learning import torch
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

NODE_CAP_COIN = 0  # names the public coins that cut neighbourhoods
_CLAIMED = (
    "Under cap: promised neighbourhoods are cut to D = {degree}, and one node is priced as changing D rows of a hop. That is "
    "true only where no node has more than D neighbours: beyond D a removed node frees slots that others refill, which "
    "changes further rows. Where the data break the promise the provable ε is ∞."
)
_PROVEN = (
    "{rule}: one node changes a hop by at most Δ = {delta:.4g} at a client of {nodes} nodes, in every graph{limit}; plain sums "
    "would need {plain:.4g}."
)


class NodeCapSettings(Settings):
    """Settings of every method of noisy hops at node level."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    hops: int = Field(2, ge=0, description="aggregations K")
    cap: Literal["auto", "log", "limit", "promised"] = Field(
        "auto", description="what bounds a node's share of a hop; auto: log where noise is provable, promised where published"
    )
    knee: ClassVar[int] = 1  # degree up to which the log cap weighs every edge 1
    limit: int | None = Field(None, ge=1, description="neighbours that the platform allows (cap: limit)")
    typical: ClassVar[int] = 10  # public guess of a degree, by which the rule under a limit is chosen
    degree: int = Field(10, ge=1, description="promised maximum degree D, to which neighbourhoods are cut (cap: promised)")
    formula: Literal["code", "slides"] = Field(
        "code",
        description="noise as published: one multiplier for all stages (as released), or one standard deviation (slides)",
    )
    hop_share: float = Field(0.3, gt=0, lt=1, description="share of the squared loss spent on hops (provable reading)")
    clip: float = Field(0.5, gt=0, description="norm to which a node's gradient is clipped")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="Poisson rate of a step's nodes; 1: all of them")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @model_validator(mode="after")
    def _limit_has_its_number(self) -> Self:
        if (self.cap == "limit") != (self.limit is not None):
            raise ValueError("cap: limit and its number belong together, e.g. {cap: limit, limit: 1000}; give both or none")
        return self

    @property
    def protects(self) -> privacy.Relation:
        return privacy.Relation(self.relation)


_P = TypeVar("_P", bound=NodeCapSettings)
_M = TypeVar("_M")


@dataclass(frozen=True)
class NodeCaps:
    """The rule of each client, or one promised degree."""

    proven: tuple[privacy.PricedDegreeCap, ...]  # the rule of each client, from its number of nodes; empty under a promise
    promised: int | None  # maximum degree D that the data promise, or None
    limit: int | None  # number of neighbours that the platform enforces, or None
    assumptions: tuple[privacy.Assumption, ...]
    notes: tuple[str, ...]  # sentences for the report

    def sensitivities(self, params: NodeCapSettings) -> tuple[float, ...]:
        """Δ₂ of one hop of each client, without the row of the node itself; one number under a promise."""
        if self.promised is not None:
            return (privacy.neighbour_sums.sensitivity(params.protects, self.promised, rows_released=False),)
        return tuple(cap.sensitivity_l2(params.protects.replaces) for cap in self.proven)

    def terms(self, client: int) -> int:
        """The largest number of vectors of norm at most 1 that a row adds up."""
        return self.promised or max(1, self.proven[client].num_nodes - 1)

    def weights(self, adjacency: sp.csr_array, ids: np.ndarray, client: int | None = None) -> sp.csr_array:
        """The weights of edges in a hop. client: None for a public graph, which gets the rule of the largest client."""
        if self.promised is not None:
            return learning.neighbour_limits.at_most(adjacency, self.promised, ids, NODE_CAP_COIN)
        if client is not None and self.limit is not None:
            learning.neighbour_limits.require(adjacency, self.limit, ids)
        largest = max(self.proven, key=lambda cap: cap.num_nodes)
        return edge_weights(adjacency, largest if client is None else self.proven[client])


def edge_weights(adjacency: sp.csr_array, cap: privacy.PricedDegreeCap) -> sp.csr_array:
    """The weights of edges by ``cap``; a public graph may have more nodes than the cap was made for."""
    beyond = max(0, adjacency.shape[0] - cap.factors.size)
    return learning.neighbour_limits.log_weights(adjacency, np.concatenate([cap.factors, np.full(beyond, cap.factors[-1])]))


def _caps_of(params: NodeCapSettings, facts: base.PublicFacts, budget: base.Budget) -> NodeCaps:
    published = budget.private and budget.calibrated_by == "published"
    kind = params.cap if params.cap != "auto" else "promised" if published else "log"
    if not params.hops:
        return NodeCaps((), 1, None, (), ())
    if kind == "promised":
        note = _CLAIMED.format(degree=params.degree)
        return NodeCaps(
            (), params.degree, None, (privacy.Assumption.PROMISED_DEGREE, privacy.Assumption.ROWS_NEVER_RELEASED), (note,)
        )
    limit, knee = params.limit, params.knee
    if limit is None:
        caps = tuple(privacy.neighbour_sums.priced_log_cap(n, knee) for n in facts.clients)
    else:
        caps = tuple(privacy.neighbour_sums.priced_limited_cap(n, limit, params.typical, knee) for n in facts.clients)
    largest = max(caps, key=lambda cap: cap.num_nodes)
    falling = f"Log cap (edges weigh 1 up to degree {largest.knee}, 0 from {largest.silent} on)"
    note = _PROVEN.format(
        rule="Plain sums" if largest.silent is None else falling,
        delta=largest.sensitivity_l2(params.protects.replaces),
        nodes=largest.num_nodes,
        limit="" if limit is None else f" that keeps the limit of {limit}",
        plain=privacy.PricedDegreeCap(largest.num_nodes).sensitivity_l2(params.protects.replaces),
    )
    assumed = (privacy.Assumption.DEGREE_LIMIT_ENFORCED,) if limit is not None else ()
    return NodeCaps(caps, None, limit, (*assumed, privacy.Assumption.ROWS_NEVER_RELEASED), (note,))


def aggregate_capped_rows(weights: sp.csr_array, rows: np.ndarray) -> np.ndarray:
    """[n, h], the sums of a hop before noise; rows have norm at most 1. Weights of a cut graph are float32, 0 or 1."""
    if weights.dtype == np.float32:
        return learning.aggregate_hop(weights, rows)
    return learning.aggregate_weighted_neighbours(weights, learning.scale_to_unit_length(rows))


class Descends(Protocol):
    @property
    def learning_rate(self) -> float: ...
    @property
    def momentum(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def averaged(self) -> float: ...


def descent_of(params: Descends) -> learning.Descent:
    """Heavy-ball descent along noisy mean gradients, at the server."""
    return learning.Descent(params.learning_rate, params.momentum, params.steps, params.averaged)


def directions_of(projection: int, facts: base.PublicFacts) -> tuple[np.ndarray | None, int]:
    """(public directions [d, k] of features, or None for all columns; the number of columns of rows)."""
    known = facts.public_graph
    basis = learning.projection.basis_of(known, projection) if projection and known is not None else None
    return basis, facts.num_features if basis is None else basis.shape[1]


def rows_of(graph: Graph, basis: np.ndarray | None) -> learning.FeatureMatrix:
    """Unit feature rows, or their coordinates along public directions."""
    if basis is None:
        return learning.FeatureMatrix(learning.unit_matrix_rows(graph.features))
    return learning.ProjectedRows(learning.project_features(graph.features, basis))


def sparse_rows(graph: Graph, basis: np.ndarray | None) -> sp.csr_array:
    """``rows_of`` as CSR [n, k]."""
    if basis is None:
        return learning.unit_matrix_rows(graph.features)
    return sp.csr_array(learning.project_features(graph.features, basis))


@dataclass(frozen=True, eq=False)
class Work:
    """A client's rows and its bounded graph."""

    x: learning.FeatureMatrix  # its rows, as ``rows_of`` gives them
    labels: torch.Tensor  # int64 [n], −1: unknown
    adjacency: sp.csr_array  # weights of its edges (``NodeCaps.weights``)
    # a cache of noisy hops by ``key``; what is missing is made again
    hops: dict[str, learning.DenseMatrix] = field(default_factory=dict)


def prepare(caps: NodeCaps, basis: np.ndarray | None, subgraph: Subgraph) -> Work:
    """The work of the client that holds ``subgraph``."""
    graph = subgraph.graph
    adjacency = caps.weights(graph.adjacency, subgraph.nodes, subgraph.client)
    return Work(rows_of(graph, basis), torch.tensor(graph.labels, device=learning.torch_device()), adjacency)


def release_hop(
    desk: privacy.Desk, path: str, name: str, sums: np.ndarray, first: int, shown: dict[str, privacy.Released]
) -> np.ndarray:
    """float32 [n, h], one noisy hop with rows of unit length: released in round ``first``, and replayed in later ones.

    sums: float [n, h], the sums of the hop. shown: gets the release under ``name``; the client sends it only to an attack that
    reads all that is priced (``plan.watch.opened``).
    """
    if desk.round > first:
        return learning.scale_to_unit_length(desk.replay(path, sums))
    shown[name] = desk.release(path, sums)
    return learning.scale_to_unit_length(shown[name].value)


def key(streams: base.PlanStreams, *frozen: np.ndarray) -> str:
    """The name in ``Work.hops`` of the noisy hops that follow from these frozen parameters in this cell."""
    text = b"".join(np.ascontiguousarray(part).tobytes() for part in frozen)
    return hashlib.sha256(text + str((streams.root, streams.path[:-1])).encode()).hexdigest()


@dataclass(frozen=True)
class _Noise:
    """Mechanisms and prices of the releases."""

    gradient: tuple[privacy.NoiseMechanism, privacy.Event]
    hops: list[tuple[privacy.NoiseMechanism, privacy.Event]]  # one for each of ``NodeCaps.sensitivities``
    published: float | None = None  # the claimed ε, or None
    min_clients: int = 1  # clients that must finish a round


def _noise(params: NodeCapSettings, facts: base.PublicFacts, budget: base.Budget, capped: NodeCaps, total: int) -> _Noise:
    """The noise of ``total`` rounds of gradients and of all hops, which together cost at most the budget."""
    changes = capped.sensitivities(params)
    if not budget.private:
        return _Noise(base.PLAN_WITHOUT_NOISE, [base.PLAN_WITHOUT_NOISE] * len(changes))
    pipeline = privacy.aggregation_noise.NodeAggregation(total, params.sampling_rate, params.hops, params.protects.replaces)
    claimed = [params.degree**0.5] if capped.promised is not None else list(changes)  # √D whatever the relation
    reading, ratio = budget.calibrated_by, 1.0 if params.formula == "code" else max(claimed) / params.clip
    found = privacy.aggregation_noise.node_level(
        pipeline, params.hop_share, budget.epsilon, budget.delta, reading, ratio, params.formula
    )
    std, min_clients = base.gradient_std(found.gradient, params.clip, facts)
    stds = [found.hop * d for d in (claimed if reading == "published" else changes)]
    hops: list[tuple[privacy.NoiseMechanism, privacy.Event]] = []
    if params.hops:
        hops = [(privacy.GaussianNoise(s), privacy.Gaussian(s / d)) for s, d in zip(stds, changes, strict=True)]
    gradient = privacy.GaussianNoise(std), pipeline.gradient_event(found.gradient)
    return _Noise(gradient, hops, found.published, min_clients)


def plan_for(
    method: str,
    params: _P,
    facts: base.PublicFacts,
    budget: base.Budget,
    gradients: Mapping[str, range],
    hops: tuple[tuple[str, int, int], ...],
    kernel: str,
    make: Callable[[NodeCaps], _M],
    dispute: str,
) -> base.Plan[_P, _M]:
    """The plan of a method: noise of gradients and of hops, and every release.

    gradients: path → its rounds, each with one clipped sum. hops: (path, round, number of hops in it). kernel: of the sums.
    make: from the rule to what the method makes of it. dispute: a note for plans with hops. ``ScenarioError`` if there is no
    public test graph.
    """
    base.require_public_test_graph(method, facts)
    relation, total = params.protects, sum(map(len, gradients.values()))
    capped = _caps_of(params, facts, budget)
    noise = _noise(params, facts, budget, capped, total)
    clipped = privacy.ClippedSum(params.clip, facts.num_nodes, kernel)
    releases = [
        privacy.PlannedRelease(path, clipped, *noise.gradient, rounds) for path, rounds in gradients.items() if len(rounds)
    ]
    promised = capped.promised is not None
    for client, (mechanism, event) in enumerate(noise.hops if params.hops else ()):
        sums = privacy.NeighbourSums(capped.terms(client), None if promised else capped.proven[client])
        whose = None if promised else client
        releases += [
            privacy.PlannedRelease(path, sums, mechanism, event, range(at, at + 1), per_round=count, client=whose)
            for path, at, count in hops
        ]
    assumed = (*base.FACTS_TESTED_IN_PUBLIC, *capped.assumptions)
    degree = capped.promised if params.hops else None
    notes = (*capped.notes, dispute) if params.hops else ()
    guarantee = base.guarantee_from_public_facts(
        facts, relation, assumed, budget.delta, per_end=False, promised=degree, limit=capped.limit
    )
    schedule = base.PlanSchedule(total, tuple(releases), noise.min_clients)
    return base.Plan(
        method, params, facts, guarantee, schedule, make(capped), noise.published, base.PlanSums(suffice=True), notes=notes
    )
