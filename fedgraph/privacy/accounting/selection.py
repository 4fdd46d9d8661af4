"""The price of a private choice: the best of K trials, where K is random and secret.

Each trial Q draws a candidate at random, trains it and releases a noisy score. K follows the truncated negative binomial law

    P[K = k] = (1 − γ)ᵏ · Π_{l<k} (l + η)/(l + 1) / (γ^{−η} − 1),   η = 0: (1 − γ)ᵏ / (k·ln(1/γ)),   k = 1, 2, …

**Guarantee.** If Q is (λ, R(λ))-RDP for all orders, the best of K trials by their released scores is (λ, R')-RDP with

    R'(λ) = R(λ) + min over λ̂ ≥ 1 of (1 + η)·((1 − 1/λ̂)·R(λ̂) + ln(1/γ)/λ̂) + ln(E K)/(λ − 1)

(Papernot & Steinke, ICLR 2022, Theorem 2; the idea is Liu & Talwar's, STOC 2019). The unit and relation are those of Q. The
candidates, η and γ must be chosen without the data, K and the other trials must stay secret, and K may not be cut off.
**Edge cases.** R = ∞ at an order → ∞ there. γ = 1 is one trial, whose choice costs nothing more.
"""

import math

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events
from fedgraph.privacy.fields import ArrayField


def rdp(each: ArrayField, orders: ArrayField, shape: float, stop: float) -> ArrayField:
    """R' of the best trial, by the formula above.

    Args:
        each: float64 [k], R of one trial at ``orders``; ∞ where an order has no bound.
        orders: float64 [k], λ > 1.
        shape: η ≥ 0.
        stop: γ in (0, 1].

    Raises:
        PrivacyError: γ outside (0, 1], or η that is not finite.
    """
    if not 0 < stop <= 1 or not math.isfinite(shape):
        raise PrivacyError(f"stopping needs 0 < stop ≤ 1 and a finite shape, found {stop} and {shape}")
    if stop == 1:
        return each
    choosing = (1 + shape) * ((1 - 1 / orders) * each + math.log(1 / stop) / orders)
    out: ArrayField = each + choosing.min() + math.log(_mean_selection_trials(shape, stop)) / (orders - 1)
    return out


def _mean_selection_trials(shape: float, stop: float) -> float:
    """E K, the mean number of trials. shape: η ≥ 0. stop: γ in (0, 1].

    >>> _mean_selection_trials(1.0, 0.05)
    20.0
    """
    if stop == 1:
        return 1.0
    if shape == 0:
        return (1 / stop - 1) / math.log(1 / stop)
    return float(shape * (1 - stop) / (stop * (1 - stop**shape)))


def stop_for(shape: float, mean: float) -> float:
    """The γ for which E K is a given mean, from the side of fewer trials.

    Args:
        shape: η ≥ 0.
        mean: E K, at least 1 and below a million.

    Raises:
        PrivacyError: a mean out of that range.
    """
    if not 1 <= mean < 1e6:
        raise PrivacyError(f"among is {mean}; allowed: the mean number of trials, 1 to a million")
    low, high = 1e-12, 1.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _mean_selection_trials(shape, middle) > mean else (low, middle)
    return high


def draw_trials(shape: float, stop: float, rng: np.random.Generator) -> int:
    """K, which nobody may learn. shape: η ≥ 0. stop: γ in (0, 1]. rng: a secret stream."""
    if stop == 1:
        return 1
    chance, k = (1 - stop) / math.log(1 / stop) if shape == 0 else shape * (1 - stop) / (stop**-shape - 1), 1
    left = float(rng.random()) - chance
    while left > 0 and chance > 0:
        chance *= (1 - stop) * (k + shape) / (k + 1)
        k += 1
        left -= chance
    return k


def without_missed(leaf: events.Event) -> tuple[events.Event, float]:
    """(the leaf, 0); of a choice, it without the (0, δ₀) releases of its trials, and what these add to δ.

    With t the largest Σδ₀ of a trial, the law of a trial on either of two neighbours is 1 − t times one without such a release,
    and t times any other. All K trials are of the first kind with the same chance on both, at least 1 − t·E K. Given that,
    K has the same law with γ + t − γt in the place of γ, which costs less. So ε holds at δ + t·E K.
    """
    if not isinstance(leaf, events.Selected):
        return leaf, 0.0
    parts = [_apart(one) for one in leaf.candidates]
    missed = max(used for _, used in parts)
    kept = events.Selected(tuple(one for one, _ in parts), leaf.shape, leaf.stop)
    return kept, missed * _mean_selection_trials(leaf.shape, leaf.stop) if missed else 0.0


def _apart(event: events.Event) -> tuple[events.Event, float]:
    """(``event`` without (0, δ₀) releases, Σδ₀ of these); on a secret sample they count as if the unit were in it."""
    kept, used = [], 0.0
    for leaf, count in events.flatten(event):
        if isinstance(leaf, events.ApproxDP) and leaf.epsilon == 0:
            used += leaf.delta * count
            continue
        if isinstance(leaf, events.SampledOnce):
            inner, missed = _apart(leaf.event)
            leaf, used = events.SampledOnce(inner, leaf.sampling_rate), used + missed * count
        kept.append(events.Repeated(leaf, count))
    return events.Composed(tuple(kept)), used
