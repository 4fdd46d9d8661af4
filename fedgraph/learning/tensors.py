"""torch, imported when something of it is first used, and matrices on the learner's device with the products of a network.

A driver and a server that only plan, merge and write never need torch. So a file that takes ``torch`` from here postpones its
annotations (``from __future__ import annotations``), and makes no class, default or constant of torch's at its top.
"""

from __future__ import annotations

import importlib
import warnings
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    import torch as torch
else:

    class _Torch:
        """Stands for the module; the import lock makes threads that use it at once wait for one import."""

        def __getattr__(self, name: str) -> object:
            vars(self).update(vars(importlib.import_module("torch")))
            return vars(self)[name]

    torch = _Torch()


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


def unit_matrix_rows(matrix: sp.csr_array, norm: Literal["L1", "L2"] = "L2") -> sp.csr_array:
    """Each row divided by its own norm (zero rows stay zero): no statistic crosses rows.
    matrix: CSR [n, d]. norm: ``L1``, as GCN and GAT were published, adds up absolute entries. Returns CSR [n, d], float32.
    """
    if norm == "L1":
        lengths = np.asarray(abs(matrix).sum(axis=1), dtype=np.float64).ravel()
    else:
        lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths, dtype=np.float64), where=lengths > 0)
    return sp.csr_array(sp.diags_array(scale).astype(np.float32) @ matrix.astype(np.float32))


def multiply(forwards: object, backwards: object, x: torch.Tensor) -> torch.Tensor:
    """A x, [n, h], which autograd follows: torch's own backward pass of a sparse product is ten times slower.
    forwards, backwards: A and its transpose, whatever ``@`` multiplies; x: [m, h].
    """
    found: torch.Tensor = _product().apply(x, forwards, backwards)  # type: ignore[no-untyped-call]
    return found


@cache
def _product() -> type[torch.autograd.Function]:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor, forwards: Any, backwards: Any) -> torch.Tensor:
            context.backwards = backwards
            return torch.as_tensor(forwards @ x.contiguous())

        @staticmethod
        def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
            return context.backwards @ gradients[0].contiguous(), None, None

    return Product
