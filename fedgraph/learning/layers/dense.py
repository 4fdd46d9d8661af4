"""Dense rows with the same products as ``sparse.FeatureMatrix``: what a network takes after an aggregation."""

from __future__ import annotations

import numpy as np
import torch

from fedgraph.learning.layers.sparse import device


class DenseMatrix:
    """float32 [n, d]: ``x @ weight``, ``x.gradient(error)`` = xᵀ error, and squared row norms."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = torch.tensor(np.asarray(rows, dtype=np.float32), device=device())
        self.squared_norms = self.rows.square().sum(dim=1)

    def __matmul__(self, weight: torch.Tensor) -> torch.Tensor:
        return self.rows @ weight

    def gradient(self, error: torch.Tensor) -> torch.Tensor:
        return self.rows.T @ error
