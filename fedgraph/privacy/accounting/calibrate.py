"""The noise that a target ε needs; it never costs more than the target.

``noise_multiplier_of`` searches the price itself, with the accountants that will price the run. It brackets by factors of four,
then narrows in log-log coordinates (ε falls about like 1/noise), and returns the *upper* end of the bracket, whose price was
computed and is at most the target. It never minimises |difference|.

**Guarantee.** ``price(make_event(result), delta).epsilon ≤ epsilon``, checked, whatever the search did. The
result is within ``_TOLERANCE`` (relative) above a multiplier that was found to cost too much.

**Edge cases.**

    epsilon NaN, ≤ 0                            PrivacyError
    epsilon = ∞                                 PrivacyError: no noise is a decision, not a calibration; a
                                                method writes its noise-free form (event ``Unprotected``)
    delta NaN, < 0, ≥ 1                         PrivacyError
    target below what infinite noise leaves     PrivacyError naming that floor (e.g. a fixed part of the event)
    event that costs ≤ target at any noise      the smallest multiplier tried, ``_LEAST``
    count 0 of ``gaussian_multiplier``          PrivacyError (nothing to calibrate)

Prices are cached by (event, delta), and the search is deterministic, so calibrating an equal event again takes a few
dictionary look-ups.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Event

_TOLERANCE = 1e-4
_LEAST, _MOST = 2.0**-30, 2.0**50
_MARGIN = 3e-9  # more than the rounding of ``gaussian.epsilon``, so that adding μ² in another order stays below too


def noise_multiplier_of(make_event: Callable[[float], Event], epsilon: float, delta: float) -> float:
    """The smallest noise multiplier (to one part in 10⁴) with which releases cost at most a target.

    Args:
        make_event: multiplier → everything that will be released; its price must fall as the multiplier grows.
        epsilon: the target, > 0 and finite.
        delta: δ in [0, 1).

    Returns:
        A multiplier whose price was computed and is at most the target.

    Raises:
        PrivacyError: a target that is not finite and > 0, or one that no multiplier reaches.

    >>> from fedgraph.privacy.events import Gaussian, Repeated
    >>> found = noise_multiplier_of(lambda m: Repeated(Gaussian(m), 100), 1.0, 1e-5)
    >>> price(Repeated(Gaussian(found), 100), 1e-5).epsilon <= 1.0
    True
    """
    _check_target(epsilon)

    def cost(multiplier: float) -> float:
        return price(make_event(multiplier), delta).epsilon

    low, low_cost, high, high_cost = _bracket(cost, epsilon)
    if low == 0:
        return high
    for turn in range(80):
        if high / low <= 1 + _TOLERANCE:
            return high
        middle = _next(low, low_cost, high, high_cost, epsilon, turn)
        middle_cost = cost(middle)
        if middle_cost <= epsilon:
            high, high_cost = middle, middle_cost
        else:
            low, low_cost = middle, middle_cost
    return high


@lru_cache(maxsize=4096)
def gaussian_multiplier(count: int, epsilon: float, delta: float) -> float:
    """The noise multiplier with which Gaussian releases cost at most a target: σ = √count / μ(ε, δ). Results are cached.

    Aims 3e-9 (relative) below the target.

    Args:
        count: number of releases, ≥ 1.
        epsilon: the target, > 0 and finite.
        delta: δ in (0, 1).

    Raises:
        PrivacyError: a number out of its range.

    >>> round(gaussian_multiplier(1, 1.0, 1e-5), 4)
    3.7306
    """
    _check_target(epsilon)
    if math.isnan(delta) or not 0 < delta < 1:
        raise PrivacyError(f"the Gaussian mechanism needs 0 < delta < 1, found {delta}")
    if count < 1:
        raise PrivacyError(f"count must be at least 1, found {count}")
    target, aimed = math.log(delta), epsilon * (1 - _MARGIN)

    def gap(log_mu: float) -> float:
        return max(gaussian.log_delta(aimed, math.exp(log_mu)), -1e300) - target

    low = high = 0.5 * math.log(2 * epsilon) if epsilon > 1 else math.log(epsilon)
    while gap(high) <= 0:
        high += 1
    while gap(low) > 0:
        low -= 1
    multiplier = math.sqrt(count) / math.exp(brentq(gap, low, high, xtol=1e-14))
    for slack in (0.0, 1e-10, 1e-9, 1e-8, 1e-7):
        found = multiplier * (1 + slack)
        mu = gaussian.total_mu(np.array([found]), np.array([float(count)]))
        if all(gaussian.epsilon(mu * rounding, delta) <= epsilon for rounding in (1 - 1e-15, 1.0, 1 + 1e-15, 1 + 1e-14)):
            return found
    raise PrivacyError(f"no Gaussian noise found for ε = {epsilon} at δ = {delta}")


def published(cost: Callable[[float], float], target: float) -> float:
    """The smallest multiplier (to one part in 10⁵, from above) with cost ≤ target.

    Args:
        cost: multiplier → the published ε; it must fall.
        target: ε, > 0.

    Raises:
        PrivacyError: no multiplier below 10¹² is enough.
    """
    low, high = 1e-3, 1e-3
    while cost(high) > target:
        low, high = high, high * 2
        if high > 1e12:
            raise PrivacyError(f"ε = {target:.6g} cannot be reached by the published formula; raise ε")
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) > target else (low, middle)
    return high


def _check_target(epsilon: float) -> None:
    if math.isnan(epsilon) or epsilon <= 0:
        raise PrivacyError(f"a target epsilon must be a number > 0, found {epsilon}")
    if math.isinf(epsilon):
        raise PrivacyError(
            "a target epsilon of infinity asks for no noise at all: that is not a calibration; release the "
            "noise-free value as Unprotected, which the report shows as ε = ∞"
        )


def _bracket(cost: Callable[[float], float], epsilon: float) -> tuple[float, float, float, float]:
    """(low, its cost > ε, high, its cost ≤ ε); low = 0 where even ``_LEAST`` costs at most ε."""
    here, here_cost = 1.0, cost(1.0)
    if here_cost <= epsilon:
        while here > _LEAST:
            below, below_cost = here / 4, cost(here / 4)
            if below_cost > epsilon:
                return below, below_cost, here, here_cost
            here, here_cost = below, below_cost
        return 0.0, math.inf, here, here_cost
    while here < _MOST:
        above, above_cost = here * 4, cost(here * 4)
        if above_cost <= epsilon:
            return here, here_cost, above, above_cost
        here, here_cost = above, above_cost
    raise PrivacyError(
        f"ε = {epsilon:.6g} cannot be reached: even a noise multiplier of {here:.3g} leaves ε = {here_cost:.6g}; "
        f"raise the target, or give the rest of the event less"
    )


def _next(low: float, low_cost: float, high: float, high_cost: float, target: float, turn: int) -> float:
    """Regula falsi on (ln noise, ln ε), aimed a third of the tolerance to the safe side; every third turn
    (and where a cost is 0 or ∞) the middle."""
    a, b = math.log(low), math.log(high)
    middle = math.exp((a + b) / 2)
    if turn % 3 == 2 or not (math.isfinite(low_cost) and high_cost > 0):
        return middle
    share = (math.log(low_cost) - math.log(target)) / (math.log(low_cost) - math.log(high_cost))
    aimed = a + share * (b - a) + (_TOLERANCE / 3 if turn % 3 == 0 else -_TOLERANCE / 3)
    margin = min(_TOLERANCE / 4, (b - a) / 4)
    return math.exp(min(max(aimed, a + margin), b - margin))
