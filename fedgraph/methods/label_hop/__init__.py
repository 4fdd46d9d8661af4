"""Label hop: private edges improve the answer to a private node, at a node-level ε that needs no promise about degrees.

Noise on a *sum over neighbours* must hide a hub, which is in up to n − 1 sums: the best cap that reads degrees only leaves
Δ ≈ √n/ln n (``privacy.neighbour_sums``). Here noise is put on what a node *says*, once, before any sum: every training node
answers with its label, randomised by itself (``mechanisms.local_bits``), and the answers are public from then on. Whoever
asks adds up the answers of its own neighbours, exactly: it knows its own edges, and its answer is shown to it alone. No edge of
anybody else is read, so a hub changes nothing but its own answer. This is joint differential privacy (Kearns et al. 2014).

What is released. *Meetings*: how often classes meet along training edges, as matching numbers, of which one node changes little
whatever its degree (``private_counts``): votes are weighed by what was measured, signed. *A short training* of a logistic
regression on rows, clipped gradients as in ``features`` without anything public, and counts of what it *got right*. By these
the way to spend the rest is chosen (``choice``): a training on rows alone, answered labels alone, or both in one of
two proportions, each priced with what came before. *Labels* are pure ε, each node its own. *Margins*: where rows and answers
are both heard, noisy counts of how sure and how right the rows' scores are, so that neither drowns the other. Where nothing is
known of people but their ties (one column, the same for all), all but the sign of the ties is for labels.

A node that asks (``protocol: asking``) gets κ·scores of its own row + Σ over its neighbours of log P(answer | class)/P(answer),
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

from fedgraph.errors import PrivacyError
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
from fedgraph.methods.label_hop import choice, releases
from fedgraph.methods.label_hop.releases import LabelHopTraining, Made, Params
from fedgraph.privacy import ABSENT_LABEL, Assumption, Desk, GaussianNoise, MeetingCounts, Released, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("warner1965randomized", "kearns2014mechanism")

_SURE = 1.5  # standard errors below chance from which neighbours are taken for unlike, where nothing but ties is known
_CLEAR = 3.0  # squared standard errors per class that sizes of classes must be apart before they count for much
_MOST_HEARD = 4.0  # as in features: log-odds that a sure neighbour may bring on a public graph, × mean doubt


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    x: FeatureMatrix  # its rows, at unit length
    labels: torch.Tensor  # int64 [n], −1 where unknown
    said: np.ndarray  # int64 [n], the answers that its nodes will give: their labels, or −2 for nodes that only ask
    nodes: np.ndarray  # int64 [n], their global ids
    adjacency: sp.csr_array  # CSR [n, n], its edges


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    descent: Descended  # where it is
    way: int = 0  # which of the ways is gone; 0 before one is chosen
    # float32 [p], the model of the short training; None before it ended, or where there is none
    pilot: np.ndarray | None = None
    meetings: np.ndarray | None = None  # float64, as released; None before they came
    judged: np.ndarray | None = None  # float64, what the short training got right, as released; None before it came
    # float64, how sure and how right the rows' scores are, as released; None before they came
    margins: np.ndarray | None = None
    answers: np.ndarray | None = None  # [num_nodes, c], 1 where a class was named; None before they came


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """What decides first, then the ways; all of it priced from public numbers alone."""
    parts, layout = releases.split_label_hop_budget(params, facts, budget), (facts.num_features, facts.num_classes)
    made = Made(Layout(layout, bias_scale=0.1), parts)
    planned = releases.plan_for(params, facts, made)
    asks = (Assumption.ANSWERS_PRIVATE,) if facts.asks else ()
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *asks, *base.assume_public_facts(facts))
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False)
    min_clients = base.gradient_std(1.0, 1.0, facts)[1] if budget.private else 1
    schedule = base.PlanSchedule(max(release.rounds[-1] for release in planned) + 1, planned, min_clients)
    return base.Plan("label_hop", params, facts, guarantee, schedule, made, sums=base.PlanSums(suffice=True))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return _state(plan, Memory(_begun(plan)), 0)


def _begun(plan: Planned) -> Descended:
    return Descent(1.0, 0.0, 1, 1.0).start(np.zeros(plan.made.layout.num_parameters, dtype=np.float32))


def _state(plan: Planned, memory: Memory, round_: int) -> base.State[Memory]:
    """What is broadcast in ``round_``: the averaged parameters where they are judged or weighed."""
    counted = round_ in (plan.made.judges, plan.made.weighs(memory.way) if round_ >= plan.made.says else None)
    parameters = memory.descent.average if counted else memory.descent.parameters
    return base.State({"parameters": parameters, "way": np.array([memory.way])}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph, nodes = subgraph.graph, subgraph.nodes
    said = np.where(np.isin(nodes, plan.facts.asking), ABSENT_LABEL, graph.labels)
    x = FeatureMatrix(unit_matrix_rows(graph.features))
    return Work(x, torch.tensor(graph.labels, device=torch_device()), said, nodes, graph.adjacency)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """Meetings, and a short training with what it got right; then what the chosen way releases."""
    made, facts, way = plan.made, plan.facts, int(model["way"][0])
    if not 0 <= way < len(made.parts.ways):
        raise PrivacyError(f"label_hop: a way is refused: found {way}; allowed: 0 to {len(made.parts.ways) - 1}")
    chosen, first = made.parts.ways[way], made.first(way)
    sent: dict[str, Released] = {}
    if made.measures and round_ == 0:
        counted = MeetingCounts(facts.num_nodes, facts.num_classes, made.parts.by_class)
        exact = partial(meetings.count, work.adjacency, work.said, work.nodes, counted)
        sent["meetings"] = desk.release("meetings", exact)

    def gradient(path: str, training: LabelHopTraining) -> Released:
        return desk.release(
            path, partial(per_sample.clipped_sum, made.layout, model["parameters"], work.x, work.labels, training.clip)
        )

    def judged(training: LabelHopTraining) -> np.ndarray:
        scores = _tempered(plan, training, model["parameters"], work.x)
        return choice.judged(scores, work.labels.cpu().numpy())

    if made.parts.pilot is not None and made.judges is not None and round_ <= made.judges:
        pilot = made.parts.pilot
        if round_ < made.judges:
            sent["gradient"] = gradient("pilot", pilot)
        else:
            sent["judged"] = desk.release("judged", partial(judged, pilot))
        return sent
    if chosen.labels and round_ == made.says:
        everybody = np.full(facts.num_nodes, ABSENT_LABEL, dtype=np.int64)
        everybody[work.nodes] = work.said
        sent["labels"] = desk.release(made.path("labels", way), everybody)
    if (training := chosen.training) is None:
        return sent
    if first <= round_ < first + training.steps:
        sent["gradient"] = gradient(made.path("model", way), training)
    if round_ == made.weighs(way):
        leads = partial(lambda training: judged(training)[:, facts.num_classes :], training)
        sent["margins"] = desk.release(made.path("margins", way), leads)
    return sent


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Keep what was measured and answered, and choose; then one step on the mean over the public number of training nodes."""
    memory, made = state.memory, plan.made
    if "meetings" in inbox.sums:
        memory = replace(memory, meetings=inbox.sums["meetings"])
    if "judged" in inbox.sums:
        memory = replace(memory, judged=inbox.sums["judged"], pilot=memory.descent.average, descent=_begun(plan))
        memory = replace(memory, way=_most_promising(plan, memory))
    if "margins" in inbox.sums:
        memory = replace(memory, margins=inbox.sums["margins"])
    if "labels" in inbox.sums:
        memory = replace(memory, answers=_answers(plan, inbox))
    if "gradient" in inbox.sums:
        early = made.judges is not None and inbox.round < made.judges
        found, first = (made.parts.pilot, 0) if early else (made.parts.ways[memory.way].training, made.first(memory.way))
        descent = _descent(plan, base.require_received(plan, found))
        mean = (inbox.sums["gradient"] / plan.facts.num_train).astype(np.float32)
        memory = replace(memory, descent=descent.step(memory.descent, mean, inbox.round - first))
    return _state(plan, memory, inbox.round + 1)


