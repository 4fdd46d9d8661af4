"""Feed-forward networks as one flat vector of parameters.

A model is a ``Layout`` (the widths of its layers) and a float32 vector. One vector is what is clipped,
noised, summed over clients and averaged, so that is how it is kept; layers are views into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.learning.tensors import TorchMatrix, torch, torch_device


@dataclass(frozen=True)
class Layout:
    """The layers of a feed-forward network. Between layers there is a ReLU."""

    widths: tuple[int, ...]  # (inputs, hidden…, outputs); two widths are a multinomial logistic regression
    # the constant that every bias is multiplied by. Where rows have unit norm a scale below 1 keeps the bias from taking up
    # most of a clipped gradient.
    bias_scale: float = 1.0

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of each layer."""
        return tuple(zip(self.widths[:-1], self.widths[1:], strict=True))

    @property
    def num_parameters(self) -> int:
        """How many numbers the flat vector has."""
        return sum((i + 1) * o for i, o in self.shapes)

    def layers(self, vector: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(weight [in, out], scaled bias [out]) of each layer of ``vector`` [num_parameters]; weights are views."""
        layers = cut_layers(vector, self.shapes)
        return layers if self.bias_scale == 1.0 else [(weight, self.bias_scale * bias) for weight, bias in layers]

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Initial parameters, float32: zeros for a single layer (convex), else Glorot-uniform weights and zero biases."""
        vector = np.zeros(self.num_parameters, dtype=np.float32)
        if len(self.shapes) == 1:
            return vector
        at = 0
        for i, o in self.shapes:
            limit = np.sqrt(6.0 / (i + o))
            vector[at : at + i * o] = rng.uniform(-limit, limit, i * o)
            at += (i + 1) * o
        return vector


def cut_layers(vector: torch.Tensor, shapes: Sequence[tuple[int, int]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(weight [in, out], bias [out]) of each layer, as views into a flat vector.
    vector: [num_parameters], each weight followed by its bias.
    """
    found, at = [], 0
    for i, o in shapes:
        found.append((vector[at : at + i * o].view(i, o), vector[at + i * o : at + (i + 1) * o]))
        at += (i + 1) * o
    return found


def to_device(vector: np.ndarray) -> torch.Tensor:
    """A float32 copy of ``vector`` on the learner's device (the source may be read-only)."""
    return torch.tensor(np.asarray(vector, dtype=np.float32), device=torch_device())


def logits(layout: Layout, vector: np.ndarray, x: TorchMatrix) -> np.ndarray:
    """Scores before the softmax: float32 [n, c]. vector: [num_parameters]. x: rows [n, d]."""
    return forward(layout.layers(to_device(vector)), x)[1].cpu().numpy()


def output_errors(scores: torch.Tensor, labels: torch.Tensor, mean: bool = False) -> torch.Tensor:
    """[n, c]: ∂loss/∂scores, softmax − one-hot, of the sum (or mean) of the cross-entropies of known labels.
    scores: [n, c] before the softmax. labels: int64 [n]; a row labelled −1 contributes nothing, and has zeros.
    """
    known = labels >= 0
    error = torch.softmax(scores, dim=1)
    error.scatter_add_(1, labels.clamp(min=0)[:, None], error.new_full((labels.numel(), 1), -1.0))
    return error.mul_((known / known.sum().clamp(min=1) if mean else known)[:, None])


def forward(layers: Sequence[tuple[torch.Tensor, torch.Tensor]], x: TorchMatrix) -> tuple[list[torch.Tensor], torch.Tensor]:
    """(units of every hidden layer after its ReLU, [n, width] each; scores [n, c])."""
    units: list[torch.Tensor] = []
    out = (x @ layers[0][0]).add_(layers[0][1])
    for weight, bias in layers[1:]:
        units.append(out.relu_())
        out = (units[-1] @ weight).add_(bias)
    return units, out


def relu_errors(error: torch.Tensor, units: torch.Tensor) -> torch.Tensor:
    """``error`` [n, width] where its unit is at work, else 0: ∂loss/∂(before the ReLU), in place. units: after the ReLU."""
    return error.mul_(torch.sign(units))
