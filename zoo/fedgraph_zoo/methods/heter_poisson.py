"""HeterPoisson: noisy sums of clipped gradients of drawn nodes, each of which mentions few neighbours that were not drawn.

In every step a fresh, secret coin of rate q draws nodes. A drawn node's row is its own features beside the mean of those of
the neighbours that it mentions: each that was not drawn, with a coin of rate p = min(1, M/m), where m is public. So a node is
in a step's sum by its own row, or by a few mentions (Xiang, Wang & Wang 2024, Figure 3), and ``privacy.accounting.mentions``
prices both. With M ≥ m a neighbour is always mentioned.

    cap: all        m = n − 1: every graph, no promise; a node is mentioned about qM times whatever its degree is, so that of
                    most nodes hardly a neighbour is heard
    cap: limit      m is what the platform enforces
    cap: promised   neighbourhoods are cut to m by public coins; provable only where no node has more neighbours

The paper keeps a neighbour with M / (its degree), which changes in all its rows when a node goes. ``noise: laplace`` is its
symmetric multivariate Laplace noise, ``noise: gaussian`` costs far less for what can be proven. Published: Theorem 2 for the
standard deviation that is added, whatever the law.

**Guarantee.** Node level, zero-out. Sums over clients with Gaussian shares; Laplace noise does not add up, so each client adds
all of it. It is also the dispute about GAP: there a node's own embedding is released, here sums of gradients are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.learning import (
    Descended,
    FeatureMatrix,
    Layout,
    descents,
    layouts,
    neighbour_limits,
    per_sample,
    subgraphs,
    torch,
    torch_device,
)
from fedgraph.methods import base, seen
from fedgraph.methods.base import node_caps
from fedgraph.methods.base.node_caps import NODE_CAP_COIN
from fedgraph.privacy import (
    Assumption,
    ClippedSum,
    Desk,
    Event,
    GaussianNoise,
    MentionedGaussian,
    PlannedRelease,
    Relation,
    Repeated,
    SymmetricLaplaceNoise,
    Unit,
    calibrate,
    sensitivity,
)
from fedgraph.types import Graph, Subgraph
from fedgraph_zoo import heter_poisson_claim as published

REFERENCE = """\
@inproceedings{xiang2024preserving,
  title = {Preserving Node-level Privacy in Graph Neural Networks},
  author = {Xiang, Zihang and Wang, Tianhao and Wang, Di},
  booktitle = {IEEE Symposium on Security and Privacy}, year = {2024}, doi = {10.1109/SP54263.2024.00270}}
"""


class Params(Settings):
    cap: Literal["all", "limit", "promised"] = Field("all", description="what bounds a node's neighbours m")
    degree: int = Field(10, ge=1, description="m of cap: limit and cap: promised")
    mentions: float = Field(1.0, ge=0, description="M, neighbours that mention a node on average where it has all m of them")
    noise: Literal["gaussian", "laplace"] = Field("gaussian", description="law of the noise; laplace: symmetric multivariate")
    clip: float = Field(0.5, gt=0, description="norm to which a row's gradient is clipped")
    sampling_rate: float = Field(0.2, gt=0, le=1, description="q, probability that a node is drawn in a step")
    steps: int = Field(60, ge=1, description="gradient steps T")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts.

    Attributes:
        rates: p at each client.
        basis: public directions [d, k] of features, or None.
        layout: of a logistic regression on own features and the mean of neighbours'.
    """

    rates: tuple[float, ...]
    basis: np.ndarray | None
    layout: Layout


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares.

    Attributes:
        features: CSR [n, k], unit rows or their coordinates along public directions.
        adjacency: CSR [n, n], its edges, cut to m neighbours under ``cap: promised``.
        labels: int64 [n], −1 where unknown.
        number: of the client.
    """

    features: sp.csr_array
    adjacency: sp.csr_array
    labels: torch.Tensor
    number: int


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noisy sum a step; one noise multiplier, priced at each client's own size."""
    base.require_public_test_graph("heter_poisson", facts)
    others = [max(n - 1, 0) if params.cap == "all" else min(params.degree, n) for n in facts.clients]
    rates = tuple(min(1.0, params.mentions / max(m, 1)) for m in others)
    mechanism, free = base.PLAN_WITHOUT_NOISE
    events = [free] * len(others)
    claimed, min_clients = None, 1
    if budget.private:
        largest = max(facts.clients)
        multiplier = _multiplier(params, set(zip(rates, others, strict=True)), largest, budget)
        asked = (params.sampling_rate, params.mentions, largest, params.steps, budget.delta)
        claimed = published.epsilon(multiplier, *asked)
        events = [_event(params, multiplier, p, m) for p, m in zip(rates, others, strict=True)]
        std, min_clients = base.gradient_std(multiplier, params.clip, facts)
        heavy = params.noise == "laplace"
        mechanism = SymmetricLaplaceNoise(multiplier * params.clip) if heavy else GaussianNoise(std)
    basis, inputs = node_caps.directions_of(params.projection, facts)
    promised, limit = (params.degree if params.cap == cap else None for cap in ("promised", "limit"))
    assumed = base.FACTS_TESTED_IN_PUBLIC
    if params.cap != "all":
        assumed += (Assumption.PROMISED_DEGREE if limit is None else Assumption.DEGREE_LIMIT_ENFORCED,)
    bound = ClippedSum(params.clip, facts.num_nodes, sensitivity.kernel_name(per_sample.clipped_sum))
    made = Made(rates, basis, Layout((2 * inputs, facts.num_classes)))
    sums = base.PlanSums(suffice=params.noise == "gaussian")
    relation, steps = Relation.NODE_ZERO_OUT, range(params.steps)
    guarantee = base.guarantee_from_public_facts(
        facts, relation, assumed, budget.delta, per_end=False, promised=promised, limit=limit
    )
    releases = (PlannedRelease("model", bound, mechanism, e, steps, client=client) for client, e in enumerate(events))
    schedule = base.PlanSchedule(params.steps, tuple(releases), min_clients)
    return base.Plan("heter_poisson", params, facts, guarantee, schedule, made, claimed, sums=sums)


