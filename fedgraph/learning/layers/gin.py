"""The graph isomorphism network (Xu, Hu, Leskovec & Jegelka, ICLR 2019, Equation 4.1), as Jin & Chen use it.

    h⁽ᵏ⁾ = N( relu( relu( ((A + I) h⁽ᵏ⁻¹⁾) W + b ) W' + b' ) ),   k = 1 … L;     Z = relu(h⁽ᴸ⁾ V + c) V' + c'

L layers of a perceptron with one hidden layer (the learnt ε of the paper is 0, its GIN-0), then two linear layers at every
node; a graph's score is the mean (or the sum) of its nodes' scores. N is one of

* ``batch``: batch normalisation before either ReLU, as in the paper: of the batch while training, by running statistics
  afterwards, so that a trained model reads one graph at a time. The statistics are part of the parameters; clients' are
  averaged as the rest;
* ``rows``: each node's row after the last ReLU divided by its own root mean square: nothing is shared between nodes, graphs or
  clients, and it learns much less;
* ``none``.

Parameters are one flat vector in a ``Layout``; the gradient is automatic differentiation's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import MatrixRowPool, to_torch_matrix, torch_device
from fedgraph.types import Graph

GinNorm = Literal["batch", "rows", "none"]
_MOMENTUM = 0.1  # of the running statistics, as torch's
_VARIANCE = 1e-5  # added to a variance


@dataclass(frozen=True)
class GinLayout(Layout):
    """Linear maps, then for each of ``norms`` batch norms: scale, shift, running mean, running variance, [hidden] each."""

    norms: int = 0  # how many batch norms there are

    @property
    def num_linear(self) -> int:
        return super().num_parameters

    @property
    def num_parameters(self) -> int:
        return self.num_linear + 4 * self.norms * self.widths[1]

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """As ``Layout``; scale 1, shift 0, mean 0, variance 1."""
        vector = np.zeros(self.num_parameters, dtype=np.float32)
        vector[: self.num_linear] = Layout(self.widths).start(rng)
        if self.norms:
            vector[self.num_linear :].reshape(self.norms, 4, -1)[:, (0, 3)] = 1.0
        return vector

    def statistics(self, vector: torch.Tensor) -> torch.Tensor:
        """[norms, 4, hidden], a view."""
        return vector[self.num_linear :].view(self.norms, 4, self.widths[1])


def gin_layout(num_features: int, hidden: int, layers: int, num_classes: int, norm: GinNorm = "rows") -> GinLayout:
    """Widths of all linear maps in order: two for each of ``layers``, two for the head."""
    widths = (num_features, *([hidden] * (2 * layers)), hidden, num_classes)
    return GinLayout(widths, norms=2 * layers if norm == "batch" else 0)


@dataclass(frozen=True, eq=False)
class GinInputs:
    """One graph, or the union of several."""

    x: torch.Tensor  # float32 [n, columns]
    reach: torch.Tensor  # a + I, sparse [n, n]
    labels: torch.Tensor  # int64 of nodes or of pooled parts, −1 where unknown
    columns: np.ndarray  # which features ``x`` holds
    pool: MatrixRowPool | None = None  # as in ``gcn.GcnInputs``
    norm: GinNorm = "rows"  # which N


def compact_gin_inputs(
    graph: Graph, pool: MatrixRowPool | None, labels: np.ndarray, rows: sp.csr_array, norm: GinNorm = "rows"
) -> GinInputs:
    """Inputs over the features that some node has. rows: CSR [n, d], the features as the network sees them."""
    columns = np.unique(rows.indices)
    reach = to_torch_matrix(sp.csr_array(graph.adjacency + sp.eye_array(graph.num_nodes, format="csr")).astype(np.float32))
    x = torch.tensor(rows[:, columns].toarray(), dtype=torch.float32, device=torch_device())
    return GinInputs(x, reach, torch.tensor(labels, device=torch_device()), columns, pool, norm)


def gin_hidden_layer(
    layout: GinLayout, vector: torch.Tensor, inputs: GinInputs, seen: list[torch.Tensor] | None = None
) -> torch.Tensor:
    """h⁽ᴸ⁾, [n, hidden] ≥ 0. seen: while training; receives mean and variance [2, hidden] of every batch norm."""
    from fedgraph.learning.baselines.along_edges import multiply_along_edges  # not before it is used: it imports torch

    layers = layout.layers(vector)
    norms = iter(layout.statistics(vector)) if layout.norms else None
    rows = inputs.x
    for (w, b), (w2, b2) in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        # A(hW) = (Ah)W, over the narrower of the two; A + I is its own transpose
        summed = multiply_along_edges((inputs.reach, inputs.reach), rows @ w) + b
        rows = torch.relu(_normed(summed, norms, seen)) @ w2 + b2
        rows = torch.relu(_normed(rows, norms, seen))
        if inputs.norm == "rows":
            rows = rows * torch.rsqrt(rows.square().mean(dim=1, keepdim=True) + 1e-6)
    return rows


def _normed(rows: torch.Tensor, norms: Iterator[torch.Tensor] | None, seen: list[torch.Tensor] | None) -> torch.Tensor:
    """Batch normalisation (Ioffe & Szegedy 2015), where there is one."""
    if norms is None:
        return rows
    scale, shift, mean, variance = next(norms)
    if seen is not None and len(rows) > 1:
        mean, variance = rows.mean(dim=0), rows.var(dim=0, unbiased=False)
        seen.append(torch.stack([mean, variance * len(rows) / (len(rows) - 1)]).detach())
    found: torch.Tensor = (rows - mean) * torch.rsqrt(variance + _VARIANCE) * scale + shift
    return found


def gin_scores(
    layout: GinLayout, vector: torch.Tensor, inputs: GinInputs, seen: list[torch.Tensor] | None = None
) -> torch.Tensor:
    """Z, [n, c]."""
    (v, c), (v2, c2) = layout.layers(vector)[-2:]
    return torch.relu(gin_hidden_layer(layout, vector, inputs, seen) @ v + c) @ v2 + c2


def gin_gradient(
    layout: GinLayout, vector: torch.Tensor, inputs: GinInputs, seen: list[torch.Tensor] | None = None
) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or pooled parts) with a known label; zero where none is known.
    layout: as in ``gin_hidden_layer``, and so are the others. vector: [num_parameters]. Returns flat [num_parameters]; running
    statistics have no gradient.
    """
    known = inputs.labels >= 0
    if not bool(known.any()):
        return torch.zeros_like(vector)
    leaf = vector.detach().requires_grad_(True)
    outputs = gin_scores(layout, leaf, inputs, seen)
    pooled = outputs if inputs.pool is None else inputs.pool.forward(outputs)
    loss = torch.nn.functional.cross_entropy(pooled[known], inputs.labels[known])
    (found,) = torch.autograd.grad(loss, leaf)
    if layout.norms:
        layout.statistics(found)[:, 2:] = 0.0
    return found


def update_gin_statistics(layout: GinLayout, vector: torch.Tensor, seen: Sequence[torch.Tensor]) -> torch.Tensor:
    """``vector`` with its running statistics moved towards those of a batch, by ``_MOMENTUM``.
    vector: [num_parameters]; it is not changed. seen: of ``gin_hidden_layer``; where it is empty nothing moves.
    """
    if not (layout.norms and seen):
        return vector
    found = vector.clone()
    running = layout.statistics(found)[:, 2:]
    running.mul_(1 - _MOMENTUM).add_(torch.stack(list(seen)), alpha=_MOMENTUM)
    return found
