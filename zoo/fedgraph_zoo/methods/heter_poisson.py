"""HeterPoisson: noisy sums of clipped gradients of drawn nodes, each of which mentions few neighbours that were not drawn.

In every step a fresh, secret coin of rate q draws nodes. A drawn node's row is its own features beside the mean of those of
the neighbours that it mentions: each that was not drawn, with a coin of rate p = min(1, M/m), where m is public. So a node is
in a step's sum by its own row, or by a few mentions (Xiang, Wang & Wang 2024, Figure 3), and ``privacy.accounting.pld``
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

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.learning import Descended, own_network
from fedgraph.methods import base, seen
from fedgraph.methods.base import examples, node_caps
from fedgraph.privacy import (
    Assumption,
    Event,
    GaussianNoise,
    MentionedGaussian,
    NoiseMechanism,
    Relation,
    Repeated,
    SymmetricLaplaceNoise,
    Unit,
    calibrate,
)
from fedgraph.types import Graph
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


Made: TypeAlias = examples.ExamplesMade
Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noisy sum a step; one noise multiplier, priced at each client's own size."""
    base.require_public_test_graph("heter_poisson", facts)
    how = (params.cap, params.degree, params.mentions, 1, params.sampling_rate, False)
    rules = tuple(examples.rule(*how, n) for n in facts.clients)
    promised, limit = (params.degree if params.cap == cap else None for cap in ("promised", "limit"))
    spec, basis = examples.network_of("torch_geometric.nn.SAGEConv", "{}", params.projection, facts)
    made = Made(spec, rules, basis, promised, limit, hops=1)
    noise: tuple[NoiseMechanism, list[Event], int] = base.PLAN_WITHOUT_NOISE[0], [base.PLAN_WITHOUT_NOISE[1]] * len(rules), 1
    claimed, heavy = None, params.noise == "laplace"
    if budget.private:
        asked = (params.sampling_rate, params.mentions, max(facts.clients), params.steps, budget.delta)
        if budget.calibrated_by == "published":
            multiplier = calibrate.published(lambda m: published.epsilon(m, *asked), budget.epsilon)
        else:
            multiplier = max(_multiplier(rule, heavy, params.steps, budget.epsilon, budget.delta) for rule in set(rules))
        claimed = published.epsilon(multiplier, *asked)
        std, min_clients = base.gradient_std(multiplier, params.clip, facts)
        mechanism = SymmetricLaplaceNoise(multiplier * params.clip) if heavy else GaussianNoise(std)
        noise = mechanism, [_event(rule, multiplier, heavy) for rule in rules], min_clients
    assumed = base.FACTS_TESTED_IN_PUBLIC
    if params.cap != "all":
        assumed += (Assumption.PROMISED_DEGREE if limit is None else Assumption.DEGREE_LIMIT_ENFORCED,)
    guarantee = base.guarantee_from_public_facts(
        facts, Relation.NODE_ZERO_OUT, assumed, budget.delta, per_end=False, promised=promised, limit=limit
    )
    return examples.plan_for("heter_poisson", params, facts, guarantee, made, noise, claimed, suffice=not heavy)


def _event(rule: examples.Occurrences, multiplier: float, heavy: bool) -> Event:
    return MentionedGaussian(multiplier, rule.sampling_rate, rule.rate, rule.others, heavy)


@lru_cache(maxsize=256)  # every seed and every client of one size asks for the same
def _multiplier(rule: examples.Occurrences, heavy: bool, steps: int, epsilon: float, delta: float) -> float:
    """σ / clip."""
    return calibrate.noise_multiplier_of(lambda m: Repeated(_event(rule, m, heavy), steps), epsilon, delta)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Descended]:
    """From zeros: the loss of a single layer is convex."""
    memory = node_caps.descent_of(plan.params).start(0 * own_network.start(plan.made.network, rng))
    return base.State({"parameters": memory.parameters}, memory)


prepare, client, server = examples.prepare, examples.client, examples.server


def predict(plan: Planned, state: base.State[Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph; every neighbour is mentioned."""
    return own_network.scores(plan.made.network, state.memory.average, plan.made.rows(graph), graph.adjacency)


def evidence(plan: Planned, state: base.State[Descended], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """``examples.evidence`` of a canary without edges, which has its own row only; mentions are not taken off."""
    return examples.evidence(plan, state, graph, units, lambda part, _: plan.made.rows(part))


OFFERS: base.Offers[Params, Made, examples.Work, Descended] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"steps": 5, "projection": 16}),
        base.MethodSituation("inductive", settings={"steps": 2, "projection": 16, "cap": "promised", "noise": "laplace"}),
    ),
    answers_every_round=True,
    reads_rounds=lambda plan: seen.rounds_worth_keeping(plan, own_network.num_parameters(plan.made.network)),
    evidence=evidence,
)
