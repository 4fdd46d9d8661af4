"""The loss-distribution accountant: which releases have a dominating pair, and their composition.

Every release is given by the hockey-stick curve of a pair that dominates it in both orders (``curves``,
``mixture``); the curves go onto one pessimistic grid and are convolved at once (``losses``). "Forward" is
the world that holds the unit against the one that does not; forward composes with forward.

    Gaussian releases        merged first: μ² add up, exactly
    Poisson Gaussian         the two-sided mixture pair; exact for one row (zero-out: the library's
                             ``from_gaussian_mechanism(σ, sampling_prob=q)``; replace: REPLACE_ONE)
    fixed-size Gaussian      the batch revealed
    Laplace, k-ary response, bounded range, pure ε, bits, (ε, δ)   closed forms
    a choice                 at every ε the largest δ of its alternatives (``OneOf``; Gaussian releases and pure ε in each)

A choice by what was released before: the largest of convex curves that fall is the curve of a pair, which dominates every
alternative, so adaptive composition holds for whatever is chosen.

**Guarantee.** An upper bound on ε for the events' own unit and relation; adaptive composition (Zhu, Dong &
Wang 2022, Theorem 10). ZCDP has no single pair and is not covered.

**Edge cases.** δ below 1e-9 → ∞ (``losses``); parameters 0 and ∞ never arrive (``accountant.normalised``).
"""

import math
from collections.abc import Sequence

from fedgraph.errors import UnknownEventError
from fedgraph.privacy import events
from fedgraph.privacy.accounting import curves, losses, mixture

_COVERED = (
    events.ApproxDP, events.BoundedRange, events.FixedSizeGaussian, events.Gaussian, events.Laplace, events.MultiBit,
    events.PoissonGaussian, events.PureDP, events.RandomizedResponse,
)  # fmt: skip


def covers(leaves: Sequence[tuple[events.Event, int]]) -> bool:
    """Whether every release has a dominating pair here."""
    chosen = [a for leaf, _ in leaves if isinstance(leaf, events.OneOf) for a in leaf.alternatives]
    inside = (leaf for alternative in chosen for leaf, _ in events.flatten(alternative))
    known = all(isinstance(leaf, (events.Gaussian, events.PureDP)) for leaf in inside)
    return known and all(isinstance(leaf, (*_COVERED, events.OneOf)) for leaf, _ in leaves)


def epsilon(leaves: Sequence[tuple[events.Event, int]], delta: float) -> float:
    """Smallest ε ≥ 0 on record for all releases together; ∞ where this accountant cannot answer."""
    if delta < losses.SMALLEST_DELTA:
        return math.inf
    total = math.fsum(count for _, count in leaves)
    tail = losses.tail(delta, total)
    mu_squared = math.fsum(n / leaf.noise_multiplier**2 for leaf, n in leaves if isinstance(leaf, events.Gaussian))
    parts = [_part(leaf, count, tail) for leaf, count in leaves if not isinstance(leaf, events.Gaussian)]
    if mu_squared > 0:
        parts.append(losses.Part(curves.gaussian(math.sqrt(mu_squared), tail), None, 1))
    return losses.compose(parts, delta)


def _part(leaf: events.Event, count: int, tail: float) -> losses.Part:
    if isinstance(leaf, events.PoissonGaussian):
        chosen = mixture.pair(leaf.noise_multiplier, leaf.sampling_rate, leaf.touched_rows, leaf.replaced)
        forward, backward = mixture.curves(chosen, tail)
        return losses.Part(forward, backward, count)
    if isinstance(leaf, events.FixedSizeGaussian):
        return losses.Part(curves.fixed_size(leaf, tail), None, count)
    if isinstance(leaf, events.Laplace):
        return losses.Part(curves.laplace(1 / leaf.noise_multiplier), None, count)
    if isinstance(leaf, events.RandomizedResponse):
        return losses.Part(curves.k_ary(leaf.epsilon, leaf.num_values), None, count)
    if isinstance(leaf, events.BoundedRange):
        return losses.Part(curves.bounded_range(leaf.epsilon), None, count)
    if isinstance(leaf, events.MultiBit):
        return losses.Part(curves.pure(leaf.epsilon_per_bit), None, count * leaf.num_bits)
    if isinstance(leaf, events.PureDP):
        return losses.Part(curves.pure(leaf.epsilon), None, count)
    if isinstance(leaf, events.ApproxDP):
        return losses.Part(curves.pure(leaf.epsilon, leaf.delta), None, count)
    if isinstance(leaf, events.OneOf):
        return losses.Part(curves.largest([_alternative(a, tail) for a in leaf.alternatives]), None, count)
    raise UnknownEventError(f"no dominating pair is known for {type(leaf).__name__}: {leaf}")


def _alternative(event: events.Event, tail: float) -> losses.Curve:
    """The curve of Gaussian releases and of pure ε, composed."""
    leaves = [
        (leaf, count)
        for leaf, count in events.flatten(event)
        if not (isinstance(leaf, events.Gaussian) and math.isinf(leaf.noise_multiplier))
    ]
    mu_squared = math.fsum(n / leaf.noise_multiplier**2 for leaf, n in leaves if isinstance(leaf, events.Gaussian))
    curve = curves.gaussian(math.sqrt(mu_squared), tail) if mu_squared > 0 else curves.pure(0.0)
    for leaf, count in leaves:
        for _ in range(count if isinstance(leaf, events.PureDP) else 0):
            curve = curves.beside_pure(curve, leaf.epsilon)  # type: ignore[attr-defined]
    return curve
