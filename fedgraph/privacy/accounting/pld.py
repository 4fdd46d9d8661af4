"""The loss-distribution accountant: hockey-stick curves of dominating pairs, composed on one pessimistic grid.

For a pair (P, Q) the hockey-stick curve is δ(e) = sup_A P(A) − e^e Q(A), and the privacy loss is L = ln(dP/dQ) under P. Every
release is given by the curves of a pair that dominates it in both orders (``curves``). "Forward" is the world that holds the
unit against the one that does not; forward composes with forward.

    Gaussian releases        merged first: μ² add up, exactly; beside others the library's curve
    Laplace                  the library's (``dp_accounting.pld.privacy_loss_mechanism``)
    pure ε, bits             (e^ε − e^e)/(e^ε + 1), |e| ≤ ε                     Kairouz, Oh & Viswanath 2015, Theorem 3.1
    (ε, δ₀)                  the same on mass 1 − δ₀, plus δ₀ at infinity
    k-ary response           [a − e^e b]₊ + [b − e^e a]₊ + (k − 2) b [1 − e^e]₊, b = 1/(e^ε + k − 1), a = e^ε b
    bounded range            (1 − e^{(e−ε)/2})²/(1 − e^{−ε}), |e| ≤ ε           Dong, Durfee & Rogers 2020, Lemma 3.2, Section 4
    fixed-size Gaussian      the batch revealed: Σ_j P(j) δ_Gauss(e; 2j/σ), j hypergeometric; or hidden: ``_hidden_batch``;
                             whichever costs less in all
    Poisson Gaussian         ``MixturePair``; of one row equal to the library's (zero-out: ADD and REMOVE; replace:
                             REPLACE_ONE), which takes four times as long
    mentioned Gaussian       a one-sided mixture for each number of drawn neighbours (``_mentioned``)
    a choice                 at every e the largest δ of its alternatives (``OneOf``; Gaussian releases and pure ε in each)

**Guarantee.** An upper bound on ε for the events' own unit and relation; adaptive composition (Zhu, Dong & Wang 2022,
Theorem 10). Why the pairs dominate, and why the grid is never more private than the mechanism: ``docs/proofs.md``.

**The grid.** Curves go onto it by *connecting the dots*: on ε₁ < … < εₙ, a gap g apart, with d = e^g,

    p₁ = 1 − δ₁ + (δ₂ − δ₁)/(d − 1),      pᵢ = ((δᵢ₊₁ − δᵢ) − d(δᵢ − δᵢ₋₁))/(d − 1),
    pₙ = (δₙ₋₁ − δₙ)·d/(d − 1),            P(L = ∞) = δₙ.

Three errors are all pushed to the private side: the grid, the tails cut off before the Fourier transform (their mass moves to
L = ∞), and rounding in the transform, which grows with the number of events: 1e-16 per event is charged to L = ∞ (six to
seventy times what was measured against exact binomial sums, for 3·10⁵ to 10⁸ events), and the answer is read at 0.999·δ. Below
``SMALLEST_DELTA`` rounding would decide, so the moments of the same grid distributions answer there: they add up without a
transform, and the bound is a few per cent looser.

**Edge cases.**

    nothing to compose                 → ε = 0
    δ < SMALLEST_DELTA                 → ``_by_moments``; δ = 0 → ε = ∞
    mass at ∞ above δ                  → ε = ∞
    δ curve not monotone by rounding   → made so from above
    parameters 0 and ∞                 never arrive (``accountant.leaves_of``)

Reference: Doroshenko, Ghazi, Kamath, Kumar & Manurangsi, "Connect the Dots", 2022 (arXiv v1), Algorithm 1. dp_accounting's
``create_pmf_pessimistic_connect_dots_fixed_gap`` is the same formula, and a test holds it against this one; the library
composes event by event in Python loops.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import log_ndtr, logsumexp, ndtri

from fedgraph.errors import UnknownEventError
from fedgraph.privacy import events
from fedgraph.privacy.accounting import gaussian
from fedgraph.privacy.fields import ArrayField

SMALLEST_DELTA = 1e-9  # below it moments answer, and their bound is looser
_SHARE_OF_DELTA_CUT = 1e-4
_DELTA_KEPT = 0.999
_ROUNDING = 1e-16
_MAX_DOTS = 40_000
_MAX_WINDOW = 1_000_000
_MANY_STEPS = 32  # from which on the gap is a fiftieth of a step's spread
_TILTS = np.geomspace(0.05, 30.0, 12)
_MANY_ROWS = 128  # beyond, numbers of sampled rows are rounded up to a few
_HARDLY = 1e-15  # a chance
_FIRST_GUESSES = 4097  # of x, where a loss is looked for
_LEAST_W, _MOST_W, _BINS_OF_W = 1e-12, 40.0, 200
_QUANTILES = (0.3, 0.6, 0.9, 0.99, 0.9999)  # of drawn neighbours, each rounded up
_COST = 8.0
_FARTHEST = 200.0  # losses beyond count as ∞


@dataclass(frozen=True)
class LossCurve:
    """One direction of a mechanism's hockey-stick curve."""

    deltas: Callable[[ArrayField], ArrayField]  # an increasing array of ε → δ at each of them
    low: float  # a loss below which next to no mass lies (``tail`` of ``epsilon``)
    high: float  # a loss above which next to no mass lies
    spread: float  # standard deviation of the loss, roughly; it only chooses the grid, never the validity
    cost: float = 1.0  # how expensive one ε is, relative to a closed form; it bounds the number of dots


