"""What the server does with the average of the clients' parameters: FedAvg, with momentum where asked, FedAdam, FedYogi.

The move Δ = average − broadcast is a pseudo-gradient (Reddi et al. 2021, Algorithm 2):

    m ← β₁ m + (1 − β₁) Δ;   FedAdam: v ← β₂ v + (1 − β₂) Δ²;   FedYogi: v ← v − (1 − β₂) Δ² sign(v − Δ²);
    w ← w + η m / (√v + τ),   β₂ = 0.99, τ = 10⁻³.   FedAvg with momentum (Hsu et al. 2019): m ← β₁ m + Δ;  w ← w + η m.
"""

from dataclasses import dataclass

import numpy as np

from fedgraph.methods.nonprivate.params import Params

SECOND, TAU = 0.99, 1e-3


@dataclass(frozen=True, eq=False)
class Moments:
    """m and v of the server, float64 [p]; None before the first round."""

    first: np.ndarray | None = None
    second: np.ndarray | None = None


def step(params: Params, old: np.ndarray, mean: np.ndarray, before: Moments) -> tuple[np.ndarray, Moments]:
    """(new parameters float32 [p], moments). Plain FedAvg with rate 1 is the average itself, to the last bit."""
    plain = params.server == "fedavg" and params.server_momentum == 0
    if plain and params.server_rate == 1:
        return mean, before
    move = mean.astype(np.float64) - old
    first = np.zeros_like(move) if before.first is None else before.first
    if params.server == "fedavg":
        first = params.server_momentum * first + move
        return (old + params.server_rate * first).astype(np.float32), Moments(first)
    second = np.full_like(move, TAU**2) if before.second is None else before.second
    first = params.server_momentum * first + (1 - params.server_momentum) * move
    square = move**2
    if params.server == "fedadam":
        second = SECOND * second + (1 - SECOND) * square
    else:
        second = second - (1 - SECOND) * square * np.sign(second - square)
    new = old + params.server_rate * first / (np.sqrt(second) + TAU)
    return new.astype(np.float32), Moments(first, second)
