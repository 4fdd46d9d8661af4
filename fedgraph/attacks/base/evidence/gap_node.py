"""Evidence in the messages of ``gap_node``, and in its hops if they are shown."""

import numpy as np

from fedgraph.learning import DenseMatrix, scale_to_unit_length
from fedgraph.methods import State, gap_node, seen
from fedgraph.types import Graph


def reads_rounds(plan: gap_node.Planned) -> bool:
    """Whether rounds are kept: if some message is a sum over rows that its viewer knows."""
    size = max(layout.num_parameters for layout in plan.made.layouts.values())
    readable = plan.made.first > 0 or plan.watch.opened
    return readable and plan.params.sampling_rate == 1 and seen.rounds_worth_keeping(plan, size)


def evidence(plan: gap_node.Planned, state: State, graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """float64 [m], a score for each unit (node, −1, label); None if rounds were not kept, or nodes are replaced.

    graph: all nodes, with every canary in version 1.

    **Encoder** (rounds 0 … T−1): a message is a noisy sum of clipped gradients at known rows, and is read as in ``features``.

    **Classifier** (rounds T … 2T−1): rows are [H⁰ … Hᴷ], and the noisy hops stay with their client. A viewer of messages does
    not know these rows and does not read them. If hops are shown (``plan.watch.opened``), rows are known exactly and are read.
    A canary without edges has the same hops in both versions, so hops show nothing of it but take their share of the budget: at
    most 1 − ``hop_share`` of μ² shows (``benchmarks.one_run_limits --rows``).
    """
    weights = seen.known_shares(plan, state, units)
    if weights is None:
        return None
    hops = _shown_hops(plan, state)

    def read(number: int, nodes: np.ndarray, coins: seen.SeenCoins) -> None:
        part = graph.induced(nodes)
        x = gap_node.rows_of(part, plan.made.basis)
        rows = {"encoder": seen.SeenRows(coins, x, part.labels, weights[nodes])}
        for round_, model, message in seen.gradients_of(plan, state, number):
            stage = plan.made.stage(round_)
            if stage not in rows:
                if not hops:
                    break
                every = [
                    scale_to_unit_length(h)
                    for h in (gap_node.sent_rows(plan, model["encoder"], x), *(hop[number] for hop in hops))
                ]
                joined = DenseMatrix(np.concatenate(every, axis=1))
                rows[stage] = seen.SeenRows(coins, joined, part.labels, weights[nodes])
            rows[stage].read(plan.made.layouts[stage], model[stage], plan.params.clip, message)

    return seen.coins_of(plan, units, seen.groups_of(plan), "classifier", plan.params.clip, read)


def _shown_hops(plan: gap_node.Planned, state: State) -> list[list[np.ndarray]]:
    """The released noisy hops, each a list over clients; empty if they stayed with their client."""
    for _, inbox in state.seen:
        if inbox.round == plan.made.first:
            return [inbox.each[name] for name in map(gap_node.hop_name, range(plan.params.hops)) if name in inbox.each]
    return []