# Event → both orders of its pair, from (event, tail, whether a batch is revealed); None: the second is the first. Gaussian
# releases are merged before.
_CURVES: dict[type[events.Event], Callable[[Any, float, bool], tuple[LossCurve, LossCurve | None]]] = {
    events.ApproxDP: lambda e, *_: (_pure(e.epsilon, e.delta), None),
    events.BoundedRange: lambda e, *_: (_bounded_range(e.epsilon), None),
    events.FixedSizeGaussian: lambda e, tail, revealed: ((_revealed_batch if revealed else _hidden_batch)(e, tail), None),
    events.Gaussian: lambda e, tail, _: (_gaussian(1 / e.noise_multiplier, tail), None),
    events.Laplace: lambda e, *_: (_laplace(1 / e.noise_multiplier), None),
    events.MentionedGaussian: lambda e, tail, _: _mentioned(e, tail),
    events.MultiBit: lambda e, *_: (_pure(e.epsilon_per_bit), None),
    events.OneOf: lambda e, tail, _: (_largest([_alternative(a, tail) for a in e.alternatives]), None),
    events.PoissonGaussian: lambda e, tail, _: MixturePair.of_rows(
        e.noise_multiplier, e.sampling_rate, e.touched_rows, e.replaced
    ).curves(tail),
    events.PureDP: lambda e, *_: (_pure(e.epsilon), None),
    events.RandomizedResponse: lambda e, *_: (_k_ary(e.epsilon, e.num_values), None),
}


def _known(leaves: Sequence[tuple[events.Event, int]]) -> bool:
    """Whether every release has a dominating pair here."""
    chosen = [a for leaf, _ in leaves if isinstance(leaf, events.OneOf) for a in leaf.alternatives]
    inside = (leaf for alternative in chosen for leaf, _ in events.flatten(alternative))
    known = all(isinstance(leaf, (events.Gaussian, events.PureDP)) for leaf in inside)
    return known and all(type(leaf) in _CURVES for leaf, _ in leaves)


def epsilon(leaves: Sequence[tuple[events.Event, int]], delta: float) -> float | None:
    """Smallest ε ≥ 0 on record for all releases together; ∞ where nothing is proven, None where one has no dominating pair.

    Args:
        leaves: of ``accountant.leaves_of``.
        delta: δ in [0, 1); 0: ∞.
    """
    if not _known(leaves):
        return None
    if delta == 0:
        return math.inf
    total = math.fsum(count for _, count in leaves)
    tail = max(_SHARE_OF_DELTA_CUT * delta / max(total, 1.0), 1e-290)  # of one release, to L = ∞; of all, 1e-4 of δ
    mu_squared = _mu_squared(leaves)
    together = [_Part(_gaussian(math.sqrt(mu_squared), tail), None, 1)] if mu_squared > 0 else []
    others = [(leaf, count) for leaf, count in leaves if not isinstance(leaf, events.Gaussian)]

    def of_others(batch_revealed: bool) -> list[_Part]:
        each = ((leaf, count * leaf.num_bits if isinstance(leaf, events.MultiBit) else count) for leaf, count in others)
        return [_Part(*curves(leaf, tail, batch_revealed), count) for leaf, count in each]

    batches = (True, False) if any(isinstance(leaf, events.FixedSizeGaussian) for leaf, _ in others) else (True,)
    return min(_compose([*of_others(known), *together], delta) for known in batches)