def _most_promising(plan: Planned, memory: Memory) -> int:
    """Of the ways, by meetings and by what the short training got right."""
    parts, facts, params = plan.made.parts, plan.facts, plan.params
    pilot, counts = base.require_received(plan, parts.pilot), base.require_received(plan, memory.judged)
    reading = label_hop_meetings(plan, memory)
    accuracy, error = choice.seen(counts[: facts.num_classes], reading.shares * plan.facts.num_train, _std(plan, "judged"))
    noise = parts.total * parts.heavier * (2 if params.protects.replaces else 1) / plan.facts.num_train
    rows = choice.Seen(accuracy, error, (pilot.whole / parts.total) ** 2, noise, facts.num_features)
    ways = [
        choice.Spending(
            releases.label_hop_answering(way.labels, facts.num_classes, params.protects.replaces) if way.labels else None,
            math.inf if way.training is None else (way.training.whole / parts.total) ** 2,
        )
        for way in parts.ways
    ]
    return int(choice.promises(ways, reading, params.correlation, rows).argmax())


def _answers(plan: Planned, inbox: base.PlanInbox) -> np.ndarray:
    """[num_nodes, c]: 1 where a class was named. Labels in clear come as −2 + … + −2 + k of K clients."""
    total = np.asarray(inbox.sums["labels"])
    if not math.isinf(plan.made.parts.ways[0].labels):
        return np.minimum(total, 1)
    labels = total.astype(np.int64) + 2 * (inbox.num_clients - 1)
    return np.asarray(labels[:, None] == np.arange(plan.facts.num_classes), dtype=np.int16)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities. Nodes that ask: own row and the answers of own neighbours. A public graph: spread over it."""
    memory, facts = state.memory, plan.facts
    way = plan.made.parts.ways[memory.way]
    training, parameters = (way.training, memory.descent.average) if way.training else (plan.made.parts.pilot, memory.pilot)
    if training is None or parameters is None:
        if graph.num_nodes < facts.num_nodes:  # people who have no tie to anybody that answered
            return np.tile(_shares(plan, memory), (graph.num_nodes, 1))
        answers = base.require_received(plan, memory.answers)
        return np.asarray(softmax(_sign(plan, memory) * (graph.adjacency @ _of_all(answers, graph)), axis=1))
    scores = _tempered(plan, training, parameters, FeatureMatrix(unit_matrix_rows(graph.features)))
    if facts.public == "test-graph":
        most = _MOST_HEARD * mean_field.doubt(scores)
        return mean_field.couple(scores, graph.adjacency, [], most, plan.params.propagation_steps)
    if memory.answers is None or not facts.asks:
        return np.asarray(softmax(scores, axis=1))
    sure = _confidence(plan, memory)
    shares = _shares(plan, memory)
    own = log_softmax(sure * scores, axis=1) + max(0.0, 1 - sure) * np.log(shares)
    if graph.num_nodes >= facts.num_nodes:
        reading = label_hop_meetings(plan, memory)
        reading = (
            replace(reading, shares=shares)
            if plan.made.parts.by_class
            else replace(reading, shares=shares).supposing(reading.apart)
        )
        own = own + meetings.vote(
            graph.adjacency, _of_all(memory.answers, graph), reading, _answering(plan, memory), plan.params.correlation
        )
    return np.asarray(softmax(own, axis=1))


def _sign(plan: Planned, memory: Memory) -> float:
    """−1 where neighbours were surely measured to be unlike."""
    if memory.meetings is None:
        return 1.0
    reading = label_hop_meetings(plan, memory)
    return -1.0 if reading.apart < -_SURE * reading.error else 1.0


def _confidence(plan: Planned, memory: Memory) -> float:
    """How far the rows' scores are believed beside answers."""
    if memory.margins is not None:
        return choice.confidence(memory.margins, _std(plan, plan.made.path("margins", memory.way)))
    counts = base.require_received(plan, memory.judged)
    return choice.confidence(counts[plan.facts.num_classes :], _std(plan, "judged"))


