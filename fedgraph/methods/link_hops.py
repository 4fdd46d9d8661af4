"""Links from noisy hops: noisy sums over neighbours are released, and pairs are scored by the released rows of their ends.

Rows of hop 0 are public: directions of public features, and random signs (a sum of these over neighbours is a sketch of the
adjacency matrix, and inner products of two sketches count shared neighbours). In each round the server broadcasts unit rows,
and clients release noisy sums over neighbours, as in GAP (Sajadmanesh et al. 2023). Then *supervision* edges teach how to score
a pair from the released rows of its ends:

    decoder: sum      one round: the number of these edges, and the sum of the columns that describe them. The server turns it
                      into Fisher's discriminant against random pairs
    decoder: steps    DP-SGD on pairs: in each step a secret coin draws each edge, and the sum of the drawn edges' clipped
                      gradients is released (``learning.pair_scorer``). With ``hops: 0`` these are the only releases

Random pairs stand for pairs without an edge. They are drawn from ids alone, so they cost nothing.

Public coins split all pairs of nodes: edges of some pairs are summed in hops, edges of the others supervise, because the ends
of an edge in a hop are more similar than those of an edge outside.

**Guarantee.** Edge level, for one undirected edge more or less (or one direction of it); features and who exists are public. An
edge changes two rows of each hop by at most one unit row: Δ₂ = √2 (``neighbour_sums``). It is one row of the last sum, of
length √(1 + ``LINK_ROW_LENGTH``²) (``EdgeRows``), or one row of a step if its coin draws it, Δ₂ = 1 (``EdgeClippedSum``, a
Gaussian with Poisson sampling). Hops and supervision are composed, although each edge is in only one of them: the price is an
upper bound. An edge between clients counts half at each client in a sum; in steps only one client draws it. Scores are computed
from released values, so any pair may be asked, and answers may be shown.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph import learning, privacy, seeds
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import links, pair_scorer, scale_to_unit_length
from fedgraph.methods import base
from fedgraph.methods.base import noisy_hops
from fedgraph.types import Subgraph

REFERENCE = base.method_bibtex("sajadmanesh2023gap", "huang2025relational")

_CLIP = math.hypot(1.0, links.LINK_ROW_LENGTH)  # length of an edge's row: a 1 that counts it, and its columns
_BLOCK = 200_000  # pairs in memory at once
_RANDOM = 20_000  # random pairs that stand for pairs without an edge


class Params(Settings):
    hops: int = Field(1, ge=0, le=4, description="sums over neighbours K; 0: features alone")
    rows: Literal["auto", "features", "random", "both"] = Field(
        "auto", description="what is summed: features, random signs, or both; auto: features where there are any, else random"
    )
    width: int = Field(128, ge=1, description="columns of each of them, at most")
    decoder: Literal["sum", "steps"] = Field(
        "sum", description="how supervision edges teach: by one noisy sum (a discriminant), or by DP-SGD on pairs"
    )
    supervision: ClassVar[float] = 0.25  # share of all pairs whose edges teach the decoder
    supervision_share: ClassVar[float] = 0.15  # share of the squared loss that the decoder takes
    steps: int = Field(100, ge=1, description="of decoder: steps, noisy sums of gradients T")
    sampling_rate: float = Field(0.1, gt=0, le=1, description="of decoder: steps, probability that an edge is drawn in one")

    @model_validator(mode="after")
    def _knows_something(self) -> "Params":
        if self.hops == 0 and self.rows == "random":
            raise ValueError("hops: 0 reads features alone, and rows: random has none; write rows: features, or hops: 1")
        return self


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts."""

    public: np.ndarray  # float32 [n, w], hop 0
    split: int  # number of its columns that are features; the others are random signs
    key: int  # seed of the public coins and the random pairs
    std: float  # standard deviation of the noise in the sum, over all clients, that teaches the decoder; 0: none


