"""SAGE at node level: noisy sums of clipped subgraph gradients, one release per step.

A row is a training node with its neighbourhood. ``caps`` bounds how many rows one node changes, which the noise of a step must
hide; by default the bound holds for every graph. The released code cuts neighbourhoods as ``cap: promised`` does. Unlike it,
the clip is a public number, and every step draws a new batch. The training is that of ``base.examples``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fedgraph.learning import Descended, neighbour_limits, own_network
from fedgraph.methods import base
from fedgraph.methods.base import examples, node_caps, occurrences
from fedgraph.methods.sage_node import caps
from fedgraph.methods.sage_node import published as sage
from fedgraph.methods.sage_node.caps import Made, Params
from fedgraph.privacy import Desk, Event, Gaussian, GaussianNoise, NoiseMechanism, Trust, Unit, calibrate
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("daigavane2021node", "wu2022linkteller")
Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noise multiplier for all steps; each client's event is that of its own number of rows."""
    base.require_public_test_graph("sage_node", facts)
    made = caps.made_of(params, facts, budget)
    *noise, published = _noise(params, facts, budget, made)
    assumed, promise = (*base.FACTS_TESTED_IN_PUBLIC, *made.assumptions), {"promised": made.promised, "limit": made.limit}
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False, **promise)
    return examples.plan_for("sage_node", params, facts, guarantee, made, tuple(noise), published, made.notes)  # type: ignore[arg-type]


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, made: Made
) -> tuple[NoiseMechanism, list[Event], int, float | None]:
    """(mechanism, each client's event, clients that must finish, published ε)."""
    steps, epsilon, delta = params.steps, budget.epsilon, budget.delta
    if not budget.private:
        mechanism, free = base.PLAN_WITHOUT_NOISE
        return mechanism, [free] * facts.num_clients, 1, None
    if made.cap is not None:
        multiplier = calibrate.gaussian_multiplier(steps, epsilon, delta)
        std, min_clients = base.gradient_std(multiplier, made.sensitivity, facts)
        return GaussianNoise(std), [Gaussian(multiplier)] * facts.num_clients, min_clients, None

    def claimed(multiplier: float) -> float:
        touched = sage.claimed_sage_subgraphs(params.limit or params.degree, params.layers)
        how = (params.sampling_rate, touched, facts.clients, steps, delta)
        return sage.epsilon_of_paper(multiplier, *how)

    if budget.calibrated_by == "published":
        multiplier = calibrate.published(claimed, epsilon)
    else:
        multiplier = max(occurrences.noise_multiplier(one, steps, epsilon, delta)[0] for one in set(made.rules))
    std, min_clients = base.gradient_std(multiplier, params.clip, facts)
    events = [one.events(multiplier)[0] for one in made.rules]
    return GaussianNoise(std), events, min_clients, claimed(multiplier) if made.promised or made.limit else None


def start(plan: Planned, rng: np.random.Generator) -> base.State[Descended]:
    """Parameters as the layers draw them; zeros for a single layer, whose loss is convex."""
    vector = own_network.start(plan.made.network, rng) * np.float32(not plan.made.joined)
    memory = node_caps.descent_of(plan.params).start(vector)
    return base.State({"parameters": memory.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> examples.Work:
    rows, adjacency = plan.made.read(subgraph.graph, subgraph.nodes)
    return examples.Work(rows, adjacency, subgraph.graph.labels, subgraph.nodes, subgraph.client)


def _limited(plan: Planned, vector: np.ndarray) -> np.ndarray:
    """Parameters within the ball that the proof of the log cap needs, whatever was broadcast."""
    if plan.made.cap is None:
        return vector
    return neighbour_limits.limit_weights(vector, plan.made.network.inputs, plan.params.bound)


def client(
    plan: Planned, work: examples.Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk
) -> base.PlanSent:
    return examples.client(plan, work, {"parameters": _limited(plan, model["parameters"])}, round_, streams, desk)


def server(plan: Planned, state: base.State[Descended], inbox: base.PlanInbox) -> base.State[Descended]:
    memory = examples.server(plan, state, inbox).memory
    memory = replace(memory, parameters=_limited(plan, memory.parameters))  # clients would project it anyway
    return base.State({"parameters": memory.parameters}, memory)


def predict(plan: Planned, state: base.State[Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph, with neighbourhoods bounded in the same way."""
    rows, adjacency = plan.made.read(graph, np.arange(graph.num_nodes), held=False)
    return own_network.scores(plan.made.network, state.memory.average, rows, adjacency)


def reads_rounds(plan: Planned) -> bool:
    """Whether rounds are kept: if there is one layer, all nodes are in every batch, and the viewer sees rounds."""
    return plan.params.sampling_rate >= 1 and examples.reads_rounds(plan)


def evidence(plan: Planned, state: base.State[Descended], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """``examples.evidence`` of a canary without edges, which is only in its own row.

    The proof prices more: a node with edges is in other rows, too (``benchmarks.one_run_limits --rows``).
    """
    return examples.evidence(plan, state, graph, units, lambda part, ids: plan.made.read(part, ids)[0])


OFFERS: base.Offers[Params, Made, examples.Work, Descended] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"steps": 5, "projection": 16}),
        base.MethodSituation("inductive", (Trust.CURATOR,), {"steps": 3, "projection": 16, "layers": 2, "degree": 3}),
    ),
    answers_every_round=True,
    reads_rounds=reads_rounds,
    evidence=evidence,
)
