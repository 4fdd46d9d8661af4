"""Training a graph network on features and labels that are noise for the most part, over a public graph (LPGNN).

    H = relu(P^K X W₀ + b₀),   logits = Â H W₁ + b₁,   p = softmax(logits)          (KProp, then a GCN layer)

P averages over neighbours (KProp without self-loops; Sajadmanesh & Gatica-Perez 2021, Equation 6). X stays sparse: it is
multiplied by W₀ first, so P^K acts on hidden units and no n × d array is made. Labels y′ come from randomised response with
transition matrix T (T_ab = P(y′ = b | y = a)):

* ``none``     −log p(y′);
* ``forward``  −log (pT)(y′), which is consistent (Patrini et al. 2017);
* ``drop``     labels are denoised by propagation, ỹ = argmax S^K y′ with S the average over a node and its neighbours, and
               the network is compared with them after the same channel: −log (S^K pT)(ỹ)   (the Drop algorithm, §3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import FeatureMatrix, to_torch_matrix
from fedgraph.learning.optimisers.descents import descend_by_adam
from fedgraph.learning.optimisers.public_training import PublicTrainingSteps
from fedgraph.learning.propagation import walks

NoisyGraphCorrection = Literal["drop", "forward", "none"]


@dataclass(frozen=True)
class NoisyGraphChannel:
    """How labels became noisy, and what is done about it."""

    num_classes: int  # c
    keep: float  # P(y′ = y)
    correction: NoisyGraphCorrection  # ``drop``, ``forward`` or ``none``
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


def _with_itself(adjacency: sp.csr_array) -> sp.csr_array:
    """S = (D + I)⁻¹(A + I): the average over a node and its neighbours."""
    return walks.random_matrix(sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], format="csr")))


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
    """Scores of every node after training on noisy features and labels: float32 [n, c].
    adjacency: CSR [n, n], public. features: sparse [n, d], any scale. labels: noisy, int64 [n], −1 where there is none. shift:
    what is added to every entry of the features.
    """
    layout = Layout((features.shape[1], hidden, channel.num_classes))
    x, average = FeatureMatrix(features), _Average(walks.random_matrix(adjacency), feature_hops)
    hat = to_torch_matrix(walks.symmetric_matrix(adjacency))
    itself = _with_itself(adjacency)
    loss = _Loss(channel, _Average(itself, channel.hops), channel.targets(itself, labels))

    def forward(vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(H [n, hidden], logits [n, c])."""
        (w0, b0), (w1, b1) = layout.layers(vector)
        inner = torch.relu((average @ (x @ w0 + shift * w0.sum(dim=0))) + b0)
        return inner, (hat @ (inner @ w1)) + b1

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        inner, scores = forward(vector)
        error = loss.gradient(scores)
        spread = hat @ error
        back = layouts.relu_errors(spread @ layout.layers(vector)[1][0].T, inner)
        spread_back = average.gradient(back)
        first = x.gradient(spread_back) + shift * spread_back.sum(dim=0)
        return torch.cat([first.reshape(-1), back.sum(dim=0), (inner.T @ spread).reshape(-1), error.sum(dim=0)])

    vector = descend_by_adam(layouts.to_device(layout.start(rng)), gradient, how.epochs, how.rate, how.decay)
    return forward(vector)[1].cpu().numpy()


class _Loss:
    """Mean corrected cross-entropy over the nodes with a target: its gradient in the logits."""

    def __init__(self, channel: NoisyGraphChannel, average: _Average, targets: np.ndarray) -> None:
        transition = np.eye(channel.num_classes) if channel.correction == "none" else channel.transition
        self.transition, self.average = layouts.to_device(transition), average
        self.drops = channel.correction == "drop"
        self.known = torch.tensor(np.flatnonzero(targets >= 0), device=self.transition.device)
        self.target = torch.tensor(targets[targets >= 0], device=self.transition.device)

    def gradient(self, logits: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(logits, dim=1)
        q = self.average @ (p @ self.transition) if self.drops else p @ self.transition
        error = torch.zeros_like(q)
        error[self.known, self.target] = -1.0 / (len(self.known) * q[self.known, self.target].clamp(min=1e-12))
        error = (self.average.gradient(error) if self.drops else error) @ self.transition.T
        return p * (error - (p * error).sum(dim=1, keepdim=True))
