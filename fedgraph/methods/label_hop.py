"""Label hop: private edges improve the answer to a private node, at a node-level ε that needs no promise about degrees.

Noise on a *sum over neighbours* must hide a hub, which is in up to n − 1 sums: the best cap that reads degrees only leaves
Δ ≈ √n/ln n (``privacy.neighbour_sums``). Here noise is put on what a node *says*, once, before any sum: every training node
answers with its label, randomised by itself (``mechanisms.local_bits``), and the answers are public from then on. Whoever
asks adds up the answers of its own neighbours, exactly: it knows its own edges, and its answer is shown to it alone. No edge of
anybody else is read, so a hub changes nothing but its own answer. This is joint differential privacy (Kearns et al. 2014).

What is released. *Meetings*: how often classes meet along training edges, as matching numbers, of which one node changes little
whatever its degree (``private_counts``): votes are weighed by what was measured, signed. *A short training* of a logistic
regression on rows, clipped gradients as in ``features`` without anything public, and counts of what it *got right*. By these
the way to spend the rest is chosen (``promises``): a training on rows alone, answered labels alone, or both in one of
two proportions, each priced with what came before. *Labels* are pure ε, each node its own. *Margins*: where rows and answers
are both heard, noisy counts of how sure and how right the rows' scores are, so that neither drowns the other. Where nothing is
known of people but their ties (one column, the same for all), all but the sign of the ties is for labels; of more than ten
classes, all.

A node that asks (``protocol: asking``) gets κ·scores of its own row + Σ over its neighbours of log P(answer | class)/P(answer),
the sum divided by what neighbours have in common. A public test graph has no edge to answered labels, and no private edge is
read: all of the budget is for rows, whose predictions spread over public edges as they themselves meet there
(``mean_field``). One hop only: a second message would depend on its sender's edges, and so on every hub.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from scipy.special import log_softmax, softmax
from scipy.stats import norm

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning import descents, layouts, mean_field, meetings, own_models, per_sample, torch
from fedgraph.methods import base
from fedgraph.methods.base import PLAN_WITHOUT_NOISE, Budget, PublicFacts, gradient_std
from fedgraph.privacy import calibrate, sensitivity
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("warner1965randomized", "kearns2014mechanism")


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
    def protects(self) -> privacy.Relation:
        return privacy.Relation(self.relation)


_PARTS = (0.45, 0.72)  # of ε, for the labels of the ways that train beside them
_LEAST_FOR_CLASSES = 3.0  # ε below which two numbers say how classes meet, and not one for each pair
_LEAST_SIGNAL = 15.0  # s per class, times the squared clarity of answers, below which it is two numbers as well
_FEW = 10  # classes up to which it is asked whether neighbours are unlike, where nothing but ties is known
_STEEPER, _GENTLER = 2.0, 0.25  # how much faster than that of rows alone the noise of other ways grows where all must add some
# Shares of the squared loss of the whole budget. Of counts: nodes for each standard deviation that is aimed at, and limits.
_PILOT = 0.01
_SIGN = (20.0, 0.00002, 0.002)  # of meetings where nothing but ties is known
_MEETINGS, _JUDGED, _MARGINS = (20.0, 0.003, 0.025), (19.0, 0.001, 0.006), (25.0, 0.002, 0.015)


@dataclass(frozen=True)
class _Training:
    """One descent."""

    noise: float  # multiplier of each gradient; 0: none
    steps: int  # how many
    rate: float  # step size
    clip: float  # norm to which each node's gradient is clipped

    @property
    def event(self) -> privacy.Event:
        return privacy.Repeated(privacy.Gaussian(self.noise), self.steps)

    @property
    def whole(self) -> float:
        """Noise multiplier of all steps together."""
        return self.noise / math.sqrt(self.steps)


@dataclass(frozen=True)
class _Way:
    """One way to spend what is left."""

    labels: float  # pure ε of the answers; 0: none; ∞: in clear
    training: _Training | None  # on rows; None: none
    margins: float = math.inf  # noise multiplier of the counts that weigh rows beside answers; 0: in clear; ∞: none

    @property
    def event(self) -> privacy.Event:
        labels = (privacy.PureDP(self.labels),) if self.labels else ()
        rows = () if self.training is None else (self.training.event,)
        return privacy.Composed((*labels, *rows, *((privacy.Gaussian(self.margins),) if self.margins < math.inf else ())))


@dataclass(frozen=True)
class _Split:
    """How the budget is divided."""

    meetings: float  # noise multiplier of how classes meet; ∞: not measured; 0: in clear
    by_class: bool  # whether it is measured of every pair of classes, or of like and unlike ones alone
    pilot: _Training | None  # the short training; None: none
    judged: float  # noise multiplier of the counts of what it got right; ∞: none
    ways: tuple[_Way, ...]  # what may be done then
    total: float  # noise multiplier of the whole budget, were all of it for one value; 0: no noise
    heavier: float = 1.0  # how much more of it the viewer's sums carry, since each client adds its own

    @property
    def choice(self) -> privacy.OneOf | None:
        return privacy.OneOf(tuple(way.event for way in self.ways)) if len(self.ways) > 1 else None


def _divided(params: Params, facts: PublicFacts, budget: Budget) -> _Split:
    """Noise for every release, so that all of them together cost at most the budget (searched on the price itself)."""
    asked = facts.asks and facts.num_classes > 1
    if not params.rows:
        if not asked:
            raise ScenarioError("label_hop: rows: false answers from neighbours' labels alone: set protocol: asking")
        return _Split(math.inf, False, None, math.inf, (_Way(budget.epsilon, None),), 0.0)
    asked = asked and params.label_epsilon != 0
    unknown = asked and params.label_epsilon == "auto" and facts.num_features == 1 and facts.columns is None
    if not budget.private:
        labels, clear = (math.inf, 0.0) if asked else (0.0, math.inf)
        training = None if unknown else _training(params, 0.0, 3.0 * facts.num_train)
        way = _Way(labels, training, math.inf if unknown else clear)
        return _Split(clear, asked and not unknown, None, math.inf, (way,), 0.0)
    return _Budgeting(params, facts, budget).unknown() if unknown else _Budgeting(params, facts, budget).known(asked)


class _Budgeting:
    """Divides a finite budget. facts: what is public. budget: of which ε is finite."""

    def __init__(self, params: Params, facts: PublicFacts, budget: Budget) -> None:
        _, num_shares = gradient_std(1.0, 1.0, facts)
        self.params, self.facts, self.budget = params, facts, budget
        self.total = calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
        self.heavier = math.sqrt(1 if num_shares > 1 else facts.num_clients)  # in what the viewer sees of all clients

    def unknown(self) -> _Split:
        """Nothing is known of people but their ties: labels, and a little for whether like ones meet oftener than others.

        Of many classes all is for labels: where neighbours are unlike, one of them speaks against few.
        """
        if self.facts.num_classes > _FEW:
            return _Split(math.inf, False, None, math.inf, (_Way(self.budget.epsilon, None),), self.total, self.heavier)
        counted = privacy.MeetingCounts(self.facts.num_nodes, self.facts.num_classes, by_class=False)
        test = self._counts(_SIGN, counted.change(self.params.protects))
        way = self._labels_alone(privacy.Gaussian(test), 1.0)
        return _Split(test, False, None, math.inf, (way,), self.total, self.heavier)

    def known(self, asked: bool) -> _Split:
        params, epsilon, relation = self.params, self.budget.epsilon, self.params.protects
        if not asked:
            way = _Way(0.0, self._trained(self._calibrated(privacy.Gaussian)))
            return _Split(math.inf, False, None, math.inf, (way,), self.total, self.heavier)
        given = params.label_epsilon
        if given != "auto" and given >= epsilon:
            raise ScenarioError(f"label_hop: label_epsilon {given} leaves nothing of ε = {epsilon} for training")
        by_class = self._by_class(0.55 * epsilon if given == "auto" else float(given))
        counted = privacy.MeetingCounts(self.facts.num_nodes, self.facts.num_classes, by_class)
        meetings, margins = self._counts(_MEETINGS, counted.change(relation)), self._counts(_MARGINS, _rows_change(params, 1.0))
        if given != "auto":
            fixed = privacy.Composed((privacy.Gaussian(meetings), privacy.PureDP(float(given)), privacy.Gaussian(margins)))
            way = _Way(
                float(given), self._trained(self._calibrated(lambda m: privacy.Composed((fixed, privacy.Gaussian(m))))), margins
            )
            return _Split(meetings, by_class, None, math.inf, (way,), self.total, self.heavier)
        pilot = self._trained(self.total / math.sqrt(_PILOT))
        judged = self._counts(_JUDGED, _rows_change(params, _JUDGED_CHANGE))
        found = privacy.Composed((privacy.Gaussian(meetings), pilot.event, privacy.Gaussian(judged)))
        alone = self._calibrated(lambda m: privacy.Composed((found, privacy.Gaussian(m))))
        left = self._labels_alone(found, 1.0).labels  # less than 0.8 of ε only where much of it was for measuring
        labels = [part * min(epsilon, left / 0.8) for part in _PARTS]

        def trained_beside(given: float) -> float:
            return self._calibrated(
                lambda m: privacy.Composed((found, privacy.PureDP(given), privacy.Gaussian(margins), privacy.Gaussian(m)))
            )

        beside = [trained_beside(e) for e in labels]

        def ways(more: float) -> tuple[_Way, ...]:
            mixed = [_Way(e, self._trained(m * more**_STEEPER), margins) for e, m in zip(labels, beside, strict=True)]
            return _Way(0.0, self._trained(alone * more)), *mixed, self._labels_alone(found, more)

        more = max(
            1.0, self._calibrated(lambda m: privacy.Composed((found, privacy.OneOf(tuple(way.event for way in ways(m))))))
        )
        return _Split(meetings, by_class, pilot, judged, ways(more), self.total, self.heavier)

    def _calibrated(self, make: Callable[[float], privacy.Event]) -> float:
        return calibrate.noise_multiplier_of(make, self.budget.epsilon, self.budget.delta)

    def _labels_alone(self, found: privacy.Event, more: float) -> _Way:
        """All that ``found`` leaves, over ``more``."""
        return _Way(1 / (self._calibrated(lambda m: privacy.Composed((found, privacy.PureDP(1 / m)))) * more**_GENTLER), None)

    def _trained(self, noise: float) -> _Training:
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
        clarity = answering_at(labels, c, replaces).clarity
        return c == 2 or (self.budget.epsilon >= _LEAST_FOR_CLASSES and strength / c * clarity**2 >= _LEAST_SIGNAL)


def answering_at(labels: float, classes: int, replaces: bool) -> learning.MeetingAnswers:
    """How answers come about at pure ε ``labels``; ∞: in clear."""
    if math.isinf(labels):
        return learning.MeetingAnswers.in_clear(classes)
    response = privacy.MaskedResponse(labels, classes, replaces)
    return learning.MeetingAnswers(response.size, response.odds, response.keep - response.spill)


def _training(params: Params, noise: float, strength: float) -> _Training:
    """noise: multiplier of the whole descent."""
    steps, rate, clip = descents.full_width(strength)
    steps = steps if params.steps == "auto" else params.steps
    rate = rate if params.learning_rate == "auto" else params.learning_rate
    return _Training(noise * math.sqrt(steps), steps, rate, clip if params.clip == "auto" else params.clip)


def _rows_change(params: Params, clip: float) -> float:
    return clip * (2 if params.protects.replaces else 1)


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    layout: learning.Layout  # of the rows' model
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


def _plan_for(params: Params, facts: PublicFacts, made: Made) -> tuple[privacy.PlannedRelease, ...]:
    """What every way releases, and before that meetings, the short training and what it got right."""
    classes, parts, relation, nodes = facts.num_classes, made.parts, params.protects, facts.num_nodes
    releases: list[privacy.PlannedRelease] = []
    for number, way in enumerate(parts.ways):

        def priced(event: privacy.Event, number: int = number) -> privacy.Event:
            return event if parts.choice is None else privacy.PartOf(event, parts.choice, number)

        if way.training is not None:
            first = made.first(number)
            releases.append(_gradient(made.path("model", number), params, facts, way.training, first, priced))
        if way.labels:
            noised = PLAN_WITHOUT_NOISE
            if math.isfinite(way.labels):
                noised = privacy.MaskedResponse(way.labels, classes, relation.replaces), priced(privacy.PureDP(way.labels))
            now = range(made.says, made.says + 1)
            releases.append(
                privacy.PlannedRelease(
                    made.path("labels", number), privacy.Box(privacy.local_bits.ABSENT_LABEL, classes - 1), *noised, now
                )
            )
        if (round_ := made.weighs(number)) is not None:
            bound = privacy.Rows(1.0, nodes)
            releases.append(_counted(made.path("margins", number), bound, way.margins, params, facts, round_, priced))
    if parts.pilot is not None and made.judges is not None:
        releases.append(_gradient("pilot", params, facts, parts.pilot, 0, lambda event: event))
        bound = privacy.Rows(_JUDGED_CHANGE, nodes)
        releases.append(_counted("judged", bound, parts.judged, params, facts, made.judges, lambda event: event))
    if made.measures:
        noised, counted = PLAN_WITHOUT_NOISE, privacy.MeetingCounts(nodes, classes, parts.by_class)
        if parts.meetings:
            std, _ = gradient_std(parts.meetings, counted.change(relation), facts)
            noised = privacy.GaussianNoise(std), privacy.Gaussian(parts.meetings)
        releases.append(privacy.PlannedRelease("meetings", counted, *noised, range(1)))
    return tuple(releases)


_Priced = Callable[[privacy.Event], privacy.Event]


def _counted(
    path: str, bound: privacy.Rows, multiplier: float, params: Params, facts: PublicFacts, round_: int, priced: _Priced
) -> privacy.PlannedRelease:
    noised = PLAN_WITHOUT_NOISE
    if multiplier:
        std, _ = gradient_std(multiplier, sensitivity.l2(bound, params.protects), facts)
        noised = privacy.GaussianNoise(std), priced(privacy.Gaussian(multiplier))
    return privacy.PlannedRelease(path, bound, *noised, range(round_, round_ + 1))


def _gradient(
    path: str, params: Params, facts: PublicFacts, training: _Training, first: int, priced: _Priced
) -> privacy.PlannedRelease:
    noised = PLAN_WITHOUT_NOISE
    bound = privacy.ClippedSum(training.clip, facts.num_nodes, sensitivity.kernel_name(per_sample.clipped_sum))
    if training.noise:
        std, _ = gradient_std(training.noise, sensitivity.l2(bound, params.protects), facts)
        noised = privacy.GaussianNoise(std), priced(privacy.Gaussian(training.noise))
    return privacy.PlannedRelease(path, bound, *noised, range(first, first + training.steps))


_SEPARATIONS = np.concatenate([[0.0], np.geomspace(0.02, 200, 48)])
_LEFT = np.geomspace(0.04, 3, 24)  # t: what rows leave open without noise, all as likely
_PER_COLUMN = 130.0  # r, by which the noise of the whole budget adds to t, is guessed as so much per column and (σ/nodes)²
_SPREAD = 0.8  # standard deviation of ln r around its guess
_UNEXPLAINED = 0.03  # standard deviation of a short training's accuracy around what t and r say
_DRAWS = (-1.2, 0.0, 1.2)  # standard errors around a measured likeness of neighbours: three points for a normal law
_QUANTILES = 24  # of a geometric law of degrees

_EDGES = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])  # where bins of the lead of the likeliest class begin
_LEADS = np.sqrt(np.maximum(_EDGES, 0.05) * np.append(_EDGES[1:], 12.8)).clip(max=6.0)
NUM_LEADS = 2 * _EDGES.size  # numbers of ``leads``
_LEAD = 0.5  # what a lead counts for where it is released beside what is right, which decides more
_SCALES = np.append(1.0, np.full(NUM_LEADS, _LEAD))
_JUDGED_CHANGE = math.hypot(1.0, _LEAD)
_BELIEF, _BELIEF_SPREAD = 0.7, 0.7  # of scores, before it is measured, and the standard deviation of its logarithm


@dataclass(frozen=True)
class Spending:
    """One way, as ``promises`` needs it."""

    answers: learning.MeetingAnswers | None  # how answers come about; None: nobody answers
    variance: float  # of the rows' noise, over that of the whole budget; ∞: no rows


@dataclass(frozen=True)
class Seen:
    """What the short training got right."""

    accuracy: float
    error: float  # standard error of it, by noise
    variance: float  # of its noise, over that of the whole budget
    noise: float  # multiplier of the whole budget over the number of nodes
    columns: int  # of a row


def judged_counts(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Per node, for counts of how many are guessed right and by how much: float64 [n, 1 + NUM_LEADS], 0 and 1.

    A row has at most two ones: the first, if its class has the largest score; and at the bin of its lead, by whether the label
    is the first class or the second. Nothing where it is another.
    scores: [n, c] logits. labels: int64 [n]; a node with a negative label has zeros.
    """
    out = np.zeros((len(scores), 1 + NUM_LEADS))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    nodes = np.arange(len(scores))
    lead = scores[nodes, order[:, 0]] - scores[nodes, order[:, 1]]
    bins = np.clip(np.digitize(lead, _EDGES) - 1, 0, _EDGES.size - 1)
    for place in (0, 1):
        named = (labels >= 0) & (order[:, place] == labels)
        out[nodes[named], 1 + place * _EDGES.size + bins[named]] = 1
    out[:, 0] = (labels >= 0) & (order[:, 0] == labels)
    return out


