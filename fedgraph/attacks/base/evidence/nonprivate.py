"""The gradient in an update of ``nonprivate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph.learning import fitting, torch
from fedgraph.methods import nonprivate


@dataclass(frozen=True, eq=False)
class _Updates:
    """A gradient as an update of FedAvg shows it: the mean over nodes, whose rows are read as they are."""

    plan: nonprivate.Planned
    names_words: bool = True

    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """An update is parameters and Adam's moments after t local steps, times the number of labelled nodes.

        The first moment, from zero, over 1 − 0.9ᵗ is a weighted mean of the gradients on the way: what attacks on FedAvg
        updates read. None without a labelled node.
        """
        if "update" not in sent or "parameters" not in model:
            return None
        p = model["parameters"].size
        if sent["update"].size <= 3 * p or not sent["update"][3 * p]:
            return None
        update = sent["update"] / sent["update"][3 * p]
        return np.asarray(update[p : 2 * p] / (1 - 0.9**self.plan.params.local_epochs), dtype=np.float64)

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first weights that read rows; zeros where there are none."""
        d = self.plan.facts.num_features
        for parameter, values in self._parts(gradient):
            if parameter.dim() == 2 and parameter.shape[1] == d:
                return values.reshape(tuple(parameter.shape)), np.eye(d)
        return np.zeros((1, d)), np.eye(d)

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """The last bias with a number for each class; zeros where there is none."""
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
