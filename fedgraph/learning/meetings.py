"""How often classes meet along edges: matching numbers, with every node counted once (``private_counts``), and what they say.

``read`` estimates class pairs from noisy counts, drawn towards what graphs of people are like, so that nothing hangs on a
threshold; with them ``vote`` classifies a node from noisy labels of its neighbours, by Bayes' rule.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from fedgraph.learning.neighbour_limits import coins_of

_KEPT, _SIDE = 1, 0  # name the public coins that keep an edge, and that put a node on a side


class _MeetingRules(Protocol):
    """What ``private_counts.MeetingCounts`` says: shares of edges that are kept to count like and unlike ends, and pairs
    of classes.
    """

    @property
    def num_classes(self) -> int: ...
    @property
    def rates(self) -> tuple[float, ...]: ...
    @property
    def class_rates(self) -> tuple[float, ...]: ...


def count(adjacency: sp.csr_array, labels: np.ndarray, ids: np.ndarray, counted: _MeetingRules) -> np.ndarray:
    """Nodes per class, matching numbers of like and of unlike ends at each rate, and of pairs of classes.
    adjacency: CSR [n, n], symmetric. labels: int64 [n]; a node with a negative label is not counted and meets nobody. ids:
    int64 [n], public. They name the coins: an edge is kept where a hash of its two ids is below the rate, whatever others are.
    Returns float64 [length], in the order that the first sentence names.
    """
    sides = coins_of(ids, ids, _SIDE) >> np.uint64(63)
    one, two = adjacency.nonzero()
    between = (sides[one] == 0) & (sides[two] == 1) & (labels[one] >= 0) & (labels[two] >= 0)
    one, two = one[between], two[between]
    coins = coins_of(ids[one], ids[two], _KEPT)
    found = list(np.bincount(labels[labels >= 0], minlength=counted.num_classes))
    low, high = np.minimum(labels[one], labels[two]), np.maximum(labels[one], labels[two])
    kinds = [low == high, low != high]
    pairs = [(low == a) & (high == b) for a, b in zip(*np.triu_indices(counted.num_classes), strict=True)]
    for rate, each in [(rate, kinds) for rate in counted.rates] + [(rate, pairs) for rate in counted.class_rates]:
        kept = coins <= np.uint64(rate * (2**64 - 2**12))
        found += [_matched(one[kept & kind], two[kept & kind]) for kind in each]
    return np.array(found, dtype=np.float64)


def _matched(one: np.ndarray, two: np.ndarray) -> int:
    """The largest number of the edges one – two, between two sides, of which no two share an end (Hopcroft & Karp 1973)."""
    if not one.size:
        return 0
    rows, left = np.unique(one, return_inverse=True)
    columns, right = np.unique(two, return_inverse=True)
    graph = sp.csr_array((np.ones(left.size, np.int8), (left, right)), shape=(rows.size, columns.size))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


_LEAST, _MOST = 0.05, 50.0  # of an affinity: no single vote is surer than this
_SEEN = 2.0  # standard deviations of noise that edges of a rate must be above it before their kinds are compared
_SURE = 2.0  # standard deviations of noise that an estimate must be away from chance before it is believed
_FREE = 0.15  # share of a class that is taken to be unmatched at least, when a matching number is read as a number of edges
_CROWDED_SHARE = 0.8  # error of a share of like edges, per sixth power of the share of matched nodes: crowded kinds look alike
_CROWDED = 7.0  # error of such a reading, over itself, per cubed share of matched nodes: hubs take what others would have had
# What is believed before anything is measured. Like ends are oftener than chance has them by so much of what chance leaves, ±:
_LIKELY, _LIKELY_ERROR = 0.25, 0.3
_USUAL, _USUAL_SPREAD = 10.0, 1.3  # the mean degree, and the standard deviation of its logarithm
_DEGREES = np.geomspace(0.25, 400, 60)
_MATCHED_ERROR = 0.2  # of a matching number that is computed from a mean degree, over itself


@dataclass(frozen=True, eq=False)
class MeetingAnswers:
    """How an answer comes about."""

    size: int  # how many of c labels it names
    odds: tuple[float, float]  # (a, b) as in ``MaskedResponse.odds``
    clarity: float  # how much oftener a label is named by those who have it than by others, 0 … 1

    @classmethod
    def in_clear(cls, num_classes: int) -> Self:
        """True but for one in a million, so that logarithms stay finite."""
        lost = 1e-6
        return cls(1, ((1 - lost) * num_classes, lost * num_classes / (num_classes - 1)), 1.0)


@dataclass(frozen=True, eq=False)
class MeetingReading:
    """What noisy meetings say."""

    shares: np.ndarray  # [c], of the classes
    affinity: np.ndarray  # [c, c], how many times as often as chance has it classes meet
    degree: float  # mean number of labelled neighbours
    apart: float = 0.0  # by how much the share of edges with like ends is above what chance makes of it
    error: float = 0.0  # standard error of ``apart``

    def supposing(self, apart: float) -> Self:
        """The same where like ends are above chance by ``apart``, and all unlike pairs of classes are alike."""
        chance = float(self.shares @ self.shares)
        found = np.full((len(self.shares), len(self.shares)), 1 - apart / max(1 - chance, 1e-9))
        np.fill_diagonal(found, 1 + apart / chance)
        return replace(self, affinity=np.clip(found, _LEAST, _MOST), apart=apart)

    def neighbours(self) -> np.ndarray:
        """[c, c]: P(label of a neighbour | own class)."""
        truth = self.affinity * self.shares
        return np.asarray(truth / truth.sum(axis=1, keepdims=True))


def read(numbers: np.ndarray, std: float, counted: _MeetingRules, num_labelled: int) -> MeetingReading:
    """What noisy counts say.
    numbers: float [length], noisy ``count``. std: standard deviation of the noise in each. num_labelled: how many nodes have a
    label, a public number.
    """
    c = counted.num_classes
    sizes = np.maximum(numbers[:c], num_labelled / (4 * c))
    shares = sizes / sizes.sum()
    two = numbers[c : c + 2 * len(counted.rates)].reshape(-1, 2)
    rest = numbers[c + 2 * len(counted.rates) :]
    apart, error = _apart(two, std, num_labelled / 2, float(shares @ shares))
    degree = _degree(two, std, num_labelled, apart + float(shares @ shares), counted.rates)
    reading = MeetingReading(shares, np.ones((c, c)), degree, apart, error).supposing(apart)
    if counted.class_rates:
        low, high = np.triu_indices(c)
        most = num_labelled * np.where(low == high, shares[low] / 2, np.minimum(shares[low], shares[high]))
        edges, variance = _edges(rest.reshape(len(counted.class_rates), -1), std, most, counted.class_rates)
        affinity = _by_class(_square(np.maximum(edges, 0), c), _square(variance, c), reading.affinity)
        reading = replace(reading, affinity=affinity)
    return reading


def _edges(matched: np.ndarray, std: float, most: np.ndarray, rates: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(edges of each kind, their variance) from matching numbers [rates, kinds] of which ``most`` [kinds] bounds each.

    A matching number ν is read as −most·ln(1 − ν/most) edges, which is right for few edges and too little for many. Rates are
    averaged, each as sure as noise and crowding leave it.
    """
    free = np.clip(1 - matched / most, _FREE, 2)
    scale = 2 / np.array(rates)[:, None]  # the sides keep half of the edges
    edges = -most * np.log(free) * scale
    variance = ((std / free) ** 2 + np.maximum(matched, 1) / free) * scale**2
    weights = 1 / (variance + (_CROWDED * (1 - free) ** 3 * edges) ** 2).sum(axis=1, keepdims=True)
    weights = weights / weights.sum()
    return (weights * edges).sum(axis=0), (weights**2 * variance).sum(axis=0)


