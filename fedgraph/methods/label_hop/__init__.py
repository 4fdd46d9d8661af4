"""Label hop: private edges improve the answer to a private node, at a node-level ε that needs no promise about degrees.

Noise on a *sum over neighbours* must hide a hub, which is in up to n − 1 sums: the best cap that reads degrees only leaves
Δ ≈ √n/ln n (``privacy.degree_caps``). Here noise is put on what a node *says*, once, before any sum: every training node
answers with its label, randomised by itself (``mechanisms.masked_response``), and the answers are public from then on. Whoever
asks adds up the answers of its own neighbours, exactly: it knows its own edges, and its answer is shown to it alone. No edge of
anybody else is read, so a hub changes nothing but its own answer.

Three releases. *Labels*: pure ε, each node its own. *Meetings*: how often classes meet along training edges, as matching
numbers, of which one node changes little whatever its degree (``privacy.meetings``): no homophily is assumed, votes are weighed
by what was measured, signed and for each pair of classes. *Model*: a logistic regression on rows, clipped gradients, as in
``features`` without anything public; it reads no edge.

A node that asks (``protocol: asking``) gets log P(class | own row) + Σ over its neighbours of log P(answer | class)/P(answer).
A public test graph has no edge to answered labels; there predictions of rows spread over public edges, coupled as classes were
measured to meet along private ones. One hop only: a second message would depend on its sender's edges, and so on every hub.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import log_softmax, softmax

from fedgraph.learning import fine_tuning
from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.layers.models import Layout, logits
from fedgraph.learning.layers.sparse import FeatureMatrix, device, unit_rows
from fedgraph.learning.optimisers.dp_training import Descended, Descent
from fedgraph.learning.propagation.label_votes import affinities, class_shares, votes
from fedgraph.learning.propagation.mean_field import doubt, mean_field, scaled_to
from fedgraph.learning.sampling.meetings import matching_numbers
from fedgraph.methods.base import (
    Budget,
    Draft,
    Inbox,
    Offers,
    Plan,
    PublicFacts,
    Reads,
    Schedule,
    Situation,
    State,
    Streams,
    Sums,
    gradient_std,
    public_assumptions,
    setting_assumptions,
    several_colluders,
)
from fedgraph.methods.label_hop.budget import Split, split
from fedgraph.methods.label_hop.params import Params
from fedgraph.privacy import meetings
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Gaussian, PureDP, Unprotected
from fedgraph.privacy.mechanisms.masked_response import ABSENT, MaskedResponse
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise
from fedgraph.privacy.meetings import MeetingCounts
from fedgraph.privacy.sensitivity import Box, ClippedSum, kernel_name, sensitivity_l2
from fedgraph.privacy.settle import Guarantee
from fedgraph.privacy.units import Assumption, Protection, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = """@article{warner1965randomized,
  title = {Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias},
  author = {Warner, Stanley L.}, journal = {Journal of the American Statistical Association}, volume = {60}, year = {1965}}
@inproceedings{kearns2014mechanism,
  title = {Mechanism Design in Large Games: Incentives and Privacy},
  author = {Kearns, Michael and Pai, Mallesh and Roth, Aaron and Ullman, Jonathan},
  booktitle = {Innovations in Theoretical Computer Science}, year = {2014}}"""

CLEAR, FREE = Disclose("no noise was asked for"), Unprotected("no noise")
MOST_HEARD = 4.0  # as in features: log-odds that a sure neighbour may bring on a public graph, × mean doubt


@dataclass(frozen=True, eq=False)
class Work:
    """A client's rows, labels (int64, −1 where unknown), answers it will give (−2 for nodes that only ask) and graph."""

    x: FeatureMatrix
    labels: torch.Tensor
    said: np.ndarray
    nodes: np.ndarray
    adjacency: sp.csr_array


@dataclass(frozen=True, eq=False)
class Made:
    """layout of the rows' model; first: the round of its first gradient; parts: how the budget is divided."""

    layout: Layout
    first: int
    parts: Split


