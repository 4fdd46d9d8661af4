"""How often classes meet along edges: matching numbers, with every node counted once (``private_counts``), and what they say.

``read`` estimates class pairs from noisy counts; with them ``vote`` classifies a node from noisy labels of
its neighbours, by Bayes' rule.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from fedgraph.learning.neighbour_limits import draw_neighbour_limit_coins

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

    Args:
        adjacency: CSR [n, n], symmetric.
        labels: int64 [n]; a node with a negative label is not counted and meets nobody.
        ids: int64 [n], public. They name the coins: an edge is kept where a hash of its two ids is below the rate, whatever
            others are.
        counted: The rules.

    Returns:
        float64 [length], in the order that the first sentence names.
    """
    one, two, coins = _between_sides(adjacency, labels, ids)
    found = list(np.bincount(labels[labels >= 0], minlength=counted.num_classes))
    low, high = np.minimum(labels[one], labels[two]), np.maximum(labels[one], labels[two])
    kinds = [low == high, low != high]
    pairs = [(low == a) & (high == b) for a, b in zip(*np.triu_indices(counted.num_classes), strict=True)]
    for rate, each in [(rate, kinds) for rate in counted.rates] + [(rate, pairs) for rate in counted.class_rates]:
        kept = coins <= np.uint64(rate * (2**64 - 2**12))
        found += [_matched(one[kept & kind], two[kept & kind]) for kind in each]
    return np.array(found, dtype=np.float64)


def count_excess(adjacency: sp.csr_array, labels: np.ndarray, ids: np.ndarray, num_classes: int, rate: float) -> np.ndarray:
    """Matching number of edges between nodes of one class, less that of edges between two classes over c − 1: float64 [1].

    Args:
        adjacency: CSR [n, n], symmetric.
        labels: int64 [n]; a node with a negative label meets nobody.
        ids: int64 [n], public, which name the coins as in ``count``.
        num_classes: c.
        rate: Of the edges that are kept.
    """
    one, two, coins = _between_sides(adjacency, labels, ids)
    kept = coins <= np.uint64(rate * (2**64 - 2**12))
    like = labels[one] == labels[two]
    alike, unlike = (_matched(one[kept & kind], two[kept & kind]) for kind in (like, ~like))
    return np.array([alike - unlike / (num_classes - 1)])


