"""What methods of noisy hops at edge level share: K noisy sums over neighbours, each released once.

In each round the server broadcasts the rows of all nodes (public, or computed from what was released). A client scales rows to
length at most 1, adds up those of its nodes' neighbours and sends the sums with noise. A method says how rows are made, and
what is learnt from the sums.

**Who sees what.** The server sees every message (behind secure aggregation their sum), clients see each broadcast. An edge
inside a client changes two rows of its message. An edge between clients is dropped, or (``cut_edges: protected``) known to both
clients: it changes one row of each message, Δ = 1 at each end, and both ends together cost as much as an inner edge, 1² + 1² =
√2² (``privacy.settle``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph


class NoisyHopSettings(Settings):
    """Settings that every method of noisy hops at edge level has."""

    relation: Literal["edge-undirected", "edge-directed"] = Field("edge-undirected", description="neighbouring relation")
    hops: int = Field(2, ge=0, description="aggregations K")
    formula: Literal["slides", "code"] = Field("code", description="published ε: closed-form bound (slides), or exact (code)")

    @property
    def protects(self) -> privacy.Relation:
        return privacy.Relation(self.relation)


class _Asked(Protocol):
    @property
    def hops(self) -> int: ...
    @property
    def formula(self) -> Literal["slides", "code"]: ...
    @property
    def protects(self) -> privacy.Relation: ...
    def model_dump_json(self) -> str: ...


_P = TypeVar("_P", bound=_Asked)


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    attributes: Graph  # every node's public features and labels
    new_nodes: bool  # whether predictions are for nodes of a public graph, and not for those that trained


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    adjacency: sp.csr_array  # CSR [n_i, n_i] over its own rows, or [n_i, num_nodes] where cut edges are shared
    nodes: np.ndarray  # int64 [n_i], global ids of its rows


class _Memory(Protocol):
    """What the server of every such method remembers."""

    @property
    def sent(self) -> Sequence[np.ndarray]: ...  # the rows before each hop and after the last one, float32 [n, h]
    @property
    def sums(self) -> Sequence[np.ndarray]: ...  # the noisy sums that came back, [n, h] each


def plan_for(
    method: str, params: _P, facts: base.PublicFacts, budget: base.Budget, notes: tuple[str, ...] = (), code: str = "code"
) -> base.Plan[_P, Made]:
    """The plan of a method: every hop, its noise for Δ₂ = √2 of an undirected edge (published: Δ = 1).

    code: the formula of ``aggregation_noise`` for ``formula: code``. ``ScenarioError`` if features or labels are not public, or
    two clients share a directed edge.
    """
    if facts.public_attributes is None:
        raise ScenarioError(
            f"{method} needs public features and labels: set the task's protocol: transductive, or inductive-edges"
        )
    if facts.cut_edges_shared and params.protects is not privacy.Relation.EDGE_UNDIRECTED:
        raise ScenarioError("edges between clients change a row at either end: relation edge-undirected, or cut_edges: dropped")
    assumed = (
        *base.FACTS_ATTRIBUTES_PUBLIC,
        *((privacy.Assumption.TEST_GRAPH_PUBLIC,) if facts.public_graph is not None else ()),
    )
    mechanism, event = base.PLAN_WITHOUT_NOISE
    published, min_clients = None, 1
    if budget.private and params.hops:
        delta2 = privacy.neighbour_sums.sensitivity(params.protects)
        how = (budget.epsilon, budget.delta, budget.calibrated_by, code if params.formula == "code" else params.formula)
        noise = privacy.aggregation_noise.edge_level(params.hops, delta2, *how)
        std, min_clients = base.gradient_std(1.0, noise.std, facts)
        at_one_end = privacy.neighbour_sums.NEIGHBOUR_SUM_END if facts.cut_edges_shared else delta2
        mechanism, event, published = privacy.GaussianNoise(std), privacy.Gaussian(noise.std / at_one_end), noise.published
    release = privacy.PlannedRelease("aggregate", privacy.NeighbourSums(facts.num_nodes), mechanism, event, range(params.hops))
    per_end = facts.cut_edges_shared
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=per_end)
    # the state before the first hop follows from public data: all budgets share it
    key, releases = params.model_dump_json(), (release,) if params.hops else ()
    schedule = base.PlanSchedule(params.hops, releases, min_clients, shared_key=key)
    made = Made(facts.public_attributes, facts.public_graph is not None)
    # behind secure aggregation each client's rows have their places in one matrix: a union of clients sends the sum of theirs
    # (not so if edges between clients are shared)
    sums = base.PlanSums(additive=facts.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION and not per_end)
    return base.Plan(method, params, facts, guarantee, schedule, made, published, sums, notes=notes)


def prepare(plan: base.Plan[_Asked, object], subgraph: Subgraph) -> Work:
    """The client's edges, with those to other clients if both ends know them."""
    adjacency = subgraph.graph.adjacency
    if plan.params.protects is privacy.Relation.EDGE_UNDIRECTED:
        learning.aggregation.require_simple(adjacency)
    if plan.facts.cut_edges_shared and subgraph.cut is not None:
        adjacency = learning.aggregation.with_cut(adjacency, subgraph.nodes, subgraph.cut, plan.facts.num_nodes)
    return Work(adjacency, subgraph.nodes)


