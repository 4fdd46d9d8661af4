"""The nearest spaces of each of some spaces, without solving the pairs that cannot be among them.

A pair whose lower bound (``bounds``) is above the k-th lowest value found so far is farther than k others and stays unsolved.
What is solved are the values of the full matrix, so every vote of the k nearest, ties included, is the one of the full matrix.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fedgraph.comparison.bounds import lower_bounds
from fedgraph.comparison.metric_space import MetricSpace


def to_nearest(
    spaces: Sequence[MetricSpace],
    rows: np.ndarray,
    columns: np.ndarray,
    k: int,
    alpha: float | None,
    solve: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, int]:
    """Discrepancies float64 [len(rows), len(columns)], infinite for no k lowest of a row; and how many were asked for.

    rows, columns: numbers of spaces, int64. alpha: as in ``GromovOptions``. solve: values of pairs int64 [q, 2], at least one.
    Asked in rounds: first the k of the lowest bounds, then of those still within reach 1, 2, 4 … times k.
    """
    table = np.full((len(rows), len(columns)), np.inf)
    if not table.size:
        return table, 0
    k = min(k, len(columns))
    bounds = lower_bounds([spaces[i] for i in rows], [spaces[j] for j in columns], alpha)
    bounds = bounds * (1.0 - 1e-9) - 1e-12  # room for rounding
    order = np.argsort(bounds, axis=1, kind="stable")
    asked, wanted, portion = np.zeros(table.shape, np.bool_), np.zeros(table.shape, np.bool_), k
    np.put_along_axis(wanted, order[:, :k], True, axis=1)
    while wanted.any():
        first, second = np.nonzero(wanted)
        table[first, second] = solve(np.stack([rows[first], columns[second]], axis=1))
        asked |= wanted
        reach = np.partition(table, k - 1, axis=1)[:, k - 1]
        possible = np.take_along_axis((bounds <= reach[:, None]) & ~asked, order, axis=1)
        wanted[:] = False
        np.put_along_axis(wanted, order, possible & (np.cumsum(possible, axis=1) <= portion), axis=1)
        portion *= 2
    return table, int(asked.sum())
