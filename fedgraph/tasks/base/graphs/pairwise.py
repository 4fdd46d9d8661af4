"""Discrepancies between many small spaces, in chunks over the server's processes: of all pairs, or of those that nearest
neighbours need.

Value, convergence and steps of each pair are written while they are solved (``Table``), under a name of what the set was made
of: the spaces, and how they are compared. A resumed run finds them there: a pair's result depends on nothing else.
"""

import hashlib
import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from fedgraph.comparison import agreement, gromov
from fedgraph.comparison.bounds import to_nearest
from fedgraph.comparison.classify import Split
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solving import Agreement, SolvedPairs, SolverFacts
from fedgraph.learning.layers.matrices import device
from fedgraph.tasks.base import Context, Pairs

PAIRS_PER_CHUNK = 2000, 20_000  # at least, and at most where spaces are tiny: each chunk packs all that it touches
_PAIRS_TO_VERIFY = 10  # in one call
PAIRS_PER_BATCH = 20_000  # on a GPU, in order of size
_SECONDS_BETWEEN_WRITES = 5.0


def name_of(spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> str:
    """24 hexadecimal digits."""
    digest = hashlib.sha256(repr(options).encode())
    for space in spaces:
        for part in (space.distances, space.weights, space.features if options.alpha is not None else None):
            if part is not None:
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:24]


@dataclass(eq=False)
class Table:
    """value float64, converged bool, steps int32, all [N, N] and symmetric; steps −1 where a pair is not solved.

    disk: None keeps nothing. Pairs (i, j) are read as (j, i), too.
    """

    num: int
    name: str
    disk: Pairs | None
    value: np.ndarray = field(init=False)
    converged: np.ndarray = field(init=False)
    steps: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.value = np.full((self.num, self.num), np.nan)
        self.converged = np.zeros((self.num, self.num), np.bool_)
        self.steps = np.full((self.num, self.num), -1, np.int32)
        self._waiting: list[tuple[np.ndarray, gromov.PairResults]] = []
        self._written = time.monotonic()
        for part in self.disk.load(self.name) if self.disk else ():
            self._enter(part["pairs"], gromov.PairResults(part["value"], part["converged"], part["steps"]))

    def missing(self, which: np.ndarray) -> bool:
        """Whether any pair of ``which`` int64 [q, 2] is not there yet."""
        return bool((self.steps[which[:, 0], which[:, 1]] < 0).any())

    def enter(self, which: np.ndarray, results: gromov.PairResults) -> None:
        """Take them in; every few seconds what came in since is written."""
        self._enter(which, results)
        self._waiting.append((which, results))
        if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
            self.flush()

    def close(self) -> SolvedPairs:
        """Write what is left as one table; where it is, how many pairs were solved and how many of them converged."""
        self.flush()
        upper = np.triu(self.steps >= 0)
        file = self.disk.close(self.name) if self.disk and upper.any() else None
        return SolvedPairs(file, int(upper.sum()), int(self.converged[upper].sum()))

    def flush(self) -> None:
        """Write what came in since the last time."""
        if self.disk and self._waiting:
            parts = [results for _, results in self._waiting]
            columns = {
                "pairs": np.concatenate([which for which, _ in self._waiting]).astype(np.int32),
                "value": np.concatenate([p.value for p in parts]),
                "converged": np.concatenate([p.converged for p in parts]),
                "steps": np.concatenate([p.iterations for p in parts]).astype(np.int32),
            }
            self.disk.add(self.name, columns)
        self._waiting, self._written = [], time.monotonic()

    def _enter(self, which: np.ndarray, results: gromov.PairResults) -> None:
        for i, j in (which.T, which.T[::-1]):
            self.value[i, j], self.converged[i, j], self.steps[i, j] = results.value, results.converged, results.iterations


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> tuple[np.ndarray, SolverFacts]:
    """[N, N] discrepancies, in torch batches where the server has a GPU; and what ``Table.close`` says of them."""
    which = gromov.pairs(len(spaces))
    with _solver(spaces, options, context) as (table, solve):
        values = solve(which)
    return gromov.assemble(len(spaces), which, values), SolverFacts(table.close())


def asked_pairs(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: Context,
    split: Split,
    k: int | None,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, SolverFacts]:
    """All discrepancies; or, with ``k``, those that votes of up to k neighbours of test rows need, infinity elsewhere.

    The facts say where each pair's result is kept (``Table``), and how many pairs were asked.

    known: [N, N] of values found before, NaN elsewhere; it is read first, and receives what is solved. Between the same spaces
    only: it saves work and changes no number.
    """
    if k is None:
        return all_pairs(spaces, options, context)
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
    return reached, SolverFacts(table.close(), asked=(asked, int(split.test.size * columns.size)))


def kept_pairs(
    key: tuple[Hashable, ...],
    make: Callable[[], list[MetricSpace]],
    options: gromov.GromovOptions,
    context: Context,
    split: Split,
    k: int | None,
) -> tuple[np.ndarray, SolverFacts]:
    """As ``asked_pairs``, of spaces that ``make`` makes once: what is found is kept under ``key`` for all splits."""
    spaces = context.cached((*key, "spaces"), make)
    if k is None:
        return context.cached(key, lambda: all_pairs(spaces, options, context))
    known = context.cached((*key, "known"), lambda: np.full((len(spaces), len(spaces)), np.nan))
    return asked_pairs(spaces, options, context, split, k, known)


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


def verified_pairs(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, num: int, rng: np.random.Generator, context: Context
) -> Agreement | None:
    """``num`` pairs, drawn by ``rng``, solved by our solver and by POT in the server's processes (``agreement``)."""
    which = gromov.pairs(len(spaces))
    which = which[rng.permutation(len(which))[:num]]
    if not len(which) or options.loss != "square":  # ours has no other loss
        return None
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    chunks = [which[i : i + _PAIRS_TO_VERIFY] for i in range(0, len(which), _PAIRS_TO_VERIFY)]
    found = list(context.runtime.map(agreement.verify_against_pot, chunks, handle, options))
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
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""  # then nobody imports torch to ask
    return not hidden and device().type == "cuda"