def confidence_of(leads: np.ndarray, std: float) -> float:
    """κ ≥ 0 by which scores are multiplied so that they are as sure as they are right; 0: they tell nothing.

    Of two classes of which one leads by m, it is right with probability 1/(1 + e^(−κm)). κ explains the counts best, and is
    drawn towards what is usual where noise covers them.
    leads: float64 [NUM_LEADS], noisy counts (``judged``).
    """
    first, second = leads.reshape(2, -1)
    total = np.maximum(first + second, 0)
    tried = np.concatenate([[0.0], np.geomspace(0.05, 4, 40)])
    expected = total * np.tanh(tried[:, None] * _LEADS / 2)
    cost = ((first - second - expected) ** 2 / (2 * std**2 + total + 1)).sum(axis=1)
    cost += (np.log(np.maximum(tried, 0.03) / _BELIEF) / _BELIEF_SPREAD) ** 2
    return float(tried[cost.argmin()])


def promises(ways: Sequence[Spending], reading: learning.MeetingReading, correlation: float, rows: Seen) -> np.ndarray:
    """The accuracy that each way promises: float64 [ways]; all of it post-processing.

    What rows tell and what answers tell is put on one scale, the separation s: c classes are told apart as well as by scores
    s·1[own class] + √s·N(0, I), and separations of independent sources add up. c is one over the chance that two people have
    one class. Of answers the separation follows from how classes were measured to meet, from the mean degree and from ε
    (``meetings.information_of``). Of rows trained with noise of variance v, 1/s = t(1 + r·v), since noise adds to a spread
    that no budget mends, and both weigh the more the nearer classes are. Neither t nor r is known before rows are trained, so
    each pair is weighed by how well it explains what a short training, with a small part of the budget, got right.
    Each way is judged by its accuracy over all of these and over what noise leaves open of the meetings: no threshold decides.
    """
    curve = _accuracies(round(1 / float(((reading.shares / reading.shares.sum()) ** 2).sum()), 1))
    off = np.linspace(-2, 2, 9)
    guess = _PER_COLUMN * rows.columns * rows.noise**2 * np.exp(_SPREAD * off)
    left, adds = np.repeat(_LEFT, guess.size), np.tile(guess, _LEFT.size)
    explained = np.interp(1 / (left * (1 + adds * rows.variance)), _SEPARATIONS, curve)
    far = (explained - rows.accuracy) ** 2 / (rows.error**2 + _UNEXPLAINED**2)
    weights = np.tile(np.exp(-(off**2) / 2), _LEFT.size) * np.exp(-far / 2) + 1e-300
    weights /= weights.sum()
    heard = np.floor(np.log1p(-(np.arange(_QUANTILES) + 0.5) / _QUANTILES) / math.log(reading.degree / (1 + reading.degree)))
    supposed = [reading.apart + z * reading.error for z in _DRAWS]
    found = []
    for way in ways:
        told = np.zeros((1, 1))
        if way.answers is not None:
            each = [
                (apart, meetings.information_of(reading.supposing(apart), way.answers, correlation, heard))
                for apart in supposed
            ]
            told = np.array(
                [information / 2 if apart * reading.apart >= 0 else -information / 2 for apart, information in each]
            )
        rows_tell = 1 / (left * (1 + adds * min(way.variance, rows.variance)))
        accuracy = np.interp(np.maximum(rows_tell[:, None, None] + told, 0), _SEPARATIONS, curve).mean(axis=(1, 2))
        found.append(float(weights @ accuracy))
    return np.array(found)


