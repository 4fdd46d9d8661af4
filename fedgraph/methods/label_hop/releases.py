"""Settings of ``label_hop``, how it divides its budget, and what it releases.

A small part of the budget measures first: how classes meet along edges, and what a short training on one half of the people
knows of the other half. What is found chooses one of three ways (``Way``), each of which spends all that is left
(``events.OneOf``): labels are answered and rows trained on, or rows alone, or labels alone.

Released are meetings, gradients of the short training, how often it was right, then answered labels (pure ε) and gradients
(Gaussian), or one of both alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import Layout, MeetingAnswers, MeetingReading, descents, expect_vote_accuracy, per_sample
from fedgraph.methods.base import PLAN_WITHOUT_NOISE, Budget, PublicFacts, gradient_std
from fedgraph.privacy import (
    ABSENT_LABEL,
    Box,
    ClippedSum,
    Composed,
    Event,
    Gaussian,
    GaussianNoise,
    MaskedResponse,
    MeetingCounts,
    MeetingExcess,
    OneOf,
    PartOf,
    PlannedRelease,
    PureDP,
    Relation,
    Repeated,
    Rows,
    calibrate,
    sensitivity,
)


class Params(Settings):
    """Settings; ``auto`` follows ε, or s = n·μ of what is left for training (``optimisers.descents.full_width``)."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    label_epsilon: NonNegativeFloat | Literal["auto"] = Field(
        "auto",
        description="pure ε of the answered labels; 0: no hop; auto: most of ε beside rows, or nearly all of it, or "
        "none, as private tests of edges and rows find",
    )
    meeting_share: Annotated[float, Field(gt=0, lt=1)] | Literal["auto"] = Field(
        "auto",
        description="share of the squared loss of a Gaussian with all of ε for how classes meet; auto: as n allows",
    )
    correlation: float = Field(
        0.1, ge=0, lt=1, description="ρ of two neighbours' labels given one's own; d votes count as d/(1 + ρ(d − 1))"
    )
    rows: bool = Field(
        True, description="learn from rows, too; false: the whole ε for labels, and the majority of the neighbours' answers"
    )
    clip: PositiveFloat | Literal["auto"] = Field("auto", description="norm to which each node's gradient is clipped")
    steps: PositiveInt | Literal["auto"] = Field("auto", description="gradient steps, one release each")
    learning_rate: PositiveFloat | Literal["auto"] = Field("auto", description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: ClassVar[float] = 0.5  # share of the last iterates that is averaged
    propagation_steps: int = Field(3, ge=0, description="passes over a public test graph, where there is one")

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)


class Way(IntEnum):
    """How the budget is spent once edges and rows were measured; the order of the alternatives of the choice."""

    BOTH, ROWS, VOTES = 0, 1, 2


_LABELS, _MOST_FOR_LABELS = 0.75, 2.5  # of what labels alone would have; beyond, answers are true anyway
_ENOUGH = 8.0  # s per feature from which rows gain little more, so that labels beside them have the rest
_LEAST_FOR_CLASSES = 3.0  # ε below which two numbers say how classes meet, and not one for each pair
_LEAST_SIGNAL = 15.0  # s per class, times the squared clarity of answers, below which it is two numbers as well
_PRECISE, _PRECISE_PER_CLASS = 80.0, 30.0  # nodes (per class) for each standard deviation of a matching number
# of the squared loss of a Gaussian with the whole budget, times ε: the larger it is, the less do labels miss it
_MOST_SHARE, _MOST_SHARE_BY_CLASS, _MOST_OF_ALL = 0.01, 0.02, 0.1
_STEEPER = 2  # of the way with both, how much faster the noise of rows grows than that of rows alone where all must add some
_PILOT, _MOST_FOR_PILOT = 6.0, 0.03  # s per feature that the short training is given; share of the squared loss at most
_JUDGED, _MOST_FOR_JUDGED = 100.0, 0.005  # nodes for each standard deviation of how often it is right; share at most, as above
# of one column, which at unit length is a sign: share for whether classes meet their like more often, and for what it knows
_MOST_FOR_SIGN, _MOST_FOR_SIGN_JUDGED = 0.003, 0.0015
_BLIND = 0.05  # s per feature below which a short training says nothing, and is left out
_HUNGRY = 0.2  # s per feature below which a short training that knows nothing says nothing of rows
_SATURATED = 2.0  # s per feature from which a short training that knows nothing says that there is nothing to know
_GROWS, _GROWS_UNSEEN = 0.5, 0.35  # share of the errors of a short training that all of the budget mends; where it knew nothing
_RARE = 0.8  # share of the most frequent class from which the others are rare: what rows say of shares drowns votes for them
_AS_MUCH = 0.85  # of the ε of labels alone, from which labels beside rows are as good, and well trained rows do no harm
_UNKNOWN = (0.4, 0.6)  # what rows are taken to reach beside labels, and alone, where no short training says it
# standard deviations of noise by which the short training has to beat the most frequent class; of one column
_SURE, _SURE_OF_SIGN = 2.0, 3.0


