"""Label hop: private edges improve the answer to a private node, at a node-level ε that needs no promise about degrees.

Noise on a *sum over neighbours* must hide a hub, which is in up to n − 1 sums: the best cap that reads degrees only leaves
Δ ≈ √n/ln n (``privacy.neighbour_sums``). Here noise is put on what a node *says*, once, before any sum: every training node
answers with its label, randomised by itself (``mechanisms.local_bits``), and the answers are public from then on. Whoever
asks adds up the answers of its own neighbours, exactly: it knows its own edges, and its answer is shown to it alone. No edge of
anybody else is read, so a hub changes nothing but its own answer. This is joint differential privacy (Kearns et al. 2014).

Measured first, for a small part of the budget: *meetings*, how often classes meet along training edges, as matching numbers, of
which one node changes little whatever its degree (``private_counts``); and what rows know: a *pilot*, a short training on one
half of the people, which public coins name, and how often it is right about the other half (*judged*). What is found chooses
one of three ways to spend the rest (``releases.Way``): labels are answered beside a training on rows; rows alone; or labels
alone. *Labels*: pure ε, each node its own. *Rows*: a logistic regression, clipped gradients, as in ``features`` without
anything public.

A node that asks (``protocol: asking``) gets log P(class | own row) + Σ over its neighbours of log P(answer | class)/P(answer),
the sum divided by what neighbours have in common. Where labels alone are answered, it gets the majority of its neighbours'
answers, or Bayes' rule where like classes were measured to meet less often than by chance.

A public test graph has no edge to answered labels, and no private edge is
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
    descents,
    draw_neighbour_limit_coins,
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
from fedgraph.methods.label_hop.releases import LabelHopTraining, Made, Params, Way
from fedgraph.privacy import ABSENT_LABEL, Assumption, Desk, GaussianNoise, MeetingExcess, Released, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("warner1965randomized", "kearns2014mechanism")

_UNLIKE = 1.0  # standard deviations below 0 from which classes are taken to meet their like less often than others
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
        judges: bool [n], public coins: who is in the half that judges the pilot, and does not train it.
    """

    x: FeatureMatrix
    labels: torch.Tensor
    said: np.ndarray
    nodes: np.ndarray
    adjacency: sp.csr_array
    judges: np.ndarray


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers.

    Attributes:
        descent: where it is.
        meetings: float64, as released; None before they came.
        answers: [num_nodes, c], 1 where a class was named; None before they came.
        way: how the rest of the budget is spent.
        pilot: where the short training is; None where there is none, or once it was judged.
    """

    descent: Descended
    meetings: np.ndarray | None = None
    answers: np.ndarray | None = None
    way: Way = Way.BOTH
    pilot: Descended | None = None


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Meetings in round 0, then answers, then one gradient a round; all priced from public numbers alone."""
    parts, layout = releases.split_label_hop_budget(params, facts, budget), (facts.sizes.num_features, facts.sizes.num_classes)
    made = Made(Layout(layout, bias_scale=0.1), parts)
    planned = releases.plan_for(params, facts, made)
    asks = (Assumption.ANSWERS_PRIVATE,) if facts.public.asks else ()
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *asks, *base.assume_public_facts(facts))
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False)
    min_clients = base.gradient_std(1.0, 1.0, facts)[1] if budget.private else 1
    schedule = base.PlanSchedule(max(release.rounds[-1] for release in planned) + 1, planned, min_clients)
    return base.Plan("label_hop", params, facts, guarantee, schedule, made, sums=base.PlanSums(suffice=True))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    begins = plan.made.layout.start(rng)
    pilot = plan.made.parts.pilot
    descent = _descent(plan, plan.made.training(Way.BOTH)[2]).start(begins)
    return _state(plan, Memory(descent, pilot=None if pilot is None else _descent(plan, pilot).start(begins)))


def _state(plan: Planned, memory: Memory) -> base.State[Memory]:
    """Broadcast are the parameters that gradients are asked for at, the way, and the class that most are taken to have."""
    at = memory.descent.parameters if memory.pilot is None else memory.pilot.parameters
    guess = 0
    if plan.made.parts.sign:  # nobody counted classes: what a row of 1 is told, so that a column of one sign knows nothing
        one = FeatureMatrix(sp.csr_array(np.ones((1, 1), dtype=np.float32)))
        guess = int(layouts.logits(plan.made.layout, at, one).argmax())
    elif memory.meetings is not None:
        guess = int(np.argmax(memory.meetings[: plan.facts.sizes.num_classes]))
    return base.State({"parameters": at, "way": np.array([memory.way]), "guess": np.array([guess])}, memory)


