"""From node scores to graph scores: the mean (or the sum) over each graph's rows, and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedgraph.learning.late import torch
from fedgraph.learning.layers.sparse import device


class Pool:
    """sizes: nodes of each graph, which follow one another in the rows. total: the sum in place of the mean.

    ``forward``: [n, c] → [graphs, c], y_g = (1/n_g) Σ_{i in g} z_i, or Σ_{i in g} z_i; ``backward``: its adjoint,
    [graphs, c] → [n, c]. A mean does not see how many nodes a graph has; a sum does.
    """

    def __init__(self, sizes: Sequence[int], total: bool = False) -> None:
        self.sizes, self.total = tuple(sizes), total
        counts = torch.tensor(self.sizes, device=device())
        self.owner = torch.repeat_interleave(torch.arange(len(self.sizes), device=device()), counts)
        shares = torch.ones_like(counts, dtype=torch.float32) if total else 1.0 / counts.to(torch.float32)
        self.share = shares[:, None]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((len(self.sizes), rows.shape[1]), dtype=rows.dtype, device=rows.device)
        return total.index_add(0, self.owner, rows) * self.share

    def backward(self, error: torch.Tensor) -> torch.Tensor:
        return (error * self.share)[self.owner]


def first_rows(sizes: Sequence[int]) -> np.ndarray:
    """int64 [graphs]: the first row of each graph."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
