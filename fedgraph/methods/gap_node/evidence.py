"""An attack on GAP at node level by who sees every round: a server, or whoever reads all that is priced (``Watch.opened``).

**Encoder** (rounds 0 … T−1): a message is a noisy sum of clipped gradients at known rows. Half of each canary's row is taken
off, as its coin is unknown, and what is left is held against the canary's own gradient.

**Classifier** (rounds T … 2T−1): rows are [H⁰ … Hᴷ], and the noisy hops stay with their client. A viewer of messages does not
know these rows, so they are left unread. Where the hops are shown, rows are known exactly, and read as before. A canary without
edges has the same hops in both versions, so they tell nothing of it by themselves, and cost the share of the budget that they
have: of μ² it shows 1 − ``hop_share`` at most (``benchmarks.one_run_limits --rows``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedgraph.learning.clipping.per_sample import left_over_products, overlaps, products
from fedgraph.learning.late import torch
from fedgraph.learning.layers.dense import DenseMatrix
from fedgraph.learning.layers.sparse import device
from fedgraph.learning.propagation.aggregation import unit_length
from fedgraph.methods.base import Plan, State, seen
from fedgraph.methods.gap_node.rows import Made, Stage, hop_name, rows_of, sent
from fedgraph.privacy.units import Relation
from fedgraph.types import Graph

if TYPE_CHECKING:
    from fedgraph.methods.gap_node.params import Params


def reads_rounds(plan: Plan[Params, Made]) -> bool:
    """Whether the rounds of a run should be kept: some message is a sum over rows that somebody who sees it knows."""
    size = max(plan.made.encoder.num_parameters, plan.made.classifier.num_parameters)
    readable = plan.made.first > 0 or plan.watch.opened
    return readable and plan.params.sampling_rate == 1 and seen.worth_keeping(plan, size)


def evidence(plan: Plan[Params, Made], state: State, graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all readable messages say; None where the rounds were not kept, or nodes are
    replaced. graph: all nodes, with every canary as in version 1.
    """
    if not state.seen or plan.guarantee.protection.relation is not Relation.NODE_ZERO_OUT:
        return None
    weights, found = np.ones(plan.facts.sizes.num_nodes), np.zeros(plan.facts.sizes.num_nodes)
    weights[units[:, 0]] = 0.5
    hops = _hops(plan, state)
    for number, nodes in enumerate(seen.groups(plan)):
        part, coins = graph.induced(nodes), seen.Coins.of(nodes, units[:, 0])
        x, labels = rows_of(plan, part), torch.tensor(part.labels, device=device())
        of_stage: dict[Stage, tuple[Any, np.ndarray]] = {"encoder": (x, overlaps(x, coins.rows))}
        for round_, model, message in seen.messages(plan, state, number, "gradient"):
            stage: Stage = "encoder" if round_ < plan.made.first else "classifier"
            if stage == "classifier" and stage not in of_stage:
                if not hops:
                    break
                of_stage[stage] = _joined(plan, model, x, [hop[number] for hop in hops], coins.rows)
            rows, overlap = of_stage[stage]
            at = (plan.made.layout(stage), model[stage], rows, labels, plan.params.clip)
            coins.add(products(*at, overlap, coins.rows), left_over_products(*at, message, weights[nodes]))
        found[nodes[coins.rows]] = coins.ratios(seen.noise(plan, "classifier", plan.params.clip))
    return found[units[:, 0]]


def _hops(plan: Plan[Params, Made], state: State) -> list[list[np.ndarray]]:
    """The noisy hops as they were released, each a list over clients; none where they stayed with their client."""
    for _, inbox in state.seen:
        if inbox.round == plan.made.first:
            return [inbox.each[name] for name in map(hop_name, range(plan.params.hops)) if name in inbox.each]
    return []


def _joined(
    plan: Plan[Params, Made], model: Mapping[str, np.ndarray], x: Any, hops: list[np.ndarray], of: np.ndarray
) -> tuple[DenseMatrix, np.ndarray]:
    """(the classifier's rows of one client, products of those ``of``)."""
    parts = [unit_length(sent(plan, model["encoder"], x)), *(unit_length(hop) for hop in hops)]
    rows = DenseMatrix(np.concatenate(parts, axis=1))
    return rows, overlaps(rows, of)