_HALF = 2  # names the public coins that say who judges the pilot


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph, nodes = subgraph.graph, subgraph.nodes
    said = np.where(np.isin(nodes, plan.facts.public.asking), ABSENT_LABEL, graph.labels)
    x = FeatureMatrix(unit_matrix_rows(graph.features))
    judges = draw_neighbour_limit_coins(nodes, nodes, _HALF) >> np.uint64(63) == 1
    return Work(x, torch.tensor(graph.labels, device=torch_device()), said, nodes, graph.adjacency, judges)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """Meetings; the pilot and how it is judged; answers where they are asked for; noisy gradient sums at the parameters."""
    made, facts, way = plan.made, plan.facts, Way(int(model["way"][0]))
    path, first, training = made.training(way)
    pilot, (answered, labels) = made.parts.pilot, made.answers(way)
    sent: dict[str, Released] = {}

    def gradient(labels: torch.Tensor, clip: float) -> partial[np.ndarray]:
        return partial(per_sample.clipped_sum, made.layout, model["parameters"], work.x, labels, clip)

    if made.measures and round_ == 0:
        counted, seen = made.counted(facts), (work.adjacency, work.said, work.nodes)
        if isinstance(counted, MeetingExcess):
            excess = partial(meetings.count_excess, *seen, counted.num_classes, counted.rate)
            sent["meetings"] = desk.release("meetings", excess)
        else:
            sent["meetings"] = desk.release("meetings", partial(meetings.count, *seen, counted))
    if pilot is not None and 1 <= round_ <= pilot.steps:
        sent["pilot"] = desk.release("pilot", gradient(descents.mask_labels(work.labels, ~work.judges), pilot.clip))
    if pilot is not None and round_ == pilot.steps + 1:
        sent["judged"] = desk.release("judged", _judged(plan, work, model))
    if labels and round_ == made.says:
        everybody = np.full(facts.sizes.num_nodes, ABSENT_LABEL, dtype=np.int64)
        everybody[work.nodes] = work.said
        sent["labels"] = desk.release(answered, everybody)
    if first <= round_ < first + training.steps:
        sent["gradient"] = desk.release(path, gradient(work.labels, training.clip))
    return sent


def _judged(plan: Planned, work: Work, model: base.Model) -> np.ndarray:
    """float64 [n, 1]: 1 where the pilot is right and the class that was counted most often is wrong, −1 for the opposite, of
    who judges and has a label; else 0.
    """
    labels = work.labels.cpu().numpy()
    named = layouts.logits(plan.made.layout, model["parameters"], work.x).argmax(axis=1)
    better = (named == labels).astype(np.float64) - (labels == int(model["guess"][0]))
    return np.where(work.judges & (labels >= 0), better, 0.0)[:, None]


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Keep what was measured and answered, and choose; then one step on the mean over the public number of training nodes."""
    memory, made = state.memory, plan.made
    if "meetings" in inbox.sums:
        memory = replace(memory, meetings=inbox.sums["meetings"])
        if made.parts.choice is not None and made.parts.pilot is None:
            memory = _choose(plan, memory, None)
    if "pilot" in inbox.sums and made.parts.pilot is not None and memory.pilot is not None:
        mean = (2 * inbox.sums["pilot"] / plan.facts.num_train).astype(np.float32)
        after = _descent(plan, made.parts.pilot).step(memory.pilot, mean, inbox.round - 1)
        judged = inbox.round == made.parts.pilot.steps
        memory = replace(memory, pilot=replace(after, parameters=after.average) if judged else after)
    if "judged" in inbox.sums:
        memory = _choose(plan, replace(memory, pilot=None), float(inbox.sums["judged"][0]))
    if "labels" in inbox.sums:
        memory = replace(memory, answers=_answers(plan, memory.way, inbox))
    if "gradient" in inbox.sums:
        _, first, training = made.training(memory.way)
        mean = (inbox.sums["gradient"] / plan.facts.num_train).astype(np.float32)
        memory = replace(memory, descent=_descent(plan, training).step(memory.descent, mean, inbox.round - first))
    return _state(plan, memory)


def _choose(plan: Planned, memory: Memory, judged: float | None) -> Memory:
    std = 0.0 if judged is None else _noise(plan, "judged")
    reading = label_hop_meetings(plan, memory)
    return replace(memory, way=releases.choose_label_hop_way(plan.params, plan.facts, plan.made.parts, reading, judged, std))


def _answers(plan: Planned, way: Way, inbox: base.PlanInbox) -> np.ndarray:
    """[num_nodes, c]: 1 where a class was named. Labels in clear come as −2 + … + −2 + k of K clients."""
    total = np.asarray(inbox.sums["labels"])
    if not math.isinf(plan.made.answers(way)[1]):
        return np.minimum(total, 1)
    labels = total.astype(np.int64) + 2 * (inbox.num_clients - 1)
    return np.asarray(labels[:, None] == np.arange(plan.facts.sizes.num_classes), dtype=np.int16)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities. Nodes that ask: own row and the answers of own neighbours. A public graph: spread over it."""
    memory, facts = state.memory, plan.facts
    known = memory.answers is not None and graph.num_nodes >= facts.sizes.num_nodes  # these answered, or more
    if memory.answers is not None and (not plan.params.rows or memory.way is Way.VOTES):
        votes = _votes(plan, memory, graph if known else None)
        return np.asarray(softmax(np.broadcast_to(votes, (graph.num_nodes, votes.shape[1])), axis=1))
    scores = layouts.logits(plan.made.layout, memory.descent.average, FeatureMatrix(unit_matrix_rows(graph.features)))
    scores = scores / math.sqrt(1 + math.pi / 8 * _score_noise(plan, memory.way) ** 2)
    if known and facts.public.asks:
        return np.asarray(softmax(log_softmax(scores, axis=1) + _heard(plan, memory, graph), axis=1))
    if facts.public.name == "test-graph":
        most = _MOST_HEARD * mean_field.doubt(scores)
        return mean_field.couple(scores, graph.adjacency, [], most, plan.params.propagation_steps)
    return np.asarray(softmax(scores, axis=1))


