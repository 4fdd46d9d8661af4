"""Clipped gradients of rows that aggregate the logits of several nodes, without a per-row gradient in memory.

Row i of a sparse matrix Π names K nodes. With a two-layer perceptron H = relu(XW₁ + b₁)W₂ + b₂ its loss
is the cross-entropy of softmax(Σ_k Π_ik H_k) (DPAR, WWW 2024, Equation 1). Write δ = ∂loss/∂logits [c],
ā = Σ_k Π_ik relu_k [h], s = Σ_k Π_ik and ε_k = Π_ik·(W₂δ ⊙ relu'_k) [h]. The row's gradient is

    W₂: ā ⊗ δ,   b₂: s·δ,   W₁: Σ_k x_k ⊗ ε_k,   b₁: Σ_k ε_k,

so its squared norm is (‖ā‖² + s²)‖δ‖² + Σ_{k,l} (⟨x_k, x_l⟩ + 1)⟨ε_k, ε_l⟩: a K×K Gram matrix per row
of feature products, which never change and are made once. Scaling δ by min(1, C/norm) and adding up gives
the clipped sum; features stay sparse, and a node that several rows of a batch name is passed once.

**Formal guarantee.** The sum changes by at most C in L2 norm when one row is removed and at most 2C when
it is replaced, for every input, rounding included (``rounding``: its products, κ = 64): a row without a label, or whose
norm is not finite, counts as zero. Rows are those of distinct nodes: at most as many as Π has columns.

| row gradient norm | its share of the sum |
|---|---|
| 0, an empty row | 0 (an empty row's logits are 0 whatever the parameters) |
| ≤ C | unchanged |
| > C | scaled to norm C |
| NaN, ∞ | 0 |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.learning.clipping import aggregated_kernels as kernels
from fedgraph.learning.clipping.rounding import SPREAD, room
from fedgraph.learning.layers.models import Layout


class Csr(NamedTuple):
    """The three arrays of a CSR matrix, int64 / int64 / float32, columns sorted (scipy would shrink the integers)."""

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Csr:
        tidy = sp.csr_array(matrix, copy=True)
        tidy.sum_duplicates()
        return cls(tidy.indptr.astype(np.int64), tidy.indices.astype(np.int64), tidy.data.astype(np.float32))


@dataclass(frozen=True, eq=False)
class AggregatedRows:
    """R rows of Π over n nodes with d features, ready for the learner.

    features: n × d. rows: R × n, Π. labels: int64 [R], −1 where a row is masked. gram: float64 [Σ_i K_i²],
    row i's ⟨x_k, x_l⟩ + 1 from ``gram_start[i]`` on; None where gradients are never clipped.
    """

    features: Csr
    num_features: int
    rows: Csr
    labels: np.ndarray
    gram_start: np.ndarray
    gram: np.ndarray | None

    @property
    def num_rows(self) -> int:
        return int(self.labels.size)


def aggregated_rows(features: sp.csr_array, rows: sp.csr_array, labels: np.ndarray, clipped: bool = True) -> AggregatedRows:
    """Π (CSR [R, n]) over nodes with ``features`` (CSR [n, d]) and one label per row, ready for training.

    clipped: whether gradients will be clipped (only then are Gram matrices made, K_i² numbers per row).
    """
    if rows.shape[1] != features.shape[0] or labels.shape != (rows.shape[0],):
        raise DataError(f"rows {rows.shape}, features {features.shape} and labels {labels.shape} do not fit together")
    x, pi = Csr.of(features), Csr.of(rows)
    start = np.concatenate([[0], np.cumsum(np.square(np.diff(pi.start)))]).astype(np.int64)
    gram = None
    if clipped:
        gram = np.zeros(start[-1])
        kernels.gram_matrices(*x, pi.start, pi.column, start, gram)
    return AggregatedRows(x, features.shape[1], pi, labels.astype(np.int64), start, gram)


def clipped_gradient_sum(
    layout: Layout, vector: np.ndarray, rows: AggregatedRows, batch: np.ndarray, clip: float | None
) -> np.ndarray:
    """Σ over the rows in ``batch`` of clip(∇ cross-entropy, C), flat [num_parameters], float32 or float64 (``rounding``).

    layout: two weight layers. vector: float32 parameters. batch: int [b], row numbers. clip None: no clipping
    (not private).
    """
    if len(layout.widths) != 3 or layout.widths[0] != rows.num_features:
        raise DataError(f"aggregated rows need an MLP {rows.num_features} → hidden → classes, found widths {layout.widths}")
    if clip is not None and rows.gram is None:
        raise DataError("these rows were prepared with clipped=False, so their gradients cannot be clipped")
    _, hidden, classes = layout.widths
    gram = np.zeros(0) if rows.gram is None else rows.gram
    out = np.zeros(layout.num_parameters)
    dtype, share = room(max(rows.num_rows, rows.features.start.size - 1), SPREAD)
    limit = np.inf if clip is None else float(clip) * share
    kernels.gradient_sum(
        *rows.features,
        *rows.rows,
        *(rows.labels, rows.gram_start, gram, np.ascontiguousarray(batch, np.int64)),
        *(np.ascontiguousarray(vector, np.float32), hidden, classes, limit, out),
    )
    return out.astype(np.float32 if clip is None else dtype, copy=False)