def client(
    plan: base.Plan[_Asked, object], work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """One noisy hop over this client's edges (behind secure aggregation with a row for every node)."""
    return {"aggregate": desk.release("aggregate", lambda: own_sums(plan, work.adjacency, work.nodes, model["rows"]))}


def own_sums(plan: base.Plan, adjacency: sp.csr_array, nodes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The sums over neighbours of a client's nodes, before noise, placed by ``send_rows``.

    adjacency, nodes: as in ``Work``. rows: float [num_nodes, h], the broadcast rows.
    """
    everywhere = adjacency.shape[1] == plan.facts.num_nodes
    return send_rows(plan, nodes, learning.aggregation.aggregate_hop(adjacency, rows if everywhere else rows[nodes]))


def send_rows(plan: base.Plan, nodes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A client's rows, float [n_i, h], as it sends them; behind secure aggregation each at its node's place among all nodes,
    float [num_nodes, h]. nodes: int64 [n_i], their global ids.
    """
    if plan.facts.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
        return learning.aggregation.place_aggregated_rows([rows], [nodes], plan.facts.num_nodes)
    return rows


def receive(plan: base.Plan, inbox: base.PlanInbox, part: str = "aggregate") -> np.ndarray:
    """[num_nodes, h], the rows that clients sent by ``send_rows`` as ``part`` of their messages, each at its node's place."""
    parts, facts = inbox.each.get(part), plan.facts
    if not parts:
        return inbox.sums[part]
    return learning.aggregation.place_aggregated_rows(parts, facts.members, facts.num_nodes)


def evidence(plan: base.Plan[_Asked, object], state: base.State[_Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray:
    """float64 [m]: for each pair [m, 2] the log-likelihood ratio of all released sums, with against without the edge, times s².

    Given the broadcast rows, a sum is Gaussian around that of the known neighbours, or around that plus the other end's row.
    """
    ends = [pairs] if plan.params.protects is privacy.Relation.EDGE_DIRECTED else [pairs, pairs[:, ::-1]]
    ratios = np.zeros(len(pairs))
    for rows, sums in zip(state.memory.sent, state.memory.sums, strict=False):
        beyond = sums.astype(np.float64) - learning.aggregation.aggregate_hop(graph.adjacency, rows)
        added = learning.aggregation.scale_to_unit_length(rows)
        for one, other in (e.T for e in ends):
            ratios += (beyond[one] * added[other]).sum(axis=1) - np.square(added[other]).sum(axis=1) / 2
    return ratios
