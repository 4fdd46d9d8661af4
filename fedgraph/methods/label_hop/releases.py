"""Settings of ``label_hop``, how it divides its budget, and what it releases.

A small part is for what decides: how classes meet along edges (``meetings``), and a short training on rows (``pilot``) with
counts of what it got right (``judged``). What they find chooses one of four *ways* (``choice``), each of which spends all that
is left (``events.OneOf``): a training on rows alone; labels that are answered at a pure ε, and a training beside them, in two
proportions; or answered labels alone. Where both are heard, counts of how sure and how right scores are (``margins``) weigh
them. Where nothing is known of people but their ties, all that is left is for labels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import Layout, MeetingAnswers, descents, per_sample
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
    Rows,
    calibrate,
    sensitivity,
)


class Params(Settings):
    """Settings; ``auto`` follows ε, or s = n·μ of what is left for training (``optimisers.descents.full_width``)."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    label_epsilon: NonNegativeFloat | Literal["auto"] = Field(
        "auto",
        description="pure ε of the answered labels; 0: no hop; auto: none, a part of ε or all of it, whichever promises most "
        "by what is measured privately",
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


_PARTS = (0.45, 0.72)  # of ε, for the labels of the ways that train beside them
_LEAST_FOR_CLASSES = 3.0  # ε below which two numbers say how classes meet, and not one for each pair
_LEAST_SIGNAL = 15.0  # s per class, times the squared clarity of answers, below which it is two numbers as well
_STEEPER, _GENTLER = 2.0, 0.25  # how much faster than that of rows alone the noise of other ways grows where all must add some
# Shares of the squared loss of the whole budget. Of counts: nodes for each standard deviation that is aimed at, and limits.
_PILOT = 0.01
_SIGN = (20.0, 0.0002, 0.002)  # of meetings where nothing but ties is known
_MEETINGS, _JUDGED, _MARGINS = (20.0, 0.003, 0.025), (15.0, 0.001, 0.006), (25.0, 0.002, 0.015)


@dataclass(frozen=True)
class LabelHopTraining:
    """One descent."""

    noise: float  # multiplier of each gradient; 0: none
    steps: int  # how many
    rate: float  # step size
    clip: float  # norm to which each node's gradient is clipped

    @property
    def event(self) -> Event:
        return Repeated(Gaussian(self.noise), self.steps)

    @property
    def whole(self) -> float:
        """Noise multiplier of all steps together."""
        return self.noise / math.sqrt(self.steps)


@dataclass(frozen=True)
class Way:
    """One way to spend what is left."""

    labels: float  # pure ε of the answers; 0: none; ∞: in clear
    training: LabelHopTraining | None  # on rows; None: none
    margins: float = math.inf  # noise multiplier of the counts that weigh rows beside answers; 0: in clear; ∞: none

    @property
    def event(self) -> Event:
        labels = (PureDP(self.labels),) if self.labels else ()
        rows = () if self.training is None else (self.training.event,)
        return Composed((*labels, *rows, *((Gaussian(self.margins),) if self.margins < math.inf else ())))


@dataclass(frozen=True)
class _Split:
    """How the budget is divided."""

    meetings: float  # noise multiplier of how classes meet; ∞: not measured; 0: in clear
    by_class: bool  # whether it is measured of every pair of classes, or of like and unlike ones alone
    pilot: LabelHopTraining | None  # the short training; None: none
    judged: float  # noise multiplier of the counts of what it got right; ∞: none
    ways: tuple[Way, ...]  # what may be done then
    total: float  # noise multiplier of the whole budget, were all of it for one value; 0: no noise
    heavier: float = 1.0  # how much more of it the viewer's sums carry, since each client adds its own

    @property
    def choice(self) -> OneOf | None:
        return OneOf(tuple(way.event for way in self.ways)) if len(self.ways) > 1 else None


def split_label_hop_budget(params: Params, facts: PublicFacts, budget: Budget) -> _Split:
    """Noise for every release, so that all of them together cost at most the budget (searched on the price itself)."""
    asked = facts.asks and facts.num_classes > 1
    if not params.rows:
        if not asked:
            raise ScenarioError("label_hop: rows: false answers from neighbours' labels alone: set protocol: asking")
        return _Split(math.inf, False, None, math.inf, (Way(budget.epsilon, None),), 0.0)
    asked = asked and params.label_epsilon != 0
    unknown = asked and params.label_epsilon == "auto" and facts.num_features == 1 and facts.columns is None
    if not budget.private:
        labels, clear = (math.inf, 0.0) if asked else (0.0, math.inf)
        training = None if unknown else _training(params, 0.0, 3.0 * facts.num_train)
        way = Way(labels, training, math.inf if unknown else clear)
        return _Split(clear, asked and not unknown, None, math.inf, (way,), 0.0)
    return _Budgeting(params, facts, budget).unknown() if unknown else _Budgeting(params, facts, budget).known(asked)