def curves(event: events.Event, tail: float, batch_revealed: bool = True) -> tuple[LossCurve, LossCurve | None]:
    """Both orders of a pair that dominates one release (of ``MultiBit``, one bit).

    Args:
        event: one release.
        tail: mass that may be put to a loss of ∞.
        batch_revealed: of ``FixedSizeGaussian``: whether the batch is revealed, or hidden. Neither is always the tighter one: a
            hidden batch amplifies, and a revealed one knows whether the own row only vanishes.

    Returns:
        (unit present → absent, the reverse order); None in the place of the second where both are the same.

    Raises:
        UnknownEventError: no dominating pair is known.
    """
    if type(event) not in _CURVES:
        raise UnknownEventError(f"no dominating pair is known for {type(event).__name__}: {event}")
    return _CURVES[type(event)](event, tail, batch_revealed)


def _mu_squared(leaves: Sequence[tuple[events.Event, int]]) -> float:
    """μ² of the Gaussian releases among ``leaves``."""
    return math.fsum(n / leaf.noise_multiplier**2 for leaf, n in leaves if isinstance(leaf, events.Gaussian))


# ---------------------------------------------------------------------------------------------------------------- closed forms


def _pure(epsilon: float, delta: float = 0.0) -> LossCurve:
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


def _k_ary(epsilon: float, num_values: int) -> LossCurve:
    """k-ary randomised response."""
    rest = (num_values - 1) * math.exp(-epsilon)
    top, other = 1 / (1 + rest), math.exp(-epsilon) / (1 + rest)

    def deltas(e: ArrayField) -> ArrayField:
        high = top * np.maximum(0.0, -np.expm1(np.minimum(e - epsilon, 0.0)))
        low = other * np.maximum(0.0, -np.expm1(np.minimum(e + epsilon, 0.0)))
        return high + low + (num_values - 2) * other * -np.expm1(np.minimum(e, 0.0))

    spread = epsilon * math.sqrt(min(1.0, num_values * other))
    return LossCurve(deltas, -epsilon, epsilon, max(spread, 1e-3 * epsilon))


def _bounded_range(epsilon: float) -> LossCurve:
    """One pick of an ε-bounded-range mechanism."""

    def deltas(e: ArrayField) -> ArrayField:
        inside = np.square(np.expm1((np.clip(e, -epsilon, epsilon) - epsilon) / 2)) / -math.expm1(-epsilon)
        return np.where(e < -epsilon, -np.expm1(np.minimum(e, 0.0)), inside)

    return LossCurve(deltas, -epsilon, epsilon, min(epsilon / 2, 2.0))


def _laplace(epsilon: float) -> LossCurve:
    """Laplace noise of scale Δ₁/ε, by dp_accounting."""
    from dp_accounting.pld import privacy_loss_mechanism as library  # its import takes a quarter of a second

    loss = library.LaplacePrivacyLoss(1 / epsilon)
    return LossCurve(lambda e: np.asarray(loss.get_delta_for_epsilon(e)), -epsilon, epsilon, min(epsilon, 2.0))


def _gaussian(mu: float, tail: float) -> LossCurve:
    """The μ-Gaussian mechanism, by dp_accounting."""
    from dp_accounting.pld import privacy_loss_mechanism as library

    loss, reach = library.GaussianPrivacyLoss(1 / mu), -float(ndtri(tail))
    low, high = mu * mu / 2 - mu * reach, mu * mu / 2 + mu * reach

    def deltas(e: ArrayField) -> ArrayField:
        """``loss.get_delta_for_epsilon``, bit for bit; that one finds x for each e by itself, which takes twice as long."""
        x = -0.5 - e * (1 / mu) ** 2
        return np.asarray(np.clip(loss.mu_upper_cdf(x) - np.exp(e + loss.mu_lower_log_cdf(x)), 0, 1))

    return LossCurve(deltas, low, high, mu)


def _alternative(event: events.Event, tail: float) -> LossCurve:
    """The curve of Gaussian releases and of pure ε, composed."""
    leaves = [
        (leaf, count)
        for leaf, count in events.flatten(event)
        if not (isinstance(leaf, events.Gaussian) and math.isinf(leaf.noise_multiplier))
    ]
    mu_squared = _mu_squared(leaves)
    curve = _gaussian(math.sqrt(mu_squared), tail) if mu_squared > 0 else _pure(0.0)
    for leaf, count in leaves:
        for _ in range(count if isinstance(leaf, events.PureDP) else 0):
            curve = _beside_pure(curve, leaf.epsilon)  # type: ignore[attr-defined]
    return curve


def _two_point_spread(epsilon: float) -> float:
    return max(epsilon / math.cosh(min(epsilon / 2, 300.0)), 1e-3 * epsilon)


