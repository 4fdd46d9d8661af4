"""Randomised response for labels of which one may be missing: a node whose label is masked answers too, at random.

Of c values the true one is answered with probability p, each other one with q = (1 − p)/(c − 1); a masked label is answered
by each value with probability 1/c. Under node-zero-out the neighbouring world masks the label, so what must be hidden is
one true label against a uniform answer, which costs less than one label against another:

    p/(1/c) = cp ≤ e^ε   and   (1/c)/q = (c − 1)/(c(1 − p)) ≤ e^ε,   so   p = min(e^ε/c, 1 − (c − 1)e^{−ε}/c).

Under node-replace two labels are compared, p/q ≤ e^ε, and p = e^ε/(e^ε + c − 1) (Warner 1965; k-ary: Kairouz et al. 2016); a
masked label is then covered as well, for p/(1/c) and (1/c)/q lie between e^{−ε} and e^ε.

**Guarantee.** ε-DP for the label of one node (a node's answer depends on its own label only; whether it answers is public),
for the stated relation. Price it as ``PureDP(epsilon)``.

**Edge cases.** epsilon not in (0, ∞) or fewer than 2 values → ``PrivacyError``. A value outside −2 … c − 1, or one that is
not whole → ``UnboundedValueError``. −1 is a masked label. −2 is no node at all (public): its answer is ``NOBODY``.

>>> round(MaskedResponse(2.0, 6, replaces=False).keep, 3), round(MaskedResponse(2.0, 6, replaces=True).keep, 3)
(0.887, 0.596)
"""

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms.noise import Mechanism
from fedgraph.privacy.sensitivity import require_positive

MASKED, ABSENT = -1, -2
NOBODY = 0  # the answer of an absent node; a label k is answered as k + 1, so that answers of disjoint clients can be added


@dataclass(frozen=True)
class MaskedResponse(Mechanism):
    """Integers −2 … num_values − 1 become answers 1 … num_values, or 0 where nobody is; see the module."""

    epsilon: float
    num_values: int
    replaces: bool

    def __post_init__(self) -> None:
        require_positive("MaskedResponse.epsilon", self.epsilon)
        if self.num_values < 2:
            raise PrivacyError(f"MaskedResponse.num_values must be at least 2, found {self.num_values}")

    @property
    def keep(self) -> float:
        """p, rounded down by one part in 10¹² so that rounding never makes the answer surer than priced."""
        c, rare = self.num_values, math.exp(-self.epsilon)
        if self.replaces:
            p = 1.0 / (1.0 + (c - 1) * rare)
        else:
            p = 1.0 - (c - 1) * rare / c
            if self.epsilon < math.log(c):
                p = min(p, math.exp(self.epsilon) / c)
        return p * (1 - 1e-12)

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not np.isin(value, np.arange(ABSENT, self.num_values)).all():
            raise UnboundedValueError(f"labels must be whole numbers in {ABSENT} … {self.num_values - 1}")
        labels = value.astype(np.int64)
        uniform = rng.integers(self.num_values, size=labels.shape)
        other = rng.integers(self.num_values - 1, size=labels.shape)
        other = other + (other >= labels)
        answered = np.where(rng.random(labels.shape) < self.keep, labels, other)
        answered = np.where(labels == MASKED, uniform, answered) + 1
        return np.where(labels == ABSENT, NOBODY, answered)

    @property
    def words(self) -> str:
        return f"randomised response over {self.num_values} labels at ε = {self.epsilon:.6g}, a masked label answers at random"
