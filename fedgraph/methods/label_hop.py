"""Label hop: private edges improve the answer to a private node, at a node-level ε without a promise about degrees.

Noise on a *sum over neighbours* must hide a hub, which is in up to n − 1 sums: the best cap by degrees leaves Δ ≈ √n/ln n
(``privacy.neighbour_sums``). Here noise is added before any sum: every training node answers once with its own randomised label
(``privacy.local_bits``), and these answers are public from then on. Whoever asks adds up the answers of its own neighbours
without noise: it knows its own edges, and only it sees the result. No other edge is read, so a hub changes nothing but its own
answer. This is joint differential privacy (Kearns et al. 2014).

**Releases.** *Meetings*: how often classes meet along training edges, as matching numbers, which one node changes little
whatever its degree is (``privacy.private_counts``); they give the weights and signs of votes. *A short training* of a logistic
regression on rows, by clipped gradients as in ``features`` without public data, and counts of what it *got right*. By these one
of the ways to spend the rest is chosen (``promises``): rows alone, labels alone, or both in one of two proportions; each way is
priced with what came before. *Labels* have pure ε, for each node its own. *Margins*: if rows and answers are both used, noisy
counts of how sure and how right the scores of rows are, which weigh the two. If nothing is known of people but their edges (one
column, the same for all), labels get all of the budget except what the sign of meetings costs; with more than ten classes, all.

A node that asks (``protocol: asking``) gets κ·scores of its own row + Σ over its neighbours of log P(answer | class)/P(answer),
the sum divided by what neighbours have in common. A public test graph has no edge to answered labels, and no private edge is
read: rows get all of the budget, and their predictions spread over public edges as they agree there (``learning.mean_field``).
There is only one hop: a second message would depend on its sender's edges, and so on every hub.
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
    """Settings; ``auto`` follows ε, or s = n·μ of what is left for training (``learning.descents.full_width``)."""

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


_PARTS = (0.45, 0.72)  # shares of ε for the labels of the two ways with rows and labels
_LEAST_FOR_CLASSES = 3.0  # ε below which meetings are two numbers, and not one for each pair of classes
_LEAST_SIGNAL = 15.0  # s per class, times the squared clarity of answers, below which they are two numbers, too
_FEW = 10  # most classes with which the sign of meetings is measured if nothing but edges is known
_STEEPER, _GENTLER = 2.0, 0.25  # powers by which the noise of ways with rows and labels, and with labels alone, grows
# shares of the squared loss of the whole budget; of counts: wanted standard deviation in nodes, least and largest share
_PILOT = 0.01
_SIGN = (20.0, 0.00002, 0.002)  # of meetings if nothing but edges is known
_MEETINGS, _JUDGED, _MARGINS = (20.0, 0.003, 0.025), (19.0, 0.001, 0.006), (25.0, 0.002, 0.015)


@dataclass(frozen=True)
class _Training:
    """One descent."""

    noise: float  # noise multiplier of each gradient; 0: none
    steps: int
    rate: float  # step size
    clip: float  # norm to which each node's gradient is clipped

    @property
    def event(self) -> privacy.Event:
        """The price of all steps."""
        return privacy.Repeated(privacy.Gaussian(self.noise), self.steps)

    @property
    def whole(self) -> float:
        """The noise multiplier of all steps together."""
        return self.noise / math.sqrt(self.steps)


@dataclass(frozen=True)
class _Way:
    """One way to spend what is left."""

    labels: float  # pure ε of the answers; 0: no answers; ∞: answers in clear
    training: _Training | None  # the training on rows, or None
    margins: float = math.inf  # noise multiplier of the counts that weigh rows against answers; 0: in clear; ∞: no counts

    @property
    def event(self) -> privacy.Event:
        """The price of the way."""
        labels = (privacy.PureDP(self.labels),) if self.labels else ()
        rows = () if self.training is None else (self.training.event,)
        return privacy.Composed((*labels, *rows, *((privacy.Gaussian(self.margins),) if self.margins < math.inf else ())))


@dataclass(frozen=True)
class _Split:
    """How the budget is divided."""

    meetings: float  # noise multiplier of meetings; ∞: not measured; 0: in clear
    by_class: bool  # whether they are counted for every pair of classes, or only for equal and different classes
    pilot: _Training | None  # the short training, or None
    judged: float  # noise multiplier of the counts of what it got right; ∞: no counts
    ways: tuple[_Way, ...]  # ways to spend the rest
    total: float  # noise multiplier of the whole budget if it were spent on one value; 0: no noise
    heavier: float = 1.0  # noise in the sums that the viewer sees over that of one client

    @property
    def choice(self) -> privacy.OneOf | None:
        """The price of the choice between the ways; None if there is only one."""
        return privacy.OneOf(tuple(way.event for way in self.ways)) if len(self.ways) > 1 else None


def _divided(params: Params, facts: PublicFacts, budget: Budget) -> _Split:
    """The noise of every release; all together cost at most the budget."""
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
    """Divides a budget with finite ε."""

    def __init__(self, params: Params, facts: PublicFacts, budget: Budget) -> None:
        _, num_shares = gradient_std(1.0, 1.0, facts)
        self.params, self.facts, self.budget = params, facts, budget
        self.total = calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
        self.heavier = math.sqrt(1 if num_shares > 1 else facts.num_clients)

    def unknown(self) -> _Split:
        """If nothing is known of people but their edges: labels, and a little for whether equal classes meet more often.

        With many classes all is for labels: if neighbours differ, one of them speaks against only one of the classes.
        """
        if self.facts.num_classes > _FEW:
            return _Split(math.inf, False, None, math.inf, (_Way(self.budget.epsilon, None),), self.total, self.heavier)
        counted = privacy.MeetingCounts(self.facts.num_nodes, self.facts.num_classes, by_class=False)
        test = self._counts(_SIGN, counted.change(self.params.protects))
        way = self._labels_alone(privacy.Gaussian(test), 1.0)
        return _Split(test, False, None, math.inf, (way,), self.total, self.heavier)

    def known(self, asked: bool) -> _Split:
        """If people have rows. asked: whether nodes ask, so that labels may be answered."""
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
        left = self._labels_alone(found, 1.0).labels  # less than 0.8 of ε only if measuring took much of it
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
        """Labels with all that ``found`` leaves, with noise by the factor ``more``."""
        return _Way(1 / (self._calibrated(lambda m: privacy.Composed((found, privacy.PureDP(1 / m)))) * more**_GENTLER), None)

    def _trained(self, noise: float) -> _Training:
        """A training. noise: multiplier of the whole descent."""
        weakened = self.heavier * (2 if self.params.protects.replaces else 1)
        return _training(self.params, noise, self.facts.num_train * min(3.0, 1 / noise / weakened))

    def _counts(self, wanted: tuple[float, float, float], change: float) -> float:
        """Noise multiplier of counts that one node changes by ``change``, within the limits of ``wanted``."""
        nodes, least, most = wanted
        share = (nodes * self.total * self.heavier * change / self.facts.num_train) ** 2
        return self.total / math.sqrt(min(max(share, least), most))

    def _by_class(self, labels: float) -> bool:
        """Whether meetings are counted for each pair of classes: if ε and nodes per class suffice, and for two classes."""
        c, replaces = self.facts.num_classes, self.params.protects.replaces
        strength = self.facts.num_train / self.total / self.heavier / (2 if replaces else 1)
        clarity = answering_at(labels, c, replaces).clarity
        return c == 2 or (self.budget.epsilon >= _LEAST_FOR_CLASSES and strength / c * clarity**2 >= _LEAST_SIGNAL)


def answering_at(labels: float, classes: int, replaces: bool) -> learning.MeetingAnswers:
    """The law of answers at pure ε ``labels``; ∞: in clear."""
    if math.isinf(labels):
        return learning.MeetingAnswers.in_clear(classes)
    response = privacy.MaskedResponse(labels, classes, replaces)
    return learning.MeetingAnswers(response.size, response.odds, response.keep - response.spill)


def _training(params: Params, noise: float, strength: float) -> _Training:
    """A training. noise: multiplier of the whole descent. strength: s."""
    steps, rate, clip = descents.full_width(strength)
    steps = steps if params.steps == "auto" else params.steps
    rate = rate if params.learning_rate == "auto" else params.learning_rate
    return _Training(noise * math.sqrt(steps), steps, rate, clip if params.clip == "auto" else params.clip)


def _rows_change(params: Params, clip: float) -> float:
    return clip * (2 if params.protects.replaces else 1)


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    layout: learning.Layout  # of the model of rows
    parts: _Split

    @property
    def measures(self) -> bool:
        """Whether meetings are released."""
        return self.parts.meetings < math.inf

    @property
    def judges(self) -> int | None:
        """The round in which the short training is judged, or None."""
        return None if self.parts.pilot is None else self.parts.pilot.steps

    @property
    def says(self) -> int:
        """The first round after the way was chosen, in which labels are answered."""
        return int(self.measures) if self.judges is None else self.judges + 1

    def first(self, way: int) -> int:
        """The first round of the training of a way."""
        return self.says + bool(self.parts.ways[way].labels)

    def weighs(self, way: int) -> int | None:
        """The round in which the rows of a way are weighed against answers, or None."""
        found = self.parts.ways[way]
        return None if found.training is None or math.isinf(found.margins) else self.first(way) + found.training.steps

    def path(self, name: str, way: int) -> str:
        """The path of a release of one way."""
        return name if self.parts.choice is None else f"{name}_{way}"


def _plan_for(params: Params, facts: PublicFacts, made: Made) -> tuple[privacy.PlannedRelease, ...]:
    """The planned releases of every way, and before that of meetings, the short training and its counts."""
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
_LEFT = np.geomspace(0.04, 3, 24)  # values of t, which rows leave without noise, all as likely
_PER_COLUMN = 130.0  # guess of r, which the noise of the whole budget adds to t, per column and (σ/nodes)²
_SPREAD = 0.8  # standard deviation of ln r around its guess
_SPARSE, _FAR_LESS = (
    0.3,
    -5.0,
)  # weight, beside 1 at the guess, of each r from e^(-5 · _SPREAD) of it down: most columns are empty
_UNEXPLAINED = 0.03  # standard deviation of a short training's accuracy around that of t and r
_DRAWS = (-1.2, 0.0, 1.2)  # standard errors around a measured likeness of neighbours: three points for a normal law
_QUANTILES = 24  # of a geometric law of degrees

_EDGES = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])  # lower ends of bins of the lead of the likeliest class
_LEADS = np.sqrt(np.maximum(_EDGES, 0.05) * np.append(_EDGES[1:], 12.8)).clip(max=6.0)
NUM_LEADS = 2 * _EDGES.size  # counts of leads
_LEAD = 0.5  # weight of a lead beside the count of right answers, which matters more
_SCALES = np.append(1.0, np.full(NUM_LEADS, _LEAD))
_JUDGED_CHANGE = math.hypot(1.0, _LEAD)
_BELIEF, _BELIEF_SPREAD = 0.7, 0.7  # κ before it is measured, and the standard deviation of its logarithm


@dataclass(frozen=True)
class Spending:
    """One way, as ``promises`` needs it."""

    answers: learning.MeetingAnswers | None  # the law of answers; None: there are none
    variance: float  # variance of the noise of rows, over that of the whole budget; ∞: no rows


@dataclass(frozen=True)
class Seen:
    """The short training, as ``promises`` needs it."""

    accuracy: float
    error: float  # standard error of the accuracy by noise
    variance: float  # variance of its noise, over that of the whole budget
    noise: float  # noise multiplier of the whole budget over the number of nodes
    columns: int  # columns of a row


def judged_counts(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """float64 [n, 1 + NUM_LEADS], 0 and 1: for each node what it adds to counts of right guesses and of leads.

    A row has at most two ones: the first column, if the label has the largest score; and the bin of the lead of the first score
    over the second, if the label is one of these two classes (with separate bins for each).

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
    """κ ≥ 0 by which scores are multiplied to be as sure as they are right; 0: they tell nothing.

    Of two classes, one that leads by m is right with probability 1/(1 + e^(−κm)). κ explains the counts best; the more noise
    covers them, the nearer it is to its usual value.

    leads: float64 [NUM_LEADS], noisy counts. std: standard deviation of their noise.
    """
    first, second = leads.reshape(2, -1)
    total = np.maximum(first + second, 0)
    tried = np.concatenate([[0.0], np.geomspace(0.05, 4, 40)])
    expected = total * np.tanh(tried[:, None] * _LEADS / 2)
    cost = ((first - second - expected) ** 2 / (2 * std**2 + total + 1)).sum(axis=1)
    cost += (np.log(np.maximum(tried, 0.03) / _BELIEF) / _BELIEF_SPREAD) ** 2
    return float(tried[cost.argmin()])


