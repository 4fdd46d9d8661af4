"""How Gromov-Wasserstein discrepancies are solved, as a scenario says it; and by how much the local minima vary.

The problem is not convex: a value is the local minimum at which one descent ended, or the best of several (``quality:
careful``).
``variation`` solves a small sample of pairs both ways, so that every report can say what one descent misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedgraph.comparison import gromov
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.settings import Settings

CAREFUL = 10  # random restarts, beside the usual start
SAMPLED = 100  # pairs that are solved both ways

Solver = Literal["fast", "pot"]
Quality = Literal["fast", "careful"]


class Solving(Settings):
    """Settings that every task with Gromov-Wasserstein discrepancies has."""

    solver: Solver = Field("fast", description="fast (compiled), or pot: POT's conditional gradient on the same pool")
    quality: Quality = Field("fast", description="fast: one descent for each pair; careful: the best of eleven")
    restarts: int = Field(0, ge=0, description="random restarts of each Gromov-Wasserstein problem, where quality is fast")

    def options(self, alpha: float | None = None) -> gromov.GromovOptions:
        """As the solvers want it. alpha: weight of structure in the fused discrepancy, None for the plain one."""
        return options_of(self.solver, self.quality, self.restarts, alpha)


def options_of(solver: Solver, quality: Quality, restarts: int, alpha: float | None = None) -> gromov.GromovOptions:
    """``ValueError`` where POT is asked for more than one descent, which it does not offer."""
    descents = CAREFUL if quality == "careful" else restarts
    if solver == "pot" and descents:
        raise ValueError("solver: pot is one descent from p qᵀ: it needs quality: fast and restarts: 0")
    return gromov.GromovOptions(solver=solver, alpha=alpha, restarts=descents)


def variation(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, rng: np.random.Generator) -> dict[str, Any]:
    """Facts: of a sample of pairs, the share where the best of eleven descents is lower than one, and by how much on average.

    ``{"minima": {"pairs": …, "lower": share, "drop": mean of (one − best)/one over all pairs, "careful": were restarts used}}``
    """
    which = gromov.pairs(len(spaces))
    if not len(which):
        return {}
    which = which[rng.permutation(len(which))[:SAMPLED]]
    one, best = (gromov.solve_pairs(spaces, which, replace(options, solver="fast", restarts=r)).value for r in (0, CAREFUL))
    drop = np.where(one > 0, (one - best) / np.where(one > 0, one, 1.0), 0.0)
    lower = float((drop > 1e-6).mean())
    return {"minima": {"pairs": len(which), "lower": lower, "drop": float(drop.mean()), "careful": options.restarts > 0}}
