"""The sum over a node and its neighbours, with its own gradient."""

from typing import Any

import torch


class Aggregate(torch.autograd.Function):
    """(A + I) h for a symmetric sparse matrix, which is its own transpose."""

    @staticmethod
    def forward(context: Any, reach: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(reach)
        return reach @ rows

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        (reach,) = context.saved_tensors
        return None, reach @ gradients[0]