def promises(ways: Sequence[Spending], reading: learning.MeetingReading, correlation: float, rows: Seen) -> np.ndarray:
    """float64 [ways], the accuracy that each way promises, by post-processing.

    Rows and answers are put on one scale, the separation s: c classes are told apart as well as by scores s·1[own class] +
    √s·N(0, I), and separations of independent sources add up. c is one over the chance that two people have the same class.

    The separation of answers follows from the measured meetings, the mean degree and ε (``meetings.information_of``). For rows
    trained with noise of variance v, 1/s = t(1 + r·v): noise adds to a spread that no budget removes, and both matter more the
    nearer classes are. t and r are unknown, so each pair gets a weight by how well it explains what the short training got
    right. r is guessed from the number of columns; or it is far less, since columns that nobody has add nothing. A way's
    accuracy is the mean over these pairs and over the noise of the meetings.
    """
    curve = _accuracies(round(1 / float(((reading.shares / reading.shares.sum()) ** 2).sum()), 1))
    off = np.linspace(-8, 2, 21)
    likely = np.exp(-(off**2) / 2) + np.where(off <= _FAR_LESS, _SPARSE, 0.0)
    guess = _PER_COLUMN * rows.columns * rows.noise**2 * np.exp(_SPREAD * off)
    left, adds = np.repeat(_LEFT, guess.size), np.tile(guess, _LEFT.size)
    explained = np.interp(1 / (left * (1 + adds * rows.variance)), _SEPARATIONS, curve)
    far = (explained - rows.accuracy) ** 2 / (rows.error**2 + _UNEXPLAINED**2)
    weights = np.tile(likely, _LEFT.size) * np.exp(-far / 2) + 1e-300
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
    """P(the own class has the largest score) for each of ``_SEPARATIONS``: ∫ φ(z − √s) Φ(z)^(c − 1) dz, for real c ≥ 1."""
    z = np.linspace(-9, 26, 4000)
    density = norm.pdf(z - np.sqrt(_SEPARATIONS)[:, None])
    return np.asarray((density * norm.cdf(z) ** (classes - 1)).sum(axis=1) * (z[1] - z[0]))


