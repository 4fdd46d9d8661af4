"""All pairwise discrepancies of many small spaces, in chunks over the pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedgraph.geometry import gromov
from fedgraph.geometry.metric_space import MetricSpace
from fedgraph.tasks.base import Context

PAIRS_PER_CHUNK = 2000


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> np.ndarray:
    """[N, N] discrepancies, computed in chunks by the pool."""
    which = gromov.pairs(len(spaces))
    chunks = [which[i : i + PAIRS_PER_CHUNK] for i in range(0, len(which), PAIRS_PER_CHUNK)]
    handle = context.runtime.share(f"spaces:{id(spaces)}", tuple(spaces))
    values: list[np.ndarray] = []
    for part in context.runtime.map(_solve_chunk, chunks, handle, options):
        values.append(part)
        context.progress("GW pairs", sum(map(len, values)), len(which))
    context.runtime.forget(handle)
    return gromov.assemble(len(spaces), which, np.concatenate(values) if values else np.zeros(0))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> np.ndarray:
    return gromov.solve_pairs(spaces, which, options).value
