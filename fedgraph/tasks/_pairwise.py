"""Discrepancies between many small spaces, in chunks over the pool: of all pairs, or of those that nearest neighbours need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from fedgraph.geometry import batch_descent, gromov
from fedgraph.geometry.classify import Split
from fedgraph.geometry.metric_space import MetricSpace
from fedgraph.geometry.neighbours import to_nearest
from fedgraph.learning.sparse import device
from fedgraph.tasks.base import Context

PAIRS_PER_CHUNK = 2000
PAIRS_PER_BATCH = 20_000  # on a GPU, in order of size


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> np.ndarray:
    """[N, N] discrepancies; in torch batches where the pool has a GPU."""
    which = gromov.pairs(len(spaces))
    with _solver(spaces, options, context) as solve:
        return gromov.assemble(len(spaces), which, solve(which))


def nearest_pairs(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: Context,
    split: Split,
    k: int,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """[N, N], infinite except between test rows and what may be among the ``k`` nearest of the others; and how many were asked.

    known: [N, N] of values found before, NaN elsewhere; it is read first, and receives what is solved. Between the same spaces
    only: it saves work and changes no number.
    """
    known = np.full((len(spaces), len(spaces)), np.nan) if known is None else known
    columns = np.sort(np.concatenate([split.train, split.validation]))
    with _solver(spaces, options, context) as solve:

        def ask(which: np.ndarray) -> np.ndarray:
            new = which[np.isnan(known[which[:, 0], which[:, 1]])]
            if len(new):
                known[new[:, 0], new[:, 1]] = known[new[:, 1], new[:, 0]] = solve(new)
            return known[which[:, 0], which[:, 1]]

        table, asked = to_nearest(spaces, split.test, columns, k, options.alpha, ask)
    found = np.full(known.shape, np.inf)
    found[np.ix_(split.test, columns)] = table
    return found, asked


@contextmanager
def _solver(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context
) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Solves pairs int64 [q, 2] on the pool, as often as asked: float64 [q]."""
    handle = context.runtime.share(f"spaces:{id(spaces)}", tuple(spaces))
    on_gpu = options.solver == "fast" and context.runtime.get(context.runtime.on_server(_on_gpu))
    options, size = (replace(options, solver="batched"), PAIRS_PER_BATCH) if on_gpu else (options, PAIRS_PER_CHUNK)
    points = np.array([space.num_points for space in spaces])

    def solve(which: np.ndarray) -> np.ndarray:
        order = batch_descent.by_size(points[which]) if on_gpu else np.arange(len(which))
        chunks = [which[order[i : i + size]] for i in range(0, len(which), size)]
        values, done = np.empty(len(which)), 0
        for part in context.runtime.map(_solve_chunk, chunks, handle, options):
            values[order[done : done + len(part)]] = part
            done += len(part)
            context.progress("GW pairs", done, len(which))
        return values

    try:
        yield solve
    finally:
        context.runtime.forget(handle)


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> np.ndarray:
    return gromov.solve_pairs(spaces, which, options).value


def _on_gpu() -> bool:
    """Whether this process has one: the server's actor has the same share of the GPUs as the workers."""
    return device().type == "cuda"
