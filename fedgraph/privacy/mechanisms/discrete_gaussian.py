"""The discrete Gaussian on the whole numbers, drawn exactly: P(k) = exp(−k²/(2σ²)) / Σ_j exp(−j²/(2σ²)).

Inversion with as many random bits as it takes. The distribution function of |X| is computed in whole-number arithmetic to 31
bits, rounded down. A draw compares 31 random bits with it; where they are equal, the next 64 bits of both decide, and so on. So
no table cell is rounded away and no tail is cut off: the law is the stated one, up to the random bits themselves. (Drawing by
comparing bits lazily is old: Knuth & Yao 1976. Canonne, Kamath & Steinke 2020 sample the same law by rejection.)

**Edge cases.** σ < ½ or above ``MOST_STD`` → ``PrivacyError``; a generator that gives equal bits for ever does not happen.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fedgraph.compiled import compiled, constant, types
from fedgraph.errors import PrivacyError

LEAST_STD, MOST_STD = 0.5, 2.0**13
WORD = 31  # random bits of the first comparison; one more is the sign


@lru_cache(maxsize=32)
def distribution(std: float, bits: int) -> Sequence[int]:
    """⌊2^bits · P(|X| ≤ k)⌋ for k = 0, 1, … up to the last value that ``bits`` bits can tell from certainty."""
    if not LEAST_STD <= std <= MOST_STD:
        raise PrivacyError(f"a discrete Gaussian needs {LEAST_STD:g} ≤ std ≤ {MOST_STD:g} steps, found {std}")
    guard = 96
    while True:
        found = _cumulative(std, bits, guard)
        if found is not None:
            return found
        guard += 64


def _cumulative(std: float, bits: int, guard: int) -> Sequence[int] | None:
    """None where ``guard`` more bits leave it open on which side of a whole number a value lies."""
    one = 1 << (bits + guard)
    first = _exponential(1 / (2 * Fraction(std) ** 2), bits + guard)  # exp(−1/(2σ²))
    square, step, weight, weights = (first * first) // one, first, one, [one]
    while weight:
        weight = (weight * step) // one  # exp(−(k + 1)²/(2σ²)) from exp(−k²/(2σ²)) · exp(−(2k + 1)/(2σ²))
        step = (step * square) // one
        weights.append(2 * weight)
    total, running = sum(weights), 0
    found: list[int] = []
    slack = (len(weights) ** 3 + 1) << bits  # every weight is low by at most k² units, and so is their sum
    for weight in weights:
        running += weight
        scaled = running << bits
        whole = scaled // total
        if (scaled + slack) // total != whole or (scaled - slack) // total != whole:
            if running == total:
                break
            return None
        if found and whole == found[-1] and (1 << bits) - whole <= 1:
            break
        found.append(whole)
    return found


def _exponential(x: Fraction, bits: int) -> int:
    """⌊2^bits · exp(−x)⌋ for 0 ≤ x ≤ 2, low by a few units at most."""
    more = bits + 32
    term = total = 1 << more
    count = 0
    while term:
        count += 1
        term = -(-term * x.numerator // (x.denominator * count)) if term < 0 else term * x.numerator // (x.denominator * count)
        total += -term if count % 2 else term
    return total >> 32


@dataclass(frozen=True, eq=False)
class Table:
    """``distribution`` for the compiled loop. starts: per leading bits of a word, the first value that they allow."""

    limits: np.ndarray
    starts: np.ndarray
    shift: int


@lru_cache(maxsize=8)
def table(std: float) -> Table:
    limits = np.array([min(v, 2**WORD - 1) for v in distribution(std, WORD)], dtype=np.uint32)
    leading = max(8, min(18, math.ceil(math.log2(std)) + 3))
    shift = WORD - leading
    starts = np.searchsorted(limits, np.arange(2**leading, dtype=np.uint32) << np.uint32(shift), side="right")
    return Table(limits, starts.astype(np.int32), shift)


@compiled(types.void(constant(types.uint32), constant(types.uint32), constant(types.int32), types.int64, types.int64[::1]))
def _invert(words, limits, starts, shift, out):  # type: ignore[no-untyped-def]
    """out: the values; ``-2^62`` where 31 bits do not decide."""
    count = len(limits)
    for i in range(len(words)):
        word = words[i] >> np.uint32(1)
        k = starts[word >> np.uint32(shift)]
        while k < count and limits[k] <= word:
            k += 1
        if k >= count or (k > 0 and limits[k - 1] == word):
            out[i] = -4611686018427387904
        else:
            out[i] = k if words[i] & np.uint32(1) else -k


def draws(std: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [size], independent."""
    words = rng.integers(2**64, size=(size + 1) // 2, dtype=np.uint64).view(np.uint32)[:size]
    made, out = table(std), np.empty(size, dtype=np.int64)
    _invert(words, made.limits, made.starts, made.shift, out)
    for i in np.flatnonzero(out == -(2**62)):
        value = decided(int(words[i]) >> 1, WORD, std, rng)
        out[i] = value if int(words[i]) & 1 else -value
    return out


def decided(prefix: int, bits: int, std: float, rng: np.random.Generator) -> int:
    """|X| for a uniform number whose first ``bits`` bits are ``prefix``; draws more bits until they decide."""
    while True:
        limits = distribution(std, bits)
        k = bisect.bisect_right(limits, prefix)
        if k < len(limits) and not (k and limits[k - 1] == prefix):
            return k
        prefix = (prefix << 64) | int(rng.integers(2**64, dtype=np.uint64))
        bits += 64
