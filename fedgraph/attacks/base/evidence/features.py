"""Evidence in the messages of ``features``.

A message is Σ_i clip(∇_i) + N(0, s²) at parameters that were broadcast. The attacker knows every row, so it subtracts all rows
that are not in question, and half of each canary's. Along a canary's own clipped gradient g_j the rest is ±‖g_j‖²/2 +
N(0, ‖g_j‖²s²) and what other canaries have along it (``seen.SeenCoins`` tells them apart). The sum over rounds is the
log-likelihood ratio of zero-out, exact for a canary alone: the test that the proof of the method prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph.methods import State, features, seen
from fedgraph.types import Graph


def reads_rounds(plan: features.Planned) -> bool:
    return seen.rounds_worth_keeping(plan, plan.made.layout.num_parameters)


def evidence(plan: features.Planned, state: State[features.Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """float64 [m], a score for each unit (node, −1, label); None if the viewer sees only the model, or nodes are replaced.

    graph: all nodes, with every canary in version 1. units: int64 [m, 3].
    """
    made, weights = plan.made, seen.known_shares(plan, state, units)
    if weights is None:
        return None
    return seen.find_rows(plan, state, graph, units, made.layout, made.clip, made.rows, weights)


@dataclass(frozen=True, eq=False)
class _GradientSums:
    """Reads the gradient in a message of this method: the noisy sum of clipped rows (``MethodGradientReader``)."""

    plan: features.Planned

    @property
    def names_words(self) -> bool:
        """Rows seen through pairs of words name no word."""
        return self.plan.made.pairs is None

    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        return np.asarray(sent["gradient"], dtype=np.float64) if "gradient" in sent else None

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        basis, (inputs, outputs) = self.plan.made.basis, self.plan.made.layout.shapes[0]
        back = np.eye(self.plan.facts.num_features) if basis is None else np.asarray(basis, dtype=np.float64).T
        return gradient[: inputs * outputs].reshape(inputs, outputs).T, back

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """At parameters zero each row is clipped to a known length, which gives the scale."""
        c, scale = self.plan.facts.num_classes, self.plan.made.layout.bias_scale
        norm = np.sqrt((1 - 1 / c) * (1 + scale**2))
        return np.asarray(gradient[-c:] / (scale * min(1.0, self.plan.made.clip / norm) * num_nodes))


observe = _GradientSums
