"""Discrepancies between many small spaces, in chunks over the server's processes: of all pairs, or of those that nearest
neighbours need.

Value, convergence and steps of each pair are written while they are solved (``_Table``), under a name of what the set was made
of: the spaces, and how they are compared. A resumed run finds them there: a pair's result depends on nothing else.
"""

import hashlib
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from fedgraph.comparison import (
    ClassifySplit,
    GromovPairFacts,
    MetricSpace,
    SolverAgreement,
    SolverFacts,
    agreement,
    gromov,
    gromov_bounds,
)
from fedgraph.tasks.base import CellContext, CellPairKeeper

_PAIRS_PER_CHUNK = 2000, 20_000  # at least, and at most where spaces are tiny: each chunk packs all that it touches
_PAIRS_TO_VERIFY = 10  # in one call
_PAIRS_PER_BATCH = 20_000  # of POT's batched solver, in order of size
_SECONDS_BETWEEN_WRITES = 5.0


def _name_of(spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> str:
    digest = hashlib.sha256(repr(options).encode())
    for space in spaces:
        for part in (space.distances, space.weights, space.features if options.alpha is not None else None):
            if part is not None:
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:24]


@dataclass(frozen=True, eq=False)
class _Solved:
    """Results of the pairs of N spaces; each array is symmetric.

    Attributes:
        value: float64 [N, N], discrepancies; NaN where a pair is not solved.
        converged: bool [N, N], whether the descent that won came to an end.
        steps: int32 [N, N], its iterations; −1 where a pair is not solved.
    """

    value: np.ndarray
    converged: np.ndarray
    steps: np.ndarray

    @classmethod
    def nothing(cls, num: int) -> "_Solved":
        """No pair of ``num`` spaces."""
        shape = (num, num)
        return cls(np.full(shape, np.nan), np.zeros(shape, np.bool_), np.full(shape, -1, np.int32))

    def enter(self, which: np.ndarray, results: gromov.GromovResults) -> None:
        """Take them in; pairs (i, j) are (j, i), too."""
        for i, j in (which.T, which.T[::-1]):
            self.value[i, j], self.converged[i, j], self.steps[i, j] = results.value, results.converged, results.iterations

    def missing(self, which: np.ndarray) -> np.ndarray:
        """bool [q]: which pairs of ``which`` int64 [q, 2] are not there yet."""
        return np.asarray(self.steps[which[:, 0], which[:, 1]] < 0)


@dataclass(eq=False)
class _Table:
    """What one cell asks of the pairs of a set of spaces.

    Attributes:
        name: The name of the set (``_name_of``).
        disk: Where results are kept. What others have written under this name is read. None: nothing is read or kept.
        solved: All results that are known; it grows.
    """

    name: str
    disk: CellPairKeeper | None
    solved: _Solved

    def __post_init__(self) -> None:
        self._asked = np.zeros(self.solved.steps.shape, np.bool_)
        self._waiting: list[tuple[np.ndarray, gromov.GromovResults]] = []
        self._written = time.monotonic()
        for part in self.disk.load(self.name) if self.disk else ():
            self.solved.enter(part["pairs"], gromov.GromovResults(part["value"], part["converged"], part["steps"]))

    def ask(self, which: np.ndarray) -> None:
        """The cell asks for these pairs, int64 [q, 2], solved or not."""
        self._asked[which.min(1), which.max(1)] = True

    def enter(self, which: np.ndarray, results: gromov.GromovResults) -> None:
        """Take them in; every few seconds what came in since is written."""
        self.solved.enter(which, results)
        self._waiting.append((which, results))
        if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
            self.flush()

    def close(self) -> GromovPairFacts:
        """Write what is left as one table; where it is, how many pairs the cell asked for and how many of them converged.

        What others asked for is in the table, too, and counts there: when they did must not change this cell's record.
        """
        self.flush()
        file = self.disk.close(self.name) if self.disk and self._asked.any() else None
        return GromovPairFacts(file, int(self._asked.sum()), int(self.solved.converged[self._asked].sum()))

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


def solve_all(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: CellContext
) -> tuple[np.ndarray, SolverFacts]:
    """[N, N] discrepancies, in torch batches where the server has a GPU; and what ``_Table.close`` says of them."""
    which = gromov.all_pairs(len(spaces))
    with _solver(spaces, options, context) as (table, solve):
        values = solve(which)
    return gromov.assemble_matrix(len(spaces), which, values), SolverFacts(table.close())


