"""What a client puts into a sum of whole numbers modulo 2^bits: scaled, rounded, and (with noise) its share of the noise.

**Noise**: the discrete Gaussian on the whole numbers, drawn exactly: P(k) = exp(−k²/(2σ²)) / Σ_j exp(−j²/(2σ²)).

The law is the stated one, up to the random bits themselves (``docs/proofs.md``).

**Edge cases.** σ < ½ or above ``MOST_SHARE_STD`` → ``PrivacyError``; a generator that gives equal bits for ever does not
happen.

**Shares.** A *step* is what one unit of the whole numbers is worth in data units. The modulus is chosen so that the sum of all
clients fits (``integer_share_bits``); were it exceeded, the sum would be wrong, not less private: the modulus is taken of a
noisy sum.

**Edge cases.** NaN or ±inf → ``UnboundedValueError``; a value too large for its place (2^46 steps, or ``largest`` of the share
without noise) → ``UnboundedValueError``; step ≤ 0, bits outside 2 … 64 → ``PrivacyError``.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fedgraph.compiled import compiled, compiled_constant, compiled_types
from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting.discrete_gaussian import DISCRETE_FRACTION
from fedgraph.privacy.fields import PositiveField, require_finite
from fedgraph.privacy.mechanisms.noise import NoiseMechanism

LEAST_SHARE_STD, MOST_SHARE_STD = 0.5, 2.0**13
_WORD = 31  # random bits of the first comparison; one more is the sign


@lru_cache(maxsize=32)
def _share_distribution(std: float, bits: int) -> Sequence[int]:
    """⌊2^bits · P(|X| ≤ k)⌋ for k = 0, 1, … up to the last value that ``bits`` bits can tell from certainty.

    Raises:
        PrivacyError: a std outside ``LEAST_SHARE_STD`` … ``MOST_SHARE_STD`` steps.
    """
    if not LEAST_SHARE_STD <= std <= MOST_SHARE_STD:
        raise PrivacyError(f"a discrete Gaussian needs {LEAST_SHARE_STD:g} ≤ std ≤ {MOST_SHARE_STD:g} steps, found {std}")
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
class _ShareTable:
    """``_share_distribution`` for the compiled loop.

    Attributes:
        limits: uint32, its numbers at 31 bits.
        starts: int32, for the leading bits of a word the first value that they allow.
        shift: bits of a word that are not leading ones.
    """

    limits: np.ndarray
    starts: np.ndarray
    shift: int


@lru_cache(maxsize=8)
def _share_table(std: float) -> _ShareTable:
    """The table of this ``std``, remembered."""
    limits = np.array([min(v, 2**_WORD - 1) for v in _share_distribution(std, _WORD)], dtype=np.uint32)
    leading = max(8, min(18, math.ceil(math.log2(std)) + 3))
    shift = _WORD - leading
    starts = np.searchsorted(limits, np.arange(2**leading, dtype=np.uint32) << np.uint32(shift), side="right")
    return _ShareTable(limits, starts.astype(np.int32), shift)


@compiled(
    compiled_types.void(
        compiled_constant(compiled_types.uint32),
        compiled_constant(compiled_types.uint32),
        compiled_constant(compiled_types.int32),
        compiled_types.int64,
        compiled_types.int64[::1],
    )
)
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


def _draw_shares(std: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent discrete Gaussian numbers.

    Args:
        std: σ, in ``LEAST_SHARE_STD`` … ``MOST_SHARE_STD`` steps.
        size: how many.
        rng: noise stream.

    Returns:
        int64 [size].

    Raises:
        PrivacyError: a std out of that range.
    """
    words = rng.integers(2**64, size=(size + 1) // 2, dtype=np.uint64).view(np.uint32)[:size]
    made, out = _share_table(std), np.empty(size, dtype=np.int64)
    _invert(words, made.limits, made.starts, made.shift, out)
    for i in np.flatnonzero(out == -(2**62)):
        value = _decided_magnitude(int(words[i]) >> 1, _WORD, std, rng)
        out[i] = value if int(words[i]) & 1 else -value
    return out


def _decided_magnitude(prefix: int, bits: int, std: float, rng: np.random.Generator) -> int:
    """|X| for a uniform number whose first ``bits`` bits are ``prefix``; draws more bits until they decide."""
    while True:
        limits = _share_distribution(std, bits)
        k = bisect.bisect_right(limits, prefix)
        if k < len(limits) and not (k and limits[k - 1] == prefix):
            return k
        prefix = (prefix << 64) | int(rng.integers(2**64, dtype=np.uint64))
        bits += 64


_MOST_STEPS = 2.0**46  # so that a value in parts of a step is exact in 63 bits


def integer_share_type(bits: int) -> type[np.unsignedinteger]:
    """The smallest whole number type with at least ``bits`` bits, whose sums wrap at a multiple of 2^bits."""
    return next(kind for size, kind in ((16, np.uint16), (32, np.uint32), (64, np.uint64)) if bits <= size)


def integer_share_bits(largest_sum: float, std: float, shares: int, draws: float) -> int:
    """The least modulus, in bits, that the sum stays below in size.

    Noise exceeds its place in one of all sums with chance at most 2^−40 (a discrete Gaussian is sub-Gaussian with its σ).

    Args:
        largest_sum: of the signal, in steps, a certain bound.
        std: of the noise of one share, in steps; 0: none.
        shares: how many there are in a sum.
        draws: noisy sums in the whole run.
    """
    reach = std * math.sqrt(2 * shares * (41 * math.log(2) + math.log(max(draws, 1.0)))) if std else 0.0
    return max(2, 1 + math.ceil(math.log2(largest_sum + shares + reach + 1)))


@compiled(
    compiled_types.void(
        compiled_constant(compiled_types.float64),
        compiled_types.float64,
        compiled_constant(compiled_types.uint16),
        compiled_types.int64[::1],
    ),
    reassociate=False,
)
def _round(value, scale, coins, out):  # type: ignore[no-untyped-def]
    """⌊(round(value · scale) + coin) / 2^16⌋, where ``scale`` is 2^16 per step."""
    for i in range(len(value)):
        out[i] = (np.int64(np.rint(value[i] * scale)) + np.int64(coins[i])) >> np.int64(16)


@dataclass(frozen=True)
class IntegerShare(NoiseMechanism):
    """Base of what clients put into sums of whole numbers; abstract.

    Attributes:
        step: data units per whole number, finite and > 0.
        bits: of the modulus, 2 … 64.

    Raises:
        PrivacyError: a number out of its range.
    """

    step: PositiveField
    bits: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.bits <= 64:
            raise PrivacyError(f"a modulus has 2 to 64 bits, found {self.bits}: choose a lower resolution")

    def opened(self, total: np.ndarray) -> np.ndarray:
        """What a sum stands for.

        Args:
            total: of shares, modulo 2^bits, in a type without a sign.

        Returns:
            float64, data units, between −2^(bits−1) and 2^(bits−1) steps.
        """
        shift = np.uint64(64 - self.bits)
        return ((total.astype(np.uint64) << shift).view(np.int64) >> shift.astype(np.int64)) * self.step

    def _wrapped(self, whole: np.ndarray) -> np.ndarray:
        """In the type whose sums wrap at a multiple of 2^bits, which is all that ``opened`` needs."""
        return whole.view(np.uint64).astype(integer_share_type(self.bits))

    def _require_fits(self, value: np.ndarray, largest: float) -> None:
        most = max(abs(float(value.max())), abs(float(value.min()))) if value.size else 0.0
        if not math.isfinite(most):
            require_finite(value)
        if most > largest * self.step:
            raise UnboundedValueError(
                f"a value is larger than the {largest * self.step:.3g} that its place in a sum modulo 2^{self.bits} holds"
            )


@dataclass(frozen=True)
class DiscreteGaussianShare(IntegerShare):
    """⌊value/step + U⌋ + N_Z(0, std²) per entry, modulo 2^bits; U uniform in [0, 1), fresh.

    Attributes:
        step: data units per whole number, finite and > 0.
        bits: of the modulus, 2 … 64.
        std: of the noise, in steps, ``LEAST_SHARE_STD`` … ``MOST_SHARE_STD``.
        dimension: entries that are priced; a value with more is refused.

    Raises:
        PrivacyError: a number out of its range.
    """

    std: float
    dimension: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST_SHARE_STD <= self.std <= MOST_SHARE_STD:
            raise PrivacyError(f"discrete Gaussian shares need a std between ½ and 2^13 steps, found {self.std:.6g}")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.size > self.dimension:
            raise UnboundedValueError(f"noise was priced for {self.dimension} entries, found {value.size}")
        whole = self.rounded(value, rng)
        whole += _draw_shares(self.std, value.size, rng).reshape(value.shape)
        return self._wrapped(whole)

    def rounded(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """int64: the value in steps, rounded at random; its mean is the value to within 2^−17 steps."""
        self._require_fits(value, _MOST_STEPS)
        coins = rng.integers(2**64, size=-(-value.size // 4), dtype=np.uint64).view(np.uint16)[: value.size]
        whole = np.empty(value.size, dtype=np.int64)
        exact = np.ascontiguousarray(value, dtype=np.float64).ravel()
        _round(exact, DISCRETE_FRACTION / self.step, coins, whole)
        return whole.reshape(value.shape)

    @property
    def words(self) -> str:
        return (
            f"rounding at random to steps of {self.step:.6g}, discrete Gaussian noise of {self.std:.6g} steps "
            f"({self.std * self.step:.6g}), modulo 2^{self.bits}, behind masks"
        )


@dataclass(frozen=True)
class PlainShare(IntegerShare):
    """round(value/step) modulo 2^bits, without noise: ε = ∞ for who sees the sum.

    Attributes:
        step: data units per whole number, finite and > 0.
        bits: of the modulus, 2 … 64.
        largest: of one value, in steps.
        reason: why there is no noise, for reports.

    Raises:
        PrivacyError: a number out of its range.
    """

    largest: float
    reason: str
    phrase: ClassVar[str] = "sent without noise, in steps of {step:.6g} modulo 2^{bits}, behind masks: {reason}"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._require_fits(value, self.largest)
        return self._wrapped(np.rint(np.asarray(value, dtype=np.float64) / self.step).astype(np.int64))
