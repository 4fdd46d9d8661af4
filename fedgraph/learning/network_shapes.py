"""What networks are built from and what is left of them: records that know no torch, so every run can read and write them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_SHORT = ("logistic", "mlp", "gcn", "gat", "sage", "gcn-jk", "appnp", "gprgnn")
NETWORK_SHAPE_PREFIX = "torch_geometric.nn."


@dataclass(frozen=True)
class NetworkShape:
    """What a network is built from."""

    model: str  # one of ``_SHORT``, or a class of ``torch_geometric.nn`` by its dotted name
    num_features: int  # d
    num_classes: int  # c
    hidden: int = 64  # units of hidden layers
    dropout: float = 0.5  # of hidden layers
    input_dropout: float = 0.0  # of the features
    arguments: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of a dotted name
    columns: bool = False  # every column of the input is brought to mean 0 and variance 1, by the rows that train


def require_short_network_shape(model: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a model that is no short name, or a short name with arguments.
    Raises ``ValueError``: the model is none of ``_SHORT``, or it has arguments.
    """
    if model not in _SHORT:
        raise ValueError(
            f"allowed: ceiling, {', '.join(_SHORT)}, or a class by its dotted name, such as {NETWORK_SHAPE_PREFIX}GAT"
        )
    if arguments:
        raise ValueError(f"arguments are for a class by its dotted name, such as {NETWORK_SHAPE_PREFIX}GAT; {model} takes none")


@dataclass(frozen=True, eq=False)
class HopNetworkShape:
    """A network that was trained on hops 0 … ``depth`` (``gap_networks``)."""

    widths: tuple[int, ...]  # columns of each hop
    hidden: int  # units for each hop
    num_classes: int  # c
    parameters: np.ndarray  # flat float32

    @property
    def depth(self) -> int:
        return len(self.widths) - 1
