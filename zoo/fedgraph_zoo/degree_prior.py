"""Which pairs are linked, from noisy answers about every pair and from degrees: a prior, a posterior, and a graph.

The prior is the β-model (Chatterjee, Diaconis & Sly 2011): node i has a propensity x_i, and a pair is linked with probability
x_i x_j / (1 + x_i x_j), where expected degrees are those that are known. Answers are yes or no, each true with probability
e^s/(1 + e^s). So the posterior odds of a pair with y yeses among r answers are x_i x_j · e^{s(2y − r)}: what Zhu, Tan & Xiao
(2023, §4) estimate, written with odds.
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp

DegreePriorRule = Literal["hard", "hybrid", "soft"]
_MOST_STEPS, _SETTLED = 200, 1e-9  # of the fixed point, as in the paper; the relative change at which it is done
_LEAST, _MOST = 1e-9, 1e9  # of a propensity; degrees after noise need not have a maximum-likelihood estimate
DEGREE_PRIOR_BYTES = 24  # peak memory of ``links_by_degree_prior`` for one ordered pair


def _propensities(degrees: np.ndarray) -> np.ndarray:
    """float64 [n], x of every node, by the fixed point x_i ← d_i / Σ_{j≠i} x_j/(1 + x_i x_j).

    degrees: [n], rounded and moved into 1 … n − 2 first. Nodes of equal degree have equal propensity.
    """
    n = degrees.size
    if n < 3:
        return np.ones(n)
    values, place, counts = np.unique(np.clip(np.rint(degrees), 1, n - 2), return_inverse=True, return_counts=True)
    x = np.ones(values.size)
    for _ in range(_MOST_STEPS):
        pulls = x / (1 + np.outer(x, x))
        after = np.clip(values / (pulls @ counts - np.diag(pulls)), _LEAST, _MOST)
        change, x = np.max(np.abs(after - x) / x), after
        if change < _SETTLED:
            break
    return np.asarray(x[place])


def links_by_degree_prior(
    degrees: np.ndarray, yeses: sp.csr_array, answers: int, strength: float, rule: DegreePriorRule
) -> sp.csr_array:
    """The graph that noisy answers and noisy degrees make likely.

    Args:
        degrees: float [n], noisy.
        yeses: CSR [n, n], symmetric; how many answers of each pair were yes.
        answers: r, how many answers there are of each pair.
        strength: s, the ε of one answer.
        rule: Which pairs are kept, and with which weights:

            * ``hard``: pairs above ½, int8 ones;
            * ``hybrid``: as many of the likeliest pairs as are expected, with their probabilities, float32;
            * ``soft``: every pair with its probability, float32.

    Returns:
        Symmetric CSR [n, n] without loops. At its peak it takes ``DEGREE_PRIOR_BYTES`` bytes for each of the n² ordered pairs.
    """
    x, n = np.log(_propensities(degrees)), degrees.size
    odds = x[:, None] + x[None, :] - strength * answers
    entries = yeses.tocoo()
    odds[entries.coords] += 2 * strength * entries.data
    np.fill_diagonal(odds, -np.inf)
    if rule == "hard":
        return sp.csr_array((odds > 0).astype(np.int8))
    np.exp(-np.logaddexp(0, -odds, out=odds), out=odds)
    if rule == "soft":
        return sp.csr_array(odds.astype(np.float32))
    pairs = np.triu_indices(n, k=1)
    likely = odds[pairs]
    count = min(int(likely.sum()), likely.size)
    best = np.argpartition(-likely, count - 1)[:count] if count else np.zeros(0, dtype=np.int64)
    ends = (pairs[0][best], pairs[1][best])
    weights = likely[best].astype(np.float32)
    upper = sp.csr_array((weights, ends), shape=(n, n))
    return sp.csr_array(upper + upper.T)
