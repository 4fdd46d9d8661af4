"""DPAR: choose each node's most important neighbours privately, then train on their features privately.

1. A secret sample takes each training node with probability q'. M of them are *sources*: their approximate
   PageRank vectors (``learning.propagation.walks``) pass the desk, which picks K neighbours each by one-shot Gumbel
   noise (em0; em1 adds noisy values) or by Gaussian noise on the whole vector (gm). All other sampled nodes
   keep a one-hot row.
2. DP-SGD on a two-layer MLP through Σ_k Π_ik H_k (``learning.clipping.aggregated_rows``).
3. Predictions spread over the public test graph.

Only the final parameters leave (``Desk.walk``); Π, the sample and the batches stay at the client.

What makes ``provable`` differ from the paper (PRIVACY §4): sampling by independent coins, with candidates,
source marks, rates and denominators from public ids, and noise-only rows for marked nodes that were not
sampled, so that "sampled and zeroed" and "not sampled" look alike; no node is named by more than B' − 1
other rows; √2·C₁ for gm; batches really are Poisson. In a federation every client knows its sample, so
q' = 1. Under ``published`` the sample has a fixed size m = round(q'n), and its provable price is computed under replace,
the only relation that such a sample amplifies (Balle et al. 2018, Theorem 9), at its true rate m/n, with every row naming the
node.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from fedgraph.learning import (
    AggregatedRows,
    FeatureMatrix,
    Layout,
    StatefulDescent,
    aggregated_rows,
    layouts,
    own_models,
    per_sample,
    torch,
    torch_device,
    walks,
)
from fedgraph.methods import base
from fedgraph.methods.base import seen
from fedgraph.methods.dpar import noise as noise_of
from fedgraph.methods.dpar import releases as planned
from fedgraph.methods.dpar import rows as rows_of
from fedgraph.methods.dpar.releases import Made, Params
from fedgraph.privacy import Assumption, Desk, DeskWalk, Relation, Trust, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("zhang2024dpar", "fountoulakis2019variational")


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    graph: Graph  # of the client, with the features as the learner sees them
    memo: dict[str, AggregatedRows] = field(default_factory=dict)  # its rows, once they are chosen


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers, where a round is one step."""

    first: np.ndarray  # Adam's first moment estimate, float32 [num_parameters]
    second: np.ndarray  # Adam's second moment estimate, float32 [num_parameters]
    steps: int  # how many it took


