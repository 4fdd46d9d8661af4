"""From a release to a metric-measure space: distances, weights and, where wanted, features.

Gromov-Wasserstein compares graphs only through (C, p): the distances C between a graph's own nodes and
the weight p of each node. A space is built from what the server has received (node embeddings) or from
topology (shortest paths), never from the private graph behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from fedgraph.errors import DataError

SpaceMetric = Literal["euclidean", "cosine", "correlation"]
SpaceWeights = Literal["uniform", "degree"]


@dataclass(frozen=True, eq=False)
class MetricSpace:
    """A finite metric-measure space of n points.

    Attributes:
        distances: float64 [n, n], symmetric. Any symmetric matrix is accepted: the discrepancy needs no triangle inequality.
        weights: float64 [n], non-negative, sum 1; a point of weight zero changes nothing.
        features: float64 [n, f], used by the fused discrepancy only, or None.

    Raises:
        DataError: There is NaN or infinity, no point, or parts that contradict each other.
    """

    distances: np.ndarray
    weights: np.ndarray
    features: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "distances", np.asarray(self.distances, dtype=np.float64))
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=np.float64))
        if self.features is not None:
            object.__setattr__(self, "features", np.asarray(self.features, dtype=np.float64))
        n = self.weights.size
        if n == 0:
            raise DataError("a metric space needs at least one point, found none")
        if self.distances.shape != (n, n) or self.weights.ndim != 1:
            raise DataError(
                f"distances {self.distances.shape} and weights {self.weights.shape} do not describe the same points"
            )
        _require_finite("distances", self.distances)
        _require_finite("weights", self.weights)
        if (self.weights < 0).any() or abs(self.weights.sum() - 1.0) > 1e-9:
            raise DataError(
                f"weights must be non-negative and sum to 1; found a minimum of {self.weights.min():g} "
                f"and a sum of {self.weights.sum():.12g}"
            )
        scale = max(1.0, float(np.abs(self.distances).max()))
        if np.abs(self.distances - self.distances.T).max() > 1e-9 * scale:
            raise DataError("distances must be symmetric; write (D + D.T) / 2 if a directed measure was meant")
        if self.features is not None:
            if self.features.ndim != 2 or self.features.shape[0] != n:
                raise DataError(f"features {self.features.shape} do not have one row for each of {n} points")
            _require_finite("features", self.features)

    @property
    def num_points(self) -> int:
        return int(self.weights.size)


def from_embedding(
    rows: np.ndarray,
    metric: SpaceMetric = "euclidean",
    weights: SpaceWeights = "uniform",
    degrees: np.ndarray | None = None,
    features: np.ndarray | None = None,
) -> MetricSpace:
    """The space of node embeddings: C(u, v) = d(H_u, H_v) (Jin & Chen, Eq. 3 and 6).

    **Edge cases.** A row without a direction (all zero for ``cosine``, constant for ``correlation``) is at distance 1 from
    every row that has one (as if uncorrelated) and 0 from the others of its kind. One row is the one-point space.

    Args:
        rows: [n, h], n ≥ 1.
        metric: ``euclidean`` |x − y|; ``cosine`` 1 − ⟨x, y⟩/(|x||y|); ``correlation`` the cosine of the rows minus their own
            means.
        weights: ``uniform``, or ``degree``: proportional to ``degrees``.
        degrees: [n], needed for ``degree``.
        features: [n, f], or None.

    Raises:
        DataError: There is NaN or infinity, an unknown metric or weighting, or degrees are missing or wrong.
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise DataError(f"an embedding must be a matrix with one row per node, found shape {rows.shape}")
    _require_finite("embedding rows", rows)
    if metric == "euclidean":
        distances = cdist(rows, rows) if rows.shape[1] else np.zeros((rows.shape[0], rows.shape[0]))
    elif metric in ("cosine", "correlation"):
        distances = _angular(rows, centred=metric == "correlation")
    else:
        raise DataError(f"unknown metric {metric!r}; allowed: 'euclidean', 'cosine', 'correlation'")
    return MetricSpace(distances, _point_weights(rows.shape[0], weights, degrees), features)


def from_topology(
    adjacency: sp.csr_array | np.ndarray, weights: SpaceWeights = "uniform", features: np.ndarray | None = None
) -> MetricSpace:
    """The space of a graph's unweighted shortest paths; edges count in both directions.

    Nodes that no path joins are 1 + the graph's largest finite distance apart (just out of reach; 1 if there is no edge at
    all). One node is the one-point space.

    Args:
        adjacency: [n, n], n ≥ 1.
        weights: ``uniform``, or ``degree``: proportional to the number of neighbours.
        features: [n, f], or None.

    Raises:
        DataError: The adjacency is empty, not square or not finite.
    """
    adjacency = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    n = adjacency.shape[0]
    if adjacency.shape != (n, n) or n == 0:
        raise DataError(f"an adjacency must be a non-empty square matrix, found shape {adjacency.shape}")
    _require_finite("adjacency", adjacency.data)
    adjacency.eliminate_zeros()
    distances = shortest_path(adjacency, directed=False, unweighted=True)
    apart = np.isinf(distances)
    if apart.any():
        distances[apart] = 1.0 + distances[~apart].max()
    edges = ((adjacency + adjacency.T) != 0).tocsr()
    return MetricSpace(distances, _point_weights(n, weights, np.diff(edges.indptr)), features)


def _point_weights(num_points: int, weights: SpaceWeights, degrees: np.ndarray | None = None) -> np.ndarray:
    """float64 [n]: 1/n each, or proportional to degree (then an isolated node weighs nothing).

    A graph without any edge falls back to uniform weights under ``degree``.
    """
    if weights == "uniform":
        return np.full(num_points, 1.0 / num_points)
    if weights != "degree":
        raise DataError(f"unknown weights {weights!r}; allowed: 'uniform', 'degree'")
    if degrees is None:
        raise DataError("weights='degree' needs the node degrees; pass degrees=…")
    degrees = np.asarray(degrees, dtype=np.float64)
    if degrees.shape != (num_points,) or not np.isfinite(degrees).all() or (degrees < 0).any():
        raise DataError(f"degrees must be {num_points} finite non-negative numbers, found shape {degrees.shape}")
    total = degrees.sum()
    return degrees / total if total > 0 else np.full(num_points, 1.0 / num_points)


def _angular(rows: np.ndarray, centred: bool) -> np.ndarray:
    """1 − cosine similarity, in [0, 2], with a zero diagonal and the documented value for rows without direction."""
    size = np.abs(rows).max(axis=1, initial=0.0)
    if centred and rows.shape[1]:
        rows = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1)
    still = norms <= 1e-12 * np.maximum(size, np.finfo(np.float64).tiny)
    units = np.where(still[:, None], 0.0, rows / np.where(still, 1.0, norms)[:, None])
    distances = np.clip(1.0 - units @ units.T, 0.0, 2.0)
    distances = 0.5 * (distances + distances.T)
    distances[np.ix_(still, still)] = 0.0
    np.fill_diagonal(distances, 0.0)
    return distances


def _require_finite(what: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        where = np.argwhere(~np.isfinite(values))[0]
        raise DataError(f"{what} hold NaN or infinity (first at index {tuple(int(i) for i in where)}); allowed: finite numbers")


def points_of(space: MetricSpace) -> np.ndarray:
    """The points that weigh something: int64 [k]."""
    return np.flatnonzero(space.weights > 2.0**-45)
