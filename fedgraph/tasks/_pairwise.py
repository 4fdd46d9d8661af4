"""All pairwise discrepancies of many small spaces, in chunks over the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedgraph.geometry import batch_descent, gromov
from fedgraph.geometry.metric_space import MetricSpace
from fedgraph.learning.sparse import device
from fedgraph.tasks.base import Context

PAIRS_PER_CHUNK = 2000
PAIRS_PER_BATCH = 20_000  # on a GPU, in order of size


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> np.ndarray:
    """[N, N] discrepancies, computed in chunks by the pool; in torch batches where the pool has a GPU."""
    which = gromov.pairs(len(spaces))
    size = PAIRS_PER_CHUNK
    if options.solver == "fast" and context.runtime.get(context.runtime.on_server(_on_gpu)):
        options, size = replace(options, solver="batched"), PAIRS_PER_BATCH
        which = which[batch_descent.by_size(np.array([space.num_points for space in spaces])[which])]
    chunks = [which[i : i + size] for i in range(0, len(which), size)]
    handle = context.runtime.share(f"spaces:{id(spaces)}", tuple(spaces))
    values: list[np.ndarray] = []
    for part in context.runtime.map(_solve_chunk, chunks, handle, options):
        values.append(part)
        context.progress("GW pairs", sum(map(len, values)), len(which))
    context.runtime.forget(handle)
    return gromov.assemble(len(spaces), which, np.concatenate(values) if values else np.zeros(0))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> np.ndarray:
    return gromov.solve_pairs(spaces, which, options).value


def _on_gpu() -> bool:
    """Whether this process has one: the server's actor has the same share of the GPUs as the workers."""
    return device().type == "cuda"
