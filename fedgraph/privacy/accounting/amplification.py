"""Amplification by one secret sample, drawn once, for a whole pipeline.

If the pipeline is (ε, δ)-DP and each unit takes part with probability q by its own secret coin, then

    ε' = ln(1 + q(e^ε − 1)),        δ' = qδ.

**Guarantee.** Zero-out only, applied once, to the composed pipeline, **provided** "sampled and zeroed"
and "not sampled" have the same output law: candidates, source marks, rates, denominators, steps and noise
come from public N and public coins, never from the sample (Li, Qardaji & Su 2012, Theorem 1; Balle,
Barthe & Gaboardi 2018, Theorem 8). Void against anyone who knows the sample. The published q'·ε is *not*
an upper bound of ε'.

A sample of fixed size, m of n units without replacement, gives the same formula with q = m/n if the pipeline is (ε, δ)-DP
under *replace* (Balle et al. 2018, Theorem 9); the rate is m/n as drawn, after any rounding, not the share that was asked for.
Under zero-out it is false: of 3 in 10 with noise 1 the true δ at ε = 1 is .0322, the formula says .0077.

**Edge cases.** q = 0 → (0, 0); q = 1 → unchanged; ε = ∞ → ∞; e^ε never overflows (logarithms).
δ ≥ q: the inner pipeline is read at a δ just below 1.
"""

import math

from fedgraph.errors import PrivacyError


def amplified_epsilon(epsilon: float, sampling_rate: float) -> float:
    """ln(1 + q(e^ε − 1)), accurate from ε = 1e-12 to 1e6.

    Args:
        epsilon: of the pipeline, ≥ 0.
        sampling_rate: q in [0, 1].

    Raises:
        PrivacyError: a number out of its range.

    >>> round(amplified_epsilon(88.9, 0.09), 4)
    86.4921
    """
    _check(epsilon, sampling_rate)
    if sampling_rate == 0 or epsilon == 0:
        return 0.0
    if epsilon < 30:
        return math.log1p(sampling_rate * math.expm1(epsilon))
    # ln(q e^ε + 1 − q) = s + ln(1 + (1 − q) e^{−s}), s = ε + ln q; for s < 0 the sum is at most 2 and is direct.
    shifted = epsilon + math.log(sampling_rate)
    if shifted < 0:
        return math.log1p(math.exp(shifted) - sampling_rate)
    return shifted + math.log1p((1 - sampling_rate) * math.exp(-shifted))


def epsilon_before(epsilon: float, sampling_rate: float) -> float:
    """The pipeline's ε that amplifies to a given one: ln(1 + (e^ε' − 1)/q); ∞ where q = 0.

    Args:
        epsilon: ε' after amplification, ≥ 0.
        sampling_rate: q in [0, 1].

    Raises:
        PrivacyError: a number out of its range.
    """
    _check(epsilon, sampling_rate)
    if sampling_rate == 0:
        return math.inf
    if epsilon < 30:
        return math.log1p(math.expm1(epsilon) / sampling_rate)
    return epsilon - math.log(sampling_rate) + math.log1p((sampling_rate - 1) * math.exp(-epsilon))


def delta_before(delta: float, sampling_rate: float) -> float:
    """The δ at which the pipeline is read: δ/q, capped below 1.

    Args:
        delta: δ' after amplification, in [0, 1).
        sampling_rate: q in [0, 1].

    Raises:
        PrivacyError: a rate out of its range.
    """
    _check(0.0, sampling_rate)
    return 0.0 if delta == 0 else min(delta / max(sampling_rate, 1e-300), 1 - 1e-9)


def _check(epsilon: float, sampling_rate: float) -> None:
    if math.isnan(epsilon) or epsilon < 0:
        raise PrivacyError(f"epsilon must be a number ≥ 0, found {epsilon}")
    if math.isnan(sampling_rate) or not 0 <= sampling_rate <= 1:
        raise PrivacyError(f"a sampling rate lies in [0, 1], found {sampling_rate}")