@dataclass(frozen=True)
class LabelHopTraining:
    """One descent.

    Attributes:
        noise: multiplier of each gradient; 0: none.
        steps: how many.
        rate: step size.
        clip: norm to which each node's gradient is clipped.
    """

    noise: float
    steps: int
    rate: float
    clip: float

    @property
    def event(self) -> Event:
        return Repeated(Gaussian(self.noise), self.steps)


@dataclass(frozen=True)
class _Split:
    """How the budget is divided.

    Attributes:
        labels: pure ε of the answers beside rows; 0: none; ∞: in clear.
        votes: pure ε of the answers where nothing else is trained; 0: that is no way.
        meetings: noise multiplier of the test of edges; ∞: no test; 0: in clear.
        sign: whether the test says only if classes meet their like more often than others (``MeetingExcess``).
        by_class: whether the test says how every pair of classes meets, or like and unlike ones alone.
        pilot: the short training on one half; None: there is none.
        judged: noise multiplier of how often it is right.
        beside: the training beside the labels.
        alone: the training without them; None where there is nothing to choose.
    """

    labels: float
    votes: float
    meetings: float
    sign: bool
    by_class: bool
    pilot: LabelHopTraining | None
    judged: float
    beside: LabelHopTraining
    alone: LabelHopTraining | None

    @property
    def choice(self) -> OneOf | None:
        """The ways, in the order of ``Way``."""
        both = Composed((PureDP(self.labels), self.beside.event))
        return None if self.alone is None else OneOf((both, self.alone.event, PureDP(self.votes)))


_NOT_TRAINED = LabelHopTraining(0.0, 0, 0.0, 1.0)


