"""A two-layer graph convolutional network on a whole graph, which may be a perturbed one with many edges; no privacy.

    Z = Â relu(Â X W₀ + b₀) W₁ + b₁,   Â = D̃^(−1/2)(A + I)D̃^(−1/2)        (Kipf & Welling 2017, Equation 9)

Where edges have no weight only the indices of A are kept: PyG would copy a row for each of ten million edges.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import FeatureMatrix, to_torch_matrix, torch_device, unit_matrix_rows
from fedgraph.learning.optimisers.descents import descend_by_adam
from fedgraph.learning.optimisers.public_training import PublicTrainingSteps
from fedgraph.learning.propagation import walks
from fedgraph.learning.propagation.aggregation import aggregate_neighbours
from fedgraph.types import Graph


class Hat:
    """Â of a graph (CSR [n, n], symmetric, ones, empty diagonal) as a product; only its indices are kept, no edge weights."""

    def __init__(self, adjacency: sp.csr_array) -> None:
        self.adjacency = adjacency
        scale = 1.0 / np.sqrt(np.diff(adjacency.indptr) + 1.0)
        self.scale = torch.tensor(scale.astype(np.float32)[:, None], device=torch_device())

    def __matmul__(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = self.scale * rows
        sums = aggregate_neighbours(self.adjacency, scaled.cpu().numpy())
        return self.scale * (torch.tensor(sums, device=torch_device()) + scaled)


def train_gcn_scores(
    attributes: Graph, adjacency: sp.csr_array, hidden: int, how: PublicTrainingSteps, rng: np.random.Generator
) -> np.ndarray:
    """Scores of every node after training on the labelled ones: float32 [n, c].
    adjacency: CSR [n, n], symmetric, in the place of the graph's own. One of integers has edges without weights, one of floats
    has weights.
    """
    from fedgraph.learning.layers.products import multiply  # not before it is used: it imports torch

    x, labels = FeatureMatrix(unit_matrix_rows(attributes.features)), torch.tensor(attributes.labels, device=torch_device())
    hat = to_torch_matrix(walks.symmetric_matrix(adjacency)) if adjacency.dtype.kind == "f" else Hat(adjacency)
    layout = Layout((attributes.num_features, hidden, attributes.num_classes))

    def scores(vector: torch.Tensor) -> torch.Tensor:
        (w0, b0), (w1, b1) = layout.layers(vector)
        units = torch.relu(multiply(hat, hat, multiply(x.forward, x.transposed, w0)) + b0)
        return multiply(hat, hat, units @ w1) + b1

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        return layouts.gradient(lambda leaf: layouts.cross_entropy(scores(leaf), labels), vector)

    vector = descend_by_adam(layouts.to_device(layout.start(rng)), gradient, how.epochs, how.rate, how.decay)
    with torch.no_grad():
        return scores(vector).cpu().numpy()
