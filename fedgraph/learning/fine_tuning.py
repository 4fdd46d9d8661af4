"""Fine-tuning: a client goes on from the shared weights on its own labelled nodes, and keeps what comes out.

From the shared weights w₀ it follows Adam on

    mean cross-entropy of its own labelled rows + (PULL / 2) · ‖w − w₀‖²,

so weights of which its own data say nothing stay as they are shared (L2-SP, Li, Grandvalet & Davoine, ICML 2018). How many
steps it takes is chosen on a fifth of its labelled rows that is held out, none being a choice, and then all of them train. The
shared model may have seen the held-out rows; where it fits them too well, fewer steps are chosen and the weights stay closer.

Nothing here is private: the weights are for the client's own eyes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.late import torch
from fedgraph.learning.layers.dense import Rows
from fedgraph.learning.layers.models import Layout, logits
from fedgraph.learning.layers.sparse import device
from fedgraph.learning.personal_head import EVERY, HELD_OUT, MOST_STEPS, loss

PULL = 1e-4
RATES = (0.1, 0.02)  # of a linear model, and of a network with hidden units


def tuned(layout: Layout, shared: np.ndarray, x: Rows, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The client's own weights, float32 [p]. shared: float32 [p]. labels: int64 [n], −1 where unknown."""

    def descended(fitted: np.ndarray, steps: int) -> list[np.ndarray]:
        return _descended(layout, shared, x, fitted, steps)

    return chosen(descended, lambda vector: logits(layout, vector, x), shared, labels, rng)


def chosen(
    descended: Callable[[np.ndarray, int], list[np.ndarray]],
    scores: Callable[[np.ndarray], np.ndarray],
    shared: np.ndarray,
    labels: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The weights after the number of steps at which the held-out fifth is best; then all labelled nodes train.

    descended: (labels that train, steps) → weights after 0, ``EVERY``, 2·``EVERY`` … steps. scores: weights → float [n, c].
    """
    known = rng.permutation(np.flatnonzero(labels >= 0))
    held = known[: int(HELD_OUT * known.size)]
    if not 0 < held.size < known.size:
        return shared
    fitted = labels.copy()
    fitted[held] = -1
    losses = [loss(np.asarray(scores(weights))[held], labels[held]) for weights in descended(fitted, MOST_STEPS)]
    steps = EVERY * int(np.argmin(losses))
    return descended(labels, steps)[-1] if steps else shared


def _descended(layout: Layout, shared: np.ndarray, x: Rows, labels: np.ndarray, steps: int) -> list[np.ndarray]:
    rate = RATES[len(layout.shapes) > 1]
    target, count = torch.tensor(labels, device=device()), max(int((labels >= 0).sum()), 1)
    weights = shared.astype(np.float64)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    kept = [shared]
    for step in range(1, steps + 1):
        slope = clipped_gradient_sum(layout, weights.astype(np.float32), x, target, None)
        gradient = slope.astype(np.float64) / count + PULL * (weights - shared)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        if step % EVERY == 0:
            kept.append(weights.astype(np.float32))
    return kept
