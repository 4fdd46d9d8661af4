"""What networks are built from and what is left of them: records that know no torch, so every run can read and write them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_SHORT = ("logistic", "mlp", "gcn", "gat", "sage", "gcn-jk", "appnp", "gprgnn")
NETWORK_SHAPE_PREFIX = "torch_geometric.nn."


@dataclass(frozen=True)
class NetworkShape:
    """What a network is built from.

    Attributes:
        model: One of ``_SHORT``, or a class of ``torch_geometric.nn`` by its dotted name.
        num_features: d.
        num_classes: c.
        hidden: Units of hidden layers.
        dropout: Of hidden layers.
        input_dropout: Of the features.
        arguments: Keyword arguments of a dotted name.
        columns: Every column of the input is brought to mean 0 and variance 1, by the rows that train.
    """

    model: str
    num_features: int
    num_classes: int
    hidden: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    columns: bool = False


def require_short_network_shape(model: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a model that is no short name, or a short name with arguments.

    Args:
        model: As a scenario names it.
        arguments: As a scenario gives them.

    Raises:
        ValueError: The model is none of ``_SHORT``, or it has arguments.
    """
    if model not in _SHORT:
        raise ValueError(
            f"allowed: ceiling, {', '.join(_SHORT)}, or a class by its dotted name, such as {NETWORK_SHAPE_PREFIX}GAT"
        )
    if arguments:
        raise ValueError(f"arguments are for a class by its dotted name, such as {NETWORK_SHAPE_PREFIX}GAT; {model} takes none")


@dataclass(frozen=True, eq=False)
class HopNetworkShape:
    """A network that was trained on hops 0 … ``depth`` (``gap_networks``).

    Attributes:
        widths: Columns of each hop.
        hidden: Units for each hop.
        num_classes: c.
        parameters: Flat float32.
    """

    widths: tuple[int, ...]
    hidden: int
    num_classes: int
    parameters: np.ndarray

    @property
    def depth(self) -> int:
        return len(self.widths) - 1
