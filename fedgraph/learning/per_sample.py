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

**Rounding**, here and in the other files of this folder: rows are clipped to a share of C (``room_for``), so that sums
stored in single (up to 4,096 rows) or double precision differ by at most C. κ bounds the lengths of a row's products in units
of its clip: 1 where its gradient is one outer product per layer, ``SPREAD`` where several may cancel. The theorem
and what it assumes: ``docs/proofs.md``.

**Edge cases.** More rows than the theorem has room for (``room_for`` below one half: 4·10⁷ rows at κ = 1, 5·10⁶ at κ =
64) → ``DataError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fedgraph.errors import DataError
from fedgraph.learning import layouts
from fedgraph.learning.layouts import Layout
from fedgraph.learning.tensors import TorchMatrix, torch

SPREAD = 64.0
_SINGLE = 4096  # rows up to which a sum is stored in single precision
NORM_ROUNDING = 2.0**-34  # what covers the rounding of a squared norm, in squared lengths of all its products
_ROW = 2.0**-20  # of the clip, for the rounding of a row's own scale


def room_for(num_rows: int, spread: float = 1.0) -> tuple[type, float]:
    """(type in which the sum of at most ``num_rows`` clipped rows is stored, the share of the clip that a row may have).
    num_rows: a public number. spread: κ.

    >>> room_for(1000)[1] > 0.999, room_for(10**6)[1] > 0.999, room_for(10**6, SPREAD)[1] > 0.94
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


class HiddenUnits(TorchMatrix):
    """What a layer reads of the layer before it; NaN and ±∞ count as zero, but not in the norms, so such a row is zero.
    units: [n, width].
    """

    def __init__(self, units: torch.Tensor) -> None:
        self.units, self.forward = units, zero_infinite(units)
        self.transposed = self.forward.T

    @cached_property
    def squared_norms(self) -> torch.Tensor:  # type: ignore[override]
        return self.units.double().square().sum(dim=1)


@dataclass(frozen=True, eq=False)
class PerSampleGradients:
    """The gradients of all rows: of each weight matrix the outer product of what it reads of a row and what it is off by."""

    inputs: Sequence[TorchMatrix]  # what each weight matrix reads, [n, in] each, in the order of the layers
    errors: Sequence[torch.Tensor]  # ∂loss/∂(what it gives), [n, out] each
    bias_scale: float = 1.0  # the constant that every bias is multiplied by

    def clipped(self, clip: float | None) -> PerSampleGradients:
        """Every row's gradient scaled to norm at most ``clip``, less what rounding needs, in float64; None: as it is."""
        return self if clip is None else replace(self, errors=_clip_errors(self.inputs, self.errors, self.bias_scale, clip))

    def clipped_sum(self, clip: float | None) -> np.ndarray:
        """The sum of the clipped gradients, flat, as ``room_for`` says that it is stored; float32 without a clip."""
        return _clipped_sum(self.inputs, self.errors, self.bias_scale, clip)

    def left_over_products(self, message: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """⟨∇ᵢ, message − Σ_k weights_k ∇_k⟩ of each row i, float64 [n]: what a sum holds beyond what is known.
        message: flat [num_parameters], such as a noisy ``clipped_sum``. weights: float [n], how much of each row to take off.
        """
        device = self.errors[0].device
        known = torch.tensor(weights, dtype=self.errors[0].dtype, device=device)[:, None]
        beyond = message - _total(self.inputs, [e * known for e in self.errors], self.bias_scale).cpu().numpy()
        shapes = [(given.forward.shape[1], e.shape[1]) for given, e in zip(self.inputs, self.errors, strict=True)]
        found = torch.zeros(len(weights), dtype=torch.float64, device=device)
        layers = layouts.cut_layers(layouts.to_device(beyond), shapes)
        for given, (weight, bias), e in zip(self.inputs, layers, self.errors, strict=True):
            found += ((given @ weight + self.bias_scale * bias).double() * e).sum(dim=1)
        return found.cpu().numpy()

    def products(self, known: Sequence[np.ndarray], of: np.ndarray) -> np.ndarray:
        """⟨∇ⱼ, ∇ₖ⟩ for the rows j, k in ``of``, float64 [m, m].
        known: ``overlaps`` of each input that is no ``HiddenUnits``; a caller may keep it. of: int64 [m], numbers of rows.
        """
        rest = iter(known)
        found = np.zeros((of.size, of.size))
        for given, e in zip(self.inputs, self.errors, strict=True):
            own = e[of].double().cpu().numpy()
            if isinstance(given, HiddenUnits):
                units = given.forward[of].double().cpu().numpy()
                inner = units @ units.T
            else:
                inner = next(rest)
            found += (inner + self.bias_scale**2) * (own @ own.T)
        return found


def clipped_sum(layout: Layout, vector: np.ndarray, x: TorchMatrix, labels: torch.Tensor, clip: float | None) -> np.ndarray:
    """Σ_rows clip(∇ cross-entropy, C).
    vector: [num_parameters]. x: rows [n, d]. labels: int64 [n]; a row labelled −1 contributes nothing. clip: C; None: no
    clipping, which is not private. Returns flat [num_parameters]: float32 without clipping and up to 4,096 rows, else float64.
    Raises ``DataError``: there are more rows than ``room_for`` allows.
    """
    return _clipped_sum(*_errors(layout, layouts.to_device(vector), x, labels), layout.bias_scale, clip)


def loss_gradient(layout: Layout, vector: torch.Tensor, x: TorchMatrix, labels: torch.Tensor) -> torch.Tensor:
    """∇ Σ_rows cross-entropy, flat [num_parameters]. Nothing is clipped: for public rows. Arguments: as in ``clipped_sum``."""
    return _total(*_errors(layout, vector, x, labels), layout.bias_scale)


def overlaps(x: TorchMatrix, of: np.ndarray) -> np.ndarray:
    """⟨xⱼ, xₖ⟩ for the rows j, k in ``of``: float32 [m, m]. x: rows [n, d]. of: int64 [m], numbers of rows."""
    found = np.zeros((of.size, of.size), dtype=np.float32)
    for first in range(0, of.size, 500):
        chosen = torch.zeros((x.squared_norms.numel(), of[first : first + 500].size), device=x.squared_norms.device)
        chosen[of[first : first + 500], torch.arange(chosen.shape[1])] = 1.0
        found[:, first : first + 500] = (x @ x.gradient(chosen))[of].cpu().numpy()
    return found


def gradients(layout: Layout, vector: np.ndarray, x: TorchMatrix, labels: torch.Tensor) -> PerSampleGradients:
    """The gradients of all rows, not clipped. Arguments: as in ``clipped_sum``."""
    return PerSampleGradients(*_errors(layout, layouts.to_device(vector), x, labels), layout.bias_scale)


_Inputs: TypeAlias = Sequence[TorchMatrix]  # as in ``PerSampleGradients``
_Errors: TypeAlias = "Sequence[torch.Tensor]"


def _errors(layout: Layout, vector: torch.Tensor, x: TorchMatrix, labels: torch.Tensor) -> tuple[_Inputs, _Errors]:
    layers = layout.layers(vector)
    units, scores = layouts.forward(layers, x)
    errors = [layouts.output_errors(scores, labels)]
    for level in range(len(layers) - 1, 0, -1):
        errors.append(layouts.relu_errors(errors[-1] @ layers[level][0].T, units[level - 1]))
    errors.reverse()
    return [x, *map(HiddenUnits, units)], errors


def _clip_errors(inputs: _Inputs, errors: _Errors, bias_scale: float, clip: float) -> _Errors:
    """Errors of rows whose gradients have norm at most ``clip``, less what rounding needs, in float64."""
    errors = [e.double() for e in errors]
    squared = torch.zeros(len(errors[0]), dtype=torch.float64, device=errors[0].device)
    for given, e in zip(inputs, errors, strict=True):
        squared += (given.squared_norms + bias_scale**2) * e.square().sum(dim=1)
    scale = scales(torch.sqrt(squared), clip * room_for(len(squared))[1])
    return [zero_infinite(e * scale[:, None]) for e in errors]


def _total(inputs: _Inputs, errors: _Errors, bias_scale: float) -> torch.Tensor:
    """The gradient of Σ_rows loss, flat, in the precision of ``errors``."""
    parts: list[torch.Tensor] = []
    for given, e in zip(inputs, errors, strict=True):
        parts += [given.gradient(e).reshape(-1), bias_scale * e.sum(dim=0)]
    return torch.cat(parts)


def _clipped_sum(inputs: _Inputs, errors: _Errors, bias_scale: float, clip: float | None) -> np.ndarray:
    dtype: type = np.float32 if clip is None else room_for(len(errors[0]))[0]
    kept = errors if clip is None else _clip_errors(inputs, errors, bias_scale, clip)
    return _total(inputs, kept, bias_scale).cpu().numpy().astype(dtype, copy=False)


def scales(norms: torch.Tensor, limit: float) -> torch.Tensor:
    """What each row is multiplied by so that its norm is at most ``limit``: at most 1, and 0 where the norm is not finite.
    norms: float [n]. limit: above 0. Returns [n], of the precision of ``norms``.
    """
    scale = torch.clamp(limit / norms.clamp(min=1e-30), max=1.0)
    return torch.where(torch.isfinite(norms), scale, torch.zeros_like(scale))


def zero_infinite(values: torch.Tensor) -> torch.Tensor:
    """NaN and ±∞ as zero: a hopeless row must not reach the sum through 0 · ∞."""
    return torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
