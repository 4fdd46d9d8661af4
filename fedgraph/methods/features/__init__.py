"""Features: a learner with clipped gradients. It never reads private edges.

Full-batch gradient descent on node features: each node's gradient is clipped to C, the sum carries
Gaussian noise, and T such sums are all that leaves. Edges are used once, at inference, and only those of
the public test graph. Every training node touches exactly its own gradient, so the sensitivity is C under
zero-out and the T releases compose to μ = √T·C/std exactly: the cleanest proof there is.

What makes it strong costs nothing, for it reads public data only: words weigh more the rarer they are among the test
nodes, features are projected on directions learned from those (``views.projection``), of words or, where the budget
carries it, of pairs of words (``views.pairs``), each step is preconditioned by the curvature they give, and predictions
spread over the test graph and among look-alikes (``propagation.mean_field``), with the sign and strength with which they
meet along its edges, and the less the more the features alone decide.
The settings follow from the public signal-to-noise number n·μ (nodes × Gaussian parameter of the whole budget).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph.learning import own_models
from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.late import torch
from fedgraph.learning.layers.matrices import FeatureMatrix, device
from fedgraph.learning.layers.models import logits
from fedgraph.learning.propagation.mean_field import coupled_field, doubt, look_alikes, mean_field
from fedgraph.learning.propagation.walks import personalised_pagerank
from fedgraph.learning.views import coordinates
from fedgraph.methods import base
from fedgraph.methods.features.evidence import GradientSums, evidence_of_rounds, reads_rounds
from fedgraph.methods.features.learner import Made, Memory, learner, update_signal
from fedgraph.methods.features.learner import Params as Params
from fedgraph.privacy.accounting import calibrate, gaussian
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import ClippedSum, kernel_name, sensitivity_l2
from fedgraph.privacy.units import Assumption, Relation, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.bibtex("abadi2016deep")

MOST_HEARD = 4.0  # log-odds a sure neighbour may bring, × mean doubt: where rows decide, neighbours say little that is new
_SHARPER = 2.0  # scores of a heavily damped fit are less sure than they are right
ASSUMED = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC)


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares.

    Attributes:
        x: its rows as the learner sees them.
        labels: int64 [n], −1 where unknown.
    """

    x: FeatureMatrix
    labels: torch.Tensor


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Noise, steps and directions from public numbers and the budget alone."""
    relation = Relation(params.relation)
    strength = update_signal(facts, _total_mu(budget), relation)
    made = learner(params, facts, strength, budget.private)
    steps = made.steps
    bound = ClippedSum(made.clip, facts.sizes.num_nodes, kernel_name(clipped_gradient_sum))
    mechanism, event = base.NO_NOISE
    min_clients, published = 1, None
    if budget.private:
        multiplier = math.sqrt(steps) / _total_mu(budget)
        if budget.calibrated_by != "published":
            multiplier = calibrate.gaussian_multiplier(steps, budget.epsilon, budget.delta)
        std, min_clients = base.gradient_std(multiplier, sensitivity_l2(bound, relation), facts)
        mechanism, event = GaussianNoise(std), Gaussian(multiplier)
        published = gaussian.moments_epsilon(math.sqrt(steps) / multiplier, budget.delta)
    guarantee = base.guarantee_of(facts, relation, (*ASSUMED, *base.public_assumptions(facts)), budget.delta, per_end=False)
    schedule = base.Schedule(steps, (PlannedRelease("model", bound, mechanism, event, range(steps)),), min_clients)
    return base.Plan("features", params, facts, guarantee, schedule, made, published, sums=base.Sums(additive=True))


def num_sent(plan: Planned) -> int:
    """Numbers in one message."""
    return plan.made.layout.num_parameters


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    vector = plan.made.layout.start(rng)
    return base.State({"parameters": vector}, Memory(0 * vector, vector))


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    return Work(plan.made.rows(subgraph.graph), torch.tensor(subgraph.graph.labels, device=device()))


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.Streams, desk: Desk) -> base.Sent:
    """The noisy sum of this client's clipped gradients at the current parameters."""
    made = plan.made
    exact = partial(clipped_gradient_sum, made.layout, model["parameters"], work.x, work.labels, made.clip)
    return {"gradient": desk.release("model", exact)}


