"""Plain local training, without privacy: what FedAvg's clients do between two rounds."""

from __future__ import annotations

from collections.abc import Callable

from fedgraph.learning.late import torch


def adam(
    vector: torch.Tensor, gradient: Callable[[torch.Tensor], torch.Tensor], epochs: int, rate: float, decay: float
) -> torch.Tensor:
    """``epochs`` full-batch Adam steps (Kingma & Ba 2015) with L2 weight ``decay``; returns a new vector."""
    first, second = torch.zeros_like(vector), torch.zeros_like(vector)
    for step in range(1, epochs + 1):
        g = gradient(vector) + decay * vector
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g * g
        vector = vector - rate * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
    return vector


def descent(
    vector: torch.Tensor,
    velocity: torch.Tensor,
    gradient: Callable[[torch.Tensor], torch.Tensor],
    epochs: int,
    rate: float,
    momentum: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``epochs`` full-batch steps v ← momentum · v + gradient, w ← w − rate · v; returns new (w, v)."""
    for _ in range(epochs):
        velocity = momentum * velocity + gradient(vector) if momentum else gradient(vector)
        vector = vector - rate * velocity
    return vector, velocity