# ------------------------------------------------------------------------------------------------------- batches of fixed size


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


def _hidden_batch(step: events.FixedSizeGaussian, tail: float) -> LossCurve:
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


def _revealed_batch(step: events.FixedSizeGaussian, tail: float) -> LossCurve:
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


# ------------------------------------------------------------------------------------------------------------- Poisson samples


@dataclass(frozen=True)
class MixturePair:
    """Two mixtures of normal laws: P = Σ weights_p[j] N(+shifts_p[j], σ²), Q = Σ weights_q[j] N(−shifts_q[j], σ²).

    ``of_rows`` is the pair of a Poisson-sampled clipped sum in which a unit touches B' rows. A step sums the rows whose fresh
    secret coin (rate q) came up, each row of norm at most C, and adds N(0, (σC)²I). In units of C, with j the number of
    sampled rows that the unit touches,

        zero-out:  P = Σ_j Bin(j | B', q) N(+j, σ²)    against    Q = Σ_j Bin(j | B'−1, q) N(−j, σ²),
        replace:   P = Σ_j Bin(j | B', q) N(+j, σ²)    against    Q = Σ_j Bin(j | B', q) N(−j, σ²).

    **Guarantee.** Node-level, zero-out (the own row vanishes, B'−1 others change) or replace (all B' change); for every γ ≥ 0
    the hockey-stick of the real mechanism is at most that of the pair, in both orders, so the curves compose adaptively.
    Assumes: coins are fresh and secret, denominators public, noise spherical.

    *Proof*: ``docs/proofs.md``. A one-sided mixture is **not** valid where a row is changed rather than removed.

    **Edge cases.** q = 1 is the Gaussian with Δ = 2B'−1 or 2B' and q = 0 releases nothing; both are settled before this.
    Beyond ``_MANY_ROWS`` rows numbers of sampled rows are rounded up to a few: a longer shift only adds.

    Reference: for B' = 1 zero-out this is Zhu, Dong & Wang 2022, Theorem 11.
    """

    weights_p: ArrayField  # probabilities > 0
    shifts_p: ArrayField  # ≥ 0, as many
    weights_q: ArrayField  # probabilities > 0
    shifts_q: ArrayField  # ≥ 0, as many
    sigma: float  # σ > 0

    @classmethod
    def of_rows(cls, noise_multiplier: float, sampling_rate: float, touched_rows: int, replaced: bool) -> Self:
        """The dominating pair of a step.

        noise_multiplier: σ, standard deviation over clip, > 0. sampling_rate: q in (0, 1). touched_rows: B' ≥ 1. replaced:
        whether all touched rows change, or the own one vanishes.
        """
        p, a = _binomial(touched_rows, sampling_rate)
        q, b = (p, a) if replaced else _binomial(touched_rows - 1, sampling_rate)
        return cls(p, a, q, b, noise_multiplier)

    def loss(self, x: ArrayField) -> tuple[ArrayField, ArrayField]:
        """ln(dP/dQ) at x, which increases with x, and its derivative."""
        log_p, mean_p = self._log_density(x, self.weights_p, self.shifts_p)
        log_q, mean_q = self._log_density(x, self.weights_q, -self.shifts_q)
        return log_p - log_q, (mean_p - mean_q) / self.sigma**2

    def _log_density(self, x: ArrayField, weights: ArrayField, centres: ArrayField) -> tuple[ArrayField, ArrayField]:
        terms = np.log(weights)[:, None] + (centres[:, None] * x - (centres**2 / 2)[:, None]) / self.sigma**2
        top = terms.max(axis=0)
        scaled = np.exp(terms - top)
        total = scaled.sum(axis=0)
        return top + np.log(total), (centres @ scaled) / total

    def log_above(self, x: ArrayField, of_p: bool) -> ArrayField:
        """ln P(X > x), or ln Q(X > x)."""
        weights, centres = (self.weights_p, self.shifts_p) if of_p else (self.weights_q, -self.shifts_q)
        return _log_sum(np.log(weights)[:, None] + log_ndtr((centres[:, None] - x) / self.sigma))

    def log_below(self, x: ArrayField, of_p: bool) -> ArrayField:
        """ln P(X < x), or ln Q(X < x)."""
        weights, centres = (self.weights_p, self.shifts_p) if of_p else (self.weights_q, -self.shifts_q)
        return _log_sum(np.log(weights)[:, None] + log_ndtr((x - centres[:, None]) / self.sigma))

    def curves(self, tail: float) -> tuple[LossCurve, LossCurve | None]:
        """Both orders: (P, Q), and (Q, P) unless it is the mirror image of the first.

        A dot outside the losses that are kept is read at the end of the x range, which is at least the curve of the cut pair;
        ``_one_order`` charges the cut mass. tail: x beyond this mass on either side is cut off.
        """
        reach = -float(ndtri(tail)) * self.sigma
        xs = np.linspace(-float(self.shifts_q.max()) - reach, float(self.shifts_p.max()) + reach, _FIRST_GUESSES)
        if self.shifts_p.max() > _MANY_ROWS and self.shifts_q.any():  # the last shift is far, and hardly ever
            sides = ((self.weights_q, self.shifts_q), (self.weights_p, self.shifts_p))
            below, above = (float(shifts[weights > _HARDLY].max()) for weights, shifts in sides)
            xs = np.union1d(xs, np.linspace(-below - reach, above + reach, _FIRST_GUESSES))
        losses, _ = self.loss(xs)
        low, high = float(losses[0]), float(losses[-1])

        def where(e: ArrayField) -> ArrayField:
            """x with loss(x) = e, by interpolation and three Newton steps, kept inside its cell."""
            cell = np.clip(np.searchsorted(losses, e), 1, losses.size - 1)
            x = np.interp(e, losses, xs)
            for _ in range(3):
                value, slope = self.loss(x)
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    step = np.where(slope > 0, (e - value) / slope, 0.0)
                x = np.clip(x + step, xs[cell - 1], xs[cell])
            return x

        def forward(e: ArrayField) -> ArrayField:
            x = where(e)
            log_p = self.log_above(x, True)
            return np.exp(log_p) * -np.expm1(np.minimum(e + self.log_above(x, False) - log_p, 0.0))

        def backward(e: ArrayField) -> ArrayField:
            x = where(-e)
            log_q = self.log_below(x, False)
            return np.exp(log_q) * -np.expm1(np.minimum(e + self.log_below(x, True) - log_q, 0.0))

        cost = 0.5 * (self.shifts_p.size + self.shifts_q.size)
        density = np.exp(_log_sum(np.log(self.weights_p)[:, None] - (xs - self.shifts_p[:, None]) ** 2 / (2 * self.sigma**2)))
        density /= density.sum()
        mean = float(density @ losses)
        spread = math.sqrt(float(density @ (losses - mean) ** 2))
        there = LossCurve(forward, low, high, spread, cost)
        if np.array_equal(self.weights_p, self.weights_q):
            return there, None
        return there, LossCurve(backward, -high, -low, spread, cost)


