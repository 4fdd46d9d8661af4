"""Discrepancies between many small spaces, in chunks over the server's processes: of all pairs, or of those that nearest
neighbours need.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from fedgraph.comparison import agreement, gromov
from fedgraph.comparison.classify import Split
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.neighbours import to_nearest
from fedgraph.comparison.solving import Agreement, SolvedPairs, SolverFacts
from fedgraph.learning.layers.sparse import device
from fedgraph.tasks.base import Context
from fedgraph.tasks.base.graphs.kept_pairs import Table, name_of

PAIRS_PER_CHUNK = 2000, 20_000  # at least, and at most where spaces are tiny: each chunk packs all that it touches
PAIRS_TO_VERIFY = 10  # in one call
PAIRS_PER_BATCH = 20_000  # on a GPU, in order of size


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> tuple[np.ndarray, SolverFacts]:
    """[N, N] discrepancies, in torch batches where the server has a GPU; and what ``Table.close`` says of them."""
    which = gromov.pairs(len(spaces))
    with _solver(spaces, options, context) as (table, solve):
        values = solve(which)
    return gromov.assemble(len(spaces), which, values), SolverFacts(table.close())


def nearest_pairs(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: Context,
    split: Split,
    k: int,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, int, SolvedPairs]:
    """[N, N], infinite except between test rows and what may be among the ``k`` nearest of the others; how many were asked; and
    what ``Table.close`` says of those that were solved.

    known: [N, N] of values found before, NaN elsewhere; it is read first, and receives what is solved. Between the same spaces
    only: it saves work and changes no number.
    """
    known = np.full((len(spaces), len(spaces)), np.nan) if known is None else known
    columns = np.sort(np.concatenate([split.train, split.validation]))
    with _solver(spaces, options, context) as (table, solve):

        def ask(which: np.ndarray) -> np.ndarray:
            new = which[np.isnan(known[which[:, 0], which[:, 1]])]
            if len(new):
                known[new[:, 0], new[:, 1]] = known[new[:, 1], new[:, 0]] = solve(new)
            return known[which[:, 0], which[:, 1]]

        found, asked = to_nearest(spaces, split.test, columns, k, options.alpha, ask)
    reached = np.full(known.shape, np.inf)
    reached[np.ix_(split.test, columns)] = found
    return reached, asked, table.close()


def asked_pairs(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: Context,
    split: Split,
    k: int | None,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, SolverFacts]:
    """All discrepancies; or, with ``k``, those that votes of up to k neighbours need, and how many were asked. The facts say
    where each pair's result is kept (``_kept_pairs``).
    """
    if k is None:
        return all_pairs(spaces, options, context)
    found, asked, solved = nearest_pairs(spaces, options, context, split, k, known)
    return found, SolverFacts(solved, asked=(asked, int(split.test.size * (split.train.size + split.validation.size))))


@contextmanager
def _solver(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context
) -> Iterator[tuple[Table, Callable[[np.ndarray], np.ndarray]]]:
    """Solves pairs int64 [q, 2] at the server, as often as asked: float64 [q]. What the table had is not solved again."""
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    points = np.array([space.num_points for space in spaces])
    on_gpu = options.solver == "fast" and next(context.runtime.map(_on_gpu, [0]))
    options, size = (replace(options, solver="batched"), PAIRS_PER_BATCH) if on_gpu else (options, chunk_size(points))
    table = Table(len(spaces), name_of(spaces, options) if context.pairs else "", context.pairs)

    def solve(which: np.ndarray) -> np.ndarray:
        order = np.arange(len(which))
        if on_gpu:
            from fedgraph.comparison.batch_descent import by_size  # not before it is used: it imports torch

            order = by_size(points[which])
        chunks = [which[order[i : i + size]] for i in range(0, len(which), size)]
        chunks = [chunk for chunk in chunks if table.missing(chunk)]
        done = len(which) - sum(map(len, chunks))
        context.progress("GW pairs", done, len(which))
        for chunk, part in zip(chunks, context.runtime.map(_solve_chunk, chunks, handle, options), strict=True):
            table.enter(chunk, part)
            done += len(chunk)
            context.progress("GW pairs", done, len(which))
        return table.value[which[:, 0], which[:, 1]]

    try:
        yield table, solve
    finally:
        table.flush()  # also where the run is interrupted
        context.runtime.forget(handle)


def verified(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, num: int, rng: np.random.Generator, context: Context
) -> Agreement | None:
    """``num`` pairs, drawn by ``rng``, solved by our solver and by POT in the server's processes (``agreement``)."""
    which = gromov.pairs(len(spaces))
    which = which[rng.permutation(len(which))[:num]]
    if not len(which):
        return None
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    chunks = [which[i : i + PAIRS_TO_VERIFY] for i in range(0, len(which), PAIRS_TO_VERIFY)]
    found = list(context.runtime.map(agreement.verify, chunks, handle, options))
    context.runtime.forget(handle)
    return agreement.add_agreements(found)


def chunk_size(points: np.ndarray) -> int:
    """Pairs that are solved in one call, for spaces of int64 [N] points: about the work of the least number at 20 points."""
    least, most = PAIRS_PER_CHUNK
    return int(np.clip(least * 400.0 / max(float(points.mean()) ** 2, 1.0), least, most))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> gromov.PairResults:
    return gromov.solve_pairs(spaces, which, options)


def _on_gpu(task: int) -> bool:
    """Whether the server's process that is asked has one; then all have the same share of one."""
    return device().type == "cuda"
