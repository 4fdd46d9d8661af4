"""Our solver against POT's, on the same pairs: which one ends lower.

Both descend from p qᵀ by conditional gradient, and the problem is not convex, so they may end at different local minima: now
one is lower, now the other. What starts cannot explain is counted apart: POT, begun at the coupling at which ours ended, must
find nothing to improve, and the value of that coupling must be the value that ours printed.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedgraph.comparison import gromov
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solver_facts import SolverAgreement

_EQUAL = 1e-6  # relative
_UNEXPLAINED = 1e-3  # relative: what POT gains, begun where ours ended


def with_pot(which: np.ndarray, spaces: Sequence[MetricSpace], options: GromovOptions) -> SolverAgreement:
    """Solve the same pairs by our solver and by POT, and compare.

    Args:
        which: int [k, 2], numbers into ``spaces``.
        spaces: The spaces.
        options: Of ours. POT makes one descent from p qᵀ with the same tolerance.
    """
    plain = replace(options, solver="pot", restarts=0, kicks=0)
    ours = replace(options, solver="fast") if options.by_pot else options
    found, plans = gromov.solve_couplings(spaces, which, ours)
    theirs = gromov.solve_pairs(spaces, which, plain).value
    gap = (found.value - theirs) / np.maximum(theirs, np.finfo(np.float64).tiny)
    gap[np.abs(found.value - theirs) <= _EQUAL * np.maximum(theirs, _EQUAL)] = 0.0
    with gromov.on_one_thread():
        unexplained = sum(
            not _is_explained(spaces[i], spaces[j], plan, value, plain)
            for (i, j), plan, value in zip(which, plans, found.value, strict=True)
        )
    return SolverAgreement(
        pairs=len(which),
        equal=int((gap == 0).sum()),
        lower=int((gap < 0).sum()),
        higher=int((gap > 0).sum()),
        unexplained=unexplained,
    )


def _is_explained(first: MetricSpace, second: MetricSpace, plan: np.ndarray, value: float, plain: GromovOptions) -> bool:
    """Whether POT stays at our end: its first loss there is our value, and its last one is not much lower."""
    rows, columns = plan.sum(axis=1), plan.sum(axis=0)
    if not (np.allclose(rows, first.weights, atol=1e-8) and np.allclose(columns, second.weights, atol=1e-8)):
        return False
    there = gromov.solve_by_pot(first, second, replace(plain, max_iterations=1), plan)[0]
    after = gromov.solve_by_pot(first, second, plain, plan)[0]
    return after >= value * (1 - _UNEXPLAINED) - _EQUAL and there <= value * (1 + _EQUAL) + _EQUAL


def add(parts: Sequence[SolverAgreement]) -> SolverAgreement:
    """Many agreements as one."""
    return SolverAgreement(**{name: sum(vars(part)[name] for part in parts) for name in vars(parts[0])})
