"""The banded matrix factor of pfl-research, as its code builds it, and its sensitivity.

It releases C·X + σ·clip·Z with the C of ``numpy.linalg.cholesky(G)``, whose **rows** have norm one, not its columns; that
matrix is priced. Derived in ``docs/how_deployed_noise_is_priced.md``.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fedgraph.privacy.shapes import Array

EXACT = 200  # rounds up to which the matrix is built; beyond it the bounds above stand
MARGIN = 1.01  # pfl's optimiser runs in single precision and stops early; its column norms differ by less than 1 % from ours
_STEPS, _SMALL = 1000, 1e-3


@dataclass(frozen=True)
class Sensitivity:
    """In clips, for ``rounds`` rounds built for ``separation``. column: the largest column norm where the user knows it."""

    rounds: int
    separation: int
    column: float | None = None

    @property
    def exact(self) -> bool:
        """Whether the matrix itself is built."""
        return self.rounds <= EXACT and self.column is None

    @property
    def most(self) -> int:
        """How often a user can take part."""
        return math.ceil(self.rounds / self.separation)

    def once(self) -> float:
        """One participation, at the worst round: the largest column norm."""
        if self.column is not None:
            return self.column
        if self.exact:
            return MARGIN * float(np.linalg.norm(_factor(self.rounds, self.separation), axis=0).max())
        return math.sqrt(min(self._band, self.rounds))

    def apart(self, rounds: int) -> float:
        """The first ``rounds`` rounds, a user's participations at least ``separation`` apart."""
        rounds = min(rounds, self.rounds)
        if self.exact:
            norms = np.square(_factor(self.rounds, self.separation)[:rounds, :rounds]).sum(axis=0)
            # The largest sum of weights at indices at least ``gap`` apart.
            best = np.zeros(len(norms) + 1)
            for i in range(len(norms) - 1, -1, -1):
                best[i] = max(best[i + 1], norms[i] + best[min(i + self.separation, len(norms))])
            return MARGIN * math.sqrt(float(best[0]))
        times = math.ceil(rounds / self.separation)
        return math.sqrt(min(rounds, times * self._band, times * self.once() ** 2))

    def always(self, rounds: int) -> float:
        """The first ``rounds`` rounds, a user in every one."""
        rounds = min(rounds, self.rounds)
        if self.exact:
            factor = _factor(self.rounds, self.separation)[:rounds, :rounds]
            return MARGIN * math.sqrt(float(np.abs(factor.T @ factor).sum()))
        return math.sqrt(rounds * min(self._band, rounds))

    @property
    def _band(self) -> int:
        return max(1, self.separation - 1)


@lru_cache(maxsize=32)
def _factor(rounds: int, separation: int) -> Array:
    """C as pfl makes it: a quasi-Newton search for G from the identity, diagonal fixed at one, then its Cholesky factor.

    rounds ≤ ``EXACT``; separation ≥ 2. A step that does not lower the loss is taken by pfl too (its search repeats it).
    """
    index = np.arange(rounds)
    allowed = (np.abs(index[:, None] - index) < max(1, separation - 1)) & (index[:, None] != index)
    sums = np.tril(np.ones((rounds, rounds)))

    def look(gram: Array) -> tuple[float, Array]:
        half = cho_solve(cho_factor(gram), sums.T)
        return float(np.sum(half * sums.T)), -(half @ half.T) * allowed

    gram = np.eye(rounds)
    loss, slope = look(gram)
    before, last_slope, last_loss, direction = gram, slope, loss, slope
    for _ in range(_STEPS):
        if not np.abs(slope).max() > 0:
            break
        step = 1.0
        for _ in range(30):
            gram = before - step * direction
            try:
                loss, slope = look(gram)
            except (LinAlgError, ValueError):
                step *= 0.25
                continue
            last_loss = min(loss, last_loss)
            break
        if np.abs(slope).max() <= _SMALL:
            break
        moved, turned = gram - before, slope - last_slope
        curve = 1.0 / np.sum(turned * moved)
        along = curve * np.sum(moved * slope)
        scale = np.sum(moved * turned) / np.sum(np.square(turned))
        direction = scale * (slope - curve * np.sum(moved * slope) * turned)
        direction = direction + moved * (along - curve * np.sum(turned * direction))
        before, last_slope = gram, slope
    return np.asarray(np.linalg.cholesky(gram))