_SURE = 1.5  # standard errors below chance with which neighbours count as different, if nothing but edges is known
_CLEAR = 3.0  # squared standard errors per class by which class sizes must differ before they count for much
_MOST_HEARD = 4.0  # as in ``features``: log-odds that a sure neighbour may add on a public graph, times mean doubt


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    x: learning.FeatureMatrix  # its rows, at unit length
    labels: torch.Tensor  # int64 [n], −1: unknown
    said: np.ndarray  # int64 [n], labels that are answered; −2 for nodes that only ask
    nodes: np.ndarray  # int64 [n], global ids
    adjacency: sp.csr_array  # CSR [n, n], its edges


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    descent: learning.Descended  # state of the descent
    way: int = 0  # number of the way; 0 before it is chosen
    pilot: np.ndarray | None = None  # float32 [p], the model of the short training
    meetings: np.ndarray | None = None  # float64, noisy
    judged: np.ndarray | None = None  # float64, noisy counts of what the short training got right
    margins: np.ndarray | None = None  # float64, noisy counts of leads
    answers: np.ndarray | None = None  # [num_nodes, c], 1: the class was named


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Meetings, the short training, and every way, priced from public facts."""
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
    """The state before ``round_``; its model has averaged parameters if they are judged or weighed."""
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
    """Releases meetings, the short training and its counts; then what the chosen way releases."""
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
    """Keeps what was measured and answered, chooses the way, and takes one step along the mean gradient."""
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
    """The number of the way that promises most, by meetings and by what the short training got right."""
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
    """[num_nodes, c]: 1 if a class was named. In clear, the sum over K clients is the label − 2·(K − 1)."""
    total = np.asarray(inbox.sums["labels"])
    if not math.isinf(plan.made.parts.ways[0].labels):
        return np.minimum(total, 1)
    labels = total.astype(np.int64) + 2 * (inbox.num_clients - 1)
    return np.asarray(labels[:, None] == np.arange(plan.facts.num_classes), dtype=np.int16)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities, by own row and answers of own neighbours; on a public graph spread over its edges."""
    memory, facts = state.memory, plan.facts
    way = plan.made.parts.ways[memory.way]
    training, parameters = (way.training, memory.descent.average) if way.training else (plan.made.parts.pilot, memory.pilot)
    if training is None or parameters is None:
        if graph.num_nodes < facts.num_nodes:  # people without an edge to anybody who answered
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
    """−1 if neighbours were measured to differ, by at least ``_SURE`` standard errors; else 1."""
    if memory.meetings is None:
        return 1.0
    reading = _meetings_of(plan, memory)
    return -1.0 if reading.apart < -_SURE * reading.error else 1.0


