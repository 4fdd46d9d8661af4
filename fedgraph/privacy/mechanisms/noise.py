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

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import (
    CheckedFields,
    ChoicesField,
    CountField,
    PositiveField,
    require_event_interval,
    require_finite,
)
from fedgraph.privacy.mechanisms import normals

_LEAST_STEPS = 8  # units in the last place of the largest entry that noise must span


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
            noise = normals.standard(value.size, rng).reshape(value.shape)
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
