"""Classifies a node from noisy labels of its neighbours: by Bayes' rule, with class pairs estimated from noisy counts."""

import numpy as np
import scipy.sparse as sp

LEAST, MOST = 0.05, 50.0  # of an affinity: no single vote is surer than this
SURE = 2.0  # standard deviations of noise that an estimate must be away from before it is believed
FREE = 0.15  # share of a class that is taken to be unmatched at least, when a matching number is read as a number of edges


def class_shares(answers: np.ndarray, num_classes: int, keep: float) -> np.ndarray:
    """[c] shares of the true classes, from randomised answers 0 … c − 1 (−1: none); never below 1/(4c)."""
    counts = np.bincount(answers[answers >= 0], minlength=num_classes)[:num_classes]
    other = (1 - keep) / (num_classes - 1)
    found = (counts / max(counts.sum(), 1) - other) / max(keep - other, 1e-9)
    found = np.maximum(found, 1 / (4 * num_classes))
    return np.asarray(found / found.sum())


def affinities(counts: np.ndarray, std: float, num_labelled: int, shares: np.ndarray) -> np.ndarray:
    """[c, c] symmetric: how many times as often as chance has it classes meet, from noisy matching numbers [c(c + 1)/2].

    std: of the noise of each number. num_labelled, shares: labelled nodes, and the share of each class. A matching number ν of
    two sides of which the smaller has s nodes is read as −s·ln(1 − ν/s) edges, which is right for few edges and too little for
    many. Estimates are drawn towards the mean over all pairs of like (or of unlike) classes, and that mean towards 1, by as
    much as noise explains their spread (empirical Bayes; Efron & Morris 1973): where noise covers everything, all is 1.
    """
    classes = len(shares)
    upper = np.triu_indices(classes)
    sizes = num_labelled * np.minimum(shares[upper[0]], shares[upper[1]])
    free = np.clip(1 - counts / sizes, FREE, 1)
    edges, variance = (
        _square(-sizes * np.log(free), classes),
        _square((std / free) ** 2 + np.maximum(counts, 1) / free, classes),
    )
    total = max(float(edges.sum()), 1e-9)
    margin = np.maximum(edges.sum(axis=1), total / classes / 4)
    chance = np.outer(margin, margin) / margin.sum() ** 2 * total
    ratio, spread = edges / chance, variance / chance**2
    like = np.eye(classes, dtype=bool)
    found = np.ones((classes, classes))
    for pairs in (like, ~like):
        weights = 1 / spread[pairs]
        mean = float((weights * ratio[pairs]).sum() / weights.sum())
        mean = 1 + (mean - 1) * max(0.0, 1 - SURE**2 / weights.sum() / max((mean - 1) ** 2, 1e-12))
        by_chance = float(spread[pairs].mean()) * (1 + SURE * np.sqrt(2 / pairs.sum()))
        real = max(0.0, float(((ratio[pairs] - mean) ** 2).mean()) - by_chance)
        found[pairs] = (real * ratio[pairs] + spread[pairs] * mean) / (real + spread[pairs])
    return np.clip(found, LEAST, MOST)


def _square(upper: np.ndarray, classes: int) -> np.ndarray:
    """The symmetric matrix with this upper triangle."""
    out = np.zeros((classes, classes))
    out[np.triu_indices(classes)] = upper
    return np.maximum(out, out.T)


def votes(adjacency: sp.csr_array, answers: np.ndarray, affinity: np.ndarray, shares: np.ndarray, keep: float) -> np.ndarray:
    """[n, c] log-odds: Σ over a node's neighbours of log P(answer | class of the node) / P(answer).

    answers: int64 [n], 0 … c − 1 or −1 (says nothing). keep: probability that an answer is the true label, every other
    label being as likely as the next. Neighbours count as independent given the class (naive Bayes).
    """
    classes = len(shares)
    other = (1 - keep) / (classes - 1)
    truth = affinity * shares
    truth = truth / truth.sum(axis=1, keepdims=True)  # P(label of a neighbour | own class)
    said = np.log((other + (keep - other) * truth) / (other + (keep - other) * shares))
    heard = np.zeros((answers.size, classes), dtype=np.float64)
    heard[np.flatnonzero(answers >= 0), answers[answers >= 0]] = 1.0
    return np.asarray((adjacency @ heard) @ said.T)
