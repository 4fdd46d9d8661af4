"""Local mechanisms: each node sends random bits of its row (multi-bit encoder) and of its label (masked response).

**Rows**: the multi-bit encoder, sent compactly. Of each row only the m chosen entries leave, as (column, bit).

    P(+1) = 1/(e^a + 1) + (x − low)/(high − low) · (e^a − 1)/(e^a + 1),   m columns per row, uniform without replacement

The law is that of ``mechanisms.noise.MultiBitEncoder`` (Sajadmanesh & Gatica-Perez 2021, Algorithm 1), but no array as large as
the features is drawn or sent: graphs with 10⁵ nodes and thousands of features fit.

**Guarantee.** Columns are data-independent, each bit has likelihood ratio at most e^a: a node whose m bits are sent spends
m·a, pure (``events.MultiBit``), and rows of other nodes do not depend on it.

**Edge cases.** Entries outside [low, high] are clamped; m > d sends all d; NaN or ±inf → ``UnboundedValueError``.

**Labels** (``MaskedResponse``): randomised answers to "what is your label?"; a node with a masked label answers too. An answer
is a set S of k of the c values. A masked label answers with every set of k values equally often. A true label y answers with
each set that holds y a times as often, and with each other set b times as often, where f·a + (1 − f)·b = 1 with f = k/c.

    relation        what is hidden            a                                    b
    node-zero-out   y from a masked label     min(e^ε, (1 − (1 − f)e^{−ε})/f)      (1 − f·a)/(1 − f), at least e^{−ε}
    node-replace    y from any other label    e^ε/(f·e^ε + 1 − f)                  a·e^{−ε}

k is the size at which the answers of two labels overlap least (Bhattacharyya). k = 1 is randomised response (Warner 1965;
k-ary: Kairouz et al. 2016), larger sets are subset selection (Ye & Barg 2018).

**Guarantee.** ε-DP for the label of one node (a node's answer depends on its own label only; whether it answers is public),
for the stated relation: every set is at most e^ε times as likely in one world as in the other. Price it as ``PureDP(epsilon)``.

**Edge cases.** epsilon not in (0, ∞) or fewer than 2 values → ``PrivacyError``. A value outside −2 … c − 1, or one that is
not whole → ``UnboundedValueError``. −1 is a masked label. −2 is no node at all (public): its row is 0.

>>> [(r.size, round(r.keep, 3)) for r in (MaskedResponse(2.0, 6, False), MaskedResponse(1.0, 6, False))]
[(1, 0.887), (2, 0.755)]
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import ChoicesField, CountField, PositiveField, require_event_interval, require_finite
from fedgraph.privacy.mechanisms.noise import NoiseMechanism, chance_of_bit

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SampledBits(NoiseMechanism):
    """[n, d] in [low, high] → int64 [n, m]: 2·column + bit for each of the m chosen columns of a row.

    Raises:
        PrivacyError: a number out of its range.
    """

    epsilon_per_bit: PositiveField  # a, finite and > 0
    num_sampled: CountField  # m ≥ 1; all d columns where there are fewer
    low: float = 0.0  # the least entry; smaller ones are clamped
    high: float = 1.0  # the largest entry, above ``low``; larger ones are clamped
    phrase: ClassVar[str] = "multi-bit encoder, {num_sampled} entries of each row, ε = {epsilon_per_bit:.6g} per bit"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_event_interval("SampledBits", self.low, self.high)

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.ndim != 2 or value.shape[1] < 1:
            raise PrivacyError(f"the multi-bit encoder needs a matrix, found shape {value.shape}")
        require_finite(value)
        n, d = value.shape
        columns = _distinct_columns(n, d, min(self.num_sampled, d), rng)
        x = np.take_along_axis(value, columns, axis=1).astype(np.float64)
        plus = rng.random(columns.shape) < chance_of_bit(x, self.low, self.high, self.epsilon_per_bit)
        return np.asarray(2 * columns + plus)

    def rectify(self, sent: np.ndarray, num_columns: int) -> npt.NDArray[np.float64]:
        """Unbiased estimate of the value: d(high − low)/(2m) · (e^a + 1)/(e^a − 1) · x* + (high + low)/2.

        Args:
            sent: int64 [n, m], what ``apply`` made.
            num_columns: d.

        Returns:
            float64 [n, d].
        """
        factor, shift = self.rectifier(num_columns)
        return np.asarray(signs(sent, num_columns).toarray() * factor + shift)

    def rectifier(self, num_columns: int) -> tuple[float, float]:
        """(factor, shift) of the unbiased estimate from x*."""
        factor = num_columns * (self.high - self.low) / (2 * min(self.num_sampled, num_columns))
        return factor / math.tanh(self.epsilon_per_bit / 2), (self.high + self.low) / 2


def _distinct_columns(num_rows: int, num_columns: int, count: int, rng: np.random.Generator) -> _Integers:
    """int64 [num_rows, count]: uniform without replacement in each row. Rows with a repetition are drawn again, whole."""
    if 4 * count > num_columns:
        keys = rng.random((num_rows, num_columns))
        return np.asarray(np.argpartition(keys, count - 1, axis=1)[:, :count], dtype=np.int64)
    found: _Integers = rng.integers(num_columns, size=(num_rows, count))
    while True:
        ordered = np.sort(found, axis=1)
        repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if repeated.size == 0:
            return found
        found[repeated] = rng.integers(num_columns, size=(repeated.size, count))


def signs(sent: np.ndarray, num_columns: int) -> sp.csr_array:
    """x*: which bits were sent, as numbers.

    Args:
        sent: int64 [n, m], what ``SampledBits.apply`` made.
        num_columns: d.

    Returns:
        CSR [n, d] with +1 or −1 where a bit was sent.
    """
    n, m = sent.shape
    data = np.where(sent.ravel() % 2 == 1, np.float32(1), np.float32(-1))
    return sp.csr_array((data, sent.ravel() // 2, np.arange(0, n * m + 1, m)), shape=(n, num_columns))


MASKED_LABEL, ABSENT_LABEL = -1, -2
_ROUNDED = 1e-12  # so much less of the truth, that rounding never makes an answer surer than priced


@dataclass(frozen=True)
class MaskedResponse(NoiseMechanism):
    """Integers −2 … num_values − 1, [n], become int16 [n, num_values]: 1 where a value is named; see the module."""

    epsilon: PositiveField  # ε, finite and > 0
    num_values: ChoicesField  # c ≥ 2
    replaces: bool  # whether two labels are hidden from each other, not only a label from a masked one

    @property
    def size(self) -> int:
        """k, the number of values in an answer."""
        return min(range(1, self.num_values // 2 + 1), key=self._overlap)

    @property
    def keep(self) -> float:
        """Probability that the answer of a true label names it: f·a."""
        return self._keep(self.size)

    @property
    def odds(self) -> tuple[float, float]:
        """(a, b): how many times as likely as from a masked label an answer is, if it names the label, and if not."""
        f = self.size / self.num_values
        return self.keep / f, (1 - self.keep) / (1 - f)

    @property
    def spill(self) -> float:
        """Probability that the answer of a true label names one given other value."""
        k = self.size
        return (self.keep * (k - 1) + (1 - self.keep) * k) / (self.num_values - 1)

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not np.isin(value, np.arange(ABSENT_LABEL, self.num_values)).all():
            raise UnboundedValueError(f"labels must be whole numbers in {ABSENT_LABEL} … {self.num_values - 1}")
        labels = value.astype(np.int64)
        order, true = rng.random((labels.size, self.num_values)), np.flatnonzero(labels >= 0)
        order[true, labels[true]] = np.where(rng.random(true.size) < self.keep, -1.0, 2.0)  # named first, or last
        named = np.zeros(order.shape, dtype=np.int16)
        np.put_along_axis(named, np.argpartition(order, self.size - 1, axis=1)[:, : self.size], 1, axis=1)
        named[labels == ABSENT_LABEL] = 0
        return named

    @property
    def words(self) -> str:
        answer = "one label" if self.size == 1 else f"{self.size} labels"
        drawn = f"randomised response, {answer} of {self.num_values} named, at ε = {self.epsilon:.6g}"
        return f"{drawn}; a masked label answers at random"

    def _keep(self, size: int) -> float:
        f, rare = size / self.num_values, math.exp(-self.epsilon)
        if self.replaces:
            return f / (f + (1 - f) * rare) * (1 - _ROUNDED)
        most = 1.0 - (1 - f) * rare
        return (min(most, f * math.exp(self.epsilon)) if self.epsilon < -math.log(f) else most) * (1 - _ROUNDED)

    def _overlap(self, size: int) -> float:
        """Σ over sets of √(P(set | one label)·P(set | another)); 1 where answers tell nothing."""
        c, k, keep = self.num_values, size, self._keep(size)
        a, b = keep * c / k, (1 - keep) * c / (c - k)
        both, one, none = k * (k - 1), 2 * k * (c - k), (c - k) * (c - k - 1)
        return (both * a + one * math.sqrt(a * b) + none * b) / (c * (c - 1))
