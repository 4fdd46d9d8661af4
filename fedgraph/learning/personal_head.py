"""A head of one's own: a client fits the shared model's scores to its own data, and keeps what it fitted.

For a row x with shared scores s = log P(class | shared model) and a = the mean of exp(s) over its neighbours,

    logits = s + xW + aV,

W and V start at zero, so the head begins as the shared model. They follow Adam on the cross-entropy of the client's own
labelled rows; how many steps is chosen on a fifth of these rows that is held out, none being a choice, and then all rows
train. The shared model may have seen the held-out rows; where it fits them too well, fewer steps are chosen and the head
stays closer to it.

Nothing here is private: the head is for the client's own eyes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.layers.sparse import unit_rows
from fedgraph.types import Graph

MOST_STEPS, EVERY, RATE, DECAY = 60, 5, 0.1, 1e-4
HELD_OUT = 0.2


@dataclass(frozen=True, eq=False)
class Inputs:
    """x: CSR [n, d], rows of unit norm or zero. shared: float64 [n, c], log-probabilities. around: float64 [n, c]."""

    x: sp.csr_array
    shared: np.ndarray
    around: np.ndarray

    def at(self, rows: np.ndarray) -> Inputs:
        """The given rows."""
        return Inputs(self.x[rows], self.shared[rows], self.around[rows])


def stack_inputs(parts: Sequence[Inputs]) -> Inputs:
    """The rows of several graphs, one after another."""
    return Inputs(
        sp.csr_array(sp.vstack([p.x for p in parts], format="csr")),
        np.concatenate([p.shared for p in parts]),
        np.concatenate([p.around for p in parts]),
    )


@dataclass(frozen=True, eq=False)
class Head:
    """own: float64 [d, c]. around: float64 [c, c]. steps: how many were taken."""

    own: np.ndarray
    around: np.ndarray
    steps: int

    def scores(self, given: Inputs) -> np.ndarray:
        """float64 [n, c], logits."""
        return np.asarray(given.shared + given.x @ self.own + given.around @ self.around)


def inputs(graph: Graph, chances: np.ndarray) -> Inputs:
    """chances: float [n, c], the shared model's probabilities for the nodes of ``graph``."""
    degrees = np.maximum(graph.degrees, 1)[:, None]
    around = np.asarray(graph.adjacency @ chances) / degrees
    return Inputs(unit_rows(graph.features), np.log(np.maximum(chances, 1e-9)), around)


def fitted(given: Inputs, labels: np.ndarray, rng: np.random.Generator) -> Head:
    """The client's head. labels: int64 [n], −1 where unknown."""
    known = rng.permutation(np.flatnonzero(labels >= 0))
    held = int(HELD_OUT * known.size)
    if held < 1 or known.size - held < 1:
        return _descended(given.at(known), labels[known], 0)[-1]
    judged, trained = known[:held], known[held:]
    tried = _descended(given.at(trained), labels[trained], MOST_STEPS)
    seen = given.at(judged)
    losses = [loss(head.scores(seen), labels[judged]) for head in tried]
    return _descended(given.at(known), labels[known], tried[int(np.argmin(losses))].steps)[-1]


def _descended(given: Inputs, labels: np.ndarray, steps: int) -> list[Head]:
    """The heads after 0, ``EVERY``, 2·``EVERY`` … steps, and the last one."""
    d, c = given.x.shape[1], given.shared.shape[1]
    weights = np.zeros((d + c, c))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    turned, target = sp.csr_array(given.x.T), np.eye(c)[labels]
    kept = [Head(weights[:d].copy(), weights[d:].copy(), 0)]
    for step in range(1, steps + 1):
        logits = given.shared + given.x @ weights[:d] + given.around @ weights[d:]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        wrong = (chances - target) / max(labels.size, 1)
        gradient = np.concatenate([turned @ wrong, given.around.T @ wrong]) + DECAY * weights
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        if step % EVERY == 0 or step == steps:
            kept.append(Head(weights[:d].copy(), weights[d:].copy(), step))
    return kept


def loss(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean cross-entropy. logits: float [n, c]; labels: int64 [n], all known."""
    top = logits.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0] - logits[np.arange(labels.size), labels]))
