"""What networks are built from and what is left of them: records that know no torch, so every run can read and write them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHORT = ("logistic", "mlp", "gcn", "gat", "sage", "gcn-jk", "appnp", "gprgnn")
PREFIX = "torch_geometric.nn."


@dataclass(frozen=True)
class Shape:
    """What a network is built from. arguments: keyword arguments of a dotted name. dropout: of hidden layers.

    columns: every column of the input is brought to mean 0 and variance 1, by the rows that train.
    """

    model: str
    num_features: int
    num_classes: int
    hidden: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    columns: bool = False


def require_short(model: str, arguments: Mapping[str, Any]) -> None:
    """``ValueError`` unless the model is one of ``SHORT``, and has no arguments."""
    if model not in SHORT:
        raise ValueError(f"allowed: ceiling, {', '.join(SHORT)}, or a class by its dotted name, such as {PREFIX}GAT")
    if arguments:
        raise ValueError(f"arguments are for a class by its dotted name, such as {PREFIX}GAT; {model} takes none")


@dataclass(frozen=True, eq=False)
class HopNetwork:
    """Trained on hops 0 … ``depth``, of ``widths`` columns each. parameters: flat float32 (``gap_networks``)."""

    widths: tuple[int, ...]
    hidden: int
    num_classes: int
    parameters: np.ndarray

    @property
    def depth(self) -> int:
        return len(self.widths) - 1