class _Budgeting:
    """Divides a finite budget.
    facts: what is public. budget: of which ε is finite.
    """

    def __init__(self, params: Params, facts: PublicFacts, budget: Budget) -> None:
        _, num_shares = gradient_std(1.0, 1.0, facts)
        self.params, self.facts, self.budget = params, facts, budget
        self.total = calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
        self.heavier = math.sqrt(1 if num_shares > 1 else facts.num_clients)  # in what the viewer sees of all clients

    def unknown(self) -> _Split:
        """Nothing is known of people but their ties: labels, and a little for whether like ones meet oftener than others."""
        counted = MeetingCounts(self.facts.num_nodes, self.facts.num_classes, by_class=False)
        test = self._counts(_SIGN, counted.change(self.params.protects))
        way = self._labels_alone(Gaussian(test), 1.0)
        return _Split(test, False, None, math.inf, (way,), self.total, self.heavier)

    def known(self, asked: bool) -> _Split:
        params, epsilon, relation = self.params, self.budget.epsilon, self.params.protects
        if not asked:
            way = Way(0.0, self._trained(self._calibrated(Gaussian)))
            return _Split(math.inf, False, None, math.inf, (way,), self.total, self.heavier)
        given = params.label_epsilon
        if given != "auto" and given >= epsilon:
            raise ScenarioError(f"label_hop: label_epsilon {given} leaves nothing of ε = {epsilon} for training")
        by_class = self._by_class(0.55 * epsilon if given == "auto" else float(given))
        counted = MeetingCounts(self.facts.num_nodes, self.facts.num_classes, by_class)
        meetings, margins = self._counts(_MEETINGS, counted.change(relation)), self._counts(_MARGINS, _rows_change(params, 1.0))
        if given != "auto":
            fixed = Composed((Gaussian(meetings), PureDP(float(given)), Gaussian(margins)))
            way = Way(float(given), self._trained(self._calibrated(lambda m: Composed((fixed, Gaussian(m))))), margins)
            return _Split(meetings, by_class, None, math.inf, (way,), self.total, self.heavier)
        pilot = self._trained(self.total / math.sqrt(_PILOT))
        judged = self._counts(_JUDGED, _rows_change(params, math.sqrt(2)))
        found = Composed((Gaussian(meetings), pilot.event, Gaussian(judged)))
        alone = self._calibrated(lambda m: Composed((found, Gaussian(m))))
        labels = [part * epsilon for part in _PARTS]

        def trained_beside(given: float) -> float:
            return self._calibrated(lambda m: Composed((found, PureDP(given), Gaussian(margins), Gaussian(m))))

        beside = [trained_beside(e) for e in labels]

        def ways(more: float) -> tuple[Way, ...]:
            mixed = [Way(e, self._trained(m * more**_STEEPER), margins) for e, m in zip(labels, beside, strict=True)]
            return Way(0.0, self._trained(alone * more)), *mixed, self._labels_alone(found, more)

        more = max(1.0, self._calibrated(lambda m: Composed((found, OneOf(tuple(way.event for way in ways(m)))))))
        return _Split(meetings, by_class, pilot, judged, ways(more), self.total, self.heavier)

    def _calibrated(self, make: Callable[[float], Event]) -> float:
        return calibrate.noise_multiplier_of(make, self.budget.epsilon, self.budget.delta)

    def _labels_alone(self, found: Event, more: float) -> Way:
        """All that ``found`` leaves, over ``more``."""
        return Way(1 / (self._calibrated(lambda m: Composed((found, PureDP(1 / m)))) * more**_GENTLER), None)

    def _trained(self, noise: float) -> LabelHopTraining:
        """noise: multiplier of the whole descent."""
        weakened = self.heavier * (2 if self.params.protects.replaces else 1)
        return _training(self.params, noise, self.facts.num_train * min(3.0, 1 / noise / weakened))

    def _counts(self, wanted: tuple[float, float, float], change: float) -> float:
        """Noise multiplier of counts that one node changes by ``change``: as precise as is wanted, within limits."""
        nodes, least, most = wanted
        share = (nodes * self.total * self.heavier * change / self.facts.num_train) ** 2
        return self.total / math.sqrt(min(max(share, least), most))

    def _by_class(self, labels: float) -> bool:
        """Whether ε and the nodes per class suffice to measure each pair of classes (of two classes: always)."""
        c, replaces = self.facts.num_classes, self.params.protects.replaces
        strength = self.facts.num_train / self.total / self.heavier / (2 if replaces else 1)
        clarity = label_hop_answering(labels, c, replaces).clarity
        return c == 2 or (self.budget.epsilon >= _LEAST_FOR_CLASSES and strength / c * clarity**2 >= _LEAST_SIGNAL)


