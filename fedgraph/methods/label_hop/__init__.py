"""Label hop: private edges improve the answer to a private node, at a node-level ε that needs no promise about degrees.

Noise on a *sum over neighbours* must hide a hub, which is in up to n − 1 sums: the best cap that reads degrees only leaves
Δ ≈ √n/ln n (``privacy.neighbour_sums``). Here noise is put on what a node *says*, once, before any sum: every training node
answers with its label, randomised by itself (``mechanisms.local_bits``), and the answers are public from then on. Whoever
asks adds up the answers of its own neighbours, exactly: it knows its own edges, and its answer is shown to it alone. No edge of
anybody else is read, so a hub changes nothing but its own answer. This is joint differential privacy (Kearns et al. 2014).

Three releases. *Meetings*: how often classes meet along training edges, as matching numbers, of which one node changes little
whatever its degree (``private_counts``): no homophily is assumed, votes are weighed by what was measured, signed. They also
choose how the rest is spent: where neighbours tell little, the next release is not made and rows get its budget (``budget``).
*Labels*: pure ε, each node its own. *Model*: a logistic regression on rows, clipped gradients, as in ``features`` without
anything public; it reads no edge.

A node that asks (``protocol: asking``) gets log P(class | own row) + Σ over its neighbours of log P(answer | class)/P(answer),
the sum divided by what neighbours have in common. A public test graph has no edge to answered labels, and no private edge is
read: all of the budget is for rows, whose predictions spread over public edges as they themselves meet there
(``mean_field``). One hop only: a second message would depend on its sender's edges, and so on every hub.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax, softmax

from fedgraph.learning import (
    Descended,
    Descent,
    FeatureMatrix,
    Layout,
    MeetingAnswers,
    MeetingReading,
    layouts,
    mean_field,
    meetings,
    own_models,
    per_sample,
    torch,
    torch_device,
    unit_matrix_rows,
)
from fedgraph.methods import base
from fedgraph.methods.label_hop import releases
from fedgraph.methods.label_hop.releases import LabelHopTraining, Made, Params
from fedgraph.privacy import ABSENT_LABEL, Assumption, Desk, GaussianNoise, MeetingCounts, Released, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("warner1965randomized", "kearns2014mechanism")

_MOST_HEARD = 4.0  # as in features: log-odds that a sure neighbour may bring on a public graph, × mean doubt


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares.

    Attributes:
        x: its rows, at unit length.
        labels: int64 [n], −1 where unknown.
        said: int64 [n], the answers that its nodes will give: their labels, or −2 for nodes that only ask.
        nodes: int64 [n], their global ids.
        adjacency: CSR [n, n], its edges.
    """

    x: FeatureMatrix
    labels: torch.Tensor
    said: np.ndarray
    nodes: np.ndarray
    adjacency: sp.csr_array


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers.

    Attributes:
        descent: where it is.
        meetings: float64, as released; None before they came.
        answers: [num_nodes, c], 1 where a class was named; None before they came.
        hop: whether labels are answered.
    """

    descent: Descended
    meetings: np.ndarray | None = None
    answers: np.ndarray | None = None
    hop: bool = True


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Meetings in round 0, then answers, then one gradient a round; all priced from public numbers alone."""
    parts, layout = releases.split_label_hop_budget(params, facts, budget), (facts.num_features, facts.num_classes)
    made = Made(Layout(layout, bias_scale=0.1), parts, int(parts.choice is not None))
    planned = releases.plan_for(params, facts, made)
    asks = (Assumption.ANSWERS_PRIVATE,) if facts.asks else ()
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *asks, *base.assume_public_facts(facts))
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False)
    min_clients = base.gradient_std(1.0, 1.0, facts)[1] if budget.private else 1
    schedule = base.PlanSchedule(max(release.rounds[-1] for release in planned) + 1, planned, min_clients)
    return base.Plan("label_hop", params, facts, guarantee, schedule, made, sums=base.PlanSums(suffice=True))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    descent = _descent(plan, plan.made.training(True)[2]).start(plan.made.layout.start(rng))
    return _state(Memory(descent))


