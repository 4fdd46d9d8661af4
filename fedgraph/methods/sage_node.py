"""SAGE at node level: noisy sums of clipped subgraph gradients, one release per step.

A row is a training node with its neighbours up to L steps away. A cap bounds how many rows one node changes, which the noise of
a step has to hide:

    log        one layer: weights of ``privacy.neighbour_sums`` and its bound of gradients; two layers: every row counts as
               changed. Proven for every graph, no promise; the cost grows with the number of nodes
    limit      the platform enforces at most M neighbours: nothing is cut, and a node changes at most k(M) rows
    promised   as published: neighbourhoods are cut to D by public coins, and a node changes k(D) rows. This is provable only if
               no node has more than D neighbours, because others fill a slot that a removed node frees

With degrees of at most D a node lies in at most k(D) = 1 + D·(1 + (D − 1) + … + (D − 1)^{L−1}) rows: D + 1 with one layer,
D² + 1 with two. Unlike in the released code the clip is a public number, and every step draws a new batch. The training, and
the price of what runs here, are those of ``base.examples``.

**Published** (Daigavane et al. 2021): a node lies in at most k training subgraphs, k = K + 1 (one layer) or K² + K + 1 (two; K
of these are the way back); batches of B of N subgraphs without replacement; per step

    RDP(α) = 1/(α−1) · ln E_{j ~ Hypergeometric(N, k, B)} exp(2α(α−1)j²/σ²),       σ = std / C,

read off at the orders 1.1 … 9.9 as RDP(α) + ln(1 − 1/α) − (ln δ + ln α)/(α − 1), as in the released code
(google-research/google-research at 4c429948, differentially_private_gnns/privacy_accountants.py; its multiplier is σ/2k). The
orders end early, so a small ε takes far more noise than it needs, or cannot be reached. It is no proof: the published edge
sampler depends on neighbours, clip thresholds are percentiles of private gradients, and the code draws batches *with*
replacement, j ~ Bin(B, k/N), which costs more.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator
from scipy.special import logsumexp

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.methods import base
from fedgraph.methods.base import examples, node_caps
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("daigavane2021node", "wu2022linkteller")
_ORDERS = 1 + np.arange(1, 90) / 10


class Params(Settings):
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    layers: Literal[1, 2] = Field(1, description="layers")
    cap: Literal["auto", "log", "limit", "promised"] = Field(
        "auto", description="what bounds the rows a node touches; auto: log where noise is provable, promised where it is not"
    )
    knee: ClassVar[int] = 1  # degree up to which the log cap weighs every edge 1
    limit: int | None = Field(None, ge=1, description="neighbours that the platform allows (cap: limit)")
    scale: Annotated[float, Field(gt=0)] | Literal["auto"] = Field(
        "auto", description="what sums over neighbours are divided by (log); auto: they cost as much as the own row"
    )
    bound: ClassVar[float] = 2.0  # norm that the weights of the neighbours' part keep (log)
    degree: int = Field(10, ge=1, description="promised maximum degree D, to which neighbourhoods are cut (cap: promised)")
    clip: float = Field(0.5, gt=0, description="norm to which a subgraph's gradient is clipped")
    steps: int = Field(60, ge=1, description="gradient steps")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="q, probability that a node is in a batch; 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: ClassVar[float] = 0.9  # heavy ball
    averaged: ClassVar[float] = 0.5  # share of the last iterates that is averaged
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @model_validator(mode="after")
    def _limit_has_its_number(self) -> Self:
        if (self.cap == "limit") != (self.limit is not None):
            raise ValueError("cap: limit and its number belong together, e.g. {cap: limit, limit: 50}; give both or none")
        return self

    @property
    def protects(self) -> privacy.Relation:
        return privacy.Relation(self.relation)


@dataclass(frozen=True, eq=False)
class _Made(examples.ExamplesMade):
    """What the plan made of public facts."""

    cap: privacy.PricedDegreeCap | None = None  # if rows hold weighted sums, the rule of the largest client; else None
    scale: float = 1.0  # c, by which sums over neighbours are divided (``log``)
    sensitivity: float = 0.0  # Δ₂ of a step (``log``)
    joined: bool = True  # whether a row holds what one layer reads of neighbours, so that the network is linear
    promised: int | None = None  # maximum degree D that the data promise, or None
    assumptions: tuple[privacy.Assumption, ...] = ()
    notes: tuple[str, ...] = ()  # sentences for the report

    def read(self, graph: Graph, ids: np.ndarray, held: bool = True) -> tuple[np.ndarray, sp.csr_array]:
        """(rows [n, k], neighbourhoods that roots read). held: whether it is a client's own graph.

        Rows are unit rows, or their coordinates along public directions. With one layer each row is followed by the weighted
        sum, or the mean, of its neighbours' rows, and roots read no other node.
        """
        if self.cap is not None:
            weights = node_caps.edge_weights(graph.adjacency, self.cap)
            return learning.neighbour_limits.rows(
                node_caps.sparse_rows(graph, self.basis), weights, self.scale
            ), graph.adjacency
        adjacency, own = self.bounded(graph.adjacency, ids, held), self.rows(graph)
        if not self.joined:
            return own, adjacency
        return np.hstack([own, learning.walks.random_matrix(adjacency).astype(np.float32) @ own]), adjacency


Planned: TypeAlias = base.Plan[Params, _Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noise multiplier for all steps; each client's event is that of its own number of rows."""
    base.require_public_test_graph("sage_node", facts)
    made = _made_of(params, facts, budget)
    *noise, published = _noise(params, facts, budget, made)
    assumed, promise = (*base.FACTS_TESTED_IN_PUBLIC, *made.assumptions), {"promised": made.promised, "limit": made.limit}
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False, **promise)
    return examples.plan_for("sage_node", params, facts, guarantee, made, tuple(noise), published, made.notes)  # type: ignore[arg-type]


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, made: _Made
) -> tuple[privacy.NoiseMechanism, list[privacy.Event], int, float | None]:
    """(mechanism, each client's event, clients that must finish, published ε)."""
    steps, epsilon, delta = params.steps, budget.epsilon, budget.delta
    if not budget.private:
        mechanism, free = base.PLAN_WITHOUT_NOISE
        return mechanism, [free] * facts.num_clients, 1, None
    if made.cap is not None:
        multiplier = privacy.calibrate.gaussian_multiplier(steps, epsilon, delta)
        std, min_clients = base.gradient_std(multiplier, made.sensitivity, facts)
        return privacy.GaussianNoise(std), [privacy.Gaussian(multiplier)] * facts.num_clients, min_clients, None

    def claimed(multiplier: float) -> float:  # of the worst client, with batches of B = ⌈q·n⌉
        touched = claimed_subgraphs(params.limit or params.degree, params.layers)
        batches = {n: min(n, math.ceil(params.sampling_rate * n)) for n in facts.clients}
        return max(claimed_epsilon(multiplier, b, n, min(touched, n), steps, delta) for n, b in batches.items())

    if budget.calibrated_by == "published":
        multiplier = privacy.calibrate.published(claimed, epsilon)
    else:
        multiplier = max(examples.noise_multiplier(one, steps, epsilon, delta)[0] for one in set(made.rules))
    std, min_clients = base.gradient_std(multiplier, params.clip, facts)
    events = [one.events(multiplier)[0] for one in made.rules]
    return privacy.GaussianNoise(std), events, min_clients, claimed(multiplier) if made.promised or made.limit else None