@dataclass(frozen=True, eq=False)
class Memory:
    """Of the server: the descent; answers, int64 [num_nodes], and meetings, float64 [c(c + 1)/2], None before they came."""

    descent: Descended
    answers: np.ndarray | None = None
    meetings: np.ndarray | None = None


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Made]:
    """Round 0 answers and meetings, then one gradient a round; all priced from public numbers alone."""
    parts = split(params, facts, budget)
    first = 1 if parts.labels else 0
    releases = [_gradient(params, facts, parts, range(first, first + parts.steps))]
    if parts.labels:
        releases += [_labels(params, facts, parts), _meetings(params, facts, parts)]
    asks = (Assumption.ANSWERS_PRIVATE,) if facts.public.asking.size else ()
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *asks)
    _, min_clients = gradient_std(1.0, 1.0, facts)
    return Plan(
        method="label_hop",
        params=params,
        facts=facts,
        guarantee=Guarantee(
            Protection(
                params.protects,
                facts.viewer,
                (*assumed, *public_assumptions(facts), *setting_assumptions(facts, params.protects)),
                colluders=several_colluders(facts),
            ),
            budget.delta,
            facts.membership.holdings,
            per_end=False,
        ),
        schedule=Schedule(
            rounds=first + parts.steps, releases=tuple(releases), min_clients=min_clients if budget.private else 1
        ),
        made=Made(Layout((facts.sizes.num_features, facts.sizes.num_classes), bias_scale=0.1), first, parts),
        sums=Sums(suffice=True),
    )


def _gradient(params: Params, facts: PublicFacts, parts: Split, rounds: range) -> PlannedRelease:
    bound = ClippedSum(parts.clip, facts.sizes.num_nodes, kernel_name(clipped_gradient_sum))
    if not parts.gradient:
        return PlannedRelease("model", bound, CLEAR, FREE, rounds)
    std, _ = gradient_std(parts.gradient, sensitivity_l2(bound, params.protects), facts)
    return PlannedRelease("model", bound, GaussianNoise(std), Gaussian(parts.gradient), rounds)


def _labels(params: Params, facts: PublicFacts, parts: Split) -> PlannedRelease:
    bound = Box(ABSENT, facts.sizes.num_classes - 1)
    if math.isinf(parts.labels):
        return PlannedRelease("labels", bound, CLEAR, FREE, range(1))
    response = MaskedResponse(parts.labels, facts.sizes.num_classes, params.protects.replaces)
    return PlannedRelease("labels", bound, response, PureDP(parts.labels), range(1))


def _meetings(params: Params, facts: PublicFacts, parts: Split) -> PlannedRelease:
    bound = MeetingCounts(facts.sizes.num_nodes, facts.sizes.num_classes)
    if not parts.meetings:
        return PlannedRelease("meetings", bound, CLEAR, FREE, range(1))
    std, _ = gradient_std(parts.meetings, meetings.sensitivity(params.protects, facts.sizes.num_classes), facts)
    return PlannedRelease("meetings", bound, GaussianNoise(std), Gaussian(parts.meetings), range(1))


def start(plan: Plan[Params, Made], rng: np.random.Generator) -> State[Memory]:
    descent = _descent(plan).start(plan.made.layout.start(rng))
    return State({"parameters": descent.parameters}, Memory(descent))


def prepare(plan: Plan[Params, Made], subgraph: Subgraph) -> Work:
    graph, nodes = subgraph.graph, subgraph.nodes
    said = np.where(np.isin(nodes, plan.facts.public.asking), ABSENT, graph.labels)
    x = FeatureMatrix(unit_rows(graph.features))
    return Work(x, torch.tensor(graph.labels, device=device()), said, nodes, graph.adjacency)


