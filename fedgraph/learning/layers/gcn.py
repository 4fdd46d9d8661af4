"""A two-layer graph convolutional network with its gradient written out.

    Z = Â relu(Â X W₀ + b₀) W₁ + b₁,   Â = D̃^(−1/2)(A + I)D̃^(−1/2)        (Kipf & Welling 2017, Equation 9)

Parameters are one flat vector in a ``Layout((d, hidden, c))``. The gradient is by hand because the same
few products serve a whole graph (sparse) and thousands of tiny ones (dense, over the words they use).
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import (
    DenseMatrix,
    FeatureMatrix,
    MatrixRowPool,
    TorchMatrix,
    to_torch_matrix,
    torch_device,
    unit_matrix_rows,
)
from fedgraph.learning.optimisers.descents import descend_by_adam
from fedgraph.learning.optimisers.public_training import PublicTrainingSteps
from fedgraph.learning.propagation import walks
from fedgraph.learning.propagation.aggregation import aggregate_neighbours
from fedgraph.types import Graph


class _Hat:
    """Â of a graph (CSR [n, n], symmetric, ones, empty diagonal) as a product; only its indices are kept, no edge weights."""

    def __init__(self, adjacency: sp.csr_array) -> None:
        self.adjacency = adjacency
        scale = 1.0 / np.sqrt(np.diff(adjacency.indptr) + 1.0)
        self.scale = torch.tensor(scale.astype(np.float32)[:, None], device=torch_device())

    def __matmul__(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = self.scale * rows
        sums = aggregate_neighbours(self.adjacency, scaled.cpu().numpy())
        return self.scale * (torch.tensor(sums, device=torch_device()) + scaled)


@dataclass(frozen=True, eq=False)
class GcnInputs:
    """One graph, ready."""

    x: TorchMatrix  # features [n, columns]
    hat: torch.Tensor | _Hat  # Â [n, n]
    labels: torch.Tensor  # int64 of nodes or of pooled parts, −1 where unknown
    columns: np.ndarray | None = None  # which features ``x`` holds; None: all
    # the mean or sum over each part's rows where labels belong to parts of the graph; None where they belong to nodes
    pool: MatrixRowPool | None = None


def _sparse_inputs(graph: Graph, adjacency: sp.csr_array) -> GcnInputs:
    """Sparse inputs over all features; rows have unit norm. An adjacency of integers has edges without weights."""
    labels = torch.tensor(graph.labels, device=torch_device())
    hat = to_torch_matrix(walks.symmetric_matrix(adjacency)) if adjacency.dtype.kind == "f" else _Hat(adjacency)
    return GcnInputs(FeatureMatrix(unit_matrix_rows(graph.features)), hat, labels)


_compact: WeakKeyDictionary[Graph, GcnInputs] = WeakKeyDictionary()  # every training of a client asks for the same


def compact_gcn_inputs(graph: Graph) -> GcnInputs:
    """Dense inputs over the features that some node of this small graph has; rows have unit norm. They live as it does."""
    known = _compact.get(graph)
    if known is None or known.labels.device.type != torch_device().type:
        rows = unit_matrix_rows(graph.features)
        columns = np.unique(rows.indices)
        hat = torch.tensor(walks.symmetric_matrix(graph.adjacency).toarray(), device=torch_device())
        labels = torch.tensor(graph.labels, device=torch_device())
        known = _compact[graph] = GcnInputs(DenseMatrix(rows[:, columns].toarray()), hat, labels, columns)
    return known


def _forward(layout: Layout, vector: torch.Tensor, inputs: GcnInputs) -> tuple[torch.Tensor, torch.Tensor]:
    """(units of the hidden layer [n, hidden], Z [n, c])."""
    (w0, b0), (w1, b1) = layout.layers(vector)
    units = torch.relu(inputs.hat @ (inputs.x @ w0) + b0)
    return units, inputs.hat @ (units @ w1) + b1


def gcn_scores(layout: Layout, vector: torch.Tensor, inputs: GcnInputs) -> torch.Tensor:
    """Z, [n, c]."""
    return _forward(layout, vector, inputs)[1]


def gcn_gradient(layout: Layout, vector: torch.Tensor, inputs: GcnInputs) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or pooled parts) with a known label, flat; zero where none is known."""
    units, outputs = _forward(layout, vector, inputs)
    pooled = outputs if inputs.pool is None else inputs.pool.forward(outputs)
    error = layouts.output_errors(pooled, inputs.labels, mean=True)
    if inputs.pool is not None:
        error = inputs.pool.backward(error)
    spread = inputs.hat @ error
    back = layouts.relu_errors(spread @ layout.layers(vector)[1][0].T, units)
    first = inputs.x.gradient(inputs.hat @ back)
    return torch.cat([first.reshape(-1), back.sum(dim=0), (units.T @ spread).reshape(-1), error.sum(dim=0)])


def train_gcn_scores(
    attributes: Graph, adjacency: sp.csr_array, hidden: int, how: PublicTrainingSteps, rng: np.random.Generator
) -> np.ndarray:
    """Scores of every node after training on the labelled ones: float32 [n, c].
    adjacency: CSR [n, n], symmetric, in the place of the graph's own. One of integers has edges without weights, one of floats
    has weights.
    """
    inputs = _sparse_inputs(attributes, adjacency)
    layout = Layout((attributes.num_features, hidden, attributes.num_classes))
    start = layouts.to_device(layout.start(rng))
    vector = descend_by_adam(start, lambda v: gcn_gradient(layout, v, inputs), how.epochs, how.rate, how.decay)
    return gcn_scores(layout, vector, inputs).cpu().numpy()
