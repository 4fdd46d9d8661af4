"""What an event costs. Reads ``events``, returns a ``Price``; remembers nothing.

An event that no rule here covers raises ``UnknownEventError``; it is never counted as zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError, UnknownEventError
from fedgraph.privacy import gaussian
from fedgraph.privacy.events import (
    ApproxDP,
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    MultiBit,
    PureDP,
    RandomizedResponse,
    Unprotected,
    flatten,
)


@dataclass(frozen=True)
class Price:
    """(epsilon, delta) and how it was found. theorem: one sentence naming the result used."""

    epsilon: float
    delta: float
    accountant: str
    theorem: str


def price(event: Event, delta: float) -> Price:
    """The smallest ε we can prove for ``event`` at ``delta``, by the tightest valid accountant."""
    if math.isnan(delta) or not 0 <= delta < 1:
        raise PrivacyError(f"delta must satisfy 0 ≤ delta < 1, found {delta}")
    leaves = list(flatten(event))
    for leaf, _ in leaves:
        if isinstance(leaf, Unprotected):
            return Price(math.inf, delta, "none", f"unprotected: {leaf.reason}")
    if not leaves:
        return Price(0.0, 0.0, "exact", "nothing was released")
    if all(isinstance(leaf, Gaussian) for leaf, _ in leaves):
        multipliers = np.array([leaf.noise_multiplier for leaf, _ in leaves if isinstance(leaf, Gaussian)])
        mu = gaussian.total_mu(multipliers, np.array([count for _, count in leaves]))
        return Price(gaussian.epsilon(mu, delta), delta, "exact Gaussian", f"μ = √Σ(Δ₂/s)² = {mu:.6g} (Dong, Roth & Su 2022)")
    total = math.fsum(count * pure_epsilon(leaf) for leaf, count in leaves)
    return Price(total, 0.0, "basic composition", "pure ε add up (Dwork & Roth 2014, Theorem 3.14)")


def pure_epsilon(event: Event) -> float:
    """The ε of a leaf that is ε-DP with δ = 0; ``UnknownEventError`` otherwise."""
    if isinstance(event, (PureDP, RandomizedResponse)):
        return event.epsilon
    if isinstance(event, BoundedRange):
        return event.epsilon
    if isinstance(event, MultiBit):
        return event.epsilon_per_bit * event.num_bits
    if isinstance(event, Laplace):
        return math.inf if event.noise_multiplier == 0 else 1.0 / event.noise_multiplier
    if isinstance(event, ApproxDP) and event.delta == 0:
        return event.epsilon
    raise UnknownEventError(f"no accountant can price {type(event).__name__} together with the rest of this ledger: {event}")