def _event(params: Params, multiplier: float, rate: float, others: int) -> Event:
    return MentionedGaussian(multiplier, params.sampling_rate, rate, others, params.noise == "laplace")


def _multiplier(params: Params, sizes: set[tuple[float, int]], units: int, budget: base.Budget) -> float:
    """σ / clip; published: Theorem 2."""
    if budget.calibrated_by == "published":
        how = (params.sampling_rate, params.mentions, units, params.steps, budget.delta)
        return calibrate.published(lambda m: published.epsilon(m, *how), budget.epsilon)
    return max(_provable_multiplier(params, rate, others, budget.epsilon, budget.delta) for rate, others in sizes)


@lru_cache(maxsize=256)  # every seed and every client of one size asks for the same
def _provable_multiplier(params: Params, rate: float, others: int, epsilon: float, delta: float) -> float:
    return calibrate.noise_multiplier_of(lambda m: Repeated(_event(params, m, rate, others), params.steps), epsilon, delta)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Descended]:
    memory = node_caps.descent_of(plan.params).start(plan.made.layout.start(rng))
    return base.State({"parameters": memory.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph, adjacency = subgraph.graph, subgraph.graph.adjacency
    if plan.params.cap == "promised":
        adjacency = neighbour_limits.at_most(adjacency, plan.params.degree, subgraph.nodes, NODE_CAP_COIN)
    elif plan.params.cap == "limit":
        neighbour_limits.require(adjacency, plan.params.degree, subgraph.nodes)
    labels = torch.tensor(graph.labels, device=torch_device())
    return Work(node_caps.sparse_rows(graph, plan.made.basis), adjacency, labels, subgraph.client)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """The noisy sum of clipped gradients of this step's drawn rows."""

    def gradient() -> np.ndarray:
        drawn = descents.draw_poisson_mask(len(work.labels), plan.params.sampling_rate, streams.generator("batch"))
        kept = _mentioned(work.adjacency, drawn, plan.made.rates[work.number], streams)
        x = FeatureMatrix(subgraphs.join_inputs(work.features, kept))
        labels = descents.mask_labels(work.labels, drawn)
        return per_sample.clipped_sum(plan.made.layout, model["parameters"], x, labels, plan.params.clip)

    return {"gradient": desk.release("model", gradient)}


def _mentioned(adjacency: sp.csr_array, drawn: np.ndarray, rate: float, streams: base.PlanStreams) -> sp.csr_array:
    """CSR [n, n] of float32 ones: whom each drawn row mentions. drawn: bool [n]. rate: p. streams: a secret coin an arc."""
    owner = np.repeat(np.arange(drawn.size), np.diff(adjacency.indptr))
    possible = drawn[owner] & ~drawn[adjacency.indices]
    able = np.stack([owner[possible], adjacency.indices[possible]], axis=1)
    kept = able[streams.drawn("mentions", able, rate)]
    arcs = (np.ones(len(kept), np.float32), (kept[:, 0], kept[:, 1]))
    return sp.csr_array(arcs, shape=adjacency.shape)


def server(plan: Planned, state: base.State[Descended], inbox: base.PlanInbox) -> base.State[Descended]:
    """One step on the mean over the public expected number of drawn rows."""
    rows = np.float32(plan.params.sampling_rate * plan.facts.num_nodes)
    memory = node_caps.descent_of(plan.params).step(state.memory, inbox.sums["gradient"] / rows, inbox.round)
    return base.State({"parameters": memory.parameters}, memory)


def predict(plan: Planned, state: base.State[Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph; every neighbour is mentioned."""
    rows = _rows(plan, graph, sp.csr_array(graph.adjacency.astype(np.float32)))
    return layouts.logits(plan.made.layout, state.memory.average, rows)


def _rows(plan: Planned, graph: Graph, mentioned: sp.csr_array) -> FeatureMatrix:
    return FeatureMatrix(subgraphs.join_inputs(node_caps.sparse_rows(graph, plan.made.basis), mentioned))


def evidence(plan: Planned, state: base.State[Descended], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say, as in ``sage_node``; None where nothing was kept.

    A canary without edges has its own row only. Rows of others are known, who was drawn is not: of each row its expected share
    is taken off, and mentions are not. At q = 1 everybody is drawn, and the score is the exact log-likelihood ratio times s².
    """
    if not state.seen:
        return None
    weights = np.full(plan.facts.num_nodes, plan.params.sampling_rate)
    weights[units[:, 0]] /= 2

    def alone(part: Graph) -> FeatureMatrix:
        return _rows(plan, part, sp.csr_array(part.adjacency.shape, dtype=np.float32))

    at = (plan.made.layout, plan.params.clip, alone, weights, plan.params.sampling_rate)
    return seen.find_rows(plan, state, graph, units, *at)


OFFERS: base.Offers[Params, Made, Work, Descended] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"steps": 5, "projection": 16}),
        base.MethodSituation("inductive", settings={"steps": 2, "projection": 16, "cap": "promised", "noise": "laplace"}),
    ),
    answers_every_round=True,
    reads_rounds=lambda plan: seen.rounds_worth_keeping(plan, plan.made.layout.num_parameters),
    evidence=evidence,
)