_NEW = Memory(np.zeros(0, np.float32), np.zeros(0, np.float32), 0)  # before the first step


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Everything from public counts and the budget."""
    private = budget.private and params.variant != "none"
    sizes = planned.sizes_of(params, facts, budget)
    relation = Relation(params.relation)
    notes = list(sizes.notes)
    found, published = noise_of.StageNoise(0.0, 0.0, 0.0), None
    if private:
        split = 0.0 if params.variant in noise_of.DPAR_NOISE_FREE else 0.5
        if isinstance(params.split, float):
            split = params.split
        elif params.split == "public" and split:
            # the rows of the smallest client may name its sample where that has a fixed size, else all its ids
            clients, q = facts.clients, sizes.sampled
            candidates = min(planned.sample_size(q, n) if sizes.fixed else n for n in clients)
            split, why = noise_of.least_share(sizes, max(2, candidates), budget)
            notes.append(why)
        calibrated = noise_of.as_published if budget.calibrated_by == "published" else noise_of.as_provable
        found = calibrated(sizes, budget.epsilon, budget.delta, split)
        published = noise_of.published_dpar_epsilon(sizes, found, budget.delta)
        notes += found.notes
        if found.sgd > sizes.expected_batch:
            notes.append(
                f"budget too small for useful noise: each step adds std {found.sgd:.3g}·C per coordinate to a sum whose norm "
                f"is at most {sizes.expected_batch:.3g}·C on average; expect chance-level accuracy"
            )
    training, min_clients = planned.of_training(params, facts, sizes, found, private)
    sampled = sizes.amplified if sizes.amplified < 1 else None
    assumed = base.FACTS_TESTED_IN_PUBLIC if sampled is None else (*base.FACTS_TESTED_IN_PUBLIC, Assumption.SAMPLE_SECRET)
    made = Made(Layout((facts.num_features, params.hidden, facts.num_classes)), sizes, found)
    # of many clients' union a round's gradient is the sum of theirs where each node is one row, in batches by coins
    alone = params.variant == "features" and sizes.sampled == 1 and not sizes.fixed
    sums = base.PlanSums(suffice=True, additive=alone and params.batches == "poisson" and sizes.local_steps == 1)
    once = sampled if private else None
    guarantee = base.guarantee_from_public_facts(facts, relation, assumed, budget.delta, per_end=False, sampled_once=once)
    releases = (*planned.of_neighbours(params, sizes, found, private), training)
    schedule = base.PlanSchedule(sizes.rounds, releases, min_clients)
    return base.Plan("dpar", params, facts, guarantee, schedule, made, published, sums=sums, notes=tuple(notes))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return base.State({"parameters": plan.made.layout.start(rng)}, _NEW)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    return Work(rows_of.scaled(subgraph.graph, plan.params.features))


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """Choose neighbours in round 0; in every round walk ``local_steps`` noisy gradients from the broadcast model.

    Sends the last noisy gradient where a round is one step, else the parameters it led to, weighted by the
    client's public share of the nodes.
    """
    params, sizes = plan.params, plan.made.sizes
    if round_ == 0 or "rows" not in work.memo:  # a worker that was restarted replays round 0's choice with round 0's noise
        first = dataclasses.replace(streams, path=(*streams.path[:-1], 0))
        work.memo["rows"] = rows_of.choose(plan, work.graph, first, desk)
    rows = work.memo["rows"]
    parts = [(plan.facts.clients[c], streams.of_client(c)) for c in desk.together] or [(rows.num_rows, streams)]
    batches = rows_of.Batches(parts, sizes, params.batches == "fixed", round_)
    clip = None if params.variant == "none" else params.clip

    def private(state: StatefulDescent) -> np.ndarray:
        return aggregated_rows.clipped_sum(plan.made.layout, state.vector, rows, batches.next(), clip)

    def follow(state: StatefulDescent, noised: np.ndarray) -> StatefulDescent:
        state.step(noised, 1.0 / sizes.expected_batch)
        return state

    if sizes.local_steps == 1 and plan.facts.num_clients > 1:
        return {"gradient": desk.release("model", lambda: private(StatefulDescent(model["parameters"], 0.0)))}
    weight = np.float32(work.graph.num_nodes / plan.facts.num_nodes)
    begin = StatefulDescent(model["parameters"], params.learning_rate, params.optimiser)
    walk = DeskWalk(begin, private, follow, lambda state: state.vector * weight)
    return {"parameters": desk.walk("model", walk)}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """The average of the clients' parameters, or one optimiser step on the sum of their gradients."""
    if "parameters" in inbox.sums:
        return base.State({"parameters": inbox.sums["parameters"]}, state.memory)
    params, memory = plan.params, state.memory
    before, moments = state.model["parameters"], (memory.first, memory.second, memory.steps)
    found = StatefulDescent(before, params.learning_rate, params.optimiser, *moments)
    found.step(inbox.sums["gradient"], 1.0 / (plan.made.sizes.expected_batch * plan.facts.num_clients))
    return base.State({"parameters": found.vector}, Memory(found.first, found.second, found.steps))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c]: Q ← (1 − α)D⁻¹AQ + αH on a public graph, P times from Q = H (Equation 4)."""
    features = rows_of.scaled(graph, plan.params.features).features
    scores = layouts.logits(plan.made.layout, state.model["parameters"], FeatureMatrix(features))
    return walks.personalised_pagerank(graph.adjacency, scores, plan.params.alpha, plan.params.propagation_steps)


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """With the weights after a client's own steps on the rows of ``graph``, in clear (``learning.own_models``)."""
    x = FeatureMatrix(rows_of.scaled(graph, plan.params.features).features)
    own = own_models.tune(plan.made.layout, state.model["parameters"], x, graph.labels, rng)
    return dataclasses.replace(state, model={**state.model, "parameters": own})


def reads_rounds(plan: Planned) -> bool:
    """Whether the rounds of a run should be kept: each is one step whose noisy gradient somebody sees."""
    return plan.made.sizes.local_steps == 1 and seen.rounds_worth_keeping(plan, plan.made.layout.num_parameters)


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """What the messages hold beyond known rows, along each canary's own gradient, at the batches' rate.

    Who names whom is secret, so every node is taken for a row of its own, which all but the few sources are. None where the
    rounds were not kept, nodes are replaced, or nothing is clipped.
    """
    params = plan.params
    weights = seen.known_shares(plan, state, units)
    if weights is None or params.variant == "none":
        return None
    found = np.zeros(weights.size)
    rate = plan.made.sizes.expected_batch * plan.facts.num_clients / plan.facts.num_nodes
    for number, nodes in enumerate(seen.groups_of(plan)):
        part = rows_of.scaled(graph.induced(nodes), params.features)
        x, labels = FeatureMatrix(part.features), torch.tensor(part.labels, device=torch_device())
        for _, model, message in seen.messages_of(plan, state, number, "gradient"):
            each = per_sample.gradients(plan.made.layout, model["parameters"], x, labels).clipped(params.clip)
            found[nodes] += each.left_over_products(message, min(rate, 1.0) * weights[nodes])
    return found[units[:, 0]]


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"epochs": 4}),
        base.MethodSituation("inductive", (Trust.CURATOR,), {"variant": "gm", "epochs": 4}),
        base.MethodSituation("inductive", (Trust.CURATOR,), {"variant": "em1", "sampled": 1.0, "epochs": 4}),
    ),
    ignores_budget={"variant": "none"},
    tuned=tuned,
    reads_rounds=reads_rounds,
    evidence=evidence,
)
