"""The gradient in an update of ``nonprivate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph.learning import fitting, torch
from fedgraph.methods import nonprivate


@dataclass(frozen=True, eq=False)
class _Updates:
    """Reads the gradient in an update of FedAvg: a mean over nodes, whose rows the network reads as they are."""

    plan: nonprivate.Planned
    names_words: bool = True

    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """The first moment of Adam over 1 − 0.9ᵗ, a weighted mean of t steps' gradients; None without a labelled node.

        An update is parameters and Adam's moments after t local steps from zero moments, times the number of labelled nodes.
        """
        if "update" not in sent or "parameters" not in model:
            return None
        p = model["parameters"].size
        if sent["update"].size <= 3 * p or not sent["update"][3 * p]:
            return None
        update = sent["update"] / sent["update"][3 * p]
        return np.asarray(update[p : 2 * p] / (1 - 0.9**self.plan.params.local_epochs), dtype=np.float64)

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient of the first weights that read rows; zeros if there are none."""
        d = self.plan.facts.num_features
        for parameter, values in self._parts(gradient):
            if parameter.dim() == 2 and parameter.shape[1] == d:
                return values.reshape(tuple(parameter.shape)), np.eye(d)
        return np.zeros((1, d)), np.eye(d)

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """The gradient of the last bias with a number for each class; zeros if there is none."""
        c = self.plan.facts.num_classes
        found = [values for parameter, values in self._parts(gradient) if parameter.dim() == 1 and parameter.numel() == c]
        return found[-1] if found else np.zeros(c)

    def _parts(self, gradient: np.ndarray) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
        """Every parameter of the network with its part of the flat gradient."""
        at = 0
        for parameter in fitting.build_network_for_fitting(nonprivate.shape_of(self.plan, 0), 0).parameters():
            yield parameter, gradient[at : at + parameter.numel()]
            at += parameter.numel()


observe = _Updates