def _apart(matched: np.ndarray, std: float, most: float, chance: float) -> tuple[float, float]:
    """(how much oftener than chance ends are alike, its standard error) from matching numbers [rates, 2] within classes and
    between them, and from what is likely.

    Each rate gives a share of like edges, and the surer it is, the more it counts. Crowding takes from both kinds alike, so a
    share stands where numbers of edges are far off.
    """
    free = np.clip(1 - matched / most, _FREE, 2)
    edges = -np.log(free)  # below 0 by noise: cut off there, few edges of a kind would look like more
    variance = ((std / free) ** 2 + np.maximum(matched, 1) / free) / most**2
    total, noise = edges.sum(axis=1), np.sqrt(variance.sum(axis=1))
    expected, weight = _LIKELY * (1 - chance), 1 / max(_LIKELY_ERROR * (1 - chance), 1e-9) ** 2
    if not (seen := total > _SEEN * noise).any():
        return expected, 1 / math.sqrt(weight)
    like = edges[seen, 0] / total[seen]
    errors = np.sqrt(variance[seen, 0] * (1 - like) ** 2 + variance[seen, 1] * like**2) / total[seen]
    weights = 1 / (errors**2 + (_CROWDED_SHARE * (1 - free[seen]).max(axis=1) ** 6) ** 2)
    whole = float(weights.sum()) + weight
    return (float(weights @ (like - chance)) + weight * expected) / whole, 1 / math.sqrt(whole)