def _binomial(trials: int, rate: float) -> tuple[ArrayField, ArrayField]:
    from scipy.stats import binom

    if trials <= _MANY_ROWS:
        hits = np.arange(trials + 1, dtype=float)
        weights = binom.pmf(hits, trials, rate)
    else:
        least, most = (float(binom.ppf(share, trials, rate)) for share in (_HARDLY, 1 - _HARDLY))
        usual = np.linspace(least, most, _MANY_ROWS)
        hits = np.unique([*np.ceil(usual), trials])
        up_to, beyond = binom.cdf(hits, trials, rate), binom.sf(hits, trials, rate)
        weights = np.where(up_to < 0.5, np.diff(up_to, prepend=0.0), -np.diff(beyond, prepend=1.0))
    keep = weights > 0  # a weight that underflows (below 1e-308) cannot reach any δ in use
    return weights[keep], hits[keep]


def _log_sum(terms: ArrayField) -> ArrayField:
    """ln Σ_j e^{terms[j]} of every column."""
    top = terms.max(axis=0)
    return np.asarray(top + np.log(np.exp(terms - top).sum(axis=0)))


# -------------------------------------------------------------------------------------------------------------- mentioned rows


def _mentioned(step: events.MentionedGaussian, tail: float) -> tuple[LossCurve, LossCurve | None]:
    """A step of HeterPoisson: a unit is in the sum by its own row, or by being mentioned in rows of others, never by both.

    Every unit is drawn with a fresh secret coin of rate q; a drawn unit adds its row, clipped to norm C. A drawn row mentions
    each of its neighbours that was *not* drawn with a coin of rate p, and is a function of itself and of whom it mentions. A
    unit has at most m neighbours. The sum gets spherical noise, Gaussian or √W times Gaussian with one secret W ~ Exp(1) a step
    (symmetric multivariate Laplace), of standard deviation σC. In units of C, with k of the unit's neighbours drawn,

        P = q N(1, σ²) + (1 − q) Σ_j Bin(j | k, p) N(2j, σ²)    against    Q = N(0, σ²),    k ~ Bin(m, q) revealed.

    **Guarantee.** Node level, zero-out: for every γ ≥ 0 the hockey-stick of a step is at most the mean over k of that of the
    pair, in both orders, so steps compose adaptively. Assumes that coins and W are secret, and that p, q and m are public.

    *Proof*: ``docs/proofs.md``. Under √W, W and j are revealed: δ(e) = E_W E_j δ_Gauss(e; shift_j / (σ√W)), which is symmetric.

    **Edge cases.** q = 1, p = 0 or m = 0, Gaussian: one row (``accountant``). Mass of W below ``_LEAST_W``, and of counts
    beyond ``tail``, goes to a loss of ∞.
    """
    if step.heavy:
        return _heavy_mentions(step, tail), None
    counts, weights, lost = _drawn_neighbours(step.others, step.sampling_rate, tail / 4)
    both = []
    for count in counts:
        shifts, chances = _shifts(int(count), step.mention_rate, step.sampling_rate, tail / 4)
        pair = MixturePair(chances, shifts, np.ones(1), np.zeros(1), step.noise_multiplier)
        forward, backward = pair.curves(tail / 4)
        both.append((forward, backward or forward))
    there, back = zip(*both, strict=True)
    forward = _mean(there, weights, lost, tail)
    return forward, replace(_mean(back, weights, lost, tail), low=-forward.high)  # losses below count as that: never less