def claimed_subgraphs(degree: int, layers: int) -> int:
    """1 + K + … + K^layers, the published number of subgraphs that hold one node.

    degree: K ≥ 1. layers: ≥ 1. ``PrivacyError`` for a number below 1.
    """
    if degree < 1 or layers < 1:
        privacy.require_positive("degree and layers", 0.0)
    return sum(degree**i for i in range(layers + 1))


def claimed_epsilon(
    noise_multiplier: float, batch_size: int, num_rows: int, touched: int, steps: int, delta: float, replacement: bool = False
) -> float:
    """The ε that the authors' accountant returns.

    noise_multiplier: σ = std / C, finite and > 0, else ``PrivacyError``. batch_size: B. num_rows: N, number of subgraphs.
    touched: k, number of subgraphs that hold one node. steps: T. delta: δ in (0, 1). replacement: whether batches are drawn
    with replacement, as in the released code.
    """
    from scipy.stats import binom, hypergeom  # their import takes half a second

    privacy.require_positive("noise_multiplier", noise_multiplier)
    top = batch_size if replacement else min(touched, batch_size)
    hits = np.arange(top + 1)
    weights = (
        binom.logpmf(hits, batch_size, touched / num_rows)
        if replacement
        else hypergeom.logpmf(hits, num_rows, touched, batch_size)
    )
    hits, weights = hits[weights > -700], weights[weights > -700]
    exponents = 2 * _ORDERS[:, None] * (_ORDERS[:, None] - 1) * np.square(hits) / noise_multiplier**2
    moments = steps * logsumexp(exponents + weights, axis=1) / (_ORDERS - 1)
    return privacy.rdp.converted(moments, _ORDERS, delta)[0]


