"""The network of ProGAP at node level, one stage of it, and sums of its clipped gradients per row.

    zₖ = SELU(xₖ Wₖ + bₖ) for k = 0 … s,      u = [z₀ … z_s] / norm,      scores = u W + b

Every weight matrix meets one vector of a row and one error, so the squared norm of a row's gradient is

    ‖e‖²(‖u‖² + 1) + Σₖ ‖δₖ‖²(‖xₖ‖² + 1),   e = ∂loss/∂scores,  δₖ = ∂loss/∂(xₖ Wₖ + bₖ)

(Goodfellow 2015), and rows are clipped and added as in ``per_sample``, with the same guarantee, rounding included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.learning import TorchMatrix, layouts, per_sample, torch
from fedgraph.learning.per_sample import HiddenUnits, PerSampleGradients

_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805  # of SELU (Klambauer et al. 2017)


@dataclass(frozen=True)
class ClippedStage:
    """Stage s of a network."""

    inputs: int  # Width of x₀
    hidden: int  # Width of every xₖ with k ≥ 1, and of every zₖ
    classes: int  # c
    hops: int  # s

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Of W₀ … W_s and W."""
        bases = ((self.inputs, self.hidden), *((self.hidden, self.hidden),) * self.hops)
        return (*bases, (self.hidden * (self.hops + 1), self.classes))

    @property
    def num_parameters(self) -> int:
        return sum((i + 1) * o for i, o in self.shapes)

    def parts(self, vector: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(weight [in, out], bias [out]) of W₀ … W_s and W."""
        return layouts.cut_layers(vector, self.shapes)

    def start(self, rng: np.random.Generator, before: np.ndarray | None = None) -> np.ndarray:
        """Glorot-uniform weights, zero biases and a zero head: float32 [num_parameters].

        Args:
            rng: Draws the weights.
            before: float32 parameters of stage s − 1, whose bases are kept; None: all are drawn.
        """
        drawn = [np.append(rng.uniform(-1, 1, i * o) * np.sqrt(6 / (i + o)), np.zeros(o)) for i, o in self.shapes[:-1]]
        head = np.zeros((self.shapes[-1][0] + 1) * self.classes)
        vector = np.concatenate([*drawn, head]).astype(np.float32)
        kept = sum((i + 1) * o for i, o in self.shapes[:-2])
        vector[:kept] = vector[:kept] if before is None else before[:kept]
        return vector


def staged_rows(stage: ClippedStage, vector: np.ndarray, xs: Sequence[TorchMatrix]) -> np.ndarray:
    """z_s, what is aggregated next: float32 [n, hidden].

    Args:
        stage: s.
        vector: [num_parameters].
        xs: x₀ … x_s.
    """
    weight, bias = stage.parts(layouts.to_device(vector))[stage.hops]
    return np.asarray(torch.selu(xs[stage.hops] @ weight + bias).cpu().numpy())


def score_staged_network(stage: ClippedStage, vector: np.ndarray, xs: Sequence[TorchMatrix]) -> np.ndarray:
    """Scores of every row, [n, c].

    Args:
        stage: s.
        vector: [num_parameters].
        xs: x₀ … x_s (more are not read).
    """
    layers = stage.parts(layouts.to_device(vector))
    return np.asarray(_forward(layers, xs)[2].cpu().numpy())


def clip_staged_gradients(
    stage: ClippedStage, vector: np.ndarray, xs: Sequence[TorchMatrix], labels: torch.Tensor, clip: float | None
) -> np.ndarray:
    """Σ_rows clip(∇ cross-entropy, C).

    Args:
        stage: s.
        vector: [num_parameters].
        xs: x₀ … x_s.
        labels: int64 [n]; a row labelled −1 contributes nothing.
        clip: C; None: no clipping, which is not private.

    Returns:
        Flat [num_parameters]: float32 without clipping and up to 4,096 rows, else float64.

    Raises:
        DataError: There are more rows than ``room`` allows.
    """
    return staged_gradients(stage, vector, xs, labels).clipped_sum(clip)


def staged_gradients(
    stage: ClippedStage, vector: np.ndarray, xs: Sequence[TorchMatrix], labels: torch.Tensor
) -> PerSampleGradients:
    """The gradients of all rows, not clipped. Arguments: as in ``clip_staged_gradients``."""
    layers = stage.parts(layouts.to_device(vector))
    pre, units, out, norms = _forward(layers, xs)
    error = layouts.output_errors(out, labels)
    back = error @ layers[-1][0].T
    back = (back - units * (units * back).sum(dim=1, keepdim=True)) / norms
    inner = back * torch.where(pre > 0, _SCALE, _SCALE * _ALPHA * torch.exp(pre.clamp(max=0)))
    inputs = [*xs[: stage.hops + 1], HiddenUnits(per_sample.zero_infinite(units))]
    return PerSampleGradients(inputs, [*torch.split(inner, stage.hidden, dim=1), error])


def _forward(
    layers: Sequence[tuple[torch.Tensor, torch.Tensor]], xs: Sequence[TorchMatrix]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(xₖ Wₖ + bₖ side by side, u, scores, norms [n, 1])."""
    bases = layers[:-1]
    pre = torch.cat([x @ weight + bias for x, (weight, bias) in zip(xs[: len(bases)], bases, strict=True)], dim=1)
    given = torch.selu(pre)
    norms = given.norm(dim=1, keepdim=True).clamp(min=1e-6)
    units = given / norms
    return pre, units, units @ layers[-1][0] + layers[-1][1], norms