def _drawn_neighbours(others: int, rate: float, tail: float) -> tuple[ArrayField, ArrayField, float]:
    """Numbers k of drawn neighbours, rounded up to a few, their probabilities, and the probability of more."""
    from scipy.stats import binom

    most = int(binom.isf(tail, others, rate))
    counts = np.unique([*(int(binom.ppf(share, others, rate)) for share in _QUANTILES), most])
    below = binom.cdf(counts, others, rate)
    return counts, np.diff(below, prepend=0.0), float(binom.sf(most, others, rate))


def _shifts(count: int, mention_rate: float, own_rate: float, tail: float) -> tuple[ArrayField, ArrayField]:
    """(shifts in clips, probabilities): own row, 0 … a few mentions, and the rest as if all ``count`` rows mentioned it."""
    from scipy.stats import binom

    most = int(binom.isf(tail, count, mention_rate)) if count else 0
    hits = np.arange(most + 1)
    mentioned = np.append(binom.pmf(hits, count, mention_rate), binom.sf(most, count, mention_rate))
    chances = np.append((1 - own_rate) * mentioned, own_rate)
    shifts = np.concatenate([2.0 * hits, [2.0 * count, 1.0]])
    return shifts[chances > 0], chances[chances > 0]


def _mean(parts: Sequence[LossCurve], weights: ArrayField, lost: float, tail: float) -> LossCurve:
    def deltas(e: ArrayField) -> ArrayField:
        found = sum((weight * part.deltas(e) for weight, part in zip(weights, parts, strict=True)), np.zeros_like(e))
        return np.asarray(np.minimum(1.0, found + lost))

    low, high = min(part.low for part in parts), max(part.high for part in parts)
    spread = math.sqrt(float(weights @ np.array([part.spread**2 for part in parts])))
    return LossCurve(deltas, low, _last(deltas, high, 2 * tail), spread, _COST)


def _last(deltas: Callable[[ArrayField], ArrayField], most: float, enough: float) -> float:
    """A loss from which on δ is at most ``enough``, or ``most``: δ at the last dot counts as a loss of ∞."""
    high = 0.5
    while high < most and float(deltas(np.array([high]))[0]) > enough:
        high *= 1.3
    return min(high, most)


def _heavy_mentions(step: events.MentionedGaussian, tail: float) -> LossCurve:
    """W and the shift revealed."""
    shifts, chances = _shifts(step.others, step.sampling_rate * step.mention_rate, step.sampling_rate, tail / 4)
    edges = np.geomspace(_LEAST_W, _MOST_W, _BINS_OF_W)
    masses, beyond = -np.diff(np.append(np.exp(-edges), 0.0)), -math.expm1(-_LEAST_W)

    def deltas(e: ArrayField) -> ArrayField:
        total = np.full_like(e, beyond)
        for shift, chance in zip(shifts, chances, strict=True):
            mus = shift / (step.noise_multiplier * np.sqrt(edges))
            each = gaussian.deltas(e[:, None], mus) @ masses if shift else -np.expm1(np.minimum(e, 0.0))
            total += chance * each
        return np.asarray(np.minimum(1.0, total))

    high = _last(deltas, _FARTHEST, tail + beyond)
    spread = max(1e-3, min(2.0, float(chances @ shifts**2) ** 0.5 / step.noise_multiplier))
    return LossCurve(deltas, -high, high, spread, 4 * _COST)


