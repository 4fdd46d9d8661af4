"""Mechanisms: each randomises a bounded value, and accountants price it.

Every ``apply`` takes a bounded, finite value and a numpy generator, and never changes its input. Noise
is floating-point; the known attack on floating-point noise (Mironov 2012) is outside the model, and
every report says so.

**Edge cases.**

    NaN or ±inf in the value                     UnboundedValueError, from every noisy mechanism
    noise finer than the value's own precision   UnboundedValueError (std or scale below 8 units in the last place of the
                                                 largest entry: rounding would eat the noise)
    std, scale, epsilon that is 0, negative,
    NaN or infinite                              PrivacyError when the mechanism is built
    k or num_sampled below 1, num_values below 2 PrivacyError when the mechanism is built
    a category outside 0 … num_values − 1        UnboundedValueError
    fewer candidates than k, not a matrix        PrivacyError
    an entry outside [low, high] (multi-bit)     clamped
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedgraph.compiled import compiled, compiled_constant, compiled_types
from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import (
    CheckedFields,
    ChoicesField,
    CountField,
    PositiveField,
    require_event_interval,
    require_finite,
)

_LEAST_STEPS = 8  # units in the last place of the largest entry that noise must span
_BLOCK = 65_536  # numbers drawn at a time, so that words and results stay in the cache; below it numpy is as fast
_RARE = np.uint64(1 << 48)  # words below it have 16 leading zeros
_LN2 = math.log(2.0)
_TURN = np.float32(math.pi / 2**31)


def _require_resolved(value: np.ndarray, scale: float) -> None:
    """``UnboundedValueError`` where adding noise of this scale (data units) to ``value`` would be rounded away.

    It stops the whole run, for the operator to see. That it stopped depends on the value and is covered by no ε.
    """
    if not value.size:
        return
    largest = max(abs(value.max()), abs(value.min()))
    step = np.spacing(largest if np.issubdtype(value.dtype, np.floating) else np.float64(largest))
    if scale < _LEAST_STEPS * step:
        raise UnboundedValueError(
            f"noise of scale {scale:.3g} cannot be added to values as large as {largest:.3g} in {value.dtype}: neighbouring "
            f"numbers are {step:.3g} apart there, and at least {_LEAST_STEPS} times that is needed"
        )


@dataclass(frozen=True)
class NoiseMechanism(CheckedFields):
    """Abstract base of all mechanisms."""

    phrase: ClassVar[str] = ""  # for the ledger and the report, with names of fields in braces

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The randomised value; ``value`` itself is not changed.

        Args:
            value: bounded and finite, of the shape that the mechanism is for.
            rng: the client's noise stream.

        Raises:
            UnboundedValueError: NaN, ±∞, an entry out of range, or noise that rounding would eat.
            PrivacyError: the shape is another one, or the class does not implement ``apply``.
        """
        raise PrivacyError(f"{type(self).__name__} does not implement apply")

    def of_many(self, shares: int) -> NoiseMechanism:
        """The mechanism that, applied to the sum of several bounded values, has the law of the sum of their noisy values.

        shares: number of values, ≥ 1. ``PrivacyError``: there is no such mechanism.
        """
        raise PrivacyError(f"the sum of {shares} values after {self.words} is not one draw of a known law")

    @property
    def words(self) -> str:
        """The mechanism as a phrase, for the ledger and the report."""
        if not self.phrase:
            raise PrivacyError(f"{type(self).__name__} has no phrase")
        return self.phrase.format(**vars(self))


@dataclass(frozen=True)
class GaussianNoise(NoiseMechanism):
    """value + N(0, std²) per entry, drawn in the value's own precision."""

    std: PositiveField  # in data units, finite and > 0
    phrase: ClassVar[str] = "Gaussian noise of standard deviation {std:.6g}"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        require_finite(value)
        _require_resolved(value, self.std)
        if value.dtype == np.float32:
            noise = _normals(value.size, rng).reshape(value.shape)
        else:
            noise = rng.standard_normal(value.shape)
        noise *= noise.dtype.type(self.std)
        noise += value
        return noise

    def of_many(self, shares: int) -> GaussianNoise:
        """Independent normals add up to one with ``shares`` times the variance."""
        return GaussianNoise(self.std * math.sqrt(shares))


@dataclass(frozen=True)
class SymmetricLaplaceNoise(NoiseMechanism):
    """value + √W N(0, std²) per entry, one secret W ~ Exp(1) for all: symmetric multivariate Laplace.

    Small draws of W give little noise. Only the usual noise is checked to span several steps of the value's precision.
    """

    std: PositiveField  # in data units, finite and > 0
    phrase: ClassVar[str] = "symmetric multivariate Laplace noise of standard deviation {std:.6g}"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        require_finite(value)
        _require_resolved(value, self.std)
        scale = self.std * math.sqrt(rng.exponential())
        return np.asarray(value.astype(np.float64) + scale * rng.standard_normal(value.shape))


