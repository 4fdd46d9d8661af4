"""Links where all edges of a person are private: one noisy sum over edges, in which nobody counts more than D times.

A pair is described by public columns: the cosine of its ends' features, and the products of their coordinates along a few
directions of the features, each in units of random pairs and mapped to 0 … 1. Every client adds these up over its edges, with a
1 that counts them, and sends the sum with noise. The server turns it into Fisher's discriminant against random pairs, which are
drawn without looking at any edge and cost nothing.

**Guarantee.** ``unit: node``: all edges of one node. ``unit: entity``: all records in which one owner has a part; an edge may
have several owners, and an owner may have edges of many nodes. Who exists, features and (entity level) the numbers of owners
are public. Each column of the sum is the largest weighted sum in which nobody counts more than D times, so one person changes
it by at most D, whatever the graph is and however many owners a record has: Δ₂ = D·√columns (proof: ``private_counts``).
A node is at one client. An owner may have edges at all clients, so at entity level the noise of each client hides what all of
them together tell of one owner: √clients times the noise if messages are seen, clients times if sums are. Scores are computed
from the released sum and public features, so any pair may be asked, and answers may be shown.

**Why one sum and no steps.** These sums are the sufficient statistic of a log-linear model of pairs, so T steps of descent over
the same pairs would pay √T times for what one release tells. Entity-level clipping (Huang et al. 2025, arXiv:2506.08347) bounds
a sum of gradients of coupled pairs in each step; here the statistic itself is bounded.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from pydantic import Field

from fedgraph import privacy
from fedgraph.documents import Settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import links
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("kasiviswanathan2013node")

_RANDOM = 20_000  # random pairs that stand for pairs without an edge
_COSINE = 128  # directions of features that the cosine reads
_SPREADS = 2.0  # standard deviations of random pairs, to either side, that a column covers


class Params(Settings):
    unit: Literal["node", "entity"] = Field("node", description="whose edges are private together: a node's, or an owner's")
    limit: int = Field(10, ge=1, description="D: edges that one person counts for at most; a public guess of twice the usual")
    learns: bool = Field(True, description="whether edges are read at all; false: public features alone, which costs nothing")
    width: int = Field(8, ge=0, description="directions of the features whose products are learnt from; 0: the cosine alone")


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts."""

    rows: np.ndarray  # float32 [n, ≤ 128], unit rows, for the cosine
    few: np.ndarray  # float32 [n, ≤ width], coordinates whose products are columns
    centre: np.ndarray  # float64 [d], mean of each column over random pairs
    spread: np.ndarray  # float64 [d], its standard deviation; 1 if it is constant
    key: int  # seed of the random pairs
    std: float  # standard deviation of the noise in the sum over all clients; 0: none

    def said_of(self, pairs: np.ndarray) -> np.ndarray:
        """float64 [m, d], the columns of pairs in 0 … 1."""
        return np.asarray(np.clip(0.5 + self.spreads_of(pairs) / (2 * _SPREADS), 0.0, 1.0))

    def spreads_of(self, pairs: np.ndarray) -> np.ndarray:
        """float64 [m, d], the columns in units of random pairs, without bounds."""
        return np.asarray((_raw(self.rows, self.few, pairs) - self.centre) / self.spread)

    def random(self) -> np.ndarray:
        """float64 [q, d], the columns of random pairs."""
        return self.said_of(_random(len(self.rows), self.key))


Planned: TypeAlias = base.Plan[Params, _Made]
_Memory: TypeAlias = np.ndarray | None  # float64 [d], the direction of the discriminant; None before the sum


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """The sum, priced. ``ScenarioError`` without public features, or with shared edges between clients."""
    attributes = facts.public_attributes
    if attributes is None or not attributes.num_features:
        raise ScenarioError("link_owners learns from public features, and there are none here: use it in task: link_prediction")
    n, entity = facts.num_nodes, params.unit == "entity"
    if facts.cut_edges_shared and params.learns:
        raise ScenarioError(
            "link_owners protects all ties of one person, and an edge between clients is a tie of people at both: with them a "
            "person would be at several clients, which nobody has priced. Write cut_edges: dropped, or method: link_hops"
        )
    rows = links.public_rows(attributes.features, _COSINE, n)
    few = links.public_rows(attributes.features, params.width, n)[:, : params.width] if params.width else rows[:, :0]
    scale = links.LinkScale.of_random(_raw(rows, few, _random(n, n)))
    bound = privacy.OwnedRows(params.limit, 1 + scale.centre.size)
    owned = privacy.Relation.ENTITY_LINKS if entity else privacy.Relation.NODE_LINKS
    relation = privacy.Relation.EDGE_UNDIRECTED if facts.cut_edges_shared else owned  # then no edge is read
    noise = base.PLAN_WITHOUT_NOISE
    min_clients, whole = 1, 0.0
    if budget.private:
        multiplier = privacy.calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
        # factor by which one owner changes what the viewer sees of all clients, against one client alone
        summed, clients = facts.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION, facts.num_clients
        holders = (float(clients) if summed else math.sqrt(clients)) if entity else 1.0
        change = bound.sensitivity_l2(owned) * holders
        std, min_clients = base.gradient_std(multiplier, change, facts)
        noise = (privacy.GaussianNoise(std), privacy.Gaussian(multiplier))
        whole = std * math.sqrt(facts.num_clients)
    releases = (privacy.PlannedRelease("sum", bound, *noise, range(1)),) if params.learns else ()
    assumed = base.FACTS_ATTRIBUTES_PUBLIC
    made = _Made(rows, few, scale.centre, scale.spread, n, whole)
    guarantee = base.guarantee_from_public_facts(facts, relation, assumed, budget.delta, per_end=False)
    schedule = base.PlanSchedule(1, releases, min_clients=min_clients)
    return base.Plan("link_owners", params, facts, guarantee, schedule, made)


