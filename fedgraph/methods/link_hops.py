"""Links from noisy hops: sums over neighbours are released with noise, and pairs are scored by what the released rows say of
them.

Rows of hop 0 are public: directions of public features, and random signs (so that a sum over neighbours is a sketch of the
adjacency matrix, and inner products of two sketches count shared neighbours). Round k: the server broadcasts unit rows, a
client adds up those of its nodes' neighbours and sends the sums with noise, as GAP does (Sajadmanesh et al. 2023). In the last
round each client releases, with noise, how many *supervision* edges it has and the sum of what the released rows say of them.
The server turns that into Fisher's discriminant against random pairs, which cost nothing: they are drawn without looking at any
edge.

Public coins split all pairs of nodes: edges of some pairs are summed over in hops, those of the others supervise, because an
edge that is in a hop looks more alike than an edge that is not.

**Guarantee.** Edge level, for one undirected edge more or less (or one direction of it); features and who exists are public. An
edge changes two rows of each hop by at most one unit row: Δ₂ = √2 (``neighbour_sums``). It is one row of the last sum: Δ₂ =
``LONGEST`` and the 1 that counts it (``EdgeRows``). Hops and last sum are composed, although the coins put each edge in only
one of them: the price is an upper bound. A score is computed from released values, so any pair may be asked, and answers may be
shown.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph.documents.settings import Settings
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.learning import links
from fedgraph.learning.propagation.aggregation import hop, placed, require_simple, with_cut
from fedgraph.methods import base
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Event, Gaussian, Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, Mechanism
from fedgraph.privacy.neighbour_sums import NeighbourSums
from fedgraph.privacy.sensitivity import EdgeRows
from fedgraph.privacy.units import Assumption, Relation, Unit, Viewer
from fedgraph.types import Subgraph

REFERENCE = base.bibtex("sajadmanesh2023gap")

CLIP = math.hypot(1.0, links.LONGEST)  # the row of one edge: a 1 that counts it, and what is known of it
RANDOM = 20_000  # random pairs that stand for pairs without an edge


class Params(Settings):
    """Settings of ``link_hops``."""

    hops: int = Field(1, ge=0, le=4, description="sums over neighbours K; 0: features alone")
    rows: Literal["auto", "features", "random", "both"] = Field(
        "auto", description="what is summed: features, random signs, or both; auto: features where there are any, else random"
    )
    width: int = Field(128, ge=1, description="columns of each of them, at most")
    supervision: float = Field(0.25, gt=0, lt=1, description="share of all pairs whose edges teach the discriminant")
    supervision_share: float = Field(0.15, gt=0, lt=1, description="share of the squared loss that the discriminant takes")

    @model_validator(mode="after")
    def _knows_something(self) -> "Params":
        if self.hops == 0 and self.rows == "random":
            raise ValueError("hops: 0 reads features alone, and rows: random has none; write rows: features, or hops: 1")
        return self


@dataclass(frozen=True, eq=False)
class Made:
    """public: float32 [n, w], hop 0. split: columns of features. key: of the public coins and the random pairs."""

    public: np.ndarray
    split: int
    key: int


@dataclass(frozen=True, eq=False)
class Work:
    """A client's edges. adjacency: CSR of those that are summed over, [n_i, n_i], or [n_i, num_nodes] with those that leave it.

    supervision: int64 [m, 2], global ids of those that supervise. shares: float64 [m], how much of each this client counts.
    """

    adjacency: sp.csr_array
    supervision: np.ndarray
    shares: np.ndarray
    nodes: np.ndarray


@dataclass(frozen=True, eq=False)
class Memory:
    """direction: float64 [d], of the discriminant, once it is there."""

    direction: np.ndarray | None = None


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Every hop and the discriminant, priced."""
    attributes = facts.public.attributes
    if attributes is None:
        raise ScenarioError("link_hops needs public features: use it in task: link_prediction")
    key = facts.sizes.num_nodes
    features = links.public_rows(attributes.features, params.width, key)
    split = 0 if params.rows == "random" else features.shape[1]
    parts = [features] if split else []
    if params.hops and (params.rows in ("random", "both") or not split):
        parts.append(links.random_rows(facts.sizes.num_nodes, params.width, key))
    if not parts:
        raise ScenarioError("link_hops with hops: 0 reads features, and these data have none: write hops: 1 or more")
    noise: tuple[tuple[Mechanism, Event], ...] = ((Disclose("no noise was asked for"), Unprotected("no noise")),) * 2
    min_clients = 1
    relation, per_end = Relation.EDGE_UNDIRECTED, facts.membership.cut_edges_shared
    ends = math.sqrt(2) if per_end else 1.0
    if budget.private:
        whole = calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
        share = params.supervision_share if params.hops else 1.0
        hop_multiplier = whole * math.sqrt(params.hops / (1 - share)) if params.hops else math.inf
        sum_multiplier = whole / math.sqrt(share)
        delta2 = neighbour_sums.sensitivity(relation)
        sum_std, min_clients = base.gradient_std(sum_multiplier, CLIP, facts)
        noise = ((GaussianNoise(sum_std), Gaussian(ends * sum_multiplier)),) * 2
        if params.hops:
            hop_std = base.gradient_std(hop_multiplier, delta2, facts)[0]
            noise = ((GaussianNoise(hop_std), Gaussian(ends * hop_multiplier)), noise[1])
    n, rounds = facts.sizes.num_nodes, params.hops
    releases = (PlannedRelease("aggregate", NeighbourSums(n), *noise[0], range(rounds)),) if rounds else ()
    last = PlannedRelease("supervision", EdgeRows(CLIP, max(1, n * (n - 1) // 2)), *noise[1], range(rounds, rounds + 1))
    assumed = (
        Assumption.COUNTS_PUBLIC, Assumption.FEATURES_LABELS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC,
    )  # fmt: skip
    return base.Plan(
        method="link_hops",
        params=params,
        facts=facts,
        guarantee=base.guarantee_of(facts, relation, assumed, budget.delta, per_end=per_end),
        schedule=base.Schedule(rounds=rounds + 1, releases=(*releases, last), min_clients=min_clients),
        made=Made(np.concatenate(parts, axis=1), split, key),
    )


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return _broadcast(plan, plan.made.public)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    """The client's edges by the public coins of their pairs; of an edge to another client's node it counts one half."""
    require_simple(subgraph.graph.adjacency)
    nodes, own = subgraph.nodes, links.edges_of(subgraph.graph.adjacency)
    inner, away = links.known_pairs(subgraph)
    everything = not plan.params.hops
    teach, teach_away = (everything | (links.pair_coins(p, plan.made.key) < plan.params.supervision) for p in (inner, away))
    adjacency = links.adjacency_of(own[~teach], nodes.size)
    if subgraph.cut is not None:
        adjacency = with_cut(adjacency, nodes, subgraph.cut[~teach_away], plan.facts.sizes.num_nodes)
    supervision = np.concatenate([inner[teach], away[teach_away]])
    shares = np.concatenate([np.ones(int(teach.sum())), np.full(int(teach_away.sum()), 0.5)])
    return Work(adjacency, supervision, shares, nodes)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.Streams, desk: Desk) -> base.Sent:
    """One noisy hop over the client's edges (behind secure aggregation: on the rows of all nodes), or the last sum."""
    if round_ == plan.params.hops:
        return {"supervision": desk.release("supervision", lambda: _supervised(plan, work, model))}

    def aggregate() -> np.ndarray:
        rows, whole = model["rows"][:, -plan.made.public.shape[1] :], plan.facts.sizes.num_nodes
        sums = hop(work.adjacency, rows if work.adjacency.shape[1] == whole else rows[work.nodes])
        return placed([sums], [work.nodes], whole) if plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION else sums

    return {"aggregate": desk.release("aggregate", aggregate)}


def _supervised(plan: Planned, work: Work, model: base.Model) -> np.ndarray:
    """[m, 1 + d]: a 1 and what released rows say, of each supervision edge, times the share of it that the client counts."""
    known = _known(plan, model, work.supervision)
    return np.concatenate([np.ones((len(known), 1)), known], axis=1) * work.shares[:, None]


def _blocks(plan: Planned, rows: np.ndarray) -> links.Blocks:
    """rows: [n, (k + 1)·w], hop 0 and the k released ones beside each other."""
    return links.Blocks(tuple(np.split(rows, rows.shape[1] // plan.made.public.shape[1], axis=1)), plan.made.split)


def _known(plan: Planned, model: base.Model, asked: np.ndarray) -> np.ndarray:
    """[m, d], what the rows of ``model`` say of pairs, on the scale of random pairs."""
    return links.Scale(model["centre"], model["spread"]).apply(_blocks(plan, model["rows"]).known_of(asked))


def _random(plan: Planned) -> np.ndarray:
    return links.random_pairs(plan.facts.sizes.num_nodes, RANDOM, np.random.default_rng(plan.made.key))


def _broadcast(plan: Planned, rows: np.ndarray) -> base.State[Memory]:
    """All rows so far, and how random pairs look in them."""
    scale = links.Scale.of_random(_blocks(plan, rows).known_of(_random(plan)))
    return base.State({"rows": rows, "centre": scale.centre, "spread": scale.spread}, Memory())


def server(plan: Planned, state: base.State[Memory], inbox: base.Inbox) -> base.State[Memory]:
    """Keep the noisy hop and broadcast it; or, in the last round, find the discriminant."""
    if inbox.round < plan.params.hops:
        parts = inbox.each.get("aggregate")
        sums = placed(parts, plan.facts.membership.nodes, plan.facts.sizes.num_nodes) if parts else inbox.sums["aggregate"]
        return _broadcast(plan, np.concatenate([state.model["rows"], sums], axis=1).astype(np.float32))
    each = inbox.each.get("supervision")
    total = np.sum(each, axis=0) if each else inbox.sums["supervision"]
    return base.State(state.model, Memory(links.fisher_direction(_known(plan, state.model, _random(plan)), np.asarray(total))))


def scores(plan: Planned, state: base.State[Memory], pairs: np.ndarray) -> np.ndarray:
    """float64 [m], the discriminant of each pair: computed from released values alone."""
    if state.memory.direction is None:
        raise RuntimeFailure("link_hops was asked for scores before its last round")
    return np.asarray(_known(plan, state.model, pairs) @ state.memory.direction)


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    kind="linker",
    reads=lambda plan: base.Reads.NOTHING,
    units=(Unit.EDGE,),
    drafts=(base.Draft("links", "edge", {"label": "noisy hops"}, "noisy sums over neighbours; one edge is private"),),
    situations=(base.Situation("links"), base.Situation("links", settings={"hops": 0, "rows": "features"})),
)
