"""How Gromov-Wasserstein discrepancies are solved, as a scenario says it; and by how much the local minima vary.

The problem is not convex: a value is the local minimum at which one descent ended, or the best of several (``quality:
careful``).
``variation`` solves a small sample of pairs both ways, so that every report can say what one descent misses.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from fedgraph.comparison import gromov
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solving import LocalMinima
from fedgraph.documents.settings import Settings

RESTARTS, KICKS = 8, 40  # of the careful search, beside the usual start
DESCENTS = 1 + RESTARTS + KICKS
SAMPLED = 100  # pairs that are solved both ways

Solver = Literal["fast", "pot"]
Quality = Literal["fast", "careful"]


class Solving(Settings):
    """Settings that every task with Gromov-Wasserstein discrepancies has."""

    solver: Solver = Field("fast", description="fast (compiled), or pot: POT's conditional gradient, at the server")
    verify: int = Field(50, ge=0, description="pairs that the server also solves with POT, to compare with ours")
    quality: Quality = Field("fast", description="fast: one descent for each pair; careful: the best of 49")
    restarts: int = Field(0, ge=0, description="random restarts of each Gromov-Wasserstein problem, where quality is fast")

    def options(self, alpha: float | None = None) -> gromov.GromovOptions:
        """As the solvers want it. alpha: weight of structure in the fused discrepancy, None for the plain one."""
        return options_of(self.solver, self.quality, self.restarts, alpha)


def options_of(solver: Solver, quality: Quality, restarts: int, alpha: float | None = None) -> gromov.GromovOptions:
    """``ValueError`` where POT is asked for more than one descent, which it does not offer."""
    starts, kicks = (RESTARTS, KICKS) if quality == "careful" else (restarts, 0)
    if solver == "pot" and starts:
        raise ValueError("solver: pot is one descent from p qᵀ: it needs quality: fast and restarts: 0")
    return gromov.GromovOptions(solver=solver, alpha=alpha, restarts=starts, kicks=kicks)


def variation(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, rng: np.random.Generator) -> LocalMinima | None:
    """Of a sample of pairs, the share where the careful search is lower than one descent, and by how much on average.

    None where there is no pair. Its ``drop`` is the mean of (one − best)/one over all sampled pairs.
    """
    which = gromov.pairs(len(spaces))
    if not len(which):
        return None
    which = which[rng.permutation(len(which))[:SAMPLED]]
    plain = replace(options, solver="fast", restarts=0, kicks=0)
    careful = replace(plain, restarts=RESTARTS, kicks=KICKS)
    one, best = (gromov.solve_pairs(spaces, which, how).value for how in (plain, careful))
    drop = np.where(one > 0, (one - best) / np.where(one > 0, one, 1.0), 0.0)
    lower = float((drop > 1e-6).mean())
    return LocalMinima(len(which), lower, float(drop.mean()), DESCENTS, options.restarts + options.kicks > 0)
