"""An attack on SAGE by who sees every round: what a message holds beyond the known rows, along a canary's own gradient.

A canary without edges touches its own row only, so ⟨clip(∇ⱼ), message − Σ wₖ clip(∇ₖ)⟩ summed over rounds is the log-likelihood
ratio of zero-out times s², for a canary alone. Rows of other nodes are known (the strongest attacker). Half of each canary's
row is taken off, as its coin is unknown; ``seen.Coins`` takes off what canaries have along one another. The proof prices more
than this shows: a node with edges touches other rows, too (``benchmarks.one_run_limits --rows`` says how much more).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedgraph.learning.clipping import neighbour_rows
from fedgraph.learning.clipping.per_sample import left_over_products, overlaps, products
from fedgraph.learning.late import torch
from fedgraph.learning.layers.models import Layout
from fedgraph.learning.layers.sparse import FeatureMatrix, device
from fedgraph.learning.optimisers.dp_training import Descended
from fedgraph.methods.base import Plan, State, seen
from fedgraph.methods.sage_node.caps import Made
from fedgraph.methods.sage_node.params import Params
from fedgraph.privacy.units import Relation
from fedgraph.types import Graph

Rows = Callable[[Graph, np.ndarray], FeatureMatrix | np.ndarray]  # a client's graph, its ids → rows of one layer


def reads_rounds(plan: Plan[Params, Made]) -> bool:
    """Whether the rounds of a run should be kept: one layer, everybody in every batch, and a viewer who sees them."""
    network = plan.made.network
    return isinstance(network, Layout) and plan.params.sampling_rate == 1 and seen.worth_keeping(plan, network.num_parameters)


def of_rounds(
    plan: Plan[Params, Made], state: State[Descended], graph: Graph, units: np.ndarray, rows: Rows
) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say; None where nothing was kept, or nodes are replaced."""
    network = plan.made.network
    if not state.seen or plan.guarantee.protection.relation is not Relation.NODE_ZERO_OUT or not isinstance(network, Layout):
        return None
    weights, found = np.ones(plan.facts.sizes.num_nodes), np.zeros(plan.facts.sizes.num_nodes)
    weights[units[:, 0]] = 0.5
    for number, nodes in enumerate(seen.groups(plan)):
        parts = plan.facts.membership.nodes if len(seen.groups(plan)) == 1 and plan.facts.sizes.num_clients > 1 else (nodes,)
        made = [rows(graph.induced(part), part) for part in parts]
        order = np.concatenate(parts)
        labels = graph.labels[order]
        coins = seen.Coins.of(order, units[:, 0])
        overlap = overlaps(made[0], coins.rows) if isinstance(made[0], FeatureMatrix) else np.zeros((0, 0))
        for _, model, message in seen.messages(plan, state, number, "gradient"):
            at = model["parameters"]
            if all(isinstance(m, np.ndarray) for m in made):
                inputs = np.concatenate([np.asarray(m) for m in made])
                how = (network, at, inputs, labels, plan.params.clip, plan.params.bound)
                left = neighbour_rows.left_over_products(*how, message, weights[order])
                coins.add(neighbour_rows.products(*how, coins.rows), left)
            elif len(made) == 1 and isinstance(made[0], FeatureMatrix):
                known = torch.tensor(labels, device=device())
                one = (network, at, made[0], known, plan.params.clip)
                coins.add(products(*one, overlap, coins.rows), left_over_products(*one, message, weights[order]))
            else:
                return None
        found[order[coins.rows]] = coins.ratios(seen.noise(plan, plan.schedule.releases[0].path, plan.params.clip))
    return found[units[:, 0]]