def _confidence(plan: Planned, memory: Memory) -> float:
    """κ, the factor of the scores of rows beside answers."""
    if memory.margins is not None:
        return confidence_of(memory.margins, _std(plan, plan.made.path("margins", memory.way)))
    counts = base.require_received(plan, memory.judged)
    return confidence_of(counts[1:] / _LEAD, _std(plan, "judged") / _LEAD)


def _shares(plan: Planned, memory: Memory) -> np.ndarray:
    """[c], shares of the classes by the answers, shrunk to equal shares as far as the noise of answers explains."""
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
    """``answers`` for all nodes of ``graph``; newcomers have none."""
    return np.pad(answers, ((0, graph.num_nodes - len(answers)), (0, 0)))


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """The state with the weights of rows after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    memory, x = state.memory, learning.FeatureMatrix(learning.unit_matrix_rows(graph.features))
    pilot = plan.made.parts.ways[memory.way].training is None
    if pilot and memory.pilot is None:
        return state
    before = base.require_received(plan, memory.pilot) if pilot else memory.descent.average
    own = own_models.tune(plan.made.layout, before, x, graph.labels, rng)
    after = replace(memory, pilot=own) if pilot else replace(memory, descent=replace(memory.descent, average=own))
    return replace(state, memory=after)


def _tempered(plan: Planned, training: _Training, parameters: np.ndarray, x: learning.FeatureMatrix) -> np.ndarray:
    """Scores [n, c], divided to be less sure by the standard deviation that noise gives them (MacKay 1992, eq. 9)."""
    std, _ = base.gradient_std(training.noise, training.clip * (2 if plan.params.protects.replaces else 1), plan.facts)
    clients = plan.facts.num_clients
    noise = _descent(plan, training).gain() * std * math.sqrt(2 * clients) / plan.facts.num_train
    return np.asarray(layouts.logits(plan.made.layout, parameters, x) / math.sqrt(1 + math.pi / 8 * noise**2))


def _std(plan: Planned, path: str) -> float:
    """Standard deviation of the noise in the sum of all clients on a path; 10⁻³ if there is none."""
    noise = next(r.mechanism for r in plan.schedule.releases if r.path == path)
    return noise.std * math.sqrt(plan.facts.num_clients) if isinstance(noise, privacy.GaussianNoise) else 1e-3


def _answering(plan: Planned, memory: Memory) -> learning.MeetingAnswers:
    labels = plan.made.parts.ways[memory.way].labels
    return answering_at(labels, plan.facts.num_classes, plan.params.protects.replaces)


def _meetings_of(plan: Planned, memory: Memory) -> learning.MeetingReading:
    """How classes meet, by the noisy counts."""
    facts = plan.facts
    counted = privacy.MeetingCounts(facts.num_nodes, facts.num_classes, plan.made.parts.by_class)
    found = np.zeros(counted.length) if memory.meetings is None else memory.meetings
    return meetings.read(found, _std(plan, "meetings"), counted, facts.num_train)


def _descent(plan: Planned, training: _Training) -> learning.Descent:
    return learning.Descent(training.rate, plan.params.momentum, training.steps, plan.params.averaged)


def reads(plan: Planned) -> base.MethodReads:
    """What an answer reads: on a public graph all rows; else the own row and, if labels are answered, own edges."""
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