def _made_of(params: Params, facts: base.PublicFacts, budget: base.Budget) -> _Made:
    """The rule of ``params.cap``, from public sizes, and the network: PyG's ``SAGEConv`` as a linear layer of joined rows, or
    two layers of its ``GraphSAGE``.
    """
    one = params.layers == 1
    model = "torch.nn.Linear" if one else "torch_geometric.nn.GraphSAGE"
    sizes = {"in_features": "$inputs", "out_features": "$classes"}
    shape = sizes if one else {"hidden_channels": params.hidden, "num_layers": params.layers}
    spec, basis = examples.network_of(model, json.dumps(shape), params.projection, facts, wide=2 if one else 1)
    promised = not budget.private or budget.calibrated_by == "published"
    kind = params.cap if params.cap != "auto" else "promised" if promised else "log"
    degree, largest = params.limit or params.degree, max(facts.clients)
    every = kind == "log" and not one
    how = ("all" if every else kind, degree, np.inf, params.layers, params.sampling_rate, params.protects.replaces)
    rules = tuple(examples.rule(*how, n, True) for n in facts.clients)
    made = _Made(spec, rules, basis, hops=0 if one else params.layers, joined=one)
    touched = 1 + learning.rooted.reach(degree, params.layers)
    if every:
        note = (
            f"No promise: with two layers every one of a client's rows may change with a node, {largest} at the largest "
            "client, and is priced so. cap: limit or cap: promised price fewer rows, on what they assume."
        )
        return replace(made, cut=params.degree, notes=(note,))
    if kind == "log":
        return _log(params, largest, made)
    if kind == "limit":
        note = f"A node is in at most {touched} training subgraphs, because the platform allows {degree} neighbours."
        return replace(made, limit=degree, assumptions=(privacy.Assumption.DEGREE_LIMIT_ENFORCED,), notes=(note,))
    note = (
        f"A node is in at most {touched} training subgraphs, if no node has more than {degree} neighbours. Above that, "
        "neighbourhoods are cut and a node that goes frees slots that others refill: where the data break the promise the "
        "provable ε is ∞."
    )
    return replace(made, cut=degree, promised=degree, assumptions=(privacy.Assumption.PROMISED_DEGREE,), notes=(note,))


def _log(params: Params, largest: int, made: _Made) -> _Made:
    """``made`` with the rule ``log`` of one layer. largest: number of nodes of the largest client."""
    cap = privacy.neighbour_sums.priced_log_cap(largest, params.knee)
    scale = privacy.neighbour_sums.gradient_scale(cap, params.clip, params.bound) if params.scale == "auto" else params.scale
    delta = privacy.neighbour_sums.gradient_sensitivity(cap, params.clip, params.bound, scale, params.protects.replaces)
    note = (
        f"No promise: a node changes a step's sum by at most {delta / params.clip:.4g} clips in every graph of {largest} "
        f"nodes. For that, sums over neighbours are divided by {scale:.4g}: they hardly count, and the row is about as good as "
        "DP-SGD on a node's own features with that much more noise."
    )
    return replace(made, cap=cap, scale=scale, sensitivity=delta, notes=(note,))


def start(plan: Planned, rng: np.random.Generator) -> base.State[learning.Descended]:
    """Parameters as the layers draw them; zeros for a single layer, whose loss is convex."""
    vector = learning.own_network.start(plan.made.network, rng) * np.float32(not plan.made.joined)
    memory = node_caps.descent_of(plan.params).start(vector)
    return base.State({"parameters": memory.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> examples.Work:
    rows, adjacency = plan.made.read(subgraph.graph, subgraph.nodes)
    return examples.Work(rows, adjacency, subgraph.graph.labels, subgraph.nodes, subgraph.client)


def _limited(plan: Planned, vector: np.ndarray) -> np.ndarray:
    """Parameters within the ball that the proof of the log cap needs, whatever was broadcast."""
    if plan.made.cap is None:
        return vector
    return learning.neighbour_limits.limit_weights(vector, plan.made.network.inputs, plan.params.bound)


def client(
    plan: Planned, work: examples.Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    return examples.client(plan, work, {"parameters": _limited(plan, model["parameters"])}, round_, streams, desk)


def server(plan: Planned, state: base.State[learning.Descended], inbox: base.PlanInbox) -> base.State[learning.Descended]:
    memory = examples.server(plan, state, inbox).memory
    memory = replace(memory, parameters=_limited(plan, memory.parameters))  # clients would project it anyway
    return base.State({"parameters": memory.parameters}, memory)


def predict(plan: Planned, state: base.State[learning.Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph, with neighbourhoods bounded in the same way."""
    rows, adjacency = plan.made.read(graph, np.arange(graph.num_nodes), held=False)
    return learning.own_network.scores(plan.made.network, state.memory.average, rows, adjacency)


def _reads_rounds(plan: Planned) -> bool:
    """Whether rounds are kept: if there is one layer, all nodes are in every batch, and the viewer sees rounds."""
    return plan.params.sampling_rate >= 1 and examples.reads_rounds(plan)


def _evidence(plan: Planned, state: base.State[learning.Descended], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """``base.examples.evidence`` of a canary without edges, which is only in its own row.

    The proof prices more: a node with edges is in other rows, too (``benchmarks.one_run_limits --rows``).
    """
    return examples.evidence(plan, state, graph, units, lambda part, ids: plan.made.read(part, ids)[0])


OFFERS: base.Offers[Params, _Made, examples.Work, learning.Descended] = base.Offers(
    units=(privacy.Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"steps": 5, "projection": 16}),
        base.MethodSituation("inductive", (privacy.Trust.CURATOR,), {"steps": 3, "projection": 16, "layers": 2, "degree": 3}),
    ),
    answers_every_round=True,
    reads_rounds=_reads_rounds,
    evidence=_evidence,
)
