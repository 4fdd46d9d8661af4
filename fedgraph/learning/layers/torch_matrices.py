"""What a network reads, on the learner's device: sparse features, dense rows after an aggregation, pools of a graph's rows."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch


def torch_device() -> torch.device:
    """The GPU given to this process when there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seed_learner(seed: int) -> None:
    """As ``torch.manual_seed`` for the learner's device. That one also leaves a note, with the stack that called it, for every
    kind of device that was never used, and they are never deleted: 2 ms and some memory for each step of a long training.
    """
    torch.default_generator.manual_seed(seed)
    if torch_device().type == "cuda":
        torch.cuda.manual_seed_all(seed)


def to_torch_matrix(matrix: sp.csr_array, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A torch CSR tensor of the same matrix; the arrays are copied, never shared."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.tensor(matrix.indptr.astype(np.int64)),
            torch.tensor(matrix.indices.astype(np.int64)),
            torch.tensor(matrix.data, dtype=dtype or torch.float32),
            size=matrix.shape,
            device=torch_device(),
            check_invariants=False,
        )


class TorchMatrix:
    """A matrix [n, d] with both products that a linear layer needs."""

    forward: torch.Tensor  # the matrix, for ``x @ weight`` ([d, h] → [n, h])
    transposed: torch.Tensor  # its transpose, for ``x.gradient(error)`` ([n, h] → [d, h] = xᵀ error)
    squared_norms: torch.Tensor  # float64 [n], of its rows

    def __matmul__(self, weight: torch.Tensor) -> torch.Tensor:
        return self.forward @ weight

    def gradient(self, error: torch.Tensor) -> torch.Tensor:
        """xᵀ error. Where ``error`` is float64 the product is, too: the transpose is kept once more in double precision."""
        return (self._in_double if error.dtype == torch.float64 else self.transposed) @ error

    @cached_property
    def _in_double(self) -> torch.Tensor:
        return self.transposed.to(torch.float64)


class FeatureMatrix(TorchMatrix):
    """A sparse matrix: both products cost one pass over the non-zeros, and the transpose is stored. matrix: CSR [n, d]."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.forward = to_torch_matrix(matrix)
        self.transposed = to_torch_matrix(sp.csr_array(matrix.T.tocsr()))
        exact = sp.csr_array(matrix, dtype=np.float32).astype(np.float64)
        squares = np.asarray(exact.multiply(exact).sum(axis=1)).ravel()
        self.squared_norms = torch.tensor(squares, device=torch_device())


class DenseMatrix(TorchMatrix):
    """A dense matrix, which is what a network takes after an aggregation. rows: float [n, d]."""

    def __init__(self, rows: np.ndarray) -> None:
        self.forward = torch.tensor(np.asarray(rows, dtype=np.float32), device=torch_device())
        self.transposed = self.forward.T
        self.squared_norms = self.forward.double().square().sum(dim=1)

    @cached_property
    def _in_double(self) -> torch.Tensor:
        return self.transposed.to(torch.float64).contiguous()  # the same products in less time


def unit_matrix_rows(matrix: sp.csr_array) -> sp.csr_array:
    """Each row divided by its own L2 norm (zero rows stay zero): no statistic crosses rows.
    matrix: CSR [n, d]. Returns CSR [n, d], float32.
    """
    return _divide_rows(matrix, np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()))


def sum_matrix_rows_to_one(matrix: sp.csr_array) -> sp.csr_array:
    """Each row divided by the sum of its absolute entries (zero rows stay zero), as GCN and GAT were published."""
    return _divide_rows(matrix, np.asarray(abs(matrix).sum(axis=1), dtype=np.float64).ravel())


def _divide_rows(matrix: sp.csr_array, lengths: np.ndarray) -> sp.csr_array:
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths, dtype=np.float64), where=lengths > 0)
    return sp.csr_array(sp.diags_array(scale).astype(np.float32) @ matrix.astype(np.float32))
