"""Adjacency perturbation: one ε-DP graph, after which everything is post-processing.

**Cells**: pairs of nodes as numbers, which of them one client answers for, and which number each has.

One client that holds everything answers for the upper triangle, cell v(v−1)/2 + u for u < v. Where clients share the edges
between them, each answers for the pairs whose *smaller* id it holds: every pair belongs to exactly one client, by a rule
about public ids, so an edge between two clients is reported once, by one of them.

**Guarantee.** For clients that share no node, the cells of all clients are the upper triangle, each pair once: an edge is one
cell of one client (parallel composition over clients).

**Edge cases.** Ids that are not strictly increasing, or outside 0 … n − 1 → ``PrivacyError``; fewer than two nodes → no cell.

A value is the cells that a client answers for (its upper triangle, or the pairs whose smaller id it holds), as
integers [m, 2], u < v, one row per edge. With n nodes there are n(n−1)/2 cells, far too many to visit. Both mechanisms draw
only the cells that are released, with exactly the same distribution.

* **EdgeRand** (Wu et al. 2022, LinkTeller, §VI-A): every cell is flipped with probability p = 1/(e^ε + 1).
  The cells between two flips are a geometric number, so flips are found by adding up Geometric(p) gaps.
* **LapGraph** (the same, §VI-B): T̃ = edges + Laplace(1/ε₁), ε₁ = share·ε; every cell gets Laplace(1/ε₂), ε₂ = ε − ε₁;
  the T̃ largest cells are the edges. Cells are 1 (edges) or 0, so beside the m edges only zero cells that can reach
  the top T̃ are drawn: the number above a threshold is binomial, their values the Laplace tail, their positions uniform.

**Guarantee.** ε-DP, edge-level: an undirected edge is one cell (randomised response with ratio e^ε; Δ₁ = 1 for the
count and for the cells, ε₁ + ε₂ = ε). Perturbing (u, v) and (v, u) separately would cost 2ε.

**Edge cases.** ε ≤ 0, NaN, ∞ → ``PrivacyError`` (no noise is a decision: ``Disclose``); fewer than two nodes → no
cell, no edge; T̃ is clamped to [0, cells]; a graph too large for ``most_cells`` → ``PrivacyError`` before anything is drawn.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import ArrayField, PositiveField
from fedgraph.privacy.mechanisms.noise import NoiseMechanism
from fedgraph.privacy.sensitivity import SensitivityBound

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EdgeCells:
    """The cells that one client answers for.

    Attributes:
        num_nodes: n; ids are 0 … n − 1.
        smaller: the ids that it holds, strictly increasing: it answers for the pairs whose smaller id is among them. None:
            every pair of all nodes.

    Raises:
        PrivacyError: ids that are not strictly increasing, or out of range.

    >>> two = [EdgeCells(4, (0, 3)), EdgeCells(4, (1, 2))]
    >>> [c.count for c in two], two[1].edges(np.arange(3)).tolist()
    ([3, 3], [[1, 2], [1, 3], [2, 3]])
    """

    num_nodes: int
    smaller: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        ids = np.asarray(self.smaller or (), dtype=np.int64)
        if ids.size and not (ids[0] >= 0 and ids[-1] < self.num_nodes and (np.diff(ids) > 0).all()):
            raise PrivacyError(f"ids must be strictly increasing within 0 … {self.num_nodes - 1}")

    @property
    def count(self) -> int:
        """How many pairs."""
        return self.num_nodes * (self.num_nodes - 1) // 2 if self.smaller is None else int(self._ends[-1])

    def of(self, edges: np.ndarray) -> _Integers:
        """The number, below ``count``, of each pair u < v (integers [m, 2]); u must be among ``smaller``."""
        if self.smaller is None:
            u, v = edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64)
            return np.asarray(v * (v - 1) // 2 + u)
        at = np.searchsorted(self._ids, edges[:, 0])
        cells: _Integers = self._ends[at] + edges[:, 1] - edges[:, 0] - 1
        return cells

    def edges(self, cells: np.ndarray) -> npt.NDArray[np.int32]:
        """Inverse of ``of``: int32 [m, 2]."""
        if self.smaller is None:
            v = ((1 + np.sqrt(1 + 8 * cells.astype(np.float64))) / 2).astype(np.int64)
            v -= v * (v - 1) // 2 > cells  # the square root is off by at most one
            v += (v + 1) * v // 2 <= cells
            out = np.empty((cells.size, 2), dtype=np.int32)
            out[:, 1] = v
            out[:, 0] = cells - v * (v - 1) // 2
            return out
        at = np.searchsorted(self._ends, cells, side="right") - 1
        u = self._ids[at]
        return np.column_stack([u, u + 1 + cells - self._ends[at]]).astype(np.int32)

    @property
    def _ids(self) -> _Integers:
        return np.asarray(self.smaller, dtype=np.int64)

    @property
    def _ends(self) -> _Integers:
        """Of the cells of each id, the first number; at the end, their count."""
        return np.concatenate([[0], np.cumsum(self.num_nodes - 1 - self._ids)])


BYTES_PER_EDGE_CELL = 100  # peak memory per drawn cell: ids, sorting, the symmetric graph


@dataclass(frozen=True)
class EdgeTriangle(SensitivityBound):
    """Distinct pairs u < v, integers [m, 2]: an edge is one cell, so Δ₁ = 1."""

    num_nodes: int  # n; ids are 0 … n − 1
    smaller: tuple[int, ...] | None = None  # u must be among these ids; None: all

    def enforce(self, value: np.ndarray) -> np.ndarray:
        """``UnboundedValueError`` for anything else: a pair twice would count an edge twice."""
        if value.ndim != 2 or value.shape[1] != 2 or value.dtype.kind not in "iu":
            raise UnboundedValueError(f"edges must be integers [m, 2], found {value.dtype} {value.shape}")
        if value.size and not (value.min() >= 0 and value.max() < self.num_nodes and (value[:, 0] < value[:, 1]).all()):
            raise UnboundedValueError(f"edges must satisfy 0 ≤ u < v < {self.num_nodes}: no self-loops, each edge once")
        if self.smaller is not None and not np.isin(value[:, 0], self.smaller).all():
            raise UnboundedValueError("a pair whose smaller id another client holds: its holder reports it, and only once")
        if np.unique(EdgeCells(self.num_nodes, self.smaller).of(value)).size != len(value):
            raise UnboundedValueError("an edge appears twice: one person's edge would be two cells")
        return value


def _distinct_cells(limit: int, count: int, rng: np.random.Generator, without: np.ndarray | None = None) -> _Integers:
    """Distinct integers in [0, limit), uniform, sorted.

    Draws are added until there are enough and never thrown away once new: sampling without replacement.

    limit: above all of them. count: how many. rng: random stream. without: integers that must not be drawn, sorted and
    distinct; None: none. ``PrivacyError``: more were asked for than are free.
    """
    free = limit - (0 if without is None else without.size)
    if count > free:
        raise PrivacyError(f"{count} distinct cells were asked for, {free} are free")
    if 2 * count > free:  # nearly all: list what is free, which is no longer than twice the answer
        every = np.arange(limit, dtype=np.int64)
        left = every if without is None else np.setdiff1d(every, without, assume_unique=True)
        return np.sort(rng.permutation(left)[:count])
    found: _Integers = np.zeros(0, dtype=np.int64)
    while found.size < count:
        drawn = np.unique(rng.integers(limit, size=count - found.size))
        if without is not None and without.size:
            at = np.minimum(np.searchsorted(without, drawn), without.size - 1)
            drawn = drawn[without[at] != drawn]
        found = np.union1d(found, drawn) if found.size else drawn
    return found


def _bernoulli_positions(limit: int, probability: float, rng: np.random.Generator) -> _Integers:
    """Which of many independent coins came up.

    limit: how many coins. probability: of each, in (0, 1/2]. rng: random stream. Returns positions in [0, limit), sorted.
    """
    parts: list[_Integers] = []
    last = -1
    while last < limit - 1:
        expected = (limit - last) * probability
        size = min(1 << 20, int(expected + 4 * math.sqrt(expected)) + 16)
        gaps = np.minimum(rng.geometric(probability, size), limit + 1)  # a longer gap ends the search, too
        positions = last + np.cumsum(gaps)
        parts.append(positions[positions < limit])
        last = int(positions[-1])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class EdgeRand(NoiseMechanism):
    """Flips every cell with probability 1/(e^ε + 1).

    Raises:
        PrivacyError: more flips than ``most_cells`` are to be expected.
    """

    epsilon: PositiveField  # ε, finite and > 0
    num_nodes: int  # n
    most_cells: int  # cells that may be flipped on average, at most: a limit of memory
    smaller: tuple[int, ...] | None = None  # whose cells, see ``EdgeCells``
    phrase: ClassVar[str] = "EdgeRand: each undirected cell flipped with probability 1/(e^{epsilon:.6g} + 1)"

    def __post_init__(self) -> None:
        super().__post_init__()
        flips = self.cells.count * self._probability
        if flips > self.most_cells:
            raise PrivacyError(
                f"EdgeRand at ε = {self.epsilon:g} on {self.num_nodes} nodes flips about {flips:.3g} cells and needs about "
                f"{flips * BYTES_PER_EDGE_CELL / 1e9:.3g} GB (allowed: {self.most_cells * BYTES_PER_EDGE_CELL / 1e9:.3g} "
                "GB); use "
                "adjacency: lapgraph, which keeps the number of edges, or method: gap_edge; or raise ε, or the limit memory_gb"
            )

    @property
    def cells(self) -> EdgeCells:
        return EdgeCells(self.num_nodes, self.smaller)

    @property
    def _probability(self) -> float:
        return 1 / (math.exp(min(self.epsilon, 700.0)) + 1)

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        edges = np.sort(self.cells.of(value))
        flipped = _bernoulli_positions(self.cells.count, self._probability, rng)
        at = np.searchsorted(flipped, edges)
        gone = np.zeros(edges.size, dtype=bool)
        inside = at < flipped.size
        gone[inside] = flipped[at[inside]] == edges[inside]
        # Sorted, because the order of rows must not tell true edges from flipped ones.
        return self.cells.edges(np.sort(np.concatenate([np.delete(flipped, at[gone]), edges[~gone]]), kind="stable"))


@dataclass(frozen=True)
class LapGraph(NoiseMechanism):
    """Laplace noise on the number of edges and on every cell; the largest cells stay.

    Raises:
        PrivacyError: a share out of its range. ``apply`` raises it where the noisy count passes ``most_cells``; that count is
            part of what ε protects, so the error tells no more than the release would.
    """

    epsilon: PositiveField  # ε, finite and > 0
    num_nodes: int  # n
    most_cells: int  # edges that may be drawn, at most: a limit of memory
    share: float = 0.01  # of ε, for the number of edges, in (0, 1)
    smaller: tuple[int, ...] | None = None  # whose cells, see ``EdgeCells``
    phrase: ClassVar[str] = "LapGraph: Laplace noise on count and cells, ε = {epsilon:.6g}, the largest cells kept"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise PrivacyError(f"LapGraph.share must satisfy 0 < share < 1, found {self.share}")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        space = EdgeCells(self.num_nodes, self.smaller)
        cells = space.count
        wanted = len(value) + rng.laplace(scale=1 / (self.share * self.epsilon))
        count = int(min(max(round(wanted), 0), cells))
        if count > self.most_cells:
            raise PrivacyError(
                f"LapGraph drew {count} edges, above its limit of {self.most_cells} cells "
                f"({self.most_cells * BYTES_PER_EDGE_CELL / 1e9:.3g} GB); give the count a larger share of ε"
            )
        if count == 0:
            return np.zeros((0, 2), dtype=np.int32)
        scale = 1 / ((1 - self.share) * self.epsilon)
        edges = np.sort(space.of(value))
        high = 1 + rng.laplace(scale=scale, size=edges.size)
        low = _laplace_tail(cells - edges.size, count, scale, rng)
        values = np.concatenate([high, low])
        kept = np.argpartition(-values, count - 1)[:count] if count < values.size else np.arange(values.size)
        zeros = _distinct_cells(cells, int((kept >= edges.size).sum()), rng, without=edges)
        return space.edges(np.sort(np.concatenate([edges[kept[kept < edges.size]], zeros])))


def _laplace_tail(population: int, count: int, scale: float, rng: np.random.Generator) -> ArrayField:
    """The largest values of ``population`` Laplace(scale) variables: at least min(count, population) of them, exactly.

    With S the survival function, S(value) is uniform. All variables with S ≤ p are drawn: Binomial(population, p) many,
    each uniform on [0, p]. If they are too few, those with S in (p, p'] follow, given what is already known.
    """
    found: list[ArrayField] = []
    drawn, reached = 0, 0.0
    while drawn < min(count, population):
        aim = count - drawn + 10 * math.sqrt(count) + 10
        upper = min(1.0, reached + aim / (population - drawn) * (1 - reached))
        number = int(rng.binomial(population - drawn, min(1.0, (upper - reached) / (1 - reached))))
        found.append(rng.uniform(reached, upper, number))
        drawn, reached = drawn + number, upper
    survival = np.concatenate(found) if found else np.zeros(0)
    survival = np.maximum(survival, 1e-300)
    upper_half = -scale * np.log(2 * survival)
    return np.where(survival <= 0.5, upper_half, scale * np.log(2 * np.maximum(1 - survival, 1e-300)))
