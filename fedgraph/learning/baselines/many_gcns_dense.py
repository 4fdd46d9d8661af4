"""The same local training as ``many_gcns`` for features that are mostly not zero: two dense products a layer and no dropout.

Â X does not change from step to step, so it is made once per client (Wu et al., ICML 2019, do so for each layer), and a step is
Z₁ = (ÂX) W₀ᵀ + b₀, H = max(Z₁, 0), S = Â (H W₁ᵀ) + b₁, with the gradients written out. What needs no neighbour is done for
``_BLOCK`` rows at a time, which stay in the processor's cache: a step takes half the time. Results differ from those of
``fitting.continue_fitting`` by the rounding of float32 sums in another order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.baselines.fitting import FittingProgress, FittingSteps, take_fitting_step
from fedgraph.learning.baselines.network_shapes import NetworkShape
from fedgraph.learning.late import torch
from fedgraph.learning.layers.torch_matrices import to_torch_matrix

_FILLED = 0.25  # share of entries that are not zero, from which rows are kept densely
_BLOCK = 512  # rows that are multiplied, cut off and summed before the next ones


@dataclass(frozen=True, eq=False)
class ManyGcnsDenseClient:
    """One client's graph.

    Attributes:
        smooth: ÂX, float32 [n, d].
        hat: Â, CSR [n, n].
        rows: The client's rows of the union.
    """

    smooth: torch.Tensor
    hat: torch.Tensor
    rows: slice


def can_train_many_dense(x: sp.csr_array, shape: NetworkShape) -> bool:
    """Whether this way is taken: filled features, and nothing is dropped out of them."""
    return not (shape.dropout or shape.input_dropout) and x.nnz > _FILLED * x.shape[0] * x.shape[1]


def prepare_many_gcns_dense(x: sp.csr_array, hat: sp.csr_array, starts: np.ndarray) -> list[ManyGcnsDenseClient]:
    """x, hat: of the disjoint union of all clients. starts: int64 [k + 1]."""
    found = []
    for first, end in itertools.pairwise(starts):
        rows = slice(int(first), int(end))
        own = sp.csr_array(hat[rows, rows])
        found.append(
            ManyGcnsDenseClient(torch.tensor(np.asarray(own @ x[rows].toarray(), dtype=np.float32)), to_torch_matrix(own), rows)
        )
    return found


def train_many_gcns_dense(
    shape: NetworkShape, clients: Sequence[ManyGcnsDenseClient], labels: np.ndarray, before: FittingProgress, how: FittingSteps
) -> tuple[np.ndarray, np.ndarray, float]:
    """As ``many_gcns.train_many_gcns``."""
    p = before.vector.size
    total, moments, weights = np.zeros(p), np.zeros((2, p if how.adam else 0)), 0.0
    scratch = torch.empty(max(len(c.smooth) for c in clients), shape.hidden)
    for client in clients:
        own = labels[client.rows]
        weight = float((own >= 0).sum())
        if weight:
            after = _one(shape, client, own, before, how, scratch)
            total += weight * after.vector.astype(np.float64)
            moments += weight * after.moments.astype(np.float64)
            weights += weight
    return total, moments, weights


def _one(
    shape: NetworkShape,
    client: ManyGcnsDenseClient,
    labels: np.ndarray,
    before: FittingProgress,
    how: FittingSteps,
    scratch: torch.Tensor,
) -> FittingProgress:
    sizes = [(shape.hidden,), (shape.hidden, shape.num_features), (shape.num_classes,), (shape.num_classes, shape.hidden)]
    weights = _split(before.vector, sizes)
    origin = [w.clone() for w in weights]
    firsts, seconds = (_split(m, sizes) for m in before.moments) if how.adam else (weights, weights)
    known = torch.tensor(np.flatnonzero(labels >= 0))
    target = torch.tensor(labels)[known]
    for step in range(how.first + 1, how.first + how.count + 1):
        found = _gradients(client, weights, known, target, scratch)
        take_fitting_step(weights, found, origin, firsts, seconds, step, how)
    moments = np.stack([_flat(firsts), _flat(seconds)]) if how.adam else np.zeros((2, 0), np.float32)
    return FittingProgress(_flat(weights), moments)


def _gradients(
    client: ManyGcnsDenseClient,
    weights: Sequence[torch.Tensor],
    known: torch.Tensor,
    target: torch.Tensor,
    scratch: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Of the mean cross-entropy of the known nodes, by b₀, W₀, b₁ and W₁. scratch: [≥ n, h], overwritten."""
    b0, w0, b1, w1 = weights
    smooth, hidden = client.smooth, scratch[: len(client.smooth)]
    projected = torch.empty(len(smooth), len(b1))
    first, last = w0.T.contiguous(), w1.T.contiguous()
    for rows in _blocks(len(smooth)):
        torch.addmm(b0, smooth[rows], first, out=hidden[rows]).relu_()
        torch.mm(hidden[rows], last, out=projected[rows])
    scores = client.hat @ projected + b1
    error = torch.zeros_like(scores)
    chances = torch.softmax(scores[known], dim=1)
    chances[torch.arange(len(target)), target] -= 1.0
    error[known] = chances / len(target)
    back = client.hat @ error  # Â is symmetric
    by_b0, by_w0, by_w1 = torch.zeros_like(b0), torch.zeros_like(w0), torch.zeros_like(w1)
    inner = torch.empty(min(_BLOCK, len(smooth)), len(b0))
    for rows in _blocks(len(smooth)):
        own = torch.mm(back[rows], w1, out=inner[: rows.stop - rows.start])
        torch.ops.aten.threshold_backward.grad_input(own, hidden[rows], 0, grad_input=own)  # zero where H is
        by_b0 += own.sum(dim=0)
        by_w0.addmm_(own.T, smooth[rows])
        by_w1.addmm_(back[rows].T, hidden[rows])
    return by_b0, by_w0, error.sum(dim=0), by_w1


def _blocks(size: int) -> Iterator[slice]:
    for begin in range(0, size, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, size))


def _split(vector: np.ndarray, sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    ends = np.cumsum([int(np.prod(size)) for size in sizes])
    parts = np.split(np.array(vector, dtype=np.float32), ends[:-1])
    return [torch.from_numpy(part.copy()).reshape(size) for part, size in zip(parts, sizes, strict=True)]


def _flat(parts: Sequence[torch.Tensor]) -> np.ndarray:
    return torch.cat([part.reshape(-1) for part in parts]).numpy()
