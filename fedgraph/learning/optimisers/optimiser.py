"""Adam and plain descent on a flat vector, in place and in one pass: what follows a noised gradient.

Both read released gradients only, so they are post-processing: they cost no privacy and need no proof.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fedgraph.compiled import compiled, constant
from fedgraph.compiled import types as nt

_SINGLES, _VECTOR = constant(nt.float32), nt.Array(nt.float32, 1, "C")


@dataclass(eq=False)
class Optimiser:
    """Parameters that follow gradients. vector: float32 [p], copied. rule: ``adam`` (Kingma & Ba 2015) or ``sgd``.

    ``first``, ``second``: Adam's moment estimates [p]; ``steps``: how many gradients have been seen.
    """

    vector: np.ndarray
    rate: float
    rule: Literal["adam", "sgd"] = "adam"
    first: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    second: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    steps: int = 0

    def __post_init__(self) -> None:
        self.vector = np.array(self.vector, np.float32)
        empty = self.first.size == 0
        self.first = np.zeros_like(self.vector) if empty else np.array(self.first, np.float32)
        self.second = np.zeros_like(self.vector) if empty else np.array(self.second, np.float32)

    def step(self, gradient: np.ndarray, scale: float) -> None:
        """Follow ``scale``·gradient ([p], only read, as float32)."""
        gradient = gradient.astype(np.float32, copy=False)
        self.steps += 1
        if self.rule == "sgd":
            self.vector -= np.float32(self.rate * scale) * gradient
            return
        undo_first, undo_second = 1 / (1 - 0.9**self.steps), 1 / (1 - 0.999**self.steps)
        _adam(gradient, scale, self.rate * undo_first, undo_second, self.vector, self.first, self.second)


@compiled(nt.void(_SINGLES, nt.float32, nt.float32, nt.float32, _VECTOR, _VECTOR, _VECTOR))
def _adam(gradient, scale, rate, undo_second, vector, first, second):  # type: ignore[no-untyped-def]
    """One pass over all four arrays; β₁ = 0.9, β₂ = 0.999, ε = 1e-8."""
    for i in range(vector.size):
        g = scale * gradient[i]
        first[i] = np.float32(0.9) * first[i] + np.float32(0.1) * g
        second[i] = np.float32(0.999) * second[i] + np.float32(0.001) * g * g
        vector[i] -= rate * first[i] / (np.sqrt(undo_second * second[i]) + np.float32(1e-8))