# -------------------------------------------------------------------------------------------------------------------- the grid


@dataclass(frozen=True)
class _Part:
    """A mechanism, repeated."""

    forward: LossCurve  # unit present → absent
    backward: LossCurve | None  # the reverse order; None where both orders have the same curve
    count: float  # how often


@dataclass(frozen=True)
class _Losses:
    """A loss distribution on a grid."""

    lowest: int  # index of the first grid point
    masses: ArrayField  # at (lowest + i)·gap, i = 0, 1, …
    infinity: float  # the mass of the loss ∞


def _connect_dots(deltas: ArrayField, lowest: int, gap: float) -> _Losses:
    """Algorithm 1 of "Connect the Dots" for an even grid.

    deltas: δ at (lowest + i)·gap, i = 0, 1, …; made monotone from above. lowest: index of the first grid point. gap: between
    grid points, > 0. Returns a distribution whose curve is δ at every dot, and the chord in e^ε between dots.
    """
    deltas = np.maximum.accumulate(np.clip(deltas, 0.0, 1.0)[::-1])[::-1]
    if deltas.size == 1:
        return _Losses(lowest, np.array([1 - deltas[0]]), float(deltas[0]))
    steps, shrink = np.diff(deltas), math.exp(-gap)  # everything times e^{−g}, so that a wide gap cannot overflow
    masses = np.empty_like(deltas)
    masses[0] = 1 - deltas[0] + steps[0] * shrink / -math.expm1(-gap)
    masses[1:-1] = (steps[1:] * shrink - steps[:-1]) / -math.expm1(-gap)
    masses[-1] = steps[-1] / math.expm1(-gap)
    return _Losses(lowest, np.maximum(masses, 0.0), float(deltas[-1]))


def _compose(parts: Sequence[_Part], delta: float) -> float:
    """The smallest ε ≥ 0 on record at which all parts together keep δ, in both orders: the true δ(ε) is at most δ.

    parts: what is composed; none: ε = 0. delta: δ in (0, 1).
    """
    if not parts:
        return 0.0
    gap = _gap(parts)
    read = _by_moments if delta < SMALLEST_DELTA else _one_order
    worst = read([(p.forward, p.count) for p in parts], gap, delta)
    if any(p.backward is not None for p in parts) and math.isfinite(worst):
        worst = max(worst, read([(p.backward or p.forward, p.count) for p in parts], gap, delta))
    return worst


def _gap(parts: Sequence[_Part]) -> float:
    """A fiftieth of the typical step's spread, coarser where a curve or the window would get too long.

    Of few steps it is finer: a loss that lies between two points, such as that of a pure ε, costs up to a gap.
    """
    count = math.fsum(p.count for p in parts)
    variance = math.fsum(p.count * max(c.spread for c in (p.forward, p.backward or p.forward)) ** 2 for p in parts)
    gap = 0.02 * math.sqrt(variance / count) * min(1.0, count / _MANY_STEPS)
    for p in parts:
        for c in (p.forward, p.backward or p.forward):
            gap = max(gap, (c.high - c.low) * c.cost / _MAX_DOTS)
    return max(gap, 16 * math.sqrt(variance) / _MAX_WINDOW, 1e-12)