def solve_asked(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: CellContext,
    split: ClassifySplit,
    k: int | None,
    known: _Solved | None = None,
) -> tuple[np.ndarray, SolverFacts]:
    """All discrepancies; or, with ``k``, those that votes of up to k neighbours of test rows need, infinity elsewhere.

    The facts say where each pair's result is kept (``_Table``), and how many pairs were asked.

    known: what was solved before; it is read first, and receives what is solved. Between the same spaces only: it saves work
    and changes no number.
    """
    if k is None:
        return solve_all(spaces, options, context)
    columns = np.sort(np.concatenate([split.train, split.validation]))
    with _solver(spaces, options, context, known) as (table, solve):

        def ask(which: np.ndarray) -> np.ndarray:
            if (new := which[table.solved.missing(which)]).size:
                solve(new)
            table.ask(which)
            return table.solved.value[which[:, 0], which[:, 1]]

        found, asked = gromov_bounds.solve_within(spaces, split.test, columns, k, options.alpha, ask)
    reached = np.full(table.solved.value.shape, np.inf)
    reached[np.ix_(split.test, columns)] = found
    return reached, SolverFacts(table.close(), asked=(asked, int(split.test.size * columns.size)))


def solve_once(
    key: tuple[Hashable, ...],
    make: Callable[[], list[MetricSpace]],
    options: gromov.GromovOptions,
    context: CellContext,
    split: ClassifySplit,
    k: int | None,
) -> tuple[np.ndarray, SolverFacts]:
    """As ``solve_asked``, of spaces that ``make`` makes once: what is found is kept under ``key`` for all
    splits.
    """
    spaces = context.cached((*key, "spaces"), make)
    if k is None:
        return context.cached(key, lambda: solve_all(spaces, options, context))
    known = context.cached((*key, "known"), lambda: _Solved.nothing(len(spaces)))
    return solve_asked(spaces, options, context, split, k, known)


@contextmanager
def _solver(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: CellContext, known: _Solved | None = None
) -> Iterator[tuple[_Table, Callable[[np.ndarray], np.ndarray]]]:
    """Solves pairs int64 [q, 2] at the server, as often as asked: float64 [q]. What the table had is not solved again."""
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    points = np.array([space.num_points for space in spaces])
    batched = options.solver == "batched"
    size = _PAIRS_PER_BATCH if batched else _chunk_size(points)
    name = _name_of(spaces, options) if context.pairs else ""
    table = _Table(name, context.pairs, _Solved.nothing(len(spaces)) if known is None else known)

    def solve(which: np.ndarray) -> np.ndarray:
        order = np.lexsort(points[which].T) if batched else np.arange(len(which))
        chunks = [which[order[i : i + size]] for i in range(0, len(which), size)]
        chunks = [chunk for chunk in chunks if table.solved.missing(chunk).any()]
        done = len(which) - sum(map(len, chunks))
        context.progress("GW pairs", done, len(which))
        for chunk, part in zip(chunks, context.runtime.map(_solve_chunk, chunks, handle, options), strict=True):
            table.enter(chunk, part)
            done += len(chunk)
            context.progress("GW pairs", done, len(which))
        table.ask(which)
        return table.solved.value[which[:, 0], which[:, 1]]

    try:
        yield table, solve
    finally:
        table.flush()  # also where the run is interrupted
        context.runtime.forget(handle)


def verify(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, num: int, rng: np.random.Generator, context: CellContext
) -> SolverAgreement | None:
    """``num`` pairs, drawn by ``rng``, solved by our solver and by POT in the server's processes (``agreement``)."""
    which = gromov.all_pairs(len(spaces))
    which = which[rng.permutation(len(which))[:num]]
    if not len(which) or options.loss != "square":  # ours has no other loss
        return None
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    chunks = [which[i : i + _PAIRS_TO_VERIFY] for i in range(0, len(which), _PAIRS_TO_VERIFY)]
    found = list(context.runtime.map(agreement.with_pot, chunks, handle, options))
    context.runtime.forget(handle)
    return agreement.add(found)


def _chunk_size(points: np.ndarray) -> int:
    """Pairs that are solved in one call, for spaces of int64 [N] points: about the work of the least number at 20 points."""
    least, most = _PAIRS_PER_CHUNK
    return int(np.clip(least * 400.0 / max(float(points.mean()) ** 2, 1.0), least, most))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> gromov.GromovResults:
    return gromov.solve_pairs(spaces, which, options)