def split_label_hop_budget(params: Params, facts: PublicFacts, budget: Budget) -> _Split:
    """Noise for every release, so that all of them together cost at most the budget (searched on the price itself)."""
    asked = facts.public.asks and facts.sizes.num_classes > 1
    if not params.rows:
        if not asked:
            raise ScenarioError("label_hop: rows: false answers from neighbours' labels alone: set protocol: asking")
        return _Split(budget.epsilon, 0.0, math.inf, False, False, None, math.inf, _NOT_TRAINED, None)
    if not budget.private:
        beside = _training(params, 0.0, 3.0 * facts.num_train)
        given = (math.inf, 0.0, 0.0, False, True) if asked else (0.0, 0.0, math.inf, False, False)
        return _Split(*given, None, math.inf, beside, None)
    _, num_shares = gradient_std(1.0, 1.0, facts)
    weakened = math.sqrt(1 if num_shares > 1 else facts.sizes.num_clients) * (2 if params.protects.replaces else 1)
    whole = calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    free = params.label_epsilon == "auto" and asked
    labels = _for_labels(params, budget.epsilon) if asked else 0.0

    def calibrated(make: Callable[[float], Event], delta: float = budget.delta) -> float:
        return calibrate.noise_multiplier_of(make, budget.epsilon, delta)

    def training(noise: float) -> LabelHopTraining:
        return _training(params, noise, facts.num_train * min(3.0, 1 / noise / weakened))

    by_class = labels > 0 and _by_class(facts, params, budget.epsilon, labels, facts.num_train / whole / weakened)
    meetings = _for_meetings(params, facts, budget.epsilon, whole, by_class) if labels else math.inf
    if not free:
        spent = (PureDP(labels), Gaussian(meetings)) if labels else ()
        beside = training(calibrated(lambda m: Composed((*spent, Gaussian(m)))))
        return _Split(labels, 0.0, meetings, False, by_class, None, math.inf, beside, None)
    sign = facts.sizes.num_features == 1
    most, least = (_MOST_FOR_SIGN, _MOST_FOR_SIGN_JUDGED) if sign else (math.nan, _MOST_FOR_JUDGED)
    if sign:
        meetings = max(facts.num_train / _PRECISE / (2 if params.protects.replaces else 1), whole / math.sqrt(most))
    pilot = _pilot(params, facts, whole, weakened)
    judged = max(facts.num_train / _JUDGED, whole / math.sqrt(least)) if pilot else math.inf
    first = Composed((Gaussian(meetings), *((pilot.event, Gaussian(judged)) if pilot else ())))
    # at half of δ: the curves of the ways cross, and the noise of rows alone makes up for it
    votes = budget.epsilon / calibrated(lambda m: Composed((first, PureDP(budget.epsilon / m))), budget.delta / 2)
    labels = min(_LABELS * votes, _MOST_FOR_LABELS)
    enough = facts.num_train / weakened / (_ENOUGH * facts.sizes.num_features)
    if enough > 1.5 * whole:  # rows need less than they would get
        left = calibrated(lambda m: Composed((first, Gaussian(enough), PureDP(budget.epsilon / m))))
        labels = max(labels, min(budget.epsilon / left, votes))
    with_labels = calibrated(lambda m: Composed((first, PureDP(labels), Gaussian(m))))
    without = calibrated(lambda m: Composed((first, Gaussian(m))))

    def any_way(x: float) -> Event:
        both = Composed((PureDP(labels), Gaussian(with_labels * x**_STEEPER)))
        return Composed((first, OneOf((both, Gaussian(without * x), PureDP(votes)))))

    more = max(1.0, calibrated(any_way))
    beside, alone = training(with_labels * more**_STEEPER), training(without * more)
    return _Split(labels, votes, meetings, sign, by_class and not sign, pilot, judged, beside, alone)


def choose_label_hop_way(
    params: Params, facts: PublicFacts, parts: _Split, reading: MeetingReading, judged: float | None, std: float
) -> Way:
    """The way that is expected to be right most often; all of it post-processing.

    Votes are expected to reach what drawn neighbourhoods with the measured meetings give (``expect_vote_accuracy``). Rows alone
    reach what the short training does, and of its errors a part is mended where it had little to learn from. Both together err
    where votes err, less often by as much as rows err less than the most frequent class.

    Args:
        params: The settings.
        facts: What is public.
        parts: How the budget is divided.
        reading: How classes meet.
        judged: Noisy: of the people whom the short training has not seen, how many it gets right and the most frequent class
            gets wrong, less those of whom the opposite holds. None: there was no short training.
        std: Standard deviation of the noise in it.
    """
    if parts.sign:
        return Way.BOTH if judged is not None and judged >= _SURE_OF_SIGN * std else Way.VOTES
    replaces, classes = params.protects.replaces, facts.sizes.num_classes
    alone, beside = (
        expect_vote_accuracy(reading.hopeful(), label_hop_answering(labels, classes, replaces), params.correlation)
        for labels in (parts.votes, parts.labels)
    )
    constant = float(reading.shares.max())
    known, rows = _UNKNOWN
    if judged is not None and parts.pilot is not None:
        people = facts.num_train / 2
        strength = people * math.sqrt(parts.pilot.steps) / parts.pilot.noise / facts.sizes.num_features
        seen = judged >= _SURE * std
        if not seen and strength >= _SATURATED and reading.tells:
            return Way.BOTH if parts.labels >= _AS_MUCH * parts.votes and constant < _RARE else Way.VOTES
        found = min(1.0, constant + (max(judged, 0.0) * max(0.0, 1 - (std / judged) ** 2) / people if judged else 0.0))
        if seen or strength >= _HUNGRY:
            rows = found + (_GROWS if seen else _GROWS_UNSEEN) * (1 - found) / (1 + strength / 2)
            known = (found + rows) / 2 if seen else found
    together = 1 - (1 - beside) * min(1.0, (1 - known) / max(1 - constant, 1e-9))
    expected = {Way.BOTH: together, Way.ROWS: rows, Way.VOTES: alone}
    if parts.labels >= _AS_MUCH * parts.votes:  # rows have enough beside labels
        del expected[Way.ROWS]
    return max(expected, key=expected.__getitem__)


