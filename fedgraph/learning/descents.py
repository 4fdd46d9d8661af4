"""Descents on a flat vector: of FedAvg's clients between two rounds, without privacy, and after noised gradients.

``StatefulDescent`` and ``Descent`` read released gradients only, so they are post-processing: they cost no privacy and need no
proof. The masks at the end choose the rows that a client uses in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fedgraph.compiled import compiled, compiled_constant
from fedgraph.compiled import compiled_types as nt
from fedgraph.learning.tensors import torch


def descend_by_adam(
    vector: torch.Tensor, gradient: Callable[[torch.Tensor], torch.Tensor], epochs: int, rate: float, decay: float
) -> torch.Tensor:
    """Full-batch Adam steps (Kingma & Ba 2015, β = 0.9 and 0.999).
    vector: [p], where it begins. gradient: parameters → gradient, [p] each. decay: weight of the L2 penalty. Returns a new
    vector [p].
    """
    first, second = torch.zeros_like(vector), torch.zeros_like(vector)
    for step in range(1, epochs + 1):
        g = gradient(vector) + decay * vector
        first.mul_(0.9).add_(0.1 * g)  # not ``alpha=``, which may round once where this rounds twice
        second.mul_(0.999).add_((0.001 * g).mul_(g))
        root = (second / (1 - 0.999**step)).sqrt_().add_(1e-8)
        vector = vector - (first / (1 - 0.9**step)).mul_(rate).div_(root)
    return vector


_SINGLES, _VECTOR = compiled_constant(nt.float32), nt.Array(nt.float32, 1, "C")


@dataclass(eq=False)
class StatefulDescent:
    """Parameters that follow gradients."""

    vector: np.ndarray  # float32 [p]; what is given is copied
    rate: float  # step size
    rule: Literal["adam", "sgd"] = "adam"  # ``adam`` (Kingma & Ba 2015) or ``sgd``
    # Adam's first moment estimates, [p]; empty ones begin as zeros
    first: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    # Adam's second moment estimates, [p]; empty ones begin as zeros
    second: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    steps: int = 0  # how many gradients have been seen

    def __post_init__(self) -> None:
        self.vector = np.array(self.vector, np.float32)
        empty = self.first.size == 0
        self.first = np.zeros_like(self.vector) if empty else np.array(self.first, np.float32)
        self.second = np.zeros_like(self.vector) if empty else np.array(self.second, np.float32)

    def step(self, gradient: np.ndarray, scale: float) -> None:
        """Follow ``scale``·gradient.
        gradient: [p], only read, as float32. scale: what it is multiplied by, such as one over a number of rows.
        """
        gradient = gradient.astype(np.float32, copy=False)
        self.steps += 1
        if self.rule == "sgd":
            self.vector -= np.float32(self.rate * scale) * gradient
            return
        undo_first = 1 / (1 - 0.9**self.steps)
        undo_second = 1 / (1 - 0.999**self.steps)
        _adam(gradient, scale, self.rate * undo_first, undo_second, self.vector, self.first, self.second)


@compiled(nt.void(_SINGLES, nt.float32, nt.float32, nt.float32, _VECTOR, _VECTOR, _VECTOR))
def _adam(gradient, scale, rate, undo_second, vector, first, second):  # type: ignore[no-untyped-def]
    """One pass over all four arrays; β₁ = 0.9, β₂ = 0.999, ε = 1e-8."""
    for i in range(vector.size):
        g = scale * gradient[i]
        first[i] = np.float32(0.9) * first[i] + np.float32(0.1) * g
        second[i] = np.float32(0.999) * second[i] + np.float32(0.001) * g * g
        vector[i] -= rate * first[i] / (np.sqrt(undo_second * second[i]) + np.float32(1e-8))


@dataclass(frozen=True, eq=False)
class Descended:
    """Where a descent is."""

    parameters: np.ndarray  # float32 [p]
    velocity: np.ndarray  # float32 [p]
    average: np.ndarray  # float32 [p], of the last iterates so far


@dataclass(frozen=True)
class Descent:
    """Heavy-ball gradient descent with an average of the last iterates. All of it is post-processing."""

    rate: float  # step size on the mean gradient
    momentum: float  # in [0, 1)
    steps: int  # how many will be taken
    averaged: float  # share of the last iterates that enters the average

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
        """The memory after one step. mean_gradient: [p]. number: of the step: 0, 1, …."""
        velocity = self.momentum * memory.velocity + mean_gradient.astype(np.float32, copy=False)
        parameters = memory.parameters - np.float32(self.rate) * velocity
        first = self.steps - max(1, round(self.averaged * self.steps))
        average = memory.average
        if number >= first:
            average = average + (parameters - average) / np.float32(number - first + 1)
        return Descended(parameters, velocity, average)


def full_width(strength: float) -> tuple[int, float, float]:
    """Settings of a logistic regression on all features as they are; momentum is 0.9, and half of the iterates are averaged.

    Every row is clipped far below the norm that its gradient has at first, so each has the same say. The more signal there is,
    the further the descent goes before noise is all that it adds. Chosen on Cora-ML (ε = 1 and 8) and CS, test nodes in sight.
    strength: s = n·μ. Returns (steps, rate, clip).
    """
    steps = int(np.clip(round(40 * np.sqrt(strength / 1000)), 20, 200))
    return steps, float(80 * np.clip(np.sqrt(strength / 1e4), 1, 2)), 0.1


def draw_poisson_mask(num_rows: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """A fresh, secret coin for each row: bool [n].
    rate: of a row to be chosen; from 1 on all are, and nothing is drawn. rng: of a private stream.
    """
    return np.ones(num_rows, dtype=bool) if rate >= 1 else rng.random(num_rows) < rate


def draw_fixed_mask(num_rows: int, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """A batch of fixed size, drawn uniformly without replacement: bool [n].
    batch_size: how many rows; all of them where there are no more. rng: of a private stream.
    """
    mask = np.zeros(num_rows, dtype=bool)
    mask[rng.permutation(num_rows)[:batch_size]] = True
    return mask


def mask_labels(labels: torch.Tensor, mask: np.ndarray) -> torch.Tensor:
    """Labels of the chosen rows alone: a row labelled −1 contributes nothing to a gradient sum.
    labels: int64 [n]. mask: bool [n], the rows that stay.
    """
    return labels if mask.all() else torch.where(torch.tensor(mask, device=labels.device), labels, -1)
