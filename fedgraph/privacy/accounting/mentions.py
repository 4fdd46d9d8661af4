"""Steps of HeterPoisson: a unit is in the sum by its own row, or by being mentioned in the rows of others, never by both.

Every unit is drawn with a fresh secret coin of rate q; a drawn unit adds its row, clipped to norm C. A drawn row mentions each
of its neighbours that was *not* drawn with a coin of rate p, and is a function of itself and of whom it mentions. A unit has at
most m neighbours. The sum gets spherical noise, Gaussian or √W times Gaussian with one secret W ~ Exp(1) a step (symmetric
multivariate Laplace), of standard deviation σC. In units of C, with k of the unit's neighbours drawn,

    P = q N(1, σ²) + (1 − q) Σ_j Bin(j | k, p) N(2j, σ²)    against    Q = N(0, σ²),    k ~ Bin(m, q) revealed.

**Guarantee.** Node level, zero-out: for every γ ≥ 0 the hockey-stick of a step is at most the mean over k of that of the pair,
in both orders, so steps compose adaptively. Assumes that coins and W are secret, and that p, q and m are public.

*Proof*: ``docs/proofs.md``. Under √W, W and j are revealed: δ(e) = E_W E_j δ_Gauss(e; shift_j / (σ√W)).

**Edge cases.** q = 1, p = 0 or m = 0, Gaussian: one row (``accountant``). Mass of W below ``_LEAST_W``, and of counts beyond
``tail``, goes to a loss of ∞.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fedgraph.privacy.accounting import gaussian, mixture
from fedgraph.privacy.accounting.losses import LossCurve
from fedgraph.privacy.events import MentionedGaussian
from fedgraph.privacy.fields import ArrayField

_LEAST_W, _MOST_W, _BINS_OF_W = 1e-12, 40.0, 200
_QUANTILES = (0.3, 0.6, 0.9, 0.99, 0.9999)  # of drawn neighbours, each rounded up
_COST = 8.0
_FARTHEST = 200.0  # losses beyond count as ∞


def curves(step: MentionedGaussian, tail: float) -> tuple[LossCurve, LossCurve]:
    """Both orders of one step: the unit there against gone, and back.

    step: what is released. tail: mass that may be put to a loss of ∞.
    """
    if step.heavy:
        return _heavy(step, tail), _heavy(step, tail)
    return _normal(step, tail)


def _normal(step: MentionedGaussian, tail: float) -> tuple[LossCurve, LossCurve]:
    counts, weights, lost = _drawn_neighbours(step.others, step.sampling_rate, tail / 4)
    both = []
    for count in counts:
        shifts, chances = _shifts(int(count), step.mention_rate, step.sampling_rate, tail / 4)
        pair = mixture.MixturePair(chances, shifts, np.ones(1), np.zeros(1), step.noise_multiplier)
        forward, backward = mixture.curves(pair, tail / 4)
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


def _heavy(step: MentionedGaussian, tail: float) -> LossCurve:
    """W and the shift revealed; symmetric in the two worlds."""
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
