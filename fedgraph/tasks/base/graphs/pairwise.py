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
from dataclasses import dataclass, replace

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
    """The name under which results are kept: 24 hexadecimal digits of what is compared, and of how.

    Args:
        spaces: Their distances, weights and, where ``options.alpha`` is given, features are read.
        options: All of them are read.
    """
    digest = hashlib.sha256(repr(options).encode())
    for space in spaces:
        for part in (space.distances, space.weights, space.features if options.alpha is not None else None):
            if part is not None:
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:24]


@dataclass(frozen=True, eq=False)
class Solved:
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
    def nothing(cls, num: int) -> "Solved":
        """No pair of ``num`` spaces."""
        shape = (num, num)
        return cls(np.full(shape, np.nan), np.zeros(shape, np.bool_), np.full(shape, -1, np.int32))

    def enter(self, which: np.ndarray, results: gromov.PairResults) -> None:
        """Take results in.

        Args:
            which: int64 [q, 2], the pairs; (i, j) is (j, i), too.
            results: One for each of them.
        """
        for i, j in (which.T, which.T[::-1]):
            self.value[i, j], self.converged[i, j], self.steps[i, j] = results.value, results.converged, results.iterations

    def missing(self, which: np.ndarray) -> np.ndarray:
        """bool [q]: which pairs of ``which`` int64 [q, 2] are not there yet."""
        return np.asarray(self.steps[which[:, 0], which[:, 1]] < 0)


@dataclass(eq=False)
class Table:
    """What one cell asks of the pairs of a set of spaces.

    Attributes:
        name: The name of the set (``name_of``).
        disk: Where results are kept. What others have written under this name is read. None: nothing is read or kept.
        solved: All results that are known; it grows.
    """

    name: str
    disk: Pairs | None
    solved: Solved

    def __post_init__(self) -> None:
        self._asked = np.zeros(self.solved.steps.shape, np.bool_)
        self._waiting: list[tuple[np.ndarray, gromov.PairResults]] = []
        self._written = time.monotonic()
        for part in self.disk.load(self.name) if self.disk else ():
            self.solved.enter(part["pairs"], gromov.PairResults(part["value"], part["converged"], part["steps"]))

    def ask(self, which: np.ndarray) -> None:
        """Count pairs as asked for by the cell.

        Args:
            which: int64 [q, 2], solved or not.
        """
        self._asked[which.min(1), which.max(1)] = True

    def enter(self, which: np.ndarray, results: gromov.PairResults) -> None:
        """Take results in. Every few seconds what came in since is written.

        Args:
            which: int64 [q, 2], the pairs.
            results: One for each of them.
        """
        self.solved.enter(which, results)
        self._waiting.append((which, results))
        if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
            self.flush()

    def close(self) -> SolvedPairs:
        """Write what is left as one table.

        What others asked for is in the table, too. It does not count here: when they did must not change this cell's record.

        Returns:
            Where the table is, how many pairs this cell asked for, and how many of them converged.
        """
        self.flush()
        file = self.disk.close(self.name) if self.disk and self._asked.any() else None
        return SolvedPairs(file, int(self._asked.sum()), int(self.solved.converged[self._asked].sum()))

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


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> tuple[np.ndarray, SolverFacts]:
    """Solve all pairs of spaces, in batches of torch where the server has a GPU.

    Args:
        spaces: N of them.
        options: How each pair is solved.
        context: Where they are solved, where results are kept, and what hears of progress.

    Returns:
        (float64 [N, N], symmetric, with zeros on the diagonal; how many pairs were solved, and where they are kept).
    """
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
    known: Solved | None = None,
) -> tuple[np.ndarray, SolverFacts]:
    """Solve all pairs, or only those that nearest neighbours of test rows need.

    Args:
        spaces: N of them.
        options: How each pair is solved.
        context: Where they are solved, where results are kept, and what hears of progress.
        split: Which spaces are tested, and which are known (they train, or choose settings).
        k: The largest number of neighbours that votes. None: all pairs are solved.
        known: What was solved before between the same spaces. It is read first, and receives what is solved. It saves work
            and changes no number.

    Returns:
        (float64 [N, N]; how many pairs were solved and asked for, and where they are kept). With ``k``, rows of tested and
        columns of known spaces hold the k lowest of each row; every other entry may be infinite.
    """
    if k is None:
        return all_pairs(spaces, options, context)
    columns = np.sort(np.concatenate([split.train, split.validation]))
    with _solver(spaces, options, context, known) as (table, solve):

        def ask(which: np.ndarray) -> np.ndarray:
            if (new := which[table.solved.missing(which)]).size:
                solve(new)
            table.ask(which)
            return table.solved.value[which[:, 0], which[:, 1]]

        found, asked = to_nearest(spaces, split.test, columns, k, options.alpha, ask)
    reached = np.full(table.solved.value.shape, np.inf)
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
    """As ``asked_pairs``, for spaces that are the same in all splits.

    Args:
        key: Names the spaces. What is found is kept under it for the life of the process.
        make: Makes the spaces; it is asked once.
        options: How each pair is solved.
        context: Where they are solved, and where results are kept.
        split: Which spaces are tested, and which are known.
        k: The largest number of neighbours that votes. None: all pairs are solved.
    """
    spaces = context.cached((*key, "spaces"), make)
    if k is None:
        return context.cached(key, lambda: all_pairs(spaces, options, context))
    known = context.cached((*key, "known"), lambda: Solved.nothing(len(spaces)))
    return asked_pairs(spaces, options, context, split, k, known)


@contextmanager
def _solver(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context, known: Solved | None = None
) -> Iterator[tuple[Table, Callable[[np.ndarray], np.ndarray]]]:
    """Solves pairs int64 [q, 2] at the server, as often as asked: float64 [q]. What the table had is not solved again."""
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    points = np.array([space.num_points for space in spaces])
    on_gpu = options.solver == "fast" and next(context.runtime.map(_on_gpu, [0]))
    options, size = (replace(options, solver="batched"), PAIRS_PER_BATCH) if on_gpu else (options, chunk_size(points))
    name = name_of(spaces, options) if context.pairs else ""
    table = Table(name, context.pairs, Solved.nothing(len(spaces)) if known is None else known)

    def solve(which: np.ndarray) -> np.ndarray:
        order = np.arange(len(which))
        if on_gpu:
            from fedgraph.comparison.batch_descent import by_size  # not before it is used: it imports torch

            order = by_size(points[which])
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


def verified_pairs(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, num: int, rng: np.random.Generator, context: Context
) -> Agreement | None:
    """Solve some pairs by our solver and by POT, in the server's processes, and compare (``comparison.agreement``).

    Args:
        spaces: At least two, or nothing is compared.
        options: How each pair is solved.
        num: How many pairs at most.
        rng: Draws them.
        context: Where they are solved.

    Returns:
        How the two agree; None where no pair is drawn, or where the loss is not ``square``: ours has no other one.
    """
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
    """How many pairs are solved in one call, so that a call takes about as long as the least number does at 20 points.

    Args:
        points: int64 [N], the number of points of each space.
    """
    least, most = PAIRS_PER_CHUNK
    return int(np.clip(least * 400.0 / max(float(points.mean()) ** 2, 1.0), least, most))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> gromov.PairResults:
    return gromov.solve_pairs(spaces, which, options)


def _on_gpu(task: int) -> bool:
    """Whether the server's process that is asked has one; then all have the same share of one."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""  # then nobody imports torch to ask
    return not hidden and device().type == "cuda"
