"""Attention over neighbours (GAT, Veličković et al., ICLR 2018) in one compiled pass over the edges, forwards and backwards.

out[i, h] = Σ_j α[i, j, h] · kept[i, j, h] · x[j, h] over the edges j → i, where α is the softmax over j of
LeakyReLU(source[j, h] + target[i, h]).
"""

from typing import Any

import numpy as np
import torch

from fedgraph.learning.baselines.attention_kernels import attend, attend_backwards

Rows = tuple[np.ndarray, np.ndarray]  # CSR: int64 start [n + 1], int64 column [m], the sources of each node's edges


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor, *fixed: Any) -> torch.Tensor:
        (start, column), kept, slope = fixed
        values = tuple(np.ascontiguousarray(t.detach().numpy()) for t in (x, source, target, kept))
        share, out = np.empty_like(values[3]), np.zeros_like(values[0])
        attend(start, column, *values, np.float32(slope), share, out)
        context.known = (start, column, *values, np.float32(slope), share)
        return torch.from_numpy(out)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        known = context.known
        found = tuple(np.zeros_like(values) for values in known[2:5])
        attend_backwards(*known, np.ascontiguousarray(gradients[0].numpy()), *found)
        return (*(torch.from_numpy(f) for f in found), None, None, None)


def attended(
    rows: Rows, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor, kept: torch.Tensor, slope: float
) -> torch.Tensor:
    """float32 [n, heads, k]. x: [n, heads, k]; source, target: [n, heads]; kept: [m, heads], what dropout leaves of each share,
    by the order of ``rows``; slope: of the leaky ReLU. On a CPU only.
    """
    found: torch.Tensor = _Attention.apply(x, source, target, rows, kept, slope)  # type: ignore[no-untyped-call]
    return found