def _heard(plan: Planned, memory: Memory, graph: Graph) -> np.ndarray:
    """[n, c] log-odds of the answers of each node's neighbours, by Bayes' rule, with the classes' shares as answers say them.

    Where noise hid how classes meet, but not that they may tell, answers count alike, or as the error of what was measured
    allows where like classes seem to avoid each other.
    """
    answers, reading, by = _of_all(memory, graph), label_hop_meetings(plan, memory), _answering(plan, memory.way)
    if plan.made.parts.choice is not None:
        hidden = reading.tells and (plan.made.parts.sign or not (reading.affinity != 1).any())
        if hidden and reading.alike:
            return meetings.vote_by_majority(graph.adjacency, answers, by, plan.params.correlation)
        reading = reading.hopeful() if hidden else reading
        reading = reading if plan.made.parts.by_class else replace(reading, shares=by.shares(answers))
    return meetings.vote(graph.adjacency, answers, reading, by, plan.params.correlation)


def _votes(plan: Planned, memory: Memory, graph: Graph | None) -> np.ndarray:
    """[n, c] log-odds where answers are all there is: their majority, or Bayes' rule where like classes were measured to meet
    less often than by chance. Who hears nobody, or as much for two classes, is told the one that answers name more often.

    graph: None: its nodes are not known to be those that answered; then [1, c], for all of them.
    """
    by = _answering(plan, memory.way)
    shares = by.shares(np.asarray(memory.answers))
    if graph is None:
        return np.asarray(np.log(shares))[None]
    answers = _of_all(memory, graph)
    if memory.meetings is not None and not label_hop_meetings(plan, memory).alike:
        return np.asarray(_heard(plan, memory, graph) + _TIES * np.log(shares))
    named = meetings.vote_by_majority(graph.adjacency, answers, by, plan.params.correlation)
    return np.asarray(named + _TIES * np.log(shares))


_TIES = 1e-3  # weight of the classes' shares beside a majority: it decides where votes do not


def _of_all(memory: Memory, graph: Graph) -> np.ndarray:
    """Answers of all nodes of ``graph``: who came later said nothing."""
    assert memory.answers is not None
    return np.pad(memory.answers, ((0, graph.num_nodes - len(memory.answers)), (0, 0)))


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """With the rows' weights after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    descent, x = state.memory.descent, FeatureMatrix(unit_matrix_rows(graph.features))
    own = own_models.tune(plan.made.layout, descent.average, x, graph.labels, rng)
    return replace(state, memory=replace(state.memory, descent=replace(descent, average=own)))


def _score_noise(plan: Planned, way: Way) -> float:
    """Standard deviation that noise alone gives a score of a unit row; scores are made less sure by it (MacKay 1992, eq. 9)."""
    path, _, training = plan.made.training(way)
    return _descent(plan, training).gain() * _noise(plan, path) * math.sqrt(2) / plan.facts.num_train


def _noise(plan: Planned, path: str) -> float:
    """Standard deviation of the noise in a sum over clients."""
    noise = next(r.mechanism for r in plan.schedule.releases if r.path == path)
    return noise.std * math.sqrt(plan.facts.sizes.num_clients) if isinstance(noise, GaussianNoise) else 0.0


def _answering(plan: Planned, way: Way) -> MeetingAnswers:
    labels, classes = plan.made.answers(way)[1], plan.facts.sizes.num_classes
    return releases.label_hop_answering(labels, classes, plan.params.protects.replaces)


def label_hop_meetings(plan: Planned, memory: Memory) -> MeetingReading:
    """How classes meet, as was measured; all of it post-processing."""
    facts = plan.facts
    std = _noise(plan, "meetings") or 1e-3
    counted = plan.made.counted(facts)
    if isinstance(counted, MeetingExcess):
        visible = facts.num_train / 2 / (counted.num_classes - 1) >= std  # all meet others: would noise let it be seen?
        alike = memory.meetings is None or not visible or bool(memory.meetings[0] >= -_UNLIKE * std)
        if memory.answers is None:
            return meetings.guess_meetings(alike, np.full(counted.num_classes, 1 / counted.num_classes))
        return meetings.guess_meetings(alike, _answering(plan, memory.way).shares(memory.answers))
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
    if plan.facts.public.name == "test-graph":
        return base.MethodReads.PUBLIC_GRAPH
    return base.MethodReads.OWN_EDGES if plan.made.parts.labels and plan.facts.public.asks else base.MethodReads.OWN_ROW


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
