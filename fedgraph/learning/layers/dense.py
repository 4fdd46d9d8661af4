"""Dense rows with the same products as ``sparse.FeatureMatrix``: what a network takes after an aggregation."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedgraph.learning.late import torch
from fedgraph.learning.layers.sparse import FeatureMatrix, device


class DenseMatrix:
    """float32 [n, d]: ``x @ weight``, ``x.gradient(error)`` = xᵀ error, and squared row norms (float64)."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = torch.tensor(np.asarray(rows, dtype=np.float32), device=device())

    def __matmul__(self, weight: torch.Tensor) -> torch.Tensor:
        return self.rows @ weight

    def gradient(self, error: torch.Tensor) -> torch.Tensor:
        return (self._in_double if error.dtype == torch.float64 else self.rows).T @ error

    @cached_property
    def squared_norms(self) -> torch.Tensor:
        return self.rows.double().square().sum(dim=1)

    @cached_property
    def _in_double(self) -> torch.Tensor:
        return self.rows.double()


Rows = FeatureMatrix | DenseMatrix  # what a network reads