@dataclass(frozen=True)
class LaplaceNoise(NoiseMechanism):
    """value + Laplace(scale) per entry."""

    scale: PositiveField  # in data units, finite and > 0
    phrase: ClassVar[str] = "Laplace noise of scale {scale:.6g}"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        require_finite(value)
        _require_resolved(value, self.scale)
        return value + rng.laplace(scale=self.scale, size=value.shape)


@dataclass(frozen=True)
class GumbelTopK(NoiseMechanism):
    """Indices of the largest of value + Gumbel(scale), per row of a [rows, candidates] value: int64 [rows, k], best first.

    **Guarantee.** With scale 2Δ/ε₀ each pick is ε₀-bounded-range, where the candidate set is fixed and public (Durfee & Rogers
    2019, one-shot form).
    """

    k: CountField  # how many, ≥ 1
    scale: PositiveField  # in data units, finite and > 0
    phrase: ClassVar[str] = "one-shot Gumbel top-{k} of scale {scale:.6g}"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.ndim != 2 or value.shape[1] < self.k:
            raise PrivacyError(f"top-{self.k} needs rows of at least {self.k} candidates, found shape {value.shape}")
        require_finite(value)
        _require_resolved(value, self.scale)
        noisy = value + rng.gumbel(scale=self.scale, size=value.shape)
        top = np.argpartition(-noisy, self.k - 1, axis=1)[:, : self.k]
        order = np.argsort(-np.take_along_axis(noisy, top, axis=1), axis=1)
        return np.take_along_axis(top, order, axis=1)


@dataclass(frozen=True)
class KaryResponse(NoiseMechanism):
    """Integers, each kept with probability e^ε/(e^ε + num_values − 1), else uniform among the others."""

    epsilon: PositiveField  # ε, finite and > 0
    num_values: ChoicesField  # how many values there are, ≥ 2; they are 0 … num_values − 1
    phrase: ClassVar[str] = "randomised response over {num_values} values at ε = {epsilon:.6g} each"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not np.isin(value, np.arange(self.num_values)).all():
            raise UnboundedValueError(f"randomised response needs whole numbers in 0 … {self.num_values - 1}")
        keep = rng.random(value.shape) < 1.0 / (1.0 + (self.num_values - 1) * math.exp(-self.epsilon))
        other = rng.integers(self.num_values - 1, size=value.shape)
        return np.where(keep, value, other + (other >= value))


def chance_of_bit(value: np.ndarray, low: float, high: float, epsilon_per_bit: float) -> np.ndarray:
    """P(+1) of the bit that each entry sends: 1/(e^a + 1) + (x − low)/(high − low) · (e^a − 1)/(e^a + 1).

    value: x, any shape; clamped into [low, high]. low: the least entry. high: the largest entry. epsilon_per_bit: a > 0.
    """
    unit = (np.clip(value, low, high) - low) / (high - low)
    # (e^a − 1)/(e^a + 1) = tanh(a/2) and 1/(e^a + 1) = (1 − tanh(a/2))/2: stable for every a.
    strength = math.tanh(epsilon_per_bit / 2)
    return np.asarray((1 - strength) / 2 + unit * strength)