def label_hop_answering(labels: float, classes: int, replaces: bool) -> MeetingAnswers:
    """How answers come about at pure ε ``labels``; ∞: in clear."""
    if math.isinf(labels):
        return MeetingAnswers.in_clear(classes)
    response = MaskedResponse(labels, classes, replaces)
    return MeetingAnswers(response.size, response.odds, response.keep - response.spill)


def _training(params: Params, noise: float, strength: float) -> LabelHopTraining:
    """noise: multiplier of the whole descent."""
    steps, rate, clip = descents.full_width(strength)
    steps = steps if params.steps == "auto" else params.steps
    rate = rate if params.learning_rate == "auto" else params.learning_rate
    return LabelHopTraining(noise * math.sqrt(steps), steps, rate, clip if params.clip == "auto" else params.clip)


def _rows_change(params: Params, clip: float) -> float:
    return clip * (2 if params.protects.replaces else 1)


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    layout: Layout  # of the rows' model
    parts: _Split  # how the budget is divided

    @property
    def measures(self) -> bool:
        return self.parts.meetings < math.inf

    @property
    def judges(self) -> int | None:
        """The round in which the short training is judged; None: there is none."""
        return None if self.parts.pilot is None else self.parts.pilot.steps

    @property
    def says(self) -> int:
        """The first round after the way was chosen: labels are answered in it."""
        return int(self.measures) if self.judges is None else self.judges + 1

    def first(self, way: int) -> int:
        """The first round of the training of a way."""
        return self.says + bool(self.parts.ways[way].labels)

    def weighs(self, way: int) -> int | None:
        """The round in which the rows of a way are weighed; None: they are not."""
        found = self.parts.ways[way]
        return None if found.training is None or math.isinf(found.margins) else self.first(way) + found.training.steps

    def path(self, name: str, way: int) -> str:
        """Of a release of one way."""
        return name if self.parts.choice is None else f"{name}_{way}"


def plan_for(params: Params, facts: PublicFacts, made: Made) -> tuple[PlannedRelease, ...]:
    """What every way releases, and before that meetings, the short training and what it got right."""
    classes, parts, relation, nodes = facts.num_classes, made.parts, params.protects, facts.num_nodes
    releases: list[PlannedRelease] = []
    for number, way in enumerate(parts.ways):

        def priced(event: Event, number: int = number) -> Event:
            return event if parts.choice is None else PartOf(event, parts.choice, number)

        if way.training is not None:
            first = made.first(number)
            releases.append(_gradient(made.path("model", number), params, facts, way.training, first, priced))
        if way.labels:
            noised = PLAN_WITHOUT_NOISE
            if math.isfinite(way.labels):
                noised = MaskedResponse(way.labels, classes, relation.replaces), priced(PureDP(way.labels))
            now = range(made.says, made.says + 1)
            releases.append(PlannedRelease(made.path("labels", number), Box(ABSENT_LABEL, classes - 1), *noised, now))
        if (round_ := made.weighs(number)) is not None:
            bound = Rows(1.0, nodes)
            releases.append(_counted(made.path("margins", number), bound, way.margins, params, facts, round_, priced))
    if parts.pilot is not None and made.judges is not None:
        releases.append(_gradient("pilot", params, facts, parts.pilot, 0, lambda event: event))
        bound = Rows(math.sqrt(2), nodes)
        releases.append(_counted("judged", bound, parts.judged, params, facts, made.judges, lambda event: event))
    if made.measures:
        noised, counted = PLAN_WITHOUT_NOISE, MeetingCounts(nodes, classes, parts.by_class)
        if parts.meetings:
            std, _ = gradient_std(parts.meetings, counted.change(relation), facts)
            noised = GaussianNoise(std), Gaussian(parts.meetings)
        releases.append(PlannedRelease("meetings", counted, *noised, range(1)))
    return tuple(releases)


_Priced = Callable[[Event], Event]


def _counted(
    path: str, bound: Rows, multiplier: float, params: Params, facts: PublicFacts, round_: int, priced: _Priced
) -> PlannedRelease:
    noised = PLAN_WITHOUT_NOISE
    if multiplier:
        std, _ = gradient_std(multiplier, sensitivity.l2(bound, params.protects), facts)
        noised = GaussianNoise(std), priced(Gaussian(multiplier))
    return PlannedRelease(path, bound, *noised, range(round_, round_ + 1))


def _gradient(
    path: str, params: Params, facts: PublicFacts, training: LabelHopTraining, first: int, priced: _Priced
) -> PlannedRelease:
    noised = PLAN_WITHOUT_NOISE
    bound = ClippedSum(training.clip, facts.num_nodes, sensitivity.kernel_name(per_sample.clipped_sum))
    if training.noise:
        std, _ = gradient_std(training.noise, sensitivity.l2(bound, params.protects), facts)
        noised = GaussianNoise(std), priced(Gaussian(training.noise))
    return PlannedRelease(path, bound, *noised, range(first, first + training.steps))
