"""Pairs of nodes as numbers: which cells of an adjacency one client answers for, and which number each has.

One client that holds everything answers for the upper triangle, cell v(v−1)/2 + u for u < v. Where clients share the edges
between them, each answers for the pairs whose *smaller* id it holds: every pair belongs to exactly one client, by a rule
about public ids, so an edge between two clients is reported once, by one of them.

**Guarantee.** For clients that share no node, the cells of all clients are the upper triangle, each pair once: an edge is one
cell of one client (parallel composition over clients).

**Edge cases.** Ids that are not strictly increasing, or outside 0 … n − 1 → ``PrivacyError``; fewer than two nodes → no cell.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedgraph.errors import PrivacyError

Integers = npt.NDArray[np.int64]


def num_cells(num_nodes: int) -> int:
    """n(n−1)/2."""
    return num_nodes * (num_nodes - 1) // 2


def cell_of(edges: np.ndarray) -> Integers:
    """v(v−1)/2 + u, int64 [m]: a number below ``num_cells`` for each pair u < v."""
    u, v = edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64)
    cells: Integers = v * (v - 1) // 2 + u
    return cells


def edges_of(cells: np.ndarray) -> npt.NDArray[np.int32]:
    """Inverse of ``cell_of``: int32 [m, 2]."""
    v = ((1 + np.sqrt(1 + 8 * cells.astype(np.float64))) / 2).astype(np.int64)
    v -= v * (v - 1) // 2 > cells  # the square root is off by at most one
    v += (v + 1) * v // 2 <= cells
    out = np.empty((cells.size, 2), dtype=np.int32)
    out[:, 1] = v
    out[:, 0] = cells - v * (v - 1) // 2
    return out


@dataclass(frozen=True)
class Cells:
    """The cells that one client answers for. smaller: the ids it holds, strictly increasing; None: every pair of all nodes.

    >>> two = [Cells(4, (0, 3)), Cells(4, (1, 2))]
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
        return num_cells(self.num_nodes) if self.smaller is None else int(self._ends[-1])

    def of(self, edges: np.ndarray) -> Integers:
        """The number, below ``count``, of each pair u < v (integers [m, 2]); u must be among ``smaller``."""
        if self.smaller is None:
            return cell_of(edges)
        at = np.searchsorted(self._ids, edges[:, 0])
        cells: Integers = self._ends[at] + edges[:, 1] - edges[:, 0] - 1
        return cells

    def edges(self, cells: np.ndarray) -> npt.NDArray[np.int32]:
        """Inverse of ``of``: int32 [m, 2]."""
        if self.smaller is None:
            return edges_of(cells)
        at = np.searchsorted(self._ends, cells, side="right") - 1
        u = self._ids[at]
        return np.column_stack([u, u + 1 + cells - self._ends[at]]).astype(np.int32)

    @property
    def _ids(self) -> Integers:
        return np.asarray(self.smaller, dtype=np.int64)

    @property
    def _ends(self) -> Integers:
        """Of the cells of each id, the first number; at the end, their count."""
        return np.concatenate([[0], np.cumsum(self.num_nodes - 1 - self._ids)])