def _shares(plan: Planned, memory: Memory) -> np.ndarray:
    """[c], of the classes, by the answers; drawn towards equal shares by as much as the coins of the answers explain."""
    by, answers = _answering(plan, memory), base.require_received(plan, memory.answers)
    classes = plan.facts.num_classes
    named, answered = answers.sum(axis=0), max(int(answers.any(axis=1).sum()), 1)
    spill = by.odds[1] * by.size / classes
    found = (named / answered - spill) / by.clarity - 1 / classes
    error = math.sqrt((spill + by.clarity / classes) * (1 - spill - by.clarity / classes) / answered) / by.clarity
    apart = float(found @ found) / (classes * error**2 + 1e-12)
    shares = np.maximum(1 / classes + max(0.0, 1 - _CLEAR / max(apart, 1e-9)) * found, 1e-3)
    return np.asarray(shares / shares.sum())


def _of_all(answers: np.ndarray, graph: Graph) -> np.ndarray:
    """``answers`` of all nodes of ``graph``: who came later said nothing."""
    return np.pad(answers, ((0, graph.num_nodes - len(answers)), (0, 0)))


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """With the rows' weights after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    memory, x = state.memory, FeatureMatrix(unit_matrix_rows(graph.features))
    pilot = plan.made.parts.ways[memory.way].training is None
    if pilot and memory.pilot is None:
        return state
    before = base.require_received(plan, memory.pilot) if pilot else memory.descent.average
    own = own_models.tune(plan.made.layout, before, x, graph.labels, rng)
    after = replace(memory, pilot=own) if pilot else replace(memory, descent=replace(memory.descent, average=own))
    return replace(state, memory=after)


def _tempered(plan: Planned, training: LabelHopTraining, parameters: np.ndarray, x: FeatureMatrix) -> np.ndarray:
    """Scores [n, c], less sure by the standard deviation that noise alone gives them on a unit row (MacKay 1992, eq. 9)."""
    std, _ = base.gradient_std(training.noise, training.clip * (2 if plan.params.protects.replaces else 1), plan.facts)
    clients = plan.facts.num_clients
    noise = _descent(plan, training).gain() * std * math.sqrt(2 * clients) / plan.facts.num_train
    return np.asarray(layouts.logits(plan.made.layout, parameters, x) / math.sqrt(1 + math.pi / 8 * noise**2))


def _std(plan: Planned, path: str) -> float:
    """Standard deviation of the noise in a sum of all clients; small where there is none."""
    noise = next(r.mechanism for r in plan.schedule.releases if r.path == path)
    return noise.std * math.sqrt(plan.facts.num_clients) if isinstance(noise, GaussianNoise) else 1e-3


def _answering(plan: Planned, memory: Memory) -> MeetingAnswers:
    labels = plan.made.parts.ways[memory.way].labels
    return releases.label_hop_answering(labels, plan.facts.num_classes, plan.params.protects.replaces)


def label_hop_meetings(plan: Planned, memory: Memory) -> MeetingReading:
    """How classes meet, as was measured; all of it post-processing."""
    facts = plan.facts
    counted = MeetingCounts(facts.num_nodes, facts.num_classes, plan.made.parts.by_class)
    found = np.zeros(counted.length) if memory.meetings is None else memory.meetings
    return meetings.read(found, _std(plan, "meetings"), counted, facts.num_train)


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
    hears = plan.facts.asks and any(way.labels for way in plan.made.parts.ways)
    return base.MethodReads.OWN_EDGES if hears else base.MethodReads.OWN_ROW


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
