"""Sparse features that any network of torch_geometric takes as its input.

A ``SparseRows`` is a tensor. A linear layer reads it at the cost of its non-zeros, and dropout removes non-zeros; every other
operation sees the dense matrix. So a GCN or a GAT, which begin with a linear map, never make the n × d matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional

from fedgraph.learning.layers.sparse import device, to_torch

_SHAPE = {  # what may be asked without making the dense matrix
    torch.Tensor.dim, torch.Tensor.size, torch.Tensor.shape.__get__, torch.Tensor.dtype.__get__,  # type: ignore[attr-defined]
    torch.Tensor.device.__get__, torch.Tensor.ndim.__get__, torch.Tensor.requires_grad.__get__, torch.Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
}  # fmt: skip


class _Linear(torch.autograd.Function):
    """x Wᵀ for a sparse x whose transpose is at hand: the backward pass of torch is ten times slower than this one."""

    @staticmethod
    def forward(context: Any, rows: SparseRows, weight: torch.Tensor) -> torch.Tensor:
        context.rows = rows
        return rows.forwards @ weight.T.contiguous()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, (context.rows.backwards @ gradients[0].contiguous()).T


class SparseRows(torch.Tensor):
    """float32 [n, d]. forwards, backwards: CSR of the matrix and of its transpose; order: int64 [nnz], where each non-zero of
    ``backwards`` is in ``forwards``. Made by ``sparse_rows``.
    """

    forwards: torch.Tensor
    backwards: torch.Tensor
    order: torch.Tensor

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, given: Any = (), named: Any = None) -> Any:
        named = named or {}
        if function is functional.linear and isinstance(given[0], SparseRows):
            weight, bias = (*given[1:], named.get("bias"))[:2]
            with torch._C.DisableTorchFunctionSubclass():
                found = _Linear.apply(given[0], weight)  # type: ignore[no-untyped-call]
                return found if bias is None else found + bias
        if function is functional.dropout and isinstance(given[0], SparseRows):
            share = named.get("p", given[1] if len(given) > 1 else 0.5)
            training = named.get("training", given[2] if len(given) > 2 else True)
            return _dropped(given[0], share) if training and share else given[0]
        if function in _SHAPE:
            return super().__torch_function__(function, kinds, given, named)  # type: ignore[no-untyped-call]
        dense = [g.dense() if isinstance(g, SparseRows) else g for g in given]
        return function(*dense, **{k: v.dense() if isinstance(v, SparseRows) else v for k, v in named.items()})

    def dense(self) -> torch.Tensor:
        """float32 [n, d]."""
        with torch._C.DisableTorchFunctionSubclass():
            return self.forwards.to_dense()


def sparse_rows(matrix: sp.csr_array) -> SparseRows:
    """``matrix`` as a tensor."""
    places = sp.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr().data
    with torch._C.DisableTorchFunctionSubclass():
        forwards, backwards = to_torch(matrix), to_torch(sp.csr_array(matrix.T.tocsr()))
        return _joined(forwards, backwards, torch.tensor(places, device=device()))


def _joined(forwards: torch.Tensor, backwards: torch.Tensor, order: torch.Tensor) -> SparseRows:
    empty = torch.empty(1, device=device()).expand(forwards.shape)  # the shape, and no memory
    found = empty.as_subclass(SparseRows)
    found.forwards, found.backwards, found.order = forwards, backwards, order
    return found


def _dropped(rows: SparseRows, share: float) -> SparseRows:
    """Each non-zero is removed with chance ``share`` (torch's global stream, as its own dropout), the others are scaled."""
    with torch._C.DisableTorchFunctionSubclass():
        scale = (torch.rand(rows.order.numel()).to(rows.order.device) >= share) / (1 - share)
        values = rows.forwards.values() * scale
        return _joined(_with_values(rows.forwards, values), _with_values(rows.backwards, values[rows.order]), rows.order)


def _with_values(matrix: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.sparse_csr_tensor(
        matrix.crow_indices(), matrix.col_indices(), values, size=matrix.shape, check_invariants=False
    )