def _one_order(parts: Sequence[tuple[LossCurve, float]], gap: float, delta: float) -> float:
    steps = [(_on_grid(curve, gap), count) for curve, count in parts]
    cut = _SHARE_OF_DELTA_CUT * delta
    low, high = _window(steps, gap, cut)
    size = high - low + 1
    if size > 4 * _MAX_WINDOW:
        return math.inf
    length = next_fast_len(max(size, max(s.masses.size for s, _ in steps)), real=True)
    spectrum = np.ones(length // 2 + 1, dtype=complex)
    offset = 0
    for losses, count in steps:
        spectrum *= rfft(losses.masses, length) ** count
        offset += losses.lowest * round(count)
    masses = np.maximum(np.roll(irfft(spectrum, length), offset - low)[:size], 0.0)
    log_finite = math.fsum(count * math.log1p(-min(losses.infinity, 1 - 1e-16)) for losses, count in steps)
    # Charged to ∞: the window's two tails (one cut), the two ends of every curve (``tail`` of ``epsilon``; two cuts), rounding.
    rounding = _ROUNDING * math.fsum(count for _, count in steps)
    return _read_epsilon(masses, low, gap, 3 * cut + rounding - math.expm1(log_finite), _DELTA_KEPT * delta)


def _by_moments(parts: Sequence[tuple[LossCurve, float]], gap: float, delta: float) -> float:
    """ε by δ(ε) ≤ P(∞) + min over α of E[e^{(α−1)L}; L < ∞]·e^{−(α−1)ε}·(1 − 1/α)^α/(α − 1).

    (1 − e^{−x})₊ ≤ e^{(α−1)x}·(1 − 1/α)^α/(α − 1) at every x (Canonne et al. 2020 v4, Proposition 12), so the bound holds for
    the part of a distribution that is finite, too. Each moment is enlarged by what rounding may have taken off its masses.
    """
    less_one = np.geomspace(0.02, 2e4, 160)
    total = np.zeros_like(less_one)
    log_finite = 0.0
    for curve, count in parts:
        losses = _on_grid(curve, gap)
        held = np.flatnonzero(losses.masses)
        at, log_masses = gap * (losses.lowest + held), np.log(losses.masses[held])
        total += count * (np.array([logsumexp(log_masses + one * at) for one in less_one]) + 10 * _ROUNDING / gap)
        log_finite += count * math.log1p(-min(losses.infinity, 1 - 1e-16))
    left = delta * _DELTA_KEPT + math.expm1(log_finite)
    if left <= 0:
        return math.inf
    orders = less_one + 1
    epsilons = (total - math.log(left) + orders * np.log1p(-1 / orders) - np.log(less_one)) / less_one
    return max(0.0, float(np.min(epsilons)))


def _on_grid(curve: LossCurve, gap: float) -> _Losses:
    low, high = math.floor(curve.low / gap), math.ceil(curve.high / gap)
    return _connect_dots(curve.deltas(gap * np.arange(low, high + 1, dtype=np.float64)), low, gap)


def _window(steps: Sequence[tuple[_Losses, float]], gap: float, cut: float) -> tuple[int, int]:
    """Grid indices outside which the sum has mass at most ``cut`` (Chernoff, over a few tilts each way)."""
    lowest = sum(s.lowest * round(n) for s, n in steps)
    highest = sum((s.lowest + s.masses.size - 1) * round(n) for s, n in steps)
    centred, centre, variance = [], 0.0, 0.0
    for s, n in steps:
        held = np.flatnonzero(s.masses)
        masses = s.masses[held]
        index = held.astype(float)
        mean = float(index @ masses / masses.sum())
        index -= mean
        centre += n * (s.lowest + mean)
        variance += n * float(np.square(index) @ masses)
        centred.append((index, np.log(masses), n))
    spread = math.sqrt(variance) + 1.0
    reaches = []
    for sign in (1.0, -1.0):
        best = math.inf
        for tilt in sign * _TILTS / spread:
            log_moment = 0.0
            for index, log_masses, n in centred:
                exponent = tilt * index + log_masses
                top = float(exponent.max())
                log_moment += n * (top + math.log(float(np.exp(exponent - top).sum())))
            best = min(best, (log_moment + math.log(2 / cut)) / abs(tilt))
        reaches.append(best)
    return max(lowest, math.floor(centre - reaches[1])), min(highest, math.ceil(centre + reaches[0]))


def _read_epsilon(masses: ArrayField, lowest: int, gap: float, infinity: float, delta: float) -> float:
    """Read ε off a loss distribution.

    With W_k = Σ_{i ≥ k} pᵢ e^{ε_k − εᵢ} (a geometric recursion), δ(ε_k) = P(∞) + (1 − e^{−g}) Σ_{j > k} W_j:
    sums of positive terms only. Between dots δ is linear in e^ε.
    """
    if infinity > delta:
        return math.inf
    from scipy.signal import lfilter  # its import takes half a second

    discounted = lfilter([1.0], [1.0, -math.exp(-gap)], masses[::-1])[::-1]
    later = np.concatenate([np.cumsum(discounted[::-1])[::-1][1:], [0.0]])
    deltas = infinity - math.expm1(-gap) * later
    first = int(np.argmax(deltas <= delta))  # deltas decrease, the last one is P(∞) ≤ delta
    loss = (lowest + first) * gap
    share = (delta - float(deltas[first])) / max(float(discounted[first]), 1e-300)
    if first == 0 and share >= 1:
        return 0.0
    return max(0.0, loss + math.log1p(-min(share, -math.expm1(-gap)))) if share > 0 else max(0.0, loss)
