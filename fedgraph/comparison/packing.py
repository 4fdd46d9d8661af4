"""Many metric spaces in one array, one after another, as the compiled loop reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.transport import units
from fedgraph.errors import DataError


class Packed(NamedTuple):
    """S spaces with N points and Q = Σ n² distances in all; points of weight zero are left out.

    Attributes:
        names: int64 [S], each space's number in the caller's list.
        point_at: int64 [S + 1], where each space's points start.
        matrix_at: int64 [S + 1], where each space's distances start.
        distances: float64 [Q].
        weights: float64 [N].
        products: float64 [N], C p: each point's mean distance.
        whole: float64 [N], weights as whole numbers (``transport.units``).
        even: bool [S], whether weights are all equal.
        order: int64 [N], points by ascending mean distance, ties by mean squared distance.
        own: float64 [S], Σ_ik C²_ik p_i p_k.
        widest: float64 [S], the largest |C_ik|.
        features: float64 [N, f], f = 0 where there are none.
    """

    names: np.ndarray
    point_at: np.ndarray
    matrix_at: np.ndarray
    distances: np.ndarray
    weights: np.ndarray
    products: np.ndarray
    whole: np.ndarray
    even: np.ndarray
    order: np.ndarray
    own: np.ndarray
    widest: np.ndarray
    features: np.ndarray


def weighted_points(space: MetricSpace) -> np.ndarray:
    """The points that weigh something: int64 [k]."""
    return np.flatnonzero(space.weights > 2.0**-45)


def pack(spaces: Sequence[MetricSpace], names: np.ndarray, fused: bool) -> Packed:
    """Copies (never views) of what the solver needs. Raises ``DataError`` when features are needed but missing."""
    parts = [_part(space, fused) for space in spaces]
    distances, weights, products, whole, order, own, features = zip(*parts, strict=True)
    sizes = np.array([w.size for w in weights], dtype=np.int64)
    widths = {f.shape[1] for f in features}
    if len(widths) > 1:
        raise DataError(f"spaces to be compared have features of different widths: {sorted(widths)}")
    return Packed(
        names=np.array(names, dtype=np.int64),
        point_at=np.concatenate([[0], np.cumsum(sizes)]),
        matrix_at=np.concatenate([[0], np.cumsum(sizes * sizes)]),
        distances=np.concatenate(distances),
        weights=np.concatenate(weights),
        products=np.concatenate(products),
        whole=np.concatenate(whole),
        even=np.array([(w == w[0]).all() for w in weights]),
        order=np.concatenate(order),
        own=np.array(own),
        widest=np.array([np.abs(d).max() for d in distances]),
        features=np.concatenate(features),
    )


def _part(space: MetricSpace, fused: bool) -> tuple[Any, ...]:
    distances, weights, features = space.distances, space.weights, space.features
    if fused and features is None:
        raise DataError("the fused discrepancy (alpha given) needs spaces with features; this one has none")
    kept = weighted_points(space)
    if kept.size < weights.size:
        distances = distances[np.ix_(kept, kept)]
        weights = weights[kept] / weights[kept].sum()
        features = features[kept] if features is not None else None
    squares = distances * distances
    products = distances @ weights
    second = squares @ weights
    scale = max(float(np.abs(products).max(initial=0.0)), 1e-300)
    order = np.lexsort((second, np.round(products / scale, 10)))
    rows = np.ascontiguousarray(features) if fused and features is not None else np.zeros((weights.size, 0))
    return distances.ravel(), weights, products, units(weights), order, float(weights @ second), rows
