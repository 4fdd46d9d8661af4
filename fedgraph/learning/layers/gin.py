"""The graph isomorphism network (Xu, Hu, Leskovec & Jegelka, ICLR 2019, Equation 4.1), as Jin & Chen use it.

    h⁽ᵏ⁾ = N( relu( relu( ((A + I) h⁽ᵏ⁻¹⁾) W + b ) W' + b' ) ),   k = 1 … L;     Z = relu(h⁽ᴸ⁾ V + c) V' + c'

L layers of a perceptron with one hidden layer (the learnt ε of the paper is 0, its GIN-0), then two linear layers at every
node; a graph's score is the mean of its nodes' scores. Departure from the paper: N divides each node's row by its own root
mean square (or does nothing), in place of batch normalisation, whose statistics would mix nodes, graphs and clients.

Parameters are one flat vector in a ``Layout``; the gradient is automatic differentiation's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from fedgraph.learning.layers.gcn import DenseRows
from fedgraph.learning.layers.models import Layout
from fedgraph.learning.layers.pooling import Pool
from fedgraph.learning.layers.sparse import device, to_torch
from fedgraph.types import Graph


def layout(num_features: int, hidden: int, layers: int, num_classes: int) -> Layout:
    """Widths of all linear maps in order: two for each of ``layers``, two for the head."""
    return Layout((num_features, *([hidden] * (2 * layers)), hidden, num_classes))


@dataclass(frozen=True, eq=False)
class GraphInputs:
    """One graph, or the union of several: x [n, columns], A + I, labels of nodes or of pooled parts; as in ``gcn``.

    normalised: whether N divides rows by their root mean square.
    """

    x: torch.Tensor
    reach: torch.Tensor
    labels: torch.Tensor
    columns: np.ndarray
    pool: Pool | None = None
    normalised: bool = True


def compact(graph: Graph, pool: Pool | None, labels: np.ndarray, rows: sp.csr_array, normalised: bool = True) -> GraphInputs:
    """Inputs over the features that some node has. rows: CSR [n, d], the features as the network sees them."""
    columns = np.unique(rows.indices)
    reach = to_torch(sp.csr_array(graph.adjacency + sp.eye_array(graph.num_nodes, format="csr")).astype(np.float32))
    x = DenseRows(rows[:, columns].toarray()).rows
    return GraphInputs(x, reach, torch.tensor(labels, device=device()), columns, pool, normalised)


class _Aggregate(torch.autograd.Function):
    """(A + I) h for a symmetric sparse matrix, which is its own transpose."""

    @staticmethod
    def forward(context: Any, reach: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(reach)
        return reach @ rows

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        (reach,) = context.saved_tensors
        return None, reach @ gradients[0]


def hidden(layout: Layout, vector: torch.Tensor, inputs: GraphInputs) -> torch.Tensor:
    """h⁽ᴸ⁾, [n, hidden]; where normalised, each row of root mean square 1 (or zero)."""
    layers = layout.layers(vector)
    rows = inputs.x
    for (w, b), (w2, b2) in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        summed = _Aggregate.apply(inputs.reach, rows @ w)  # A(hW) = (Ah)W, over the narrower of the two
        rows = torch.relu(torch.relu(summed + b) @ w2 + b2)
        if inputs.normalised:
            rows = rows * torch.rsqrt(rows.square().mean(dim=1, keepdim=True) + 1e-6)
    return rows


def scores(layout: Layout, vector: torch.Tensor, inputs: GraphInputs) -> torch.Tensor:
    """Z, [n, c]."""
    (v, c), (v2, c2) = layout.layers(vector)[-2:]
    return torch.relu(hidden(layout, vector, inputs) @ v + c) @ v2 + c2


def gradient(layout: Layout, vector: torch.Tensor, inputs: GraphInputs) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or pooled parts) with a known label, flat; zero without any."""
    known = inputs.labels >= 0
    if not bool(known.any()):
        return torch.zeros_like(vector)
    leaf = vector.detach().requires_grad_(True)
    outputs = scores(layout, leaf, inputs)
    pooled = outputs if inputs.pool is None else inputs.pool.forward(outputs)
    loss = torch.nn.functional.cross_entropy(pooled[known], inputs.labels[known])
    (found,) = torch.autograd.grad(loss, leaf)
    return found


def select(layout: Layout, columns: np.ndarray) -> tuple[Layout, np.ndarray]:
    """(the layout over ``columns`` of the input only, where its parameters sit in the full vector)."""
    d, width = layout.widths[:2]
    first = (columns[:, None] * width + np.arange(width)).reshape(-1)
    rest = np.arange(d * width, layout.num_parameters)
    return Layout((columns.size, *layout.widths[1:])), np.concatenate([first, rest])