def server(plan: Planned, state: base.State[Memory], inbox: base.Inbox) -> base.State[Memory]:
    """One step on the mean over the public number of nodes: damped Newton, or momentum and averaged iterates."""
    gradient = (inbox.sums["gradient"] / plan.facts.num_train).astype(np.float32)
    if plan.facts.attendance.words:  # the sum of a sample of clients, of which each was as likely as any other, stands for all
        gradient *= np.float32(plan.facts.sizes.num_clients / inbox.num_clients)
    before, made = state.model["parameters"], plan.made
    if made.curvature is not None:
        step = (made.curvature @ gradient.reshape(made.curvature.shape[0], -1)).reshape(-1)
        after = before - np.float32(made.learning_rate) * step
        return base.State({"parameters": after}, Memory(state.memory.velocity, after))
    velocity = plan.params.momentum * state.memory.velocity + gradient
    after = before - np.float32(made.learning_rate) * velocity
    if inbox.round < plan.schedule.rounds - max(1, round(plan.params.averaged * plan.schedule.rounds)):
        return base.State({"parameters": after}, Memory(velocity, after))
    count, average = state.memory.count + 1, state.memory.average
    average = after if count == 1 else average + (after - average) / np.float32(count)
    return base.State({"parameters": after}, Memory(velocity, average, count))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities. On a public graph they spread over its edges and among nodes with like features; where the
    test nodes are private, each row is answered from itself alone."""
    params, basis = plan.params, plan.made.basis
    scores = logits(plan.made.layout, state.memory.average, plan.made.rows(graph))
    if plan.made.pairs is not None:
        scores = _SHARPER * scores
    if plan.facts.public.name != "test-graph":
        return np.asarray(softmax(scores, axis=1))
    if params.spread == "pagerank":
        return personalised_pagerank(graph.adjacency, softmax(scores, axis=1), params.alpha, params.propagation_steps)
    alike: list[tuple[float | np.ndarray, sp.csr_array]] = []
    if basis is not None:
        alike.append((plan.made.likeness, look_alikes(coordinates(graph.features, basis[:, :100]), 10)))
    if params.coupling == "auto":
        return coupled_field(scores, graph.adjacency, alike, MOST_HEARD * doubt(scores), params.propagation_steps)
    return mean_field(scores, [(params.coupling * doubt(scores), graph.adjacency), *alike], params.propagation_steps)


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """With the weights after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    own = own_models.tuned(plan.made.layout, state.memory.average, plan.made.rows(graph), graph.labels, rng)
    return replace(state, memory=replace(state.memory, average=own))


def _total_mu(budget: base.Budget) -> float:
    if budget.calibrated_by == "published" and budget.private:
        return gaussian.moments_mu(budget.epsilon, budget.delta)
    return 1.0 / calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta) if budget.private else math.inf


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.Reads.PUBLIC_GRAPH if plan.facts.public.name == "test-graph" else base.Reads.OWN_ROW,
    situations=(base.Situation("inductive", settings={"steps": 5}), base.Situation("asking", settings={"steps": 5})),
    any_broadcast=True,  # each row is clipped at whatever parameters are sent
    private_test_nodes=True,
    partial_rounds=True,
    answers_every_round=True,
    drafts=(
        base.Draft(
            "graph", "node", {"label": "Features"}, "each node's own row; edges only where they are public", edgeless=True
        ),
        base.Draft("federation", "node", {"label": "Features"}, "each node's own row", quick={"steps": 40}),
    ),
    num_sent=num_sent,
    tuned=tuned,
    reads_rounds=reads_rounds,
    evidence=evidence_of_rounds,
    observe=GradientSums,
)
