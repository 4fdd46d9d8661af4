"""The multi-bit encoder, sent compactly: of each row only the m chosen entries leave, as (column, bit).

    P(+1) = 1/(e^a + 1) + (x − low)/(high − low) · (e^a − 1)/(e^a + 1),   m columns per row, uniform without replacement

The law is that of ``mechanisms.MultiBitEncoder`` (Sajadmanesh & Gatica-Perez 2021, Algorithm 1), but no array as large as
the features is drawn or sent: graphs with 10⁵ nodes and thousands of features fit.

**Guarantee.** Columns are data-independent, each bit has likelihood ratio at most e^a: a node whose m bits are sent spends
m·a, pure (``events.MultiBit``), and rows of other nodes do not depend on it.

**Edge cases.** Entries outside [low, high] are clamped; m > d sends all d; NaN or ±inf → ``UnboundedValueError``.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy.mechanisms.noise import Mechanism
from fedgraph.privacy.sensitivity import require_count, require_finite, require_positive

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SampledBits(Mechanism):
    """[n, d] in [low, high] → int64 [n, m]: 2·column + bit for each of the m chosen columns of a row."""

    epsilon_per_bit: float
    num_sampled: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        require_positive("SampledBits.epsilon_per_bit", self.epsilon_per_bit)
        require_count("SampledBits.num_sampled", self.num_sampled)
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise PrivacyError(f"SampledBits needs finite low < high, found [{self.low}, {self.high}]")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.ndim != 2 or value.shape[1] < 1:
            raise PrivacyError(f"the multi-bit encoder needs a matrix, found shape {value.shape}")
        require_finite(value)
        n, d = value.shape
        columns = distinct_columns(n, d, min(self.num_sampled, d), rng)
        x = np.take_along_axis(value, columns, axis=1).astype(np.float64)
        unit = (np.clip(x, self.low, self.high) - self.low) / (self.high - self.low)
        strength = math.tanh(self.epsilon_per_bit / 2)  # (e^a − 1)/(e^a + 1), stable for every a
        plus = rng.random(columns.shape) < (1 - strength) / 2 + unit * strength
        return np.asarray(2 * columns + plus)

    def rectify(self, sent: np.ndarray, num_columns: int) -> npt.NDArray[np.float64]:
        """Unbiased estimate [n, d] of the value: d(high − low)/(2m) · (e^a + 1)/(e^a − 1) · x* + (high + low)/2."""
        factor, shift = self.rectifier(num_columns)
        return np.asarray(signs(sent, num_columns).toarray() * factor + shift)

    def rectifier(self, num_columns: int) -> tuple[float, float]:
        """(factor, shift) of the unbiased estimate from x*."""
        factor = num_columns * (self.high - self.low) / (2 * min(self.num_sampled, num_columns))
        return factor / math.tanh(self.epsilon_per_bit / 2), (self.high + self.low) / 2

    @property
    def words(self) -> str:
        return f"multi-bit encoder, {self.num_sampled} entries of each row, ε = {self.epsilon_per_bit:.6g} per bit"


def distinct_columns(num_rows: int, num_columns: int, count: int, rng: np.random.Generator) -> Integers:
    """int64 [num_rows, count]: uniform without replacement in each row. Rows with a repetition are drawn again, whole."""
    if 4 * count > num_columns:
        keys = rng.random((num_rows, num_columns))
        return np.asarray(np.argpartition(keys, count - 1, axis=1)[:, :count], dtype=np.int64)
    found: Integers = rng.integers(num_columns, size=(num_rows, count))
    while True:
        ordered = np.sort(found, axis=1)
        repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if repeated.size == 0:
            return found
        found[repeated] = rng.integers(num_columns, size=(repeated.size, count))


def signs(sent: np.ndarray, num_columns: int) -> sp.csr_array:
    """x*: CSR [n, d] with +1 or −1 where a bit was sent."""
    n, m = sent.shape
    data = np.where(sent.ravel() % 2 == 1, np.float32(1), np.float32(-1))
    return sp.csr_array((data, sent.ravel() // 2, np.arange(0, n * m + 1, m)), shape=(n, num_columns))
