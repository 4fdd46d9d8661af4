"""Sums of clipped gradients per row, without a gradient per row in memory, and how they stay within the clip when rounded.

For a linear layer z = aW + b the gradient of row i is aᵢᵀδᵢ (and δᵢ for b), δ = ∂loss/∂z, so its squared
norm is (‖aᵢ‖² + 1)·‖δᵢ‖² (Goodfellow 2015; s² in place of 1 where the bias is scaled by s). Summed over
layers this gives each row's exact norm; scaling
the rows of δ by min(1, C/norm) and multiplying once gives the clipped sum.

**Formal guarantee.** With clip C, the returned sum changes by at most C in L2 norm when one row is
removed and at most 2C when it is replaced: rows whose norm is not finite count as zero. Rounding is part of it, for any
number of rows: norms and sums are in double precision, and rows are clipped to a little less than C, as follows.

| row gradient norm | its share of the sum |
|---|---|
| 0 | 0 |
| ≤ C | unchanged |
| > C | scaled to norm C |
| NaN, ∞ | 0 |

**Rounding**, here and in the other files of this folder. A row's gradient gᵢ is a sum of products of single-precision
numbers; as real numbers those products are exact. Rows are scaled so that ‖gᵢ‖ ≤ c, and everything after that is done in
double precision, unit roundoff u = 2⁻⁵³.

**Theorem.** Let no product pass through more than m = 2n + 64 roundings on its way into the sum Ŝ, in any order, blocked,
threaded or fused, and let the lengths of each row's products add up to at most κc. Then (Higham 2002, Lemma 3.1)

    ‖Ŝ − Σᵢ gᵢ‖ ≤ γ·κ·n·c,   γ = mu/(1 − mu),      so      ‖Ŝ − Ŝ'‖ ≤ c·(1 + 2γκn)

for sums that differ in one row (2c instead of c where it is replaced, (2k − 1)c where k rows change). Stored in single
precision a sum of norm at most 1.01·n·c moves by 2⁻²⁴ of that in either world, 2.02·n·2⁻²⁴·c together. ``per_sample_room``
returns the share of the clip that c may be, so that stored sums differ by at most the clip. Up to 4,096 rows they are stored in
single precision (which costs 0.05 % of the clip), beyond in double precision.

κ = 1 where a row's gradient is one outer product per layer. Where it adds several (a node and its neighbours), they may
cancel: the length of the sum is small, but its rounding is not. There κ = ``PER_SAMPLE_SPREAD``, and a row whose products are
longer than κ times its clip is scaled by them instead of by its norm; that needs 98 % of it to cancel.

**What is assumed.** A row's own numbers (activations, errors) are functions of this row and of public shapes alone, which
holds for products of a matrix with a matrix, row by row. Underflow (numbers below 10⁻³⁸) is not counted.

**Edge cases.** More rows than the theorem has room for (``per_sample_room`` below one half: 4·10⁷ rows at κ = 1, 5·10⁶ at κ =
64) → ``DataError``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.errors import DataError
from fedgraph.learning.late import torch
from fedgraph.learning.layers.layouts import (
    Layout,
    forward_layout,
    layout_output_errors,
    layout_relu_errors,
    put_layout_on_device,
)
from fedgraph.learning.layers.torch_matrices import TorchMatrix

PER_SAMPLE_SPREAD = 64.0
_SINGLE = 4096  # rows up to which a sum is stored in single precision
PER_SAMPLE_NORM_ROUNDING = (
    2.0**-34
)  # what is added to a squared norm, in units of the squared length of all products: covers its rounding
_ROW = 2.0**-20  # of the clip, for the rounding of a row's own scale


def per_sample_room(num_rows: int, spread: float = 1.0) -> tuple[type, float]:
    """(type in which the sum of at most ``num_rows`` clipped rows is stored, the share of the clip that a row may have).

    num_rows: a public number. spread: κ.

    >>> per_sample_room(1000)[1] > 0.999, per_sample_room(10**6)[1] > 0.999, per_sample_room(10**6, PER_SAMPLE_SPREAD)[1] > 0.94
    (True, True, True)
    """
    operations = (2 * num_rows + 64) * 2.0**-53
    added = 2 * operations / (1 - operations) * spread * num_rows
    dtype: type = np.float32 if num_rows <= _SINGLE else np.float64
    if dtype is np.float32:
        added += 2.02 * num_rows * 2.0**-24
    if not added < 1:
        raise DataError(f"{num_rows} rows in one sum of clipped gradients: rounding may exceed the clip; use more clients")
    return dtype, (1 - _ROW) / (1 + added)


@dataclass(frozen=True, eq=False)
class PerSampleGradients:
    """The gradients of all rows: of each weight matrix the outer product of what it reads of a row and what it is off by.

    Attributes:
        inputs: What each weight matrix reads, [n, in] each, in the order of the layers.
        errors: ∂loss/∂(what it gives), [n, out] each.
        bias_scale: The constant that every bias is multiplied by.
    """

    inputs: Sequence[TorchMatrix | torch.Tensor]
    errors: Sequence[torch.Tensor]
    bias_scale: float = 1.0

    def clipped(self, clip: float | None) -> PerSampleGradients:
        """Every row's gradient scaled to norm at most ``clip``, less what rounding needs, in float64; None: as it is."""
        if clip is None:
            return self
        errors = [e.double() for e in self.errors]
        squared = torch.zeros(len(errors[0]), dtype=torch.float64, device=errors[0].device)
        for given, e in zip(self.inputs, errors, strict=True):
            lengths = given.squared_norms if isinstance(given, TorchMatrix) else given.double().square().sum(dim=1)
            squared += (lengths + self.bias_scale**2) * e.square().sum(dim=1)
        scale = per_sample_scales(torch.sqrt(squared), clip * per_sample_room(len(squared))[1])
        return replace(self, errors=[zero_infinite_per_sample(e * scale[:, None]) for e in errors])

    def total(self) -> np.ndarray:
        """The gradient of Σ_rows loss, flat, in the precision of ``errors``."""
        parts: list[torch.Tensor] = []
        for given, e in zip(self.inputs, self.errors, strict=True):
            weight = given.gradient(e) if isinstance(given, TorchMatrix) else zero_infinite_per_sample(given).to(e.dtype).T @ e
            parts += [weight.reshape(-1), self.bias_scale * e.sum(dim=0)]
        return torch.cat(parts).cpu().numpy()

    def clipped_sum(self, clip: float | None) -> np.ndarray:
        """``total`` of the clipped gradients, as ``per_sample_room`` says that it is stored; float32 without a clip."""
        dtype = np.float32 if clip is None else per_sample_room(len(self.errors[0]))[0]
        return self.clipped(clip).total().astype(dtype, copy=False)

    def left_over_products(
        self,
        layers: Callable[[torch.Tensor], Sequence[tuple[torch.Tensor, torch.Tensor]]],
        message: np.ndarray,
        weights: np.ndarray,
    ) -> np.ndarray:
        """⟨∇ᵢ, message − Σ_k weights_k ∇_k⟩ of each row i, float64 [n].

        Args:
            layers: Cuts a flat vector into (weight, scaled bias) of each layer.
            message: Flat [num_parameters].
            weights: float [n].
        """
        device = self.errors[0].device
        known = torch.tensor(weights, dtype=self.errors[0].dtype, device=device)[:, None]
        beyond = message - replace(self, errors=[e * known for e in self.errors]).total()
        found = torch.zeros(len(weights), dtype=torch.float64, device=device)
        for given, (weight, bias), e in zip(self.inputs, layers(put_layout_on_device(beyond)), self.errors, strict=True):
            reached = given @ weight if isinstance(given, TorchMatrix) else zero_infinite_per_sample(given) @ weight
            found += ((reached + bias).double() * e).sum(dim=1)
        return found.cpu().numpy()

    def products(self, known: Sequence[np.ndarray], of: np.ndarray) -> np.ndarray:
        """⟨∇ⱼ, ∇ₖ⟩ for the rows j, k in ``of``, float64 [m, m].

        Args:
            known: ``overlap_per_sample`` of each of the ``TorchMatrix`` among the inputs.
            of: int64 [m], numbers of rows.
        """
        rest = iter(known)
        found = np.zeros((of.size, of.size))
        for given, e in zip(self.inputs, self.errors, strict=True):
            own = e[of].double().cpu().numpy()
            if isinstance(given, TorchMatrix):
                inner = next(rest)
            else:
                units = zero_infinite_per_sample(given)[of].double().cpu().numpy()
                inner = units @ units.T
            found += (inner + self.bias_scale**2) * (own @ own.T)
        return found


