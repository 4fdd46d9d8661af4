"""Solved pairs of one set of spaces: value, convergence and steps of each, written while they are solved.

A set is named by what it was made of: the spaces, and how they are compared. A resumed run finds what was written under that
name, and since a pair's result depends on nothing else it goes on as if it had not stopped.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fedgraph.comparison.gromov import GromovOptions, PairResults
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solving import SolvedPairs
from fedgraph.tasks.base import Pairs

SECONDS_BETWEEN_WRITES = 5.0


def name_of(spaces: Sequence[MetricSpace], options: GromovOptions) -> str:
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
        self._waiting: list[tuple[np.ndarray, PairResults]] = []
        self._written = time.monotonic()
        for part in self.disk.load(self.name) if self.disk else ():
            self._enter(part["pairs"], PairResults(part["value"], part["converged"], part["steps"]))

    def missing(self, which: np.ndarray) -> bool:
        """Whether any pair of ``which`` int64 [q, 2] is not there yet."""
        return bool((self.steps[which[:, 0], which[:, 1]] < 0).any())

    def enter(self, which: np.ndarray, results: PairResults) -> None:
        """Take them in; every few seconds what came in since is written."""
        self._enter(which, results)
        self._waiting.append((which, results))
        if time.monotonic() - self._written > SECONDS_BETWEEN_WRITES:
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

    def _enter(self, which: np.ndarray, results: PairResults) -> None:
        for i, j in (which.T, which.T[::-1]):
            self.value[i, j], self.converged[i, j], self.steps[i, j] = results.value, results.converged, results.iterations