def _state(memory: Memory) -> base.State[Memory]:
    return base.State({"parameters": memory.descent.parameters, "hop": np.array([memory.hop])}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph, nodes = subgraph.graph, subgraph.nodes
    said = np.where(np.isin(nodes, plan.facts.asking), ABSENT_LABEL, graph.labels)
    x = FeatureMatrix(unit_matrix_rows(graph.features))
    return Work(x, torch.tensor(graph.labels, device=torch_device()), said, nodes, graph.adjacency)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """Meetings; answers where they are asked for; then noisy gradient sums at the current parameters."""
    made, facts, hop = plan.made, plan.facts, bool(model["hop"][0])
    path, first, training = made.training(hop)
    sent: dict[str, Released] = {}
    if made.measures and round_ == 0:
        counted = MeetingCounts(facts.num_nodes, facts.num_classes, made.parts.by_class)
        exact = partial(meetings.count, work.adjacency, work.said, work.nodes, counted)
        sent["meetings"] = desk.release("meetings", exact)
    if made.parts.labels and hop and round_ == made.says:
        everybody = np.full(facts.num_nodes, ABSENT_LABEL, dtype=np.int64)
        everybody[work.nodes] = work.said
        sent["labels"] = desk.release("labels", everybody)
    if first <= round_ < first + training.steps:
        exact = partial(per_sample.clipped_sum, made.layout, model["parameters"], work.x, work.labels, training.clip)
        sent["gradient"] = desk.release(path, exact)
    return sent


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Keep what was measured and answered, and choose; then one step on the mean over the public number of training nodes."""
    memory, made = state.memory, plan.made
    if "meetings" in inbox.sums:
        memory = replace(memory, meetings=inbox.sums["meetings"])
        if made.parts.choice is not None:
            reading, how = label_hop_meetings(plan, memory), _answering(plan)
            worth = releases.is_worth(made.parts, plan.facts, reading, how, plan.params.correlation)
            memory = replace(memory, hop=worth)
    if "labels" in inbox.sums:
        memory = replace(memory, answers=_answers(plan, inbox))
    if "gradient" in inbox.sums:
        _, first, training = made.training(memory.hop)
        mean = (inbox.sums["gradient"] / plan.facts.num_train).astype(np.float32)
        memory = replace(memory, descent=_descent(plan, training).step(memory.descent, mean, inbox.round - first))
    return _state(memory)


def _answers(plan: Planned, inbox: base.PlanInbox) -> np.ndarray:
    """[num_nodes, c]: 1 where a class was named. Labels in clear come as −2 + … + −2 + k of K clients."""
    total = np.asarray(inbox.sums["labels"])
    if not math.isinf(plan.made.parts.labels):
        return np.minimum(total, 1)
    labels = total.astype(np.int64) + 2 * (inbox.num_clients - 1)
    return np.asarray(labels[:, None] == np.arange(plan.facts.num_classes), dtype=np.int16)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities. Nodes that ask: own row and the answers of own neighbours. A public graph: spread over it."""
    memory, facts = state.memory, plan.facts
    if not plan.params.rows and memory.answers is not None:
        return np.asarray(softmax(graph.adjacency @ _of_all(memory.answers, graph), axis=1))
    scores = layouts.logits(plan.made.layout, memory.descent.average, FeatureMatrix(unit_matrix_rows(graph.features)))
    scores = scores / math.sqrt(1 + math.pi / 8 * _score_noise(plan, memory.hop) ** 2)
    if memory.answers is not None and facts.asks and graph.num_nodes >= facts.num_nodes:
        answers, reading = _of_all(memory.answers, graph), label_hop_meetings(plan, memory)
        heard = meetings.vote(graph.adjacency, answers, reading, _answering(plan), plan.params.correlation)
        return np.asarray(softmax(log_softmax(scores, axis=1) + heard, axis=1))
    if facts.public == "test-graph":
        most = _MOST_HEARD * mean_field.doubt(scores)
        return mean_field.couple(scores, graph.adjacency, [], most, plan.params.propagation_steps)
    return np.asarray(softmax(scores, axis=1))


def _of_all(answers: np.ndarray, graph: Graph) -> np.ndarray:
    """``answers`` of all nodes of ``graph``: who came later said nothing."""
    return np.pad(answers, ((0, graph.num_nodes - len(answers)), (0, 0)))


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """With the rows' weights after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    descent, x = state.memory.descent, FeatureMatrix(unit_matrix_rows(graph.features))
    own = own_models.tune(plan.made.layout, descent.average, x, graph.labels, rng)
    return replace(state, memory=replace(state.memory, descent=replace(descent, average=own)))


def _score_noise(plan: Planned, hop: bool) -> float:
    """Standard deviation that noise alone gives a score of a unit row; scores are made less sure by it (MacKay 1992, eq. 9)."""
    path, _, training = plan.made.training(hop)
    noise = next(r.mechanism for r in plan.schedule.releases if r.path == path)
    if not isinstance(noise, GaussianNoise):
        return 0.0
    return _descent(plan, training).gain() * noise.std * math.sqrt(2 * plan.facts.num_clients) / plan.facts.num_train


def _answering(plan: Planned) -> MeetingAnswers:
    return releases.label_hop_answering(plan.made.parts.labels, plan.facts.num_classes, plan.params.protects.replaces)


def label_hop_meetings(plan: Planned, memory: Memory) -> MeetingReading:
    """How classes meet, as was measured; all of it post-processing."""
    facts = plan.facts
    noise = next(r.mechanism for r in plan.schedule.releases if r.path == "meetings")
    std = noise.std * math.sqrt(facts.num_clients) if isinstance(noise, GaussianNoise) else 1e-3
    counted = MeetingCounts(facts.num_nodes, facts.num_classes, plan.made.parts.by_class)
    found = np.zeros(counted.length) if memory.meetings is None else memory.meetings
    return meetings.read(found, std, counted, facts.num_train)


def _descent(plan: Planned, training: LabelHopTraining) -> Descent:
    return Descent(training.rate, plan.params.momentum, training.steps, plan.params.averaged)


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """Per unit (node, label in version 0, label in version 1): what its answer says, 1 or −1 where it is one of them."""
    if state.memory.answers is None:
        return None
    named, (node, before, after) = state.memory.answers, units[:, :3].T
    return np.asarray(named[node, after].astype(float) - named[node, before])


def reads(plan: Planned) -> base.MethodReads:
    """What an answer reads: on a public graph the others' rows, too; for who asks, the answers of its own neighbours."""
    if plan.facts.public == "test-graph":
        return base.MethodReads.PUBLIC_GRAPH
    return base.MethodReads.OWN_EDGES if plan.made.parts.labels and plan.facts.asks else base.MethodReads.OWN_ROW


_LABEL, _ANSWERED = {"label": "neighbours' labels"}, "and what its neighbours answered"
OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=reads,
    situations=(
        base.MethodSituation("asking", settings={"steps": 5}),
        base.MethodSituation("inductive", settings={"steps": 5}),
    ),
    private_test_nodes=True,  # each answers from its own row and its own edges
    drafts=(
        base.MethodDraft("graph", "node", _LABEL, _ANSWERED),
        base.MethodDraft("federation", "node", _LABEL, _ANSWERED, quick={"steps": 40}),
    ),
    tuned=tuned,
    evidence=evidence,
)
