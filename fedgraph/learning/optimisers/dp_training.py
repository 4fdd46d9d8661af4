"""What a server does with noisy gradients, and which rows a client puts into a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


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

    def step(self, memory: Descended, mean_gradient: np.ndarray, number: int) -> Descended:
        """The memory after step ``number`` (0, 1, …)."""
        velocity = self.momentum * memory.velocity + mean_gradient.astype(np.float32, copy=False)
        parameters = memory.parameters - np.float32(self.rate) * velocity
        first = self.steps - max(1, round(self.averaged * self.steps))
        average = memory.average
        if number >= first:
            average = average + (parameters - average) / np.float32(number - first + 1)
        return Descended(parameters, velocity, average)


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
