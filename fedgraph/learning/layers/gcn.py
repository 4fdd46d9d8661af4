"""A two-layer graph convolutional network with its gradient written out.

    Z = Â relu(Â X W₀ + b₀) W₁ + b₁,   Â = D̃^(−1/2)(A + I)D̃^(−1/2)        (Kipf & Welling 2017, Equation 9)

Parameters are one flat vector in a ``Layout((d, hidden, c))``. The gradient is by hand because the same
few products serve a whole graph (sparse) and thousands of tiny ones (dense, over the words they use).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers.matrices import DenseMatrix, FeatureMatrix, Pool, Rows, device, to_torch, unit_rows
from fedgraph.learning.layers.models import Layout, cross_entropy_errors, on_device, through_relu
from fedgraph.learning.optimisers.descents import adam
from fedgraph.learning.optimisers.public_training import Fitting
from fedgraph.learning.propagation.aggregation import neighbour_sums
from fedgraph.learning.propagation.walks import symmetric_with_loops
from fedgraph.types import Graph


class Hat:
    """Â of a graph as a product; only its indices are kept, no edge weights.

    Args:
        adjacency: CSR [n, n], symmetric, ones, empty diagonal.
    """

    def __init__(self, adjacency: sp.csr_array) -> None:
        self.adjacency = adjacency
        scale = 1.0 / np.sqrt(np.diff(adjacency.indptr) + 1.0)
        self.scale = torch.tensor(scale.astype(np.float32)[:, None], device=device())

    def __matmul__(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = self.scale * rows
        sums = neighbour_sums(self.adjacency, scaled.cpu().numpy())
        return self.scale * (torch.tensor(sums, device=device()) + scaled)


@dataclass(frozen=True, eq=False)
class GraphInputs:
    """One graph, ready.

    Attributes:
        x: Features [n, columns].
        hat: Â [n, n].
        labels: int64 of nodes or of pooled parts, −1 where unknown.
        columns: Which features ``x`` holds; None: all.
        pool: The mean or sum over each part's rows where labels belong to parts of the graph; None where they belong to nodes.
    """

    x: Rows
    hat: torch.Tensor | Hat
    labels: torch.Tensor
    columns: np.ndarray | None = None
    pool: Pool | None = None


def sparse_inputs(graph: Graph) -> GraphInputs:
    """Sparse inputs over all features; rows have unit norm."""
    labels = torch.tensor(graph.labels, device=device())
    return GraphInputs(FeatureMatrix(unit_rows(graph.features)), to_torch(symmetric_with_loops(graph.adjacency)), labels)


_compact: WeakKeyDictionary[Graph, GraphInputs] = WeakKeyDictionary()  # every training of a client asks for the same


def compact_inputs(graph: Graph) -> GraphInputs:
    """Dense inputs over the features that some node of this small graph has; rows have unit norm. They live as it does."""
    known = _compact.get(graph)
    if known is None or known.labels.device.type != device().type:
        rows = unit_rows(graph.features)
        columns = np.unique(rows.indices)
        hat = torch.tensor(symmetric_with_loops(graph.adjacency).toarray(), device=device())
        labels = torch.tensor(graph.labels, device=device())
        known = _compact[graph] = GraphInputs(DenseMatrix(rows[:, columns].toarray()), hat, labels, columns)
    return known


def scores(layout: Layout, vector: torch.Tensor, inputs: GraphInputs) -> torch.Tensor:
    """Z, [n, c]."""
    (w0, b0), (w1, b1) = layout.layers(vector)
    hidden = torch.relu(inputs.hat @ (inputs.x @ w0) + b0)
    return inputs.hat @ (hidden @ w1) + b1


def gradient(layout: Layout, vector: torch.Tensor, inputs: GraphInputs, keep: Any = None) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or pooled parts) with a known label, flat.

    keep: a dropout mask on the hidden layer, [n, hidden], already scaled; None for none. Without a
    known label the gradient is zero.
    """
    (w0, b0), (w1, b1) = layout.layers(vector)
    units = torch.relu(inputs.hat @ (inputs.x @ w0) + b0)
    hidden = units if keep is None else units * keep
    outputs = inputs.hat @ (hidden @ w1) + b1
    pooled = outputs if inputs.pool is None else inputs.pool.forward(outputs)
    error = cross_entropy_errors(pooled, inputs.labels, mean=True)
    if inputs.pool is not None:
        error = inputs.pool.backward(error)
    spread = inputs.hat @ error
    back = through_relu(spread @ w1.T, units)
    if keep is not None:
        back = back * keep
    first = inputs.x.gradient(inputs.hat @ back)
    return torch.cat([first.reshape(-1), back.sum(dim=0), (hidden.T @ spread).reshape(-1), error.sum(dim=0)])


def trained_scores(
    attributes: Graph, adjacency: sp.csr_array, hidden: int, how: Fitting, rng: np.random.Generator
) -> np.ndarray:
    """Scores of every node after training on the labelled ones.

    Args:
        attributes: Features and labels.
        adjacency: CSR [n, n], symmetric, in the place of the graph's own. One of integers has edges without weights, one of
            floats has weights.
        hidden: Units of the hidden layer.
        how: Steps of Adam.
        rng: Draws the initial parameters.

    Returns:
        float32 [n, c].
    """
    labels = torch.tensor(attributes.labels, device=device())
    hat = to_torch(symmetric_with_loops(adjacency)) if adjacency.dtype.kind == "f" else Hat(adjacency)
    inputs = GraphInputs(FeatureMatrix(unit_rows(attributes.features)), hat, labels)
    layout = Layout((attributes.num_features, hidden, attributes.num_classes))
    start = on_device(layout.start(rng))
    vector = adam(start, lambda v: gradient(layout, v, inputs), how.epochs, how.rate, how.decay)
    return scores(layout, vector, inputs).cpu().numpy()
