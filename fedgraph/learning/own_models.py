"""What a client learns for itself from the shared model, and keeps: nothing here is private, it is for its own eyes.

**A head of its own** (``fit_head``) corrects the shared model's scores. For a row x with shared scores s = log
P(class | shared model) and a = the mean of exp(s) over its neighbours,

    logits = s + xW + aV,

W and V start at zero, so the head begins as the shared model. They follow Adam on the cross-entropy of the client's own
labelled rows.

**Fine-tuning** (``tune``) goes on from all of the shared weights w₀, by Adam on

    mean cross-entropy of its own labelled rows + (PULL / 2) · ‖w − w₀‖²,

so weights of which its own data say nothing stay as they are shared (L2-SP, Li, Grandvalet & Davoine, ICML 2018).

A fifth of the labelled rows is held out and chooses the number of steps, none being a choice; then all of them train.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import layouts, per_sample
from fedgraph.learning.layouts import Layout
from fedgraph.learning.tensors import TorchMatrix, torch, torch_device, unit_matrix_rows
from fedgraph.types import Graph

_MOST_STEPS = 60  # of Adam, for a head and for fine-tuning
OWN_MODEL_EVERY = 5  # steps after which the held-out labels judge
_RATE, _DECAY = 0.1, 1e-4  # of a head: step size, and weight of its L2 penalty
_HELD_OUT = 0.2


@dataclass(frozen=True, eq=False)
class OwnModelInputs:
    """What a head reads of a graph's nodes."""

    x: sp.csr_array  # CSR [n, d], rows of unit norm or zero
    shared: np.ndarray  # float64 [n, c], log-probabilities of the shared model
    around: np.ndarray  # float64 [n, c], the mean of its probabilities over a node's neighbours

    def at(self, rows: np.ndarray) -> OwnModelInputs:
        """The given rows, by number."""
        return OwnModelInputs(self.x[rows], self.shared[rows], self.around[rows])


def stack_inputs(parts: Sequence[OwnModelInputs]) -> OwnModelInputs:
    """The rows of several graphs, one after another."""
    return OwnModelInputs(
        sp.csr_array(sp.vstack([p.x for p in parts], format="csr")),
        np.concatenate([p.shared for p in parts]),
        np.concatenate([p.around for p in parts]),
    )


@dataclass(frozen=True, eq=False)
class _Head:
    """A client's own correction of the shared scores: W float64 [d, c], V float64 [c, c], and how many steps were taken."""

    own: np.ndarray
    around: np.ndarray
    steps: int

    def scores(self, given: OwnModelInputs) -> np.ndarray:
        """float64 [n, c], logits of the nodes of ``given``."""
        return np.asarray(given.shared + given.x @ self.own + given.around @ self.around)


def prepare(graph: Graph, chances: np.ndarray) -> OwnModelInputs:
    """What a head reads of the nodes of a graph. chances: float [n, c], the shared model's probabilities for its nodes."""
    degrees = np.maximum(graph.degrees, 1)[:, None]
    around = np.asarray(graph.adjacency @ chances) / degrees
    return OwnModelInputs(unit_matrix_rows(graph.features), np.log(np.maximum(chances, 1e-9)), around)


def fit_head(given: OwnModelInputs, labels: np.ndarray, rng: np.random.Generator) -> _Head:
    """The client's head, after the number of steps that a held-out fifth chooses; without a step where there are too few
    labels.
    labels: int64 [n], −1 where unknown.
    """
    order = rng.permutation(labels.size)
    known = order[labels[order] >= 0]
    judged, trained = np.split(known, [int(_HELD_OUT * known.size)])
    steps = 0
    if judged.size and trained.size:
        tried, seen = _heads(given.at(trained), labels[trained], _MOST_STEPS), given.at(judged)
        steps = min(tried, key=lambda head: _head_loss(head.scores(seen), labels[judged])).steps
    return _heads(given.at(known), labels[known], steps)[-1]


def _heads(given: OwnModelInputs, labels: np.ndarray, steps: int) -> list[_Head]:
    """The heads after 0, ``OWN_MODEL_EVERY``, 2·``OWN_MODEL_EVERY`` … steps."""
    d, c = given.x.shape[1], given.shared.shape[1]
    turned, target = sp.csr_array(given.x.T), np.eye(c)[labels]

    def slope(weights: np.ndarray) -> np.ndarray:
        logits = given.shared + given.x @ weights[:d] + given.around @ weights[d:]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        wrong = (chances - target) / max(labels.size, 1)
        return np.asarray(np.concatenate([turned @ wrong, given.around.T @ wrong]) + _DECAY * weights)

    return [_Head(found[:d], found[d:], step) for step, found in _followed(slope, np.zeros((d + c, c)), _RATE, steps)]


def _followed(
    slope: Callable[[np.ndarray], np.ndarray], weights: np.ndarray, rate: float, steps: int
) -> Iterator[tuple[int, np.ndarray]]:
    """(steps taken, float64 weights) at first and after every ``OWN_MODEL_EVERY`` of Adam's ``steps`` (a multiple of it)."""
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    yield 0, weights
    for step in range(1, steps + 1):
        gradient = slope(weights)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        if step % OWN_MODEL_EVERY == 0:
            yield step, weights


def _head_loss(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean cross-entropy. logits: float [n, c]; labels: int64 [n], all known."""
    top = logits.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0] - logits[np.arange(labels.size), labels]))


_PULL = 1e-4
_RATES = (0.1, 0.02)  # of a linear model, and of a network with hidden units


def tune(layout: Layout, shared: np.ndarray, x: TorchMatrix, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The client's own weights, fine-tuned from the shared ones.
    layout: of the shared model. shared: float32 [p], its weights. x: the client's rows [n, d]. labels: int64 [n], −1 where
    unknown. Returns float32 [p]; the shared weights where too few labels are known, or where no step helps.
    """
    rate = _RATES[len(layout.shapes) > 1]

    def descended(fitted: np.ndarray, steps: int) -> list[np.ndarray]:
        target, count = torch.tensor(fitted, device=torch_device()), max(int((fitted >= 0).sum()), 1)

        def slope(weights: np.ndarray) -> np.ndarray:
            fit = per_sample.clipped_sum(layout, weights.astype(np.float32), x, target, None)
            return fit.astype(np.float64) / count + _PULL * (weights - shared)

        return [found.astype(np.float32) for _, found in _followed(slope, shared.astype(np.float64), rate, steps)]

    return choose_steps(descended, lambda vector: layouts.logits(layout, vector, x), shared, labels, rng)


def choose_steps(
    descended: Callable[[np.ndarray, int], list[np.ndarray]],
    scores: Callable[[np.ndarray], np.ndarray],
    shared: np.ndarray,
    labels: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The weights after the number of steps at which the held-out fifth is best; then all labelled nodes train.
    descended: (labels that train, steps) → weights after 0, ``OWN_MODEL_EVERY``, 2·``OWN_MODEL_EVERY`` … steps. scores: weights
    → float [n, c]. labels: int64 [n], −1 where unknown. Returns weights; ``shared`` itself where too few labels are known, or
    where no step helps.
    """
    order = rng.permutation(labels.size)
    known = order[labels[order] >= 0]
    held = known[: int(_HELD_OUT * known.size)]
    if not 0 < held.size < known.size:
        return shared
    fitted = labels.copy()
    fitted[held] = -1
    losses = [_head_loss(np.asarray(scores(weights))[held], labels[held]) for weights in descended(fitted, _MOST_STEPS)]
    steps = OWN_MODEL_EVERY * int(np.argmin(losses))
    return descended(labels, steps)[-1] if steps else shared