@cache
def _accuracies(classes: float) -> np.ndarray:
    """P(the own class has the largest score) at each separation: ∫ φ(z − √s) Φ(z)^(c − 1) dz, for any real c ≥ 1."""
    z = np.linspace(-9, 26, 4000)
    density = norm.pdf(z - np.sqrt(_SEPARATIONS)[:, None])
    return np.asarray((density * norm.cdf(z) ** (classes - 1)).sum(axis=1) * (z[1] - z[0]))


_SURE = 1.5  # standard errors below chance from which neighbours are taken for unlike, where nothing but ties is known
_CLEAR = 3.0  # squared standard errors per class that sizes of classes must be apart before they count for much
_MOST_HEARD = 4.0  # as in features: log-odds that a sure neighbour may bring on a public graph, × mean doubt


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    x: learning.FeatureMatrix  # its rows, at unit length
    labels: torch.Tensor  # int64 [n], −1 where unknown
    said: np.ndarray  # int64 [n], the answers that its nodes will give: their labels, or −2 for nodes that only ask
    nodes: np.ndarray  # int64 [n], their global ids
    adjacency: sp.csr_array  # CSR [n, n], its edges


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    descent: learning.Descended  # where it is
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
    parts, layout = _divided(params, facts, budget), (facts.num_features, facts.num_classes)
    made = Made(learning.Layout(layout, bias_scale=0.1), parts)
    planned = _plan_for(params, facts, made)
    asks = (privacy.Assumption.ANSWERS_PRIVATE,) if facts.asks else ()
    assumed = (
        privacy.Assumption.COUNTS_PUBLIC,
        privacy.Assumption.UNTUNED,
        privacy.Assumption.SPLIT_PUBLIC,
        *asks,
        *base.assume_public_facts(facts),
    )
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False)
    min_clients = base.gradient_std(1.0, 1.0, facts)[1] if budget.private else 1
    schedule = base.PlanSchedule(max(release.rounds[-1] for release in planned) + 1, planned, min_clients)
    return base.Plan("label_hop", params, facts, guarantee, schedule, made, sums=base.PlanSums(suffice=True))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return _state(plan, Memory(_begun(plan)), 0)