def _degree(matched: np.ndarray, std: float, num_labelled: int, like: float, rates: tuple[float, ...]) -> float:
    """The mean degree that explains matching numbers [rates, 2] best, and is likely (the mean of its logarithm)."""
    most, shares = num_labelled / 2, np.clip([like, 1 - like], 0.02, 0.98)
    kept = _DEGREES[:, None, None] * np.array(rates)[:, None] * shares / 2  # edges of a kind per node of a side
    expected = most * (1 - np.exp(-kept))
    errors = np.hypot(std, _MATCHED_ERROR * expected)
    log = -0.5 * (((matched - expected) / errors) ** 2).sum(axis=(1, 2)) - np.log(errors).sum(axis=(1, 2))
    log -= 0.5 * (np.log(_DEGREES / _USUAL) / _USUAL_SPREAD) ** 2
    chances = np.exp(log - log.max())
    return float(np.exp(chances @ np.log(_DEGREES) / chances.sum()))


def _by_class(edges: np.ndarray, variance: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """Affinities of each pair of classes, drawn towards ``alike``, those of all like (or unlike) classes, by as much as noise
    explains their spread around it (empirical Bayes; Efron & Morris 1973): where noise covers everything, it is ``alike``.
    """
    classes = len(edges)
    ends = 1 + np.eye(classes)  # an edge within a class has both ends there
    edges, variance = edges * ends, variance * ends**2
    total = max(float(edges.sum()), 1e-9)
    margin = np.maximum(edges.sum(axis=1), total / classes / 4)
    chance = np.outer(margin, margin) / margin.sum() ** 2 * total
    ratio, spread = edges / chance, variance / chance**2
    like = np.eye(classes, dtype=bool)
    found = np.ones((classes, classes))
    for pairs in (like, ~like):
        by_chance = float(spread[pairs].mean()) * (1 + _SURE * np.sqrt(2 / pairs.sum()))
        real = max(0.0, float(((ratio[pairs] - alike[pairs]) ** 2).mean()) - by_chance)
        found[pairs] = (real * ratio[pairs] + spread[pairs] * alike[pairs]) / (real + spread[pairs])
    return np.clip(found, _LEAST, _MOST)


def _square(upper: np.ndarray, classes: int) -> np.ndarray:
    """The symmetric matrix with this upper triangle."""
    out = np.zeros((classes, classes))
    out[np.triu_indices(classes)] = upper
    return np.maximum(out, out.T)


def vote(
    adjacency: sp.csr_array, named: np.ndarray, reading: MeetingReading, by: MeetingAnswers, correlation: float
) -> np.ndarray:
    """Σ over a node's neighbours of log P(answer | class of the node) / P(answer), less what they share: [n, c] log-odds.
    adjacency: CSR [n, n], symmetric, ones. named: [n, c], 1 where a node's answer names a class; a row of 0 says nothing.
    correlation: ρ of the labels of two neighbours, given the class of the node. The sum over m answers is divided by the design
    effect 1 + ρ′(m − 1) (Kish 1965) with ρ′ = ρ·clarity², for the coins of answers are independent.
    """
    a, b = by.odds
    answered = np.asarray(named.any(axis=1), dtype=np.float64)
    truth, chance = named @ reading.neighbours().T, (named @ reading.shares[:, None])
    said = answered[:, None] * np.log((b + (a - b) * truth) / (b + (a - b) * chance))
    shared = _design_effect(np.asarray(adjacency @ answered), by, correlation)
    return np.asarray((adjacency @ said) / shared[:, None])


def _design_effect(heard: np.ndarray, by: MeetingAnswers, correlation: float) -> np.ndarray:
    return np.asarray(1 + correlation * by.clarity**2 * np.maximum(heard - 1, 0))


def information_of(reading: MeetingReading, by: MeetingAnswers, correlation: float, heard: np.ndarray) -> np.ndarray:
    """What the answers of so many neighbours tell between two classes: Σ (P − P′)²/P̄, mean over pairs.

    Of c labels k are named, so 2k(c − k)/(c(c − 1)) of all sets tell two classes apart; as if all pairs were equally alike.
    correlation: as in ``vote``. heard: [m], numbers of answers.
    """
    c, k, (a, b) = len(reading.shares), by.size, by.odds
    truth = reading.neighbours()
    apart = 0.5 * np.abs(truth[:, None] - truth[None]).sum() / (c * (c - 1))
    each = 2 * k * (c - k) / (c * (c - 1)) * ((a - b) * apart) ** 2
    return np.asarray(each * heard / _design_effect(heard, by, correlation))