def label_hop_answering(labels: float, classes: int, replaces: bool) -> MeetingAnswers:
    """How answers come about at pure ε ``labels``; ∞: in clear."""
    if math.isinf(labels):
        return MeetingAnswers.in_clear(classes)
    response = MaskedResponse(labels, classes, replaces)
    return MeetingAnswers(response.size, response.odds, response.keep - response.spill)


def _for_labels(params: Params, epsilon: float) -> float:
    if params.label_epsilon == "auto":
        return min(_LABELS * epsilon, _MOST_FOR_LABELS)
    if params.label_epsilon >= epsilon:
        raise ScenarioError(f"label_hop: label_epsilon {params.label_epsilon} leaves nothing of ε = {epsilon} for training")
    return float(params.label_epsilon)


def _by_class(facts: PublicFacts, params: Params, epsilon: float, labels: float, strength: float) -> bool:
    """Whether ε and the nodes per class suffice to measure each pair of classes (of two classes: whether ε does)."""
    c = facts.sizes.num_classes
    clarity = label_hop_answering(labels, c, params.protects.replaces).clarity
    return epsilon >= _LEAST_FOR_CLASSES and (c == 2 or strength / c * clarity**2 >= _LEAST_SIGNAL)


def _for_meetings(params: Params, facts: PublicFacts, epsilon: float, whole: float, by_class: bool) -> float:
    """Noise multiplier of the test of edges: as precise as is needed, and no more than its share.

    whole: multiplier of one Gaussian that has the whole budget.
    """
    if params.meeting_share != "auto":
        return whole / math.sqrt(params.meeting_share)
    counted = MeetingCounts(facts.sizes.num_nodes, facts.sizes.num_classes, by_class)
    nodes = _PRECISE_PER_CLASS * counted.num_classes if by_class else _PRECISE
    most = min(_MOST_OF_ALL, _MOST_SHARE_BY_CLASS * epsilon if by_class else _MOST_SHARE * epsilon)
    return max(facts.num_train / nodes / counted.change(params.protects), whole / math.sqrt(most))


def _pilot(params: Params, facts: PublicFacts, whole: float, weakened: float) -> LabelHopTraining | None:
    """The short training on one half of the people; None where it could know nothing."""
    people, columns = facts.num_train / 2 / weakened, max(1, facts.sizes.num_features)
    noise = max(people / (_PILOT * columns), whole / math.sqrt(_MOST_FOR_PILOT))
    return _training(params, noise, people / noise) if people / noise >= _BLIND * columns else None