@dataclass(frozen=True, eq=False)
class _Work:
    """A client's edges."""

    adjacency: sp.csr_array  # CSR of the edges in hops, [n_i, n_i], or [n_i, num_nodes] with edges to other clients
    supervision: np.ndarray  # int64 [m, 2], global ids of the edges that supervise
    shares: np.ndarray  # float64 [m], the weight of each at this client
    nodes: np.ndarray  # int64 [n_i], global ids of its nodes


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the server remembers."""

    direction: np.ndarray | None = None  # float64 [d], of the discriminant; None before the sum
    learnt: pair_scorer.PairScorerState | None = None  # of DP-SGD; None before its first step


Planned: TypeAlias = base.Plan[Params, _Made]
_Priced: TypeAlias = tuple[privacy.NoiseMechanism, privacy.Event]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Every hop and what teaches the decoder, priced. ``ScenarioError`` without public features or for misfits of settings."""
    attributes = facts.public_attributes
    if attributes is None:
        raise ScenarioError("link_hops needs public features: use it in task: link_prediction")
    key = facts.num_nodes
    features = links.public_rows(attributes.features, params.width, key)
    split = 0 if params.rows == "random" else features.shape[1]
    parts = [features] if split else []
    if params.hops and (params.rows in ("random", "both") or not split):
        parts.append(_random_rows(facts.num_nodes, params.width, key))
    if not parts:
        raise ScenarioError("link_hops with hops: 0 reads features, and these data have none: write hops: 1 or more")
    n, rounds, relation = facts.num_nodes, params.hops, privacy.Relation.EDGE_UNDIRECTED
    per_end = facts.cut_edges_shared and params.decoder == "sum"
    if facts.cut_edges_shared and params.decoder == "steps" and params.hops:
        raise ScenarioError("hops read an edge at both clients, decoder: steps at one: write cut_edges: dropped, or hops: 0")
    hops, teaching, min_clients = _noise(params, facts, budget)
    releases = (privacy.PlannedRelease("aggregate", privacy.NeighbourSums(n), *hops, range(rounds)),) if rounds else ()
    last = range(rounds, rounds + (1 if params.decoder == "sum" else params.steps))
    most = max(1, n * (n - 1) // 2)
    bound: privacy.SensitivityBound = privacy.EdgeRows(_CLIP, most)
    if params.decoder == "steps":
        bound = privacy.EdgeClippedSum(1.0, most, privacy.sensitivity.kernel_name(pair_scorer.clipped_sum))
    supervision = privacy.PlannedRelease("supervision", bound, *teaching, last)
    whole = teaching[0].std * math.sqrt(facts.num_clients) if isinstance(teaching[0], privacy.GaussianNoise) else 0.0
    assumed = base.FACTS_ATTRIBUTES_PUBLIC
    made = _Made(np.concatenate(parts, axis=1), split, key, whole)
    guarantee = base.guarantee_from_public_facts(facts, relation, assumed, budget.delta, per_end=per_end)
    schedule = base.PlanSchedule(last.stop, (*releases, supervision), min_clients)
    return base.Plan("link_hops", params, facts, guarantee, schedule, made)


def _noise(params: Params, facts: base.PublicFacts, budget: base.Budget) -> tuple[_Priced, _Priced, int]:
    """(noise of a hop, noise of what teaches the decoder, clients that must finish). Events price one end of shared edges."""
    if not budget.private:
        return base.PLAN_WITHOUT_NOISE, base.PLAN_WITHOUT_NOISE, 1
    whole = privacy.calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    share = params.supervision_share if params.hops else 1.0
    of_hop = whole * math.sqrt(params.hops / (1 - share)) if params.hops else math.inf
    of_last = whole / math.sqrt(share)
    change = _CLIP
    ends = math.sqrt(2) if facts.cut_edges_shared else 1.0
    hop_event, last_event = privacy.Gaussian(ends * of_hop), cast(privacy.Event, privacy.Gaussian(ends * of_last))
    if params.decoder == "steps":

        def step(multiplier: float) -> privacy.Event:
            return privacy.PoissonGaussian(multiplier, params.sampling_rate, touched_rows=1, replaced=False)

        def everything(multiplier: float) -> privacy.Event:
            return privacy.Composed(
                (privacy.Repeated(hop_event, params.hops), privacy.Repeated(step(multiplier), params.steps))
            )

        of_last, change = privacy.calibrate.noise_multiplier_of(everything, budget.epsilon, budget.delta), 1.0
        last_event = step(of_last)
    std, min_clients = base.gradient_std(of_last, change, facts)
    hop_std = base.gradient_std(of_hop, privacy.neighbour_sums.sensitivity(privacy.Relation.EDGE_UNDIRECTED), facts)[0]
    hop_noise = (privacy.GaussianNoise(hop_std), hop_event) if params.hops else base.PLAN_WITHOUT_NOISE
    return hop_noise, (privacy.GaussianNoise(std), last_event), min_clients


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    return _broadcast(plan, plan.made.public, 0)


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    """The client's edges, split by the public coins of their pairs. An edge to another client counts one half.

    For steps such an edge is only at the client that holds the smaller id.
    """
    learning.aggregation.require_simple(subgraph.graph.adjacency)
    nodes, own = subgraph.nodes, links.list_all(subgraph.graph.adjacency)
    inner, away = links.list_known(subgraph)
    everything = not plan.params.hops
    teach, teach_away = (everything | _supervises(plan, pairs) for pairs in (inner, away))
    adjacency = links.adjacency_of(own[~teach], nodes.size)
    if subgraph.cut is not None:
        adjacency = learning.aggregation.with_cut(adjacency, nodes, subgraph.cut[~teach_away], plan.facts.num_nodes)
    if plan.params.decoder == "steps":
        teach_away &= np.isin(away[:, 0], nodes)
    supervision = np.concatenate([inner[teach], away[teach_away]])
    shares = np.concatenate([np.ones(int(teach.sum())), np.full(int(teach_away.sum()), 0.5)])
    return _Work(adjacency, supervision, shares, nodes)


def _supervises(plan: Planned, pairs: np.ndarray) -> np.ndarray:
    """bool [m], by a public coin of each pair, whether it supervises if it is an edge. pairs: int64 [m, 2], global ids."""
    return seeds.coins(plan.made.key, "supervision", things=np.sort(pairs, axis=1)) < plan.params.supervision


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """One noisy hop over the client's edges (behind secure aggregation with a row for every node), or what teaches."""
    if round_ >= plan.params.hops:
        if plan.params.decoder == "sum":
            return {"supervision": desk.release("supervision", partial(_supervised, plan, work, model))}
        return {"supervision": desk.release("supervision", partial(_gradient, plan, work, model, streams))}
    rows = model["rows"][:, -plan.made.public.shape[1] :]
    return {"aggregate": desk.release("aggregate", lambda: noisy_hops.own_sums(plan, work.adjacency, work.nodes, rows))}


def _gradient(plan: Planned, work: _Work, model: base.Model, streams: base.PlanStreams) -> np.ndarray:
    """float [1 + p], the number of supervision edges drawn in this step, and the sum of their clipped gradients."""
    drawn = streams.drawn("batch", work.supervision, plan.params.sampling_rate)
    return pair_scorer.clipped_sum(model["scorer"], _read(plan, model), work.supervision[drawn], 1.0)


def _read(plan: Planned, model: base.Model) -> np.ndarray:
    """float32 [n, (K + 1)·w], the input of the scorer: unit rows of all hops."""
    hops = _hops(plan, model["rows"])
    return np.concatenate([scale_to_unit_length(rows) for rows in hops], axis=1) / np.float32(math.sqrt(len(hops)))


def _supervised(plan: Planned, work: _Work, model: base.Model) -> np.ndarray:
    """float64 [m, 1 + d]: for each supervision edge a 1 and its columns, times its weight at the client."""
    known = _known(plan, model, work.supervision)
    return np.concatenate([np.ones((len(known), 1)), known], axis=1) * work.shares[:, None]


def _hops(plan: Planned, rows: np.ndarray) -> list[np.ndarray]:
    """Hop 0 and the k released hops, [n, w] each. rows: [n, (k + 1)·w], all of them in one."""
    return np.split(rows, rows.shape[1] // plan.made.public.shape[1], axis=1)


def _likenesses(hops: Sequence[np.ndarray], split: int, pairs: np.ndarray) -> np.ndarray:
    """float64 [m, d], columns that describe pairs by the rows of their ends; d depends only on K and the widths.

    From features: the cosine for every two hops. From random rows: the inner products that count paths (hops 1·1: shared
    neighbours), without those that count the pair's own edge (0·1); and the degrees of both ends, by the lengths of rows.

    hops: float32 [n, w] each, of hop 0 (public) to hop K. split: number of the w columns that come from features. pairs:
    int64 [m, 2].
    """
    parts = [_of_block(hops, split, pairs[at : at + _BLOCK]) for at in range(0, max(1, len(pairs)), _BLOCK)]
    return np.concatenate(parts)


def _of_block(hops: Sequence[np.ndarray], split: int, pairs: np.ndarray) -> np.ndarray:
    one, two, last = pairs[:, 0], pairs[:, 1], len(hops)
    columns: list[np.ndarray] = []
    if split:
        rows = [scale_to_unit_length(h[:, :split]).astype(np.float64) for h in hops]
        columns += [_inner(rows[i], rows[j], one, two) for i in range(last) for j in range(i, last)]
    if hops[0].shape[1] > split:
        random = [h[:, split:].astype(np.float64) for h in hops]
        columns += [_inner(random[i], random[j], one, two) for i in range(last) for j in range(i, last) if i + j > 1]
        lengths = [np.log1p(np.square(h).sum(axis=1)) for h in random[1:]]
        columns += [length[one] + length[two] for length in lengths]
    return np.stack(columns, axis=1) if columns else np.zeros((len(pairs), 0))


def _inner(left: np.ndarray, right: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The mean of ⟨left_u, right_v⟩ and ⟨right_u, left_v⟩ of every pair."""
    here = np.einsum("ij,ij->i", left[one], right[two])
    return here if left is right else (here + np.einsum("ij,ij->i", right[one], left[two])) / 2


def _random_rows(num_nodes: int, width: int, seed: int) -> np.ndarray:
    """float32 [n, width], random signs at unit length: sums of such rows keep inner products (Johnson-Lindenstrauss)."""
    signs = np.random.default_rng(seed).integers(0, 2, size=(num_nodes, width)) * 2 - 1
    return scale_to_unit_length(signs.astype(np.float32))


def _known(plan: Planned, model: base.Model, asked: np.ndarray) -> np.ndarray:
    """[m, d], the columns of pairs by the rows of ``model``, on the scale of random pairs."""
    return links.LinkScale(model["centre"], model["spread"]).apply(
        _likenesses(_hops(plan, model["rows"]), plan.made.split, asked)
    )


def _random(plan: Planned) -> np.ndarray:
    return links.draw_pairs(plan.facts.num_nodes, _RANDOM, np.random.default_rng(plan.made.key))


def _broadcast(plan: Planned, rows: np.ndarray, hops: int) -> base.State[_Memory]:
    """The state with all rows so far; for a sum the scale of random pairs, for steps the scorer after the last hop."""
    if plan.params.decoder == "sum":
        scale = links.LinkScale.of_random(_likenesses(_hops(plan, rows), plan.made.split, _random(plan)))
        return base.State({"rows": rows, "centre": scale.centre, "spread": scale.spread}, _Memory())
    if hops < plan.params.hops:
        return base.State({"rows": rows}, _Memory())
    learnt = _learner(plan).start(pair_scorer.start(hops + 1, plan.made.public.shape[1]))
    return base.State({"rows": rows, "scorer": learnt.descended.parameters}, _Memory(learnt=learnt))


def _learner(plan: Planned) -> pair_scorer.PairScorer:
    return pair_scorer.PairScorer(plan.params.steps, plan.made.std, plan.made.key)


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """Keeps and broadcasts the noisy hop; after the last one finds the discriminant, or takes one step of the scorer."""
    if inbox.round < plan.params.hops:
        sums = noisy_hops.receive(plan, inbox)
        rows = np.concatenate([state.model["rows"], sums], axis=1).astype(np.float32)
        return _broadcast(plan, rows, inbox.round + 1)
    total, before = inbox.sums["supervision"], state.memory.learnt
    if before is None:
        return base.State(state.model, _Memory(links.fit_direction(_known(plan, state.model, _random(plan)), total)))
    learnt = _learner(plan).step(before, _read(plan, state.model), total, inbox.round - plan.params.hops)
    return base.State({**state.model, "scorer": learnt.descended.parameters}, _Memory(learnt=learnt))


def scores(plan: Planned, state: base.State[_Memory], pairs: np.ndarray) -> np.ndarray:
    """float64 [m], by the discriminant or the scorer, from released values and public facts."""
    if state.memory.learnt is not None:
        return pair_scorer.score(state.memory.learnt.descended.average, _read(plan, state.model), pairs)
    return np.asarray(_known(plan, state.model, pairs) @ base.require_received(plan, state.memory.direction))


OFFERS: base.Offers[Params, _Made, _Work, _Memory] = base.Offers(
    kind="linker",
    reads=lambda plan: base.MethodReads.NOTHING,
    units=(privacy.Unit.EDGE,),
    situations=(
        base.MethodSituation("links"),
        base.MethodSituation("links", settings={"hops": 0, "rows": "features"}),
        base.MethodSituation("links", settings={"hops": 0, "decoder": "steps", "steps": 3, "sampling_rate": 1.0}),
    ),
)
