"""Evidence in the messages of ``dpar``."""

from __future__ import annotations

import numpy as np

from fedgraph.learning import FeatureMatrix, per_sample, torch, torch_device
from fedgraph.methods import State, dpar, seen
from fedgraph.types import Graph


def reads_rounds(plan: dpar.Planned) -> bool:
    """Whether rounds are kept: if each is one step, and the viewer sees its noisy gradient."""
    return plan.made.sizes.local_steps == 1 and seen.rounds_worth_keeping(plan, plan.made.layout.num_parameters)


def evidence(plan: dpar.Planned, state: State[dpar.Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """float64 [m]: what messages hold beyond known rows, along each canary's own gradient, at the rate of the batches.

    The choice of neighbours is secret, so every node counts as a row of its own, as all but the few sources are. None if rounds
    were not kept, nodes are replaced, or nothing is clipped.
    """
    params = plan.params
    weights = seen.known_shares(plan, state, units)
    if weights is None or params.variant == "none":
        return None
    found = np.zeros(weights.size)
    rate = plan.made.sizes.expected_batch * plan.facts.num_clients / plan.facts.num_nodes
    for number, nodes in enumerate(seen.groups_of(plan)):
        part = dpar.scaled(graph.induced(nodes), params.features)
        x, labels = FeatureMatrix(part.features), torch.tensor(part.labels, device=torch_device())
        for _, model, message in seen.gradients_of(plan, state, number):
            each = per_sample.gradients(plan.made.layout, model["parameters"], x, labels).clipped(params.clip)
            found[nodes] += each.left_over_products(message, min(rate, 1.0) * weights[nodes])
    return found[units[:, 0]]
