"""Two-layer networks trained on a whole graph, which may be a perturbed one with ten million edges; no privacy.

    GCN         Z = Â relu(P X W₀ + b₀) W₁ + b₁,                      P = Â = D̃^(−1/2)(A + I)D̃^(−1/2)
    GraphSAGE   Z = H U₁ + Ā H V₁ + b₁,   H = relu(X U₀ + Ā X V₀ + b₀),   Ā = D⁻¹A
    LPGNN       the GCN with P = Ā^K (KProp), on features and labels that are noise for the most part

(Kipf & Welling 2017, Equation 9; Hamilton et al. 2017, Algorithm 1, mean aggregator; Sajadmanesh & Gatica-Perez 2021, Equation
6.) The graph acts on hidden units, after the product with the weights, so no n × d array is made. Where edges have no weight
only the indices of A are kept: PyG would copy a row for each of ten million edges. Gradients are written out, so that a row on
noisy edges has one number: training on noise follows the last bits.

Noisy labels y′ come from randomised response with transition matrix T (T_ab = P(y′ = b | y = a)). With p = softmax(Z) the loss:

* ``none``     −log p(y′);
* ``forward``  −log (pT)(y′), which is consistent (Patrini et al. 2017);
* ``drop``     labels are denoised by propagation, ỹ = argmax S^K y′ with S the average over a node and its neighbours, and
               the network is compared with them after the same channel: −log (S^K pT)(ỹ)   (the Drop algorithm, §3.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import layouts, walks
from fedgraph.learning.aggregation import aggregate_neighbours
from fedgraph.learning.descents import descend_by_adam
from fedgraph.learning.layouts import Layout
from fedgraph.learning.public_training import PublicTrainingSteps
from fedgraph.learning.tensors import FeatureMatrix, to_torch_matrix, torch, torch_device, unit_matrix_rows
from fedgraph.types import Graph

NoisyGraphCorrection = Literal["drop", "forward", "none"]


class _Hat:
    """Â of a graph (CSR [n, n], symmetric, ones, empty diagonal) as a product; only its indices are kept, no edge weights."""

    def __init__(self, adjacency: sp.csr_array) -> None:
        self.adjacency = adjacency
        scale = 1.0 / np.sqrt(np.diff(adjacency.indptr) + 1.0)
        self.scale = torch.tensor(scale.astype(np.float32)[:, None], device=torch_device())

    def __matmul__(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = self.scale * rows
        return self.scale * (_sums(self.adjacency, scaled) + scaled)


def _sums(adjacency: sp.csr_array, rows: torch.Tensor) -> torch.Tensor:
    return torch.tensor(aggregate_neighbours(adjacency, rows.cpu().numpy()), device=torch_device())


@dataclass(frozen=True, eq=False)
class _Gcn:
    """A GCN on one graph."""

    layout: Layout
    x: FeatureMatrix  # X, [n, d]
    hat: _Hat | torch.Tensor  # Â
    first: _Hat | torch.Tensor | _Average  # P
    shift: float = 0.0  # added to every entry of X

    def forward(self, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(units of the hidden layer [n, hidden], Z [n, c])."""
        (w0, b0), (w1, b1) = self.layout.layers(vector)
        rows = self.x @ w0
        if self.shift:
            rows = rows + self.shift * w0.sum(dim=0)
        units = torch.relu(self.first @ rows + b0)
        return units, self.hat @ (units @ w1) + b1

    def gradient(self, vector: torch.Tensor, errors: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Flat. errors: Z → ∂loss/∂Z."""
        units, outputs = self.forward(vector)
        error = errors(outputs)
        spread = self.hat @ error
        back = layouts.relu_errors(spread @ self.layout.layers(vector)[1][0].T, units)
        below = self.first.gradient(back) if isinstance(self.first, _Average) else self.first @ back  # Â is symmetric
        first = self.x.gradient(below)
        if self.shift:
            first = first + self.shift * below.sum(dim=0)
        return torch.cat([first.reshape(-1), back.sum(dim=0), (units.T @ spread).reshape(-1), error.sum(dim=0)])

    def trained(
        self, errors: Callable[[torch.Tensor], torch.Tensor], how: PublicTrainingSteps, rng: np.random.Generator
    ) -> np.ndarray:
        """Z after training, float32 [n, c]."""
        start = layouts.to_device(self.layout.start(rng))
        vector = descend_by_adam(start, lambda v: self.gradient(v, errors), how.epochs, how.rate, how.decay)
        return self.forward(vector)[1].cpu().numpy()


def train_gcn(
    attributes: Graph, adjacency: sp.csr_array, hidden: int, how: PublicTrainingSteps, rng: np.random.Generator
) -> np.ndarray:
    """Scores of every node after training on the labelled ones (mean cross-entropy): float32 [n, c].
    adjacency: CSR [n, n], symmetric, in the place of the graph's own. One of integers has edges without weights, one of floats
    has weights.
    """
    x, labels = FeatureMatrix(unit_matrix_rows(attributes.features)), torch.tensor(attributes.labels, device=torch_device())
    hat = to_torch_matrix(walks.symmetric_matrix(adjacency)) if adjacency.dtype.kind == "f" else _Hat(adjacency)
    network = _Gcn(Layout((attributes.num_features, hidden, attributes.num_classes)), x, hat, hat)
    return network.trained(lambda scores: layouts.output_errors(scores, labels, mean=True), how, rng)


def train_graphsage(
    attributes: Graph, adjacency: sp.csr_array, hidden: int, how: PublicTrainingSteps, rng: np.random.Generator
) -> np.ndarray:
    """As ``train_gcn``; the values of ``adjacency`` are not read. The flat vector is [U₀, V₀, b₀, U₁, V₁, b₁]; weights begin
    Glorot-uniform, biases at zero.
    """
    d, c = attributes.num_features, attributes.num_classes
    shapes = ((d, hidden), (d, hidden), (hidden,), (hidden, c), (hidden, c), (c,))
    x, labels = FeatureMatrix(unit_matrix_rows(attributes.features)), torch.tensor(attributes.labels, device=torch_device())
    degrees = np.diff(adjacency.indptr).astype(np.float32)
    inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)[:, None]
    share = torch.tensor(inverse, device=torch_device())

    def layers(vector: torch.Tensor) -> list[torch.Tensor]:
        sizes = [math.prod(shape) for shape in shapes]
        return [part.view(shape) for part, shape in zip(torch.split(vector, sizes), shapes, strict=True)]

    def forward(vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(H [n, hidden], Z [n, c])."""
        u0, v0, b0, u1, v1, b1 = layers(vector)
        units = torch.relu(x @ u0 + share * _sums(adjacency, x @ v0) + b0)
        return units, units @ u1 + share * _sums(adjacency, units @ v1) + b1

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        units, scores = forward(vector)
        error = layouts.output_errors(scores, labels, mean=True)
        spread, (u1, v1) = _sums(adjacency, share * error), layers(vector)[3:5]
        first = layouts.relu_errors(error @ u1.T + spread @ v1.T, units)
        mixed = _sums(adjacency, share * first)
        parts = (x.gradient(first), x.gradient(mixed), first.sum(0), units.T @ error, units.T @ spread, error.sum(0))
        return torch.cat([part.reshape(-1) for part in parts])

    begun = []
    for shape in shapes:
        limit = np.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
        begun.append(rng.uniform(-1, 1, shape).astype(np.float32).ravel() * np.float32(limit))
    start = layouts.to_device(np.concatenate(begun))
    return forward(descend_by_adam(start, gradient, how.epochs, how.rate, how.decay))[1].cpu().numpy()


@dataclass(frozen=True)
class NoisyGraphChannel:
    """How labels became noisy, and what is done about it."""

    num_classes: int  # c
    keep: float  # P(y′ = y)
    correction: NoisyGraphCorrection
    hops: int  # K of ``drop``

    @property
    def transition(self) -> np.ndarray:
        """T, [c, c], rows sum to 1."""
        other = (1 - self.keep) / (self.num_classes - 1)
        return np.full((self.num_classes, self.num_classes), other) + (self.keep - other) * np.eye(self.num_classes)

    def targets(self, average: sp.csr_array, labels: np.ndarray) -> np.ndarray:
        """What is learned: y′, or ỹ with ``drop``.
        average: S, CSR [n, n]. labels: y′, int64 [n], −1 where there is no label. Returns int64 [n], −1 where there is no
        label.
        """
        if self.correction != "drop":
            return labels
        known = labels >= 0
        votes = np.zeros((labels.size, self.num_classes))
        votes[known, labels[known]] = 1.0
        for _ in range(self.hops):
            votes = average @ votes
        return np.where(known, votes.argmax(axis=1), -1)


class _Average(FeatureMatrix):
    """P^hops and its transpose, as products on the device. matrix: P, CSR [n, n]."""

    def __init__(self, matrix: sp.csr_array, hops: int) -> None:
        super().__init__(matrix)
        self.hops = hops

    def __matmul__(self, rows: torch.Tensor) -> torch.Tensor:
        for _ in range(self.hops):
            rows = self.forward @ rows
        return rows

    def gradient(self, error: torch.Tensor) -> torch.Tensor:
        for _ in range(self.hops):
            error = self.transposed @ error
        return error


def train_on_noisy_graph(
    adjacency: sp.csr_array,
    features: sp.csr_array,
    labels: np.ndarray,
    channel: NoisyGraphChannel,
    hidden: int,
    feature_hops: int,
    how: PublicTrainingSteps,
    rng: np.random.Generator,
    shift: float = 0.0,
) -> np.ndarray:
    """Scores of every node after training LPGNN on noisy features and labels: float32 [n, c].
    adjacency: CSR [n, n], public. features: sparse [n, d], any scale. labels: noisy, int64 [n], −1 where there is none. shift:
    what is added to every entry of the features.
    """
    layout = Layout((features.shape[1], hidden, channel.num_classes))
    average, hat = _Average(walks.random_matrix(adjacency), feature_hops), to_torch_matrix(walks.symmetric_matrix(adjacency))
    network = _Gcn(layout, FeatureMatrix(features), hat, average, shift)
    with_itself = walks.random_matrix(sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], format="csr")))  # S
    spread, targets = _Average(with_itself, channel.hops), channel.targets(with_itself, labels)
    transition = layouts.to_device(np.eye(channel.num_classes) if channel.correction == "none" else channel.transition)
    known = torch.tensor(np.flatnonzero(targets >= 0), device=transition.device)
    target = torch.tensor(targets[targets >= 0], device=transition.device)

    def errors(scores: torch.Tensor) -> torch.Tensor:
        """Of the mean corrected cross-entropy over the nodes with a target."""
        p = torch.softmax(scores, dim=1)
        q = spread @ (p @ transition) if channel.correction == "drop" else p @ transition
        error = torch.zeros_like(q)
        error[known, target] = -1.0 / (len(known) * q[known, target].clamp(min=1e-12))
        error = (spread.gradient(error) if channel.correction == "drop" else error) @ transition.T
        return p * (error - (p * error).sum(dim=1, keepdim=True))

    return network.trained(errors, how, rng)
