"""Settings of ``label_hop``, how it divides its budget, and what it releases.

The budget is divided between a test of the edges, noisy labels (pure ε) and gradients (Gaussian). The test comes first and
costs little. What it finds chooses one of two alternatives, each of which spends all that is left: labels that are answered and
a short training, or a long training alone (``events.OneOf``).

Released are meetings, answered labels, and gradients with the labels or without, each with its noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import Layout, MeetingAnswers, MeetingReading, descents, meetings, per_sample
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
    OneOf,
    PartOf,
    PlannedRelease,
    PureDP,
    Relation,
    Repeated,
    calibrate,
    sensitivity,
)


class Params(Settings):
    """Settings; ``auto`` follows ε, or s = n·μ of what is left for training (``optimisers.descents.full_width``)."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    label_epsilon: NonNegativeFloat | Literal["auto"] = Field(
        "auto",
        description="pure ε of the answered labels; 0: no hop; auto: 0.7 of ε, at most 2.5, or none and rows alone, as a "
        "private test of the edges finds",
    )
    meeting_share: Annotated[float, Field(gt=0, lt=1)] | Literal["auto"] = Field(
        "auto", description="share of the remaining squared loss for how classes meet; auto: as little as n allows"
    )
    correlation: float = Field(
        0.03, ge=0, lt=1, description="ρ of two neighbours' labels given one's own; d votes count as d/(1 + ρ(d − 1))"
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


_LABELS, _MOST_FOR_LABELS = 0.7, 2.5  # of ε; beyond, answers are true anyway
_LEAST_FOR_CLASSES = 3.0  # ε below which two numbers say how classes meet, and not one for each pair
_LEAST_SIGNAL = 15.0  # s per class, times the squared clarity of answers, below which it is two numbers as well
_PRECISE, _PRECISE_PER_CLASS = 80.0, 30.0  # nodes (per class) for each standard deviation of a matching number
_MOST_SHARE, _MOST_SHARE_BY_CLASS, _LEAST_SHARE = 0.2, 0.15, 0.02
_STEEPER = 2  # of the alternative with labels, how much faster its noise grows than that of rows where both must add some
# information of a node's neighbours (``meetings.information_of``) that is worth most of the rows' budget
ENOUGH_TO_RELEASE_LABELS = 4.5
# s per feature from which rows lose little, neighbours, and their information
_SATURATED, _DENSE, SOME_TO_RELEASE_LABELS = 2.0, 8.0, 0.4


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
        labels: pure ε of the answers; 0: none; ∞: in clear.
        meetings: noise multiplier of the test; ∞: no test; 0: in clear.
        by_class: whether the test says how every pair of classes meets, or like and unlike ones alone.
        beside: the training beside the labels.
        alone: the training without them; None where there is nothing to choose.
        strength: s = n·μ of the whole budget.
    """

    labels: float
    meetings: float
    by_class: bool
    beside: LabelHopTraining
    alone: LabelHopTraining | None
    strength: float

    @property
    def choice(self) -> OneOf | None:
        with_labels = Composed((PureDP(self.labels), self.beside.event))
        return None if self.alone is None else OneOf((with_labels, self.alone.event))


def split_label_hop_budget(params: Params, facts: PublicFacts, budget: Budget) -> _Split:
    """Noise for every release, so that all of them together cost at most the budget (searched on the price itself)."""
    asked = facts.asks and facts.num_classes > 1
    if not params.rows:
        if not asked:
            raise ScenarioError("label_hop: rows: false answers from neighbours' labels alone: set protocol: asking")
        return _Split(budget.epsilon, math.inf, False, LabelHopTraining(0.0, 0, 0.0, 1.0), None, 0.0)
    if not budget.private:
        beside = _training(params, 0.0, 3.0 * facts.num_train)
        return _Split(math.inf if asked else 0.0, 0.0 if asked else math.inf, asked, beside, None, math.inf)
    _, num_shares = gradient_std(1.0, 1.0, facts)
    weakened = math.sqrt(1 if num_shares > 1 else facts.num_clients) * (2 if params.protects.replaces else 1)
    strength = facts.num_train / calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta) / weakened
    labels = _for_labels(params, budget.epsilon) if asked else 0.0
    measured = labels > 0
    free = params.label_epsilon == "auto" and measured

    def calibrated(make: Callable[[float], Event]) -> float:
        return calibrate.noise_multiplier_of(make, budget.epsilon, budget.delta)

    def spent(*events: Event) -> Composed:
        return Composed((*((PureDP(labels),) if labels else ()), *events))

    total = calibrated(lambda m: spent(Gaussian(m)))
    by_class = measured and _by_class(facts, params, budget.epsilon, labels, strength)
    share = _share(params, facts, total, by_class) if measured else 0.0
    test = Gaussian(total / math.sqrt(share) if share else math.inf)
    with_labels = calibrated(lambda m: spent(test, Gaussian(m)))
    without = calibrated(lambda m: Composed((test, Gaussian(m)))) if free else math.inf
    if free:

        def either(x: float) -> Event:
            return Composed((test, OneOf((spent(Gaussian(with_labels * x**_STEEPER)), Gaussian(without * x)))))

        more = max(1.0, calibrated(either))
        with_labels, without = with_labels * more**_STEEPER, without * more

    def training(noise: float) -> LabelHopTraining:
        return _training(params, noise, facts.num_train * min(3.0, 1 / noise / weakened))

    alone = training(without) if free else None
    return _Split(labels, test.noise_multiplier, by_class, training(with_labels), alone, strength)


def is_worth(parts: _Split, facts: PublicFacts, reading: MeetingReading, by: MeetingAnswers, correlation: float) -> bool:
    """Whether answers are worth their ε: neighbours tell much, or rows gain little from more and dense neighbours tell some."""
    told = meetings.information_of(reading, by, correlation)
    rows_lose_little = parts.strength / facts.num_features >= _SATURATED
    some = rows_lose_little and reading.degree >= _DENSE and told >= SOME_TO_RELEASE_LABELS
    return told >= ENOUGH_TO_RELEASE_LABELS or some


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
    """Whether ε and the nodes per class suffice to measure each pair of classes (of two classes: always)."""
    c = facts.num_classes
    clarity = label_hop_answering(labels, c, params.protects.replaces).clarity
    return c == 2 or (epsilon >= _LEAST_FOR_CLASSES and strength / c * clarity**2 >= _LEAST_SIGNAL)


def _share(params: Params, facts: PublicFacts, total: float, by_class: bool) -> float:
    """Of the squared loss that is left beside the labels: as much as makes the test precise, and no more."""
    if params.meeting_share != "auto":
        return params.meeting_share
    counted = MeetingCounts(facts.num_nodes, facts.num_classes, by_class)
    wanted = total * counted.change(params.protects) * (_PRECISE_PER_CLASS * counted.num_classes if by_class else _PRECISE)
    return min(max((wanted / facts.num_train) ** 2, _LEAST_SHARE), _MOST_SHARE_BY_CLASS if by_class else _MOST_SHARE)


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
        says: the round of the answers.
    """

    layout: Layout
    parts: _Split
    says: int

    @property
    def measures(self) -> bool:
        return self.parts.meetings < math.inf

    def training(self, hop: bool) -> tuple[str, int, LabelHopTraining]:
        """(path, first round, noise and steps) of the gradients, with answers or without."""
        if self.parts.alone is not None and not hop:
            return "rows", 1, self.parts.alone
        return "model", self.says + 1 if self.parts.labels else int(self.measures), self.parts.beside


def plan_for(params: Params, facts: PublicFacts, made: Made) -> tuple[PlannedRelease, ...]:
    """Gradients with the hop first, then those without where that is to be chosen, labels, and meetings."""
    classes, parts, relation = facts.num_classes, made.parts, params.protects
    ways = (True, False) if parts.choice else (True,) if params.rows else ()
    releases = [_gradient(params, facts, made, hop) for hop in ways]
    if parts.labels:
        noised, now = PLAN_WITHOUT_NOISE, range(made.says, made.says + 1)
        if math.isfinite(parts.labels):
            response = MaskedResponse(parts.labels, classes, relation.replaces)
            noised = response, _priced(made, PureDP(parts.labels), True)
        releases.append(PlannedRelease("labels", Box(ABSENT_LABEL, classes - 1), *noised, now))
    if made.measures:
        noised, bound = PLAN_WITHOUT_NOISE, MeetingCounts(facts.num_nodes, classes, parts.by_class)
        if parts.meetings:
            std, _ = gradient_std(parts.meetings, bound.change(relation), facts)
            noised = GaussianNoise(std), Gaussian(parts.meetings)
        releases.append(PlannedRelease("meetings", bound, *noised, range(1)))
    return tuple(releases)


def _gradient(params: Params, facts: PublicFacts, made: Made, hop: bool) -> PlannedRelease:
    path, first, training = made.training(hop)
    noised = PLAN_WITHOUT_NOISE
    bound = ClippedSum(training.clip, facts.num_nodes, sensitivity.kernel_name(per_sample.clipped_sum))
    if training.noise:
        std, _ = gradient_std(training.noise, sensitivity.l2(bound, params.protects), facts)
        noised = GaussianNoise(std), _priced(made, Gaussian(training.noise), hop)
    return PlannedRelease(path, bound, *noised, range(first, first + training.steps))


def _priced(made: Made, event: Event, hop: bool) -> Event:
    whole = made.parts.choice
    return event if whole is None else PartOf(event, whole, 0 if hop else 1)
