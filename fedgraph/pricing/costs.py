"""What rounds cost, for the mechanisms that configurations describe, as a ``CostOfRounds``; and the noise that has a given
cost.

A noise multiplier is the standard deviation over the clip of one contribution, so it has no unit. ``records`` is the number of
contributions of the protected unit. ``docs/how_deployed_noise_is_priced.md`` derives the costs.

**Edge cases.** σ = 0 costs ∞. σ = ∞ or a rate of 0 costs 0. A rate of 1 is the exact Gaussian. A δ below what the grid resolves
is priced by Rényi divergences or without amplification, which is never less than the truth.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from fedgraph.privacy import (
    ArrayField,
    Composed,
    Epsilon,
    Event,
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    Repeated,
    amplified_epsilon,
    calibrate,
    events,
    gaussian,
    losses,
    mixture,
    price,
)

CostOfRounds = Callable[[int, float], Epsilon]  # (number of rounds, δ) → what they cost together


@dataclass(frozen=True)
class _CostOfEvent:
    """What an event costs when it happens in every round."""

    event: Event

    def __call__(self, rounds: int, delta: float) -> Epsilon:
        return price(Composed((Repeated(self.event, rounds),)), delta)


def cost_of_events(per_round: Event) -> CostOfRounds:
    """What ``per_round`` costs when it happens in every round: that of a composition of so many of them."""
    return _CostOfEvent(per_round)


def cost_of_unprotected(reason: str) -> CostOfRounds:
    """A cost of ∞, with its reason."""
    return lambda rounds, delta: price(events.Unprotected(reason), delta)


def cost_of_gaussian(multiplier: float, replaced: bool = False, records: int = 1) -> CostOfRounds:
    """A Gaussian sum (std = multiplier·clip) in which everybody takes part."""
    return cost_of_events(Gaussian(multiplier / (records * (2 if replaced else 1))))


def cost_of_laplace(multiplier: float, replaced: bool = False) -> CostOfRounds:
    """A sum with Laplace noise of scale multiplier·clip, where the clip is in L1.

    Args:
        multiplier: Scale over clip; 0 or more.
        replaced: Whether one contribution becomes another one (Δ₁ = 2·clip).

    Returns:
        The cost.
    """
    return cost_of_events(events.Laplace(multiplier / (2 if replaced else 1)))


def cost_of_sampled_laplace(multiplier: float, rate: float, replaced: bool, fixed: bool) -> CostOfRounds:
    """Laplace noise on a sampled sum: ln(1 + q(e^ε − 1)) per round, where ε bounds every pair of sums that meet.

    Poisson, zero-out: ε = 1/b. Otherwise 2/b (the unit's row against another one). Without amplification if that is smaller.
    """
    whole = cost_of_laplace(multiplier, replaced)
    if rate == 1 or multiplier == 0 or math.isinf(multiplier):
        return whole
    amplified = amplified_epsilon((1 if not replaced and not fixed else 2) / multiplier, rate)
    return whole if amplified >= (2 if replaced else 1) / multiplier else cost_of_pure(amplified)


def cost_of_pure(epsilon: float) -> CostOfRounds:
    """What is ε-DP, such as randomised response with its own ε ≥ 0."""
    return cost_of_events(events.PureDP(epsilon))


def cost_of_poisson(multiplier: float, rate: float, replaced: bool = False, records: int = 1) -> CostOfRounds:
    """A Poisson-sampled Gaussian sum."""
    if records == 1 or replaced or rate in (0.0, 1.0) or multiplier == 0 or math.isinf(multiplier):
        if rate == 1:
            return cost_of_gaussian(multiplier, replaced, records)
        return cost_of_events(PoissonGaussian(multiplier, rate, records, replaced))

    def cost(rounds: int, delta: float) -> Epsilon:
        if rounds == 0:
            return price(Composed(()), delta)
        if delta < losses.SMALLEST_DELTA_OF_LOSSES:  # Rényi, with coins revealed and the others changed: looser, and valid
            return price(Repeated(PoissonGaussian(multiplier, rate, records, replaced=False), rounds), delta)
        hits = np.arange(records + 1, dtype=float)
        weights = binom.pmf(hits, records, rate)
        keep = weights > 0
        pair = mixture.MixturePair(weights[keep], hits[keep], np.ones(1), np.zeros(1), multiplier)
        there, back = mixture.curves(pair, losses.infinite_loss_mass(delta, rounds))
        epsilon = losses.compose([losses.LossPart(there, back, rounds)], delta)
        bound = price(Repeated(Gaussian(multiplier / records), rounds), delta)  # no amplification: always valid
        if bound.epsilon <= epsilon:
            return bound
        words = f"all {records} rows vanish: one-sided mixture pair, composed (Zhu, Dong & Wang 2022, Theorem 10)"
        return Epsilon(epsilon, delta, "loss distribution", words)

    return cost


def cost_of_fixed_size(multiplier: float, rate: float, replaced: bool) -> CostOfRounds:
    """A Gaussian sum over a batch of a fixed share ``rate`` of the rows, drawn afresh each round without replacement."""
    if rate == 1 or multiplier == 0 or math.isinf(multiplier):
        return cost_of_gaussian(multiplier, replaced)
    if rate == 0:
        return cost_of_events(Gaussian(math.inf))

    def cost(rounds: int, delta: float) -> Epsilon:
        if rounds == 0:
            return price(Composed(()), delta)
        if delta < losses.SMALLEST_DELTA_OF_LOSSES:  # Rényi with the batch revealed
            rows = 10**9
            sigma = multiplier * (1 if replaced else 2)
            event = FixedSizeGaussian(sigma, math.ceil(rate * rows), rows, touched_rows=1, replaced=True)
            return price(Repeated(event, rounds), delta)
        tail = losses.infinite_loss_mass(delta, rounds)
        part = losses.LossPart(_joint_convexity(multiplier, rate, tail), None, rounds)
        words = f"sampling without replacement at rate {rate:.6g}, Δ = 2·clip (Balle, Barthe & Gaboardi 2018; Zhu, Dong & Wang "
        words += "2022, Theorem 11), composed on a pessimistic grid"
        found = [
            Epsilon(losses.compose([part], delta), delta, "loss distribution", words),
            price(Repeated(Gaussian(multiplier / (2 if replaced else 1)), rounds), delta),
        ]
        if not replaced:
            revealed = losses.compose([losses.LossPart(_revealed(multiplier, rate, tail), None, rounds)], delta)
            words = f"the batch revealed: with probability {rate:.6g} a Gaussian with Δ = clip, composed on a pessimistic grid"
            found.append(Epsilon(revealed, delta, "loss distribution", words))
        return min(found, key=lambda p: p.epsilon)

    return cost


def cost_of_several(parts: Sequence[tuple[CostOfRounds, int]]) -> CostOfRounds:
    """Several kinds of rounds on the same data, together, as often as there are rounds.

    Costs that come with an event (``cost_of_events``) are composed by the accountant; of the others each gets its share of δ,
    and their ε add up.

    Args:
        parts: What a number of rounds costs, and the number of them.
    """
    if len(parts) == 1:
        alone, times = parts[0]
        return lambda rounds, delta: alone(times * rounds, delta)
    known = [(cost.event, times) for cost, times in parts if isinstance(cost, _CostOfEvent)]
    others = [(cost, times) for cost, times in parts if not isinstance(cost, _CostOfEvent)]

    def cost(rounds: int, delta: float) -> Epsilon:
        share = delta / (len(others) + bool(known))
        found = [each(times * rounds, share) for each, times in others]
        if known:
            found.append(price(Composed(tuple(Repeated(event, times * rounds) for event, times in known)), share))
        words = found[-1].theorem if len(found) == 1 else f"basic composition of {len(found)} parts: {found[0].theorem}"
        return Epsilon(sum(p.epsilon for p in found), delta, found[-1].accountant, words)

    return cost


def cost_of_dearest(each: Sequence[CostOfRounds]) -> CostOfRounds:
    """The dearest of several, side by side: what one unit pays that takes part in one of them only."""
    return each[0] if len(each) == 1 else lambda rounds, delta: max((c(rounds, delta) for c in each), key=lambda p: p.epsilon)


def _joint_convexity(multiplier: float, rate: float, tail: float) -> losses.LossCurve:
    """The curve of one draw without replacement under replacement; symmetric."""
    sigma = multiplier / 2
    reach = -float(ndtri(tail))
    high = float(np.logaddexp(math.log1p(-rate), math.log(rate) + (reach + 0.5 / sigma) / sigma))

    def above(e: ArrayField) -> ArrayField:  # q·δ_Gauss(ln(1 + (e^e − 1)/q)), e ≥ 0
        inner = np.where(e < 1e-12, e / rate, np.logaddexp(0.0, _log_expm1(np.maximum(e, 1e-300)) - math.log(rate)))
        return np.asarray(rate * gaussian.deltas(inner, 1 / sigma))

    def deltas(e: ArrayField) -> ArrayField:
        size = np.abs(e)
        there = above(size)
        return np.where(e >= 0, there, -np.expm1(-size) + np.exp(-size) * there)

    # The loss is near ±q(e^{1/σ²} − 1)^½ in spread; it only chooses the grid.
    spread = min(rate * math.sqrt(math.expm1(min(1 / sigma**2, 40.0))), 1 / sigma)
    return losses.LossCurve(deltas, -high, high, max(spread, 1e-9))


def _revealed(multiplier: float, rate: float, tail: float) -> losses.LossCurve:
    mu = 1 / multiplier
    high = mu * mu / 2 - mu * float(ndtri(min(0.5, tail / rate)))

    def deltas(e: ArrayField) -> ArrayField:
        return np.asarray(rate * gaussian.deltas(e, mu) + (1 - rate) * -np.expm1(np.minimum(e, 0.0)))

    return losses.LossCurve(deltas, -high, high, math.sqrt(rate) * mu)


def _log_expm1(e: ArrayField) -> ArrayField:
    return np.asarray(np.where(e > 30, e, np.log(np.expm1(np.minimum(e, 30.0)))))


@lru_cache(maxsize=256)
def noise_at_cost(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The noise multiplier at which so many Poisson-sampled sums cost (epsilon, delta), zero-out; never below it."""
    return calibrate.noise_multiplier_of(lambda m: Repeated(PoissonGaussian(m, rate, 1, replaced=False), steps), epsilon, delta)


def classic_gaussian_std(sensitivity: float, epsilon: float, delta: float) -> float:
    """Δ·√(2 ln(1.25/δ))/ε, the textbook formula that many systems use (proven for ε < 1 only)."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
