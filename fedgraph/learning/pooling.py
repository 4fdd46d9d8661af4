"""From node scores to graph scores: the mean over each graph's rows, and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedgraph.learning.sparse import device


class MeanPool:
    """sizes: nodes of each graph, which follow one another in the rows.

    ``forward``: [n, c] → [graphs, c], y_g = (1/n_g) Σ_{i in g} z_i; ``backward``: its adjoint, [graphs, c] → [n, c].
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        counts = torch.tensor(self.sizes, device=device())
        self.owner = torch.repeat_interleave(torch.arange(len(self.sizes), device=device()), counts)
        self.share = (1.0 / counts.to(torch.float32))[:, None]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((len(self.sizes), rows.shape[1]), dtype=rows.dtype, device=rows.device)
        return total.index_add(0, self.owner, rows) * self.share

    def backward(self, error: torch.Tensor) -> torch.Tensor:
        return (error * self.share)[self.owner]


def first_rows(sizes: Sequence[int]) -> np.ndarray:
    """int64 [graphs]: the first row of each graph."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
