"""An attack on Features by who sees every round: a server, or a client behind secure aggregation (PRIVACY.md §10).

A message is Σ_i clip(∇_i) + N(0, s²) at parameters that were broadcast. The attacker knows every row, so it can take off all
that is not in question, and half of what is; the rest, along a canary's own clipped gradient g_j, is ±‖g_j‖²/2 + N(0, ‖g_j‖²s²)
and what other canaries have along it (``seen.Coins`` tells them apart). Summed over rounds that is the log-likelihood ratio of
zero-out, exact for a canary alone: the test that the proof of this method prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph.learning.clipping.per_sample import left_over_products, overlaps, products
from fedgraph.learning.late import torch
from fedgraph.learning.layers.matrices import device
from fedgraph.methods.base import Plan, State, seen
from fedgraph.methods.features.learner import Made, Memory, Params
from fedgraph.types import Graph


def reads_rounds(plan: Plan[Params, Made]) -> bool:
    """Whether ``evidence_of_rounds`` wants a run's rounds kept: the viewer sees them, and they are not too much to keep."""
    return seen.worth_keeping(plan, plan.made.layout.num_parameters)


def evidence_of_rounds(plan: Plan[Params, Made], state: State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say.

    Args:
        plan: of the run.
        state: after its last round.
        graph: all nodes, with every canary as in version 1.
        units: int64 [m, 3].

    Returns:
        float64 [m]; None where the viewer sees the model alone, or nodes are replaced.
    """
    made = plan.made
    weights = seen.known_shares(plan, state, units)
    if weights is None:
        return None
    found = np.zeros(weights.size)
    for number, nodes in enumerate(seen.groups(plan)):
        if (weights[nodes] == 1).all():
            continue  # no canary there
        x = made.rows(graph.induced(nodes))
        labels = torch.tensor(graph.labels[nodes], device=device())
        coins = seen.Coins.of(nodes, units[:, 0])
        overlap = overlaps(x, coins.rows)
        for _, model, message in seen.seen_messages(plan, state, number, "gradient"):
            at = (made.layout, model["parameters"], x, labels, made.clip)
            coins.add(products(*at, overlap, coins.rows), left_over_products(*at, message, weights[nodes]))
        found[nodes[coins.rows]] = coins.ratios(seen.seen_noise(plan, plan.schedule.releases[0].path, made.clip or 1.0))
    return found[units[:, 0]]


@dataclass(frozen=True, eq=False)
class GradientSums:
    """A gradient as a message of this method shows it: the noisy sum of clipped rows (``offers.GradientReader``).

    Attributes:
        plan: of the run.
    """

    plan: Plan[Params, Made]

    @property
    def names_words(self) -> bool:
        """Rows seen through pairs of words name no word."""
        return self.plan.made.pairs is None

    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        return np.asarray(sent["gradient"], dtype=np.float64) if "gradient" in sent else None

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        basis, (inputs, outputs) = self.plan.made.basis, self.plan.made.layout.shapes[0]
        back = np.eye(self.plan.facts.sizes.num_features) if basis is None else np.asarray(basis, dtype=np.float64).T
        return gradient[: inputs * outputs].reshape(inputs, outputs).T, back

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """At parameters zero each row is clipped to a known length, so each node's part is known."""
        c, scale = self.plan.facts.sizes.num_classes, self.plan.made.layout.bias_scale
        norm = np.sqrt((1 - 1 / c) * (1 + scale**2))
        return np.asarray(gradient[-c:] / (scale * min(1.0, self.plan.made.clip / norm) * num_nodes))
