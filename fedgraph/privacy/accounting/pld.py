"""The loss-distribution accountant: which releases have a dominating pair, and their composition.

Every release is given by the hockey-stick curve of a pair that dominates it in both orders (below,
``mixture``); the curves go onto one pessimistic grid and are convolved at once (``losses``). "Forward" is
the world that holds the unit against the one that does not; forward composes with forward.

    Gaussian releases        merged first: μ² add up, exactly
    Poisson Gaussian         the two-sided mixture pair; of one row equal to the library's (zero-out: ADD and REMOVE;
                             replace: REPLACE_ONE), which takes four times as long
    fixed-size Gaussian      the batch revealed, and hidden: whichever costs less in all
    mentioned Gaussian       a one-sided mixture for each number of drawn neighbours (``mentions``)
    Gaussian beside others, Laplace                                dp_accounting's pairs
    k-ary response, bounded range, pure ε, bits, (ε, δ)            closed forms
    a choice                 at every ε the largest δ of its alternatives (``OneOf``; Gaussian releases and pure ε in each)

**Guarantee.** An upper bound on ε for the events' own unit and relation; adaptive composition (Zhu, Dong &
Wang 2022, Theorem 10).

    pure ε                   (e^ε − e^e)/(e^ε + 1), |e| ≤ ε                     Kairouz, Oh & Viswanath 2015, Theorem 3.1
    (ε, δ₀)                  the same on mass 1 − δ₀, plus δ₀ at infinity
    k-ary response           [a − e^e b]₊ + [b − e^e a]₊ + (k − 2) b [1 − e^e]₊, b = 1/(e^ε + k − 1), a = e^ε b
    bounded range            (1 − e^{(e−ε)/2})²/(1 − e^{−ε}), |e| ≤ ε           Dong, Durfee & Rogers 2020, Lemma 3.2, Section 4
    Laplace, Gaussian        the library's (``dp_accounting.pld.privacy_loss_mechanism``)
    fixed-size batches       revealed: Σ_j P(j) δ_Gauss(e; 2j/σ), j hypergeometric; hidden: ``_hidden_batch``

Why these dominate: ``docs/proofs.md``.

**Edge cases.** δ = 0 → ∞; below 1e-9 the moments of the same curves answer (``losses``); parameters 0 and ∞ never arrive
(``accountant.accountant_leaves``).

**Curves**: pure DP, (ε, δ)-DP, k-RR, bounded range, Laplace, Gaussian, fixed-size batches.

Each function returns the δ(e) of a pair that dominates the mechanism at every e, so the curves may be
composed adaptively (``losses``). All are symmetric: swapping the two worlds changes nothing.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from fedgraph.errors import UnknownEventError
from fedgraph.privacy import events
from fedgraph.privacy.accounting import gaussian, losses, mentions, mixture
from fedgraph.privacy.accounting.losses import LossCurve
from fedgraph.privacy.events import FixedSizeGaussian
from fedgraph.privacy.fields import ArrayField


def from_pure(epsilon: float, delta: float = 0.0) -> LossCurve:
    """ε-DP, or (ε, δ₀)-DP."""

    def deltas(e: ArrayField) -> ArrayField:
        inside = -np.expm1(np.clip(e, -epsilon, epsilon) - epsilon) / (1 + math.exp(-epsilon))
        return delta + (1 - delta) * np.where(e < -epsilon, -np.expm1(np.minimum(e, 0.0)), inside)

    return LossCurve(deltas, -epsilon, epsilon, _two_point_spread(epsilon))


def _beside_pure(curve: LossCurve, epsilon: float) -> LossCurve:
    """A mechanism with ``curve`` and a pure ε, composed: P has the loss ε with probability e^ε/(e^ε + 1), else −ε."""
    high = 1 / (1 + math.exp(-epsilon))

    def deltas(e: ArrayField) -> ArrayField:
        return np.asarray(high * curve.deltas(e - epsilon) + (1 - high) * curve.deltas(e + epsilon))

    spread = math.hypot(curve.spread, _two_point_spread(epsilon))
    return LossCurve(deltas, curve.low - epsilon, curve.high + epsilon, spread, 2 * curve.cost)


def _largest(alternatives: Sequence[LossCurve]) -> LossCurve:
    """At every e the largest δ of the alternatives."""
    return LossCurve(
        lambda e: np.max([curve.deltas(e) for curve in alternatives], axis=0),
        min(curve.low for curve in alternatives),
        max(curve.high for curve in alternatives),
        max(curve.spread for curve in alternatives),
        sum(curve.cost for curve in alternatives),
    )


def from_k_ary(epsilon: float, num_values: int) -> LossCurve:
    """k-ary randomised response."""
    rest = (num_values - 1) * math.exp(-epsilon)
    top, other = 1 / (1 + rest), math.exp(-epsilon) / (1 + rest)

    def deltas(e: ArrayField) -> ArrayField:
        high = top * np.maximum(0.0, -np.expm1(np.minimum(e - epsilon, 0.0)))
        low = other * np.maximum(0.0, -np.expm1(np.minimum(e + epsilon, 0.0)))
        return high + low + (num_values - 2) * other * -np.expm1(np.minimum(e, 0.0))

    spread = epsilon * math.sqrt(min(1.0, num_values * other))
    return LossCurve(deltas, -epsilon, epsilon, max(spread, 1e-3 * epsilon))


def from_bounded_range(epsilon: float) -> LossCurve:
    """One pick of an ε-bounded-range mechanism."""

    def deltas(e: ArrayField) -> ArrayField:
        inside = np.square(np.expm1((np.clip(e, -epsilon, epsilon) - epsilon) / 2)) / -math.expm1(-epsilon)
        return np.where(e < -epsilon, -np.expm1(np.minimum(e, 0.0)), inside)

    return LossCurve(deltas, -epsilon, epsilon, min(epsilon / 2, 2.0))


def from_laplace(epsilon: float) -> LossCurve:
    """Laplace noise of scale Δ₁/ε, by dp_accounting."""
    from dp_accounting.pld import privacy_loss_mechanism as library  # its import takes a quarter of a second

    loss = library.LaplacePrivacyLoss(1 / epsilon)
    return LossCurve(lambda e: np.asarray(loss.get_delta_for_epsilon(e)), -epsilon, epsilon, min(epsilon, 2.0))


def from_gaussian(mu: float, tail: float) -> LossCurve:
    """The μ-Gaussian mechanism, by dp_accounting."""
    from dp_accounting.pld import privacy_loss_mechanism as library

    loss, reach = library.GaussianPrivacyLoss(1 / mu), -float(ndtri(tail))
    low, high = mu * mu / 2 - mu * reach, mu * mu / 2 + mu * reach
    return LossCurve(lambda e: np.asarray(loss.get_delta_for_epsilon(e)), low, high, mu)


def batch_distances(batch_size: int, num_rows: int, touched_rows: int, replaced: bool) -> tuple[ArrayField, ArrayField]:
    """How far apart the two worlds' sums of one batch can be, the batch revealed.

    2j for j replaced rows in the batch. Where the own row vanishes instead: 2j + 1 with it and 2j without it, for j others.

    batch_size: B, at most num_rows. num_rows: rows to draw from. touched_rows: rows of the unit, 1 … num_rows. replaced:
    whether all touched rows change, or the own one vanishes. Returns (distances in clips, their probabilities).
    """
    from scipy.stats import hypergeom  # its import takes half a second

    if replaced:
        hits = np.arange(max(0, batch_size - num_rows + touched_rows), min(touched_rows, batch_size) + 1)
        chances = hypergeom.pmf(hits, num_rows, touched_rows, batch_size)
        return np.asarray(2.0 * hits, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    hits = np.arange(min(touched_rows - 1, batch_size) + 1)
    inside = batch_size / num_rows
    own = [
        (2.0 * hits + there, weight * hypergeom.pmf(hits, num_rows - 1, touched_rows - 1, batch_size - there))
        for there, weight in ((0, 1 - inside), (1, inside))
        if weight > 0
    ]
    found, weights = np.concatenate([d for d, _ in own]), np.concatenate([w for _, w in own])
    return found[weights > 0], weights[weights > 0]


def from_fixed_size(step: FixedSizeGaussian, tail: float, revealed: bool) -> LossCurve:
    """One batch drawn without replacement, with the batch revealed or hidden; ``docs/proofs.md``.

    Neither is always the tighter one: a hidden batch amplifies, and a revealed one knows whether the own row only vanishes.
    """
    return _revealed_batch(step, tail) if revealed else _hidden_batch(step, tail)


def _hidden_batch(step: FixedSizeGaussian, tail: float) -> LossCurve:
    """δ(e) = Σ_{j ≥ 1} P(j) δ_Gauss(ln(1 + (e^e − 1)/q); 2j/σ) for e ≥ 0, where q = P(j ≥ 1); symmetric."""
    distances, weights = batch_distances(step.batch_size, step.num_rows, step.touched_rows, replaced=True)
    mus, weights = distances[distances > 0] / step.noise_multiplier, weights[distances > 0]
    hit = min(1.0, float(weights.sum()))

    def above(e: ArrayField) -> ArrayField:
        small = e < 1e-12
        log_expm1 = np.where(e > 30, e, np.log(np.expm1(np.where(small, 1.0, np.minimum(e, 30.0)))))
        inner = np.where(small, e / hit, np.logaddexp(0.0, log_expm1 - math.log(hit)))
        return np.asarray(sum(w * gaussian.deltas(inner, float(mu)) for w, mu in zip(weights, mus, strict=True)))

    def deltas(e: ArrayField) -> ArrayField:
        there = above(np.abs(e))
        return np.where(e >= 0, there, -np.expm1(-np.abs(e)) + np.exp(-np.abs(e)) * there)

    reach = np.maximum(0.0, -ndtri(np.minimum(0.5, tail / weights / len(mus))))
    missed = math.log1p(-hit) if hit < 1 else -math.inf
    high = float(np.logaddexp(missed, math.log(hit) + np.max(mus**2 / 2 + mus * reach)))
    spread = math.sqrt(min(float(weights @ mus**2), hit * float(weights @ np.expm1(np.minimum(mus**2, 40.0)))))
    return LossCurve(deltas, -high, high, max(spread, 1e-9), cost=float(len(mus)))


def _revealed_batch(step: FixedSizeGaussian, tail: float) -> LossCurve:
    """A mixture of Gaussians whose component is known."""
    hits, weights = batch_distances(step.batch_size, step.num_rows, step.touched_rows, step.replaced)
    mus = hits / step.noise_multiplier

    def deltas(e: ArrayField) -> ArrayField:
        total = np.zeros_like(e)
        for weight, mu in zip(weights, mus, strict=True):
            total += weight * (gaussian.deltas(e, float(mu)) if mu > 0 else -np.expm1(np.minimum(e, 0.0)))
        return total

    with np.errstate(divide="ignore"):
        reach = np.maximum(0.0, -ndtri(np.minimum(0.5, tail / weights / len(hits))))
    high = float(np.max(mus**2 / 2 + mus * reach))
    return LossCurve(deltas, -high, high, math.sqrt(float(weights @ mus**2)), cost=float(len(hits)))


def _two_point_spread(epsilon: float) -> float:
    return max(epsilon / math.cosh(min(epsilon / 2, 300.0)), 1e-3 * epsilon)


def can_price(leaves: Sequence[tuple[events.Event, int]]) -> bool:
    """Whether every release has a dominating pair here. leaves: of ``accountant.accountant_leaves``."""
    chosen = [a for leaf, _ in leaves if isinstance(leaf, events.OneOf) for a in leaf.alternatives]
    inside = (leaf for alternative in chosen for leaf, _ in events.flatten(alternative))
    known = all(isinstance(leaf, (events.Gaussian, events.PureDP)) for leaf in inside)
    return known and all(type(leaf) in _CURVES for leaf, _ in leaves)


def epsilon(leaves: Sequence[tuple[events.Event, int]], delta: float) -> float:
    """Smallest ε ≥ 0 on record for all releases together; ∞ where this accountant cannot answer.

    Args:
        leaves: of ``accountant.accountant_leaves``, all of which have a dominating pair.
        delta: δ in [0, 1); 0: ∞.

    Raises:
        UnknownEventError: a release without a dominating pair.
    """
    if delta == 0:
        return math.inf
    total = math.fsum(count for _, count in leaves)
    tail = losses.infinite_loss_mass(delta, total)
    mu_squared = math.fsum(n / leaf.noise_multiplier**2 for leaf, n in leaves if isinstance(leaf, events.Gaussian))
    together = [losses.LossPart(from_gaussian(math.sqrt(mu_squared), tail), None, 1)] if mu_squared > 0 else []
    others = [(leaf, count) for leaf, count in leaves if not isinstance(leaf, events.Gaussian)]
    batches = (True, False) if any(isinstance(leaf, FixedSizeGaussian) for leaf, _ in others) else (True,)
    return min(
        losses.compose([*(_part(leaf, count, tail, known) for leaf, count in others), *together], delta) for known in batches
    )


def _part(leaf: events.Event, count: int, tail: float, batch_revealed: bool) -> losses.LossPart:
    if type(leaf) not in _CURVES:
        raise UnknownEventError(f"no dominating pair is known for {type(leaf).__name__}: {leaf}")
    forward, backward = _CURVES[type(leaf)](leaf, tail, batch_revealed)
    return losses.LossPart(forward, backward, count * leaf.num_bits if isinstance(leaf, events.MultiBit) else count)


# Event → both orders of its pair, from (event, tail, whether a batch is revealed); None: the second is the first. Gaussian
# releases are merged before.
_CURVES: dict[type[events.Event], Callable[[Any, float, bool], tuple[LossCurve, LossCurve | None]]] = {
    events.ApproxDP: lambda e, *_: (from_pure(e.epsilon, e.delta), None),
    events.BoundedRange: lambda e, *_: (from_bounded_range(e.epsilon), None),
    events.FixedSizeGaussian: lambda e, tail, revealed: (from_fixed_size(e, tail, revealed), None),
    events.Gaussian: lambda e, tail, _: (from_gaussian(1 / e.noise_multiplier, tail), None),
    events.Laplace: lambda e, *_: (from_laplace(1 / e.noise_multiplier), None),
    events.MentionedGaussian: lambda e, tail, _: mentions.curves(e, tail),
    events.MultiBit: lambda e, *_: (from_pure(e.epsilon_per_bit), None),
    events.OneOf: lambda e, tail, _: (_largest([_alternative(a, tail) for a in e.alternatives]), None),
    events.PoissonGaussian: lambda e, tail, _: mixture.curves(
        mixture.pair(e.noise_multiplier, e.sampling_rate, e.touched_rows, e.replaced), tail
    ),
    events.PureDP: lambda e, *_: (from_pure(e.epsilon), None),
    events.RandomizedResponse: lambda e, *_: (from_k_ary(e.epsilon, e.num_values), None),
}


def _alternative(event: events.Event, tail: float) -> losses.LossCurve:
    """The curve of Gaussian releases and of pure ε, composed."""
    leaves = [
        (leaf, count)
        for leaf, count in events.flatten(event)
        if not (isinstance(leaf, events.Gaussian) and math.isinf(leaf.noise_multiplier))
    ]
    mu_squared = math.fsum(n / leaf.noise_multiplier**2 for leaf, n in leaves if isinstance(leaf, events.Gaussian))
    curve = from_gaussian(math.sqrt(mu_squared), tail) if mu_squared > 0 else from_pure(0.0)
    for leaf, count in leaves:
        for _ in range(count if isinstance(leaf, events.PureDP) else 0):
            curve = _beside_pure(curve, leaf.epsilon)  # type: ignore[attr-defined]
    return curve
