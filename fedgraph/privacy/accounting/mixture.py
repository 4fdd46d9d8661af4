"""The two-sided Gaussian-mixture pair: a Poisson-sampled clipped sum in which a unit touches B' rows.

A step sums the rows whose fresh secret coin (rate q) came up, each row of norm at most C, and adds
N(0, (σC)²I). In units of C, with j the number of sampled rows that the unit touches,

    zero-out:  P = Σ_j Bin(j | B', q) N(+j, σ²)    against    Q = Σ_j Bin(j | B'−1, q) N(−j, σ²),
    replace:   P = Σ_j Bin(j | B', q) N(+j, σ²)    against    Q = Σ_j Bin(j | B', q) N(−j, σ²).

**Guarantee.** Node-level, zero-out (the own row vanishes, B'−1 others change) or replace (all B' change);
for every γ ≥ 0 the hockey-stick of the real mechanism is at most that of the pair, in both orders, so
the curves compose adaptively. Assumes: coins are fresh and secret, denominators public, noise spherical.

*Proof*: ``docs/proofs.md``. A one-sided mixture is **not** valid where a row is changed rather than removed.

**Edge cases.** q = 1 is the Gaussian with Δ = 2B'−1 or 2B' and q = 0 releases nothing; both are settled
before this file. Beyond ``_MANY_ROWS`` rows numbers of sampled rows are rounded up to a few: a longer shift only adds.

Reference: for B' = 1 zero-out this is Zhu, Dong & Wang 2022, Theorem 11.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri

from fedgraph.privacy.accounting.losses import LossCurve
from fedgraph.privacy.fields import ArrayField

_MANY_ROWS = 128
_HARDLY = 1e-15  # a chance
_FIRST_GUESSES = 4097


@dataclass(frozen=True)
class MixturePair:
    """Two mixtures of normal laws: P = Σ weights_p[j] N(+shifts_p[j], σ²), Q = Σ weights_q[j] N(−shifts_q[j], σ²)."""

    weights_p: ArrayField  # probabilities > 0
    shifts_p: ArrayField  # ≥ 0, as many
    weights_q: ArrayField  # probabilities > 0
    shifts_q: ArrayField  # ≥ 0, as many
    sigma: float  # σ > 0

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


def pair(noise_multiplier: float, sampling_rate: float, touched_rows: int, replaced: bool) -> MixturePair:
    """The dominating pair of a step.

    noise_multiplier: σ, standard deviation over clip, > 0. sampling_rate: q in (0, 1). touched_rows: B' ≥ 1. replaced: whether
    all touched rows change, or the own one vanishes.
    """
    p, a = _binomial(touched_rows, sampling_rate)
    q, b = (p, a) if replaced else _binomial(touched_rows - 1, sampling_rate)
    return MixturePair(p, a, q, b, noise_multiplier)


def curves(chosen: MixturePair, tail: float) -> tuple[LossCurve, LossCurve | None]:
    """Both orders of a pair: (P, Q), and (Q, P) unless it is the mirror image of the first.

    A dot outside the losses that are kept is read at the end of the x range, which is at least the curve of the cut pair;
    ``losses`` charges the cut mass.

    chosen: the pair. tail: x beyond this mass on either side is cut off. Returns the two curves; None in the place of the
    second where both are the same.
    """
    reach = -float(ndtri(tail)) * chosen.sigma
    xs = np.linspace(-float(chosen.shifts_q.max()) - reach, float(chosen.shifts_p.max()) + reach, _FIRST_GUESSES)
    if chosen.shifts_p.max() > _MANY_ROWS and chosen.shifts_q.any():  # the last shift is far, and hardly ever
        sides = ((chosen.weights_q, chosen.shifts_q), (chosen.weights_p, chosen.shifts_p))
        below, above = (float(shifts[weights > _HARDLY].max()) for weights, shifts in sides)
        xs = np.union1d(xs, np.linspace(-below - reach, above + reach, _FIRST_GUESSES))
    losses, _ = chosen.loss(xs)
    low, high = float(losses[0]), float(losses[-1])

    def where(e: ArrayField) -> ArrayField:
        """x with loss(x) = e, by interpolation and three Newton steps, kept inside its cell."""
        cell = np.clip(np.searchsorted(losses, e), 1, losses.size - 1)
        x = np.interp(e, losses, xs)
        for _ in range(3):
            value, slope = chosen.loss(x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = np.where(slope > 0, (e - value) / slope, 0.0)
            x = np.clip(x + step, xs[cell - 1], xs[cell])
        return x

    def forward(e: ArrayField) -> ArrayField:
        x = where(e)
        log_p = chosen.log_above(x, True)
        return np.exp(log_p) * -np.expm1(np.minimum(e + chosen.log_above(x, False) - log_p, 0.0))

    def backward(e: ArrayField) -> ArrayField:
        x = where(-e)
        log_q = chosen.log_below(x, False)
        return np.exp(log_q) * -np.expm1(np.minimum(e + chosen.log_below(x, True) - log_q, 0.0))

    cost = 0.5 * (chosen.shifts_p.size + chosen.shifts_q.size)
    density = np.exp(_log_gaussian_mixture(chosen, xs))
    density /= density.sum()
    mean = float(density @ losses)
    spread = math.sqrt(float(density @ (losses - mean) ** 2))
    there = LossCurve(forward, low, high, spread, cost)
    if chosen.weights_p is chosen.weights_q or np.array_equal(chosen.weights_p, chosen.weights_q):
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


def _log_gaussian_mixture(chosen: MixturePair, x: ArrayField) -> ArrayField:
    return _log_sum(np.log(chosen.weights_p)[:, None] - (x - chosen.shifts_p[:, None]) ** 2 / (2 * chosen.sigma**2))


def _log_sum(terms: ArrayField) -> ArrayField:
    """ln Σ_j e^{terms[j]} of every column."""
    top = terms.max(axis=0)
    return np.asarray(top + np.log(np.exp(terms - top).sum(axis=0)))
