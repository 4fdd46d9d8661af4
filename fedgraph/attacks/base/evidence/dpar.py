"""What the messages of ``dpar`` say."""

from __future__ import annotations

import numpy as np

from fedgraph.learning import FeatureMatrix, per_sample, torch, torch_device
from fedgraph.methods import State, dpar, seen
from fedgraph.types import Graph


def reads_rounds(plan: dpar.Planned) -> bool:
    """Whether the rounds of a run should be kept: each is one step whose noisy gradient somebody sees."""
    return plan.made.sizes.local_steps == 1 and seen.rounds_worth_keeping(plan, plan.made.layout.num_parameters)


def evidence(plan: dpar.Planned, state: State[dpar.Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """What the messages hold beyond known rows, along each canary's own gradient, at the batches' rate.

    Who names whom is secret, so every node is taken for a row of its own, which all but the few sources are. None where the
    rounds were not kept, nodes are replaced, or nothing is clipped.
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