def clip_per_sample(layout: Layout, vector: np.ndarray, x: TorchMatrix, labels: torch.Tensor, clip: float | None) -> np.ndarray:
    """Σ_rows clip(∇ cross-entropy, C).

    Args:
        layout: Of the network.
        vector: [num_parameters].
        x: Rows [n, d].
        labels: int64 [n]; a row labelled −1 contributes nothing.
        clip: C; None: no clipping, which is not private.

    Returns:
        Flat [num_parameters]: float32 without clipping and up to 4,096 rows, else float64.

    Raises:
        DataError: There are more rows than ``per_sample_room`` allows.
    """
    return _gradients(layout, vector, x, labels).clipped_sum(clip)


def multiply_per_sample_rest(
    layout: Layout,
    vector: np.ndarray,
    x: TorchMatrix,
    labels: torch.Tensor,
    clip: float | None,
    message: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """⟨clip(∇ᵢ), message − Σ_k weights_k clip(∇_k)⟩ of each row i: what a sum holds beyond what is known.

    Args:
        layout: As in ``clip_per_sample``, and so are the next four.
        vector: [num_parameters].
        x: Rows [n, d].
        labels: int64 [n].
        clip: C, or None.
        message: Flat [num_parameters], such as a noisy ``clip_per_sample``.
        weights: float [n], how much of each row to take off.

    Returns:
        float64 [n].
    """
    return _gradients(layout, vector, x, labels).clipped(clip).left_over_products(layout.layers, message, weights)


def multiply_per_sample(
    layout: Layout,
    vector: np.ndarray,
    x: TorchMatrix,
    labels: torch.Tensor,
    clip: float | None,
    overlap: np.ndarray,
    of: np.ndarray,
) -> np.ndarray:
    """⟨clip(∇ⱼ), clip(∇ₖ)⟩ for the rows j, k in ``of``.

    Args:
        layout: As in ``clip_per_sample``, and so are the next four.
        vector: [num_parameters].
        x: Rows [n, d].
        labels: int64 [n].
        clip: C, or None.
        overlap: ``overlap_per_sample(x, of)``, which a caller may keep.
        of: int64 [m], numbers of rows.

    Returns:
        float64 [m, m].
    """
    return _gradients(layout, vector, x, labels).clipped(clip).products([overlap], of)


def overlap_per_sample(x: TorchMatrix, of: np.ndarray) -> np.ndarray:
    """⟨xⱼ, xₖ⟩ for the rows j, k in ``of``.

    Args:
        x: Rows [n, d].
        of: int64 [m], numbers of rows.

    Returns:
        float32 [m, m].
    """
    found = np.zeros((of.size, of.size), dtype=np.float32)
    for first in range(0, of.size, 500):
        chosen = torch.zeros((x.squared_norms.numel(), of[first : first + 500].size), device=x.squared_norms.device)
        chosen[of[first : first + 500], torch.arange(chosen.shape[1])] = 1.0
        found[:, first : first + 500] = (x @ x.gradient(chosen))[of].cpu().numpy()
    return found


def _gradients(layout: Layout, vector: np.ndarray, x: TorchMatrix, labels: torch.Tensor) -> PerSampleGradients:
    """The gradients of all rows, not clipped."""
    layers = layout.layers(put_layout_on_device(vector))
    units, scores = forward_layout(layers, x)
    errors = [layout_output_errors(scores, labels)]
    for level in range(len(layers) - 1, 0, -1):
        errors.append(layout_relu_errors(errors[-1] @ layers[level][0].T, units[level - 1]))
    errors.reverse()
    return PerSampleGradients([x, *units], errors, layout.bias_scale)


def per_sample_scales(norms: torch.Tensor, limit: float) -> torch.Tensor:
    """What each row is multiplied by so that its norm is at most ``limit``: at most 1, and 0 where the norm is not finite.

    Args:
        norms: float [n].
        limit: Above 0.

    Returns:
        [n], of the precision of ``norms``.
    """
    scale = torch.clamp(limit / norms.clamp(min=1e-30), max=1.0)
    return torch.where(torch.isfinite(norms), scale, torch.zeros_like(scale))


def zero_infinite_per_sample(values: torch.Tensor) -> torch.Tensor:
    """NaN and ±∞ as zero: a hopeless row must not reach the sum through 0 · ∞."""
    return torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
