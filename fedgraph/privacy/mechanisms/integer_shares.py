"""What a client puts into a sum of whole numbers modulo 2^bits: scaled, rounded, and (with noise) its share of the noise.

A *step* is what one unit of the whole numbers is worth in data units. The modulus is chosen so that the sum of all clients fits
(``bits_for``); were it exceeded, the sum would be wrong, not less private: the modulus is taken of a noisy sum.

**Edge cases.** NaN or ±inf → ``UnboundedValueError``; a value too large for its place (2^46 steps, or ``largest`` of the share
without noise) → ``UnboundedValueError``; step ≤ 0, bits outside 2 … 64 → ``PrivacyError``.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.compiled import compiled, constant, types
from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting.discrete_gaussian import FRACTION
from fedgraph.privacy.mechanisms import discrete_gaussian
from fedgraph.privacy.mechanisms.noise import Mechanism
from fedgraph.privacy.sensitivity import require_finite, require_positive

_MOST_STEPS = 2.0**46  # so that a value in parts of a step is exact in 63 bits


def word(bits: int) -> type[np.unsignedinteger]:
    """The smallest whole number type with at least ``bits`` bits, whose sums wrap at a multiple of 2^bits."""
    return next(kind for size, kind in ((16, np.uint16), (32, np.uint32), (64, np.uint64)) if bits <= size)


def bits_for(largest_sum: float, std: float, shares: int, draws: float) -> int:
    """The least modulus, in bits, that the sum stays below in size.

    largest_sum: of the signal, in steps, a certain bound. std, shares: of the noise, in steps. draws: noisy sums in the whole
    run; noise exceeds its place in one of them with chance at most 2^−40 (a discrete Gaussian is sub-Gaussian with its σ).
    """
    reach = std * math.sqrt(2 * shares * (41 * math.log(2) + math.log(max(draws, 1.0)))) if std else 0.0
    return max(2, 1 + math.ceil(math.log2(largest_sum + shares + reach + 1)))


@compiled(types.void(constant(types.float64), types.float64, constant(types.uint16), types.int64[::1]), reassociate=False)
def _round(value, scale, coins, out):  # type: ignore[no-untyped-def]
    """⌊(round(value · scale) + coin) / 2^16⌋, where ``scale`` is 2^16 per step."""
    for i in range(len(value)):
        out[i] = (np.int64(np.rint(value[i] * scale)) + np.int64(coins[i])) >> np.int64(16)


@dataclass(frozen=True)
class IntegerShare(Mechanism):
    """Base of both. step: data units per whole number. bits: of the modulus."""

    step: float
    bits: int

    def __post_init__(self) -> None:
        require_positive("IntegerShare.step", self.step)
        if not 2 <= self.bits <= 64:
            raise PrivacyError(f"a modulus has 2 to 64 bits, found {self.bits}: choose a lower resolution")

    def opened(self, total: np.ndarray) -> np.ndarray:
        """float64, data units: what a sum modulo 2^bits stands for, between −2^(bits−1) and 2^(bits−1) steps."""
        shift = np.uint64(64 - self.bits)
        return ((total.astype(np.uint64) << shift).view(np.int64) >> shift.astype(np.int64)) * self.step

    def _wrapped(self, whole: np.ndarray) -> np.ndarray:
        """In the type whose sums wrap at a multiple of 2^bits, which is all that ``opened`` needs."""
        return whole.view(np.uint64).astype(word(self.bits))

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
    """⌊value/step + U⌋ + N_Z(0, std²) per entry, modulo 2^bits; std in steps; U uniform in [0, 1), fresh.

    All clients' ``dimension`` entries are priced; a value with more is refused.
    """

    std: float
    dimension: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not discrete_gaussian.LEAST_STD <= self.std <= discrete_gaussian.MOST_STD:
            raise PrivacyError(f"discrete Gaussian shares need a std between ½ and 2^13 steps, found {self.std:.6g}")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.size > self.dimension:
            raise UnboundedValueError(f"noise was priced for {self.dimension} entries, found {value.size}")
        whole = self.rounded(value, rng)
        whole += discrete_gaussian.draws(self.std, value.size, rng).reshape(value.shape)
        return self._wrapped(whole)

    def rounded(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """int64: the value in steps, rounded at random; its mean is the value to within 2^−17 steps."""
        self._require_fits(value, _MOST_STEPS)
        coins = rng.integers(2**64, size=-(-value.size // 4), dtype=np.uint64).view(np.uint16)[: value.size]
        whole = np.empty(value.size, dtype=np.int64)
        exact = np.ascontiguousarray(value, dtype=np.float64).ravel()
        _round(exact, FRACTION / self.step, coins, whole)
        return whole.reshape(value.shape)

    @property
    def words(self) -> str:
        return (
            f"rounding at random to steps of {self.step:.6g}, discrete Gaussian noise of {self.std:.6g} steps "
            f"({self.std * self.step:.6g}), modulo 2^{self.bits}, behind masks"
        )


@dataclass(frozen=True)
class PlainShare(IntegerShare):
    """round(value/step) modulo 2^bits, without noise: ε = ∞ for who sees the sum. largest: of one value, in steps."""

    largest: float
    reason: str

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._require_fits(value, self.largest)
        return self._wrapped(np.rint(np.asarray(value, dtype=np.float64) / self.step).astype(np.int64))

    @property
    def words(self) -> str:
        return f"sent without noise, in steps of {self.step:.6g} modulo 2^{self.bits}, behind masks: {self.reason}"
