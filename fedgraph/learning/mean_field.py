"""Mean-field inference on a public graph: labels agree along edges, and among nodes with similar features.

How labels go together is not assumed: ``_class_agreement`` reads it, signed and for each pair of classes, from predictions at
both ends of public edges, with its standard error. Where neighbours tell nothing of each other beyond chance, nothing spreads.
"""

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

_ROWS = 2048  # rows whose similarities are held at a time
_SURE = 2.0  # standard deviations that a coupling must be away from what chance alone makes of it
_COMPARED = 40_000  # rows up to which each is compared with all; of more, with a fixed sample of a quarter of this many


def run(scores: np.ndarray, terms: list[tuple[float | np.ndarray, sp.csr_array]], rounds: int) -> np.ndarray:
    """Q ← softmax(H + Σ_terms coupling · A Q), ``rounds`` times from Q = softmax(H): [n, c] probabilities.

    The mean-field update of a Potts model in which each edge adds ``coupling`` to the log-probability of equal labels
    (Wainwright & Jordan 2008, §5). Unlike an average over neighbours, a node that is sure of itself stays so, and more
    neighbours say more. A node without neighbours keeps softmax(H).
    scores: H, [n, c] logits. terms: (coupling, A [n, n]) each; a coupling [c, c] adds A Q · coupling instead.
    """
    spread = softmax(scores, axis=1)
    for _ in range(rounds):
        logits = scores
        for coupling, neighbours in terms:
            heard = neighbours @ spread
            logits = logits + (heard @ coupling if isinstance(coupling, np.ndarray) else coupling * heard)
        spread = softmax(logits, axis=1)
    return np.asarray(spread)


def _class_agreement(own: np.ndarray, spread: np.ndarray, adjacency: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """[c, c] symmetric: log of how often classes a and b meet along edges, over how often they would by chance; and its error.
    own, spread: [n, c] probabilities at one end and at the other; adjacency symmetric [n, n]. Every pair of classes gets one
    more edge of the chance kind, so that few edges say little. Predictions that know nothing meet as chance has it, and give
    0; wrong ones weaken what is found. No edge: all 0. The standard errors [c, c] take nodes for independent and not edges
    (the sum of squared influences of the nodes, twice, since an edge counts at both ends).
    """
    classes = own.shape[1]
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel()
    edges = degrees.sum()
    if not edges:
        return np.zeros((classes, classes)), np.zeros((classes, classes))
    own, heard = own.astype(np.float64), np.asarray(adjacency @ spread, dtype=np.float64)
    met = own.T @ heard
    one, two = degrees @ own / edges, degrees @ spread / edges
    chance = (np.outer(one, two) + np.outer(two, one)) / 2 + 1e-12
    seen = (met + met.T) / 2 + classes**2 * chance
    at_ends, squares = degrees[:, None] * own, np.empty((classes, classes))
    for a in range(classes):  # of a node on the logarithms of ``seen``, of ``chance`` and of ``edges``, for all b at once
        on_seen = (own[:, a, None] * heard + own * heard[:, a, None]) / (2 * seen[a])
        on_chance = at_ends[:, a, None] * two + one[a] * heard + at_ends * two[a] + one * heard[:, a, None]
        influence = on_seen - (on_chance / (2 * chance[a]) - degrees[:, None]) / edges
        squares[a] = (influence**2).sum(axis=0)
    return np.log(seen / ((edges + classes**2) * chance)), np.sqrt(2 * squares)


def _is_sure(coupling: np.ndarray, errors: np.ndarray) -> bool:
    """Whether ``coupling`` [c, c] is more than chance makes of it: the squares of its k entries in standard errors add up to
    k ± √(2k) where nothing is there, and are asked to be ``_SURE`` such deviations above k."""
    pairs = np.triu_indices(len(coupling))
    away = coupling[pairs] / np.maximum(errors[pairs], 1e-12)
    return bool(away @ away > away.size + _SURE * np.sqrt(2 * away.size))


def couple(
    scores: np.ndarray, adjacency: sp.csr_array, terms: list[tuple[float | np.ndarray, sp.csr_array]], limit: float, passes: int
) -> np.ndarray:
    """``run`` over ``adjacency`` and ``terms``, with the coupling along edges found in the predictions themselves.

    Each pass compares every node's own view, softmax(scores), with its neighbours' view of the pass before, so a coupling is
    never confirmed by what it made itself on both sides. One that ``_is_sure`` denies is none.
    scores: [n, c] logits. adjacency: [n, n], symmetric and public. terms: further terms of ``run``. limit: Log-odds that a sure
    neighbour may bring, on average over classes; a stronger ``_class_agreement`` is scaled down to it. Returns [n, c]
    probabilities.
    """
    own = softmax(scores, axis=1)
    spread = own
    for _ in range(passes):
        coupling, errors = _class_agreement(own, spread, adjacency)
        weaker = min(1.0, limit / max(float(coupling.max(axis=1).mean()), 1e-12))
        along = [(coupling * weaker, adjacency)] if _is_sure(coupling, errors) else []
        spread = run(scores, [*along, *terms], 2)
    return np.asarray(spread)


def doubt(scores: np.ndarray) -> float:
    """What predictions leave open: 1 − the mean probability of the likeliest class, in [0, 1 − 1/c]. scores: [n, c] logits."""
    return float(1.0 - softmax(scores, axis=1).max(axis=1).mean())


def look_alikes(rows: np.ndarray, count: int) -> sp.csr_array:
    """Each row's nearest others by inner product.

    Of more than ``_COMPARED`` rows only a fixed sample can be look-alikes, so that time grows with n and not with its square.
    rows: float32 [n, k], of unit norm or zero. count: how many at most; fewer where fewer have a positive product. Returns CSR
    [n, n] whose rows sum to 1; a zero row has no look-alikes and is nobody's.
    """
    n = rows.shape[0]
    count = min(count, n - 1)
    if count < 1:
        return sp.csr_array((n, n), dtype=np.float32)
    others = np.arange(n)
    if n > _COMPARED:
        others = np.sort(np.random.default_rng(0).choice(n, _COMPARED // 4, replace=False))
    columns = np.full(n, -1)
    columns[others] = np.arange(others.size)
    compared = rows[others].T
    nearest, likeness = np.empty((n, count), dtype=np.int64), np.empty((n, count), dtype=np.float32)
    for first in range(0, n, _ROWS):
        block = rows[first : first + _ROWS] @ compared
        own = columns[first : first + _ROWS]
        block[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
        found = np.argpartition(-block, count - 1, axis=1)[:, :count]
        nearest[first : first + _ROWS] = others[found]
        likeness[first : first + _ROWS] = np.take_along_axis(block, found, axis=1)
    keep = likeness > 0
    weights = keep / np.maximum(keep.sum(axis=1, keepdims=True), 1)
    found = sp.csr_array((weights.ravel(), nearest.ravel(), np.arange(n + 1) * count), shape=(n, n), dtype=np.float32)
    found.eliminate_zeros()
    return found
