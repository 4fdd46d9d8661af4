"""A release of one vector per graph instead of one row per node: what is compared is then a histogram of classes.

    release: mean     the mean of the embedding's rows: with softmax rows, how the shared model divides the graph's nodes
    release: labels   how the graph's known node labels divide among the classes; no model is needed

Either is a point of the simplex, and replacing the graph may make it any other one.

    gaussian    + N(0, s²), Δ₂ = √2 (``SimplexRows(1)``)                                        the multiplier is s/√2
    multi-bit   m of the c entries, one bit each at ε/m (``MultiBitEncoder`` on one row)         pure ε
    response    the largest class alone, through c-ary randomised response                      pure ε

**Guarantee.** One release of the unit ``graph``; for the unit ``node``, each client that holds the node is priced whole.

**Edge cases.** ε = ∞ → in clear, ε = ∞. A graph without any known label sends the uniform vector (``labels``).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedgraph.privacy.claims.local import sampled_entries
from fedgraph.privacy.events import Event, Gaussian, MultiBit, RandomizedResponse, Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, KaryResponse, Mechanism, MultiBitEncoder
from fedgraph.privacy.sensitivity import Bound, Box, SimplexRows, sensitivity_l2
from fedgraph.privacy.units import Relation

ReleaseKind = Literal["rows", "mean", "labels"]
PooledBy = Literal["gaussian", "multi-bit", "response"]

IN_CLEAR = Disclose("no noise: the graph's own vector")


@dataclass(frozen=True)
class Pooled:
    """Settings of the release. by: the mechanism. epsilon: of one release (∞: in clear). mu: what it may spend of μ, where it
    is Gaussian. width: c. bits: m, or None for the rule of LPGNN.
    """

    by: PooledBy
    epsilon: float
    mu: float
    width: int
    bits: int | None = None

    def of_client(self) -> tuple[Bound, Mechanism, Event]:
        """Bound, mechanism and price of one graph's release."""
        simplex = SimplexRows(1)
        if math.isinf(self.epsilon):
            return simplex, IN_CLEAR, Unprotected("the vector is sent without noise")
        if self.by == "gaussian":
            std = sensitivity_l2(simplex, Relation.GRAPH_REPLACE) / self.mu
            return simplex, GaussianNoise(std), Gaussian(1.0 / self.mu)
        if self.by == "response":
            return Box(0, self.width - 1), KaryResponse(self.epsilon, self.width), RandomizedResponse(self.epsilon, self.width)
        m = min(self.bits, self.width) if self.bits is not None else sampled_entries(self.epsilon, self.width)
        return simplex, MultiBitEncoder(self.epsilon / m, m), MultiBit(self.epsilon / m, m)

    def value(self, vector: np.ndarray) -> np.ndarray:
        """What is handed to the desk, of a vector float64 [c]: itself as one row, or its largest class."""
        if self.by == "response" and math.isfinite(self.epsilon):
            return np.array([int(vector.argmax())], dtype=np.int64)
        return np.asarray(vector, dtype=np.float64)[None, :]

    def read(self, received: np.ndarray) -> np.ndarray:
        """The server's estimate, float64 [1, c]: bits made unbiased, a response as one 1. Post-processing."""
        mechanism = self.of_client()[1]
        if isinstance(mechanism, MultiBitEncoder):
            return np.asarray(mechanism.rectify(received))
        if isinstance(mechanism, KaryResponse):
            return np.eye(self.width)[received]
        return np.asarray(received)


def histogram(labels: np.ndarray, width: int) -> np.ndarray:
    """float64 [c]: shares of the classes among labels int64 [n], −1 where unknown; uniform where none is known."""
    counts = np.bincount(labels[labels >= 0], minlength=width).astype(np.float64)
    return counts / counts.sum() if counts.sum() else np.full(width, 1.0 / width)
