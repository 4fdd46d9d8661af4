"""ε-DP with δ = 0: which releases have it, and basic composition.

**Guarantee.** Pure ε add up under adaptive composition (Dwork & Roth 2014, Theorem 3.14), and any
(εᵢ, δᵢ) add up componentwise (Theorem 3.16).

**Edge cases.** Noise multiplier 0 → ε = ∞ (no noise); ∞ → ε = 0.

    Laplace, multiplier b/Δ₁      Δ₁/b
    k-ary response                its ε
    bounded range ε               ε (Durfee & Rogers 2019, Corollary 4.2)
    multi-bit, m bits at a        m·a
"""

import math

from fedgraph.privacy.events import ApproxDP, BoundedRange, Event, Laplace, MultiBit, PureDP, RandomizedResponse


def epsilon(event: Event) -> float | None:
    """The ε of a release that is ε-DP with δ = 0; None if it is not."""
    if isinstance(event, (PureDP, RandomizedResponse, BoundedRange)):
        return event.epsilon
    if isinstance(event, MultiBit):
        return event.epsilon_per_bit * event.num_bits
    if isinstance(event, Laplace):
        return math.inf if event.noise_multiplier == 0 else 1.0 / event.noise_multiplier
    if isinstance(event, ApproxDP) and event.delta == 0:
        return event.epsilon
    return None