def _training(params: Params, noise: float, strength: float) -> LabelHopTraining:
    """noise: multiplier of the whole descent."""
    steps, rate, clip = descents.full_width(strength)
    steps = steps if params.steps == "auto" else params.steps
    rate = rate if params.learning_rate == "auto" else params.learning_rate
    return LabelHopTraining(noise * math.sqrt(steps), steps, rate, clip if params.clip == "auto" else params.clip)


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts.

    Attributes:
        layout: of the rows' model.
        parts: how the budget is divided.
    """

    layout: Layout
    parts: _Split

    @property
    def measures(self) -> bool:
        return self.parts.meetings < math.inf

    def counted(self, facts: PublicFacts) -> MeetingCounts | MeetingExcess:
        """What the test of edges counts."""
        nodes, classes = facts.sizes.num_nodes, facts.sizes.num_classes
        return MeetingExcess(nodes, classes) if self.parts.sign else MeetingCounts(nodes, classes, self.parts.by_class)

    @property
    def says(self) -> int:
        """The first round after what chooses; labels are answered in it. In clear, meetings come with them."""
        pilot = self.parts.pilot
        return 0 if self.parts.choice is None else 1 + (pilot.steps + 1 if pilot else 0)

    @property
    def ways(self) -> tuple[Way, ...]:
        return (Way.BOTH,) if self.parts.choice is None else tuple(Way)

    def training(self, way: Way) -> tuple[str, int, LabelHopTraining]:
        """(path, first round, noise and steps) of the gradients."""
        if way is Way.BOTH:
            return "model", self.says + 1 if self.parts.labels else 0, self.parts.beside
        return "rows", self.says, self.parts.alone if way is Way.ROWS and self.parts.alone else _NOT_TRAINED

    def answers(self, way: Way) -> tuple[str, float]:
        """(path, pure ε) of the labels."""
        if way is Way.VOTES:
            return "votes", self.parts.votes
        return "labels", self.parts.labels if way is Way.BOTH else 0.0


def plan_for(params: Params, facts: PublicFacts, made: Made) -> tuple[PlannedRelease, ...]:
    """Of each way gradients and labels, then what is measured first."""
    classes, parts, relation = facts.sizes.num_classes, made.parts, params.protects
    releases = []
    for way in made.ways:
        path, first, training = made.training(way)
        if training.steps:
            priced = _priced(made, Gaussian(training.noise), way) if training.noise else None
            releases.append(_gradient(params, facts, path, first, training, priced))
        path, labels = made.answers(way)
        if labels:
            noised, now = PLAN_WITHOUT_NOISE, range(made.says, made.says + 1)
            if math.isfinite(labels):
                noised = MaskedResponse(labels, classes, relation.replaces), _priced(made, PureDP(labels), way)
            releases.append(PlannedRelease(path, Box(ABSENT_LABEL, classes - 1), *noised, now))
    if parts.pilot is not None:
        releases.append(_gradient(params, facts, "pilot", 1, parts.pilot, Gaussian(parts.pilot.noise)))
        rights = Rows(1.0, facts.sizes.num_nodes)
        std, _ = gradient_std(parts.judged, sensitivity.l2(rights, relation), facts)
        judged = range(1 + parts.pilot.steps, 2 + parts.pilot.steps)
        releases.append(PlannedRelease("judged", rights, GaussianNoise(std), Gaussian(parts.judged), judged))
    if made.measures:
        noised, bound = PLAN_WITHOUT_NOISE, made.counted(facts)
        if parts.meetings:
            std, _ = gradient_std(parts.meetings, bound.change(relation), facts)
            noised = GaussianNoise(std), Gaussian(parts.meetings)
        releases.append(PlannedRelease("meetings", bound, *noised, range(1)))
    return tuple(releases)


def _gradient(
    params: Params, facts: PublicFacts, path: str, first: int, training: LabelHopTraining, priced: Event | None
) -> PlannedRelease:
    """priced: the event of each step; None: in clear."""
    noised = PLAN_WITHOUT_NOISE
    bound = ClippedSum(training.clip, facts.sizes.num_nodes, sensitivity.kernel_name(per_sample.clipped_sum))
    if priced is not None:
        std, _ = gradient_std(training.noise, sensitivity.l2(bound, params.protects), facts)
        noised = GaussianNoise(std), priced
    return PlannedRelease(path, bound, *noised, range(first, first + training.steps))


def _priced(made: Made, event: Event, way: Way) -> Event:
    whole = made.parts.choice
    return event if whole is None else PartOf(event, whole, int(way))
