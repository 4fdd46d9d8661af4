"""GraphSAGE with the mean aggregator on a whole graph, two layers, its gradient written out; no privacy.

    H = relu(X U₀ + Ā X V₀ + b₀),    Z = H U₁ + Ā H V₁ + b₁,    Ā = D⁻¹A        (Hamilton et al. 2017, Algorithm 1)

Ā is applied after the product with V, where rows are short, and without storing edge weights: on a perturbed
graph with ten million edges only their CSR indices are kept. Parameters are one flat vector [U₀, V₀, b₀, U₁, V₁, b₁].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.torch_matrices import FeatureMatrix, torch_device, unit_matrix_rows
from fedgraph.learning.optimisers.descents import descend_by_adam
from fedgraph.learning.optimisers.public_training import PublicTrainingSteps
from fedgraph.learning.propagation.aggregation import aggregate_neighbours
from fedgraph.types import Graph


@dataclass(frozen=True)
class GraphsageWidths:
    """Widths of the two layers."""

    inputs: int  # d
    hidden: int  # h
    classes: int  # c

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        d, h, c = self.inputs, self.hidden, self.classes
        return ((d, h), (d, h), (h,), (h, c), (h, c), (c,))

    def views(self, vector: torch.Tensor) -> list[torch.Tensor]:
        """U₀, V₀, b₀, U₁, V₁ and b₁ as views into ``vector``."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        return [part.view(shape) for part, shape in zip(torch.split(vector, sizes), self.shapes, strict=True)]

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Glorot-uniform weights and zero biases, flat float32."""
        parts = []
        for shape in self.shapes:
            limit = np.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
            parts.append(rng.uniform(-1, 1, shape).astype(np.float32).ravel() * np.float32(limit))
        return np.concatenate(parts)


class GraphsageMean:
    """Ā and its transpose as products.

    Args:
        adjacency: CSR [n, n], symmetric, ones; only its indices are used.
    """

    def __init__(self, adjacency: sp.csr_array) -> None:
        self.adjacency = adjacency
        degrees = np.diff(adjacency.indptr).astype(np.float32)
        scale = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)[:, None]
        self.scale = torch.tensor(scale, device=torch_device())

    def of(self, rows: torch.Tensor) -> torch.Tensor:
        """Ā rows."""
        return self.scale * self.sums(rows)

    def back(self, errors: torch.Tensor) -> torch.Tensor:
        """Āᵀ errors."""
        return self.sums(self.scale * errors)

    def sums(self, rows: torch.Tensor) -> torch.Tensor:
        """A rows, in the precision of ``rows`` (float32 or float64), added up in double precision."""
        kind = np.float64 if rows.dtype == torch.float64 else np.float32
        return torch.tensor(aggregate_neighbours(self.adjacency, rows.cpu().numpy(), kind), device=torch_device())


def _forward(
    widths: GraphsageWidths, vector: torch.Tensor, x: FeatureMatrix, mean: GraphsageMean
) -> tuple[torch.Tensor, torch.Tensor]:
    u0, v0, b0, u1, v1, b1 = widths.views(vector)
    hidden = torch.relu(x @ u0 + mean.of(x @ v0) + b0)
    return hidden, hidden @ u1 + mean.of(hidden @ v1) + b1


def graphsage_scores(widths: GraphsageWidths, vector: torch.Tensor, x: FeatureMatrix, mean: GraphsageMean) -> torch.Tensor:
    """Z, the scores of every node, [n, c]; x: features [n, d]."""
    return _forward(widths, vector, x, mean)[1]


def _graphsage_gradient(
    widths: GraphsageWidths, vector: torch.Tensor, x: FeatureMatrix, mean: GraphsageMean, labels: torch.Tensor
) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes with a label ≥ 0, flat."""
    hidden, scores = _forward(widths, vector, x, mean)
    error = layouts.output_errors(scores, labels, mean=True)
    spread, (u1, v1) = mean.back(error), widths.views(vector)[3:5]
    first = layouts.relu_errors(error @ u1.T + spread @ v1.T, hidden)
    parts = (x.gradient(first), x.gradient(mean.back(first)), first.sum(0), hidden.T @ error, hidden.T @ spread, error.sum(0))
    return torch.cat([part.reshape(-1) for part in parts])


def train_graphsage_scores(
    attributes: Graph, adjacency: sp.csr_array, hidden: int, how: PublicTrainingSteps, rng: np.random.Generator
) -> np.ndarray:
    """Scores of every node after training on the labelled ones: float32 [n, c].

    Args:
        attributes: Features and labels.
        adjacency: CSR [n, n], symmetric, in the place of the graph's own; its values are not read.
        hidden: Units of the hidden layer.
        how: Steps of Adam.
        rng: Draws the initial parameters.
    """
    x, mean = FeatureMatrix(unit_matrix_rows(attributes.features)), GraphsageMean(adjacency)
    widths = GraphsageWidths(attributes.num_features, hidden, attributes.num_classes)
    labels = torch.tensor(attributes.labels, device=torch_device())
    start = layouts.to_device(widths.start(rng))
    vector = descend_by_adam(start, lambda v: _graphsage_gradient(widths, v, x, mean, labels), how.epochs, how.rate, how.decay)
    return graphsage_scores(widths, vector, x, mean).cpu().numpy()
