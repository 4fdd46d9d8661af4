"""A scorer of pairs that learns by clipped gradients: s(u, v) = τ ⟨W r_u, W r_v⟩ − b, over rows r that everybody may read.

Its loss is logistic: a pair of private edges wants s > 0, a random pair wants s < 0. W starts where s is a cosine of the first
directions of the rows, so that without any step it says what they say.

**Gradient of one pair.** With e = σ(s) − wanted: ∂W = e τ (W r_u r_vᵀ + W r_v r_uᵀ), ∂b = −e. Its squared norm is
e² + e² τ² (‖W r_u‖² ‖r_v‖² + ‖W r_v‖² ‖r_u‖² + 2 ⟨W r_u, W r_v⟩ ⟨r_u, r_v⟩), so rows are clipped before any is written down,
and a sum over pairs is two products of matrices.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.learning import links
from fedgraph.learning.descents import Descended, Descent

# Tried on Cora and Simmons81 at ε = 1, 4 and without privacy, on other hidden edges than those of the tables.
_RANK, _SHARPNESS = 16, 8.0  # rows of W; τ
_AGAINST = 2000  # random pairs of a step
_FASTEST, _WALK = 3.0, 8.0  # step size; how far noise alone may lead W, whose length is √RANK at first
_MOMENTUM, _AVERAGED = 0.9, 0.5
_COUNTED = 0.3  # of a clip of 1: the entry that counts a pair; its gradient has the rest
_ROOM = 1e-9  # of a clip: what rounding of a long sum may add
_CANCELLED = 1e-4  # of its two parts: a squared norm that is less is taken as this much, so that rounding hides no part of it


def start(blocks: int, width: int) -> np.ndarray:
    """W and b before the first step: W is the mean of the first directions of all blocks, b is 0.
    blocks: how many blocks of columns a row has. Returns float32 [RANK·blocks·width + 1].
    """
    one = np.eye(_RANK, width, dtype=np.float32)
    return np.append(np.tile(one, blocks).ravel() / math.sqrt(blocks), np.float32(0.0))


def score(vector: np.ndarray, rows: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The score s of each pair: float64 [m]. vector: [p], W and b. rows: [n, w]. pairs: int64 [m, 2]."""
    found = rows.astype(np.float64) @ _weights(vector, rows).T
    return np.asarray(_SHARPNESS * np.einsum("ij,ij->i", found[pairs[:, 0]], found[pairs[:, 1]]) - float(vector[-1]))


def clipped_sum(vector: np.ndarray, rows: np.ndarray, pairs: np.ndarray, wanted: float) -> np.ndarray:
    """Σ over ``pairs`` of (COUNTED, gradient of the pair clipped to √(1 − COUNTED²)): float64 [1 + p].

    **Guarantee.** One pair more or less changes it by at most 1 in L2 norm, whatever vector and rows are, as long as they are
    finite.
    vector: [p], W and b. rows: [n, w], read by everybody. pairs: int64 [m, 2]. wanted: 1 for edges, 0 for random pairs.
    """
    weights, many = _weights(vector, rows), rows.astype(np.float64)
    one, two = many[pairs[:, 0]], many[pairs[:, 1]]
    left, right = one @ weights.T, two @ weights.T
    inner = np.einsum("ij,ij->i", left, right)
    error = 1 / (1 + np.exp(-np.clip(_SHARPNESS * inner - float(vector[-1]), -30.0, 30.0))) - wanted
    squares = [np.einsum("ij,ij->i", part, part) for part in (left, two, right, one)]
    along = squares[0] * squares[1] + squares[2] * squares[3] + 2 * inner * np.einsum("ij,ij->i", one, two)
    along = np.maximum(along, _CANCELLED * (squares[0] * squares[1] + squares[2] * squares[3]))
    norms = np.abs(error) * np.sqrt(1 + _SHARPNESS**2 * along)
    error *= np.minimum(1.0, math.sqrt(1 - _COUNTED**2) * (1 - _ROOM) / np.maximum(norms, 1e-300))
    weighed = _SHARPNESS * error[:, None]
    gradient = (weighed * left).T @ two + (weighed * right).T @ one
    return np.concatenate([[_COUNTED * (1 - _ROOM) * len(pairs)], gradient.ravel(), [-error.sum()]])


def _weights(vector: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return vector[:-1].reshape(_RANK, rows.shape[1]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PairScorerState:
    """Where the learner is."""

    descended: Descended  # parameters and their average
    counted: float  # the noisy numbers of pairs of all steps so far, added up


@dataclass(frozen=True)
class PairScorer:
    """Follows noisy sums. All of it is post-processing of them, of public rows and of public coins."""

    steps: int  # how many there will be
    std: float  # of the noise in each entry of a sum
    key: int  # of the random pairs

    def start(self, vector: np.ndarray) -> PairScorerState:
        """Before the first step; ``vector`` as ``start`` gives it."""
        return PairScorerState(self._descent(0.0).start(vector), 0.0)

    def step(self, before: PairScorerState, rows: np.ndarray, total: np.ndarray, number: int) -> PairScorerState:
        """One step along a noisy sum and the exact mean gradient of fresh random pairs.

        Noise alone leads W by about rate · √(steps · p) · std / (1 − momentum) / (pairs of a step); the rate keeps that at
        ``_WALK``.
        rows: [n, w], read by everybody. total: [1 + p], the noisy sum of this step. number: of the step: 0, 1, …. Returns where
        it is afterwards.
        """
        counted = before.counted + float(total[0]) / _COUNTED
        drawn = max(1.0, counted / (number + 1))
        walk = math.sqrt(self.steps * total.size) * self.std / (1 - _MOMENTUM) / drawn
        against = links.draw_pairs(len(rows), _AGAINST, np.random.default_rng((self.key, number)))
        mean = clipped_sum(before.descended.parameters, rows, against, 0.0) / _AGAINST + total / drawn
        descent = self._descent(min(_FASTEST, _WALK / max(walk, 1e-12)))
        return PairScorerState(descent.step(before.descended, mean[1:], number), counted)

    def _descent(self, rate: float) -> Descent:
        return Descent(rate, _MOMENTUM, self.steps, _AVERAGED)
