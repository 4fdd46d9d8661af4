"""Attention over neighbours (GAT, Veličković et al., ICLR 2018) in one compiled pass over the edges, forwards and backwards.

out[i, h] = Σ_j α[i, j, h] · kept[i, j, h] · x[j, h] over the edges j → i, where α is the softmax over j of
LeakyReLU(source[j, h] + target[i, h]).
"""

from typing import Any

import numpy as np
import torch

from fedgraph.compiled import compiled, constant
from fedgraph.compiled import types as nt

Rows = tuple[np.ndarray, np.ndarray]  # CSR: int64 start [n + 1], int64 column [m], the sources of each node's edges

_INTS = constant(nt.int64)
_TWO, _THREE = constant(nt.float32, 2), constant(nt.float32, 3)
_EDGES, _ROWS, _SIDES = nt.Array(nt.float32, 2, "C"), nt.Array(nt.float32, 3, "C"), nt.Array(nt.float32, 2, "C")


@compiled(nt.void(_INTS, _INTS, _THREE, _TWO, _TWO, _TWO, nt.float32, _EDGES, _ROWS))
def attend(start, column, x, source, target, kept, slope, share, out):  # type: ignore[no-untyped-def]
    """share [m, heads] and out [n, heads, k], which is zero at first, are written; the rest as in ``attended``."""
    heads, width = x.shape[1], x.shape[2]
    for i in range(out.shape[0]):
        for h in range(heads):
            most = np.float32(-np.inf)
            for e in range(start[i], start[i + 1]):
                z = source[column[e], h] + target[i, h]
                z = z if z > 0 else slope * z
                share[e, h] = z
                most = max(most, z)
            total = np.float32(0)
            for e in range(start[i], start[i + 1]):
                share[e, h] = np.exp(share[e, h] - most)
                total += share[e, h]
            for e in range(start[i], start[i + 1]):
                share[e, h] /= total
                weight, row = share[e, h] * kept[e, h], x[column[e], h]
                for k in range(width):
                    out[i, h, k] += weight * row[k]


@compiled(nt.void(_INTS, _INTS, _THREE, _TWO, _TWO, _TWO, nt.float32, _TWO, _THREE, _ROWS, _SIDES, _SIDES))
def attend_backwards(  # type: ignore[no-untyped-def]
    start, column, x, source, target, kept, slope, share, gradient, of_x, of_source, of_target
):
    """Gradients of x, source and target are added to the last three; gradient: that of ``out`` [n, heads, k]."""
    heads, width = x.shape[1], x.shape[2]
    for i in range(gradient.shape[0]):
        size = start[i + 1] - start[i]
        pull = np.zeros(size, np.float32)
        for h in range(heads):
            mean, wanted = np.float32(0), gradient[i, h]
            for e in range(size):
                at = start[i] + e
                weight, row, changed = share[at, h] * kept[at, h], x[column[at], h], of_x[column[at], h]
                along = np.float32(0)
                for k in range(width):
                    along += wanted[k] * row[k]
                    changed[k] += weight * wanted[k]
                pull[e] = along * kept[at, h]
                mean += share[at, h] * pull[e]
            for e in range(size):
                at = start[i] + e
                j = column[at]
                bent = share[at, h] * (pull[e] - mean)
                bent *= np.float32(1) if source[j, h] + target[i, h] > 0 else slope
                of_source[j, h] += bent
                of_target[i, h] += bent


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