@dataclass(frozen=True)
class MultiBitEncoder(NoiseMechanism):
    """The multi-bit encoder (Jin & Chen, Algorithm 1; Sajadmanesh & Gatica-Perez 2021, LPGNN).

    A value in [low, high]^(n×h) becomes a matrix of −1, 0, +1. Some entries of each row, or of the whole matrix, are chosen by
    data-independent coins, and each of them sends one bit:

        P(+1) = 1/(e^a + 1) + (x − low)/(high − low) · (e^a − 1)/(e^a + 1),      a = epsilon_per_bit

    **Guarantee.** The likelihood ratio of one bit is at most e^a; of a unit whose m bits are sent, e^(m·a).

    Raises:
        PrivacyError: a number out of its range.
    """

    epsilon_per_bit: PositiveField  # a, finite and > 0
    num_sampled: CountField  # m ≥ 1, chosen entries; all where there are fewer
    in_total: bool = False  # of the whole matrix; else of each row
    low: float = 0.0  # the least entry; smaller ones are clamped
    high: float = 1.0  # the largest entry, above ``low``; larger ones are clamped

    def __post_init__(self) -> None:
        super().__post_init__()
        require_event_interval("MultiBitEncoder", self.low, self.high)

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.ndim != 2 or value.shape[1] < 1:
            raise PrivacyError(f"the multi-bit encoder needs a matrix, found shape {value.shape}")
        require_finite(value)
        chosen = self._choose(value.shape, rng)
        plus = rng.random(value.shape) < chance_of_bit(value, self.low, self.high, self.epsilon_per_bit)
        return np.where(chosen, np.where(plus, 1.0, -1.0), 0.0)

    def _choose(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        n, h = shape
        keys = rng.random((1, n * h) if self.in_total else (n, h))
        count = min(self.num_sampled, keys.shape[1])
        chosen = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(chosen, np.argpartition(keys, count - 1, axis=1)[:, :count], True, axis=1)
        return chosen.reshape(n, h)

    def rectify(self, encoded: np.ndarray) -> np.ndarray:
        """The unbiased estimate of the value (post-processing).

            x' = (N(high − low) / (2m)) · (e^a + 1)/(e^a − 1) · x* + (high + low)/2

        N is the number of entries of which m were chosen (per row: N = h; in total: N = n·h).

        Args:
            encoded: x* [n, h], what ``apply`` made.
        """
        available = encoded.size if self.in_total else encoded.shape[1]
        m = min(self.num_sampled, available)
        scale = available * (self.high - self.low) / (2 * m) / math.tanh(self.epsilon_per_bit / 2)
        return encoded * scale + (self.high + self.low) / 2

    @property
    def words(self) -> str:
        where = "of the whole matrix" if self.in_total else "of each row"
        return f"multi-bit encoder, {self.num_sampled} entries {where}, ε = {self.epsilon_per_bit:.6g} per bit"


@dataclass(frozen=True)
class Disclose(NoiseMechanism):
    """The value itself, in clear. Its event is ``Unprotected``: ε = ∞."""

    reason: str  # why, for reports
    phrase: ClassVar[str] = "sent in clear: {reason}"

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.array(value)

    def of_many(self, shares: int) -> Disclose:
        return self


# ------------------------------------------------------------------------------------------- normal numbers in single precision


def _normals(count: int, rng: np.random.Generator) -> np.ndarray:
    """Independent N(0, 1) numbers, a function of the generator's state and of their number alone.

    numpy's own take half the time of a noisy gradient step. These are Box & Muller's pairs (A Note on the Generation of Random
    Normal Deviates, 1958) from the words of numpy's generator, in one compiled loop without ``fastmath``: the same bits on
    every machine. The usual weakness of that method is its tail (a 24-bit uniform number ends at 5.8 σ, a 32-bit one at 6.7 σ).
    Here a word whose first 16 bits are zero gets 53 more random bits, so radii reach 10.8 σ, and steps between neighbouring
    radii stay below 10⁻⁶ everywhere but near zero.

    count: how many. rng: random stream. Returns float32 [count].
    """
    if count < _BLOCK:
        return rng.standard_normal(count, dtype=np.float32)
    out = np.empty(count + count % 2, dtype=np.float32)
    for first in range(0, out.size, _BLOCK):
        block = out[first : first + _BLOCK]
        words = rng.integers(0, 2**64 - 1, size=block.size // 2, dtype=np.uint64, endpoint=True)
        _pairs(words, block)
        _lengthen(words, block, rng)
    return out[:count]


@compiled(compiled_types.void(compiled_constant(compiled_types.uint64), compiled_types.float32[::1]), reassociate=False)
def _pairs(words: np.ndarray, out: np.ndarray) -> None:
    """Word k → the pair (out[k], out[k + m]), m words. High 32 bits: radius. 30 low bits: angle within ±π/4; 2: which quarter.

    ln u by the series of artanh after taking the exponent out, relative error below 10⁻⁸; sine and cosine by Taylor
    series in single precision.
    """
    half = words.size
    one, half_one = np.float32(1), np.float32(0.5)
    sixth, s5, s7, s9 = np.float32(-1 / 6), np.float32(1 / 120), np.float32(-1 / 5040), np.float32(1 / 362880)
    c4, c6, c8 = np.float32(1 / 24), np.float32(-1 / 720), np.float32(1 / 40320)
    for k in range(half):
        word = words[k]
        high = np.float64(np.float64(np.uint32(word >> np.uint64(32))) + 0.5)
        bits = np.float64(high).view(np.int64)
        exponent = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)  # the mantissa then lies within [√½, √2)
        mantissa = np.int64(bits - (exponent << np.int64(52))).view(np.float64)
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        log = 2.0 * s * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9))))) + (exponent - 32) * _LN2
        radius = np.float32(math.sqrt(-2.0 * log))
        angle = (np.float32(np.int32(word & np.uint64(0x3FFFFFFF)) - np.int32(0x20000000)) + half_one) * _TURN
        q = angle * angle
        sine = angle * (one + q * (sixth + q * (s5 + q * (s7 + q * s9))))
        cosine = one + q * (-half_one + q * (c4 + q * (c6 + q * c8)))
        radius = radius if (word & np.uint64(0x40000000)) else -radius
        swap = (word & np.uint64(0x80000000)) != 0
        out[k] = radius * (sine if swap else cosine)
        out[half + k] = radius * (cosine if swap else sine)


def _lengthen(words: np.ndarray, out: np.ndarray, rng: np.random.Generator) -> None:
    """Give the longest radii (one pair in 65,536) a uniform number of 85 instead of 32 bits, in place."""
    rare = np.flatnonzero(words < _RARE)
    high = (words[rare] >> np.uint64(32)).astype(np.float64)
    fine = np.log((high + 1.0 - rng.random(rare.size)) / 2.0**32)
    factor = np.sqrt(fine / np.log((high + 0.5) / 2.0**32))
    out[rare] = out[rare] * factor
    out[rare + words.size] = out[rare + words.size] * factor