def _begun(plan: Planned) -> learning.Descended:
    return learning.Descent(1.0, 0.0, 1, 1.0).start(np.zeros(plan.made.layout.num_parameters, dtype=np.float32))


def _state(plan: Planned, memory: Memory, round_: int) -> base.State[Memory]:
    """What is broadcast in ``round_``: the averaged parameters where they are judged or weighed."""
    counted = round_ in (plan.made.judges, plan.made.weighs(memory.way) if round_ >= plan.made.says else None)
    parameters = memory.descent.average if counted else memory.descent.parameters
    return base.State({"parameters": parameters, "way": np.array([memory.way])}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph, nodes = subgraph.graph, subgraph.nodes
    said = np.where(np.isin(nodes, plan.facts.asking), privacy.local_bits.ABSENT_LABEL, graph.labels)
    x = learning.FeatureMatrix(learning.unit_matrix_rows(graph.features))
    return Work(x, torch.tensor(graph.labels, device=learning.torch_device()), said, nodes, graph.adjacency)


def client(
    plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """Meetings, and a short training with what it got right; then what the chosen way releases."""
    made, facts, way = plan.made, plan.facts, int(model["way"][0])
    if not 0 <= way < len(made.parts.ways):
        raise PrivacyError(f"label_hop: a way is refused: found {way}; allowed: 0 to {len(made.parts.ways) - 1}")
    chosen, first = made.parts.ways[way], made.first(way)
    sent: dict[str, privacy.Released] = {}
    if made.measures and round_ == 0:
        counted = privacy.MeetingCounts(facts.num_nodes, facts.num_classes, made.parts.by_class)
        exact = partial(meetings.count, work.adjacency, work.said, work.nodes, counted)
        sent["meetings"] = desk.release("meetings", exact)

    def gradient(path: str, training: _Training) -> privacy.Released:
        return desk.release(
            path, partial(per_sample.clipped_sum, made.layout, model["parameters"], work.x, work.labels, training.clip)
        )

    def judged(training: _Training) -> np.ndarray:
        scores = _tempered(plan, training, model["parameters"], work.x)
        return judged_counts(scores, work.labels.cpu().numpy())

    if made.parts.pilot is not None and made.judges is not None and round_ <= made.judges:
        pilot = made.parts.pilot
        if round_ < made.judges:
            sent["gradient"] = gradient("pilot", pilot)
        else:
            sent["judged"] = desk.release("judged", partial(lambda training: judged(training) * _SCALES, pilot))
        return sent
    if chosen.labels and round_ == made.says:
        everybody = np.full(facts.num_nodes, privacy.local_bits.ABSENT_LABEL, dtype=np.int64)
        everybody[work.nodes] = work.said
        sent["labels"] = desk.release(made.path("labels", way), everybody)
    if (training := chosen.training) is None:
        return sent
    if first <= round_ < first + training.steps:
        sent["gradient"] = gradient(made.path("model", way), training)
    if round_ == made.weighs(way):
        leads = partial(lambda training: judged(training)[:, 1:], training)
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
    reading = _meetings_of(plan, memory)
    accuracy, error = float(np.clip(counts[0] / facts.num_train, 0, 1)), _std(plan, "judged") / facts.num_train
    noise = parts.total * parts.heavier * (2 if params.protects.replaces else 1) / plan.facts.num_train
    rows = Seen(accuracy, error, (pilot.whole / parts.total) ** 2, noise, facts.num_features)
    ways = [
        Spending(
            answering_at(way.labels, facts.num_classes, params.protects.replaces) if way.labels else None,
            math.inf if way.training is None else (way.training.whole / parts.total) ** 2,
        )
        for way in parts.ways
    ]
    return int(promises(ways, reading, params.correlation, rows).argmax())


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
    scores = _tempered(plan, training, parameters, learning.FeatureMatrix(learning.unit_matrix_rows(graph.features)))
    if facts.public == "test-graph":
        most = _MOST_HEARD * mean_field.doubt(scores)
        return mean_field.couple(scores, graph.adjacency, [], most, plan.params.propagation_steps)
    if memory.answers is None or not facts.asks:
        return np.asarray(softmax(scores, axis=1))
    sure = _confidence(plan, memory)
    shares = _shares(plan, memory)
    own = log_softmax(sure * scores, axis=1) + max(0.0, 1 - sure) * np.log(shares)
    if graph.num_nodes >= facts.num_nodes:
        reading = _meetings_of(plan, memory)
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
    reading = _meetings_of(plan, memory)
    return -1.0 if reading.apart < -_SURE * reading.error else 1.0


def _confidence(plan: Planned, memory: Memory) -> float:
    """How far the rows' scores are believed beside answers."""
    if memory.margins is not None:
        return confidence_of(memory.margins, _std(plan, plan.made.path("margins", memory.way)))
    counts = base.require_received(plan, memory.judged)
    return confidence_of(counts[1:] / _LEAD, _std(plan, "judged") / _LEAD)


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
    memory, x = state.memory, learning.FeatureMatrix(learning.unit_matrix_rows(graph.features))
    pilot = plan.made.parts.ways[memory.way].training is None
    if pilot and memory.pilot is None:
        return state
    before = base.require_received(plan, memory.pilot) if pilot else memory.descent.average
    own = own_models.tune(plan.made.layout, before, x, graph.labels, rng)
    after = replace(memory, pilot=own) if pilot else replace(memory, descent=replace(memory.descent, average=own))
    return replace(state, memory=after)


def _tempered(plan: Planned, training: _Training, parameters: np.ndarray, x: learning.FeatureMatrix) -> np.ndarray:
    """Scores [n, c], less sure by the standard deviation that noise alone gives them on a unit row (MacKay 1992, eq. 9)."""
    std, _ = base.gradient_std(training.noise, training.clip * (2 if plan.params.protects.replaces else 1), plan.facts)
    clients = plan.facts.num_clients
    noise = _descent(plan, training).gain() * std * math.sqrt(2 * clients) / plan.facts.num_train
    return np.asarray(layouts.logits(plan.made.layout, parameters, x) / math.sqrt(1 + math.pi / 8 * noise**2))


def _std(plan: Planned, path: str) -> float:
    """Standard deviation of the noise in a sum of all clients; small where there is none."""
    noise = next(r.mechanism for r in plan.schedule.releases if r.path == path)
    return noise.std * math.sqrt(plan.facts.num_clients) if isinstance(noise, privacy.GaussianNoise) else 1e-3


def _answering(plan: Planned, memory: Memory) -> learning.MeetingAnswers:
    labels = plan.made.parts.ways[memory.way].labels
    return answering_at(labels, plan.facts.num_classes, plan.params.protects.replaces)


def _meetings_of(plan: Planned, memory: Memory) -> learning.MeetingReading:
    """How classes meet, as was measured; all of it post-processing."""
    facts = plan.facts
    counted = privacy.MeetingCounts(facts.num_nodes, facts.num_classes, plan.made.parts.by_class)
    found = np.zeros(counted.length) if memory.meetings is None else memory.meetings
    return meetings.read(found, _std(plan, "meetings"), counted, facts.num_train)


def _descent(plan: Planned, training: _Training) -> learning.Descent:
    return learning.Descent(training.rate, plan.params.momentum, training.steps, plan.params.averaged)


def reads(plan: Planned) -> base.MethodReads:
    """What an answer reads: on a public graph the others' rows, too; for who asks, the answers of its own neighbours."""
    if plan.facts.public == "test-graph":
        return base.MethodReads.PUBLIC_GRAPH
    hears = plan.facts.asks and any(way.labels for way in plan.made.parts.ways)
    return base.MethodReads.OWN_EDGES if hears else base.MethodReads.OWN_ROW


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(privacy.Unit.NODE,),
    reads=reads,
    situations=(
        base.MethodSituation("asking", settings={"steps": 5}),
        base.MethodSituation("inductive", settings={"steps": 5}),
    ),
    private_test_nodes=True,  # each answers from its own row and its own edges
    tuned=tuned,
)