def _raw(rows: np.ndarray, few: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """float64 [m, 1 + width]: cosine, and products of coordinates."""
    one, two = pairs[:, 0], pairs[:, 1]
    cosine = np.einsum("ij,ij->i", rows[one], rows[two])[:, None]
    return np.concatenate([cosine, few[one] * few[two]], axis=1).astype(np.float64)


def _random(num_nodes: int, key: int) -> np.ndarray:
    return links.draw_pairs(num_nodes, _RANDOM, np.random.default_rng(key))


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    cosine = np.eye(1, plan.made.centre.size).ravel()
    return base.State({}, None if plan.params.learns else cosine)


def prepare(plan: Planned, subgraph: Subgraph) -> np.ndarray:
    """float64 [m, 1 + d + k], the client's edges, or at entity level its records: a 1, their columns, and their owners."""
    entity = plan.params.unit == "entity"
    own, owners = _records_of(subgraph.graph) if entity else (links.list_all(subgraph.graph.adjacency), None)
    ids = subgraph.nodes[own] if len(own) else own
    owners = ids if owners is None else owners
    if not subgraph.graph.edge_owners and entity:
        raise DataError(f"{subgraph.graph.name}: no edge names an owner")
    return np.concatenate([np.ones((len(own), 1)), plan.made.said_of(ids), owners], axis=1)


def owners_of(graph: Graph, pairs: np.ndarray) -> np.ndarray:
    """int64 [m, k], the owners of the edges ``pairs``; −1: no further one. k is 0 if the data name no owners."""
    if not graph.edge_owners or not len(pairs):
        return np.zeros((len(pairs), len(graph.edge_owners)), dtype=np.int64)
    columns = [np.asarray(owners[pairs[:, 0], pairs[:, 1]]).ravel().astype(np.int64) - 1 for owners in graph.edge_owners]
    return np.stack(columns, axis=1)


def _records_of(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """(int64 [r, 2], the edge of each record; int64 [r, k], its owners). A record is an edge with all its owners.

    If each owner has a record of its own (``Graph.one_owner_a_record``), there is a record for each owner of an edge. Without
    an owner's records the edge, and the records of its other owners, remain.
    """
    pairs = links.list_all(graph.adjacency)
    owners = owners_of(graph, pairs)
    if not graph.one_owner_a_record:
        return pairs, owners
    records, place = np.nonzero(owners >= 0)
    return pairs[records], owners[records, place][:, None]


def client(
    plan: Planned, work: np.ndarray, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The noisy sum over the client's edges."""
    return {"sum": desk.release("sum", work)} if plan.params.learns else {}


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """Finds the discriminant of all clients' sums against random pairs."""
    if not plan.params.learns:
        return state
    return base.State({}, links.fit_direction(plan.made.random(), inbox.sums["sum"], plan.made.std))


def scores(plan: Planned, state: base.State[_Memory], pairs: np.ndarray) -> np.ndarray:
    """float64 [m], the discriminant of each pair, of columns under arsinh, from the released sum and public features."""
    return np.asarray(np.arcsinh(plan.made.spreads_of(pairs)) @ base.require_received(plan, state.memory))


OFFERS: base.Offers[Params, _Made, np.ndarray, _Memory] = base.Offers(
    kind="linker",
    reads=lambda plan: base.MethodReads.NOTHING,
    units=(privacy.Unit.NODE, privacy.Unit.ENTITY),
    situations=(base.MethodSituation("links"), base.MethodSituation("links", settings={"limit": 3, "width": 2})),
)