def client(
    plan: Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Answers and meetings first, then noisy gradient sums at the current parameters."""
    made, facts = plan.made, plan.facts
    if round_ < made.first:
        everybody = np.full(facts.sizes.num_nodes, ABSENT, dtype=np.int64)
        everybody[work.nodes] = work.said
        counted = partial(matching_numbers, work.adjacency, work.said, facts.sizes.num_classes, work.nodes, plan.params.kept)
        return {"labels": desk.release("labels", everybody), "meetings": desk.release("meetings", counted)}
    exact = partial(clipped_gradient_sum, made.layout, model["parameters"], work.x, work.labels, made.parts.clip)
    return {"gradient": desk.release("model", exact)}


def server(plan: Plan[Params, Made], state: State[Memory], inbox: Inbox) -> State[Memory]:
    """Keep what was answered; then one step on the mean over the public number of training nodes."""
    first = plan.made.first
    if inbox.round < first:
        in_clear = math.isinf(plan.made.parts.labels)
        answers = _answers(inbox, in_clear)
        return State(state.model, Memory(state.memory.descent, answers, inbox.sums["meetings"]))
    mean = (inbox.sums["gradient"] / plan.facts.num_train).astype(np.float32)
    descent = _descent(plan).step(state.memory.descent, mean, inbox.round - first)
    return State({"parameters": descent.parameters}, replace(state.memory, descent=descent))


def _answers(inbox: Inbox, in_clear: bool) -> np.ndarray:
    """int64 [num_nodes]: 0 … c − 1, or −1 where nobody answered. Of labels in clear, −2 + … + −2 + k for K clients."""
    total = inbox.sums["labels"].astype(np.int64)
    return np.maximum(total + 2 * (inbox.num_clients - 1), -1) if in_clear else total - 1


def predict(plan: Plan[Params, Made], state: State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities. Nodes that ask: own row and the answers of own neighbours. A public graph: spread over it."""
    scores = logits(plan.made.layout, state.memory.descent.average, FeatureMatrix(unit_rows(graph.features)))
    scores = scores / math.sqrt(1 + math.pi / 8 * _score_noise(plan) ** 2)
    facts, answers = plan.facts, state.memory.answers
    if answers is not None and facts.public.asking.size and graph.num_nodes >= facts.sizes.num_nodes:
        affinity, shares, keep = _measured(plan, answers, state.memory.meetings)
        answers = np.append(answers, np.full(graph.num_nodes - answers.size, -1))  # who came later has answered nothing
        return np.asarray(
            softmax(log_softmax(scores, axis=1) + votes(graph.adjacency, answers, affinity, shares, keep), axis=1)
        )
    if answers is not None and facts.public.name == "test-graph":
        coupling = scaled_to(np.log(_measured(plan, answers, state.memory.meetings)[0]), MOST_HEARD * doubt(scores))
        return mean_field(scores, [(coupling, graph.adjacency)], plan.params.propagation_steps)
    return np.asarray(softmax(scores, axis=1))


def tuned(plan: Plan[Params, Made], state: State[Memory], graph: Graph, rng: np.random.Generator) -> State[Memory]:
    """With the rows' weights after a client's own steps on ``graph``, in clear (``learning.fine_tuning``)."""
    descent, x = state.memory.descent, FeatureMatrix(unit_rows(graph.features))
    own = fine_tuning.tuned(plan.made.layout, descent.average, x, graph.labels, rng)
    return replace(state, memory=replace(state.memory, descent=replace(descent, average=own)))


def _score_noise(plan: Plan[Params, Made]) -> float:
    """Standard deviation that noise alone gives a score of a unit row; scores are made less sure by it (MacKay 1992, eq. 9)."""
    noise = plan.schedule.releases[0].mechanism
    if not isinstance(noise, GaussianNoise):
        return 0.0
    return _descent(plan).gain() * noise.std * math.sqrt(2 * plan.facts.sizes.num_clients) / plan.facts.num_train


def _measured(plan: Plan[Params, Made], answers: np.ndarray, counts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """(affinities [c, c], class shares [c], how often an answer is true); all of it post-processing."""
    facts, released = plan.facts, {r.path: r.mechanism for r in plan.schedule.releases}
    answered, noise = released["labels"], released["meetings"]
    keep = min(answered.keep if isinstance(answered, MaskedResponse) else 1.0, 1 - 1e-6)
    shares = class_shares(answers, facts.sizes.num_classes, keep)
    std = noise.std * math.sqrt(facts.sizes.num_clients) if isinstance(noise, GaussianNoise) else 1e-3
    return affinities(np.zeros(0) if counts is None else counts, std, facts.num_train, shares), shares, keep


def _descent(plan: Plan[Params, Made]) -> Descent:
    parts = plan.made.parts
    return Descent(parts.rate, plan.params.momentum, parts.steps, plan.params.averaged)


def evidence(plan: Plan[Params, Made], state: State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """Per unit (node, label in version 0, label in version 1): what its answer says, 1 or −1 where it is one of them."""
    if state.memory.answers is None:
        return None
    said = state.memory.answers[units[:, 0]]
    return np.asarray((said == units[:, 2]).astype(float) - (said == units[:, 1]))


def reads(plan: Plan[Params, Made]) -> Reads:
    """What an answer reads: on a public graph the others' rows, too; for who asks, the answers of its own neighbours."""
    if plan.facts.public.name == "test-graph":
        return Reads.PUBLIC_GRAPH
    return Reads.OWN_EDGES if plan.made.first and plan.facts.public.asking.size else Reads.OWN_ROW


OFFERS: Offers[Params, Made, Work, Memory] = Offers(
    kind="classifier",
    units=(Unit.NODE,),
    reads=reads,
    situations=(Situation("asking", settings={"steps": 5}), Situation("inductive", settings={"steps": 5})),
    private_test_nodes=True,  # each answers from its own row and its own edges
    drafts=(
        Draft("graph", "node", {"label": "neighbours' labels"}, "and what its neighbours answered"),
        Draft("federation", "node", {"label": "neighbours' labels"}, "and what its neighbours answered", quick={"steps": 40}),
    ),
    tuned=tuned,
    evidence=evidence,
)