def _between_sides(adjacency: sp.csr_array, labels: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(one end, the other end, the coin) of each edge between labelled nodes of the two sides."""
    sides = draw_neighbour_limit_coins(ids, ids, _SIDE) >> np.uint64(63)
    one, two = adjacency.nonzero()
    between = (sides[one] == 0) & (sides[two] == 1) & (labels[one] >= 0) & (labels[two] >= 0)
    one, two = one[between], two[between]
    return one, two, draw_neighbour_limit_coins(ids[one], ids[two], _KEPT)


def _matched(one: np.ndarray, two: np.ndarray) -> int:
    """The largest number of the edges one – two, between two sides, of which no two share an end (Hopcroft & Karp 1973)."""
    if not one.size:
        return 0
    rows, left = np.unique(one, return_inverse=True)
    columns, right = np.unique(two, return_inverse=True)
    graph = sp.csr_array((np.ones(left.size, np.int8), (left, right)), shape=(rows.size, columns.size))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


_LEAST, _MOST = 0.05, 50.0  # of an affinity: no single vote is surer than this
_SURE = 2.0  # standard deviations of noise that an estimate must be away from chance before it is believed
_TELLING = 0.1  # of how far from chance classes can meet, below which neighbours tell nothing
_UNLIKE = 0.5  # standard deviations below chance from which classes are taken to avoid their like
_FREE = 0.15  # share of a class that is taken to be unmatched at least, when a matching number is read as a number of edges
_CROWDED_SHARE = (
    0.2  # error of a share of like edges, per sixth power of the share of matched nodes (on 15 graphs: 0.02 to 0.2)
)
_CROWDED = 7.0  # error of such a reading, over itself, per cubed share of matched nodes: hubs take what others would have had


@dataclass(frozen=True, eq=False)
class MeetingAnswers:
    """How an answer comes about.

    Attributes:
        size: How many of c labels it names.
        odds: (a, b) as in ``MaskedResponse.odds``.
        clarity: How much oftener a label is named by those who have it than by others, 0 … 1.
    """

    size: int
    odds: tuple[float, float]
    clarity: float

    def named(self, num_classes: int) -> tuple[float, float]:
        """(how often a label is named by those who have it, and by those who have a given other one)."""
        keep = self.odds[0] * self.size / num_classes
        return keep, keep - self.clarity

    def shares(self, named: np.ndarray) -> np.ndarray:
        """[c]: of the classes, as far as answers [n, c] tell them apart from equal ones (empirical Bayes).

        Each is at least a tenth of an equal share. Rows of 0 answered nothing.
        """
        c, answered = named.shape[1], named[named.any(axis=1)]
        if not len(answered):
            return np.full(c, 1 / c)
        often, (_, spill) = answered.mean(axis=0), self.named(c)
        found = (often - spill) / self.clarity - 1 / c
        noise = float((often * (1 - often)).mean()) / len(answered) / self.clarity**2
        real = max(0.0, float((found**2).mean()) - noise)
        shares = np.maximum(1 / c + found * real / max(real + noise, 1e-12), 0.1 / c)
        return np.asarray(shares / shares.sum())

    @classmethod
    def in_clear(cls, num_classes: int) -> Self:
        """True but for one in a million, so that logarithms stay finite."""
        lost = 1e-6
        others = lost * num_classes / (num_classes - 1)
        return cls(1, ((1 - lost) * num_classes, others), 1 - others)


@dataclass(frozen=True, eq=False)
class MeetingReading:
    """What noisy meetings say.

    Attributes:
        shares: [c], of the classes.
        affinity: [c, c], how many times as often as chance has it classes meet.
        degree: Mean number of labelled neighbours.
        like: Share of edges between nodes of one class, as measured, and its standard error.
    """

    shares: np.ndarray
    affinity: np.ndarray
    degree: float
    like: tuple[float, float]

    @property
    def alike(self) -> bool:
        """Whether nodes of one class meet at least as often as by chance; where noise hides it, they are taken to."""
        like, error = self.like
        return like - float(self.shares @ self.shares) >= -_UNLIKE * error

    @property
    def most_telling(self) -> float:
        """How far the like share may be from chance, a standard error further than measured, over how far it can be."""
        (like, error), chance = self.like, float(self.shares @ self.shares)
        return (like + error - chance) / max(1 - chance, 1e-9) if self.alike else (chance - like + error) / chance

    @property
    def tells(self) -> bool:
        """Whether neighbours may tell something about a class."""
        return self.most_telling >= _TELLING

    def hopeful(self) -> Self:
        """The same where classes were seen to meet otherwise than by chance; else as if they met a standard error more so."""
        if (self.affinity != 1).any():
            return self
        chance = float(self.shares @ self.shares)
        apart = min(max(self.most_telling, 0.0), 1.0) * (1 - chance if self.alike else -chance)
        return replace(self, affinity=_two_values(apart, self.shares))

    def neighbours(self) -> np.ndarray:
        """[c, c]: P(label of a neighbour | own class)."""
        truth = self.affinity * self.shares
        return np.asarray(truth / truth.sum(axis=1, keepdims=True))


def read(numbers: np.ndarray, std: float, counted: _MeetingRules, num_labelled: int) -> MeetingReading:
    """What noisy counts say.

    Args:
        numbers: float [length], noisy ``count``.
        std: Standard deviation of the noise in each.
        counted: The rules of the numbers.
        num_labelled: How many nodes have a label, a public number.
    """
    c = counted.num_classes
    sizes = np.maximum(numbers[:c], num_labelled / (4 * c))
    shares = sizes / sizes.sum()
    two = numbers[c : c + 2 * len(counted.rates)].reshape(-1, 2)
    rest = numbers[c + 2 * len(counted.rates) :]
    edges, _ = _edges(two, std, np.full(2, num_labelled / 2), counted.rates)
    degree = 2 * max(float(edges.sum()), 0.0) / num_labelled
    affinity, like = _alike(two, std, num_labelled / 2, shares)
    if counted.class_rates:
        low, high = np.triu_indices(c)
        most = num_labelled * np.where(low == high, shares[low] / 2, np.minimum(shares[low], shares[high]))
        edges, variance = _edges(rest.reshape(len(counted.class_rates), -1), std, most, counted.class_rates)
        affinity = _by_class(_square(np.maximum(edges, 0), c), _square(variance, c), affinity)
    return MeetingReading(shares, affinity, degree, like)


_GUESSED = 4.0  # times as often as chance has it, or less often, that like classes are taken to meet where the sign is known


def guess_meetings(alike: bool, shares: np.ndarray) -> MeetingReading:
    """A reading of which only the sign was measured: like classes meet four times as often as by chance, or as rarely.

    Args:
        alike: Whether they meet more often.
        shares: [c], of the classes.
    """
    affinity = np.ones((len(shares), len(shares)))
    np.fill_diagonal(affinity, _GUESSED if alike else 1 / _GUESSED)
    return MeetingReading(shares, affinity, math.nan, (1.0 if alike else 0.0, 0.0))


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


def _alike(matched: np.ndarray, std: float, most: float, shares: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """(affinities, (share of like edges, its standard error)) from matching numbers [rates, 2] within classes and between them.

    Affinities are two values, 1 where noise may explain all.

    Each rate gives a share of like edges, and the surer it is, the more it counts. Crowding takes from both kinds alike, so a
    share stands where numbers of edges are far off.
    """
    free = np.clip(1 - matched / most, _FREE, 2)
    edges = np.maximum(-np.log(free), 0)
    variance = ((std / free) ** 2 + np.maximum(matched, 1) / free) / most**2
    total, noise = edges.sum(axis=1), np.sqrt(variance.sum(axis=1))
    if not (seen := total > _SURE * noise).any():
        return np.ones((len(shares), len(shares))), (float(shares @ shares), 1.0)
    like = edges[seen, 0] / total[seen]
    errors = np.sqrt(variance[seen, 0] * (1 - like) ** 2 + variance[seen, 1] * like**2) / total[seen]
    weights = 1 / (errors**2 + (_CROWDED_SHARE * (1 - free[seen]).max(axis=1) ** 6) ** 2)
    chance = float(shares @ shares)
    error = 1 / math.sqrt(float(weights.sum()))
    share = float(weights @ like) * error**2
    apart = share - chance
    apart *= max(0.0, 1 - (_SURE * error / apart) ** 2) if apart else 0.0
    return _two_values(apart, shares), (share, error)


def _two_values(apart: float, shares: np.ndarray) -> np.ndarray:
    """Affinities of like and of unlike classes, where the share of like edges is ``apart`` from chance."""
    chance = float(shares @ shares)
    found = np.full((len(shares), len(shares)), 1 - apart / max(1 - chance, 1e-9))
    np.fill_diagonal(found, 1 + apart / chance)
    return np.clip(found, _LEAST, _MOST)


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

    Args:
        adjacency: CSR [n, n], symmetric, ones.
        named: [n, c], 1 where a node's answer names a class; a row of 0 says nothing.
        reading: How classes meet.
        by: How answers came about.
        correlation: ρ of the labels of two neighbours, given the class of the node. The sum over m answers is divided by the
            design effect 1 + ρ′(m − 1) (Kish 1965) with ρ′ = ρ·clarity², for the coins of answers are independent.
    """
    a, b = by.odds
    answered = np.asarray(named.any(axis=1), dtype=np.float64)
    truth, chance = named @ reading.neighbours().T, (named @ reading.shares[:, None])
    said = answered[:, None] * np.log((b + (a - b) * truth) / (b + (a - b) * chance))
    shared = _design_effect(np.asarray(adjacency @ answered), by, correlation)
    return np.asarray((adjacency @ said) / shared[:, None])


def _design_effect(heard: np.ndarray, by: MeetingAnswers, correlation: float) -> np.ndarray:
    return np.asarray(1 + correlation * by.clarity**2 * np.maximum(heard - 1, 0))


def vote_by_majority(adjacency: sp.csr_array, named: np.ndarray, by: MeetingAnswers, correlation: float) -> np.ndarray:
    """How often neighbours' answers name each class, times the log-odds of one: [n, c], as if half of a node's neighbours
    were of its class. Nothing measured enters, so no noise does but that of the answers.

    Args:
        adjacency: CSR [n, n], symmetric, ones.
        named: [n, c], 1 where a node's answer names a class; a row of 0 says nothing.
        by: How answers came about.
        correlation: As in ``vote``.
    """
    keep, spill = by.named(named.shape[1])
    weight = math.log((keep + spill) / 2 / spill)
    shared = _design_effect(np.asarray(adjacency @ named.any(axis=1).astype(np.float64)), by, correlation)
    return np.asarray(weight * (adjacency @ named) / shared[:, None])


_DRAWN = 2000  # nodes that are drawn to see how often votes are right
_EVEN = 3.0  # shape of their degrees' distribution: the larger, the more even


def expect_vote_accuracy(reading: MeetingReading, by: MeetingAnswers, correlation: float) -> float:
    """How often votes are right about drawn nodes whose neighbours are as was measured. The draws are always the same.

    Degrees are negative binomial with the measured mean, and each node has its own share of like neighbours, beta-distributed
    with ``correlation``: neighbourhoods of real graphs differ more than chance makes them.

    Args:
        reading: How classes meet.
        by: How answers come about.
        correlation: ρ of two neighbours' labels given one's own.
    """
    rng, c = np.random.default_rng(0), len(reading.shares)
    keep, spill = by.named(c)
    truth = reading.neighbours()
    own = rng.choice(c, _DRAWN, p=reading.shares)
    degree = rng.poisson(max(reading.degree, 0.0) * rng.gamma(_EVEN, 1 / _EVEN, _DRAWN))
    like, spread = np.clip(truth[own, own], 1e-6, 1 - 1e-6), 1 / max(correlation, 1e-3) - 1
    likes = rng.binomial(degree, rng.beta(like * spread, (1 - like) * spread))
    others = truth[own].copy()
    others[np.arange(_DRAWN), own] = 0
    others /= np.maximum(others.sum(axis=1, keepdims=True), 1e-12)
    met = rng.multinomial(degree - likes, others)
    met[np.arange(_DRAWN), own] = likes
    said = rng.binomial(met, keep) + rng.binomial(degree[:, None] - met, spill)
    scores = said @ (np.eye(c) if reading.alike else np.log(spill + (keep - spill) * truth.T))
    found = (scores + 1e-3 * np.log(reading.shares)).argmax(axis=1)
    return float((found == own).mean())
