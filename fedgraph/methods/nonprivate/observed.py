"""What somebody who sees a client's update, or the trained network, reads in it: for attacks (``offers.GradientReader``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph.learning.baselines import fitting
from fedgraph.learning.baselines.shapes import Shape
from fedgraph.learning.late import torch
from fedgraph.methods.base import Plan, State
from fedgraph.methods.base.offers import Convolutions
from fedgraph.methods.nonprivate.params import Asked, Params
from fedgraph.methods.nonprivate.phases import Training


@dataclass(frozen=True, eq=False)
class Updates:
    """A gradient as an update of FedAvg shows it: the mean over nodes."""

    plan: Plan[Params, Asked]
    names_words: bool = True

    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """An update is parameters and Adam's moments after t local steps, times the number of labelled nodes.

        The first moment, from zero, over 1 − 0.9ᵗ is a weighted mean of the gradients on the way. With plain descent the change
        of the parameters over rate and steps is their mean: what attacks on FedAvg updates read. None without a labelled node.
        """
        if "update" not in sent or "parameters" not in model:
            return None
        p, params = model["parameters"].size, self.plan.params
        if sent["update"].size <= 3 * p or not sent["update"][3 * p]:
            return None
        update = sent["update"] / sent["update"][3 * p]
        if params.client_optimiser == "adam":
            return np.asarray(update[p : 2 * p] / (1 - 0.9**params.local_epochs), dtype=np.float64)
        change = model["parameters"] - update[:p]
        return np.asarray(change / (params.learning_rate * params.local_epochs), dtype=np.float64)

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first weights that read rows; zeros where there are none."""
        d = self.plan.facts.sizes.num_features
        for parameter, values in self._parts(gradient):
            if parameter.dim() == 2 and parameter.shape[1] == d:
                return values.reshape(tuple(parameter.shape)), np.eye(d)
        return np.zeros((1, d)), np.eye(d)

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """The last bias with a number for each class; zeros where there is none."""
        c = self.plan.facts.sizes.num_classes
        found = [values for parameter, values in self._parts(gradient) if parameter.dim() == 1 and parameter.numel() == c]
        return found[-1] if found else np.zeros(c)

    def _parts(self, gradient: np.ndarray) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
        """Every parameter of the network with its part of the flat gradient."""
        at = 0
        for parameter in fitting.build_network(_shape(self.plan, self.plan.params.arguments), 0).parameters():
            yield parameter, gradient[at : at + parameter.numel()]
            at += parameter.numel()


def convolutions(plan: Plan[Params, Asked]) -> Callable[[State[Training]], Convolutions] | None:
    """What reads the two layers of a trained graph convolution; None where another network is trained."""
    if plan.params.model != "gcn":
        return None

    def layers(state: State[Training]) -> Convolutions:
        network = fitting.build_network(_shape(plan, {}), 0)
        fitting.write(network, state.model["parameters"])
        every = [p.detach().cpu().numpy() for p in network.parameters()]
        weights, biases = ([p for p in every if p.ndim == dimensions] for dimensions in (2, 1))
        return list(zip(weights, biases, strict=True))

    return layers


def _shape(plan: Plan[Params, Asked], arguments: Mapping[str, object]) -> Shape:
    return plan.made.candidates[0].shape(plan.facts.sizes.num_features, plan.facts.sizes.num_classes, dict(arguments))
