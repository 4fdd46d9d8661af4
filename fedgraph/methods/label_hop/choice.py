"""Which way to spend the budget promises most, from what was measured: all of it is post-processing of released values.

What rows tell and what answers tell is put on one scale, the separation s: c classes are told apart as well as by scores
s·1[own class] + √s·N(0, I), and separations of independent sources add up. Of answers the separation follows from how classes
were measured to meet, from the mean degree and from ε (``meetings.information_of``). Of rows trained with noise of variance v,
1/s = t + b·v: t is what no budget mends, b·v what noise adds. Neither is known before rows are trained, so each of a few
pairs (t, b) is weighed by how well it explains what a short training, with a small part of the budget, got right. Each way is
judged by its accuracy over all of these and over what noise leaves open of the meetings: no threshold decides.

``confidence`` says how far scores may be believed, by noisy counts of how often the likelier of two classes was right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import norm

from fedgraph.learning import MeetingAnswers, MeetingReading, meetings

_SEPARATIONS = np.concatenate([[0.0], np.geomspace(0.02, 200, 48)])
_LEFT = (0.17, 0.55, 1.3, 2.7)  # t: what rows leave open without noise, all as likely
_SPREADS = ((-1.5, 0.1), (-0.75, 0.2), (0.0, 0.4), (0.75, 0.2), (1.5, 0.1))  # (in ln b around its guess, how likely)
_PER_COLUMN = 60.0  # b·v of the whole budget is guessed as so much per column and (noise multiplier / nodes)²
_UNEXPLAINED = 0.04  # standard deviation of a short training's accuracy around what t and b say
_DRAWS = (-1.2, 0.0, 1.2)  # standard errors around a measured likeness of neighbours: three points for a normal law
_QUANTILES = 24  # of a geometric law of degrees
_SURELY = 3.0  # standard deviations of noise that a class must be larger than for its accuracy to count

_EDGES = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])  # where bins of the lead of the likeliest class begin
_LEADS = np.sqrt(np.maximum(_EDGES, 0.05) * np.append(_EDGES[1:], 12.8)).clip(max=6.0)
NUM_LEADS = 2 * _EDGES.size  # numbers of ``leads``
_BELIEF, _BELIEF_SPREAD = 0.7, 0.7  # of scores, before it is measured, and the standard deviation of its logarithm


@dataclass(frozen=True)
class Spending:
    """One way, as ``promises`` needs it."""

    answers: MeetingAnswers | None  # how answers come about; None: nobody answers
    variance: float  # of the rows' noise, over that of the whole budget; ∞: no rows


@dataclass(frozen=True)
class Seen:
    """What the short training got right."""

    accuracy: float  # mean over classes
    error: float  # standard error of it, by noise
    variance: float  # of its noise, over that of the whole budget
    noise: float  # multiplier of the whole budget over the number of nodes
    columns: int  # of a row


def judged(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Per node, for counts of which classes are guessed right and by how much: float64 [n, c + NUM_LEADS], 0 and 1.

    A row has at most two ones: at its class, if that has the largest score; and at the bin of its lead, by whether the label
    is the first class or the second. Nothing where it is another.

    scores: [n, c] logits. labels: int64 [n]; a node with a negative label has zeros.
    """
    classes = scores.shape[1]
    out = np.zeros((len(scores), classes + NUM_LEADS))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    nodes = np.arange(len(scores))
    lead = scores[nodes, order[:, 0]] - scores[nodes, order[:, 1]]
    bins = np.clip(np.digitize(lead, _EDGES) - 1, 0, _EDGES.size - 1)
    for place in (0, 1):
        named = (labels >= 0) & (order[:, place] == labels)
        out[nodes[named], classes + place * _EDGES.size + bins[named]] = 1
    right = (labels >= 0) & (order[:, 0] == labels)
    out[nodes[right], labels[right]] = 1
    return out


def seen(right: np.ndarray, sizes: np.ndarray, std: float) -> tuple[float, float]:
    """(mean accuracy over the classes that noise leaves visible, its standard error).
    right: float64 [c], noisy counts of right guesses. sizes: float64 [c], noisy sizes of the classes, > 0. std: of the noise in
    ``right``.
    """
    large = sizes >= min(_SURELY * std, float(sizes.max()))
    found = float(np.clip((right[large] / sizes[large]).mean(), 0, 1))
    return found, std * math.sqrt(float((1 / sizes[large] ** 2).sum())) / int(large.sum())


def confidence(leads: np.ndarray, std: float) -> float:
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


def promises(ways: Sequence[Spending], reading: MeetingReading, correlation: float, rows: Seen) -> np.ndarray:
    """The accuracy, as a mean over classes, that each way promises: float64 [ways].
    correlation: of neighbours' labels, as in ``meetings.vote``. rows: what the short training got right.
    """
    curve = _accuracies(len(reading.shares))
    guess = _PER_COLUMN * rows.columns * rows.noise**2
    pairs = [(left, guess * math.exp(z), likely) for left in _LEFT for z, likely in _SPREADS]
    fits = [(np.interp(1 / (t + b * rows.variance), _SEPARATIONS, curve) - rows.accuracy, w) for t, b, w in pairs]
    weights = np.array([w * math.exp(-0.5 * off**2 / (rows.error**2 + _UNEXPLAINED**2)) for off, w in fits]) + 1e-300
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
        rows_tell = np.array([1 / (t + b * min(way.variance, rows.variance)) for t, b, _ in pairs])
        accuracy = np.interp(np.maximum(rows_tell[:, None, None] + told, 0), _SEPARATIONS, curve).mean(axis=(1, 2))
        found.append(float(weights @ accuracy))
    return np.array(found)


@cache
def _accuracies(classes: int) -> np.ndarray:
    """P(the own class has the largest score) at each separation: ∫ φ(z − √s) Φ(z)^(c − 1) dz."""
    z = np.linspace(-9, 26, 4000)
    density = norm.pdf(z - np.sqrt(_SEPARATIONS)[:, None])
    return np.asarray((density * norm.cdf(z) ** (classes - 1)).sum(axis=1) * (z[1] - z[0]))
